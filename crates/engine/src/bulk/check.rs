//! Whether the keys of a registered batch are new, compared with all that other writers have.
//!
//! Who wants to bring a key that has no row meets the batch and waits. Who has found a row there before, or finds
//! one, goes on; the batch must not miss that row wherever it moves meanwhile. So it looks for rows in hot, then
//! in files, and where one was replaced or deleted since the check began, once more for the key alone, under its
//! lock. Of two batches the one that was registered later waits for the other.

use crate::freeze::as_bytes;
use crate::locks::{Acquired, Mode, Object};
use crate::tablet::{FileEntry, Place, Tablet};
use crate::txn::{Settled, settled};
use crate::{Error, Result, RowLock, Txn};
use basalt_hot::{Reader, Rows};
use basalt_types::{FileId, Key, ReadAt, TableDef, TxnId, TxnState, TxnStates, Version};
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

const CHUNK_ROWS: usize = 1024;
/// Files of overlapping keys that are compared one by one; more are asked through the locator.
const COMPARED_MAX: usize = 3;

/// Waits for writers of the same keys and fails if one of them commits a row.
pub(super) async fn keys_are_new(
    txn: &mut Txn,
    table: &TableDef,
    tablet: &Arc<Tablet>,
    files: &[Arc<FileEntry>],
) -> Result<()> {
    let looked = look_for_keys(txn, table, tablet, files).await;
    // Most of it without locks: what was found, or found deleted, may not be published yet, and the next snapshot has to
    // see it. Behind a turn, all is decided that was seen to be.
    let last = txn.engine.order.take_turn().last();
    txn.note_met(last);
    looked
}

async fn look_for_keys(txn: &mut Txn, table: &TableDef, tablet: &Arc<Tablet>, files: &[Arc<FileEntry>]) -> Result<()> {
    let began = txn.engine.published();
    let duplicate = |key: &[u8]| Error::DuplicateKey { table: table.id, key: Key::from(key) };
    for key in txn.engine.locks.foreign_row_locks(txn.owner, tablet.id) {
        if contains(files, key.as_bytes())? {
            let object = Object::row(tablet.id, &key);
            // Before: the wait may be canceled when the lock has been granted.
            if !txn.engine.locks.holds(txn.owner, &object) {
                txn.unlooked.insert(object.clone());
            }
            let acquired = lock(txn, &object, Mode::from(RowLock::Update)).await?;
            // Nobody waits here for another who may want this. Whoever takes it from now on meets this batch if there is
            // no row.
            if acquired.is_first() {
                txn.engine.locks.release(txn.owner, &object);
                txn.unlooked.remove(&object);
            }
        }
    }
    let newest = ReadAt { snapshot: Version::MAX, own: txn.id(), seq: u32::MAX };
    for file in files {
        if let Some(key) = found_in_hot(txn, tablet, file, newest)? {
            return Err(duplicate(key.as_bytes()));
        }
        // Deleted meanwhile: a snapshot that still sees the row would see two of one key.
        let seen = ReadAt { snapshot: txn.snapshot(), ..newest };
        if txn.repeatable_read() && found_in_hot(txn, tablet, file, seen)?.is_some() {
            return Err(Error::Serialization("delete"));
        }
        let mut others = tablet.view().files.clone();
        let before_it = others.iter().take_while(|other| other.id() != file.id());
        let earlier = before_it.filter(|other| other.undecided().is_some()).map(|other| other.id()).collect();
        others.retain(|other| other.id() != file.id() && ranges_meet(file, other));
        let mut check = Check { txn, tablet, began, earlier };
        let found = match others.len() <= COMPARED_MAX {
            true => found_in_files(&mut check, file, &others).await?,
            false => found_by_locator(&mut check, file).await?,
        };
        if let Some(key) = found {
            return Err(duplicate(key.as_bytes()));
        }
    }
    Ok(())
}

struct Check<'a> {
    txn: &'a mut Txn,
    tablet: &'a Arc<Tablet>,
    /// All up to this version was published when the batch's files could be seen.
    began: Version,
    /// Files of batches that were registered before and were undecided then.
    earlier: HashSet<FileId>,
}

async fn found_in_files(check: &mut Check<'_>, file: &FileEntry, others: &[Arc<FileEntry>]) -> Result<Option<Key>> {
    for other in others {
        if let Some(key) = found_in_file(check, file, other).await? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

/// A key of `file` that is live in another file. Whoever registers a file, or takes a row into hot, after
/// `file` was registered meets it there and waits: any view since will do.
async fn found_by_locator(check: &mut Check<'_>, file: &FileEntry) -> Result<Option<Key>> {
    let tablet = check.tablet;
    tablet.fill_locator(&check.txn.engine.locators, &|| false)?;
    let mut at = 0;
    while at < file.data.rows() {
        let until = file.data.rows().min(at + CHUNK_ROWS as u32);
        let keys = file.data.keys(at..until)?;
        let mut places = Vec::new();
        let view = tablet.view();
        for (ordinal, key) in (at..).zip(keys.iter()) {
            for place in tablet.places(&view, key) {
                let (position, place) = place?;
                let other = &view.files[position];
                if other.id() != file.id() || place != ordinal {
                    places.push((Key::from(key), other.clone(), place));
                }
            }
        }
        drop(view);
        for (key, other, place) in places {
            if check.is_live(&other, place, &key).await? {
                return Ok(Some(key));
            }
        }
        at = until;
        tokio::task::yield_now().await;
    }
    Ok(None)
}

fn contains(files: &[Arc<FileEntry>], key: &[u8]) -> Result<bool> {
    for file in files {
        if !file.data.find(key)?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A key of `file` that a hot row has which `at` sees. Undecided foreign rows hold row locks, which were
/// waited for.
fn found_in_hot(txn: &Txn, tablet: &Arc<Tablet>, file: &FileEntry, at: ReadAt) -> Result<Option<Key>> {
    let Some((least, greatest)) = file.data.key_range() else { return Ok(None) };
    let mut from = Bound::Included(least.clone());
    let to = Bound::Included(greatest.as_bytes());
    let mut rows = Rows::new();
    let view = tablet.view();
    loop {
        rows.clear();
        let reader = Reader { at, view: view.number, txns: &*txn.engine.txns };
        let last = tablet.hot.scan(as_bytes(&from), to, &reader, CHUNK_ROWS, &mut rows);
        for row in rows.iter() {
            if !file.data.find(row.key)?.is_empty() {
                return Ok(Some(Key::from(row.key)));
            }
        }
        match last {
            Some(last) => from = Bound::Excluded(last),
            None => return Ok(None),
        }
    }
}

fn ranges_meet(a: &FileEntry, b: &FileEntry) -> bool {
    match (a.data.key_range(), b.data.key_range()) {
        (Some((a_least, a_greatest)), Some((b_least, b_greatest))) => a_least <= b_greatest && b_least <= a_greatest,
        _ => false,
    }
}

/// A key of `file` that is live in `other`. Waits for `other`'s transaction if that decides it.
async fn found_in_file(check: &mut Check<'_>, file: &FileEntry, other: &FileEntry) -> Result<Option<Key>> {
    let (Some((least, greatest)), Some((from, to))) = (other.data.key_range(), file.data.key_range()) else {
        return Ok(None);
    };
    let (begin, end) = (least.max(from), greatest.min(to));
    let is_sorted = file.data.is_sorted();
    let mut at = if is_sorted { file.data.lower_bound(begin.as_bytes())? } else { 0 };
    'chunks: while at < file.data.rows() {
        let until = file.data.rows().min(at + CHUNK_ROWS as u32);
        let keys = file.data.keys(at..until)?;
        for key in keys.iter() {
            if is_sorted && key > end.as_bytes() {
                break 'chunks;
            }
            if key < begin.as_bytes() || key > end.as_bytes() {
                continue;
            }
            for ordinal in other.data.find(key)? {
                let key = Key::from(key);
                if check.is_live(other, ordinal, &key).await? {
                    return Ok(Some(key));
                }
            }
        }
        at = until;
        // Comparing may take long: others on this thread go on in between.
        tokio::task::yield_now().await;
    }
    Ok(None)
}

impl Check<'_> {
    /// Whether a row that another writer made is there for good, or another of its key. Waits until that is decided.
    async fn is_live(&mut self, file: &FileEntry, ordinal: u32, key: &Key) -> Result<bool> {
        if let Some(other) = file.undecided()
            && Some(other) != self.txn.id()
        {
            // A later batch waits for this one, and so does one that waits for a lock held here.
            if !self.earlier.contains(&file.id()) || self.txn.has_looked(&Object::row(self.tablet.id, key)) {
                return Ok(false);
            }
            self.wait_for(other).await?;
            // Restamped on commit; on rollback it left the view with its stamp unchanged, and its transaction may
            // have brought the key back since.
            if file.undecided().is_some() {
                return self.is_taken(key).await;
            }
        }
        let Some((stamp, _)) = file.deletes.status(ordinal) else { return Ok(true) };
        let deleted = match stamp.as_txn() {
            None => stamp.as_version(),
            Some(deleter) if Some(deleter) == self.txn.id() => return Ok(false),
            Some(deleter) => match self.txn.engine.txns.state(deleter) {
                TxnState::Committed(version) => Some(version),
                _ => {
                    // A merge may have replaced the file meanwhile; then nobody settles its marks any more.
                    self.wait_for(deleter).await?;
                    None
                }
            },
        };
        // Before the check began: what came in its place is where the check looks.
        let is_old = deleted.is_some_and(|deleted| deleted <= self.began);
        if !is_old && self.is_taken(key).await? {
            return Ok(true);
        }
        deleted_for(self.txn, file, ordinal)
    }

    /// Whether the key has a row now, those of undecided batches apart.
    async fn is_taken(&mut self, key: &Key) -> Result<bool> {
        let object = Object::row(self.tablet.id, key);
        let mut stale = None;
        loop {
            if !self.txn.engine.locks.holds(self.txn.owner, &object) {
                self.txn.unlooked.insert(object.clone());
            }
            let acquired = lock(self.txn, &object, Mode::from(RowLock::Update)).await?;
            let place = {
                let _latch = self.tablet.latch.read();
                self.tablet.find_beside_batches(key, self.txn.id(), &*self.txn.engine.txns)?
            };
            // Whoever takes it from now on meets this batch if there is no row.
            if acquired.is_first() {
                self.txn.engine.locks.release(self.txn.owner, &object);
                self.txn.unlooked.remove(&object);
            }
            match settled(place, self.txn.id(), &self.txn.engine.txns, &mut stale) {
                Some(Settled::At(place)) => return Ok(matches!(place, Place::Hot { .. } | Place::Cold { .. })),
                // Marked in the large way, without a lock.
                Some(Settled::By(txn)) => self.wait_for(txn).await?,
                None => {}
            }
        }
    }

    async fn wait_for(&mut self, other: TxnId) -> Result<()> {
        lock(self.txn, &Object::Txn(other), Mode::ENDED).await.map(|_| ())
    }
}

async fn lock(txn: &mut Txn, object: &Object, mode: Mode) -> Result<Acquired> {
    txn.engine.lock(txn.owner, object, mode, txn.wait, &mut txn.granted_behind).await
}

/// A row that is deleted for good is not live; under REPEATABLE READ it must not be seen either.
fn deleted_for(txn: &Txn, file: &FileEntry, ordinal: u32) -> Result<bool> {
    let at = ReadAt { snapshot: txn.snapshot(), own: txn.id(), seq: u32::MAX };
    let txns = &*txn.engine.txns;
    let seen = file.sees_row(ordinal, &at, txns)? && !file.deletes.is_deleted(ordinal, &at, txns);
    match seen && txn.repeatable_read() {
        true => Err(Error::Serialization("delete")),
        false => Ok(false),
    }
}
