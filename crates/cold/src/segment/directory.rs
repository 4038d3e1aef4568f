//! The page directory of one row group: where each page of each chunk is, and what lies in it.
//!
//! ```text
//! per chunk: shared kind u8 (0: none) | (shared extent) | offset of the first page varint
//!            | per page: bytes varint | crc32c u32 | zone map
//! ```
//!
//! Chunks come in the order of the schema; a chunk of versions follows if rows carry their own. Pages of a
//! chunk follow each other without a gap. The number of pages follows from the rows.

use super::PAGE_ROWS;
use super::zone::ZoneMap;
use crate::cache::{CachedBlock, Slot};
use crate::encoding::dictionary::{Shared, SharedKind};
use crate::encoding::{Damage, Decoded, take_array, take_varint};
use crate::frame::{Extent, take_u32};
use basalt_types::varint;

pub(super) struct PageEntry {
    pub extent: Extent,
    pub zone: ZoneMap,
    pub slot: Slot<CachedBlock>,
}

impl PageEntry {
    pub fn new(extent: Extent, zone: ZoneMap) -> PageEntry {
        PageEntry { extent, zone, slot: Slot::default() }
    }
}

pub(super) struct ChunkEntry {
    pub shared: Option<(SharedKind, Extent)>,
    pub shared_slot: Slot<Shared>,
    pub pages: Vec<PageEntry>,
}

impl ChunkEntry {
    pub fn new(shared: Option<(SharedKind, Extent)>, pages: Vec<PageEntry>) -> ChunkEntry {
        ChunkEntry { shared, shared_slot: Slot::default(), pages }
    }

    pub fn put(&self, out: &mut Vec<u8>) {
        match &self.shared {
            None => out.push(0),
            Some((kind, extent)) => {
                out.push(*kind as u8);
                extent.put(out);
            }
        }
        varint::put(out, self.pages.first().map_or(0, |page| page.extent.offset));
        for page in &self.pages {
            varint::put(out, u64::from(page.extent.bytes));
            out.extend_from_slice(&page.extent.crc.to_le_bytes());
            page.zone.put(out);
        }
    }

    fn take(input: &mut &[u8], rows: u32) -> Decoded<ChunkEntry> {
        let shared = match take_array(input, "kind of a shared block")? {
            [0] => None,
            [kind] => {
                let kind = SharedKind::from_u8(kind).ok_or(Damage("unknown kind of a shared block"))?;
                Some((kind, Extent::take(input)?))
            }
        };
        let mut offset = take_varint(input, "offset of a chunk")?;
        let mut pages = Vec::with_capacity(page_count(rows));
        for page in 0..page_count(rows) as u32 {
            let bytes = take_u32(input, "size of a page")?;
            let crc = u32::from_le_bytes(take_array(input, "checksum of a page")?);
            let zone = ZoneMap::take(input, page_rows(rows, page))?;
            pages.push(PageEntry::new(Extent { offset, bytes, crc }, zone));
            offset = offset.checked_add(u64::from(bytes)).ok_or(Damage("a page beyond all files"))?;
        }
        Ok(ChunkEntry::new(shared, pages))
    }
}

pub(super) struct Directory {
    pub chunks: Vec<ChunkEntry>,
}

impl Directory {
    pub fn parse(mut input: &[u8], rows: u32, chunks: usize) -> Decoded<Directory> {
        let chunks = (0..chunks).map(|_| ChunkEntry::take(&mut input, rows)).collect::<Decoded<Vec<_>>>()?;
        if input.is_empty() { Ok(Directory { chunks }) } else { Err(Damage("bytes behind a page directory")) }
    }
}

pub(super) fn page_count(rows: u32) -> usize {
    rows.div_ceil(PAGE_ROWS) as usize
}

/// Rows of one page of a row group of `rows` rows.
pub(super) fn page_rows(rows: u32, page: u32) -> u32 {
    (rows - page * PAGE_ROWS).min(PAGE_ROWS)
}
