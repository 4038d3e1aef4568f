//! Single rows: lock, insert, update, delete.

use super::{Change, Txn};
use crate::locks::{Acquired, Mode, Object};
use crate::read::ReadContext;
use crate::record::{self, PutRow};
use crate::tablet::{FileEntry, Place, Tablet};
use crate::{Error, Result, RowLock, WaitPolicy};
use basalt_hot::Spot;
use basalt_meta::TxnTable;
use basalt_types::schema::IndexDef;
use basalt_types::{
    ColumnId, Datum, Key, ObjectId, Rid, Stamp, TableDef, TabletId, TxnId, TxnState, TxnStates, Version, row,
};
use std::sync::Arc;

/// The newest version of a row after its lock was granted.
#[derive(Clone, Debug)]
pub struct CurrentRow {
    pub tablet: TabletId,
    pub key: Key,
    /// After [`Txn::lock_seen_row`] of a row that is as it was seen: as it was seen, though a merge may have raised it.
    pub stamp: Stamp,
    pub rid: Rid,
    /// All columns in column-id order; none after [`Txn::lock_seen_row`] of a row that is as it was seen.
    pub values: Vec<Datum>,
    /// Where it was found under its lock.
    pub(crate) place: Option<KnownPlace>,
}

/// Where a locked row is, as long as its tablet has the view in which it was found.
#[derive(Clone)]
pub(crate) struct KnownPlace {
    view: u64,
    /// `None`: in no file.
    cold: Option<(Arc<FileEntry>, u32)>,
    /// In hot.
    spot: Spot,
}

impl KnownPlace {
    /// Of a key that no file of this view has.
    fn in_no_file(view: u64) -> KnownPlace {
        KnownPlace { view, cold: None, spot: Spot::UNKNOWN }
    }
}

impl std::fmt::Debug for KnownPlace {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let cold = self.cold.as_ref().map(|(file, ordinal)| (file.id(), ordinal));
        out.debug_struct("KnownPlace").field("view", &self.view).field("cold", &cold).finish()
    }
}

/// A row as a scan has found it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub stamp: Stamp,
    /// That of the scan.
    pub snapshot: Version,
    /// Whether its values are known.
    pub values: bool,
}

impl Seen {
    /// Whether a row of the same key that is there, and that nobody has deleted, is the one that was found. A merge may
    /// have raised its stamp, but a snapshot sees one row of a key, and a row that came at or below it and is still there
    /// is that one. It has to be the scan's snapshot: a later one sees what came in the row's place.
    pub fn is(&self, stamp: Stamp) -> bool {
        let is_below = |stamp: Stamp| stamp.as_version().is_some_and(|version| version <= self.snapshot);
        stamp == self.stamp || (is_below(self.stamp) && is_below(stamp))
    }
}

#[derive(Clone, Debug)]
pub enum Locked {
    Row(CurrentRow),
    /// Deleted by a transaction that committed meanwhile (or never there).
    Gone,
    /// Only with [`WaitPolicy::Skip`].
    Skipped,
}

impl Locked {
    /// The row, if it is there and was waited for.
    pub fn row(self) -> Option<CurrentRow> {
        match self {
            Locked::Row(row) => Some(row),
            Locked::Gone | Locked::Skipped => None,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inserted {
    Done,
    /// A live row has this primary key, or these values in a unique index: 23505, or ON CONFLICT. Which row, and
    /// which index (none: the primary key).
    Duplicate {
        tablet: TabletId,
        key: Key,
        index: Option<ObjectId>,
    },
}

impl Txn {
    /// Locks one row by key and returns its newest committed (or own) version, which may have another key
    /// if that was changed since the snapshot. Under REPEATABLE READ a row changed since the snapshot is
    /// `Error::Serialization`; [`RowLock::KeyShare`] minds only its key, and returns the snapshot's version.
    pub async fn lock_row(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        mode: RowLock,
        wait: WaitPolicy,
    ) -> Result<Locked> {
        self.lock_seen_row(table, tablet, key, None, mode, wait).await
    }

    /// The same for a row that the running statement may have found with the stamp `seen`. If it is still that row, it
    /// comes with that stamp and without its values: whoever has seen them, or needs none, need not decode them again.
    pub async fn lock_seen_row(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        seen: Option<Stamp>,
        mode: RowLock,
        wait: WaitPolicy,
    ) -> Result<Locked> {
        let seen = seen.map(|stamp| Seen { stamp, snapshot: self.snapshot(), values: true });
        self.lock_found_row(table, tablet, key, seen, mode, wait).await
    }

    /// The same with the values, whatever row it is.
    pub async fn lock_known_row(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        seen: Stamp,
        mode: RowLock,
        wait: WaitPolicy,
    ) -> Result<Locked> {
        let seen = Some(Seen { stamp: seen, snapshot: self.snapshot(), values: false });
        self.lock_found_row(table, tablet, key, seen, mode, wait).await
    }

    /// The same for whoever has not found it in the running statement.
    pub(super) async fn lock_found_row(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        seen: Option<Seen>,
        mode: RowLock,
        wait: WaitPolicy,
    ) -> Result<Locked> {
        let (mut tablet, mut key) = (self.tablet(tablet)?, key.clone());
        // Where it was followed to, by which forward; none yet.
        let mut followed = None;
        loop {
            let Some(place) = self.lock_settled(&tablet, &key, mode, wait).await? else {
                return Ok(Locked::Skipped);
            };
            let known = match &place {
                Place::Hot { view, spot, .. } => Some(KnownPlace { view: *view, cold: None, spot: *spot }),
                Place::Cold { file, ordinal, view, .. } => {
                    Some(KnownPlace { view: *view, cold: Some((file.clone(), *ordinal)), spot: Spot::UNKNOWN })
                }
                _ => None,
            };
            // Under another key it has changed.
            let found = |stamp: Stamp| seen.filter(|seen| followed.is_none() && seen.is(stamp));
            // Its key may have been changed: READ COMMITTED goes after it. A row that has come in its place is another.
            let stamp = match place {
                Place::Hot { stamp, .. } | Place::Cold { stamp, .. } => Some(stamp),
                _ => None,
            };
            if stamp.is_none_or(|stamp| seen.is_some() && found(stamp).is_none())
                && let Some(next) = tablet.follow(&key, self.snapshot(), followed)
            {
                self.check_unchanged(next.stamp, "update")?;
                (tablet, key, followed) = (self.tablet(next.tablet)?, next.key, Some(next.number));
                continue;
            }
            let (stamp, found, rid, values) = match place {
                Place::Nowhere | Place::Deleted { .. } => {
                    if let Place::Deleted { stamp } = place {
                        self.check_unchanged(stamp, "delete")?;
                    }
                    return Ok(Locked::Gone);
                }
                Place::Hot { stamp, rid, row, .. } => match found(stamp) {
                    Some(found) if found.values => (stamp, Some(found), rid, Vec::new()),
                    found => (stamp, found, rid, decode_row(table, &row, &tablet, &key)?),
                },
                Place::Cold { file, ordinal, stamp, .. } => match found(stamp) {
                    Some(found) if found.values => (stamp, Some(found), rid_of(table, &key), Vec::new()),
                    found => (stamp, found, rid_of(table, &key), file.data.row_at(table, ordinal)?),
                },
                Place::Pending { .. } => unreachable!("settled"),
            };
            let minds_snapshot = match self.repeatable_read() {
                true => mode == RowLock::KeyShare,
                false => basalt_sched::failpoint::is_weakened("re-check"),
            };
            if minds_snapshot && let Some(seen) = self.seen_under(table, tablet.id, &key, stamp)? {
                return Ok(Locked::Row(seen));
            }
            if self.is_foreign_undecided(stamp) {
                // A weak lock goes with an update that leaves the key alone: what it will replace is current.
                match self.newest_committed(table, tablet.id, &key)? {
                    Some(current) => {
                        self.check_unchanged(current.stamp, "update")?;
                        return Ok(Locked::Row(CurrentRow { rid, ..current }));
                    }
                    None => return Ok(Locked::Gone),
                }
            }
            self.check_unchanged(stamp, "update")?;
            let stamp = found.map_or(stamp, |found| found.stamp);
            return Ok(Locked::Row(CurrentRow { tablet: tablet.id, key, stamp, rid, values, place: known }));
        }
    }

    /// The snapshot's version of a row whose newest one is another's, if it has this key.
    fn seen_under(
        &mut self,
        table: &Arc<TableDef>,
        tablet: TabletId,
        key: &Key,
        newest: Stamp,
    ) -> Result<Option<CurrentRow>> {
        let since = match self.version_of(newest) {
            Some(version) if version > self.snapshot() => Some(version),
            Some(_) => return Ok(None),
            None if self.is_foreign_undecided(newest) => None,
            None => return Ok(None),
        };
        // Not noted: what of it is needed is locked.
        let seen = ReadContext::new(self.engine.clone(), self.pin.clone(), self.read_at()).get(table, tablet, key)?;
        if let (Some(row), Some(version)) = (&seen, since) {
            self.note_met(version);
            self.check_same_keys(table, row)?;
        }
        Ok(seen)
    }

    /// 40001 if what references may be to has changed since the snapshot. The primary key has not: it led here.
    fn check_same_keys(&mut self, table: &Arc<TableDef>, seen: &CurrentRow) -> Result<()> {
        let is_unique = |column: &ColumnId| {
            let is_primary = table.primary_key.as_ref().is_some_and(|key| key.columns.contains(column));
            table.is_key_column(*column) && !is_primary
        };
        let unique: Vec<ColumnId> = table.live_columns().map(|column| column.id).filter(is_unique).collect();
        if unique.is_empty() {
            return Ok(());
        }
        let now = self.latest().get(table, seen.tablet, &seen.key)?;
        let is_same = |now: &CurrentRow, at: usize| now.values[at] == seen.values[at];
        match now.is_some_and(|now| unique.iter().all(|column| is_same(&now, column.position()))) {
            true => Ok(()),
            false => Err(Error::Serialization("update")),
        }
    }

    /// Whether a row is of a transaction that has not ended: only under a lock that does not exclude it.
    fn is_foreign_undecided(&self, stamp: Stamp) -> bool {
        stamp.as_txn().is_some_and(|txn| Some(txn) != self.id && self.version_of(stamp).is_none())
    }

    /// Of one moment: a writer that commits between a look into hot and one into files has replaced nothing yet.
    fn newest_committed(&mut self, table: &Arc<TableDef>, tablet: TabletId, key: &Key) -> Result<Option<CurrentRow>> {
        self.latest().get(table, tablet, key)
    }

    /// Locks a key; gives where its row is, once no bulk change set and no large change has that undecided. `None`: not
    /// waited for ([`WaitPolicy::Skip`]).
    ///
    /// A row that another has deleted and not decided was marked without a lock (`txn/large.rs`): he is waited for.
    ///
    /// A batch is waited for only if there is no row: one that is there has the batch refused, whatever becomes of
    /// it (`bulk/check.rs`). Nobody waits for a batch that waits for him: who meets one right after he was granted a
    /// lock lets go of it first; who has looked under it before looks past batches, which came later or are refused.
    pub(super) async fn lock_settled(
        &mut self,
        tablet: &Arc<Tablet>,
        key: &Key,
        mode: RowLock,
        wait: WaitPolicy,
    ) -> Result<Option<Place>> {
        self.unlooked.extend(self.looking.take());
        let object = &*self.looking.insert(Object::row(tablet.id, key));
        let locks = &self.engine.locks;
        let mut stale = None;
        let place = loop {
            let behind = &mut self.granted_behind;
            let acquired = self.engine.lock(self.owner, object, Mode::from(mode), wait, behind).await?;
            if acquired == Acquired::Skipped {
                break None;
            }
            let has_looked = acquired == Acquired::Held && !self.unlooked.contains(object);
            let found = loop {
                let place = {
                    let _latch = tablet.latch.read();
                    match has_looked {
                        true => tablet.find_settled(key, self.id, &*self.engine.txns)?,
                        false => tablet.find(key, self.id, &*self.engine.txns)?,
                    }
                };
                if let Some(found) = settled(place, self.id, &self.engine.txns, &mut stale) {
                    break found;
                }
            };
            let undecided = match found {
                Settled::At(place) => {
                    // A row of an own batch is no lasting answer: ROLLBACK TO takes it away.
                    match matches!(&place, Place::Cold { file, .. } if file.undecided().is_some()) {
                        true => drop(self.unlooked.insert(object.clone())),
                        false if self.unlooked.is_empty() => {}
                        false => drop(self.unlooked.remove(object)),
                    }
                    break Some(place);
                }
                Settled::By(txn) => txn,
            };
            if acquired.is_first() {
                locks.release(self.owner, object);
            }
            let (ended, behind) = (Object::Txn(undecided), &mut self.granted_behind);
            if self.engine.lock(self.owner, &ended, Mode::ENDED, wait, behind).await? == Acquired::Skipped {
                break None;
            }
        };
        self.looking = None;
        Ok(place)
    }

    /// Whether a lock is held under which it was looked who has the key.
    pub(crate) fn has_looked(&self, object: &Object) -> bool {
        let in_doubt = self.looking.as_ref() == Some(object) || self.unlooked.contains(object);
        !in_doubt && self.engine.locks.holds(self.owner, object)
    }

    /// REPEATABLE READ: what changed after the snapshot cannot be changed again.
    pub(super) fn check_unchanged(&mut self, stamp: Stamp, what: &'static str) -> Result<()> {
        match self.version_of(stamp) {
            Some(version) if version > self.snapshot() => {
                self.note_met(version);
                match self.repeatable_read() && !basalt_sched::failpoint::is_weakened("first-updater") {
                    true => Err(Error::Serialization(what)),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// References of a row that this transaction has written before, which may never have held: constraints that are
    /// not validated are checked of such a row again, whatever changed (as in PostgreSQL).
    fn note_unproven(&mut self, table: &TableDef, tablet: &Tablet, key: &Key, values: &[Datum]) -> Result<()> {
        if table.foreign_keys.iter().all(|key| key.validated) {
            return Ok(());
        }
        let newest = tablet.find_settled(key, self.id, &*self.engine.txns)?;
        if let Place::Hot { stamp, .. } | Place::Cold { stamp, .. } = newest
            && self.version_of(stamp).is_none()
        {
            for key in table.foreign_keys.iter().filter(|key| !key.validated) {
                self.note_reference(table, key, values);
            }
        }
        Ok(())
    }

    /// The version behind a stamp; `None` for this transaction's own.
    pub(super) fn version_of(&self, stamp: Stamp) -> Option<basalt_types::Version> {
        match stamp.as_txn() {
            None => stamp.as_version(),
            Some(txn) => match self.engine.txns.state(txn) {
                TxnState::Committed(version) => Some(version),
                _ => None,
            },
        }
    }

    /// Inserts one row (all columns in column-id order, dropped ones null, checked and coerced by the
    /// caller). Waits for undecided writers of the same key.
    pub async fn insert(&mut self, table: &Arc<TableDef>, values: &[Datum]) -> Result<Inserted> {
        self.insert_unless(table, values, &[]).await
    }

    /// The same; if several unique indexes refuse the row, one of `arbiters` (by id; a primary key's constraint) says
    /// so first, if one of them does.
    pub async fn insert_unless(
        &mut self,
        table: &Arc<TableDef>,
        values: &[Datum],
        arbiters: &[ObjectId],
    ) -> Result<Inserted> {
        self.engine.admit().await?;
        let tablet = self.tablet(self.engine.route_row(table, values))?;
        let rid = tablet.take_region(1);
        let (key, keyed) = match table.key_of(values) {
            Some(key) => (key, true),
            None => (Key::hidden(rid), false),
        };
        let entries = self.engine.index_entries(table, values, tablet.id, &key, IndexDef::takes_entries)?;
        let key_is_arbiter = || table.primary_key.as_ref().is_some_and(|key| arbiters.contains(&key.constraint_id));
        let indexes_first = keyed && !arbiters.is_empty() && !key_is_arbiter();
        if indexes_first && let Some(taken) = self.claim_entries(&entries, arbiters).await? {
            return Ok(taken);
        }
        let known = match keyed {
            true => self.claim_key(&tablet, &key).await?,
            // Nobody has a row id that is new.
            false => Some(KnownPlace::in_no_file(tablet.view_id())),
        };
        if known.is_none() {
            return Ok(Inserted::Duplicate { tablet: tablet.id, key, index: None });
        }
        if !indexes_first && let Some(taken) = self.claim_entries(&entries, arbiters).await? {
            return Ok(taken);
        }
        self.put(table, &tablet, &key, rid, values, known.as_ref())?;
        self.put_entries(&entries, tablet.id, &key)?;
        self.note_row(table, None, Some(values));
        self.last_inserted = Some((tablet.id, key));
        Ok(Inserted::Done)
    }

    /// The row that [`Txn::insert`] wrote last.
    pub fn last_inserted(&self) -> Option<&(TabletId, Key)> {
        self.last_inserted.as_ref()
    }

    /// Locks a key for a new row, and gives where it may be put. `None`: a live row has it.
    pub(crate) async fn claim_key(&mut self, tablet: &Arc<Tablet>, key: &Key) -> Result<Option<KnownPlace>> {
        // Before it is looked: if nothing moves until the row is put, no file has the key then, either.
        let known = KnownPlace::in_no_file(tablet.view_id());
        let mut place = self.lock_settled(tablet, key, RowLock::Update, WaitPolicy::Skip).await?;
        if place.is_none() {
            if self.stands(tablet, key)? {
                return Ok(None);
            }
            place = self.lock_settled(tablet, key, RowLock::Update, self.wait).await?;
        }
        match place {
            Some(Place::Hot { stamp, .. } | Place::Cold { stamp, .. }) => {
                if let Some(version) = self.version_of(stamp) {
                    self.note_met(version);
                }
                Ok(None)
            }
            // A snapshot that still sees the deleted row would see two of one key.
            Some(Place::Deleted { stamp }) => self.check_unchanged(stamp, "delete").map(|()| Some(known)),
            _ => Ok(Some(known)),
        }
    }

    /// Whether a committed row, or one of its own, has the key, and whoever has locked it has changed nothing: there is
    /// nothing to wait for.
    fn stands(&mut self, tablet: &Arc<Tablet>, key: &Key) -> Result<bool> {
        let place = {
            let _latch = tablet.latch.read();
            tablet.find(key, self.id, &*self.engine.txns)?
        };
        let (Place::Hot { stamp, .. } | Place::Cold { stamp, .. }) = place else { return Ok(false) };
        if self.id.is_some() && stamp.as_txn() == self.id {
            return Ok(true);
        }
        let Some(version) = self.version_of(stamp) else { return Ok(false) };
        self.note_met(version);
        // It is read without a lock that would keep it there.
        self.note_key(tablet.id, key);
        Ok(true)
    }

    /// Logs and applies the newest version of a key whose lock is held. `known`: where the row was under that lock.
    pub(super) fn put(
        &mut self,
        table: &TableDef,
        tablet: &Arc<Tablet>,
        key: &Key,
        rid: Rid,
        values: &[Datum],
        known: Option<&KnownPlace>,
    ) -> Result<()> {
        let txn = self.writer()?;
        assert_eq!(table.columns.len(), values.len(), "a row has one value per column");
        let mut encoded = Vec::new();
        row::encode_as(table.each_phys_type(), values, &mut encoded);
        let mut head = Vec::with_capacity(key.0.len() + 40);
        record::put_head(&mut head, txn, tablet.id, PutRow { rid, key: key.as_bytes(), row: &encoded });
        self.log_operation(&[&head, &encoded])?;
        let engine = self.engine.clone();
        let _latch = tablet.latch.read();
        let _whole = engine.whole("change of rows");
        self.mark_cold(txn, tablet, key, known)?;
        let spot = known.map_or(Spot::UNKNOWN, |known| known.spot);
        let spot = tablet.hot.put_at(spot, key.as_bytes(), &encoded, rid, txn, self.seq());
        self.engine.background.note_written(&self.engine, key.0.len() + encoded.len());
        self.push_change(Change::Hot { tablet: tablet.clone(), key: key.clone(), spot });
        Ok(())
    }

    /// Marks the cold row of this key, if that is where its newest version is. `known`: where it was under its lock,
    /// which spares the search unless it has moved, or this transaction itself has marked it. The caller holds the latch
    /// and the row's lock. True if there was one.
    fn mark_cold(&mut self, txn: TxnId, tablet: &Arc<Tablet>, key: &Key, known: Option<&KnownPlace>) -> Result<bool> {
        match known.filter(|known| tablet.is_current(known.view)).map(|known| &known.cold) {
            Some(None) => return Ok(false),
            Some(Some((file, ordinal))) if self.mark(txn, tablet, key, file, *ordinal).is_ok() => return Ok(true),
            _ => {}
        }
        let Place::Cold { file, ordinal, .. } = tablet.find_settled(key, Some(txn), &*self.engine.txns)? else {
            return Ok(false);
        };
        self.mark(txn, tablet, key, &file, ordinal).map_err(|other| {
            Error::Internal(format!("row {key:?} of {} is locked by {txn} but marked by {other:?}", tablet.id))
        })?;
        Ok(true)
    }

    /// Marks a row of a file as deleted, unless somebody has: whoever that was.
    fn mark(
        &mut self,
        txn: TxnId,
        tablet: &Arc<Tablet>,
        key: &Key,
        file: &Arc<FileEntry>,
        ordinal: u32,
    ) -> std::result::Result<(), Stamp> {
        file.deletes.mark(ordinal, Stamp::txn(txn), self.seq()).map_err(|other| other.stamp)?;
        self.push_change(Change::Mark { tablet: tablet.clone(), key: key.clone(), file: file.clone(), ordinal });
        Ok(())
    }

    /// Replaces a row that [`Txn::lock_row`] returned. A changed primary key moves the row; the new key
    /// may be a duplicate.
    pub async fn update(&mut self, table: &Arc<TableDef>, row: &CurrentRow, values: &[Datum]) -> Result<Inserted> {
        self.engine.admit().await?;
        let tablet = self.tablet(row.tablet)?;
        let new_key = table.key_of(values).unwrap_or_else(|| row.key.clone());
        let new_tablet = match table.primary_key.is_some() {
            true => self.tablet(self.engine.route_row(table, values))?,
            false => tablet.clone(),
        };
        let stays = new_key == row.key && new_tablet.id == tablet.id;
        let claimed = match stays {
            true => None,
            false => self.claim_key(&new_tablet, &new_key).await?,
        };
        if !stays && claimed.is_none() {
            return Ok(Inserted::Duplicate { tablet: new_tablet.id, key: new_key, index: None });
        }
        let old = match self.wants_old(table) {
            true => Some(self.values_of(table, row)?),
            false => None,
        };
        let changes = match &old {
            Some(old) if table.has_entries() => {
                // Where nothing changes there is nothing to encode, either.
                let touched = |index: &IndexDef| !stays || !index.is_untouched(old, values);
                let loses = |index: &IndexDef| index.loses_entries() && touched(index);
                let takes = |index: &IndexDef| index.takes_entries() && touched(index);
                let before = self.engine.index_entries(table, old, tablet.id, &row.key, loses)?;
                let before = self.present_entries(before, tablet.id, &row.key)?;
                let after = self.engine.index_entries(table, values, new_tablet.id, &new_key, takes)?;
                match self.change_entries(before, after, !stays).await? {
                    Ok(changes) => changes,
                    Err(taken) => return Ok(taken),
                }
            }
            _ => Vec::new(),
        };
        let known = old.as_deref().or((!row.values.is_empty()).then_some(&row.values[..]));
        self.note_row(table, known, Some(values));
        self.note_unproven(table, &tablet, &row.key, values)?;
        if stays {
            self.put(table, &tablet, &row.key, row.rid, values, row.place.as_ref())?;
            self.apply_entries(&changes, tablet.id, &row.key)?;
            return Ok(Inserted::Done);
        }
        self.remove(&tablet, &row.key, row.place.as_ref())?;
        if let Some(txn) = self.id {
            tablet.leave_forward(&row.key, txn, new_tablet.id, new_key.clone());
            self.push_change(Change::Forward { tablet: tablet.clone(), key: row.key.clone() });
        }
        let rid = new_tablet.take_region(1);
        self.put(table, &new_tablet, &new_key, rid, values, claimed.as_ref())?;
        self.apply_entries(&changes, new_tablet.id, &new_key)?;
        Ok(Inserted::Done)
    }

    /// Deletes a row that [`Txn::lock_row`] returned.
    pub async fn delete(&mut self, table: &Arc<TableDef>, row: &CurrentRow) -> Result<()> {
        self.engine.admit().await?;
        let tablet = self.tablet(row.tablet)?;
        if !self.wants_old(table) {
            return self.remove(&tablet, &row.key, row.place.as_ref());
        }
        let old = self.values_of(table, row)?;
        let entries = self.engine.index_entries(table, &old, tablet.id, &row.key, IndexDef::loses_entries)?;
        let entries = self.present_entries(entries, tablet.id, &row.key)?;
        self.lock_entries(&entries).await?;
        self.remove(&tablet, &row.key, row.place.as_ref())?;
        self.remove_entries(&entries)?;
        self.note_row(table, Some(&old), None);
        Ok(())
    }

    /// Logs and applies the deletion of a row whose lock is held. `known`: as in [`Txn::put`].
    pub(super) fn remove(&mut self, tablet: &Arc<Tablet>, key: &Key, known: Option<&KnownPlace>) -> Result<()> {
        let txn = self.writer()?;
        let mut bytes = Vec::with_capacity(key.0.len() + 24);
        record::delete(&mut bytes, txn, tablet.id, key.as_bytes());
        self.log_operation(&[&bytes])?;
        let engine = self.engine.clone();
        let _latch = tablet.latch.read();
        let _whole = engine.whole("change of rows");
        if !self.mark_cold(txn, tablet, key, known)? {
            let spot = known.map_or(Spot::UNKNOWN, |known| known.spot);
            let spot = tablet.hot.delete_at(spot, key.as_bytes(), txn, self.seq());
            self.push_change(Change::Hot { tablet: tablet.clone(), key: key.clone(), spot });
        }
        Ok(())
    }

    /// Puts a small batch into hot: keys claimed by the caller, in any order, all of one tablet.
    pub(crate) fn put_batch(&mut self, tablet: &Arc<Tablet>, rows: &[(Key, Rid, Vec<u8>)]) -> Result<()> {
        let txn = self.writer()?;
        let mut bytes = Vec::new();
        let borrowed = rows.iter().map(|(key, rid, row)| PutRow { rid: *rid, key: key.as_bytes(), row });
        record::batch(&mut bytes, txn, tablet.id, borrowed);
        self.log_operation(&[&bytes])?;
        let engine = self.engine.clone();
        let _latch = tablet.latch.read();
        let _whole = engine.whole("change of rows");
        for (key, rid, row) in rows {
            let spot = tablet.hot.put_at(Spot::UNKNOWN, key.as_bytes(), row, *rid, txn, self.seq());
            self.engine.background.note_written(&self.engine, key.0.len() + row.len());
            self.push_change(Change::Hot { tablet: tablet.clone(), key: key.clone(), spot });
        }
        Ok(())
    }
}

/// What somebody who has locked a key can make of its place.
pub(crate) enum Settled {
    At(Place),
    /// This transaction decides it.
    By(TxnId),
}

/// Who has deleted a row, and what has become of him, unless he has committed.
pub(crate) type Told = (Stamp, Option<TxnState>);

/// `None`: look again. `stale`: what was told last of a deletion.
///
/// A look goes into hot first and into files then, and what it has found is judged when the latch is free again. So a
/// deletion is told only where two looks have found the same: a writer under a lock that excludes only stronger ones may
/// have replaced the row between the first look's halves, and a large change may have listed what it replaces the row
/// with, and have committed, since.
pub(crate) fn settled(place: Place, own: Option<TxnId>, txns: &TxnTable, stale: &mut Option<Told>) -> Option<Settled> {
    let stamp = match place {
        Place::Pending { txn } => return Some(Settled::By(txn)),
        Place::Deleted { stamp } => stamp,
        place => return Some(Settled::At(place)),
    };
    let deleter = stamp.as_txn().filter(|txn| Some(*txn) != own);
    let told = match deleter.map(|txn| txns.state(txn)) {
        Some(TxnState::Committed(version)) => (Stamp::version(version), None),
        // If aborted: restamped, or taken back, and forgotten since it was read; or nobody ever does.
        state => (stamp, state),
    };
    let is_own = deleter.is_none() && stamp.as_version().is_none();
    if !is_own && stale.replace(told) != Some(told) {
        return None;
    }
    match (deleter, told) {
        (Some(txn), (_, Some(TxnState::Active))) => Some(Settled::By(txn)),
        (_, (stamp, _)) => Some(Settled::At(Place::Deleted { stamp })),
    }
}

/// The row id of a row in a file: kept only where it is the key.
fn rid_of(table: &TableDef, key: &Key) -> Rid {
    match table.primary_key {
        None => key.as_hidden().unwrap_or_default(),
        Some(_) => Rid(0),
    }
}

pub(crate) fn decode_row(table: &TableDef, bytes: &[u8], tablet: &Tablet, key: &Key) -> Result<Vec<Datum>> {
    crate::rows::decode(table, bytes).ok_or_else(|| damaged_row(tablet, key))
}

#[cold]
pub(crate) fn damaged_row(tablet: &Tablet, key: &Key) -> Error {
    Error::Corrupt(format!("hot row {key:?} of tablet {} does not fit its table", tablet.id))
}
