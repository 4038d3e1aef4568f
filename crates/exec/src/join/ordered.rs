//! The rows of a key in the order of one of their columns, for joins that ask beside keys for values between bounds, as
//! those of events with the intervals that they fall into do: a row's partners are found by binary search.

use super::{Kind, Table};
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::parted;
use crate::program::{Condition, Def, Place, Program};
use crate::stop::{ROWS, check, pieces};
use basalt_types::CompareOp;
use basalt_types::vector::{Ints, Vector};

/// Pairs of one batch that are held at once.
const PAIRS_MAX: usize = super::probe::PAIRS_MAX;

/// Rows of a table with their values, those of a key behind those of the key before. Null is between no bounds: rows without
/// a value are left out.
pub(super) struct Ordered {
    column: usize,
    sorted: Vec<(i64, u32)>,
    /// Where those of each key begin, by its number.
    starts: Vec<u32>,
}

impl Ordered {
    /// What a row takes, and its key.
    pub const ROW_BYTES: usize = size_of::<(i64, u32)>() + size_of::<u32>();

    /// `None` if values are beyond 64 bits. `starts`: where the rows of each key begin.
    pub fn of(column: usize, values: &Vector, starts: &[u32], rows: &[u32]) -> Result<Option<Ordered>> {
        let Vector::Ints(ints) = values else { return Ok(None) };
        let fits = |bound: i128| i64::try_from(bound).is_ok();
        if !fits(ints.min) || !fits(ints.max) {
            return Ok(None);
        }
        let nulls = values.nulls();
        let (mut sorted, mut own) = (Vec::with_capacity(rows.len()), Vec::with_capacity(starts.len()));
        let mut key = 0;
        for piece in pieces(rows.len()) {
            for at in piece? {
                while key < starts.len() && starts[key] as usize <= at {
                    own.push(sorted.len() as u32);
                    key += 1;
                }
                let row = rows[at];
                if nulls.is_none_or(|nulls| nulls.is_valid(row as usize)) {
                    sorted.push((ints.values.get(row as usize) as i64, row));
                }
            }
        }
        own.resize(starts.len(), sorted.len() as u32);
        for piece in pieces(own.len().saturating_sub(1)) {
            for key in piece? {
                let of_key = &mut sorted[own[key] as usize..own[key + 1] as usize];
                if of_key.len() > 1 {
                    parted::sort(of_key, &|a, b| a.cmp(b))?;
                }
            }
        }
        Ok(Some(Ordered { column, sorted, starts: own }))
    }

    pub fn bytes(&self) -> usize {
        size_of_val(self.sorted.as_slice()) + size_of_val(self.starts.as_slice())
    }

    /// Those of a key between two values.
    fn between(&self, number: u32, low: i128, high: i128) -> &[(i64, u32)] {
        let number = number as usize;
        let of_key = &self.sorted[self.starts[number] as usize..self.starts[number + 1] as usize];
        let from = of_key.partition_point(|(value, _)| i128::from(*value) < low);
        let count = of_key[from..].partition_point(|(value, _)| i128::from(*value) <= high);
        &of_key[from..from + count]
    }
}

/// What a join asks beside keys, as far as it is that a column of partners lies between columns of rows.
#[derive(Clone, Debug)]
pub struct Between {
    /// Of the payload.
    pub column: usize,
    /// How it compares with columns of rows.
    bounds: Vec<(CompareOp, Place)>,
    /// What is asked besides.
    pub rest: Vec<Condition>,
}

impl Between {
    /// Of the conditions of a pipeline's join; `None` if none bounds a column of its partners.
    pub fn of(conditions: &[Condition], program: &Program, join: usize) -> Option<Between> {
        let bounds: Vec<Option<(usize, CompareOp, Place)>> =
            conditions.iter().map(|condition| bound(condition, program, join)).collect();
        // The column with the most bounds, of several the first.
        let times = |column: usize| bounds.iter().flatten().filter(|(other, ..)| *other == column).count();
        let column = bounds.iter().flatten().map(|(column, ..)| *column).rev().max_by_key(|column| times(*column))?;
        let (mut of_column, mut rest) = (Vec::new(), Vec::new());
        for (condition, bound) in conditions.iter().zip(bounds) {
            match bound {
                Some((other, op, place)) if other == column => of_column.push((op, place)),
                _ => rest.push(condition.clone()),
            }
        }
        Some(Between { column, bounds: of_column, rest })
    }

    /// Rows that count and their partners between the bounds, so many of each row at most, in the order of rows; `None` if
    /// the table has no such order, or bounds cannot be computed for all rows.
    pub(super) fn pairs(
        &self,
        table: &Table,
        numbers: &[u32],
        most: usize,
        batch: &mut Batch<'_>,
        work: &mut Work,
    ) -> Result<Option<(Vec<u32>, Vec<u32>)>> {
        let Some(ordered) = table.ordered.as_ref().filter(|ordered| ordered.column == self.column) else {
            return Ok(None);
        };
        let mut bounds: Vec<(CompareOp, Ints)> = Vec::with_capacity(self.bounds.len());
        for (op, place) in &self.bounds {
            match batch.vector(*place, work) {
                Ok(Vector::Ints(ints)) => bounds.push((*op, ints)),
                // What fails may do so for a row without any partner.
                Ok(_) | Err(Error::Expr(_) | Error::Beyond(_)) => return Ok(None),
                Err(other) => return Err(other),
            }
        }
        let (mut rows, mut partners) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        let mut looked_at = 0;
        for (row, number) in numbers.iter().enumerate() {
            if row + partners.len() >= looked_at {
                check()?;
                looked_at = row + partners.len() + ROWS;
            }
            if *number == 0 || batch.mask().is_some_and(|mask| mask[row] == 0) {
                continue;
            }
            let Some((low, high)) = span(&bounds, row) else { continue };
            let found = ordered.between(*number, low, high);
            let found = &found[..found.len().min(most)];
            if partners.len() + found.len() > PAIRS_MAX {
                return Err(Error::Beyond("more pairs than a join can hold at once"));
            }
            partners.extend(found.iter().map(|(_, partner)| *partner));
            rows.resize(partners.len(), row as u32);
        }
        Ok(Some((rows, partners)))
    }

    /// How many partners of a row decide all that a join asks of them.
    pub(super) fn most(&self, kind: Kind) -> usize {
        match kind {
            Kind::Semi | Kind::Anti | Kind::Mark { .. } if self.rest.is_empty() => 1,
            Kind::Single if self.rest.is_empty() => 2,
            _ => usize::MAX,
        }
    }
}

/// The least and the greatest value that a row's partners may have; `None` where a bound is null.
fn span(bounds: &[(CompareOp, Ints)], row: usize) -> Option<(i128, i128)> {
    let (mut low, mut high) = (i128::MIN, i128::MAX);
    for (op, ints) in bounds {
        if ints.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        let value = ints.values.get(row);
        match op {
            CompareOp::Gt => low = low.max(value.saturating_add(1)),
            CompareOp::GtEq => low = low.max(value),
            CompareOp::Lt => high = high.min(value.saturating_sub(1)),
            CompareOp::LtEq => high = high.min(value),
            CompareOp::Eq | CompareOp::NotEq => (low, high) = (low.max(value), high.min(value)),
        }
    }
    Some((low, high))
}

/// A condition that bounds a column of a join's partners by one of rows.
fn bound(condition: &Condition, program: &Program, join: usize) -> Option<(usize, CompareOp, Place)> {
    let Condition::CompareColumns(op, left, right) = condition else { return None };
    let column = |place: Place| match program.defs[place] {
        Def::Payload { join: of, column } if of == join => Some(column),
        _ => None,
    };
    let (column, op, place) = match (column(*left), column(*right)) {
        (Some(column), None) => (column, *op, *right),
        (None, Some(column)) => (column, op.mirrored(), *left),
        _ => return None,
    };
    (op != CompareOp::NotEq && !program.asks_partners(place, join)).then_some((column, op, place))
}
