//! The text format (PostgreSQL manual, COPY, File Formats): fields between delimiters, backslash escapes.

use super::lines::{extra_data, missing_data};
use super::reader::Fields;
use crate::error::Result;
use crate::syntax::CopyOptions;

/// Reads the fields of a line into their columns.
pub(super) fn read_line(line: &[u8], fields: &mut Fields, scratch: &mut Vec<u8>) -> Result<()> {
    let count = fields.columns.len();
    if count == 0 {
        return if line.is_empty() { Ok(()) } else { Err(extra_data(fields, line)) };
    }
    let delimiter = fields.options.delimiter;
    let escaped = memchr::memchr(b'\\', line).is_some();
    let mut rest = line;
    for at in 0..count {
        let end = match escaped {
            false => memchr::memchr(delimiter, rest),
            true => find_delimiter(rest, delimiter),
        };
        let field = match (end, at + 1 == count) {
            (None, true) => rest,
            (None, false) => {
                push(rest, at, escaped, fields, scratch)?;
                return Err(missing_data(fields, at + 1, line));
            }
            (Some(_), true) => return Err(extra_data(fields, line)),
            (Some(end), false) => {
                let field = &rest[..end];
                rest = &rest[end + 1..];
                field
            }
        };
        push(field, at, escaped, fields, scratch)?;
    }
    Ok(())
}

#[inline]
fn push(field: &[u8], at: usize, escaped: bool, fields: &mut Fields, scratch: &mut Vec<u8>) -> Result<()> {
    if field == fields.options.null.as_bytes() {
        fields.push_null(at)?;
        return Ok(());
    }
    if escaped && memchr::memchr(b'\\', field).is_some() {
        scratch.clear();
        unescape(field, scratch);
        return fields.push_text(at, scratch);
    }
    fields.push_text(at, field)
}

/// The next delimiter that no backslash precedes.
fn find_delimiter(bytes: &[u8], delimiter: u8) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + memchr::memchr2(delimiter, b'\\', &bytes[at..])?;
        if bytes[found] == delimiter {
            return Some(found);
        }
        at = found + 2;
        if at >= bytes.len() {
            return None;
        }
    }
}

fn unescape(field: &[u8], out: &mut Vec<u8>) {
    let mut rest = field;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some((&byte, after)) = rest.split_first() else {
            out.push(b'\\');
            return;
        };
        rest = after;
        match byte {
            b'b' => out.push(0x08),
            b'f' => out.push(0x0c),
            b'n' => out.push(b'\n'),
            b'r' => out.push(b'\r'),
            b't' => out.push(b'\t'),
            b'v' => out.push(0x0b),
            b'0'..=b'7' => {
                let more = rest.iter().take(2).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
                let digits = rest[..more]
                    .iter()
                    .fold(u32::from(byte - b'0'), |value, digit| value * 8 + u32::from(digit - b'0'));
                out.push(digits as u8);
                rest = &rest[more..];
            }
            b'x' => {
                let more = rest.iter().take(2).take_while(|byte| byte.is_ascii_hexdigit()).count();
                let digits = std::str::from_utf8(&rest[..more]).unwrap_or_default();
                match u8::from_str_radix(digits, 16) {
                    Ok(value) => out.push(value),
                    Err(_) => out.push(b'x'),
                }
                rest = &rest[more..];
            }
            other => out.push(other),
        }
    }
    out.extend_from_slice(rest);
}

/// Fields of a header line; `None` for null.
pub(super) fn split(line: &[u8], options: &CopyOptions) -> Vec<Option<Vec<u8>>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let end = find_delimiter(rest, options.delimiter);
        let field = &rest[..end.unwrap_or(rest.len())];
        fields.push((field != options.null.as_bytes()).then(|| {
            let mut out = Vec::new();
            unescape(field, &mut out);
            out
        }));
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => return fields,
        }
    }
}
