//! `width_bucket` (manual 9.3): which of equal or given buckets a value falls into.

use crate::array_value;
use crate::error::{Error, Result};
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel};
use crate::numeric::Numeric;
use crate::operators::compare_datums;
use basalt_types::{DataType, Datum};
use std::cmp::Ordering;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    if name != "width_bucket" {
        return None;
    }
    Some(match args {
        "float8,float8,float8,int4" => {
            kernel!(|value: F8, low: F8, high: F8, count: I4| -> I4 { of_floats(value, low, high, count) })
        }
        "numeric,numeric,numeric,int4" => {
            kernel!(|value: Num, low: Num, high: Num, count: I4| -> I4 { of_numerics(&value, &low, &high, count) })
        }
        "anycompatible,anycompatiblearray" => scalar!(of_thresholds),
        _ => return None,
    })
}

fn invalid(message: &str) -> Error {
    Error::new("2201G", message)
}

fn checked_bounds(nan: bool, infinite: bool, equal: bool, count: i32) -> Result<()> {
    if count <= 0 {
        return Err(invalid("count must be greater than zero"));
    }
    if nan {
        return Err(invalid("operand, lower bound, and upper bound cannot be NaN"));
    }
    if infinite {
        return Err(invalid("lower and upper bounds must be finite"));
    }
    if equal { Err(invalid("lower bound cannot equal upper bound")) } else { Ok(()) }
}

fn above(count: i32) -> Result<i32> {
    count.checked_add(1).ok_or_else(|| Error::out_of_range("integer"))
}

fn of_floats(value: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    let nan = value.is_nan() || low.is_nan() || high.is_nan();
    checked_bounds(nan, low.is_infinite() || high.is_infinite(), low == high, count)?;
    let (before, after) = if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    if before {
        return Ok(0);
    }
    if after {
        return above(count);
    }
    // Where the width overflows, half of it does not.
    let part = if (high - low).is_infinite() {
        (value / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0)
    } else {
        (value - low) / (high - low)
    };
    // The quotient may round to 1: then the value counts as beyond the last bucket.
    above((f64::from(count) * part) as i32)
}

fn of_numerics(value: &Numeric, low: &Numeric, high: &Numeric, count: i32) -> Result<i32> {
    let nan = value.is_nan() || low.is_nan() || high.is_nan();
    checked_bounds(nan, low.is_infinite() || high.is_infinite(), low == high, count)?;
    let (before, after) = if low < high { (value < low, value >= high) } else { (value > low, value <= high) };
    if before {
        return Ok(0);
    }
    if after {
        return above(count);
    }
    // As precisely as division is: a value close to the upper bound may count as beyond it.
    let buckets = value.sub(low)?.mul(&Numeric::from(i64::from(count)))?.div(&high.sub(low)?)?.floor()?;
    let index = buckets.to_i128().and_then(|index| i32::try_from(index).ok()).unwrap_or(0);
    above(index)
}

/// How many of the ascending thresholds are not above the value.
fn of_thresholds(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let (Datum::Bytes(bytes), DataType::Array(element)) = (&args[1], &info.arg_types[1]) else {
        return Err(mismatch(&info.arg_types[1], &args[1]));
    };
    let array = array_value::decode(element, bytes)?;
    if array.dimensions.len() > 1 {
        return Err(Error::new("2202E", "thresholds must be one-dimensional array"));
    }
    let thresholds = array.elements;
    if thresholds.iter().any(Datum::is_null) {
        return Err(Error::new("22004", "thresholds array must not contain NULLs"));
    }
    let value = crate::cast::cast_datum(&info.arg_types[0], element, &args[0], false, info.ctx)?;
    // Thresholds that do not ascend have an answer, too: that of halving the array.
    let (mut first, mut end) = (0, thresholds.len());
    while first < end {
        let middle = usize::midpoint(first, end);
        match compare_datums(element, &value, &thresholds[middle]) {
            Ordering::Less => end = middle,
            _ => first = middle + 1,
        }
    }
    Ok(Datum::I32(first as i32))
}
