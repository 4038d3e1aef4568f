//! PostgreSQL's binary wire form of every type (each type's `send` and `receive`). Big-endian; dates and
//! times count from 2000-01-01.

use super::column::{LogicalBuilder, utf8};
use super::{array, datum_at, json, range, record, text};
use crate::array_value;
use crate::bits;
use crate::byte_char;
use crate::context::EvalContext;
use crate::datetime::*;
use crate::error::{Error, Result};
use crate::inet::Inet;
use crate::interval::Interval;
use crate::macaddr;
use crate::numeric::{self, Numeric};
use crate::txid_snapshot::Snapshot;
use crate::unsigned;
use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use basalt_types::numeric::{CLASS_NEGATIVE, CLASS_POSITIVE};
use basalt_types::{DataType, Datum};

const NUMERIC_NEGATIVE: u16 = 0x4000;
const NUMERIC_NAN: u16 = 0xc000;
const NUMERIC_INFINITY: u16 = 0xd000;
const NUMERIC_NEG_INFINITY: u16 = 0xf000;
const INFINITY_SCALE: u16 = 32;
const JSONB_VERSION: u8 = 1;

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| match bytes.len() < N {
        true => Error::short_binary(),
        false => Error::invalid_binary("incorrect binary data format"),
    })
}

/// Reads a value, applying the type's length or precision as an assignment does.
pub fn parse(ty: &DataType, bytes: &[u8], ctx: &EvalContext) -> Result<Datum> {
    Ok(match ty {
        DataType::Bool => Datum::Bool(fixed::<1>(bytes)?[0] != 0),
        DataType::Int2 => Datum::I16(i16::from_be_bytes(fixed(bytes)?)),
        DataType::Int4 => Datum::I32(i32::from_be_bytes(fixed(bytes)?)),
        DataType::Int8 => Datum::I64(i64::from_be_bytes(fixed(bytes)?)),
        DataType::Float4 => Datum::F32(f32::from_be_bytes(fixed(bytes)?)),
        DataType::Float8 => Datum::F64(f64::from_be_bytes(fixed(bytes)?)),
        DataType::Numeric(_) => parse_numeric(bytes)?.to_datum(ty)?,
        DataType::Bytea => Datum::Bytes(bytes.into()),
        DataType::Date => Datum::I32(parse_date(i32::from_be_bytes(fixed(bytes)?))?),
        DataType::Time => match i64::from_be_bytes(fixed(bytes)?) {
            time @ 0..=MICROS_PER_DAY => Datum::I64(time),
            _ => return Err(Error::datetime_out_of_range("time")),
        },
        DataType::Timestamp | DataType::TimestampTz => Datum::I64(parse_timestamp(i64::from_be_bytes(fixed(bytes)?))?),
        DataType::Interval => Datum::Fixed16(parse_interval(fixed(bytes)?).to_bytes()),
        DataType::TimeTz => Datum::Fixed16(parse_timetz(fixed(bytes)?)?.to_bytes()),
        DataType::Bit(_) | DataType::Varbit(_) => Datum::text(&bits::fit(&bits::read_binary(bytes)?, ty, false)?),
        DataType::Money => Datum::I64(i64::from_be_bytes(fixed(bytes)?)),
        DataType::Uuid => Datum::Fixed16(fixed(bytes)?),
        DataType::Inet | DataType::Cidr => {
            Datum::Bytes(Inet::read_binary(bytes, *ty == DataType::Cidr)?.encode().into())
        }
        DataType::Macaddr => Datum::I64(macaddr::of_six(fixed(bytes)?)),
        DataType::Macaddr8 => Datum::I64(macaddr::read_eight(bytes)?),
        DataType::Jsonb => match bytes.split_first() {
            Some((&JSONB_VERSION, body)) => Datum::text(&json::canonical(utf8(body)?)?),
            Some((version, _)) => {
                return Err(Error::internal(format!("unsupported jsonb version number {version}")));
            }
            None => return Err(Error::short_binary()),
        },
        DataType::JsonPath => match bytes.split_first() {
            Some((&JSONB_VERSION, body)) => text::parse(ty, utf8(body)?, ctx)?,
            Some((version, _)) => {
                return Err(Error::internal(format!("unsupported jsonpath version number: {version}")));
            }
            None => return Err(Error::short_binary()),
        },
        DataType::PgLsn | DataType::Xid8 => Datum::I64(unsigned::stored(u64::from_be_bytes(fixed(bytes)?))),
        DataType::PgSnapshot | DataType::TxidSnapshot => Datum::text(&Snapshot::read_binary(bytes)?.print()),
        DataType::Oid
        | DataType::Xid
        | DataType::Regprocedure
        | DataType::Regoper
        | DataType::Regoperator
        | DataType::Regcollation
        | DataType::Regclass
        | DataType::Regtype
        | DataType::Regproc
        | DataType::Regnamespace
        | DataType::Regrole => Datum::I64(i64::from(u32::from_be_bytes(fixed(bytes)?))),
        DataType::Char => Datum::text(&byte_char::of_byte(fixed::<1>(bytes)?[0])),
        DataType::Array(element) => array::parse_binary(element, bytes, ctx)?,
        DataType::Range(kind) => range::parse_binary(*kind, bytes, ctx)?,
        DataType::Multirange(kind) => range::parse_binary_multirange(*kind, bytes, ctx)?,
        DataType::Composite(composite) => record::parse_binary(composite, bytes, ctx)?,
        DataType::Domain(domain) => {
            let value = parse(crate::domain::bottom(domain), bytes, ctx)?;
            crate::domain::fit(domain, ty, value, ctx)?
        }
        DataType::Record => return Err(record::no_input()),
        DataType::Text
        | DataType::Varchar(_)
        | DataType::Bpchar(_)
        | DataType::Json
        | DataType::Name
        | DataType::Enum(_)
        | DataType::Unknown => text::parse(ty, utf8(bytes)?, ctx)?,
        DataType::Void => {
            return Err(Error::not_supported(format!("input of type {} is not supported", ty.sql_name())));
        }
    })
}

fn parse_date(days: i32) -> Result<i32> {
    if !is_finite_date(days) {
        return Ok(days);
    }
    match days.checked_add(POSTGRES_EPOCH_DAYS) {
        Some(days) if (DATE_MIN..=DATE_MAX).contains(&days) => Ok(days),
        _ => Err(Error::datetime_out_of_range("date")),
    }
}

fn parse_timestamp(micros: i64) -> Result<i64> {
    if !is_finite_timestamp(micros) {
        return Ok(micros);
    }
    match micros.checked_add(POSTGRES_EPOCH_MICROS) {
        Some(micros) if (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&micros) => Ok(micros),
        _ => Err(Error::datetime_out_of_range("timestamp")),
    }
}

fn parse_timetz(bytes: [u8; 12]) -> Result<TimeTz> {
    let [t0, t1, t2, t3, t4, t5, t6, t7, z0, z1, z2, z3] = bytes;
    let micros = i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    let west = i32::from_be_bytes([z0, z1, z2, z3]);
    if !(0..=MICROS_PER_DAY).contains(&micros) {
        return Err(Error::datetime_out_of_range("time"));
    }
    if west.unsigned_abs() >= 16 * 3600 {
        return Err(Error::new("22009", "time zone displacement out of range"));
    }
    Ok(TimeTz { micros, west })
}

fn parse_interval(bytes: [u8; 16]) -> Interval {
    let [t0, t1, t2, t3, t4, t5, t6, t7, d0, d1, d2, d3, m0, m1, m2, m3] = bytes;
    Interval::new(
        i32::from_be_bytes([m0, m1, m2, m3]),
        i32::from_be_bytes([d0, d1, d2, d3]),
        i64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]),
    )
}

fn parse_numeric(bytes: &[u8]) -> Result<Numeric> {
    let error = |what: &str| Error::invalid_binary(format!("invalid {what} in external \"numeric\" value"));
    let words: Vec<u16> = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect();
    let [count, weight, sign, scale, digits @ ..] = &words[..] else {
        return Err(Error::short_binary());
    };
    if digits.len() != usize::from(*count) || !bytes.len().is_multiple_of(2) {
        return Err(error("length"));
    }
    match *sign {
        NUMERIC_NAN => return Ok(Numeric::NAN),
        NUMERIC_INFINITY => return Ok(Numeric::INFINITY),
        NUMERIC_NEG_INFINITY => return Ok(Numeric::NEG_INFINITY),
        0 | NUMERIC_NEGATIVE => {}
        _ => return Err(error("sign")),
    }
    if *scale > 0x3fff {
        return Err(error("scale"));
    }
    if digits.iter().any(|digit| *digit > 9_999) {
        return Err(error("digit"));
    }
    Numeric::from_base_10000(*sign == NUMERIC_NEGATIVE, i32::from(*weight as i16), digits, *scale)
}

/// Takes `count` bytes off the front.
fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Result<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or_else(Error::short_binary)?;
    *bytes = rest;
    Ok(taken)
}

pub(super) fn take_i32(bytes: &mut &[u8]) -> Result<i32> {
    Ok(i32::from_be_bytes(fixed(take(bytes, 4)?)?))
}

/// Takes a length and a value, or the length -1 of a null.
pub(super) fn take_value(ty: &DataType, bytes: &mut &[u8], ctx: &EvalContext) -> Result<Datum> {
    match take_i32(bytes)? {
        -1 => {
            crate::domain::check(ty, &Datum::Null, ctx)?;
            Ok(Datum::Null)
        }
        length => {
            let length = usize::try_from(length).map_err(|_| Error::short_binary())?;
            parse(ty, take(bytes, length)?, ctx)
        }
    }
}

/// Appends what [`take_value`] takes.
pub(super) fn put_value(ty: &DataType, value: &Datum, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    if value.is_null() {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        return Ok(());
    }
    let length_at = out.len();
    out.extend_from_slice(&[0; 4]);
    format(ty, value, ctx, out)?;
    let length = (out.len() - length_at - 4) as i32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// Appends the binary form. Null has none: the caller writes length -1.
pub fn format(ty: &DataType, value: &Datum, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<()> {
    // A vector has one dimension, even without elements.
    if let (true, Datum::Bytes(bytes), Some(element)) = (ty.is_vector(), value, ty.element())
        && array_value::elements(element, bytes)?.is_empty()
    {
        for word in [1, 0, element.oid() as i32, 0, 0] {
            out.extend_from_slice(&word.to_be_bytes());
        }
        return Ok(());
    }
    let ty = ty.underlying();
    match (ty, value) {
        (_, Datum::Null) => {}
        (DataType::Range(_) | DataType::Multirange(_), value) => range::format_binary(ty, value, ctx, out)?,
        (DataType::Composite(composite), value) => record::format_binary(composite, value, ctx, out)?,
        (DataType::Enum(_), value) => text::format(ty, value, ctx, out)?,
        (_, Datum::Bool(value)) => out.push(u8::from(*value)),
        (_, Datum::I16(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (DataType::Date, Datum::I32(value)) => put_date(*value, out),
        (_, Datum::I32(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (DataType::Timestamp | DataType::TimestampTz, Datum::I64(value)) => put_timestamp(*value, out),
        (DataType::Numeric(_), Datum::Bytes(stored)) => put_stored_numeric(stored, out)?,
        (DataType::Numeric(_), Datum::I64(_) | Datum::I128(_)) => {
            put_numeric(&Numeric::from_datum(value, ty)?, out);
        }
        (DataType::Int8 | DataType::Time | DataType::Money, Datum::I64(value)) => {
            out.extend_from_slice(&value.to_be_bytes())
        }
        (DataType::Macaddr, Datum::I64(value)) => out.extend_from_slice(&macaddr::six(*value)),
        (DataType::Macaddr8, Datum::I64(value)) => out.extend_from_slice(&macaddr::eight(*value)),
        (DataType::PgLsn | DataType::Xid8, Datum::I64(value)) => {
            out.extend_from_slice(&unsigned::number(*value).to_be_bytes());
        }
        (_, Datum::I64(value)) => out.extend_from_slice(&(*value as u32).to_be_bytes()),
        (_, Datum::F32(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (_, Datum::F64(value)) => out.extend_from_slice(&value.to_be_bytes()),
        (DataType::Interval, Datum::Fixed16(value)) => put_interval(Interval::from_bytes(*value), out),
        (DataType::TimeTz, Datum::Fixed16(value)) => {
            let time = TimeTz::from_bytes(*value);
            out.extend_from_slice(&time.micros.to_be_bytes());
            out.extend_from_slice(&time.west.to_be_bytes());
        }
        (DataType::Bit(_) | DataType::Varbit(_), Datum::Bytes(value)) => bits::write_binary(utf8(value)?, out),
        (_, Datum::Fixed16(value)) => out.extend_from_slice(value),
        (DataType::Jsonb | DataType::JsonPath, Datum::Bytes(value)) => {
            out.push(JSONB_VERSION);
            out.extend_from_slice(value);
        }
        (DataType::Inet | DataType::Cidr, Datum::Bytes(value)) => {
            Inet::decode(value)?.write_binary(*ty == DataType::Cidr, out);
        }
        (DataType::PgSnapshot | DataType::TxidSnapshot, Datum::Bytes(value)) => {
            Snapshot::parse(utf8(value)?)?.write_binary(out);
        }
        (DataType::Char, Datum::Bytes(value)) => out.push(byte_char::byte(value)),
        (DataType::Array(element), Datum::Bytes(value)) => array::format_binary(element, value, ctx, out)?,
        (_, Datum::Bytes(value)) => out.extend_from_slice(value),
        (ty, other) => return Err(Error::internal(format!("{other:?} is no {}", ty.sql_name()))),
    }
    Ok(())
}

fn put_date(days: i32, out: &mut Vec<u8>) {
    let days = if is_finite_date(days) { days - POSTGRES_EPOCH_DAYS } else { days };
    out.extend_from_slice(&days.to_be_bytes());
}

fn put_timestamp(micros: i64, out: &mut Vec<u8>) {
    let micros = if is_finite_timestamp(micros) { micros.saturating_sub(POSTGRES_EPOCH_MICROS) } else { micros };
    out.extend_from_slice(&micros.to_be_bytes());
}

fn put_interval(value: Interval, out: &mut Vec<u8>) {
    out.extend_from_slice(&value.micros.to_be_bytes());
    out.extend_from_slice(&value.days.to_be_bytes());
    out.extend_from_slice(&value.months.to_be_bytes());
}

fn put_stored_numeric(stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let parts = numeric::parts_of(stored)?;
    let sign = match parts.class {
        CLASS_POSITIVE => 0,
        CLASS_NEGATIVE => NUMERIC_NEGATIVE,
        _ => {
            put_numeric(&Numeric::decode(stored)?, out);
            return Ok(());
        }
    };
    put_digits(parts.weight, sign, parts.display_scale, &parts.digits, out);
    Ok(())
}

fn put_numeric(value: &Numeric, out: &mut Vec<u8>) {
    let (weight, digits) = value.base_10000();
    let sign = match (value.is_nan(), value.is_infinite(), value.signum() < 0) {
        (true, ..) => NUMERIC_NAN,
        (_, true, false) => NUMERIC_INFINITY,
        (_, true, true) => NUMERIC_NEG_INFINITY,
        (_, _, true) => NUMERIC_NEGATIVE,
        _ => 0,
    };
    // The header that PostgreSQL gives infinities reads as this scale.
    let scale = if value.is_infinite() { INFINITY_SCALE } else { value.scale() };
    put_digits(weight, sign, scale, &digits, out);
}

fn put_digits(weight: i16, sign: u16, scale: u16, digits: &[u16], out: &mut Vec<u8>) {
    for word in [digits.len() as u16, weight as u16, sign, scale].iter().chain(digits) {
        out.extend_from_slice(&word.to_be_bytes());
    }
}

/// Reads a field of a binary COPY into the builder, which is of this type. `bytes` is not null.
pub fn parse_into(bytes: &[u8], builder: &mut LogicalBuilder, ctx: &EvalContext) -> Result<()> {
    let value = parse(builder.ty(), bytes, ctx)?;
    builder.push(&value)
}

/// Appends the binary form of one cell of a logical array; false, and nothing written, if it is null.
///
/// # Panics
/// If the array is not of the type's Arrow form.
pub fn format_cell(ty: &DataType, array: &dyn Array, row: usize, ctx: &EvalContext, out: &mut Vec<u8>) -> Result<bool> {
    if array.is_null(row) {
        return Ok(false);
    }
    match ty.underlying() {
        _ if ty.is_vector() => format(ty, &datum_at(ty, array, row), ctx, out)?,
        DataType::Int4 => out.extend_from_slice(&array.as_primitive::<Int32Type>().value(row).to_be_bytes()),
        DataType::Int8 => out.extend_from_slice(&array.as_primitive::<Int64Type>().value(row).to_be_bytes()),
        DataType::Float8 => out.extend_from_slice(&array.as_primitive::<Float64Type>().value(row).to_be_bytes()),
        DataType::Date => put_date(array.as_primitive::<Date32Type>().value(row), out),
        DataType::Timestamp | DataType::TimestampTz => {
            put_timestamp(array.as_primitive::<TimestampMicrosecondType>().value(row), out);
        }
        DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_) | DataType::Json | DataType::Name => {
            out.extend_from_slice(array.as_string_view().value(row).as_bytes());
        }
        DataType::Numeric(_) => match ty.decimal() {
            Some((_, scale)) => {
                let value = array.as_primitive::<Decimal128Type>().value(row);
                put_numeric(&Numeric::from_scaled(value, scale as u16), out);
            }
            None => put_stored_numeric(array.as_binary_view().value(row), out)?,
        },
        ty => format(ty, &datum_at(ty, array, row), ctx, out)?,
    }
    Ok(true)
}
