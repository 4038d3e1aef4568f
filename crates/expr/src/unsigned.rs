//! Unsigned numbers of 64 bits: `pg_lsn` (manual 8.20), a position in the log, and `xid8` (manual 8.19), the number of
//! a transaction; and `xid`, the last 32 bits of one.
//!
//! The wide ones rest as integers with the first bit flipped, so that they are ordered as the numbers are.

use crate::error::{Error, Result};
use crate::numeric::Numeric;

#[cfg(test)]
mod tests;

const FLIPPED: u64 = 1 << 63;

pub fn stored(number: u64) -> i64 {
    (number ^ FLIPPED) as i64
}

pub fn number(stored: i64) -> u64 {
    stored as u64 ^ FLIPPED
}

/// Reads `16/B374D848`; 22P02 for what is no position.
pub fn parse_lsn(text: &str) -> Result<i64> {
    let half = |digits: &str| {
        let plain = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u64::from_str_radix(digits, 16).ok().filter(|_| plain)
    };
    let halves = text.split_once('/').and_then(|(high, low)| Some((half(high)?, half(low)?)));
    let (high, low) = halves.ok_or_else(|| Error::invalid_text("pg_lsn", text))?;
    Ok(stored(high << 32 | low))
}

/// Appends `16/B374D848`.
pub fn write_lsn(value: i64, out: &mut Vec<u8>) {
    let position = number(value);
    out.extend_from_slice(format!("{:X}/{:X}", position >> 32, position as u32).as_bytes());
}

/// A position as a number of bytes.
pub fn lsn_bytes(value: i64) -> Numeric {
    Numeric::from_scaled(i128::from(number(value)), 0)
}

/// The position at a number of bytes, rounded. 22023 for what is none, 0A000 for what is no number.
pub fn lsn_at(bytes: &Numeric) -> Result<i64> {
    if !bytes.is_finite() {
        let what = if bytes.is_nan() { "NaN" } else { "infinity" };
        return Err(Error::not_supported(format!("cannot convert {what} to pg_lsn")));
    }
    let rounded = bytes.round(0)?.to_i128().and_then(|bytes| u64::try_from(bytes).ok());
    rounded.map(stored).ok_or_else(|| Error::invalid_parameter("pg_lsn out of range"))
}

/// Reads the number of a transaction as C's `strtoul` does: after blanks, with a sign, in the base that its beginning
/// tells; what is no number is 0, what is too large the largest.
pub fn parse_number(text: &str) -> u64 {
    let text = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let is_digit = |digits: &str, base| digits.chars().next().is_some_and(|c| c.is_digit(base));
    let (base, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) if is_digit(rest, 16) => (16, rest),
        _ if digits.starts_with('0') => (8, digits),
        _ => (10, digits),
    };
    let mut value = Some(0u64);
    for digit in digits.chars().map_while(|c| c.to_digit(base)) {
        value = value.and_then(|value| value.checked_mul(u64::from(base))?.checked_add(u64::from(digit)));
    }
    match (value, negative) {
        (None, _) => u64::MAX,
        (Some(value), true) => value.wrapping_neg(),
        (Some(value), false) => value,
    }
}
