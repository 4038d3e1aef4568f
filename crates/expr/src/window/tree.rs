//! A tree of partial states over all rows, from which any frame is put together.
//!
//! The lowest level has one state per 16 rows, each further level one per 16 states below (Leis and others,
//! "Efficient Processing of Window Functions in Analytical SQL Queries", 2015). Parts of a frame are merged in
//! the order of rows.

use super::moving::{Input, joined};
use super::{Frames, Rows};
use crate::error::Result;
use crate::eval::vector::from_arrow;
use arrow::compute::take;
use arrow_array::{ArrayRef, UInt32Array};
use std::ops::Range;

const FANOUT: u32 = 16;
/// Frames that are put together in one go.
const FRAMES_MAX: usize = 1024;

/// Parts of frames at one level: which frame, and which state (or row).
#[derive(Default)]
struct Parts {
    frames: Vec<u32>,
    places: Vec<u32>,
}

impl Parts {
    fn add(&mut self, frame: u32, places: Range<u32>) {
        self.frames.extend(places.clone().map(|_| frame));
        self.places.extend(places);
    }
}

pub(super) fn over_frames(rows: &Rows, frames: &Frames, input: &Input) -> Result<ArrayRef> {
    let levels = levels(rows, input)?;
    let mut out = Vec::with_capacity(rows.len() / FRAMES_MAX + 1);
    for first in (0..rows.len()).step_by(FRAMES_MAX) {
        (rows.check)()?;
        let count = FRAMES_MAX.min(rows.len() - first);
        let mut states = input.call.accumulator();
        for nth in 0..3 {
            // The parts before the middle, level by level upwards, then those after it downwards.
            let mut before: Vec<Parts> = (0..=levels.len()).map(|_| Parts::default()).collect();
            let mut after: Vec<Parts> = (0..=levels.len()).map(|_| Parts::default()).collect();
            for frame in 0..count {
                cover(frames.ranges(first + frame)[nth].clone(), frame as u32, &mut before, &mut after);
            }
            let upwards = before.iter().enumerate();
            let downwards = after.iter().enumerate().rev();
            for (level, parts) in upwards.chain(downwards) {
                if nth > 0 && parts.places.is_empty() {
                    continue;
                }
                let places = UInt32Array::from(parts.places.clone());
                if level == 0 {
                    let (args, filter) = input.at(&places)?;
                    states.update(&parts.frames, &args, filter.as_ref(), count)?;
                } else if !parts.places.is_empty() {
                    let taken = levels[level - 1].iter().map(|state| take(state, &places, None));
                    let taken = taken.collect::<std::result::Result<Vec<_>, _>>().map_err(from_arrow)?;
                    states.merge(&parts.frames, &taken, count)?;
                }
            }
        }
        out.push(states.evaluate()?);
    }
    joined(&out, input)
}

/// States of every level, the lowest first.
fn levels(rows: &Rows, input: &Input) -> Result<Vec<Vec<ArrayRef>>> {
    let mut levels: Vec<Vec<ArrayRef>> = Vec::new();
    let mut count = rows.rows;
    while count > FANOUT {
        (rows.check)()?;
        let numbers: Vec<u32> = (0..count).map(|at| at / FANOUT).collect();
        let total = count.div_ceil(FANOUT);
        let mut states = input.call.accumulator();
        match levels.last() {
            None => states.update(&numbers, input.args, input.filter, total as usize)?,
            Some(below) => states.merge(&numbers, below, total as usize)?,
        }
        levels.push(states.state()?);
        count = total;
    }
    Ok(levels)
}

/// Takes a range of rows apart.
fn cover(range: Range<u32>, frame: u32, before: &mut [Parts], after: &mut [Parts]) {
    let (mut start, mut end) = (range.start, range.end);
    let top = before.len() - 1;
    for level in 0..top {
        let (inner_start, inner_end) = (start.div_ceil(FANOUT), end / FANOUT);
        if inner_start >= inner_end {
            before[level].add(frame, start..end);
            return;
        }
        before[level].add(frame, start..inner_start * FANOUT);
        after[level].add(frame, inner_end * FANOUT..end);
        (start, end) = (inner_start, inner_end);
    }
    before[top].add(frame, start..end);
}
