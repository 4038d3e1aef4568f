//! Which rows of a file are deleted, by whom, and since when.
//!
//! A mark is a row's delete stamp: undecided while its transaction runs, then a version. Marks that every
//! reader sees (version at or below the horizon) lose their stamp and move into a compressed base bitmap.
//! The map only grows until the file is compacted away; a mark leaves it again only when its transaction
//! rolls back. A compaction watches its inputs: what changes while it works is noted, so that the last step,
//! during which nobody may mark, has only that to look at.
//!
//! Marks that one statement makes of very many rows are kept as a bitmap with one stamp ([`DeleteMap::mark_many`]).
//!
//! The latch is held for a few operations, or for a chunk of marks: writers of other rows wait for it.
//!
//! Bytes (`docs/format/segment.md`): `u32 length of base | roaring bitmap | varint marks | (varint ordinal
//! distance, varint version)… | crc32c of all before`.

use crate::{Error, Result};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder};
use basalt_types::{ReadAt, Stamp, TxnId, TxnState, TxnStates, Version, varint};
use parking_lot::RwLock;
use roaring::RoaringBitmap;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// One deletion. `seq` is the statement of the deleting transaction, 0 once decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark {
    pub ordinal: u32,
    pub stamp: Stamp,
    pub seq: u32,
}

/// The row already carries a mark, maybe of a transaction that is still undecided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AlreadyMarked {
    pub stamp: Stamp,
    pub seq: u32,
}

#[derive(Default)]
pub struct DeleteMap {
    inner: RwLock<Inner>,
    /// Marks and base together; readers look here first, since most files have no deletions.
    count: AtomicU64,
}

/// Marks that one hold of the latch looks at.
const CHUNK_MARKS: usize = 4096;

struct Inner {
    base: RoaringBitmap,
    marks: BTreeMap<u32, (Stamp, u32)>,
    /// Marks made many at a time; none of them is in `marks` or `base`, or twice in here.
    many: Vec<Many>,
    /// How many of `marks` are undecided.
    undecided: u64,
    /// No decided mark of `marks` or `many` is below.
    least: Version,
    /// Ordinals marked, unmarked or restamped since they were asked for last, if somebody watches.
    changed: Option<RoaringBitmap>,
}

/// Marks with one stamp. Not empty.
struct Many {
    stamp: Stamp,
    seq: u32,
    ordinals: RoaringBitmap,
}

impl Default for Inner {
    fn default() -> Inner {
        let (base, marks, many) = (RoaringBitmap::new(), BTreeMap::new(), Vec::new());
        Inner { base, marks, many, undecided: 0, least: Version::MAX, changed: None }
    }
}

impl Inner {
    fn new(base: RoaringBitmap, marks: BTreeMap<u32, (Stamp, u32)>) -> Inner {
        let mut inner = Inner { base, ..Inner::default() };
        for (ordinal, mark) in marks {
            inner.put(ordinal, mark);
        }
        inner
    }

    fn put(&mut self, ordinal: u32, mark: (Stamp, u32)) {
        match mark.0.as_version() {
            Some(version) => self.least = self.least.min(version),
            None => self.undecided += 1,
        }
        self.marks.insert(ordinal, mark);
        self.changed.as_mut().map(|changed| changed.insert(ordinal));
    }

    fn take(&mut self, ordinal: u32) {
        if let Some((stamp, _)) = self.marks.remove(&ordinal) {
            self.undecided -= u64::from(stamp.as_version().is_none());
            self.changed.as_mut().map(|changed| changed.insert(ordinal));
        }
    }

    fn status(&self, ordinal: u32) -> Option<(Stamp, u32)> {
        if let Some(mark) = self.marks.get(&ordinal) {
            return Some(*mark);
        }
        if let Some(many) = self.many.iter().find(|many| many.ordinals.contains(ordinal)) {
            return Some((many.stamp, many.seq));
        }
        self.base.contains(ordinal).then_some((Stamp::version(Version::ZERO), 0))
    }

    fn put_many(&mut self, ordinals: RoaringBitmap, stamp: Stamp, seq: u32) {
        if ordinals.is_empty() {
            return;
        }
        if let Some(version) = stamp.as_version() {
            self.least = self.least.min(version);
        }
        self.note_changed(&ordinals);
        match self.many.iter_mut().find(|many| (many.stamp, many.seq) == (stamp, seq)) {
            Some(many) => many.ordinals |= ordinals,
            None => self.many.push(Many { stamp, seq, ordinals }),
        }
    }

    /// Takes those of the ordinals out that `txn` has marked many at a time.
    fn take_many(&mut self, ordinals: &RoaringBitmap, txn: TxnId) -> RoaringBitmap {
        let mut taken = RoaringBitmap::new();
        for many in self.many.iter_mut().filter(|many| many.stamp.as_txn() == Some(txn)) {
            taken |= &many.ordinals & ordinals;
            many.ordinals -= ordinals;
        }
        self.many.retain(|many| !many.ordinals.is_empty());
        self.note_changed(&taken);
        taken
    }

    fn note_changed(&mut self, ordinals: &RoaringBitmap) {
        if let Some(changed) = &mut self.changed {
            *changed |= ordinals;
        }
    }
}

impl DeleteMap {
    pub fn new() -> DeleteMap {
        DeleteMap::default()
    }

    /// Marked rows, whoever sees the marks.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Deletes a row for `stamp`. Fails without a change if it carries a mark already.
    pub fn mark(&self, ordinal: u32, stamp: Stamp, seq: u32) -> Result<(), AlreadyMarked> {
        let mut inner = self.inner.write();
        if let Some((stamp, seq)) = inner.status(ordinal) {
            return Err(AlreadyMarked { stamp, seq });
        }
        inner.put(ordinal, (stamp, seq));
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Takes back a mark of a transaction that rolls back. False if the row carries no mark of it.
    pub fn unmark(&self, ordinal: u32, txn: TxnId) -> bool {
        let mut inner = self.inner.write();
        let own = inner.marks.get(&ordinal).is_some_and(|(stamp, _)| stamp.as_txn() == Some(txn));
        if own {
            inner.take(ordinal);
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        own
    }

    /// Takes all marks away that a transaction made one at a time.
    pub fn unmark_all(&self, txn: TxnId) {
        let mut inner = self.inner.write();
        let own = inner.marks.iter().filter(|(_, (stamp, _))| stamp.as_txn() == Some(txn));
        let own: Vec<u32> = own.map(|(ordinal, _)| *ordinal).collect();
        own.iter().for_each(|ordinal| inner.take(*ordinal));
        self.count.fetch_sub(own.len() as u64, Ordering::AcqRel);
    }

    /// Gives a committed transaction's mark its version. False if the row carries no mark of it.
    pub fn restamp(&self, ordinal: u32, txn: TxnId, version: Version) -> bool {
        let mut inner = self.inner.write();
        let own = inner.marks.get(&ordinal).is_some_and(|(stamp, _)| stamp.as_txn() == Some(txn));
        if own {
            inner.take(ordinal);
            inner.put(ordinal, (Stamp::version(version), 0));
        }
        own
    }

    /// Deletes those of the rows that carry no mark, and gives them back. Kept as a bitmap: undone and decided the same
    /// way, by [`unmark_many`](Self::unmark_many) and [`restamp_many`](Self::restamp_many).
    pub fn mark_many(&self, ordinals: &RoaringBitmap, stamp: Stamp, seq: u32) -> RoaringBitmap {
        let mut inner = self.inner.write();
        let mut fresh = ordinals - &inner.base;
        inner.many.iter().for_each(|many| fresh -= &many.ordinals);
        if let (Some(least), Some(greatest)) = (fresh.min(), fresh.max()) {
            let marked: Vec<u32> = inner.marks.range(least..=greatest).map(|(ordinal, _)| *ordinal).collect();
            for ordinal in marked {
                fresh.remove(ordinal);
            }
        }
        inner.put_many(fresh.clone(), stamp, seq);
        self.count.fetch_add(fresh.len(), Ordering::AcqRel);
        fresh
    }

    /// Takes marks back that a transaction made many at a time. How many there were.
    pub fn unmark_many(&self, ordinals: &RoaringBitmap, txn: TxnId) -> u64 {
        let mut inner = self.inner.write();
        let taken = inner.take_many(ordinals, txn).len();
        self.count.fetch_sub(taken, Ordering::AcqRel);
        taken
    }

    /// Gives marks that a transaction made many at a time its version. How many there were.
    pub fn restamp_many(&self, ordinals: &RoaringBitmap, txn: TxnId, version: Version) -> u64 {
        let mut inner = self.inner.write();
        let mut taken = inner.take_many(ordinals, txn);
        let count = taken.len();
        taken.optimize();
        inner.put_many(taken, Stamp::version(version), 0);
        count
    }

    /// Whether there are marks made many at a time that are not folded yet.
    pub fn has_many(&self) -> bool {
        self.count() > 0 && !self.inner.read().many.is_empty()
    }

    /// Gives a row exactly this mark, or none: for a map that its owner fills while nobody else marks in it.
    pub fn set(&self, ordinal: u32, mark: Option<(Stamp, u32)>) {
        let mut inner = self.inner.write();
        if inner.base.contains(ordinal) {
            return;
        }
        let before = inner.marks.contains_key(&ordinal);
        inner.take(ordinal);
        if let Some(mark) = mark {
            inner.put(ordinal, mark);
        }
        match (before, mark.is_some()) {
            (false, true) => drop(self.count.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(self.count.fetch_sub(1, Ordering::AcqRel)),
            _ => {}
        }
    }

    /// Marks of transactions that are not restamped, those apart that were made many at a time.
    pub fn undecided_count(&self) -> u64 {
        match self.count() {
            0 => 0,
            _ => self.inner.read().undecided,
        }
    }

    /// From now on changes are noted. One watcher at a time.
    pub fn watch(&self) {
        self.inner.write().changed = Some(RoaringBitmap::new());
    }

    pub fn unwatch(&self) {
        self.inner.write().changed = None;
    }

    /// How many ordinals [`take_changed`](Self::take_changed) would return.
    pub fn changed_count(&self) -> u64 {
        self.inner.read().changed.as_ref().map_or(0, RoaringBitmap::len)
    }

    /// Ordinals whose mark came, went or was decided since the watch began or this was last asked.
    pub fn take_changed(&self) -> RoaringBitmap {
        self.inner.write().changed.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The row's mark; version 0 for one that was folded into the base.
    pub fn status(&self, ordinal: u32) -> Option<(Stamp, u32)> {
        if self.count() == 0 {
            return None;
        }
        self.inner.read().status(ordinal)
    }

    pub fn is_deleted(&self, ordinal: u32, read: &ReadAt, txns: &dyn TxnStates) -> bool {
        if self.count() == 0 {
            return false;
        }
        // Asked under the latch: the mark cannot be restamped, and its writer retired, in between.
        let inner = self.inner.read();
        inner.status(ordinal).is_some_and(|(stamp, seq)| read.sees(stamp, seq, txns))
    }

    /// The rows of `ordinals` that are live for this reader, one bit per row; `None` if all are.
    pub fn live(&self, ordinals: Range<u32>, read: &ReadAt, txns: &dyn TxnStates) -> Option<BooleanBuffer> {
        if self.count() == 0 || ordinals.is_empty() {
            return None;
        }
        let inner = self.inner.read();
        let mut live: Option<BooleanBufferBuilder> = None;
        let mut delete = |ordinal: u32| {
            let rows = ordinals.len();
            let live = live.get_or_insert_with(|| {
                let mut all = BooleanBufferBuilder::new(rows);
                all.append_n(rows, true);
                all
            });
            live.set_bit((ordinal - ordinals.start) as usize, false);
        };
        inner.base.range(ordinals.clone()).for_each(&mut delete);
        for many in inner.many.iter().filter(|many| read.sees(many.stamp, many.seq, txns)) {
            many.ordinals.range(ordinals.clone()).for_each(&mut delete);
        }
        for (&ordinal, &(stamp, seq)) in inner.marks.range(ordinals.clone()) {
            if read.sees(stamp, seq, txns) {
                delete(ordinal);
            }
        }
        live.map(|mut live| live.finish())
    }

    /// Folds marks decided at or below `horizon`, which no reader predates, into the base.
    pub fn prune(&self, horizon: Version) {
        if self.count() == 0 || self.inner.read().least > horizon {
            return;
        }
        {
            let mut inner = self.inner.write();
            // What stays, and what comes meanwhile, lowers it again.
            inner.least = Version::MAX;
            let Inner { base, many, least, .. } = &mut *inner;
            many.retain(|many| match many.stamp.as_version() {
                Some(version) if version <= horizon => {
                    *base |= &many.ordinals;
                    false
                }
                Some(version) => {
                    *least = (*least).min(version);
                    true
                }
                None => true,
            });
        }
        let mut from = Some(0);
        while let Some(first) = from {
            let mut inner = self.inner.write();
            let chunk: Vec<(u32, Stamp)> =
                inner.marks.range(first..).take(CHUNK_MARKS).map(|(ordinal, (stamp, _))| (*ordinal, *stamp)).collect();
            from = chunk.last().filter(|_| chunk.len() == CHUNK_MARKS).and_then(|(last, _)| last.checked_add(1));
            for (ordinal, stamp) in chunk {
                match stamp.as_version() {
                    Some(version) if version <= horizon => {
                        inner.marks.remove(&ordinal);
                        inner.base.insert(ordinal);
                    }
                    Some(version) => inner.least = inner.least.min(version),
                    None => {}
                }
            }
        }
    }

    /// Rows whose deletion every reader sees, as of the last [`prune`](Self::prune).
    pub fn folded(&self) -> RoaringBitmap {
        self.inner.read().base.clone()
    }

    pub fn folded_count(&self) -> u64 {
        match self.count() {
            0 => 0,
            _ => self.inner.read().base.len(),
        }
    }

    /// Marks that carry a stamp, by ordinal, except those made many at a time. Others may mark, and fold, in between: whoever wants all of
    /// them takes these first and then [`folded`](Self::folded).
    pub fn stamped(&self) -> Vec<Mark> {
        let mut marks = Vec::new();
        let mut from = Some(0);
        while let Some(first) = from {
            let inner = self.inner.read();
            let before = marks.len();
            let chunk = inner.marks.range(first..).take(CHUNK_MARKS);
            marks.extend(chunk.map(|(&ordinal, &(stamp, seq))| Mark { ordinal, stamp, seq }));
            let full = marks.len() - before == CHUNK_MARKS;
            from = marks.last().filter(|_| full).and_then(|last| last.ordinal.checked_add(1));
        }
        marks
    }

    /// The map as of `at`: marks decided at or below it. A mark whose transaction has committed but which
    /// was not restamped yet counts with its version. Marks made many at a time count as folded: whoever reads the map
    /// again is past all of them.
    ///
    /// The caller pins `at`, so that nothing above it is folded, and all that was decided up to it is
    /// restamped or known to `txns`.
    pub fn to_bytes(&self, at: Version, txns: &dyn TxnStates) -> Vec<u8> {
        let many: Vec<RoaringBitmap> = {
            let inner = self.inner.read();
            let decided = |many: &&Many| decided_version(many.stamp, txns).is_some_and(|version| version <= at);
            inner.many.iter().filter(decided).map(|many| many.ordinals.clone()).collect()
        };
        let stamped = self.stamped();
        let mut base = self.folded();
        many.iter().for_each(|many| base |= many);
        let decided: Vec<(u32, Version)> = (stamped.iter())
            .filter_map(|mark| Some((mark.ordinal, decided_version(mark.stamp, txns)?)))
            .filter(|(ordinal, version)| *version <= at && !base.contains(*ordinal))
            .collect();
        encode(&base, &decided)
    }

    /// The bytes of a map in which exactly these rows are deleted, for every reader: at most an eighth of a
    /// byte per row of the file.
    pub fn bytes_of(deleted: &RoaringBitmap) -> Vec<u8> {
        encode(deleted, &[])
    }

    /// What [`to_bytes`](Self::to_bytes) wrote, for a file of `rows` rows; marks at or below `horizon` are
    /// folded at once.
    pub fn from_bytes(bytes: &[u8], rows: u32, horizon: Version) -> Result<DeleteMap> {
        let damaged = |offset: usize, what| Error::DamagedDeleteMap { offset, what };
        let body_len = bytes.len().checked_sub(4).ok_or(damaged(0, "shorter than its checksum"))?;
        let (body, crc) = bytes.split_at(body_len);
        if crc != crc32c::crc32c(body).to_le_bytes() {
            return Err(damaged(body_len, "checksum mismatch"));
        }
        let mut rest = body;
        let base = take_base(&mut rest).ok_or(damaged(0, "base bitmap"))?;
        let marks = take_marks(&mut rest).ok_or(damaged(body_len - rest.len(), "marks"))?;
        let last = base.max().max(marks.last_key_value().map(|(ordinal, _)| *ordinal));
        if last.is_some_and(|last| last >= rows) || marks.keys().any(|ordinal| base.contains(*ordinal)) {
            return Err(damaged(4, "a mark beyond the file's rows, or twice"));
        }
        let count = AtomicU64::new(base.len() + marks.len() as u64);
        let map = DeleteMap { inner: RwLock::new(Inner::new(base, marks)), count };
        map.prune(horizon);
        Ok(map)
    }

    /// An estimate of the memory held.
    pub fn memory_bytes(&self) -> u64 {
        let inner = self.inner.read();
        let many = inner.many.iter().map(|many| many.ordinals.serialized_size()).sum::<usize>();
        (inner.base.serialized_size() + many) as u64 + inner.marks.len() as u64 * 32
    }
}

fn encode(base: &RoaringBitmap, decided: &[(u32, Version)]) -> Vec<u8> {
    let mut out = vec![0; 4];
    base.serialize_into(&mut out).expect("a vector takes all bytes");
    let base_bytes = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&base_bytes.to_le_bytes());
    varint::put(&mut out, decided.len() as u64);
    let mut previous = 0;
    for (ordinal, version) in decided {
        varint::put(&mut out, u64::from(ordinal - previous));
        varint::put(&mut out, version.0);
        previous = *ordinal;
    }
    let crc = crc32c::crc32c(&out);
    out.extend(crc.to_le_bytes());
    out
}

fn decided_version(stamp: Stamp, txns: &dyn TxnStates) -> Option<Version> {
    match stamp.as_txn() {
        None => stamp.as_version(),
        Some(txn) => match txns.state(txn) {
            TxnState::Committed(version) => Some(version),
            TxnState::Active | TxnState::Aborted => None,
        },
    }
}

fn take_base(rest: &mut &[u8]) -> Option<RoaringBitmap> {
    let len = u32::from_le_bytes(varint::take_bytes(rest, 4)?.try_into().ok()?);
    RoaringBitmap::deserialize_from(varint::take_bytes(rest, usize::try_from(len).ok()?)?).ok()
}

fn take_marks(rest: &mut &[u8]) -> Option<BTreeMap<u32, (Stamp, u32)>> {
    let count = varint::take(rest)?;
    let mut marks = BTreeMap::new();
    let mut ordinal = 0u32;
    for _ in 0..count {
        ordinal = ordinal.checked_add(u32::try_from(varint::take(rest)?).ok()?)?;
        let version = varint::take(rest)?;
        if version > Version::MAX.0 || marks.insert(ordinal, (Stamp::version(Version(version)), 0)).is_some() {
            return None;
        }
    }
    rest.is_empty().then_some(marks)
}

#[cfg(test)]
mod tests;
