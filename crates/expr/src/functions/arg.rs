//! Typed access to arguments and results, so that one body serves single values and vectors.
//!
//! A marker type (`I4`, `Txt`, `Num`, …) says how a SQL type is read from a value or a vector ([`Arg`]) and
//! how results are collected ([`Out`]). [`kernel!`] writes both kernels around a body.

use crate::datetime::TimeTz;
use crate::error::{Error, Result};
use crate::eval::room::{self, Room};
use crate::eval::vector::{Vector, VectorBuilder, from_arrow, value_at};
use crate::interval::Interval;
use crate::numeric::Numeric;
use arrow_array::builder::StringViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer};
use basalt_types::{DataType, Datum, PhysType};
use std::borrow::Cow;
use std::sync::Arc;

pub trait Arg {
    type Value<'a>: Clone;
    type Column<'a>;
    fn of<'a>(value: &'a Datum, ty: &DataType) -> Result<Self::Value<'a>>;
    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<Self::Column<'a>>;
    fn at<'a: 'a>(column: &Self::Column<'a>, index: usize) -> Result<Self::Value<'a>>;
}

pub trait Out {
    /// It may be a part of an argument.
    type Value<'v>;
    type Builder;
    fn datum(value: Self::Value<'_>, ty: &DataType) -> Result<Datum>;
    fn builder(ty: &DataType, rows: usize) -> Self::Builder;
    fn push(builder: &mut Self::Builder, value: Self::Value<'_>, ty: &DataType) -> Result<()>;
    /// A row that an argument makes null.
    fn skip(builder: &mut Self::Builder);
    /// `nulls` are the rows skipped.
    fn finish(builder: Self::Builder, nulls: Option<NullBuffer>, ty: &DataType) -> Result<ArrayRef>;
}

/// A vector argument while its rows are walked.
pub enum Operand<'a, A: Arg> {
    Column(A::Column<'a>),
    Const(A::Value<'a>),
}

impl<'a, A: Arg> Operand<'a, A> {
    pub fn new(vector: &'a Vector, ty: &DataType) -> Result<Operand<'a, A>> {
        match vector {
            Vector::Array(array) => A::column(array, ty).map(Operand::Column),
            Vector::Const(value) => A::of(value, ty).map(Operand::Const),
        }
    }

    #[inline]
    pub fn at(&self, index: usize) -> Result<A::Value<'a>> {
        match self {
            Operand::Column(column) => A::at(column, index),
            Operand::Const(value) => Ok(value.clone()),
        }
    }
}

/// Rows where any argument is null.
pub fn union_nulls(args: &[Vector]) -> Option<NullBuffer> {
    args.iter().fold(None, |nulls, arg| NullBuffer::union(nulls.as_ref(), arg.nulls().as_ref()))
}

#[cold]
pub fn mismatch(ty: &DataType, found: &dyn std::fmt::Debug) -> Error {
    Error::internal(format!("expected a value of type {}, found {found:?}", ty.sql_name()))
}

/// A strict function: `kernel!(|a: I4, b: I4| -> I4 { body })`. The body gives a `Result`; it may use
/// `info` when the list of arguments ends in `; info`.
macro_rules! kernel {
    (|$($name:ident : $marker:ty),+ ; $info:ident| -> $out:ty $body:block) => {{
        #[allow(clippy::too_many_arguments)]
        #[inline(always)]
        fn body<'v>(
            $($name: <$marker as $crate::functions::arg::Arg>::Value<'v>,)+
            $info: &'v $crate::functions::CallInfo,
        ) -> $crate::error::Result<<$out as $crate::functions::arg::Out>::Value<'v>> { $body }
        fn scalar(args: &[basalt_types::Datum], info: &$crate::functions::CallInfo)
            -> $crate::error::Result<basalt_types::Datum> {
            let mut at = 0..;
            $(
                let index = at.next().unwrap_or(0);
                let $name = <$marker as $crate::functions::arg::Arg>::of(&args[index], &info.arg_types[index])?;
            )+
            <$out as $crate::functions::arg::Out>::datum(body($($name,)+ info)?, info.ty)
        }
        fn vector(args: &[$crate::eval::vector::Vector], rows: usize, info: &$crate::functions::CallInfo)
            -> $crate::error::Result<$crate::eval::vector::Vector> {
            use $crate::functions::arg::{Operand, Out};
            let nulls = $crate::functions::arg::union_nulls(args);
            let mut at = 0..;
            $(
                let index = at.next().unwrap_or(0);
                let $name = Operand::<$marker>::new(&args[index], &info.arg_types[index])?;
            )+
            let mut out = <$out as Out>::builder(info.ty, rows);
            for row in 0..rows {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    <$out as Out>::skip(&mut out);
                } else {
                    let value = body($($name.at(row)?,)+ info)?;
                    <$out as Out>::push(&mut out, value, info.ty)?;
                }
            }
            Ok($crate::eval::vector::Vector::Array(<$out as Out>::finish(out, nulls, info.ty)?))
        }
        $crate::functions::Kernel::Native { scalar, vector: Some(vector) }
    }};
    (|$($name:ident : $marker:ty),+| -> $out:ty $body:block) => {
        $crate::functions::arg::kernel!(|$($name: $marker),+ ; _info| -> $out $body)
    };
}

/// A strict function whose result is written: `written!(|a: Txt, b: Txt; out| { body })`. The body appends to a
/// `String` that all rows share, and gives a `Result` of nothing.
macro_rules! written {
    (|$($name:ident : $marker:ty),+ ; $out:ident| $body:block) => {{
        fn body(
            $($name: <$marker as $crate::functions::arg::Arg>::Value<'_>,)+
            $out: &mut String,
        ) -> $crate::error::Result<()> { $body }
        fn scalar(args: &[basalt_types::Datum], info: &$crate::functions::CallInfo)
            -> $crate::error::Result<basalt_types::Datum> {
            let mut at = 0..;
            $(
                let index = at.next().unwrap_or(0);
                let $name = <$marker as $crate::functions::arg::Arg>::of(&args[index], &info.arg_types[index])?;
            )+
            let mut out = String::new();
            body($($name,)+ &mut out)?;
            <$crate::functions::arg::Txt as $crate::functions::arg::Out>::datum(out, info.ty)
        }
        fn vector(args: &[$crate::eval::vector::Vector], rows: usize, info: &$crate::functions::CallInfo)
            -> $crate::error::Result<$crate::eval::vector::Vector> {
            use $crate::functions::arg::{Operand, Out, Txt};
            let nulls = $crate::functions::arg::union_nulls(args);
            let mut at = 0..;
            $(
                let index = at.next().unwrap_or(0);
                let $name = Operand::<$marker>::new(&args[index], &info.arg_types[index])?;
            )+
            let mut builder = <Txt as Out>::builder(info.ty, rows);
            let mut out = String::new();
            for row in 0..rows {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    <Txt as Out>::skip(&mut builder);
                } else {
                    out.clear();
                    body($($name.at(row)?,)+ &mut out)?;
                    builder.push(&out)?;
                }
            }
            Ok($crate::eval::vector::Vector::Array(<Txt as Out>::finish(builder, nulls, info.ty)?))
        }
        $crate::functions::Kernel::Native { scalar, vector: Some(vector) }
    }};
}

/// A function over single values, which may see nulls.
macro_rules! scalar {
    ($body:expr) => {
        $crate::functions::Kernel::Native { scalar: $body, vector: None }
    };
}

pub(crate) use {kernel, scalar, written};

macro_rules! primitive {
    ($(#[$doc:meta])* $marker:ident, $native:ty, $variant:ident, [$($arrow:ty),+]) => {
        $(#[$doc])*
        pub struct $marker;

        impl Arg for $marker {
            type Value<'a> = $native;
            type Column<'a> = &'a [$native];

            fn of(value: &Datum, ty: &DataType) -> Result<$native> {
                match value {
                    Datum::$variant(value) => Ok(*value),
                    other => Err(mismatch(ty, other)),
                }
            }

            fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<&'a [$native]> {
                $(if let Some(array) = array.as_primitive_opt::<$arrow>() {
                    return Ok(array.values());
                })+
                Err(mismatch(ty, array.data_type()))
            }

            #[inline]
            fn at<'a: 'a>(column: &&'a [$native], index: usize) -> Result<$native> {
                Ok(column[index])
            }
        }

        impl Out for $marker {
            type Value<'v> = $native;
            type Builder = Vec<$native>;

            fn datum(value: $native, _: &DataType) -> Result<Datum> {
                Ok(Datum::$variant(value))
            }

            fn builder(_: &DataType, rows: usize) -> Vec<$native> {
                Vec::with_capacity(rows)
            }

            #[inline]
            fn push(builder: &mut Vec<$native>, value: $native, _: &DataType) -> Result<()> {
                builder.push(value);
                Ok(())
            }

            fn skip(builder: &mut Vec<$native>) {
                builder.push(<$native>::default());
            }

            fn finish(builder: Vec<$native>, nulls: Option<NullBuffer>, ty: &DataType) -> Result<ArrayRef> {
                let wanted = ty.to_arrow();
                let values = arrow_buffer::ScalarBuffer::from(builder);
                $(if <$arrow>::DATA_TYPE == wanted {
                    return Ok(Arc::new(PrimitiveArray::<$arrow>::new(values, nulls)));
                })+
                if let arrow_schema::DataType::Timestamp(..) = wanted {
                    return Ok(arrow_array::make_array(
                        arrow_data(values.into_inner(), nulls, wanted)?,
                    ));
                }
                Err(mismatch(ty, &wanted))
            }
        }
    };
}

/// Primitive data of a parameterized type (timestamps with a zone).
fn arrow_data(
    values: arrow_buffer::Buffer,
    nulls: Option<NullBuffer>,
    ty: arrow_schema::DataType,
) -> Result<arrow::array::ArrayData> {
    let rows = values.len() / 8;
    arrow::array::ArrayData::builder(ty).len(rows).add_buffer(values).nulls(nulls).build().map_err(from_arrow)
}

primitive!(I2, i16, I16, [Int16Type]);
primitive!(I4, i32, I32, [Int32Type]);
primitive!(
    /// Also oid and its kin.
    I8, i64, I64, [Int64Type]
);
primitive!(F4, f32, F32, [Float32Type]);
primitive!(F8, f64, F64, [Float64Type]);
primitive!(Day, i32, I32, [Date32Type]);
primitive!(
    /// Microseconds: of a day, or since 1970 with or without zone.
    Micros, i64, I64, [TimestampMicrosecondType, Time64MicrosecondType]
);

pub struct Bit;

impl Arg for Bit {
    type Value<'a> = bool;
    type Column<'a> = &'a BooleanArray;

    fn of(value: &Datum, ty: &DataType) -> Result<bool> {
        match value {
            Datum::Bool(value) => Ok(*value),
            other => Err(mismatch(ty, other)),
        }
    }

    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<&'a BooleanArray> {
        array.as_boolean_opt().ok_or_else(|| mismatch(ty, array.data_type()))
    }

    fn at<'a: 'a>(column: &&'a BooleanArray, index: usize) -> Result<bool> {
        Ok(column.value(index))
    }
}

impl Out for Bit {
    type Value<'v> = bool;
    type Builder = BooleanBufferBuilder;

    fn datum(value: bool, _: &DataType) -> Result<Datum> {
        Ok(Datum::Bool(value))
    }

    fn builder(_: &DataType, rows: usize) -> BooleanBufferBuilder {
        BooleanBufferBuilder::new(rows)
    }

    #[inline]
    fn push(builder: &mut BooleanBufferBuilder, value: bool, _: &DataType) -> Result<()> {
        builder.append(value);
        Ok(())
    }

    fn skip(builder: &mut BooleanBufferBuilder) {
        builder.append(false);
    }

    fn finish(mut builder: BooleanBufferBuilder, nulls: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
        Ok(Arc::new(BooleanArray::new(builder.finish(), nulls)))
    }
}

fn as_text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| Error::invalid_utf8(bytes, error.valid_up_to()))
}

/// The texts of a batch.
pub struct TextBuilder {
    texts: StringViewBuilder,
    room: Room,
}

impl TextBuilder {
    pub(crate) fn within(rows: usize, room: Room) -> TextBuilder {
        TextBuilder { texts: StringViewBuilder::with_capacity(rows), room }
    }

    /// 53200 if the texts become too large.
    pub fn push(&mut self, text: &str) -> Result<()> {
        self.room.take(text.len())?;
        self.texts.append_value(text);
        Ok(())
    }
}

/// Every type of the string category, json included.
pub struct Txt;

impl Arg for Txt {
    type Value<'a> = &'a str;
    type Column<'a> = &'a arrow_array::StringViewArray;

    fn of<'a>(value: &'a Datum, ty: &DataType) -> Result<&'a str> {
        match value {
            Datum::Bytes(bytes) => as_text(bytes),
            other => Err(mismatch(ty, other)),
        }
    }

    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<Self::Column<'a>> {
        array.as_string_view_opt().ok_or_else(|| mismatch(ty, array.data_type()))
    }

    #[inline]
    fn at<'a: 'a>(column: &Self::Column<'a>, index: usize) -> Result<&'a str> {
        Ok(column.value(index))
    }
}

impl Out for Txt {
    type Value<'v> = String;
    type Builder = TextBuilder;

    fn datum(value: String, _: &DataType) -> Result<Datum> {
        room::check_longer(value.len(), 0)?;
        Ok(Datum::Bytes(value.into_bytes().into()))
    }

    fn builder(_: &DataType, rows: usize) -> Self::Builder {
        TextBuilder::within(rows, Room::of_batch())
    }

    fn push(builder: &mut Self::Builder, value: String, _: &DataType) -> Result<()> {
        builder.push(&value)
    }

    fn skip(builder: &mut Self::Builder) {
        builder.texts.append_null();
    }

    fn finish(mut builder: Self::Builder, _: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
        Ok(Arc::new(builder.texts.finish()))
    }
}

/// Text that is a part of an argument, as a rule.
pub struct Part;

impl Out for Part {
    type Value<'v> = Cow<'v, str>;
    type Builder = TextBuilder;

    fn datum(value: Cow<'_, str>, _: &DataType) -> Result<Datum> {
        Ok(Datum::Bytes(value.as_bytes().into()))
    }

    fn builder(ty: &DataType, rows: usize) -> Self::Builder {
        Txt::builder(ty, rows)
    }

    fn push(builder: &mut Self::Builder, value: Cow<'_, str>, _: &DataType) -> Result<()> {
        builder.push(&value)
    }

    fn skip(builder: &mut Self::Builder) {
        Txt::skip(builder);
    }

    fn finish(builder: Self::Builder, nulls: Option<NullBuffer>, ty: &DataType) -> Result<ArrayRef> {
        Txt::finish(builder, nulls, ty)
    }
}

/// `bytea`.
pub struct Byt;

impl Arg for Byt {
    type Value<'a> = &'a [u8];
    type Column<'a> = &'a arrow_array::BinaryViewArray;

    fn of<'a>(value: &'a Datum, ty: &DataType) -> Result<&'a [u8]> {
        match value {
            Datum::Bytes(bytes) => Ok(bytes),
            other => Err(mismatch(ty, other)),
        }
    }

    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<Self::Column<'a>> {
        array.as_binary_view_opt().ok_or_else(|| mismatch(ty, array.data_type()))
    }

    fn at<'a: 'a>(column: &Self::Column<'a>, index: usize) -> Result<&'a [u8]> {
        Ok(column.value(index))
    }
}

impl Out for Byt {
    type Value<'v> = Vec<u8>;
    type Builder = VectorBuilder;

    fn datum(value: Vec<u8>, _: &DataType) -> Result<Datum> {
        room::check_longer(value.len(), 0)?;
        Ok(Datum::Bytes(value.into()))
    }

    fn builder(ty: &DataType, rows: usize) -> VectorBuilder {
        VectorBuilder::of_batch(ty, rows)
    }

    fn push(builder: &mut VectorBuilder, value: Vec<u8>, _: &DataType) -> Result<()> {
        builder.push(&Datum::Bytes(value.into()))
    }

    fn skip(builder: &mut VectorBuilder) {
        builder.skip();
    }

    fn finish(builder: VectorBuilder, _: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
        builder.finish()
    }
}

/// Numeric in any physical form.
pub struct Num;

pub enum NumColumn<'a> {
    Scaled(&'a [i128], u16),
    Encoded(&'a arrow_array::BinaryViewArray),
}

/// Puts a computed numeric into the physical form of `ty`. A value that its scaled form cannot hold is
/// [`crate::resolve::decimal::TOO_WIDE`].
pub fn numeric_into(value: &Numeric, ty: &DataType) -> Result<Datum> {
    let Some((_, scale)) = ty.decimal() else { return Ok(Datum::Bytes(value.encoded().into())) };
    let scaled = value.to_scaled(i32::from(scale)).ok_or_else(too_wide)?;
    match ty.phys() {
        Some(PhysType::I64) => i64::try_from(scaled).map(Datum::I64).map_err(|_| too_wide()),
        _ => Ok(Datum::I128(scaled)),
    }
}

#[cold]
pub fn too_wide() -> Error {
    Error::new(crate::resolve::decimal::TOO_WIDE, "numeric value does not fit 38 digits")
}

impl Arg for Num {
    type Value<'a> = Numeric;
    type Column<'a> = NumColumn<'a>;

    fn of(value: &Datum, ty: &DataType) -> Result<Numeric> {
        Numeric::from_datum(value, ty)
    }

    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<NumColumn<'a>> {
        match array.data_type() {
            arrow_schema::DataType::Decimal128(_, scale) => {
                Ok(NumColumn::Scaled(array.as_primitive::<Decimal128Type>().values(), *scale as u16))
            }
            arrow_schema::DataType::BinaryView => Ok(NumColumn::Encoded(array.as_binary_view())),
            other => Err(mismatch(ty, other)),
        }
    }

    fn at<'a: 'a>(column: &NumColumn<'a>, index: usize) -> Result<Numeric> {
        match column {
            NumColumn::Scaled(values, scale) => Ok(Numeric::from_scaled(values[index], *scale)),
            NumColumn::Encoded(values) => Numeric::decode(values.value(index)),
        }
    }
}

impl Out for Num {
    type Value<'v> = Numeric;
    type Builder = VectorBuilder;

    fn datum(value: Numeric, ty: &DataType) -> Result<Datum> {
        numeric_into(&value, ty)
    }

    fn builder(ty: &DataType, rows: usize) -> VectorBuilder {
        VectorBuilder::of_batch(ty, rows)
    }

    fn push(builder: &mut VectorBuilder, value: Numeric, ty: &DataType) -> Result<()> {
        builder.push(&numeric_into(&value, ty)?)
    }

    fn skip(builder: &mut VectorBuilder) {
        builder.skip();
    }

    fn finish(builder: VectorBuilder, _: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
        builder.finish()
    }
}

macro_rules! fixed16 {
    ($marker:ident, $value:ty, $from:expr, $into:expr) => {
        pub struct $marker;

        impl Arg for $marker {
            type Value<'a> = $value;
            type Column<'a> = &'a arrow_array::FixedSizeBinaryArray;

            fn of(value: &Datum, ty: &DataType) -> Result<$value> {
                match value {
                    Datum::Fixed16(bytes) => Ok($from(bytes)),
                    other => Err(mismatch(ty, other)),
                }
            }

            fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<Self::Column<'a>> {
                array.as_fixed_size_binary_opt().ok_or_else(|| mismatch(ty, array.data_type()))
            }

            fn at<'a: 'a>(column: &Self::Column<'a>, index: usize) -> Result<$value> {
                let bytes = column.value(index);
                let bytes: &[u8; 16] = bytes.try_into().map_err(|_| mismatch(&DataType::Uuid, &bytes))?;
                Ok($from(bytes))
            }
        }

        impl Out for $marker {
            type Value<'v> = $value;
            type Builder = VectorBuilder;

            fn datum(value: $value, _: &DataType) -> Result<Datum> {
                Ok(Datum::Fixed16($into(value)))
            }

            fn builder(ty: &DataType, rows: usize) -> VectorBuilder {
                VectorBuilder::of_batch(ty, rows)
            }

            fn push(builder: &mut VectorBuilder, value: $value, _: &DataType) -> Result<()> {
                builder.push(&Datum::Fixed16($into(value)))
            }

            fn skip(builder: &mut VectorBuilder) {
                builder.skip();
            }

            fn finish(builder: VectorBuilder, _: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
                builder.finish()
            }
        }
    };
}

fixed16!(Uid, [u8; 16], |bytes: &[u8; 16]| *bytes, |bytes| bytes);
fixed16!(Ttz, TimeTz, |bytes: &[u8; 16]| TimeTz::from_bytes(*bytes), |value: TimeTz| value.to_bytes());
fixed16!(Span, Interval, |bytes: &[u8; 16]| Interval::from_bytes(*bytes), |value: Interval| value.to_bytes());

/// A value of whatever type the call has.
pub struct Val;

impl Arg for Val {
    type Value<'a> = Datum;
    type Column<'a> = (&'a ArrayRef, DataType);

    fn of(value: &Datum, _: &DataType) -> Result<Datum> {
        Ok(value.clone())
    }

    fn column<'a>(array: &'a ArrayRef, ty: &DataType) -> Result<Self::Column<'a>> {
        Ok((array, ty.clone()))
    }

    fn at<'a: 'a>(column: &Self::Column<'a>, index: usize) -> Result<Datum> {
        Ok(value_at(&column.1, column.0.as_ref(), index))
    }
}

impl Out for Val {
    type Value<'v> = Datum;
    type Builder = VectorBuilder;

    fn datum(value: Datum, _: &DataType) -> Result<Datum> {
        Ok(value)
    }

    fn builder(ty: &DataType, rows: usize) -> VectorBuilder {
        VectorBuilder::of_batch(ty, rows)
    }

    fn push(builder: &mut VectorBuilder, value: Datum, _: &DataType) -> Result<()> {
        builder.push(&value)
    }

    fn skip(builder: &mut VectorBuilder) {
        builder.skip();
    }

    fn finish(builder: VectorBuilder, _: Option<NullBuffer>, _: &DataType) -> Result<ArrayRef> {
        builder.finish()
    }
}

/// A result that may be null although no argument is.
pub struct Opt<T>(std::marker::PhantomData<T>);

impl<T: Out> Out for Opt<T> {
    type Value<'v> = Option<T::Value<'v>>;
    type Builder = (T::Builder, BooleanBufferBuilder);

    fn datum(value: Self::Value<'_>, ty: &DataType) -> Result<Datum> {
        value.map_or(Ok(Datum::Null), |value| T::datum(value, ty))
    }

    fn builder(ty: &DataType, rows: usize) -> Self::Builder {
        (T::builder(ty, rows), BooleanBufferBuilder::new(rows))
    }

    fn push(builder: &mut Self::Builder, value: Self::Value<'_>, ty: &DataType) -> Result<()> {
        match value {
            Some(value) => {
                builder.1.append(true);
                T::push(&mut builder.0, value, ty)
            }
            None => {
                Self::skip(builder);
                Ok(())
            }
        }
    }

    fn skip(builder: &mut Self::Builder) {
        builder.1.append(false);
        T::skip(&mut builder.0);
    }

    fn finish(mut builder: Self::Builder, _: Option<NullBuffer>, ty: &DataType) -> Result<ArrayRef> {
        T::finish(builder.0, Some(NullBuffer::new(builder.1.finish())), ty)
    }
}
