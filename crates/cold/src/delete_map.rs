//! Which rows of a file are deleted, by whom, and since when.
//!
//! A mark is a row's delete stamp: undecided while its transaction runs, then a version. Marks that every
//! reader sees (version at or below the horizon) lose their stamp and move into a compressed base bitmap.
//! The map only grows until the file is compacted away; a mark leaves it again only when its transaction
//! rolls back.
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

#[derive(Clone, Default)]
struct Inner {
    base: RoaringBitmap,
    marks: BTreeMap<u32, (Stamp, u32)>,
}

impl Inner {
    fn status(&self, ordinal: u32) -> Option<(Stamp, u32)> {
        match self.marks.get(&ordinal) {
            Some(mark) => Some(*mark),
            None => self.base.contains(ordinal).then_some((Stamp::version(Version::ZERO), 0)),
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
        inner.marks.insert(ordinal, (stamp, seq));
        self.count.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Takes back a mark of a transaction that rolls back. False if the row carries no mark of it.
    pub fn unmark(&self, ordinal: u32, txn: TxnId) -> bool {
        let mut inner = self.inner.write();
        let own = inner.marks.get(&ordinal).is_some_and(|(stamp, _)| stamp.as_txn() == Some(txn));
        if own {
            inner.marks.remove(&ordinal);
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        own
    }

    /// Gives a committed transaction's mark its version. False if the row carries no mark of it.
    pub fn restamp(&self, ordinal: u32, txn: TxnId, version: Version) -> bool {
        let mut inner = self.inner.write();
        match inner.marks.get_mut(&ordinal) {
            Some(mark) if mark.0.as_txn() == Some(txn) => {
                *mark = (Stamp::version(version), 0);
                true
            }
            _ => false,
        }
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
        for (&ordinal, &(stamp, seq)) in inner.marks.range(ordinals.clone()) {
            if read.sees(stamp, seq, txns) {
                delete(ordinal);
            }
        }
        live.map(|mut live| live.finish())
    }

    /// Folds marks decided at or below `horizon`, which no reader predates, into the base.
    pub fn prune(&self, horizon: Version) {
        let mut inner = self.inner.write();
        let Inner { base, marks } = &mut *inner;
        marks.retain(|&ordinal, (stamp, _)| match stamp.as_version() {
            Some(version) if version <= horizon => {
                base.insert(ordinal);
                false
            }
            _ => true,
        });
    }

    /// Every mark at this instant, by ordinal; folded ones with version 0.
    pub fn marks(&self) -> Vec<Mark> {
        let inner = self.inner.read();
        let folded = inner.base.iter().map(|ordinal| Mark { ordinal, stamp: Stamp::version(Version::ZERO), seq: 0 });
        let stamped = inner.marks.iter().map(|(&ordinal, &(stamp, seq))| Mark { ordinal, stamp, seq });
        let mut marks: Vec<Mark> = folded.chain(stamped).collect();
        marks.sort_unstable_by_key(|mark| mark.ordinal);
        marks
    }

    /// The map as of `at`: marks decided at or below it. A mark whose transaction has committed but which
    /// was not restamped yet counts with its version.
    pub fn to_bytes(&self, at: Version, txns: &dyn TxnStates) -> Vec<u8> {
        let inner = self.inner.read();
        let mut out = vec![0; 4];
        inner.base.serialize_into(&mut out).expect("a vector takes all bytes");
        let base_bytes = (out.len() - 4) as u32;
        out[..4].copy_from_slice(&base_bytes.to_le_bytes());
        let decided: Vec<(u32, Version)> = (inner.marks.iter())
            .filter_map(|(&ordinal, &(stamp, _))| Some((ordinal, decided_version(stamp, txns)?)))
            .filter(|(_, version)| *version <= at)
            .collect();
        varint::put(&mut out, decided.len() as u64);
        let mut previous = 0;
        for (ordinal, version) in decided {
            varint::put(&mut out, u64::from(ordinal - previous));
            varint::put(&mut out, version.0);
            previous = ordinal;
        }
        let crc = crc32c::crc32c(&out);
        out.extend(crc.to_le_bytes());
        out
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
        let map = DeleteMap { inner: RwLock::new(Inner { base, marks }), count };
        map.prune(horizon);
        Ok(map)
    }

    /// An estimate of the memory held.
    pub fn memory_bytes(&self) -> u64 {
        let inner = self.inner.read();
        inner.base.serialized_size() as u64 + inner.marks.len() as u64 * 32
    }
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
