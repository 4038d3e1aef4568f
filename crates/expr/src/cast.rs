//! Casts: which exist between types and where they apply (`pg_cast` and the I/O casts of manual 10.4),
//! and what they do to a value or a vector.

mod array;
mod numbers;
#[cfg(test)]
mod tests;
mod texts;

pub use array::cast_array;

use crate::array_value;
use crate::bits;
use crate::byte_char;
use crate::context::EvalContext;
use crate::datetime::*;
use crate::error::{Error, Result};
use crate::inet;
use crate::io::{fit_bpchar, fit_varchar, json, text};
use crate::macaddr;
use crate::money;
use crate::numeric::Numeric;
use crate::record_value;
use crate::unsigned;
use basalt_types::jsonb::{self, Kind};
use basalt_types::{DataType, Datum};

/// Where a cast is looked for; each place also finds what the ones before it find.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CastContext {
    /// Function and operator arguments.
    Implicit,
    /// A value going into a column.
    Assignment,
    /// `CAST` and `::`.
    Explicit,
}

pub(crate) fn is_text(ty: &DataType) -> bool {
    matches!(
        ty,
        DataType::Text
            | DataType::Varchar(_)
            | DataType::Bpchar(_)
            | DataType::Name
            | DataType::Char
            | DataType::Unknown
    )
}

/// The weakest place in which `from` casts to `to`; `None` if there is no cast. Modifiers play no part.
pub fn find_cast(from: &DataType, to: &DataType) -> Option<CastContext> {
    use CastContext::*;
    use DataType::*;
    if let (Domain(_), _) | (_, Domain(_)) = (from, to) {
        // A cast to a domain is one to its base type, but nothing becomes one without being told.
        return match (from == to, find_cast(from.underlying(), to.underlying())) {
            (true, _) => Some(Implicit),
            (_, Some(Implicit)) if matches!(to, Domain(_)) && from.underlying() != to.underlying() => Some(Assignment),
            (_, found) => found,
        };
    }
    if let (Array(from), Array(to)) = (from, to) {
        return if from.base() == to.base() { Some(Implicit) } else { find_cast(from, to) };
    }
    if from.base() == to.base() || *from == Unknown {
        return Some(Implicit);
    }
    match (from, to) {
        (Composite(_), Record) => Some(Implicit),
        (Composite(from), Composite(to)) => match (from == to, from.is_anonymous(), to.is_anonymous()) {
            (true, ..) | (_, _, true) => Some(Implicit),
            // Field by field, which says itself what does not fit.
            (_, true, _) => Some(Implicit),
            _ => None,
        },
        (Void | Record, _) | (_, Void | Record | Unknown) => is_text(to).then_some(Assignment),
        (Int2, Int4 | Int8 | Float4 | Float8 | Numeric(_))
        | (Int4, Int8 | Float4 | Float8 | Numeric(_))
        | (Int8, Float4 | Float8 | Numeric(_))
        | (Float4, Float8)
        | (Numeric(_), Float4 | Float8) => Some(Implicit),
        (Int4 | Int8, Int2)
        | (Int8, Int4)
        | (Float4 | Float8 | Numeric(_), Int2 | Int4 | Int8)
        | (Float4 | Float8, Numeric(_))
        | (Float8, Float4) => Some(Assignment),
        (Int2 | Int4 | Int8, Oid) => Some(Implicit),
        (Int2 | Int4 | Int8 | Oid, to) if to.is_reg() => Some(Implicit),
        (Oid, Int4 | Int8) => Some(Assignment),
        (from, Oid) if from.is_reg() => Some(Implicit),
        (from, Int4 | Int8) if from.is_reg() => Some(Assignment),
        (Time, TimeTz) | (Bit(_), Varbit(_)) | (Varbit(_), Bit(_)) => Some(Implicit),
        (TimestampTz, TimeTz) | (TimeTz, Time) => Some(Assignment),
        (Int4 | Int8, Bit(_)) | (Bit(_), Int4 | Int8) => Some(Explicit),
        (Int4 | Int8 | Numeric(_), Money) | (Money, Numeric(_)) => Some(Assignment),
        (Bool, Int4) | (Int4, Bool) | (Int4, Char) | (Char, Int4) => Some(Explicit),
        (Date, Timestamp | TimestampTz) | (Timestamp, TimestampTz) | (Time, Interval) => Some(Implicit),
        (Timestamp, Date | Time) | (TimestampTz, Date | Time | Timestamp) | (Interval, Time) => Some(Assignment),
        (Cidr, Inet) | (Macaddr, Macaddr8) | (Macaddr8, Macaddr) => Some(Implicit),
        (Inet, Cidr) => Some(Assignment),
        (Xid8, Xid) => Some(Explicit),
        (Regproc, Regprocedure) | (Regprocedure, Regproc) => Some(Implicit),
        (Regoper, Regoperator) | (Regoperator, Regoper) => Some(Implicit),
        (Json, Jsonb) | (Jsonb, Json) => Some(Assignment),
        (Range(from), Multirange(to)) if from == to => Some(Explicit),
        (Jsonb, Bool | Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_)) => Some(Explicit),
        (Text | Varchar(_), Regclass) => Some(Implicit),
        (Text | Varchar(_) | Bpchar(_), Text | Varchar(_) | Bpchar(_) | Name) => Some(Implicit),
        (Name | Char, Text) => Some(Implicit),
        (Bpchar(_) | Text | Varchar(_), Char) => Some(Assignment),
        (Char, Varchar(_) | Bpchar(_) | Name) => Some(Assignment),
        (Name, Char) => Some(Explicit),
        (_, Char) => None,
        // Everything has a text form, and can be read from one.
        (_, to) if is_text(to) => Some(Assignment),
        // "char" is no text but for its own casts.
        (Char, _) => None,
        (from, _) if is_text(from) => Some(Explicit),
        _ => None,
    }
}

/// Casts one value. An explicit cast cuts strings to length where an assignment refuses (22001).
pub fn cast_datum(from: &DataType, to: &DataType, value: &Datum, explicit: bool, ctx: &EvalContext) -> Result<Datum> {
    if let DataType::Domain(domain) = to
        && from != to
    {
        let value = match value.is_null() {
            true => Datum::Null,
            false => cast_datum(from, crate::domain::bottom(domain), value, explicit, ctx)?,
        };
        return crate::domain::fit(domain, to, value, ctx);
    }
    if value.is_null() || from == to {
        return Ok(value.clone());
    }
    if let DataType::Domain(domain) = from
        && !(from.is_vector() && is_text(to))
    {
        return cast_datum(&domain.base, to, value, explicit, ctx);
    }
    if let (DataType::Composite(from), DataType::Composite(to)) = (from, to) {
        return record_value::cast(from, to, value, explicit, ctx);
    }
    if from.composite().is_some() && *to == DataType::Record {
        return Ok(value.clone());
    }
    if is_text(to) {
        return cast_to_text(from, to, value, explicit, ctx);
    }
    if let (true, DataType::Bit(_) | DataType::Varbit(_)) = (is_text(from), to) {
        return Ok(Datum::text(&bits::fit(&bits::parse(text_of(from, value)?)?, to, explicit)?));
    }
    if is_text(from) && !(*from == DataType::Char && *to == DataType::Int4) {
        return text::parse(to, text_of(from, value)?, ctx);
    }
    use DataType::*;
    Ok(match (from, to, value) {
        (Array(from), Array(to), Datum::Bytes(bytes)) => {
            let mut array = array_value::decode(from, bytes)?;
            for value in &mut array.elements {
                *value = cast_datum(from, to, value, explicit, ctx)?;
            }
            array_value::encode_shaped(to, &array)?
        }
        (Date, Timestamp, Datum::I32(days)) => Datum::I64(date_to_timestamp(*days)?),
        (Date, TimestampTz, Datum::I32(days)) => Datum::I64(local_to_utc(date_to_timestamp(*days)?, &ctx.timezone)?),
        (Timestamp, TimestampTz, Datum::I64(micros)) => Datum::I64(local_to_utc(*micros, &ctx.timezone)?),
        (TimestampTz, Timestamp, Datum::I64(micros)) => Datum::I64(utc_to_local(*micros, &ctx.timezone)?),
        (Timestamp, Date, Datum::I64(micros)) => Datum::I32(timestamp_to_date(*micros)),
        (TimestampTz, Date, Datum::I64(micros)) => Datum::I32(timestamp_to_date(utc_to_local(*micros, &ctx.timezone)?)),
        (Timestamp, Time, Datum::I64(micros)) => time_of(*micros),
        (TimestampTz, Time, Datum::I64(micros)) => time_of(utc_to_local(*micros, &ctx.timezone)?),
        (Time, Interval, Datum::I64(micros)) => Datum::Fixed16(crate::Interval::new(0, 0, *micros).to_bytes()),
        (Interval, Time, Datum::Fixed16(bytes)) => {
            Datum::I64(crate::Interval::from_bytes(*bytes).micros.rem_euclid(MICROS_PER_DAY))
        }
        (Time, TimeTz, Datum::I64(micros)) => Datum::Fixed16(crate::datetime::TimeTz::of_time(*micros, ctx).to_bytes()),
        (TimestampTz, TimeTz, Datum::I64(micros)) if !is_finite_timestamp(*micros) => Datum::Null,
        (TimestampTz, TimeTz, Datum::I64(micros)) => {
            Datum::Fixed16(crate::datetime::TimeTz::of_moment(*micros, &ctx.timezone).to_bytes())
        }
        (TimeTz, Time, Datum::Fixed16(bytes)) => Datum::I64(crate::datetime::TimeTz::from_bytes(*bytes).micros),
        (Bit(_) | Varbit(_), Bit(_) | Varbit(_), _) => Datum::text(&bits::fit(text_of(from, value)?, to, explicit)?),
        (Bit(_), Int4, _) => Datum::I32(bits::to_integer(text_of(from, value)?, 32, "integer")? as i32),
        (Bit(_), Int8, _) => Datum::I64(bits::to_integer(text_of(from, value)?, 64, "bigint")?),
        (Int4, Bit(length), Datum::I32(value)) => {
            Datum::text(&bits::of_integer(i64::from(*value), length.unwrap_or(1)))
        }
        (Int8, Bit(length), Datum::I64(value)) => Datum::text(&bits::of_integer(*value, length.unwrap_or(1))),
        (Int4, Money, Datum::I32(value)) => Datum::I64(i64::from(*value) * 100),
        (Int8, Money, Datum::I64(value)) => {
            Datum::I64(value.checked_mul(100).ok_or_else(|| Error::out_of_range("bigint"))?)
        }
        (Numeric(_), Money, value) => Datum::I64(money::of_numeric(&crate::Numeric::from_datum(value, from)?)?),
        (Money, Numeric(_), Datum::I64(value)) => money::to_numeric(*value).to_datum(to)?,
        (Cidr, Inet, Datum::Bytes(_)) => value.clone(),
        (Inet, Cidr, Datum::Bytes(bytes)) => Datum::Bytes(inet::Inet::decode(bytes)?.network().encode().into()),
        (Xid8, Xid, Datum::I64(value)) => Datum::I64(i64::from(unsigned::number(*value) as u32)),
        (Macaddr, Macaddr8, Datum::I64(value)) => Datum::I64(macaddr::widen(*value)),
        (Macaddr8, Macaddr, Datum::I64(value)) => Datum::I64(macaddr::narrow(*value)?),
        (Json, Jsonb, Datum::Bytes(_)) => Datum::text(&json::canonical(text_of(from, value)?)?),
        (Jsonb, Json, Datum::Bytes(_)) => value.clone(),
        (Jsonb, _, Datum::Bytes(_)) => cast_jsonb(text_of(from, value)?, from, to, ctx)?,
        (Range(kind), Multirange(_), _) => {
            basalt_types::range::encode_multirange(*kind, &crate::range_value::spans(from, value)?)
        }
        (Char, Int4, Datum::Bytes(bytes)) => Datum::I32(i32::from(byte_char::byte(bytes) as i8)),
        _ => numbers::cast_number(from, to, value)?,
    })
}

/// A timestamp's time of day; infinity has none.
fn time_of(micros: i64) -> Datum {
    if is_finite_timestamp(micros) { Datum::I64(micros.rem_euclid(MICROS_PER_DAY)) } else { Datum::Null }
}

fn text_of<'a>(ty: &DataType, value: &'a Datum) -> Result<&'a str> {
    match value {
        Datum::Bytes(bytes) => std::str::from_utf8(bytes)
            .map_err(|error| Error::new("XX001", format!("stored {} is not UTF-8: {error}", ty.sql_name()))),
        other => Err(Error::internal(format!("{other:?} is no {}", ty.sql_name()))),
    }
}

fn cast_to_text(from: &DataType, to: &DataType, value: &Datum, explicit: bool, ctx: &EvalContext) -> Result<Datum> {
    let mut printed = Vec::new();
    let text = match (from, value) {
        (DataType::Bool, Datum::Bool(value)) => {
            if *to == DataType::Name {
                if *value { "t" } else { "f" }
            } else if *value {
                "true"
            } else {
                "false"
            }
        }
        (DataType::Int4, Datum::I32(code)) if *to == DataType::Char => {
            let code = i8::try_from(*code).map_err(|_| Error::out_of_range("\"char\""))? as u8;
            return Ok(Datum::text(&byte_char::of_byte(code)));
        }
        // Text tells the length of a host, too, a name does not.
        (DataType::Inet | DataType::Cidr, Datum::Bytes(bytes)) if *to != DataType::Name => {
            printed.extend_from_slice(inet::Inet::decode(bytes)?.with_length().as_bytes());
            std::str::from_utf8(&printed).map_err(|error| Error::internal(error.to_string()))?
        }
        // Padding is no part of a blank-padded value.
        (DataType::Bpchar(_), _) if !matches!(to, DataType::Bpchar(_)) => text_of(from, value)?.trim_end_matches(' '),
        (from, _) if is_text(from) && *from != DataType::Char => text_of(from, value)?,
        (from, _) => {
            text::format(from, value, ctx, &mut printed)?;
            std::str::from_utf8(&printed).map_err(|error| Error::internal(error.to_string()))?
        }
    };
    fit_text(text, to, explicit, ctx)
}

fn fit_text(text: &str, to: &DataType, explicit: bool, ctx: &EvalContext) -> Result<Datum> {
    Ok(match to {
        DataType::Varchar(limit) => Datum::text(fit_varchar(text, *limit, explicit)?),
        DataType::Bpchar(length) => Datum::text(&fit_bpchar(text, *length, explicit)?),
        DataType::Name | DataType::Char => return text::parse(to, text, ctx),
        _ => Datum::text(text),
    })
}

fn cast_jsonb(text: &str, from: &DataType, to: &DataType, ctx: &EvalContext) -> Result<Datum> {
    let kind = jsonb::kind(text);
    match (kind, to) {
        (Kind::Bool, DataType::Bool) => return Ok(Datum::Bool(text == "true")),
        (Kind::Number, to) if *to != DataType::Bool && find_cast(from, to).is_some() => {
            let number = Numeric::parse(text)?.to_datum(&DataType::Numeric(None))?;
            return cast_datum(&DataType::Numeric(None), to, &number, true, ctx);
        }
        _ => {}
    }
    let kind = if kind == Kind::Number { "numeric" } else { kind.name() };
    Err(Error::invalid_parameter(format!("cannot cast jsonb {kind} to type {}", to.base().sql_name())))
}
