//! Running states of aggregates, one per group.
//!
//! Exact sums are kept in i64 while the bounds of what was added prove that they fit, and moved to i128 before they
//! might not. What has no kernel here is an accumulator of `expr`.

mod floats;
mod texts;

pub use floats::FloatSum;
pub use texts::TextExtreme;

use crate::error::{Error, Result};
use crate::kernels::sums::{self, Groups};
use crate::stop::pieces;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use basalt_expr::aggregates::GroupsAccumulator;
use basalt_types::vector::{IntValues, Ints};
use std::ops::Range;

/// Counts, sums, extremes or states of `expr`, by group; number 0 is that of rows that do not count.
pub enum State {
    Count(Vec<i64>),
    Sum(Sum),
    FloatSum(FloatSum),
    Extreme(Extreme),
    TextExtreme(TextExtreme),
    General(Box<dyn GroupsAccumulator>),
}

#[derive(Default)]
pub struct Sum {
    low: Vec<i64>,
    /// Empty until something was moved here.
    high: Vec<i128>,
    /// No sum in `low` is farther from 0.
    reach: i128,
}

/// Of integers, or of integers in whose order floats are ([`basalt_types::floats::word`]).
pub struct Extreme {
    greatest: bool,
    values: Vec<i64>,
}

impl Sum {
    /// Adds values to the sums of their groups. Groups are below `len`.
    pub fn add(&mut self, ints: &Ints, groups: Groups<'_>, len: usize) -> Result<()> {
        self.low.resize(len, 0);
        let most = ints.min.unsigned_abs().max(ints.max.unsigned_abs());
        let most = i128::try_from(most).map_err(|_| Error::Beyond("a sum of values of 128 bits"))?;
        let reach = most.checked_mul(ints.values.len() as i128);
        match (reach.filter(|reach| *reach <= i128::from(i64::MAX)), &ints.values) {
            (Some(reach), IntValues::I32(values)) => {
                self.make_room(reach)?;
                sums::add(values, groups, &mut self.low);
            }
            (Some(reach), IntValues::I64(values)) => {
                self.make_room(reach)?;
                sums::add(values, groups, &mut self.low);
            }
            (_, values) => self.add_wide(values, groups, len)?,
        }
        Ok(())
    }

    fn make_room(&mut self, reach: i128) -> Result<()> {
        if self.reach + reach > i128::from(i64::MAX) {
            self.lift()?;
        }
        self.reach += reach;
        Ok(())
    }

    /// Moves what is in i64 to i128.
    fn lift(&mut self) -> Result<()> {
        self.high.resize(self.low.len(), 0);
        for (high, low) in self.high.iter_mut().zip(&mut self.low) {
            *high = high.checked_add(i128::from(std::mem::take(low))).ok_or(BEYOND)?;
        }
        self.reach = 0;
        Ok(())
    }

    fn add_wide(&mut self, values: &IntValues, groups: Groups<'_>, len: usize) -> Result<()> {
        self.high.resize(len, 0);
        for (row, group) in groups.of_rows(values.len()).iter().enumerate() {
            let sum = &mut self.high[*group as usize];
            // What is added for rows that do not count means nothing.
            *sum = if *group == 0 { 0 } else { sum.checked_add(values.get(row)).ok_or(BEYOND)? };
        }
        Ok(())
    }

    /// As [`keep`], of sums that are all in 64 bits.
    pub fn keep(&mut self, first: usize, places: &[usize]) {
        assert!(self.high.is_empty(), "sums are narrow");
        keep(&mut self.low, first, places);
    }

    pub fn bytes(&self) -> usize {
        self.low.capacity() * 8 + self.high.capacity() * 16
    }

    /// The sums of some groups, if 64 bits hold all.
    pub fn narrow(&self, groups: Range<usize>) -> Option<&[i64]> {
        if self.high.is_empty() { self.low.get(groups) } else { None }
    }

    pub fn total(&self, group: usize) -> Result<i128> {
        let high = self.high.get(group).copied().unwrap_or(0);
        high.checked_add(i128::from(self.low.get(group).copied().unwrap_or(0))).ok_or(BEYOND)
    }

    fn merge(&mut self, other: &Sum, groups: &[u32], from: usize, len: usize) -> Result<()> {
        self.low.resize(len, 0);
        if self.high.is_empty() && other.high.is_empty() && self.reach + other.reach <= i128::from(i64::MAX) {
            self.reach += other.reach;
            let others = other.low.get(from..).unwrap_or_default();
            for piece in pieces(groups.len().min(others.len())) {
                for at in piece? {
                    self.low[groups[at] as usize] += others[at];
                }
            }
            return Ok(());
        }
        self.high.resize(len, 0);
        for piece in pieces(groups.len()) {
            for at in piece? {
                let sum = &mut self.high[groups[at] as usize];
                *sum = sum.checked_add(other.total(from + at)?).ok_or(BEYOND)?;
            }
        }
        Ok(())
    }
}

const BEYOND: Error = Error::Beyond("a sum beyond 128 bits");

impl Extreme {
    pub fn new(greatest: bool) -> Extreme {
        Extreme { greatest, values: Vec::new() }
    }

    fn none(&self) -> i64 {
        if self.greatest { i64::MIN } else { i64::MAX }
    }

    pub fn add(&mut self, ints: &Ints, groups: Groups<'_>, len: usize) -> Result<()> {
        self.values.resize(len, self.none());
        match &ints.values {
            IntValues::I32(values) => self.take(values, groups),
            IntValues::I64(values) => self.take(values, groups),
            IntValues::I128(_) if i64::try_from(ints.min).is_err() || i64::try_from(ints.max).is_err() => {
                return Err(Error::Beyond("an extreme of more than 64 bits"));
            }
            IntValues::I128(values) => {
                self.take(&values.iter().map(|value| *value as i64).collect::<Vec<i64>>(), groups);
            }
        }
        Ok(())
    }

    /// The same for words of floats.
    pub fn add_words(&mut self, words: &[i64], groups: Groups<'_>, len: usize) {
        self.values.resize(len, self.none());
        self.take(words, groups);
    }

    fn take<T: Copy + Ord + Into<i64>>(&mut self, values: &[T], groups: Groups<'_>) {
        let greatest = self.greatest;
        let best_of = |best: i64, value: i64| if greatest { value.max(best) } else { value.min(best) };
        let better = |best: &mut i64, value: i64| *best = best_of(*best, value);
        match groups {
            Groups::One(group) => {
                if let Some(value) = sums::extreme(values, greatest) {
                    better(&mut self.values[group as usize], value.into());
                }
            }
            Groups::Each(groups) if self.values.len() <= sums::PASSES_MAX => {
                // Number 0 is that of rows that do not count.
                for (group, best) in self.values.iter_mut().enumerate().skip(1) {
                    better(best, sums::extreme_of(values, groups, group as u32, greatest));
                }
            }
            Groups::Each(groups) => {
                let rows = values.iter().zip(groups);
                rows.for_each(|(value, group)| better(&mut self.values[*group as usize], (*value).into()));
            }
            Groups::Runs(runs) => runs.fold(values, &mut self.values, |best, value| best_of(best, value.into())),
        }
    }

    pub fn bytes(&self) -> usize {
        self.values.capacity() * 8
    }

    /// What [`Extreme::add`] takes in again, of groups from number 1 on.
    pub fn stored(&mut self, len: usize) -> Vec<i64> {
        self.values.resize(len, self.none());
        self.values.split_off(1)
    }

    /// All that it holds, which is to come back.
    pub fn lent(&mut self) -> Extreme {
        Extreme { greatest: self.greatest, values: std::mem::take(&mut self.values) }
    }

    /// As [`keep`].
    pub fn keep(&mut self, first: usize, places: &[usize]) {
        keep(&mut self.values, first, places);
    }

    /// Of a group that had a value.
    pub fn value(&self, group: usize) -> i64 {
        self.values.get(group).copied().unwrap_or(0)
    }
}

impl State {
    /// Takes in the states of groups `from..` of another: the group at `from + i` is `groups[i]` here.
    pub fn merge(&mut self, other: &mut State, groups: &[u32], from: usize, len: usize) -> Result<()> {
        match (self, other) {
            (State::Count(counts), State::Count(others)) => {
                counts.resize(len, 0);
                for piece in pieces(groups.len()) {
                    for at in piece? {
                        counts[groups[at] as usize] += others.get(from + at).copied().unwrap_or(0);
                    }
                }
                Ok(())
            }
            (State::Sum(sum), State::Sum(other)) => sum.merge(other, groups, from, len),
            (State::FloatSum(sum), State::FloatSum(other)) => sum.merge(other, groups, from, len),
            (State::Extreme(own), State::Extreme(other)) => {
                other.values.resize(from + groups.len(), own.none());
                own.values.resize(len, own.none());
                for piece in pieces(groups.len()) {
                    let piece = piece?;
                    let values = &other.values[from + piece.start..from + piece.end];
                    own.take(values, Groups::Each(&groups[piece]));
                }
                Ok(())
            }
            (State::TextExtreme(own), State::TextExtreme(other)) => own.merge(other, groups, from, len),
            (State::General(own), State::General(other)) => {
                let states = other.state()?;
                for piece in pieces(groups.len()) {
                    let piece = piece?;
                    let part = |state: &ArrayRef| state.slice(from + piece.start, piece.len());
                    own.merge(&groups[piece.clone()], &states.iter().map(part).collect::<Vec<_>>(), len)?;
                }
                Ok(())
            }
            _ => panic!("states of one aggregate are of one kind"),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            State::Count(counts) => counts.capacity() * 8,
            State::Sum(sum) => sum.bytes(),
            State::FloatSum(sum) => sum.bytes(),
            State::Extreme(extreme) => extreme.bytes(),
            State::TextExtreme(extreme) => extreme.bytes(),
            State::General(accumulator) => accumulator.size_bytes(),
        }
    }
}

/// Moves what is at places that ascend to the front, from `first` on, and leaves the rest.
pub fn keep<T: Copy>(values: &mut Vec<T>, first: usize, places: &[usize]) {
    for (to, from) in (first..).zip(places) {
        values[to] = values[*from];
    }
    values.truncate(first + places.len());
}

/// The groups of rows that have a value: the others belong to none.
pub fn without_nulls(groups: Groups<'_>, nulls: &NullBuffer) -> Vec<u32> {
    let rows = nulls.len();
    // Whichever are fewer are gone through.
    if nulls.null_count() * 2 > rows {
        let mut own = vec![0; rows];
        let all = groups.of_rows(rows);
        nulls.inner().set_indices().for_each(|row| own[row] = all[row]);
        return own;
    }
    let mut own = groups.of_rows(rows).into_owned();
    (!nulls.inner()).set_indices().for_each(|row| own[row] = 0);
    own
}

#[cfg(test)]
mod tests;
