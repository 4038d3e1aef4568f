//! `jsonb` as bytes that compare as PostgreSQL orders `jsonb` (manual 8.14.4): Object > Array > Boolean >
//! Number > String > Null, an object with more pairs above one with fewer, an array with more elements above
//! one with fewer, then pair by pair (keys and values in stored order) or element by element. A scalar alone is
//! kept as an array of one by PostgreSQL, which is why an empty array alone sorts below every scalar.
//!
//! ```text
//! empty array alone  01          string  03 bytes 00     array   10 count u32 BE, elements
//! null               02          number  04 numeric key  object  11 count u32 BE, (key bytes 00, value)…
//! false, true        05, 06
//! ```
//! No encoding is a prefix of another, and strings hold no byte 00 (`\u0000` is refused, 22P05).

use super::token::{Token, tokens};
use super::unquote;
use crate::numeric::{self, CLASS_NEGATIVE, CLASS_POSITIVE, CLASS_ZERO, Parts};
use std::cmp::Ordering;

const EMPTY_ARRAY: u8 = 0x01;
const NULL: u8 = 0x02;
const STRING: u8 = 0x03;
const NUMBER: u8 = 0x04;
const FALSE: u8 = 0x05;
const TRUE: u8 = 0x06;
const ARRAY: u8 = 0x10;
const OBJECT: u8 = 0x11;

/// Appends the key of a canonical text.
pub fn encode_key(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    // Where the count of each open container stands, the count so far, and whether values count.
    let mut open: Vec<(usize, u32, bool)> = Vec::new();
    for token in tokens(text) {
        if let Token::EndArray | Token::EndObject = token {
            if let Some((at, count, _)) = open.pop() {
                out[at..at + 4].copy_from_slice(&count.to_be_bytes());
            }
            continue;
        }
        let is_key = matches!(token, Token::Key(_));
        if let Some((_, count, counts_values)) = open.last_mut()
            && *counts_values != is_key
        {
            *count += 1;
        }
        match token {
            Token::BeginArray | Token::BeginObject => {
                let is_array = token == Token::BeginArray;
                out.push(if is_array { ARRAY } else { OBJECT });
                open.push((out.len(), 0, is_array));
                out.extend([0; 4]);
            }
            Token::Key(quoted) => {
                out.extend_from_slice(unquote(quoted).as_bytes());
                out.push(0);
            }
            Token::Scalar(raw) => encode_scalar(raw, out),
            Token::EndArray | Token::EndObject => {}
        }
    }
    if out[start..] == [ARRAY, 0, 0, 0, 0] {
        out.truncate(start);
        out.push(EMPTY_ARRAY);
    }
}

fn encode_scalar(raw: &str, out: &mut Vec<u8>) {
    match raw.as_bytes().first() {
        Some(b'"') => {
            out.push(STRING);
            out.extend_from_slice(unquote(raw).as_bytes());
            out.push(0);
        }
        Some(b't') => out.push(TRUE),
        Some(b'f') => out.push(FALSE),
        Some(b'-' | b'0'..=b'9') => {
            out.push(NUMBER);
            let start = out.len();
            numeric::encode(&parts_of(raw), out);
            let end = start + numeric::key_bytes(&out[start..]).len();
            out.truncate(end);
        }
        _ => out.push(NULL),
    }
}

/// A number as canonical text has it: digits, perhaps with a point.
fn parts_of(text: &str) -> Parts {
    let digits = text.strip_prefix('-');
    let class = if digits.is_some() { CLASS_NEGATIVE } else { CLASS_POSITIVE };
    let digits = digits.unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let whole = whole.trim_start_matches('0');
    let digit = |byte: &u8| u16::from(byte.wrapping_sub(b'0').min(9));
    let mut groups: Vec<u16> = Vec::with_capacity(digits.len() / 4 + 2);
    let head = whole.len() % 4;
    let (first, rest) = whole.as_bytes().split_at(head);
    let group = |bytes: &[u8]| bytes.iter().fold(0, |value, byte| value * 10 + digit(byte));
    if !first.is_empty() {
        groups.push(group(first));
    }
    groups.extend(rest.chunks(4).map(group));
    let mut weight = groups.len() as i32 - 1;
    groups.extend(fraction.as_bytes().chunks(4).map(|chunk| group(chunk) * 10_u16.pow(4 - chunk.len() as u32)));
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= leading as i32;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    let class = if groups.is_empty() { CLASS_ZERO } else { class };
    let weight = if groups.is_empty() { 0 } else { weight.clamp(i16::MIN.into(), i16::MAX.into()) as i16 };
    Parts { class, weight, digits: groups, display_scale: 0 }
}

/// Orders two canonical texts.
pub fn compare(left: &str, right: &str) -> Ordering {
    if left == right {
        return Ordering::Equal;
    }
    let (mut a, mut b) = (Vec::with_capacity(left.len() + 8), Vec::with_capacity(right.len() + 8));
    encode_key(left, &mut a);
    encode_key(right, &mut b);
    a.cmp(&b)
}

/// Takes a value off the front of a key, as canonical text without trailing zeros of numbers. `None` if the
/// bytes are no key.
pub fn decode_key(input: &mut &[u8]) -> Option<String> {
    /// An open container: values still to come, and what closes it.
    struct Open {
        left: u32,
        is_object: bool,
        is_first: bool,
    }
    let mut out = String::new();
    let mut open: Vec<Open> = Vec::new();
    loop {
        if let Some(last) = open.last_mut() {
            if last.left == 0 {
                out.push(if last.is_object { '}' } else { ']' });
                open.pop();
                if open.is_empty() {
                    return Some(out);
                }
                continue;
            }
            last.left -= 1;
            if !std::mem::take(&mut last.is_first) {
                out.push_str(", ");
            }
            if last.is_object {
                quote(take_string(input)?, &mut out);
                out.push_str(": ");
            }
        }
        match crate::varint::take_bytes(input, 1)?[0] {
            EMPTY_ARRAY => out.push_str("[]"),
            NULL => out.push_str("null"),
            TRUE => out.push_str("true"),
            FALSE => out.push_str("false"),
            STRING => quote(take_string(input)?, &mut out),
            NUMBER => take_number(input, &mut out)?,
            tag @ (ARRAY | OBJECT) => {
                let left = u32::from_be_bytes(crate::varint::take_bytes(input, 4)?.try_into().ok()?);
                out.push(if tag == ARRAY { '[' } else { '{' });
                open.push(Open { left, is_object: tag == OBJECT, is_first: true });
            }
            _ => return None,
        }
        if open.is_empty() {
            return Some(out);
        }
    }
}

fn take_string<'a>(input: &mut &'a [u8]) -> Option<&'a str> {
    let end = input.iter().position(|byte| *byte == 0)?;
    let bytes = &input[..end];
    *input = &input[end + 1..];
    std::str::from_utf8(bytes).ok()
}

fn take_number(input: &mut &[u8], out: &mut String) -> Option<()> {
    let length = match *input.first()? {
        class @ (CLASS_POSITIVE | CLASS_NEGATIVE) => {
            let end = if class == CLASS_POSITIVE { [0, 0] } else { [0xff, 0xff] };
            let words = input.get(3..)?.chunks_exact(2).position(|word| word == end)?;
            3 + words * 2 + 2
        }
        _ => 1,
    };
    let mut encoded = crate::varint::take_bytes(input, length)?.to_vec();
    encoded.extend([0, 0]);
    let parts = numeric::decode(&encoded)?;
    if parts.class == CLASS_NEGATIVE {
        out.push('-');
    }
    let group = |weight: i32| {
        let at = usize::try_from(i32::from(parts.weight) - weight).ok();
        at.and_then(|at| parts.digits.get(at)).copied().unwrap_or(0)
    };
    let whole: String =
        (0..=i32::from(parts.weight).max(0)).rev().map(|weight| format!("{:04}", group(weight))).collect();
    let whole = whole.trim_start_matches('0');
    out.push_str(if whole.is_empty() { "0" } else { whole });
    let last = i32::from(parts.weight) + 1 - parts.digits.len() as i32;
    let fraction: String = (last..0).rev().map(|weight| format!("{:04}", group(weight))).collect();
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    Some(())
}

/// Appends a JSON string with its quotes.
fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\x08' => out.push_str("\\b"),
            '\x0c' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}
