//! Functions that PostgreSQL has for its own machinery but that can be called: wire forms (`int4send`), steps of
//! aggregates (`float8_accum`), comparisons byte by byte, and second names.

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::error::{Error, Result};
use crate::operators::compare_datums;
use basalt_types::key::unpadded;
use basalt_types::{DataType, Datum};

/// Second names of functions.
const NAMES: [(&str, &str); 10] = [
    ("dexp", "exp"),
    ("dlog1", "ln"),
    ("dlog10", "log10"),
    ("dround", "round"),
    ("dtrunc", "trunc"),
    ("numeric_exp", "exp"),
    ("numeric_ln", "ln"),
    ("numeric_log", "log"),
    ("numeric_sqrt", "sqrt"),
    ("numeric_div_trunc", "div"),
];

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    if let Some((_, other)) = NAMES.iter().find(|(known, _)| *known == name) {
        return super::math::bind(other, args);
    }
    if name.ends_with("send") && !args.contains(',') {
        return Some(scalar!(sent));
    }
    Some(match name {
        "booland_statefunc" => kernel!(|a: Bit, b: Bit| -> Bit { Ok(a && b) }),
        "boolor_statefunc" => kernel!(|a: Bit, b: Bit| -> Bit { Ok(a || b) }),
        "int4inc" => {
            kernel!(|value: I4| -> I4 { value.checked_add(1).ok_or_else(|| Error::out_of_range("integer")) })
        }
        "int8inc" => {
            kernel!(|value: I8| -> I8 { value.checked_add(1).ok_or_else(|| Error::out_of_range("bigint")) })
        }
        "int8dec" => {
            kernel!(|value: I8| -> I8 { value.checked_sub(1).ok_or_else(|| Error::out_of_range("bigint")) })
        }
        "numeric_inc" => kernel!(|value: Num| -> Num { value.add(&crate::numeric::Numeric::from(1)) }),
        "text_pattern_lt" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(a.as_bytes() < b.as_bytes()) }),
        "text_pattern_le" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(a.as_bytes() <= b.as_bytes()) }),
        "text_pattern_gt" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(a.as_bytes() > b.as_bytes()) }),
        "text_pattern_ge" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(a.as_bytes() >= b.as_bytes()) }),
        "bpchar_pattern_lt" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(unpadded(a.as_bytes()) < unpadded(b.as_bytes())) }),
        "bpchar_pattern_le" => {
            kernel!(|a: Txt, b: Txt| -> Bit { Ok(unpadded(a.as_bytes()) <= unpadded(b.as_bytes())) })
        }
        "bpchar_pattern_gt" => kernel!(|a: Txt, b: Txt| -> Bit { Ok(unpadded(a.as_bytes()) > unpadded(b.as_bytes())) }),
        "bpchar_pattern_ge" => {
            kernel!(|a: Txt, b: Txt| -> Bit { Ok(unpadded(a.as_bytes()) >= unpadded(b.as_bytes())) })
        }
        "bpcharcmp" | "byteacmp" | "bitcmp" | "varbitcmp" | "uuid_cmp" => {
            scalar!(|args, info| Ok(Datum::I32(compare_datums(&info.arg_types[0], &args[0], &args[1]) as i32)))
        }
        "float8_accum" | "float4_accum" => scalar!(|args, info| {
            let [count, sum, squares] = state("float8_accum", &args[0], info)?;
            let value = match &args[1] {
                Datum::F32(value) => f64::from(*value),
                Datum::F64(value) => *value,
                other => return Err(mismatch(&info.arg_types[1], other)),
            };
            state_of(&add_value([count, sum, squares], value)?)
        }),
        "float8_combine" => scalar!(|args, info| {
            let (a, b) = (state("float8_combine", &args[0], info)?, state("float8_combine", &args[1], info)?);
            state_of(&combined(a, b)?)
        }),
        "float8_regr_accum" => scalar!(|args, info| {
            let [n, sx, sxx, sy, syy, sxy] = state("float8_regr_accum", &args[0], info)?;
            let (Datum::F64(y), Datum::F64(x)) = (&args[1], &args[2]) else {
                return Err(mismatch(&DataType::Float8, &args[1]));
            };
            let ([count, sum_x, squares_x], [_, sum_y, squares_y]) =
                (add_value([n, sx, sxx], *x)?, add_value([n, sy, syy], *y)?);
            let products = match n > 0.0 {
                true => sxy + (x * count - sum_x) * (y * count - sum_y) / (count * n),
                false => sxy,
            };
            state_of(&[count, sum_x, squares_x, sum_y, squares_y, products])
        }),
        "float8_regr_combine" => scalar!(|args, info| {
            let a: [f64; 6] = state("float8_regr_combine", &args[0], info)?;
            let b: [f64; 6] = state("float8_regr_combine", &args[1], info)?;
            if a[0] == 0.0 {
                return state_of(&b);
            }
            if b[0] == 0.0 {
                return state_of(&a);
            }
            let [count, sum_x, squares_x] = combined([a[0], a[1], a[2]], [b[0], b[1], b[2]])?;
            let [_, sum_y, squares_y] = combined([a[0], a[3], a[4]], [b[0], b[3], b[4]])?;
            let (x, y) = (a[1] / a[0] - b[1] / b[0], a[3] / a[0] - b[3] / b[0]);
            state_of(&[count, sum_x, squares_x, sum_y, squares_y, a[5] + b[5] + a[0] * b[0] * x * y / count])
        }),
        _ => return None,
    })
}

/// A value as clients get it in binary.
fn sent(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let mut out = Vec::new();
    crate::io::binary::format(&info.arg_types[0], &args[0], info.ctx, &mut out)?;
    Ok(Datum::Bytes(out.into()))
}

/// Count, sum and sum of squared differences from the mean (Youngs and Cramer) with one value more.
fn add_value([count, sum, squares]: [f64; 3], value: f64) -> Result<[f64; 3]> {
    let (all, total) = (count + 1.0, sum + value);
    let away = value * all - total;
    let squares = if count > 0.0 { squares + away * away / (all * count) } else { squares };
    let finite = value.is_finite() && sum.is_finite();
    if finite && (total.is_infinite() || squares.is_infinite()) {
        return Err(Error::new("22003", "value out of range: overflow"));
    }
    Ok([all, total, if value.is_finite() { squares } else { f64::NAN }])
}

fn combined(a: [f64; 3], b: [f64; 3]) -> Result<[f64; 3]> {
    if a[0] == 0.0 {
        return Ok(b);
    }
    if b[0] == 0.0 {
        return Ok(a);
    }
    let (count, sum) = (a[0] + b[0], a[1] + b[1]);
    let away = a[1] / a[0] - b[1] / b[0];
    let squares = a[2] + b[2] + a[0] * b[0] * away * away / count;
    match (
        sum.is_infinite() && a[1].is_finite() && b[1].is_finite(),
        squares.is_infinite() && a[2].is_finite() && b[2].is_finite(),
    ) {
        (false, false) => Ok([count, sum, squares]),
        _ => Err(Error::new("22003", "value out of range: overflow")),
    }
}

/// An aggregate's state of `N` numbers, from its array.
fn state<const N: usize>(function: &str, value: &Datum, info: &CallInfo) -> Result<[f64; N]> {
    let Datum::Bytes(bytes) = value else { return Err(mismatch(&info.arg_types[0], value)) };
    let array = crate::array_value::decode(&DataType::Float8, bytes)?;
    let numbers: Option<Vec<f64>> = array
        .elements
        .iter()
        .map(|element| match element {
            Datum::F64(number) => Some(*number),
            _ => None,
        })
        .collect();
    numbers
        .filter(|_| array.dimensions.len() == 1)
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| Error::internal(format!("{function}: expected {N}-element float8 array")))
}

fn state_of(numbers: &[f64]) -> Result<Datum> {
    let elements: Vec<Datum> = numbers.iter().map(|number| Datum::F64(*number)).collect();
    crate::array_value::encode(&DataType::Float8, &elements)
}
