//! The commit order: which version is next, which are durable, which rows are restamped.
//!
//! Invariants:
//! - versions are handed out under the lock under which the commit record is appended: log order is
//!   version order;
//! - `published` is the greatest version whose record, and every earlier one, is durable;
//! - `settled` is the greatest version below which no committed row still carries a TxnId, unless its mark could not be
//!   looked for: that transaction is never forgotten.

use basalt_types::{Lsn, Version};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

pub struct CommitOrder {
    inner: Mutex<Inner>,
    /// As in `inner`, as of the last turn that has ended.
    last: AtomicU64,
    published: AtomicU64,
    settled: Condvar,
    unsettled: Mutex<Unsettled>,
}

#[derive(Default)]
struct Unsettled {
    versions: BTreeSet<Version>,
    /// A committer died between its record and its rows: those below it never settle.
    broken: bool,
}

struct Inner {
    last: Version,
    /// Ends of commit records that are not known durable, in order.
    pending: VecDeque<(Lsn, Version)>,
}

/// Held while a commit record is appended.
pub struct Turn<'a> {
    order: &'a CommitOrder,
    inner: MutexGuard<'a, Inner>,
}

impl CommitOrder {
    pub fn new(last: Version) -> CommitOrder {
        CommitOrder {
            inner: Mutex::new(Inner { last, pending: VecDeque::new() }),
            last: AtomicU64::new(last.0),
            published: AtomicU64::new(last.0),
            settled: Condvar::new(),
            unsettled: Mutex::default(),
        }
    }

    /// Everybody else's commits wait while the turn is held: append, decide, drop.
    pub fn take_turn(&self) -> Turn<'_> {
        Turn { order: self, inner: self.inner.lock() }
    }

    /// The greatest version of a turn that has ended, so that all that it decided is decided: whoever is granted a lock of
    /// a transaction that has committed finds its version among those up to it.
    pub fn last(&self) -> Version {
        Version(self.last.load(Ordering::Acquire))
    }

    pub fn published(&self) -> Version {
        Version(self.published.load(Ordering::Acquire))
    }

    /// Called by the log when everything before `lsn` is durable.
    pub fn durable(&self, lsn: Lsn) {
        let mut inner = self.inner.lock();
        let mut last = None;
        while let Some((_, version)) = inner.pending.pop_front_if(|(end, _)| *end <= lsn) {
            last = Some(version);
        }
        if let Some(version) = last {
            self.published.store(version.0, Ordering::Release);
        }
    }

    /// Where the record of a version ends, while it is not known durable.
    pub fn end_of(&self, version: Version) -> Option<Lsn> {
        let inner = self.inner.lock();
        inner.pending.iter().find(|(_, pending)| *pending >= version).map(|(end, _)| *end)
    }

    /// The committer of `version` has restamped its rows.
    pub fn settle(&self, version: Version) {
        self.unsettled.lock().versions.remove(&version);
        self.settled.notify_all();
    }

    /// A committer cannot go on: nobody waits for it any more.
    pub fn give_up(&self) {
        self.unsettled.lock().broken = true;
        self.settled.notify_all();
    }

    /// Blocks until every version up to `version` is settled. Short: committers settle right away. False:
    /// one of them never will ([`CommitOrder::give_up`]).
    #[must_use]
    pub fn wait_settled(&self, version: Version) -> bool {
        let mut unsettled = self.unsettled.lock();
        while unsettled.versions.first().is_some_and(|first| *first <= version) {
            if unsettled.broken {
                return false;
            }
            self.settled.wait(&mut unsettled);
        }
        true
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.order.last.store(self.inner.last.0, Ordering::Release);
    }
}

impl Turn<'_> {
    /// The greatest version handed out.
    pub fn last(&self) -> Version {
        self.inner.last
    }

    /// The version that [`Turn::commit`] will give.
    pub fn next(&self) -> Version {
        Version(self.inner.last.0 + 1)
    }

    /// Takes the next version for a record that ends at `end`. The caller must [`CommitOrder::settle`] it.
    pub fn commit(&mut self, end: Lsn) -> Version {
        let version = self.next();
        self.inner.last = version;
        self.inner.pending.push_back((end, version));
        self.order.unsettled.lock().versions.insert(version);
        version
    }
}
