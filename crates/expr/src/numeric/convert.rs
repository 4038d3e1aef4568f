//! `numeric` from and to machine numbers, stored bytes and datums.

use super::*;
use basalt_types::numeric::{
    CLASS_INFINITY, CLASS_NAN, CLASS_NEG_INFINITY, CLASS_NEGATIVE, CLASS_POSITIVE, CLASS_ZERO, Parts,
};
use basalt_types::{DataType, Datum, PhysType};

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Numeric {
            #[inline]
            fn from(value: $integer) -> Numeric {
                Numeric { kind: Kind::Small(i128::from(value)), scale: 0 }
            }
        }
    )*};
}
from_integers!(i16, i32, i64, u32, u64, i128);

impl Numeric {
    /// 15 significant digits, as PostgreSQL casts `double precision`.
    pub fn from_f64(value: f64) -> Numeric {
        Numeric::from_float(value, 14)
    }

    /// 6 significant digits, as PostgreSQL casts `real`.
    pub fn from_f32(value: f32) -> Numeric {
        Numeric::from_float(f64::from(value), 5)
    }

    fn from_float(value: f64, decimals: usize) -> Numeric {
        if value.is_nan() {
            return Numeric::NAN;
        }
        if value.is_infinite() {
            return if value < 0.0 { Numeric::NEG_INFINITY } else { Numeric::INFINITY };
        }
        let text = format!("{value:.decimals$e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let mantissa = mantissa.trim_end_matches('0').trim_end_matches('.');
        Numeric::parse(&format!("{mantissa}e{exponent}")).expect("a float is within the format")
    }

    /// The nearest float; 22003 where it would be infinite, or zero though the number is not.
    pub fn to_f64(&self) -> Result<f64> {
        match &self.kind {
            Kind::Small(value) if value.unsigned_abs() < 1 << 53 && self.scale <= 22 => {
                Ok(*value as f64 / POWERS_OF_TEN[usize::from(self.scale)] as f64)
            }
            Kind::Infinity => Ok(f64::INFINITY),
            Kind::NegInfinity => Ok(f64::NEG_INFINITY),
            Kind::Nan => Ok(f64::NAN),
            _ => {
                let text = self.to_string();
                match text.parse::<f64>() {
                    Ok(value) if value.is_finite() && (value != 0.0 || self.is_zero()) => Ok(value),
                    _ => Err(Error::new("22003", format!("\"{text}\" is out of range for type double precision"))),
                }
            }
        }
    }

    pub fn to_f32(&self) -> Result<f32> {
        match &self.kind {
            Kind::Infinity => Ok(f32::INFINITY),
            Kind::NegInfinity => Ok(f32::NEG_INFINITY),
            Kind::Nan => Ok(f32::NAN),
            _ => {
                let text = self.to_string();
                match text.parse::<f32>() {
                    Ok(value) if value.is_finite() && (value != 0.0 || self.is_zero()) => Ok(value),
                    _ => Err(Error::new("22003", format!("\"{text}\" is out of range for type real"))),
                }
            }
        }
    }

    /// Rounded half away from zero, if an i128 holds it.
    pub fn to_i128(&self) -> Option<i128> {
        self.to_scaled(0)
    }

    /// The coefficient at `scale`, rounded half away from zero, if finite and an i128 holds it.
    #[inline]
    pub fn to_scaled(&self, scale: i32) -> Option<i128> {
        match &self.kind {
            Kind::Small(value) => rescale_i128(*value, i32::from(self.scale), scale),
            Kind::Big(_) => {
                let rounded = self.round(scale).ok()?;
                match rounded.kind {
                    Kind::Small(value) => rescale_i128(value, i32::from(rounded.scale), scale),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Rounded half away from zero; 22003 as `smallint out of range`.
    pub fn to_i16(&self) -> Result<i16> {
        self.to_integer("smallint")
    }

    pub fn to_i32(&self) -> Result<i32> {
        self.to_integer("integer")
    }

    pub fn to_i64(&self) -> Result<i64> {
        self.to_integer("bigint")
    }

    fn to_integer<I: TryFrom<i128>>(&self, type_name: &str) -> Result<I> {
        match self.kind {
            Kind::Nan => return Err(Error::not_supported(format!("cannot convert NaN to {type_name}"))),
            Kind::Infinity | Kind::NegInfinity => {
                return Err(Error::not_supported(format!("cannot convert infinity to {type_name}")));
            }
            _ => {}
        }
        self.to_i128().and_then(|value| I::try_from(value).ok()).ok_or_else(|| Error::out_of_range(type_name))
    }

    /// Appends the variable stored form of [`basalt_types::numeric`].
    pub fn encode(&self, out: &mut Vec<u8>) {
        let class = match &self.kind {
            Kind::Small(value) => return encode_scaled(*value, self.scale, out),
            Kind::Big(value) if value.sign() == Sign::Minus => CLASS_NEGATIVE,
            Kind::Big(_) => CLASS_POSITIVE,
            Kind::Infinity => CLASS_INFINITY,
            Kind::NegInfinity => CLASS_NEG_INFINITY,
            Kind::Nan => CLASS_NAN,
        };
        let (weight, digits) = self.base_10000();
        basalt_types::numeric::encode(&Parts { class, weight, digits, display_scale: self.scale }, out);
    }

    /// Base-10,000 digits without zeros at either end, most significant first, and the first one's weight.
    pub(crate) fn base_10000(&self) -> (i16, Vec<u16>) {
        if !self.is_finite() || self.is_zero() {
            return (0, Vec::new());
        }
        let scale = usize::from(self.scale);
        let pad = (4 - scale % 4) % 4;
        let mut text = self.big().magnitude().to_string();
        text.extend(std::iter::repeat_n('0', pad));
        let lead = (4 - text.len() % 4) % 4;
        text.insert_str(0, &"000"[..lead]);
        let mut digits: Vec<u16> = text
            .as_bytes()
            .chunks_exact(4)
            .map(|group| group.iter().fold(0, |value, byte| value * 10 + u16::from(byte - b'0')))
            .collect();
        let weight = digits.len() as i64 - 1 - ((scale + pad) / 4) as i64;
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        digits.drain(..zeros);
        ((weight - zeros as i64) as i16, digits)
    }

    /// A finite value from base-10,000 digits, without what lies beyond `scale`.
    pub(crate) fn from_base_10000(negative: bool, weight: i32, digits: &[u16], scale: u16) -> Result<Numeric> {
        if weight > INTEGER_DIGITS_MAX as i32 / 4 || i32::from(scale) > SCALE_MAX {
            return Err(Error::numeric_overflow());
        }
        let shift = (weight - digits.len() as i32 + 1) * 4 + i32::from(scale);
        let text: String = digits.iter().map(|digit| format!("{digit:04}")).collect();
        let mut value = BigInt::parse_bytes(text.as_bytes(), 10).unwrap_or(BigInt::ZERO);
        if shift >= 0 {
            value *= big_power_of_ten(shift as u32);
        } else {
            value /= big_power_of_ten(shift.unsigned_abs());
        }
        Numeric::from_big(if negative { -value } else { value }, i32::from(scale))
    }

    /// Reads the variable stored form; XX001 if the bytes are damaged.
    pub fn decode(encoded: &[u8]) -> Result<Numeric> {
        if let Some(value) = decode_small(encoded) {
            return Ok(value);
        }
        Numeric::of_parts(&parts_of(encoded)?)
    }

    pub(super) fn of_parts(parts: &Parts) -> Result<Numeric> {
        match parts.class {
            CLASS_NAN => Ok(Numeric::NAN),
            CLASS_INFINITY => Ok(Numeric::INFINITY),
            CLASS_NEG_INFINITY => Ok(Numeric::NEG_INFINITY),
            CLASS_ZERO => Ok(Numeric::from_scaled(0, parts.display_scale.min(SCALE_MAX as u16))),
            class => Numeric::from_base_10000(
                class == CLASS_NEGATIVE,
                i32::from(parts.weight),
                &parts.digits,
                parts.display_scale,
            ),
        }
    }

    /// The value as a column of this numeric type holds it: rounded to its scale, checked (22003).
    pub fn to_datum(&self, ty: &DataType) -> Result<Datum> {
        let DataType::Numeric(Some((precision, scale))) = ty else {
            return Ok(Datum::Bytes(self.encoded().into()));
        };
        let fitted = self.with_typmod(*precision, *scale)?;
        let Some(phys @ (PhysType::I64 | PhysType::I128)) = ty.phys() else {
            return Ok(Datum::Bytes(fitted.encoded().into()));
        };
        let Some(value) = fitted.to_scaled(i32::from(*scale)) else {
            return Err(Error::not_supported(format!("{fitted} cannot be stored as {}", ty.sql_name())));
        };
        Ok(if phys == PhysType::I64 { Datum::I64(value as i64) } else { Datum::I128(value) })
    }

    /// Reads a datum of a numeric type.
    pub fn from_datum(datum: &Datum, ty: &DataType) -> Result<Numeric> {
        let scale = ty.decimal().map_or(0, |(_, scale)| scale as u16);
        match datum {
            Datum::I64(value) => Ok(Numeric::from_scaled(i128::from(*value), scale)),
            Datum::I128(value) => Ok(Numeric::from_scaled(*value, scale)),
            Datum::Bytes(bytes) => Numeric::decode(bytes),
            other => Err(Error::internal(format!("{other:?} is no {}", ty.sql_name()))),
        }
    }

    pub fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(18);
        self.encode(&mut out);
        out
    }
}

/// Appends the variable stored form of `value / 10^scale`.
pub fn encode_scaled(value: i128, scale: u16, out: &mut Vec<u8>) {
    if value == 0 {
        out.push(CLASS_ZERO);
        out.extend_from_slice(&scale.to_be_bytes());
        return;
    }
    // Digits from the least significant on. The lowest may be partly behind the scale.
    let pad = (4 - u32::from(scale) % 4) % 4;
    let lowest_base = 10u128.pow(4 - pad);
    let mut digits = [0u16; 12];
    let mut rest = value.unsigned_abs();
    digits[0] = (rest % lowest_base) as u16 * 10u16.pow(pad);
    rest /= lowest_base;
    let mut count = 1;
    while rest >> 64 != 0 {
        digits[count] = (rest % 10_000) as u16;
        rest /= 10_000;
        count += 1;
    }
    let mut rest = rest as u64;
    while rest != 0 {
        digits[count] = (rest % 10_000) as u16;
        rest /= 10_000;
        count += 1;
    }
    let weight = count as i32 - 1 - ((u32::from(scale) + pad) / 4) as i32;
    let low = digits.iter().take_while(|digit| **digit == 0).count();
    let (class, flip) = if value < 0 { (CLASS_NEGATIVE, 0xffff) } else { (CLASS_POSITIVE, 0u16) };
    out.push(class);
    out.extend_from_slice(&((weight as i16 as u16 ^ 0x8000) ^ flip).to_be_bytes());
    for digit in digits[low..count].iter().rev() {
        out.extend_from_slice(&((digit + 1) ^ flip).to_be_bytes());
    }
    out.extend_from_slice(&flip.to_be_bytes());
    out.extend_from_slice(&scale.to_be_bytes());
}

/// The digits of a stored value; XX001 if the bytes are damaged.
pub(crate) fn parts_of(encoded: &[u8]) -> Result<Parts> {
    let parts = basalt_types::numeric::decode(encoded);
    parts.ok_or_else(|| Error::new("XX001", format!("stored numeric of {} bytes is damaged", encoded.len())))
}

/// A stored value of up to nine digits, without allocating. `None` for others, damaged ones included.
pub(super) fn decode_small(encoded: &[u8]) -> Option<Numeric> {
    let (&class, rest) = encoded.split_first()?;
    let flip = match class {
        CLASS_POSITIVE => 0u16,
        CLASS_NEGATIVE => 0xffff,
        _ => return None,
    };
    if rest.len() < 8 || rest.len() > 24 || rest.len() % 2 != 0 {
        return None;
    }
    let word = |at: usize| u16::from_be_bytes([rest[at], rest[at + 1]]);
    let scale = word(rest.len() - 2);
    if word(rest.len() - 4) ^ flip != 0 || i32::from(scale) > SCALE_MAX {
        return None;
    }
    let weight = i32::from((word(0) ^ flip ^ 0x8000) as i16);
    let count = (rest.len() - 6) / 2;
    let mut value = 0i128;
    for i in 0..count {
        let digit = (word(2 + 2 * i) ^ flip).checked_sub(1).filter(|digit| *digit < 10_000)?;
        value = value * 10_000 + i128::from(digit);
    }
    let shift = (weight - count as i32 + 1) * 4 + i32::from(scale);
    let power = power_of_ten(shift.unsigned_abs())?;
    let value = if shift >= 0 { value.checked_mul(power)? } else { value / power };
    Some(Numeric::from_scaled(if flip == 0 { value } else { -value }, scale))
}
