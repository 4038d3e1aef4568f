//! Arithmetic and bit operators over integers and floats; numeric's beyond [`super::decimal`].

use super::floats;
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::resolve::DecimalOp;

fn division_by_zero() -> Error {
    Error::division_by_zero()
}

/// A float result: infinite from finite operands overflowed, zero from others underflowed.
#[inline]
pub(crate) fn check_f64(result: f64, infinite_ok: bool, zero_ok: bool) -> Result<f64> {
    if result.is_infinite() && !infinite_ok {
        return Err(Error::new("22003", "value out of range: overflow"));
    }
    if result == 0.0 && !zero_ok {
        return Err(Error::new("22003", "value out of range: underflow"));
    }
    Ok(result)
}

#[inline]
fn check_f32(result: f32, infinite_ok: bool, zero_ok: bool) -> Result<f32> {
    check_f64(f64::from(result), infinite_ok, zero_ok).map(|_| result)
}

/// `+ - * /` for a pair of integer types, computed in the wider one.
macro_rules! integers {
    ($function:expr, $prefix:literal, $a:ty, $b:ty, $out:ty, $native:ty, $name:literal) => {
        match $function.strip_prefix($prefix) {
            Some("pl") => {
                return Some(kernel!(|a: $a, b: $b| -> $out {
                    <$native>::from(a).checked_add(<$native>::from(b)).ok_or_else(|| Error::out_of_range($name))
                }))
            }
            Some("mi") => {
                return Some(kernel!(|a: $a, b: $b| -> $out {
                    <$native>::from(a).checked_sub(<$native>::from(b)).ok_or_else(|| Error::out_of_range($name))
                }))
            }
            Some("mul") => {
                return Some(kernel!(|a: $a, b: $b| -> $out {
                    <$native>::from(a).checked_mul(<$native>::from(b)).ok_or_else(|| Error::out_of_range($name))
                }))
            }
            Some("div") => {
                return Some(kernel!(|a: $a, b: $b| -> $out {
                    match <$native>::from(b) {
                        0 => Err(division_by_zero()),
                        b => <$native>::from(a).checked_div(b).ok_or_else(|| Error::out_of_range($name)),
                    }
                }))
            }
            _ => {}
        }
    };
}

/// What an integer type has beyond the four: remainder, sign, bits.
macro_rules! integer_only {
    ($function:expr, $prefix:literal, $marker:ty, $native:ty, $name:literal) => {
        match $function.strip_prefix($prefix) {
            Some("mod") => {
                return Some(kernel!(|a: $marker, b: $marker| -> $marker {
                    if b == 0 { Err(division_by_zero()) } else { Ok(a.wrapping_rem(b)) }
                }))
            }
            Some("um") => {
                return Some(kernel!(|a: $marker| -> $marker {
                    a.checked_neg().ok_or_else(|| Error::out_of_range($name))
                }))
            }
            Some("up") => return Some(kernel!(|a: $marker| -> $marker { Ok(a) })),
            Some("abs") => {
                return Some(kernel!(|a: $marker| -> $marker {
                    a.checked_abs().ok_or_else(|| Error::out_of_range($name))
                }))
            }
            Some("and") => return Some(kernel!(|a: $marker, b: $marker| -> $marker { Ok(a & b) })),
            Some("or") => return Some(kernel!(|a: $marker, b: $marker| -> $marker { Ok(a | b) })),
            Some("xor") => return Some(kernel!(|a: $marker, b: $marker| -> $marker { Ok(a ^ b) })),
            Some("not") => return Some(kernel!(|a: $marker| -> $marker { Ok(!a) })),
            // Shifts count modulo the width that C computes in: 32 bits for smallint as well.
            Some("shl") => {
                return Some(kernel!(|a: $marker, b: I4| -> $marker {
                    Ok(if size_of::<$native>() == 2 {
                        i32::from(a as i16).wrapping_shl(b as u32) as $native
                    } else {
                        a.wrapping_shl(b as u32)
                    })
                }))
            }
            Some("shr") => {
                return Some(kernel!(|a: $marker, b: I4| -> $marker {
                    Ok(if size_of::<$native>() == 2 {
                        i32::from(a as i16).wrapping_shr(b as u32) as $native
                    } else {
                        a.wrapping_shr(b as u32)
                    })
                }))
            }
            _ => {}
        }
    };
}

macro_rules! floats {
    ($function:expr, $prefix:literal, $a:ty, $b:ty) => {
        match $function.strip_prefix($prefix) {
            Some("pl") => {
                return Some(kernel!(|a: $a, b: $b| -> F8 {
                    let (a, b) = (f64::from(a), f64::from(b));
                    check_f64(a + b, a.is_infinite() || b.is_infinite(), true)
                }))
            }
            Some("mi") => {
                return Some(kernel!(|a: $a, b: $b| -> F8 {
                    let (a, b) = (f64::from(a), f64::from(b));
                    check_f64(a - b, a.is_infinite() || b.is_infinite(), true)
                }))
            }
            Some("mul") => {
                return Some(kernel!(|a: $a, b: $b| -> F8 {
                    let (a, b) = (f64::from(a), f64::from(b));
                    check_f64(a * b, a.is_infinite() || b.is_infinite(), a == 0.0 || b == 0.0)
                }))
            }
            Some("div") => {
                return Some(kernel!(|a: $a, b: $b| -> F8 {
                    let (a, b) = (f64::from(a), f64::from(b));
                    if b == 0.0 && !a.is_nan() {
                        return Err(division_by_zero());
                    }
                    check_f64(a / b, a.is_infinite(), a == 0.0 || b.is_infinite())
                }))
            }
            _ => {}
        }
    };
}

fn float4(function: &str) -> Option<Kernel> {
    Some(match function {
        "float4pl" => kernel!(|a: F4, b: F4| -> F4 { check_f32(a + b, a.is_infinite() || b.is_infinite(), true) }),
        "float4mi" => kernel!(|a: F4, b: F4| -> F4 { check_f32(a - b, a.is_infinite() || b.is_infinite(), true) }),
        "float4mul" => {
            kernel!(|a: F4, b: F4| -> F4 { check_f32(a * b, a.is_infinite() || b.is_infinite(), a == 0.0 || b == 0.0) })
        }
        "float4div" => kernel!(|a: F4, b: F4| -> F4 {
            if b == 0.0 && !a.is_nan() {
                return Err(division_by_zero());
            }
            check_f32(a / b, a.is_infinite(), a == 0.0 || b.is_infinite())
        }),
        "float4um" => kernel!(|a: F4| -> F4 { Ok(-a) }),
        "float4up" => kernel!(|a: F4| -> F4 { Ok(a) }),
        "float4abs" => kernel!(|a: F4| -> F4 { Ok(a.abs()) }),
        _ => return None,
    })
}

fn float8(function: &str) -> Option<Kernel> {
    Some(match function {
        "float8um" => kernel!(|a: F8| -> F8 { Ok(-a) }),
        "float8up" => kernel!(|a: F8| -> F8 { Ok(a) }),
        "float8abs" => kernel!(|a: F8| -> F8 { Ok(a.abs()) }),
        "dpow" => kernel!(|a: F8, b: F8| -> F8 { power(a, b) }),
        "dsqrt" => kernel!(|a: F8| -> F8 { sqrt(a) }),
        "dcbrt" => kernel!(|a: F8| -> F8 { Ok(a.cbrt()) }),
        _ => return None,
    })
}

pub(crate) fn sqrt(value: f64) -> Result<f64> {
    if value < 0.0 {
        return Err(Error::new("2201F", "cannot take square root of a negative number"));
    }
    Ok(value.sqrt())
}

pub(crate) fn power(base: f64, exponent: f64) -> Result<f64> {
    if base == 0.0 && exponent < 0.0 {
        return Err(Error::new("2201F", "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        return Err(Error::new("2201F", "a negative number raised to a non-integer power yields a complex result"));
    }
    let result = base.powf(exponent);
    let finite = base.is_finite() && exponent.is_finite();
    check_f64(result, !finite, !finite || base == 0.0)
}

fn numeric(function: &str) -> Option<Kernel> {
    Some(match function {
        "numeric_add" => super::decimal::kernel(DecimalOp::Add),
        "numeric_sub" => super::decimal::kernel(DecimalOp::Sub),
        "numeric_mul" => super::decimal::kernel(DecimalOp::Mul),
        "numeric_div" => kernel!(|a: Num, b: Num| -> Num { a.div(&b) }),
        "numeric_mod" => kernel!(|a: Num, b: Num| -> Num { a.rem(&b) }),
        "numeric_power" => kernel!(|a: Num, b: Num| -> Num { a.power(&b) }),
        "numeric_uminus" => kernel!(|a: Num| -> Num { Ok(-a) }),
        "numeric_uplus" => kernel!(|a: Num| -> Num { Ok(a) }),
        "numeric_abs" => kernel!(|a: Num| -> Num { Ok(a.abs()) }),
        _ => return None,
    })
}

pub(super) fn bind(function: &str) -> Option<Kernel> {
    integers!(function, "int2", I2, I2, I2, i16, "smallint");
    integers!(function, "int4", I4, I4, I4, i32, "integer");
    integers!(function, "int8", I8, I8, I8, i64, "bigint");
    integers!(function, "int24", I2, I4, I4, i32, "integer");
    integers!(function, "int42", I4, I2, I4, i32, "integer");
    integers!(function, "int28", I2, I8, I8, i64, "bigint");
    integers!(function, "int82", I8, I2, I8, i64, "bigint");
    integers!(function, "int48", I4, I8, I8, i64, "bigint");
    integers!(function, "int84", I8, I4, I8, i64, "bigint");
    integer_only!(function, "int2", I2, i16, "smallint");
    integer_only!(function, "int4", I4, i32, "integer");
    integer_only!(function, "int8", I8, i64, "bigint");
    if let Some(kernel) = floats::bind(function) {
        return Some(kernel);
    }
    floats!(function, "float48", F4, F8);
    floats!(function, "float84", F8, F4);
    float4(function).or_else(|| float8(function)).or_else(|| numeric(function))
}
