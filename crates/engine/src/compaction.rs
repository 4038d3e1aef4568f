//! Compaction: several files of a tablet become fewer, sorted, without rows that nobody can see.
//!
//! Rows deleted at or below the horizon (the oldest live snapshot) are left out; all others are copied with
//! their stamps, marked or not. Stamps at or below the horizon become the horizon: every reader sees them,
//! and no conflict test asks for more. Marks made while the files were read, undecided ones included, are
//! carried over under the latch through a map from old to new places.

mod merge;
mod pick;

use crate::bulk::segment_schema;
use crate::record::{Edits, FileEdit};
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::{Engine, Error, Result};
use basalt_cold::{DeleteMap, SegmentMeta, SegmentOptions, SegmentWriter};
use basalt_meta::{FileKind, FileStamps};
use basalt_types::{FileId, ObjectId, TableDef, Version};
use merge::Merge;
use std::sync::Arc;

/// Where a row went: output number and ordinal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NewPlace {
    output: u32,
    ordinal: u32,
}

impl NewPlace {
    pub const DROPPED: NewPlace = NewPlace { output: u32::MAX, ordinal: u32::MAX };
}

impl Engine {
    /// Freezes and then merges all of a table's files, dropping dead rows (VACUUM FULL).
    pub fn compact_table(self: &Arc<Self>, table: ObjectId) -> Result<()> {
        self.freeze_table(table)?;
        let catalog = self.catalog();
        let Some(table) = catalog.table(table) else { return Err(Error::TableGone(table)) };
        for id in table.tablets() {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            let inputs: Vec<_> = decided(&tablet);
            for group in pick::whole_tablet(&inputs) {
                self.compact(&tablet, group)?;
            }
        }
        Ok(())
    }

    /// One round over a tablet, if something is worth merging. True if something was done.
    pub(crate) fn compact_if_worth(self: &Arc<Self>, tablet: &Arc<Tablet>) -> Result<bool> {
        let horizon = self.live_snapshots()[0];
        let inputs = pick::worth_merging(&decided(tablet), self.config.segment_rows, horizon);
        match inputs.is_empty() {
            true => Ok(false),
            false => self.compact(tablet, inputs).map(|()| true),
        }
    }

    fn compact(self: &Arc<Self>, tablet: &Arc<Tablet>, inputs: Vec<Arc<FileEntry>>) -> Result<()> {
        let _one_move = tablet.moving.lock();
        let catalog = self.catalog();
        let Some(table) = catalog.table_of(tablet.id) else { return Ok(()) };
        // Another move may have replaced some of them since they were picked.
        let view = tablet.view();
        if inputs.iter().any(|input| view.file(input.id()).is_none()) {
            return Ok(());
        }
        let horizon = self.live_snapshots()[0];
        let mut outputs = Outputs::new(self, table);
        let mut merge = Merge::new(&inputs, horizon)?;
        let places = match merge.run(&mut outputs).and_then(|()| outputs.close()) {
            Ok(()) => merge.places,
            Err(error) => {
                outputs.discard();
                return Err(error);
            }
        };
        basalt_sched::failpoint::hit("compact-files-durable");
        let switched = self.switch_to_compacted(tablet, &inputs, &outputs, &places);
        if switched.is_err() {
            outputs.discard();
        }
        switched
    }

    fn switch_to_compacted(
        self: &Arc<Self>,
        tablet: &Arc<Tablet>,
        inputs: &[Arc<FileEntry>],
        outputs: &Outputs<'_>,
        places: &[Vec<NewPlace>],
    ) -> Result<()> {
        let mut entries = Vec::new();
        for meta in &outputs.done {
            entries.push(Arc::new(FileEntry {
                data: self.open_file(meta.id, FileKind::Segment)?,
                deletes: DeleteMap::new(),
                stamps: EntryStamps::PerRow,
                bytes: meta.bytes,
            }));
        }
        let _gate = self.move_gate.read();
        let _latch = tablet.latch.write();
        let _whole = self.whole("compaction");
        if self.catalog().table_of(tablet.id).is_none() {
            outputs.discard();
            return Ok(());
        }
        for (input, places) in inputs.iter().zip(places) {
            for mark in input.deletes.marks() {
                let place = places[mark.ordinal as usize];
                if place != NewPlace::DROPPED {
                    let carried = entries[place.output as usize].deletes.mark(place.ordinal, mark.stamp, mark.seq);
                    assert!(carried.is_ok(), "two rows of {} went to one place", input.id());
                }
            }
        }
        // In the turn, so that exactly the commits before this record are in the maps.
        let edits = || {
            let output = |file: &Arc<FileEntry>| {
                let deletes = match file.deletes.count() {
                    0 => Vec::new(),
                    _ => file.deletes.to_bytes(Version::MAX, &*self.txns),
                };
                (file.info(FileStamps::PerRow), deletes)
            };
            let edit = FileEdit::Compact {
                tablet: tablet.id,
                inputs: inputs.iter().map(|file| file.id()).collect(),
                outputs: entries.iter().map(output).collect(),
            };
            Edits { catalog: Vec::new(), files: vec![edit] }
        };
        let (version, end) = self.append_commit(None, edits)?;
        basalt_sched::failpoint::hit("compact-appended");
        let gone: Vec<FileId> = inputs.iter().map(|file| file.id()).collect();
        let mut files: Vec<_> = tablet.view().files.iter().filter(|file| !gone.contains(&file.id())).cloned().collect();
        files.extend(entries);
        tablet.switch_view(files);
        self.order.settle(version);
        inputs.iter().for_each(|file| self.drop_file(file, end));
        tracing::debug!(tablet = %tablet.id, inputs = inputs.len(), outputs = outputs.done.len(), "compacted");
        Ok(())
    }
}

fn decided(tablet: &Tablet) -> Vec<Arc<FileEntry>> {
    tablet.view().files.iter().filter(|file| file.undecided().is_none()).cloned().collect()
}

/// The files being written.
pub(crate) struct Outputs<'a> {
    engine: &'a Arc<Engine>,
    table: &'a TableDef,
    open: Option<SegmentWriter>,
    pub done: Vec<SegmentMeta>,
}

impl<'a> Outputs<'a> {
    fn new(engine: &'a Arc<Engine>, table: &'a TableDef) -> Outputs<'a> {
        Outputs { engine, table, open: None, done: Vec::new() }
    }

    /// Columns that outputs hold, in order.
    fn columns(&self) -> Vec<basalt_types::ColumnId> {
        segment_schema(self.table).columns.iter().map(|column| column.id).collect()
    }

    /// Where the next row will go.
    fn next_place(&self) -> NewPlace {
        let ordinal = self.open.as_ref().map_or(0, |writer| writer.rows());
        NewPlace { output: self.done.len() as u32, ordinal }
    }

    /// Appends rows; returns the place of the first.
    fn push(&mut self, columns: &[arrow_array::ArrayRef], versions: &[Version]) -> Result<()> {
        if self.open.is_none() {
            let id = self.engine.next_file_id();
            let schema = segment_schema(self.table);
            self.open = Some(SegmentWriter::create(&self.engine.files, id, schema, SegmentOptions::default())?);
        }
        let writer = self.open.as_mut().expect("just opened");
        writer.push(columns, basalt_cold::Stamps::Versions(versions))?;
        if u64::from(writer.rows()) >= self.engine.config.segment_rows {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some(writer) = self.open.take() {
            self.done.push(writer.finish()?);
        }
        Ok(())
    }

    fn discard(&self) {
        self.done.iter().for_each(|meta| self.engine.discard_file(meta.id, FileKind::Segment));
    }

    fn missing(&self, id: basalt_types::ColumnId, rows: usize) -> Result<arrow_array::ArrayRef> {
        if id == basalt_cold::segment::HIDDEN_KEY {
            return Err(Error::Corrupt(format!("a file of table {} lacks its hidden key", self.table.id)));
        }
        let column = self.table.column(id);
        let mut builder = basalt_types::ColumnBuilder::new(column.ty.phys().expect("storable"), rows);
        for _ in 0..rows {
            assert!(builder.push(&column.missing), "the default of column {} is of its type", column.name);
        }
        Ok(builder.finish())
    }
}
