//! Floats of both widths as integers of the same order, and comparisons with constants by these.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef};
use arrow_buffer::ScalarBuffer;
use basalt_types::floats::{ordered, word};
use basalt_types::span::{Span, Verdict};
use basalt_types::widest;
use std::borrow::Cow;

/// Values of either width; `None` if they are no floats.
pub fn values(array: &ArrayRef) -> Option<Cow<'_, [f64]>> {
    if let Some(values) = array.as_primitive_opt::<Float64Type>() {
        return Some(Cow::Borrowed(values.values()));
    }
    let values = array.as_primitive_opt::<Float32Type>()?;
    Some(values.values().iter().map(|value| f64::from(*value)).collect())
}

widest! {
    fn words_of(values: &[f64]) -> Vec<i64> {
        values.iter().map(|value| word(*value)).collect()
    }
}

widest! {
    fn ordered_of(values: &[f64]) -> Vec<i64> {
        values.iter().map(|value| ordered(*value)).collect()
    }
}

/// [`word`] of each value; `None` if they are no floats.
pub fn words(array: &ArrayRef) -> Option<Vec<i64>> {
    values(array).map(|values| words_of(&values))
}

/// [`ordered`] of each value; `None` if they are no floats.
pub fn in_order(array: &ArrayRef) -> Option<ScalarBuffer<i64>> {
    values(array).map(|values| ordered_of(&values).into())
}

widest! {
    fn between(values: &[f64], low: i64, high: i64, inside: bool, mask: &mut [u8]) {
        for (mask, value) in mask.iter_mut().zip(values) {
            let value = ordered(*value);
            *mask &= u8::from((value >= low && value <= high) == inside);
        }
    }
}

/// Clears the rows of the mask whose value is not within the span, which is one of [`ordered`] integers, or is null. False:
/// they are no floats.
pub fn within(array: &ArrayRef, span: Span, mask: &mut [u8]) -> bool {
    let Some(values) = values(array) else { return false };
    match span.verdict((i64::MIN.into(), i64::MAX.into())) {
        Verdict::All => {}
        Verdict::None => mask.fill(0),
        Verdict::Depends => {
            let bound = |bound: i128| bound.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            between(&values, bound(span.low), bound(span.high), span.inside, mask);
        }
    }
    super::mask::clear_nulls(array.nulls(), mask);
    true
}

widest! {
    fn most_of(values: &[f64]) -> f64 {
        values.iter().fold(0.0, |most, value| if value.abs() > most { value.abs() } else { most })
    }
}

/// How far from 0 the farthest value is that is a number.
pub fn reach(values: &[f64]) -> f64 {
    most_of(values)
}

#[cfg(test)]
mod tests;
