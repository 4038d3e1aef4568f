//! `to_char`, `to_number`, `to_date` and `to_timestamp` (manual 9.8): templates of patterns and plain text.
//!
//! A template is cut into nodes once per call; [`numbers`] and [`number_input`] write and read numbers by
//! them, [`dates`] and [`date_input`] dates and times.

mod date_input;
mod dates;
mod number_input;
mod numbers;

use super::Kernel;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    match name {
        "to_char" => numbers::bind(args).or_else(|| dates::bind(args)),
        "to_number" => number_input::bind(args),
        "to_date" | "to_timestamp" => date_input::bind(name, args),
        _ => None,
    }
}

/// A piece of a template.
#[derive(Clone, PartialEq, Debug)]
enum Node {
    Pattern {
        name: &'static str,
        modifiers: Modifiers,
    },
    /// A blank that was not quoted.
    Space(char),
    /// Another printable ASCII character that is no letter or digit, not quoted (dates alone tell it apart).
    Separator(char),
    Char(char),
}

/// What stands before and behind a date pattern.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
struct Modifiers {
    /// `FM`: no padding.
    fill: bool,
    /// `TM`: the locale's names, which are not padded.
    translated: bool,
    /// `TH` or `th`: an ordinal number; true for capitals.
    ordinal: Option<bool>,
}

/// Cuts a template. `patterns` has longer names before those that they begin with.
fn nodes(template: &str, patterns: &[&'static str], is_date: bool) -> Vec<Node> {
    let mut nodes = Vec::with_capacity(template.len());
    let mut rest = template;
    while !rest.is_empty() {
        let mut modifiers = Modifiers::default();
        if is_date {
            for prefix in ["FM", "fm", "TM", "tm"] {
                if let Some(after) = rest.strip_prefix(prefix) {
                    modifiers.fill = prefix.eq_ignore_ascii_case("fm");
                    modifiers.translated = !modifiers.fill;
                    rest = after;
                    break;
                }
            }
        }
        if let Some(name) = patterns.iter().find(|name| rest.starts_with(**name)) {
            rest = &rest[name.len()..];
            if is_date {
                rest = suffix(rest, &mut modifiers);
            }
            nodes.push(Node::Pattern { name, modifiers });
            continue;
        }
        let Some(char) = rest.chars().next() else { break };
        rest = &rest[char.len_utf8()..];
        if char == '"' {
            rest = quoted(rest, &mut nodes);
            continue;
        }
        // Outside of quotes a backslash means something before a quote only.
        let char = match (char, rest.strip_prefix('"')) {
            ('\\', Some(after)) => {
                rest = after;
                '"'
            }
            _ => char,
        };
        nodes.push(if is_date && is_separator(char) {
            Node::Separator(char)
        } else if char.is_ascii_whitespace() || char == '\x0b' {
            Node::Space(char)
        } else {
            Node::Char(char)
        });
    }
    nodes
}

fn suffix<'a>(rest: &'a str, modifiers: &mut Modifiers) -> &'a str {
    for (text, ordinal) in [("TH", Some(true)), ("th", Some(false)), ("SP", None)] {
        if let Some(after) = rest.strip_prefix(text) {
            modifiers.ordinal = ordinal;
            return after;
        }
    }
    rest
}

/// Text in quotes, of which the first is already taken.
fn quoted<'a>(text: &'a str, nodes: &mut Vec<Node>) -> &'a str {
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' => break,
            '\\' => nodes.push(Node::Char(chars.next().unwrap_or('\\'))),
            char => nodes.push(Node::Char(char)),
        }
    }
    chars.as_str()
}

fn is_separator(char: char) -> bool {
    char.is_ascii_graphic() && !char.is_ascii_alphanumeric()
}

/// `st`, `nd`, `rd`, `th` for a number that is printed so.
fn ordinal_suffix(digits: &str, capital: bool) -> &'static str {
    let bytes = digits.as_bytes();
    let teen = bytes.len() > 1 && bytes[bytes.len() - 2] == b'1';
    match (bytes.last(), teen, capital) {
        (Some(b'1'), false, true) => "ST",
        (Some(b'1'), false, false) => "st",
        (Some(b'2'), false, true) => "ND",
        (Some(b'2'), false, false) => "nd",
        (Some(b'3'), false, true) => "RD",
        (Some(b'3'), false, false) => "rd",
        (_, _, true) => "TH",
        (_, _, false) => "th",
    }
}
