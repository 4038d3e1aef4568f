//! What a transaction has changed, in order: so that it can be undone backwards, or restamped.

use crate::engine::Engine;
use crate::record::FileEdit;
use crate::tablet::{FileEntry, Tablet};
use basalt_hot::Spot;
use basalt_meta::FileStamps;
use basalt_types::{FileId, Key, Lsn, ObjectId, Rid, TxnId, Version};
use roaring::RoaringBitmap;
use std::sync::Arc;

pub(crate) enum Change {
    /// One level of a key's version chain in hot.
    Hot { tablet: Arc<Tablet>, key: Key, spot: Spot },
    /// A deletion mark in a file. Moves may have carried it elsewhere: the place is a hint.
    Mark { tablet: Arc<Tablet>, key: Key, file: Arc<FileEntry>, ordinal: u32 },
    /// Rows of a file that were marked many at a time, with keys from one to the other. The file stays listed until
    /// this is decided.
    Marks { tablet: Arc<Tablet>, file: Arc<FileEntry>, ordinals: RoaringBitmap, keys: (Key, Key) },
    /// A row left for another key.
    Forward { tablet: Arc<Tablet>, key: Key },
    /// A file of a bulk change set, listed but undecided, after so many logged row operations.
    File { tablet: Arc<Tablet>, file: Arc<FileEntry>, next_rid: Rid, operations: u64 },
    /// A tablet that this transaction's catalog edit made.
    NewTablet { tablet: Arc<Tablet> },
}

#[derive(Default)]
pub(crate) struct WriteSet {
    changes: Vec<Change>,
}

impl WriteSet {
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// In order.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether rows of one of these tables are among them, or places for such.
    pub fn reach(&self, tables: &[ObjectId]) -> bool {
        self.changes.iter().any(|change| match change {
            Change::Hot { tablet, .. }
            | Change::Mark { tablet, .. }
            | Change::Marks { tablet, .. }
            | Change::Forward { tablet, .. }
            | Change::File { tablet, .. }
            | Change::NewTablet { tablet } => tables.contains(&tablet.table),
        })
    }

    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }

    /// Adds to the marks of a file, if that is what the change at this place is of. False: it is not.
    pub fn add_marks(&mut self, at: usize, of: &FileEntry, more: &RoaringBitmap, reach: &(Key, Key)) -> bool {
        match self.changes.get_mut(at) {
            Some(Change::Marks { file, ordinals, keys, .. }) if file.id() == of.id() => {
                *ordinals |= more;
                if reach.0 < keys.0 {
                    keys.0 = reach.0.clone();
                }
                if reach.1 > keys.1 {
                    keys.1 = reach.1.clone();
                }
                true
            }
            _ => false,
        }
    }

    pub fn split_off(&mut self, at: usize) -> Vec<Change> {
        self.changes.split_off(at)
    }

    /// The files that the commit record registers.
    pub fn file_edits(&self) -> Vec<FileEdit> {
        let adds = self.changes.iter().filter_map(|change| match change {
            Change::File { tablet, file, next_rid, operations } => Some(FileEdit::Add {
                tablet: tablet.id,
                file: file.info(FileStamps::Uniform(Version::ZERO)),
                next_rid: *next_rid,
                operations: *operations,
            }),
            _ => None,
        });
        adds.collect()
    }
}

impl Engine {
    /// Takes changes back, newest first. What it needs is in memory, except for finding a mark that a compaction has
    /// carried on: gives the tablets in which one was left because a file could not be read for that. Such a transaction
    /// has to be taken back whole ([`Engine::unmark_all`]).
    #[must_use]
    pub(crate) fn undo(&self, txn: TxnId, changes: Vec<Change>) -> Vec<Arc<Tablet>> {
        let mut left = Vec::new();
        for change in changes.into_iter().rev() {
            match change {
                Change::Hot { tablet, key, .. } => {
                    let undone = tablet.hot.rollback(key.as_bytes(), txn);
                    assert!(undone, "{txn} wrote {key:?} in {} but is not its newest writer", tablet.id);
                }
                Change::Mark { tablet, key, file, ordinal } => {
                    let _latch = tablet.latch.read();
                    let listed = tablet.view().file(file.id()).is_some();
                    if listed && file.deletes.unmark(ordinal, txn) {
                        continue;
                    }
                    match tablet.find_mark(&key, txn) {
                        Ok(Some((file, ordinal))) => {
                            file.deletes.unmark(ordinal, txn);
                        }
                        Ok(None) => tracing::error!(%txn, ?key, tablet = %tablet.id, "a mark to undo is gone"),
                        Err(error) => {
                            tracing::error!(%txn, ?key, tablet = %tablet.id, %error, "cannot look for a mark to undo");
                            left.push(tablet.clone());
                        }
                    }
                }
                Change::Marks { tablet, file, ordinals, .. } => {
                    let _latch = tablet.latch.read();
                    let undone = file.deletes.unmark_many(&ordinals, txn);
                    assert_eq!(undone, ordinals.len(), "{txn} marked rows of {} that are not its own", file.id());
                }
                Change::File { tablet, file, .. } => {
                    self.unlist(&tablet, file.id());
                    // Never named in the log, but readers of older views probe it before they ask whose it is.
                    self.drop_file(&file, Lsn(0));
                }
                Change::Forward { tablet, key } => tablet.settle_forward(&key, txn, None),
                Change::NewTablet { tablet } => self.forget_tablet(tablet.id),
            }
        }
        left
    }

    /// Takes away all that is left of a transaction's marks in a tablet.
    pub(crate) fn unmark_all(&self, txn: TxnId, tablet: &Tablet) {
        let _latch = tablet.latch.read();
        tablet.view().files.iter().for_each(|file| file.deletes.unmark_all(txn));
    }

    fn unlist(&self, tablet: &Tablet, id: FileId) {
        let _latch = tablet.latch.write();
        let files = tablet.view().files.iter().filter(|file| file.id() != id).cloned().collect();
        tablet.switch_view(files);
    }

    /// Gives everything that a committed transaction changed its version. False: a file could not be read to look for a
    /// mark that a compaction carried. It counts as long as the transaction is known as committed.
    #[must_use]
    pub(crate) fn restamp(&self, txn: TxnId, version: Version, changes: &[Change]) -> bool {
        let mut all = true;
        let mut hot: Vec<(&Arc<Tablet>, Spot, &[u8])> = Vec::with_capacity(changes.len());
        for change in changes {
            match change {
                Change::Hot { tablet, key, spot } => hot.push((tablet, *spot, key.as_bytes())),
                Change::Mark { tablet, key, file, ordinal } => {
                    let _latch = tablet.latch.read();
                    // Files that are no longer listed were left to readers whose snapshots are below, or restamped
                    // when they went (`compaction/carry.rs`).
                    let listed = tablet.view().file(file.id()).is_some();
                    if listed && file.deletes.restamp(*ordinal, txn, version) {
                        continue;
                    }
                    match tablet.find_mark(key, txn) {
                        Ok(Some((file, ordinal))) => {
                            file.deletes.restamp(ordinal, txn, version);
                        }
                        Ok(None) => {}
                        Err(error) => {
                            all = false;
                            let what = "cannot restamp a mark: its transaction stays known as committed";
                            tracing::error!(%txn, ?key, tablet = %tablet.id, %error, "{what}");
                        }
                    }
                }
                Change::Marks { tablet, file, ordinals, .. } => {
                    let _latch = tablet.latch.read();
                    file.deletes.restamp_many(ordinals, txn, version);
                }
                Change::Forward { tablet, key } => tablet.settle_forward(key, txn, Some(version)),
                Change::File { file, .. } => file.restamp(version),
                Change::NewTablet { .. } => {}
            }
        }
        // Statements go from table to table and back: each tablet once, and neighbours together.
        hot.sort_unstable_by_key(|(tablet, _, key)| (tablet.id, *key));
        hot.dedup_by_key(|(tablet, _, key)| (tablet.id, *key));
        let mut keys: Vec<(Spot, &[u8])> = Vec::with_capacity(hot.len());
        for of_tablet in hot.chunk_by(|(one, ..), (other, ..)| Arc::ptr_eq(one, other)) {
            keys.clear();
            keys.extend(of_tablet.iter().map(|(_, spot, key)| (*spot, *key)));
            of_tablet[0].0.hot.restamp_many(&keys, txn, version);
        }
        all
    }
}
