//! How many queries run at once, and who waits for that: admission control of one query group.
//!
//! Who computes at a time is chosen by `fair`; but each query that has begun holds memory, tasks and snapshots, and a
//! thousand that each get a thousandth of the time all end late. So a bounded number runs, a bounded number waits in the
//! order of arrival, and whoever comes beyond that hears of it at once and can do something else.
//!
//! Invariants: at most `active_max` permits are granted, none waits while one more could be granted, and they are granted
//! in the order in which they were asked for. At most `queued_max` wait. A permit that is dropped gives back what it has,
//! its grant or its place in the queue. Wakers are called without the lock.
//!
//! No deadlock comes of it as long as whoever holds a grant waits for nobody who might need one. A query's producer of
//! rows holds it; it gives it back for good before it waits for whoever takes its rows, for a lock or for time to pass
//! (`fair::Statement::give_back_permit`). Consumers, which may wait for row locks or for another query of theirs, hold none.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

/// Of one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// At least 1.
    pub active_max: usize,
    pub queued_max: usize,
}

/// As many wait as may.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueueFull(pub Limits);

/// What happens now, and what happened since start.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Report {
    pub active: usize,
    pub queued: usize,
    pub refused: u64,
}

type Ticket = u64;

pub struct Admission {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    active: usize,
    /// In the order of arrival.
    queue: BTreeMap<Ticket, Option<Waker>>,
    tickets: Ticket,
    refused: u64,
}

/// The right to run, or a place in the queue for it.
pub struct Permit {
    admission: Arc<Admission>,
    ticket: Ticket,
}

impl Admission {
    pub fn new(limits: Limits) -> Arc<Admission> {
        let limits = Limits { active_max: limits.active_max.max(1), ..limits };
        Arc::new(Admission { limits, state: Mutex::default() })
    }

    /// Granted at once if there is room.
    pub fn enter(self: &Arc<Self>) -> Result<Permit, QueueFull> {
        let mut state = self.state.lock();
        let ticket = state.tickets;
        if state.active < self.limits.active_max {
            state.active += 1;
        } else if state.queue.len() < self.limits.queued_max {
            state.queue.insert(ticket, None);
        } else {
            state.refused += 1;
            return Err(QueueFull(self.limits));
        }
        state.tickets += 1;
        Ok(Permit { admission: self.clone(), ticket })
    }

    pub fn report(&self) -> Report {
        let state = self.state.lock();
        Report { active: state.active, queued: state.queue.len(), refused: state.refused }
    }
}

impl Permit {
    pub fn is_granted(&self) -> bool {
        !self.admission.state.lock().queue.contains_key(&self.ticket)
    }

    pub async fn granted(&self) {
        poll_fn(|cx| self.poll_granted(cx)).await;
    }

    pub fn poll_granted(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self.admission.state.lock().queue.get_mut(&self.ticket) {
            Some(waker) => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut state = self.admission.state.lock();
        if state.queue.remove(&self.ticket).is_some() {
            return;
        }
        // The grant goes on to whoever came first.
        let next = state.queue.pop_first();
        if next.is_none() {
            state.active -= 1;
        }
        drop(state);
        if let Some((_, Some(waker))) = next {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests;
