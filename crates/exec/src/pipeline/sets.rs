//! Rows of set-returning calls: each row of a batch comes once for each value that the calls give for it.
//!
//! The sets of a row are advanced together, those that end first are filled with nulls. Its other columns are as lazy as
//! they were: which row each new one comes from is all that is noted of them.

use super::compile::Open;
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::program::{Field, Place};
use arrow_array::ArrayRef;
use arrow_buffer::NullBuffer;
use basalt_expr::context::EvalContext;
use basalt_expr::functions::set_columns::{SetCall, SetColumn};
use basalt_expr::tree::Expr;
use basalt_types::vector::{ArrayElements, IntValues, Ints, Vector};
use basalt_types::{ColumnBuilder, DataType};

/// Calls that are advanced together.
#[derive(Clone, Debug)]
pub struct Sets {
    calls: Vec<Call>,
    /// Where the number of the value goes, from 1.
    ordinality: Option<Place>,
    /// A row whose sets are empty stays, with nulls.
    keep_empty: bool,
}

#[derive(Clone, Debug)]
struct Call {
    call: SetCall,
    args: Vec<Place>,
    values: Place,
}

impl Sets {
    /// The step, which adds its columns to those of the operator. `None`: a call is not one over columns.
    pub fn compile(
        open: &mut Open,
        calls: &[Expr],
        ordinality: bool,
        keep_empty: bool,
        ctx: &EvalContext,
    ) -> Option<Sets> {
        let step = open.steps.len();
        let mut compiled = Vec::with_capacity(calls.len());
        for expr in calls {
            let call = SetCall::of(expr)?;
            let Expr::Call { args, .. } = expr else { return None };
            let args = args.iter().map(|arg| {
                let place = open.define(arg, ctx);
                open.program.plain_of(place)
            });
            let args: Vec<Place> = args.collect();
            open.is_storable(&args).then_some(())?;
            call.ty().phys()?;
            compiled.push((call, args));
        }
        let mut columns = open.columns.clone();
        let mut added = |field: Field| {
            let place = open.program.element(step, field);
            columns.push(place);
            place
        };
        let calls = compiled.into_iter().map(|(call, args)| {
            let values = added(Field::new(call.ty().clone(), true));
            Call { call, args, values }
        });
        let calls = calls.collect();
        let ordinality = ordinality.then(|| added(Field::new(DataType::Int8, keep_empty)));
        open.columns = columns;
        Some(Sets { calls, ordinality, keep_empty })
    }

    /// The columns that it asks for.
    pub fn places(&self) -> Vec<Place> {
        self.calls.iter().flat_map(|call| call.args.iter().copied()).collect()
    }

    /// Whether it fails for no row.
    pub fn is_total(&self) -> bool {
        self.calls.iter().all(|call| call.call.is_total())
    }

    pub fn apply(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<()> {
        let rows = batch.counted();
        let mut sets = Vec::with_capacity(self.calls.len());
        let program = work.program.clone();
        for call in &self.calls {
            if call.call.is_unnest()
                && let Some(ArrayElements { counts, values, .. }) =
                    batch.stored_elements(call.args[0], Some(&rows), &program)?
            {
                sets.push((counts, values));
                continue;
            }
            let mut args: Vec<ArrayRef> = Vec::with_capacity(call.args.len());
            for place in &call.args {
                let phys = work.program.fields[*place].held().phys().expect("columns are storable");
                args.push(batch.vector(*place, work)?.to_array(phys));
            }
            let SetColumn { counts, values } = call.call.rows(&args, &rows, &work.ctx)?;
            sets.push((counts, Vector::measured(values)));
        }
        let longest: Vec<u32> = (0..rows.len()).map(|row| longest(&sets, row)).collect();
        let counts: Vec<u32> = match self.keep_empty {
            true => longest.iter().map(|count| (*count).max(1)).collect(),
            false => longest.clone(),
        };
        let all = counts.iter().map(|count| *count as usize).sum::<usize>();
        if u32::try_from(all).is_err() {
            return Err(Error::Beyond("more values of sets than rows can be counted"));
        }
        let mut origins = Vec::with_capacity(all);
        rows.iter().zip(&counts).for_each(|(row, count)| origins.resize(origins.len() + *count as usize, *row));
        batch.repeat(&origins);
        for (call, set) in self.calls.iter().zip(sets) {
            batch.give(call.values, filled(set, &counts, call.call.ty()));
        }
        if let Some(place) = self.ordinality {
            batch.give(place, ordinals(&longest, &counts));
        }
        Ok(())
    }
}

/// How many values the longest set of a row has.
fn longest(sets: &[(Vec<u32>, Vector)], row: usize) -> u32 {
    sets.iter().map(|(counts, _)| counts[row]).fold(0, u32::max)
}

/// The values of a set, and nulls behind those of a row that has fewer than it is to have.
fn filled((own, values): (Vec<u32>, Vector), counts: &[u32], ty: &DataType) -> Vector {
    if own == counts {
        return values;
    }
    let rows = counts.iter().map(|count| *count as usize).sum();
    let (mut at, mut valid) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut next = 0;
    for (own, count) in own.iter().zip(counts) {
        at.extend(next..next + own);
        valid.resize(at.len(), true);
        at.resize(valid.len() + (count - own) as usize, 0);
        valid.resize(at.len(), false);
        next += own;
    }
    match values.is_empty() {
        true => nulls(ty, rows),
        false => values.take(&at).with_nulls(&NullBuffer::from(valid)),
    }
}

fn nulls(ty: &DataType, rows: usize) -> Vector {
    let mut builder = ColumnBuilder::new(ty.phys().expect("it was asked when the call was compiled"), rows);
    (0..rows).for_each(|_| builder.push_null());
    Vector::measured(builder.finish())
}

/// From 1 for each row; null where a row without values is kept.
fn ordinals(longest: &[u32], counts: &[u32]) -> Vector {
    let mut values: Vec<i64> = Vec::new();
    for (longest, count) in longest.iter().zip(counts) {
        values.extend((1..=i64::from(*count)).map(|n| n.min(i64::from(*longest))));
    }
    let nulls = values.contains(&0).then(|| values.iter().map(|n| *n > 0).collect());
    Vector::Ints(Ints::measured(IntValues::I64(values.into()), nulls))
}
