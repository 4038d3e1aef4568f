//! Arithmetic of `money`.

use super::Kernel;
use super::arg::*;
use crate::error::{Error, Result};
use crate::money;

/// Functions of `pg_proc`, and what is behind the operators.
pub(crate) fn bind(name: &str) -> Option<Kernel> {
    Some(match name {
        "cash_words" => kernel!(|value: I8| -> Txt { Ok(money::words(value)) }),
        "cash_pl" => kernel!(|a: I8, b: I8| -> I8 { checked(a.checked_add(b)) }),
        "cash_mi" => kernel!(|a: I8, b: I8| -> I8 { checked(a.checked_sub(b)) }),
        "cash_div_cash" => kernel!(|a: I8, b: I8| -> F8 {
            if b == 0 { Err(Error::division_by_zero()) } else { Ok(a as f64 / b as f64) }
        }),
        "cash_mul_flt8" => kernel!(|a: I8, b: F8| -> I8 { of_float(a as f64 * b) }),
        "flt8_mul_cash" => kernel!(|a: F8, b: I8| -> I8 { of_float(a * b as f64) }),
        "cash_mul_flt4" => kernel!(|a: I8, b: F4| -> I8 { of_float(a as f64 * f64::from(b)) }),
        "flt4_mul_cash" => kernel!(|a: F4, b: I8| -> I8 { of_float(f64::from(a) * b as f64) }),
        "cash_div_flt8" => kernel!(|a: I8, b: F8| -> I8 { over_float(a, b) }),
        "cash_div_flt4" => kernel!(|a: I8, b: F4| -> I8 { over_float(a, f64::from(b)) }),
        "cash_mul_int8" | "int8_mul_cash" => kernel!(|a: I8, b: I8| -> I8 { checked(a.checked_mul(b)) }),
        "cash_mul_int4" => kernel!(|a: I8, b: I4| -> I8 { checked(a.checked_mul(i64::from(b))) }),
        "int4_mul_cash" => kernel!(|a: I4, b: I8| -> I8 { checked(i64::from(a).checked_mul(b)) }),
        "cash_mul_int2" => kernel!(|a: I8, b: I2| -> I8 { checked(a.checked_mul(i64::from(b))) }),
        "int2_mul_cash" => kernel!(|a: I2, b: I8| -> I8 { checked(i64::from(a).checked_mul(b)) }),
        "cash_div_int8" => kernel!(|a: I8, b: I8| -> I8 { over_integer(a, b) }),
        "cash_div_int4" => kernel!(|a: I8, b: I4| -> I8 { over_integer(a, i64::from(b)) }),
        "cash_div_int2" => kernel!(|a: I8, b: I2| -> I8 { over_integer(a, i64::from(b)) }),
        _ => return None,
    })
}

fn out_of_range() -> Error {
    Error::out_of_range("money")
}

fn checked(value: Option<i64>) -> Result<i64> {
    value.ok_or_else(out_of_range)
}

fn of_float(value: f64) -> Result<i64> {
    // The greatest integer is no float: its neighbour above is 2^63.
    const END: f64 = 9_223_372_036_854_775_808.0;
    let rounded = value.round_ties_even();
    if (-END..END).contains(&rounded) { Ok(rounded as i64) } else { Err(out_of_range()) }
}

fn over_float(a: i64, b: f64) -> Result<i64> {
    if b == 0.0 { Err(Error::division_by_zero()) } else { of_float(a as f64 / b) }
}

fn over_integer(a: i64, b: i64) -> Result<i64> {
    if b == 0 { Err(Error::division_by_zero()) } else { checked(a.checked_div(b)) }
}
