//! Writes a row file, block by block.

use super::block::BlockBuilder;
use super::{BLOCK_BYTES, BlockEntry, Layout, MAGIC, RowFileMeta};
use crate::frame::{self, write_block, write_filter};
use crate::store::FileSink;
use crate::{Error, FileKind, Files, Result, key_hash};
use basalt_types::{FileId, Key, Rid, Version};

pub struct RowFileWriter {
    layout: Layout,
    sink: FileSink,
    block: BlockBuilder,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    hashes: Vec<u64>,
}

impl RowFileWriter {
    /// Starts a file. Nothing is visible in the store before [`finish`](Self::finish).
    pub fn create(files: &Files, id: FileId) -> Result<RowFileWriter> {
        let mut sink = files.create(id, FileKind::Row)?;
        sink.write(MAGIC)?;
        let layout =
            Layout { id, rows: 0, stamp_range: None, blocks: Vec::new(), last_key: None, sections: Vec::new() };
        let (first_key, last_key) = (Vec::new(), Vec::new());
        Ok(RowFileWriter { layout, sink, block: BlockBuilder::default(), first_key, last_key, hashes: Vec::new() })
    }

    /// Appends an entry; keys ascend (equal ones allowed). `version`: all entries of a file have one, or none has.
    /// `row` is encoded as `types::row`, `None` is a tombstone. An error leaves the writer fit only to be dropped.
    pub fn push(&mut self, key: &[u8], rid: Rid, version: Option<Version>, row: Option<&[u8]>) -> Result<()> {
        let path = || self.sink.path().to_string();
        if self.layout.rows > 0 && key < self.last_key.as_slice() {
            return Err(Error::OutOfOrder { path: path(), previous: self.last_key.clone(), key: key.to_vec() });
        }
        if self.layout.rows == crate::segment::ROWS_MAX {
            return Err(Error::TooManyRows { path: path(), rows_max: crate::segment::ROWS_MAX });
        }
        let is_first = self.layout.rows == 0;
        if !is_first && version.is_some() != self.layout.stamp_range.is_some() {
            let what = "versions in all entries or in none".to_string();
            return Err(Error::SchemaMismatch { path: path(), what });
        }
        let bytes = (key.len() + row.map_or(0, <[u8]>::len)) as u64;
        if bytes > 1 << 31 {
            return Err(Error::TooLarge { path: path(), bytes, bytes_max: 1 << 31 });
        }
        if self.block.count() == 0 {
            self.first_key = key.to_vec();
        }
        self.block.push(key, rid, version.unwrap_or(Version::ZERO), row);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.hashes.push(key_hash(key));
        self.layout.rows += 1;
        if let Some(version) = version {
            let range = self.layout.stamp_range.get_or_insert((version, version));
            *range = (range.0.min(version), range.1.max(version));
        }
        if self.block.bytes() >= BLOCK_BYTES { self.write_block() } else { Ok(()) }
    }

    /// Entries pushed so far: the ordinal of the next one.
    pub fn rows(&self) -> u32 {
        self.layout.rows
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.sink.position()
    }

    fn write_block(&mut self) -> Result<()> {
        let count = self.block.count();
        let extent = write_block(&mut self.sink, &self.block.finish())?;
        let first_key = Key::from(self.first_key.as_slice());
        let first_ordinal = self.layout.rows - count;
        self.layout.blocks.push(BlockEntry { extent, first_ordinal, count, first_key });
        Ok(())
    }

    /// Writes what remains; the file is durable on return.
    pub fn finish(mut self) -> Result<RowFileMeta> {
        if self.block.count() > 0 {
            self.write_block()?;
        }
        if self.layout.rows > 0 {
            self.layout.last_key = Some(Key::from(self.last_key.as_slice()));
            self.layout.sections.push(write_filter(&mut self.sink, &self.hashes)?);
        }
        let (bytes, checksum) = frame::finish(self.sink, &self.layout.encode(), MAGIC)?;
        let Layout { id, rows, stamp_range, .. } = self.layout;
        Ok(RowFileMeta { id, rows, bytes, key_range: self.layout.key_range(), stamp_range, checksum })
    }
}
