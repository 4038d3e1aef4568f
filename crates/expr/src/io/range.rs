//! Text and binary forms of ranges and multiranges (manual 8.17.5).

use super::{binary, text};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::range_value::{self, normalized};
use basalt_types::range::{Bound, RangeKind, RangeValue, Span, encode_multirange, encode_range};
use basalt_types::{DataType, Datum};

const FLAG_EMPTY: u8 = 0x01;
const FLAG_LOWER_INCLUSIVE: u8 = 0x02;
const FLAG_UPPER_INCLUSIVE: u8 = 0x04;
const FLAG_NO_LOWER: u8 = 0x08;
const FLAG_NO_UPPER: u8 = 0x10;
const EMPTY: &str = "empty";

fn is_blank(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\x0b'
}

fn trim_start(text: &str) -> &str {
    text.trim_start_matches(is_blank)
}

/// What follows `empty` in any case, if the text starts so.
fn after_empty(text: &str) -> Option<&str> {
    let (word, rest) = text.split_at_checked(EMPTY.len())?;
    word.eq_ignore_ascii_case(EMPTY).then_some(rest)
}

#[cold]
fn malformed(text: &str, detail: &str) -> Error {
    Error::new("22P02", format!("malformed range literal: \"{text}\"")).with_detail(detail)
}

#[cold]
fn malformed_multirange(text: &str, detail: &str) -> Error {
    Error::new("22P02", format!("malformed multirange literal: \"{text}\"")).with_detail(detail)
}

/// Reads `[a,b)` or `empty`.
pub(super) fn parse(kind: RangeKind, whole: &str, ctx: &EvalContext) -> Result<Datum> {
    Ok(encode_range(kind, &parse_range(kind, whole, ctx)?))
}

fn parse_range(kind: RangeKind, whole: &str, ctx: &EvalContext) -> Result<RangeValue> {
    let start = trim_start(whole);
    if let Some(rest) = after_empty(start) {
        return match trim_start(rest).is_empty() {
            true => Ok(None),
            false => Err(malformed(whole, "Junk after \"empty\" key word.")),
        };
    }
    let lower_inclusive = start.starts_with('[');
    let Some(rest) = start.strip_prefix(['[', '(']) else {
        return Err(malformed(whole, "Missing left parenthesis or bracket."));
    };
    let (lower, rest) = bound(rest, whole)?;
    let rest = rest.strip_prefix(',').ok_or_else(|| malformed(whole, "Missing comma after lower bound."))?;
    let (upper, rest) = bound(rest, whole)?;
    let upper_inclusive = rest.starts_with(']');
    let rest = rest.strip_prefix([']', ')']).ok_or_else(|| malformed(whole, "Too many commas."))?;
    if !trim_start(rest).is_empty() {
        return Err(malformed(whole, "Junk after right parenthesis or bracket."));
    }
    let read = |text: Option<String>| text.map(|text| text::parse(&kind.subtype(), &text, ctx)).transpose();
    let lower = Bound { value: read(lower)?, inclusive: lower_inclusive, is_lower: true };
    let upper = Bound { value: read(upper)?, inclusive: upper_inclusive, is_lower: false };
    range_value::make(kind, lower, upper)
}

/// One bound, and what follows it from its comma, bracket or parenthesis on. Nothing at all is no bound.
fn bound<'a>(text: &'a str, whole: &str) -> Result<(Option<String>, &'a str)> {
    if text.starts_with([',', ')', ']']) {
        return Ok((None, text));
    }
    let mut bound = String::new();
    let mut is_quoted = false;
    let mut chars = text.char_indices().peekable();
    let end = || malformed(whole, "Unexpected end of input.");
    loop {
        match chars.next().ok_or_else(end)? {
            (at, ',' | ')' | ']') if !is_quoted => return Ok((Some(bound), &text[at..])),
            (_, '\\') => bound.push(chars.next().ok_or_else(end)?.1),
            (_, '"') if is_quoted && chars.next_if(|(_, next)| *next == '"').is_some() => bound.push('"'),
            (_, '"') => is_quoted = !is_quoted,
            (_, c) => bound.push(c),
        }
    }
}

/// Reads `{[a,b), …}`.
pub(super) fn parse_multirange(kind: RangeKind, whole: &str, ctx: &EvalContext) -> Result<Datum> {
    let fail = |detail: &str| malformed_multirange(whole, detail);
    let end = || fail("Unexpected end of input.");
    let mut rest = trim_start(whole).strip_prefix('{').ok_or_else(|| fail("Missing left brace."))?;
    let mut spans = Vec::new();
    rest = trim_start(rest);
    if !rest.starts_with('}') {
        loop {
            rest = trim_start(rest);
            if rest.is_empty() {
                return Err(end());
            }
            if rest.starts_with(['[', '(']) {
                let length = range_length(rest).ok_or_else(end)?;
                spans.extend(parse_range(kind, &rest[..length], ctx)?);
                rest = &rest[length..];
            } else {
                rest = after_empty(rest).ok_or_else(|| fail("Expected range start."))?;
            }
            rest = trim_start(rest);
            match rest.strip_prefix(',') {
                Some(after) => rest = after,
                None if rest.is_empty() => return Err(end()),
                None if rest.starts_with('}') => break,
                None => return Err(fail("Expected comma or end of multirange.")),
            }
        }
    }
    if !trim_start(&rest[1..]).is_empty() {
        return Err(fail("Junk after closing right brace."));
    }
    Ok(encode_multirange(kind, &normalized(kind, spans)))
}

/// Bytes up to and with the bracket or parenthesis that closes the range. `None`: there is none.
fn range_length(text: &str) -> Option<usize> {
    let mut is_quoted = false;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => {
                chars.next()?;
            }
            '"' if is_quoted && chars.next_if(|(_, next)| *next == '"').is_some() => {}
            '"' => is_quoted = !is_quoted,
            ']' | ')' if !is_quoted => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Appends a range or a multirange.
pub(super) fn format(ty: &DataType, value: &Datum, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let spans = range_value::spans(ty, value)?;
    match (ty, spans.as_slice()) {
        (DataType::Range(_), []) => out.extend_from_slice(EMPTY.as_bytes()),
        (DataType::Range(kind), [span, ..]) => put_span(*kind, span, ctx, out)?,
        (DataType::Multirange(kind), spans) => {
            out.push(b'{');
            for (at, span) in spans.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                put_span(*kind, span, ctx, out)?;
            }
            out.push(b'}');
        }
        _ => return Err(Error::internal(format!("{} is no range type", ty.sql_name()))),
    }
    Ok(())
}

fn put_span(kind: RangeKind, span: &Span, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    out.push(if span.lower.inclusive { b'[' } else { b'(' });
    put_bound(kind, &span.lower, ctx, out)?;
    out.push(b',');
    put_bound(kind, &span.upper, ctx, out)?;
    out.push(if span.upper.inclusive { b']' } else { b')' });
    Ok(())
}

fn put_bound(kind: RangeKind, bound: &Bound, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let Some(value) = &bound.value else { return Ok(()) };
    let mut printed = Vec::new();
    text::format(&kind.subtype(), value, ctx, &mut printed)?;
    let special =
        |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b'[' | b']' | b',') || is_blank(char::from(*byte));
    if !printed.is_empty() && !printed.iter().any(special) {
        out.append(&mut printed);
        return Ok(());
    }
    out.push(b'"');
    for byte in printed {
        if matches!(byte, b'"' | b'\\') {
            out.push(byte);
        }
        out.push(byte);
    }
    out.push(b'"');
    Ok(())
}

pub(super) fn parse_binary(kind: RangeKind, bytes: &[u8], ctx: &EvalContext) -> Result<Datum> {
    Ok(encode_range(kind, &parse_binary_range(kind, bytes, ctx)?))
}

fn parse_binary_range(kind: RangeKind, mut bytes: &[u8], ctx: &EvalContext) -> Result<RangeValue> {
    let [flags, rest @ ..] = bytes else { return Err(Error::short_binary()) };
    bytes = rest;
    let is = |flag: u8| flags & flag != 0;
    let mut bound = |is_missing: bool, inclusive: bool, is_lower: bool| -> Result<Bound> {
        if is(FLAG_EMPTY) || is_missing {
            return Ok(Bound { value: None, inclusive: false, is_lower });
        }
        let value = binary::take_value(&kind.subtype(), &mut bytes, ctx)?;
        if value.is_null() {
            return Err(Error::short_binary());
        }
        Ok(Bound { value: Some(value), inclusive, is_lower })
    };
    let lower = bound(is(FLAG_NO_LOWER), is(FLAG_LOWER_INCLUSIVE), true)?;
    let upper = bound(is(FLAG_NO_UPPER), is(FLAG_UPPER_INCLUSIVE), false)?;
    if !bytes.is_empty() {
        return Err(Error::invalid_binary("incorrect binary data format"));
    }
    if is(FLAG_EMPTY) { Ok(None) } else { range_value::make(kind, lower, upper) }
}

pub(super) fn parse_binary_multirange(kind: RangeKind, mut bytes: &[u8], ctx: &EvalContext) -> Result<Datum> {
    let count = binary::take_i32(&mut bytes)?;
    let mut spans = Vec::new();
    for _ in 0..count {
        let length = usize::try_from(binary::take_i32(&mut bytes)?).map_err(|_| Error::short_binary())?;
        let (range, rest) = bytes.split_at_checked(length).ok_or_else(Error::short_binary)?;
        spans.extend(parse_binary_range(kind, range, ctx)?);
        bytes = rest;
    }
    match bytes.is_empty() {
        true => Ok(encode_multirange(kind, &normalized(kind, spans))),
        false => Err(Error::invalid_binary("incorrect binary data format")),
    }
}

/// Appends the binary form of a range or a multirange.
pub(super) fn format_binary(ty: &DataType, value: &Datum, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let spans = range_value::spans(ty, value)?;
    match ty {
        DataType::Range(kind) => match spans.as_slice() {
            [] => out.push(FLAG_EMPTY),
            [span, ..] => put_binary_span(*kind, span, ctx, out)?,
        },
        DataType::Multirange(kind) => {
            out.extend_from_slice(&(spans.len() as i32).to_be_bytes());
            for span in &spans {
                let length_at = out.len();
                out.extend_from_slice(&[0; 4]);
                put_binary_span(*kind, span, ctx, out)?;
                let length = (out.len() - length_at - 4) as i32;
                out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        _ => return Err(Error::internal(format!("{} is no range type", ty.sql_name()))),
    }
    Ok(())
}

fn put_binary_span(kind: RangeKind, span: &Span, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        flag(span.lower.inclusive, FLAG_LOWER_INCLUSIVE)
            | flag(span.upper.inclusive, FLAG_UPPER_INCLUSIVE)
            | flag(span.lower.value.is_none(), FLAG_NO_LOWER)
            | flag(span.upper.value.is_none(), FLAG_NO_UPPER),
    );
    let values = [&span.lower, &span.upper].into_iter().filter_map(|bound| bound.value.as_ref());
    values.into_iter().try_for_each(|value| binary::put_value(&kind.subtype(), value, ctx, out))
}
