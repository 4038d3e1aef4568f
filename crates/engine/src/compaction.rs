//! Compaction: several files of a tablet become fewer, in the order that the table asks for, without rows that nobody
//! can see.
//!
//! Rows deleted at or below the horizon (the oldest live snapshot) are left out; all others are copied with
//! their stamps, marked or not. Stamps at or below the horizon become the horizon: every reader sees them,
//! and no conflict test asks for more (`txn/rows.rs`, `Seen`). Marks that are there or made meanwhile, undecided ones included, are
//! carried over through a map from old to new places ([`carry`]); the latch is held for the last few.
//! A merge whose inputs have very many undecided marks is put off. So is one with marks that a large change has made
//! (`txn/large.rs`), until they are folded: its transaction counts on the places.

mod carry;
mod merge;
mod pick;

use crate::file_writer::{FileWriter, WrittenFile, file_schema};
use crate::order::Order;
use crate::record::{self, FileEdit};
use crate::tablet::{EntryStamps, FileEntry, Tablet};
use crate::unlisted::Unlisted;
use crate::{Engine, Error, Result};
use basalt_cold::DeleteMap;
use basalt_meta::{FileKind, FileStamps};
use basalt_types::{FileId, ObjectId, TableDef, Version};
use carry::{Carry, Watch};
use merge::Merge;
use roaring::RoaringBitmap;
use std::sync::Arc;

/// Rounds of carrying marks over before a merge is put off.
const CARRY_ROUNDS: usize = 50;

/// Passes over the files of a tablet that lack something.
const RENEW_ROUNDS: usize = 3;

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
        let stored = table.stored().flat_map(|stored| {
            let asked = Arc::new(pick::Asked::of(stored, &catalog));
            stored.tablets().map(move |id| (id, asked.clone()))
        });
        for (id, asked) in stored {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            for file in pick::out_of_order(&self.mergeable(&tablet), &asked) {
                self.compact(&tablet, vec![file])?;
            }
            let inputs: Vec<_> = self.mergeable(&tablet);
            for group in pick::whole_tablet(&inputs, &asked) {
                self.compact(&tablet, group)?;
            }
        }
        Ok(())
    }

    /// Rewrites columnar files of a table that are not as it asks for, as they lack what a new index wants, as long as
    /// `goes_on`; whether none of them is left. Some are left alone while a large change is under way in them.
    pub fn renew_files(self: &Arc<Self>, table: ObjectId, goes_on: &dyn Fn() -> bool) -> Result<bool> {
        let catalog = self.catalog();
        let Some(table) = catalog.table(table) else { return Err(Error::TableGone(table)) };
        let mut is_whole = true;
        for id in table.tablets() {
            let tablet = self.tablet(id).map_err(|_| Error::TableGone(table.id))?;
            // Merges may replace files before it is their turn, by others that are as they should be or not.
            for _ in 0..RENEW_ROUNDS {
                for file in self.strange(&tablet, &self.mergeable(&tablet))? {
                    if !goes_on() {
                        return Ok(false);
                    }
                    // What is asked for may be another by now.
                    if !self.strange(&tablet, std::slice::from_ref(&file))?.is_empty() {
                        self.compact(&tablet, vec![file])?;
                    }
                }
            }
            is_whole &= self.strange(&tablet, &tablet.view().files)?.is_empty();
        }
        Ok(is_whole)
    }

    /// Those of a tablet's columnar files that are not as its table asks for now.
    fn strange(&self, tablet: &Tablet, files: &[Arc<FileEntry>]) -> Result<Vec<Arc<FileEntry>>> {
        let catalog = self.catalog();
        let table = catalog.table_of(tablet.id).ok_or(Error::TableGone(tablet.table))?;
        Ok(pick::strange(files, &pick::Asked::of(table, &catalog)))
    }

    /// One round over a tablet, if something is worth merging. True if something was done. Rows stamped ≤
    /// `cool` have cooled.
    pub(crate) fn compact_if_worth(self: &Arc<Self>, tablet: &Arc<Tablet>, cool: Version) -> Result<bool> {
        let catalog = self.catalog();
        let Some(table) = catalog.table_of(tablet.id) else { return Ok(false) };
        let files = self.mergeable(tablet);
        let inputs = pick::worth_merging(&files, &pick::Asked::of(table, &catalog), &self.config, cool);
        match inputs.is_empty() {
            true => Ok(false),
            false => self.compact(tablet, inputs),
        }
    }

    /// Files that a merge may take: under a large change only those of which it leaves nothing.
    fn mergeable(&self, tablet: &Tablet) -> Vec<Arc<FileEntry>> {
        let horizon = self.live_snapshots()[0];
        let undisturbed = tablet.is_undisturbed();
        let may_go = |file: &&Arc<FileEntry>| {
            file.deletes.prune(horizon);
            (!undisturbed || file.deletes.folded_count() == u64::from(file.data.rows()))
                && file.undecided().is_none()
                && !file.deletes.has_many()
                && file.deletes.undecided_count() <= carry::UNDECIDED_MAX
        };
        tablet.view().files.iter().filter(may_go).cloned().collect()
    }

    /// True if the inputs were replaced.
    fn compact(self: &Arc<Self>, tablet: &Arc<Tablet>, inputs: Vec<Arc<FileEntry>>) -> Result<bool> {
        let _one_merge = tablet.merging.lock();
        let catalog = self.catalog();
        let Some(table) = catalog.table_of(tablet.id) else { return Ok(false) };
        // Another move may have replaced some of them since they were picked.
        let view = tablet.view();
        if inputs.iter().any(|input| view.file(input.id()).is_none()) {
            return Ok(false);
        }
        let horizon = self.live_snapshots()[0];
        let watch = Watch::new(&inputs);
        inputs.iter().for_each(|file| file.deletes.prune(horizon));
        let dead: Vec<RoaringBitmap> = inputs.iter().map(|file| file.deletes.folded()).collect();
        let kind = catalog.file_kind(table);
        let mut outputs = Outputs::new(self, table, kind);
        let mut merge = Merge::new(&inputs, &dead, horizon, Order::of(table, kind));
        if !merge.run(&mut outputs)? {
            return Ok(put_off(tablet));
        }
        outputs.close()?;
        let places = merge.places;
        basalt_sched::failpoint::hit("compact-files-durable");
        let entries = self.entries_of(&outputs)?;
        let carry = Carry::new(&watch, &dead, &places, &entries);
        let switched = self.switch_when_carried(tablet, &inputs, &entries, carry)?;
        if switched {
            outputs.written.keep();
        }
        Ok(switched)
    }

    fn entries_of(&self, outputs: &Outputs<'_>) -> Result<Vec<Arc<FileEntry>>> {
        let entry = |file: &WrittenFile| {
            Ok(Arc::new(FileEntry {
                data: self.open_file(file.id, file.kind)?,
                deletes: DeleteMap::new(),
                stamps: EntryStamps::PerRow,
                bytes: file.bytes,
            }))
        };
        outputs.done.iter().map(entry).collect()
    }

    /// Carries marks over until few are left, and switches. False: put off.
    fn switch_when_carried(
        self: &Arc<Self>,
        tablet: &Arc<Tablet>,
        inputs: &[Arc<FileEntry>],
        entries: &[Arc<FileEntry>],
        mut carry: Carry<'_>,
    ) -> Result<bool> {
        for _ in 0..CARRY_ROUNDS {
            if has_many(inputs) {
                break;
            }
            carry.catch_up();
            let _gate = self.move_gate.read();
            let _latch = tablet.latch.write();
            // Under the latch: nobody marks now.
            if carry.is_nearly_done() && !has_many(inputs) {
                return self.switch_to_compacted(tablet, inputs, entries, carry);
            }
        }
        Ok(put_off(tablet))
    }

    /// The caller holds the latch exclusively.
    fn switch_to_compacted(
        self: &Arc<Self>,
        tablet: &Arc<Tablet>,
        inputs: &[Arc<FileEntry>],
        entries: &[Arc<FileEntry>],
        mut carry: Carry<'_>,
    ) -> Result<bool> {
        let _whole = self.whole("compaction");
        carry.catch_up();
        let gone: Vec<FileId> = inputs.iter().map(|file| file.id()).collect();
        // In the turn, so that exactly the commits before this record are in the maps.
        let edit = || {
            self.check_tablet(tablet)?;
            let infos = entries.iter().map(|file| file.info(FileStamps::PerRow));
            let outputs = infos.zip(carry.delete_maps(&self.txns)).collect();
            let edit = FileEdit::Compact { tablet: tablet.id, inputs: gone.clone(), outputs };
            Ok(record::file_edits(&[edit]))
        };
        let (version, end) = match self.append_commit(None, (&[], &[]), edit) {
            Err(Error::TableGone(_)) => return Ok(false),
            appended => appended?,
        };
        basalt_sched::failpoint::hit("compact-appended");
        let mut files: Vec<_> = tablet.view().files.iter().filter(|file| !gone.contains(&file.id())).cloned().collect();
        files.extend(entries.iter().cloned());
        tablet.switch_view(files);
        carry.decide_inputs(&self.txns);
        self.order.settle(version);
        inputs.iter().for_each(|file| self.drop_file(file, end));
        self.drop_if_gone(tablet, entries);
        tracing::debug!(tablet = %tablet.id, inputs = inputs.len(), outputs = entries.len(), "compacted");
        Ok(true)
    }

    /// Whether the committed catalog still has the tablet. Holds until the end of the commit turn in which it
    /// is asked.
    pub(crate) fn check_tablet(&self, tablet: &Tablet) -> Result<()> {
        match self.catalog().table_of(tablet.id) {
            Some(_) => Ok(()),
            None => Err(Error::TableGone(tablet.table)),
        }
    }

    /// A table that is dropped between a move's record and its view takes the files of the old view along:
    /// these are the new ones. (If it is dropped later, it finds them itself.)
    pub(crate) fn drop_if_gone(&self, tablet: &Tablet, files: &[Arc<FileEntry>]) {
        if self.check_tablet(tablet).is_err() {
            let last_named = self.log.end();
            files.iter().for_each(|file| self.drop_file(file, last_named));
        }
    }
}

/// Nothing was replaced.
fn put_off(tablet: &Tablet) -> bool {
    tracing::info!(tablet = %tablet.id, "a merge is put off: too many of its rows are being deleted");
    false
}

fn has_many(files: &[Arc<FileEntry>]) -> bool {
    files.iter().any(|file| file.deletes.has_many())
}

/// The files being written.
pub(crate) struct Outputs<'a> {
    engine: &'a Arc<Engine>,
    table: &'a TableDef,
    kind: FileKind,
    open: Option<FileWriter>,
    pub done: Vec<WrittenFile>,
    written: Unlisted,
}

impl<'a> Outputs<'a> {
    fn new(engine: &'a Arc<Engine>, table: &'a TableDef, kind: FileKind) -> Outputs<'a> {
        Outputs { engine, table, kind, open: None, done: Vec::new(), written: Unlisted::new(engine) }
    }

    /// Columns that outputs hold, in order.
    fn columns(&self) -> Vec<basalt_types::ColumnId> {
        file_schema(self.table).columns.iter().map(|column| column.id).collect()
    }

    /// Where the next row will go.
    fn next_place(&self) -> NewPlace {
        let ordinal = self.open.as_ref().map_or(0, |writer| writer.rows());
        NewPlace { output: self.done.len() as u32, ordinal }
    }

    /// Appends rows; returns the place of the first.
    fn push(&mut self, columns: &[arrow_array::ArrayRef], versions: &[Version]) -> Result<()> {
        if self.open.is_none() {
            self.open = Some(FileWriter::create(self.engine, self.table, self.kind)?);
        }
        let writer = self.open.as_mut().expect("just opened");
        writer.push_columns(self.table, columns, basalt_cold::Stamps::Versions(versions))?;
        if writer.is_full(self.engine) {
            self.close()?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some(writer) = self.open.take() {
            let file = writer.finish(&mut self.written)?;
            self.done.push(file);
        }
        Ok(())
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
