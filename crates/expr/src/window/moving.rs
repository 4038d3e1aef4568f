//! Aggregates over frames.
//!
//! Exact sums and counts are differences of running totals ([`prefix`](super::prefix)). Anything else: one
//! state per partition where frames are whole partitions, a state that grows where frames only grow, the
//! frame's rows anew where that is little work in all, and a tree of partial states elsewhere
//! ([`tree`](super::tree)), so that no frame takes more than a few dozen steps.

use super::{Frames, Rows, prefix, tree};
use crate::aggregates::{GroupsAccumulator, ResolvedAggregate};
use crate::error::Result;
use crate::eval::vector::{VectorBuilder, from_arrow, value_at};
use arrow::compute::{concat, take};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray, UInt32Array};
use std::ops::Range;

/// Rows that are looked at in one call.
pub(super) const STEP_ROWS_MAX: usize = 1 << 16;
/// Rows of all frames together, below which each frame is computed from its rows alone: floats then add up as
/// they stand.
const REPEATED_ROWS_MAX: u64 = 20_000_000;

/// What an aggregate is computed from.
pub(super) struct Input<'a> {
    pub call: &'a ResolvedAggregate,
    pub args: &'a [ArrayRef],
    pub filter: Option<&'a BooleanArray>,
}

impl Input<'_> {
    /// Arguments and filter at these rows.
    pub fn at(&self, rows: &UInt32Array) -> Result<(Vec<ArrayRef>, Option<BooleanArray>)> {
        let args = self.args.iter().map(|arg| take(arg, rows, None)).collect::<std::result::Result<Vec<_>, _>>();
        let filter = match self.filter {
            Some(filter) => Some(take(filter, rows, None).map_err(from_arrow)?.as_boolean().clone()),
            None => None,
        };
        Ok((args.map_err(from_arrow)?, filter))
    }

    fn slice(&self, rows: &Range<usize>) -> (Vec<ArrayRef>, Option<BooleanArray>) {
        let args = self.args.iter().map(|arg| arg.slice(rows.start, rows.len())).collect();
        (args, self.filter.map(|filter| filter.slice(rows.start, rows.len())))
    }
}

/// The aggregate over each row's frame. Rows where `filter` is not true are left out.
pub fn over_frames(
    rows: &Rows,
    frames: &Frames,
    call: &ResolvedAggregate,
    args: &[ArrayRef],
    filter: Option<&BooleanArray>,
) -> Result<ArrayRef> {
    let input = Input { call, args, filter };
    if let Some(done) = prefix::over_frames(rows, frames, &input)? {
        return Ok(done);
    }
    if frames.whole {
        return whole_partitions(rows, &input);
    }
    if frames.growing {
        return growing(rows, frames, &input);
    }
    let mut total = 0u64;
    for row in 0..rows.len() {
        total = total.saturating_add(frames.size(row));
    }
    match total <= REPEATED_ROWS_MAX.max(rows.len() as u64 * 64) {
        true => each_anew(rows, frames, &input),
        false => tree::over_frames(rows, frames, &input),
    }
}

fn whole_partitions(rows: &Rows, input: &Input) -> Result<ArrayRef> {
    let mut numbers = Vec::with_capacity(rows.len());
    let mut count = 0;
    for partition in rows.partitions() {
        numbers.extend(partition.map(|_| count));
        count += 1;
    }
    let mut states = input.call.accumulator();
    states.update(&numbers, input.args, input.filter, count as usize)?;
    take(&states.evaluate()?, &UInt32Array::from(numbers), None).map_err(from_arrow)
}

fn growing(rows: &Rows, frames: &Frames, input: &Input) -> Result<ArrayRef> {
    grown(rows, frames, input, None).map(|(values, _)| values)
}

/// As [`over_frames`] where frames begin with their partition and end with their row or its peers. The first partition
/// goes on with the state that came out for the last one of the rows before, if it is the same.
pub fn going_on(
    rows: &Rows,
    frames: &Frames,
    call: &ResolvedAggregate,
    args: &[ArrayRef],
    filter: Option<&BooleanArray>,
    state: Option<State>,
) -> Result<(ArrayRef, Option<State>)> {
    grown(rows, frames, &Input { call, args, filter }, state)
}

type State = Box<dyn GroupsAccumulator>;

fn grown(rows: &Rows, frames: &Frames, input: &Input, mut carried: Option<State>) -> Result<(ArrayRef, Option<State>)> {
    let mut out = VectorBuilder::new(&input.call.ty, rows.len());
    let zeros = vec![0u32; rows.len().min(STEP_ROWS_MAX)];
    let mut last = None;
    for partition in rows.partitions() {
        let mut state = carried.take().unwrap_or_else(|| input.call.accumulator());
        let mut known = partition.start as usize;
        let mut value = None;
        for row in partition {
            rows.check_at(row as usize)?;
            let end = (frames.end[row as usize] as usize).max(known);
            while known < end || value.is_none() {
                let step = known..end.min(known + zeros.len());
                let (args, filter) = input.slice(&step);
                state.update(&zeros[..step.len()], &args, filter.as_ref(), 1)?;
                known = step.end;
                if known == end {
                    value = Some(value_at(&input.call.ty, state.evaluate()?.as_ref(), 0));
                }
            }
            if let Some(value) = &value {
                out.push(value)?;
            }
        }
        last = Some(state);
    }
    Ok((out.finish()?, last))
}

fn each_anew(rows: &Rows, frames: &Frames, input: &Input) -> Result<ArrayRef> {
    let mut parts: Vec<ArrayRef> = Vec::new();
    let (mut numbers, mut places) = (Vec::new(), Vec::new());
    let mut first = 0;
    for row in 0..rows.len() {
        let number = (row - first) as u32;
        for range in frames.ranges(row) {
            numbers.extend(range.clone().map(|_| number));
            places.extend(range);
        }
        if places.len() >= STEP_ROWS_MAX || number as usize >= STEP_ROWS_MAX || row + 1 == rows.len() {
            (rows.check)()?;
            let (args, filter) = input.at(&UInt32Array::from(std::mem::take(&mut places)))?;
            let mut states = input.call.accumulator();
            states.update(&numbers, &args, filter.as_ref(), row + 1 - first)?;
            parts.push(states.evaluate()?);
            numbers.clear();
            first = row + 1;
        }
    }
    joined(&parts, input)
}

pub(super) fn joined(parts: &[ArrayRef], input: &Input) -> Result<ArrayRef> {
    if parts.is_empty() {
        return Ok(arrow_array::new_empty_array(&input.call.ty.to_arrow()));
    }
    let parts: Vec<&dyn Array> = parts.iter().map(|part| part.as_ref()).collect();
    concat(&parts).map_err(from_arrow)
}
