//! Whole columns of arrays of which a length or one element is asked: no other element is decoded.

use super::CallInfo;
use super::arg::{mismatch, union_nulls};
use crate::array_value;
use crate::error::Result;
use crate::eval::rows;
use crate::eval::vector::{Vector, VectorBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use basalt_types::array::Resting;
use basalt_types::batch::to_logical;
use basalt_types::row::Field;
use basalt_types::text::Slices;
use basalt_types::{DataType, Datum, PhysType};
use std::sync::Arc;

/// `array[subscript]`; with several subscripts row by row.
pub(super) fn subscript(args: &[Vector], count: usize, info: &CallInfo) -> Result<Vector> {
    let element = array_value::element_phys(info.ty)?;
    let [arrays, subscripts] = args else { return rows::call(info.function, args, count, info) };
    let place = |row: usize, array: &Resting<'_>| {
        let Datum::I32(subscript) = subscripts.value(&DataType::Int4, row) else { return None };
        let dimension = array.dimension(0).filter(|_| array.dimensions() == 1)?;
        let at = u32::try_from(i64::from(subscript) - i64::from(dimension.lower)).ok()?;
        (at < dimension.length).then_some(at as usize)
    };
    match (arrays, element) {
        (Vector::Array(column), PhysType::Bytes) => parts(column, count, info, place),
        _ => each(args, count, info, |row, array| match place(row, array) {
            Some(at) => array.element(element, at),
            None => Some(Datum::Null),
        }),
    }
}

/// Elements that are bytes, shown where they lie. `place`: which one of a row's array.
fn parts(
    column: &ArrayRef,
    count: usize,
    info: &CallInfo,
    place: impl Fn(usize, &Resting<'_>) -> Option<usize>,
) -> Result<Vector> {
    let ty = &info.arg_types[0];
    let arrays = column.as_binary_view_opt().ok_or_else(|| mismatch(ty, column))?;
    let mut out = Slices::of(arrays, count);
    for row in 0..count {
        if arrays.is_null(row) {
            out.push_null();
            continue;
        }
        let damaged = || array_value::damaged(arrays.value(row));
        let array = Resting::new(arrays.value(row)).ok_or_else(damaged)?;
        match place(row, &array) {
            None => out.push_null(),
            Some(at) => match array.field(PhysType::Bytes, at).ok_or_else(damaged)? {
                Field::Null => out.push_null(),
                Field::Value(bytes) => out.push(row, bytes),
            },
        }
    }
    let stored: ArrayRef = Arc::new(out.finish());
    Ok(Vector::Array(to_logical(info.ty, &stored)))
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
