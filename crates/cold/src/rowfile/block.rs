//! One block of entries.
//!
//! ```text
//! count u32 | end of entry u32, per entry | entries
//! entry: key (length varint, bytes) | rid varint | version varint | 0, or row length + 1 varint and row
//! ```

use super::RowEntryRef;
use crate::encoding::{Damage, Decoded, take, take_varint};
use basalt_types::{Rid, Version, varint};
use bytes::Bytes;

#[derive(Default)]
pub(super) struct BlockBuilder {
    ends: Vec<u32>,
    entries: Vec<u8>,
}

impl BlockBuilder {
    pub fn push(&mut self, key: &[u8], rid: Rid, version: Version, row: Option<&[u8]>) {
        varint::put_slice(&mut self.entries, key);
        varint::put(&mut self.entries, rid.0);
        varint::put(&mut self.entries, version.0);
        match row {
            None => self.entries.push(0),
            Some(row) => {
                varint::put(&mut self.entries, row.len() as u64 + 1);
                self.entries.extend_from_slice(row);
            }
        }
        self.ends.push(self.entries.len() as u32);
    }

    pub fn count(&self) -> u32 {
        self.ends.len() as u32
    }

    pub fn bytes(&self) -> usize {
        4 + self.ends.len() * 4 + self.entries.len()
    }

    /// The block; the builder starts anew.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes());
        out.extend_from_slice(&self.count().to_le_bytes());
        self.ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
        out.append(&mut self.entries);
        self.ends.clear();
        out
    }
}

pub(super) struct Block {
    bytes: Bytes,
    count: usize,
}

impl Block {
    /// Of a block that was parsed before: its checksum says that it is still the same.
    pub fn known(bytes: Bytes, count: u32) -> Block {
        Block { bytes, count: count as usize }
    }

    pub fn parse(bytes: Bytes, count: u32) -> Decoded<Block> {
        let block = Block::known(bytes, count);
        let head = 4 + block.count * 4;
        if block.bytes.len() < head || block.word(0) != count {
            return Err(Damage("head of a block"));
        }
        let ends = || (0..block.count).map(|i| block.word(1 + i) as usize);
        if !ends().is_sorted() || ends().last() != Some(block.bytes.len() - head) {
            return Err(Damage("ends of entries"));
        }
        Ok(block)
    }

    pub fn count(&self) -> usize {
        self.count
    }

    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    fn word(&self, index: usize) -> u32 {
        u32::from_le_bytes(self.bytes[index * 4..][..4].try_into().expect("4 bytes"))
    }

    fn entry(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.word(index) as usize };
        &self.bytes[4 + self.count * 4..][start..self.word(index + 1) as usize]
    }

    /// # Panics
    /// If there is no such entry.
    pub fn key(&self, index: usize) -> Decoded<&[u8]> {
        varint::take_slice(&mut self.entry(index)).ok_or(Damage("key of an entry"))
    }

    /// The first entry whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> Decoded<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if self.key(middle)? < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// # Panics
    /// If there is no such entry.
    pub fn get(&self, index: usize) -> Decoded<RowEntryRef<'_>> {
        let mut input = self.entry(index);
        let key = varint::take_slice(&mut input).ok_or(Damage("key of an entry"))?;
        let rid = Rid(take_varint(&mut input, "row id of an entry")?);
        let version = take_varint(&mut input, "version of an entry")?;
        let row = match take_varint(&mut input, "row of an entry")? {
            0 => None,
            length => {
                let length = usize::try_from(length - 1).map_err(|_| Damage("row of an entry"))?;
                Some(take(&mut input, length, "row of an entry")?)
            }
        };
        if !input.is_empty() || version > Version::MAX.0 {
            return Err(Damage("an entry that is not an entry"));
        }
        Ok(RowEntryRef { key, rid, version: Version(version), row })
    }
}
