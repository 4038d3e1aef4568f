//! Rows of files that are asked for by key again and again, as rows: one look instead of a search in files and a value
//! from each column's page (DESIGN 10; Hologres 3.5).
//!
//! Invariants:
//! 1. What a view's files have of a key never changes. So an entry names the view that it was read through, and is for
//!    readers of that view alone: whatever moves rows makes a new view, and nobody has to throw entries out.
//! 2. An entry is the newest row that a view's files have of its key. Whether a reader sees it, and whether it is marked
//!    deleted, is asked at each look, as of a row that was just found. Who does not see it searches the files.
//! 3. An entry has the columns that it says. Who wants others reads those of both, so that they replace it.
//! 4. A row is let in when its key is missed for the second time within some thousand misses: a walk through more rows
//!    than there is room for leaves the cache as it is.

use crate::Result;
use crate::tablet::{FileEntry, ReadView};
use basalt_types::{ColumnId, Datum, TableDef, TabletId, Version, row};
use hashbrown::HashTable;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Bytes of a shard: enough for some hundred rows.
const SHARD_BYTES: usize = 128 << 10;
const SHARDS_MAX: usize = 1024;
/// A longer row is not kept.
const ROW_BYTES_MAX: usize = 4 << 10;
/// Misses that a shard remembers.
const MISSES: usize = 1024;
/// Of an entry's place in a shard's table.
const SLOT_BYTES: usize = 8;

pub(crate) type Columns = SmallVec<[ColumnId; 4]>;

pub(crate) struct RowCache {
    shards: Box<[Mutex<Shard>]>,
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

/// Where a row lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Spot {
    /// Of the file in the view.
    pub position: u32,
    pub ordinal: u32,
    /// The row's own, where rows of the file have some.
    pub stamp: Option<Version>,
}

impl Spot {
    pub fn of(view: &ReadView, file: &Arc<FileEntry>, ordinal: u32) -> Result<Spot> {
        let position = view.files.iter().position(|other| Arc::ptr_eq(other, file));
        let position = position.expect("a view lists the file in which it found a row") as u32;
        Ok(Spot { position, ordinal, stamp: file.version_of(ordinal)? })
    }
}

/// Who missed a row may bring it.
pub(crate) struct Admission {
    /// What is to be read of it, ascending.
    pub columns: Columns,
    hash: u64,
}

#[derive(Default)]
struct Shard {
    /// Indexes of `entries`.
    table: HashTable<u32>,
    entries: Vec<Entry>,
    bytes: usize,
    /// Where the next victim is looked for.
    hand: usize,
    /// Parts of hashes of keys that were missed.
    missed: Vec<u16>,
    hits: u64,
    misses: u64,
}

struct Entry {
    hash: u64,
    view: u64,
    tablet: TabletId,
    spot: Spot,
    columns: Columns,
    /// The key, then the row.
    bytes: Box<[u8]>,
    key_len: u32,
    /// Since the hand passed.
    was_asked: bool,
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
            shards: (0..shards).map(|_| Mutex::default()).collect(),
            shard_bytes_max: bytes_max.checked_div(shards).unwrap_or(0),
            hasher: ahash::RandomState::new(),
        }
    }

    /// Calls `look`, under a latch, with the row if it is here; `look` says whether its reader sees it. `Err`: it takes
    /// a search, whose find may be brought here.
    pub fn look<R>(
        &self,
        asked: &Asked<'_>,
        look: impl FnOnce(Spot, &[u8]) -> Option<R>,
    ) -> std::result::Result<R, Option<Admission>> {
        if self.shards.is_empty() {
            return Err(None);
        }
        let hash = self.hash(asked.tablet, asked.key);
        let mut shard = self.shard(hash).lock();
        let found = shard.find(hash, asked.tablet, asked.key).map(|at| &mut shard.entries[at]);
        let Some(entry) = found else {
            shard.misses += 1;
            let is_wanted = shard.misses_again(hash);
            return Err(is_wanted.then(|| Admission { columns: asked.columns.into(), hash }));
        };
        entry.was_asked = true;
        if entry.view != asked.view || !has_all(&entry.columns, asked.columns) {
            let columns = both(&entry.columns, asked.columns);
            shard.misses += 1;
            return Err(Some(Admission { columns, hash }));
        }
        let seen = look(entry.spot, entry.row());
        match seen {
            Some(seen) => {
                shard.hits += 1;
                Ok(seen)
            }
            None => {
                shard.misses += 1;
                Err(None)
            }
        }
    }

    /// Keeps the newest row that a view's files have of a key, in row format.
    pub fn keep(&self, asked: &Asked<'_>, admission: Admission, spot: Spot, row: &[u8]) {
        if row.len() + asked.key.len() > ROW_BYTES_MAX {
            return;
        }
        let Admission { columns, hash } = admission;
        let entry = Entry {
            hash,
            view: asked.view,
            tablet: asked.tablet,
            spot,
            columns,
            bytes: [asked.key, row].concat().into(),
            key_len: asked.key.len() as u32,
            was_asked: false,
        };
        self.shard(hash).lock().put(entry, self.shard_bytes_max);
    }

    pub fn stats(&self) -> RowCacheStats {
        let mut stats = RowCacheStats::default();
        for shard in &self.shards {
            let shard = shard.lock();
            stats.rows += shard.entries.len() as u64;
            stats.bytes += shard.bytes as u64;
            stats.hits += shard.hits;
            stats.misses += shard.misses;
        }
        stats.bytes_max = (self.shard_bytes_max * self.shards.len()) as u64;
        stats
    }

    fn hash(&self, tablet: TabletId, key: &[u8]) -> u64 {
        self.hasher.hash_one((tablet, key))
    }

    fn shard(&self, hash: u64) -> &Mutex<Shard> {
        // The table of a shard takes the lowest bits, and the highest.
        &self.shards[(hash >> 40) as usize & (self.shards.len() - 1)]
    }
}

impl Shard {
    fn find(&self, hash: u64, tablet: TabletId, key: &[u8]) -> Option<usize> {
        let is_this = |at: &u32| {
            let entry = &self.entries[*at as usize];
            entry.hash == hash && entry.tablet == tablet && entry.key() == key
        };
        self.table.find(hash, is_this).map(|at| *at as usize)
    }

    /// Whether a key that is missed was missed lately.
    fn misses_again(&mut self, hash: u64) -> bool {
        if self.missed.is_empty() {
            self.missed.resize(MISSES, 0);
        }
        let slot = &mut self.missed[(hash >> 16) as usize % MISSES];
        // Never 0, which is nobody.
        let mark = hash as u16 | 1;
        let again = *slot == mark;
        *slot = if again { 0 } else { mark };
        again
    }

    fn put(&mut self, entry: Entry, bytes_max: usize) {
        if let Some(at) = self.find(entry.hash, entry.tablet, entry.key()) {
            self.bytes = self.bytes - self.entries[at].weight() + entry.weight();
            self.entries[at] = entry;
        } else {
            self.bytes += entry.weight();
            let at = self.entries.len() as u32;
            let entries = &self.entries;
            self.table.insert_unique(entry.hash, at, |at| entries[*at as usize].hash);
            self.entries.push(entry);
        }
        while self.bytes > bytes_max && !self.entries.is_empty() {
            self.evict();
        }
    }

    /// Removes one that was not asked for since the hand came by (CLOCK).
    fn evict(&mut self) {
        loop {
            if self.hand >= self.entries.len() {
                self.hand = 0;
            }
            let entry = &mut self.entries[self.hand];
            if !std::mem::take(&mut entry.was_asked) {
                break;
            }
            self.hand += 1;
        }
        let at = self.hand;
        self.forget(at);
        let last = self.entries.len() - 1;
        if at < last {
            let hash = self.entries[last].hash;
            let moved = self.table.find_mut(hash, |entry| *entry as usize == last).expect("each entry is in the table");
            *moved = at as u32;
        }
        let entry = self.entries.swap_remove(at);
        self.bytes -= entry.weight();
    }

    /// Takes an entry out of the table.
    fn forget(&mut self, at: usize) {
        let hash = self.entries[at].hash;
        match self.table.find_entry(hash, |entry| *entry as usize == at) {
            Ok(found) => drop(found.remove()),
            Err(_) => unreachable!("each entry is in the table"),
        }
    }
}

impl Entry {
    fn key(&self) -> &[u8] {
        &self.bytes[..self.key_len as usize]
    }

    fn row(&self) -> &[u8] {
        &self.bytes[self.key_len as usize..]
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

/// A row in row format of which `columns`, ascending, have their values, and the others are null. `values` is in
/// column-id order.
pub(super) fn encoded(table: &TableDef, columns: &[ColumnId], values: &[Datum]) -> Vec<u8> {
    let width = columns.last().map_or(0, |last| last.position() + 1);
    let mut out = Vec::new();
    row::encode_as(table.each_phys_type().take(width), &values[..width], &mut out);
    out
}

#[cfg(test)]
mod tests;
