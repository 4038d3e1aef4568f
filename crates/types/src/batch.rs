//! Columns of values: from rows into Arrow arrays, and from stored arrays to typed ones.

use crate::{DataType, Datum, PhysType, row, varint};
use arrow_array::builder::*;
use arrow_array::{Array, ArrayRef, BinaryViewArray, Decimal128Array, Int32Array, Int64Array};
use arrow_array::{BooleanArray, Date32Array, FixedSizeBinaryArray, StringViewArray};
use arrow_array::{Time64MicrosecondArray, TimestampMicrosecondArray};
use std::sync::Arc;

/// Collects values of one physical type into an Arrow array of [`PhysType::to_arrow`].
pub enum ColumnBuilder {
    Bool(BooleanBuilder),
    I16(Int16Builder),
    I32(Int32Builder),
    I64(Int64Builder),
    I128(Decimal128Builder),
    F32(Float32Builder),
    F64(Float64Builder),
    Bytes(BinaryViewBuilder),
    Fixed16(FixedSizeBinaryBuilder),
}

macro_rules! each {
    ($self:expr, $builder:ident => $body:expr) => {
        match $self {
            ColumnBuilder::Bool($builder) => $body,
            ColumnBuilder::I16($builder) => $body,
            ColumnBuilder::I32($builder) => $body,
            ColumnBuilder::I64($builder) => $body,
            ColumnBuilder::I128($builder) => $body,
            ColumnBuilder::F32($builder) => $body,
            ColumnBuilder::F64($builder) => $body,
            ColumnBuilder::Bytes($builder) => $body,
            ColumnBuilder::Fixed16($builder) => $body,
        }
    };
}

impl ColumnBuilder {
    pub fn new(ty: PhysType, capacity: usize) -> ColumnBuilder {
        match ty {
            PhysType::Bool => ColumnBuilder::Bool(BooleanBuilder::with_capacity(capacity)),
            PhysType::I16 => ColumnBuilder::I16(Int16Builder::with_capacity(capacity)),
            PhysType::I32 => ColumnBuilder::I32(Int32Builder::with_capacity(capacity)),
            PhysType::I64 => ColumnBuilder::I64(Int64Builder::with_capacity(capacity)),
            PhysType::I128 => ColumnBuilder::I128(
                Decimal128Builder::with_capacity(capacity).with_precision_and_scale(38, 0).expect("38 digits fit"),
            ),
            PhysType::F32 => ColumnBuilder::F32(Float32Builder::with_capacity(capacity)),
            PhysType::F64 => ColumnBuilder::F64(Float64Builder::with_capacity(capacity)),
            PhysType::Bytes => {
                ColumnBuilder::Bytes(BinaryViewBuilder::with_capacity(capacity).with_fixed_block_size(1 << 16))
            }
            PhysType::Fixed16 => ColumnBuilder::Fixed16(FixedSizeBinaryBuilder::with_capacity(capacity, 16)),
        }
    }

    pub fn len(&self) -> usize {
        each!(self, builder => ArrayBuilder::len(builder))
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push_null(&mut self) {
        each!(self, builder => builder.append_null())
    }

    /// Appends a value given as its stored bytes; false if they are not a value of this type.
    #[must_use]
    pub fn push_bytes(&mut self, bytes: &[u8]) -> bool {
        match self {
            ColumnBuilder::Bytes(builder) => builder.append_value(bytes),
            ColumnBuilder::I64(builder) => match bytes.try_into() {
                Ok(bytes) => builder.append_value(i64::from_le_bytes(bytes)),
                Err(_) => return false,
            },
            ColumnBuilder::I32(builder) => match bytes.try_into() {
                Ok(bytes) => builder.append_value(i32::from_le_bytes(bytes)),
                Err(_) => return false,
            },
            other => match row::decode_value(other.ty(), bytes) {
                Some(value) => return other.push(&value),
                None => return false,
            },
        }
        true
    }

    /// Appends a value; false if it is of another type.
    #[must_use]
    pub fn push(&mut self, value: &Datum) -> bool {
        match (self, value) {
            (builder, Datum::Null) => builder.push_null(),
            (ColumnBuilder::Bool(builder), Datum::Bool(value)) => builder.append_value(*value),
            (ColumnBuilder::I16(builder), Datum::I16(value)) => builder.append_value(*value),
            (ColumnBuilder::I32(builder), Datum::I32(value)) => builder.append_value(*value),
            (ColumnBuilder::I64(builder), Datum::I64(value)) => builder.append_value(*value),
            (ColumnBuilder::I128(builder), Datum::I128(value)) => builder.append_value(*value),
            (ColumnBuilder::F32(builder), Datum::F32(value)) => builder.append_value(*value),
            (ColumnBuilder::F64(builder), Datum::F64(value)) => builder.append_value(*value),
            (ColumnBuilder::Bytes(builder), Datum::Bytes(value)) => builder.append_value(value),
            (ColumnBuilder::Fixed16(builder), Datum::Fixed16(value)) => {
                builder.append_value(value).expect("16 bytes");
            }
            _ => return false,
        }
        true
    }

    pub fn ty(&self) -> PhysType {
        match self {
            ColumnBuilder::Bool(_) => PhysType::Bool,
            ColumnBuilder::I16(_) => PhysType::I16,
            ColumnBuilder::I32(_) => PhysType::I32,
            ColumnBuilder::I64(_) => PhysType::I64,
            ColumnBuilder::I128(_) => PhysType::I128,
            ColumnBuilder::F32(_) => PhysType::F32,
            ColumnBuilder::F64(_) => PhysType::F64,
            ColumnBuilder::Bytes(_) => PhysType::Bytes,
            ColumnBuilder::Fixed16(_) => PhysType::Fixed16,
        }
    }

    /// Takes what was collected; the builder starts anew.
    pub fn finish(&mut self) -> ArrayRef {
        each!(self, builder => Arc::new(builder.finish()))
    }
}

/// The same values in buffers of their own: texts that were taken out of a column keep all of it in memory.
pub fn own(array: ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_schema::DataType as ArrowType;
    match array.data_type() {
        ArrowType::Utf8View => Arc::new(array.as_string_view().gc()),
        ArrowType::BinaryView => Arc::new(array.as_binary_view().gc()),
        _ => array,
    }
}

/// [`own`], for texts that keep much more in memory than they are.
pub fn own_if_few(array: ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_schema::DataType as ArrowType;
    let kept = |buffers: &[arrow_buffer::Buffer]| buffers.iter().map(|buffer| buffer.len()).sum::<usize>();
    let kept = match array.data_type() {
        ArrowType::Utf8View => kept(array.as_string_view().data_buffers()),
        ArrowType::BinaryView => kept(array.as_binary_view().data_buffers()),
        _ => 0,
    };
    match kept > 2 * bytes_of(std::slice::from_ref(&array)) {
        true => own(array),
        false => array,
    }
}

/// Bytes of a batch's values: of a slice only its own.
pub fn bytes_of(columns: &[ArrayRef]) -> usize {
    use arrow_array::cast::AsArray;
    use arrow_schema::DataType as ArrowType;
    let of_views = |views: &[u128]| views.iter().map(|view| size_of::<u128>() + *view as u32 as usize).sum::<usize>();
    let of_column = |column: &ArrayRef| match column.data_type() {
        // Slices share their buffers: the lengths say what is theirs.
        ArrowType::Utf8View => of_views(column.as_string_view().views()),
        ArrowType::BinaryView => of_views(column.as_binary_view().views()),
        _ => column.to_data().get_slice_memory_size().unwrap_or(0),
    };
    columns.iter().map(of_column).sum()
}

/// Reads one value out of a stored (physical) array.
///
/// # Panics
/// If the array is not of `ty`'s Arrow form.
pub fn datum_at(ty: PhysType, array: &dyn Array, index: usize) -> Datum {
    use arrow_array::cast::AsArray;
    use arrow_array::types::*;
    if array.is_null(index) {
        return Datum::Null;
    }
    match ty {
        PhysType::Bool => Datum::Bool(array.as_boolean().value(index)),
        PhysType::I16 => Datum::I16(array.as_primitive::<Int16Type>().value(index)),
        PhysType::I32 => Datum::I32(array.as_primitive::<Int32Type>().value(index)),
        PhysType::I64 => Datum::I64(array.as_primitive::<Int64Type>().value(index)),
        PhysType::I128 => Datum::I128(array.as_primitive::<Decimal128Type>().value(index)),
        PhysType::F32 => Datum::F32(array.as_primitive::<Float32Type>().value(index)),
        PhysType::F64 => Datum::F64(array.as_primitive::<Float64Type>().value(index)),
        PhysType::Bytes => Datum::Bytes(array.as_binary_view().value(index).into()),
        PhysType::Fixed16 => Datum::Fixed16(array.as_fixed_size_binary().value(index).try_into().expect("16 bytes")),
    }
}

/// Gives rows of columns in row format ([`crate::row`]).
pub struct RowEncoder<'c> {
    cells: Vec<Option<Cells<'c>>>,
}

/// A stored column of which values are taken one by one.
struct Cells<'c> {
    array: &'c dyn Array,
    values: CellValues<'c>,
}

enum CellValues<'c> {
    Bool(&'c BooleanArray),
    /// Little-endian, of this width.
    Fixed(&'c [u8], usize),
    Sixteen(&'c FixedSizeBinaryArray),
    Bytes(&'c BinaryViewArray),
}

impl<'c> RowEncoder<'c> {
    /// Columns in column-id order, in stored form ([`PhysType::to_arrow`]); `None`: all are null.
    ///
    /// # Panics
    /// If an array is not of its type.
    pub fn new(columns: impl Iterator<Item = Option<(PhysType, &'c ArrayRef)>>) -> RowEncoder<'c> {
        let cells = |(ty, array): (PhysType, &'c ArrayRef)| Cells { array, values: CellValues::of(ty, array) };
        RowEncoder { cells: columns.map(|column| column.map(cells)).collect() }
    }

    /// Appends one row.
    pub fn encode(&self, row: usize, out: &mut Vec<u8>) {
        varint::put(out, self.cells.len() as u64);
        let bitmap = out.len();
        out.resize(bitmap + self.cells.len().div_ceil(8), 0);
        for (at, cells) in self.cells.iter().enumerate() {
            match cells {
                Some(cells) if cells.array.is_valid(row) => cells.values.put(row, out),
                _ => out[bitmap + at / 8] |= 1 << (at % 8),
            }
        }
    }
}

impl<'c> CellValues<'c> {
    fn of(ty: PhysType, array: &'c ArrayRef) -> CellValues<'c> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::*;
        fn fixed<T: ArrowPrimitiveType>(array: &ArrayRef) -> CellValues<'_> {
            CellValues::Fixed(array.as_primitive::<T>().values().inner().as_slice(), size_of::<T::Native>())
        }
        match ty {
            PhysType::Bool => CellValues::Bool(array.as_boolean()),
            PhysType::I16 => fixed::<Int16Type>(array),
            PhysType::I32 => fixed::<Int32Type>(array),
            PhysType::I64 => fixed::<Int64Type>(array),
            PhysType::I128 => fixed::<Decimal128Type>(array),
            PhysType::F32 => fixed::<Float32Type>(array),
            PhysType::F64 => fixed::<Float64Type>(array),
            PhysType::Bytes => CellValues::Bytes(array.as_binary_view()),
            PhysType::Fixed16 => CellValues::Sixteen(array.as_fixed_size_binary()),
        }
    }

    fn put(&self, row: usize, out: &mut Vec<u8>) {
        match self {
            CellValues::Bool(values) => out.push(u8::from(values.value(row))),
            CellValues::Fixed(values, width) => out.extend_from_slice(&values[row * width..][..*width]),
            CellValues::Sixteen(values) => out.extend_from_slice(values.value(row)),
            CellValues::Bytes(values) => varint::put_slice(out, values.value(row)),
        }
    }
}

/// A stored column as vectors of its SQL type ([`DataType::to_arrow`]). Shares buffers where it can.
///
/// # Panics
/// If the array is not of the type's physical form, or text is not UTF-8 (checked when it was written).
pub fn to_logical(ty: &DataType, stored: &ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_array::types::*;
    match ty {
        DataType::Numeric(_) => match (ty.decimal(), stored.data_type()) {
            (Some((p, s)), arrow_schema::DataType::Int64) => {
                let values = stored.as_primitive::<Int64Type>();
                let wide: Decimal128Array = values.unary(i128::from);
                Arc::new(wide.with_precision_and_scale(p, s).expect("checked by the catalog"))
            }
            (Some((p, s)), _) => {
                let values = stored.as_primitive::<Decimal128Type>().clone();
                Arc::new(values.with_precision_and_scale(p, s).expect("checked by the catalog"))
            }
            (None, _) => stored.clone(),
        },
        DataType::Date => reinterpret::<Int32Type, Date32Type>(stored),
        DataType::Time => reinterpret::<Int64Type, Time64MicrosecondType>(stored),
        DataType::Timestamp => reinterpret::<Int64Type, TimestampMicrosecondType>(stored),
        DataType::TimestampTz => {
            let values = stored.as_primitive::<Int64Type>().reinterpret_cast::<TimestampMicrosecondType>();
            Arc::new(values.with_timezone("UTC"))
        }
        DataType::Text
        | DataType::Varchar(_)
        | DataType::Bit(_)
        | DataType::Varbit(_)
        | DataType::Bpchar(_)
        | DataType::Json
        | DataType::Jsonb
        | DataType::JsonPath
        | DataType::PgSnapshot
        | DataType::TxidSnapshot
        | DataType::Name
        | DataType::Char => Arc::new(crate::text::texts(stored.as_binary_view())),
        DataType::Domain(domain) => to_logical(&domain.base, stored),
        _ => stored.clone(),
    }
}

fn reinterpret<From, To>(stored: &ArrayRef) -> ArrayRef
where
    From: arrow_array::ArrowPrimitiveType,
    To: arrow_array::ArrowPrimitiveType<Native = From::Native>,
{
    use arrow_array::cast::AsArray;
    Arc::new(stored.as_primitive::<From>().reinterpret_cast::<To>())
}

/// The inverse of [`to_logical`]: a typed vector as it rests.
///
/// # Panics
/// If the array is not of the type's Arrow form.
pub fn to_stored(ty: &DataType, logical: &ArrayRef) -> ArrayRef {
    use arrow_array::cast::AsArray;
    use arrow_array::types::*;
    match ty {
        DataType::Numeric(_) => match ty.phys() {
            Some(PhysType::I64) => {
                let values = logical.as_primitive::<Decimal128Type>();
                let narrow: Int64Array = values.unary(|value| value as i64);
                Arc::new(narrow)
            }
            Some(PhysType::I128) => {
                let values = logical.as_primitive::<Decimal128Type>().clone();
                Arc::new(values.with_precision_and_scale(38, 0).expect("38 digits fit"))
            }
            _ => logical.clone(),
        },
        DataType::Date => {
            let days: &Date32Array = logical.as_primitive();
            let days: Int32Array = days.reinterpret_cast();
            Arc::new(days)
        }
        DataType::Time => {
            let micros: &Time64MicrosecondArray = logical.as_primitive();
            let micros: Int64Array = micros.reinterpret_cast();
            Arc::new(micros)
        }
        DataType::Timestamp | DataType::TimestampTz => {
            let micros: &TimestampMicrosecondArray = logical.as_primitive();
            let micros: Int64Array = micros.reinterpret_cast();
            Arc::new(micros)
        }
        DataType::Text
        | DataType::Varchar(_)
        | DataType::Bit(_)
        | DataType::Varbit(_)
        | DataType::Bpchar(_)
        | DataType::Json
        | DataType::Jsonb
        | DataType::JsonPath
        | DataType::PgSnapshot
        | DataType::TxidSnapshot
        | DataType::Name
        | DataType::Char => {
            let text: &StringViewArray = logical.as_string_view();
            Arc::new(text.clone().to_binary_view())
        }
        DataType::Domain(domain) => to_stored(&domain.base, logical),
        _ => logical.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_columns_are_those_of_their_values() {
        let types = [
            PhysType::Bool,
            PhysType::I16,
            PhysType::I32,
            PhysType::I64,
            PhysType::I128,
            PhysType::F32,
            PhysType::F64,
            PhysType::Bytes,
            PhysType::Fixed16,
        ];
        let value = |ty: PhysType, i: i64| match ty {
            _ if (i + ty as i64) % 4 == 0 => Datum::Null,
            PhysType::Bool => Datum::Bool(i % 2 == 0),
            PhysType::I16 => Datum::I16(i as i16 - 9),
            PhysType::I32 => Datum::I32(i as i32 * -77_777),
            PhysType::I64 => Datum::I64(i << 40),
            PhysType::I128 => Datum::I128(i128::from(i) << 90),
            PhysType::F32 => Datum::F32(i as f32 / 3.0),
            PhysType::F64 => Datum::F64(-i as f64 / 7.0),
            PhysType::Bytes => Datum::Bytes(vec![i as u8; i as usize].into()),
            PhysType::Fixed16 => Datum::Fixed16([i as u8; 16]),
        };
        let columns: Vec<ArrayRef> = (types.iter())
            .map(|ty| {
                let mut builder = ColumnBuilder::new(*ty, 40);
                (0..40).for_each(|i| assert!(builder.push(&value(*ty, i))));
                builder.finish().slice(5, 30)
            })
            .collect();
        // A column that all rows lack comes first.
        let cells = std::iter::once(None).chain(types.iter().zip(&columns).map(|(ty, column)| Some((*ty, column))));
        let encoder = RowEncoder::new(cells);
        let all_types: Vec<PhysType> = std::iter::once(PhysType::I32).chain(types).collect();
        for i in 0..30 {
            let values = types.iter().map(|ty| value(*ty, i as i64 + 5));
            let values: Vec<Datum> = std::iter::once(Datum::Null).chain(values).collect();
            let (mut expected, mut got) = (Vec::new(), Vec::new());
            row::encode(&all_types, &values, &mut expected);
            encoder.encode(i, &mut got);
            assert_eq!(got, expected, "row {i}");
        }
    }
}
