//! Set-returning functions: `generate_series`, `unnest` and the like give all their rows at once.

use super::arg::*;
use super::{CallInfo, Kernel, arrays, json, strings_regex};
use crate::array_value;
use crate::datetime::{timestamp_add, timestamptz_add};
use crate::error::{Error, Result};
use crate::interval::Interval;
use crate::numeric::Numeric;
use basalt_types::{DataType, Datum};

/// Rows that one call may give.
const ROWS_MAX: usize = 1 << 28;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(Kernel::Set(match (name, args) {
        ("generate_series", "int4,int4" | "int4,int4,int4") => {
            |args, _| integers(args, |value| Datum::I32(value as i32))
        }
        ("generate_series", "int8,int8" | "int8,int8,int8") => |args, _| integers(args, Datum::I64),
        ("generate_series", "numeric,numeric" | "numeric,numeric,numeric") => numerics,
        ("generate_series", "timestamp,timestamp,interval" | "timestamptz,timestamptz,interval") => moments,
        ("generate_subscripts", "anyarray,int4") => |args, info| {
            let count = unnest(args, info)?.len();
            let count = if args[1] == Datum::I32(1) { count } else { 0 };
            Ok((1..=count as i32).map(Datum::I32).collect())
        },
        ("unnest", "anyarray") => unnest,
        ("regexp_matches", "text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            strings_regex::all_matches(text, pattern, "")
        },
        ("regexp_matches", "text,text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            strings_regex::all_matches(text, pattern, Txt::of(&args[2], &info.arg_types[2])?)
        },
        ("regexp_split_to_table", "text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            strings_regex::split(text, pattern, "")
        },
        ("string_to_table", _) => |args, info| Ok(arrays::pieces(args, info)?.unwrap_or_default()),
        ("jsonb_array_elements" | "json_array_elements", _) => {
            |args, info| json::rows("jsonb_array_elements", Txt::of(&args[0], &info.arg_types[0])?)
        }
        ("jsonb_array_elements_text" | "json_array_elements_text", _) => {
            |args, info| json::rows("jsonb_array_elements_text", Txt::of(&args[0], &info.arg_types[0])?)
        }
        ("jsonb_object_keys" | "json_object_keys", _) => {
            |args, info| json::rows(&info.function.name, Txt::of(&args[0], &info.arg_types[0])?)
        }
        _ => return None,
    }))
}

fn zero_step() -> Error {
    Error::invalid_parameter("step size cannot equal zero")
}

fn too_many() -> Error {
    Error::new("54000", format!("a set of more than {ROWS_MAX} rows"))
}

fn integer(value: &Datum) -> i64 {
    match value {
        Datum::I32(value) => i64::from(*value),
        Datum::I64(value) => *value,
        _ => 0,
    }
}

fn integers(args: &[Datum], made: fn(i64) -> Datum) -> Result<Vec<Datum>> {
    let (start, stop, step) = (integer(&args[0]), integer(&args[1]), args.get(2).map_or(1, integer));
    if step == 0 {
        return Err(zero_step());
    }
    let mut rows = Vec::new();
    let mut next = Some(start);
    while let Some(value) = next.filter(|value| if step > 0 { *value <= stop } else { *value >= stop }) {
        if rows.len() == ROWS_MAX {
            return Err(too_many());
        }
        rows.push(made(value));
        next = value.checked_add(step);
    }
    Ok(rows)
}

fn numerics(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    let number = |at: usize| Numeric::from_datum(&args[at], &info.arg_types[at]);
    let (start, stop) = (number(0)?, number(1)?);
    let step = if args.len() > 2 { number(2)? } else { Numeric::ONE };
    for (value, what) in [(&start, "start value"), (&stop, "stop value"), (&step, "step size")] {
        if !value.is_finite() {
            let kind = if value.is_nan() { "NaN" } else { "infinity" };
            return Err(Error::invalid_parameter(format!("{what} cannot be {kind}")));
        }
    }
    if step.is_zero() {
        return Err(zero_step());
    }
    let mut rows = Vec::new();
    let mut value = start;
    while if step.signum() > 0 { value <= stop } else { value >= stop } {
        if rows.len() == ROWS_MAX {
            return Err(too_many());
        }
        rows.push(numeric_into(&value, info.ty)?);
        value = value.add(&step)?;
    }
    Ok(rows)
}

fn moments(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    let (start, stop) = (integer(&args[0]), integer(&args[1]));
    let step = Span::of(&args[2], &info.arg_types[2])?;
    let direction = step.cmp(&Interval::default());
    if direction.is_eq() {
        return Err(zero_step());
    }
    let zoned = info.arg_types[0] == DataType::TimestampTz;
    let mut rows = Vec::new();
    let mut value = start;
    while if direction.is_gt() { value <= stop } else { value >= stop } {
        if rows.len() == ROWS_MAX {
            return Err(too_many());
        }
        rows.push(Datum::I64(value));
        value = if zoned { timestamptz_add(value, step, &info.ctx.timezone)? } else { timestamp_add(value, step)? };
    }
    Ok(rows)
}

fn unnest(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    match (&args[0], &info.arg_types[0]) {
        (Datum::Bytes(bytes), DataType::Array(element)) => array_value::elements(element, bytes),
        (other, ty) => Err(mismatch(ty, other)),
    }
}
