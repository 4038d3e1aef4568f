//! What executions hold of the memory budget, and what they have written instead: asked for as it grows, and given back
//! by whoever lets go of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The memory of all queries, as one execution sees it.
pub trait Memory: Send + Sync {
    /// Whether so many bytes more may be held.
    fn grow(&self, bytes: usize) -> bool;
    fn shrink(&self, bytes: usize);
}

/// What is held and was written, by one pipeline or by all of an execution.
pub struct Account {
    memory: Arc<dyn Memory>,
    all: Option<Arc<Account>>,
    held: AtomicUsize,
    held_max: AtomicUsize,
    spilled: AtomicU64,
}

impl Account {
    pub fn new(memory: Arc<dyn Memory>) -> Arc<Account> {
        Arc::new(Account::empty(memory, None))
    }

    /// A part of it.
    pub fn part(self: &Arc<Account>) -> Arc<Account> {
        Arc::new(Account::empty(self.memory.clone(), Some(self.clone())))
    }

    fn empty(memory: Arc<dyn Memory>, all: Option<Arc<Account>>) -> Account {
        let (held, held_max, spilled) = Default::default();
        Account { memory, all, held, held_max, spilled }
    }

    fn grow(&self, bytes: usize) -> bool {
        let may = self.memory.grow(bytes);
        if may {
            self.count(bytes);
            self.all.iter().for_each(|all| all.count(bytes));
        }
        may
    }

    fn count(&self, bytes: usize) {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.held_max.fetch_max(held, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        self.memory.shrink(bytes);
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        if let Some(all) = &self.all {
            all.held.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    pub(crate) fn add_spilled(&self, bytes: u64) {
        self.spilled.fetch_add(bytes, Ordering::Relaxed);
        self.all.iter().for_each(|all| all.add_spilled(bytes));
    }

    /// The most that was held at once.
    pub fn held_bytes_max(&self) -> usize {
        self.held_max.load(Ordering::Relaxed)
    }

    /// Written to temporary files.
    pub fn spilled_bytes(&self) -> u64 {
        self.spilled.load(Ordering::Relaxed)
    }
}

/// Bytes that somebody holds; they are given back with it.
pub(crate) struct Reservation {
    account: Arc<Account>,
    bytes: usize,
}

/// Asked for at once, so that few batches ask.
const STEP_BYTES: usize = 1 << 18;

impl Reservation {
    pub fn new(account: &Arc<Account>) -> Reservation {
        Reservation { account: account.clone(), bytes: 0 }
    }

    /// Whether so many bytes may be held in all.
    pub fn reach(&mut self, bytes: usize) -> bool {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return true };
        // In large steps where there is room for them.
        for more in [more.next_multiple_of(STEP_BYTES), more] {
            if self.account.grow(more) {
                self.bytes += more;
                return true;
            }
        }
        false
    }

    /// Gives back what is beyond so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if let Some(less) = self.bytes.checked_sub(bytes).filter(|less| *less > 0) {
            self.account.shrink(less);
            self.bytes = bytes;
        }
    }

    /// Takes over what another holds.
    pub fn join(&mut self, mut other: Reservation) {
        assert!(Arc::ptr_eq(&self.account, &other.account), "reservations of one account");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}
