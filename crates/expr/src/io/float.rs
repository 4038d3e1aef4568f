//! Floats as text: the shortest digits that read back as the same value, laid out as C's `%g` does.

use super::parts::trim;
use crate::error::{Error, Result};
use std::io::Write;

/// Appends a `double precision`. `extra_digits` is the setting `extra_float_digits`.
pub fn write_f64(value: f64, extra_digits: i32, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return write_special(value, out);
    }
    if extra_digits <= 0 {
        return write_rounded(value, (15 + extra_digits).max(1) as usize, out);
    }
    if value.fract() == 0.0 && value.abs() < 1e15 && (value != 0.0 || value.is_sign_positive()) {
        return out.extend_from_slice(itoa::Buffer::new().format(value as i64).as_bytes());
    }
    let (below, above) = (value.abs().next_down(), value.abs().next_up());
    write_nearest(value, [below, above], ryu::Buffer::new().format_finite(value), 15, out);
}

/// Floats that may be as far from a neighbour as from a decimal of few digits. Below, halves have too many digits;
/// above, such decimals have too large a power of five in them.
const HALVES: std::ops::Range<f64> = 16_777_216.0..1e37;

/// A float among others, all of them whole numbers.
struct Neighbours {
    exact: u128,
    /// Distances.
    above: u128,
    below: u128,
}

impl Neighbours {
    /// Whether a decimal lies halfway to a neighbour. The shortest digits may, and read back as the value because its
    /// mantissa is even; PostgreSQL wants digits that are nearer to the value than to any other.
    fn is_halfway(&self, decimal: &str) -> bool {
        let (mantissa, exponent) = decimal.trim_start_matches('-').split_once('e').unwrap_or((decimal, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let shift = exponent.parse::<u32>().ok().and_then(|exponent| exponent.checked_sub(fraction.len() as u32));
        let number = format!("{whole}{fraction}").trim_start_matches('-').parse::<u128>().ok();
        let decimal = number.zip(shift).and_then(|(number, shift)| number.checked_mul(10u128.checked_pow(shift)?));
        decimal.is_some_and(|decimal| {
            decimal * 2 == self.exact * 2 + self.above || decimal * 2 + self.below == self.exact * 2
        })
    }

    /// How many digits lie nearer to the value, at least `digits`.
    fn inner_digits(&self, value: f64, digits: usize) -> usize {
        let is_inside = |digits: &usize| !self.is_halfway(&format!("{:.*e}", digits - 1, value));
        let reads_back = |digits: &usize| {
            let read: f64 = format!("{:.*e}", digits - 1, value).parse().unwrap_or(0.0);
            let distance = (read - value).abs() as u128;
            distance * 2 < self.below.min(self.above).max(1)
        };
        (digits..17).find(|digits| is_inside(digits) && reads_back(digits)).unwrap_or(17)
    }
}

/// Appends a `real`.
pub fn write_f32(value: f32, extra_digits: i32, out: &mut Vec<u8>) {
    if !value.is_finite() {
        return write_special(f64::from(value), out);
    }
    if extra_digits <= 0 {
        return write_rounded(f64::from(value), (6 + extra_digits).max(1) as usize, out);
    }
    let (below, above) = (value.abs().next_down().into(), value.abs().next_up().into());
    write_nearest(value.into(), [below, above], ryu::Buffer::new().format_finite(value), 6, out);
}

/// The fewest digits that lie nearer to a value than to its neighbours; `beside` has those of its magnitude.
fn write_nearest(value: f64, beside: [f64; 2], shortest: &str, fixed_digits_max: usize, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    if HALVES.contains(&magnitude) {
        let [below, above] = [magnitude - beside[0], beside[1] - magnitude].map(|distance| distance as u128);
        let neighbours = Neighbours { exact: magnitude as u128, above, below };
        if neighbours.is_halfway(shortest) {
            let digits = neighbours.inner_digits(value, fixed_digits_max);
            return write_digits(value, digits, fixed_digits_max as i32, out);
        }
    }
    write_shortest(shortest, fixed_digits_max as i32, out);
}

fn write_special(value: f64, out: &mut Vec<u8>) {
    let text: &[u8] = match (value.is_nan(), value > 0.0) {
        (true, _) => b"NaN",
        (false, true) => b"Infinity",
        (false, false) => b"-Infinity",
    };
    out.extend_from_slice(text);
}

/// Lays out what `ryu` wrote (`1.5`, `-1e-7`, `1.25e16`).
fn write_shortest(text: &str, fixed_digits_max: i32, out: &mut Vec<u8>) {
    let (negative, body) = match text.strip_prefix('-') {
        Some(body) => (true, body),
        None => (false, text),
    };
    let (mantissa, exponent) = body.split_once('e').unwrap_or((body, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [0u8; 48];
    let mut count = 0;
    for byte in whole.bytes().chain(fraction.bytes()).take(digits.len()) {
        digits[count] = byte;
        count += 1;
    }
    let zeros = digits[..count].iter().take_while(|byte| **byte == b'0').count();
    let exponent = exponent.parse::<i32>().unwrap_or(0) + whole.len() as i32 - 1 - zeros as i32;
    let end = digits[..count].iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
    if negative {
        out.push(b'-');
    }
    if zeros >= end {
        return out.push(b'0');
    }
    lay_out(&digits[zeros..end], exponent, fixed_digits_max, out);
}

/// A number as C's `%.{digits}g` prints it, for messages.
pub(crate) fn general(value: f64, digits: usize) -> String {
    let mut out = Vec::new();
    if value.is_finite() {
        write_rounded(value, digits, &mut out)
    } else {
        write_special(value, &mut out)
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// `%.{digits}g`.
fn write_rounded(value: f64, digits: usize, out: &mut Vec<u8>) {
    write_digits(value, digits, digits as i32, out);
}

/// So many digits, rounded.
fn write_digits(value: f64, digits: usize, fixed_digits_max: i32, out: &mut Vec<u8>) {
    let text = format!("{:.*e}", digits - 1, value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let all: Vec<u8> = mantissa.bytes().filter(u8::is_ascii_digit).collect();
    let end = all.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
    if value.is_sign_negative() {
        out.push(b'-');
    }
    if end == 0 {
        return out.push(b'0');
    }
    lay_out(&all[..end], exponent.parse().unwrap_or(0), fixed_digits_max, out);
}

/// Digits with the decimal exponent of the first, plain or with an exponent of at least two digits.
fn lay_out(digits: &[u8], exponent: i32, fixed_digits_max: i32, out: &mut Vec<u8>) {
    if exponent < -4 || exponent >= fixed_digits_max {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        let sign = if exponent < 0 { '-' } else { '+' };
        return write!(out, "e{sign}{:02}", exponent.abs()).expect("a Vec takes every write");
    }
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-exponent - 1) as usize, b'0');
        return out.extend_from_slice(digits);
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        out.extend_from_slice(digits);
        out.resize(out.len() + whole - digits.len(), b'0');
    } else {
        out.extend_from_slice(&digits[..whole]);
        out.push(b'.');
        out.extend_from_slice(&digits[whole..]);
    }
}

/// Mantissa and binary exponent of a hexadecimal number (`1.8p3`), as C reads it. Digits beyond the mantissa leave a trace
/// in its last bit, for rounding.
fn hexadecimal(text: &str) -> Option<(u64, i32)> {
    /// No float has a greater one, nor a smaller.
    const EXPONENT_MAX: i64 = 5_000;
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => {
            let number = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            let size = number.parse().unwrap_or(EXPONENT_MAX).min(EXPONENT_MAX) as i32;
            (digits, if exponent.starts_with('-') { -size } else { size })
        }
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (mut mantissa, mut exponent) = (0u64, exponent);
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let (is_kept, is_whole) = (mantissa >> 60 == 0, at < whole.len());
        mantissa = if is_kept { mantissa << 4 | digit } else { mantissa | u64::from(digit != 0) };
        exponent = match (is_kept, is_whole) {
            (true, false) => exponent.saturating_sub(4),
            (false, true) => exponent.saturating_add(4),
            _ => exponent,
        };
    }
    Some((mantissa, exponent))
}

/// Reads a float; values that become infinite or zero by their size are out of range.
macro_rules! parser {
    ($name:ident, $float:ty, $type_name:literal) => {
        pub(crate) fn $name(text: &[u8]) -> Result<$float> {
            let shown = || String::from_utf8_lossy(text).into_owned();
            let trimmed = std::str::from_utf8(trim(text)).unwrap_or("");
            let invalid = || Error::invalid_text($type_name, &shown());
            let beyond = || Error::new("22003", format!("\"{}\" is out of range for type {}", trimmed, $type_name));
            let digits = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
            if let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
                let (mantissa, mut exponent) = hexadecimal(digits).ok_or_else(invalid)?;
                let mut value = mantissa as $float;
                while exponent != 0 && value != 0.0 && value.is_finite() {
                    let step = exponent.clamp(-100, 100);
                    value *= (2.0 as $float).powi(step);
                    exponent -= step;
                }
                if value.is_infinite() || (value == 0.0 && mantissa != 0) {
                    return Err(beyond());
                }
                return Ok(if trimmed.starts_with('-') { -value } else { value });
            }
            let value: $float = trimmed.parse().map_err(|_| invalid())?;
            let unsigned = trimmed.trim_start_matches(['+', '-']);
            let by_name = unsigned.starts_with(|c: char| c.is_ascii_alphabetic());
            let mantissa = unsigned.split(['e', 'E']).next().unwrap_or("");
            let vanished = value == 0.0 && mantissa.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
            if (value.is_infinite() && !by_name) || vanished {
                return Err(beyond());
            }
            Ok(value)
        }
    };
}
parser!(parse_f64, f64, "double precision");
parser!(parse_f32, f32, "real");
