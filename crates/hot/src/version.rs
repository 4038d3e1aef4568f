//! What callers hand in and get back: readers, changes, and versions of a key.

use crate::slab::NONE;
use basalt_types::{ReadAt, Rid, Stamp, TxnStates, Version, ViewNo};

/// Who reads: what has happened for it, and which read view tells it where moved versions are.
///
/// `txns` is asked while the tablet is latched: it must answer at once and never call back into a tablet.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    pub at: ReadAt,
    pub view: ViewNo,
    pub txns: &'a dyn TxnStates,
}

/// Where a reader finds a key, as long as the tablet is latched for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found<'r> {
    /// Here: the version that the reader sees.
    Row { row: &'r [u8], stamp: Stamp, seq: u32, rid: Rid },
    /// As [`Lookup::Deleted`].
    Deleted,
    /// As [`Lookup::Elsewhere`].
    Elsewhere,
    /// As [`Lookup::Absent`].
    Absent,
}

/// Where a reader finds a key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// Here: the version that the reader sees.
    Row { row: Vec<u8>, stamp: Stamp, seq: u32, rid: Rid },
    /// Nowhere: the reader sees a deletion. Files need not be asked.
    Deleted,
    /// The version that the reader sees has moved: it is in a file of the reader's view.
    Elsewhere,
    /// Hot knows no version that the reader sees: if the key exists for it, it is in a file.
    Absent,
}

impl From<Found<'_>> for Lookup {
    fn from(found: Found<'_>) -> Lookup {
        match found {
            Found::Row { row, stamp, seq, rid } => Lookup::Row { row: row.to_vec(), stamp, seq, rid },
            Found::Deleted => Lookup::Deleted,
            Found::Elsewhere => Lookup::Elsewhere,
            Found::Absent => Lookup::Absent,
        }
    }
}

/// The newest version of a key, whoever wrote it and whether or not it is decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Newest {
    pub stamp: Stamp,
    pub seq: u32,
    /// Of a deletion: the row id of the deleted row if hot knew it, otherwise 0.
    pub rid: Rid,
    /// `None`: deleted.
    pub row: Option<Vec<u8>>,
    /// The first view that finds this version in a file instead of here.
    pub moved_at: Option<ViewNo>,
}

/// Where a key was found: a hint, which whoever follows it checks. It spares the way there as long as the key's page has
/// not changed below it.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    pub(crate) page: u32,
    pub(crate) slot: u32,
}

impl Spot {
    pub const UNKNOWN: Spot = Spot { page: NONE, slot: 0 };

    pub(crate) fn is_known(self) -> bool {
        self.page != NONE
    }
}

/// A row to put, or (`row` is `None`) a key to delete: that keeps the row id that hot knew, not `rid`.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub key: &'a [u8],
    pub row: Option<&'a [u8]>,
    pub rid: Rid,
}

/// What one call of `sweep` did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Swept {
    /// Undo versions removed.
    pub versions: usize,
    /// Keys removed: moved to files, or deleted for everybody.
    pub keys: usize,
    /// The round is not finished: call again. A round visits each key once that has something to sweep.
    pub more: bool,
}

/// What a range of keys was like at some moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RangeState {
    /// What [`changes`](RangeState::changes) was when the range was last changed, or later: whoever looked at it when that
    /// was no less finds what he found.
    pub touched: u64,
    /// How often anything of the tablet had been changed by then.
    pub changes: u64,
    /// From this version on all readers find the same: each key's newest version, which is decided and has not moved.
    pub plain_since: Option<Version>,
}
