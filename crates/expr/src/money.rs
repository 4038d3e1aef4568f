//! `money` (manual 8.2): hundredths, as the locale C writes them: `$1,234.56`.

use crate::error::{Error, Result};
use crate::numeric::Numeric;

/// Reads an amount: sign or parentheses, a dollar sign, digits with commas, two decimals; a third one rounds.
pub fn parse(text: &str) -> Result<i64> {
    let invalid = || Error::invalid_text("money", text);
    let range = || Error::text_out_of_range("money", text);
    let mut rest = text.trim_start();
    rest = rest.strip_prefix('$').unwrap_or(rest).trim_start();
    let mut negative = false;
    if let Some(after) = rest.strip_prefix(['-', '(']) {
        negative = true;
        rest = after;
    } else {
        rest = rest.strip_prefix('+').unwrap_or(rest);
    }
    rest = rest.trim_start();
    rest = rest.strip_prefix('$').unwrap_or(rest).trim_start();
    // Counted below zero, which has one value more.
    let (mut value, mut decimals) = (0i64, None);
    let mut used = 0;
    for byte in rest.bytes() {
        match (byte, decimals) {
            (b'0'..=b'9', None | Some(0 | 1)) => {
                let digit = i64::from(byte - b'0');
                value = value.checked_mul(10).and_then(|value| value.checked_sub(digit)).ok_or_else(range)?;
                decimals = decimals.map(|count| count + 1);
            }
            (b'.', None) => decimals = Some(0),
            (b',', _) => {}
            _ => break,
        }
        used += 1;
    }
    rest = &rest[used..];
    if rest.starts_with(|char: char| matches!(char, '5'..='9')) {
        value = value.checked_sub(1).ok_or_else(range)?;
    }
    for _ in decimals.unwrap_or(0)..2 {
        value = value.checked_mul(10).ok_or_else(range)?;
    }
    rest = rest.trim_start_matches(|char: char| char.is_ascii_digit());
    for char in rest.chars() {
        match char {
            '-' => negative = true,
            '+' | ')' | '$' => {}
            char if char.is_ascii_whitespace() => {}
            _ => return Err(invalid()),
        }
    }
    if negative { Ok(value) } else { value.checked_neg().ok_or_else(range) }
}

pub fn write(value: i64, out: &mut Vec<u8>) {
    let (whole, hundredths) = (value.unsigned_abs() / 100, value.unsigned_abs() % 100);
    let digits = whole.to_string();
    if value < 0 {
        out.push(b'-');
    }
    out.push(b'$');
    for (at, digit) in digits.bytes().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(digit);
    }
    out.extend_from_slice(format!(".{hundredths:02}").as_bytes());
}

/// 22003 beyond what an i64 of hundredths holds.
pub fn of_numeric(value: &Numeric) -> Result<i64> {
    value.mul(&Numeric::from(100i64))?.round(0)?.to_i64()
}

pub fn to_numeric(value: i64) -> Numeric {
    Numeric::from_scaled(i128::from(value), 2)
}

/// Words up to 999.
fn small_words(value: u64) -> String {
    const SMALL: [&str; 28] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
        "twenty",
        "thirty",
        "forty",
        "fifty",
        "sixty",
        "seventy",
        "eighty",
        "ninety",
    ];
    let tens = |value: u64| SMALL[(value / 10) as usize + 18];
    let below_hundred = |value: u64| match (value, value % 10) {
        (..=20, _) => SMALL[value as usize].to_string(),
        (_, 0) => tens(value).to_string(),
        (_, ones) => format!("{} {}", tens(value), SMALL[ones as usize]),
    };
    match (value / 100, value % 100) {
        (0, rest) => below_hundred(rest),
        (hundreds, 0) => format!("{} hundred", SMALL[hundreds as usize]),
        // The tens stand apart where ones follow them.
        (hundreds, rest) if rest % 10 == 0 && rest > 10 => {
            format!("{} hundred {}", SMALL[hundreds as usize], tens(rest))
        }
        (hundreds, rest) if rest < 20 => {
            format!("{} hundred and {}", SMALL[hundreds as usize], SMALL[rest as usize])
        }
        (hundreds, rest) => format!("{} hundred {}", SMALL[hundreds as usize], below_hundred(rest)),
    }
}

/// `cash_words`.
pub fn words(value: i64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (100_000_000_000_000_000, "quadrillion"),
        (100_000_000_000_000, "trillion"),
        (100_000_000_000, "billion"),
        (100_000_000, "million"),
        (100_000, "thousand"),
    ];
    let size = value.unsigned_abs();
    let mut out = String::new();
    if value < 0 {
        out.push_str("minus ");
    }
    for (worth, name) in UNITS {
        let count = size / worth % 1000;
        if count > 0 {
            out.push_str(&format!("{} {name} ", small_words(count)));
        }
    }
    let (whole, hundredths) = (size / 100 % 1000, size % 100);
    if whole > 0 {
        out.push_str(&small_words(whole));
    }
    if size / 100 == 0 {
        out.push_str("zero");
    }
    out.push_str(if size / 100 == 1 { " dollar and " } else { " dollars and " });
    out.push_str(&small_words(hundredths));
    out.push_str(if hundredths == 1 { " cent" } else { " cents" });
    out[..1].to_ascii_uppercase() + &out[1..]
}
