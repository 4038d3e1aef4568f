//! `json` and `jsonb`: syntax (RFC 8259), and `jsonb`'s canonical text.
//!
//! A `jsonb` value rests as text: keys ordered by length, then bytes; of equal keys the last; numbers as
//! `numeric` prints them; one blank after colons and commas. Equal values are equal bytes, except for the
//! display scale of numbers, as in PostgreSQL.

use crate::error::{Error, Result};
use crate::numeric::Numeric;
use std::io::Write;

/// Nesting beyond this is refused (54001) before the stack is at risk.
const DEPTH_MAX: usize = 1_000;

#[derive(Clone, PartialEq, Debug)]
pub enum Json {
    Null,
    Bool(bool),
    Number(Numeric),
    String(String),
    Array(Vec<Json>),
    /// In `jsonb`'s order, without duplicates.
    Object(Vec<(String, Json)>),
}

/// Checks syntax only, as type `json` does.
pub fn validate(text: &str) -> Result<()> {
    let mut parser = Parser { text, at: 0, decode: false };
    parser.document().map(drop)
}

/// Reads a value as type `jsonb` does.
pub fn parse(text: &str) -> Result<Json> {
    Parser { text, at: 0, decode: true }.document()
}

/// `jsonb`'s text of JSON text.
pub fn canonical(text: &str) -> Result<String> {
    let mut out = Vec::with_capacity(text.len() + 8);
    parse(text)?.write(&mut out);
    String::from_utf8(out).map_err(|error| Error::internal(error.to_string()))
}

/// The order of keys in a `jsonb` object.
pub fn compare_keys(left: &str, right: &str) -> std::cmp::Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

impl Json {
    /// Appends `jsonb`'s text.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Json::Number(value) => value.write_text(out),
            Json::String(value) => write_string(value, out),
            Json::Array(values) => {
                out.push(b'[');
                for (i, value) in values.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    value.write(out);
                }
                out.push(b']');
            }
            Json::Object(members) => {
                out.push(b'{');
                for (i, (key, value)) in members.iter().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    write_string(key, out);
                    out.extend_from_slice(b": ");
                    value.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// An object of these members; of equal keys the last stays.
    pub fn object(members: Vec<(String, Json)>) -> Json {
        let mut members = members;
        // A stable sort keeps equal keys in order, so that the last of each run is the last written.
        members.sort_by(|left, right| compare_keys(&left.0, &right.0));
        members.reverse();
        members.dedup_by(|next, kept| next.0 == kept.0);
        members.reverse();
        Json::Object(members)
    }

    /// The member of an object.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => {
                members.binary_search_by(|(name, _)| compare_keys(name, key)).ok().map(|at| &members[at].1)
            }
            _ => None,
        }
    }
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
    /// Whether escapes and numbers must have a value, as in `jsonb`.
    decode: bool,
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Result<Json> {
        let value = self.value(0)?;
        self.blanks();
        if self.at < self.text.len() {
            return Err(self.unexpected("end of input"));
        }
        Ok(value)
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

    fn value(&mut self, depth: usize) -> Result<Json> {
        if depth > DEPTH_MAX {
            return Err(Error::new("54001", "stack depth limit exceeded")
                .with_detail(format!("JSON may be nested {DEPTH_MAX} levels deep.")));
        }
        self.blanks();
        match self.rest().first() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(byte) if byte.is_ascii_alphabetic() => {
                let token = self.token();
                let value = match token {
                    "true" => Json::Bool(true),
                    "false" => Json::Bool(false),
                    "null" => Json::Null,
                    _ => return Err(self.unexpected("")),
                };
                self.at += token.len();
                Ok(value)
            }
            _ => Err(self.unexpected("JSON value")),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json> {
        self.at += 1;
        let mut members = Vec::new();
        self.blanks();
        if self.rest().first() == Some(&b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.blanks();
            if self.rest().first() != Some(&b'"') {
                return Err(self.unexpected(if members.is_empty() { "string or \"}\"" } else { "string" }));
            }
            let key = self.string()?;
            self.blanks();
            if self.rest().first() != Some(&b':') {
                return Err(self.unexpected("\":\""));
            }
            self.at += 1;
            let value = self.value(depth + 1)?;
            members.push((key, value));
            self.blanks();
            match self.rest().first() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::object(members));
                }
                _ => return Err(self.unexpected("\",\" or \"}\"")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Json> {
        self.at += 1;
        let mut values = Vec::new();
        self.blanks();
        if self.rest().first() == Some(&b']') {
            self.at += 1;
            return Ok(Json::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            self.blanks();
            match self.rest().first() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(values));
                }
                _ => return Err(self.unexpected("\",\" or \"]\"")),
            }
        }
    }

    fn number(&mut self) -> Result<Json> {
        let token = self.token();
        if !is_number(token.as_bytes()) {
            return Err(self.unexpected(""));
        }
        self.at += token.len();
        Ok(Json::Number(if self.decode { Numeric::parse(token)? } else { Numeric::ZERO }))
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
            if self.decode {
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
        if !self.decode {
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
        || is_number(token.as_bytes())
}

/// `-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?`
fn is_number(token: &[u8]) -> bool {
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
