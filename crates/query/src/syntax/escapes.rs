//! What is wrong with a string constant that the tokenizer gives up on: escapes of `E'…'` and `U&'…'` that stand for
//! no character (PostgreSQL manual 4.1.2.2 and 4.1.2.3).

use crate::error::SqlError;

/// A literal's characters, with their places in the text.
struct Literal<'a> {
    text: &'a [char],
    at: usize,
    /// The first half of a pair of surrogates was read.
    half: bool,
    /// Where nothing is appended to messages, as in `U&'…'`.
    bare: bool,
}

/// The fault in the constant that begins at or before a character of `sql`, counted from 0.
pub(super) fn fault(sql: &str, near: usize) -> Option<SqlError> {
    let text: Vec<char> = sql.chars().collect();
    let opens = |at: usize, prefix: &str| {
        prefix.chars().enumerate().all(|(n, wanted)| text.get(at + n).is_some_and(|c| c.eq_ignore_ascii_case(&wanted)))
    };
    for at in (0..=near.min(text.len())).rev() {
        if opens(at, "u&'") {
            return Literal { text: &text, at: at + 3, half: false, bare: true }.fault();
        }
        if opens(at, "e'") {
            return Literal { text: &text, at: at + 2, half: false, bare: false }.fault();
        }
    }
    None
}

impl Literal<'_> {
    fn fault(mut self) -> Option<SqlError> {
        let mut bytes = Vec::new();
        while let Some(&c) = self.text.get(self.at) {
            let quoted = c == '\'' && self.text.get(self.at + 1) == Some(&'\'');
            if c == '\'' && !quoted {
                break;
            }
            if c == '\\' {
                let escape = if self.bare { self.standard() } else { self.escape(&mut bytes) };
                match escape {
                    Ok(next) => self.at = next,
                    Err(error) => return Some(error),
                }
                continue;
            }
            if self.half {
                return Some(self.pair(1));
            }
            bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            self.at += if quoted { 2 } else { 1 };
        }
        self.text.get(self.at)?;
        if self.half {
            return Some(self.pair(1));
        }
        let wrong = match std::str::from_utf8(&bytes) {
            Ok(_) => bytes.iter().position(|byte| *byte == 0)?,
            Err(error) => error.valid_up_to(),
        };
        let message = format!("invalid byte sequence for encoding \"UTF8\": 0x{:02x}", bytes.get(wrong)?);
        Some(SqlError::new("22021", message))
    }

    fn error(&self, sqlstate: &'static str, message: &str) -> SqlError {
        SqlError::new(sqlstate, message).at(u32::try_from(self.at + 1).ok())
    }

    /// Two surrogates that do not make a pair; `length` characters stand where it was seen.
    fn pair(&self, length: usize) -> SqlError {
        self.marked("invalid Unicode surrogate pair", length)
    }

    fn marked(&self, message: &str, length: usize) -> SqlError {
        let near: String = self.text.iter().skip(self.at).take(length).collect();
        match self.bare {
            true => self.error("42601", message),
            false => self.error("42601", &format!("{message} at or near \"{near}\"")),
        }
    }

    fn digits(&self, from: usize, radix: u32, most: usize) -> (u32, usize) {
        let digits = self.text.iter().skip(from).take(most).map_while(|c| c.to_digit(radix));
        digits.fold((0u32, 0), |(value, count), digit| (value.wrapping_mul(radix) + digit, count + 1))
    }

    /// A character by its code; `length` is the escape's.
    fn code(&mut self, code: u32, length: usize) -> Result<(), SqlError> {
        match (self.half, code) {
            (true, 0xdc00..=0xdfff) => self.half = false,
            (false, 0xd800..=0xdbff) => self.half = true,
            (true, _) | (false, 0xdc00..=0xdfff) => return Err(self.pair(length)),
            (false, 0 | 0x11_0000..) => return Err(self.marked("invalid Unicode escape value", length)),
            _ => {}
        }
        Ok(())
    }

    /// `\n`, `\101`, `\x41`, `\u0061`, `\U00000061`: where the next character is.
    fn escape(&mut self, bytes: &mut Vec<u8>) -> Result<usize, SqlError> {
        let kind = self.text.get(self.at + 1).copied().unwrap_or(' ');
        let size = match kind {
            'u' => 4,
            'U' => 8,
            _ if self.half => return Err(self.pair(1)),
            'x' => {
                let (value, count) = self.digits(self.at + 2, 16, 2);
                if count > 0 {
                    bytes.push(value as u8);
                }
                return Ok(self.at + 2 + count);
            }
            '0'..='7' => {
                let (value, count) = self.digits(self.at + 1, 8, 3);
                bytes.push(value as u8);
                return Ok(self.at + 1 + count);
            }
            other => {
                bytes.extend(other.encode_utf8(&mut [0; 4]).bytes());
                return Ok(self.at + 2);
            }
        };
        let (code, count) = self.digits(self.at + 2, 16, size);
        if count < size {
            let error = self.error("22025", "invalid Unicode escape");
            return Err(error.with_hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX."));
        }
        self.code(code, size + 2)?;
        Ok(self.at + size + 2)
    }

    /// `\0061`, `\+000061`.
    fn standard(&mut self) -> Result<usize, SqlError> {
        if self.text.get(self.at + 1) == Some(&'\\') {
            return if self.half { Err(self.pair(1)) } else { Ok(self.at + 2) };
        }
        let (from, size) = match self.text.get(self.at + 1) {
            Some('+') => (self.at + 2, 6),
            _ => (self.at + 1, 4),
        };
        let (code, count) = self.digits(from, 16, size);
        if count < size {
            let error = self.error("42601", "invalid Unicode escape");
            return Err(error.with_hint("Unicode escapes must be \\XXXX or \\+XXXXXX."));
        }
        self.code(code, from + size - self.at)?;
        Ok(from + size)
    }
}
