//! `numeric`: exact decimals of any precision with a display scale, NaN and infinities.
//!
//! A finite value is `coefficient / 10^scale`, where the scale is PostgreSQL's display scale: the number
//! of decimals that it prints. Coefficients that fit an i128 stay in one, so the common case allocates
//! nothing; larger ones are big integers. Every operation picks the result scale as PostgreSQL's
//! `numeric.c` does, so that text comes out the same to the last digit (manual, 8.1.2 and 9.3).
//!
//! NaN equals NaN and sorts above everything, infinity included.

mod arithmetic;
mod convert;
mod functions;
mod sum;
#[cfg(test)]
mod tests;
mod text;

pub use arithmetic::precision_overflow;
pub use convert::encode_scaled;
pub(crate) use convert::parts_of;
pub use sum::NumericSum;
pub use text::{parse_small, write_scaled, write_stored};

use crate::error::{Error, Result};
use num_bigint::{BigInt, Sign};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Digits before the decimal point that the format holds.
pub(crate) const INTEGER_DIGITS_MAX: i64 = 131_072;
/// Decimals that the format holds.
pub(crate) const SCALE_MAX: i32 = 16_383;
/// Decimals that a result whose scale is chosen (division, roots, logarithms) may have.
pub(crate) const RESULT_SCALE_MAX: i32 = 1000;
/// Significant digits that such a result has at least.
pub(crate) const SIGNIFICANT_DIGITS_MIN: i32 = 16;

#[derive(Clone, Debug)]
enum Kind {
    Small(i128),
    /// Only what does not fit `Small`.
    Big(Box<BigInt>),
    Infinity,
    NegInfinity,
    Nan,
}

/// A `numeric` value. Equality, order and hash are those of the value: 1.0 equals 1.00.
#[derive(Clone, Debug)]
pub struct Numeric {
    kind: Kind,
    scale: u16,
}

const fn powers_of_ten() -> [i128; 39] {
    let mut powers = [1; 39];
    let mut i = 1;
    while i < 39 {
        powers[i] = powers[i - 1] * 10;
        i += 1;
    }
    powers
}

/// 10^0 … 10^38.
pub const POWERS_OF_TEN: [i128; 39] = powers_of_ten();

/// 10^exponent if an i128 holds it.
#[inline]
pub fn power_of_ten(exponent: u32) -> Option<i128> {
    POWERS_OF_TEN.get(exponent as usize).copied()
}

pub(crate) fn big_power_of_ten(exponent: u32) -> BigInt {
    match power_of_ten(exponent) {
        Some(power) => BigInt::from(power),
        None => BigInt::from(10).pow(exponent),
    }
}

/// `numerator / denominator`, halves away from zero. `None` on overflow.
#[inline]
pub fn div_round_i128(numerator: i128, denominator: i128) -> Option<i128> {
    let quotient = numerator.checked_div(denominator)?;
    let remainder = numerator.checked_rem(denominator)?.unsigned_abs();
    let divisor = denominator.unsigned_abs();
    if remainder >= divisor - remainder {
        let away = if (numerator < 0) == (denominator < 0) { 1 } else { -1 };
        quotient.checked_add(away)
    } else {
        Some(quotient)
    }
}

pub(crate) fn div_round_big(numerator: &BigInt, denominator: &BigInt) -> BigInt {
    let quotient = numerator / denominator;
    let remainder = numerator - &quotient * denominator;
    if remainder.magnitude() * 2u8 >= *denominator.magnitude() {
        let positive = numerator.sign() == denominator.sign();
        quotient + if positive { 1 } else { -1 }
    } else {
        quotient
    }
}

/// Rescales a scaled integer, halves away from zero. `None` on overflow.
#[inline]
pub fn rescale_i128(value: i128, from_scale: i32, to_scale: i32) -> Option<i128> {
    match to_scale - from_scale {
        0 => Some(value),
        up @ 1.. => match power_of_ten(up as u32) {
            Some(power) => value.checked_mul(power),
            None => (value == 0).then_some(0),
        },
        down => match power_of_ten(down.unsigned_abs()) {
            Some(power) => div_round_i128(value, power),
            None => Some(0),
        },
    }
}

impl Numeric {
    pub const NAN: Numeric = Numeric { kind: Kind::Nan, scale: 0 };
    pub const INFINITY: Numeric = Numeric { kind: Kind::Infinity, scale: 0 };
    pub const NEG_INFINITY: Numeric = Numeric { kind: Kind::NegInfinity, scale: 0 };
    pub const ZERO: Numeric = Numeric { kind: Kind::Small(0), scale: 0 };
    pub const ONE: Numeric = Numeric { kind: Kind::Small(1), scale: 0 };

    /// `coefficient / 10^scale`.
    ///
    /// # Panics
    /// If the scale exceeds 16,383.
    #[inline]
    pub fn from_scaled(coefficient: i128, scale: u16) -> Numeric {
        assert!(i32::from(scale) <= SCALE_MAX, "scale {scale} exceeds {SCALE_MAX}");
        Numeric { kind: Kind::Small(coefficient), scale }
    }

    /// As [`Numeric::from_scaled`] for any size; 22003 beyond what the format holds.
    pub(crate) fn from_big(coefficient: BigInt, scale: i32) -> Result<Numeric> {
        debug_assert!((0..=SCALE_MAX).contains(&scale));
        if let Ok(small) = i128::try_from(&coefficient) {
            return Ok(Numeric { kind: Kind::Small(small), scale: scale as u16 });
        }
        // A digit is more than 3.32 bits: count digits only where bits leave doubt.
        let digits_at_least = (coefficient.bits() as f64 / std::f64::consts::LOG2_10).floor() as i64;
        if digits_at_least - i64::from(scale) >= INTEGER_DIGITS_MAX
            && *coefficient.magnitude()
                >= *BigInt::from(10).pow((INTEGER_DIGITS_MAX + i64::from(scale)) as u32).magnitude()
        {
            return Err(Error::numeric_overflow());
        }
        Ok(Numeric { kind: Kind::Big(Box::new(coefficient)), scale: scale as u16 })
    }

    /// Decimals that PostgreSQL prints.
    pub fn scale(&self) -> u16 {
        self.scale
    }

    pub fn is_nan(&self) -> bool {
        matches!(self.kind, Kind::Nan)
    }

    pub fn is_infinite(&self) -> bool {
        matches!(self.kind, Kind::Infinity | Kind::NegInfinity)
    }

    pub fn is_finite(&self) -> bool {
        matches!(self.kind, Kind::Small(_) | Kind::Big(_))
    }

    pub fn is_zero(&self) -> bool {
        matches!(self.kind, Kind::Small(0))
    }

    /// -1, 0 or 1; NaN counts as positive.
    pub fn signum(&self) -> i32 {
        match &self.kind {
            Kind::Small(value) => value.signum() as i32,
            Kind::Big(value) if value.sign() == Sign::Minus => -1,
            Kind::NegInfinity => -1,
            _ => 1,
        }
    }

    /// Coefficient and scale, if the value is finite and its coefficient fits.
    #[inline]
    pub fn as_scaled(&self) -> Option<(i128, u16)> {
        match self.kind {
            Kind::Small(value) => Some((value, self.scale)),
            _ => None,
        }
    }

    /// The coefficient of a finite value.
    fn big(&self) -> BigInt {
        match &self.kind {
            Kind::Small(value) => BigInt::from(*value),
            Kind::Big(value) => (**value).clone(),
            _ => BigInt::ZERO,
        }
    }

    /// The coefficient of a finite value at a scale not below its own.
    fn big_at(&self, scale: i32) -> BigInt {
        self.big() * big_power_of_ten((scale - i32::from(self.scale)) as u32)
    }

    /// Position of the first significant decimal digit (0 = units), and what leads there:
    /// `None` for zero.
    fn leading_exponent(&self) -> Option<i32> {
        let digits = match &self.kind {
            Kind::Small(0) => return None,
            Kind::Small(value) => value.unsigned_abs().ilog10() as i32 + 1,
            Kind::Big(value) => value.magnitude().to_string().len() as i32,
            _ => return None,
        };
        Some(digits - 1 - i32::from(self.scale))
    }

    /// The leading base-10,000 digit and its weight, which PostgreSQL's scale rules go by.
    fn leading_digit(&self) -> (i32, u32) {
        let Some(exponent) = self.leading_exponent() else { return (0, 0) };
        let weight = exponent.div_euclid(4);
        let drop = i32::from(self.scale) + 4 * weight;
        let digit = match &self.kind {
            Kind::Small(value) if drop >= 0 => value.unsigned_abs() / POWERS_OF_TEN[drop as usize] as u128,
            Kind::Small(value) => value.unsigned_abs() * POWERS_OF_TEN[-drop as usize] as u128,
            Kind::Big(value) => {
                let digit = value.magnitude() / big_power_of_ten(drop.max(0) as u32).magnitude();
                u128::try_from(&digit).unwrap_or(0)
            }
            _ => 0,
        };
        (weight, digit as u32)
    }

    /// Order among the not finite: -1 below, 1 and 2 above all finite values.
    fn rank(&self) -> i32 {
        match self.kind {
            Kind::Small(_) | Kind::Big(_) => 0,
            Kind::NegInfinity => -1,
            Kind::Infinity => 1,
            Kind::Nan => 2,
        }
    }

    /// The bytes that equal values share, and that sort as values do.
    pub fn key(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16);
        self.encode(&mut out);
        out.truncate(out.len() - 2);
        out
    }
}

impl PartialEq for Numeric {
    fn eq(&self, other: &Numeric) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Numeric {}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        let scale = self.scale.max(other.scale);
        if let (Kind::Small(left), Kind::Small(right)) = (&self.kind, &other.kind) {
            let left = power_of_ten(u32::from(scale - self.scale)).and_then(|power| left.checked_mul(power));
            let right = power_of_ten(u32::from(scale - other.scale)).and_then(|power| right.checked_mul(power));
            if let (Some(left), Some(right)) = (left, right) {
                return left.cmp(&right);
            }
        }
        match self.rank().cmp(&other.rank()) {
            Ordering::Equal if self.is_finite() => self.big_at(i32::from(scale)).cmp(&other.big_at(i32::from(scale))),
            order => order,
        }
    }
}

impl Hash for Numeric {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
