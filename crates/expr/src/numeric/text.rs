//! `numeric` from and to text (`numeric_in`, `numeric_out`).

use super::convert::decode_small;
use super::*;
use basalt_types::numeric::{CLASS_NEGATIVE, CLASS_POSITIVE};
use std::fmt;

impl Numeric {
    /// Reads what PostgreSQL accepts: `12`, `-1.50`, `.5e-3`, `NaN`, `-inf`, with blanks around.
    pub fn parse(text: &str) -> Result<Numeric> {
        let trimmed = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
        match parse_small(trimmed.as_bytes()) {
            Some((coefficient, scale)) => Ok(Numeric { kind: Kind::Small(coefficient), scale }),
            None => parse_any(trimmed).unwrap_or_else(|| Err(Error::invalid_text("numeric", text))),
        }
    }

    /// Appends the text form.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match &self.kind {
            Kind::Small(value) => write_scaled(*value, usize::from(self.scale), out),
            Kind::Big(value) => {
                if value.sign() == Sign::Minus {
                    out.push(b'-');
                }
                write_digits(value.magnitude().to_string().as_bytes(), usize::from(self.scale), out);
            }
            Kind::Infinity => out.extend_from_slice(b"Infinity"),
            Kind::NegInfinity => out.extend_from_slice(b"-Infinity"),
            Kind::Nan => out.extend_from_slice(b"NaN"),
        }
    }
}

/// Appends the text of a value in its stored form, digit by digit; XX001 if the bytes are damaged.
pub fn write_stored(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    if let Some(value) = decode_small(stored) {
        value.write_text(out);
        return Ok(());
    }
    let parts = parts_of(stored)?;
    if !matches!(parts.class, CLASS_POSITIVE | CLASS_NEGATIVE) {
        Numeric::of_parts(&parts)?.write_text(out);
        return Ok(());
    }
    let scale = usize::from(parts.display_scale);
    let weight = i64::from(parts.weight);
    let digit = |weight_of: i64| {
        let at = usize::try_from(weight - weight_of).ok();
        at.and_then(|at| parts.digits.get(at)).copied().unwrap_or(0)
    };
    let start = out.len();
    if parts.class == CLASS_NEGATIVE {
        out.push(b'-');
    }
    match weight {
        0.. => {
            out.extend_from_slice(itoa::Buffer::new().format(digit(weight)).as_bytes());
            (0..weight).rev().for_each(|weight| put_four(digit(weight), out));
        }
        _ => out.push(b'0'),
    }
    if scale > 0 {
        out.push(b'.');
        let end = out.len() + scale;
        (1..=scale.div_ceil(4) as i64).for_each(|below| put_four(digit(-below), out));
        out.truncate(end);
    }
    // What is shown of it may be nothing.
    if parts.class == CLASS_NEGATIVE && out[start + 1..].iter().all(|byte| matches!(byte, b'0' | b'.')) {
        out.remove(start);
    }
    Ok(())
}

fn put_four(digit: u16, out: &mut Vec<u8>) {
    let (high, low) = (digit / 100, digit % 100);
    out.extend([high / 10, high % 10, low / 10, low % 10].map(|digit| b'0' + digit as u8));
}

/// Plain decimals of up to 37 digits; `None` for anything else, right or wrong.
#[inline]
pub fn parse_small(text: &[u8]) -> Option<(i128, u16)> {
    let (negative, digits) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (mut low, mut point, mut used) = (0u64, None, 0usize);
    // A point and 18 digits fit 64 bits.
    for byte in digits.iter().take(19) {
        match byte {
            b'0'..=b'9' if used < 18 || point.is_some() => low = low * 10 + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(used),
            b'0'..=b'9' => break,
            _ => return None,
        }
        used += 1;
    }
    let mut value = i128::from(low);
    if used < digits.len() {
        if digits.len() > 37 {
            return None;
        }
        for byte in &digits[used..] {
            match byte {
                b'0'..=b'9' => value = value * 10 + i128::from(byte - b'0'),
                b'.' if point.is_none() => point = Some(used),
                _ => return None,
            }
            used += 1;
        }
    }
    if used <= usize::from(point.is_some()) {
        return None;
    }
    let scale = point.map_or(0, |point| used - point - 1) as u16;
    Some((if negative { -value } else { value }, scale))
}

/// Everything that the syntax allows. `None` is a syntax error.
fn parse_any(text: &str) -> Option<Result<Numeric>> {
    let (negative, body) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if body.eq_ignore_ascii_case("nan") {
        return (body.len() == text.len()).then_some(Ok(Numeric::NAN));
    }
    if body.eq_ignore_ascii_case("infinity") || body.eq_ignore_ascii_case("inf") {
        return Some(Ok(if negative { Numeric::NEG_INFINITY } else { Numeric::INFINITY }));
    }
    let (mantissa, exponent) = match body.find(['e', 'E']) {
        Some(at) => (&body[..at], parse_exponent(&body[at + 1..])?),
        None => (body, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    Some(build(negative, whole, fraction, exponent))
}

fn parse_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // More digits than an i64 has: out of the format's range either way.
    Some(text.parse().unwrap_or(i64::from(i32::MAX)).clamp(-i64::from(i32::MAX), i64::from(i32::MAX)))
}

fn build(negative: bool, whole: &str, fraction: &str, exponent: i64) -> Result<Numeric> {
    let digits = [whole, fraction].concat();
    let significant = digits.trim_start_matches('0');
    let scale = fraction.len() as i64 - exponent;
    let integer_digits = significant.len() as i64 - scale;
    if exponent.abs() >= i64::from(i32::MAX) / 2
        || scale > i64::from(SCALE_MAX)
        || (!significant.is_empty() && integer_digits > INTEGER_DIGITS_MAX)
    {
        return Err(Error::numeric_overflow());
    }
    if significant.is_empty() {
        return Ok(Numeric::from_scaled(0, scale.max(0) as u16));
    }
    let mut coefficient = BigInt::parse_bytes(significant.as_bytes(), 10)
        .ok_or_else(|| Error::internal("digits that do not parse as digits"))?;
    if scale < 0 {
        coefficient *= big_power_of_ten(scale.unsigned_abs() as u32);
    }
    Numeric::from_big(if negative { -coefficient } else { coefficient }, scale.max(0) as i32)
}

/// Appends `value / 10^scale` with all its decimals.
#[inline]
pub fn write_scaled(value: i128, scale: usize, out: &mut Vec<u8>) {
    let mut buffer = itoa::Buffer::new();
    if value < 0 {
        out.push(b'-');
    }
    let magnitude = value.unsigned_abs();
    let digits = match u64::try_from(magnitude) {
        Ok(magnitude) => buffer.format(magnitude),
        Err(_) => buffer.format(magnitude),
    };
    write_digits(digits.as_bytes(), scale, out);
}

fn write_digits(digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if scale == 0 {
        out.extend_from_slice(digits);
    } else if digits.len() > scale {
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        out.push(b'.');
        out.extend_from_slice(fraction);
    } else {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + scale - digits.len(), b'0');
        out.extend_from_slice(digits);
    }
}

impl fmt::Display for Numeric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write_text(&mut out);
        f.write_str(std::str::from_utf8(&out).map_err(|_| fmt::Error)?)
    }
}

impl std::str::FromStr for Numeric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Numeric> {
        Numeric::parse(text)
    }
}
