//! Bytes of a log file. `docs/format/log.md` has the same tables; integers are little-endian.
//!
//! ```text
//! file    | header page, 4096 bytes | block | block | ... | not written yet: zeros or a recycled file's past |
//! block   | header, 40 bytes | content: records and pieces of records | zeros up to a multiple of 4096 |
//! record  | payload length u32 | crc u32 | payload |        one record may go on in the next blocks and files
//!
//! file header: magic 8 | version u32 | crc u32 | sequence u64 | first LSN u64 | file bytes u64 | salt u64
//!              | epoch u32 | zeros up to 64; the crc covers the other 60 bytes in every version
//! block header: magic u32 | header crc u32 | LSN u64 | durable LSN u64 | epoch u32 | content bytes u32
//!              | first record u32 (offset in the content; content bytes if none starts here) | content crc u32
//! ```
//!
//! Header crc of a block and crc of a record also cover the epoch's salt, a random number that stands only
//! in file headers: what a user stores cannot be made to look like a block of the log that holds it.

use crate::error::{Error, Result};
use basalt_types::{Epoch, Lsn};
use std::path::Path;

#[cfg(test)]
mod tests;

pub const FORMAT_VERSION: u32 = 1;
/// Blocks begin at multiples of this, so that a page that was made durable is never written again.
pub const PAGE_BYTES: u64 = 4096;
/// Header, content and padding. A larger flush is several blocks.
pub const BLOCK_BYTES_MAX: usize = 1 << 20;
pub const BLOCK_HEADER_BYTES: usize = 40;
pub const RECORD_HEADER_BYTES: usize = 8;
/// Greatest payload of one record.
pub const RECORD_BYTES_MAX: usize = 64 << 20;
pub const FILE_BYTES_MIN: u64 = 4 * PAGE_BYTES;
pub const FILE_BYTES_MAX: u64 = 1 << 40;

const FILE_MAGIC: [u8; 8] = *b"BASALTLG";
const FILE_HEADER_BYTES: usize = 64;
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"LBLK");
/// Positions stay far from overflow, whatever stands on disk.
const LSN_MAX: u64 = 1 << 62;

/// Why bytes are not what a healthy log holds at that place.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Flaw {
    #[error("no log file starts here (magic {found:02x?})")]
    FileMagic { found: [u8; 8] },
    #[error("file header: stored checksum {stored:#010x}, computed {computed:#010x}")]
    FileHeaderSum { stored: u32, computed: u32 },
    #[error("file header: {field} is {value}")]
    FileHeaderField { field: &'static str, value: u64 },
    #[error("no block starts here (magic {found:#010x})")]
    BlockMagic { found: u32 },
    #[error("block header: stored checksum {stored:#010x}, computed {computed:#010x}")]
    BlockHeaderSum { stored: u32, computed: u32 },
    #[error("block of {lsn} and {epoch} at a place of {expected_lsn} and {expected_epoch}")]
    BlockOfElsewhere { lsn: Lsn, epoch: Epoch, expected_lsn: Lsn, expected_epoch: Epoch },
    #[error("block of {bytes} bytes where {bytes_max} fit")]
    BlockLength { bytes: u64, bytes_max: u64 },
    #[error("block content: stored checksum {stored:#010x}, computed {computed:#010x}")]
    ContentSum { stored: u32, computed: u32 },
    #[error("record: stored checksum {stored:#010x}, computed {computed:#010x}")]
    RecordSum { stored: u32, computed: u32 },
    #[error("record of {bytes} bytes does not end where the next begins")]
    RecordLength { bytes: u64 },
    #[error("the block goes on with a record that did not begin before it, or drops one that did")]
    RecordContinuation,
    #[error("the file ends {missing_bytes} bytes too early")]
    Short { missing_bytes: u64 },
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn align_up(position: u64) -> u64 {
    position.next_multiple_of(PAGE_BYTES)
}

/// Name of the live log file with this sequence number.
pub fn log_name(sequence: u64) -> String {
    format!("{sequence:016x}.log")
}

pub fn spare_name(serial: u64) -> String {
    format!("{serial:016x}.spare")
}

fn number_of(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    let lower_hex = digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() == 16 && lower_hex { u64::from_str_radix(digits, 16).ok() } else { None }
}

pub fn parse_log_name(name: &str) -> Option<u64> {
    number_of(name, ".log")
}

pub fn parse_spare_name(name: &str) -> Option<u64> {
    number_of(name, ".spare")
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileHeader {
    pub sequence: u64,
    /// Position of the first byte behind the header page.
    pub first: u64,
    pub file_bytes: u64,
    /// One random number per epoch.
    pub salt: u64,
    pub epoch: Epoch,
}

impl FileHeader {
    /// Position behind the last byte that fits.
    pub fn end(&self) -> u64 {
        self.first + self.file_bytes - PAGE_BYTES
    }

    /// Byte in the file where this position is.
    pub fn offset_of(&self, lsn: u64) -> u64 {
        PAGE_BYTES + lsn - self.first
    }

    /// A whole page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(PAGE_BYTES as usize);
        page.extend_from_slice(&FILE_MAGIC);
        page.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        page.extend_from_slice(&[0; 4]);
        for field in [self.sequence, self.first, self.file_bytes, self.salt] {
            page.extend_from_slice(&field.to_le_bytes());
        }
        page.extend_from_slice(&self.epoch.0.to_le_bytes());
        page.resize(PAGE_BYTES as usize, 0);
        let crc = Self::crc(&page);
        page[12..16].copy_from_slice(&crc.to_le_bytes());
        page
    }

    fn crc(page: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&page[..12]), &page[16..FILE_HEADER_BYTES])
    }

    /// Checks all that one file can know of itself; `path` and `sequence` (from its name) are for that.
    pub fn decode(path: &Path, sequence: u64, bytes: &[u8]) -> Result<FileHeader> {
        let corrupt = |offset: u64, flaw: Flaw| Error::Corrupt {
            path: path.to_path_buf(),
            offset,
            lsn: Lsn(0),
            durable: Lsn(0),
            flaw,
        };
        if bytes.len() < FILE_HEADER_BYTES {
            return Err(corrupt(0, Flaw::Short { missing_bytes: (FILE_HEADER_BYTES - bytes.len()) as u64 }));
        }
        if bytes[..8] != FILE_MAGIC {
            return Err(corrupt(0, Flaw::FileMagic { found: bytes[..8].try_into().expect("eight bytes") }));
        }
        let (stored, computed) = (u32_at(bytes, 12), Self::crc(bytes));
        if stored != computed {
            return Err(corrupt(12, Flaw::FileHeaderSum { stored, computed }));
        }
        let version = u32_at(bytes, 8);
        if version != FORMAT_VERSION {
            let path = path.to_path_buf();
            return Err(Error::NewerFormat { path, found: version, supported: FORMAT_VERSION });
        }
        let header = FileHeader {
            sequence: u64_at(bytes, 16),
            first: u64_at(bytes, 24),
            file_bytes: u64_at(bytes, 32),
            salt: u64_at(bytes, 40),
            epoch: Epoch(u32_at(bytes, 48)),
        };
        let field = |offset, field, value| Err(corrupt(offset, Flaw::FileHeaderField { field, value }));
        if header.sequence != sequence {
            return field(16, "sequence", header.sequence);
        }
        if !header.first.is_multiple_of(PAGE_BYTES) || header.first > LSN_MAX {
            return field(24, "first LSN", header.first);
        }
        if !file_bytes_allowed(header.file_bytes) {
            return field(32, "file bytes", header.file_bytes);
        }
        Ok(header)
    }
}

pub fn file_bytes_allowed(bytes: u64) -> bool {
    bytes.is_multiple_of(PAGE_BYTES) && (FILE_BYTES_MIN..=FILE_BYTES_MAX).contains(&bytes)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockHeader {
    pub lsn: u64,
    /// Everything below was known to be durable when this block was written.
    pub durable: u64,
    pub epoch: Epoch,
    pub content_bytes: u32,
    pub first_record: u32,
    pub content_crc: u32,
}

impl BlockHeader {
    /// Position where the next block begins.
    pub fn end(&self) -> u64 {
        align_up(self.lsn + BLOCK_HEADER_BYTES as u64 + u64::from(self.content_bytes))
    }

    pub fn encode(&self, salt: u64) -> [u8; BLOCK_HEADER_BYTES] {
        let mut out = [0; BLOCK_HEADER_BYTES];
        out[0..4].copy_from_slice(&BLOCK_MAGIC.to_le_bytes());
        out[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        out[16..24].copy_from_slice(&self.durable.to_le_bytes());
        out[24..28].copy_from_slice(&self.epoch.0.to_le_bytes());
        out[28..32].copy_from_slice(&self.content_bytes.to_le_bytes());
        out[32..36].copy_from_slice(&self.first_record.to_le_bytes());
        out[36..40].copy_from_slice(&self.content_crc.to_le_bytes());
        let crc = Self::crc(&out, salt);
        out[4..8].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn crc(header: &[u8], salt: u64) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), &header[8..BLOCK_HEADER_BYTES])
    }

    /// The header of a block of `file` at position `lsn`; `bytes` begin there and may be cut short.
    pub fn decode(bytes: &[u8], file: &FileHeader, lsn: u64) -> Result<BlockHeader, Flaw> {
        if bytes.len() < BLOCK_HEADER_BYTES {
            return Err(Flaw::Short { missing_bytes: (BLOCK_HEADER_BYTES - bytes.len()) as u64 });
        }
        let found = u32_at(bytes, 0);
        if found != BLOCK_MAGIC {
            return Err(Flaw::BlockMagic { found });
        }
        let (stored, computed) = (u32_at(bytes, 4), Self::crc(bytes, file.salt));
        if stored != computed {
            return Err(Flaw::BlockHeaderSum { stored, computed });
        }
        let header = BlockHeader {
            lsn: u64_at(bytes, 8),
            durable: u64_at(bytes, 16),
            epoch: Epoch(u32_at(bytes, 24)),
            content_bytes: u32_at(bytes, 28),
            first_record: u32_at(bytes, 32),
            content_crc: u32_at(bytes, 36),
        };
        if header.lsn != lsn || header.epoch != file.epoch {
            return Err(Flaw::BlockOfElsewhere {
                lsn: Lsn(header.lsn),
                epoch: header.epoch,
                expected_lsn: Lsn(lsn),
                expected_epoch: file.epoch,
            });
        }
        let content_bytes_max = (BLOCK_BYTES_MAX - BLOCK_HEADER_BYTES) as u32;
        let sane = (1..=content_bytes_max).contains(&header.content_bytes)
            && header.first_record <= header.content_bytes
            && header.durable <= lsn
            && header.end() <= file.end();
        if !sane {
            let bytes_max = (file.end() - lsn).min(BLOCK_BYTES_MAX as u64);
            return Err(Flaw::BlockLength { bytes: header.end() - lsn, bytes_max });
        }
        Ok(header)
    }
}

/// Checksum of a record: the payload first, so that it can be summed before the position is known.
pub fn record_crc(payload_crc: u32, lsn: u64, epoch: Epoch, salt: u64, payload_bytes: u32) -> u32 {
    let mut place = [0; 24];
    place[..8].copy_from_slice(&lsn.to_le_bytes());
    place[8..12].copy_from_slice(&epoch.0.to_le_bytes());
    place[12..16].copy_from_slice(&payload_bytes.to_le_bytes());
    place[16..].copy_from_slice(&salt.to_le_bytes());
    crc32c::crc32c_append(payload_crc, &place)
}

pub fn encode_record_header(payload_bytes: u32, crc: u32) -> [u8; RECORD_HEADER_BYTES] {
    let mut out = [0; RECORD_HEADER_BYTES];
    out[..4].copy_from_slice(&payload_bytes.to_le_bytes());
    out[4..].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Payload length and checksum; `None` if fewer than [`RECORD_HEADER_BYTES`] are there.
pub fn decode_record_header(bytes: &[u8]) -> Option<(u32, u32)> {
    (bytes.len() >= RECORD_HEADER_BYTES).then(|| (u32_at(bytes, 0), u32_at(bytes, 4)))
}
