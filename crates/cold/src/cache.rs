//! Verified blocks of files in memory, bounded by bytes and resistant to scans.
//!
//! The policy is S3-FIFO (Yang et al., SOSP 2023): a new block enters a small queue (a tenth of the bytes);
//! if it was touched again before it reaches that queue's end it moves to the main queue, otherwise only its
//! name is remembered in the ghost list, and a block whose name is there enters the main queue at once. One
//! scan therefore passes through the small queue and leaves the main queue as it was.
//!
//! Blocks are keyed by (file, offset). Files are immutable and ids never reused, so the key is the version:
//! a block can be missing, never stale. Row and column blocks live in separate pools with bounds of their
//! own, so that an analytic scan cannot push out what point reads live on.
//!
//! Who reads the same blocks again and again keeps a [`Slot`] for each, which leads there without a search as long as
//! the cache has it.

use basalt_types::FileId;
use basalt_types::prefetch::prefetch_at;
use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

const SHARDS: usize = 16;
/// What an entry costs besides its bytes: map slot, queue slot, allocation.
const ENTRY_OVERHEAD_BYTES: u64 = 96;
const FREQUENCY_MAX: u8 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    Row,
    Column,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    pub bytes: u64,
    pub bytes_max: u64,
    pub blocks: u64,
    pub hits: u64,
    pub misses: u64,
    pub evictions: u64,
}

type BlockId = (u64, u64);

/// A verified block, which stays in memory as long as the cache or a reader has it.
#[derive(Debug)]
pub struct CachedBlock {
    bytes: Bytes,
    /// How often it was met since the queues last moved it.
    frequency: AtomicU8,
    in_main: AtomicBool,
}

impl Deref for CachedBlock {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl CachedBlock {
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn new(bytes: Bytes, in_main: bool) -> CachedBlock {
        CachedBlock { bytes, frequency: AtomicU8::new(0), in_main: AtomicBool::new(in_main) }
    }

    fn cost(&self) -> u64 {
        self.bytes.len() as u64 + ENTRY_OVERHEAD_BYTES
    }

    /// Two readers at once may count as one.
    fn touch(&self) {
        let met = self.frequency.load(Relaxed);
        if met < FREQUENCY_MAX {
            self.frequency.store(met + 1, Relaxed);
        }
    }
}

/// Where something was last found in memory.
#[derive(Debug)]
pub(crate) struct Slot<T>(Mutex<Weak<T>>);

impl<T> Default for Slot<T> {
    fn default() -> Slot<T> {
        Slot(Mutex::new(Weak::new()))
    }
}

impl<T> Slot<T> {
    /// `None` if it has gone since.
    pub fn get(&self) -> Option<Arc<T>> {
        self.0.lock().upgrade()
    }

    /// Whether [`Slot::get`] would find it.
    pub fn is_there(&self) -> bool {
        self.0.lock().strong_count() > 0
    }

    /// Begins to bring it close to the processor.
    pub fn approach(&self) {
        prefetch_at(self.0.lock().as_ptr());
    }

    pub fn put(&self, found: &Arc<T>) {
        *self.0.lock() = Arc::downgrade(found);
    }
}

pub struct BlockCache {
    row: Pool,
    column: Pool,
}

impl BlockCache {
    pub fn new(row_bytes_max: u64, column_bytes_max: u64) -> BlockCache {
        BlockCache { row: Pool::new(row_bytes_max), column: Pool::new(column_bytes_max) }
    }

    fn pool(&self, kind: BlockKind) -> &Pool {
        match kind {
            BlockKind::Row => &self.row,
            BlockKind::Column => &self.column,
        }
    }

    pub fn get(&self, kind: BlockKind, file: FileId, offset: u64) -> Option<Arc<CachedBlock>> {
        self.pool(kind).get((file.to_u64(), offset))
    }

    /// The block that a slot leads to, which counts as if the cache had been asked.
    pub(crate) fn get_from(&self, kind: BlockKind, slot: &Slot<CachedBlock>) -> Option<Arc<CachedBlock>> {
        let block = slot.get()?;
        block.touch();
        self.pool(kind).direct_hits.fetch_add(1, Relaxed);
        Some(block)
    }

    /// The same of several slots, if all lead to blocks.
    pub(crate) fn get_all(&self, kind: BlockKind, slots: &[&Slot<CachedBlock>]) -> Option<Vec<Arc<CachedBlock>>> {
        slots.iter().for_each(|slot| slot.approach());
        let blocks: Vec<_> = slots.iter().map(|slot| slot.get()).collect::<Option<_>>()?;
        blocks.iter().for_each(|block| block.touch());
        self.pool(kind).direct_hits.fetch_add(blocks.len() as u64, Relaxed);
        Some(blocks)
    }

    /// Keeps a block whose checksum has been verified. A block larger than a shard's share is not kept.
    pub fn insert(&self, kind: BlockKind, file: FileId, offset: u64, block: Bytes) -> Arc<CachedBlock> {
        BROUGHT.set(BROUGHT.get() + 1);
        self.pool(kind).insert((file.to_u64(), offset), block)
    }

    /// Drops the blocks of a file that has been deleted.
    pub fn remove_file(&self, file: FileId) {
        self.row.remove_file(file.to_u64());
        self.column.remove_file(file.to_u64());
    }

    /// Changes a pool's bound; shrinking evicts at once.
    pub fn resize(&self, kind: BlockKind, bytes_max: u64) {
        self.pool(kind).resize(bytes_max);
    }

    pub fn stats(&self, kind: BlockKind) -> CacheStats {
        self.pool(kind).stats()
    }
}

thread_local! {
    static BROUGHT: Cell<u64> = const { Cell::new(0) };
}

/// Blocks that the calling thread has brought into any cache since it began: what it did between two looks at this number
/// will take less time when it is done again.
pub fn blocks_brought() -> u64 {
    BROUGHT.get()
}

struct Pool {
    shards: Vec<Mutex<Shard>>,
    bytes_max: AtomicU64,
    /// Blocks that slots led to.
    direct_hits: AtomicU64,
}

impl Pool {
    fn new(bytes_max: u64) -> Pool {
        let mut shards = Vec::with_capacity(SHARDS);
        shards.resize_with(SHARDS, || Mutex::new(Shard::new(bytes_max / SHARDS as u64)));
        Pool { shards, bytes_max: AtomicU64::new(bytes_max), direct_hits: AtomicU64::new(0) }
    }

    fn shard(&self, id: BlockId) -> &Mutex<Shard> {
        let mixed = (id.0 ^ id.1.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        &self.shards[(mixed >> 60) as usize % SHARDS]
    }

    fn get(&self, id: BlockId) -> Option<Arc<CachedBlock>> {
        self.shard(id).lock().get(id)
    }

    fn insert(&self, id: BlockId, block: Bytes) -> Arc<CachedBlock> {
        self.shard(id).lock().insert(id, block)
    }

    fn remove_file(&self, file: u64) {
        self.shards.iter().for_each(|shard| shard.lock().remove_file(file));
    }

    fn resize(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Relaxed);
        self.shards.iter().for_each(|shard| shard.lock().resize(bytes_max / SHARDS as u64));
    }

    fn stats(&self) -> CacheStats {
        let (bytes_max, hits) = (self.bytes_max.load(Relaxed), self.direct_hits.load(Relaxed));
        let mut stats = CacheStats { bytes_max, hits, ..CacheStats::default() };
        for shard in &self.shards {
            let shard = shard.lock();
            stats.bytes += shard.small_bytes + shard.main_bytes;
            stats.blocks += shard.blocks.len() as u64;
            stats.hits += shard.hits;
            stats.misses += shard.misses;
            stats.evictions += shard.evictions;
        }
        stats
    }
}

struct Shard {
    bytes_max: u64,
    blocks: HashMap<BlockId, Arc<CachedBlock>>,
    small: VecDeque<BlockId>,
    main: VecDeque<BlockId>,
    ghost: VecDeque<BlockId>,
    ghost_names: HashSet<BlockId>,
    small_bytes: u64,
    main_bytes: u64,
    hits: u64,
    misses: u64,
    evictions: u64,
}

impl Shard {
    fn new(bytes_max: u64) -> Shard {
        Shard {
            bytes_max,
            blocks: HashMap::new(),
            small: VecDeque::new(),
            main: VecDeque::new(),
            ghost: VecDeque::new(),
            ghost_names: HashSet::new(),
            small_bytes: 0,
            main_bytes: 0,
            hits: 0,
            misses: 0,
            evictions: 0,
        }
    }

    fn get(&mut self, id: BlockId) -> Option<Arc<CachedBlock>> {
        let Some(block) = self.blocks.get(&id) else {
            self.misses += 1;
            return None;
        };
        self.hits += 1;
        block.touch();
        Some(block.clone())
    }

    fn insert(&mut self, id: BlockId, bytes: Bytes) -> Arc<CachedBlock> {
        if let Some(block) = self.blocks.get(&id) {
            return block.clone();
        }
        let in_main = self.ghost_names.remove(&id);
        let block = Arc::new(CachedBlock::new(bytes, in_main));
        if block.cost() > self.bytes_max {
            return block;
        }
        let (queue, total) =
            if in_main { (&mut self.main, &mut self.main_bytes) } else { (&mut self.small, &mut self.small_bytes) };
        queue.push_back(id);
        *total += block.cost();
        self.blocks.insert(id, block.clone());
        self.shrink();
        block
    }

    fn shrink(&mut self) {
        while self.small_bytes + self.main_bytes > self.bytes_max {
            if self.small_bytes > self.bytes_max / 10 || self.main.is_empty() {
                self.evict_small();
            } else {
                self.evict_main();
            }
        }
    }

    fn evict_small(&mut self) {
        let Some(id) = self.small.pop_front() else { return };
        let block = &self.blocks[&id];
        let cost = block.cost();
        self.small_bytes -= cost;
        if block.frequency.swap(0, Relaxed) > 0 {
            block.in_main.store(true, Relaxed);
            self.main_bytes += cost;
            self.main.push_back(id);
            return;
        }
        self.blocks.remove(&id);
        self.evictions += 1;
        self.ghost.push_back(id);
        self.ghost_names.insert(id);
        while self.ghost.len() > self.blocks.len().max(64) {
            let oldest = self.ghost.pop_front().expect("not empty");
            self.ghost_names.remove(&oldest);
        }
    }

    fn evict_main(&mut self) {
        let Some(id) = self.main.pop_front() else { return };
        let block = &self.blocks[&id];
        let met = block.frequency.load(Relaxed);
        if met > 0 {
            block.frequency.store(met - 1, Relaxed);
            self.main.push_back(id);
            return;
        }
        self.main_bytes -= block.cost();
        self.blocks.remove(&id);
        self.evictions += 1;
    }

    fn remove_file(&mut self, file: u64) {
        let blocks = &mut self.blocks;
        let (mut small, mut main) = (0, 0);
        blocks.retain(|id, block| {
            if id.0 != file {
                return true;
            }
            *(if block.in_main.load(Relaxed) { &mut main } else { &mut small }) += block.cost();
            false
        });
        self.small_bytes -= small;
        self.main_bytes -= main;
        self.small.retain(|id| id.0 != file);
        self.main.retain(|id| id.0 != file);
        self.ghost.retain(|id| id.0 != file);
        self.ghost_names.retain(|id| id.0 != file);
    }

    fn resize(&mut self, bytes_max: u64) {
        self.bytes_max = bytes_max;
        self.shrink();
    }
}

#[cfg(test)]
mod tests;
