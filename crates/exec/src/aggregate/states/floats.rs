//! Sums of floats per group, in the order in which rows come, as PostgreSQL adds them.
//!
//! While the bounds of what was added prove that no sum leaves the type, nothing is looked at per row.

use crate::error::{Error, Result};
use crate::kernels::floats;
use crate::kernels::sums::Groups;
use crate::stop::pieces;
use std::ops::Range;

#[derive(Default)]
pub struct FloatSum {
    /// Whether sums are rounded to single precision (`sum(real)`).
    single: bool,
    sums: Vec<f64>,
    /// No sum is farther from 0, but for what rounding adds.
    reach: f64,
}

/// Of what a type holds: rounding takes a sum no farther than that beyond its bounds.
const ROOM: f64 = 0.5;

const BEYOND: Error = Error::Beyond("a sum beyond what floats hold");
/// Where squares of sums may leave the type.
const SQUARES_MAX: f64 = 1e150;

impl FloatSum {
    pub fn new(single: bool) -> FloatSum {
        FloatSum { single, ..FloatSum::default() }
    }

    /// Adds values to the sums of their groups. Groups are below `len`; the sum of number 0 means nothing.
    pub fn add(&mut self, values: &[f64], groups: Groups<'_>, len: usize) -> Result<()> {
        self.sums.resize(len, 0.0);
        if self.reaches(floats::reach(values) * values.len() as f64) {
            self.add_freely(values, groups);
            return Ok(());
        }
        for (value, group) in values.iter().zip(groups.of_rows(values.len()).iter()) {
            if *group != 0 {
                self.add_one(*group as usize, *value)?;
            }
        }
        Ok(())
    }

    /// Whether so much more takes no sum beyond the type.
    fn reaches(&mut self, more: f64) -> bool {
        let most = if self.single { f64::from(f32::MAX) } else { f64::MAX };
        self.reach += more;
        self.reach < most * ROOM
    }

    fn add_freely(&mut self, values: &[f64], groups: Groups<'_>) {
        let single = self.single;
        let next = |sum: f64, value: f64| if single { f64::from(sum as f32 + value as f32) } else { sum + value };
        match groups {
            Groups::One(group) => {
                let sum = &mut self.sums[group as usize];
                *sum = values.iter().fold(*sum, |sum, value| next(sum, *value));
            }
            // One group beside that of rows that do not count: the sum stays in a register.
            Groups::Each(groups) if self.sums.len() == 2 => {
                let rows = values.iter().zip(groups);
                let counted = rows.map(|(value, group)| if *group == 1 { *value } else { 0.0 });
                self.sums[1] = counted.fold(self.sums[1], next);
            }
            Groups::Each(groups) => values.iter().zip(groups).for_each(|(value, group)| {
                let sum = &mut self.sums[*group as usize];
                *sum = next(*sum, *value);
            }),
            Groups::Runs(runs) => runs.fold(values, &mut self.sums, next),
        }
    }

    /// Infinite is only what something infinite was added to.
    fn add_one(&mut self, group: usize, value: f64) -> Result<()> {
        let sum = &mut self.sums[group];
        let next = if self.single { f64::from(*sum as f32 + value as f32) } else { *sum + value };
        if next.is_infinite() && !sum.is_infinite() && !value.is_infinite() {
            return Err(BEYOND);
        }
        *sum = next;
        Ok(())
    }

    /// PostgreSQL keeps squared deviations beside each average, and fails where these leave the type.
    pub fn check_squares(&self) -> Result<()> {
        match self.reach < SQUARES_MAX {
            true => Ok(()),
            false => Err(Error::Beyond("an average of values whose squares floats do not hold")),
        }
    }

    /// Takes in the sums of groups `from..` of another: the group at `from + i` is `groups[i]` here.
    pub fn merge(&mut self, other: &FloatSum, groups: &[u32], from: usize, len: usize) -> Result<()> {
        let others = other.sums.get(from..).unwrap_or_default();
        self.sums.resize(len, 0.0);
        for piece in pieces(groups.len().min(others.len())) {
            let piece = piece?;
            self.add(&others[piece.clone()], Groups::Each(&groups[piece]), len)?;
        }
        // Of values that were added to the others' sums.
        self.reach += other.reach;
        Ok(())
    }

    pub fn total(&self, group: usize) -> f64 {
        self.sums.get(group).copied().unwrap_or(0.0)
    }

    /// The sums of some groups.
    pub fn stored(&self, groups: Range<usize>) -> Vec<f64> {
        groups.map(|group| self.total(group)).collect()
    }

    /// As [`super::keep`].
    pub fn keep(&mut self, first: usize, places: &[usize]) {
        super::keep(&mut self.sums, first, places);
    }

    pub fn bytes(&self) -> usize {
        self.sums.capacity() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests;
