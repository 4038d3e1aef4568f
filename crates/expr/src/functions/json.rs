//! `json` and `jsonb` functions and operators (manual 9.16): access, tests, construction.

use super::CallInfo;
use super::Kernel;
use super::arg::*;
use super::strings::text_of;
use crate::array_value;
use crate::error::{Error, Result};
use crate::io;
use crate::io::json::Json;
use basalt_types::{DataType, Datum};

pub(crate) fn bind(name: &str, args: &str) -> Option<Kernel> {
    access(name).or_else(|| tests(name)).or_else(|| building(name, args))
}

fn printed(json: &Json) -> String {
    let mut out = Vec::new();
    json.write(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// A value as `->>` gives it: strings bare, null as SQL's.
fn as_text(json: &Json) -> Option<String> {
    match json {
        Json::Null => None,
        Json::String(text) => Some(text.clone()),
        other => Some(printed(other)),
    }
}

fn element(json: &Json, index: i32) -> Option<&Json> {
    let Json::Array(elements) = json else { return None };
    let index = if index < 0 { elements.len() as i64 + i64::from(index) } else { i64::from(index) };
    elements.get(usize::try_from(index).ok()?)
}

/// A jsonb scalar is kept as an array of one, and `->` shows it.
fn element_or_scalar(json: &Json, index: i32) -> Option<&Json> {
    match json {
        Json::Array(_) | Json::Object(_) => element(json, index),
        scalar => matches!(index, 0 | -1).then_some(scalar),
    }
}

fn member<'a>(json: &'a Json, key: &str) -> Option<&'a Json> {
    json.get(key)
}

fn at_path<'a>(json: &'a Json, path: &[Datum]) -> Option<&'a Json> {
    path.iter().try_fold(json, |json, step| {
        let Datum::Bytes(step) = step else { return None };
        let step = std::str::from_utf8(step).ok()?;
        match json {
            Json::Array(_) => element(json, step.parse().ok()?),
            _ => member(json, step),
        }
    })
}

fn path_of(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    match (&args[1], &info.arg_types[1]) {
        (Datum::Bytes(bytes), DataType::Array(element)) if args.len() == 2 => array_value::elements(element, bytes),
        _ => Ok(args[1..].to_vec()),
    }
}

fn access(name: &str) -> Option<Kernel> {
    match name {
        "jsonb_array_element" => {
            return Some(kernel!(|json: Txt, index: I4| -> Opt<Txt> {
                Ok(element_or_scalar(&io::json::parse(json)?, index).map(printed))
            }));
        }
        "jsonb_array_element_text" => {
            return Some(kernel!(|json: Txt, index: I4| -> Opt<Txt> {
                Ok(element_or_scalar(&io::json::parse(json)?, index).and_then(as_text))
            }));
        }
        _ => {}
    }
    let name = name.strip_prefix("jsonb_").or_else(|| name.strip_prefix("json_"))?;
    Some(match name {
        "object_field" => {
            kernel!(|json: Txt, key: Txt| -> Opt<Txt> { Ok(member(&io::json::parse(json)?, key).map(printed)) })
        }
        "object_field_text" => {
            kernel!(|json: Txt, key: Txt| -> Opt<Txt> { Ok(member(&io::json::parse(json)?, key).and_then(as_text)) })
        }
        "array_element" => {
            kernel!(|json: Txt, index: I4| -> Opt<Txt> { Ok(element(&io::json::parse(json)?, index).map(printed)) })
        }
        "array_element_text" => {
            kernel!(|json: Txt, index: I4| -> Opt<Txt> {
                Ok(element(&io::json::parse(json)?, index).and_then(as_text))
            })
        }
        "extract_path" => scalar!(|args, info| {
            let json = io::json::parse(Txt::of(&args[0], &info.arg_types[0])?)?;
            Ok(at_path(&json, &path_of(args, info)?).map_or(Datum::Null, |found| Datum::text(&printed(found))))
        }),
        "extract_path_text" => scalar!(|args, info| {
            let json = io::json::parse(Txt::of(&args[0], &info.arg_types[0])?)?;
            let found = at_path(&json, &path_of(args, info)?).and_then(as_text);
            Ok(found.map_or(Datum::Null, |found| Datum::text(&found)))
        }),
        "array_length" => kernel!(|json: Txt| -> I4 {
            match io::json::parse(json)? {
                Json::Array(elements) => Ok(elements.len() as i32),
                Json::Object(_) => Err(Error::invalid_parameter("cannot get array length of a non-array")),
                _ => Err(Error::invalid_parameter("cannot get array length of a scalar")),
            }
        }),
        "typeof" => kernel!(|json: Txt| -> Txt { Ok(type_name(&io::json::parse(json)?).to_string()) }),
        _ => return None,
    })
}

fn type_name(json: &Json) -> &'static str {
    match json {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(_) => "number",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

/// `left @> right`.
fn contains(left: &Json, right: &Json) -> bool {
    match (left, right) {
        (Json::Object(_), Json::Object(members)) => {
            members.iter().all(|(key, wanted)| left.get(key).is_some_and(|found| contains(found, wanted)))
        }
        (Json::Array(elements), Json::Array(wanted)) => {
            wanted.iter().all(|wanted| elements.iter().any(|found| contains(found, wanted)))
        }
        // An array contains a bare scalar.
        (Json::Array(elements), scalar) if !matches!(scalar, Json::Object(_)) => elements.contains(scalar),
        (left, right) => left == right,
    }
}

/// Contained one level down, where an array no longer stands for its elements.
fn top_contains(left: &str, right: &str) -> Result<bool> {
    Ok(contains(&io::json::parse(left)?, &io::json::parse(right)?))
}

fn has_key(json: &Json, key: &str) -> bool {
    match json {
        Json::Object(_) => json.get(key).is_some(),
        Json::Array(elements) => elements.iter().any(|element| *element == Json::String(key.to_string())),
        Json::String(text) => text == key,
        _ => false,
    }
}

fn concatenated(left: Json, right: Json) -> Result<Json> {
    Ok(match (left, right) {
        (Json::Object(mut a), Json::Object(b)) => {
            a.extend(b);
            Json::object(a)
        }
        (Json::Array(mut a), Json::Array(b)) => {
            a.extend(b);
            Json::Array(a)
        }
        (Json::Array(mut a), b) => {
            a.push(b);
            Json::Array(a)
        }
        (a, Json::Array(mut b)) => {
            b.insert(0, a);
            Json::Array(b)
        }
        (Json::Object(_), _) | (_, Json::Object(_)) => {
            return Err(Error::invalid_parameter("invalid concatenation of jsonb objects"));
        }
        (a, b) => Json::Array(vec![a, b]),
    })
}

fn without_key(json: Json, key: &str) -> Result<Json> {
    Ok(match json {
        Json::Object(mut members) => {
            members.retain(|(name, _)| name != key);
            Json::Object(members)
        }
        Json::Array(mut elements) => {
            elements.retain(|element| *element != Json::String(key.to_string()));
            Json::Array(elements)
        }
        _ => return Err(Error::invalid_parameter("cannot delete from scalar")),
    })
}

fn tests(name: &str) -> Option<Kernel> {
    Some(match name {
        "jsonb_contains" => kernel!(|a: Txt, b: Txt| -> Bit { top_contains(a, b) }),
        "jsonb_contained" => kernel!(|a: Txt, b: Txt| -> Bit { top_contains(b, a) }),
        "jsonb_exists" => kernel!(|json: Txt, key: Txt| -> Bit { Ok(has_key(&io::json::parse(json)?, key)) }),
        "jsonb_concat" => {
            kernel!(|a: Txt, b: Txt| -> Txt { Ok(printed(&concatenated(io::json::parse(a)?, io::json::parse(b)?)?)) })
        }
        _ => return None,
    })
}

/// A value of any type as JSON.
fn json_of(value: &Datum, ty: &DataType, info: &CallInfo) -> Result<Json> {
    Ok(match (value, ty) {
        (Datum::Null, _) => Json::Null,
        (Datum::Bool(value), _) => Json::Bool(*value),
        (value, DataType::Json | DataType::Jsonb) => io::json::parse(Txt::of(value, ty)?)?,
        (Datum::Bytes(bytes), DataType::Array(element)) => {
            let elements = array_value::elements(element, bytes)?;
            Json::Array(elements.iter().map(|value| json_of(value, element, info)).collect::<Result<_>>()?)
        }
        (value, ty) => {
            let types = [ty.clone()];
            let one = CallInfo { arg_types: &types, ..*info };
            let text = text_of(value, 0, &one)?.into_owned();
            let numeric = crate::resolve::category::category(ty) == crate::resolve::category::Category::Numeric;
            match io::json::parse(&text) {
                Ok(number @ Json::Number(_)) if numeric => number,
                _ if matches!(ty, DataType::Timestamp | DataType::TimestampTz) => {
                    Json::String(text.replacen(' ', "T", 1))
                }
                _ => Json::String(text),
            }
        }
    })
}

fn building(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("to_json" | "to_jsonb", "anyelement") => kernel!(|value: Val; info| -> Txt {
            Ok(printed(&json_of(&value, &info.arg_types[0], info)?))
        }),
        ("jsonb_build_array", "any" | "-") => scalar!(|args, info| {
            let elements = args.iter().zip(info.arg_types);
            let elements = elements.map(|(value, ty)| json_of(value, ty, info)).collect::<Result<Vec<_>>>()?;
            Ok(Datum::text(&printed(&Json::Array(elements))))
        }),
        ("jsonb_build_object", "any" | "-") => scalar!(|args, info| {
            if args.len() % 2 != 0 {
                return Err(Error::invalid_parameter("argument list must have even number of elements")
                    .with_hint("The arguments of jsonb_build_object() must consist of alternating keys and values."));
            }
            let mut members = Vec::with_capacity(args.len() / 2);
            for at in (0..args.len()).step_by(2) {
                if args[at].is_null() {
                    return Err(Error::invalid_parameter(format!("argument {}: key must not be null", at + 1)));
                }
                let value = json_of(&args[at + 1], &info.arg_types[at + 1], info)?;
                members.push((text_of(&args[at], at, info)?.into_owned(), value));
            }
            Ok(Datum::text(&printed(&Json::object(members))))
        }),
        _ => return None,
    })
}

/// `jsonb - key` and `jsonb - index`, by the right operand's type.
pub(crate) fn deletion(right_is_text: bool) -> Kernel {
    if right_is_text {
        return kernel!(|json: Txt, key: Txt| -> Txt { Ok(printed(&without_key(io::json::parse(json)?, key)?)) });
    }
    kernel!(|json: Txt, index: I4| -> Txt {
        let Json::Array(mut elements) = io::json::parse(json)? else {
            return Err(Error::invalid_parameter("cannot delete from object using integer index"));
        };
        let at = if index < 0 { elements.len() as i64 + i64::from(index) } else { i64::from(index) };
        if let Some(at) = usize::try_from(at).ok().filter(|at| *at < elements.len()) {
            elements.remove(at);
        }
        Ok(printed(&Json::Array(elements)))
    })
}

/// Rows of `jsonb_array_elements` and its kin; `None` for JSON that has none.
pub(crate) fn rows(function: &str, text: &str) -> Result<Vec<Datum>> {
    let as_strings = function.ends_with("_text");
    match io::json::parse(text)? {
        Json::Array(elements) if function.contains("array_elements") => Ok(elements
            .iter()
            .map(|element| match as_strings {
                true => as_text(element).map_or(Datum::Null, |text| Datum::text(&text)),
                false => Datum::text(&printed(element)),
            })
            .collect()),
        Json::Object(members) if function.ends_with("object_keys") => {
            Ok(members.iter().map(|(key, _)| Datum::text(key)).collect())
        }
        Json::Object(_) => Err(Error::invalid_parameter("cannot extract elements from an object")),
        Json::Array(_) => Err(Error::invalid_parameter(format!("cannot call {function} on an array"))),
        _ if function.ends_with("object_keys") => {
            Err(Error::invalid_parameter(format!("cannot call {function} on a scalar")))
        }
        _ => Err(Error::invalid_parameter("cannot extract elements from a scalar")),
    }
}
