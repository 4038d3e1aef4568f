//! Set-returning functions: `generate_series`, `unnest` and the like. A series is made row by row, as it is
//! asked for: it may have more rows than there is memory for.

use super::arg::*;
use super::{CallInfo, Kernel, SetRows, arrays, json, strings_regex};
use crate::array_value;
use crate::datetime::{timestamp_add, timestamptz_add};
use crate::error::{Error, Result};
use crate::interval::Interval;
use crate::numeric::Numeric;
use crate::record_value;
use crate::words::{self, Class};
use basalt_types::{DataType, Datum};

/// Rows that are all there.
fn all(rows: Result<Vec<Datum>>) -> Result<SetRows> {
    Ok(Box::new(rows?.into_iter().map(Ok)))
}

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(Kernel::Set(match (name, args) {
        ("generate_series", "int4,int4" | "int4,int4,int4") => {
            |args, _| integers(args, |value| Datum::I32(value as i32))
        }
        ("generate_series", "int8,int8" | "int8,int8,int8") => |args, _| integers(args, Datum::I64),
        ("generate_series", "numeric,numeric" | "numeric,numeric,numeric") => numerics,
        ("generate_series", "timestamp,timestamp,interval" | "timestamptz,timestamptz,interval") => moments,
        ("generate_subscripts", "anyarray,int4" | "anyarray,int4,bool") => subscripts,
        ("_pg_expandarray", _) => |args, info| all(numbered(args, info)),
        ("pg_get_keywords", "-") => |_, info| all(key_words(info)),
        ("unnest", "anyarray") => |args, info| all(unnest(args, info)),
        ("regexp_matches", "text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            all(strings_regex::all_matches(text, pattern, ""))
        },
        ("regexp_matches", "text,text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            all(strings_regex::all_matches(text, pattern, Txt::of(&args[2], &info.arg_types[2])?))
        },
        ("regexp_split_to_table", "text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            all(strings_regex::split(text, pattern, "", "regexp_split_to_table"))
        },
        ("regexp_split_to_table", "text,text,text") => |args, info| {
            let (text, pattern) = (Txt::of(&args[0], &info.arg_types[0])?, Txt::of(&args[1], &info.arg_types[1])?);
            let options = Txt::of(&args[2], &info.arg_types[2])?;
            all(strings_regex::split(text, pattern, options, "regexp_split_to_table"))
        },
        // No table is a partition of another here.
        ("pg_partition_ancestors", _) => |_, _| Ok(Box::new(std::iter::empty())),
        ("string_to_table", _) => |args, info| all(Ok(arrays::pieces(args, info)?.unwrap_or_default())),
        (
            "jsonb_array_elements"
            | "json_array_elements"
            | "jsonb_array_elements_text"
            | "json_array_elements_text"
            | "jsonb_object_keys"
            | "json_object_keys",
            _,
        ) => |args, info| all(json::rows(args, info)),
        ("jsonb_path_query" | "jsonb_path_query_tz", _) => |args, info| all(json::query_rows(args, info)),
        _ => json::bind_set(name)?,
    }))
}

fn zero_step() -> Error {
    Error::invalid_parameter("step size cannot equal zero")
}

fn integer(value: &Datum) -> i64 {
    match value {
        Datum::I32(value) => i64::from(*value),
        Datum::I64(value) => *value,
        _ => 0,
    }
}

/// `start`, and what `step` makes of the value before while that is not past the end. An error of `step` comes
/// in the place of the value that it would have made.
fn series<T: Clone + Send + 'static>(
    start: T,
    is_inside: impl Fn(&T) -> bool + Send + 'static,
    step: impl Fn(&T) -> Result<Option<T>> + Send + 'static,
    made: impl Fn(&T) -> Result<Datum> + Send + 'static,
) -> SetRows {
    let mut next = Ok(Some(start));
    Box::new(std::iter::from_fn(move || {
        let value = match std::mem::replace(&mut next, Ok(None)) {
            Ok(value) => value.filter(&is_inside)?,
            Err(error) => return Some(Err(error)),
        };
        next = step(&value);
        Some(made(&value))
    }))
}

fn integers(args: &[Datum], made: fn(i64) -> Datum) -> Result<SetRows> {
    let (start, stop, step) = (integer(&args[0]), integer(&args[1]), args.get(2).map_or(1, integer));
    if step == 0 {
        return Err(zero_step());
    }
    let is_inside = move |value: &i64| if step > 0 { *value <= stop } else { *value >= stop };
    Ok(series(start, is_inside, move |value| Ok(value.checked_add(step)), move |value| Ok(made(*value))))
}

fn numerics(args: &[Datum], info: &CallInfo) -> Result<SetRows> {
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
    let (rises, ty) = (step.signum() > 0, info.ty.clone());
    let is_inside = move |value: &Numeric| if rises { *value <= stop } else { *value >= stop };
    let made = move |value: &Numeric| numeric_into(value, &ty);
    Ok(series(start, is_inside, move |value| value.add(&step).map(Some), made))
}

fn moments(args: &[Datum], info: &CallInfo) -> Result<SetRows> {
    let (start, stop) = (integer(&args[0]), integer(&args[1]));
    let step = Span::of(&args[2], &info.arg_types[2])?;
    let direction = step.cmp(&Interval::default());
    if direction.is_eq() {
        return Err(zero_step());
    }
    let zone = (info.arg_types[0] == DataType::TimestampTz).then_some(info.ctx.timezone);
    let is_inside = move |value: &i64| if direction.is_gt() { *value <= stop } else { *value >= stop };
    let next = move |value: &i64| match &zone {
        Some(zone) => timestamptz_add(*value, step, zone).map(Some),
        None => timestamp_add(*value, step).map(Some),
    };
    Ok(series(start, is_inside, next, |value| Ok(Datum::I64(*value))))
}

fn subscripts(args: &[Datum], info: &CallInfo) -> Result<SetRows> {
    let (Datum::Bytes(bytes), Some(element)) = (&args[0], info.arg_types[0].element()) else {
        return Err(mismatch(&info.arg_types[0], &args[0]));
    };
    let array = array_value::decode(element, bytes)?;
    let at = usize::try_from(integer(&args[1]) - 1).ok();
    let Some(dimension) = at.and_then(|at| array.dimensions.get(at).copied()) else {
        return Ok(Box::new(std::iter::empty()));
    };
    let all = (dimension.lower..=dimension.upper()).map(|subscript| Ok(Datum::I32(subscript)));
    Ok(if args.get(2) == Some(&Datum::Bool(true)) { Box::new(all.rev()) } else { Box::new(all) })
}

/// The elements of an array of one dimension with their places, from 1; of others, nulls for the first dimension.
fn numbered(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    let (Datum::Bytes(bytes), Some(element)) = (&args[0], info.arg_types[0].element()) else {
        return Err(mismatch(&info.arg_types[0], &args[0]));
    };
    let composite = record_value::def_of(info.ty)?;
    let array = array_value::decode(element, bytes)?;
    let count = array.dimensions.first().map_or(0, |first| first.upper() - first.lower + 1);
    let is_list = array.dimensions.len() == 1;
    let mut elements = array.elements.into_iter().filter(|_| is_list);
    (1..=count)
        .map(|n| record_value::encode(composite, &[elements.next().unwrap_or(Datum::Null), Datum::I32(n)]))
        .collect()
}

fn key_words(info: &CallInfo) -> Result<Vec<Datum>> {
    let composite = record_value::def_of(info.ty)?;
    words::all()
        .iter()
        .map(|known| {
            let (code, class) = match known.class {
                Class::Unreserved => ("U", "unreserved"),
                Class::Column => ("C", "unreserved (cannot be function or type name)"),
                Class::Function => ("T", "reserved (can be function or type name)"),
                Class::Reserved => ("R", "reserved"),
            };
            let label = if known.bare_label { "can be bare label" } else { "requires AS" };
            let bare = Datum::Bool(known.bare_label);
            let text = Datum::text;
            record_value::encode(composite, &[text(known.word), text(code), bare, text(class), text(label)])
        })
        .collect()
}

fn unnest(args: &[Datum], info: &CallInfo) -> Result<Vec<Datum>> {
    match (&args[0], info.arg_types[0].element()) {
        (Datum::Bytes(bytes), Some(element)) => array_value::elements(element, bytes),
        (other, _) => Err(mismatch(&info.arg_types[0], other)),
    }
}
