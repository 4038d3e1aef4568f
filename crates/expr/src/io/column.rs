//! Logical Arrow arrays, cell by cell.

use crate::error::{Error, Result};
use arrow_array::builder::*;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, NullArray};
use arrow_schema::DataType as ArrowType;
use basalt_types::{DataType, Datum, PhysType};
use std::sync::Arc;

/// Collects cells of one SQL type into an Arrow array of [`DataType::to_arrow`].
pub struct LogicalBuilder {
    ty: DataType,
    cells: Cells,
}

pub(super) enum Cells {
    Bool(BooleanBuilder),
    Int2(Int16Builder),
    Int4(Int32Builder),
    Int8(Int64Builder),
    Float4(Float32Builder),
    Float8(Float64Builder),
    Decimal(Decimal128Builder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    Fixed16(FixedSizeBinaryBuilder),
    Null(usize),
}

/// Long values are copied into blocks of this size.
const BLOCK_BYTES: u32 = 1 << 16;

macro_rules! each {
    ($self:expr, $builder:ident => $body:expr, $null:pat => $of_null:expr) => {
        match $self {
            Cells::Bool($builder) => $body,
            Cells::Int2($builder) => $body,
            Cells::Int4($builder) => $body,
            Cells::Int8($builder) => $body,
            Cells::Float4($builder) => $body,
            Cells::Float8($builder) => $body,
            Cells::Decimal($builder) => $body,
            Cells::Text($builder) => $body,
            Cells::Bytes($builder) => $body,
            Cells::Date($builder) => $body,
            Cells::Time($builder) => $body,
            Cells::Timestamp($builder) => $body,
            Cells::Fixed16($builder) => $body,
            $null => $of_null,
        }
    };
}

impl LogicalBuilder {
    pub fn new(ty: &DataType, capacity: usize) -> LogicalBuilder {
        let cells = match ty.to_arrow() {
            ArrowType::Boolean => Cells::Bool(BooleanBuilder::with_capacity(capacity)),
            ArrowType::Int16 => Cells::Int2(Int16Builder::with_capacity(capacity)),
            ArrowType::Int32 => Cells::Int4(Int32Builder::with_capacity(capacity)),
            ArrowType::Int64 => Cells::Int8(Int64Builder::with_capacity(capacity)),
            ArrowType::Float32 => Cells::Float4(Float32Builder::with_capacity(capacity)),
            ArrowType::Float64 => Cells::Float8(Float64Builder::with_capacity(capacity)),
            arrow @ ArrowType::Decimal128(..) => {
                Cells::Decimal(Decimal128Builder::with_capacity(capacity).with_data_type(arrow))
            }
            ArrowType::Utf8View => {
                Cells::Text(StringViewBuilder::with_capacity(capacity).with_fixed_block_size(BLOCK_BYTES))
            }
            ArrowType::BinaryView => {
                Cells::Bytes(BinaryViewBuilder::with_capacity(capacity).with_fixed_block_size(BLOCK_BYTES))
            }
            ArrowType::Date32 => Cells::Date(Date32Builder::with_capacity(capacity)),
            ArrowType::Time64(_) => Cells::Time(Time64MicrosecondBuilder::with_capacity(capacity)),
            arrow @ ArrowType::Timestamp(..) => {
                Cells::Timestamp(TimestampMicrosecondBuilder::with_capacity(capacity).with_data_type(arrow))
            }
            ArrowType::FixedSizeBinary(_) => Cells::Fixed16(FixedSizeBinaryBuilder::with_capacity(capacity, 16)),
            _ => Cells::Null(0),
        };
        LogicalBuilder { ty: ty.clone(), cells }
    }

    pub fn ty(&self) -> &DataType {
        &self.ty
    }

    pub(super) fn split(&mut self) -> (&DataType, &mut Cells) {
        (&self.ty, &mut self.cells)
    }

    pub fn len(&self) -> usize {
        each!(&self.cells, builder => ArrayBuilder::len(builder), Cells::Null(count) => *count)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push_null(&mut self) {
        each!(&mut self.cells,
            builder => builder.append_null(),
            Cells::Null(count) => *count += 1
        );
    }

    /// Appends a value of the builder's type; XX000 if it is of another physical form.
    pub fn push(&mut self, value: &Datum) -> Result<()> {
        match (&mut self.cells, value) {
            (_, Datum::Null) => self.push_null(),
            (Cells::Bool(builder), Datum::Bool(value)) => builder.append_value(*value),
            (Cells::Int2(builder), Datum::I16(value)) => builder.append_value(*value),
            (Cells::Int4(builder), Datum::I32(value)) => builder.append_value(*value),
            (Cells::Int8(builder), Datum::I64(value)) => builder.append_value(*value),
            (Cells::Float4(builder), Datum::F32(value)) => builder.append_value(*value),
            (Cells::Float8(builder), Datum::F64(value)) => builder.append_value(*value),
            (Cells::Decimal(builder), Datum::I64(value)) => builder.append_value(i128::from(*value)),
            (Cells::Decimal(builder), Datum::I128(value)) => builder.append_value(*value),
            (Cells::Text(builder), Datum::Bytes(value)) => builder.append_value(utf8(value)?),
            (Cells::Bytes(builder), Datum::Bytes(value)) => builder.append_value(value),
            (Cells::Date(builder), Datum::I32(value)) => builder.append_value(*value),
            (Cells::Time(builder), Datum::I64(value)) => builder.append_value(*value),
            (Cells::Timestamp(builder), Datum::I64(value)) => builder.append_value(*value),
            (Cells::Fixed16(builder), Datum::Fixed16(value)) => {
                builder.append_value(value).map_err(|error| Error::internal(error.to_string()))?;
            }
            (_, other) => return Err(Error::internal(format!("{other:?} is no {}", self.ty.sql_name()))),
        }
        Ok(())
    }

    /// Takes what was collected; the builder starts anew.
    pub fn finish(&mut self) -> ArrayRef {
        each!(&mut self.cells,
            builder => Arc::new(builder.finish()) as ArrayRef,
            Cells::Null(count) => Arc::new(NullArray::new(std::mem::take(count)))
        )
    }
}

/// Bytes from a client or a datum as text; 22021 if they are not UTF-8 or hold a zero byte.
#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(bytes).map_err(|error| Error::invalid_utf8(bytes, error.valid_up_to()))?;
    match memchr::memchr(0, bytes) {
        Some(at) => Err(Error::invalid_utf8(bytes, at)),
        None => Ok(text),
    }
}

/// Reads one cell of a logical array.
///
/// # Panics
/// If the array is not of the type's Arrow form.
pub fn datum_at(ty: &DataType, array: &dyn Array, row: usize) -> Datum {
    if array.is_null(row) {
        return Datum::Null;
    }
    match array.data_type() {
        ArrowType::Boolean => Datum::Bool(array.as_boolean().value(row)),
        ArrowType::Int16 => Datum::I16(array.as_primitive::<Int16Type>().value(row)),
        ArrowType::Int32 => Datum::I32(array.as_primitive::<Int32Type>().value(row)),
        ArrowType::Int64 => Datum::I64(array.as_primitive::<Int64Type>().value(row)),
        ArrowType::Float32 => Datum::F32(array.as_primitive::<Float32Type>().value(row)),
        ArrowType::Float64 => Datum::F64(array.as_primitive::<Float64Type>().value(row)),
        ArrowType::Decimal128(..) => {
            let value = array.as_primitive::<Decimal128Type>().value(row);
            match ty.phys() {
                Some(PhysType::I64) => Datum::I64(value as i64),
                _ => Datum::I128(value),
            }
        }
        ArrowType::Utf8View => Datum::text(array.as_string_view().value(row)),
        ArrowType::BinaryView => Datum::Bytes(array.as_binary_view().value(row).into()),
        ArrowType::Date32 => Datum::I32(array.as_primitive::<Date32Type>().value(row)),
        ArrowType::Time64(_) => Datum::I64(array.as_primitive::<Time64MicrosecondType>().value(row)),
        ArrowType::Timestamp(..) => Datum::I64(array.as_primitive::<TimestampMicrosecondType>().value(row)),
        ArrowType::FixedSizeBinary(_) => {
            Datum::Fixed16(array.as_fixed_size_binary().value(row).try_into().expect("16 bytes"))
        }
        _ => Datum::Null,
    }
}
