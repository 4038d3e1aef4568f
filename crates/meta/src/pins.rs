//! Who still reads what: snapshots of statements, transactions, cursors, backups, checkpoints.
//!
//! Garbage collection obeys this one table. A pin holds a version; dropping it lets go.

use basalt_types::Version;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
pub struct PinTable {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    next: u64,
    /// Version, then pin number: the first is the oldest.
    pins: BTreeMap<(Version, u64), PinInfo>,
}

/// A line of `basalt.pins`.
#[derive(Clone, Debug)]
pub struct PinInfo {
    pub version: Version,
    pub reason: &'static str,
    /// Monotonic clock when taken.
    pub since: Duration,
}

/// Keeps everything that a reader at `version` can see.
pub struct Pin {
    table: Arc<PinTable>,
    version: Version,
    number: u64,
}

impl PinTable {
    /// Pins the version that `current` reads. It is read under the table's lock, so that no garbage
    /// collection that started earlier misses it.
    pub fn pin(self: &Arc<Self>, reason: &'static str, since: Duration, current: impl FnOnce() -> Version) -> Pin {
        let mut inner = self.inner.lock();
        let version = current();
        let number = inner.next;
        inner.next += 1;
        inner.pins.insert((version, number), PinInfo { version, reason, since });
        Pin { table: self.clone(), version, number }
    }

    /// All pinned versions below `published`, and it, ascending, without duplicates. `published` is read
    /// under the table's lock: a later pin is never below the last element. Pins above it (of sessions
    /// that read their own commits before those are durable) need nothing older than it needs.
    pub fn live(&self, published: impl FnOnce() -> Version) -> Vec<Version> {
        let inner = self.inner.lock();
        let published = published();
        let mut live: Vec<Version> =
            inner.pins.keys().map(|(version, _)| *version).take_while(|version| *version < published).collect();
        drop(inner);
        live.push(published);
        live.dedup();
        live
    }

    pub fn list(&self) -> Vec<PinInfo> {
        self.inner.lock().pins.values().cloned().collect()
    }
}

impl Pin {
    pub fn version(&self) -> Version {
        self.version
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.table.inner.lock().pins.remove(&(self.version, self.number));
    }
}
