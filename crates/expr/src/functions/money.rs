//! Arithmetic of `money`.

use super::Kernel;
use super::arg::*;
use crate::error::{Error, Result};
use crate::money;

/// Functions of `pg_proc`, and what is behind the operators.
pub(crate) fn bind(name: &str) -> Option<Kernel> {
    Some(match name {
        "cash_words" => kernel!(|value: I8| -> Txt { Ok(money::words(value)) }),
        "cash_pl" => kernel!(|a: I8, b: I8| -> I8 { Ok(a.wrapping_add(b)) }),
        "cash_mi" => kernel!(|a: I8, b: I8| -> I8 { Ok(a.wrapping_sub(b)) }),
        "cash_div_cash" => kernel!(|a: I8, b: I8| -> F8 {
            if b == 0 { Err(Error::division_by_zero()) } else { Ok(a as f64 / b as f64) }
        }),
        "cash_mul_flt8" => kernel!(|a: I8, b: F8| -> I8 { Ok((a as f64 * b).round_ties_even() as i64) }),
        "flt8_mul_cash" => kernel!(|a: F8, b: I8| -> I8 { Ok((a * b as f64).round_ties_even() as i64) }),
        "cash_mul_flt4" => kernel!(|a: I8, b: F4| -> I8 { Ok((a as f64 * f64::from(b)).round_ties_even() as i64) }),
        "flt4_mul_cash" => kernel!(|a: F4, b: I8| -> I8 { Ok((f64::from(a) * b as f64).round_ties_even() as i64) }),
        "cash_div_flt8" => kernel!(|a: I8, b: F8| -> I8 { over_float(a, b) }),
        "cash_div_flt4" => kernel!(|a: I8, b: F4| -> I8 { over_float(a, f64::from(b)) }),
        "cash_mul_int8" | "int8_mul_cash" => kernel!(|a: I8, b: I8| -> I8 { Ok(a.wrapping_mul(b)) }),
        "cash_mul_int4" => kernel!(|a: I8, b: I4| -> I8 { Ok(a.wrapping_mul(i64::from(b))) }),
        "int4_mul_cash" => kernel!(|a: I4, b: I8| -> I8 { Ok(i64::from(a).wrapping_mul(b)) }),
        "cash_mul_int2" => kernel!(|a: I8, b: I2| -> I8 { Ok(a.wrapping_mul(i64::from(b))) }),
        "int2_mul_cash" => kernel!(|a: I2, b: I8| -> I8 { Ok(i64::from(a).wrapping_mul(b)) }),
        "cash_div_int8" => kernel!(|a: I8, b: I8| -> I8 { over_integer(a, b) }),
        "cash_div_int4" => kernel!(|a: I8, b: I4| -> I8 { over_integer(a, i64::from(b)) }),
        "cash_div_int2" => kernel!(|a: I8, b: I2| -> I8 { over_integer(a, i64::from(b)) }),
        _ => return None,
    })
}

fn over_float(a: i64, b: f64) -> Result<i64> {
    if b == 0.0 { Err(Error::division_by_zero()) } else { Ok((a as f64 / b).round_ties_even() as i64) }
}

fn over_integer(a: i64, b: i64) -> Result<i64> {
    if b == 0 { Err(Error::division_by_zero()) } else { Ok(a.wrapping_div(b)) }
}
