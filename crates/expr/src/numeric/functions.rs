//! Roots, exponentials, logarithms and powers.
//!
//! All are computed on big integers at a fixed point some digits beyond the result's scale, then rounded.
//! The result's scale follows PostgreSQL: 16 significant digits, and no fewer decimals than the arguments.

use super::*;

/// Decimals computed beyond the result's.
const GUARD_DIGITS: i32 = 12;
const LOG10_E: f64 = std::f64::consts::LOG10_E;

fn result_scale(weight: i32, arguments: &[&Numeric]) -> i32 {
    let least = arguments.iter().map(|value| i32::from(value.scale)).max().unwrap_or(0);
    (SIGNIFICANT_DIGITS_MIN - weight).max(least).clamp(0, RESULT_SCALE_MAX)
}

/// A value times 10^scale, cut where it has more decimals.
fn fixed(value: &Numeric, scale: i32) -> BigInt {
    let shift = scale - i32::from(value.scale);
    if shift >= 0 {
        value.big() * big_power_of_ten(shift as u32)
    } else {
        value.big() / big_power_of_ten(shift.unsigned_abs())
    }
}

fn unfixed(value: BigInt, from: i32, to: i32) -> Result<Numeric> {
    debug_assert!(from >= to);
    Numeric::from_big(div_round_big(&value, &big_power_of_ten((from - to) as u32)), to)
}

/// `ln(1 + x)` scaled, for arguments near 1, as `2 atanh((y − 1) / (y + 1))`.
fn ln_series(value: &BigInt, one: &BigInt) -> BigInt {
    let ratio = (value - one) * one / (value + one);
    let square = &ratio * &ratio / one;
    let (mut sum, mut power, mut divisor) = (ratio.clone(), ratio, 1u32);
    loop {
        power = power * &square / one;
        divisor += 2;
        let term = &power / divisor;
        if term.sign() == Sign::NoSign {
            return sum * 2;
        }
        sum += term;
    }
}

/// Natural logarithm of a positive value, scaled by 10^scale.
fn ln_fixed(value: &Numeric, scale: i32) -> BigInt {
    // Small differences from 1 need as many digits as the value itself has.
    let mut working = scale + GUARD_DIGITS;
    let exponent = value.leading_exponent().unwrap_or(0);
    if exponent < 0 {
        working += exponent.abs();
    }
    let one = big_power_of_ten(working as u32);
    let mut reduced = fixed(value, working);
    // Square roots bring it near 1; each halves the logarithm.
    let (low, high) = (&one * 9 / 10, &one * 11 / 10);
    let mut doublings = 0u32;
    while reduced < low || reduced > high {
        reduced = (reduced * &one).sqrt();
        doublings += 1;
    }
    let scaled = ln_series(&reduced, &one) << doublings;
    div_round_big(&scaled, &big_power_of_ten((working - scale) as u32))
}

/// Digits that repeated square roots cost `ln_fixed`.
fn ln_guard(value: &Numeric) -> i32 {
    value.leading_exponent().map_or(0, |exponent| (f64::from(exponent.abs() + 1).log2() as i32) + 6)
}

/// `e^x` where x is scaled by 10^scale; the result is, too.
fn exp_fixed(exponent: &BigInt, scale: i32) -> BigInt {
    // Halve until the series is short, then square as often.
    let halvings = (exponent.bits() as i64 - big_power_of_ten(scale as u32).bits() as i64 + 8).max(0) as u32;
    let working = scale + GUARD_DIGITS + halvings as i32;
    let one = big_power_of_ten(working as u32);
    let reduced = (exponent * big_power_of_ten((working - scale) as u32)) >> halvings;
    let (mut sum, mut term, mut n) = (one.clone(), one.clone(), 0u32);
    loop {
        n += 1;
        term = term * &reduced / &one / n;
        if term.magnitude().bits() <= 1 {
            break;
        }
        sum += &term;
    }
    for _ in 0..halvings {
        sum = &sum * &sum / &one;
    }
    div_round_big(&sum, &big_power_of_ten((working - scale) as u32))
}

/// PostgreSQL's estimate of the decimal weight of a logarithm, which its scale goes by.
fn ln_weight(value: &Numeric) -> i32 {
    if value.signum() <= 0 {
        return 0;
    }
    let (low, high) = (Numeric::from_scaled(9, 1), Numeric::from_scaled(11, 1));
    if *value >= low && *value <= high {
        let difference = value.sub(&Numeric::ONE).unwrap_or(Numeric::ZERO);
        return difference.leading_exponent().unwrap_or(0);
    }
    let (weight, digits) = value.base_10000();
    let mut leading = f64::from(digits.first().copied().unwrap_or(1));
    let mut exponent = i32::from(weight) * 4;
    if let Some(next) = digits.get(1) {
        leading = leading * 10_000.0 + f64::from(*next);
        exponent -= 4;
    }
    let ln = leading.ln() + f64::from(exponent) * std::f64::consts::LN_10;
    ln.abs().log10() as i32
}

fn no_logarithm(value: &Numeric) -> Option<Error> {
    match value.signum() {
        _ if value.is_nan() => None,
        0 => Some(Error::new("2201E", "cannot take logarithm of zero")),
        -1 => Some(Error::new("2201E", "cannot take logarithm of a negative number")),
        _ => None,
    }
}

impl Numeric {
    pub fn sqrt(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.signum() < 0 {
            return Err(Error::new("2201F", "cannot take square root of a negative number"));
        }
        if self.is_infinite() {
            return Ok(Numeric::INFINITY);
        }
        let (weight, _) = self.leading_digit();
        let scale = result_scale(weight * 2 + 1, &[self]);
        // One digit more than wanted, and what is cut off can only be below one half.
        let root = fixed(self, 2 * (scale + 1)).sqrt();
        unfixed(root, scale + 1, scale)
    }

    pub fn exp(&self) -> Result<Numeric> {
        if self.is_nan() {
            return Ok(Numeric::NAN);
        }
        if self.is_infinite() {
            return Ok(if self.signum() > 0 { Numeric::INFINITY } else { Numeric::ZERO });
        }
        let approximate = self.to_f64().unwrap_or(if self.signum() > 0 { f64::MAX } else { f64::MIN });
        let weight = (approximate * LOG10_E).clamp(-2000.0, 2000.0) as i32;
        let scale = result_scale(weight, &[self]);
        self.exp_at(approximate, scale)
    }

    fn exp_at(&self, approximate: f64, scale: i32) -> Result<Numeric> {
        let digits = approximate * LOG10_E;
        if digits > f64::from(RESULT_SCALE_MAX) * 3.0 {
            return Err(Error::numeric_overflow());
        }
        if digits < -f64::from(RESULT_SCALE_MAX) * 3.0 {
            return Ok(Numeric::from_scaled(0, scale as u16));
        }
        let working = scale + digits.max(0.0) as i32 + GUARD_DIGITS;
        unfixed(exp_fixed(&fixed(self, working), working), working, scale)
    }

    pub fn ln(&self) -> Result<Numeric> {
        if let Some(error) = no_logarithm(self) {
            return Err(error);
        }
        if !self.is_finite() {
            return Ok(self.clone());
        }
        let scale = result_scale(ln_weight(self), &[self]);
        let working = scale + ln_guard(self);
        unfixed(ln_fixed(self, working), working, scale)
    }

    /// `log(x)`: base 10.
    pub fn log10(&self) -> Result<Numeric> {
        Numeric::from(10i64).log(self)
    }

    /// `log(base, x)` with `self` as the base.
    pub fn log(&self, value: &Numeric) -> Result<Numeric> {
        if self.is_nan() || value.is_nan() {
            return Ok(Numeric::NAN);
        }
        if let Some(error) = no_logarithm(self).or_else(|| no_logarithm(value)) {
            return Err(error);
        }
        match (self.is_finite(), value.is_finite()) {
            (true, true) => {}
            (true, false) => return Ok(Numeric::INFINITY),
            (false, true) => return Ok(Numeric::ZERO),
            (false, false) => return Ok(Numeric::NAN),
        }
        let scale = result_scale(ln_weight(value) - ln_weight(self), &[self, value]);
        let working = scale + GUARD_DIGITS + ln_guard(self) + ln_guard(value) + ln_weight(self).abs();
        let (numerator, denominator) = (ln_fixed(value, working), ln_fixed(self, working));
        if denominator.sign() == Sign::NoSign {
            return Err(Error::division_by_zero());
        }
        Numeric::from_big(div_round_big(&(numerator * big_power_of_ten(scale as u32)), &denominator), scale)
    }

    pub fn power(&self, exponent: &Numeric) -> Result<Numeric> {
        if let Some(special) = self.power_special(exponent)? {
            return Ok(special);
        }
        let whole = exponent.trunc(0)?;
        if whole == *exponent
            && let Some(times) = whole.to_i128().and_then(|times| i32::try_from(times).ok())
        {
            return self.power_integer(times);
        }
        if self.is_zero() {
            return Ok(Numeric::from_scaled(0, SIGNIFICANT_DIGITS_MIN as u16));
        }
        let negative = self.signum() < 0;
        let base = self.clone().abs();
        let weight = ln_weight(&base);
        let rough = (8 - weight).max(0);
        let rough_ln = unfixed(ln_fixed(&base, rough + 4), rough + 4, rough)?;
        let approximate = rough_ln.mul(exponent)?.to_f64().unwrap_or(f64::INFINITY);
        if approximate.abs() > f64::from(RESULT_SCALE_MAX) * 2.0 * 3.01 {
            if approximate > 0.0 {
                return Err(Error::numeric_overflow());
            }
            return Ok(Numeric::from_scaled(0, RESULT_SCALE_MAX as u16));
        }
        let digits = approximate * LOG10_E;
        let scale = result_scale(digits as i32, &[self, exponent]);
        // The product's error grows with the exponent's size.
        let size = exponent.leading_exponent().unwrap_or(0).max(0);
        let working = scale + digits.max(0.0) as i32 + size + GUARD_DIGITS + ln_guard(&base);
        let product = ln_fixed(&base, working) * fixed(exponent, working) / big_power_of_ten(working as u32);
        let result = unfixed(exp_fixed(&product, working), working, scale)?;
        // Only whole exponents too large for an i32 come here with a negative base.
        let odd = whole.rem(&Numeric::from(2i64))?.is_zero();
        Ok(if negative && !odd { -result } else { result })
    }

    /// Zero to a negative power, complex results, NaN and infinities (POSIX `pow`).
    fn power_special(&self, exponent: &Numeric) -> Result<Option<Numeric>> {
        if self.is_nan() || exponent.is_nan() {
            let one = (*self == Numeric::ONE) || exponent.is_zero();
            return Ok(Some(if one { Numeric::ONE } else { Numeric::NAN }));
        }
        if self.is_zero() && exponent.signum() < 0 {
            return Err(Error::new("2201F", "zero raised to a negative power is undefined"));
        }
        let whole = exponent.is_infinite() || exponent.trunc(0)? == *exponent;
        if self.signum() < 0 && !whole {
            let message = "a negative number raised to a non-integer power yields a complex result";
            return Err(Error::new("2201F", message));
        }
        if self.is_finite() && exponent.is_finite() {
            return Ok(None);
        }
        if *self == Numeric::ONE || exponent.is_zero() {
            return Ok(Some(Numeric::ONE));
        }
        if exponent.is_infinite() {
            let magnitude = self.clone().abs();
            let grows = (magnitude > Numeric::ONE) == (exponent.signum() > 0);
            return Ok(Some(match magnitude == Numeric::ONE {
                true => Numeric::ONE,
                false if grows => Numeric::INFINITY,
                false => Numeric::ZERO,
            }));
        }
        let odd = !exponent.rem(&Numeric::from(2i64))?.is_zero();
        Ok(Some(match (exponent.signum() < 0, self.signum() < 0 && odd) {
            (true, _) => Numeric::ZERO,
            (false, true) => Numeric::NEG_INFINITY,
            (false, false) => Numeric::INFINITY,
        }))
    }

    /// PostgreSQL 15 gives whole powers 16 decimals whatever their size.
    fn power_integer(&self, times: i32) -> Result<Numeric> {
        let digits = match self.leading_exponent() {
            Some(exponent) => {
                let mantissa = self.mantissa();
                f64::from(times) * (mantissa.log10() + f64::from(exponent))
            }
            None => 0.0,
        };
        if digits > INTEGER_DIGITS_MAX as f64 {
            return Err(Error::numeric_overflow());
        }
        let scale = i32::from(self.scale).clamp(SIGNIFICANT_DIGITS_MIN, RESULT_SCALE_MAX);
        if digits + 1.0 < -f64::from(scale) {
            return Ok(Numeric::from_scaled(0, scale as u16));
        }
        if times >= 0 && i64::from(self.scale) * i64::from(times) <= i64::from(scale) + 64 {
            let power = self.big().pow(times as u32);
            let from = i32::from(self.scale) * times;
            return match scale - from {
                more @ 0.. => Numeric::from_big(power * big_power_of_ten(more as u32), scale),
                _ => unfixed(power, from, scale),
            };
        }
        // Square and multiply at a fixed number of significant digits.
        let significant = scale + digits.max(0.0) as i32 + GUARD_DIGITS + f64::from(times).abs().log10() as i32;
        let (mut result, mut result_scale) = (BigInt::from(1), 0i64);
        let (mut square, mut square_scale) = (self.big(), i64::from(self.scale));
        let mut rest = times.unsigned_abs();
        while rest > 0 {
            if rest & 1 == 1 {
                (result, result_scale) = shorten(result * &square, result_scale + square_scale, significant);
            }
            rest >>= 1;
            if rest > 0 {
                (square, square_scale) = shorten(&square * &square, square_scale * 2, significant);
            }
        }
        let at = i64::from(scale);
        let (numerator, denominator) = match times < 0 {
            true => power_ratio(BigInt::from(1), result, at + result_scale),
            false => power_ratio(result, BigInt::from(1), at - result_scale),
        };
        Numeric::from_big(div_round_big(&numerator, &denominator), scale)
    }

    /// The leading digits as a number from 1 to 10.
    fn mantissa(&self) -> f64 {
        let text = self.big().magnitude().to_string();
        let digits = &text[..text.len().min(17)];
        digits.parse::<f64>().unwrap_or(1.0) / 10f64.powi(digits.len() as i32 - 1)
    }
}

/// `numerator · 10^shift / denominator`, not yet divided.
fn power_ratio(numerator: BigInt, denominator: BigInt, shift: i64) -> (BigInt, BigInt) {
    let power = big_power_of_ten(shift.unsigned_abs() as u32);
    if shift >= 0 { (numerator * power, denominator) } else { (numerator, denominator * power) }
}

/// Cuts a coefficient to about so many digits.
fn shorten(value: BigInt, scale: i64, digits: i32) -> (BigInt, i64) {
    let have = (value.bits() as f64 / std::f64::consts::LOG2_10) as i64;
    let drop = have - i64::from(digits);
    if drop <= 0 {
        return (value, scale);
    }
    (div_round_big(&value, &big_power_of_ten(drop as u32)), scale - drop)
}
