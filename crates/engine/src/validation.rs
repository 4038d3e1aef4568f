//! SERIALIZABLE: a snapshot, and at commit a look whether what was read is still so (precision locking; Neumann,
//! Mühlbauer, Kemper: Fast Serializable Multi-Version Concurrency Control, SIGMOD 2015, section 2.3).
//!
//! A transaction notes what it reads as predicates: keys, ranges of keys, scans with their conditions ([`ReadSet`]).
//! While such transactions run, everybody who commits notes which keys he changed ([`Recent`]). In its turn of the
//! commit order a transaction looks at the changes since its snapshot: if none of them meets what it read, its reads
//! are as true at its version as they were at its snapshot. So versions are a serial order, whatever the level of the
//! others. Who only reads has its place at its snapshot, and is never refused.
//!
//! Invariants:
//! 1. A transaction is entered in a turn of the commit order, with a snapshot above which the changes of all versions
//!    are noted: the last version at that moment, or, if somebody is there already, what is durable.
//! 2. Changes are noted in the turn that gives them their version, and the last look is in the turn, too.
//! 3. A row is compared as the snapshot has it and as it is now. What it was in between nobody has met.
//!
//! What is undecided: own changes are under locks that keep others away, and a row that was changed between the
//! snapshot and its lock is refused when it is locked (40001, as at REPEATABLE READ).

mod reads;

pub use reads::ReadSet;
pub(crate) use reads::{ScanRead, SettledReads};

use crate::read::ReadContext;
use crate::txn::Change;
use crate::{Engine, Error, Result};
use basalt_meta::Pin;
use basalt_types::{Key, ReadAt, TabletId, Version};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Noted changes take this much at most. The oldest are forgotten, and who would need them is refused.
const BYTES_MAX: usize = 64 << 20;
/// Changes that are looked at in the turn, while everybody waits: more are looked at before it, so many times.
const LATE_MAX: usize = 64;
const ROUNDS_MAX: usize = 8;
/// Looking at more than this is no work for a thread that serves others.
const SHORT_BYTES: usize = 128 << 10;

/// What was committed while serializable transactions run.
#[derive(Default)]
pub(crate) struct Recent {
    running: AtomicUsize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// Snapshots of those that run, and how many have each.
    snapshots: BTreeMap<Version, usize>,
    /// Changes of all versions above this one are noted, unless they are forgotten.
    since: Version,
    /// In the order of their versions.
    commits: VecDeque<Arc<Commit>>,
    bytes: usize,
    /// The greatest version that was forgotten while somebody might have needed it.
    forgotten: Version,
}

struct Commit {
    version: Version,
    changes: Vec<Changed>,
    bytes: usize,
}

/// What may differ from what a snapshot before it has seen.
enum Changed {
    Row(TabletId, Key),
    /// New rows, or rows that were deleted, with keys between these two.
    Batch(TabletId, Option<(Key, Key)>),
}

/// A serializable transaction that runs.
pub(crate) struct Running {
    engine: Arc<Engine>,
    snapshot: Version,
    pub reads: Arc<ReadSet>,
}

/// How far a transaction has looked at what others changed.
pub(crate) struct Looked {
    reads: SettledReads,
    upto: Version,
}

impl Recent {
    /// Notes what was changed, in the turn that gave the version.
    pub fn note(&self, version: Version, changes: &[Change]) {
        if self.running.load(Ordering::Relaxed) == 0 {
            return;
        }
        let changes: Vec<Changed> = changes.iter().filter_map(Changed::of).collect();
        let bytes = size_of::<Commit>() + changes.iter().map(Changed::bytes).sum::<usize>();
        let mut inner = self.inner.lock();
        if inner.snapshots.is_empty() {
            return;
        }
        inner.bytes += bytes;
        inner.commits.push_back(Arc::new(Commit { version, changes, bytes }));
        let forgotten = inner.shrink_to(BYTES_MAX);
        drop(inner);
        drop(forgotten);
    }

    /// Commits above a version, in order. `None`: some of them are forgotten.
    fn since(&self, version: Version) -> Option<Vec<Arc<Commit>>> {
        let inner = self.inner.lock();
        if inner.forgotten > version {
            return None;
        }
        let first = inner.commits.partition_point(|commit| commit.version <= version);
        Some(inner.commits.range(first..).cloned().collect())
    }

    /// In the turn. A snapshot that is durable will do if the changes above it are noted.
    fn enter(&self, published: Version, last: Version) -> Version {
        let mut inner = self.inner.lock();
        if inner.snapshots.is_empty() {
            inner.since = last;
        }
        let snapshot = if published >= inner.since { published } else { last };
        *inner.snapshots.entry(snapshot).or_default() += 1;
        self.running.fetch_add(1, Ordering::Relaxed);
        snapshot
    }

    /// Forgets what nobody else needs.
    fn leave(&self, snapshot: Version) {
        let mut inner = self.inner.lock();
        self.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(count) = inner.snapshots.get_mut(&snapshot) {
            *count -= 1;
            if *count == 0 {
                inner.snapshots.remove(&snapshot);
            }
        }
        let oldest = inner.snapshots.first_key_value().map_or(Version::MAX, |(oldest, _)| *oldest);
        // Whoever comes later may have the oldest that is left for a snapshot, and none below.
        inner.since = inner.since.max(oldest.min(Version(Version::MAX.0 - 1)));
        let needless = inner.commits.partition_point(|commit| commit.version <= oldest);
        let needless: Vec<Arc<Commit>> = inner.commits.drain(..needless).collect();
        inner.bytes -= needless.iter().map(|commit| commit.bytes).sum::<usize>();
        drop(inner);
        drop(needless);
    }

    /// Whether much was changed lately.
    fn is_much(&self) -> bool {
        self.inner.lock().bytes > SHORT_BYTES
    }
}

#[cfg(test)]
impl Recent {
    pub fn is_empty(&self) -> bool {
        let inner = self.inner.lock();
        inner.commits.is_empty() && inner.snapshots.is_empty() && inner.bytes == 0
    }

    pub fn forget_all(&self) {
        self.inner.lock().shrink_to(0);
    }
}

impl Inner {
    /// Forgets the oldest commits, which come back to be dropped without the latch.
    fn shrink_to(&mut self, bytes: usize) -> Vec<Arc<Commit>> {
        let mut forgotten = Vec::new();
        while self.bytes > bytes
            && let Some(oldest) = self.commits.pop_front()
        {
            self.bytes -= oldest.bytes;
            self.forgotten = oldest.version;
            forgotten.push(oldest);
        }
        forgotten
    }
}

impl Changed {
    fn of(change: &Change) -> Option<Changed> {
        match change {
            Change::Hot { tablet, key, .. } | Change::Mark { tablet, key, .. } => {
                Some(Changed::Row(tablet.id, key.clone()))
            }
            Change::Marks { tablet, keys, .. } => Some(Changed::Batch(tablet.id, Some(keys.clone()))),
            Change::File { tablet, file, .. } => Some(Changed::Batch(tablet.id, file.data.key_range().cloned())),
            // The row is removed here and put there, which are changes of their own.
            Change::Forward { .. } | Change::NewTablet { .. } => None,
        }
    }

    fn bytes(&self) -> usize {
        let keys = match self {
            Changed::Row(_, key) => key.0.len(),
            Changed::Batch(_, keys) => keys.iter().map(|(least, greatest)| least.0.len() + greatest.0.len()).sum(),
        };
        size_of::<Changed>() + keys
    }
}

impl Running {
    /// Enters a transaction; its snapshot must not be below the version that comes along.
    pub fn enter(engine: &Arc<Engine>) -> (Running, Version) {
        let turn = engine.order.take_turn();
        let snapshot = engine.recent.enter(engine.order.published(), turn.last());
        drop(turn);
        (Running { engine: engine.clone(), snapshot, reads: Arc::default() }, snapshot)
    }

    /// Whether it may take long to look at what others changed.
    pub fn has_much_to_look_at(&self) -> bool {
        self.engine.recent.is_much()
    }

    /// Looks at what was committed since the snapshot, so that little is left for the turn.
    pub fn look_ahead(&self, pin: &Arc<Pin>) -> Result<Looked> {
        let mut looked = Looked { reads: self.reads.settled(), upto: pin.version() };
        for _ in 0..ROUNDS_MAX {
            let commits = self.engine.recent.since(looked.upto).ok_or(Error::Dependencies)?;
            if commits.iter().map(|commit| commit.changes.len()).sum::<usize>() <= LATE_MAX {
                break;
            }
            self.check(&looked.reads, &commits, pin)?;
            looked.upto = commits.last().map_or(looked.upto, |last| last.version);
        }
        Ok(looked)
    }

    /// The rest, in the turn.
    pub fn look_last(&self, looked: &Looked, pin: &Arc<Pin>) -> Result<()> {
        // An index that was built anew: what has changed since is noted elsewhere.
        if looked.reads.tablets().any(|tablet| self.engine.tablet(tablet).is_err()) {
            return Err(Error::Dependencies);
        }
        self.check(&looked.reads, &self.engine.recent.since(looked.upto).ok_or(Error::Dependencies)?, pin)
    }

    fn check(&self, reads: &SettledReads, commits: &[Arc<Commit>], pin: &Arc<Pin>) -> Result<()> {
        if basalt_sched::failpoint::is_weakened("validation") {
            return Ok(());
        }
        let at = |at| ReadContext::new(self.engine.clone(), pin.clone(), at);
        let before = at(ReadAt::version(pin.version()));
        let now = at(ReadAt::version(Version::MAX));
        let mut known = HashSet::new();
        for change in commits.iter().flat_map(|commit| &commit.changes) {
            let meets = match change {
                Changed::Row(tablet, key) if !known.insert((*tablet, key)) => false,
                Changed::Row(tablet, key) => reads.meets_row(*tablet, key, &before, &now)?,
                Changed::Batch(tablet, keys) => reads.meets_keys(*tablet, keys.as_ref()),
            };
            if meets {
                return Err(Error::Dependencies);
            }
        }
        // What was before is known only as long as it is kept.
        before.check_age()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.engine.recent.leave(self.snapshot);
    }
}
