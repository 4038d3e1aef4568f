//! Distinct values per group: pairs of a group's number and a value, each kept once.
//!
//! Workers meet by their pairs, so nothing is aggregated before all pairs are known.

use super::keys::{Form, Keys, Seeds};
use crate::error::Result;
use crate::kernels::mask;
use crate::kernels::sums::Groups;
use crate::stop::check;
use arrow_buffer::NullBuffer;
use basalt_types::vector::{IntValues, Ints, Vector};
use std::ops::Range;

/// Pairs that are looked at together.
const PAIRS: usize = 8192;

pub(super) struct Distinct {
    /// Numbered as groups are: from 1, in the order in which they came.
    pairs: Keys,
    /// All values are of group 1, which is no part of the pairs.
    alone: bool,
}

impl Distinct {
    /// `alone`: of aggregates without keys.
    pub fn new(form: Form, alone: bool, seeds: &Seeds) -> Distinct {
        let pairs = if alone { Keys::new(&[form], seeds) } else { Keys::new(&[Form::Integers, form], seeds) };
        Distinct { pairs, alone }
    }

    pub fn bytes(&self) -> usize {
        self.pairs.bytes()
    }

    /// The values of rows that belong to a group, but for nulls.
    pub fn add(&mut self, groups: Groups<'_>, values: Vector, rows: usize) -> Result<()> {
        let nulls = values.nulls().filter(|nulls| nulls.null_count() > 0).cloned();
        let (numbers, mask) = match groups {
            Groups::One(group) => (vec![group; if self.alone { 0 } else { rows }], None),
            Groups::Runs(runs) => (runs.each(), None),
            Groups::Each(groups) => {
                let lonely = groups.contains(&0);
                (groups.to_vec(), lonely.then(|| groups.iter().map(|group| u8::from(*group != 0)).collect()))
            }
        };
        let mask = counted(mask, nulls.as_ref(), rows);
        let keys = if self.alone { vec![values] } else { vec![as_vector(&numbers), values] };
        self.pairs.assign(&keys, rows, mask.as_deref())?;
        Ok(())
    }

    /// Takes in the pairs of another worker, whose group `at + 1` is `groups[at]` here.
    pub fn merge(&mut self, mut other: Distinct, groups: &[u32]) -> Result<()> {
        if self.alone {
            return self.pairs.merge(&mut other.pairs).map(|_| ());
        }
        other.seal();
        for part in other.parts() {
            check()?;
            let pairs: Vec<u32> = part.map(|pair| pair as u32).collect();
            let group = |pair: &u32| groups[other.pairs.integer(0, *pair) as usize - 1];
            let groups: Vec<u32> = pairs.iter().map(group).collect();
            self.pairs.take_in(&other.pairs, &pairs, Some(&groups))?;
        }
        Ok(())
    }

    /// Before pairs are asked for.
    pub fn seal(&mut self) {
        self.pairs.seal();
    }

    /// All pairs, some at a time.
    pub fn parts(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let end = self.pairs.len();
        (1..end).step_by(PAIRS).map(move |from| from..end.min(from + PAIRS))
    }

    /// Group and value of some pairs.
    pub fn pairs(&self, range: Range<usize>) -> (Vec<u32>, Vector) {
        let rows = range.len();
        let mut columns = self.pairs.vectors(range);
        let values = columns.pop().expect("pairs have values");
        let groups = match columns.pop() {
            Some(Vector::Ints(Ints { values, .. })) => (0..rows).map(|row| values.get(row) as u32).collect(),
            _ => vec![1; rows],
        };
        (groups, values)
    }
}

/// Rows of the mask that have a value; `None`: all.
fn counted(mask: Option<Vec<u8>>, nulls: Option<&NullBuffer>, rows: usize) -> Option<Vec<u8>> {
    let Some(nulls) = nulls else { return mask };
    let mut mask = mask.unwrap_or_else(|| mask::all(rows));
    mask::clear_nulls(Some(nulls), &mut mask);
    Some(mask)
}

/// Numbers of groups as a key column.
fn as_vector(groups: &[u32]) -> Vector {
    Vector::Ints(Ints::measured(IntValues::I64(groups.iter().map(|group| i64::from(*group)).collect()), None))
}
