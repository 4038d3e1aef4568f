//! The four operations and rounding, with PostgreSQL's result scales.

use super::*;

impl std::ops::Neg for Numeric {
    type Output = Numeric;

    fn neg(self) -> Numeric {
        let kind = match self.kind {
            Kind::Small(value) => match value.checked_neg() {
                Some(value) => Kind::Small(value),
                None => Kind::Big(Box::new(-BigInt::from(value))),
            },
            Kind::Big(value) => return Numeric::from_big(-*value, i32::from(self.scale)).expect("as large as before"),
            Kind::Infinity => Kind::NegInfinity,
            Kind::NegInfinity => Kind::Infinity,
            Kind::Nan => Kind::Nan,
        };
        Numeric { kind, scale: self.scale }
    }
}

impl Numeric {
    pub fn abs(self) -> Numeric {
        if self.signum() < 0 { -self } else { self }
    }

    /// `sign()`: -1, 0, 1 or NaN.
    pub fn sign(&self) -> Numeric {
        if self.is_nan() { Numeric::NAN } else { Numeric::from(i64::from(self.signum())) }
    }

    /// Both coefficients at the greater scale, if they fit.
    #[inline]
    fn aligned(&self, other: &Numeric) -> Option<(i128, i128, u16)> {
        let (Kind::Small(left), Kind::Small(right)) = (&self.kind, &other.kind) else { return None };
        let scale = self.scale.max(other.scale);
        let left = rescale_i128(*left, i32::from(self.scale), i32::from(scale))?;
        let right = rescale_i128(*right, i32::from(other.scale), i32::from(scale))?;
        Some((left, right, scale))
    }

    pub fn add(&self, other: &Numeric) -> Result<Numeric> {
        if let Some((left, right, scale)) = self.aligned(other)
            && let Some(sum) = left.checked_add(right)
        {
            return Ok(Numeric { kind: Kind::Small(sum), scale });
        }
        match (self.rank(), other.rank()) {
            (0, 0) => {
                let scale = i32::from(self.scale.max(other.scale));
                Numeric::from_big(self.big_at(scale) + other.big_at(scale), scale)
            }
            (2, _) | (_, 2) | (1, -1) | (-1, 1) => Ok(Numeric::NAN),
            (0, _) => Ok(other.clone()),
            _ => Ok(self.clone()),
        }
    }

    pub fn sub(&self, other: &Numeric) -> Result<Numeric> {
        self.add(&-other.clone())
    }

    pub fn mul(&self, other: &Numeric) -> Result<Numeric> {
        let scale = i32::from(self.scale) + i32::from(other.scale);
        if let (Kind::Small(left), Kind::Small(right)) = (&self.kind, &other.kind)
            && scale <= SCALE_MAX
            && let Some(product) = left.checked_mul(*right)
        {
            return Ok(Numeric { kind: Kind::Small(product), scale: scale as u16 });
        }
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if !self.is_finite() || !other.is_finite() {
            return Ok(match self.signum() * other.signum() {
                0 => Numeric::NAN,
                1 => Numeric::INFINITY,
                _ => Numeric::NEG_INFINITY,
            });
        }
        let product = self.big() * other.big();
        if scale > SCALE_MAX {
            let rounded = div_round_big(&product, &big_power_of_ten((scale - SCALE_MAX) as u32));
            return Numeric::from_big(rounded, SCALE_MAX);
        }
        Numeric::from_big(product, scale)
    }

    /// The scale of `self / other` (PostgreSQL's `select_div_scale`): at least 16 significant digits, and
    /// no fewer decimals than either side has.
    pub fn division_scale(&self, other: &Numeric) -> u16 {
        let (weight_left, digit_left) = self.leading_digit();
        let (weight_right, digit_right) = other.leading_digit();
        let quotient_weight = weight_left - weight_right - i32::from(digit_left <= digit_right);
        (SIGNIFICANT_DIGITS_MIN - quotient_weight * 4)
            .max(i32::from(self.scale))
            .max(i32::from(other.scale))
            .clamp(0, RESULT_SCALE_MAX) as u16
    }

    pub fn div(&self, other: &Numeric) -> Result<Numeric> {
        match self.divide_special(other)? {
            Some(special) => Ok(special),
            None => self.div_to_scale(other, i32::from(self.division_scale(other))),
        }
    }

    /// The quotient of finite values, rounded at so many decimals; 22012 for a divisor of zero.
    pub fn div_at(&self, other: &Numeric, decimals: i32) -> Result<Numeric> {
        match self.divide_special(other)? {
            Some(special) => Ok(special),
            None => self.div_to_scale(other, decimals.clamp(0, SCALE_MAX)),
        }
    }

    /// The quotient of two finite values, the divisor not zero, rounded at `scale`.
    pub(super) fn div_to_scale(&self, other: &Numeric, scale: i32) -> Result<Numeric> {
        let shift = scale + i32::from(other.scale) - i32::from(self.scale);
        if let (Kind::Small(left), Kind::Small(right)) = (&self.kind, &other.kind)
            && shift >= 0
            && let Some(numerator) = power_of_ten(shift as u32).and_then(|power| left.checked_mul(power))
            && let Some(quotient) = div_round_i128(numerator, *right)
        {
            return Ok(Numeric { kind: Kind::Small(quotient), scale: scale as u16 });
        }
        let (mut numerator, mut denominator) = (self.big(), other.big());
        if shift >= 0 {
            numerator *= big_power_of_ten(shift as u32);
        } else {
            denominator *= big_power_of_ten(shift.unsigned_abs());
        }
        Numeric::from_big(div_round_big(&numerator, &denominator), scale)
    }

    /// Division where NaN, an infinity or zero takes part.
    fn divide_special(&self, other: &Numeric) -> Result<Option<Numeric>> {
        if self.is_nan() || other.is_nan() {
            return Ok(Some(Numeric::NAN));
        }
        if other.is_zero() {
            return Err(Error::division_by_zero());
        }
        Ok(match (self.is_finite(), other.is_finite()) {
            (true, true) => None,
            (true, false) => Some(Numeric::ZERO),
            (false, false) => Some(Numeric::NAN),
            (false, true) if self.signum() == other.signum() => Some(Numeric::INFINITY),
            (false, true) => Some(Numeric::NEG_INFINITY),
        })
    }

    /// `div()`: the quotient without its fraction.
    pub fn div_trunc(&self, other: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.divide_special(other)? {
            return Ok(special);
        }
        if let Some((left, right, _)) = self.aligned(other)
            && let Some(quotient) = left.checked_div(right)
        {
            return Ok(Numeric::from(quotient));
        }
        let scale = i32::from(self.scale.max(other.scale));
        Numeric::from_big(self.big_at(scale) / other.big_at(scale), 0)
    }

    /// `%`: the sign is the dividend's.
    pub fn rem(&self, other: &Numeric) -> Result<Numeric> {
        if self.is_nan() || other.is_nan() {
            return Ok(Numeric::NAN);
        }
        if other.is_zero() {
            return Err(Error::division_by_zero());
        }
        if self.is_infinite() {
            return Ok(Numeric::NAN);
        }
        if other.is_infinite() {
            return Ok(self.clone());
        }
        if let Some((left, right, scale)) = self.aligned(other)
            && let Some(remainder) = left.checked_rem(right)
        {
            return Ok(Numeric { kind: Kind::Small(remainder), scale });
        }
        let scale = i32::from(self.scale.max(other.scale));
        Numeric::from_big(self.big_at(scale) % other.big_at(scale), scale)
    }

    /// The greatest common divisor, not negative, with the greater scale; NaN if either is not finite.
    pub fn gcd(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let scale = i32::from(self.scale.max(other.scale));
        let (mut a, mut b) = (self.big_at(scale), other.big_at(scale));
        while b.sign() != Sign::NoSign {
            let rest = &a % &b;
            (a, b) = (b, rest);
        }
        Ok(Numeric::from_big(a, scale)?.abs())
    }

    /// The least common multiple, likewise.
    pub fn lcm(&self, other: &Numeric) -> Result<Numeric> {
        if !self.is_finite() || !other.is_finite() {
            return Ok(Numeric::NAN);
        }
        let scale = i32::from(self.scale.max(other.scale));
        if self.is_zero() || other.is_zero() {
            return Numeric::from_big(BigInt::ZERO, scale);
        }
        let divisor = self.gcd(other)?.big_at(scale);
        let multiple = self.big_at(scale) / divisor * other.big_at(scale);
        Ok(Numeric::from_big(multiple, scale)?.abs())
    }

    /// `round(x, decimals)`, halves away from zero. A negative count rounds before the decimal point.
    pub fn round(&self, decimals: i32) -> Result<Numeric> {
        self.at_decimals(decimals, div_round_i128, div_round_big)
    }

    /// `trunc(x, decimals)`.
    pub fn trunc(&self, decimals: i32) -> Result<Numeric> {
        self.at_decimals(decimals, |numerator, power| Some(numerator / power), |numerator, power| numerator / power)
    }

    fn at_decimals(
        &self,
        decimals: i32,
        small: impl Fn(i128, i128) -> Option<i128>,
        big: impl Fn(&BigInt, &BigInt) -> BigInt,
    ) -> Result<Numeric> {
        if !self.is_finite() {
            return Ok(self.clone());
        }
        // PostgreSQL limits the count so that nothing overflows on the way.
        let decimals = decimals.clamp(-(INTEGER_DIGITS_MAX as i32), SCALE_MAX);
        let scale = decimals.max(0);
        let drop = i32::from(self.scale) - decimals;
        if drop <= 0 {
            return self.with_scale(scale as u16);
        }
        let restore = (scale - decimals) as u32;
        if let Kind::Small(value) = &self.kind {
            let Some(power) = power_of_ten(drop as u32) else {
                return Ok(Numeric { kind: Kind::Small(0), scale: scale as u16 });
            };
            if let Some(value) = small(*value, power)
                && let Some(value) = power_of_ten(restore).and_then(|power| value.checked_mul(power))
            {
                return Ok(Numeric { kind: Kind::Small(value), scale: scale as u16 });
            }
        }
        Numeric::from_big(big(&self.big(), &big_power_of_ten(drop as u32)) * big_power_of_ten(restore), scale)
    }

    /// The same value printed with more decimals.
    fn with_scale(&self, scale: u16) -> Result<Numeric> {
        debug_assert!(scale >= self.scale);
        if let Kind::Small(value) = self.kind
            && let Some(value) = rescale_i128(value, i32::from(self.scale), i32::from(scale))
        {
            return Ok(Numeric { kind: Kind::Small(value), scale });
        }
        Numeric::from_big(self.big_at(i32::from(scale)), i32::from(scale))
    }

    pub fn ceil(&self) -> Result<Numeric> {
        let whole = self.trunc(0)?;
        if whole < *self { whole.add(&Numeric::ONE) } else { Ok(whole) }
    }

    pub fn floor(&self) -> Result<Numeric> {
        let whole = self.trunc(0)?;
        if whole > *self { whole.sub(&Numeric::ONE) } else { Ok(whole) }
    }

    /// The value without trailing zero decimals (`trim_scale`).
    pub fn trim_scale(&self) -> Numeric {
        let mut value = self.clone();
        match &mut value.kind {
            Kind::Small(coefficient) => {
                while value.scale > 0 && *coefficient % 10 == 0 {
                    *coefficient /= 10;
                    value.scale -= 1;
                }
            }
            Kind::Big(coefficient) => {
                let text = coefficient.magnitude().to_string();
                let zeros = text.len() - text.trim_end_matches('0').len();
                let drop = zeros.min(usize::from(value.scale));
                let trimmed = &**coefficient / big_power_of_ten(drop as u32);
                return Numeric::from_big(trimmed, i32::from(value.scale) - drop as i32)
                    .expect("no larger than before");
            }
            _ => {}
        }
        value
    }

    /// Applies `numeric(precision, scale)`: rounds, and refuses what has too many digits (22003).
    pub fn with_typmod(&self, precision: u16, scale: i16) -> Result<Numeric> {
        if !self.is_finite() {
            if self.is_nan() {
                return Ok(self.clone());
            }
            return Err(Error::numeric_field_overflow(format!(
                "A field with precision {precision}, scale {scale} cannot hold an infinite value."
            )));
        }
        let rounded = self.round(i32::from(scale))?;
        let digits_before_max = i32::from(precision) - i32::from(scale);
        if rounded.leading_exponent().is_some_and(|exponent| exponent >= digits_before_max) {
            return Err(precision_overflow(precision, scale));
        }
        Ok(rounded)
    }
}

/// 22003: a value has too many digits before the decimal point for its column.
#[cold]
pub fn precision_overflow(precision: u16, scale: i16) -> Error {
    let digits = i32::from(precision) - i32::from(scale);
    let bound = if digits == 0 { "1".to_string() } else { format!("10^{digits}") };
    Error::numeric_field_overflow(format!(
        "A field with precision {precision}, scale {scale} must round to an absolute value less than {bound}."
    ))
}
