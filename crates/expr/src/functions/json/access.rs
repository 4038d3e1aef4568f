//! Reaching into a document: `->`, `->>`, `#>`, `#>>`, lengths and types.

use super::{Document, invalid, path_of, step_index};
use crate::error::{Error, Result};
use crate::eval::rows;
use crate::eval::vector::Vector;
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel};
use basalt_types::jsonb::{self, Kind};
use basalt_types::{DataType, Datum};
use std::borrow::Cow;

pub(super) fn bind(name: &str) -> Option<Kernel> {
    let name = name.strip_prefix("jsonb_").or_else(|| name.strip_prefix("json_"))?;
    Some(match name {
        "object_field" => kernel!(|json: Txt, key: Txt; info| -> Opt<Part> {
            Ok(Document::of(json, &info.arg_types[0])?.member(key).map(Cow::Borrowed))
        }),
        "object_field_text" => kernel!(|json: Txt, key: Txt; info| -> Opt<Part> {
            Ok(Document::of(json, &info.arg_types[0])?.member(key).and_then(as_text))
        }),
        "array_element" => kernel!(|json: Txt, index: I4; info| -> Opt<Part> {
            Ok(Document::of(json, &info.arg_types[0])?.element(index).map(Cow::Borrowed))
        }),
        "array_element_text" => kernel!(|json: Txt, index: I4; info| -> Opt<Part> {
            Ok(Document::of(json, &info.arg_types[0])?.element(index).and_then(as_text))
        }),
        "extract_path" => Kernel::Native {
            scalar: |args, info| at_path(args, info.arg_types, whole),
            vector: Some(|args, rows, info| along_path(args, rows, info, whole)),
        },
        "extract_path_text" => Kernel::Native {
            scalar: |args, info| at_path(args, info.arg_types, as_text),
            vector: Some(|args, rows, info| along_path(args, rows, info, as_text)),
        },
        "array_length" => kernel!(|json: Txt; info| -> I4 {
            let document = Document::of(json, &info.arg_types[0])?;
            match jsonb::kind(document.text) {
                Kind::Array => i32::try_from(jsonb::elements(json).count()).map_err(|_| Error::out_of_range("integer")),
                Kind::Object => Err(invalid("cannot get array length of a non-array")),
                _ => Err(invalid("cannot get array length of a scalar")),
            }
        }),
        "typeof" => kernel!(|json: Txt| -> Txt { Ok(jsonb::kind(json).name().to_string()) }),
        _ => return None,
    })
}

/// A value as `->>` gives it: strings bare, null as SQL's.
pub(crate) fn as_text(json: &str) -> Option<Cow<'_, str>> {
    match jsonb::kind(json) {
        Kind::Null => None,
        Kind::String => Some(jsonb::unquote(json.trim_ascii())),
        _ => Some(Cow::Borrowed(json)),
    }
}

fn whole(json: &str) -> Option<Cow<'_, str>> {
    Some(Cow::Borrowed(json))
}

impl<'a> Document<'a> {
    /// The member of an object; of equal keys the last.
    fn member(self, key: &str) -> Option<&'a str> {
        if self.binary {
            return jsonb::member(self.text, key);
        }
        jsonb::members(self.text).filter(|(quoted, _)| jsonb::unquote(quoted) == key).last().map(|(_, value)| value)
    }

    /// The element of an array. `jsonb` keeps a scalar as an array of one, and `->` shows it.
    fn element(self, index: i32) -> Option<&'a str> {
        match jsonb::kind(self.text) {
            Kind::Array => jsonb::element(self.text, i64::from(index)),
            Kind::Object => None,
            _ => (self.binary && matches!(index, 0 | -1)).then_some(self.text),
        }
    }

    fn at_path(self, path: &[String]) -> Option<&'a str> {
        let mut found = self.text.trim_ascii();
        for step in path {
            let inner = Document { text: found, ..self };
            found = match jsonb::kind(found) {
                Kind::Array => jsonb::element(found, i64::from(step_index(step)?))?,
                _ => inner.member(step)?,
            };
        }
        Some(found)
    }
}

/// How what was found is shown.
type Show = fn(&str) -> Option<Cow<'_, str>>;

fn at_path(args: &[Datum], types: &[DataType], show: Show) -> Result<Datum> {
    let document = Document::of(Txt::of(&args[0], &types[0])?, &types[0])?;
    let Some(path) = path_of(args, types)? else { return Ok(Datum::Null) };
    let found = document.at_path(&path).and_then(show);
    Ok(found.map_or(Datum::Null, |found| Datum::text(&found)))
}

/// The same for a column of documents, if the path is the same for all.
fn along_path(args: &[Vector], count: usize, info: &CallInfo, show: Show) -> Result<Vector> {
    let constant = |arg: &Vector| match arg {
        Vector::Const(value) => Some(value.clone()),
        Vector::Array(_) => None,
    };
    let (Vector::Array(_), Some(steps)) = (&args[0], args[1..].iter().map(constant).collect::<Option<Vec<_>>>()) else {
        return rows::call(info.function, args, count, info);
    };
    let Some(path) = path_of(&[vec![Datum::Null], steps].concat(), info.arg_types)? else {
        return Ok(Vector::Const(Datum::Null));
    };
    let ty = &info.arg_types[0];
    let documents = Operand::<Txt>::new(&args[0], ty)?;
    let nulls = args[0].nulls();
    let mut out = <Opt<Part>>::builder(info.ty, count);
    for row in 0..count {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            <Opt<Part>>::skip(&mut out);
            continue;
        }
        let found = Document::of(documents.at(row)?, ty)?.at_path(&path).and_then(show);
        <Opt<Part>>::push(&mut out, found, info.ty)?;
    }
    Ok(Vector::Array(<Opt<Part>>::finish(out, nulls, info.ty)?))
}

/// `jsonb[…]…`: text names a member or, where it is a number, an element. Unlike `->`, a scalar has none.
pub(crate) fn subscript(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let document = Document::of(Txt::of(&args[0], &info.arg_types[0])?, &info.arg_types[0])?;
    let steps = args[1..].iter().zip(&info.arg_types[1..]).map(|(step, ty)| subscript_text(step, ty));
    let found = document.at_path(&steps.collect::<Result<Vec<_>>>()?);
    Ok(found.map_or(Datum::Null, Datum::text))
}

/// A subscript, which is an integer or text, as a step of a path.
pub(super) fn subscript_text(step: &Datum, ty: &DataType) -> Result<String> {
    match step {
        Datum::I32(index) => Ok(index.to_string()),
        step => Ok(Txt::of(step, ty)?.to_string()),
    }
}
