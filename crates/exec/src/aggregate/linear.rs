//! Sums of values that are computed from a column by adding, subtracting or multiplying with constants: the column's sum
//! says them all. `sum(2 * x + 3)` is twice the sum of `x`, and three for each value.

use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::kernels::arithmetic::Op;
use crate::program::{Arg, Def, Place, Program};
use basalt_types::vector::Vector;

/// `factor × base + offset`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Linear {
    pub base: Place,
    pub factor: i128,
    pub offset: i128,
}

/// A column that is not computed as long as no value of its can fail.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Guard {
    pub place: Place,
    value: Linear,
    limits: Option<(i128, i128)>,
}

impl Linear {
    /// What a column is computed from, and the columns on the way there.
    pub fn of(program: &Program, place: Place) -> (Linear, Vec<Guard>) {
        let mut guards = Vec::new();
        match Linear::computed(program, place, &mut guards) {
            Some(value) => (value, guards),
            None => (Linear::column(place), Vec::new()),
        }
    }

    pub fn column(base: Place) -> Linear {
        Linear { base, factor: 1, offset: 0 }
    }

    pub fn is_column(&self) -> bool {
        (self.factor, self.offset) == (1, 0)
    }

    /// `None` if its constants are beyond 128 bits.
    fn computed(program: &Program, place: Place, guards: &mut Vec<Guard>) -> Option<Linear> {
        let Def::Arithmetic { op, left, right, limits, .. } = &program.defs[place] else {
            return Some(Linear::column(place));
        };
        let (of, by, offset) = match (op, *left, *right) {
            (Op::Add, Arg::Column(of), Arg::Const(value)) | (Op::Add, Arg::Const(value), Arg::Column(of)) => {
                (of, 1, value)
            }
            (Op::Sub, Arg::Column(of), Arg::Const(value)) => (of, 1, value.checked_neg()?),
            (Op::Sub, Arg::Const(value), Arg::Column(of)) => (of, -1, value),
            (Op::Mul, Arg::Column(of), Arg::Const(value)) | (Op::Mul, Arg::Const(value), Arg::Column(of)) => {
                (of, value, 0)
            }
            _ => return Some(Linear::column(place)),
        };
        let below = Linear::computed(program, of, guards)?;
        let factor = below.factor.checked_mul(by)?;
        let offset = below.offset.checked_mul(by)?.checked_add(offset)?;
        let value = Linear { base: below.base, factor, offset };
        guards.push(Guard { place, value, limits: *limits });
        Some(value)
    }

    /// The sum of so many values whose base adds up to `sum`.
    pub fn total(&self, sum: i128, values: i64) -> Result<i128> {
        let offsets = self.offset.checked_mul(i128::from(values));
        let total = self.factor.checked_mul(sum).zip(offsets).and_then(|(sum, offsets)| sum.checked_add(offsets));
        total.ok_or(Error::Beyond("a sum beyond 128 bits"))
    }
}

impl Guard {
    /// Fails where the column would: it is computed if the bounds of what it is computed from leave that open.
    pub fn check(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let Vector::Ints(base) = batch.vector(self.value.base, work)? else {
            return Err(Error::Beyond("integers in another form"));
        };
        let at = |base: i128| self.value.factor.checked_mul(base)?.checked_add(self.value.offset);
        let is_within = at(base.min)
            .zip(at(base.max))
            .is_some_and(|(a, b)| self.limits.is_none_or(|(least, most)| a.min(b) >= least && a.max(b) <= most));
        if is_within { Ok(()) } else { batch.vector(self.place, work).map(drop) }
    }
}
