//! Who wrote a row and when it became visible (DESIGN 4).
//!
//! A writer draws a [`TxnId`] at its first write and puts it on every row. When its commit record is
//! appended to the log the transaction gets a [`Version`]; rows are restamped afterwards. Visibility has
//! one rule: a decided stamp is seen by a snapshot that is at least as great.

use std::fmt;

/// A place in the one commit order of the cluster. 0 is before everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Version(pub u64);

impl Version {
    pub const ZERO: Version = Version(0);
    pub const MAX: Version = Version((1 << 63) - 1);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Who writes: start epoch (upper 23 bits) and counter (lower 40 bits), so that an id is never drawn twice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct TxnId(pub u64);

impl TxnId {
    pub const COUNTER_BITS: u32 = 40;

    pub fn new(epoch: crate::Epoch, counter: u64) -> TxnId {
        assert!(epoch.0 < 1 << 23, "epoch {} does not fit a TxnId", epoch.0);
        assert!(counter < 1 << Self::COUNTER_BITS, "transaction counter of {epoch} is used up");
        TxnId(u64::from(epoch.0) << Self::COUNTER_BITS | counter)
    }
}

impl fmt::Display for TxnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}.{}", self.0 >> Self::COUNTER_BITS, self.0 & ((1 << Self::COUNTER_BITS) - 1))
    }
}

/// Whose a row or mark is: a `TxnId` (top bit set) until decided, then its `Version`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp(u64);

const UNDECIDED: u64 = 1 << 63;

impl Stamp {
    pub fn version(version: Version) -> Stamp {
        debug_assert!(version <= Version::MAX);
        Stamp(version.0)
    }

    pub fn txn(txn: TxnId) -> Stamp {
        Stamp(txn.0 | UNDECIDED)
    }

    pub fn raw(self) -> u64 {
        self.0
    }

    pub fn from_raw(raw: u64) -> Stamp {
        Stamp(raw)
    }

    /// The version, if this stamp has been decided *and* rewritten. Otherwise ask [`TxnStates`].
    pub fn as_version(self) -> Option<Version> {
        (self.0 & UNDECIDED == 0).then_some(Version(self.0))
    }

    pub fn as_txn(self) -> Option<TxnId> {
        (self.0 & UNDECIDED != 0).then_some(TxnId(self.0 & !UNDECIDED))
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_txn() {
            Some(txn) => write!(f, "{txn}"),
            None => write!(f, "@{}", self.0),
        }
    }
}

/// What the transaction table says of a writer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TxnState {
    Active,
    Committed(Version),
    /// Rolled back, or unknown: its rows are seen by nobody.
    Aborted,
}

/// The transaction table as readers see it. Two implementations: the engine's, and tests'.
pub trait TxnStates: Send + Sync {
    fn state(&self, txn: TxnId) -> TxnState;
}

/// One version, pinned by whoever holds the pin in the engine. Plain number here.
pub type Snapshot = Version;

/// How one statement reads: everything up to `snapshot`, and the reader's own writes made by earlier
/// statements of its transaction (`seq` below the reader's).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadAt {
    pub snapshot: Version,
    pub own: Option<TxnId>,
    /// Statement counter of the reading transaction. Own rows with a lower `seq` are seen, so that
    /// `INSERT INTO t SELECT … FROM t` does not read what it writes.
    pub seq: u32,
}

impl ReadAt {
    pub fn version(snapshot: Version) -> ReadAt {
        ReadAt { snapshot, own: None, seq: 0 }
    }

    /// Whether a row (or a deletion) that carries `stamp` and `seq` has happened for this reader.
    #[inline]
    pub fn sees(&self, stamp: Stamp, seq: u32, txns: &dyn TxnStates) -> bool {
        match stamp.as_version() {
            Some(version) => version <= self.snapshot,
            None => self.sees_undecided(stamp, seq, txns),
        }
    }

    fn sees_undecided(&self, stamp: Stamp, seq: u32, txns: &dyn TxnStates) -> bool {
        let txn = stamp.as_txn().expect("checked by the caller");
        if self.own == Some(txn) {
            return seq < self.seq;
        }
        matches!(txns.state(txn), TxnState::Committed(version) if version <= self.snapshot)
    }
}
