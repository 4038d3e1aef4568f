//! Documents as rows: `json[b]_each[_text]`, `json[b]_to_record[set]` and `json[b]_populate_record[set]`
//! (manual table 9.47).
//!
//! A row's fields come from the members of an object by name. A member becomes a scalar through its type's
//! input, an array or a row by its own elements or members; a string becomes one of these through its text form.

use super::access::as_text;
use super::{Document, invalid};
use crate::array_value::{self, ArrayValue, DIMENSIONS_MAX, Dimension};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel, SetKernel};
use crate::io::text;
use crate::record_value;
use basalt_types::jsonb::{self, Kind};
use basalt_types::{CompositeDef, DataType, Datum};
use std::borrow::Cow;

/// Documents inside each other (54001 beyond).
const DEPTH_MAX: usize = 300;

pub(super) fn bind(name: &str) -> Option<Kernel> {
    Some(match name {
        "json_populate_record" | "jsonb_populate_record" => scalar!(|args, info| {
            let (rows, default) = (Rows::of(info)?, &args[0]);
            match given(args.get(1), info, 1)? {
                Some(json) => rows.row(json, default),
                None => Ok(default.clone()),
            }
        }),
        "json_to_record" | "jsonb_to_record" => scalar!(|args, info| match given(args.first(), info, 0)? {
            Some(json) => Rows::of(info)?.row(json, &Datum::Null),
            None => Ok(Datum::Null),
        }),
        _ => return None,
    })
}

/// Those of them that give sets.
pub(crate) fn bind_set(name: &str) -> Option<SetKernel> {
    Some(match name {
        "json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text" => {
            |args, info| Ok(Box::new(members(args, info)?.into_iter().map(Ok)))
        }
        "json_to_recordset" | "jsonb_to_recordset" => |args, info| match given(args.first(), info, 0)? {
            Some(json) => Ok(Box::new(Rows::of(info)?.rows(json, &Datum::Null)?.into_iter().map(Ok))),
            None => Ok(Box::new(std::iter::empty())),
        },
        "json_populate_recordset" | "jsonb_populate_recordset" => |args, info| match given(args.get(1), info, 1)? {
            Some(json) => Ok(Box::new(Rows::of(info)?.rows(json, &args[0])?.into_iter().map(Ok))),
            None => Ok(Box::new(std::iter::empty())),
        },
        _ => return None,
    })
}

/// The document of an argument; `None` for null.
fn given<'a>(value: Option<&'a Datum>, info: &CallInfo, at: usize) -> Result<Option<Document<'a>>> {
    match value {
        None | Some(Datum::Null) => Ok(None),
        Some(value) => Document::of(Txt::of(value, &info.arg_types[at])?, &info.arg_types[at]).map(Some),
    }
}

fn members(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    let json = Document::of(Txt::of(&args[0], &info.arg_types[0])?, &info.arg_types[0])?;
    let function = info.function.name.as_str();
    match (jsonb::kind(json.text), json.binary) {
        (Kind::Object, _) => {}
        (_, true) => return Err(invalid(format!("cannot call {function} on a non-object"))),
        (Kind::Array, false) => return Err(invalid("cannot deconstruct an array as an object")),
        (_, false) => return Err(invalid("cannot deconstruct a scalar")),
    }
    let composite = record_value::def_of(info.ty)?;
    let is_text = function.ends_with("_text");
    jsonb::members(json.text)
        .map(|(key, value)| {
            let value = match is_text {
                true => as_text(value).map_or(Datum::Null, |text| Datum::text(&text)),
                false => Datum::text(value),
            };
            record_value::encode(composite, &[Datum::text(&jsonb::unquote(key)), value])
        })
        .collect()
}

/// What rows a call makes.
struct Rows<'a> {
    /// A composite type or a domain over one.
    ty: &'a DataType,
    function: &'a str,
    ctx: &'a EvalContext,
}

impl<'a> Rows<'a> {
    fn of(info: &'a CallInfo) -> Result<Rows<'a>> {
        let function = info.function.name.as_str();
        // A record that is given has names of its own, whatever the columns are called.
        let default = info.arg_types.first().filter(|ty| ty.composite().is_some());
        match default.unwrap_or(info.ty) {
            ty if ty.composite().is_some() => Ok(Rows { ty, function, ctx: info.ctx }),
            DataType::Record => {
                Err(Error::not_supported("function returning record called in context that cannot accept type record")
                    .with_hint("Try calling the function in the FROM clause using a column definition list."))
            }
            _ => Err(Error::new("42804", format!("first argument of {function} must be a row type"))),
        }
    }

    fn row(&self, json: Document, default: &Datum) -> Result<Datum> {
        self.composite(self.ty, json, default, 0)
    }

    fn rows(&self, json: Document, default: &Datum) -> Result<Vec<Datum>> {
        let function = self.function;
        match (jsonb::kind(json.text), json.binary) {
            (Kind::Array, _) => {}
            (_, true) => return Err(invalid(format!("cannot call {function} on a non-array"))),
            (Kind::Object, false) => return Err(invalid(format!("cannot call {function} on an object"))),
            (_, false) => return Err(invalid(format!("cannot call {function} on a scalar"))),
        }
        jsonb::elements(json.text)
            .map(|element| match jsonb::kind(element) {
                Kind::Object => self.row(Document { text: element, ..json }, default),
                _ => Err(invalid(format!("argument of {function} must be an array of objects"))),
            })
            .collect()
    }

    /// A row out of an object; fields that it lacks are the default's.
    fn composite(&self, ty: &DataType, json: Document, default: &Datum, depth: usize) -> Result<Datum> {
        match jsonb::kind(json.text) {
            Kind::Object => {}
            Kind::Array => return Err(invalid("cannot call populate_composite on an array")),
            _ => return Err(invalid("cannot call populate_composite on a scalar")),
        }
        let composite = record_value::def_of(ty)?;
        let row = self.fields(composite, json, default, depth)?;
        crate::domain::check(ty, &row, self.ctx)?;
        Ok(row)
    }

    fn fields(&self, composite: &CompositeDef, json: Document, default: &Datum, depth: usize) -> Result<Datum> {
        let is_new = default.is_null();
        if !is_new && jsonb::members(json.text).next().is_none() {
            return Ok(default.clone());
        }
        let mut fields = match is_new {
            true => vec![Datum::Null; composite.attributes.len()],
            false => record_value::decode(composite, default)?,
        };
        let wanted: Vec<(usize, &basalt_types::Attribute)> = composite.live().collect();
        // Of equal keys the last counts.
        let mut found: Vec<Option<&str>> = vec![None; wanted.len()];
        for (key, value) in jsonb::members(json.text) {
            let key = jsonb::unquote(key);
            wanted.iter().zip(&mut found).filter(|((_, wanted), _)| wanted.name == *key).for_each(|(_, found)| {
                *found = Some(value);
            });
        }
        for ((at, attribute), value) in wanted.into_iter().zip(found) {
            let Some(value) = value.or_else(|| is_new.then_some("null")) else { continue };
            let before = std::mem::replace(&mut fields[at], Datum::Null);
            let place = Place { key: Some(&attribute.name), subscripts: Vec::new() };
            fields[at] = self.value(&attribute.ty, Document { text: value, ..json }, &before, &place, depth)?;
        }
        record_value::encode(composite, &fields)
    }

    /// A value of a type out of a document. `before` gives the fields that an object lacks.
    fn value(&self, ty: &DataType, json: Document, before: &Datum, place: &Place, depth: usize) -> Result<Datum> {
        if depth >= DEPTH_MAX {
            return Err(Error::new("54001", "stack depth limit exceeded"));
        }
        let kind = jsonb::kind(json.text);
        let is_null = kind == Kind::Null;
        match ty {
            DataType::Domain(domain) => {
                let value = match (is_null, ty.composite().is_some() && kind == Kind::String) {
                    (true, _) => Datum::Null,
                    (_, true) => return self.scalar(ty, json),
                    _ => self.value(crate::domain::bottom(domain), json, before, place, depth + 1)?,
                };
                crate::domain::fit(domain, ty, value, self.ctx)
            }
            _ if is_null => Ok(Datum::Null),
            DataType::Array(element) if kind != Kind::String => self.array(element, json, place, depth),
            DataType::Composite(_) if kind != Kind::String => self.composite(ty, json, before, depth + 1),
            _ => self.scalar(ty, json),
        }
    }

    fn scalar(&self, ty: &DataType, json: Document) -> Result<Datum> {
        let text: Cow<str> = match (jsonb::kind(json.text), ty) {
            (_, DataType::Json | DataType::Jsonb) => json.text.into(),
            (Kind::String, _) => jsonb::unquote(json.text.trim_ascii()),
            _ => json.text.into(),
        };
        text::parse(ty, &text, self.ctx)
    }

    fn array(&self, element: &DataType, json: Document, place: &Place, depth: usize) -> Result<Datum> {
        let mut filling = Filling { sizes: None, elements: Vec::new() };
        let mut place = Place { key: place.key, subscripts: place.subscripts.clone() };
        let outer = place.subscripts.len();
        self.dimension(element, json, &mut place, outer, depth, &mut filling)?;
        let sizes = filling.sizes.unwrap_or_default();
        if filling.elements.is_empty() {
            return array_value::encode(element, &[]);
        }
        let dimensions = sizes.iter().map(|length| Dimension { lower: 1, length: length.unwrap_or(0) }).collect();
        array_value::encode_shaped(element, &ArrayValue { dimensions, elements: filling.elements })
    }

    /// The elements of one array of the outermost `place.subscripts.len() - outer`th dimension.
    fn dimension(
        &self,
        element: &DataType,
        json: Document,
        place: &mut Place,
        outer: usize,
        depth: usize,
        filling: &mut Filling,
    ) -> Result<()> {
        if jsonb::kind(json.text) != Kind::Array {
            return Err(place.no_array());
        }
        let level = place.subscripts.len() - outer;
        if level >= DIMENSIONS_MAX && filling.sizes.is_none() {
            return Err(array_value::too_many_dimensions(level + 1));
        }
        let mut elements = jsonb::elements(json.text).peekable();
        let ends_here = elements.peek().is_none_or(|first| jsonb::kind(first) != Kind::Array);
        if filling.sizes.is_none() && ends_here {
            filling.sizes = Some(vec![None; level + 1]);
        }
        let mut count = 0u32;
        for text in elements {
            place.subscripts.push(count);
            let json = Document { text, ..json };
            match &filling.sizes {
                Some(sizes) if level + 1 >= sizes.len() => {
                    let value = self.value(element, json, &Datum::Null, place, depth + 1)?;
                    filling.elements.push(value);
                }
                _ => self.dimension(element, json, place, outer, depth + 1, filling)?,
            }
            place.subscripts.pop();
            count = count.checked_add(1).ok_or_else(array_value::too_large)?;
        }
        let size = filling.sizes.as_mut().and_then(|sizes| sizes.get_mut(level));
        match size {
            Some(Some(known)) if *known != count => Err(Error::new("22P02", "malformed JSON array")
                .with_detail("Multidimensional arrays must have sub-arrays with matching dimensions.")),
            Some(size) => {
                *size = Some(count);
                Ok(())
            }
            None => Ok(()),
        }
    }
}

/// An array in the making.
struct Filling {
    /// Of each dimension, once its first array has ended; known as soon as something that is no array is met.
    sizes: Option<Vec<Option<u32>>>,
    elements: Vec<Datum>,
}

/// Where in the document a value stands, for errors.
struct Place<'a> {
    key: Option<&'a str>,
    subscripts: Vec<u32>,
}

impl Place<'_> {
    fn no_array(&self) -> Error {
        let subscripts: String = self.subscripts.iter().map(|at| format!("[{at}]")).collect();
        let error = Error::new("22P02", "expected JSON array");
        match (self.key, subscripts.is_empty()) {
            (Some(key), true) => error.with_hint(format!("See the value of key \"{key}\".")),
            (Some(key), false) => error.with_hint(format!("See the array element {subscripts} of key \"{key}\".")),
            (None, false) => error.with_hint(format!("See the array element {subscripts}.")),
            (None, true) => error,
        }
    }
}
