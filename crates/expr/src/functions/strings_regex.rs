//! `regexp_…` functions and `substring(text from pattern)` (manual 9.7.3).

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::array_value;
use crate::error::{Error, Result};
use crate::eval::room::check_longer;
use crate::pattern::are::{self, Flags};
use crate::pattern::span::{Groups, Pattern};
use basalt_types::{DataType, Datum};
use std::borrow::Cow;
use std::ops::Range;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    replacing(name, args).or_else(|| matching(name, args)).or_else(|| splitting(name, args)).or_else(|| places(name))
}

fn whole(groups: &Groups) -> Range<usize> {
    groups.first().cloned().flatten().unwrap_or(0..0)
}

/// All matches from a byte position on, in order; they do not overlap.
fn matches<'a>(pattern: &'a Pattern, text: &'a str, from: usize) -> impl Iterator<Item = Groups> + use<'a> {
    each(text, from, |at| pattern.find_at(text, at), whole)
}

/// The same without groups.
fn spans<'a>(pattern: &'a Pattern, text: &'a str, from: usize) -> impl Iterator<Item = Range<usize>> + use<'a> {
    each(text, from, |at| pattern.span_at(text, at), Range::clone)
}

fn each<'a, M>(
    text: &'a str,
    from: usize,
    find: impl Fn(usize) -> Option<M> + 'a,
    range: fn(&M) -> Range<usize>,
) -> impl Iterator<Item = M> {
    let mut at = from;
    std::iter::from_fn(move || {
        let found = find(at)?;
        let range = range(&found);
        // After an empty match the next one starts a character later.
        let next = text[range.end..].chars().next().map_or(1, char::len_utf8);
        at = if range.is_empty() { range.end + next } else { range.end };
        Some(found)
    })
}

/// Whether a replacement names a group. A backslash and what stands behind it belong together.
fn names_groups(replacement: &str) -> bool {
    let mut bytes = replacement.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && bytes.next().is_some_and(|next| matches!(next, b'1'..=b'9')) {
            return true;
        }
    }
    false
}

/// `\1`…`\9` and `\&` in a replacement. 54000 if the text becomes too long.
fn expand(text: &str, groups: &[Option<Range<usize>>], replacement: &str, out: &mut String) -> Result<()> {
    check_longer(out.len(), replacement.len())?;
    if !replacement.contains('\\') {
        out.push_str(replacement);
        return Ok(());
    }
    let put = |part: &str, out: &mut String| -> Result<()> {
        check_longer(out.len(), part.len())?;
        out.push_str(part);
        Ok(())
    };
    let group = |index: usize| groups.get(index).cloned().flatten().map_or("", |range| &text[range]);
    let mut chars = replacement.chars();
    while let Some(char) = chars.next() {
        if char != '\\' {
            out.push(char);
            continue;
        }
        match chars.next() {
            Some('&') => put(group(0), out)?,
            Some(digit @ '1'..='9') => put(group(digit as usize - '0' as usize), out)?,
            Some('\\') | None => out.push('\\'),
            Some(other) => {
                out.push('\\');
                out.push(other);
            }
        }
    }
    Ok(())
}

/// Replaces the `nth` match from `start` on (all where `nth` is 0).
/// 54000 if the text becomes too long.
fn replace(pattern: &Pattern, text: &str, replacement: &str, start: usize, nth: usize, out: &mut String) -> Result<()> {
    let (skipped, taken) = if nth == 0 { (0, usize::MAX) } else { (nth - 1, 1) };
    let mut copied = 0;
    let mut put = |groups: &[Option<Range<usize>>]| -> Result<()> {
        let range = groups.first().cloned().flatten().unwrap_or(0..0);
        out.push_str(&text[copied..range.start]);
        expand(text, groups, replacement, out)?;
        copied = range.end;
        Ok(())
    };
    match pattern.has_groups() && names_groups(replacement) {
        true => matches(pattern, text, start).skip(skipped).take(taken).try_for_each(|groups| put(&groups))?,
        false => spans(pattern, text, start).skip(skipped).take(taken).try_for_each(|range| put(&[Some(range)]))?,
    }
    out.push_str(&text[copied..]);
    Ok(())
}

fn invalid_value(name: &str, value: i32) -> Error {
    Error::invalid_parameter(format!("invalid value for parameter \"{name}\": {value}"))
}

/// Byte position of a 1-based character position; beyond the end it is beyond the text.
fn start_byte(text: &str, start: i32) -> Result<usize> {
    if start <= 0 {
        return Err(invalid_value("start", start));
    }
    let at = text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(start as usize - 1);
    Ok(at.unwrap_or(text.len() + 1))
}

/// Which match is wanted, from 1.
fn nth_match(nth: i32) -> Result<usize> {
    if nth <= 0 { Err(invalid_value("n", nth)) } else { Ok(nth as usize) }
}

/// Options that a function takes, which `global` is none of.
fn options(text: &str, function: &str) -> Result<Flags> {
    let flags = Flags::parse(text)?;
    if flags.global {
        return Err(Error::invalid_parameter(format!("{function}() does not support the \"global\" option")));
    }
    Ok(flags)
}

fn replacing(name: &str, args: &str) -> Option<Kernel> {
    if name != "regexp_replace" {
        return None;
    }
    Some(match args {
        "text,text,text" => written!(|text: Txt, pattern: Txt, new: Txt; out| {
            are::cached(pattern, Flags::default(), |regex| replace(regex, text, new, 0, 1, out))?
        }),
        "text,text,text,text" => {
            written!(|text: Txt, pattern: Txt, new: Txt, options: Txt; out| {
                if options.starts_with(|char: char| char.is_ascii_digit()) {
                    return Err(Error::invalid_parameter(format!("invalid regular expression option: \"{}\"", &options[..1]))
                    .with_hint(
                        "If you meant to use regexp_replace() with a start parameter, cast the fourth argument to integer \
                         explicitly.",
                    ));
                }
                let flags = Flags::parse(options)?;
                are::cached(pattern, flags, |regex| replace(regex, text, new, 0, usize::from(!flags.global), out))?
            })
        }
        "text,text,text,int4" => written!(|text: Txt, pattern: Txt, new: Txt, start: I4; out| {
            let start = start_byte(text, start)?;
            are::cached(pattern, Flags::default(), |regex| replace(regex, text, new, start, 1, out))?
        }),
        "text,text,text,int4,int4" => written!(|text: Txt, pattern: Txt, new: Txt, start: I4, nth: I4; out| {
            replace_from(text, pattern, new, (start, nth), "", out)
        }),
        "text,text,text,int4,int4,text" => {
            written!(|text: Txt, pattern: Txt, new: Txt, start: I4, nth: I4, flags: Txt; out| {
                replace_from(text, pattern, new, (start, nth), flags, out)
            })
        }
        _ => return None,
    })
}

fn replace_from(
    text: &str,
    pattern: &str,
    new: &str,
    (start, nth): (i32, i32),
    flags: &str,
    out: &mut String,
) -> Result<()> {
    let start = start_byte(text, start)?;
    if nth < 0 {
        return Err(invalid_value("n", nth));
    }
    are::cached(pattern, Flags::parse(flags)?, |regex| replace(regex, text, new, start, nth as usize, out))?
}

fn group_texts(text: &str, groups: &Groups) -> Result<Datum> {
    let skip = usize::from(groups.len() > 1);
    let made = |group: &Option<Range<usize>>| group.clone().map_or(Datum::Null, |range| Datum::text(&text[range]));
    let values: Vec<Datum> = groups.iter().skip(skip).map(made).collect();
    array_value::encode(&DataType::Text, &values)
}

fn first_match(text: &str, pattern: &str, flags: &str) -> Result<Option<Datum>> {
    let flags = options(flags, "regexp_match").map_err(|error| match error.message.contains("global") {
        true => error.with_hint("Use the regexp_matches function instead."),
        false => error,
    })?;
    are::cached(pattern, flags, |regex| regex.find_at(text, 0).map(|found| group_texts(text, &found)).transpose())?
}

/// The rows of `regexp_matches`.
pub(super) fn all_matches(text: &str, pattern: &str, options: &str) -> Result<Vec<Datum>> {
    let flags = Flags::parse(options)?;
    let limit = if flags.global { usize::MAX } else { 1 };
    are::cached(pattern, flags, |regex| {
        matches(regex, text, 0).take(limit).map(|found| group_texts(text, &found)).collect()
    })?
}

fn matching(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("substring", "text,text") => {
            kernel!(|text: Txt, pattern: Txt| -> Opt<Part> { substring(text, pattern) })
        }
        ("substring", "text,text,text") => kernel!(|text: Txt, pattern: Txt, escape: Txt| -> Opt<Part> {
            substring(text, &similar(pattern, Some(escape))?)
        }),
        ("similar_to_escape", "text,text") => {
            kernel!(|pattern: Txt, escape: Txt| -> Txt { similar(pattern, Some(escape)) })
        }
        ("similar_escape", "text,text") => scalar!(|args, info| match (&args[0], &args[1]) {
            (Datum::Null, _) => Ok(Datum::Null),
            (pattern, Datum::Null) =>
                similar(Txt::of(pattern, &info.arg_types[0])?, None).map(|text| Datum::text(&text)),
            (pattern, escape) => {
                let escape = Txt::of(escape, &info.arg_types[1])?;
                similar(Txt::of(pattern, &info.arg_types[0])?, Some(escape)).map(|text| Datum::text(&text))
            }
        }),
        ("regexp_like", "text,text") => kernel!(|text: Txt, pattern: Txt| -> Bit {
            are::cached(pattern, Flags::default(), |regex| regex.is_match(text))
        }),
        ("regexp_like", "text,text,text") => kernel!(|text: Txt, pattern: Txt, flags: Txt| -> Bit {
            are::cached(pattern, options(flags, "regexp_like")?, |regex| regex.is_match(text))
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

/// The first group if there is one, otherwise the whole match.
fn substring<'t>(text: &'t str, pattern: &str) -> Result<Option<Cow<'t, str>>> {
    let found = are::cached(pattern, Flags::default(), |regex| match regex.has_groups() {
        true => regex.find_at(text, 0).and_then(|groups| groups.get(1).or(groups.first()).cloned().flatten()),
        false => regex.span_at(text, 0),
    })?;
    Ok(found.map(|range| Cow::Borrowed(&text[range])))
}

/// A `SIMILAR TO` pattern with an escape character, or with none where it is empty.
fn similar(pattern: &str, escape: Option<&str>) -> Result<String> {
    let mut chars = escape.unwrap_or("\\").chars();
    match (chars.next(), chars.next()) {
        (escape, None) => crate::pattern::similar_to_regex(pattern, escape),
        _ => {
            Err(Error::new("22025", "invalid escape string").with_hint("Escape string must be empty or one character."))
        }
    }
}

/// An integer argument, or what it is where it is left out.
fn integer(args: &[Datum], at: usize, otherwise: i32) -> i32 {
    match args.get(at) {
        Some(Datum::I32(value)) => *value,
        _ => otherwise,
    }
}

fn flags_at(args: &[Datum], at: usize, info: &CallInfo) -> Result<Flags> {
    match args.get(at) {
        Some(value) => options(Txt::of(value, &info.arg_types[at])?, &info.function.name),
        None => Ok(Flags::default()),
    }
}

/// Group 0 is the whole match.
fn group_wanted(args: &[Datum], at: usize) -> Result<usize> {
    let group = integer(args, at, 0);
    usize::try_from(group).map_err(|_| invalid_value("subexpr", group))
}

/// `regexp_count`, `regexp_instr`, `regexp_substr`, with all their optional arguments.
fn places(name: &str) -> Option<Kernel> {
    Some(match name {
        "regexp_count" => scalar!(|args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            let start = start_byte(text, integer(args, 2, 1))?;
            let count =
                are::cached(pattern, flags_at(args, 3, info)?, |regex| spans(regex, text, start).count() as i32)?;
            Ok(Datum::I32(count))
        }),
        "regexp_instr" => scalar!(|args, info| {
            let text = Txt::of(&args[0], &info.arg_types[0])?;
            let (start, nth) = (start_byte(text, integer(args, 2, 1))?, nth_match(integer(args, 3, 1))?);
            let end = match integer(args, 4, 0) {
                end @ (0 | 1) => end == 1,
                other => return Err(invalid_value("endoption", other)),
            };
            let (flags, group) = (flags_at(args, 5, info)?, group_wanted(args, 6)?);
            let found = nth_group(text, Txt::of(&args[1], &info.arg_types[1])?, flags, start, nth, group)?;
            let at = found.map(|range| if end { range.end } else { range.start });
            Ok(Datum::I32(at.map_or(0, |at| text[..at].chars().count() as i32 + 1)))
        }),
        "regexp_substr" => scalar!(|args, info| {
            let text = Txt::of(&args[0], &info.arg_types[0])?;
            let (start, nth) = (start_byte(text, integer(args, 2, 1))?, nth_match(integer(args, 3, 1))?);
            let (flags, group) = (flags_at(args, 4, info)?, group_wanted(args, 5)?);
            let found = nth_group(text, Txt::of(&args[1], &info.arg_types[1])?, flags, start, nth, group)?;
            Ok(found.map_or(Datum::Null, |range| Datum::text(&text[range])))
        }),
        _ => return None,
    })
}

fn nth_group(
    text: &str,
    pattern: &str,
    flags: Flags,
    start: usize,
    nth: usize,
    group: usize,
) -> Result<Option<Range<usize>>> {
    are::cached(pattern, flags, |regex| {
        let found = matches(regex, text, start).nth(nth - 1);
        // Of a pattern without groups the first is the whole match.
        found.and_then(|groups| groups.get(if groups.len() == 1 && group == 1 { 0 } else { group }).cloned().flatten())
    })
}

/// The pieces between matches; an empty match splits between characters.
pub(super) fn split(text: &str, pattern: &str, flags: &str, function: &str) -> Result<Vec<Datum>> {
    are::cached(pattern, options(flags, function)?, |regex| {
        let mut pieces = Vec::new();
        let mut from = 0;
        for range in spans(regex, text, 0) {
            if range.is_empty() && (range.start == from || range.start == text.len()) {
                continue;
            }
            pieces.push(Datum::text(&text[from..range.start]));
            from = range.end;
        }
        pieces.push(Datum::text(&text[from..]));
        pieces
    })
}

fn splitting(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("regexp_split_to_array", "text,text") => kernel!(|text: Txt, pattern: Txt| -> Val {
            array_value::encode(&DataType::Text, &split(text, pattern, "", "regexp_split_to_array")?)
        }),
        ("regexp_split_to_array", "text,text,text") => kernel!(|text: Txt, pattern: Txt, options: Txt| -> Val {
            array_value::encode(&DataType::Text, &split(text, pattern, options, "regexp_split_to_array")?)
        }),
        _ => return None,
    })
}
