//! Row files: rows, tombstones included, in key order (checkpoints of hot pages, eviction).

use crate::{BlockCache, Files, Result};
use basalt_types::{FileId, Key, Rid, Version};
use std::sync::Arc;

/// One entry. `row` is encoded as `types::row`; `None` is a tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowEntry {
    pub key: Key,
    pub rid: Rid,
    pub version: Version,
    pub row: Option<Box<[u8]>>,
}

/// What the file list keeps of a row file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowFileMeta {
    pub id: FileId,
    pub rows: u32,
    pub bytes: u64,
    pub key_range: Option<(Key, Key)>,
    pub stamp_range: Option<(Version, Version)>,
    pub checksum: u32,
}

pub struct RowFileWriter {}

impl RowFileWriter {
    pub fn create(_: &Files, _: FileId) -> Result<RowFileWriter> {
        unimplemented!()
    }

    /// Appends an entry; keys ascend (equal ones allowed).
    pub fn push(&mut self, _key: &[u8], _rid: Rid, _version: Version, _row: Option<&[u8]>) -> Result<()> {
        unimplemented!()
    }

    pub fn rows(&self) -> u32 {
        unimplemented!()
    }

    pub fn finish(self) -> Result<RowFileMeta> {
        unimplemented!()
    }
}

pub struct RowFile {}

impl RowFile {
    pub fn open(_: &Files, _: FileId, _: &Arc<BlockCache>) -> Result<RowFile> {
        unimplemented!()
    }

    pub fn meta(&self) -> &RowFileMeta {
        unimplemented!()
    }

    /// Entries with this key, with their ordinals, ascending.
    pub fn find(&self, _key: &[u8]) -> Result<Vec<(u32, RowEntry)>> {
        unimplemented!()
    }

    pub fn entry_at(&self, _ordinal: u32) -> Result<RowEntry> {
        unimplemented!()
    }

    /// The first ordinal whose key is not below `key`.
    pub fn lower_bound(&self, _key: &[u8]) -> Result<u32> {
        unimplemented!()
    }

    /// Entries from an ordinal on, in key order.
    pub fn iter(&self, _from: u32) -> impl Iterator<Item = Result<(u32, RowEntry)>> {
        std::iter::empty()
    }

    pub fn may_contain(&self, _key_hash: u64) -> Result<bool> {
        unimplemented!()
    }

    pub fn verify(&self) -> Result<()> {
        unimplemented!()
    }
}
