//! Text forms of the small types: booleans, integers, uuid, lengths of strings.

use crate::error::{Error, Result};
use basalt_types::DataType;
use std::borrow::Cow;

/// The blanks that input functions skip (C's `isspace`).
pub(super) fn trim(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let Some(start) = text.iter().position(|byte| !blank(byte)) else { return &[] };
    let end = text.iter().rposition(|byte| !blank(byte)).map_or(0, |last| last + 1);
    &text[start..end]
}

fn shown(text: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(text)
}

/// Unique prefixes of true, false, yes, no, on, off; 1 and 0.
pub(super) fn parse_bool(text: &[u8]) -> Result<bool> {
    let trimmed = trim(text);
    let word = trimmed.to_ascii_lowercase();
    let is_prefix = |of: &[u8], least: usize| word.len() >= least && of.starts_with(&word);
    if is_prefix(b"true", 1) || is_prefix(b"yes", 1) || is_prefix(b"on", 2) || word == b"1" {
        Ok(true)
    } else if is_prefix(b"false", 1) || is_prefix(b"no", 1) || is_prefix(b"off", 2) || word == b"0" {
        Ok(false)
    } else {
        Err(Error::invalid_text("boolean", &shown(text)))
    }
}

/// An integer of up to 64 bits. `negative bound` is `-bound - 1`, as two's complement has it.
#[inline]
fn parse_integer(text: &[u8], bound: u64, type_name: &str) -> Result<i64> {
    let mut body = text;
    let negative = match body.first() {
        Some(b'-') => {
            body = &body[1..];
            true
        }
        _ => false,
    };
    // 18 digits cannot overflow; everything unusual takes the slow path.
    if body.is_empty() || body.len() > 18 {
        return parse_integer_slow(text, bound, type_name);
    }
    let mut value = 0u64;
    for byte in body {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return parse_integer_slow(text, bound, type_name);
        }
        value = value * 10 + u64::from(digit);
    }
    if value > bound + u64::from(negative) {
        return Err(Error::text_out_of_range(type_name, &shown(text)));
    }
    Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 })
}

#[cold]
fn parse_integer_slow(text: &[u8], bound: u64, type_name: &str) -> Result<i64> {
    let trimmed = trim(text);
    let (negative, digits) = match trimmed.first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Error::invalid_text(type_name, &shown(text)));
    }
    let value = digits
        .iter()
        .try_fold(0u64, |value, byte| value.checked_mul(10)?.checked_add(u64::from(byte - b'0')))
        .filter(|value| *value <= bound + u64::from(negative))
        .ok_or_else(|| Error::text_out_of_range(type_name, &shown(text)))?;
    Ok(if negative { (value as i64).wrapping_neg() } else { value as i64 })
}

#[inline]
pub(super) fn parse_i16(text: &[u8]) -> Result<i16> {
    parse_integer(text, i16::MAX as u64, "smallint").map(|value| value as i16)
}

#[inline]
pub(super) fn parse_i32(text: &[u8]) -> Result<i32> {
    parse_integer(text, i32::MAX as u64, "integer").map(|value| value as i32)
}

#[inline]
pub(super) fn parse_i64(text: &[u8]) -> Result<i64> {
    parse_integer(text, i64::MAX as u64, "bigint")
}

/// An object id. A negative number wraps, as C's `strtoul` has it.
pub(super) fn parse_oid(text: &[u8]) -> Result<u32> {
    let range = || Error::text_out_of_range("oid", &shown(text));
    let value = parse_integer_slow(text, i64::MAX as u64, "oid").map_err(|error| match error.sqlstate {
        "22003" => range(),
        _ => error,
    })?;
    match value {
        0.. => u32::try_from(value).map_err(|_| range()),
        _ => i32::try_from(value).map(|value| value as u32).map_err(|_| range()),
    }
}

/// 32 hexadecimal digits, a hyphen allowed after every four, braces around.
pub(super) fn parse_uuid(text: &[u8]) -> Result<[u8; 16]> {
    let error = || Error::invalid_text("uuid", &shown(text));
    let body = match text {
        [b'{', inner @ .., b'}'] => inner,
        other => other,
    };
    let (mut out, mut count) = ([0u8; 16], 0usize);
    let mut after_hyphen = false;
    for byte in body {
        if *byte == b'-' && count > 0 && count.is_multiple_of(4) && count < 32 && !after_hyphen {
            after_hyphen = true;
            continue;
        }
        let digit = char::from(*byte).to_digit(16).filter(|_| count < 32).ok_or_else(error)? as u8;
        out[count / 2] = out[count / 2] << 4 | digit;
        count += 1;
        after_hyphen = false;
    }
    if count == 32 { Ok(out) } else { Err(error()) }
}

pub(super) const HEX: &[u8; 16] = b"0123456789abcdef";

pub(super) fn write_uuid(uuid: &[u8; 16], out: &mut Vec<u8>) {
    for (i, byte) in uuid.iter().enumerate() {
        if matches!(i, 4 | 6 | 8 | 10) {
            out.push(b'-');
        }
        out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
    }
}

/// The first `count` characters.
fn truncate_chars(text: &str, count: usize) -> &str {
    if text.len() <= count {
        return text;
    }
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// `varchar(limit)`: too long is 22001 unless only blanks go, or the cast is explicit.
#[inline]
pub(crate) fn fit_varchar(text: &str, limit: Option<u32>, explicit: bool) -> Result<&str> {
    let Some(limit) = limit else { return Ok(text) };
    fit(text, limit, explicit, || DataType::Varchar(Some(limit)))
}

#[inline]
fn fit(text: &str, limit: u32, explicit: bool, ty: impl Fn() -> DataType) -> Result<&str> {
    if text.len() <= limit as usize {
        return Ok(text);
    }
    let kept = truncate_chars(text, limit as usize);
    if explicit || text[kept.len()..].bytes().all(|byte| byte == b' ') {
        Ok(kept)
    } else {
        Err(Error::string_too_long(&ty().sql_name()))
    }
}

/// `char(length)`: as `varchar`, then padded with blanks.
pub(crate) fn fit_bpchar(text: &str, length: Option<u32>, explicit: bool) -> Result<Cow<'_, str>> {
    let Some(length) = length else { return Ok(Cow::Borrowed(text)) };
    let kept = fit(text, length, explicit, || DataType::Bpchar(Some(length)))?;
    let chars = if kept.is_ascii() { kept.len() } else { kept.chars().count() };
    if chars == length as usize {
        return Ok(Cow::Borrowed(kept));
    }
    let mut padded = String::with_capacity(kept.len() + length as usize - chars);
    padded.push_str(kept);
    padded.extend(std::iter::repeat_n(' ', length as usize - chars));
    Ok(Cow::Owned(padded))
}
