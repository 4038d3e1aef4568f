//! Replay of log records, by key.
//!
//! There are no readers yet, so hot keeps only the newest version of each key and nothing waits for a
//! latch. Where a row rests at the moment (hot, or which file) is looked up; the record does not say.

use super::{Replayed, new_tablet, open_entry};
use crate::engine::DroppedFile;
use crate::record::{self, Edits, FileEdit, PutRow, Record};
use crate::sequence::State;
use crate::tablet::{FileEntry, Place, Tablet};
use crate::{Catalog, Error, Result};
use basalt_cold::{BlockCache, Files};
use basalt_hot::Change;
use basalt_meta::{FileInfo, FileStamps, TxnTable};
use basalt_types::{FileId, Key, Lsn, ObjectId, Rid, Stamp, TabletId, TxnId, Version, ViewNo};
use roaring::RoaringBitmap;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

pub(super) struct Replayer<'a> {
    files: &'a Files,
    cache: &'a Arc<BlockCache>,
    checkpointed: Version,
    /// Row operations of transactions whose end has not come yet.
    gathered: HashMap<TxnId, Vec<Box<[u8]>>>,
    state: Replayed,
    /// No transaction is undecided during replay.
    txns: TxnTable,
}

impl<'a> Replayer<'a> {
    pub fn new(
        files: &'a Files,
        cache: &'a Arc<BlockCache>,
        catalog: Catalog,
        tablets: HashMap<TabletId, Arc<Tablet>>,
        sequences: HashMap<ObjectId, State>,
        checkpointed: Version,
        (next_object, next_tablet): (u32, u32),
    ) -> Replayer<'a> {
        let dropped = BTreeMap::new();
        let last_version = checkpointed;
        let state = Replayed { catalog, tablets, sequences, dropped, last_version, next_object, next_tablet };
        Replayer { files, cache, checkpointed, gathered: HashMap::new(), state, txns: TxnTable::default() }
    }

    pub fn visit(&mut self, lsn: Lsn, bytes: &[u8]) -> Result<()> {
        let record = record::decode(bytes)
            .ok_or_else(|| Error::Corrupt(format!("log record at {lsn} is none that this version of Basalt writes")))?;
        match record {
            Record::Put { txn, .. }
            | Record::Delete { txn, .. }
            | Record::Batch { txn, .. }
            | Record::Marks { txn, .. } => {
                self.gathered.entry(txn).or_default().push(bytes.into());
            }
            Record::Void { txn, from } => {
                if let Some(operations) = self.gathered.get_mut(&txn) {
                    operations.truncate(usize::try_from(from).unwrap_or(usize::MAX));
                }
            }
            Record::Abort { txn } => {
                self.gathered.remove(&txn);
            }
            Record::Sequence { state, value } => {
                // Even of a transaction that is lost: its records must not be another state's.
                self.state.next_object = self.state.next_object.max(state.0.saturating_add(1));
                // The checkpoint's value may be of a later record than this one.
                let known = self.state.sequences.get(&state);
                if known.is_none_or(|known| known.logged_at <= lsn) {
                    self.state.sequences.insert(state, State::new(value, Lsn(lsn.0 + 1)));
                }
            }
            Record::Commit { txn, version, edits } => {
                let operations = txn.and_then(|txn| self.gathered.remove(&txn)).unwrap_or_default();
                if version > self.checkpointed {
                    self.commit(lsn, version, edits, &operations)?;
                }
            }
        }
        Ok(())
    }

    pub fn finish(mut self) -> Replayed {
        // States of sequences that were dropped, or that no commit made.
        let named: HashSet<ObjectId> = self.state.catalog.sequences.values().map(|sequence| sequence.state).collect();
        self.state.sequences.retain(|state, _| named.contains(state));
        for sequence in self.state.catalog.sequences.values() {
            let begun = || State::new(sequence.begins, Lsn(0));
            self.state.sequences.entry(sequence.state).or_insert_with(begun);
        }
        self.state
    }

    fn commit(&mut self, lsn: Lsn, version: Version, edits: Edits, operations: &[Box<[u8]>]) -> Result<()> {
        if version <= self.state.last_version {
            let last = self.state.last_version;
            return Err(Error::Corrupt(format!("commit record at {lsn} has version {version}, after {last}")));
        }
        self.state.last_version = version;
        if !edits.catalog.is_empty() {
            self.edit_catalog(lsn, &edits)?;
        }
        // In the order in which the transaction did it: a file's rows may be changed by operations after it.
        let (adds, moves): (Vec<_>, Vec<_>) =
            edits.files.into_iter().partition(|edit| matches!(edit, FileEdit::Add { .. }));
        let mut adds = adds.into_iter().peekable();
        for (at, bytes) in operations.iter().enumerate() {
            while let Some(add) = adds.next_if(|add| comes_before(add, at)) {
                self.edit_files(lsn, version, add)?;
            }
            match record::decode(bytes).expect("decoded when it was gathered") {
                Record::Put { tablet, row, .. } => self.put(tablet, row, version)?,
                Record::Batch { tablet, rows, .. } => {
                    rows.into_iter().try_for_each(|row| self.put(tablet, row, version))?;
                }
                Record::Delete { tablet, key, .. } => self.delete(tablet, key, version)?,
                Record::Marks { tablet, file, ordinals, .. } => {
                    self.mark_many(lsn, tablet, file, &ordinals, version)?
                }
                _ => unreachable!("only row operations are gathered"),
            }
        }
        adds.chain(moves).try_for_each(|edit| self.edit_files(lsn, version, edit))
    }

    fn edit_catalog(&mut self, lsn: Lsn, edits: &Edits) -> Result<()> {
        let next = self.state.catalog.apply(&edits.catalog)?;
        for table in next.stored_tables() {
            let greatest = table.object_ids().map(|id| id.0).max().unwrap_or(0);
            self.state.next_object = self.state.next_object.max(greatest + 1);
            for id in table.tablets() {
                self.state.next_tablet = self.state.next_tablet.max(id.0 + 1);
                self.state.tablets.entry(id).or_insert_with(|| new_tablet(id, table.id));
            }
        }
        let others = next.views.keys().chain(next.namespaces.keys()).chain(next.roles.keys());
        let others = others.chain(next.sequences.keys());
        let others = others.chain(next.sequences.values().map(|sequence| &sequence.state));
        let checks = next.tables.values().flat_map(|table| &table.checks);
        let others = others.chain(checks.map(|check| &check.id)).chain(next.databases.keys()).copied();
        if let Some(greatest) = others.chain(next.types.values().flat_map(|def| def.object_ids())).max() {
            self.state.next_object = self.state.next_object.max(greatest.0 + 1);
        }
        let gone: Vec<TabletId> =
            self.state.tablets.keys().filter(|id| next.table_of(**id).is_none()).copied().collect();
        for id in gone {
            let tablet = self.state.tablets.remove(&id).expect("just listed");
            tablet.view().files.iter().for_each(|file| self.drop_file(file, lsn));
        }
        self.state.catalog = next;
        Ok(())
    }

    /// A record names the file, so it stays until a checkpoint's replay start has passed the record.
    fn drop_file(&mut self, file: &FileEntry, lsn: Lsn) {
        let dropped = DroppedFile { kind: file.data.kind(), last_named: Lsn(lsn.0 + 1), entry: None };
        self.state.dropped.insert(file.id(), dropped);
    }

    /// `None`: a table that a later record of this log drops, or that was dropped with the transaction.
    fn tablet(&self, id: TabletId) -> Option<Arc<Tablet>> {
        self.state.tablets.get(&id).cloned()
    }

    fn put(&mut self, tablet: TabletId, row: PutRow<'_>, version: Version) -> Result<()> {
        let Some(tablet) = self.tablet(tablet) else { return Ok(()) };
        tablet.met_rid(row.rid);
        self.mark_cold(&tablet, row.key, version)?;
        tablet.hot.load_many(&[Change { key: row.key, row: Some(row.row), rid: row.rid }], version);
        Ok(())
    }

    fn delete(&mut self, tablet: TabletId, key: &[u8], version: Version) -> Result<()> {
        let Some(tablet) = self.tablet(tablet) else { return Ok(()) };
        if !self.mark_cold(&tablet, key, version)? {
            tablet.hot.load_many(&[Change { key, row: None, rid: Rid(0) }], version);
        }
        Ok(())
    }

    /// The file has been listed from the mark to this commit record, and so it is here.
    fn mark_many(
        &self,
        lsn: Lsn,
        tablet: TabletId,
        file: FileId,
        ordinals: &RoaringBitmap,
        version: Version,
    ) -> Result<()> {
        let Some(tablet) = self.tablet(tablet) else { return Ok(()) };
        let view = tablet.view();
        let listed = view.file(file).filter(|file| ordinals.max().is_none_or(|last| last < file.data.rows()));
        let marked = listed.map(|file| file.deletes.mark_many(ordinals, Stamp::version(version), 0).len());
        if marked != Some(ordinals.len()) {
            return Err(Error::Corrupt(format!(
                "the transaction committed at {lsn} has marked {} rows of file {file} of tablet {}, which replay finds {}",
                ordinals.len(),
                tablet.id,
                if marked.is_none() { "without them" } else { "deleted before" }
            )));
        }
        Ok(())
    }

    fn mark_cold(&self, tablet: &Tablet, key: &[u8], version: Version) -> Result<bool> {
        if tablet.view().files.is_empty() {
            return Ok(false);
        }
        let place = tablet.find(&Key::from(key), None, &self.txns)?;
        let Place::Cold { file, ordinal, .. } = place else { return Ok(false) };
        let fresh = file.deletes.mark(ordinal, Stamp::version(version), 0);
        debug_assert!(fresh.is_ok(), "find returns unmarked rows");
        Ok(true)
    }

    fn open(&self, info: &FileInfo, deletes: &[u8]) -> Result<Arc<FileEntry>> {
        Ok(Arc::new(open_entry(self.files, self.cache, info, deletes)?))
    }

    fn edit_files(&mut self, lsn: Lsn, version: Version, edit: FileEdit) -> Result<()> {
        match edit {
            FileEdit::Add { tablet, file, next_rid, .. } => {
                let Some(tablet) = self.tablet(tablet) else { return Ok(()) };
                let info = FileInfo { stamps: FileStamps::Uniform(version), ..file };
                let entry = self.open(&info, &[])?;
                tablet.met_rid(Rid(next_rid.0.saturating_sub(1)));
                add_files(&tablet, &[], vec![entry]);
                Ok(())
            }
            FileEdit::Freeze { tablet, file, stayed } => {
                let Some(tablet) = self.tablet(tablet) else { return Ok(()) };
                let entry = self.open(&file, &[])?;
                self.freeze(lsn, &tablet, entry, &stayed)
            }
            FileEdit::Compact { tablet, inputs, outputs } => {
                let Some(tablet) = self.tablet(tablet) else { return Ok(()) };
                let outputs =
                    outputs.iter().map(|(info, deletes)| self.open(info, deletes)).collect::<Result<Vec<_>>>()?;
                self.compact(lsn, &tablet, &inputs, outputs)
            }
        }
    }

    /// Rows that the primary moved are unchanged in hot here too: every commit before the record has been
    /// applied, and none that came later.
    fn freeze(&mut self, lsn: Lsn, tablet: &Tablet, entry: Arc<FileEntry>, stayed: &[u32]) -> Result<()> {
        let stay: HashSet<u32> = stayed.iter().copied().collect();
        let view = ViewNo(tablet.view().number.0 + 1);
        let mut first = 0;
        while first < entry.data.rows() {
            let until = entry.data.rows().min(first + 8192);
            let keys = entry.data.keys(first..until)?;
            let mut rows = Vec::with_capacity(keys.len());
            for (ordinal, key) in (first..until).zip(keys.iter()) {
                if stay.contains(&ordinal) {
                    let fresh = entry.deletes.mark(ordinal, Stamp::version(Version::ZERO), 0);
                    debug_assert!(fresh.is_ok(), "ordinals ascend");
                } else {
                    rows.push((key, entry.stamp_of(ordinal)?.0));
                }
            }
            let moved = tablet.hot.mark_moved(&rows, view);
            if let Some(at) = moved.iter().position(|moved| !moved) {
                return Err(Error::Corrupt(format!(
                    "freeze record at {lsn} moves row {:?} of tablet {} to {}, but replay has another version of it",
                    Key::from(rows[at].0),
                    tablet.id,
                    entry.id()
                )));
            }
            first = until;
        }
        add_files(tablet, &[], vec![entry]);
        let last = self.state.last_version;
        while tablet.hot.sweep(&[last], tablet.oldest_view()).more {}
        Ok(())
    }

    /// The record holds the outputs' delete maps as of its place in the log, so nothing is looked up.
    fn compact(&mut self, lsn: Lsn, tablet: &Tablet, inputs: &[FileId], outputs: Vec<Arc<FileEntry>>) -> Result<()> {
        let view = tablet.view();
        if let Some(id) = inputs.iter().find(|id| view.file(**id).is_none()) {
            return Err(Error::Corrupt(format!(
                "compaction record at {lsn} names {id}, which tablet {} does not list",
                tablet.id
            )));
        }
        add_files(tablet, inputs, outputs);
        inputs.iter().filter_map(|id| view.file(*id)).for_each(|file| self.drop_file(file, lsn));
        Ok(())
    }
}

/// Whether a batch's file was listed before the transaction's operation number `at`.
fn comes_before(edit: &FileEdit, at: usize) -> bool {
    matches!(edit, FileEdit::Add { operations, .. } if *operations <= at as u64)
}

fn add_files(tablet: &Tablet, without: &[FileId], added: Vec<Arc<FileEntry>>) {
    let _latch = tablet.latch.write();
    let mut files: Vec<_> = tablet.view().files.iter().filter(|file| !without.contains(&file.id())).cloned().collect();
    files.extend(added);
    tablet.switch_view(files);
}
