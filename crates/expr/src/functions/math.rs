//! Mathematical functions (manual 9.3).

mod buckets;
mod trigonometry;

use super::Kernel;
use super::arg::*;
use crate::error::{Error, Result};
use crate::io::float;
use crate::numeric::Numeric;
use crate::operators::{check_f64, power, sqrt};
use basalt_types::Datum;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    trigonometry::bind(name, args)
        .or_else(|| buckets::bind(name, args))
        .or_else(|| floats(name, args))
        .or_else(|| numerics(name, args))
        .or_else(|| integers(name, args))
        .or_else(|| others(name, args))
}

/// A function that yields NaN or an infinity only from such.
fn finite(input: f64, result: f64) -> Result<f64> {
    check_f64(result, input.is_infinite(), true)
}

fn domain(value: f64, fits: bool, result: f64) -> Result<f64> {
    if !fits && !value.is_nan() {
        return Err(Error::new("22003", "input is out of range"));
    }
    Ok(result)
}

fn log_of(value: f64, log: fn(f64) -> f64) -> Result<f64> {
    if value == 0.0 {
        return Err(Error::new("2201E", "cannot take logarithm of zero"));
    }
    if value < 0.0 {
        return Err(Error::new("2201E", "cannot take logarithm of a negative number"));
    }
    Ok(log(value))
}

fn floats(name: &str, args: &str) -> Option<Kernel> {
    if args == "float4" {
        return (name == "abs").then(|| kernel!(|a: F4| -> F4 { Ok(a.abs()) }));
    }
    if args == "float8,float8" {
        return Some(match name {
            "power" | "pow" => kernel!(|a: F8, b: F8| -> F8 { power(a, b) }),
            "atan2" => kernel!(|a: F8, b: F8| -> F8 { Ok(a.atan2(b)) }),
            _ => return None,
        });
    }
    if args != "float8" {
        return None;
    }
    Some(match name {
        "abs" => kernel!(|a: F8| -> F8 { Ok(a.abs()) }),
        "ceil" | "ceiling" => kernel!(|a: F8| -> F8 { Ok(a.ceil()) }),
        "floor" => kernel!(|a: F8| -> F8 { Ok(a.floor()) }),
        "round" => kernel!(|a: F8| -> F8 { Ok(a.round_ties_even()) }),
        "trunc" => kernel!(|a: F8| -> F8 { Ok(a.trunc()) }),
        "sign" => kernel!(|a: F8| -> F8 {
            Ok(if a > 0.0 {
                1.0
            } else if a < 0.0 {
                -1.0
            } else {
                0.0
            })
        }),
        "sqrt" => kernel!(|a: F8| -> F8 { sqrt(a) }),
        "cbrt" => kernel!(|a: F8| -> F8 { Ok(a.cbrt()) }),
        "exp" => kernel!(|a: F8| -> F8 { check_f64(a.exp(), a.is_infinite(), a == f64::NEG_INFINITY) }),
        "ln" => kernel!(|a: F8| -> F8 { log_of(a, f64::ln) }),
        "log" | "log10" => kernel!(|a: F8| -> F8 { log_of(a, f64::log10) }),
        "sin" => kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), a.sin()) }),
        "cos" => kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), a.cos()) }),
        "tan" => kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), a.tan()) }),
        "cot" => kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), 1.0 / a.tan()) }),
        "asin" => kernel!(|a: F8| -> F8 { domain(a, a.abs() <= 1.0, a.asin()) }),
        "acos" => kernel!(|a: F8| -> F8 { domain(a, a.abs() <= 1.0, a.acos()) }),
        "atan" => kernel!(|a: F8| -> F8 { Ok(a.atan()) }),
        "sinh" => kernel!(|a: F8| -> F8 { Ok(a.sinh()) }),
        "cosh" => kernel!(|a: F8| -> F8 { Ok(a.cosh()) }),
        "tanh" => kernel!(|a: F8| -> F8 { Ok(a.tanh()) }),
        "degrees" => kernel!(|a: F8| -> F8 { finite(a, a / (std::f64::consts::PI / 180.0)) }),
        "radians" => kernel!(|a: F8| -> F8 { finite(a, a * (std::f64::consts::PI / 180.0)) }),
        _ => return None,
    })
}

fn numerics(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("abs", "numeric") => kernel!(|a: Num| -> Num { Ok(a.abs()) }),
        ("ceil" | "ceiling", "numeric") => kernel!(|a: Num| -> Num { a.ceil() }),
        ("floor", "numeric") => kernel!(|a: Num| -> Num { a.floor() }),
        ("round", "numeric") => kernel!(|a: Num| -> Num { a.round(0) }),
        ("round", "numeric,int4") => kernel!(|a: Num, decimals: I4| -> Num { a.round(decimals) }),
        ("trunc", "numeric") => kernel!(|a: Num| -> Num { a.trunc(0) }),
        ("trunc", "numeric,int4") => kernel!(|a: Num, decimals: I4| -> Num { a.trunc(decimals) }),
        ("sign", "numeric") => kernel!(|a: Num| -> Num { Ok(a.sign()) }),
        ("sqrt", "numeric") => kernel!(|a: Num| -> Num { a.sqrt() }),
        ("exp", "numeric") => kernel!(|a: Num| -> Num { a.exp() }),
        ("ln", "numeric") => kernel!(|a: Num| -> Num { a.ln() }),
        ("log" | "log10", "numeric") => kernel!(|a: Num| -> Num { a.log10() }),
        ("log", "numeric,numeric") => kernel!(|base: Num, a: Num| -> Num { base.log(&a) }),
        ("power" | "pow", "numeric,numeric") => kernel!(|a: Num, b: Num| -> Num { a.power(&b) }),
        ("mod", "numeric,numeric") => kernel!(|a: Num, b: Num| -> Num { a.rem(&b) }),
        ("div", "numeric,numeric") => kernel!(|a: Num, b: Num| -> Num { a.div_trunc(&b) }),
        ("scale", "numeric") => {
            kernel!(|a: Num| -> Opt<I4> { Ok(a.is_finite().then(|| i32::from(a.scale()))) })
        }
        ("min_scale", "numeric") => {
            kernel!(|a: Num| -> Opt<I4> { Ok(a.is_finite().then(|| i32::from(a.trim_scale().scale()))) })
        }
        ("gcd", "numeric,numeric") => kernel!(|a: Num, b: Num| -> Num { a.gcd(&b) }),
        ("lcm", "numeric,numeric") => kernel!(|a: Num, b: Num| -> Num { a.lcm(&b) }),
        ("trim_scale", "numeric") => kernel!(|a: Num| -> Num { Ok(a.trim_scale()) }),
        _ => return None,
    })
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

macro_rules! integer {
    ($name:expr, $args:expr, $type:literal, $pair:literal, $marker:ty, $native:ty, $sql:literal) => {
        match ($name, $args) {
            ("abs", $type) => {
                return Some(kernel!(|a: $marker| -> $marker {
                    a.checked_abs().ok_or_else(|| Error::out_of_range($sql))
                }));
            }
            ("mod", $pair) => {
                return Some(kernel!(|a: $marker, b: $marker| -> $marker {
                    if b == 0 { Err(Error::division_by_zero()) } else { Ok(a.wrapping_rem(b)) }
                }));
            }
            ("gcd", $pair) => {
                return Some(kernel!(|a: $marker, b: $marker| -> $marker {
                    let divisor = gcd(i64::from(a).unsigned_abs(), i64::from(b).unsigned_abs());
                    <$native>::try_from(divisor).map_err(|_| Error::out_of_range($sql))
                }));
            }
            ("lcm", $pair) => {
                return Some(kernel!(|a: $marker, b: $marker| -> $marker {
                    if a == 0 || b == 0 {
                        return Ok(0);
                    }
                    let (a, b) = (i64::from(a).unsigned_abs(), i64::from(b).unsigned_abs());
                    let multiple =
                        (a / gcd(a, b)).checked_mul(b).and_then(|multiple| <$native>::try_from(multiple).ok());
                    multiple.ok_or_else(|| Error::out_of_range($sql))
                }));
            }
            _ => {}
        }
    };
}

fn integers(name: &str, args: &str) -> Option<Kernel> {
    integer!(name, args, "int2", "int2,int2", I2, i16, "smallint");
    integer!(name, args, "int4", "int4,int4", I4, i32, "integer");
    integer!(name, args, "int8", "int8,int8", I8, i64, "bigint");
    None
}

/// `n!`.
fn factorial(n: i64) -> Result<Numeric> {
    if n < 0 {
        return Err(Error::new("22003", "factorial of a negative number is undefined"));
    }
    if n > 32_177 {
        return Err(Error::numeric_overflow());
    }
    (2..=n).try_fold(Numeric::ONE, |product, factor| product.mul(&Numeric::from_scaled(i128::from(factor), 0)))
}

fn others(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("pi", "-") => scalar!(|_, _| Ok(Datum::F64(std::f64::consts::PI))),
        ("random", "-") => scalar!(|_, info| Ok(Datum::F64(info.ctx.random_unit()))),
        ("setseed", "float8") => scalar!(|args, info| {
            let Datum::F64(seed) = args[0] else { return Err(mismatch(&info.arg_types[0], &args[0])) };
            if !(-1.0..=1.0).contains(&seed) {
                let message = format!("setseed parameter {} is out of allowed range [-1,1]", float::general(seed, 6));
                return Err(Error::invalid_parameter(message));
            }
            info.ctx.seed_random(seed);
            Ok(Datum::text(""))
        }),
        ("factorial", "int8") => kernel!(|n: I8| -> Num { factorial(n) }),
        ("bit_count", "bytea") => {
            kernel!(|bytes: Byt| -> I8 { Ok(bytes.iter().map(|byte| i64::from(byte.count_ones())).sum()) })
        }
        _ => return None,
    })
}
