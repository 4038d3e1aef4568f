//! Sets out of documents: `json[b]_array_elements[_text]` and `json[b]_object_keys`.

use super::access::as_text;
use super::{Document, invalid};
use crate::error::Result;
use crate::functions::CallInfo;
use crate::functions::arg::*;
use basalt_types::Datum;
use basalt_types::jsonb::{self, Kind};

/// The rows of a call.
pub(crate) fn rows(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    let json = Document::of(Txt::of(&args[0], &info.arg_types[0])?, &info.arg_types[0])?;
    let function = info.function.name.as_str();
    let kind = jsonb::kind(json.text);
    if function.ends_with("object_keys") {
        return match kind {
            Kind::Object => Ok(jsonb::members(json.text).map(|(key, _)| Datum::text(&jsonb::unquote(key))).collect()),
            Kind::Array => Err(invalid(format!("cannot call {function} on an array"))),
            _ => Err(invalid(format!("cannot call {function} on a scalar"))),
        };
    }
    check_elements(json, function)?;
    let elements = jsonb::elements(json.text);
    Ok(match function.ends_with("_text") {
        true => elements.map(|element| as_text(element).map_or(Datum::Null, |text| Datum::text(&text))).collect(),
        false => elements.map(Datum::text).collect(),
    })
}

/// Of what is no array there are no elements.
pub(crate) fn check_elements(json: Document<'_>, function: &str) -> Result<()> {
    match (jsonb::kind(json.text), json.binary) {
        (Kind::Array, _) => Ok(()),
        (Kind::Object, true) => Err(invalid("cannot extract elements from an object")),
        (Kind::Object, false) => Err(invalid(format!("cannot call {function} on a non-array"))),
        (_, true) => Err(invalid("cannot extract elements from a scalar")),
        (_, false) => Err(invalid(format!("cannot call {function} on a scalar"))),
    }
}
