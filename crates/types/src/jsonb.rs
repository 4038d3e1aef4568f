//! JSON text as a value rests: walking it without building a tree, and `jsonb`'s order.
//!
//! A `jsonb` value rests as canonical text (`docs/format/values.md`): keys by length, then bytes; no
//! duplicates; numbers as numeric prints them; one blank after colons and commas. A part of a canonical text
//! is canonical text itself, so reaching into a document is finding a slice of it. The walkers step over what
//! is not asked for, many bytes at a time, in time linear in what they pass; they read any valid JSON, so that
//! type `json` is walked by them too. On bytes that are no JSON they end early, and never panic.

mod key;
mod skip;
mod token;

pub use key::{compare, decode_key, encode_key};
pub use token::{Token, Tokens, tokens};

use skip::{after_blanks, after_string, after_value, after_word};
use std::borrow::Cow;
use std::cmp::Ordering;

/// What a value is, in the order of PostgreSQL's `jsonb` comparison.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    Null,
    String,
    Number,
    Bool,
    Array,
    Object,
}

impl Kind {
    /// As `jsonb_typeof` names it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Null => "null",
            Kind::String => "string",
            Kind::Number => "number",
            Kind::Bool => "boolean",
            Kind::Array => "array",
            Kind::Object => "object",
        }
    }

    pub fn is_scalar(self) -> bool {
        self < Kind::Array
    }
}

/// What the text's value is, seen from its first byte.
pub fn kind(text: &str) -> Kind {
    match text.as_bytes().get(after_blanks(text.as_bytes(), 0)) {
        Some(b'{') => Kind::Object,
        Some(b'[') => Kind::Array,
        Some(b'"') => Kind::String,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'-' | b'0'..=b'9') => Kind::Number,
        _ => Kind::Null,
    }
}

/// The elements of an array as they are written; nothing of any other value.
#[derive(Clone)]
pub struct Elements<'a> {
    text: &'a str,
    /// Before the next element, or the closing bracket.
    at: usize,
}

pub fn elements(text: &str) -> Elements<'_> {
    let start = after_blanks(text.as_bytes(), 0);
    let at = if text.as_bytes().get(start) == Some(&b'[') { start + 1 } else { text.len() };
    Elements { text, at }
}

impl<'a> Iterator for Elements<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let bytes = self.text.as_bytes();
        let start = after_blanks(bytes, self.at);
        if matches!(bytes.get(start), None | Some(b']')) {
            return None;
        }
        let end = after_value(bytes, start);
        if end == start {
            return None;
        }
        let next = after_blanks(bytes, end);
        self.at = next + usize::from(bytes.get(next) == Some(&b','));
        self.text.get(start..end)
    }
}

/// The members of an object, each as its quoted key and its value; nothing of any other value.
#[derive(Clone)]
pub struct Members<'a> {
    text: &'a str,
    at: usize,
}

pub fn members(text: &str) -> Members<'_> {
    let start = after_blanks(text.as_bytes(), 0);
    let at = if text.as_bytes().get(start) == Some(&b'{') { start + 1 } else { text.len() };
    Members { text, at }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, &'a str);

    fn next(&mut self) -> Option<(&'a str, &'a str)> {
        let bytes = self.text.as_bytes();
        let key = after_blanks(bytes, self.at);
        if bytes.get(key) != Some(&b'"') {
            return None;
        }
        let key_end = after_string(bytes, key);
        let colon = after_blanks(bytes, key_end);
        let start = after_blanks(bytes, colon + 1);
        let end = after_value(bytes, start);
        let next = after_blanks(bytes, end);
        self.at = next + usize::from(bytes.get(next) == Some(&b','));
        Some((self.text.get(key..key_end)?, self.text.get(start..end)?))
    }
}

/// The member of a `jsonb` object; `None` for other values. Stops where the key would stand.
pub fn member<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let bytes = text.as_bytes();
    let start = after_blanks(bytes, 0);
    if bytes.get(start) != Some(&b'{') {
        return None;
    }
    let mut at = after_blanks(bytes, start + 1);
    while bytes.get(at) == Some(&b'"') {
        let end = after_string(bytes, at);
        // Its quotes are two of the bytes, and escapes make it shorter.
        let order = match end - at < key.len() + 2 {
            true => Ordering::Less,
            false => compare_keys(&unquote(text.get(at..end)?), key),
        };
        let value = after_blanks(bytes, after_blanks(bytes, end) + 1);
        match order {
            Ordering::Less => {}
            Ordering::Equal => return text.get(value..after_value(bytes, value)),
            Ordering::Greater => return None,
        }
        let next = after_blanks(bytes, after_value(bytes, value));
        at = after_blanks(bytes, next + usize::from(bytes.get(next) == Some(&b',')));
    }
    None
}

/// The element of an array; a negative index counts from the end.
pub fn element(text: &str, index: i64) -> Option<&str> {
    if index >= 0 {
        return elements(text).nth(usize::try_from(index).ok()?);
    }
    let count = i64::try_from(elements(text).count()).ok()?;
    elements(text).nth(usize::try_from(count.checked_add(index)?).ok()?)
}

/// The order of keys in a `jsonb` object.
pub fn compare_keys(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

/// What a quoted string stands for. Escapes without a meaning of their own stand for U+FFFD: whoever minds
/// has checked the text before.
pub fn unquote(quoted: &str) -> Cow<'_, str> {
    let inner = quoted.strip_prefix('"').unwrap_or(quoted);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    if !inner.as_bytes().contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(escape) = rest.chars().next() else { break };
        rest = &rest[escape.len_utf8()..];
        out.push(match escape {
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => unicode_escape(&mut rest),
            other => other,
        });
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Takes the digits behind `\u`, and a second escape where the first is half of a pair.
fn unicode_escape(rest: &mut &str) -> char {
    let hex4 = |text: &str| text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
    let Some(first) = hex4(rest) else { return char::REPLACEMENT_CHARACTER };
    *rest = &rest[4..];
    let second = rest.strip_prefix("\\u").and_then(hex4).filter(|second| (0xdc00..0xe000).contains(second));
    let code = match (first, second) {
        (0xd800..0xdc00, Some(second)) => {
            *rest = &rest[6..];
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        }
        _ => first,
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests;
