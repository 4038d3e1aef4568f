//! Order and equality of every type, over values and over vectors.
//!
//! Text compares by bytes (collation C); blank-padded text without its padding; NaN equals NaN and is
//! greater than any number; numerics and intervals compare by value, whatever their form.

use crate::array_value::{self, ArrayValue};
use crate::context::EvalContext;
use crate::datetime::{self, MICROS_PER_DAY};
use crate::error::{Error, Result};
use crate::eval::bools;
use crate::eval::vector::Vector;
use crate::functions::arg::*;
use crate::functions::{CallInfo, Kernel};
use crate::numeric::Numeric;
use arrow_array::StringViewArray;
use arrow_buffer::BooleanBuffer;
use basalt_types::floats::ordered;
use basalt_types::text::{self, INLINE_BYTES_MAX};
use basalt_types::{CompareOp, CompositeDef, DataType, Datum, jsonb, key, range};
use std::cmp::Ordering;
use std::convert::identity;

#[inline]
fn float_order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Orders two values of one type, neither null. Values of another type's form compare as equal.
pub fn compare_datums(ty: &DataType, a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Null, Datum::Null) => Ordering::Equal,
        (Datum::Null, _) => Ordering::Greater,
        (_, Datum::Null) => Ordering::Less,
        (Datum::Bool(a), Datum::Bool(b)) => a.cmp(b),
        (Datum::I16(a), Datum::I16(b)) => a.cmp(b),
        (Datum::I32(a), Datum::I32(b)) => a.cmp(b),
        (Datum::I64(a), Datum::I64(b)) => a.cmp(b),
        (Datum::I128(a), Datum::I128(b)) => a.cmp(b),
        (Datum::F32(a), Datum::F32(b)) => float_order(f64::from(*a), f64::from(*b)),
        (Datum::F64(a), Datum::F64(b)) => float_order(*a, *b),
        (Datum::Bytes(a), Datum::Bytes(b)) => compare_bytes(ty, a, b),
        (Datum::Fixed16(a), Datum::Fixed16(b)) => match ty.underlying() {
            DataType::Interval => key::interval_span(a).cmp(&key::interval_span(b)),
            _ => a.cmp(b),
        },
        _ => Ordering::Equal,
    }
}

fn compare_bytes(ty: &DataType, a: &[u8], b: &[u8]) -> Ordering {
    match ty.underlying() {
        DataType::Numeric(_) => basalt_types::numeric::key_bytes(a).cmp(basalt_types::numeric::key_bytes(b)),
        DataType::Bpchar(_) => key::unpadded(a).cmp(key::unpadded(b)),
        DataType::Array(element) => compare_arrays(element, a, b),
        DataType::Range(kind) => range::range_key(*kind, a).cmp(range::range_key(*kind, b)),
        DataType::Multirange(kind) => range::multirange_key(*kind, a).cmp(range::multirange_key(*kind, b)),
        DataType::Composite(composite) => compare_composites(composite, a, b),
        DataType::Jsonb => jsonb::compare(&String::from_utf8_lossy(a), &String::from_utf8_lossy(b)),
        _ => a.cmp(b),
    }
}

/// Stored arrays: elements first, then their number, then the shape.
pub fn compare_arrays(element: &DataType, a: &[u8], b: &[u8]) -> Ordering {
    let (Ok(left), Ok(right)) = (array_value::decode(element, a), array_value::decode(element, b)) else {
        return a.cmp(b);
    };
    for (a, b) in left.elements.iter().zip(&right.elements) {
        let ordering = compare_datums(element, a, b);
        if ordering.is_ne() {
            return ordering;
        }
    }
    let lengths = |array: &ArrayValue| array.dimensions.iter().map(|dimension| dimension.length).collect::<Vec<_>>();
    let lowers = |array: &ArrayValue| array.dimensions.iter().map(|dimension| dimension.lower).collect::<Vec<_>>();
    (left.elements.len().cmp(&right.elements.len()))
        .then_with(|| left.dimensions.len().cmp(&right.dimensions.len()))
        .then_with(|| lengths(&left).cmp(&lengths(&right)))
        .then_with(|| lowers(&left).cmp(&lowers(&right)))
}

/// Values of one composite type.
fn compare_composites(composite: &CompositeDef, a: &[u8], b: &[u8]) -> Ordering {
    let (Some(left), Some(right)) = (composite.decode(a), composite.decode(b)) else { return a.cmp(b) };
    for (at, attribute) in composite.live() {
        let ordering = compare_datums(&attribute.ty, &left[at], &right[at]);
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// A value in its type's form without modifiers, where values of two modifiers meet.
pub(crate) fn cast_to_compare(ty: &DataType, value: &Datum, ctx: &EvalContext) -> Result<Datum> {
    let plain = ty.underlying();
    crate::cast::cast_datum(plain, &plain.base(), value, false, ctx)
}

pub fn equal_datums(ty: &DataType, a: &Datum, b: &Datum) -> bool {
    compare_datums(ty, a, b).is_eq()
}

/// One `ORDER BY` key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SortOrder {
    pub descending: bool,
    pub nulls_first: bool,
}

/// Orders two rows of sort keys.
pub fn compare_rows(types: &[DataType], orders: &[SortOrder], a: &[Datum], b: &[Datum]) -> Ordering {
    for (((ty, order), a), b) in types.iter().zip(orders).zip(a).zip(b) {
        let ordering = match (a.is_null(), b.is_null()) {
            (true, true) => Ordering::Equal,
            (true, false) if order.nulls_first => Ordering::Less,
            (true, false) => Ordering::Greater,
            (false, true) if order.nulls_first => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) if order.descending => compare_datums(ty, b, a),
            (false, false) => compare_datums(ty, a, b),
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    Ordering::Equal
}

/// How two declared types are brought together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Family {
    Bool,
    Integer,
    Float,
    Numeric,
    Text,
    Padded,
    Bytes,
    Day,
    Micros,
    /// Dates and timestamps mixed; with a zone, local times are read in the session's.
    Moment,
    Span,
    Uuid,
    Jsonb,
    Any,
    Record,
}

fn family(left: &str, right: &str) -> Option<Family> {
    let side = |name: &str| {
        Some(match name {
            "bool" => Family::Bool,
            "int2" | "int4" | "int8" | "oid" | "money" | "macaddr" | "macaddr8" | "pg_lsn" | "xid8" | "xid" => {
                Family::Integer
            }
            "float4" | "float8" => Family::Float,
            "numeric" => Family::Numeric,
            "text" | "name" | "char" | "bit" | "varbit" => Family::Text,
            "bpchar" => Family::Padded,
            "bytea" | "inet" => Family::Bytes,
            "date" => Family::Day,
            "time" | "timestamp" | "timestamptz" => Family::Micros,
            "interval" => Family::Span,
            "uuid" | "timetz" => Family::Uuid,
            "jsonb" => Family::Jsonb,
            "anyarray" | "anyenum" | "anyrange" | "anymultirange" => Family::Any,
            "record" => Family::Record,
            _ => return None,
        })
    };
    let moments = ["date", "timestamp", "timestamptz"];
    if left != right && moments.contains(&left) && moments.contains(&right) {
        return Some(Family::Moment);
    }
    let (a, b) = (side(left)?, side(right)?);
    (a == b).then_some(a)
}

macro_rules! by_op {
    ($op:expr, $kernel:ident) => {
        match $op {
            CompareOp::Eq => $kernel!(CompareOp::Eq),
            CompareOp::NotEq => $kernel!(CompareOp::NotEq),
            CompareOp::Lt => $kernel!(CompareOp::Lt),
            CompareOp::LtEq => $kernel!(CompareOp::LtEq),
            CompareOp::Gt => $kernel!(CompareOp::Gt),
            CompareOp::GtEq => $kernel!(CompareOp::GtEq),
        }
    };
}

macro_rules! ordered {
    ($op:expr, $a:ident: $ma:ty, $b:ident: $mb:ty, $ordering:expr) => {{
        macro_rules! one {
            ($fixed:expr) => {
                kernel!(|$a: $ma, $b: $mb| -> Bit { Ok($fixed.holds($ordering)) })
            };
        }
        by_op!($op, one)
    }};
}

pub(super) fn kernel(op: CompareOp, left: &str, right: &str) -> Option<Kernel> {
    let family = family(left, right)?;
    Some(match (family, left, right) {
        (Family::Bool, ..) => ordered!(op, a: Bit, b: Bit, a.cmp(&b)),
        (Family::Integer, "int2", "int2") => primitive(op, Width::I2),
        (Family::Integer, "int4", "int4") => primitive(op, Width::I4),
        (Family::Integer, "int8" | "oid" | "money" | "macaddr" | "macaddr8" | "pg_lsn" | "xid8" | "xid", _)
            if left == right =>
        {
            primitive(op, Width::I8)
        }
        (Family::Integer, "xid", "int4") => ordered!(op, a: I8, b: I4, a.cmp(&i64::from(b as u32))),
        (Family::Integer, "int2", "int4") => ordered!(op, a: I2, b: I4, i32::from(a).cmp(&b)),
        (Family::Integer, "int4", "int2") => ordered!(op, a: I4, b: I2, a.cmp(&i32::from(b))),
        (Family::Integer, "int2", "int8") => ordered!(op, a: I2, b: I8, i64::from(a).cmp(&b)),
        (Family::Integer, "int8", "int2") => ordered!(op, a: I8, b: I2, a.cmp(&i64::from(b))),
        (Family::Integer, "int4", "int8") => ordered!(op, a: I4, b: I8, i64::from(a).cmp(&b)),
        (Family::Integer, "int8", "int4") => ordered!(op, a: I8, b: I4, a.cmp(&i64::from(b))),
        (Family::Float, "float4", "float4") => ordered!(op, a: F4, b: F4, float_order(f64::from(a), f64::from(b))),
        (Family::Float, "float4", "float8") => ordered!(op, a: F4, b: F8, float_order(f64::from(a), b)),
        (Family::Float, "float8", "float4") => ordered!(op, a: F8, b: F4, float_order(a, f64::from(b))),
        (Family::Float, "float8", "float8") => primitive(op, Width::F8),
        (Family::Numeric, ..) => numeric(op),
        (Family::Text, ..) => text(op),
        (Family::Padded, ..) => {
            ordered!(op, a: Txt, b: Txt, key::unpadded(a.as_bytes()).cmp(key::unpadded(b.as_bytes())))
        }
        (Family::Bytes, ..) => ordered!(op, a: Byt, b: Byt, a.cmp(b)),
        (Family::Day, ..) => primitive(op, Width::Day),
        (Family::Micros, ..) => primitive(op, Width::Micros),
        (Family::Moment, ..) => moment(op),
        (Family::Span, ..) => {
            ordered!(op, a: Span, b: Span, key::interval_span(&a.to_bytes()).cmp(&key::interval_span(&b.to_bytes())))
        }
        (Family::Uuid, ..) => ordered!(op, a: Uid, b: Uid, a.cmp(&b)),
        (Family::Jsonb, ..) => ordered!(op, a: Txt, b: Txt, jsonb::compare(a, b)),
        (Family::Any, ..) => any(op),
        (Family::Record, ..) => records(op),
        _ => return None,
    })
}

fn any(op: CompareOp) -> Kernel {
    macro_rules! one {
        ($fixed:expr) => {
            kernel!(|a: Val, b: Val; info| -> Bit { Ok($fixed.holds(compare_datums(&info.arg_types[0], &a, &b))) })
        };
    }
    by_op!(op, one)
}

/// Composite values, of two types even.
fn records(op: CompareOp) -> Kernel {
    macro_rules! one {
        ($fixed:expr) => {
            kernel!(|a: Val, b: Val; info| -> Bit {
                let (left, right) = ((&info.arg_types[0], &a), (&info.arg_types[1], &b));
                Ok($fixed.holds(crate::record_value::compare(left, right, info.ctx)?))
            })
        };
    }
    by_op!(op, one)
}

/// A date, timestamp or timestamp with zone as microseconds to compare with the other side's.
fn moment_of(value: &Datum, ty: &DataType, other: &DataType, info: &CallInfo) -> Result<i64> {
    let zoned = *other == DataType::TimestampTz;
    let local = match (ty, value) {
        (DataType::Date, Datum::I32(datetime::DATE_INFINITY)) => return Ok(i64::MAX),
        (DataType::Date, Datum::I32(datetime::DATE_NEG_INFINITY)) => return Ok(i64::MIN),
        // A date beyond timestamps compares as beyond them all.
        (DataType::Date, Datum::I32(days)) => match i64::from(*days).checked_mul(MICROS_PER_DAY) {
            Some(micros) => micros,
            None => return Ok(i64::MAX - 1),
        },
        (_, Datum::I64(micros)) => *micros,
        (ty, other) => return Err(mismatch(ty, other)),
    };
    if zoned && *ty != DataType::TimestampTz && local != i64::MAX && local != i64::MIN {
        return Ok(info.ctx.timezone.to_utc(local));
    }
    Ok(local)
}

fn moment(op: CompareOp) -> Kernel {
    macro_rules! one {
        ($fixed:expr) => {
            kernel!(|a: Val, b: Val; info| -> Bit {
                let (left, right) = (&info.arg_types[0], &info.arg_types[1]);
                let (a, b) = (moment_of(&a, left, right, info)?, moment_of(&b, right, left, info)?);
                Ok($fixed.holds(a.cmp(&b)))
            })
        };
    }
    by_op!(op, one)
}

#[derive(Clone, Copy)]
enum Width {
    I2,
    I4,
    I8,
    F8,
    Day,
    Micros,
}

/// Integers of one width, or floats as integers of the same order: a loop without branches over the raw values.
fn primitive(op: CompareOp, width: Width) -> Kernel {
    macro_rules! for_marker {
        ($marker:ty, $key:expr) => {{
            macro_rules! one {
                ($fixed:expr) => {{
                    fn scalar(args: &[Datum], info: &CallInfo) -> Result<Datum> {
                        let a = <$marker as Arg>::of(&args[0], &info.arg_types[0])?;
                        let b = <$marker as Arg>::of(&args[1], &info.arg_types[1])?;
                        Ok(Datum::Bool($fixed.holds($key(a).cmp(&$key(b)))))
                    }
                    fn vector(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
                        let a = Operand::<$marker>::new(&args[0], &info.arg_types[0])?;
                        let b = Operand::<$marker>::new(&args[1], &info.arg_types[1])?;
                        let values = match (a, b) {
                            (Operand::Column(a), Operand::Column(b)) => {
                                BooleanBuffer::collect_bool(rows, |row| $fixed.holds($key(a[row]).cmp(&$key(b[row]))))
                            }
                            (Operand::Column(a), Operand::Const(b)) => {
                                let b = $key(b);
                                BooleanBuffer::collect_bool(rows, |row| $fixed.holds($key(a[row]).cmp(&b)))
                            }
                            (Operand::Const(a), Operand::Column(b)) => {
                                let a = $key(a);
                                BooleanBuffer::collect_bool(rows, |row| $fixed.holds(a.cmp(&$key(b[row]))))
                            }
                            (Operand::Const(a), Operand::Const(b)) => {
                                BooleanBuffer::collect_bool(rows, |_| $fixed.holds($key(a).cmp(&$key(b))))
                            }
                        };
                        Ok(bools(values, union_nulls(args)))
                    }
                    Kernel::Native { scalar, vector: Some(vector) }
                }};
            }
            by_op!(op, one)
        }};
    }
    match width {
        Width::I2 => for_marker!(I2, identity),
        Width::I4 => for_marker!(I4, identity),
        Width::I8 => for_marker!(I8, identity),
        Width::F8 => for_marker!(F8, ordered),
        Width::Day => for_marker!(Day, identity),
        Width::Micros => for_marker!(Micros, identity),
    }
}

/// The first four bytes, as a number of their order; texts that are shorter have zeros there.
fn prefix(view: u128) -> u32 {
    ((view >> 32) as u32).swap_bytes()
}

/// Where one is empty the lengths say all. (The constant '' leads nowhere, and libc's comparison in wide vectors takes a
/// hundred times as long there.)
fn text_order(a: &str, b: &str) -> Ordering {
    if a.is_empty() || b.is_empty() { a.len().cmp(&b.len()) } else { a.cmp(b) }
}

fn same(a: &StringViewArray, b: &StringViewArray, row: usize) -> bool {
    let (first, second) = (a.views()[row], b.views()[row]);
    match first as u32 as usize <= INLINE_BYTES_MAX {
        true => first == second,
        false => first as u64 == second as u64 && a.value(row) == b.value(row),
    }
}

/// Text by bytes. Nulls are compared too and masked out: their views are valid.
fn text(op: CompareOp) -> Kernel {
    macro_rules! one {
        ($fixed:expr) => {{
            fn scalar(args: &[Datum], info: &CallInfo) -> Result<Datum> {
                match (&args[0], &args[1]) {
                    (Datum::Bytes(a), Datum::Bytes(b)) => Ok(Datum::Bool($fixed.holds(a.cmp(b)))),
                    (a, _) => Err(mismatch(&info.arg_types[0], a)),
                }
            }
            fn vector(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
                let a = Operand::<Txt>::new(&args[0], &info.arg_types[0])?;
                let b = Operand::<Txt>::new(&args[1], &info.arg_types[1])?;
                let is_equality = matches!($fixed, CompareOp::Eq | CompareOp::NotEq);
                let values = match (a, b) {
                    (Operand::Column(a), Operand::Const(b)) | (Operand::Const(b), Operand::Column(a))
                        if is_equality =>
                    {
                        let (views, wanted) = (a.views(), text::view(b.as_bytes(), 0, 0));
                        let is = $fixed == CompareOp::Eq;
                        match b.len() <= INLINE_BYTES_MAX {
                            true => BooleanBuffer::collect_bool(rows, |row| (views[row] == wanted) == is),
                            // Length and first bytes, then all of them.
                            false => BooleanBuffer::collect_bool(rows, |row| {
                                (views[row] as u64 == wanted as u64 && a.value(row) == b) == is
                            }),
                        }
                    }
                    (Operand::Column(a), Operand::Column(b)) if is_equality => {
                        let is = $fixed == CompareOp::Eq;
                        BooleanBuffer::collect_bool(rows, |row| same(a, b, row) == is)
                    }
                    (Operand::Column(a), Operand::Column(b)) => {
                        let (first, second) = (a.views(), b.views());
                        BooleanBuffer::collect_bool(rows, |row| {
                            let order = prefix(first[row]).cmp(&prefix(second[row]));
                            $fixed.holds(order.then_with(|| text_order(a.value(row), b.value(row))))
                        })
                    }
                    (Operand::Column(a), Operand::Const(b)) => {
                        let (views, wanted) = (a.views(), prefix(text::view(b.as_bytes(), 0, 0)));
                        BooleanBuffer::collect_bool(rows, |row| {
                            let order = prefix(views[row]).cmp(&wanted);
                            $fixed.holds(order.then_with(|| text_order(a.value(row), b)))
                        })
                    }
                    (Operand::Const(a), Operand::Column(b)) => {
                        let (views, wanted) = (b.views(), prefix(text::view(a.as_bytes(), 0, 0)));
                        BooleanBuffer::collect_bool(rows, |row| {
                            let order = wanted.cmp(&prefix(views[row]));
                            $fixed.holds(order.then_with(|| text_order(a, b.value(row))))
                        })
                    }
                    (Operand::Const(a), Operand::Const(b)) => {
                        BooleanBuffer::collect_bool(rows, |_| $fixed.holds(a.cmp(b)))
                    }
                };
                Ok(bools(values, union_nulls(args)))
            }
            Kernel::Native { scalar, vector: Some(vector) }
        }};
    }
    by_op!(op, one)
}

/// Numerics: scaled integers at one scale where both sides have them, values otherwise.
fn numeric(op: CompareOp) -> Kernel {
    macro_rules! one {
        ($fixed:expr) => {{
            fn scalar(args: &[Datum], info: &CallInfo) -> Result<Datum> {
                let a = Numeric::from_datum(&args[0], &info.arg_types[0])?;
                let b = Numeric::from_datum(&args[1], &info.arg_types[1])?;
                Ok(Datum::Bool($fixed.holds(a.cmp(&b))))
            }
            fn vector(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
                let values = match super::decimal::at_one_scale(args, info)? {
                    Some([a, b]) => BooleanBuffer::collect_bool(rows, |row| $fixed.holds(a.at(row).cmp(&b.at(row)))),
                    None => numeric_values(args, rows, info, $fixed)?,
                };
                Ok(bools(values, union_nulls(args)))
            }
            Kernel::Native { scalar, vector: Some(vector) }
        }};
    }
    by_op!(op, one)
}

fn numeric_values(args: &[Vector], rows: usize, info: &CallInfo, op: CompareOp) -> Result<BooleanBuffer> {
    let nulls = union_nulls(args);
    let a = Operand::<Num>::new(&args[0], &info.arg_types[0])?;
    let b = Operand::<Num>::new(&args[1], &info.arg_types[1])?;
    let mut out = arrow_buffer::BooleanBufferBuilder::new(rows);
    for row in 0..rows {
        let null = nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
        out.append(!null && op.holds(a.at(row)?.cmp(&b.at(row)?)));
    }
    Ok(out.finish())
}

/// 42883 for types without an order (`json`): sorting and grouping ask first.
pub fn check_comparable(ty: &DataType, symbol: &str) -> Result<()> {
    match ty {
        DataType::Xid if symbol == "=" => Ok(()),
        DataType::Json
        | DataType::JsonPath
        | DataType::Void
        | DataType::Xid
        | DataType::PgSnapshot
        | DataType::TxidSnapshot => {
            let name = ty.sql_name();
            let message = match symbol {
                "=" => format!("could not identify an equality operator for type {name}"),
                _ => format!("could not identify an ordering operator for type {name}"),
            };
            Err(Error::new("42883", message))
        }
        DataType::Array(element) => check_comparable(element, symbol),
        DataType::Domain(domain) => check_comparable(&domain.base, symbol),
        // Fields of records are looked at as far as two of them are equal.
        DataType::Composite(composite) if composite.is_anonymous() && symbol != "=" => Ok(()),
        DataType::Composite(composite) => composite.live().try_for_each(|(_, attribute)| match &attribute.ty {
            DataType::Unknown => Err(Error::new("42883", "could not identify an equality operator for type unknown")),
            ty => check_comparable(ty, symbol),
        }),
        _ => Ok(()),
    }
}
