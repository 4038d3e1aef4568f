//! Whole columns of arrays of which a length or one element is asked: no other element is decoded.

use super::CallInfo;
use super::arg::{mismatch, union_nulls};
use crate::array_value;
use crate::error::Result;
use crate::eval::rows;
use crate::eval::vector::{Vector, VectorBuilder};
use arrow_array::cast::AsArray;
use basalt_types::array::Resting;
use basalt_types::{DataType, Datum};

/// `array[subscript]`; with several subscripts row by row.
pub(super) fn subscript(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    let element = array_value::element_phys(info.ty)?;
    let [_, subscripts] = args else { return rows::call(info.function, args, count, info) };
    each(args, count, info, |row, array| {
        let Datum::I32(subscript) = subscripts.value(&DataType::Int4, row) else { return Some(Datum::Null) };
        let Some(dimension) = array.dimension(0).filter(|_| array.dimensions() == 1) else { return Some(Datum::Null) };
        match u32::try_from(i64::from(subscript) - i64::from(dimension.lower)) {
            Ok(at) if at < dimension.length => array.element(element, at as usize),
            _ => Some(Datum::Null),
        }
    })
}

pub(super) fn cardinality(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    each(args, rows, info, |_, array| Some(Datum::I32(array.count() as i32)))
}

/// `array_length(array, dimension)`.
pub(super) fn length(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    each(args, rows, info, |row, array| {
        let Datum::I32(number) = args[1].value(&DataType::Int4, row) else { return Some(Datum::Null) };
        let at = usize::try_from(i64::from(number) - 1).ok();
        let dimension = at.and_then(|at| array.dimension(at));
        Some(dimension.map_or(Datum::Null, |dimension| Datum::I32(dimension.length as i32)))
    })
}

/// What is found of each row's array, the first argument; null where an argument is null.
fn each(
    args: &[Vector],
    rows: usize,
    info: &CallInfo,
    find: impl Fn(usize, &Resting<'_>) -> Option<Datum>,
) -> Result<Vector> {
    let ty = &info.arg_types[0];
    let nulls = union_nulls(args);
    let constant = match &args[0] {
        Vector::Const(value) => Some(value.clone()),
        Vector::Array(_) => None,
    };
    let column = match &args[0] {
        Vector::Array(array) => Some(array.as_binary_view_opt().ok_or_else(|| mismatch(ty, array))?),
        Vector::Const(_) => None,
    };
    let mut builder = VectorBuilder::new(info.ty, rows);
    for row in 0..rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            builder.skip();
            continue;
        }
        let bytes = match (column, &constant) {
            (Some(column), _) => column.value(row),
            (None, Some(Datum::Bytes(bytes))) => bytes,
            (None, other) => return Err(mismatch(ty, other)),
        };
        let found = Resting::new(bytes).and_then(|array| find(row, &array));
        builder.push(&found.ok_or_else(|| array_value::damaged(bytes))?)?;
    }
    builder.finish().map(Vector::Array)
}
