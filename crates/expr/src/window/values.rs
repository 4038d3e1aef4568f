//! Functions that give another row's value: `lag`, `lead`, `first_value`, `last_value`, `nth_value`.

use super::{CHECKED_ROWS, Frames, Rows};
use crate::error::{Error, Result};
use crate::eval::vector::from_arrow;
use crate::functions::arg::{Arg, I4};
use arrow::compute::{concat, interleave, take};
use arrow_array::{Array, ArrayRef, UInt32Array, new_null_array};
use basalt_types::DataType;
use std::ops::Range;

/// `lag` (or `lead`) of `values`: `offsets` rows away (one, if there are none), null where the offset is;
/// `defaults` where the partition has no such row.
pub fn shifted(
    rows: &Rows,
    values: &ArrayRef,
    offsets: Option<&ArrayRef>,
    defaults: Option<&ArrayRef>,
    lead: bool,
) -> Result<ArrayRef> {
    const VALUE: usize = 0;
    const NULL: usize = 1;
    const DEFAULT: usize = 2;
    let distances = offsets.map(|offsets| I4::column(offsets, &DataType::Int4)).transpose()?;
    let mut picks = Vec::with_capacity(rows.len());
    for partition in rows.partitions() {
        for row in partition.clone() {
            rows.check_at(row as usize)?;
            if offsets.is_some_and(|offsets| offsets.is_null(row as usize)) {
                picks.push((NULL, 0));
                continue;
            }
            let distance = distances.map_or(1, |distances| i64::from(distances[row as usize]));
            let place = i64::from(row) + if lead { distance } else { -distance };
            picks.push(match place >= i64::from(partition.start) && place < i64::from(partition.end) {
                true => (VALUE, place as usize),
                false if defaults.is_some() => (DEFAULT, row as usize),
                false => (NULL, 0),
            });
        }
    }
    let null = new_null_array(values.data_type(), 1);
    let mut sources: Vec<&dyn Array> = vec![values.as_ref(), null.as_ref()];
    sources.extend(defaults.map(|defaults| defaults.as_ref()));
    in_pieces(rows, |piece| interleave(&sources, &picks[piece]).map_err(from_arrow))
}

/// An end of the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    First,
    Last,
}

/// `first_value` or `last_value`; null for an empty frame.
pub fn edge_value(rows: &Rows, frames: &Frames, values: &ArrayRef, edge: Edge) -> Result<ArrayRef> {
    let place = |row: usize| {
        let mut ranges = frames.ranges(row).into_iter().filter(|range| range.start < range.end);
        match edge {
            Edge::First => ranges.next().map(|range| range.start),
            Edge::Last => ranges.next_back().map(|range| range.end - 1),
        }
    };
    in_pieces(rows, |piece| take(values, &piece.map(place).collect::<UInt32Array>(), None).map_err(from_arrow))
}

/// What is computed of some rows after the other, of all.
fn in_pieces(rows: &Rows, of: impl Fn(Range<usize>) -> Result<ArrayRef>) -> Result<ArrayRef> {
    const ROWS: usize = 8 * CHECKED_ROWS;
    if rows.len() <= ROWS {
        return of(0..rows.len());
    }
    let mut parts = Vec::with_capacity(rows.len() / ROWS + 1);
    for from in (0..rows.len()).step_by(ROWS) {
        (rows.check)()?;
        parts.push(of(from..rows.len().min(from + ROWS))?);
    }
    concat(&parts.iter().map(|part| part.as_ref()).collect::<Vec<_>>()).map_err(from_arrow)
}

/// `nth_value`, counted from 1; null where the frame has fewer rows, or `nth` is null. 22016 unless it is positive.
pub fn nth_value(rows: &Rows, frames: &Frames, values: &ArrayRef, nth: &ArrayRef) -> Result<ArrayRef> {
    let numbers = I4::column(nth, &DataType::Int4)?;
    let mut places = UInt32Array::builder(rows.len());
    for (row, number) in numbers.iter().enumerate().take(rows.len()) {
        rows.check_at(row)?;
        if nth.is_null(row) {
            places.append_null();
            continue;
        }
        if *number <= 0 {
            return Err(Error::new("22016", "argument of nth_value must be greater than zero"));
        }
        let mut left = *number as u32 - 1;
        let mut found = None;
        for range in frames.ranges(row) {
            let size = range.end - range.start;
            if left < size {
                found = Some(range.start + left);
                break;
            }
            left -= size;
        }
        places.append_option(found);
    }
    take(values, &places.finish(), None).map_err(from_arrow)
}
