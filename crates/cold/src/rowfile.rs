//! Row files: rows, tombstones included, in key order (checkpoints of hot pages, eviction, tables of row orientation).
//!
//! Entries lie in blocks of about [`BLOCK_BYTES`], each checksummed and cached on its own, with a table of
//! offsets so that keys are searched without decoding rows. The footer holds every block's first key. Entries carry
//! versions, or none if the whole file has one (a batch's).
//! `docs/format/rowfile.md` has the bytes. As in segments, an ordinal is an entry's position in the file.

mod block;
mod held;
mod reader;
mod writer;

#[cfg(test)]
mod tests;

pub use held::HeldEntries;
pub use reader::{RowFile, RowFileIter};
pub use writer::RowFileWriter;

use crate::encoding::{Damage, Decoded, take_array, take_varint};
use crate::frame::{Extent, Section, put_stamp_range, take_stamp_range, take_u32};
use basalt_types::{FileId, Key, Rid, Version, varint};

const MAGIC: &[u8; 8] = b"BSLT-ROW";
/// A block is closed by the entry that fills it; a larger row makes a larger block.
const BLOCK_BYTES: usize = 16 << 10;

/// One entry. `row` is encoded as `types::row`; `None` is a tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowEntry {
    pub key: Key,
    pub rid: Rid,
    /// Zero in a file whose entries carry none.
    pub version: Version,
    pub row: Option<Box<[u8]>>,
}

/// One entry, borrowed from its block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowEntryRef<'b> {
    pub key: &'b [u8],
    pub rid: Rid,
    pub version: Version,
    pub row: Option<&'b [u8]>,
}

impl RowEntryRef<'_> {
    pub fn to_owned(&self) -> RowEntry {
        RowEntry { key: Key::from(self.key), rid: self.rid, version: self.version, row: self.row.map(Into::into) }
    }
}

/// What the file list keeps of a row file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFileMeta {
    pub id: FileId,
    /// Entries, tombstones included.
    pub rows: u32,
    pub bytes: u64,
    pub key_range: Option<(Key, Key)>,
    /// `None` if entries carry no versions.
    pub stamp_range: Option<(Version, Version)>,
    /// Checksum of the footer, which holds the checksums of everything else.
    pub checksum: u32,
}

/// One block as the footer knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BlockEntry {
    extent: Extent,
    first_ordinal: u32,
    count: u32,
    first_key: Key,
}

/// ```text
/// file id u64 | rows varint | range of versions | blocks varint
/// | per block: extent | entries varint | first key (length varint, bytes)
/// | last key, if there are blocks | sections varint | sections
/// ```
struct Layout {
    id: FileId,
    rows: u32,
    stamp_range: Option<(Version, Version)>,
    blocks: Vec<BlockEntry>,
    last_key: Option<Key>,
    sections: Vec<Section>,
}

impl Layout {
    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&self.id.to_u64().to_le_bytes());
        varint::put(&mut out, u64::from(self.rows));
        put_stamp_range(self.stamp_range, &mut out);
        varint::put(&mut out, self.blocks.len() as u64);
        for block in &self.blocks {
            block.extent.put(&mut out);
            varint::put(&mut out, u64::from(block.count));
            varint::put_slice(&mut out, block.first_key.as_bytes());
        }
        self.last_key.iter().for_each(|key| varint::put_slice(&mut out, key.as_bytes()));
        varint::put(&mut out, self.sections.len() as u64);
        self.sections.iter().for_each(|section| section.put(&mut out));
        out
    }

    fn decode(mut input: &[u8]) -> Decoded<Layout> {
        const KEY: Damage = Damage("key of a block");
        let input = &mut input;
        let id = FileId::from_u64(u64::from_le_bytes(take_array(input, "file id")?));
        let rows = take_u32(input, "number of rows")?;
        let stamp_range = take_stamp_range(input)?;
        let count = take_varint(input, "number of blocks")?;
        let mut blocks: Vec<BlockEntry> = Vec::new();
        let mut first_ordinal = 0u32;
        for _ in 0..count {
            let extent = Extent::take(input)?;
            let count = take_u32(input, "entries of a block")?;
            let first_key = Key::from(varint::take_slice(input).ok_or(KEY)?);
            blocks.push(BlockEntry { extent, first_ordinal, count, first_key });
            first_ordinal = first_ordinal.checked_add(count).ok_or(Damage("more entries than ordinals"))?;
        }
        let last_key = match blocks.is_empty() {
            true => None,
            false => Some(Key::from(varint::take_slice(input).ok_or(KEY)?)),
        };
        let count = take_varint(input, "number of sections")?;
        let sections = (0..count).map(|_| Section::take(input)).collect::<Decoded<Vec<_>>>()?;
        if !input.is_empty() || first_ordinal != rows || blocks.iter().any(|block| block.count == 0) {
            return Err(Damage("blocks do not add up to the file"));
        }
        Ok(Layout { id, rows, stamp_range, blocks, last_key, sections })
    }

    fn key_range(&self) -> Option<(Key, Key)> {
        Some((self.blocks.first()?.first_key.clone(), self.last_key.clone()?))
    }
}
