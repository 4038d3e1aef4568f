//! Casts as `pg_proc` has them: a function named after its type takes a value of another type, or a type
//! modifier (`pg_attribute.atttypmod`) beside a value of its own (manual 10.3 and 38.10).

use super::arg::*;
use super::pattern_types::type_named;
use super::{CallInfo, Kernel};
use crate::array_value;
use crate::cast::{cast_datum, find_cast};
use crate::datetime::{MICROS_PER_DAY, POSTGRES_EPOCH_MICROS, TimeTz, is_finite_timestamp};
use crate::error::{Error, Result};
use crate::interval::Interval;
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    if let Some(kernel) = lengths(name, args) {
        return Some(kernel);
    }
    let (to, from) = (type_named(name)?, type_named(args)?);
    find_cast(&from, &to)?;
    Some(scalar!(|args, info| cast_datum(&info.arg_types[0], info.ty, &args[0], true, info.ctx)))
}

fn lengths(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("timestamp", "timestamp,int4") | ("timestamptz", "timestamptz,int4") => {
            kernel!(|at: Micros, modifier: I4| -> Micros { round_timestamp(at, modifier) })
        }
        ("time", "time,int4") => kernel!(|at: Micros, modifier: I4| -> Micros { Ok(round_micros(at, modifier)) }),
        ("interval", "interval,int4") => {
            kernel!(|span: Span, modifier: I4| -> Span { fit_interval(span, modifier) })
        }
        ("numeric", "numeric,int4") => scalar!(|args, info| resize(args, info, |modifier| {
            let packed = modifier - 4;
            // Eleven bits of scale, with their sign.
            let scale = ((packed & 0x7ff) ^ 1024) - 1024;
            DataType::Numeric((modifier >= 4).then_some(((packed >> 16) as u16, scale as i16)))
        })),
        ("bpchar", "bpchar,int4,bool") => scalar!(|args, info| resize(args, info, |modifier| {
            DataType::Bpchar((modifier >= 4).then(|| (modifier - 4) as u32))
        })),
        ("varchar", "varchar,int4,bool") => scalar!(|args, info| resize(args, info, |modifier| {
            DataType::Varchar((modifier >= 4).then(|| (modifier - 4) as u32))
        })),
        _ => return None,
    })
}

/// A value as its type with a modifier holds it. The third argument tells an explicit cast.
fn resize(args: &[Datum], info: &CallInfo, sized: fn(i32) -> DataType) -> Result<Datum> {
    let Datum::I32(modifier) = args[1] else { return Err(mismatch(&info.arg_types[1], &args[1])) };
    let (to, explicit) = (sized(modifier), matches!(args.get(2), Some(Datum::Bool(true))));
    let fitted = cast_datum(&info.arg_types[0], &to, &args[0], explicit, info.ctx)?;
    cast_datum(&to, info.ty, &fitted, explicit, info.ctx)
}

/// Fractions of a second cut to `precision` decimals, halves away from zero. Negative: as it is.
pub(crate) fn round_micros(micros: i64, precision: i32) -> i64 {
    if !(0..6).contains(&precision) {
        return micros;
    }
    let unit = 10i64.pow(6 - precision as u32);
    let half = if micros >= 0 { unit / 2 } else { -(unit / 2) };
    micros.saturating_add(half) / unit * unit
}

/// Rounds as [`round_micros`], but counts from 2000, as PostgreSQL does: before it halves go down.
pub(crate) fn round_timestamp(micros: i64, precision: i32) -> Result<i64> {
    if !is_finite_timestamp(micros) {
        return Ok(micros);
    }
    if precision > 6 {
        return Err(Error::invalid_parameter(format!("timestamp({precision}) precision must be between 0 and 6")));
    }
    let since = micros.saturating_sub(POSTGRES_EPOCH_MICROS);
    Ok(round_micros(since, precision).saturating_add(POSTGRES_EPOCH_MICROS))
}

/// A value of a date or time type, or an array of such, as a column with this modifier (`atttypmod`) keeps it.
pub fn fit_time(ty: &DataType, modifier: i32, value: Datum) -> Result<Datum> {
    Ok(match (ty, value) {
        (DataType::Domain(domain), value) => fit_time(&domain.base, modifier, value)?,
        (DataType::Timestamp | DataType::TimestampTz, Datum::I64(micros)) => {
            Datum::I64(round_timestamp(micros, modifier)?)
        }
        (DataType::Time, Datum::I64(micros)) => Datum::I64(round_micros(micros, modifier)),
        (DataType::TimeTz, Datum::Fixed16(bytes)) => {
            let time = TimeTz::from_bytes(bytes);
            Datum::Fixed16(TimeTz { micros: round_micros(time.micros, modifier), west: time.west }.to_bytes())
        }
        (DataType::Interval, Datum::Fixed16(bytes)) => {
            Datum::Fixed16(fit_interval(Interval::from_bytes(bytes), modifier)?.to_bytes())
        }
        (DataType::Array(element), Datum::Bytes(bytes)) => {
            let mut array = array_value::decode(element, &bytes)?;
            for value in &mut array.elements {
                *value = fit_time(element, modifier, std::mem::replace(value, Datum::Null))?;
            }
            array_value::encode_shaped(element, &array)?
        }
        (_, value) => value,
    })
}

/// Bits of an interval's range, as `INTERVAL_MASK` counts them.
const MONTH: i32 = 1 << 1;
const YEAR: i32 = 1 << 2;
const DAY: i32 = 1 << 3;
const HOUR: i32 = 1 << 10;
const MINUTE: i32 = 1 << 11;
const SECOND: i32 = 1 << 12;
const FULL_RANGE: i32 = 0x7fff;
const FULL_PRECISION: i32 = 0xffff;

/// An interval without what is finer than its fields, its seconds rounded.
pub(crate) fn fit_interval(span: Interval, modifier: i32) -> Result<Interval> {
    if modifier < 0 {
        return Ok(span);
    }
    let (range, precision) = (modifier >> 16 & 0x7fff, modifier & 0xffff);
    let micros_per = |unit: i64| span.micros / unit * unit;
    let minute = MICROS_PER_DAY / 1440;
    let cut = match range {
        FULL_RANGE => span,
        range if range == YEAR => Interval::new(span.months / 12 * 12, 0, 0),
        range if range & !(YEAR | MONTH) == 0 => Interval::new(span.months, 0, 0),
        range if range == DAY => Interval::new(span.months, span.days, 0),
        range if range & SECOND != 0 => span,
        range if range & MINUTE != 0 => Interval::new(span.months, span.days, micros_per(minute)),
        range if range & HOUR != 0 => Interval::new(span.months, span.days, micros_per(60 * minute)),
        _ => span,
    };
    let precision = if precision == FULL_PRECISION { -1 } else { precision };
    Ok(Interval::new(cut.months, cut.days, round_micros(cut.micros, precision)))
}
