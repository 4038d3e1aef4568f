//! `bit` and `bit varying` (manual 8.10): strings of `0` and `1`.
//!
//! They rest as those characters: compared as text they are ordered as PostgreSQL orders them, padding of the
//! last byte with zeros and shorter ones first.

use crate::error::{Error, Result};
use basalt_types::DataType;

/// The longest bit string.
const BITS_MAX: usize = 83_886_080;

/// Reads `101`, `b101` or `x1F`.
pub fn parse(text: &str) -> Result<String> {
    let (digits, hexadecimal) = match text.as_bytes().first() {
        Some(b'b' | b'B') => (&text[1..], false),
        Some(b'x' | b'X') => (&text[1..], true),
        _ => (text, false),
    };
    if hexadecimal { from_hexadecimal(digits) } else { from_binary(digits) }
}

/// The digits of `B'…'`.
pub fn from_binary(digits: &str) -> Result<String> {
    match digits.chars().find(|char| !matches!(char, '0' | '1')) {
        Some(char) => Err(Error::new("22P02", format!("\"{char}\" is not a valid binary digit"))),
        None => Ok(digits.to_string()),
    }
}

/// The digits of `X'…'`.
pub fn from_hexadecimal(digits: &str) -> Result<String> {
    let mut out = String::with_capacity(digits.len() * 4);
    for char in digits.chars() {
        match char.to_digit(16) {
            Some(digit) => out.push_str(&format!("{digit:04b}")),
            None => return Err(Error::new("22P02", format!("\"{char}\" is not a valid hexadecimal digit"))),
        }
    }
    Ok(out)
}

/// Bits as a type with a length holds them: an explicit cast cuts and fills with zeros where an assignment
/// refuses (22026, 22001).
pub fn fit(bits: &str, ty: &DataType, explicit: bool) -> Result<String> {
    match ty {
        DataType::Bit(Some(length)) if bits.len() != *length as usize => {
            if !explicit {
                let message = format!("bit string length {} does not match type bit({length})", bits.len());
                return Err(Error::new("22026", message));
            }
            let kept = &bits[..bits.len().min(*length as usize)];
            Ok(format!("{kept:0<width$}", width = *length as usize))
        }
        DataType::Varbit(Some(length)) if bits.len() > *length as usize => {
            if !explicit {
                return Err(Error::new("22001", format!("bit string too long for type bit varying({length})")));
            }
            Ok(bits[..*length as usize].to_string())
        }
        _ => Ok(bits.to_string()),
    }
}

/// The last `length` bits of an integer, with its sign before them.
pub fn of_integer(value: i64, length: u32) -> String {
    (0..length).rev().map(|bit| if value >> bit.min(63) & 1 == 1 { '1' } else { '0' }).collect()
}

/// Bits as an integer of `width` bits; 22003 if there are more.
pub fn to_integer(bits: &str, width: usize, type_name: &str) -> Result<i64> {
    if bits.len() > width {
        return Err(Error::out_of_range(type_name));
    }
    let value = bits.bytes().fold(0u64, |value, bit| value << 1 | u64::from(bit == b'1'));
    Ok(if width == 32 { i64::from(value as u32 as i32) } else { value as i64 })
}

/// PostgreSQL's binary form: the count of bits, then bytes.
pub fn write_binary(bits: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(&(bits.len() as i32).to_be_bytes());
    for group in bits.as_bytes().chunks(8) {
        let byte = group.iter().fold(0u8, |byte, bit| byte << 1 | u8::from(*bit == b'1'));
        out.push(byte << (8 - group.len()));
    }
}

/// The inverse of [`write_binary`]; 22P03 for bytes that are none.
pub fn read_binary(bytes: &[u8]) -> Result<String> {
    let (count, data) = bytes.split_first_chunk::<4>().ok_or_else(Error::short_binary)?;
    let count = usize::try_from(i32::from_be_bytes(*count)).ok().filter(|count| *count <= BITS_MAX);
    let count = count.ok_or_else(|| Error::invalid_binary("invalid length in external bit string"))?;
    if data.len() < count.div_ceil(8) {
        return Err(Error::short_binary());
    }
    if data.len() > count.div_ceil(8) {
        return Err(Error::invalid_binary("incorrect binary data format"));
    }
    Ok((0..count).map(|at| if data[at / 8] >> (7 - at % 8) & 1 == 1 { '1' } else { '0' }).collect())
}
