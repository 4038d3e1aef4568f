//! Text and binary forms of composite values (manual 8.16.6).

use super::{binary, text};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::record_value;
use basalt_types::{CompositeDef, DataType, Datum};

#[cold]
fn malformed(text: &str, detail: &str) -> Error {
    Error::new("22P02", format!("malformed record literal: \"{text}\"")).with_detail(detail)
}

#[cold]
pub(super) fn no_input() -> Error {
    Error::not_supported("input of anonymous composite types is not implemented")
}

fn trim_start(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b')
}

/// Reads `(a,"b c",)`: nothing at all between two delimiters is null.
pub(super) fn parse(composite: &CompositeDef, whole: &str, ctx: &EvalContext) -> Result<Datum> {
    if composite.is_anonymous() {
        return Err(no_input());
    }
    let start = trim_start(whole);
    let Some(mut rest) = start.strip_prefix('(') else { return Err(malformed(whole, "Missing left parenthesis.")) };
    let mut fields = vec![Datum::Null; composite.attributes.len()];
    for (nth, (at, attribute)) in composite.live().enumerate() {
        if nth > 0 {
            rest = rest.strip_prefix(',').ok_or_else(|| malformed(whole, "Too few columns."))?;
        }
        if rest.starts_with([',', ')']) {
            continue;
        }
        let (field, after) = field(rest, whole)?;
        fields[at] = text::parse(&attribute.ty, &field, ctx)?;
        rest = after;
    }
    // Domains may refuse the nulls too.
    for (at, attribute) in composite.live() {
        if fields[at].is_null() && matches!(attribute.ty, DataType::Domain(_)) {
            crate::domain::check(&attribute.ty, &Datum::Null, ctx)?;
        }
    }
    let rest = rest.strip_prefix(')').ok_or_else(|| malformed(whole, "Too many columns."))?;
    match trim_start(rest).is_empty() {
        true => record_value::encode(composite, &fields),
        false => Err(malformed(whole, "Junk after right parenthesis.")),
    }
}

/// One field, and what follows it from its comma or parenthesis on.
fn field<'a>(text: &'a str, whole: &str) -> Result<(String, &'a str)> {
    let mut field = String::new();
    let mut is_quoted = false;
    let mut chars = text.char_indices().peekable();
    let end = || malformed(whole, "Unexpected end of input.");
    loop {
        match chars.next().ok_or_else(end)? {
            (at, ',' | ')') if !is_quoted => return Ok((field, &text[at..])),
            (_, '\\') => field.push(chars.next().ok_or_else(end)?.1),
            (_, '"') if is_quoted && chars.next_if(|(_, next)| *next == '"').is_some() => field.push('"'),
            (_, '"') => is_quoted = !is_quoted,
            (_, c) => field.push(c),
        }
    }
}

pub(super) fn format(composite: &CompositeDef, value: &Datum, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    let fields = record_value::decode(composite, value)?;
    out.push(b'(');
    let mut scratch = Vec::new();
    for (nth, (at, attribute)) in composite.live().enumerate() {
        if nth > 0 {
            out.push(b',');
        }
        if fields[at].is_null() {
            continue;
        }
        scratch.clear();
        text::format(&attribute.ty, &fields[at], ctx, &mut scratch)?;
        let special =
            |byte: &u8| matches!(byte, b'"' | b'\\' | b'(' | b')' | b',' | 0x0b) || byte.is_ascii_whitespace();
        if !scratch.is_empty() && !scratch.iter().any(special) {
            out.extend_from_slice(&scratch);
            continue;
        }
        out.push(b'"');
        for byte in &scratch {
            if matches!(byte, b'"' | b'\\') {
                out.push(*byte);
            }
            out.push(*byte);
        }
        out.push(b'"');
    }
    out.push(b')');
    Ok(())
}

pub(super) fn parse_binary(composite: &CompositeDef, mut bytes: &[u8], ctx: &EvalContext) -> Result<Datum> {
    if composite.is_anonymous() {
        return Err(no_input());
    }
    let count = binary::take_i32(&mut bytes)?;
    let expected = composite.live().count();
    if usize::try_from(count) != Ok(expected) {
        return Err(Error::new("42804", format!("wrong number of columns: {count}, expected {expected}")));
    }
    let mut fields = vec![Datum::Null; composite.attributes.len()];
    for (nth, (at, attribute)) in composite.live().enumerate() {
        let (found, expected) = (binary::take_i32(&mut bytes)? as u32, attribute.ty.oid());
        if found != expected {
            let column = nth + 1;
            let message =
                format!("binary data has type {found} instead of expected {expected} in record column {column}");
            return Err(Error::new("42804", message));
        }
        fields[at] = binary::take_value(&attribute.ty, &mut bytes, ctx)?;
    }
    match bytes.is_empty() {
        true => record_value::encode(composite, &fields),
        false => Err(Error::invalid_binary("improper binary format in record")),
    }
}

pub(super) fn format_binary(
    composite: &CompositeDef,
    value: &Datum,
    ctx: &EvalContext,
    out: &mut Vec<u8>,
) -> Result<()> {
    let fields = record_value::decode(composite, value)?;
    out.extend_from_slice(&(composite.live().count() as i32).to_be_bytes());
    for (at, attribute) in composite.live() {
        out.extend_from_slice(&attribute.ty.oid().to_be_bytes());
        binary::put_value(&attribute.ty, &fields[at], ctx, out)?;
    }
    Ok(())
}
