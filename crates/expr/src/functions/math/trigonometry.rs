//! Trigonometry in degrees, exact where a table of angles says so (manual table 9.7), and the inverse
//! hyperbolic functions by fdlibm's formulas, which C libraries use (Rust's own differ in the last digit).

use super::domain;
use crate::functions::Kernel;
use crate::functions::arg::*;

const RADIANS_PER_DEGREE: f64 = 0.017_453_292_519_943_295;

/// Sine of 0 to 30 degrees; 30 gives exactly one half.
fn sind_0_to_30(degrees: f64) -> f64 {
    (degrees * RADIANS_PER_DEGREE).sin() / (30.0 * RADIANS_PER_DEGREE).sin() / 2.0
}

/// Cosine of 0 to 60 degrees; 60 gives exactly one half.
fn cosd_0_to_60(degrees: f64) -> f64 {
    let from_one = 1.0 - (degrees * RADIANS_PER_DEGREE).cos();
    let of_60 = 1.0 - (60.0 * RADIANS_PER_DEGREE).cos();
    1.0 - from_one / of_60 / 2.0
}

/// Sine in the first quadrant.
fn sind_q1(degrees: f64) -> f64 {
    if degrees <= 30.0 { sind_0_to_30(degrees) } else { cosd_0_to_60(90.0 - degrees) }
}

/// Cosine in the first quadrant.
fn cosd_q1(degrees: f64) -> f64 {
    if degrees <= 60.0 { cosd_0_to_60(degrees) } else { sind_0_to_30(90.0 - degrees) }
}

/// An angle in the first quadrant, and whether the function's sign changes on the way there: at the axis of
/// the cosine (`at_90`), at 180 degrees, and for negative angles.
struct Reduced {
    angle: f64,
    negative: bool,
    past_180: bool,
    past_90: bool,
}

fn reduce(degrees: f64) -> Reduced {
    let mut angle = degrees % 360.0;
    let negative = angle < 0.0;
    // Zero keeps its sign.
    if negative {
        angle = -angle;
    }
    let past_180 = angle > 180.0;
    if past_180 {
        angle = 360.0 - angle;
    }
    let past_90 = angle > 90.0;
    if past_90 {
        angle = 180.0 - angle;
    }
    Reduced { angle, negative, past_180, past_90 }
}

fn signed(value: f64, negative: bool) -> f64 {
    if negative { -value } else { value }
}

fn sind(degrees: f64) -> f64 {
    let at = reduce(degrees);
    signed(sind_q1(at.angle), at.negative != at.past_180)
}

fn cosd(degrees: f64) -> f64 {
    let at = reduce(degrees);
    signed(cosd_q1(at.angle), at.past_90)
}

/// Tangent and cotangent change sign wherever either of their parts does; no zero is negative.
fn ratio(degrees: f64, of: fn(f64) -> f64) -> f64 {
    let at = reduce(degrees);
    let result = signed(of(at.angle) / of(45.0), at.negative ^ at.past_180 ^ at.past_90);
    if result == 0.0 { 0.0 } else { result }
}

fn asind_q1(value: f64) -> f64 {
    if value <= 0.5 { value.asin() / 0.5f64.asin() * 30.0 } else { 90.0 - value.acos() / 0.5f64.acos() * 60.0 }
}

fn acosd_q1(value: f64) -> f64 {
    if value <= 0.5 { 90.0 - value.asin() / 0.5f64.asin() * 30.0 } else { value.acos() / 0.5f64.acos() * 60.0 }
}

/// fdlibm's `asinh`.
pub(super) fn asinh(value: f64) -> f64 {
    let size = value.abs();
    let result = if size < 2f64.powi(-28) || !value.is_finite() {
        return value;
    } else if size > 2f64.powi(28) {
        size.ln() + std::f64::consts::LN_2
    } else if size > 2.0 {
        (2.0 * size + 1.0 / ((size * size + 1.0).sqrt() + size)).ln()
    } else {
        let square = size * size;
        (size + square / (1.0 + (1.0 + square).sqrt())).ln_1p()
    };
    result.copysign(value)
}

/// fdlibm's `acosh` of a value from 1 on.
pub(super) fn acosh(value: f64) -> f64 {
    if value == 1.0 || !value.is_finite() {
        return if value == 1.0 { 0.0 } else { value };
    }
    if value > 2f64.powi(28) {
        return value.ln() + std::f64::consts::LN_2;
    }
    if value > 2.0 {
        return (2.0 * value - 1.0 / (value + (value * value - 1.0).sqrt())).ln();
    }
    let above = value - 1.0;
    (above + (2.0 * above + above * above).sqrt()).ln_1p()
}

/// fdlibm's `atanh` of a value from -1 to 1.
pub(super) fn atanh(value: f64) -> f64 {
    let size = value.abs();
    if size < 2f64.powi(-28) || value.is_nan() {
        return value;
    }
    if size == 1.0 {
        return f64::INFINITY.copysign(value);
    }
    let twice = size + size;
    let result = if size < 0.5 {
        0.5 * (twice + twice * size / (1.0 - size)).ln_1p()
    } else {
        0.5 * (twice / (1.0 - size)).ln_1p()
    };
    result.copysign(value)
}

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("sind", "float8") => kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), sind(a)) }),
        ("cosd", "float8") => kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), cosd(a)) }),
        ("tand", "float8") => {
            kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), ratio(a, |angle| sind_q1(angle) / cosd_q1(angle))) })
        }
        ("cotd", "float8") => {
            kernel!(|a: F8| -> F8 { domain(a, a.is_finite(), ratio(a, |angle| cosd_q1(angle) / sind_q1(angle))) })
        }
        ("asind", "float8") => {
            kernel!(|a: F8| -> F8 { domain(a, a.abs() <= 1.0, if a >= 0.0 { asind_q1(a) } else { -asind_q1(-a) }) })
        }
        ("acosd", "float8") => kernel!(|a: F8| -> F8 {
            domain(a, a.abs() <= 1.0, if a >= 0.0 { acosd_q1(a) } else { 90.0 + asind_q1(-a) })
        }),
        ("atand", "float8") => kernel!(|a: F8| -> F8 { Ok(a.atan() / 1f64.atan() * 45.0) }),
        ("atan2d", "float8,float8") => kernel!(|a: F8, b: F8| -> F8 { Ok(a.atan2(b) / 1f64.atan() * 45.0) }),
        ("asinh", "float8") => kernel!(|a: F8| -> F8 { Ok(asinh(a)) }),
        ("acosh", "float8") => kernel!(|a: F8| -> F8 { domain(a, a >= 1.0, acosh(a)) }),
        ("atanh", "float8") => kernel!(|a: F8| -> F8 { domain(a, a.abs() <= 1.0, atanh(a)) }),
        _ => return None,
    })
}
