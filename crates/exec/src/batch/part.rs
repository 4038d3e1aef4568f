//! `extract` of timestamps.

use crate::error::{Error, Result};
use arrow_buffer::NullBuffer;
use basalt_expr::datetime::{Part, is_finite_timestamp};
use basalt_types::vector::{IntValues, Ints};
use std::borrow::Cow;

/// A field of each timestamp.
pub fn of(part: Part, timestamps: &Ints) -> Result<Ints> {
    let values: Cow<'_, [i64]> = match &timestamps.values {
        IntValues::I32(values) => values.iter().map(|at| i64::from(*at)).collect(),
        IntValues::I64(values) => Cow::Borrowed(values),
        IntValues::I128(_) => return Err(Error::Beyond("timestamps of more than 64 bits")),
    };
    let nulls = finite(part, &values, timestamps)?;
    let wide = part.values(&values);
    // Nearly all of them are small numbers.
    let narrow: std::result::Result<Vec<i32>, _> = wide.iter().map(|value| i32::try_from(*value)).collect();
    Ok(Ints::measured(
        narrow.map_or_else(|_| IntValues::I64(wide.into()), |narrow| IntValues::I32(narrow.into())),
        nulls,
    ))
}

/// Which timestamps have a value.
fn finite(part: Part, values: &[i64], timestamps: &Ints) -> Result<Option<NullBuffer>> {
    let may_be = |bound: i128| i64::try_from(bound).map_or(true, |bound| !is_finite_timestamp(bound));
    if !may_be(timestamps.min) && !may_be(timestamps.max) {
        return Ok(timestamps.nulls.clone());
    }
    let valid = |row: usize| timestamps.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
    if part.is_endless() && values.iter().enumerate().any(|(row, at)| valid(row) && !is_finite_timestamp(*at)) {
        return Err(Error::Beyond("an infinite field of a timestamp"));
    }
    let finite: NullBuffer = values.iter().map(|at| is_finite_timestamp(*at)).collect();
    Ok(NullBuffer::union(timestamps.nulls.as_ref(), Some(&finite)))
}
