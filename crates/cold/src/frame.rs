//! What segments and row files share: the tail and footer, checked blocks, and paged sections.
//!
//! ```text
//! tail, the last 24 bytes:
//! footer bytes u32 | footer crc32c u32 | format version u16 | 0 u16 | crc32c of these 12 bytes u32 | magic [u8; 8]
//! ```
//!
//! The footer stands right before the tail. Nothing is trusted before its checksum: the tail's own, the
//! footer's in the tail, every other block's in the footer or in a block that the footer names.

use crate::cache::{CachedBlock, Slot};
use crate::encoding::{Damage, Decoded, take, take_array, take_varint};
use crate::filter::{BLOCK_BYTES, block_contains, block_of};
use crate::store::FileSink;
use crate::{BlockCache, BlockKind, Error, FileKind, Files, Result};
use basalt_types::{FileId, Version, varint};
use bytes::Bytes;
use object_store::path::Path;
use std::ops::Range;
use std::sync::Arc;

const TAIL_BYTES: usize = 24;
/// Read from the end of a file in the hope that the footer is in it.
const FIRST_READ_BYTES: u64 = 64 << 10;
const FORMAT_VERSION: u16 = 1;

/// A checked run of bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Extent {
    pub offset: u64,
    pub bytes: u32,
    pub crc: u32,
}

impl Extent {
    pub fn put(&self, out: &mut Vec<u8>) {
        varint::put(out, self.offset);
        varint::put(out, u64::from(self.bytes));
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    pub fn take(input: &mut &[u8]) -> Decoded<Extent> {
        let offset = take_varint(input, "offset of a block")?;
        let bytes = take_u32(input, "size of a block")?;
        let crc = u32::from_le_bytes(take_array(input, "checksum of a block")?);
        match offset.checked_add(u64::from(bytes)) {
            Some(_) => Ok(Extent { offset, bytes, crc }),
            None => Err(Damage("a block beyond all files")),
        }
    }
}

pub(crate) fn take_u32(input: &mut &[u8], what: &'static str) -> Decoded<u32> {
    u32::try_from(take_varint(input, what)?).map_err(|_| Damage(what))
}

/// `0` or `1 | least varint | greatest − least varint`.
pub(crate) fn put_stamp_range(range: Option<(Version, Version)>, out: &mut Vec<u8>) {
    out.push(u8::from(range.is_some()));
    if let Some((min, max)) = range {
        varint::put(out, min.0);
        varint::put(out, max.0 - min.0);
    }
}

pub(crate) fn take_stamp_range(input: &mut &[u8]) -> Decoded<Option<(Version, Version)>> {
    const WHAT: &str = "range of stamps";
    match take_array(input, WHAT)? {
        [0] => Ok(None),
        [1] => {
            let min = take_varint(input, WHAT)?;
            let max = take_varint(input, WHAT)?.checked_add(min).filter(|max| *max <= Version::MAX.0);
            Ok(Some((Version(min), Version(max.ok_or(Damage(WHAT))?))))
        }
        _ => Err(Damage(WHAT)),
    }
}

/// Appends a block to a file.
pub(crate) fn write_block(sink: &mut FileSink, block: &[u8]) -> Result<Extent> {
    let offset = sink.position();
    let Ok(bytes) = u32::try_from(block.len()) else {
        let (path, bytes) = (sink.path().to_string(), block.len() as u64);
        return Err(Error::TooLarge { path, bytes, bytes_max: u64::from(u32::MAX) });
    };
    sink.write(block)?;
    Ok(Extent { offset, bytes, crc: crc32c::crc32c(block) })
}

/// Ends a file: footer and tail, then durable. Returns the file's size and the footer's checksum.
pub(crate) fn finish(mut sink: FileSink, footer: &[u8], magic: &[u8; 8]) -> Result<(u64, u32)> {
    let extent = write_block(&mut sink, footer)?;
    let mut tail = Vec::with_capacity(TAIL_BYTES);
    tail.extend_from_slice(&extent.bytes.to_le_bytes());
    tail.extend_from_slice(&extent.crc.to_le_bytes());
    tail.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
    tail.extend_from_slice(&[0; 2]);
    tail.extend_from_slice(&crc32c::crc32c(&tail).to_le_bytes());
    tail.extend_from_slice(magic);
    sink.write(&tail)?;
    Ok((sink.finish()?, extent.crc))
}

/// An open file: reads blocks through the cache and checks them.
pub(crate) struct FramedFile {
    pub id: FileId,
    pub bytes: u64,
    pub path: Path,
    files: Files,
    cache: Arc<BlockCache>,
    block_kind: BlockKind,
}

/// A file's footer as read.
pub(crate) struct Footer {
    pub body: Bytes,
    pub offset: u64,
    pub crc: u32,
}

impl FramedFile {
    pub fn open(
        files: &Files,
        id: FileId,
        kind: FileKind,
        magic: &[u8; 8],
        cache: &Arc<BlockCache>,
    ) -> Result<(FramedFile, Footer)> {
        let path = Files::path(id, kind);
        let bytes = files.bytes(&path)?;
        let block_kind = match kind {
            FileKind::Segment => BlockKind::Column,
            FileKind::Row | FileKind::Checkpoint => BlockKind::Row,
        };
        let file = FramedFile { id, bytes, path, files: files.clone(), cache: cache.clone(), block_kind };
        let footer = file.read_footer(magic)?;
        Ok((file, footer))
    }

    fn read_footer(&self, magic: &[u8; 8]) -> Result<Footer> {
        if self.bytes < TAIL_BYTES as u64 {
            return Err(self.damaged(0, Damage("shorter than a tail")));
        }
        let from = self.bytes.saturating_sub(FIRST_READ_BYTES);
        let last = self.files.read(&self.path, from..self.bytes)?;
        let tail_offset = self.bytes - TAIL_BYTES as u64;
        let tail = &last[last.len() - TAIL_BYTES..];
        let word = |at: usize| u32::from_le_bytes(tail[at..at + 4].try_into().expect("4 bytes"));
        if &tail[16..] != magic {
            return Err(self.damaged(tail_offset + 16, Damage("the magic at the end is another")));
        }
        self.check(Extent { offset: tail_offset, bytes: 12, crc: word(12) }, &tail[..12])?;
        let version = u16::from_le_bytes([tail[8], tail[9]]);
        if version != FORMAT_VERSION {
            let path = self.path.to_string();
            return Err(Error::FormatVersion { path, found: version, expected: FORMAT_VERSION });
        }
        let Some(offset) = tail_offset.checked_sub(u64::from(word(0))) else {
            return Err(self.damaged(tail_offset, Damage("the footer is larger than the file")));
        };
        let body = if offset >= from {
            last.slice((offset - from) as usize..last.len() - TAIL_BYTES)
        } else {
            self.files.read(&self.path, offset..tail_offset)?
        };
        let extent = Extent { offset, bytes: word(0), crc: word(4) };
        self.check(extent, &body)?;
        Ok(Footer { body, offset, crc: extent.crc })
    }

    /// Says that these bytes will be read soon.
    pub fn will_read(&self, bytes: Range<u64>) {
        self.files.will_read(&self.path, bytes);
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    pub fn damaged(&self, offset: u64, damage: Damage) -> Error {
        Error::Damaged { path: self.path.to_string(), offset, what: damage.0 }
    }

    fn check(&self, extent: Extent, block: &[u8]) -> Result<()> {
        let computed = crc32c::crc32c(block);
        if computed == extent.crc {
            return Ok(());
        }
        Err(Error::Checksum {
            path: self.path.to_string(),
            offset: extent.offset,
            bytes: block.len() as u64,
            stored: extent.crc,
            computed,
        })
    }

    /// A block from the cache, or read and checked.
    pub fn block(&self, extent: Extent) -> Result<Arc<CachedBlock>> {
        if let Some(block) = self.cache.get(self.block_kind, self.id, extent.offset) {
            return Ok(block);
        }
        let block = self.read_checked(extent)?;
        Ok(self.cache.insert(self.block_kind, self.id, extent.offset, block))
    }

    /// The same of a block that has a slot.
    pub fn block_of(&self, slot: &Slot<CachedBlock>, extent: Extent) -> Result<Arc<CachedBlock>> {
        if let Some(block) = self.cache.get_from(self.block_kind, slot) {
            return Ok(block);
        }
        let block = self.block(extent)?;
        slot.put(&block);
        Ok(block)
    }

    /// Blocks that follow each other, each from where it was last found; what the cache lacks is read at once.
    pub fn blocks_of(&self, slots: &[&Slot<CachedBlock>], extents: &[Extent]) -> Result<Vec<Arc<CachedBlock>>> {
        if let Some(blocks) = self.cache.get_all(self.block_kind, slots) {
            return Ok(blocks);
        }
        let blocks = self.blocks(extents)?;
        slots.iter().zip(&blocks).for_each(|(slot, block)| slot.put(block));
        Ok(blocks)
    }

    /// Straight from the store, past the cache.
    pub fn read_checked(&self, extent: Extent) -> Result<Bytes> {
        let block = self.files.read(&self.path, extent.offset..extent.offset + u64::from(extent.bytes))?;
        self.check(extent, &block)?;
        Ok(block)
    }

    /// Blocks that follow each other in the file; what the cache lacks comes in one read per gap.
    pub fn blocks(&self, extents: &[Extent]) -> Result<Vec<Arc<CachedBlock>>> {
        let cached = |extent: &Extent| self.cache.get(self.block_kind, self.id, extent.offset);
        let mut blocks: Vec<Option<Arc<CachedBlock>>> = extents.iter().map(cached).collect();
        let mut at = 0;
        while let Some(gap) = blocks[at..].iter().position(Option::is_none) {
            let first = at + gap;
            let length = blocks[first..].iter().take_while(|block| block.is_none()).count();
            self.read_gap(&extents[first..first + length], &mut blocks[first..first + length])?;
            at = first + length;
        }
        Ok(blocks.into_iter().flatten().collect())
    }

    fn read_gap(&self, extents: &[Extent], blocks: &mut [Option<Arc<CachedBlock>>]) -> Result<()> {
        let (start, last) = (extents[0].offset, extents[extents.len() - 1]);
        let run = self.files.read(&self.path, start..last.offset + u64::from(last.bytes))?;
        for (extent, block) in extents.iter().zip(blocks) {
            let from = (extent.offset - start) as usize;
            let Some(bytes) = run.get(from..from + extent.bytes as usize) else {
                return Err(self.damaged(extent.offset, Damage("blocks of a chunk do not follow each other")));
            };
            self.check(*extent, bytes)?;
            // A copy, so that evicting one block frees its bytes.
            let bytes = if extents.len() == 1 { run.clone() } else { Bytes::copy_from_slice(bytes) };
            *block = Some(self.cache.insert(self.block_kind, self.id, extent.offset, bytes));
        }
        Ok(())
    }
}

/// What a section holds. Readers skip kinds that they do not know, so a layout that changes takes a new
/// kind; numbers from 16 on are left to secondary indexes.
pub(crate) const SECTION_SPARSE_KEYS: u16 = 1;
pub(crate) const SECTION_KEY_HASHES: u16 = 2;
const SECTION_FILTER: u16 = 3;
pub(crate) const SECTION_COLUMN_FILTERS: u16 = 4;
pub(crate) const SECTION_SKETCHES: u16 = 5;
pub(crate) const SECTION_CLUSTERING: u16 = 6;
pub(crate) const SECTION_BITMAPS: u16 = 16;

/// Pages of sections that are read piecewise.
pub(crate) const SECTION_PAGE_BYTES: u32 = 32 << 10;

/// A part of the index region, checked page by page.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    pub kind: u16,
    /// The column it indexes, 0 for the key.
    pub column: u16,
    pub offset: u64,
    pub bytes: u64,
    pub page_bytes: u32,
    crcs: Vec<u32>,
    /// Small facts that the kind needs at hand.
    pub extra: Vec<u8>,
}

impl Section {
    pub fn write(sink: &mut FileSink, kind: u16, page_bytes: u32, content: &[u8], extra: Vec<u8>) -> Result<Section> {
        let offset = sink.position();
        let page_bytes = page_bytes.max(1);
        let crcs = content.chunks(page_bytes as usize).map(crc32c::crc32c).collect();
        sink.write(content)?;
        Ok(Section { kind, column: 0, offset, bytes: content.len() as u64, page_bytes, crcs, extra })
    }

    /// The same, of a column.
    pub fn of_column(self, column: u16) -> Section {
        Section { column, ..self }
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.kind.to_le_bytes());
        out.extend_from_slice(&self.column.to_le_bytes());
        varint::put(out, self.offset);
        varint::put(out, self.bytes);
        varint::put(out, u64::from(self.page_bytes));
        self.crcs.iter().for_each(|crc| out.extend_from_slice(&crc.to_le_bytes()));
        varint::put_slice(out, &self.extra);
    }

    pub fn take(input: &mut &[u8]) -> Decoded<Section> {
        const WHAT: &str = "a section of the index region";
        let kind = u16::from_le_bytes(take_array(input, WHAT)?);
        let column = u16::from_le_bytes(take_array(input, WHAT)?);
        let (offset, bytes) = (take_varint(input, WHAT)?, take_varint(input, WHAT)?);
        offset.checked_add(bytes).ok_or(Damage(WHAT))?;
        let page_bytes = take_u32(input, WHAT)?.max(1);
        let pages = usize::try_from(bytes.div_ceil(u64::from(page_bytes))).map_err(|_| Damage(WHAT))?;
        let crcs = take(input, pages.checked_mul(4).ok_or(Damage(WHAT))?, WHAT)?;
        let crcs = crcs.chunks_exact(4).map(|crc| u32::from_le_bytes(crc.try_into().expect("4 bytes"))).collect();
        let extra = varint::take_slice(input).ok_or(Damage(WHAT))?.to_vec();
        Ok(Section { kind, column, offset, bytes, page_bytes, crcs, extra })
    }

    pub fn pages(&self) -> usize {
        self.crcs.len()
    }

    /// # Panics
    /// If there is no such page.
    pub fn page(&self, index: usize) -> Extent {
        let start = index as u64 * u64::from(self.page_bytes);
        let bytes = (self.bytes - start).min(u64::from(self.page_bytes)) as u32;
        Extent { offset: self.offset + start, bytes, crc: self.crcs[index] }
    }
}

/// Writes a filter over key hashes.
pub(crate) fn write_filter(sink: &mut FileSink, hashes: &[u64]) -> Result<Section> {
    Section::write(sink, SECTION_FILTER, SECTION_PAGE_BYTES, &crate::filter::build(hashes), Vec::new())
}

/// Filters over hashes, read page by page.
pub(crate) struct Filter {
    section: Section,
    slots: Vec<Slot<CachedBlock>>,
}

impl Filter {
    pub fn new(section: Section) -> Filter {
        let slots = (0..section.pages()).map(|_| Slot::default()).collect();
        Filter { section, slots }
    }

    /// The filter over key hashes among a file's sections, if it has one.
    pub fn among(sections: &[Section]) -> Option<Filter> {
        sections.iter().find(|section| section.kind == SECTION_FILTER).cloned().map(Filter::new)
    }

    /// False only if the filter rules the hash out. Touches one page.
    pub fn contains(&self, file: &FramedFile, hash: u64) -> Result<bool> {
        self.contains_in(file, 0..(self.section.bytes / BLOCK_BYTES as u64) as u32, hash)
    }

    /// The same of the filter that is made of some of the blocks.
    pub fn contains_in(&self, file: &FramedFile, blocks: Range<u32>, hash: u64) -> Result<bool> {
        let section = &self.section;
        let at = (blocks.start + block_of(hash, blocks.len() as u32)) as usize * BLOCK_BYTES;
        let page_bytes = section.page_bytes as usize;
        if blocks.is_empty() || !page_bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(file.damaged(section.offset, Damage("a filter without blocks")));
        }
        let index = at / page_bytes;
        let page = file.block_of(&self.slots[index], section.page(index))?;
        match page.get(at % page_bytes..at % page_bytes + BLOCK_BYTES) {
            Some(block) => Ok(block_contains(block, hash)),
            None => Err(file.damaged(section.offset + at as u64, Damage("a filter cut inside a block"))),
        }
    }
}
