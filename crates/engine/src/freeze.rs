//! Moves from hot into a file (DESIGN 5, Moves): freeze makes a segment of cool rows; eviction, under memory
//! pressure, a row file of warm ones (`docs/decisions/0004-eviction.md`). The protocol is one:
//!
//! 1. Without a latch: rows whose newest version is stamped ≤ `upto` are copied, in key order and with
//!    their stamps, into a file that is made durable.
//! 2. Under the latch: rows that hot still has unchanged are moved to the next view number; the others are
//!    dead in the file from birth (`stayed`). The record is appended and the view switched.
//!
//! Readers of older views go on finding the rows in hot; versions that only older snapshots see stay in
//! hot's undo until those are gone. A move keeps every row's stamp, so nobody takes it for a change.

mod writer;

use crate::record::{Edits, FileEdit};
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::{Engine, Error, Result};
use basalt_cold::DeleteMap;
use basalt_hot::Rows;
use basalt_meta::{FileKind, FileStamps};
use basalt_types::{Key, ObjectId, Stamp, TableDef, Version};
use std::ops::Bound;
use std::sync::Arc;
use writer::Writer;

const CHUNK_ROWS: usize = 8192;

/// Rows on their way from hot into a file, by ordinal.
struct Copied {
    keys: Vec<Key>,
    stamps: Vec<Stamp>,
}

impl Engine {
    /// Freezes every row of a table that can be frozen now, whatever its temperature (VACUUM).
    pub fn freeze_table(self: &Arc<Self>, table: ObjectId) -> Result<()> {
        let catalog = self.catalog();
        let Some(table) = catalog.table(table) else { return Err(Error::TableGone(table)) };
        for id in table.tablets() {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            while self.freeze(&tablet, self.published())? > 0 {}
            self.sweep(&tablet);
            tablet.fill_locator(&self.locators, &|| false)?;
        }
        Ok(())
    }

    /// Evicts every row of a table that can be, whatever its temperature: as memory pressure does.
    pub fn evict_table(self: &Arc<Self>, table: ObjectId) -> Result<()> {
        let catalog = self.catalog();
        let Some(table) = catalog.table(table) else { return Err(Error::TableGone(table)) };
        for id in table.tablets() {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            while self.evict(&tablet, self.published())? > 0 {}
            self.sweep(&tablet);
            tablet.fill_locator(&self.locators, &|| false)?;
        }
        Ok(())
    }

    /// Moves up to one segment's worth of rows stamped ≤ `upto` into a segment. Returns how many moved.
    pub(crate) fn freeze(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version) -> Result<u64> {
        self.move_out(tablet, upto, FileKind::Segment)
    }

    /// As [`freeze`](Engine::freeze), into a row file.
    pub(crate) fn evict(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version) -> Result<u64> {
        self.move_out(tablet, upto, FileKind::RowFile)
    }

    fn move_out(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version, kind: FileKind) -> Result<u64> {
        let _one_move = tablet.moving.lock();
        let catalog = self.catalog();
        let Some(table) = catalog.table_of(tablet.id) else { return Ok(0) };
        if tablet.hot.rows() == 0 {
            return Ok(0);
        }
        let id = self.next_file_id();
        let mut writer = Writer::create(self, table, id, kind)?;
        let copied = self.copy_rows(tablet, table, upto, &mut writer)?;
        if copied.keys.is_empty() {
            return Ok(0);
        }
        let bytes = writer.finish()?;
        basalt_sched::failpoint::hit(step(kind, "freeze-file-durable", "evict-file-durable"));
        let moved = self.open_file(id, kind).and_then(|data| {
            let entry = FileEntry { data, deletes: DeleteMap::new(), stamps: EntryStamps::PerRow, bytes };
            self.switch_to_moved(tablet, Arc::new(entry), &copied)
        });
        if moved.is_err() {
            self.discard_file(id, kind);
        }
        moved
    }

    fn copy_rows(&self, tablet: &Tablet, table: &TableDef, upto: Version, writer: &mut Writer) -> Result<Copied> {
        let mut copied = Copied { keys: Vec::new(), stamps: Vec::new() };
        let mut from = Bound::Unbounded;
        let mut rows = Rows::new();
        while u64::from(writer.rows()) < self.config.segment_rows {
            rows.clear();
            let last = tablet.hot.scan_settled(as_bytes(&from), Bound::Unbounded, upto, CHUNK_ROWS, &mut rows);
            if !rows.is_empty() {
                writer.push(table, &rows)?;
                copied.keys.extend(rows.iter().map(|row| Key::from(row.key)));
                copied.stamps.extend(rows.iter().map(|row| row.stamp));
            }
            match last {
                Some(last) => from = Bound::Excluded(last),
                None => break,
            }
        }
        Ok(copied)
    }

    fn switch_to_moved(self: &Arc<Self>, tablet: &Arc<Tablet>, entry: Arc<FileEntry>, rows: &Copied) -> Result<u64> {
        let _gate = self.move_gate.read();
        let _latch = tablet.latch.write();
        let _whole = self.whole("freeze");
        if self.catalog().table_of(tablet.id).is_none() {
            self.discard_file(entry.id(), entry.data.kind());
            return Ok(0);
        }
        let view = tablet.view();
        let next = basalt_types::ViewNo(view.number.0 + 1);
        let expected: Vec<(&[u8], Stamp)> =
            rows.keys.iter().map(Key::as_bytes).zip(rows.stamps.iter().copied()).collect();
        let moved = tablet.hot.mark_moved(&expected, next);
        let stayed: Vec<u32> = (0..).zip(&moved).filter(|(_, moved)| !**moved).map(|(ordinal, _)| ordinal).collect();
        for ordinal in &stayed {
            let fresh = entry.deletes.mark(*ordinal, Stamp::version(Version::ZERO), 0);
            debug_assert!(fresh.is_ok(), "nobody else knows the file yet");
        }
        let count = (moved.len() - stayed.len()) as u64;
        let edit = FileEdit::Freeze { tablet: tablet.id, file: entry.info(FileStamps::PerRow), stayed };
        let edits = Edits { catalog: Vec::new(), files: vec![edit] };
        let version = match self.append_commit(None, || edits) {
            Ok((version, _)) => version,
            Err(error) => {
                tablet.hot.unmark_moved(&expected, next);
                return Err(error);
            }
        };
        let kind = entry.data.kind();
        basalt_sched::failpoint::hit(step(kind, "freeze-appended", "evict-appended"));
        let mut files = view.files.clone();
        files.push(entry);
        let switched = tablet.switch_view(files);
        assert_eq!(switched, next, "views switch under the latch only");
        self.order.settle(version);
        tracing::debug!(tablet = %tablet.id, rows = count, ?kind, "moved from hot");
        Ok(count)
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
        FileKind::Segment => freeze,
        FileKind::RowFile => evict,
    }
}

pub(crate) fn as_bytes(bound: &Bound<Key>) -> Bound<&[u8]> {
    match bound {
        Bound::Excluded(key) => Bound::Excluded(key.as_bytes()),
        Bound::Included(key) => Bound::Included(key.as_bytes()),
        Bound::Unbounded => Bound::Unbounded,
    }
}
