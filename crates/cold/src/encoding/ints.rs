//! Integers (and floats by their bits): the smallest of frame of reference, deltas with restarts, and runs.
//!
//! ```text
//! 0 | frame                                        values themselves
//! 1 | frame of restarts | frame of deltas          restarts[i / 128] + deltas after it; deltas[0] is unused
//! 2 | runs varint | frame of ends | frame of values    ends ascend, the last is the count
//! ```
//!
//! Choosing costs one exact pass over a page, which is cheaper than being wrong about it.

use super::bits::width_of;
use super::linear::{self, Linear, Word};
use super::{Damage, Decoded, RESTART, take_array, take_varint};
use basalt_types::span::Span;
use basalt_types::varint;
use std::ops::Range;

/// Values of a run that are written at once.
const RUN_AT_ONCE: usize = 16;

const FRAME: u8 = 0;
const DELTA: u8 = 1;
const RUNS: u8 = 2;

pub(crate) enum Ints<'a> {
    Frame(Linear<'a>),
    Delta { restarts: Linear<'a>, deltas: Linear<'a> },
    Runs { count: usize, ends: Linear<'a>, values: Linear<'a> },
}

impl<'a> Ints<'a> {
    pub fn parse(input: &mut &'a [u8], count: usize) -> Decoded<Ints<'a>> {
        match take_array(input, "encoding of integers")? {
            [FRAME] => Ok(Ints::Frame(Linear::parse(input, count)?)),
            [DELTA] => {
                let restarts = Linear::parse(input, count.div_ceil(RESTART))?;
                Ok(Ints::Delta { restarts, deltas: Linear::parse(input, count)? })
            }
            [RUNS] => {
                let runs = take_varint(input, "number of runs")?;
                if runs > count as u64 || (runs == 0 && count > 0) {
                    return Err(Damage("more runs than values"));
                }
                let ends = Linear::parse(input, runs as usize)?;
                Ok(Ints::Runs { count, ends, values: Linear::parse(input, runs as usize)? })
            }
            _ => Err(Damage("unknown encoding of integers")),
        }
    }

    /// # Panics
    /// If `index` is not below the count.
    pub fn get(&self, index: usize) -> i64 {
        match self {
            Ints::Frame(frame) => frame.get(index),
            Ints::Delta { restarts, deltas } => {
                let restart = index / RESTART;
                restarts.get(restart).wrapping_add(deltas.sum(restart * RESTART + 1..index + 1))
            }
            Ints::Runs { ends, values, .. } => values.get(run_of(ends, index)),
        }
    }

    /// Appends the values at some places that follow each other.
    ///
    /// # Panics
    /// If a place is not below the count.
    pub fn get_range(&self, places: Range<usize>, out: &mut Vec<i64>) {
        match self {
            Ints::Delta { deltas, .. } => {
                let mut value = 0;
                for (nth, place) in places.enumerate() {
                    value = match nth == 0 || place % RESTART == 0 {
                        true => self.get(place),
                        false => deltas.get(place).wrapping_add(value),
                    };
                    out.push(value);
                }
            }
            Ints::Frame(frame) => out.extend(places.map(|place| frame.get(place))),
            Ints::Runs { ends, values, .. } => {
                let mut run = 0;
                for (nth, place) in places.enumerate() {
                    run = if nth == 0 { run_of(ends, place) } else { run };
                    while run + 1 < ends.count && ends.get(run) as u64 <= place as u64 {
                        run += 1;
                    }
                    out.push(values.get(run));
                }
            }
        }
    }

    /// Clears the mask where the value lies outside of the span; whether this form can do so.
    pub fn test(&self, span: Span, mask: &mut [u8]) -> Decoded<bool> {
        match self {
            Ints::Frame(frame) => frame.test(span, mask),
            Ints::Delta { .. } => return Ok(false),
            Ints::Runs { ends, values, .. } => {
                let mut passes = vec![1; values.count];
                values.test(span, &mut passes);
                let mut of_rows = vec![0u8; mask.len()];
                spread(ends, &passes, &mut of_rows)?;
                mask.iter_mut().zip(of_rows).for_each(|(mask, passes)| *mask &= passes);
            }
        }
        Ok(true)
    }

    /// Appends all values, truncated to `T`.
    pub fn decode<T: Word>(&self, out: &mut Vec<T>) -> Decoded<()> {
        match self {
            Ints::Frame(frame) => frame.decode(out),
            Ints::Delta { restarts, deltas } => {
                let from = out.len();
                deltas.decode(out);
                for (i, run) in out[from..].chunks_mut(RESTART).enumerate() {
                    run[0] = T::from_u64(restarts.get(i) as u64);
                    T::add_up(run);
                }
            }
            Ints::Runs { count, ends, values } => {
                let mut run_values = Vec::<T>::new();
                values.decode(&mut run_values);
                let from = out.len();
                out.resize(from + *count, T::default());
                spread(ends, &run_values, &mut out[from..])?;
            }
        }
        Ok(())
    }
}

/// The run that a place is in.
fn run_of(ends: &Linear<'_>, place: usize) -> usize {
    let (mut low, mut high) = (0, ends.count - 1);
    while low < high {
        let middle = (low + high) / 2;
        if ends.get(middle) as u64 > place as u64 {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Writes each run's value to all of its places.
fn spread<T: Copy>(ends: &Linear<'_>, values: &[T], out: &mut [T]) -> Decoded<()> {
    let mut places = Vec::<i64>::new();
    ends.decode(&mut places);
    let mut done = 0;
    for (end, value) in places.into_iter().zip(values) {
        let end = usize::try_from(end).ok().filter(|end| *end > done && *end <= out.len());
        let end = end.ok_or(Damage("ends of runs do not ascend"))?;
        // Most runs are short: a vector is written at a time, and what of it is too much is written again.
        while done < end {
            match out[done..].first_chunk_mut::<RUN_AT_ONCE>() {
                Some(some) => *some = [*value; RUN_AT_ONCE],
                None => out[done..end].fill(*value),
            }
            done += RUN_AT_ONCE;
        }
        done = end;
    }
    if done == out.len() { Ok(()) } else { Err(Damage("runs end before the page")) }
}

struct Shape {
    min: i64,
    max: i64,
    runs: usize,
    delta_min: i64,
    delta_max: i64,
}

fn shape_of(values: &[i64]) -> Shape {
    let (mut min, mut max) = (i64::MAX, i64::MIN);
    for value in values {
        min = min.min(*value);
        max = max.max(*value);
    }
    let (mut delta_min, mut delta_max, mut changes) = (i64::MAX, i64::MIN, 0);
    for (a, b) in values.iter().zip(&values[1..]) {
        let delta = b.wrapping_sub(*a);
        delta_min = delta_min.min(delta);
        delta_max = delta_max.max(delta);
        changes += usize::from(delta != 0);
    }
    Shape { min, max, runs: changes + 1, delta_min, delta_max }
}

/// Appends values in their smallest form.
pub(crate) fn encode(values: &[i64], out: &mut Vec<u8>) {
    if values.is_empty() {
        out.push(FRAME);
        return linear::encode(values, 0, 0, out);
    }
    let shape = shape_of(values);
    let width = usize::from(width_of(shape.max.wrapping_sub(shape.min) as u64));
    let count = values.len();
    let frame_bits = count * width;
    let runs_bits = 200 + shape.runs * (usize::from(width_of(count as u64)) + width);
    let delta_width = match count {
        1 => width,
        _ => usize::from(width_of(shape.delta_max.wrapping_sub(shape.delta_min) as u64)),
    };
    let delta_bits = 100 + count * delta_width + count.div_ceil(RESTART) * width;
    // Frames decode fastest: another form must save a tenth.
    if runs_bits.min(delta_bits) * 10 > frame_bits * 9 {
        out.push(FRAME);
        linear::encode(values, shape.min, shape.max, out);
    } else if runs_bits <= delta_bits {
        encode_runs(values, &shape, out);
    } else {
        encode_deltas(values, &shape, out);
    }
}

fn encode_deltas(values: &[i64], shape: &Shape, out: &mut Vec<u8>) {
    out.push(DELTA);
    let restarts: Vec<i64> = values.iter().step_by(RESTART).copied().collect();
    linear::encode_any(&restarts, out);
    let mut deltas = Vec::with_capacity(values.len());
    deltas.push(shape.delta_min);
    deltas.extend(values.iter().zip(&values[1..]).map(|(a, b)| b.wrapping_sub(*a)));
    linear::encode(&deltas, shape.delta_min, shape.delta_max, out);
}

fn encode_runs(values: &[i64], shape: &Shape, out: &mut Vec<u8>) {
    out.push(RUNS);
    varint::put(out, shape.runs as u64);
    let (mut ends, mut run_values) = (Vec::with_capacity(shape.runs), Vec::with_capacity(shape.runs));
    for (i, value) in values.iter().enumerate() {
        if run_values.last() == Some(value) {
            continue;
        }
        if i > 0 {
            ends.push(i as i64);
        }
        run_values.push(*value);
    }
    ends.push(values.len() as i64);
    linear::encode_any(&ends, out);
    linear::encode(&run_values, shape.min, shape.max, out);
}
