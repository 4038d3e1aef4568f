//! String constants that the tokenizer gives up on (PostgreSQL manual 4.1.2.2 and 4.1.2.3): pairs of surrogates, which it
//! does not read, become the character that they stand for; and what is wrong with escapes of `E'…'` and `U&'…'` that
//! stand for no character.

use crate::error::SqlError;
use sqlparser::tokenizer::{Location, Span, TokenWithSpan};

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

/// A text whose pairs of surrogates in constants are characters.
pub(super) struct Paired {
    pub text: String,
    /// Line and column of each in the new text, and how many characters its line has lost by then.
    pairs: Vec<((u64, u64), u64)>,
}

impl Paired {
    /// A place of the new text in the old one.
    pub fn before(&self, place: Location) -> Location {
        let earlier = self.pairs.partition_point(|(at, _)| *at < (place.line, place.column));
        let lost = match earlier.checked_sub(1).map(|last| self.pairs[last]) {
            Some(((line, _), lost)) if line == place.line => lost,
            _ => 0,
        };
        Location { line: place.line, column: place.column + lost }
    }

    pub fn restore(&self, tokens: &mut [TokenWithSpan]) {
        for token in tokens {
            token.span = Span::new(self.before(token.span.start), self.before(token.span.end));
        }
    }
}

/// The text with its pairs as characters; `None` if there are none.
pub(super) fn paired(sql: &str) -> Option<Paired> {
    let text: Vec<char> = sql.chars().collect();
    let mut reading =
        Reading { text: &text, at: 0, out: String::with_capacity(sql.len()), place: (1, 1), pairs: Vec::new() };
    while reading.at < text.len() {
        reading.step();
    }
    (!reading.pairs.is_empty()).then_some(Paired { text: reading.out, pairs: reading.pairs })
}

struct Reading<'a> {
    text: &'a [char],
    at: usize,
    out: String,
    /// Line and column of what comes next in `out`.
    place: (u64, u64),
    pairs: Vec<((u64, u64), u64)>,
}

impl Reading<'_> {
    fn sees(&self, ahead: usize, wanted: char) -> bool {
        self.text.get(self.at + ahead) == Some(&wanted)
    }

    fn put(&mut self, c: char) {
        self.out.push(c);
        self.place = if c == '\n' { (self.place.0 + 1, 1) } else { (self.place.0, self.place.1 + 1) };
    }

    /// Copies so many characters.
    fn copy(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(c) = self.text.get(self.at).copied() {
                self.put(c);
                self.at += 1;
            }
        }
    }

    fn copy_until(&mut self, end: &[char]) {
        while self.at < self.text.len() && !self.text[self.at..].starts_with(end) {
            self.copy(1);
        }
        self.copy(end.len());
    }

    /// A character, a comment or a constant.
    fn step(&mut self) {
        let before = |back: usize| self.at.checked_sub(back).map(|at| self.text[at]);
        let in_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
        match self.text[self.at] {
            '-' if self.sees(1, '-') => self.copy_until(&['\n']),
            '/' if self.sees(1, '*') => self.comment(),
            '"' => {
                self.copy(1);
                self.copy_until(&['"']);
            }
            '$' if !in_word(before(1)) => self.dollar_quoted(),
            '\'' => {
                let escapes = matches!(before(1), Some('e' | 'E')) && !in_word(before(2));
                let unicode = before(1) == Some('&') && matches!(before(2), Some('u' | 'U')) && !in_word(before(3));
                self.copy(1);
                match escapes || unicode {
                    true => self.escaped(unicode),
                    false => self.copy_until(&['\'']),
                }
            }
            _ => self.copy(1),
        }
    }

    fn comment(&mut self) {
        let mut depth = 0;
        while self.at < self.text.len() {
            match (self.text[self.at], self.text.get(self.at + 1)) {
                ('/', Some('*')) => depth += 1,
                ('*', Some('/')) => depth -= 1,
                _ => {
                    self.copy(1);
                    continue;
                }
            }
            self.copy(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn dollar_quoted(&mut self) {
        let tag = self.text[self.at + 1..].iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
        let is_tag = self.sees(tag + 1, '$') && !self.text[self.at + 1].is_ascii_digit();
        let mark: Vec<char> = self.text[self.at..].iter().take(tag + 2).copied().collect();
        match is_tag {
            true => {
                self.copy(mark.len());
                self.copy_until(&mark);
            }
            false => self.copy(1),
        }
    }

    /// The rest of `E'…'` or `U&'…'`.
    fn escaped(&mut self, unicode: bool) {
        while self.at < self.text.len() {
            match self.text[self.at] {
                '\'' if self.sees(1, '\'') => self.copy(2),
                '\'' => return self.copy(1),
                '\\' => match self.pair(unicode) {
                    Some((c, length)) => {
                        let lost = match self.pairs.last() {
                            Some(((line, _), lost)) if *line == self.place.0 => *lost,
                            _ => 0,
                        };
                        self.pairs.push((self.place, lost + length as u64 - 1));
                        self.put(c);
                        self.at += length;
                    }
                    None => self.copy(2),
                },
                _ => self.copy(1),
            }
        }
    }

    /// The character that two escapes here make, and their length.
    fn pair(&self, unicode: bool) -> Option<(char, usize)> {
        let (high, first) = self.code(self.at, unicode)?;
        let (low, second) = self.code(self.at + first, unicode)?;
        if !(0xd800..0xdc00).contains(&high) || !(0xdc00..0xe000).contains(&low) {
            return None;
        }
        Some((char::from_u32(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))?, first + second))
    }

    /// The code of one escape, and its length.
    fn code(&self, at: usize, unicode: bool) -> Option<(u32, usize)> {
        if self.text.get(at) != Some(&'\\') {
            return None;
        }
        let (from, size) = match (unicode, self.text.get(at + 1)?) {
            (true, '+') => (at + 2, 6),
            (true, _) => (at + 1, 4),
            (false, 'u') => (at + 2, 4),
            (false, 'U') => (at + 2, 8),
            _ => return None,
        };
        let mut code = 0u32;
        for c in self.text.get(from..from + size)? {
            code = code.wrapping_mul(16).wrapping_add(c.to_digit(16)?);
        }
        Some((code, from + size - at))
    }
}
