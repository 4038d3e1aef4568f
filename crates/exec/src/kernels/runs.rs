//! Groups whose rows follow each other: what is added up per group is a difference of two totals.

use super::mask;
use super::sums::Summand;
use basalt_types::widest;

/// The rows of a batch, in runs of which each is of the next group.
#[derive(Clone, PartialEq, Debug)]
pub struct Runs {
    /// The group of the first run.
    first: u32,
    /// Where runs begin, and where the last one ends.
    bounds: Vec<u32>,
}

/// Rows per run from which on each is added up by itself.
const LONG: usize = 24;

widest! {
    /// Whether no key is below the one before it.
    pub fn ascend[T: Copy + Ord](keys: &[T]) -> bool {
        // Without an end in the middle, for vectors.
        let falls = keys.iter().zip(keys.get(1..).unwrap_or_default()).map(|(a, b)| u32::from(a > b)).sum::<u32>();
        falls == 0
    }
}

widest! {
    fn differ[T: Copy + Ord](keys: &[T], others: &[T], differs: &mut [u8]) {
        for ((differs, a), b) in differs.iter_mut().zip(keys).zip(others) {
            *differs = u8::from(a != b);
        }
    }
}

widest! {
    fn add_lengths(bounds: &[u32], counts: &mut [i64]) {
        for (count, (from, to)) in counts.iter_mut().zip(bounds.iter().zip(bounds.get(1..).unwrap_or_default())) {
            *count += i64::from(to - from);
        }
    }
}

impl Runs {
    /// Runs of equal keys; `None` if keys do not ascend. The first run is of group `first`.
    pub fn of<T: Copy + Ord>(keys: &[T], first: u32) -> Option<Runs> {
        if !ascend(keys) {
            return None;
        }
        let mut begins = vec![0; keys.len()];
        if let Some((first, others)) = begins.split_first_mut() {
            *first = 1;
            differ(keys, &keys[1..], others);
        }
        let mut bounds = mask::rows(&begins);
        bounds.push(keys.len() as u32);
        Some(Runs { first, bounds })
    }

    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Where runs begin.
    pub fn starts(&self) -> &[u32] {
        &self.bounds[..self.len()]
    }

    fn rows(&self) -> usize {
        self.bounds.last().map_or(0, |rows| *rows as usize)
    }

    /// The group of each row.
    pub fn each(&self) -> Vec<u32> {
        let mut groups = Vec::with_capacity(self.rows());
        for (group, end) in (self.first..).zip(&self.bounds[1..]) {
            groups.resize(*end as usize, group);
        }
        groups
    }

    /// What is kept of the groups of these runs.
    fn own<'a, T>(&self, of_groups: &'a mut [T]) -> &'a mut [T] {
        &mut of_groups[self.first as usize..][..self.len()]
    }

    pub fn count(&self, counts: &mut [i64]) {
        add_lengths(&self.bounds, self.own(counts));
    }

    /// Adds each value to the sum of its group, all of which is known not to overflow.
    pub fn add<T: Summand>(&self, values: &[T], sums: &mut [i64]) {
        let sums = self.own(sums);
        if self.rows() >= self.len() * LONG {
            for (sum, bounds) in sums.iter_mut().zip(self.bounds.windows(2)) {
                *sum += T::total(&values[bounds[0] as usize..bounds[1] as usize]);
            }
            return;
        }
        // Totals may leave 64 bits, their differences do not.
        let mut total = 0i64;
        let mut totals = Vec::with_capacity(values.len() + 1);
        totals.push(0);
        totals.extend(values.iter().map(|value| {
            total = total.wrapping_add(value.long());
            total
        }));
        let mut before = 0;
        for (sum, end) in sums.iter_mut().zip(&self.bounds[1..]) {
            let total = totals[*end as usize];
            *sum += total.wrapping_sub(before);
            before = total;
        }
    }

    /// Takes in each value where its group is.
    pub fn fold<T: Copy, S: Copy>(&self, values: &[T], states: &mut [S], next: impl Fn(S, T) -> S) {
        for (state, bounds) in self.own(states).iter_mut().zip(self.bounds.windows(2)) {
            let values = &values[bounds[0] as usize..bounds[1] as usize];
            *state = values.iter().fold(*state, |state, value| next(state, *value));
        }
    }
}

#[cfg(test)]
mod tests;
