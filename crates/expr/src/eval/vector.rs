//! Operands of vector kernels, and the way between vectors and single values.

use super::room::Room;
use crate::error::{Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::{ColumnBuilder, DataType, Datum, PhysType, batch};

/// A column of values, or one value for all rows.
#[derive(Clone, Debug)]
pub enum Vector {
    Array(ArrayRef),
    Const(Datum),
}

impl Vector {
    /// As an array of `ty`'s Arrow form.
    pub fn into_array(self, ty: &DataType, rows: usize) -> Result<ArrayRef> {
        match self {
            Vector::Array(array) => Ok(array),
            Vector::Const(value) => repeat(ty, &value, rows),
        }
    }

    /// The value of one row, which is of type `ty`.
    pub fn value(&self, ty: &DataType, index: usize) -> Datum {
        match self {
            Vector::Array(array) => value_at(ty, array.as_ref(), index),
            Vector::Const(value) => value.clone(),
        }
    }

    /// Which rows are not null.
    pub fn validity(&self, rows: usize) -> BooleanBuffer {
        match self {
            Vector::Const(Datum::Null) => BooleanBuffer::new_unset(rows),
            Vector::Const(_) => BooleanBuffer::new_set(rows),
            Vector::Array(array) => match array.logical_nulls() {
                Some(nulls) => nulls.into_inner(),
                None => BooleanBuffer::new_set(rows),
            },
        }
    }

    pub fn nulls(&self) -> Option<NullBuffer> {
        match self {
            Vector::Const(_) => None,
            Vector::Array(array) => array.logical_nulls(),
        }
    }
}

/// An error of Arrow's own kernels: they are called only where they cannot fail.
pub fn from_arrow(error: arrow::error::ArrowError) -> Error {
    Error::internal(format!("arrow: {error}"))
}

fn repeat(ty: &DataType, value: &Datum, rows: usize) -> Result<ArrayRef> {
    if value.is_null() {
        return Ok(arrow_array::new_null_array(&ty.to_arrow(), rows));
    }
    if let Datum::Bytes(_) = value {
        // All rows show the same bytes.
        let one = from_values(ty, std::iter::once(value), 1)?;
        return arrow::compute::take(&one, &UInt32Array::from_value(0, rows), None).map_err(from_arrow);
    }
    from_values(ty, std::iter::repeat_n(value, rows), rows)
}

/// A vector of `ty` from single values.
pub fn from_values<'a>(ty: &DataType, values: impl Iterator<Item = &'a Datum>, capacity: usize) -> Result<ArrayRef> {
    let mut builder = VectorBuilder::new(ty, capacity);
    for value in values {
        builder.push(value)?;
    }
    builder.finish()
}

/// Collects values of one SQL type into a vector of its Arrow form.
pub struct VectorBuilder {
    ty: DataType,
    values: ColumnBuilder,
    room: Room,
}

impl VectorBuilder {
    pub fn new(ty: &DataType, capacity: usize) -> VectorBuilder {
        let values = ColumnBuilder::new(ty.phys().unwrap_or(PhysType::Bytes), capacity);
        VectorBuilder { ty: ty.clone(), values, room: Room::unlimited() }
    }

    /// For what an expression gives for the rows of a batch, which is held to a limit.
    pub fn of_batch(ty: &DataType, rows: usize) -> VectorBuilder {
        VectorBuilder::within(ty, rows, Room::of_batch())
    }

    pub(super) fn within(ty: &DataType, rows: usize, room: Room) -> VectorBuilder {
        VectorBuilder { room, ..VectorBuilder::new(ty, rows) }
    }

    /// 53200 if the values of a batch become too large.
    pub fn push(&mut self, value: &Datum) -> Result<()> {
        if let Datum::Bytes(bytes) = value {
            self.room.take(bytes.len())?;
        }
        match self.values.push(value) {
            true => Ok(()),
            false => Err(Error::internal(format!("{value:?} is not a value of type {}", self.ty.sql_name()))),
        }
    }

    pub fn skip(&mut self) {
        self.values.push_null();
    }

    pub fn finish(mut self) -> Result<ArrayRef> {
        let stored = self.values.finish();
        match &self.ty {
            DataType::Unknown | DataType::Void => Ok(batch::to_logical(&DataType::Text, &stored)),
            ty => Ok(batch::to_logical(ty, &stored)),
        }
    }
}

/// Reads one value of a vector of `ty`.
pub fn value_at(ty: &DataType, array: &dyn Array, index: usize) -> Datum {
    use arrow_array::types::*;
    if array.is_null(index) {
        return Datum::Null;
    }
    match array.data_type() {
        arrow_schema::DataType::Decimal128(..) => {
            let value = array.as_primitive::<Decimal128Type>().value(index);
            match ty.phys() {
                Some(PhysType::I64) => Datum::I64(value as i64),
                _ => Datum::I128(value),
            }
        }
        arrow_schema::DataType::Utf8View => Datum::text(array.as_string_view().value(index)),
        arrow_schema::DataType::Date32 => Datum::I32(array.as_primitive::<Date32Type>().value(index)),
        arrow_schema::DataType::Time64(_) => Datum::I64(array.as_primitive::<Time64MicrosecondType>().value(index)),
        arrow_schema::DataType::Timestamp(..) => {
            Datum::I64(array.as_primitive::<TimestampMicrosecondType>().value(index))
        }
        arrow_schema::DataType::Null => Datum::Null,
        _ => batch::datum_at(ty.phys().unwrap_or(PhysType::Bytes), array, index),
    }
}
