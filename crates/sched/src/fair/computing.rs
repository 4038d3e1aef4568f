//! What a thread computes for, while it does: time is noted when it ends, and whoever has to wait in the middle of it
//! gives the slot back before.

use super::{Statement, Turn};
use crate::threads;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

/// For so long a thread computes at a time where nobody else says how long a step is.
const STEP_MAX: Duration = Duration::from_micros(500);

thread_local! {
    static COMPUTING: RefCell<Option<Computing>> = const { RefCell::new(None) };
}

struct Computing {
    turn: Turn,
    /// What the thread had spent by then, and when that was.
    began: Duration,
    began_at: Duration,
}

impl Computing {
    fn begins(turn: Turn) -> Computing {
        Computing { turn, began: threads::spent(), began_at: threads::now() }
    }
}

/// Takes what was computed for out of the thread, whatever happens.
struct Ends;

impl Drop for Ends {
    fn drop(&mut self) {
        drop(COMPUTING.take());
    }
}

impl Turn {
    /// Does work with the slot that was waited for, and notes the processor time that it took. Afterwards the slot may be
    /// somebody else's. Within other such work it is a part of that.
    pub fn compute<T>(&mut self, work: impl FnOnce() -> T) -> T {
        if is_computing() {
            return work();
        }
        COMPUTING.set(Some(Computing::begins(self.take_out())));
        let ends = Ends;
        let done = work();
        if let Some(Computing { turn, began, .. }) = COMPUTING.take() {
            *self = turn;
            self.spent(threads::spent().saturating_sub(began));
        }
        drop(ends);
        done
    }
}

/// Whether this thread computes for a turn.
pub fn is_computing() -> bool {
    COMPUTING.with_borrow(Option::is_some)
}

/// The statement that this thread computes for.
pub fn computes_for() -> Option<Arc<Statement>> {
    COMPUTING.with_borrow(|computing| computing.as_ref().map(|computing| computing.turn.statement.clone()))
}

/// Whether this thread has computed for so long that others are to have it: those who wait for a slot, or whoever needs the
/// thread alone. So has whoever goes on without a slot after a [`pause`].
pub fn is_overdue() -> bool {
    COMPUTING.with_borrow(|computing| {
        let Some(Computing { turn, began, began_at }) = computing else { return false };
        // The first reading is no call into the kernel.
        let is_late = || threads::now().saturating_sub(*began_at) >= STEP_MAX;
        turn.ticket.is_none() || is_late() && threads::spent().saturating_sub(*began) >= STEP_MAX
    })
}

/// Does what may wait for another statement, or for time to pass: as [`pause`], and the statement's permit is given back,
/// since whoever is waited for may need one.
pub fn wait<T>(work: impl FnOnce() -> T) -> T {
    COMPUTING.with_borrow(|computing| {
        if let Some(Computing { turn, .. }) = computing {
            turn.statement.give_back_permit();
        }
    });
    pause(work)
}

/// Does what may wait for others, or compute for turns of its own. What the thread computed for goes on without a slot
/// afterwards, to the end of its step: it is not to wait in the middle of it.
pub fn pause<T>(work: impl FnOnce() -> T) -> T {
    let Some(Computing { mut turn, began, .. }) = COMPUTING.take() else { return work() };
    turn.spent(threads::spent().saturating_sub(began));
    turn.rest();
    let done = work();
    // What was spent in between is noted by those whose it is.
    COMPUTING.set(Some(Computing::begins(turn)));
    done
}
