//! Counts, and sums and averages of integers and scaled numerics, as differences of running totals.

use super::moving::Input;
use super::{Frames, Rows};
use crate::error::{Error, Result};
use crate::eval::vector::VectorBuilder;
use crate::functions::arg::{Arg, I2, I4, I8, Num, NumColumn};
use crate::numeric::Numeric;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// Sums of differences of totals below this fit into 128 bits.
const TOTAL_MAX: u128 = 1 << 124;

/// `None` for anything else, and for totals beyond 128 bits.
pub(super) fn over_frames(rows: &Rows, frames: &Frames, input: &Input) -> Result<Option<ArrayRef>> {
    let name = input.call.aggregate.name.as_str();
    let counting = name == "count";
    if !counting && !matches!(name, "sum" | "avg") {
        return Ok(None);
    }
    let mask = mask(input);
    let totals = match input.args {
        _ if counting => None,
        [values] => match totals(rows, values, &input.call.arg_types[0], mask.as_ref())? {
            Some(totals) => Some(totals),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let counts = counts(rows, mask.as_ref())?;
    let count_of = |row: usize| -> i64 {
        let ranges = frames.ranges(row).into_iter();
        ranges.map(|range| i64::from(counts[range.end as usize]) - i64::from(counts[range.start as usize])).sum()
    };
    let Some((totals, scale)) = totals else {
        return Ok(Some(Arc::new((0..rows.len()).map(count_of).collect::<Int64Array>())));
    };
    let result = |row: usize| -> Result<Datum> {
        let count = count_of(row);
        if count == 0 {
            return Ok(Datum::Null);
        }
        let ranges = frames.ranges(row).into_iter();
        let sum = ranges.fold(0i128, |sum, range| {
            sum.wrapping_add(totals[range.end as usize].wrapping_sub(totals[range.start as usize]))
        });
        if input.call.ty == DataType::Int8 {
            return i64::try_from(sum).map(Datum::I64).map_err(|_| Error::out_of_range("bigint"));
        }
        let sum = Numeric::from_scaled(sum, scale);
        let value = if name == "avg" { sum.div(&Numeric::from(count as u64))? } else { sum };
        Ok(Datum::Bytes(value.encoded().into()))
    };
    let mut out = VectorBuilder::new(&input.call.ty, rows.len());
    let mut value = Datum::Null;
    for row in 0..rows.len() {
        rows.check_at(row)?;
        if !frames.is_repeated(row) {
            value = result(row)?;
        }
        out.push(&value)?;
    }
    out.finish().map(Some)
}

/// Rows that count; `None`: all.
fn mask(input: &Input) -> Option<BooleanBuffer> {
    let nulls =
        input.args.iter().fold(None, |nulls, arg| NullBuffer::union(nulls.as_ref(), arg.logical_nulls().as_ref()));
    match (input.filter.map(crate::eval::is_true), nulls) {
        (None, None) => None,
        (Some(filter), None) => Some(filter),
        (None, Some(nulls)) => Some(nulls.into_inner()),
        (Some(filter), Some(nulls)) => Some(&filter & nulls.inner()),
    }
}

/// Rows that count before each row, and in all.
fn counts(rows: &Rows, mask: Option<&BooleanBuffer>) -> Result<Vec<u32>> {
    let mut out = Vec::with_capacity(rows.len() + 1);
    let mut count = 0;
    out.push(count);
    for row in 0..rows.len() {
        rows.check_at(row)?;
        count += u32::from(mask.is_none_or(|mask| mask.value(row)));
        out.push(count);
    }
    Ok(out)
}

/// The running totals before each row, and their scale. `None` where they are not exact integers.
fn totals(
    rows: &Rows,
    values: &ArrayRef,
    ty: &DataType,
    mask: Option<&BooleanBuffer>,
) -> Result<Option<(Vec<i128>, u16)>> {
    Ok(match ty {
        DataType::Int2 => {
            let values = I2::column(values, ty)?;
            added(rows, mask, |row| i128::from(values[row]))?.map(|totals| (totals, 0))
        }
        DataType::Int4 => {
            let values = I4::column(values, ty)?;
            added(rows, mask, |row| i128::from(values[row]))?.map(|totals| (totals, 0))
        }
        DataType::Int8 => {
            let values = I8::column(values, ty)?;
            added(rows, mask, |row| i128::from(values[row]))?.map(|totals| (totals, 0))
        }
        DataType::Numeric(_) => match Num::column(values, ty)? {
            NumColumn::Scaled(values, scale) => added(rows, mask, |row| values[row])?.map(|totals| (totals, scale)),
            NumColumn::Encoded(_) => None,
        },
        _ => None,
    })
}

/// `None` for totals that are too large.
fn added(rows: &Rows, mask: Option<&BooleanBuffer>, value: impl Fn(usize) -> i128) -> Result<Option<Vec<i128>>> {
    let mut out = Vec::with_capacity(rows.len() + 1);
    let mut total = 0i128;
    out.push(total);
    for row in 0..rows.len() {
        rows.check_at(row)?;
        if mask.is_none_or(|mask| mask.value(row)) {
            match total.checked_add(value(row)).filter(|total| total.unsigned_abs() <= TOTAL_MAX) {
                Some(sum) => total = sum,
                None => return Ok(None),
            }
        }
        out.push(total);
    }
    Ok(Some(out))
}
