//! Who still reads what: snapshots of statements, transactions, cursors, backups, checkpoints.
//!
//! Garbage collection obeys this one table. A pin holds a version; dropping it lets go.
//!
//! A pin is a slot with a version in it. Whoever pins writes the version that is current into its slot and looks
//! whether it still is; whoever collects asks for the published version first and looks at the slots then. So either
//! the collector sees the slot, or the pin is at least at what the collector took for published: nobody waits for
//! anybody (hazard pointers; Michael, 2004).
//!
//! Pins of statements and transactions may be limited in age ([`PinTable::expire`]). One that is too old holds nothing
//! from then on, and what is read through it counts for nothing: who reads asks [`Pin::is_expired`] when he has read.
//! A pin that is renewed at that moment is either seen by the collector, as every new pin, or holds no less than it.

use basalt_types::Version;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::time::Duration;

/// What a pin is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PinReason {
    Transaction,
    Statement,
    Read,
    Check,
    Checkpoint,
}

impl PinReason {
    const ALL: [PinReason; 5] =
        [PinReason::Transaction, PinReason::Statement, PinReason::Read, PinReason::Check, PinReason::Checkpoint];

    pub fn name(self) -> &'static str {
        match self {
            PinReason::Transaction => "transaction",
            PinReason::Statement => "statement",
            PinReason::Read => "read",
            PinReason::Check => "check",
            PinReason::Checkpoint => "checkpoint",
        }
    }
}

#[derive(Default)]
pub struct PinTable {
    slots: Mutex<Slots>,
}

#[derive(Default)]
struct Slots {
    all: Vec<Arc<Slot>>,
    free: Vec<Arc<Slot>>,
}

/// Greater than every version.
const EMPTY: u64 = u64::MAX;
/// When a pin was taken that holds nothing any more.
const EXPIRED: u64 = u64::MAX;

struct Slot {
    version: AtomicU64,
    /// Monotonic clock when it was taken, in microseconds.
    since: AtomicU64,
    reason: AtomicU8,
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
    slot: Arc<Slot>,
    version: Version,
}

impl PinTable {
    /// Pins the version that `current` reads, which never falls.
    pub fn pin(self: &Arc<Self>, reason: PinReason, since: Duration, current: impl Fn() -> Version) -> Pin {
        let slot = {
            let mut slots = self.slots.lock();
            slots.free.pop().unwrap_or_else(|| {
                let slot = Slot { version: AtomicU64::new(EMPTY), since: AtomicU64::new(0), reason: AtomicU8::new(0) };
                let slot = Arc::new(slot);
                slots.all.push(slot.clone());
                slot
            })
        };
        let mut pin = Pin { table: self.clone(), slot, version: Version::ZERO };
        pin.renew(reason, since, current);
        pin
    }

    /// All pinned versions below `published`, and it, ascending, without duplicates. `published` is read before the
    /// slots are: a later pin is never below the last element. Pins above it (of sessions that read their own commits
    /// before those are durable) need nothing older than it needs.
    pub fn live(&self, published: impl FnOnce() -> Version) -> Vec<Version> {
        let published = published();
        fence(Ordering::SeqCst);
        let slots = self.slots.lock();
        let held = |slot: &Arc<Slot>| {
            // The version first: with it comes when it was taken.
            let version = Version(slot.version.load(Ordering::Acquire));
            (version < published && slot.since.load(Ordering::Relaxed) != EXPIRED).then_some(version)
        };
        let mut live: Vec<Version> = slots.all.iter().filter_map(held).collect();
        drop(slots);
        live.sort_unstable();
        live.push(published);
        live.dedup();
        live
    }

    /// Takes their versions from statements and transactions whose pins were taken before `before` (monotonic clock).
    pub fn expire(&self, before: Duration) {
        let before = before.as_micros() as u64;
        for slot in &self.slots.lock().all {
            let since = slot.since.load(Ordering::Acquire);
            // Behind it: a new one has its reason before it has its time.
            let reason = PinReason::ALL[usize::from(slot.reason.load(Ordering::Relaxed))];
            let held = slot.version.load(Ordering::Acquire) != EMPTY;
            if held && since < before && matches!(reason, PinReason::Transaction | PinReason::Statement) {
                // One that is renewed meanwhile is none of these.
                let _ = slot.since.compare_exchange(since, EXPIRED, Ordering::SeqCst, Ordering::Relaxed);
            }
        }
    }

    pub fn list(&self) -> Vec<PinInfo> {
        let slots = self.slots.lock();
        let info = |slot: &Arc<Slot>| {
            let version = slot.version.load(Ordering::Acquire);
            let reason = PinReason::ALL[usize::from(slot.reason.load(Ordering::Relaxed))].name();
            let since = slot.since.load(Ordering::Relaxed);
            let holds = version != EMPTY && since != EXPIRED;
            holds.then_some(PinInfo { version: Version(version), reason, since: Duration::from_micros(since) })
        };
        let mut list: Vec<PinInfo> = slots.all.iter().filter_map(info).collect();
        list.sort_by_key(|pin| pin.version);
        list
    }
}

impl Pin {
    pub fn version(&self) -> Version {
        self.version
    }

    /// Whether it grew too old, so that what was read through it since may be incomplete.
    pub fn is_expired(&self) -> bool {
        self.slot.since.load(Ordering::SeqCst) == EXPIRED
    }

    /// Lets go of the version and pins the one that `current` reads.
    pub fn renew(&mut self, reason: PinReason, since: Duration, current: impl Fn() -> Version) {
        self.slot.reason.store(reason as u8, Ordering::Relaxed);
        self.slot.since.store(since.as_micros() as u64, Ordering::Release);
        let mut version = current();
        loop {
            self.slot.version.store(version.0, Ordering::Release);
            fence(Ordering::SeqCst);
            let now = current();
            if now == version {
                break;
            }
            version = now;
        }
        self.version = version;
    }

    /// Lets go of the version until [`Pin::renew`].
    pub fn rest(&mut self) {
        self.slot.version.store(EMPTY, Ordering::Release);
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.slot.version.store(EMPTY, Ordering::Release);
        self.table.slots.lock().free.push(self.slot.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(version: u64) -> impl Fn() -> Version {
        move || Version(version)
    }

    #[test]
    fn what_is_pinned_lives_until_it_is_let_go() {
        let table = Arc::new(PinTable::default());
        let first = table.pin(PinReason::Transaction, Duration::ZERO, at(3));
        let mut second = table.pin(PinReason::Statement, Duration::from_micros(7), at(5));
        let again = table.pin(PinReason::Read, Duration::ZERO, at(3));
        assert_eq!(table.live(at(9)), [Version(3), Version(5), Version(9)]);
        assert_eq!(table.live(at(5)), [Version(3), Version(5)]);
        drop(first);
        second.renew(PinReason::Statement, Duration::from_micros(8), at(8));
        assert_eq!(table.live(at(9)), [Version(3), Version(8), Version(9)]);
        let list = table.list();
        assert_eq!(list.len(), 2);
        assert_eq!((list[1].version, list[1].reason, list[1].since.as_micros()), (Version(8), "statement", 8));
        second.rest();
        drop(again);
        assert_eq!(table.live(at(9)), [Version(9)]);
        // Slots are used again.
        let third = table.pin(PinReason::Check, Duration::ZERO, at(4));
        assert_eq!((table.slots.lock().all.len(), third.version()), (3, Version(4)));
    }

    #[test]
    fn pins_that_grow_too_old_hold_nothing_until_they_are_renewed() {
        let table = Arc::new(PinTable::default());
        let second = Duration::from_secs(1);
        let mut old = table.pin(PinReason::Transaction, second, at(3));
        let young = table.pin(PinReason::Statement, second * 3, at(4));
        let check = table.pin(PinReason::Check, second, at(5));
        let mut resting = table.pin(PinReason::Statement, second, at(2));
        resting.rest();
        table.expire(second * 2);
        assert_eq!(table.live(at(9)), [Version(4), Version(5), Version(9)]);
        assert_eq!(table.list().len(), 2);
        let expired = [&old, &young, &check, &resting].map(Pin::is_expired);
        assert_eq!(expired, [true, false, false, false]);
        old.renew(PinReason::Transaction, second * 4, at(6));
        assert!(!old.is_expired());
        assert_eq!(table.live(at(9)), [Version(4), Version(5), Version(6), Version(9)]);
    }

    /// No collector ever takes a version for dead that a pin holds, while versions go on and pins expire.
    #[test]
    fn collectors_never_miss_a_pin() {
        let table = Arc::new(PinTable::default());
        let published = AtomicU64::new(1);
        let collected = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200_000 {
                    published.fetch_add(1, Ordering::Release);
                }
            });
            scope.spawn(|| {
                while published.load(Ordering::Acquire) < 200_000 {
                    // All pins of the moment, whenever they were taken.
                    table.expire(Duration::from_secs(1));
                    let live = table.live(|| Version(published.load(Ordering::Acquire)));
                    // Everything below the oldest is dead from here on.
                    collected.fetch_max(live[0].0, Ordering::SeqCst);
                }
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let current = || Version(published.load(Ordering::Acquire));
                    let mut pin = table.pin(PinReason::Statement, Duration::ZERO, current);
                    while published.load(Ordering::Acquire) < 200_000 {
                        pin.renew(PinReason::Statement, Duration::ZERO, current);
                        for _ in 0..4 {
                            let collected = collected.load(Ordering::SeqCst);
                            assert!(collected <= pin.version().0 || pin.is_expired());
                        }
                    }
                });
            }
        });
    }
}
