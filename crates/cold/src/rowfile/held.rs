//! Entries that stay where they lie, in the blocks of the cache: what is read in runs need not be copied.

use super::RowEntryRef;
use super::block::Block;
use basalt_types::{Rid, Version};
use bytes::Bytes;

/// Entries of one file in the order in which they were taken. Keeps their blocks in memory.
#[derive(Default)]
pub struct HeldEntries {
    blocks: Vec<Bytes>,
    entries: Vec<Held>,
}

struct Held {
    /// Of `blocks`.
    block: u32,
    key: Part,
    /// `None`: a tombstone.
    row: Option<Part>,
    rid: Rid,
    version: Version,
}

/// Of a block's bytes.
#[derive(Clone, Copy)]
struct Part {
    start: u32,
    length: u32,
}

impl Part {
    fn of(part: &[u8], block: &[u8]) -> Part {
        Part { start: (part.as_ptr() as usize - block.as_ptr() as usize) as u32, length: part.len() as u32 }
    }

    fn within(self, block: &[u8]) -> &[u8] {
        &block[self.start as usize..][..self.length as usize]
    }
}

impl HeldEntries {
    pub fn with_capacity(entries: usize) -> HeldEntries {
        HeldEntries { blocks: Vec::new(), entries: Vec::with_capacity(entries) }
    }

    /// The entries of this block come next.
    pub(super) fn begin(&mut self, block: &Block) {
        self.blocks.push(block.bytes().clone());
    }

    /// Takes an entry of the block that was begun last.
    pub(super) fn push(&mut self, entry: RowEntryRef<'_>) {
        let at = self.blocks.len() - 1;
        let block = &self.blocks[at];
        self.entries.push(Held {
            block: at as u32,
            key: Part::of(entry.key, block),
            row: entry.row.map(|row| Part::of(row, block)),
            rid: entry.rid,
            version: entry.version,
        });
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// # Panics
    /// If there is no such entry.
    pub fn get(&self, at: usize) -> RowEntryRef<'_> {
        let held = &self.entries[at];
        let block = &self.blocks[held.block as usize];
        let row = held.row.map(|row| row.within(block));
        RowEntryRef { key: held.key.within(block), rid: held.rid, version: held.version, row }
    }
}
