//! Byte strings (manual 9.5): bits and bytes of them, hashes, trimming, `LIKE`, encodings.

use super::encoding;
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    parts(name, args).or_else(|| wholes(name, args)).or_else(|| patterns(name, args))
}

#[cold]
fn bad_index(index: i64, count: i64) -> Error {
    Error::new("2202E", format!("index {index} out of valid range, 0..{}", count - 1))
}

fn checked(index: i64, count: usize) -> Result<usize> {
    usize::try_from(index).ok().filter(|at| *at < count).ok_or_else(|| bad_index(index, count as i64))
}

fn overlay(bytes: &[u8], new: &[u8], start: i32, count: i32) -> Result<Vec<u8>> {
    if start <= 0 {
        return Err(Error::new("22011", "negative substring length not allowed"));
    }
    let after = start.checked_add(count).ok_or_else(|| Error::out_of_range("integer"))?;
    Ok([super::byte_range(bytes, 1, Some(start - 1))?, new, super::byte_range(bytes, after, None)?].concat())
}

fn trim<'a>(mut bytes: &'a [u8], set: &[u8], left: bool, right: bool) -> &'a [u8] {
    while let ([first, rest @ ..], true) = (bytes, left) {
        if !set.contains(first) {
            break;
        }
        bytes = rest;
    }
    while let ([rest @ .., last], true) = (bytes, right) {
        if !set.contains(last) {
            break;
        }
        bytes = rest;
    }
    bytes
}

fn parts(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("get_bit", "bytea,int8") => kernel!(|bytes: Byt, index: I8| -> I4 {
            let at = checked(index, bytes.len() * 8)?;
            Ok(i32::from(bytes[at / 8] >> (at % 8) & 1))
        }),
        ("set_bit", "bytea,int8,int4") => kernel!(|bytes: Byt, index: I8, bit: I4| -> Byt {
            let at = checked(index, bytes.len() * 8)?;
            let mut bytes = bytes.to_vec();
            match bit {
                0 => bytes[at / 8] &= !(1 << (at % 8)),
                1 => bytes[at / 8] |= 1 << (at % 8),
                _ => return Err(Error::invalid_parameter("new bit must be 0 or 1")),
            }
            Ok(bytes)
        }),
        ("set_byte", "bytea,int4,int4") => kernel!(|bytes: Byt, index: I4, byte: I4| -> Byt {
            let at = checked(i64::from(index), bytes.len())?;
            let mut bytes = bytes.to_vec();
            bytes[at] = byte as u8;
            Ok(bytes)
        }),
        ("overlay", "bytea,bytea,int4,int4") => {
            kernel!(|bytes: Byt, new: Byt, start: I4, count: I4| -> Byt { overlay(bytes, new, start, count) })
        }
        ("overlay", "bytea,bytea,int4") => {
            kernel!(|bytes: Byt, new: Byt, start: I4| -> Byt { overlay(bytes, new, start, new.len() as i32) })
        }
        ("btrim", "bytea,bytea") => {
            kernel!(|bytes: Byt, set: Byt| -> Byt { Ok(trim(bytes, set, true, true).to_vec()) })
        }
        ("ltrim", "bytea,bytea") => {
            kernel!(|bytes: Byt, set: Byt| -> Byt { Ok(trim(bytes, set, true, false).to_vec()) })
        }
        ("rtrim", "bytea,bytea") => {
            kernel!(|bytes: Byt, set: Byt| -> Byt { Ok(trim(bytes, set, false, true).to_vec()) })
        }
        _ => return None,
    })
}

fn wholes(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("sha224", "bytea") => kernel!(|bytes: Byt| -> Byt { Ok(Sha224::digest(bytes).to_vec()) }),
        ("sha256", "bytea") => kernel!(|bytes: Byt| -> Byt { Ok(Sha256::digest(bytes).to_vec()) }),
        ("sha384", "bytea") => kernel!(|bytes: Byt| -> Byt { Ok(Sha384::digest(bytes).to_vec()) }),
        ("sha512", "bytea") => kernel!(|bytes: Byt| -> Byt { Ok(Sha512::digest(bytes).to_vec()) }),
        ("length", "bytea,name") => kernel!(|bytes: Byt, from: Txt| -> I4 {
            let text = encoding::decode(bytes, encoding::source(from)?)?;
            Ok(text.chars().count() as i32)
        }),
        ("convert_to", "text,name") => {
            kernel!(|text: Txt, to: Txt| -> Byt { encoding::encode(text, encoding::destination(to)?) })
        }
        ("convert_from", "bytea,name") => {
            kernel!(|bytes: Byt, from: Txt| -> Txt { encoding::decode(bytes, encoding::source(from)?) })
        }
        ("convert", "bytea,name,name") => kernel!(|bytes: Byt, from: Txt, to: Txt| -> Byt {
            let (from, to) = (encoding::source(from)?, encoding::destination(to)?);
            encoding::encode(&encoding::decode(bytes, from)?, to)
        }),
        _ => return None,
    })
}

/// `LIKE` over bytes: `%` any run, `_` one byte.
pub(crate) fn like(text: &[u8], pattern: &[u8]) -> Result<bool> {
    let (mut at, mut text_at) = (0, 0);
    // Where the last `%` was, and what it has taken so far.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        let matched = match pattern.get(at) {
            None if text_at == text.len() => return Ok(true),
            None => false,
            Some(byte) if text_at == text.len() && *byte != b'%' => return Ok(false),
            Some(b'%') => {
                retry = Some((at + 1, text_at));
                at += 1;
                continue;
            }
            Some(b'\\') => {
                let Some(byte) = pattern.get(at + 1) else {
                    return Err(Error::new("22025", "LIKE pattern must not end with escape character"));
                };
                let matched = text.get(text_at) == Some(byte);
                at += usize::from(matched);
                matched
            }
            Some(b'_') => text_at < text.len(),
            Some(byte) => text.get(text_at) == Some(byte),
        };
        if matched {
            (at, text_at) = (at + 1, text_at + 1);
            continue;
        }
        match retry {
            Some((after, taken)) if taken < text.len() => {
                retry = Some((after, taken + 1));
                (at, text_at) = (after, taken + 1);
            }
            _ => return Ok(false),
        }
    }
}

fn like_escape(pattern: &[u8], escape: &[u8]) -> Result<Vec<u8>> {
    let escape = match escape {
        [] => None,
        [byte] => Some(*byte),
        _ => {
            return Err(
                Error::new("22025", "invalid escape string").with_hint("Escape string must be empty or one character.")
            );
        }
    };
    let mut out = Vec::with_capacity(pattern.len());
    let mut escaped = false;
    for byte in pattern {
        match byte {
            byte if !escaped && Some(*byte) == escape => {
                out.push(b'\\');
                escaped = true;
                continue;
            }
            b'\\' if !escaped => out.extend_from_slice(b"\\\\"),
            byte => out.push(*byte),
        }
        escaped = false;
    }
    Ok(out)
}

fn patterns(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("like" | "bytealike", "bytea,bytea") => kernel!(|text: Byt, pattern: Byt| -> Bit { like(text, pattern) }),
        ("notlike" | "byteanlike", "bytea,bytea") => {
            kernel!(|text: Byt, pattern: Byt| -> Bit { Ok(!like(text, pattern)?) })
        }
        ("like_escape", "bytea,bytea") => {
            kernel!(|pattern: Byt, escape: Byt| -> Byt { like_escape(pattern, escape) })
        }
        _ => return None,
    })
}
