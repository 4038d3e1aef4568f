//! `in_range`: whether a value lies within an offset of another, as PostgreSQL's B-tree support function 3
//! has it (manual 67.3). An infinite offset reaches everything that has an order, a sum beyond a type's
//! range counts as infinite.

use super::Offset;
use crate::context::EvalContext;
use crate::datetime::{self, MICROS_PER_DAY};
use crate::error::{Error, Result};
use crate::functions::arg::mismatch;
use crate::interval::Interval;
use crate::numeric::Numeric;
use basalt_types::{DataType, Datum};
use std::cmp::Ordering;

/// Types of offsets along a column of `ty`, as PostgreSQL lists them.
fn offset_types(ty: &DataType) -> &'static [DataType] {
    match ty.base() {
        DataType::Int2 | DataType::Int4 => &[DataType::Int8, DataType::Int4, DataType::Int2],
        DataType::Int8 => &[DataType::Int8],
        DataType::Float4 | DataType::Float8 => &[DataType::Float8],
        DataType::Numeric(_) => &[DataType::Numeric(None)],
        DataType::Date | DataType::Time | DataType::Timestamp | DataType::TimestampTz | DataType::Interval => {
            &[DataType::Interval]
        }
        _ => &[],
    }
}

/// What an offset of type `given` along a column of type `ty` is brought to. 0A000 if the column's type has no
/// distances, or none of the given type.
pub fn offset_type(ty: &DataType, given: &DataType) -> Result<DataType> {
    let column = ty.base();
    let all = offset_types(&column);
    if all.is_empty() {
        return Err(Error::not_supported(format!(
            "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
            column.sql_name()
        )));
    }
    let given = given.base();
    // A literal is read as the column's own type where that is possible.
    let preferred = if given == DataType::Unknown { column.clone() } else { given.clone() };
    if let Some(found) = all.iter().find(|offered| **offered == preferred) {
        return Ok(found.clone());
    }
    let fitting: Vec<&DataType> = all
        .iter()
        .filter(|offered| given == DataType::Unknown || crate::resolve::coerce::is_implicit(&given, offered))
        .collect();
    let about = format!("for column type {} and offset type {}", column.sql_name(), given.sql_name());
    match fitting.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(Error::not_supported(format!("RANGE with offset PRECEDING/FOLLOWING is not supported {about}"))
            .with_hint("Cast the offset value to an appropriate type.")),
        _ => Err(Error::not_supported(format!(
            "RANGE with offset PRECEDING/FOLLOWING has multiple interpretations {about}"
        ))
        .with_hint("Cast the offset value to the exact intended type.")),
    }
}

/// One bound's test: `value >= base ± offset`, or `<=`.
pub struct InRange<'a> {
    ty: DataType,
    offset: Distance,
    subtract: bool,
    less: bool,
    ctx: &'a EvalContext,
}

enum Distance {
    Whole(i64),
    Float(f64),
    Numeric(Numeric),
    Span(Interval),
}

impl<'a> InRange<'a> {
    /// The offset is checked when it is first used: an empty window has none that is wrong.
    pub fn new(
        ty: &DataType,
        offset: &Offset,
        subtract: bool,
        less: bool,
        ctx: &'a EvalContext,
    ) -> Result<InRange<'a>> {
        let offset = match (&offset.value, offset.ty.base()) {
            (Datum::I16(value), _) => Distance::Whole(i64::from(*value)),
            (Datum::I32(value), _) => Distance::Whole(i64::from(*value)),
            (value, DataType::Numeric(_)) => Distance::Numeric(Numeric::from_datum(value, &offset.ty)?),
            (Datum::I64(value), _) => Distance::Whole(*value),
            (Datum::F64(value), _) => Distance::Float(*value),
            (Datum::Fixed16(bytes), DataType::Interval) => Distance::Span(Interval::from_bytes(*bytes)),
            (other, ty) => return Err(mismatch(&ty, other)),
        };
        Ok(InRange { ty: ty.clone(), offset, subtract, less, ctx })
    }

    /// Neither value is null. 22013 for a negative offset.
    pub fn holds(&self, value: &Datum, base: &Datum) -> Result<bool> {
        let ordering = match (&self.offset, value, base) {
            (Distance::Whole(offset), value, base) => {
                let (value, base) = (whole(&self.ty, value)?, whole(&self.ty, base)?);
                if *offset < 0 {
                    return Err(invalid());
                }
                let offset = i128::from(*offset);
                let sum = i128::from(base) + if self.subtract { -offset } else { offset };
                i128::from(value).cmp(&sum)
            }
            (Distance::Float(offset), value, base) => {
                return self.float(float(&self.ty, value)?, float(&self.ty, base)?, *offset);
            }
            (Distance::Numeric(offset), value, base) => return self.numeric(value, base, offset),
            (Distance::Span(offset), Datum::Fixed16(value), Datum::Fixed16(base)) => {
                self.check_span(*offset)?;
                let base = Interval::from_bytes(*base);
                let sum = if self.subtract { base.sub(*offset)? } else { base.add(*offset)? };
                Interval::from_bytes(*value).span().cmp(&sum.span())
            }
            (Distance::Span(offset), Datum::I64(value), Datum::I64(base)) if self.ty == DataType::Time => {
                if offset.micros < 0 {
                    return Err(invalid());
                }
                let micros = i128::from(offset.micros);
                i128::from(*value).cmp(&(i128::from(*base) + if self.subtract { -micros } else { micros }))
            }
            (Distance::Span(offset), value, base) => {
                self.check_span(*offset)?;
                let (value, base) = (moment(&self.ty, value)?, moment(&self.ty, base)?);
                let offset = if self.subtract { offset.negate()? } else { *offset };
                let sum = match self.ty {
                    DataType::TimestampTz => datetime::timestamptz_add(base, offset, &self.ctx.timezone)?,
                    _ => datetime::timestamp_add(base, offset)?,
                };
                value.cmp(&sum)
            }
        };
        Ok(self.decided(ordering))
    }

    fn decided(&self, ordering: Ordering) -> bool {
        if self.less { ordering.is_le() } else { ordering.is_ge() }
    }

    fn check_span(&self, offset: Interval) -> Result<()> {
        if offset.span() < 0 { Err(invalid()) } else { Ok(()) }
    }

    fn float(&self, value: f64, base: f64, offset: f64) -> Result<bool> {
        if offset.is_nan() || offset < 0.0 {
            return Err(invalid());
        }
        if let Some(decided) = self.with_nan(value.is_nan(), base.is_nan()) {
            return Ok(decided);
        }
        let sum = if self.subtract { base - offset } else { base + offset };
        // Infinity less infinity: everything is in reach.
        Ok(sum.is_nan() || if self.less { value <= sum } else { value >= sum })
    }

    fn numeric(&self, value: &Datum, base: &Datum, offset: &Numeric) -> Result<bool> {
        if offset.is_nan() || offset.signum() < 0 {
            return Err(invalid());
        }
        let (value_is, base_is) = (Numeric::from_datum(value, &self.ty)?, Numeric::from_datum(base, &self.ty)?);
        if let Some(decided) = self.with_nan(value_is.is_nan(), base_is.is_nan()) {
            return Ok(decided);
        }
        let sum = if self.subtract { base_is.sub(offset)? } else { base_is.add(offset)? };
        Ok(sum.is_nan() || self.decided(value_is.cmp(&sum)))
    }

    /// NaN sorts after everything else, and no offset leads away from it.
    fn with_nan(&self, value: bool, base: bool) -> Option<bool> {
        match (value, base) {
            (true, true) => Some(true),
            (true, false) => Some(!self.less),
            (false, true) => Some(self.less),
            (false, false) => None,
        }
    }
}

#[cold]
fn invalid() -> Error {
    Error::new("22013", "invalid preceding or following size in window function")
}

fn whole(ty: &DataType, value: &Datum) -> Result<i64> {
    match value {
        Datum::I16(value) => Ok(i64::from(*value)),
        Datum::I32(value) => Ok(i64::from(*value)),
        Datum::I64(value) => Ok(*value),
        other => Err(mismatch(ty, other)),
    }
}

fn float(ty: &DataType, value: &Datum) -> Result<f64> {
    match value {
        Datum::F32(value) => Ok(f64::from(*value)),
        Datum::F64(value) => Ok(*value),
        other => Err(mismatch(ty, other)),
    }
}

/// A date as its first moment; timestamps as they are.
fn moment(ty: &DataType, value: &Datum) -> Result<i64> {
    match value {
        Datum::I64(micros) => Ok(*micros),
        Datum::I32(days) => datetime::date_to_timestamp(*days)
            .or_else(|_| Ok(i64::from(*days).saturating_mul(MICROS_PER_DAY).min(datetime::TIMESTAMP_MAX))),
        other => Err(mismatch(ty, other)),
    }
}
