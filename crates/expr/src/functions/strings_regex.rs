//! `regexp_…` functions and `substring(text from pattern)` (manual 9.7.3).

use super::Kernel;
use super::arg::*;
use crate::array_value;
use crate::error::{Error, Result};
use crate::pattern::are::{self, Flags};
use basalt_types::{DataType, Datum};
use regex::{Captures, Regex};

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    replacing(name, args).or_else(|| matching(name, args)).or_else(|| splitting(name, args))
}

/// The first group if there is one, otherwise the whole match.
fn first_group(captures: &Captures) -> Option<String> {
    let found = if captures.len() > 1 { captures.get(1) } else { captures.get(0) };
    found.map(|found| found.as_str().to_string())
}

/// `\1`…`\9` and `\&` in a replacement.
fn expand(captures: &Captures, replacement: &str, out: &mut String) {
    let mut chars = replacement.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('&') => out.push_str(&captures[0]),
            Some(digit @ '1'..='9') => {
                let group = digit as usize - '0' as usize;
                out.push_str(captures.get(group).map_or("", |found| found.as_str()));
            }
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
}

/// Replaces the `nth` match from `start` on (all where `nth` is 0).
fn replace(regex: &Regex, text: &str, replacement: &str, start: usize, nth: usize) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for (index, captures) in regex.captures_iter(text).filter(|found| match_start(found) >= start).enumerate() {
        if nth != 0 && index + 1 != nth {
            continue;
        }
        let whole = captures.get(0).map_or(0..0, |found| found.range());
        out.push_str(&text[copied..whole.start]);
        expand(&captures, replacement, &mut out);
        copied = whole.end;
        if nth != 0 {
            break;
        }
    }
    out.push_str(&text[copied..]);
    out
}

fn match_start(captures: &Captures) -> usize {
    captures.get(0).map_or(0, |found| found.start())
}

/// Byte position of a 1-based character position.
fn start_byte(text: &str, start: i32) -> Result<usize> {
    if start <= 0 {
        return Err(Error::invalid_parameter(format!("invalid value for parameter \"start\": {start}")));
    }
    Ok(text.char_indices().nth(start as usize - 1).map_or(text.len() + 1, |(at, _)| at))
}

fn replacing(name: &str, args: &str) -> Option<Kernel> {
    if name != "regexp_replace" {
        return None;
    }
    Some(match args {
        "text,text,text" => kernel!(|text: Txt, pattern: Txt, new: Txt| -> Txt {
            are::cached(pattern, Flags::default(), |regex| replace(regex, text, new, 0, 1))
        }),
        "text,text,text,text" => kernel!(|text: Txt, pattern: Txt, new: Txt, options: Txt| -> Txt {
            let flags = Flags::parse(options)?;
            are::cached(pattern, flags, |regex| replace(regex, text, new, 0, usize::from(!flags.global)))
        }),
        "text,text,text,int4" => kernel!(|text: Txt, pattern: Txt, new: Txt, start: I4| -> Txt {
            let start = start_byte(text, start)?;
            are::cached(pattern, Flags::default(), |regex| replace(regex, text, new, start, 1))
        }),
        "text,text,text,int4,int4" => kernel!(|text: Txt, pattern: Txt, new: Txt, start: I4, nth: I4| -> Txt {
            let start = start_byte(text, start)?;
            are::cached(pattern, Flags::default(), |regex| replace(regex, text, new, start, nth.max(0) as usize))
        }),
        _ => return None,
    })
}

fn only_text(groups: &Captures) -> Result<Datum> {
    let skip = usize::from(groups.len() > 1);
    let values: Vec<Datum> =
        groups.iter().skip(skip).map(|group| group.map_or(Datum::Null, |group| Datum::text(group.as_str()))).collect();
    array_value::encode(&DataType::Text, &values)
}

fn first_match(text: &str, pattern: &str, options: &str) -> Result<Option<Datum>> {
    let flags = Flags::parse(options)?;
    if flags.global {
        return Err(Error::invalid_parameter("regexp_match() does not support the \"global\" option")
            .with_hint("Use the regexp_matches function instead."));
    }
    are::cached(pattern, flags, |regex| regex.captures(text).map(|found| only_text(&found)).transpose())?
}

/// The rows of `regexp_matches`.
pub(super) fn all_matches(text: &str, pattern: &str, options: &str) -> Result<Vec<Datum>> {
    let flags = Flags::parse(options)?;
    let limit = if flags.global { usize::MAX } else { 1 };
    are::cached(pattern, flags, |regex| regex.captures_iter(text).take(limit).map(|found| only_text(&found)).collect())?
}

fn matching(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("substring", "text,text") => kernel!(|text: Txt, pattern: Txt| -> Opt<Txt> {
            are::cached(pattern, Flags::default(), |regex| regex.captures(text).and_then(|found| first_group(&found)))
        }),
        ("regexp_like", "text,text") => kernel!(|text: Txt, pattern: Txt| -> Bit {
            are::cached(pattern, Flags::default(), |regex| regex.is_match(text))
        }),
        ("regexp_like", "text,text,text") => kernel!(|text: Txt, pattern: Txt, options: Txt| -> Bit {
            are::cached(pattern, Flags::parse(options)?, |regex| regex.is_match(text))
        }),
        ("regexp_count", "text,text") => kernel!(|text: Txt, pattern: Txt| -> I4 {
            are::cached(pattern, Flags::default(), |regex| regex.find_iter(text).count() as i32)
        }),
        ("regexp_substr", "text,text") => kernel!(|text: Txt, pattern: Txt| -> Opt<Txt> {
            are::cached(pattern, Flags::default(), |regex| regex.find(text).map(|found| found.as_str().to_string()))
        }),
        ("regexp_instr", "text,text") => kernel!(|text: Txt, pattern: Txt| -> I4 {
            are::cached(pattern, Flags::default(), |regex| {
                regex.find(text).map_or(0, |found| text[..found.start()].chars().count() as i32 + 1)
            })
        }),
        ("regexp_match", "text,text") => {
            kernel!(|text: Txt, pattern: Txt| -> Opt<Val> { first_match(text, pattern, "") })
        }
        ("regexp_match", "text,text,text") => {
            kernel!(|text: Txt, pattern: Txt, options: Txt| -> Opt<Val> { first_match(text, pattern, options) })
        }
        _ => return None,
    })
}

/// The pieces between matches; an empty match splits between characters.
pub(super) fn split(text: &str, pattern: &str, options: &str) -> Result<Vec<Datum>> {
    are::cached(pattern, Flags::parse(options)?, |regex| {
        let mut pieces = Vec::new();
        let mut from = 0;
        for found in regex.find_iter(text) {
            if found.is_empty() && (found.start() == from || found.start() == text.len()) {
                continue;
            }
            pieces.push(Datum::text(&text[from..found.start()]));
            from = found.end();
        }
        pieces.push(Datum::text(&text[from..]));
        pieces
    })
}

fn splitting(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("regexp_split_to_array", "text,text") => kernel!(|text: Txt, pattern: Txt| -> Val {
            array_value::encode(&DataType::Text, &split(text, pattern, "")?)
        }),
        ("regexp_split_to_array", "text,text,text") => kernel!(|text: Txt, pattern: Txt, options: Txt| -> Val {
            array_value::encode(&DataType::Text, &split(text, pattern, options)?)
        }),
        _ => return None,
    })
}
