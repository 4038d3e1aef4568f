//! `jsonb_path_…` functions and the operators `@?` and `@@` (manual table 9.48).
//!
//! A path that is the same for all rows is read once.

use super::build::document;
use crate::error::{Error, Result};
use crate::eval::room::check_longer;
use crate::eval::vector::{Vector, VectorBuilder};
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel};
use crate::io::json::write_string;
use crate::jsonpath::exec::{Execution, Item};
use crate::jsonpath::{self, JsonPath};
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str) -> Option<Kernel> {
    macro_rules! one {
        ($answer:expr) => {{
            fn scalar(args: &[Datum], info: &CallInfo) -> Result<Datum> {
                let path = jsonpath::parse(Txt::of(&args[1], &info.arg_types[1])?)?;
                $answer(&Call::new(args, info)?, &path)
            }
            fn vector(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
                each_row(args, rows, info, $answer)
            }
            Kernel::Native { scalar, vector: Some(vector) }
        }};
    }
    Some(match name {
        "jsonb_path_exists" | "jsonb_path_exists_tz" | "jsonb_path_exists_opr" => one!(exists),
        "jsonb_path_match" | "jsonb_path_match_tz" | "jsonb_path_match_opr" => one!(matches),
        "jsonb_path_query_array" | "jsonb_path_query_array_tz" => one!(query_array),
        "jsonb_path_query_first" | "jsonb_path_query_first_tz" => one!(query_first),
        _ => return None,
    })
}

/// A call's arguments but for the path.
struct Call<'a> {
    execution: Execution<'a>,
    silent: bool,
}

impl<'a> Call<'a> {
    fn new(args: &'a [Datum], info: &CallInfo<'a>) -> Result<Call<'a>> {
        let name = info.function.name.as_str();
        let vars = match args.get(2) {
            Some(vars) => Some(Txt::of(vars, &DataType::Jsonb)?),
            // Functions have an empty object by default, operators have none.
            None if name.ends_with("_opr") => None,
            None => Some("{}"),
        };
        let silent = matches!(args.get(3), Some(Datum::Bool(true))) || name.ends_with("_opr");
        let document = Txt::of(&args[0], &info.arg_types[0])?;
        let use_zone = name.ends_with("_tz");
        Ok(Call { execution: Execution { document, vars, use_zone, ctx: info.ctx }, silent })
    }

    /// The items of a path; those found before an error if the call is silent.
    fn items(&self, path: &JsonPath) -> Result<Vec<Item<'a>>> {
        let found = self.execution.query(path)?;
        match found.error {
            Some(error) if !self.silent => Err(error),
            _ => Ok(found.items),
        }
    }

    fn print(&self, item: &Item) -> Vec<u8> {
        match item {
            Item::Json(part) => part.text().as_bytes().to_vec(),
            Item::DateTime(value) => {
                let (mut text, mut out) = (Vec::new(), Vec::new());
                value.write(self.execution.ctx, &mut text);
                write_string(&String::from_utf8_lossy(&text), &mut out);
                out
            }
        }
    }
}

fn each_row(
    args: &[Vector],
    rows: usize,
    info: &CallInfo,
    answer: impl Fn(&Call, &JsonPath) -> Result<Datum>,
) -> Result<Vector> {
    let nulls = union_nulls(args);
    let fixed = match &args[1] {
        Vector::Const(path @ Datum::Bytes(_)) => Some(jsonpath::parse(Txt::of(path, &info.arg_types[1])?)?),
        _ => None,
    };
    let mut out = VectorBuilder::of_batch(info.ty, rows);
    for row in 0..rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.skip();
            continue;
        }
        let values: Vec<Datum> = args.iter().zip(info.arg_types).map(|(arg, ty)| arg.value(ty, row)).collect();
        let call = Call::new(&values, info)?;
        let value = match &fixed {
            Some(path) => answer(&call, path)?,
            None => answer(&call, &jsonpath::parse(Txt::of(&values[1], &info.arg_types[1])?)?)?,
        };
        out.push(&value)?;
    }
    Ok(Vector::Array(out.finish()?))
}

fn exists(call: &Call, path: &JsonPath) -> Result<Datum> {
    match call.execution.exists(path)? {
        Ok(found) => Ok(Datum::Bool(found)),
        Err(_) if call.silent => Ok(Datum::Null),
        Err(error) => Err(error),
    }
}

fn matches(call: &Call, path: &JsonPath) -> Result<Datum> {
    if let [Item::Json(one)] = call.items(path)?.as_slice() {
        match one.text() {
            "true" => return Ok(Datum::Bool(true)),
            "false" => return Ok(Datum::Bool(false)),
            "null" => return Ok(Datum::Null),
            _ => {}
        }
    }
    if call.silent { Ok(Datum::Null) } else { Err(Error::new("22038", "single boolean result is expected")) }
}

fn query_array(call: &Call, path: &JsonPath) -> Result<Datum> {
    let mut out = vec![b'['];
    for (at, item) in call.items(path)?.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b", ");
        }
        let text = call.print(item);
        check_longer(out.len(), text.len())?;
        out.extend(text);
    }
    out.push(b']');
    document(out)
}

fn query_first(call: &Call, path: &JsonPath) -> Result<Datum> {
    Ok(call.items(path)?.first().map_or(Datum::Null, |item| Datum::Bytes(call.print(item).into())))
}

/// The rows of `jsonb_path_query`.
pub(crate) fn query_rows(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    let path = jsonpath::parse(Txt::of(&args[1], &info.arg_types[1])?)?;
    let call = Call::new(args, info)?;
    Ok(call.items(&path)?.iter().map(|item| Datum::Bytes(call.print(item).into())).collect())
}
