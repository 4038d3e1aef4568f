//! Array functions (manual 9.19). Arrays have one dimension, subscripts from 1.

use super::arg::*;
use super::strings::text_of;
use super::{CallInfo, Kernel};
use crate::array_value;
use crate::error::{Error, Result};
use crate::operators::equal_datums;
use basalt_types::{DataType, Datum};

pub(crate) fn bind(name: &str, args: &str) -> Option<Kernel> {
    sizes(name).or_else(|| changes(name)).or_else(|| tests(name)).or_else(|| texts(name, args))
}

/// The elements of an array argument.
fn elements(args: &[Datum], at: usize, info: &CallInfo) -> Result<Vec<Datum>> {
    match (&args[at], &info.arg_types[at]) {
        (Datum::Null, _) => Ok(Vec::new()),
        (Datum::Bytes(bytes), DataType::Array(element)) => array_value::elements(element, bytes),
        (other, ty) => Err(mismatch(ty, other)),
    }
}

fn element_type(ty: &DataType) -> &DataType {
    match ty {
        DataType::Array(element) => element,
        other => other,
    }
}

fn encode(info: &CallInfo, elements: &[Datum]) -> Result<Datum> {
    array_value::encode(element_type(info.ty), elements)
}

fn sizes(name: &str) -> Option<Kernel> {
    Some(match name {
        "cardinality" => scalar!(|args, info| Ok(Datum::I32(elements(args, 0, info)?.len() as i32))),
        "array_length" | "array_upper" => scalar!(|args, info| {
            let count = elements(args, 0, info)?.len() as i32;
            Ok(if args[1] == Datum::I32(1) && count > 0 { Datum::I32(count) } else { Datum::Null })
        }),
        "array_lower" => scalar!(|args, info| {
            let some = args[1] == Datum::I32(1) && !elements(args, 0, info)?.is_empty();
            Ok(if some { Datum::I32(1) } else { Datum::Null })
        }),
        "array_ndims" => {
            scalar!(|args, info| Ok(if elements(args, 0, info)?.is_empty() { Datum::Null } else { Datum::I32(1) }))
        }
        "array_dims" => scalar!(|args, info| {
            let count = elements(args, 0, info)?.len();
            Ok(if count == 0 { Datum::Null } else { Datum::text(&format!("[1:{count}]")) })
        }),
        "array_subscript" => scalar!(|args, info| {
            let elements = elements(args, 0, info)?;
            let Datum::I32(subscript) = args[1] else { return Ok(Datum::Null) };
            let at = usize::try_from(i64::from(subscript) - 1).ok();
            Ok(at.and_then(|at| elements.get(at)).cloned().unwrap_or(Datum::Null))
        }),
        _ => return None,
    })
}

fn changes(name: &str) -> Option<Kernel> {
    Some(match name {
        "array_append" => scalar!(|args, info| {
            let mut all = elements(args, 0, info)?;
            all.push(args[1].clone());
            encode(info, &all)
        }),
        "array_prepend" => scalar!(|args, info| {
            let mut all = elements(args, 1, info)?;
            all.insert(0, args[0].clone());
            encode(info, &all)
        }),
        "array_cat" => scalar!(|args, info| match (&args[0], &args[1]) {
            (Datum::Null, other) | (other, Datum::Null) => Ok(other.clone()),
            _ => encode(info, &[elements(args, 0, info)?, elements(args, 1, info)?].concat()),
        }),
        "array_remove" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(info.ty);
            let mut all = elements(args, 0, info)?;
            all.retain(|value| !equal_datums(ty, value, &args[1]));
            encode(info, &all)
        }),
        "array_replace" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(info.ty);
            let mut all = elements(args, 0, info)?;
            all.iter_mut().filter(|value| equal_datums(ty, value, &args[1])).for_each(|value| *value = args[2].clone());
            encode(info, &all)
        }),
        "trim_array" => scalar!(|args, info| {
            let mut all = elements(args, 0, info)?;
            let Datum::I32(count) = args[1] else { return Ok(Datum::Null) };
            let kept = usize::try_from(count).ok().and_then(|count| all.len().checked_sub(count));
            let Some(kept) = kept else {
                let message = format!("number of elements to trim must be between 0 and {}", all.len());
                return Err(Error::new("2202E", message));
            };
            all.truncate(kept);
            encode(info, &all)
        }),
        _ => return None,
    })
}

fn has_all(ty: &DataType, left: &[Datum], right: &[Datum]) -> bool {
    right
        .iter()
        .all(|wanted| !wanted.is_null() && left.iter().any(|found| !found.is_null() && equal_datums(ty, found, wanted)))
}

fn tests(name: &str) -> Option<Kernel> {
    Some(match name {
        "arraycontains" => scalar!(|args, info| {
            let ty = element_type(&info.arg_types[0]);
            Ok(Datum::Bool(has_all(ty, &elements(args, 0, info)?, &elements(args, 1, info)?)))
        }),
        "arraycontained" => scalar!(|args, info| {
            let ty = element_type(&info.arg_types[0]);
            Ok(Datum::Bool(has_all(ty, &elements(args, 1, info)?, &elements(args, 0, info)?)))
        }),
        "arrayoverlap" => scalar!(|args, info| {
            let ty = element_type(&info.arg_types[0]);
            let (left, right) = (elements(args, 0, info)?, elements(args, 1, info)?);
            let shared = |value: &Datum| {
                !value.is_null() && right.iter().any(|other| !other.is_null() && equal_datums(ty, value, other))
            };
            Ok(Datum::Bool(left.iter().any(shared)))
        }),
        "array_position" => scalar!(|args, info| {
            let ty = element_type(&info.arg_types[0]);
            let start = match args.get(2) {
                Some(Datum::I32(start)) => usize::try_from(i64::from(*start) - 1).unwrap_or(0),
                Some(_) => return Err(Error::new("22004", "initial position must not be null")),
                None => 0,
            };
            let all = elements(args, 0, info)?;
            let found = all.iter().skip(start).position(|value| equal_datums(ty, value, &args[1]));
            Ok(found.map_or(Datum::Null, |at| Datum::I32((at + start) as i32 + 1)))
        }),
        "array_positions" => scalar!(|args, info| {
            if args[0].is_null() {
                return Ok(Datum::Null);
            }
            let ty = element_type(&info.arg_types[0]);
            let all = elements(args, 0, info)?.into_iter().enumerate();
            let found: Vec<Datum> = all
                .filter(|(_, value)| equal_datums(ty, value, &args[1]))
                .map(|(at, _)| Datum::I32(at as i32 + 1))
                .collect();
            array_value::encode(&DataType::Int4, &found)
        }),
        _ => return None,
    })
}

fn to_text(args: &[Datum], info: &CallInfo, null: Option<&str>) -> Result<Datum> {
    let delimiter = Txt::of(&args[1], &info.arg_types[1])?;
    let types = [element_type(&info.arg_types[0]).clone()];
    let one = CallInfo { arg_types: &types, ..*info };
    let mut pieces = Vec::new();
    for value in elements(args, 0, info)? {
        match (value.is_null(), null) {
            (true, None) => {}
            (true, Some(null)) => pieces.push(null.to_string()),
            (false, _) => pieces.push(text_of(&value, 0, &one)?.into_owned()),
        }
    }
    Ok(Datum::text(&pieces.join(delimiter)))
}

/// The pieces of a text: characters without a delimiter, one piece for an empty one.
pub(super) fn pieces(args: &[Datum], info: &CallInfo) -> Result<Option<Vec<Datum>>> {
    let text = |at: usize| match args.get(at) {
        None | Some(Datum::Null) => Ok(None),
        Some(value) => Txt::of(value, &info.arg_types[at]).map(Some),
    };
    let (Some(whole), delimiter, null) = (text(0)?, text(1)?, text(2)?) else { return Ok(None) };
    let made = |piece: &str| if Some(piece) == null { Datum::Null } else { Datum::text(piece) };
    Ok(Some(match delimiter {
        _ if whole.is_empty() => Vec::new(),
        None => whole.chars().map(|char| made(char.encode_utf8(&mut [0; 4]))).collect(),
        Some("") => vec![made(whole)],
        Some(delimiter) => whole.split(delimiter).map(made).collect(),
    }))
}

fn texts(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("array_to_string", "anyarray,text") => scalar!(|args, info| to_text(args, info, None)),
        ("array_to_string", _) => scalar!(|args, info| match (&args[0], &args[1], &args[2]) {
            (Datum::Null, ..) | (_, Datum::Null, _) => Ok(Datum::Null),
            (_, _, Datum::Null) => to_text(args, info, None),
            (_, _, null) => to_text(args, info, Some(Txt::of(null, &info.arg_types[2])?)),
        }),
        ("string_to_array", _) => scalar!(|args, info| match pieces(args, info)? {
            Some(pieces) => array_value::encode(&DataType::Text, &pieces),
            None => Ok(Datum::Null),
        }),
        _ => return None,
    })
}
