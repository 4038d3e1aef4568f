//! Operands that only some rows reach: `AND`, `OR`, `CASE`, `COALESCE`.

use super::vector::{self, Vector};
use super::{Input, bools, is_false, is_true};
use crate::error::Result;
use crate::functions::Volatility;
use crate::tree::Expr;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, NullArray, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// Below one row in this many the selected rows are gathered rather than all evaluated.
const GATHER_BELOW: usize = 4;

/// What an expression gives for a subset of the rows.
enum Partial {
    /// A value for every row of the input; those outside the subset mean nothing.
    All(Vector),
    /// A value per row of the subset.
    Gathered(Vector),
}

/// Evaluates `expr` for the rows in `selected`; no error of another row comes out.
fn for_rows(expr: &Expr, selected: &[u32], input: Input) -> Result<Partial> {
    if selected.len() == input.rows {
        return expr.vector(input).map(Partial::All);
    }
    let eager = selected.len() * GATHER_BELOW > input.rows && expr.volatility() < Volatility::Volatile;
    if (eager || matches!(expr, Expr::Column { .. } | Expr::Const { .. } | Expr::Param { .. }))
        && let Ok(vector) = expr.vector(input)
    {
        return Ok(Partial::All(vector));
    }
    let mut used = vec![false; input.columns.len()];
    expr.walk(&mut |node| {
        if let Expr::Column { index, .. } = node
            && let Some(used) = used.get_mut(*index)
        {
            *used = true;
        }
        true
    });
    let indices = UInt32Array::from(selected.to_vec());
    let gathered = input
        .columns
        .iter()
        .zip(used)
        .map(|(column, used)| match used {
            true => arrow::compute::take(column, &indices, None).map_err(vector::from_arrow),
            false => Ok(Arc::new(NullArray::new(selected.len())) as ArrayRef),
        })
        .collect::<Result<Vec<_>>>()?;
    let input = Input { columns: &gathered, rows: selected.len(), ctx: input.ctx };
    expr.vector(input).map(Partial::Gathered)
}

fn positions(mask: &BooleanBuffer) -> Vec<u32> {
    mask.set_indices().map(|index| index as u32).collect()
}

/// `AND` with `decisive` false, `OR` with true, in three-valued logic.
pub(super) fn logic(args: &[Expr], decisive: bool, input: Input) -> Result<Vector> {
    let rows = input.rows;
    let mut decided = BooleanBuffer::new_unset(rows);
    let mut unknown = BooleanBuffer::new_unset(rows);
    let mut open: Vec<u32> = (0..rows as u32).collect();
    for arg in args {
        if open.is_empty() {
            break;
        }
        let (decides, nulls) = match for_rows(arg, &open, input)? {
            Partial::All(vector) => masks(&vector, decisive, rows),
            Partial::Gathered(vector) => {
                let (decides, nulls) = masks(&vector, decisive, open.len());
                (scatter(&decides, &open, rows), scatter(&nulls, &open, rows))
            }
        };
        decided = &decided | &decides;
        unknown = &unknown | &nulls;
        open = positions(&!&decided);
    }
    let values = if decisive { decided.clone() } else { !&decided };
    let valid = &decided | &!&unknown;
    let nulls = (valid.count_set_bits() < rows).then(|| NullBuffer::new(valid));
    Ok(bools(values, nulls))
}

/// Rows that equal `decisive`, and rows that are null.
fn masks(vector: &Vector, decisive: bool, rows: usize) -> (BooleanBuffer, BooleanBuffer) {
    let uniform = |set: bool| if set { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
    match vector {
        Vector::Const(value) => (uniform(*value == Datum::Bool(decisive)), uniform(value.is_null())),
        Vector::Array(array) => {
            let values = array.as_boolean();
            let decides = if decisive { is_true(values) } else { is_false(values) };
            let nulls = values.nulls().map_or_else(|| uniform(false), |nulls| !nulls.inner());
            (decides, nulls)
        }
    }
}

fn scatter(mask: &BooleanBuffer, places: &[u32], rows: usize) -> BooleanBuffer {
    let mut builder = arrow_buffer::BooleanBufferBuilder::new(rows);
    builder.append_n(rows, false);
    mask.set_indices().for_each(|index| builder.set_bit(places[index] as usize, true));
    builder.finish()
}

/// Puts values together that were computed for disjoint subsets of the rows.
struct Assembly {
    ty: DataType,
    parts: Vec<ArrayRef>,
    /// Part and position of each row's value; part 0 is a single null.
    places: Vec<(usize, usize)>,
}

impl Assembly {
    fn new(ty: &DataType, rows: usize) -> Result<Assembly> {
        let null = Vector::Const(Datum::Null).into_array(ty, 1)?;
        Ok(Assembly { ty: ty.clone(), parts: vec![null], places: vec![(0, 0); rows] })
    }

    fn place(&mut self, partial: Partial, selected: &[u32], rows: usize) -> Result<()> {
        let part = self.parts.len();
        match partial {
            Partial::All(Vector::Const(value)) | Partial::Gathered(Vector::Const(value)) => {
                self.parts.push(Vector::Const(value).into_array(&self.ty, 1)?);
                selected.iter().for_each(|row| self.places[*row as usize] = (part, 0));
            }
            Partial::All(vector) => {
                self.parts.push(vector.into_array(&self.ty, rows)?);
                selected.iter().for_each(|row| self.places[*row as usize] = (part, *row as usize));
            }
            Partial::Gathered(vector) => {
                self.parts.push(vector.into_array(&self.ty, selected.len())?);
                selected.iter().enumerate().for_each(|(at, row)| self.places[*row as usize] = (part, at));
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<Vector> {
        let parts: Vec<&dyn Array> = self.parts.iter().map(|part| part.as_ref()).collect();
        arrow::compute::interleave(&parts, &self.places).map(Vector::Array).map_err(vector::from_arrow)
    }
}

pub(super) fn case(branches: &[(Expr, Expr)], otherwise: Option<&Expr>, ty: &DataType, input: Input) -> Result<Vector> {
    let rows = input.rows;
    let mut assembly = Assembly::new(ty, rows)?;
    let mut open: Vec<u32> = (0..rows as u32).collect();
    for (condition, value) in branches {
        if open.is_empty() {
            break;
        }
        let holds = match for_rows(condition, &open, input)? {
            Partial::All(vector) => masks(&vector, true, rows).0,
            Partial::Gathered(vector) => scatter(&masks(&vector, true, open.len()).0, &open, rows),
        };
        let (matched, rest): (Vec<u32>, Vec<u32>) = open.iter().partition(|row| holds.value(**row as usize));
        if !matched.is_empty() {
            assembly.place(for_rows(value, &matched, input)?, &matched, rows)?;
        }
        open = rest;
    }
    if let (Some(value), false) = (otherwise, open.is_empty()) {
        assembly.place(for_rows(value, &open, input)?, &open, rows)?;
    }
    assembly.finish()
}

pub(super) fn coalesce(args: &[Expr], ty: &DataType, input: Input) -> Result<Vector> {
    let rows = input.rows;
    let mut assembly = Assembly::new(ty, rows)?;
    let mut open: Vec<u32> = (0..rows as u32).collect();
    for arg in args {
        if open.is_empty() {
            break;
        }
        let partial = for_rows(arg, &open, input)?;
        let valid = match &partial {
            Partial::All(vector) => vector.validity(rows),
            Partial::Gathered(vector) => scatter(&vector.validity(open.len()), &open, rows),
        };
        let rest: Vec<u32> = open.iter().copied().filter(|row| !valid.value(*row as usize)).collect();
        assembly.place(partial, &open, rows)?;
        open = rest;
    }
    assembly.finish()
}
