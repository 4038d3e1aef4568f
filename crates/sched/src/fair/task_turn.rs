//! The turn of what an executor polls, such as an operator of a plan.
//!
//! An executor has a queue of its own, which knows no shares: where there are as many threads as slots, whoever is not
//! polled would stand there, and hardly anybody in line. So a [`TaskTurn`] stands in line from the moment at which it is
//! woken, and the executor hears of it when it holds a slot: its queue has those alone that are to be polled now.
//!
//! The waker that work is polled with is the turn's own. It is heard while the last poll is pending: who has an answer polls
//! again of its own accord, and a slot that nobody asked for would be held by nobody.

use super::{Statement, Turn, is_computing};
use parking_lot::Mutex;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker, ready};

/// Holds a slot while it is polled, and from the moment at which it is given one until then; and goes on with it as [`Turn`]s
/// do if it was woken meanwhile.
pub struct TaskTurn {
    place: Arc<Place>,
    waker: Waker,
}

/// What wakers have of it, which may outlive it.
struct Place(Mutex<State>);

struct State {
    turn: Turn,
    phase: Phase,
}

enum Phase {
    /// It is polled when somebody has a use for it.
    Asked,
    /// It waits for what it was polled for, or for a slot: whom to tell when there is one.
    Waits(Waker),
    /// A thread polls it; whether it was woken meanwhile.
    Polled { woken: bool },
}

impl TaskTurn {
    pub fn new(statement: &Arc<Statement>) -> TaskTurn {
        let place = Arc::new(Place(Mutex::new(State { turn: statement.turn(), phase: Phase::Asked })));
        TaskTurn { waker: place.clone().into(), place }
    }

    /// Polls with a slot of its own, or as a part of what this thread computes already.
    pub fn poll<T>(&mut self, cx: &mut Context<'_>, work: impl FnOnce(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        if is_computing() {
            self.rest();
            return work(cx);
        }
        let mut turn = ready!(self.place.begin(cx));
        let polled = turn.compute(|| work(&mut Context::from_waker(&self.waker)));
        self.place.end(turn, polled.is_pending(), cx.waker());
        polled
    }

    /// Gives back the slot, or the place, until it is polled.
    pub fn rest(&mut self) {
        let mut state = self.place.0.lock();
        let (mut turn, _phase) = (state.turn.take_out(), std::mem::replace(&mut state.phase, Phase::Asked));
        drop(state);
        turn.rest();
    }
}

impl Drop for TaskTurn {
    fn drop(&mut self) {
        self.rest();
    }
}

impl Place {
    /// The turn, once it has a slot.
    fn begin(&self, cx: &mut Context<'_>) -> Poll<Turn> {
        let mut state = self.0.lock();
        if state.turn.poll_ready(cx).is_pending() {
            state.phase = Phase::Waits(cx.waker().clone());
            return Poll::Pending;
        }
        state.phase = Phase::Polled { woken: false };
        Poll::Ready(state.turn.take_out())
    }

    fn end(&self, mut turn: Turn, is_pending: bool, task: &Waker) {
        let mut state = self.0.lock();
        let goes_on = is_pending && matches!(state.phase, Phase::Polled { woken: true });
        state.phase = if is_pending { Phase::Waits(task.clone()) } else { Phase::Asked };
        if goes_on {
            state.turn = turn;
            return stand(state);
        }
        // The turn that stays is an empty one: whoever wakes it now gives it a place of its own.
        drop(state);
        turn.rest();
    }
}

/// Stands in line, and tells the task if there is a slot at once.
fn stand(mut state: parking_lot::MutexGuard<'_, State>) {
    let Phase::Waits(task) = &state.phase else { return };
    let task = task.clone();
    let granted = state.turn.poll_ready(&mut Context::from_waker(&task)).is_ready();
    drop(state);
    if granted {
        task.wake();
    }
}

impl Wake for Place {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut state = self.0.lock();
        // Who stands in line is told when there is a slot, and who has one was told.
        let is_known = state.turn.ticket.is_some();
        match &mut state.phase {
            Phase::Asked => {}
            Phase::Polled { woken } => *woken = true,
            Phase::Waits(_) if is_known => {}
            Phase::Waits(_) => stand(state),
        }
    }
}

#[cfg(test)]
mod tests;
