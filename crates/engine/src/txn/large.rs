//! Changes of very many rows by one statement: marks that act as locks, and private files of new versions
//! (`docs/decisions/0022-transactions-larger-than-memory.md`).
//!
//! The rows of a block that rest in files, as they were seen, and that nobody else has locked are marked together, under
//! the tablet's latch. Nothing is kept per row but a bit. Rows that are elsewhere, that somebody is after or that have
//! changed since are left to their caller, who locks them one by one.
//!
//! Invariants:
//! 1. Whoever looks for a row under its lock looks under the latch, after he was granted the lock. Here, locks are looked
//!    at and rows marked in one exclusive hold of it. So of a locker and a marker one sees the other.
//! 2. A file with such marks is not merged until they are folded (`compaction.rs`): (file, ordinal) is one row from
//!    the mark to the end of its transaction, in memory and in the log.

use super::rows::Seen;
use super::{Change, Txn};
use crate::bulk::{CHUNK_ROWS, Chunk, Encoder};
use crate::locks::Object;
use crate::record;
use crate::tablet::{FileEntry, ReadView, Tablet, Undisturbed};
use crate::{Engine, Error, Result};
use arrow_array::{ArrayRef, Int64Array};
use basalt_types::{Key, Rid, Stamp, TableDef, TabletId, TxnId, Version};
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Rows that are marked in one hold of the latch.
const LATCHED_ROWS: usize = 8192;
/// Times that places are looked for again because the view has switched.
const TRIES_MAX: usize = 8;

/// A row as a scan with identity gave it, in the running statement.
#[derive(Clone, Copy, Debug)]
pub struct FoundRow<'k> {
    pub key: &'k [u8],
    pub stamp: Stamp,
}

/// A row of a view's file: the file's position in the view, and the ordinal.
type FilePlace = (u32, u32);

impl Txn {
    /// Deletes those of the rows, all of one tablet, that can be deleted without a lock, and tells which: the others are
    /// to be locked one by one. Only of a table to which no foreign key refers, and for rows whose index entries stay as
    /// they are. What else follows from a row's end is the caller's.
    pub async fn delete_resting(&mut self, tablet: TabletId, rows: &[FoundRow<'_>]) -> Result<Vec<bool>> {
        self.engine.log.admit().await?;
        let tablet = self.tablet(tablet)?;
        let mut done = vec![false; rows.len()];
        for (rows, done) in rows.chunks(LATCHED_ROWS).zip(done.chunks_mut(LATCHED_ROWS)) {
            self.mark_resting(&tablet, rows, done)?;
            tokio::task::yield_now().await;
        }
        Ok(done)
    }

    pub(crate) fn mark_resting(
        &mut self,
        tablet: &Arc<Tablet>,
        rows: &[FoundRow<'_>],
        done: &mut [bool],
    ) -> Result<()> {
        let txn = self.writer()?;
        let objects: Vec<Object> = rows.iter().map(|row| Object::Row(tablet.id, row.key.into())).collect();
        let engine = self.engine.clone();
        for _ in 0..TRIES_MAX {
            let view = tablet.view();
            let places = resting(tablet, &view, rows, self.snapshot(), txn)?;
            let _whole = engine.whole("change of rows");
            let latch = tablet.latch.write();
            if !tablet.is_current(view.id()) {
                continue;
            }
            let locked = engine.locks.locked_by_others(self.owner, &objects);
            let free = places.iter().zip(locked).filter(|(_, locked)| !locked).filter_map(|(place, _)| *place);
            let mut wanted: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
            for (file, ordinal) in free {
                wanted.entry(file).or_default().insert(ordinal);
            }
            let seq = self.seq();
            let marked: BTreeMap<u32, RoaringBitmap> = (wanted.into_iter())
                .map(|(file, ordinals)| {
                    (file, view.files[file as usize].deletes.mark_many(&ordinals, Stamp::txn(txn), seq))
                })
                .collect();
            // In the write set before anything can fail: it is what takes them back.
            for (file, ordinals) in &marked {
                self.push_marks(tablet, &view.files[*file as usize], ordinals, &places, *file, rows);
            }
            drop(latch);
            basalt_sched::failpoint::hit("large-marked");
            for (file, ordinals) in marked.iter().filter(|(_, ordinals)| !ordinals.is_empty()) {
                self.log_marks(txn, tablet, &view.files[*file as usize], ordinals)?;
            }
            for (place, done) in places.iter().zip(done) {
                *done =
                    place.is_some_and(|(file, ordinal)| marked.get(&file).is_some_and(|file| file.contains(ordinal)));
            }
            return Ok(());
        }
        Ok(())
    }

    fn push_marks(
        &mut self,
        tablet: &Arc<Tablet>,
        file: &Arc<FileEntry>,
        ordinals: &RoaringBitmap,
        places: &[Option<FilePlace>],
        position: u32,
        rows: &[FoundRow<'_>],
    ) {
        let of_file = |place: &Option<FilePlace>| place.is_some_and(|(of, at)| of == position && ordinals.contains(at));
        let keys = || rows.iter().zip(places).filter(|(_, place)| of_file(place)).map(|(row, _)| row.key);
        let (Some(least), Some(greatest)) = (keys().min(), keys().max()) else { return };
        let keys = (Key::from(least), Key::from(greatest));
        if let Some(at) = self.marking.get(&file.id())
            && self.writes.add_marks(*at, file, ordinals, &keys)
        {
            return;
        }
        self.marking.insert(file.id(), self.writes.len());
        let (tablet, file, ordinals) = (tablet.clone(), file.clone(), ordinals.clone());
        self.push_change(Change::Marks { tablet, file, ordinals, keys });
    }

    fn log_marks(&mut self, txn: TxnId, tablet: &Tablet, file: &FileEntry, ordinals: &RoaringBitmap) -> Result<()> {
        let mut ordinals = ordinals.clone();
        ordinals.optimize();
        let mut bytes = Vec::with_capacity(ordinals.serialized_size() + 32);
        record::marks(&mut bytes, txn, tablet.id, file.id(), &ordinals);
        self.log_operation(&[&bytes])?;
        Ok(())
    }
}

/// Where rows rest that are as they were seen: `None` for those that are in hot, changed, deleted, or of an undecided
/// batch. Others may mark and move them still.
fn resting(
    tablet: &Tablet,
    view: &ReadView,
    rows: &[FoundRow<'_>],
    snapshot: Version,
    own: TxnId,
) -> Result<Vec<Option<FilePlace>>> {
    let mut found: Vec<Vec<FilePlace>> = vec![Vec::new(); rows.len()];
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_unstable_by_key(|at| rows[*at].key);
    let keys: Vec<&[u8]> = order.iter().map(|at| rows[*at].key).collect();
    let all = tablet.places_in_runs(view, &keys, &mut |at, file, ordinal| found[order[at]].push((file, ordinal)))?;
    if !all {
        for (row, found) in rows.iter().zip(&mut found) {
            found.clear();
            for place in tablet.places(view, row.key) {
                let (position, ordinal) = place?;
                found.push((position as u32, ordinal));
            }
        }
    }
    let as_seen = |(file, ordinal): &FilePlace, stamp: Stamp| -> Result<bool> {
        let file = &view.files[*file as usize];
        let settled = file.undecided().is_none_or(|txn| txn == own);
        let seen = Seen { stamp, snapshot, values: true };
        Ok(settled && file.deletes.status(*ordinal).is_none() && seen.is(file.stamp_of(*ordinal)?.0))
    };
    let mut places = Vec::with_capacity(rows.len());
    for (row, found) in rows.iter().zip(found) {
        let mut place = None;
        for candidate in found {
            if as_seen(&candidate, row.stamp)? {
                place = Some(candidate);
            }
        }
        places.push(place);
    }
    Ok(places)
}

/// New versions, under the same keys, of rows that [`Txn::delete_resting`] has deleted. They are seen when the statement
/// is through; dropping this gives them up.
pub struct LargeUpdate {
    table: Arc<TableDef>,
    parts: Vec<(Arc<Tablet>, Chunk, Encoder)>,
}

impl LargeUpdate {
    pub fn new(table: &Arc<TableDef>) -> LargeUpdate {
        LargeUpdate { table: table.clone(), parts: Vec::new() }
    }

    /// One array per column of the table in column-id order, in stored form; not-null and types checked by the
    /// caller, key columns as they were.
    pub async fn push(
        &mut self,
        txn: &Txn,
        tablet: TabletId,
        keys: impl Iterator<Item = &[u8]>,
        mut columns: Vec<ArrayRef>,
    ) -> Result<()> {
        if self.table.primary_key.is_none() {
            let row_id = |key: &[u8]| Key::from(key).as_hidden().map(|Rid(id)| id as i64);
            let ids: Option<Int64Array> = keys.map(row_id).map(|id| id.map(Some)).collect();
            let ids = ids.ok_or_else(|| Error::Internal("a row without a key has no row id".into()))?;
            columns.push(Arc::new(ids));
        }
        let at = match self.parts.iter().position(|(part, ..)| part.id == tablet) {
            Some(at) => at,
            None => {
                let kind = txn.catalog().file_kind(&self.table);
                let encoder = Encoder::start(&txn.engine, &self.table, kind)?;
                self.parts.push((txn.tablet(tablet)?, Chunk::default(), encoder));
                self.parts.len() - 1
            }
        };
        let (_, chunk, encoder) = &mut self.parts[at];
        // Row ids come along.
        chunk.push(columns, Rid(0));
        if chunk.rows >= CHUNK_ROWS || chunk.bytes >= txn.engine.config.chunk_bytes() {
            encoder.send(std::mem::take(chunk)).await?;
        }
        Ok(())
    }

    /// Waits until the files are durable, and lists them.
    pub async fn finish(self, txn: &mut Txn) -> Result<()> {
        for (tablet, chunk, mut encoder) in self.parts {
            encoder.send(chunk).await?;
            let files = encoder.finish().await?;
            txn.register_files(&tablet, files)?;
            basalt_sched::failpoint::hit("large-registered");
        }
        Ok(())
    }
}

impl Engine {
    /// Whether a statement that has changed so many rows one by one goes on in the large way: earlier, if there is little
    /// room for more of them.
    pub fn is_large_change(&self, rows: u64) -> bool {
        let least = self.config.large_changes_min;
        rows >= least || (rows >= least.div_ceil(16) && self.background.is_half_pressed(self))
    }

    /// Begins a large change of a table, for which merges wait as long as the answer lives. The definition is the
    /// statement's: its transaction may have made the table, or given it other tablets. Moves hot rows into files where
    /// they are many, or take much of the memory, so that it finds them there. Blocks.
    pub fn begin_large_change(self: &Arc<Self>, table: &TableDef) -> Result<Undisturbed> {
        let tablets: Vec<_> =
            table.tablets().map(|id| self.tablet(id).map_err(|_| Error::TableGone(table.id))).collect::<Result<_>>()?;
        let undisturbed = Undisturbed::new(tablets.clone());
        self.weigh();
        let upto = self.published();
        if self.background.is_half_pressed(self) || self.has_settled(&tablets, upto, self.config.large_changes_min) {
            for tablet in &tablets {
                while self.evict(tablet, upto)? > 0 {}
            }
        }
        Ok(undisturbed)
    }

    /// Whether tablets together have so many hot rows that can leave.
    fn has_settled(&self, tablets: &[Arc<Tablet>], upto: Version, least: u64) -> bool {
        let mut left = usize::try_from(least).unwrap_or(usize::MAX);
        for tablet in tablets {
            left = left.saturating_sub(tablet.hot.count_settled(upto, left));
        }
        left == 0
    }
}
