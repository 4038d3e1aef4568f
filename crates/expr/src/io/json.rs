//! `json` and `jsonb`: syntax (RFC 8259), and `jsonb`'s canonical text.
//!
//! One pass over the text reads and, for `jsonb`, writes: an object's members are put in order when it ends,
//! and only if they are not. What rests, and how it is walked, is [`basalt_types::jsonb`]'s.

use crate::error::{Error, Result};
use crate::numeric::Numeric;
use basalt_types::jsonb::compare_keys;
use std::io::Write;
use std::ops::Range;

/// Nesting beyond this is refused (54001) before the stack is at risk.
pub const DEPTH_MAX: usize = 1_000;

/// Characters of a number that is written as it stands, if it stands as numeric prints it.
const PLAIN_NUMBER_BYTES_MAX: usize = 1_000;

/// How much of the text must mean something.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Syntax, as type `json` keeps it.
    Syntax,
    /// Strings as well: `\u0000` and halves of pairs are refused.
    Strings,
    /// Numbers as well; the canonical text is written.
    Canonical,
}

/// Checks syntax only, as type `json` does.
pub fn validate(text: &str) -> Result<()> {
    Parser::new(text, Reading::Syntax).document().map(drop)
}

/// Checks that the strings of valid JSON have a value (22P05, 22P02), as functions on `json` do.
pub fn validate_strings(text: &str) -> Result<()> {
    if !text.as_bytes().contains(&b'\\') {
        return Ok(());
    }
    Parser::new(text, Reading::Strings).document().map(drop)
}

/// `jsonb`'s text of JSON text.
pub fn canonical(text: &str) -> Result<String> {
    let out = Parser::new(text, Reading::Canonical).document()?;
    String::from_utf8(out).map_err(|error| Error::internal(error.to_string()))
}

/// Whether text is a JSON number, as it stands.
pub fn is_number(text: &str) -> bool {
    is_number_token(text.as_bytes())
}

/// 54001: nested deeper than [`DEPTH_MAX`].
#[cold]
pub fn too_deep() -> Error {
    Error::new("54001", "stack depth limit exceeded")
        .with_detail(format!("JSON may be nested {DEPTH_MAX} levels deep."))
}

/// 54001 if valid JSON, put together out of parts, is nested deeper than the parser would take it.
pub fn check_depth(text: &[u8]) -> Result<()> {
    // Each level takes a bracket at either end, and most documents have too few of them.
    let opens = |bytes: &[u8]| bytes.iter().filter(|byte| matches!(byte, b'[' | b'{')).count();
    if text.len() <= 2 * DEPTH_MAX || opens(text) <= DEPTH_MAX {
        return Ok(());
    }
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at = after_string(text, at),
            _ => {}
        }
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
    }
    Ok(())
}

/// Behind the string that goes on at `at`.
fn after_string(text: &[u8], mut at: usize) -> usize {
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found + 1;
        match text[at - 1] {
            b'"' => return at,
            _ => at += 1,
        }
    }
    text.len()
}

/// Appends a JSON string with its quotes.
pub fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..0x20 => write!(out, "\\u{byte:04x}").expect("a Vec takes every write"),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    reading: Reading,
    /// The canonical text so far, if it is wanted.
    out: Vec<u8>,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, reading: Reading) -> Parser<'a> {
        let out = Vec::with_capacity(if reading == Reading::Canonical { text.len() + 8 } else { 0 });
        Parser { text, at: 0, reading, out }
    }

    fn document(mut self) -> Result<Vec<u8>> {
        self.value(0)?;
        self.blanks();
        if self.at < self.text.len() {
            return Err(self.unexpected("end of input"));
        }
        Ok(self.out)
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.reading == Reading::Canonical {
            self.out.extend_from_slice(bytes);
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text.as_bytes()[self.at..]
    }

    fn blanks(&mut self) {
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn syntax(detail: impl Into<String>) -> Error {
        Error::new("22P02", "invalid input syntax for type json").with_detail(detail)
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Error {
        if self.at >= self.text.len() {
            return Parser::syntax("The input string ended unexpectedly.");
        }
        let token = self.token();
        if expected.is_empty() || !is_token(token) {
            return Parser::syntax(format!("Token \"{token}\" is invalid."));
        }
        Parser::syntax(format!("Expected {expected}, but found \"{token}\"."))
    }

    /// The word or character at the current place, for messages.
    fn token(&self) -> &'a str {
        let rest = &self.text[self.at..];
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.') || !c.is_ascii();
        let end = if let Some(inner) = rest.strip_prefix('"') {
            inner.find('"').map_or(rest.len(), |at| at + 2)
        } else {
            match rest.find(|c| !is_word(c)) {
                Some(0) => 1,
                Some(end) => end,
                None => rest.len(),
            }
        };
        &rest[..end]
    }

    fn value(&mut self, depth: usize) -> Result<()> {
        self.blanks();
        match self.rest().first() {
            Some(b'{' | b'[') if depth >= DEPTH_MAX => Err(too_deep()),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => {
                let text = self.string()?;
                if self.reading == Reading::Canonical {
                    write_string(&text, &mut self.out);
                }
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let token = self.token();
                if !matches!(token, "true" | "false" | "null") {
                    return Err(self.unexpected(""));
                }
                self.at += token.len();
                self.put(token.as_bytes());
                Ok(())
            }
            _ => Err(self.unexpected("JSON value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<()> {
        self.at += 1;
        let start = self.out.len();
        self.put(b"{");
        let mut members: Vec<(String, Range<usize>)> = Vec::new();
        let mut is_first = true;
        self.blanks();
        if self.rest().first() == Some(&b'}') {
            self.at += 1;
            self.put(b"}");
            return Ok(());
        }
        loop {
            self.blanks();
            if self.rest().first() != Some(&b'"') {
                return Err(self.unexpected(if is_first { "string or \"}\"" } else { "string" }));
            }
            let key = self.string()?;
            self.blanks();
            if self.rest().first() != Some(&b':') {
                return Err(self.unexpected("\":\""));
            }
            self.at += 1;
            if !std::mem::take(&mut is_first) {
                self.put(b", ");
            }
            let member = self.out.len();
            if self.reading == Reading::Canonical {
                write_string(&key, &mut self.out);
                self.out.extend_from_slice(b": ");
            }
            self.value(depth + 1)?;
            if self.reading == Reading::Canonical {
                members.push((key, member..self.out.len()));
            }
            self.blanks();
            match self.rest().first() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    self.put(b"}");
                    order_members(&mut self.out, start, members);
                    return Ok(());
                }
                _ => return Err(self.unexpected("\",\" or \"}\"")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<()> {
        self.at += 1;
        self.put(b"[");
        self.blanks();
        if self.rest().first() == Some(&b']') {
            self.at += 1;
            self.put(b"]");
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            self.blanks();
            match self.rest().first() {
                Some(b',') => {
                    self.at += 1;
                    self.put(b", ");
                }
                Some(b']') => {
                    self.at += 1;
                    self.put(b"]");
                    return Ok(());
                }
                _ => return Err(self.unexpected("\",\" or \"]\"")),
            }
        }
    }

    fn number(&mut self) -> Result<()> {
        let token = self.token();
        if !is_number(token) {
            return Err(self.unexpected(""));
        }
        self.at += token.len();
        if self.reading == Reading::Canonical {
            if is_plain(token) {
                self.out.extend_from_slice(token.as_bytes());
            } else {
                Numeric::parse(token)?.write_text(&mut self.out);
            }
        }
        Ok(())
    }

    fn string(&mut self) -> Result<String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest
                .iter()
                .position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
                .ok_or_else(|| Parser::syntax(format!("Token \"{}\" is invalid.", &self.text[self.at - 1..])))?;
            if self.reading != Reading::Syntax {
                out.push_str(&self.text[self.at..self.at + plain]);
            }
            self.at += plain + 1;
            match rest[plain] {
                b'"' => return Ok(out),
                b'\\' => self.escape(&mut out)?,
                byte => {
                    return Err(Parser::syntax(format!("Character with value 0x{byte:02x} must be escaped.")));
                }
            }
        }
    }

    fn escape(&mut self, out: &mut String) -> Result<()> {
        let Some(&byte) = self.rest().first() else {
            return Err(Parser::syntax("The input string ended unexpectedly."));
        };
        let plain = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.unicode_escape(out);
            }
            _ => {
                let shown = self.text[self.at..].chars().next().unwrap_or(' ');
                return Err(Parser::syntax(format!("Escape sequence \"\\{shown}\" is invalid.")));
            }
        };
        out.push(plain);
        self.at += 1;
        Ok(())
    }

    fn hex4(&mut self) -> Result<u32> {
        let digits = self.text.get(self.at..self.at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        value.ok_or_else(|| Parser::syntax("\"\\u\" must be followed by four hexadecimal digits."))
    }

    fn unicode_escape(&mut self, out: &mut String) -> Result<()> {
        let first = self.hex4()?;
        if self.reading == Reading::Syntax {
            return Ok(());
        }
        let code = match first {
            0 => {
                return Err(Error::new("22P05", "unsupported Unicode escape sequence")
                    .with_detail("\\u0000 cannot be converted to text."));
            }
            0xd800..0xdc00 => {
                if !self.rest().starts_with(b"\\u") {
                    return Err(Parser::syntax("Unicode low surrogate must follow a high surrogate."));
                }
                self.at += 2;
                let second = self.hex4()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(Parser::syntax("Unicode low surrogate must follow a high surrogate."));
                }
                0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
            }
            0xdc00..0xe000 => return Err(Parser::syntax("Unicode low surrogate must follow a high surrogate.")),
            code => code,
        };
        out.push(char::from_u32(code).ok_or_else(|| Parser::syntax("Unicode escape value is invalid."))?);
        Ok(())
    }
}

fn is_token(token: &str) -> bool {
    matches!(token, "true" | "false" | "null" | "{" | "}" | "[" | "]" | "," | ":")
        || (token.len() > 1 && token.starts_with('"') && token.ends_with('"'))
        || is_number(token)
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
fn is_number_token(token: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let rest = token.strip_prefix(b"-").unwrap_or(token);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest[0] == b'0') {
        return false;
    }
    let mut rest = &rest[whole..];
    if let Some(fraction) = rest.strip_prefix(b".") {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = &fraction[count..];
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = exponent.strip_prefix(b"+").or(exponent.strip_prefix(b"-")).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}

/// Whether numeric prints a number as it stands: no exponent, no minus before a zero.
fn is_plain(number: &str) -> bool {
    let has_value = || number.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    number.len() <= PLAIN_NUMBER_BYTES_MAX
        && !number.bytes().any(|byte| matches!(byte, b'e' | b'E'))
        && (!number.starts_with('-') || has_value())
}

/// Puts the members of the object that begins at `start` and ends with `out` in order; of equal keys the last
/// stays. Members are given as they stand in `out`.
fn order_members(out: &mut Vec<u8>, start: usize, mut members: Vec<(String, Range<usize>)>) {
    if members.windows(2).all(|pair| compare_keys(&pair[0].0, &pair[1].0).is_lt()) {
        return;
    }
    // Stable: equal keys stay in the order in which they were written.
    members.sort_by(|left, right| compare_keys(&left.0, &right.0));
    let mut ordered = Vec::with_capacity(out.len() - start);
    for (at, (key, place)) in members.iter().enumerate() {
        if members.get(at + 1).is_some_and(|(next, _)| next == key) {
            continue;
        }
        if !ordered.is_empty() {
            ordered.extend_from_slice(b", ");
        }
        ordered.extend_from_slice(&out[place.clone()]);
    }
    out.truncate(start + 1);
    out.append(&mut ordered);
    out.push(b'}');
}
