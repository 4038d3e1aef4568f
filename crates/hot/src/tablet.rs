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
//!
//! What callers owe for it:
//!
//! - Writers hold the key's row lock from the write until its `restamp` or `rollback`.
//! - A mover first copies rows to a file, then calls `mark_moved`, then publishes the view: no reader may
//!   have `view` before all marks for it are made. Rows for which `mark_moved` said no have changed since
//!   they were copied: the file must not show them in that view. Writers may go on between marks and view:
//!   after `begin_move`, `take_changed` tells what they changed, the last time while they are kept out.
//! - A deletion that hot may forget is marked in the files, with its stamp, wherever they hold the key.
//!
//! One latch guards the tablet; no method holds it for longer than a chunk of rows. A scan holds it chunk
//! by chunk: its snapshot and view, not the latch, make it see one state.

use crate::read::Walk;
use crate::slab::NONE;
use crate::store::Store;
use crate::sweep::Live;
use crate::{Change, Found, Lookup, Newest, RangeState, Reader, Rows, Spot, Swept};
use basalt_types::{Key, Rid, Stamp, TxnId, Version, ViewNo};
use parking_lot::{RwLock, RwLockWriteGuard};
use std::ops::Bound;

/// Keys that one hold of the latch writes.
const WRITE_CHUNK: usize = 256;
/// Keys that one hold of the latch looks up.
const READ_CHUNK: usize = 64;
/// Pages that one call of `sweep` visits.
const SWEEP_PAGES: usize = 256;

/// Internally synchronized: share it freely.
#[derive(Default)]
pub struct HotTablet {
    store: RwLock<Store>,
}

impl HotTablet {
    pub fn new() -> HotTablet {
        HotTablet::default()
    }

    /// To change what readers may find.
    fn change(&self) -> RwLockWriteGuard<'_, Store> {
        let mut store = self.store.write();
        store.changes += 1;
        store
    }

    /// How often what readers may find here has been changed: as long as it says the same, nothing has.
    pub fn changes(&self) -> u64 {
        self.store.read().changes
    }

    /// What a range of keys is like now. It takes a look at each page.
    pub fn state_of(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> RangeState {
        self.store.read().state_of(from, to)
    }

    /// Where to end a range that begins at `from` so that it has up to so many keys, and whole pages at its end; `None`: it
    /// has no more.
    pub fn cut_behind(&self, from: Bound<&[u8]>, keys: usize) -> Option<Key> {
        self.store.read().cut_behind(from, keys)
    }

    /// The version of `key` that the reader sees, or where to look for it.
    pub fn get(&self, key: &[u8], reader: &Reader<'_>) -> Lookup {
        self.store.read().get(key, reader).into()
    }

    /// The same in place: `look` runs under the latch, and must be short and never call back into a tablet.
    pub fn look<R>(&self, key: &[u8], reader: &Reader<'_>, look: impl FnOnce(Found<'_>) -> R) -> R {
        look(self.store.read().get(key, reader))
    }

    /// [`look`](HotTablet::look) for several keys (ascending ones are fastest), each by its position.
    pub fn look_many(&self, keys: &[&[u8]], reader: &Reader<'_>, mut look: impl FnMut(usize, Found<'_>)) {
        for (at, chunk) in keys.chunks(READ_CHUNK).enumerate() {
            let store = self.store.read();
            let mut near = NONE;
            for (i, key) in chunk.iter().enumerate() {
                look(at * READ_CHUNK + i, store.get_near(&mut near, key, reader));
            }
        }
    }

    /// The newest version whatever its stamp: what a writer that holds the row's lock builds upon.
    pub fn newest(&self, key: &[u8]) -> Option<Newest> {
        self.find_newest(key).map(|(newest, _)| newest)
    }

    /// The same, and where it is.
    pub fn find_newest(&self, key: &[u8]) -> Option<(Newest, Spot)> {
        let store = self.store.read();
        let place = store.locate(key).ok()?;
        let (newest, _, row) = store.pages[place.page].entry(place.slot);
        let found = Newest {
            stamp: newest.stamp,
            seq: newest.seq,
            rid: Rid(newest.rid),
            row: row.map(<[u8]>::to_vec),
            moved_at: newest.moved_at,
        };
        Some((found, place.spot()))
    }

    /// Makes `row` the newest version. The caller holds the row's lock.
    ///
    /// # Panics
    /// If the newest version is another transaction's and undecided: restamp before unlocking.
    pub fn put(&self, key: &[u8], row: &[u8], rid: Rid, txn: TxnId, seq: u32) {
        self.put_at(Spot::UNKNOWN, key, row, rid, txn, seq);
    }

    /// The same for a key that was found at this spot. Gives where it is now.
    pub fn put_at(&self, spot: Spot, key: &[u8], row: &[u8], rid: Rid, txn: TxnId, seq: u32) -> Spot {
        self.change().push(spot, key, Some(row), rid.0, txn, seq)
    }

    /// Makes a deletion the newest version, also where hot did not know the key.
    ///
    /// # Panics
    /// As [`put`](HotTablet::put).
    pub fn delete(&self, key: &[u8], txn: TxnId, seq: u32) {
        self.delete_at(Spot::UNKNOWN, key, txn, seq);
    }

    /// As [`put_at`](HotTablet::put_at).
    pub fn delete_at(&self, spot: Spot, key: &[u8], txn: TxnId, seq: u32) -> Spot {
        self.change().push(spot, key, None, 0, txn, seq)
    }

    /// Puts and deletes in any order (ascending keys are fastest); other work runs between chunks.
    pub fn put_many(&self, changes: &[Change<'_>], txn: TxnId, seq: u32) {
        for chunk in changes.chunks(WRITE_CHUNK) {
            let mut store = self.change();
            let mut near = Spot::UNKNOWN;
            for change in chunk {
                near = store.push(near, change.key, change.row, change.rid.0, txn, seq);
            }
        }
    }

    /// Undoes the newest change of `txn` on `key`, one level. False: the newest version is not `txn`'s.
    pub fn rollback(&self, key: &[u8], txn: TxnId) -> bool {
        self.change().pop(key, txn)
    }

    /// Gives all versions of `txn` on `key` its version.
    pub fn restamp(&self, key: &[u8], txn: TxnId, version: Version) {
        self.change().restamp(Spot::UNKNOWN, key, txn, version);
    }

    /// [`restamp`](HotTablet::restamp) of many keys, each with where it was put; other work runs between chunks.
    pub fn restamp_many(&self, keys: &[(Spot, &[u8])], txn: TxnId, version: Version) {
        for chunk in keys.chunks(WRITE_CHUNK) {
            let mut store = self.change();
            let mut near = Spot::UNKNOWN;
            for (spot, key) in chunk {
                let from = if spot.is_known() { *spot } else { near };
                near = store.restamp(from, key, txn, version);
            }
        }
    }

    /// Replay and checkpoint loading: each change replaces all that hot knew of its key.
    pub fn load_many(&self, changes: &[Change<'_>], version: Version) {
        for chunk in changes.chunks(WRITE_CHUNK) {
            let mut store = self.change();
            let mut near = NONE;
            for change in chunk {
                near = store.load(near, change.key, change.row, change.rid.0, version);
            }
        }
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
        self.store.read().scan(from, to, reader, rows_max, out)
    }

    /// Shows rows for statistics: newest versions, decided or not, of the keys at these places among all
    /// [`keys`](HotTablet::keys), in no order of keys. Places ascend. `look` runs under the latch, as in
    /// [`look`](HotTablet::look).
    pub fn look_at(&self, mut places: &[u64], mut look: impl FnMut(&[u8])) {
        let mut walk = Walk::default();
        while self.store.read().look_at(&mut walk, &mut places, &mut look) {}
    }

    /// As [`scan`](HotTablet::scan), in descending key order: go on to `Bound::Excluded(last)`.
    pub fn scan_back(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reader: &Reader<'_>,
        rows_max: usize,
        out: &mut Rows,
    ) -> Option<Key> {
        self.store.read().scan_back(from, to, reader, rows_max, out)
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
        self.store.read().scan_settled(from, to, upto, rows_max, out)
    }

    /// Says of each row whether its newest version still has exactly the expected (decided) stamp, is a
    /// row, and was not moved; if so, views from `view` on find it in a file. Call before publishing `view`.
    pub fn mark_moved(&self, rows: &[(&[u8], Stamp)], view: ViewNo) -> Vec<bool> {
        let mut moved = Vec::with_capacity(rows.len());
        for chunk in rows.chunks(WRITE_CHUNK) {
            let mut store = self.change();
            let mut near = NONE;
            for (key, expected) in chunk {
                let place = store.locate_near(near, key).ok();
                moved.push(place.is_some_and(|place| {
                    near = place.page;
                    store.mark_moved(place, *expected, view)
                }));
            }
        }
        moved
    }

    /// From now on writes to rows that are marked for `view` are noted, until [`end_move`](Self::end_move).
    pub fn begin_move(&self, view: ViewNo) {
        let mut store = self.store.write();
        store.moving = Some(view);
        store.disturbed.clear();
    }

    /// Writes noted and not taken yet, about.
    pub fn changed_count(&self) -> usize {
        self.store.read().disturbed.len()
    }

    /// Keys that were marked and then written, since the move began or this was last asked. They stay: no
    /// version of them is marked any more. A write that was rolled back does not count.
    pub fn take_changed(&self) -> Vec<Key> {
        let disturbed = std::mem::take(&mut self.store.write().disturbed);
        let mut stay = Vec::new();
        for chunk in disturbed.chunks(WRITE_CHUNK) {
            let mut store = self.change();
            for key in chunk {
                let Some(view) = store.moving else { return stay };
                match store.locate(key.as_bytes()) {
                    Ok(place) if store.is_marked(place, view) => continue,
                    Ok(place) => store.unmark_moved(place, view),
                    // Deleted, and swept since.
                    Err(_) => {}
                }
                stay.push(key.clone());
            }
        }
        stay.sort_unstable();
        stay.dedup();
        stay
    }

    /// The view is published, or the move given up.
    pub fn end_move(&self) {
        let mut store = self.store.write();
        store.moving = None;
        store.disturbed = Vec::new();
    }

    /// Takes [`mark_moved`](HotTablet::mark_moved) back for rows marked for exactly `view`, which was not
    /// published: the move did not happen.
    pub fn unmark_moved(&self, rows: &[(&[u8], Stamp)], view: ViewNo) {
        for chunk in rows.chunks(WRITE_CHUNK) {
            let mut store = self.change();
            let mut near = NONE;
            for (key, _) in chunk {
                if let Ok(place) = store.locate_near(near, key) {
                    near = place.page;
                    store.unmark_moved(place, view);
                }
            }
        }
    }

    /// Removes some of what nobody needs any more; see [`Swept::more`].
    ///
    /// `snapshots` ascend and hold every live one up to the newest published version, which comes last:
    /// later snapshots are at least that. Live snapshots above it need not be given. `oldest_view` is the
    /// oldest one pinned.
    pub fn sweep(&self, snapshots: &[Version], oldest_view: ViewNo) -> Swept {
        assert!(!snapshots.is_empty(), "the newest published version is always live");
        let live = Live { snapshots, oldest_view };
        let mut swept = Swept::default();
        for visit in 0..SWEEP_PAGES {
            let mut store = self.store.write();
            if visit == 0 {
                store.queue.begin_round();
            }
            swept.more = store.sweep_page(&live, &mut swept) && !store.queue.round_is_over();
            if !swept.more {
                break;
            }
        }
        swept
    }

    /// All memory held: pages, index and undo.
    pub fn bytes(&self) -> usize {
        self.store.read().bytes()
    }

    /// The part of [`bytes`](Self::bytes) that moving rows does not free: moved rows and older versions,
    /// which only older views and snapshots (or undecided writers) still need. About.
    pub fn kept_bytes(&self) -> usize {
        self.store.read().kept_bytes()
    }

    /// How many rows [`scan_settled`](Self::scan_settled) would give; counting ends at `max`.
    pub fn count_settled(&self, upto: Version, max: usize) -> usize {
        let mut count = 0;
        let mut from = Bound::Unbounded;
        loop {
            let bound = from.as_ref().map(|key: &Key| key.as_bytes());
            match self.store.read().count_settled(bound, upto, max, &mut count) {
                Some(last) => from = Bound::Excluded(last),
                None => return count,
            }
        }
    }

    /// Keys whose newest version is a row that was not moved.
    pub fn rows(&self) -> usize {
        self.store.read().rows()
    }

    /// Keys with any version, deletions and moved rows included.
    pub fn keys(&self) -> usize {
        self.store.read().keys()
    }

    pub fn undo_versions(&self) -> usize {
        self.store.read().undo.len()
    }

    /// The least key with any version.
    pub fn min_key(&self) -> Option<Key> {
        self.store.read().min_key().map(Key::from)
    }

    /// The greatest key with any version.
    pub fn max_key(&self) -> Option<Key> {
        self.store.read().max_key().map(Key::from)
    }

    /// No key has any version.
    pub fn is_empty(&self) -> bool {
        self.keys() == 0
    }
}

#[cfg(test)]
mod tests;
