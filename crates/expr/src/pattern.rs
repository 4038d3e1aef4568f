//! `LIKE`, `ILIKE` and regular expressions.
//!
//! A `LIKE` pattern is compiled to the cheapest matcher for its shape (equality, prefix, suffix,
//! substring, pieces in order); PostgreSQL's advanced regular expressions are rewritten for the `regex`
//! crate in [`are`], or searched by [`track`] where they have back references or look-around. Compiled patterns are kept per thread, since most queries use one or two.

pub mod are;
mod like;
mod preference;
pub(crate) mod span;
mod track;

pub(crate) use like::ends_in_escape;
pub use like::{LikePattern, Rest, Sought, beginning_of, next_beginning};

use crate::error::{Error, Result};
use crate::eval::bools;
use crate::eval::vector::Vector;
use crate::functions::arg::*;
use crate::functions::strings;
use crate::functions::{CallInfo, Kernel};
use basalt_types::Datum;

macro_rules! like_kernel {
    ($insensitive:literal, $negated:literal) => {{
        fn scalar(args: &[Datum], info: &CallInfo) -> Result<Datum> {
            let text = Txt::of(&args[0], &info.arg_types[0])?;
            let pattern = Txt::of(&args[1], &info.arg_types[1])?;
            let matched = like::cached(pattern, Some('\\'), $insensitive, |pattern| pattern.matches(text))?;
            Ok(Datum::Bool(matched != $negated))
        }
        fn vector(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
            let text = Operand::<Txt>::new(&args[0], &info.arg_types[0])?;
            let nulls = union_nulls(args);
            if let (Operand::Column(texts), Vector::Const(pattern)) = (&text, &args[1]) {
                let pattern = LikePattern::new(Txt::of(pattern, &info.arg_types[1])?, Some('\\'), $insensitive);
                if !pattern.breaks() {
                    let found = pattern.matching(texts);
                    return Ok(bools(if $negated { !&found } else { found }, nulls));
                }
            }
            let patterns = Operand::<Txt>::new(&args[1], &info.arg_types[1])?;
            let mut out = arrow_buffer::BooleanBufferBuilder::new(rows);
            for row in 0..rows {
                let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let matched = !null && {
                    let text = text.at(row)?;
                    like::cached(patterns.at(row)?, Some('\\'), $insensitive, |pattern| pattern.matches(text))?
                };
                out.append(matched != $negated);
            }
            Ok(bools(out.finish(), nulls))
        }
        Kernel::Native { scalar, vector: Some(vector) }
    }};
}

macro_rules! regex_kernel {
    ($insensitive:literal, $negated:literal) => {
        kernel!(|text: Txt, pattern: Txt| -> Bit {
            Ok(are::cached(pattern, are::Flags { insensitive: $insensitive, ..Default::default() }, |regex| {
                regex.is_match(text)
            })? != $negated)
        })
    };
}

pub(crate) fn bind(function: &str) -> Option<Kernel> {
    Some(match function {
        "bytealike" => kernel!(|text: Byt, pattern: Byt| -> Bit { strings::bytes::like(text, pattern) }),
        "byteanlike" => kernel!(|text: Byt, pattern: Byt| -> Bit { Ok(!strings::bytes::like(text, pattern)?) }),
        "textlike" | "namelike" | "bpcharlike" => like_kernel!(false, false),
        "textnlike" | "namenlike" | "bpcharnlike" => like_kernel!(false, true),
        "texticlike" | "nameiclike" | "bpchariclike" => like_kernel!(true, false),
        "texticnlike" | "nameicnlike" | "bpcharicnlike" => like_kernel!(true, true),
        "textregexeq" | "nameregexeq" | "bpcharregexeq" => regex_kernel!(false, false),
        "textregexne" | "nameregexne" | "bpcharregexne" => regex_kernel!(false, true),
        "texticregexeq" | "nameicregexeq" | "bpcharicregexeq" => regex_kernel!(true, false),
        "texticregexne" | "nameicregexne" | "bpcharicregexne" => regex_kernel!(true, true),
        _ => return None,
    })
}

/// A `LIKE` pattern with another escape character, rewritten for the backslash (`LIKE … ESCAPE …`).
pub(crate) fn with_backslash_escape(pattern: &str, escape: &str) -> Result<String> {
    let mut escapes = escape.chars();
    let (escape, None) = (escapes.next(), escapes.next()) else {
        return Err(
            Error::new("22025", "invalid escape string").with_hint("Escape string must be empty or one character.")
        );
    };
    let mut out = String::with_capacity(pattern.len());
    let mut escaped = false;
    for char in pattern.chars() {
        match char {
            char if !escaped && Some(char) == escape => {
                out.push('\\');
                escaped = true;
                continue;
            }
            '\\' if !escaped => out.push_str("\\\\"),
            char => out.push(char),
        }
        escaped = false;
    }
    Ok(out)
}

/// What an escaped quote stands for: the first ends what comes before the part that `substring` takes, which
/// matches as little as it can, the second ends that part.
fn separator(seen: &mut usize) -> Result<&'static str> {
    *seen += 1;
    match *seen {
        1 => Ok("){1,1}?("),
        2 => Ok("){1,1}(?:"),
        _ => Err(Error::new(
            "2200C",
            "SQL regular expression may not contain more than two escape-double-quote separators",
        )),
    }
}

/// A `SIMILAR TO` pattern as a regular expression that matches whole strings.
pub(crate) fn similar_to_regex(pattern: &str, escape: Option<char>) -> Result<String> {
    let mut out = String::from("^(?:");
    let mut chars = pattern.chars();
    let (mut in_bracket, mut separators) = (false, 0);
    while let Some(char) = chars.next() {
        match char {
            char if Some(char) == escape => {
                // At the end it escapes nothing, and says nothing.
                let Some(next) = chars.next() else { break };
                if next == '"' && !in_bracket {
                    out.push_str(separator(&mut separators)?);
                    continue;
                }
                // Letters too: they may be classes, as in `\d`.
                out.push('\\');
                out.push(next);
            }
            ']' if in_bracket => {
                in_bracket = false;
                out.push(']');
            }
            '\\' if in_bracket => out.push_str("\\\\"),
            char if in_bracket => out.push(char),
            '[' => {
                in_bracket = true;
                out.push('[');
            }
            '%' => out.push_str(".*"),
            '_' => out.push('.'),
            '(' => out.push_str("(?:"),
            '.' | '^' | '$' | '\\' => {
                out.push('\\');
                out.push(char);
            }
            char => out.push(char),
        }
    }
    out.push_str(")$");
    Ok(out)
}

#[cfg(test)]
mod tests;
