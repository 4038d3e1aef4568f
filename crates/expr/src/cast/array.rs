//! Casts of vectors: loops over Arrow buffers for the frequent pairs, value by value for the rest.

use super::numbers::{float_to_integer, narrow_float};
use super::{cast_datum, is_text, texts};
use crate::context::EvalContext;
use crate::datetime::date_to_timestamp;
use crate::error::{Error, Result};
use crate::eval::room::Room;
use crate::io::{LogicalBuilder, datum_at};
use crate::numeric::{Numeric, POWERS_OF_TEN, encode_scaled, precision_overflow, rescale_i128};
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// Casts a logical array. The first value that has no cast fails the whole.
///
/// # Panics
/// If the array is not of `from`'s Arrow form.
pub fn cast_array(
    from: &DataType,
    to: &DataType,
    array: &ArrayRef,
    explicit: bool,
    ctx: &EvalContext,
) -> Result<ArrayRef> {
    if from == to || same_values(from, to) {
        return Ok(array.clone());
    }
    if let DataType::Domain(domain) = from
        && !(from.is_vector() && is_text(to))
    {
        return cast_array(&domain.base, to, array, explicit, ctx);
    }
    if let Some(cast) = cast_fast(from, to, array)? {
        return Ok(cast);
    }
    let mut out = LogicalBuilder::new(to, array.len());
    let mut room = Room::of_batch();
    // The only byte of a "char" is a number of its own.
    let texts = array.as_string_view_opt().filter(|_| is_text(from) && *from != DataType::Char);
    for row in 0..array.len() {
        if let Some(texts) = texts.filter(|texts| texts.is_valid(row))
            && let Some(value) = texts::plain(to, texts.value(row))
        {
            out.push(&value)?;
            continue;
        }
        let value = cast_datum(from, to, &datum_at(from, array, row), explicit, ctx)?;
        if let Datum::Bytes(bytes) = &value {
            room.take(bytes.len())?;
        }
        out.push(&value)?;
    }
    Ok(out.finish())
}

/// Whether every value of one type is the same in the other.
fn same_values(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    match (from, to) {
        (Composite(_), Record) => true,
        (Text | Varchar(_) | Name | Unknown, Text | Varchar(None)) => true,
        (Varchar(Some(have)), Varchar(Some(limit))) => have <= limit,
        (Jsonb, Json | Text) | (Json, Text) | (Cidr, Inet) => true,
        _ => false,
    }
}

fn cast_fast(from: &DataType, to: &DataType, array: &ArrayRef) -> Result<Option<ArrayRef>> {
    use DataType::*;
    if is_text(from) || is_text(to) {
        return Ok(None);
    }
    if let (Numeric(_), Numeric(_)) = (from, to) {
        return cast_decimal(from, to, array);
    }
    Ok(Some(match (from, to) {
        (Int2, Int4) => map::<Int16Type, Int32Type>(array, i32::from),
        (Int2, Int8) => map::<Int16Type, Int64Type>(array, i64::from),
        (Int4, Int8) => map::<Int32Type, Int64Type>(array, i64::from),
        (Int2, Float8) => map::<Int16Type, Float64Type>(array, f64::from),
        (Int4, Float8) => map::<Int32Type, Float64Type>(array, f64::from),
        (Int8, Float8) => map::<Int64Type, Float64Type>(array, |value| value as f64),
        (Float4, Float8) => map::<Float32Type, Float64Type>(array, f64::from),
        (Float8, Float4) => try_map::<Float64Type, Float32Type>(array, narrow_float)?,
        (Int8, Int4) => try_map::<Int64Type, Int32Type>(array, |value| narrow(value, "integer"))?,
        (Int8, Int2) => try_map::<Int64Type, Int16Type>(array, |value| narrow(value, "smallint"))?,
        (Int4, Int2) => try_map::<Int32Type, Int16Type>(array, |value| narrow(value, "smallint"))?,
        (Float8, Int4) => try_map::<Float64Type, Int32Type>(array, |value| {
            float_to_integer(value, 32, "integer").map(|value| value as i32)
        })?,
        (Float8, Int8) => try_map::<Float64Type, Int64Type>(array, |value| float_to_integer(value, 64, "bigint"))?,
        (Date, Timestamp) => try_map::<Date32Type, TimestampMicrosecondType>(array, date_to_timestamp)?,
        (Int2, Numeric(_)) => integers_to_numeric::<Int16Type>(to, array)?,
        (Int4, Numeric(_)) => integers_to_numeric::<Int32Type>(to, array)?,
        (Int8, Numeric(_)) => integers_to_numeric::<Int64Type>(to, array)?,
        (Numeric(_), Float8) => match from.decimal() {
            Some((_, scale)) => {
                let power = POWERS_OF_TEN[scale as usize] as f64;
                try_map::<Decimal128Type, Float64Type>(array, |value| {
                    // Both exact below 2^53 and 10^22, so that the quotient is correctly rounded.
                    if value.unsigned_abs() < 1 << 53 && scale <= 22 {
                        Ok(value as f64 / power)
                    } else {
                        crate::Numeric::from_scaled(value, scale as u16).to_f64()
                    }
                })?
            }
            None => return Ok(None),
        },
        (Numeric(_), Int8) => match from.decimal() {
            Some((_, scale)) => try_map::<Decimal128Type, Int64Type>(array, |value| {
                let whole = rescale_i128(value, i32::from(scale), 0).and_then(|value| i64::try_from(value).ok());
                whole.ok_or_else(|| Error::out_of_range("bigint"))
            })?,
            None => return Ok(None),
        },
        _ => return Ok(None),
    }))
}

fn map<From: ArrowPrimitiveType, To: ArrowPrimitiveType>(
    array: &ArrayRef,
    apply: impl Fn(From::Native) -> To::Native,
) -> ArrayRef {
    let values: PrimitiveArray<To> = array.as_primitive::<From>().unary(apply);
    Arc::new(values)
}

fn try_map<From: ArrowPrimitiveType, To: ArrowPrimitiveType>(
    array: &ArrayRef,
    apply: impl Fn(From::Native) -> Result<To::Native>,
) -> Result<ArrayRef> {
    let values: PrimitiveArray<To> = array.as_primitive::<From>().try_unary(apply)?;
    Ok(Arc::new(values))
}

#[inline]
fn narrow<From, To: TryFrom<From>>(value: From, type_name: &str) -> Result<To> {
    To::try_from(value).map_err(|_| Error::out_of_range(type_name))
}

/// Brings scaled integers to a decimal type: rounds, and checks the precision.
fn decimals<T: ArrowPrimitiveType>(to: &DataType, array: &ArrayRef, from_scale: i32) -> Result<Option<ArrayRef>>
where
    i128: From<T::Native>,
{
    let (Some((precision, scale)), DataType::Numeric(Some(modifier))) = (to.decimal(), to) else { return Ok(None) };
    let bound = POWERS_OF_TEN[usize::from(precision)].unsigned_abs();
    let values: PrimitiveArray<Decimal128Type> = array.as_primitive::<T>().try_unary(|value| {
        match rescale_i128(i128::from(value), from_scale, i32::from(scale)) {
            Some(value) if value.unsigned_abs() < bound => Ok(value),
            _ => Err(precision_overflow(modifier.0, modifier.1)),
        }
    })?;
    let values = values
        .with_precision_and_scale(precision, scale)
        .map_err(|error| Error::internal(format!("{}: {error}", to.sql_name())))?;
    Ok(Some(Arc::new(values)))
}

/// Scaled integers in the variable form.
fn encoded<T: ArrowPrimitiveType>(array: &ArrayRef, scale: u16) -> ArrayRef
where
    i128: From<T::Native>,
{
    let mut out = BinaryViewBuilder::with_capacity(array.len());
    let mut bytes = Vec::with_capacity(32);
    for value in array.as_primitive::<T>() {
        match value {
            Some(value) => {
                bytes.clear();
                encode_scaled(i128::from(value), scale, &mut bytes);
                out.append_value(&bytes);
            }
            None => out.append_null(),
        }
    }
    Arc::new(out.finish())
}

fn integers_to_numeric<T: ArrowPrimitiveType>(to: &DataType, array: &ArrayRef) -> Result<ArrayRef>
where
    i128: From<T::Native>,
{
    if let Some(cast) = decimals::<T>(to, array, 0)? {
        return Ok(cast);
    }
    let DataType::Numeric(Some((precision, scale))) = to else { return Ok(encoded::<T>(array, 0)) };
    let mut out = BinaryViewBuilder::with_capacity(array.len());
    for value in array.as_primitive::<T>() {
        match value {
            Some(value) => {
                out.append_value(Numeric::from(i128::from(value)).with_typmod(*precision, *scale)?.encoded());
            }
            None => out.append_null(),
        }
    }
    Ok(Arc::new(out.finish()))
}

fn cast_decimal(from: &DataType, to: &DataType, array: &ArrayRef) -> Result<Option<ArrayRef>> {
    match (from.decimal(), to) {
        (Some((_, scale)), DataType::Numeric(None)) => Ok(Some(encoded::<Decimal128Type>(array, scale as u16))),
        (Some((_, scale)), _) => decimals::<Decimal128Type>(to, array, i32::from(scale)),
        (None, DataType::Numeric(None)) => Ok(Some(array.clone())),
        _ => Ok(None),
    }
}
