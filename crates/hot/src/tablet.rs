//! The row section of one tablet.
//!
//! **Invariant.** For a reader at (snapshot, view), hot and the files of that view together yield each
//! visible key exactly once:
//!
//! 1. The newest version of a key that the reader sees decides, and nothing older is looked at. If it is
//!    in hot and not moved for the reader's view, hot yields it (or hides the key, if it is a deletion)
//!    and the files of that view do not show it: they do not contain it yet, or mark it as replaced with
//!    a stamp that the reader sees.
//! 2. If it is moved (`moved_at` ≤ view), or hot knows no version that the reader sees, hot stays silent
//!    and the files decide.
//! 3. Sweeping changes no answer: it removes a version only if no live snapshot sees it, or if what
//!    remains makes hot silent where the files of every live view give the same answer.

use crate::{Change, Lookup, Newest, Reader, Rows, Swept};
use basalt_types::{Key, Rid, Stamp, TxnId, Version, ViewNo};
use std::ops::Bound;

/// Internally synchronized; no method holds the latch for longer than a chunk of rows.
#[derive(Default)]
pub struct HotTablet {}

impl HotTablet {
    pub fn new() -> HotTablet {
        HotTablet::default()
    }

    /// The version of `key` that the reader sees, or where to look for it.
    pub fn get(&self, key: &[u8], reader: &Reader<'_>) -> Lookup {
        let _ = (key, reader);
        todo!()
    }

    /// The newest version whatever its stamp: what a writer that holds the row's lock builds upon.
    pub fn newest(&self, key: &[u8]) -> Option<Newest> {
        let _ = key;
        todo!()
    }

    /// Makes `row` the newest version. The caller holds the row's lock.
    ///
    /// # Panics
    /// If the newest version is another transaction's and undecided: restamp before unlocking.
    pub fn put(&self, key: &[u8], row: &[u8], rid: Rid, txn: TxnId, seq: u32) {
        let _ = (key, row, rid, txn, seq);
        todo!()
    }

    /// Makes a deletion the newest version, also where hot did not know the key.
    ///
    /// # Panics
    /// As [`put`](HotTablet::put).
    pub fn delete(&self, key: &[u8], txn: TxnId, seq: u32) {
        let _ = (key, txn, seq);
        todo!()
    }

    /// Puts and deletes in any order (ascending keys are fastest); other work runs between chunks.
    pub fn put_many(&self, changes: &[Change<'_>], txn: TxnId, seq: u32) {
        let _ = (changes, txn, seq);
        todo!()
    }

    /// Undoes the newest change of `txn` on `key`, one level. False: the newest version is not `txn`'s.
    pub fn rollback(&self, key: &[u8], txn: TxnId) -> bool {
        let _ = (key, txn);
        todo!()
    }

    /// Gives all versions of `txn` on `key` its version.
    pub fn restamp(&self, key: &[u8], txn: TxnId, version: Version) {
        let _ = (key, txn, version);
        todo!()
    }

    /// [`restamp`](HotTablet::restamp) of many keys; other work runs between chunks.
    pub fn restamp_many(&self, keys: &[&[u8]], txn: TxnId, version: Version) {
        let _ = (keys, txn, version);
        todo!()
    }

    /// Replay and checkpoint loading: each change replaces all that hot knew of its key.
    pub fn load_many(&self, changes: &[Change<'_>], version: Version) {
        let _ = (changes, version);
        todo!()
    }

    /// Appends to `out`, in key order, up to `rows_max` rows that the reader sees and finds here.
    ///
    /// `None`: the range is done. `Some(last)`: go on from `Bound::Excluded(last)`; fewer than `rows_max`
    /// rows may have come, even none.
    pub fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reader: &Reader<'_>,
        rows_max: usize,
        out: &mut Rows,
    ) -> Option<Key> {
        let _ = (from, to, reader, rows_max, out);
        todo!()
    }

    /// What freeze may take: rows whose newest version is stamped with a version ≤ `upto` and not moved.
    /// Resumes as [`scan`](HotTablet::scan).
    pub fn scan_settled(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        upto: Version,
        rows_max: usize,
        out: &mut Rows,
    ) -> Option<Key> {
        let _ = (from, to, upto, rows_max, out);
        todo!()
    }

    /// Says of each row whether its newest version still has exactly the expected (decided) stamp, is a
    /// row, and was not moved; if so, views from `view` on find it in a file.
    pub fn mark_moved(&self, rows: &[(&[u8], Stamp)], view: ViewNo) -> Vec<bool> {
        let _ = (rows, view);
        todo!()
    }

    /// Removes some of what nobody needs any more; see [`Swept::more`].
    ///
    /// `snapshots` ascend and hold every live one up to the newest published version, which comes last:
    /// later snapshots are at least that. Live snapshots above it need not be given. `oldest_view` is the
    /// oldest one pinned.
    pub fn sweep(&self, snapshots: &[Version], oldest_view: ViewNo) -> Swept {
        let _ = (snapshots, oldest_view);
        todo!()
    }

    /// All memory held: pages, index and undo.
    pub fn bytes(&self) -> usize {
        todo!()
    }

    /// Keys whose newest version is a row that was not moved.
    pub fn rows(&self) -> usize {
        todo!()
    }

    /// Keys with any version, deletions and moved rows included.
    pub fn keys(&self) -> usize {
        todo!()
    }

    pub fn undo_versions(&self) -> usize {
        todo!()
    }

    /// The least key with any version.
    pub fn min_key(&self) -> Option<Key> {
        todo!()
    }

    /// The greatest key with any version.
    pub fn max_key(&self) -> Option<Key> {
        todo!()
    }

    /// No key has any version.
    pub fn is_empty(&self) -> bool {
        self.keys() == 0
    }
}
