//! Whole columns of arrays of which a length or one element is asked: no other element is decoded.

use super::CallInfo;
use super::arg::{I4, Operand, mismatch, union_nulls};
use crate::array_value;
use crate::error::Result;
use crate::eval::rows;
use crate::eval::vector::{Vector, VectorBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, ArrowPrimitiveType, BinaryViewArray, PrimitiveArray};
use arrow_buffer::NullBufferBuilder;
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
    let subscripts = Operand::<I4>::new(subscripts, &DataType::Int4)?;
    let place = |row: usize, array: &Resting<'_>| {
        let dimension = array.dimension(0).filter(|_| array.dimensions() == 1)?;
        let at = u32::try_from(i64::from(subscripts.at(row).ok()?) - i64::from(dimension.lower)).ok()?;
        (at < dimension.length).then_some(at as usize)
    };
    let one_by_one = || {
        each(args, count, info, |row, array| match place(row, array) {
            Some(at) => array.element(element, at),
            None => Some(Datum::Null),
        })
    };
    let Vector::Array(column) = arrays else { return one_by_one() };
    let rows = Rows { arrays: bytes_of(column, info)?, nulls: union_nulls(args), count };
    let stored: ArrayRef = match element {
        PhysType::I16 => rows.numbers::<Int16Type, 2>(element, i16::from_le_bytes, place)?,
        PhysType::I32 => rows.numbers::<Int32Type, 4>(element, i32::from_le_bytes, place)?,
        PhysType::I64 => rows.numbers::<Int64Type, 8>(element, i64::from_le_bytes, place)?,
        PhysType::F32 => rows.numbers::<Float32Type, 4>(element, f32::from_le_bytes, place)?,
        PhysType::F64 => rows.numbers::<Float64Type, 8>(element, f64::from_le_bytes, place)?,
        PhysType::Bytes => rows.parts(place)?,
        PhysType::Bool | PhysType::I128 | PhysType::Fixed16 => return one_by_one(),
    };
    Ok(Vector::Array(to_logical(info.ty, &stored)))
}

fn bytes_of<'a>(column: &'a ArrayRef, info: &CallInfo) -> Result<&'a BinaryViewArray> {
    column.as_binary_view_opt().ok_or_else(|| mismatch(&info.arg_types[0], column))
}

/// A column of arrays, of each of which one element is asked.
struct Rows<'a> {
    arrays: &'a BinaryViewArray,
    /// Rows of which nothing is asked.
    nulls: Option<arrow_buffer::NullBuffer>,
    count: usize,
}

impl<'a> Rows<'a> {
    /// Calls `take` with the element that `place` names, or with nothing, for each row.
    #[inline]
    fn each(
        &self,
        element: PhysType,
        place: impl Fn(usize, &Resting<'a>) -> Option<usize>,
        mut take: impl FnMut(usize, Option<&'a [u8]>) -> Option<()>,
    ) -> Result<()> {
        for row in 0..self.count {
            if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                take(row, None);
                continue;
            }
            let bytes = self.arrays.value(row);
            let found = Resting::new(bytes).and_then(|array| match place(row, &array) {
                None => take(row, None),
                Some(at) => match array.field(element, at)? {
                    Field::Null => take(row, None),
                    Field::Value(value) => take(row, Some(value)),
                },
            });
            found.ok_or_else(|| array_value::damaged(bytes))?;
        }
        Ok(())
    }

    /// Elements of `N` bytes.
    fn numbers<T: ArrowPrimitiveType, const N: usize>(
        &self,
        element: PhysType,
        read: fn([u8; N]) -> T::Native,
        place: impl Fn(usize, &Resting<'a>) -> Option<usize>,
    ) -> Result<ArrayRef> {
        let (mut values, mut nulls) = (Vec::with_capacity(self.count), NullBufferBuilder::new(self.count));
        self.each(element, place, |_, value| {
            nulls.append(value.is_some());
            values.push(match value {
                Some(value) => read(value.try_into().ok()?),
                None => T::Native::default(),
            });
            Some(())
        })?;
        Ok(Arc::new(PrimitiveArray::<T>::new(values.into(), nulls.finish())))
    }

    /// Elements that are bytes, shown where they lie.
    fn parts(&self, place: impl Fn(usize, &Resting<'a>) -> Option<usize>) -> Result<ArrayRef> {
        let mut out = Slices::of(self.arrays, self.count);
        self.each(PhysType::Bytes, place, |row, value| {
            match value {
                Some(value) => out.push(row, value),
                None => out.push_null(),
            }
            Some(())
        })?;
        Ok(Arc::new(out.finish()))
    }
}

pub(super) fn cardinality(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    each(args, rows, info, |_, array| Some(Datum::I32(array.count() as i32)))
}

/// `array_length(array, dimension)`.
pub(super) fn length(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    let numbers = Operand::<I4>::new(&args[1], &DataType::Int4)?;
    each(args, rows, info, |row, array| {
        let at = usize::try_from(i64::from(numbers.at(row).ok()?) - 1).ok();
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
    let mut builder = VectorBuilder::of_batch(info.ty, rows);
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
