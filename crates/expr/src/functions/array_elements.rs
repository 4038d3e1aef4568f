//! Conditions on arrays that are asked of all elements of a column side by side: `ANY`, `ALL`, `@>`, `<@`, `&&`.

use super::arg::{mismatch, union_nulls};
use super::set_columns::{SetColumn, elements_of};
use super::{CallInfo, Function};
use crate::array_value;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::eval::vector::{Vector, from_arrow};
use crate::eval::{self, bools, rows};
use arrow::compute::take;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use basalt_types::batch::to_logical;
use basalt_types::{DataType, Datum};
use std::ops::Range;

/// So many elements of a constant are looked for one by one.
const WANTED_MAX: usize = 16;

/// The elements of a column of arrays, those of a row after those of the row before.
struct Elements {
    /// How many each row has; none where there is no array.
    counts: Vec<u32>,
    /// In the Arrow form of their type.
    values: ArrayRef,
}

impl Elements {
    fn of(arrays: &ArrayRef, element: &DataType) -> Result<Elements> {
        let bytes = arrays.as_binary_view_opt().ok_or_else(|| mismatch(element, arrays))?;
        let SetColumn { counts, values } = elements_of(bytes, element, 0..bytes.len() as u32)?;
        Ok(Elements { counts, values: to_logical(element, &values) })
    }

    /// The row of each element.
    fn rows(&self) -> UInt32Array {
        let mut rows = Vec::with_capacity(self.values.len());
        for (row, count) in (0..).zip(&self.counts) {
            rows.extend(std::iter::repeat_n(row, *count as usize));
        }
        rows.into()
    }

    /// Rows that have an element for which this holds.
    fn any(&self, holds: &BooleanBuffer) -> BooleanBuffer {
        let mut found = holds.set_indices().peekable();
        let mut end = 0;
        BooleanBuffer::collect_bool(self.counts.len(), |row| {
            end += self.counts[row] as usize;
            let mut any = false;
            while found.next_if(|at| *at < end).is_some() {
                any = true;
            }
            any
        })
    }
}

/// Rows whose arrays take so much together are looked at at once: their elements lie side by side meanwhile.
const PIECE_BYTES: usize = if cfg!(test) { 1 << 8 } else { 1 << 22 };

/// What is asked of rows of arrays, some rows at a time.
fn in_pieces(
    arrays: &ArrayRef,
    element: &DataType,
    mut ask: impl FnMut(&Elements, Range<usize>) -> Result<BooleanBuffer>,
) -> Result<BooleanBuffer> {
    let bytes = arrays.as_binary_view_opt().ok_or_else(|| mismatch(element, arrays))?;
    let mut found = BooleanBufferBuilder::new(bytes.len());
    let (mut from, mut held) = (0, 0);
    for row in 0..bytes.len() {
        held += bytes.views()[row] as u32 as usize;
        if held >= PIECE_BYTES || row + 1 == bytes.len() {
            let some = from..row + 1;
            let elements = Elements::of(&arrays.slice(some.start, some.len()), element)?;
            found.append_buffer(&ask(&elements, some)?);
            (from, held) = (row + 1, 0);
        }
    }
    Ok(found.finish())
}

/// `left function ANY (arrays)`, or ALL of them: all elements of some rows are compared at once, also those that come
/// after one that decides, so that an error may be none.
pub(crate) fn against_any(
    left: &Vector,
    left_ty: &DataType,
    arrays: &ArrayRef,
    element: &DataType,
    how: (&'static Function, bool),
    ctx: &EvalContext,
) -> Result<Vector> {
    let mut known = BooleanBufferBuilder::new(arrays.len());
    let found = in_pieces(arrays, element, |elements, rows| {
        let probe = match left {
            Vector::Array(column) => {
                let own = column.slice(rows.start, rows.len());
                Vector::Array(take(&own, &elements.rows(), None).map_err(from_arrow)?)
            }
            constant => constant.clone(),
        };
        let (found, own) = some_against_any(probe, left_ty, elements, element, how, ctx)?;
        known.append_buffer(&own);
        Ok(found)
    })?;
    let known = NullBuffer::new(known.finish());
    let nulls = NullBuffer::union(Some(&known), arrays.logical_nulls().as_ref());
    Ok(bools(found, nulls.filter(|nulls| nulls.null_count() > 0)))
}

/// The same of some rows, with the left value beside each element; and of which rows it is known.
fn some_against_any(
    probe: Vector,
    left_ty: &DataType,
    elements: &Elements,
    element: &DataType,
    (function, all): (&'static Function, bool),
    ctx: &EvalContext,
) -> Result<(BooleanBuffer, BooleanBuffer)> {
    let (compared, count) = (Vector::Array(elements.values.clone()), elements.values.len());
    let types = [left_ty.clone(), element.clone()];
    let votes = eval::call(function, &[probe, compared], &types, &DataType::Bool, count, ctx)?;
    let votes = votes.into_array(&DataType::Bool, count)?;
    let votes = votes.as_boolean();
    let decides = if all { eval::is_false(votes) } else { eval::is_true(votes) };
    let decided = elements.any(&decides);
    let known = match votes.nulls() {
        Some(nulls) => &decided | &!&elements.any(&!nulls.inner()),
        None => BooleanBuffer::new_set(elements.counts.len()),
    };
    Ok((if all { !&decided } else { decided }, known))
}

/// `left @> right`.
pub(super) fn contains(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    match args {
        [Vector::Array(arrays), Vector::Const(wanted)] => beside(arrays, wanted, Test::HasAll, args, count, info),
        [Vector::Const(known), Vector::Array(arrays)] => beside(arrays, known, Test::IsWithin, args, count, info),
        _ => rows::call(info.function, args, count, info),
    }
}

/// `left <@ right`.
pub(super) fn contained(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    match args {
        [Vector::Array(arrays), Vector::Const(known)] => beside(arrays, known, Test::IsWithin, args, count, info),
        [Vector::Const(wanted), Vector::Array(arrays)] => beside(arrays, wanted, Test::HasAll, args, count, info),
        _ => rows::call(info.function, args, count, info),
    }
}

/// `left && right`.
pub(super) fn overlaps(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    match args {
        [Vector::Array(arrays), Vector::Const(other)] | [Vector::Const(other), Vector::Array(arrays)] => {
            beside(arrays, other, Test::HasAny, args, count, info)
        }
        _ => rows::call(info.function, args, count, info),
    }
}

/// What is asked of an array, beside a constant one. Nulls equal nothing.
#[derive(Clone, Copy)]
enum Test {
    HasAll,
    HasAny,
    IsWithin,
}

fn beside(
    arrays: &ArrayRef,
    constant: &Datum,
    test: Test,
    args: &[Vector],
    count: usize,
    info: &CallInfo,
) -> Result<Vector> {
    let row_by_row = || rows::call(info.function, args, count, info);
    let (Some(ty), Datum::Bytes(bytes)) = (info.arg_types[0].element(), constant) else { return row_by_row() };
    let mut wanted = array_value::elements(ty, bytes)?;
    let has_null = wanted.iter().any(Datum::is_null);
    wanted.retain(|value| !value.is_null());
    let too_many = matches!(test, Test::HasAll) && wanted.len() > WANTED_MAX;
    if too_many || !rows::is_set_of_bytes(ty) {
        return row_by_row();
    }
    let holds = in_pieces(arrays, ty, |elements, rows| {
        let among = |wanted: &[Datum]| match rows::among(&elements.values, ty, wanted) {
            Some(found) => Ok(valid(found, &elements.values)),
            None => Err(Error::internal("elements that are no set of bytes")),
        };
        match test {
            Test::HasAll if has_null => Ok(BooleanBuffer::new_unset(rows.len())),
            Test::HasAll => wanted
                .chunks(1)
                .try_fold(BooleanBuffer::new_set(rows.len()), |all, one| Ok(&all & &elements.any(&among(one)?))),
            Test::HasAny => Ok(elements.any(&among(&wanted)?)),
            Test::IsWithin => Ok(!&elements.any(&!&among(&wanted)?)),
        }
    })?;
    Ok(bools(holds, union_nulls(args)))
}

/// Those of values that are there.
fn valid(found: BooleanBuffer, values: &ArrayRef) -> BooleanBuffer {
    match values.nulls() {
        Some(nulls) => &found & nulls.inner(),
        None => found,
    }
}
