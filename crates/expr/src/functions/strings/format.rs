//! `format()` (manual 9.4.1) and the quoting of literals.

use super::text_of;
use crate::error::{Error, Result};
use crate::eval::room::check_longer;
use crate::functions::CallInfo;
use crate::words::quote_ident;
use basalt_types::Datum;
use std::iter::Peekable;
use std::str::Chars;

pub(crate) fn quote_literal(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    if text.contains('\\') { format!("E'{}'", quoted.replace('\\', "\\\\")) } else { format!("'{quoted}'") }
}

struct Spec {
    position: Option<usize>,
    left: bool,
    width: i64,
}

fn unterminated() -> Error {
    Error::new("22023", "unterminated format() type specifier").with_hint("For a single \"%\" use \"%%\".")
}

/// Digits as a number; `None` if there are none.
fn number(chars: &mut Peekable<Chars>) -> Result<Option<usize>> {
    let mut value: Option<usize> = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit as usize - '0' as usize;
        let next = value.unwrap_or(0).checked_mul(10).and_then(|value| value.checked_add(digit));
        value = Some(
            next.filter(|value| i32::try_from(*value).is_ok())
                .ok_or_else(|| Error::new("22003", "number is out of range"))?,
        );
    }
    Ok(value)
}

/// `*` or `*n$`: the width is an argument, and the value the one after it.
fn width_argument(chars: &mut Peekable<Chars>, next: &mut usize, args: &[Datum], info: &CallInfo) -> Result<i64> {
    let at = match number(chars)? {
        Some(0) => return Err(argument_zero()),
        Some(position) if chars.next_if_eq(&'$').is_some() => position,
        Some(_) => {
            return Err(Error::new("22023", "width argument position must be ended by \"$\""));
        }
        None => *next,
    };
    *next = at + 1;
    match args.get(at) {
        Some(Datum::Null) => Ok(0),
        Some(Datum::I16(width)) => Ok(i64::from(*width)),
        Some(Datum::I32(width)) => Ok(i64::from(*width)),
        Some(value) => crate::io::parse_width(&text_of(value, at, info)?),
        None => Err(Error::new("22023", "too few arguments for format()")),
    }
}

fn argument_zero() -> Error {
    Error::new("22023", "format specifies argument 0, but arguments are numbered from 1")
}

fn spec(chars: &mut Peekable<Chars>, next: &mut usize, args: &[Datum], info: &CallInfo) -> Result<Spec> {
    let mut spec = Spec { position: None, left: false, width: 0 };
    match number(chars)? {
        Some(value) if chars.next_if_eq(&'$').is_some() => {
            if value == 0 {
                return Err(argument_zero());
            }
            spec.position = Some(value);
        }
        Some(value) => {
            spec.width = value as i64;
            return Ok(spec);
        }
        None => {}
    }
    while chars.next_if_eq(&'-').is_some() {
        spec.left = true;
    }
    if chars.next_if_eq(&'*').is_some() {
        let width = width_argument(chars, next, args, info)?;
        spec.left |= width < 0;
        spec.width = width.abs();
    } else if let Some(width) = number(chars)? {
        spec.width = width as i64;
    }
    Ok(spec)
}

pub(super) fn format(pattern: &str, args: &[Datum], info: &CallInfo) -> Result<String> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars().peekable();
    let mut next = 1;
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        if chars.next_if_eq(&'%').is_some() {
            out.push('%');
            continue;
        }
        let spec = spec(&mut chars, &mut next, args, info)?;
        let kind = chars.next().ok_or_else(unterminated)?;
        let at = spec.position.unwrap_or(next);
        next = at + 1;
        let value = args.get(at).ok_or_else(|| Error::new("22023", "too few arguments for format()"))?;
        let text = match (kind, value.is_null()) {
            ('s', true) => String::new(),
            ('s', false) => text_of(value, at, info)?.into_owned(),
            ('I', true) => return Err(Error::new("22004", "null values cannot be formatted as an SQL identifier")),
            ('I', false) => quote_ident(&text_of(value, at, info)?),
            ('L', true) => "NULL".to_string(),
            ('L', false) => quote_literal(&text_of(value, at, info)?),
            (other, _) => {
                return Err(Error::new("22023", format!("unrecognized format() type specifier \"{other}\""))
                    .with_hint("For a single \"%\" use \"%%\"."));
            }
        };
        let missing = usize::try_from(spec.width).unwrap_or(0).saturating_sub(text.chars().count());
        if missing > super::TEXT_BYTES_MAX {
            return Err(super::too_long());
        }
        check_longer(out.len(), text.len() + missing)?;
        let blanks = " ".repeat(missing);
        out.push_str(&if spec.left { text + &blanks } else { blanks + &text });
    }
    Ok(out)
}
