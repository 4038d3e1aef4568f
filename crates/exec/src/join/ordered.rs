//! The rows of a key in the order of one of their columns, for joins that ask beside keys for values between bounds, as
//! those of events with the intervals that they fall into do: a row's partners are found by binary search.

use super::Table;
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::parted;
use crate::program::{Condition, Def, Place, Program, mirrored};
use crate::stop::{check, pieces};
use basalt_types::CompareOp;
use basalt_types::vector::{Ints, Vector};

/// Pairs of one batch that are held at once.
const PAIRS_MAX: usize = super::probe::PAIRS_MAX;

/// Rows of a table, those of a key behind those of the key before, as without an order.
pub(super) struct Ordered {
    column: usize,
    rows: Vec<u32>,
    values: Vec<i64>,
}

impl Ordered {
    pub const ROW_BYTES: usize = size_of::<u32>() + size_of::<i64>();

    /// `None` if values are null, or beyond 64 bits. `starts`: where the rows of each key begin.
    pub fn of(column: usize, values: &Vector, starts: &[u32], rows: &[u32]) -> Result<Option<Ordered>> {
        let Vector::Ints(ints) = values else { return Ok(None) };
        let fits = |bound: i128| i64::try_from(bound).is_ok();
        if values.nulls().is_some() || !fits(ints.min) || !fits(ints.max) {
            return Ok(None);
        }
        let (mut ordered, mut values) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
        let mut of_key: Vec<(i64, u32)> = Vec::new();
        for piece in pieces(starts.len().saturating_sub(1)) {
            for key in piece? {
                of_key.clear();
                for row in &rows[starts[key] as usize..starts[key + 1] as usize] {
                    of_key.push((ints.values.get(*row as usize) as i64, *row));
                }
                if of_key.len() > 1 {
                    parted::sort(&mut of_key, &|a, b| a.cmp(b))?;
                }
                values.extend(of_key.iter().map(|(value, _)| *value));
                ordered.extend(of_key.iter().map(|(_, row)| *row));
            }
        }
        Ok(Some(Ordered { column, rows: ordered, values }))
    }

    pub fn bytes(&self) -> usize {
        self.rows.len() * Ordered::ROW_BYTES
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

    /// Rows that count and their partners between the bounds, in the order of rows; `None` if the table has no such order,
    /// or bounds cannot be computed for all rows.
    pub(super) fn pairs(
        &self,
        table: &Table,
        numbers: &[u32],
        batch: &mut Batch<'_>,
        work: &mut Work,
    ) -> Result<Option<(Vec<u32>, Vec<u32>)>> {
        let Some(ordered) = table.ordered.as_ref().filter(|ordered| ordered.column == self.column) else {
            return Ok(None);
        };
        let mut bounds: Vec<(CompareOp, Ints)> = Vec::with_capacity(self.bounds.len());
        for (op, place) in &self.bounds {
            // What fails may do so for a row without any partner.
            let Ok(Vector::Ints(ints)) = batch.vector(*place, work) else { return Ok(None) };
            bounds.push((*op, ints));
        }
        let (mut rows, mut partners) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        for (row, number) in numbers.iter().enumerate() {
            if row % crate::stop::ROWS == 0 {
                check()?;
            }
            if *number == 0 || batch.mask().is_some_and(|mask| mask[row] == 0) {
                continue;
            }
            let Some((low, high)) = span(&bounds, row) else { continue };
            let of_key = table.span_of(*number);
            let values = &ordered.values[of_key.clone()];
            let from = values.partition_point(|value| i128::from(*value) < low);
            let count = values[from..].partition_point(|value| i128::from(*value) <= high);
            let from = of_key.start + from;
            partners.extend_from_slice(&ordered.rows[from..from + count]);
            rows.resize(partners.len(), row as u32);
            if partners.len() > PAIRS_MAX {
                return Err(Error::Beyond("more pairs than a join can hold at once"));
            }
        }
        Ok(Some((rows, partners)))
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
        (None, Some(column)) => (column, mirrored(*op), *left),
        _ => return None,
    };
    (op != CompareOp::NotEq && !program.asks_partners(place, join)).then_some((column, op, place))
}
