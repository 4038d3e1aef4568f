//! Casts between numbers: integers, floats, `numeric`, booleans and object ids.

use crate::error::{Error, Result};
use crate::numeric::Numeric;
use basalt_types::{DataType, Datum};

/// `double precision` to `real`: 22003 where it would become infinite or vanish.
#[inline]
pub fn narrow_float(value: f64) -> Result<f32> {
    let narrow = value as f32;
    if narrow.is_infinite() && value.is_finite() {
        return Err(Error::new("22003", "value out of range: overflow"));
    }
    if narrow == 0.0 && value != 0.0 {
        return Err(Error::new("22003", "value out of range: underflow"));
    }
    Ok(narrow)
}

/// A float to an integer within the bounds, halves to even. The bounds are powers of two, exact as floats.
#[inline]
pub fn float_to_integer(value: f64, bits: u32, type_name: &str) -> Result<i64> {
    let rounded = value.round_ties_even();
    let bound = (1u64 << (bits - 1)) as f64;
    if rounded >= -bound && rounded < bound { Ok(rounded as i64) } else { Err(Error::out_of_range(type_name)) }
}

enum Number {
    Integer(i64),
    Float(f64),
    Exact(Numeric),
}

pub(super) fn cast_number(from: &DataType, to: &DataType, value: &Datum) -> Result<Datum> {
    use DataType::*;
    let number = match (from, value) {
        (_, Datum::Bool(value)) => Number::Integer(i64::from(*value)),
        (_, Datum::I16(value)) => Number::Integer(i64::from(*value)),
        (_, Datum::I32(value)) => Number::Integer(i64::from(*value)),
        (Numeric(_), value) => Number::Exact(crate::Numeric::from_datum(value, from)?),
        (_, Datum::I64(value)) => Number::Integer(*value),
        // A real is cast to numeric with the digits of a real.
        (_, Datum::F32(value)) if matches!(to, Numeric(_)) => Number::Exact(crate::Numeric::from_f32(*value)),
        (_, Datum::F32(value)) => Number::Float(f64::from(*value)),
        (_, Datum::F64(value)) => Number::Float(*value),
        _ => return Err(Error::cannot_cast(&from.sql_name(), &to.sql_name())),
    };
    Ok(match (to, number) {
        (Bool, Number::Integer(value)) => Datum::Bool(value != 0),
        (Int2, number) => Datum::I16(number.to_integer(16, "smallint")? as i16),
        // An object id keeps its 32 bits.
        (Int4, Number::Integer(value)) if !matches!(from, Bool | Int2 | Int4 | Int8) => Datum::I32(value as i32),
        (Int4, number) => Datum::I32(number.to_integer(32, "integer")? as i32),
        (Int8, number) => Datum::I64(number.to_integer(64, "bigint")?),
        (Float4, Number::Integer(value)) => Datum::F32(value as f32),
        (Float4, Number::Float(value)) => Datum::F32(narrow_float(value)?),
        (Float4, Number::Exact(value)) => Datum::F32(value.to_f32()?),
        (Float8, Number::Integer(value)) => Datum::F64(value as f64),
        (Float8, Number::Float(value)) => Datum::F64(value),
        (Float8, Number::Exact(value)) => Datum::F64(value.to_f64()?),
        (Numeric(_), Number::Integer(value)) => crate::Numeric::from(value).to_datum(to)?,
        (Numeric(_), Number::Float(value)) => crate::Numeric::from_f64(value).to_datum(to)?,
        (Numeric(_), Number::Exact(value)) => value.to_datum(to)?,
        (to, Number::Integer(value)) if *to == Oid || to.is_reg() => match from {
            Int2 | Int4 => Datum::I64(i64::from(value as i32 as u32)),
            _ => Datum::I64(i64::from(u32::try_from(value).map_err(|_| Error::out_of_range("OID"))?)),
        },
        _ => return Err(Error::cannot_cast(&from.sql_name(), &to.sql_name())),
    })
}

impl Number {
    fn to_integer(&self, bits: u32, type_name: &str) -> Result<i64> {
        match self {
            Number::Integer(value) => {
                let spare = 64 - bits;
                let fits = value << spare >> spare == *value;
                if fits { Ok(*value) } else { Err(Error::out_of_range(type_name)) }
            }
            Number::Float(value) => float_to_integer(*value, bits, type_name),
            Number::Exact(value) => match bits {
                16 => value.to_i16().map(i64::from),
                32 => value.to_i32().map(i64::from),
                _ => value.to_i64(),
            },
        }
    }
}
