//! Freeze: cool hot rows become a segment (DESIGN 5, Moves).
//!
//! 1. Without a latch: rows whose newest version is stamped ≤ `upto` are copied, in key order and with
//!    their stamps, into a file that is made durable.
//! 2. Under the latch: rows that hot still has unchanged are moved to the next view number; the others are
//!    dead in the file from birth (`stayed`). The record is appended and the view switched.
//!
//! Readers of older views go on finding the rows in hot; versions that only older snapshots see stay in
//! hot's undo until those are gone. A move keeps every row's stamp, so nobody takes it for a change.

use crate::bulk::{hidden_keys_of, segment_schema};
use crate::record::{Edits, FileEdit};
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::{Engine, Error, Result};
use arrow_array::ArrayRef;
use basalt_cold::{DeleteMap, SegmentOptions, SegmentWriter, Stamps};
use basalt_hot::Rows;
use basalt_meta::FileStamps;
use basalt_types::row::{Field, RowRef};
use basalt_types::{ColumnBuilder, Key, ObjectId, PhysType, Stamp, TableDef, Version};
use std::ops::Bound;
use std::sync::Arc;

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
        }
        Ok(())
    }

    /// Moves up to one segment's worth of rows stamped ≤ `upto`. Returns how many moved.
    pub(crate) fn freeze(self: &Arc<Self>, tablet: &Arc<Tablet>, upto: Version) -> Result<u64> {
        let _one_move = tablet.moving.lock();
        let catalog = self.catalog();
        let Some(table) = catalog.table_of(tablet.id) else { return Ok(0) };
        if tablet.hot.rows() == 0 {
            return Ok(0);
        }
        let id = self.next_file_id();
        let mut writer = SegmentWriter::create(&self.files, id, segment_schema(table), SegmentOptions::default())?;
        let copied = self.copy_rows(tablet, table, upto, &mut writer)?;
        if copied.keys.is_empty() {
            return Ok(0);
        }
        let meta = writer.finish()?;
        let entry = FileEntry {
            segment: self.open_segment(id)?,
            deletes: DeleteMap::new(),
            stamps: EntryStamps::PerRow,
            bytes: meta.bytes,
        };
        basalt_sched::failpoint::hit("freeze-file-durable");
        let moved = self.switch_to_frozen(tablet, Arc::new(entry), &copied);
        if moved.is_err() {
            self.discard_file(id);
        }
        moved
    }

    fn copy_rows(
        &self,
        tablet: &Tablet,
        table: &TableDef,
        upto: Version,
        writer: &mut SegmentWriter,
    ) -> Result<Copied> {
        let mut copied = Copied { keys: Vec::new(), stamps: Vec::new() };
        let mut from = Bound::Unbounded;
        let mut rows = Rows::new();
        while u64::from(writer.rows()) < self.config.segment_rows {
            rows.clear();
            let last = tablet.hot.scan_settled(as_bytes(&from), Bound::Unbounded, upto, CHUNK_ROWS, &mut rows);
            if !rows.is_empty() {
                let columns = columns_of(table, &rows).ok_or_else(|| {
                    Error::Corrupt(format!("a hot row of tablet {} does not fit its table", tablet.id))
                })?;
                let version = |stamp: Stamp| stamp.as_version().expect("settled rows carry versions");
                let versions: Vec<Version> = rows.iter().map(|row| version(row.stamp)).collect();
                writer.push(&columns, Stamps::Versions(&versions))?;
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

    fn switch_to_frozen(self: &Arc<Self>, tablet: &Arc<Tablet>, entry: Arc<FileEntry>, rows: &Copied) -> Result<u64> {
        let _gate = self.move_gate.read();
        let _latch = tablet.latch.write();
        let _whole = self.whole("freeze");
        if self.catalog().table_of(tablet.id).is_none() {
            self.discard_file(entry.id());
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
        basalt_sched::failpoint::hit("freeze-appended");
        let mut files = view.files.clone();
        files.push(entry);
        let switched = tablet.switch_view(files);
        assert_eq!(switched, next, "views switch under the latch only");
        self.order.settle(version);
        tracing::debug!(tablet = %tablet.id, rows = count, "frozen");
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

pub(crate) fn as_bytes(bound: &Bound<Key>) -> Bound<&[u8]> {
    match bound {
        Bound::Excluded(key) => Bound::Excluded(key.as_bytes()),
        Bound::Included(key) => Bound::Included(key.as_bytes()),
        Bound::Unbounded => Bound::Unbounded,
    }
}

/// Rows as a segment's columns. `None` if a row's bytes are damaged.
fn columns_of(table: &TableDef, rows: &Rows) -> Option<Vec<ArrayRef>> {
    let types: Vec<PhysType> = table.phys_types();
    let mut builders: Vec<ColumnBuilder> = types.iter().map(|ty| ColumnBuilder::new(*ty, rows.len())).collect();
    for row in rows.iter() {
        let row = RowRef::new(row.row)?;
        for (builder, field) in builders.iter_mut().zip(row.fields(&types)) {
            match field? {
                Field::Null => builder.push_null(),
                Field::Value(bytes) => builder.push_bytes(bytes).then_some(())?,
            }
        }
        for (builder, column) in builders.iter_mut().zip(&table.columns).skip(row.column_count()) {
            builder.push(&column.missing).then_some(())?;
        }
    }
    let mut columns = Vec::with_capacity(types.len() + 1);
    if table.primary_key.is_none() {
        columns.push(hidden_keys_of(rows.iter().map(|row| row.rid)));
    }
    for (builder, column) in builders.iter_mut().zip(&table.columns) {
        if !column.dropped {
            columns.push(builder.finish());
        }
    }
    Some(columns)
}
