//! New documents from old ones: `||`, `-`, `#-`, jsonb_set and jsonb_insert, strip_nulls.

use super::access::subscript_text;
use super::set_path::{Change, set_path};
use super::{List, flat_strings, invalid, text_from};
use crate::error::{Error, Result};
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel};
use crate::io::json::{check_depth, validate_strings, write_string};
use basalt_types::jsonb::{self, Kind, Token};
use basalt_types::{DataType, Datum};
use std::cmp::Ordering;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match name {
        "jsonb_concat" => kernel!(|a: Txt, b: Txt| -> Txt {
            let joined = concat(a, b)?;
            check_depth(joined.as_bytes())?;
            Ok(joined)
        }),
        "jsonb_delete" => deletion(args.split(',').nth(1).unwrap_or("")),
        "jsonb_delete_path" => scalar!(|args, info| {
            let json = Txt::of(&args[0], &info.arg_types[0])?;
            let path = flat_strings(&args[1], &info.arg_types[1])?;
            refuse_scalar(json, "cannot delete path in scalar")?;
            changed(json, &path, "", Change::Delete)
        }),
        "jsonb_set" => scalar!(|args, info| set(args, info)),
        "jsonb_set_lax" => scalar!(|args, info| set_lax(args, info)),
        "jsonb_insert" => scalar!(|args, info| {
            let json = Txt::of(&args[0], &info.arg_types[0])?;
            let path = flat_strings(&args[1], &info.arg_types[1])?;
            refuse_scalar(json, "cannot set path in scalar")?;
            let after = matches!(args.get(3), Some(Datum::Bool(true)));
            let change = if after { Change::InsertAfter } else { Change::InsertBefore };
            let new = Txt::of(&args[2], &info.arg_types[2])?;
            changed(json, &path, new, change)
        }),
        "jsonb_strip_nulls" => kernel!(|json: Txt| -> Txt { strip_nulls(json, ", ", ": ") }),
        "json_strip_nulls" => kernel!(|json: Txt| -> Txt {
            validate_strings(json)?;
            strip_nulls(json, ",", ":")
        }),
        _ => return None,
    })
}

/// 22023 for a scalar alone.
fn refuse_scalar(json: &str, message: &str) -> Result<()> {
    if jsonb::kind(json).is_scalar() { Err(invalid(message)) } else { Ok(()) }
}

fn changed(json: &str, path: &[Option<String>], new: &str, change: Change) -> Result<Datum> {
    let changes_nothing = matches!(change, Change::Replace | Change::Delete) && matches!(json, "{}" | "[]");
    if path.is_empty() || changes_nothing {
        return Ok(Datum::text(json));
    }
    Ok(Datum::text(&set_path(json, path, new, change)?))
}

fn set(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let json = Txt::of(&args[0], &info.arg_types[0])?;
    let path = flat_strings(&args[1], &info.arg_types[1])?;
    refuse_scalar(json, "cannot set path in scalar")?;
    let creates = !matches!(args.get(3), Some(Datum::Bool(false)));
    let new = Txt::of(&args[2], &info.arg_types[2])?;
    let change = if creates { Change::Create } else { Change::Replace };
    changed(json, &path, new, change)
}

const TREATMENTS: &str =
    "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";

/// As jsonb_set, but a null to be set is dealt with as the last argument says.
fn set_lax(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    const DEFAULT: Datum = Datum::Null;
    let creates = args.get(3).unwrap_or(&Datum::Bool(true));
    if args[0].is_null() || args[1].is_null() || creates.is_null() {
        return Ok(Datum::Null);
    }
    if args.get(4).is_some_and(Datum::is_null) {
        return Err(invalid(TREATMENTS));
    }
    if !args[2].is_null() {
        return set(&args[..args.len().min(4)], info);
    }
    let treatment = match args.get(4).unwrap_or(&DEFAULT) {
        Datum::Null => "use_json_null",
        other => Txt::of(other, &DataType::Text)?,
    };
    match treatment {
        "raise_exception" => Err(Error::new("22004", "JSON value must not be null")
            .with_detail("Exception was raised because null_value_treatment is \"raise_exception\".")
            .with_hint(
                "To avoid, either change the null_value_treatment argument or ensure that an SQL NULL is not passed.",
            )),
        "return_target" => Ok(args[0].clone()),
        "use_json_null" => {
            let mut args = args[..args.len().min(4)].to_vec();
            args[2] = Datum::text("null");
            set(&args, info)
        }
        "delete_key" => {
            let json = Txt::of(&args[0], &info.arg_types[0])?;
            let path = flat_strings(&args[1], &info.arg_types[1])?;
            refuse_scalar(json, "cannot delete path in scalar")?;
            changed(json, &path, "", Change::Delete)
        }
        _ => Err(invalid(TREATMENTS)),
    }
}

/// `SET column[…]… = value`: the document (or null), the new value (or null), the subscripts. An integer
/// subscript makes an array of a null document, any other an object.
pub(crate) fn assign(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let first_is_index = matches!(info.arg_types.get(2), Some(DataType::Int4));
    let json = match &args[0] {
        Datum::Null if first_is_index => "[]",
        Datum::Null => "{}",
        json => Txt::of(json, &info.arg_types[0])?,
    };
    let new = match &args[1] {
        Datum::Null => "null",
        new => Txt::of(new, &info.arg_types[1])?,
    };
    let mut path = Vec::with_capacity(args.len() - 2);
    for (step, ty) in args[2..].iter().zip(&info.arg_types[2..]) {
        path.push(Some(match step {
            Datum::Null => return Err(Error::new("22004", "jsonb subscript in assignment must not be null")),
            step => subscript_text(step, ty)?,
        }));
    }
    changed(json, &path, new, Change::Assign)
}

fn concat(left: &str, right: &str) -> Result<String> {
    let (a, b) = (jsonb::kind(left), jsonb::kind(right));
    match (a, b) {
        (Kind::Object, Kind::Object) => merged(left, right),
        (a, b) => {
            let mut list = List::array(left.len() + right.len());
            for (kind, text) in [(a, left), (b, right)] {
                match kind {
                    Kind::Array => jsonb::elements(text).for_each(|element| list.element(element)),
                    _ => list.element(text),
                }
            }
            list.finish()
        }
    }
}

/// Members of both; of equal keys those of the right.
fn merged(left: &str, right: &str) -> Result<String> {
    let mut list = List::object(left.len() + right.len());
    let (mut a, mut b) = (jsonb::members(left).peekable(), jsonb::members(right).peekable());
    loop {
        let order = match (a.peek(), b.peek()) {
            (None, None) => return list.finish(),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => jsonb::compare_keys(&jsonb::unquote(a), &jsonb::unquote(b)),
        };
        let left = if order.is_le() { a.next() } else { None };
        let right = if order.is_ge() { b.next() } else { None };
        if let Some((key, value)) = right.or(left) {
            list.member(key, value);
        }
    }
}

/// `jsonb - key`, `jsonb - index` and `jsonb - keys`, by the right operand's type.
pub(crate) fn deletion(right: &str) -> Kernel {
    match right {
        "text" => kernel!(|json: Txt, key: Txt| -> Txt { without(json, |found| found == key) }),
        "int4" => kernel!(|json: Txt, index: I4| -> Txt { without_element(json, index) }),
        _ => scalar!(|args, info| {
            let json = Txt::of(&args[0], &info.arg_types[0])?;
            let keys = flat_strings(&args[1], &info.arg_types[1])?;
            let keys: ahash::AHashSet<String> = keys.into_iter().flatten().collect();
            Ok(Datum::text(&without(json, |found| keys.contains(found))?))
        }),
    }
}

/// Without the members, or the string elements, that are to go.
fn without(json: &str, goes: impl Fn(&str) -> bool) -> Result<String> {
    match jsonb::kind(json) {
        Kind::Object => {
            let mut list = List::object(json.len());
            for (key, value) in jsonb::members(json).filter(|(key, _)| !goes(&jsonb::unquote(key))) {
                list.member(key, value);
            }
            list.finish()
        }
        Kind::Array => {
            let mut list = List::array(json.len());
            let stays = |element: &&str| !(element.starts_with('"') && goes(&jsonb::unquote(element)));
            jsonb::elements(json).filter(stays).for_each(|element| list.element(element));
            list.finish()
        }
        _ => Err(invalid("cannot delete from scalar")),
    }
}

fn without_element(json: &str, index: i32) -> Result<String> {
    match jsonb::kind(json) {
        Kind::Array => {}
        Kind::Object => return Err(invalid("cannot delete from object using integer index")),
        _ => return Err(invalid("cannot delete from scalar")),
    }
    let index = i64::from(index);
    let from_end = if index < 0 { jsonb::elements(json).count() as i64 } else { 0 };
    let mut list = List::array(json.len());
    for (at, element) in jsonb::elements(json).enumerate() {
        if at as i64 != index + from_end {
            list.element(element);
        }
    }
    list.finish()
}

/// Without the members that are null, at any depth. Elements of arrays stay.
fn strip_nulls(json: &str, comma: &str, colon: &str) -> Result<String> {
    let mut out = Vec::with_capacity(json.len());
    let mut is_first = true;
    let mut key = None;
    let mut put = |text: &str, key: Option<&str>, is_first: &mut bool, closes: bool| {
        if !closes && !std::mem::replace(is_first, false) {
            out.extend_from_slice(comma.as_bytes());
        }
        if let Some(key) = key {
            write_string(&jsonb::unquote(key), &mut out);
            out.extend_from_slice(colon.as_bytes());
        }
        match text.starts_with('"') {
            true => write_string(&jsonb::unquote(text), &mut out),
            false => out.extend_from_slice(text.as_bytes()),
        }
    };
    for token in jsonb::tokens(json) {
        match token {
            Token::BeginObject | Token::BeginArray => {
                put(if token == Token::BeginObject { "{" } else { "[" }, key.take(), &mut is_first, false);
                is_first = true;
            }
            Token::EndObject | Token::EndArray => {
                put(if token == Token::EndObject { "}" } else { "]" }, None, &mut is_first, true);
                is_first = false;
            }
            Token::Key(quoted) => key = Some(quoted),
            Token::Scalar("null") if key.take().is_some() => {}
            Token::Scalar(text) => put(text, key.take(), &mut is_first, false),
        }
    }
    text_from(out)
}
