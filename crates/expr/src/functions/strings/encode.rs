//! `encode` and `decode`: hex, base64 (lines of 76), escape.

use crate::error::{Error, Result};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const LINE: usize = 76;

fn unknown(format: &str) -> Error {
    Error::new("22023", format!("unrecognized encoding: \"{format}\""))
}

pub(super) fn encode(bytes: &[u8], format: &str) -> Result<String> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
        "base64" => Ok(base64(bytes)),
        "escape" => Ok(bytes
            .iter()
            .map(|byte| match byte {
                0 | 0x80.. => format!("\\{byte:03o}"),
                b'\\' => "\\\\".to_string(),
                byte => char::from(*byte).to_string(),
            })
            .collect()),
        _ => Err(unknown(format)),
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 4 / 3 + 4);
    let mut column = 0;
    for group in bytes.chunks(3) {
        let word = group.iter().fold(0u32, |word, byte| word << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for sextet in 0..4 {
            let char = match sextet <= group.len() {
                true => char::from(ALPHABET[(word >> (18 - 6 * sextet)) as usize & 63]),
                false => '=',
            };
            out.push(char);
        }
        column += 4;
        if column == LINE && group.len() == 3 {
            out.push('\n');
            column = 0;
        }
    }
    out
}

pub(super) fn decode(text: &str, format: &str) -> Result<Vec<u8>> {
    match format.to_ascii_lowercase().as_str() {
        "hex" => decode_hex(text),
        "base64" => decode_base64(text),
        "escape" => decode_escape(text.as_bytes()),
        _ => Err(unknown(format)),
    }
}

fn decode_hex(text: &str) -> Result<Vec<u8>> {
    let mut digits = Vec::with_capacity(text.len());
    for char in text.chars().filter(|char| !matches!(char, ' ' | '\n' | '\t' | '\r')) {
        let digit = char.to_digit(16);
        digits.push(digit.ok_or_else(|| Error::new("22023", format!("invalid hexadecimal digit: \"{char}\"")))? as u8);
    }
    if digits.len() % 2 != 0 {
        return Err(Error::new("22023", "invalid hexadecimal data: odd number of digits"));
    }
    Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

fn decode_base64(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    let (mut word, mut sextets, mut padding) = (0u32, 0, 0);
    for char in text.chars().filter(|char| !matches!(char, ' ' | '\n' | '\t' | '\r')) {
        let value = match (char, ALPHABET.iter().position(|wanted| char::from(*wanted) == char)) {
            ('=', _) => {
                padding += 1;
                0
            }
            (_, Some(value)) if padding == 0 => value as u32,
            _ => {
                return Err(Error::new(
                    "22023",
                    format!("invalid symbol \"{char}\" found while decoding base64 sequence"),
                ));
            }
        };
        word = word << 6 | value;
        sextets += 1;
        if sextets == 4 {
            let bytes = word.to_be_bytes();
            out.extend_from_slice(bytes[1..].get(..3usize.saturating_sub(padding)).unwrap_or(&[]));
            (word, sextets) = (0, 0);
        }
    }
    if sextets != 0 {
        return Err(Error::new("22023", "invalid base64 end sequence")
            .with_hint("Input data is missing padding, is truncated, or is otherwise corrupted."));
    }
    Ok(out)
}

fn decode_escape(mut text: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    while let [first, rest @ ..] = text {
        text = match (first, rest) {
            (b'\\', [b'\\', rest @ ..]) => {
                out.push(b'\\');
                rest
            }
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', rest @ ..]) => {
                out.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            (b'\\', _) => return Err(Error::new("22P02", "invalid input syntax for type bytea")),
            (byte, rest) => {
                out.push(*byte);
                rest
            }
        };
    }
    Ok(out)
}
