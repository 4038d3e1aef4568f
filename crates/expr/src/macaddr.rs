//! `macaddr` and `macaddr8` (manual 8.9.3 and 8.9.4): addresses of network cards, of six and of eight bytes.
//!
//! They rest as integers that are ordered as the addresses are: the six bytes as they are, of the eight with the first
//! bit flipped.

use crate::error::{Error, Result};

#[cfg(test)]
mod tests;

const FLIPPED: u64 = 1 << 63;
/// What stands in the middle of an address of eight bytes that was one of six.
const FILLED: [u8; 2] = [0xff, 0xfe];

pub fn of_six(bytes: [u8; 6]) -> i64 {
    bytes.iter().fold(0, |value, byte| value << 8 | i64::from(*byte))
}

pub fn six(value: i64) -> [u8; 6] {
    let [_, _, a, b, c, d, e, f] = value.to_be_bytes();
    [a, b, c, d, e, f]
}

pub fn of_eight(bytes: [u8; 8]) -> i64 {
    (u64::from_be_bytes(bytes) ^ FLIPPED) as i64
}

pub fn eight(value: i64) -> [u8; 8] {
    (value as u64 ^ FLIPPED).to_be_bytes()
}

/// `macaddr` as `macaddr8`.
pub fn widen(value: i64) -> i64 {
    let [a, b, c, d, e, f] = six(value);
    of_eight([a, b, c, FILLED[0], FILLED[1], d, e, f])
}

/// `macaddr8` as `macaddr`; 22003 for what was not made of one.
pub fn narrow(value: i64) -> Result<i64> {
    match eight(value) {
        [a, b, c, 0xff, 0xfe, d, e, f] => Ok(of_six([a, b, c, d, e, f])),
        _ => Err(Error::new("22003", "macaddr8 data out of range to convert to macaddr").with_hint(
            "Only addresses that have FF and FE as values in the 4th and 5th bytes from the left, for example \
             xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted from macaddr8 to macaddr.",
        )),
    }
}

/// Appends `08:00:2b:01:02:03`.
pub fn write(bytes: &[u8], out: &mut Vec<u8>) {
    let octets: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    out.extend_from_slice(octets.join(":").as_bytes());
}

/// Reads the binary form of a `macaddr8`, which may have six bytes.
pub fn read_eight(bytes: &[u8]) -> Result<i64> {
    if let Ok(bytes) = bytes.try_into() {
        return Ok(widen(of_six(bytes)));
    }
    match bytes.try_into() {
        Ok(bytes) => Ok(of_eight(bytes)),
        Err(_) if bytes.len() < 8 => Err(Error::short_binary()),
        Err(_) => Err(Error::invalid_binary("incorrect binary data format")),
    }
}

/// How six numbers may be written: digits of a number, and what stands between two of them.
const FORMS: [(Option<usize>, [&str; 5]); 7] = [
    (None, [":", ":", ":", ":", ":"]),
    (None, ["-", "-", "-", "-", "-"]),
    (Some(2), ["", "", ":", "", ""]),
    (Some(2), ["", "", "-", "", ""]),
    (Some(2), ["", ".", "", ".", ""]),
    (Some(2), ["", "-", "", "-", ""]),
    (Some(2), ["", "", "", "", ""]),
];

/// Reads a `macaddr`; 22P02 for what is none, 22003 for numbers that are no bytes. Numbers are as C's `scanf` takes
/// them: after blanks, with a sign and `0x`.
pub fn parse_six(text: &str) -> Result<i64> {
    let numbers = FORMS.iter().find_map(|(digits, between)| numbers_of(text.as_bytes(), *digits, between));
    let numbers = numbers.ok_or_else(|| Error::invalid_text("macaddr", text))?;
    let mut bytes = [0; 6];
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte = u8::try_from(number)
            .map_err(|_| Error::new("22003", format!("invalid octet value in \"macaddr\" value: \"{text}\"")))?;
    }
    Ok(of_six(bytes))
}

fn is_blank(byte: &u8) -> bool {
    byte.is_ascii_whitespace() || *byte == 0x0b
}

fn after_blanks(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|byte| is_blank(byte)).count()..]
}

fn numbers_of(text: &[u8], digits: Option<usize>, between: &[&str; 5]) -> Option<[i32; 6]> {
    let mut rest = text;
    let mut numbers = [0; 6];
    for (at, number) in numbers.iter_mut().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(between[at - 1].as_bytes())?;
        }
        *number = take_number(&mut rest, digits)?;
    }
    after_blanks(rest).is_empty().then_some(numbers)
}

/// A hexadecimal number off the front, of at most so many characters. It wraps around at 32 bits, after it was held
/// at 64.
fn take_number(text: &mut &[u8], width: Option<usize>) -> Option<i32> {
    let rest = after_blanks(text);
    let limit = width.unwrap_or(usize::MAX).min(rest.len());
    let mut at = 0;
    let negative = rest[..limit].first() == Some(&b'-');
    if matches!(rest[..limit].first(), Some(b'-' | b'+')) {
        at += 1;
    }
    let mut found = false;
    if let [b'0', b'x' | b'X', ..] = rest[at..limit] {
        (at, found) = (at + 2, true);
    }
    let digits = rest[at..limit].iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    if digits == 0 && !found {
        return None;
    }
    let value = rest[at..at + digits]
        .iter()
        .try_fold(0u64, |value, byte| value.checked_mul(16)?.checked_add(u64::from((*byte as char).to_digit(16)?)));
    *text = &rest[at + digits..];
    let value = match (value, negative) {
        (Some(value), false) => value,
        (Some(value), true) => value.wrapping_neg(),
        (None, _) => u64::MAX,
    };
    Some(value as i32)
}

/// Reads a `macaddr8`: six or eight pairs of digits, with one kind of `:`, `-` and `.` between any of them.
pub fn parse_eight(text: &str) -> Result<i64> {
    eight_of(text.as_bytes()).ok_or_else(|| Error::invalid_text("macaddr8", text))
}

fn eight_of(text: &[u8]) -> Option<i64> {
    let mut rest = after_blanks(text);
    let mut bytes = Vec::with_capacity(8);
    let mut between = None;
    // A single character at the end is passed over, as in PostgreSQL.
    while let [high, low, after @ ..] = rest {
        let digit = |byte: u8| (byte as char).to_digit(16);
        bytes.push((digit(*high)? << 4 | digit(*low)?) as u8);
        if bytes.len() > 8 {
            return None;
        }
        rest = after;
        if let [spacer @ (b':' | b'-' | b'.'), after @ ..] = rest {
            if *between.get_or_insert(*spacer) != *spacer {
                return None;
            }
            rest = after;
        }
        if matches!(bytes.len(), 6 | 8) && rest.first().is_some_and(is_blank) {
            rest = after_blanks(rest);
            if !rest.is_empty() {
                return None;
            }
        }
    }
    match *bytes.as_slice() {
        [a, b, c, d, e, f] => Some(widen(of_six([a, b, c, d, e, f]))),
        [a, b, c, d, e, f, g, h] => Some(of_eight([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}
