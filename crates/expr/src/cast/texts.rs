//! Plain texts as numbers and truth values: digits as they are mostly written. Whatever else a type's input takes, and all
//! that it refuses, is for the general way to tell.

use basalt_types::{DataType, Datum, PhysType};

/// Digits that fit into 64 bits, whatever they are.
const DIGITS_MAX: usize = 18;

/// The value of a text that is written plainly; `None` says nothing about it.
pub(super) fn plain(to: &DataType, text: &str) -> Option<Datum> {
    match to {
        DataType::Int2 => i16::try_from(integer(text)?).ok().map(Datum::I16),
        DataType::Int4 => i32::try_from(integer(text)?).ok().map(Datum::I32),
        DataType::Int8 => integer(text).map(Datum::I64),
        DataType::Float8 => float(text).map(Datum::F64),
        DataType::Numeric(Some(_)) => decimal(to, text),
        DataType::Bool => match text {
            "true" | "t" => Some(Datum::Bool(true)),
            "false" | "f" => Some(Datum::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = signed(text.as_bytes());
    let value = digits_of(digits, 0)?;
    (!digits.is_empty()).then_some(if negative { -value } else { value })
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    }
}

/// These digits behind a number.
fn digits_of(digits: &[u8], number: i64) -> Option<i64> {
    (digits.len() <= DIGITS_MAX).then_some(())?;
    digits.iter().try_fold(number, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit < 10 { number.checked_mul(10)?.checked_add(i64::from(digit)) } else { None }
    })
}

/// Zeros, and what is so small that it becomes one, are told apart elsewhere.
fn float(text: &str) -> Option<f64> {
    let (_, unsigned) = signed(text.as_bytes());
    let is_number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+');
    if !unsigned.first().is_some_and(u8::is_ascii_digit) || !unsigned.iter().all(is_number) {
        return None;
    }
    text.parse::<f64>().ok().filter(|value| value.is_normal())
}

/// A numeric whose digits all have a place in its type.
fn decimal(to: &DataType, text: &str) -> Option<Datum> {
    let (precision, scale) = to.decimal()?;
    let (negative, digits) = signed(text.as_bytes());
    let (whole, fraction) = match digits.iter().position(|byte| *byte == b'.') {
        Some(at) => (&digits[..at], &digits[at + 1..]),
        None => (digits, &[][..]),
    };
    let zeros = usize::try_from(scale).ok()?.checked_sub(fraction.len())?;
    if whole.is_empty() || whole.len() + fraction.len() + zeros > DIGITS_MAX {
        return None;
    }
    let units = digits_of(fraction, digits_of(whole, 0)?)?.checked_mul(10i64.checked_pow(zeros as u32)?)?;
    let least_beyond = 10i64.checked_pow(u32::from(precision)).unwrap_or(i64::MAX);
    let value = if negative { -units } else { units };
    match to.phys()? {
        _ if units >= least_beyond => None,
        PhysType::I64 => Some(Datum::I64(value)),
        PhysType::I128 => Some(Datum::I128(value.into())),
        _ => None,
    }
}
