//! String and byte-string functions (manual 9.4, 9.5) but those of regular expressions.
//!
//! Positions and lengths count characters.

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::error::{Error, Result};
use crate::eval::room::{VALUE_BYTES_MAX, check_longer};
use crate::io;
use crate::operators::printed;
use crate::words::quote_ident;
use basalt_types::{DataType, Datum};
use md5::{Digest, Md5};
use std::borrow::Cow;

pub(crate) mod bytes;
mod encode;
mod encoding;
mod format;
mod unicode;

pub(crate) use format::quote_literal;

/// The longest string that functions make, in bytes.
const TEXT_BYTES_MAX: usize = VALUE_BYTES_MAX;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    lengths(name, args)
        .or_else(|| pieces(name, args))
        .or_else(|| padding(name, args))
        .or_else(|| changes(name, args))
        .or_else(|| encodings(name, args))
        .or_else(|| joins(name, args))
        .or_else(|| bytes::bind(name, args))
        .or_else(|| unicode::bind(name, args))
}

fn too_long() -> Error {
    Error::new("54000", "requested length too large")
}

fn chars(text: &str) -> i32 {
    if text.is_ascii() { text.len() as i32 } else { text.chars().count() as i32 }
}

/// Byte position of the `count`-th character, or the end.
fn byte_at(text: &str, count: usize) -> usize {
    if text.is_ascii() {
        return count.min(text.len());
    }
    text.char_indices().nth(count).map_or(text.len(), |(at, _)| at)
}

/// `substring(text from start for length)`: the part of that range which exists.
pub(crate) fn substring(text: &str, start: i32, length: Option<i32>) -> Result<&str> {
    let from = i64::from(start);
    let to = match length {
        Some(length) if length < 0 => {
            return Err(Error::new("22011", "negative substring length not allowed"));
        }
        Some(length) => from + i64::from(length),
        None => i64::MAX,
    };
    let begin = byte_at(text, usize::try_from(from - 1).unwrap_or(0));
    let skipped = from.max(1);
    let taken = usize::try_from(to - skipped).unwrap_or(0);
    let rest = &text[begin..];
    Ok(&rest[..byte_at(rest, taken)])
}

fn lengths(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("length" | "char_length" | "character_length", "text") | ("textlen", "text") => {
            kernel!(|text: Txt| -> I4 { Ok(chars(text)) })
        }
        ("length" | "char_length" | "character_length", "bpchar") => {
            kernel!(|text: Txt| -> I4 { Ok(chars(text.trim_end_matches(' '))) })
        }
        ("octet_length", "text" | "bpchar") => kernel!(|text: Txt| -> I4 { Ok(text.len() as i32) }),
        ("bit_length", "text") => kernel!(|text: Txt| -> I4 { Ok(text.len() as i32 * 8) }),
        ("length" | "octet_length", "bytea") => kernel!(|bytes: Byt| -> I4 { Ok(bytes.len() as i32) }),
        ("bit_length", "bytea") => kernel!(|bytes: Byt| -> I4 { Ok(bytes.len() as i32 * 8) }),
        ("position", "text,text") | ("strpos", "text,text") => {
            kernel!(|text: Txt, wanted: Txt| -> I4 { Ok(text.find(wanted).map_or(0, |at| chars(&text[..at]) + 1)) })
        }
        ("position", "bytea,bytea") => kernel!(|bytes: Byt, wanted: Byt| -> I4 {
            Ok(memchr::memmem::find(bytes, wanted).map_or(0, |at| at as i32 + 1))
        }),
        ("ascii", "text") => {
            kernel!(|text: Txt| -> I4 { Ok(text.chars().next().map_or(0, |char| char as i32)) })
        }
        ("starts_with", "text,text") => kernel!(|text: Txt, prefix: Txt| -> Bit { Ok(text.starts_with(prefix)) }),
        _ => return None,
    })
}

/// How many characters `left` and `right` keep: negative counts leave out.
fn kept(text: &str, count: i32) -> usize {
    if count >= 0 {
        return count as usize;
    }
    usize::try_from(i64::from(chars(text)) + i64::from(count)).unwrap_or(0)
}

fn split_part<'a>(text: &'a str, delimiter: &str, field: i32) -> Result<&'a str> {
    if field == 0 {
        return Err(Error::new("22023", "field position must not be zero"));
    }
    if delimiter.is_empty() {
        return Ok(if field.abs() == 1 { text } else { "" });
    }
    let index = field.unsigned_abs() as usize - 1;
    if let [byte] = delimiter.as_bytes() {
        return Ok(part_between(text, *byte, index, field > 0).unwrap_or(""));
    }
    // Delimiters are found from the start, also where fields are counted from the end.
    let index = match field > 0 {
        true => Some(index),
        false => text.split(delimiter).count().checked_sub(index + 1),
    };
    Ok(index.and_then(|index| text.split(delimiter).nth(index)).unwrap_or(""))
}

/// The same between single bytes, which are all below 128 and so no part of a character.
fn part_between(text: &str, delimiter: u8, index: usize, from_start: bool) -> Option<&str> {
    let bytes = text.as_bytes();
    let ends_before = |index: usize| index.checked_sub(1);
    if from_start {
        let mut places = memchr::memchr_iter(delimiter, bytes);
        let start = ends_before(index).map_or(Some(0), |before| places.nth(before).map(|at| at + 1))?;
        return text.get(start..places.next().unwrap_or(bytes.len()));
    }
    let mut places = memchr::memrchr_iter(delimiter, bytes);
    let end = ends_before(index).map_or(Some(bytes.len()), |before| places.nth(before))?;
    text.get(places.next().map_or(0, |at| at + 1)..end)
}

fn pieces(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("substring" | "substr", "text,int4,int4") => kernel!(|text: Txt, start: I4, length: I4| -> Part {
            substring(text, start, Some(length)).map(Cow::Borrowed)
        }),
        ("substring" | "substr", "text,int4") => {
            kernel!(|text: Txt, start: I4| -> Part { substring(text, start, None).map(Cow::Borrowed) })
        }
        ("substring" | "substr", "bytea,int4,int4") => kernel!(|bytes: Byt, start: I4, length: I4| -> Byt {
            byte_range(bytes, start, Some(length)).map(<[u8]>::to_vec)
        }),
        ("substring" | "substr", "bytea,int4") => {
            kernel!(|bytes: Byt, start: I4| -> Byt { byte_range(bytes, start, None).map(<[u8]>::to_vec) })
        }
        ("left", "text,int4") => {
            kernel!(|text: Txt, count: I4| -> Part { Ok(Cow::Borrowed(&text[..byte_at(text, kept(text, count))])) })
        }
        ("right", "text,int4") => kernel!(|text: Txt, count: I4| -> Part {
            // PostgreSQL negates the least number in vain, and skips nothing.
            let kept = if count == i32::MIN { usize::MAX } else { kept(text, count) };
            let skipped = (chars(text) as usize).saturating_sub(kept);
            Ok(Cow::Borrowed(&text[byte_at(text, skipped)..]))
        }),
        ("split_part", "text,text,int4") => kernel!(|text: Txt, delimiter: Txt, field: I4| -> Part {
            split_part(text, delimiter, field).map(Cow::Borrowed)
        }),
        ("overlay", "text,text,int4,int4") => {
            kernel!(|text: Txt, new: Txt, start: I4, count: I4| -> Txt { overlay(text, new, start, count) })
        }
        ("overlay", "text,text,int4") => {
            kernel!(|text: Txt, new: Txt, start: I4| -> Txt { overlay(text, new, start, chars(new)) })
        }
        _ => return None,
    })
}

fn byte_range(bytes: &[u8], start: i32, length: Option<i32>) -> Result<&[u8]> {
    let from = i64::from(start);
    let to = match length {
        Some(length) if length < 0 => {
            return Err(Error::new("22011", "negative substring length not allowed"));
        }
        Some(length) => from + i64::from(length),
        None => i64::MAX,
    };
    let end = usize::try_from(to - 1).unwrap_or(0).min(bytes.len());
    let begin = usize::try_from(from - 1).unwrap_or(0).min(end);
    Ok(&bytes[begin..end])
}

pub(crate) fn overlay(text: &str, new: &str, start: i32, count: i32) -> Result<String> {
    if start <= 0 {
        return Err(Error::new("22011", "negative substring length not allowed"));
    }
    let after = start.checked_add(count).ok_or_else(|| Error::out_of_range("integer"))?;
    Ok([substring(text, 1, Some(start - 1))?, new, substring(text, after, None)?].concat())
}

fn pad(text: &str, length: i32, fill: &str, left: bool) -> Result<String> {
    let wanted = usize::try_from(length).unwrap_or(0);
    let has = chars(text) as usize;
    if has >= wanted || fill.is_empty() {
        return Ok(text[..byte_at(text, wanted)].to_string());
    }
    if wanted.saturating_mul(4) > TEXT_BYTES_MAX {
        return Err(too_long());
    }
    let filling: String = fill.chars().cycle().take(wanted - has).collect();
    Ok(if left { filling + text } else { text.to_string() + &filling })
}

fn trim<'a>(text: &'a str, set: &str, left: bool, right: bool) -> &'a str {
    let is_in = |char: char| set.contains(char);
    let text = if left { text.trim_start_matches(is_in) } else { text };
    if right { text.trim_end_matches(is_in) } else { text }
}

fn padding(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("lpad", "text,int4,text") => {
            kernel!(|text: Txt, length: I4, fill: Txt| -> Txt { pad(text, length, fill, true) })
        }
        ("lpad", "text,int4") => kernel!(|text: Txt, length: I4| -> Txt { pad(text, length, " ", true) }),
        ("rpad", "text,int4,text") => {
            kernel!(|text: Txt, length: I4, fill: Txt| -> Txt { pad(text, length, fill, false) })
        }
        ("rpad", "text,int4") => kernel!(|text: Txt, length: I4| -> Txt { pad(text, length, " ", false) }),
        ("btrim", "text") => kernel!(|text: Txt| -> Part { Ok(trim(text, " ", true, true).into()) }),
        ("ltrim", "text") => kernel!(|text: Txt| -> Part { Ok(trim(text, " ", true, false).into()) }),
        ("rtrim", "text") => kernel!(|text: Txt| -> Part { Ok(trim(text, " ", false, true).into()) }),
        ("btrim", "text,text") => kernel!(|text: Txt, set: Txt| -> Part { Ok(trim(text, set, true, true).into()) }),
        ("ltrim", "text,text") => kernel!(|text: Txt, set: Txt| -> Part { Ok(trim(text, set, true, false).into()) }),
        ("rtrim", "text,text") => kernel!(|text: Txt, set: Txt| -> Part { Ok(trim(text, set, false, true).into()) }),
        ("repeat", "text,int4") => kernel!(|text: Txt, count: I4| -> Txt {
            let count = usize::try_from(count).unwrap_or(0);
            if text.len().saturating_mul(count) > TEXT_BYTES_MAX {
                return Err(too_long());
            }
            Ok(text.repeat(count))
        }),
        _ => return None,
    })
}

fn initcap(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for char in text.chars() {
        // A letter whose other case is several letters stays, as in `upper` and `lower`.
        let (mut upper, mut lower) = (char.to_uppercase(), char.to_lowercase());
        let other = if inside { lower.by_ref().next() } else { upper.by_ref().next() };
        let is_one = if inside { lower.next().is_none() } else { upper.next().is_none() };
        out.push(other.filter(|_| is_one).unwrap_or(char));
        inside = char.is_alphanumeric();
    }
    out
}

fn translate(text: &str, from: &str, to: &str) -> String {
    let to: Vec<char> = to.chars().collect();
    text.chars()
        .filter_map(|char| match from.chars().position(|wanted| wanted == char) {
            Some(at) => to.get(at).copied(),
            None => Some(char),
        })
        .collect()
}

fn chr(code: i32) -> Result<String> {
    if code == 0 {
        return Err(Error::new("54000", "null character not permitted"));
    }
    let char = u32::try_from(code).ok().and_then(char::from_u32);
    match char {
        Some(char) => Ok(char.to_string()),
        None if code < 0 => Err(Error::invalid_parameter("character number must be positive")),
        None => {
            let what = if code > 0x10_ffff { "too large" } else { "not valid" };
            Err(Error::new("54000", format!("requested character {what} for encoding: {code}")))
        }
    }
}

fn changes(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("lower", "text") => written!(|text: Txt; out| {
            lower(text, out);
            Ok(())
        }),
        ("upper", "text") => written!(|text: Txt; out| {
            upper(text, out);
            Ok(())
        }),
        ("initcap", "text") => kernel!(|text: Txt| -> Txt { Ok(initcap(text)) }),
        ("reverse", "text") => written!(|text: Txt; out| {
            out.extend(text.chars().rev());
            Ok(())
        }),
        ("replace", "text,text,text") => written!(|text: Txt, from: Txt, to: Txt; out| {
            check_replaced(text, from, to)?;
            replace(text, from, to, out);
            Ok(())
        }),
        ("translate", "text,text,text") => {
            kernel!(|text: Txt, from: Txt, to: Txt| -> Txt { Ok(translate(text, from, to)) })
        }
        ("chr", "int4") => kernel!(|code: I4| -> Txt { chr(code) }),
        ("to_hex", "int4") => kernel!(|value: I4| -> Txt { Ok(format!("{value:x}")) }),
        ("to_hex", "int8") => kernel!(|value: I8| -> Txt { Ok(format!("{value:x}")) }),
        ("quote_ident", "text") => kernel!(|text: Txt| -> Txt { Ok(quote_ident(text)) }),
        ("quote_literal", "text") => kernel!(|text: Txt| -> Txt { Ok(quote_literal(text)) }),
        ("quote_literal", "anyelement") => {
            kernel!(|value: Val; info| -> Txt { Ok(quote_literal(&printed(&value, 0, info)?)) })
        }
        ("quote_nullable", "text" | "anyelement") => scalar!(|args, info| match &args[0] {
            Datum::Null => Ok(Datum::text("NULL")),
            value => Ok(Datum::text(&quote_literal(&printed(value, 0, info)?))),
        }),
        _ => return None,
    })
}

fn lower(text: &str, out: &mut String) {
    if !text.is_ascii() {
        return out.push_str(&text.to_lowercase());
    }
    let before = out.len();
    out.push_str(text);
    out[before..].make_ascii_lowercase();
}

/// Character by character, so that none grows (`ß` stays).
fn upper(text: &str, out: &mut String) {
    if text.is_ascii() {
        let before = out.len();
        out.push_str(text);
        return out[before..].make_ascii_uppercase();
    }
    out.extend(text.chars().map(|char| {
        let mut upper = char.to_uppercase();
        match (upper.next(), upper.next()) {
            (Some(single), None) => single,
            _ => char,
        }
    }));
}

/// So few are compared where the first of them is found: to prepare a search for each row would take longer.
const FEW_BYTES: usize = 16;

/// Calls `found` with the places of a few bytes, which do not overlap.
fn each_of_few(text: &[u8], sought: &[u8], mut found: impl FnMut(usize)) {
    let mut from = 0;
    while let Some(at) = memchr::memchr(sought[0], &text[from..]).map(|at| from + at) {
        let is = text[at..].starts_with(sought);
        if is {
            found(at);
        }
        from = at + if is { sought.len() } else { 1 };
    }
}

/// 54000 if the text becomes too long. What is replaced is only counted where it might.
fn check_replaced(text: &str, from: &str, to: &str) -> Result<()> {
    let more = to.len().saturating_sub(from.len());
    if from.is_empty() || check_longer(text.len(), (text.len() / from.len()).saturating_mul(more)).is_ok() {
        return Ok(());
    }
    let count = memchr::memmem::find_iter(text.as_bytes(), from.as_bytes()).count();
    check_longer(text.len(), count.saturating_mul(more))
}

fn replace(text: &str, from: &str, to: &str, out: &mut String) {
    let mut copied = 0;
    if !from.is_empty() {
        // Both are UTF-8, so a place where the bytes are found is one between characters.
        let mut put = |at: usize| {
            out.push_str(&text[copied..at]);
            out.push_str(to);
            copied = at + from.len();
        };
        match from.len() <= FEW_BYTES {
            true => each_of_few(text.as_bytes(), from.as_bytes(), put),
            false => memchr::memmem::find_iter(text.as_bytes(), from.as_bytes()).for_each(&mut put),
        }
    }
    out.push_str(&text[copied..]);
}

/// The digest of RFC 1321 in hexadecimal.
fn md5(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for byte in Md5::digest(bytes) {
        out.extend([byte >> 4, byte & 15].map(|digit| char::from(DIGITS[usize::from(digit)])));
    }
}

fn encodings(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("md5", "text") => written!(|text: Txt; out| {
            md5(text.as_bytes(), out);
            Ok(())
        }),
        ("md5", "bytea") => written!(|bytes: Byt; out| {
            md5(bytes, out);
            Ok(())
        }),
        ("encode", "bytea,text") => kernel!(|bytes: Byt, format: Txt| -> Txt { encode::encode(bytes, format) }),
        ("decode", "text,text") => kernel!(|text: Txt, format: Txt| -> Byt { encode::decode(text, format) }),
        ("get_byte", "bytea,int4") => kernel!(|bytes: Byt, index: I4| -> I4 {
            let found = usize::try_from(index).ok().and_then(|index| bytes.get(index));
            found.map(|byte| i32::from(*byte)).ok_or_else(|| {
                Error::new("2202E", format!("index {index} out of valid range, 0..{}", bytes.len() as i64 - 1))
            })
        }),
        _ => return None,
    })
}

/// A value as text, as `||` and `concat` print it. `at` is its argument's position.
pub(crate) fn text_of<'a>(value: &'a Datum, at: usize, info: &CallInfo) -> Result<Cow<'a, str>> {
    let ty = &info.arg_types[at];
    if let (Datum::Bytes(bytes), DataType::Text | DataType::Varchar(_) | DataType::Name | DataType::Unknown) =
        (value, ty)
    {
        return match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(error) => Err(Error::invalid_utf8(bytes, error.valid_up_to())),
        };
    }
    if let Datum::Bool(value) = value {
        // Quoting casts to text, everything else takes the output form.
        return Ok(Cow::Borrowed(match (value, info.function.name.starts_with("quote_")) {
            (true, true) => "true",
            (false, true) => "false",
            (true, false) => "t",
            (false, false) => "f",
        }));
    }
    let mut out = Vec::new();
    io::text::format(ty, value, info.ctx, &mut out)?;
    Ok(Cow::Owned(String::from_utf8_lossy(&out).into_owned()))
}

fn joined(args: &[Datum], from: usize, separator: &str, info: &CallInfo) -> Result<Datum> {
    let mut out = String::new();
    let mut any = false;
    for (at, value) in args.iter().enumerate().skip(from).filter(|(_, value)| !value.is_null()) {
        if any {
            out.push_str(separator);
        }
        any = true;
        let text = text_of(value, at, info)?;
        check_longer(out.len(), text.len() + separator.len())?;
        out.push_str(&text);
    }
    Ok(Datum::text(&out))
}

fn joins(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("concat", "any") => scalar!(|args, info| joined(args, 0, "", info)),
        ("concat_ws", "text,any") => scalar!(|args, info| match &args[0] {
            Datum::Null => Ok(Datum::Null),
            separator => joined(args, 1, &text_of(separator, 0, info)?, info),
        }),
        ("format", "text,any") | ("format", "text") => scalar!(|args, info| match &args[0] {
            Datum::Null => Ok(Datum::Null),
            pattern => format::format(&text_of(pattern, 0, info)?, args, info).map(|text| Datum::text(&text)),
        }),
        _ => return None,
    })
}
