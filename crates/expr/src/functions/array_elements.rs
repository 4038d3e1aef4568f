//! Conditions on arrays that are asked of all elements of a column side by side: `ANY`, `ALL`, `@>`, `<@`, `&&`.

use super::arg::{mismatch, union_nulls};
use super::set_columns::{SetColumn, elements_of};
use super::{CallInfo, Function};
use crate::array_value;
use crate::context::EvalContext;
use crate::error::Result;
use crate::eval::vector::{Vector, from_arrow};
use crate::eval::{self, bools, rows};
use arrow::compute::take;
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::batch::to_logical;
use basalt_types::{DataType, Datum};

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

/// `left function ANY (arrays)`, or ALL of them: all elements of all rows are compared at once, also those that come
/// after one that decides, so that an error may be none.
pub(crate) fn against_any(
    left: &Vector,
    left_ty: &DataType,
    arrays: &ArrayRef,
    element: &DataType,
    (function, all): (&'static Function, bool),
    ctx: &EvalContext,
) -> Result<Vector> {
    let elements = Elements::of(arrays, element)?;
    let probe = match left {
        Vector::Array(column) => Vector::Array(take(column, &elements.rows(), None).map_err(from_arrow)?),
        constant => constant.clone(),
    };
    let (compared, count) = (Vector::Array(elements.values.clone()), elements.values.len());
    let types = [left_ty.clone(), element.clone()];
    let votes = eval::call(function, &[probe, compared], &types, &DataType::Bool, count, ctx)?;
    let votes = votes.into_array(&DataType::Bool, count)?;
    let votes = votes.as_boolean();
    let decides = if all { eval::is_false(votes) } else { eval::is_true(votes) };
    let decided = elements.any(&decides);
    let unknown = votes.nulls().map(|nulls| elements.any(&!nulls.inner()));
    let known = unknown.map(|unknown| NullBuffer::new(&decided | &!&unknown));
    let nulls = NullBuffer::union(known.as_ref(), arrays.logical_nulls().as_ref());
    Ok(bools(if all { !&decided } else { decided }, nulls))
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
    let elements = Elements::of(arrays, ty)?;
    let among = |wanted: &[Datum]| rows::among(&elements.values, ty, wanted);
    let holds = match test {
        Test::HasAll if has_null => Some(BooleanBuffer::new_unset(count)),
        Test::HasAll => wanted.chunks(1).try_fold(BooleanBuffer::new_set(count), |all, one| {
            Some(&all & &elements.any(&valid(among(one)?, &elements.values)))
        }),
        Test::HasAny => among(&wanted).map(|found| elements.any(&valid(found, &elements.values))),
        Test::IsWithin => among(&wanted).map(|found| !&elements.any(&!&valid(found, &elements.values))),
    };
    match holds {
        Some(holds) => Ok(bools(holds, union_nulls(args))),
        None => row_by_row(),
    }
}

/// Those of values that are there.
fn valid(found: BooleanBuffer, values: &ArrayRef) -> BooleanBuffer {
    match values.nulls() {
        Some(nulls) => &found & nulls.inner(),
        None => found,
    }
}
