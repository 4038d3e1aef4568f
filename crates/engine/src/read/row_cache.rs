//! Rows of files that are asked for by key again and again, as rows: one look instead of a search in files and a value
//! from each column's page (DESIGN 10; Hologres 3.5).
//!
//! Invariants:
//! 1. What a view's files have of a key never changes. So an entry names the view that it was read through, and is for
//!    readers of that view alone: whatever moves rows makes a new view, and nobody has to throw entries out.
//! 2. An entry is the first row that a search in the view's files meets (the one of the latest file). Whether a reader
//!    sees it, and whether it is marked deleted, is asked at each look, as of a row that was just found. Who does not see
//!    it searches the files.
//! 3. An entry is what a file says, not what its reader makes of it: it ends behind the last column that the file has.
//!    Those that were added later each reader fills in as his catalog says. A column that was added and rolled back leaves
//!    nothing here.
//! 4. An entry has the columns that it says. Who wants others, through the same view, reads those of both, so that they
//!    replace it.
//! 5. A row is let in when its key is missed for the second time within some thousand misses: a walk through more rows
//!    than there is room for leaves the cache as it is. What cannot be kept is remembered, too, and not tried again.

use basalt_types::{ColumnId, TabletId, Version};
use hashbrown::HashTable;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Bytes of a shard, if there are fewer than [`SHARDS_MAX`]: enough for some hundred rows, so that those who read hardly
/// ever meet, and that one is found to be put out that nobody asks for.
const SHARD_BYTES: usize = 128 << 10;
const SHARDS_MAX: usize = 1024;
/// A longer row, with its key, is not kept.
const ROW_BYTES_MAX: usize = 4 << 10;
/// Misses that a shard remembers, and those of which a new one takes a place.
const MISSES: usize = 1024;
const MISSES_TOGETHER: usize = 4;
/// Of an entry's place in a shard's table, and what lists have to spare.
const SLOT_BYTES: usize = 24;

pub(crate) type Columns = SmallVec<[ColumnId; 4]>;

pub(crate) struct RowCache {
    shards: Box<[Shard]>,
    /// Of the entries of a shard.
    shard_bytes_max: usize,
    hasher: ahash::RandomState,
}

/// A row that is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub tablet: TabletId,
    /// The id of the view that the reader has.
    pub view: u64,
    pub key: &'a [u8],
    /// Ascending.
    pub columns: &'a [ColumnId],
}

/// Where a row was read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Origin {
    /// Of the file in the view.
    pub position: u32,
    pub ordinal: u32,
    /// The row's own, where rows of the file have some.
    pub stamp: Option<Version>,
}

/// Who missed a row may bring it, or say that it cannot be kept.
pub(crate) struct Admission {
    /// What is to be read of it, ascending.
    pub columns: Columns,
    hash: u64,
}

#[derive(Default)]
struct Shard {
    entries: RwLock<Entries>,
    /// Parts of hashes of keys that were missed.
    missed: Mutex<Box<[u16]>>,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Default)]
struct Entries {
    /// Indexes of `list`.
    table: HashTable<u32>,
    list: Vec<Entry>,
    bytes: usize,
    /// Where the next victim is looked for.
    hand: usize,
}

struct Entry {
    hash: u64,
    view: u64,
    tablet: TabletId,
    /// `None`: it cannot be kept.
    origin: Option<Origin>,
    columns: Columns,
    /// The key, then the row.
    bytes: Box<[u8]>,
    key_len: u32,
    /// Since the hand passed.
    was_asked: AtomicBool,
    /// With more columns it could not be kept.
    is_full: bool,
}

/// For `basalt.memory` and `basalt.counters`.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct RowCacheStats {
    pub rows: u64,
    pub bytes: u64,
    pub bytes_max: u64,
    pub hits: u64,
    pub misses: u64,
}

impl RowCache {
    /// `bytes_max` 0: it keeps nothing.
    pub fn new(bytes_max: u64) -> RowCache {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let shards = match bytes_max {
            0 => 0,
            // The greatest power of two that is not greater.
            bytes => 1 << (bytes / SHARD_BYTES).clamp(1, SHARDS_MAX).ilog2(),
        };
        RowCache {
            shards: (0..shards).map(|_| Shard::default()).collect(),
            shard_bytes_max: bytes_max.checked_div(shards).unwrap_or(0).saturating_sub(MISSES * size_of::<u16>()),
            hasher: ahash::RandomState::new(),
        }
    }

    /// Calls `look`, under a shared latch, with the row if it is here; `look` says whether its reader sees it. `Err`: it
    /// takes a search, of which may be told here what it found.
    pub fn look<R>(
        &self,
        asked: &Asked<'_>,
        look: impl FnOnce(Origin, &[u8]) -> Option<R>,
    ) -> Result<R, Option<Admission>> {
        if self.shards.is_empty() {
            return Err(None);
        }
        let hash = self.hash(asked.tablet, asked.key);
        let shard = self.shard(hash);
        let entries = shard.entries.read();
        let missed = |admission| {
            shard.misses.fetch_add(1, Ordering::Relaxed);
            Err(admission)
        };
        let Some(entry) = entries.find(hash, asked.tablet, asked.key).map(|at| &entries.list[at]) else {
            drop(entries);
            let is_wanted = shard.misses_again(hash);
            return missed(is_wanted.then(|| Admission { columns: asked.columns.into(), hash }));
        };
        if entry.view != asked.view {
            return missed(Some(Admission { columns: asked.columns.into(), hash }));
        }
        let Some(origin) = entry.origin else {
            entry.ask();
            return missed(None);
        };
        if !has_all(&entry.columns, asked.columns) {
            return missed((!entry.is_full).then(|| Admission { columns: both(&entry.columns, asked.columns), hash }));
        }
        match look(origin, entry.row()) {
            Some(seen) => {
                entry.ask();
                shard.hits.fetch_add(1, Ordering::Relaxed);
                Ok(seen)
            }
            None => missed(None),
        }
    }

    /// Keeps the first row that a view's files have of a key, in row format. `None`, or one that is too long: it is
    /// remembered that it cannot be kept.
    pub fn keep(&self, asked: &Asked<'_>, admission: Admission, row: Option<(Origin, &[u8])>) {
        let row = row.filter(|(_, row)| asked.key.len() + row.len() <= ROW_BYTES_MAX);
        if row.is_none() && asked.key.len() > ROW_BYTES_MAX {
            return;
        }
        let Admission { columns, hash } = admission;
        let entry = Entry {
            hash,
            view: asked.view,
            tablet: asked.tablet,
            origin: row.map(|(origin, _)| origin),
            columns,
            bytes: [asked.key, row.map_or(&[], |(_, row)| row)].concat().into(),
            key_len: asked.key.len() as u32,
            was_asked: AtomicBool::new(false),
            is_full: false,
        };
        self.shard(hash).entries.write().put(entry, self.shard_bytes_max);
    }

    pub fn stats(&self) -> RowCacheStats {
        let mut stats = RowCacheStats::default();
        for shard in &self.shards {
            let entries = shard.entries.read();
            stats.rows += entries.list.len() as u64;
            stats.bytes += entries.bytes as u64;
            stats.hits += shard.hits.load(Ordering::Relaxed);
            stats.misses += shard.misses.load(Ordering::Relaxed);
        }
        stats.bytes_max = (self.shard_bytes_max * self.shards.len()) as u64;
        stats
    }

    fn hash(&self, tablet: TabletId, key: &[u8]) -> u64 {
        self.hasher.hash_one((tablet, key))
    }

    fn shard(&self, hash: u64) -> &Shard {
        // The table of a shard takes the lowest bits, and the highest.
        &self.shards[(hash >> 40) as usize & (self.shards.len() - 1)]
    }
}

impl Shard {
    /// Whether a key that is missed was missed lately.
    fn misses_again(&self, hash: u64) -> bool {
        let mut missed = self.missed.lock();
        if missed.is_empty() {
            *missed = vec![0; MISSES].into();
        }
        let set = (hash >> 16) as usize % (MISSES / MISSES_TOGETHER) * MISSES_TOGETHER;
        let set = &mut missed[set..set + MISSES_TOGETHER];
        // Never 0, which is nobody.
        let mark = hash as u16 | 1;
        if let Some(known) = set.iter_mut().find(|known| **known == mark) {
            *known = 0;
            return true;
        }
        // Not in turn: of keys that come in turn, each would forget the next one.
        let turn = self.misses.load(Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        set[turn as usize % MISSES_TOGETHER] = mark;
        false
    }
}

impl Entries {
    fn find(&self, hash: u64, tablet: TabletId, key: &[u8]) -> Option<usize> {
        let is_this = |at: &u32| {
            let entry = &self.list[*at as usize];
            entry.hash == hash && entry.tablet == tablet && entry.key() == key
        };
        self.table.find(hash, is_this).map(|at| *at as usize)
    }

    fn put(&mut self, entry: Entry, bytes_max: usize) {
        if let Some(at) = self.find(entry.hash, entry.tablet, entry.key()) {
            let known = &mut self.list[at];
            if entry.origin.is_none() && known.origin.is_some() && known.view == entry.view {
                known.is_full = true;
                return;
            }
            self.remove(at);
        }
        while self.bytes + entry.weight() > bytes_max {
            // Not even alone.
            if self.list.is_empty() {
                return;
            }
            self.evict();
        }
        self.bytes += entry.weight();
        let (at, list) = (self.list.len() as u32, &self.list);
        self.table.insert_unique(entry.hash, at, |at| list[*at as usize].hash);
        if self.list.len() == self.list.capacity() {
            self.list.reserve_exact(self.list.len() / 8 + 16);
        }
        self.list.push(entry);
    }

    /// Removes one that was not asked for since the hand came by (CLOCK).
    fn evict(&mut self) {
        loop {
            if self.hand >= self.list.len() {
                self.hand = 0;
            }
            if !std::mem::take(self.list[self.hand].was_asked.get_mut()) {
                break;
            }
            self.hand += 1;
        }
        // The latest one takes its place, and is not to be the next victim.
        self.remove(self.hand);
        self.hand += 1;
    }

    /// Removes one; the last one takes its place.
    fn remove(&mut self, at: usize) {
        let last = self.list.len() - 1;
        match self.table.find_entry(self.list[at].hash, |slot| *slot as usize == at) {
            Ok(found) => drop(found.remove()),
            Err(_) => unreachable!("each entry is in the table"),
        }
        if at < last {
            let of_last = self.table.find_mut(self.list[last].hash, |slot| *slot as usize == last);
            *of_last.expect("each entry is in the table") = at as u32;
        }
        self.bytes -= self.list.swap_remove(at).weight();
    }
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len as usize]
    }

    fn row(&self) -> &[u8] {
        &self.bytes[self.key_len as usize..]
    }

    fn ask(&self) {
        if !self.was_asked.load(Ordering::Relaxed) {
            self.was_asked.store(true, Ordering::Relaxed);
        }
    }

    /// Bytes that it takes, about.
    fn weight(&self) -> usize {
        let columns = if self.columns.spilled() { size_of_val(self.columns.as_slice()) } else { 0 };
        size_of::<Entry>() + SLOT_BYTES + self.bytes.len() + columns
    }
}

/// Whether ascending columns have all of others.
fn has_all(columns: &[ColumnId], wanted: &[ColumnId]) -> bool {
    if columns == wanted {
        return true;
    }
    let mut columns = columns.iter();
    wanted.iter().all(|wanted| columns.by_ref().any(|column| column == wanted))
}

fn both(columns: &[ColumnId], others: &[ColumnId]) -> Columns {
    let mut both: Columns = columns.iter().chain(others).copied().collect();
    both.sort_unstable();
    both.dedup();
    both
}

#[cfg(test)]
mod tests;
