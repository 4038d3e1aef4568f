//! The binary format:
//!
//! ```text
//! "PGCOPY\n" ff 0d 0a 00 | flags i32 | extension length i32 | extension | rows …  | -1 i16
//! row: field count i16 | (length i32, -1 for null | bytes) …
//! ```

use super::reader::{Fields, Step};
use crate::error::{Result, SqlError};
use basalt_types::varint::take_bytes;

pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

const WITH_OIDS: u32 = 1 << 16;
/// Flags 16 to 31 are critical: a reader that does not know one must refuse.
const CRITICAL_FLAGS: u32 = 0xffff_0000;

#[derive(Default)]
pub(crate) struct BinaryReader {
    begun: bool,
}

impl BinaryReader {
    pub fn read_row(&mut self, input: &[u8], fields: &mut Fields) -> Result<Step> {
        if !self.begun {
            return self.read_header(input);
        }
        let mut rest = input;
        let Some(count) = take_i16(&mut rest) else { return Ok(Step::More) };
        if count == -1 {
            return Ok(Step::End(input.len() - rest.len()));
        }
        fields.line += 1;
        if usize::try_from(count) != Ok(fields.columns.len()) {
            let message = format!("row field count is {count}, expected {}", fields.columns.len());
            return Err(fields.place_error("22P04", message));
        }
        // All fields must be there before any is read into its column.
        let mut ahead = rest;
        for at in 0..fields.columns.len() {
            let Some(length) = take_i32(&mut ahead) else { return self.more(fields) };
            if length < -1 {
                return Err(fields.column_error("22P04", "invalid field size", at));
            }
            if length > 0 && take_bytes(&mut ahead, length as usize).is_none() {
                return self.more(fields);
            }
        }
        for at in 0..fields.columns.len() {
            match take_i32(&mut rest) {
                Some(length) if length >= 0 => {
                    let field = take_bytes(&mut rest, length as usize).unwrap_or_default();
                    fields.push_binary(at, field)?;
                }
                _ => fields.push_null(at)?,
            }
        }
        fields.rows += 1;
        Ok(Step::Row(input.len() - rest.len()))
    }

    /// The input ended, with `rest` unread. That is fine between rows, even without the end marker.
    pub fn end(&self, rest: &[u8], fields: &mut Fields) -> Result<()> {
        if !self.begun {
            let missing = match rest.len().checked_sub(SIGNATURE.len()) {
                None => "COPY file signature not recognized",
                Some(0..4) => "invalid COPY file header (missing flags)",
                Some(4..8) => "invalid COPY file header (missing length)",
                Some(_) => "invalid COPY file header (wrong length)",
            };
            return Err(SqlError::new("22P04", missing));
        }
        let mut rest = rest;
        if take_i16(&mut rest).is_none() {
            return Ok(());
        }
        fields.line += 1;
        let whole = |rest: &mut &[u8]| match take_i32(rest)? {
            length if length > 0 => take_bytes(rest, length as usize).map(|_| ()),
            _ => Some(()),
        };
        let at = (0..fields.columns.len()).find(|_| whole(&mut rest).is_none());
        Err(fields.column_error("22P04", "unexpected EOF in COPY data", at.unwrap_or_default()))
    }

    fn more(&self, fields: &mut Fields) -> Result<Step> {
        fields.line -= 1;
        Ok(Step::More)
    }

    fn read_header(&mut self, input: &[u8]) -> Result<Step> {
        let seen = input.len().min(SIGNATURE.len());
        if input[..seen] != SIGNATURE[..seen] {
            return Err(SqlError::new("22P04", "COPY file signature not recognized"));
        }
        let mut rest = &input[seen..];
        let (Some(flags), Some(extension)) = (take_i32(&mut rest), take_i32(&mut rest)) else { return Ok(Step::More) };
        if flags as u32 & WITH_OIDS != 0 {
            return Err(SqlError::new("22P04", "invalid COPY file header (WITH OIDS)"));
        }
        if flags as u32 & CRITICAL_FLAGS != 0 {
            return Err(SqlError::new("22P04", "unrecognized critical flags in COPY file header"));
        }
        let Ok(extension) = usize::try_from(extension) else {
            return Err(SqlError::new("22P04", "invalid COPY file header (missing length)"));
        };
        if take_bytes(&mut rest, extension).is_none() {
            return Ok(Step::More);
        }
        self.begun = true;
        Ok(Step::Row(input.len() - rest.len()))
    }
}

fn take_i16(input: &mut &[u8]) -> Option<i16> {
    take_bytes(input, 2).and_then(|bytes| bytes.try_into().ok()).map(i16::from_be_bytes)
}

fn take_i32(input: &mut &[u8]) -> Option<i32> {
    take_bytes(input, 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes)
}
