//! `json` and `jsonb`: functions and operators (manual 9.16, 8.14).
//!
//! Documents rest as text and are walked, not parsed into trees ([`basalt_types::jsonb`]): a member is a slice.
//! Functions on `json` first check that the document's strings have a value, as PostgreSQL does.

mod access;
pub(crate) mod build;
mod contain;
pub(crate) mod convert;
mod modify;
mod path;
mod pretty;
mod records;
mod rows;
mod set_path;

use super::Kernel;
use super::arg::*;
use crate::array_value;
use crate::error::{Error, Result};
use crate::io::json::validate_strings;
use basalt_types::{DataType, Datum};

pub(crate) use modify::deletion;
pub(crate) use path::query_rows;
pub(crate) use records::bind_set;
pub(crate) use rows::{check_elements, rows};
pub(crate) use {access::as_text, access::subscript, modify::assign};

pub(crate) fn bind(name: &str, args: &str) -> Option<Kernel> {
    access::bind(name)
        .or_else(|| contain::bind(name))
        .or_else(|| modify::bind(name, args))
        .or_else(|| path::bind(name))
        .or_else(|| pretty::bind(name))
        .or_else(|| build::bind(name, args))
        .or_else(|| records::bind(name))
}

/// A document, whose type says how it is kept.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub text: &'a str,
    /// `jsonb`: keys are ordered and stand once.
    pub binary: bool,
}

impl<'a> Document<'a> {
    /// The first argument of a call. A `json` document is checked.
    pub fn of(text: &'a str, ty: &DataType) -> Result<Document<'a>> {
        let binary = *ty == DataType::Jsonb;
        if !binary {
            validate_strings(text)?;
        }
        Ok(Document { text, binary })
    }
}

/// Strings of an array, in order; `None` for its nulls.
fn strings(array: &Datum, ty: &DataType) -> Result<Vec<Option<String>>> {
    let (Datum::Bytes(bytes), DataType::Array(element)) = (array, ty) else {
        return Err(mismatch(ty, array));
    };
    let elements = array_value::elements(element, bytes)?;
    elements.iter().map(|value| string_of(value, element)).collect()
}

/// [`strings`] where an array of more than one dimension is refused.
fn flat_strings(array: &Datum, ty: &DataType) -> Result<Vec<Option<String>>> {
    if let (Datum::Bytes(bytes), DataType::Array(element)) = (array, ty)
        && array_value::decode(element, bytes)?.dimensions.len() > 1
    {
        return Err(Error::new("2202E", "wrong number of array subscripts"));
    }
    strings(array, ty)
}

fn string_of(value: &Datum, ty: &DataType) -> Result<Option<String>> {
    match value {
        Datum::Null => Ok(None),
        value => Ok(Some(Txt::of(value, ty)?.to_string())),
    }
}

/// The path of `#>` and its kin: an array, or the arguments behind the document. `None`: a step is null.
fn path_of(args: &[Datum], types: &[DataType]) -> Result<Option<Vec<String>>> {
    let steps = match (&args[1..], &types[1..]) {
        ([array], [ty @ DataType::Array(_)]) => strings(array, ty)?,
        (steps, types) => steps.iter().zip(types).map(|(step, ty)| string_of(step, ty)).collect::<Result<Vec<_>>>()?,
    };
    Ok(steps.into_iter().collect())
}

/// The index that a path's step names, as C reads integers: blanks and a sign may stand before it.
fn step_index(step: &str) -> Option<i32> {
    let step = step.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let digits = step.strip_prefix(['-', '+']).unwrap_or(step);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    step.parse().ok()
}

/// 22023 with the operation that has no meaning for the value.
fn invalid(message: impl Into<String>) -> Error {
    Error::invalid_parameter(message)
}

/// A list with `", "` between, inside of brackets.
struct List {
    out: Vec<u8>,
    is_empty: bool,
    close: u8,
}

impl List {
    fn array(capacity: usize) -> List {
        List::open(b'[', b']', capacity)
    }

    fn object(capacity: usize) -> List {
        List::open(b'{', b'}', capacity)
    }

    fn open(open: u8, close: u8, capacity: usize) -> List {
        let mut out = Vec::with_capacity(capacity + 2);
        out.push(open);
        List { out, is_empty: true, close }
    }

    /// Where the next item is written.
    fn item(&mut self) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_empty) {
            self.out.extend_from_slice(b", ");
        }
        &mut self.out
    }

    fn element(&mut self, text: &str) {
        self.item().extend_from_slice(text.as_bytes());
    }

    fn member(&mut self, quoted: &str, value: &str) {
        let out = self.item();
        out.extend_from_slice(quoted.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
    }

    fn finish(mut self) -> Result<String> {
        self.out.push(self.close);
        text_from(self.out)
    }
}

fn text_from(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| Error::internal(error.to_string()))
}
