//! `bytea` in its hexadecimal and escape forms.

use super::parts::HEX;
use crate::context::ByteaOutput;
use crate::error::{Error, Result};

pub(super) fn parse(text: &[u8]) -> Result<Vec<u8>> {
    match text.strip_prefix(b"\\x") {
        Some(digits) => parse_hex(digits),
        None => parse_escape(text),
    }
}

/// Pairs of digits; blanks between pairs are skipped.
pub(crate) fn parse_hex(text: &[u8]) -> Result<Vec<u8>> {
    let digit = |byte: u8| {
        char::from(byte)
            .to_digit(16)
            .map(|digit| digit as u8)
            .ok_or_else(|| Error::invalid_parameter(format!("invalid hexadecimal digit: \"{}\"", char::from(byte))))
    };
    let mut out = Vec::with_capacity(text.len() / 2);
    let mut rest = text;
    while let [high, more @ ..] = rest {
        rest = more;
        if matches!(high, b' ' | b'\n' | b'\t' | b'\r') {
            continue;
        }
        let high = digit(*high)?;
        let [low, more @ ..] = rest else {
            return Err(Error::invalid_parameter("invalid hexadecimal data: odd number of digits"));
        };
        rest = more;
        out.push(high << 4 | digit(*low)?);
    }
    Ok(out)
}

fn parse_escape(text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    loop {
        rest = match rest {
            [] => return Ok(out),
            [b'\\', b'\\', more @ ..] => {
                out.push(b'\\');
                more
            }
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', more @ ..] => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                more
            }
            [b'\\', ..] => return Err(Error::new("22P02", "invalid input syntax for type bytea")),
            [byte, more @ ..] => {
                out.push(*byte);
                more
            }
        }
    }
}

pub(super) fn write(bytes: &[u8], style: ByteaOutput, out: &mut Vec<u8>) {
    match style {
        ByteaOutput::Hex => {
            out.extend_from_slice(b"\\x");
            for byte in bytes {
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
        ByteaOutput::Escape => {
            for byte in bytes {
                match byte {
                    b'\\' => out.extend_from_slice(b"\\\\"),
                    0x20..=0x7e => out.push(*byte),
                    byte => {
                        out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)])
                    }
                }
            }
        }
    }
}
