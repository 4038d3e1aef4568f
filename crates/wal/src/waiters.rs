//! Who waits for which LSN to become durable.
//!
//! Ordered by LSN, so that a sync wakes those it serves and nobody else. The durable LSN is stored before
//! the list is locked to wake, and read again under that lock before a waiter enters: no wake-up is lost.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::thread::Thread;

#[derive(Default)]
pub struct Waiters {
    list: Mutex<BTreeMap<(u64, u64), Waker>>,
    next_id: AtomicU64,
    count: AtomicUsize,
}

impl Waiters {
    pub fn new_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Enters (or replaces) a waker unless `settled` says, under the lock, that the wait is over.
    /// `Some(count of waiters)` if it was entered.
    pub fn enter(&self, lsn: u64, id: u64, waker: &Waker, settled: impl FnOnce() -> bool) -> Option<usize> {
        let mut list = self.list.lock();
        if settled() {
            return None;
        }
        list.insert((lsn, id), waker.clone());
        self.count.store(list.len(), Ordering::Relaxed);
        Some(list.len())
    }

    pub fn leave(&self, lsn: u64, id: u64) {
        let mut list = self.list.lock();
        list.remove(&(lsn, id));
        self.count.store(list.len(), Ordering::Relaxed);
    }

    /// Wakes everyone who waits for `durable` or less; gives their number.
    pub fn wake_up_to(&self, durable: u64) -> usize {
        let ready = {
            let mut list = self.list.lock();
            let later = list.split_off(&(durable.saturating_add(1), 0));
            let ready = std::mem::replace(&mut *list, later);
            self.count.store(list.len(), Ordering::Relaxed);
            ready
        };
        let count = ready.len();
        ready.into_values().for_each(Waker::wake);
        count
    }
}

/// Wakes a thread that waits without an executor.
pub struct Unpark(pub Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}
