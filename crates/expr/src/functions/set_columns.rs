//! Set-returning calls over whole columns. Elements are found where they rest: those of an array of texts, or of a
//! document, are shown in the column's own buffers, and numbers are copied side by side.
//!
//! What is made without end (`generate_series`) is no matter of columns: [`SetCall::of`] refuses it.

use super::arg::mismatch;
use super::json::{Document, as_text, check_elements};
use super::{Function, Kernel};
use crate::array_value;
use crate::context::EvalContext;
use crate::error::Result;
use crate::eval::open_set;
use crate::eval::vector::{VectorBuilder, value_at};
use crate::tree::Expr;
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BinaryViewArray, PrimitiveArray};
use arrow_buffer::NullBuffer;
use basalt_types::array::Resting;
use basalt_types::batch::{to_logical, to_stored};
use basalt_types::row::Field;
use basalt_types::text::{Slices, texts};
use basalt_types::{ColumnBuilder, DataType, Datum, PhysType, jsonb};
use std::sync::Arc;

/// A set-returning call whose arguments are columns.
#[derive(Clone, Debug)]
pub struct SetCall {
    function: &'static Function,
    arg_types: Vec<DataType>,
    ty: DataType,
}

/// What a call gave for some rows.
pub struct SetColumn {
    /// How many values each of them has.
    pub counts: Vec<u32>,
    /// The values of one row after those of the one before, in stored form.
    pub values: ArrayRef,
}

impl SetCall {
    /// `None` if it is no such call, or may have more values than its arguments are long.
    pub fn of(call: &Expr) -> Option<SetCall> {
        let Expr::Call { function, args, ty } = call else { return None };
        let is_set = matches!(function.kernel, Kernel::Set(_)) && function.name != "generate_series";
        is_set.then(|| SetCall { function, arg_types: args.iter().map(Expr::ty).collect(), ty: ty.clone() })
    }

    /// The type of the values.
    pub fn ty(&self) -> &DataType {
        &self.ty
    }

    /// Whether it gives the elements of arrays.
    pub fn is_unnest(&self) -> bool {
        let [DataType::Array(element)] = self.arg_types.as_slice() else { return false };
        self.function.name == "unnest" && **element == self.ty
    }

    /// Whether it fails for no values of its arguments.
    pub fn is_total(&self) -> bool {
        self.function.name == "unnest"
    }

    /// `args`: columns in stored form, of which these rows count.
    pub fn rows(&self, args: &[ArrayRef], rows: &[u32], ctx: &EvalContext) -> Result<SetColumn> {
        match (self.function.name.as_str(), self.arg_types.as_slice()) {
            _ if self.is_unnest() => elements_of(self.bytes_of(&args[0])?, &self.ty, rows.iter().copied()),
            ("jsonb_array_elements" | "jsonb_array_elements_text", [ty @ DataType::Jsonb]) => {
                self.members(&args[0], ty, rows)
            }
            _ => self.one_by_one(args, rows, ctx),
        }
    }

    fn bytes_of<'a>(&self, column: &'a ArrayRef) -> Result<&'a BinaryViewArray> {
        column.as_binary_view_opt().ok_or_else(|| mismatch(&self.arg_types[0], column))
    }

    /// The elements of documents.
    fn members(&self, documents: &ArrayRef, ty: &DataType, rows: &[u32]) -> Result<SetColumn> {
        let stored = self.bytes_of(documents)?;
        let as_texts = self.function.name.ends_with("_text");
        let checked = texts(stored);
        let mut out = Slices::of(stored, rows.len() * 2);
        let counts = rows.iter().map(|row| {
            let (row, before) = (*row as usize, out.len());
            if stored.is_valid(row) {
                let document = Document::of(checked.value(row), ty)?;
                check_elements(document, &self.function.name)?;
                for element in jsonb::elements(document.text) {
                    match as_texts.then(|| as_text(element)) {
                        None => out.push(row, element.as_bytes()),
                        Some(Some(text)) => out.push(row, text.as_bytes()),
                        Some(None) => out.push_null(),
                    }
                }
            }
            Ok((out.len() - before) as u32)
        });
        let counts = counts.collect::<Result<Vec<u32>>>()?;
        Ok(SetColumn { counts, values: Arc::new(out.finish()) })
    }

    /// As the function gives them, value by value.
    fn one_by_one(&self, args: &[ArrayRef], rows: &[u32], ctx: &EvalContext) -> Result<SetColumn> {
        let logical = args.iter().zip(&self.arg_types).map(|(column, ty)| to_logical(ty, column));
        let logical: Vec<ArrayRef> = logical.collect();
        let (mut out, mut counts) = (VectorBuilder::of_batch(&self.ty, rows.len()), Vec::with_capacity(rows.len()));
        for row in rows {
            let columns = logical.iter().zip(&self.arg_types);
            let values: Vec<Datum> = columns.map(|(column, ty)| value_at(ty, column.as_ref(), *row as usize)).collect();
            let mut count = 0;
            for value in open_set(self.function, &values, &self.arg_types, &self.ty, ctx)? {
                out.push(&value?)?;
                count += 1;
            }
            counts.push(count);
        }
        Ok(SetColumn { counts, values: to_stored(&self.ty, &out.finish()?) })
    }
}

/// The elements of arrays in stored form, of rows in this order.
pub(super) fn elements_of(
    arrays: &BinaryViewArray,
    element: &DataType,
    rows: impl ExactSizeIterator<Item = u32>,
) -> Result<SetColumn> {
    match array_value::element_phys(element)? {
        phys @ PhysType::I32 => numbers::<Int32Type, 4>(arrays, rows, phys, i32::from_le_bytes),
        phys @ PhysType::I64 => numbers::<Int64Type, 8>(arrays, rows, phys, i64::from_le_bytes),
        PhysType::Bytes => parts(arrays, rows),
        other => values(arrays, rows, other),
    }
}

/// Finds out how many elements each row's array has, while `take` takes them.
fn each_array<'a>(
    arrays: &'a BinaryViewArray,
    rows: impl Iterator<Item = u32>,
    mut take: impl FnMut(usize, Resting<'a>) -> Option<()>,
) -> Result<Vec<u32>> {
    let of_row = |row: u32| {
        let row = row as usize;
        if arrays.is_null(row) {
            return Ok(0);
        }
        let bytes = arrays.value(row);
        let found = Resting::new(bytes).and_then(|array| {
            let count = array.count() as u32;
            take(row, array).map(|()| count)
        });
        found.ok_or_else(|| array_value::damaged(bytes))
    };
    rows.map(of_row).collect()
}

/// Elements of `N` bytes.
fn numbers<T: ArrowPrimitiveType, const N: usize>(
    arrays: &BinaryViewArray,
    rows: impl ExactSizeIterator<Item = u32>,
    phys: PhysType,
    read: fn([u8; N]) -> T::Native,
) -> Result<SetColumn> {
    let mut values: Vec<T::Native> = Vec::with_capacity(rows.len() * 2);
    let mut nulls: Vec<usize> = Vec::new();
    let counts = each_array(arrays, rows, |_, array| {
        if let Some(all) = array.fixed(N) {
            values.extend(all.chunks_exact(N).filter_map(|bytes| bytes.try_into().ok()).map(read));
            return Some(());
        }
        array.each(phys, |field| {
            values.push(match field {
                Field::Value(bytes) => read(bytes.try_into().ok()?),
                Field::Null => {
                    nulls.push(values.len());
                    T::Native::default()
                }
            });
            Some(())
        })
    })?;
    let valid = (!nulls.is_empty()).then(|| {
        let mut valid = vec![true; values.len()];
        nulls.iter().for_each(|at| valid[*at] = false);
        NullBuffer::from(valid)
    });
    Ok(SetColumn { counts, values: Arc::new(PrimitiveArray::<T>::new(values.into(), valid)) })
}

/// Elements that are bytes.
fn parts(arrays: &BinaryViewArray, rows: impl ExactSizeIterator<Item = u32>) -> Result<SetColumn> {
    let mut out = Slices::of(arrays, rows.len() * 2);
    let counts = each_array(arrays, rows, |row, array| {
        array.each(PhysType::Bytes, |field| {
            match field {
                Field::Value(bytes) => out.push(row, bytes),
                Field::Null => out.push_null(),
            }
            Some(())
        })
    })?;
    Ok(SetColumn { counts, values: Arc::new(out.finish()) })
}

/// Elements of any other form.
fn values(arrays: &BinaryViewArray, rows: impl ExactSizeIterator<Item = u32>, element: PhysType) -> Result<SetColumn> {
    let mut out = ColumnBuilder::new(element, rows.len() * 2);
    let counts = each_array(arrays, rows, |_, array| {
        array.each(element, |field| match field {
            Field::Value(bytes) => out.push_bytes(bytes).then_some(()),
            Field::Null => {
                out.push_null();
                Some(())
            }
        })
    })?;
    Ok(SetColumn { counts, values: out.finish() })
}
