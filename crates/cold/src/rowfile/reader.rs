//! Reads a row file: by key, by ordinal, in order.

use super::block::Block;
use super::{HeldEntries, Layout, MAGIC, RowEntry, RowEntryRef, RowFileMeta};
use crate::cache::{CachedBlock, Slot};
use crate::encoding::{Damage, Decoded};
use crate::frame::{Filter, FramedFile};
use crate::segment::Keys;
use crate::{BlockCache, Error, FileKind, Files, Result};
use basalt_types::{FileId, Key, Version};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub struct RowFile {
    file: FramedFile,
    layout: Layout,
    meta: RowFileMeta,
    filter: Option<Filter>,
    places: Vec<BlockPlace>,
}

/// What is remembered of a block.
#[derive(Default)]
struct BlockPlace {
    slot: Slot<CachedBlock>,
    /// Whether it has been parsed: its bytes, which are checked whenever they are read, are sound.
    is_sound: AtomicBool,
}

impl RowFile {
    /// Reads the footer.
    pub fn open(files: &Files, id: FileId, cache: &Arc<BlockCache>) -> Result<RowFile> {
        let (file, footer) = FramedFile::open(files, id, FileKind::Row, MAGIC, cache)?;
        let layout = Layout::decode(&footer.body).map_err(|damage| file.damaged(footer.offset, damage))?;
        if layout.id != id {
            return Err(file.damaged(footer.offset, Damage("the footer names another file")));
        }
        let meta = RowFileMeta {
            id,
            rows: layout.rows,
            bytes: file.bytes,
            key_range: layout.key_range(),
            stamp_range: layout.stamp_range,
            checksum: footer.crc,
        };
        let filter = Filter::among(&layout.sections);
        let places = layout.blocks.iter().map(|_| BlockPlace::default()).collect();
        Ok(RowFile { file, layout, meta, filter, places })
    }

    pub fn id(&self) -> FileId {
        self.file.id
    }

    /// Entries, tombstones included.
    pub fn rows(&self) -> u32 {
        self.layout.rows
    }

    pub fn meta(&self) -> &RowFileMeta {
        &self.meta
    }

    fn block(&self, index: usize) -> Result<Block> {
        let (entry, place) = (&self.layout.blocks[index], &self.places[index]);
        let block = self.file.block_of(&place.slot, entry.extent)?;
        if place.is_sound.load(Ordering::Relaxed) {
            return Ok(Block::known(block.bytes().clone(), entry.count));
        }
        let block = self.sound(index, Block::parse(block.bytes().clone(), entry.count))?;
        place.is_sound.store(true, Ordering::Relaxed);
        Ok(block)
    }

    fn sound<T>(&self, block: usize, decoded: Decoded<T>) -> Result<T> {
        decoded.map_err(|damage| self.file.damaged(self.layout.blocks[block].extent.offset, damage))
    }

    /// Least and greatest key; `None` in an empty file.
    pub fn key_range(&self) -> Option<&(Key, Key)> {
        self.meta.key_range.as_ref()
    }

    /// Ordinals of the entries with this key, ascending. Asks the filter first.
    pub fn find(&self, key: &[u8]) -> Result<Vec<u32>> {
        let outside = |(min, max): &(Key, Key)| key < min.as_bytes() || key > max.as_bytes();
        if self.key_range().is_none_or(outside) || !self.may_contain(crate::key_hash(key))? {
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        let mut ordinal = self.lower_bound(key)?;
        while ordinal < self.layout.rows {
            let index = self.block_of(ordinal)?;
            let block = self.block(index)?;
            let first = self.layout.blocks[index].first_ordinal;
            for at in (ordinal - first) as usize..block.count() {
                if self.sound(index, block.key(at))? != key {
                    return Ok(found);
                }
                found.push(ordinal);
                ordinal += 1;
            }
        }
        Ok(found)
    }

    /// [`RowFile::find`] for ascending keys: calls `found` with the position of a key and an ordinal.
    pub fn find_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, u32)) -> Result<()> {
        let blocks = &self.layout.blocks;
        let mut at_hand: Option<(usize, Block)> = None;
        let mut passed = 0;
        for (position, key) in keys.iter().enumerate() {
            passed += blocks[passed..].partition_point(|block| block.first_key.as_bytes() <= *key);
            // The last block that begins at or below it; the next key may be in the same.
            let Some(index) = passed.checked_sub(1) else { continue };
            passed = index;
            // Equal keys may begin in the block before.
            if blocks[index].first_key.as_bytes() == *key && index > 0 {
                self.find(key)?.into_iter().for_each(|ordinal| found(position, ordinal));
                continue;
            }
            if at_hand.as_ref().is_none_or(|(other, _)| *other != index) {
                if !self.may_contain(crate::key_hash(key))? {
                    continue;
                }
                at_hand = Some((index, self.block(index)?));
            }
            let Some((_, block)) = &at_hand else { continue };
            let first = self.sound(index, block.lower_bound(key))?;
            for at in first..block.count() {
                if self.sound(index, block.key(at))? != *key {
                    break;
                }
                found(position, blocks[index].first_ordinal + at as u32);
            }
        }
        Ok(())
    }

    pub fn entry_at(&self, ordinal: u32) -> Result<RowEntry> {
        self.look(ordinal, |entry| entry.to_owned())
    }

    /// Looks at an entry where it lies.
    pub fn look<R>(&self, ordinal: u32, look: impl FnOnce(RowEntryRef<'_>) -> R) -> Result<R> {
        let (index, at) = self.position(ordinal)?;
        let block = self.block(index)?;
        self.sound(index, block.get(at)).map(look)
    }

    pub fn key_at(&self, ordinal: u32) -> Result<Key> {
        let (index, at) = self.position(ordinal)?;
        self.sound(index, self.block(index)?.key(at).map(Key::from))
    }

    /// `None` if entries carry no versions.
    pub fn stamp_at(&self, ordinal: u32) -> Result<Option<Version>> {
        match self.layout.stamp_range {
            Some((least, greatest)) if least == greatest => Ok(Some(least)),
            Some(_) => self.look(ordinal, |entry| Some(entry.version)),
            None => Ok(None),
        }
    }

    /// The keys of consecutive entries.
    pub fn keys(&self, ordinals: Range<u32>) -> Result<Keys> {
        let mut keys = Keys::default();
        self.visit(ordinals, |_, entry| keys.push(entry.key))?;
        Ok(keys)
    }

    /// Shows consecutive entries with their ordinals, block by block.
    pub fn visit(&self, ordinals: Range<u32>, mut each: impl FnMut(u32, RowEntryRef<'_>)) -> Result<()> {
        let mut ordinal = ordinals.start;
        while ordinal < ordinals.end {
            let (index, from) = self.position(ordinal)?;
            let block = self.block(index)?;
            let until = block.count().min(from + (ordinals.end - ordinal) as usize);
            for at in from..until {
                each(ordinal, self.sound(index, block.get(at))?);
                ordinal += 1;
            }
        }
        Ok(())
    }

    /// Shows the entries at some ordinals, which ascend; a block is looked for once.
    pub fn visit_at(&self, ordinals: &[u32], mut each: impl FnMut(RowEntryRef<'_>)) -> Result<()> {
        let mut at_hand: Option<(usize, Block)> = None;
        for ordinal in ordinals {
            let is_in = |(index, block): &(usize, Block)| {
                let first = self.layout.blocks[*index].first_ordinal;
                ordinal.checked_sub(first).is_some_and(|at| (at as usize) < block.count())
            };
            let (index, block) = match at_hand.take_if(|at| is_in(at)) {
                Some(at) => at,
                None => {
                    let index = self.block_of(*ordinal)?;
                    (index, self.block(index)?)
                }
            };
            let at = (ordinal - self.layout.blocks[index].first_ordinal) as usize;
            each(self.sound(index, block.get(at))?);
            at_hand = Some((index, block));
        }
        Ok(())
    }

    /// The entries at some ordinals, which ascend and lie near each other: they keep their blocks.
    pub fn hold_at(&self, ordinals: &[u32]) -> Result<HeldEntries> {
        let mut held = HeldEntries::with_capacity(ordinals.len());
        let mut left = ordinals;
        while let Some(first) = left.first() {
            let (index, _) = self.position(*first)?;
            let block = self.block(index)?;
            let before = self.layout.blocks[index].first_ordinal;
            held.begin(&block);
            let here = left.partition_point(|ordinal| ((ordinal - before) as usize) < block.count());
            for ordinal in &left[..here] {
                held.push(self.sound(index, block.get((ordinal - before) as usize))?);
            }
            left = &left[here..];
        }
        Ok(held)
    }

    /// The block of an entry, and its place there.
    fn position(&self, ordinal: u32) -> Result<(usize, usize)> {
        let index = self.block_of(ordinal)?;
        Ok((index, (ordinal - self.layout.blocks[index].first_ordinal) as usize))
    }

    fn block_of(&self, ordinal: u32) -> Result<usize> {
        if ordinal >= self.layout.rows {
            let path = self.file.path.to_string();
            return Err(Error::OrdinalOutOfRange { path, ordinal, rows: self.layout.rows });
        }
        Ok(self.layout.blocks.partition_point(|block| block.first_ordinal <= ordinal) - 1)
    }

    /// The first ordinal whose key is not below `key` ([`rows`](Self::rows) if there is none).
    pub fn lower_bound(&self, key: &[u8]) -> Result<u32> {
        // Equal keys may begin in the block before the first that starts at or above `key`.
        let after = self.layout.blocks.partition_point(|block| block.first_key.as_bytes() < key);
        let Some(index) = after.checked_sub(1) else { return Ok(0) };
        let at = self.sound(index, self.block(index)?.lower_bound(key))?;
        Ok(self.layout.blocks[index].first_ordinal + at as u32)
    }

    /// Entries with their ordinals from an ordinal on, in key order. Ends at the first error.
    pub fn iter(&self, from: u32) -> RowFileIter<'_> {
        RowFileIter { file: self, next: from, block: None }
    }

    /// False only if no entry has a key with this hash ([`crate::key_hash`]).
    pub fn may_contain(&self, key_hash: u64) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.contains(&self.file, key_hash),
            None => Ok(self.layout.rows > 0),
        }
    }

    /// Reads everything, past the cache, and checks every checksum, every entry and the order of keys.
    pub fn verify(&self) -> Result<()> {
        let fresh = Arc::new(BlockCache::new(0, 0));
        let file = RowFile::open(self.file.files(), self.file.id, &fresh)?;
        for section in &file.layout.sections {
            (0..section.pages()).try_for_each(|page| file.file.read_checked(section.page(page)).map(drop))?;
        }
        let mut previous: Option<Key> = None;
        for entry in file.iter(0) {
            let (ordinal, entry) = entry?;
            let outside = |(min, max): &(Key, Key)| entry.key < *min || entry.key > *max;
            if previous.is_some_and(|previous| entry.key < previous) || file.meta.key_range.as_ref().is_none_or(outside)
            {
                let offset = file.layout.blocks[file.block_of(ordinal)?].extent.offset;
                return Err(file.file.damaged(offset, Damage("keys out of order or out of their range")));
            }
            previous = Some(entry.key);
        }
        Ok(())
    }
}

pub struct RowFileIter<'f> {
    file: &'f RowFile,
    next: u32,
    /// The block at hand and its index.
    block: Option<(usize, Block)>,
}

impl RowFileIter<'_> {
    fn read(&mut self) -> Result<RowEntry> {
        let (index, block) = match &mut self.block {
            Some(at) => at,
            at => {
                let index = self.file.block_of(self.next)?;
                at.insert((index, self.file.block(index)?))
            }
        };
        let (index, position) = (*index, (self.next - self.file.layout.blocks[*index].first_ordinal) as usize);
        let entry = self.file.sound(index, block.get(position))?.to_owned();
        if position + 1 == block.count() {
            self.block = None;
        }
        Ok(entry)
    }
}

impl Iterator for RowFileIter<'_> {
    type Item = Result<(u32, RowEntry)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next >= self.file.layout.rows {
            return None;
        }
        let entry = self.read();
        let ordinal = self.next;
        self.next = if entry.is_ok() { ordinal + 1 } else { u32::MAX };
        Some(entry.map(|entry| (ordinal, entry)))
    }
}
