//! Documents out of values: `to_json`, `json_build_array`, `json_build_object`, `json_object` and their kin
//! (manual table 9.47).

use super::convert::JsonWriter;
use super::{invalid, strings};
use crate::array_value;
use crate::error::{Error, Result};
use crate::eval::room::check_longer;
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel};
use crate::io::json::{check_depth, write_string};
use basalt_types::jsonb::compare_keys;
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("to_json" | "to_jsonb", "anyelement") => scalar!(|args, info| {
            let mut out = Vec::new();
            JsonWriter::new(info.ty, info.ctx).write(&args[0], &info.arg_types[0], &mut out)?;
            document(out)
        }),
        ("array_to_json", _) => scalar!(|args, info| array_to_json(args, info)),
        ("json_build_array" | "jsonb_build_array", "any" | "-") => scalar!(|args, info| {
            let writer = JsonWriter::new(info.ty, info.ctx);
            let mut out = vec![b'['];
            for (at, (value, ty)) in args.iter().zip(info.arg_types).enumerate() {
                if at > 0 {
                    out.extend_from_slice(b", ");
                }
                writer.write(value, ty, &mut out)?;
            }
            out.push(b']');
            document(out)
        }),
        ("json_build_object" | "jsonb_build_object", "any" | "-") => scalar!(|args, info| build_object(args, info)),
        ("row_to_json", _) => scalar!(|args, info| row_to_json(args, info)),
        ("json_object" | "jsonb_object", _) => scalar!(|args, info| object_of_strings(args, info)),
        _ => return None,
    })
}

/// A document out of parts. 54001 if it is nested too deep.
pub(crate) fn document(text: Vec<u8>) -> Result<Datum> {
    check_depth(&text)?;
    Ok(Datum::Bytes(text.into()))
}

fn array_to_json(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let (Datum::Bytes(bytes), DataType::Array(element)) = (&args[0], &info.arg_types[0]) else {
        return Err(mismatch(&info.arg_types[0], &args[0]));
    };
    let comma = if matches!(args.get(1), Some(Datum::Bool(true))) { ",\n " } else { "," };
    let mut out = Vec::new();
    let array = array_value::decode(element, bytes)?;
    JsonWriter::new(info.ty, info.ctx).write_array_with(&array, element, comma, &mut out)?;
    document(out)
}

fn row_to_json(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let comma = if matches!(args.get(1), Some(Datum::Bool(true))) { ",\n " } else { "," };
    let mut out = Vec::new();
    let composite = crate::record_value::def_of(&info.arg_types[0])?;
    JsonWriter::new(info.ty, info.ctx).write_row(&args[0], composite, comma, &mut out)?;
    document(out)
}

/// Members of an object as they come; `jsonb` puts them in order when the object is written.
pub(crate) struct MembersOut {
    canonical: bool,
    /// Key and written value.
    members: Vec<(String, Vec<u8>)>,
}

impl MembersOut {
    pub fn new(ty: &DataType) -> MembersOut {
        MembersOut { canonical: *ty == DataType::Jsonb, members: Vec::new() }
    }

    pub fn push(&mut self, key: String, value: Vec<u8>) {
        self.members.push((key, value));
    }

    /// `json` is written with `open` and `close`, and ` : ` behind keys. 54001 if it is nested too deep, 54000 if it
    /// becomes too long.
    pub fn finish(mut self, open: &str, close: &str) -> Result<Datum> {
        if self.canonical {
            // Of equal keys the last stays; the sort is stable.
            self.members.sort_by(|left, right| compare_keys(&left.0, &right.0));
            self.members.reverse();
            self.members.dedup_by(|next, kept| next.0 == kept.0);
            self.members.reverse();
        }
        let (open, close, colon) = if self.canonical { ("{", "}", ": ") } else { (open, close, " : ") };
        let mut out = open.as_bytes().to_vec();
        for (at, (key, value)) in self.members.iter().enumerate() {
            check_longer(out.len(), key.len() + value.len())?;
            if at > 0 {
                out.extend_from_slice(b", ");
            }
            write_string(key, &mut out);
            out.extend_from_slice(colon.as_bytes());
            out.extend_from_slice(value);
        }
        out.extend_from_slice(close.as_bytes());
        document(out)
    }
}

fn build_object(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let name = info.function.name.as_str();
    if !args.len().is_multiple_of(2) {
        return Err(invalid("argument list must have even number of elements")
            .with_hint(format!("The arguments of {name}() must consist of alternating keys and values.")));
    }
    let writer = JsonWriter::new(info.ty, info.ctx);
    let mut members = MembersOut::new(info.ty);
    for at in (0..args.len()).step_by(2) {
        if args[at].is_null() {
            let message = match name {
                "jsonb_build_object" => format!("argument {}: key must not be null", at + 1),
                _ => format!("argument {} cannot be null", at + 1),
            };
            return Err(invalid(message).with_hint("Object keys should be text."));
        }
        let key = writer.key(&args[at], &info.arg_types[at])?;
        let mut value = Vec::new();
        writer.write(&args[at + 1], &info.arg_types[at + 1], &mut value)?;
        members.push(key, value);
    }
    members.finish("{", "}")
}

/// `json_object`: keys and values as one array, or as two.
/// 2202E unless two arrays are flat, and one alone is flat or has two columns.
fn check_pairs(args: &[Datum]) -> Result<()> {
    for array in args {
        let Datum::Bytes(bytes) = array else { continue };
        let dimensions = array_value::decode(&DataType::Text, bytes)?.dimensions;
        let message = match dimensions.as_slice() {
            [] | [_] => continue,
            [_, columns] if args.len() == 1 && columns.length == 2 => continue,
            [_, _] if args.len() == 1 => "array must have two columns",
            _ => "wrong number of array subscripts",
        };
        return Err(Error::new("2202E", message));
    }
    Ok(())
}

fn object_of_strings(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    check_pairs(args)?;
    let first = strings(&args[0], &info.arg_types[0])?;
    let pairs: Vec<(Option<String>, Option<String>)> = match args.get(1) {
        Some(values) => {
            let values = strings(values, &info.arg_types[1])?;
            if values.len() != first.len() {
                return Err(Error::new("2202E", "mismatched array dimensions"));
            }
            first.into_iter().zip(values).collect()
        }
        None => {
            if first.len() % 2 != 0 {
                return Err(Error::new("2202E", "array must have even number of elements"));
            }
            first.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect()
        }
    };
    let mut members = MembersOut::new(info.ty);
    for (key, value) in pairs {
        let key = key.ok_or_else(|| Error::new("22004", "null value not allowed for object key"))?;
        let mut written = Vec::new();
        match value {
            Some(value) => write_string(&value, &mut written),
            None => written.extend_from_slice(b"null"),
        }
        members.push(key, written);
    }
    members.finish("{", "}")
}
