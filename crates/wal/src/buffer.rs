//! The part of the log that is appended but not yet handed to the writer: an image of the bytes as they
//! will stand in the files, block headers left blank until the writer knows the durable LSN.
//!
//! A block is opened by the first byte that needs one and ends at its greatest size, at the end of its
//! file, or when the writer takes the image. The stream counts block headers and padding but not file
//! headers, so the image is contiguous across files.

use crate::format::{
    BLOCK_BYTES_MAX, BLOCK_HEADER_BYTES, BlockHeader, PAGE_BYTES, RECORD_HEADER_BYTES, align_up, encode_record_header,
    record_crc,
};
use basalt_types::Epoch;

#[cfg(test)]
mod tests;

/// What every byte of one epoch has in common: where its files begin and what its checksums cover.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    pub epoch: Epoch,
    pub salt: u64,
    /// Position of the epoch's first file.
    pub origin: u64,
    /// Stream bytes per file.
    pub capacity: u64,
}

impl Stream {
    /// Where the file that holds the byte at `lsn` ends.
    pub fn file_end(&self, lsn: u64) -> u64 {
        self.origin + ((lsn - self.origin) / self.capacity + 1) * self.capacity
    }

    /// No record of `payload_bytes` that starts at or behind `position` in the open image ends above this.
    pub fn end_bound(&self, position: u64, payload_bytes: usize) -> u64 {
        let bytes = (payload_bytes + RECORD_HEADER_BYTES) as u64;
        let content_min = (BLOCK_BYTES_MAX as u64).min(self.capacity) - BLOCK_HEADER_BYTES as u64;
        let headers = 2 + 2 * bytes.div_ceil(content_min);
        align_up(position + bytes + headers * BLOCK_HEADER_BYTES as u64)
    }
}

/// One block of an [`Image`].
#[derive(Clone, Copy, Debug)]
pub struct BlockMark {
    /// Where its header is in the image.
    pub at: usize,
    pub content_bytes: u32,
    pub first_record: Option<u32>,
    /// Image byte where it must end.
    limit: usize,
}

impl BlockMark {
    fn used(&self) -> usize {
        self.at + BLOCK_HEADER_BYTES + self.content_bytes as usize
    }
}

/// Bytes from position `start` on (a multiple of the page size).
#[derive(Debug, Default)]
pub struct Image {
    pub start: u64,
    pub bytes: Vec<u8>,
    pub blocks: Vec<BlockMark>,
    pub records: u64,
}

impl Image {
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Empties it for the bytes from `start` on; memory stays.
    pub fn reset(&mut self, start: u64) {
        self.start = start;
        self.bytes.clear();
        self.blocks.clear();
        self.records = 0;
    }

    /// Adds one record; gives the position of its first byte. `payload_crc` is the plain sum of `parts`.
    pub fn append(&mut self, stream: &Stream, parts: &[&[u8]], payload_bytes: u32, payload_crc: u32) -> u64 {
        self.make_room(stream);
        let block = self.blocks.last_mut().expect("a block is open");
        block.first_record.get_or_insert(block.content_bytes);
        let lsn = self.end();
        let crc = record_crc(payload_crc, lsn, stream.epoch, stream.salt, payload_bytes);
        self.put(stream, &encode_record_header(payload_bytes, crc));
        for part in parts {
            self.put(stream, part);
        }
        self.records += 1;
        lsn
    }

    /// Opens a block unless the last one has room for at least one byte.
    fn make_room(&mut self, stream: &Stream) {
        if self.blocks.last().is_some_and(|block| block.used() < block.limit) {
            return;
        }
        let at = self.bytes.len();
        let file_end = (stream.file_end(self.end()) - self.start) as usize;
        let limit = file_end.min(at + BLOCK_BYTES_MAX);
        self.blocks.push(BlockMark { at, content_bytes: 0, first_record: None, limit });
        self.bytes.resize(at + BLOCK_HEADER_BYTES, 0);
    }

    fn put(&mut self, stream: &Stream, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            self.make_room(stream);
            let block = self.blocks.last_mut().expect("a block is open");
            let (now, later) = bytes.split_at(bytes.len().min(block.limit - block.used()));
            block.content_bytes += now.len() as u32;
            self.bytes.extend_from_slice(now);
            bytes = later;
        }
    }

    /// Ends the last block: nothing may be appended until [`Image::reset`].
    pub fn seal(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(PAGE_BYTES as usize), 0);
    }

    /// Writes the headers of the blocks that lie below image byte `to`; gives the number of blocks done.
    pub fn write_headers(&mut self, stream: &Stream, from_block: usize, to: usize, durable: u64) -> usize {
        let mut done = from_block;
        while let Some(block) = self.blocks.get(done).filter(|block| block.at < to) {
            let content_at = block.at + BLOCK_HEADER_BYTES;
            let header = BlockHeader {
                lsn: self.start + block.at as u64,
                durable,
                epoch: stream.epoch,
                content_bytes: block.content_bytes,
                first_record: block.first_record.unwrap_or(block.content_bytes),
                content_crc: crc32c::crc32c(&self.bytes[content_at..block.used()]),
            };
            self.bytes[block.at..content_at].copy_from_slice(&header.encode(stream.salt));
            done += 1;
        }
        done
    }
}
