//! Moves from hot into a file (DESIGN 5, Moves): freeze makes a file of cool rows, a segment unless the table's
//! orientation is another; eviction, under memory pressure, a row file of warm ones (`docs/decisions/0004-eviction.md`). The protocol is one:
//!
//! 1. Without a latch: rows whose newest version is stamped ≤ `upto` are copied, in key order and with
//!    their stamps, into a file that is made durable.
//! 2. Still without: rows that hot has unchanged are marked with the number of the view to come, chunk by
//!    chunk. For readers and writers they are where they were, since no view has that number. A write to a
//!    marked row is noted.
//! 3. Under the latch, for an instant: rows that were written since stay; they are dead in the file from
//!    birth. The record is appended and the view switched.
//!
//! Readers of older views go on finding the rows in hot; versions that only older snapshots see stay in
//! hot's undo until those are gone. A move keeps every row's stamp, so nobody takes it for a change.

use crate::file_writer::{FileWriter, settled_columns};
use crate::order::{Gathered, Order};
use crate::record::{self, FileEdit};
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::unlisted::Unlisted;
use crate::{Engine, Error, Result};
use basalt_cold::{DeleteMap, Stamps};
use basalt_hot::Rows;
use basalt_meta::{FileKind, FileStamps};
use basalt_types::{Key, ObjectId, Stamp, TableDef, Version, ViewNo};
use std::ops::Bound;
use std::sync::Arc;

const CHUNK_ROWS: usize = 8192;
/// Changed rows that are left for the latch, and rounds to get there.
const LATCHED_MAX: usize = 256;
const CHANGED_ROUNDS: usize = 20;

/// Rows on their way from hot into a file, in the order of their keys.
#[derive(Default)]
pub(crate) struct Copied {
    keys: Vec<Key>,
    stamps: Vec<Stamp>,
    /// Where each is in the file, if that is in another order.
    ordinals: Option<Vec<u32>>,
}

/// Copied rows that are on the point of moving.
pub(crate) struct Marked {
    view: ViewNo,
    /// Ordinals of rows that have changed since they were copied.
    stayed: Vec<u32>,
}

impl Copied {
    fn ordinal(&self, at: usize) -> u32 {
        self.ordinals.as_ref().map_or(at as u32, |ordinals| ordinals[at])
    }

    fn add(&mut self, rows: &Rows) {
        self.keys.extend(rows.iter().map(|row| Key::from(row.key)));
        self.stamps.extend(rows.iter().map(|row| row.stamp));
    }

    fn expected(&self) -> Vec<(&[u8], Stamp)> {
        self.keys.iter().map(Key::as_bytes).zip(self.stamps.iter().copied()).collect()
    }
}

impl Marked {
    fn stay(&mut self, entry: &FileEntry, ordinal: u32) {
        // It may be met again: written, rolled back and written again.
        if entry.deletes.mark(ordinal, Stamp::version(Version::ZERO), 0).is_ok() {
            self.stayed.push(ordinal);
        }
    }

    /// Has rows that writers have changed since they were marked stay.
    fn keep_changed(&mut self, tablet: &Tablet, entry: &FileEntry, rows: &Copied) {
        for key in tablet.hot.take_changed() {
            let at = rows.keys.binary_search(&key).expect("only copied rows were marked");
            self.stay(entry, rows.ordinal(at));
        }
    }
}

impl Engine {
    /// Freezes every row of a table that can be frozen now, whatever its temperature (VACUUM).
    pub fn freeze_table(self: &Arc<Self>, table: ObjectId) -> Result<()> {
        let catalog = self.catalog();
        let Some(table) = catalog.table(table) else { return Err(Error::TableGone(table)) };
        for id in table.stored().flat_map(|table| table.tablets()) {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            let upto = self.published();
            while self.freeze(&tablet, upto)? > 0 {}
            self.sweep(&tablet);
            tablet.fill_locator(&self.locators, &|| false)?;
        }
        Ok(())
    }

    /// Evicts every row of a table that can be, whatever its temperature: as memory pressure does.
    pub fn evict_table(self: &Arc<Self>, table: ObjectId) -> Result<()> {
        let catalog = self.catalog();
        let Some(table) = catalog.table(table) else { return Err(Error::TableGone(table)) };
        for id in table.stored().flat_map(|table| table.tablets()) {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            let upto = self.published();
            while self.evict(&tablet, upto)? > 0 {}
            self.sweep(&tablet);
            tablet.fill_locator(&self.locators, &|| false)?;
        }
        Ok(())
    }

    /// Moves up to one file's worth of rows stamped ≤ `upto` into a file of the table's orientation. Returns how many
    /// moved.
    pub(crate) fn freeze(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version) -> Result<u64> {
        let catalog = self.catalog();
        let kind = catalog.table_of(tablet.id).map(|table| catalog.file_kind(table));
        kind.map_or(Ok(0), |kind| self.move_out(tablet, upto, kind))
    }

    /// As [`freeze`](Engine::freeze), into a row file.
    pub(crate) fn evict(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version) -> Result<u64> {
        self.move_out(tablet, upto, FileKind::RowFile)
    }

    fn move_out(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version, kind: FileKind) -> Result<u64> {
        let _one_move = tablet.moving.lock();
        let mut written = Unlisted::new(self);
        let moved = self.write_moved(tablet, upto, kind, &mut written);
        let Some((entry, copied)) = moved.inspect_err(|error| self.make_room_after(error))? else { return Ok(0) };
        let marked = self.mark_rows(tablet, &entry, &copied);
        match self.switch_to_moved(tablet, entry, &copied, marked)? {
            None => Ok(0),
            Some(moved) => {
                written.keep();
                Ok(moved)
            }
        }
    }

    /// The file, durable but not listed. `None`: there is nothing to freeze.
    pub(crate) fn write_moved(
        &self,
        tablet: &Tablet,
        upto: Version,
        kind: FileKind,
        written: &mut Unlisted,
    ) -> Result<Option<(Arc<FileEntry>, Copied)>> {
        let catalog = self.catalog();
        let Some(table) = catalog.table_of(tablet.id) else { return Ok(None) };
        if tablet.hot.rows() == 0 {
            return Ok(None);
        }
        let mut writer = FileWriter::create(self, table, kind)?;
        let order = Order::of(table, kind);
        let copied = match order.is_by_key() {
            true => self.copy_rows(tablet, table, upto, &mut writer)?,
            false => self.copy_rows_sorted(tablet, table, upto, &order, &mut writer)?,
        };
        if copied.keys.is_empty() {
            return Ok(None);
        }
        let file = writer.finish(written)?;
        basalt_sched::failpoint::hit(step(kind, "freeze-file-durable", "evict-file-durable"));
        let data = self.open_file(file.id, kind)?;
        let entry = FileEntry { data, deletes: DeleteMap::new(), stamps: EntryStamps::PerRow, bytes: file.bytes };
        Ok(Some((Arc::new(entry), copied)))
    }

    fn copy_rows(&self, tablet: &Tablet, table: &TableDef, upto: Version, writer: &mut FileWriter) -> Result<Copied> {
        let mut copied = Copied::default();
        let mut from = Bound::Unbounded;
        let mut rows = Rows::new();
        while !writer.is_full(self) {
            rows.clear();
            let last = tablet.hot.scan_settled(as_bytes(&from), Bound::Unbounded, upto, CHUNK_ROWS, &mut rows);
            if !rows.is_empty() {
                writer.push_rows(table, &rows)?;
                copied.add(&rows);
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => break,
            }
        }
        Ok(copied)
    }

    /// The same into a file that is not in the order of keys: rows are gathered first, and sorted.
    fn copy_rows_sorted(
        &self,
        tablet: &Tablet,
        table: &TableDef,
        upto: Version,
        order: &Order,
        writer: &mut FileWriter,
    ) -> Result<Copied> {
        let mut copied = Copied::default();
        let mut from = Bound::Unbounded;
        let (mut rows, mut gathered) = (Rows::new(), Gathered::default());
        while !gathered.is_full(self.config.segment_rows as usize, &self.config) {
            rows.clear();
            let last = tablet.hot.scan_settled(as_bytes(&from), Bound::Unbounded, upto, CHUNK_ROWS, &mut rows);
            if !rows.is_empty() {
                let (columns, versions) = settled_columns(table, &rows)?;
                gathered.add(columns, &versions);
                copied.add(&rows);
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => break,
            }
        }
        if gathered.is_empty() {
            return Ok(copied);
        }
        let sorted = gathered.sort(order)?;
        let mut ordinals = vec![0; sorted.origins.len()];
        for (ordinal, at) in (0u32..).zip(sorted.origins.values()) {
            ordinals[*at as usize] = ordinal;
        }
        copied.ordinals = Some(ordinals);
        for (columns, versions) in sorted.pieces() {
            writer.push_columns(table, &columns, Stamps::Versions(versions))?;
        }
        Ok(copied)
    }

    /// Marks the copied rows for the view to come, while everybody works on. What writers change meanwhile
    /// is noted; it and what has changed before stays in hot.
    pub(crate) fn mark_rows(&self, tablet: &Tablet, entry: &FileEntry, rows: &Copied) -> Marked {
        let _whole = self.whole("freeze");
        let view = tablet.number_of_move();
        tablet.hot.begin_move(view);
        let moved = tablet.hot.mark_moved(&rows.expected(), view);
        let ordinals = moved.iter().enumerate().filter(|(_, moved)| !**moved).map(|(at, _)| rows.ordinal(at));
        let mut marked = Marked { view, stayed: Vec::new() };
        ordinals.for_each(|ordinal| marked.stay(entry, ordinal));
        for _ in 0..CHANGED_ROUNDS {
            if tablet.hot.changed_count() <= LATCHED_MAX {
                break;
            }
            marked.keep_changed(tablet, entry, rows);
        }
        marked
    }

    /// Moves the marked rows. `None`: the table was dropped.
    pub(crate) fn switch_to_moved(
        self: &Arc<Self>,
        tablet: &Arc<Tablet>,
        entry: Arc<FileEntry>,
        rows: &Copied,
        mut marked: Marked,
    ) -> Result<Option<u64>> {
        let view = marked.view;
        let _whole = self.whole("freeze");
        let version = {
            let _gate = self.move_gate.read();
            let _latch = tablet.latch.write();
            let _whole = self.whole("freeze");
            marked.keep_changed(tablet, &entry, rows);
            marked.stayed.sort();
            let stayed = marked.stayed.clone();
            let edit = FileEdit::Freeze { tablet: tablet.id, file: entry.info(FileStamps::PerRow), stayed };
            let edit = record::file_edits(&[edit]);
            let appended = self.append_commit(None, (&[], &[]), || self.check_tablet(tablet).map(|()| edit));
            if appended.is_ok() {
                basalt_sched::failpoint::hit(step(entry.data.kind(), "freeze-appended", "evict-appended"));
                let mut files = tablet.view().files.clone();
                files.push(entry.clone());
                tablet.switch_view_to(view, files);
            }
            appended
        };
        tablet.hot.end_move();
        match version {
            Ok((version, _)) => self.order.settle(version),
            Err(error) => {
                // No view has that number, so nobody goes by these marks; the next move may take it.
                tablet.hot.unmark_moved(&rows.expected(), view);
                return if matches!(error, Error::TableGone(_)) { Ok(None) } else { Err(error) };
            }
        }
        let kind = entry.data.kind();
        self.drop_if_gone(tablet, &[entry]);
        let count = (rows.keys.len() - marked.stayed.len()) as u64;
        tracing::debug!(tablet = %tablet.id, rows = count, ?kind, "moved from hot");
        Ok(Some(count))
    }

    /// Frees what no reader needs any more in one tablet's hot rows and delete maps.
    pub(crate) fn sweep(&self, tablet: &Tablet) {
        let _whole = self.whole("sweep");
        let oldest_view = tablet.oldest_view();
        let snapshots = self.live_snapshots();
        while tablet.hot.sweep(&snapshots, oldest_view).more {}
        tablet.sweep_forwards(snapshots[0]);
        for file in &tablet.view().files {
            if file.deletes.count() > 0 {
                file.deletes.prune(snapshots[0]);
            }
        }
    }
}

/// The name of a step of the move, by what it writes.
fn step(kind: FileKind, freeze: &'static str, evict: &'static str) -> &'static str {
    match kind {
        FileKind::RowFile => evict,
        FileKind::Segment | FileKind::Pair => freeze,
    }
}

pub(crate) fn as_bytes(bound: &Bound<Key>) -> Bound<&[u8]> {
    match bound {
        Bound::Excluded(key) => Bound::Excluded(key.as_bytes()),
        Bound::Included(key) => Bound::Included(key.as_bytes()),
        Bound::Unbounded => Bound::Unbounded,
    }
}
