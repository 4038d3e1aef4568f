//! A row's entries in its table's indexes, written with the row by one transaction.
//!
//! The holder of a row's lock is the only one who writes its entries. An entry that no other row may have is
//! claimed by its own lock besides, as a primary key is: whoever finds another's undecided entry waits for it, and
//! whoever takes one away locks it first, so that nobody takes its place before that is decided.

use super::{Inserted, Txn};
use crate::index::RowEntry;
use crate::locks::{Mode, Object};
use crate::tablet::{Place, Tablet};
use crate::{CurrentRow, Error, ReadContext, Result, RowLock, WaitPolicy};
use basalt_types::schema::{Entry, IndexDef};
use basalt_types::{Datum, Key, ObjectId, TableDef, TabletId};
use std::sync::Arc;

/// What an UPDATE does to one index.
pub(super) struct EntryChange {
    old: Option<RowEntry>,
    new: Option<RowEntry>,
}

/// What a claim of an entry came to that no other row may have.
pub(crate) enum Claim {
    /// It is locked, and nobody has it.
    Free,
    /// A live row has it.
    Taken { tablet: TabletId, key: Key },
    /// Only with [`WaitPolicy::Skip`].
    Skipped,
}

/// The row that a live entry leads to.
fn base_at(index: &IndexDef, tablet: &Tablet, key: &Key, place: &Place) -> Result<Option<(TabletId, Key)>> {
    let values = match place {
        Place::Hot { row, .. } => super::decode_row(&index.entries, row, tablet, key)?,
        Place::Cold { file, ordinal, .. } => file.data.row_at(&index.entries, *ordinal)?,
        Place::Nowhere | Place::Deleted { .. } | Place::Pending { .. } => return Ok(None),
    };
    match IndexDef::base_of(&values) {
        Some(base) => Ok(Some(base)),
        None => Err(Error::Corrupt(format!("entry {key:?} of index {} leads nowhere", index.name))),
    }
}

impl Txn {
    /// Locks the entries of a new row that must be unique. Those of `first` (ids of indexes) are looked at before the
    /// others. Some: a live row has one of them.
    pub(super) async fn claim_entries(&mut self, entries: &[RowEntry], first: &[ObjectId]) -> Result<Option<Inserted>> {
        let is_first = |entry: &&RowEntry| first.contains(&entry.index.id);
        let ordered = entries.iter().filter(is_first).chain(entries.iter().filter(|entry| !is_first(entry)));
        for entry in ordered.filter(|entry| entry.entry.exclusive).collect::<Vec<_>>() {
            if let Some(taken) = self.claim_entry(&entry.index, &entry.entry).await? {
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    async fn claim_entry(&mut self, index: &Arc<IndexDef>, entry: &Entry) -> Result<Option<Inserted>> {
        match self.try_claim_entry(index, entry, self.wait).await? {
            Claim::Taken { tablet, key } => Ok(Some(Inserted::Duplicate { tablet, key, index: Some(index.id) })),
            Claim::Free | Claim::Skipped => Ok(None),
        }
    }

    /// A lock that was taken to find another's entry is given back: whoever deletes that row, and so holds its lock,
    /// may be on the way to this one. One that was held before may cover changes, or be older than a savepoint: it stays.
    pub(crate) async fn try_claim_entry(
        &mut self,
        index: &Arc<IndexDef>,
        entry: &Entry,
        wait: WaitPolicy,
    ) -> Result<Claim> {
        let (tablet, key) = (self.tablet(index.tablet())?, entry.key());
        let object = Object::row(tablet.id, &key);
        let held = self.engine.locks.holds(self.owner, &object);
        let Some(place) = self.lock_settled(&tablet, &key, RowLock::Update, wait).await? else {
            return Ok(Claim::Skipped);
        };
        match &place {
            Place::Hot { stamp, .. } | Place::Cold { stamp, .. } => self.note_stamp(*stamp),
            Place::Deleted { stamp } => self.check_unchanged(*stamp, "delete")?,
            Place::Nowhere | Place::Pending { .. } => {}
        }
        let Some((of, row)) = base_at(index, &tablet, &key, &place)? else { return Ok(Claim::Free) };
        self.note_key(tablet.id, &key);
        if !held {
            self.engine.locks.release(self.owner, &object);
            self.unlooked.remove(&object);
        }
        Ok(Claim::Taken { tablet: of, key: row })
    }

    /// Those of a row's entries that are there, asked by the holder of the row's lock. In an index that is valid all are.
    pub(super) fn present_entries(&self, entries: Vec<RowEntry>, tablet: TabletId, key: &Key) -> Result<Vec<RowEntry>> {
        // Nearly always.
        if entries.iter().all(|entry| entry.index.is_valid()) {
            return Ok(entries);
        }
        let mut present = Vec::with_capacity(entries.len());
        for entry in entries {
            if entry.index.is_valid() || self.has_entry(&entry.index, &entry.entry, tablet, key)? {
                present.push(entry);
            }
        }
        Ok(present)
    }

    /// Whether a row has this entry, asked by the holder of the row's lock, who alone could write it. What another row
    /// has there is not the row's.
    pub(crate) fn has_entry(&self, index: &IndexDef, entry: &Entry, tablet: TabletId, key: &Key) -> Result<bool> {
        let (at, entry_key) = (self.tablet(index.tablet())?, entry.key());
        let place = {
            let _latch = at.latch.read();
            at.find_settled(&entry_key, self.id(), &*self.engine.txns)?
        };
        let base = base_at(index, &at, &entry_key, &place)?;
        Ok(base.is_some_and(|(of, row)| of == tablet && row == *key))
    }

    /// Locks an entry that goes away.
    async fn lock_entry(&mut self, old: &RowEntry) -> Result<()> {
        if old.entry.exclusive {
            let tablet = self.tablet(old.index.tablet())?;
            self.lock_settled(&tablet, &old.entry.key(), RowLock::Update, self.wait).await?;
        }
        Ok(())
    }

    pub(super) async fn lock_entries(&mut self, old: &[RowEntry]) -> Result<()> {
        for entry in old {
            self.lock_entry(entry).await?;
        }
        Ok(())
    }

    /// What an UPDATE has to do: entries that differ, or lead to another key. Locks and claims them.
    pub(super) async fn change_entries(
        &mut self,
        old: Vec<RowEntry>,
        new: Vec<RowEntry>,
        moved: bool,
    ) -> Result<std::result::Result<Vec<EntryChange>, Inserted>> {
        let mut changes: Vec<EntryChange> =
            old.into_iter().map(|old| EntryChange { old: Some(old), new: None }).collect();
        for new in new {
            let of_index =
                |change: &&mut EntryChange| change.old.as_ref().is_some_and(|old| old.index.id == new.index.id);
            match changes.iter_mut().find(of_index) {
                Some(change) => change.new = Some(new),
                None => changes.push(EntryChange { old: None, new: Some(new) }),
            }
        }
        changes.retain(|change| moved || !change.keeps_all());
        for change in &changes {
            if let Some(old) = &change.old {
                self.lock_entry(old).await?;
            }
            if let Some(new) = &change.new
                && new.entry.exclusive
                && !change.keeps_entry()
                && let Some(taken) = self.claim_entry(&new.index, &new.entry).await?
            {
                return Ok(Err(taken));
            }
        }
        Ok(Ok(changes))
    }

    pub(super) fn put_entries(&mut self, entries: &[RowEntry], tablet: TabletId, key: &Key) -> Result<()> {
        entries.iter().try_for_each(|entry| self.put_entry(entry, tablet, key))
    }

    pub(crate) fn put_entry(&mut self, entry: &RowEntry, tablet: TabletId, key: &Key) -> Result<()> {
        let at = self.tablet(entry.index.tablet())?;
        let rid = at.take_region(1);
        let row = IndexDef::entry_row(&entry.entry, tablet, key);
        self.put(&entry.index.entries, &at, &entry.entry.key(), rid, &row, None)?;
        self.note_unique(entry);
        Ok(())
    }

    pub(super) fn remove_entries(&mut self, entries: &[RowEntry]) -> Result<()> {
        entries.iter().try_for_each(|entry| self.remove_entry(entry))
    }

    fn remove_entry(&mut self, entry: &RowEntry) -> Result<()> {
        let at = self.tablet(entry.index.tablet())?;
        self.remove(&at, &entry.entry.key(), None)
    }

    pub(super) fn apply_entries(&mut self, changes: &[EntryChange], tablet: TabletId, key: &Key) -> Result<()> {
        for change in changes {
            // Under the same key the new entry replaces the old one.
            if let Some(old) = change.old.as_ref().filter(|_| !change.keeps_entry()) {
                self.remove_entry(old)?;
            }
            if let Some(new) = &change.new {
                self.put_entry(new, tablet, key)?;
            }
        }
        Ok(())
    }

    /// The values of a row that is locked, read again if its holder did not need them.
    pub(super) fn values_of(&self, table: &Arc<TableDef>, row: &CurrentRow) -> Result<Vec<Datum>> {
        if !row.values.is_empty() || table.columns.is_empty() {
            return Ok(row.values.clone());
        }
        let tablet = self.tablet(row.tablet)?;
        let place = {
            let _latch = tablet.latch.read();
            tablet.find_settled(&row.key, self.id(), &*self.engine.txns)?
        };
        match place {
            Place::Hot { row: bytes, .. } => super::decode_row(table, &bytes, &tablet, &row.key),
            Place::Cold { file, ordinal, .. } => file.data.row_at(table, ordinal),
            _ => Err(Error::Internal(format!("row {:?} of {} is locked and gone", row.key, tablet.id))),
        }
    }

    /// How rows are now: everything that has committed, durable or not, and all own writes. For checks under locks,
    /// whose holders may have committed just now.
    pub fn latest(&mut self) -> ReadContext {
        let last = self.engine.order.take_turn().last();
        self.note_met(last);
        let pin = Arc::new(self.engine.pin(basalt_meta::PinReason::Check, last));
        let at = basalt_types::ReadAt { snapshot: pin.version(), own: self.id(), seq: u32::MAX };
        ReadContext::new(self.engine.clone(), pin, at)
    }

    /// The transaction's snapshot with all own writes, those of the running statement too.
    pub fn seen_now(&self) -> ReadContext {
        let at = basalt_types::ReadAt { snapshot: self.snapshot(), own: self.id(), seq: u32::MAX };
        ReadContext::new(self.engine.clone(), self.pin.clone(), at)
    }

    /// [`Txn::seen_now`], noted as what a statement reads is.
    pub fn seen_and_noted(&self) -> ReadContext {
        self.seen_now().noting(self.reads())
    }

    /// 40001 if a row that stands in the way of another is not known to the transaction's one snapshot as it is: whoever
    /// leaves it alone would have seen two moments.
    pub fn check_known(&mut self, table: &Arc<TableDef>, tablet: TabletId, key: &Key) -> Result<()> {
        if !self.repeatable_read() {
            return Ok(());
        }
        self.note_key(tablet, key);
        match self.latest().get(table, tablet, key)? {
            Some(row) => self.check_unchanged(row.stamp, "update"),
            None => Err(Error::Serialization("update")),
        }
    }

    /// Whether at most one row has these values in the index of a deferrable constraint, once everybody who is
    /// changing such a row has ended. Whoever checks the same values after this waits for this transaction.
    pub async fn is_unique(&mut self, table: &Arc<TableDef>, index: &IndexDef, values: &[u8]) -> Result<bool> {
        let (object, behind) = (Object::Values(index.id, values.into()), &mut self.granted_behind);
        self.engine.lock(self.owner, &object, Mode::from(RowLock::Update), self.wait, behind).await?;
        let rows = self.latest().rows_by_entry(index, values)?;
        if rows.len() <= 1 {
            return Ok(true);
        }
        for (tablet, key) in rows {
            self.lock_row(table, tablet, &key, RowLock::KeyShare, self.wait).await?;
        }
        self.is_unique_alone(index, values)
    }

    /// The same where nobody else writes to the table until this transaction ends.
    pub fn is_unique_alone(&mut self, index: &IndexDef, values: &[u8]) -> Result<bool> {
        Ok(self.latest().rows_by_entry(index, values)?.len() <= 1)
    }

    fn note_stamp(&mut self, stamp: basalt_types::Stamp) {
        if let Some(version) = self.version_of(stamp) {
            self.note_met(version);
        }
    }
}

impl EntryChange {
    /// Whether the entry stays as it is, included values too, as long as the row stays where it is.
    fn keeps_all(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => self.keeps_entry() && old.entry.included == new.entry.included,
            _ => false,
        }
    }

    /// Whether the row stays under the same key of the index.
    fn keeps_entry(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => old.entry.bytes == new.entry.bytes,
            _ => false,
        }
    }
}
