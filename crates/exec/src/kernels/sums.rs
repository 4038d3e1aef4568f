//! Sums, counts and extremes per group.
//!
//! Few groups are summed one after the other, each over all rows with those of others masked out, which takes no branch
//! and no store per row. Many groups are added to where they lie.

use super::runs::Runs;
use basalt_types::widest;
use std::borrow::Cow;

/// Up to how many groups passes over all rows cost less than adding row by row.
pub const PASSES_MAX: usize = 12;

widest! {
    fn pass_i32(values: &[i32], groups: &[u32], group: u32) -> i64 {
        let rows = values.iter().zip(groups);
        rows.map(|(value, of)| if *of == group { i64::from(*value) } else { 0 }).fold(0, i64::wrapping_add)
    }
}

widest! {
    fn pass_i64(values: &[i64], groups: &[u32], group: u32) -> i64 {
        let rows = values.iter().zip(groups);
        rows.map(|(value, of)| if *of == group { *value } else { 0 }).fold(0, i64::wrapping_add)
    }
}

widest! {
    fn pass_count(groups: &[u32], group: u32) -> i64 {
        groups.chunks(1 << 16).map(|part| i64::from(part.iter().map(|of| u32::from(*of == group)).sum::<u32>())).sum()
    }
}

widest! {
    fn total_i32(values: &[i32]) -> i64 {
        values.iter().map(|value| i64::from(*value)).fold(0, i64::wrapping_add)
    }
}

widest! {
    fn total_i64(values: &[i64]) -> i64 {
        values.iter().copied().fold(0, i64::wrapping_add)
    }
}

widest! {
    fn greatest_of[T: Copy + Ord](values: &[T]) -> Option<T> {
        let (first, rest) = values.split_first()?;
        Some(rest.iter().fold(*first, |best, value| best.max(*value)))
    }
}

widest! {
    fn least_of[T: Copy + Ord](values: &[T]) -> Option<T> {
        let (first, rest) = values.split_first()?;
        Some(rest.iter().fold(*first, |best, value| best.min(*value)))
    }
}

/// The greatest value, or the least one; `None` of none.
pub fn extreme<T: Copy + Ord>(values: &[T], greatest: bool) -> Option<T> {
    if greatest { greatest_of(values) } else { least_of(values) }
}

widest! {
    fn pass_greatest[T: Copy + Into<i64>](values: &[T], groups: &[u32], group: u32) -> i64 {
        let rows = values.iter().zip(groups);
        rows.map(|(value, of)| if *of == group { (*value).into() } else { i64::MIN }).fold(i64::MIN, i64::max)
    }
}

widest! {
    fn pass_least[T: Copy + Into<i64>](values: &[T], groups: &[u32], group: u32) -> i64 {
        let rows = values.iter().zip(groups);
        rows.map(|(value, of)| if *of == group { (*value).into() } else { i64::MAX }).fold(i64::MAX, i64::min)
    }
}

/// The same of the rows of a group; of none what is no better than anything.
pub fn extreme_of<T: Copy + Into<i64>>(values: &[T], groups: &[u32], group: u32, greatest: bool) -> i64 {
    if greatest { pass_greatest(values, groups, group) } else { pass_least(values, groups, group) }
}

/// A type of values that sums are made of.
pub trait Summand: Copy + Into<i128> {
    fn total(values: &[Self]) -> i64;
    fn pass(values: &[Self], groups: &[u32], group: u32) -> i64;
    fn long(self) -> i64;
}

impl Summand for i32 {
    fn total(values: &[i32]) -> i64 {
        total_i32(values)
    }
    fn pass(values: &[i32], groups: &[u32], group: u32) -> i64 {
        pass_i32(values, groups, group)
    }
    #[inline(always)]
    fn long(self) -> i64 {
        i64::from(self)
    }
}

impl Summand for i64 {
    fn total(values: &[i64]) -> i64 {
        total_i64(values)
    }
    fn pass(values: &[i64], groups: &[u32], group: u32) -> i64 {
        pass_i64(values, groups, group)
    }
    #[inline(always)]
    fn long(self) -> i64 {
        self
    }
}

/// Adds each value to the sum of its group, all of which is known not to overflow.
pub fn add<T: Summand>(values: &[T], groups: Groups<'_>, sums: &mut [i64]) {
    match groups {
        Groups::One(group) => sums[group as usize] += T::total(values),
        Groups::Each(groups) if sums.len() <= PASSES_MAX => {
            // Number 0 is that of rows that do not count.
            sums.iter_mut().enumerate().skip(1).for_each(|(group, sum)| *sum += T::pass(values, groups, group as u32));
        }
        Groups::Each(groups) => {
            values.iter().zip(groups).for_each(|(value, group)| sums[*group as usize] += value.long());
        }
        Groups::Runs(runs) => runs.add(values, sums),
    }
}

/// Counts the rows of each group.
pub fn count(groups: Groups<'_>, rows: usize, counts: &mut [i64]) {
    match groups {
        Groups::One(group) => counts[group as usize] += rows as i64,
        Groups::Each(groups) if counts.len() <= PASSES_MAX => {
            counts.iter_mut().enumerate().skip(1).for_each(|(group, count)| *count += pass_count(groups, group as u32));
        }
        Groups::Each(groups) => groups.iter().for_each(|group| counts[*group as usize] += 1),
        Groups::Runs(runs) => runs.count(counts),
    }
}

/// Which group each row belongs to: 0 if it does not count.
#[derive(Clone, Copy)]
pub enum Groups<'a> {
    /// All rows to one.
    One(u32),
    Each(&'a [u32]),
    Runs(&'a Runs),
}

impl<'a> Groups<'a> {
    /// Row by row.
    pub fn of_rows(self, rows: usize) -> Cow<'a, [u32]> {
        match self {
            Groups::One(group) => vec![group; rows].into(),
            Groups::Each(groups) => groups.into(),
            Groups::Runs(runs) => runs.each().into(),
        }
    }
}

#[cfg(test)]
mod tests;
