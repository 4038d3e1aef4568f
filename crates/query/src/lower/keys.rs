//! Values in a form whose bytes are equal and ordered as PostgreSQL has it.
//!
//! Variable numerics carry a display scale that is no part of the value, alone and in jsonb, which has an order
//! of its own; blank-padded strings ignore what they are padded with; -0 equals 0 and all NaNs are one; an interval of a month equals one of 30 days.
//! Ranges of numerics have the scales of their bounds, which are no part of them either. Arrays and composite values go by their elements and fields, nulls being equal and last.

use crate::error::{Result, SqlError};
use arrow_array::builder::BinaryViewBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Float64Array,
    StringViewArray,
};
use arrow_schema::DataType as ArrowType;
use basalt_types::{DataType, RangeKind, jsonb, key, numeric};
use std::sync::Arc;

/// The Arrow type of keys of `ty`; `None` if values are their own keys.
pub fn key_type(ty: &DataType) -> Option<ArrowType> {
    match ty.underlying() {
        DataType::Numeric(_) if ty.decimal().is_none() => Some(ArrowType::BinaryView),
        DataType::Array(_) | DataType::Composite(_) => Some(ArrowType::BinaryView),
        DataType::Range(RangeKind::Numeric) | DataType::Multirange(RangeKind::Numeric) => Some(ArrowType::BinaryView),
        DataType::Bpchar(_) => Some(ArrowType::Utf8View),
        DataType::Jsonb => Some(ArrowType::BinaryView),
        DataType::Float4 => Some(ArrowType::Float32),
        DataType::Float8 => Some(ArrowType::Float64),
        DataType::Interval => Some(ArrowType::Decimal128(38, 0)),
        _ => None,
    }
}

/// Keys of values. Null stays null.
pub fn key_array(ty: &DataType, values: &ArrayRef) -> Result<ArrayRef> {
    Ok(match ty.underlying() {
        DataType::Array(_) | DataType::Composite(_) | DataType::Range(_) | DataType::Multirange(_) => {
            let mut keys = BinaryViewBuilder::with_capacity(values.len());
            let mut key = Vec::new();
            for value in values.as_binary_view() {
                key.clear();
                match value {
                    Some(value) => {
                        key::encode_bytes_column(ty, value, &mut key);
                        keys.append_value(&key);
                    }
                    None => keys.append_null(),
                }
            }
            Arc::new(keys.finish())
        }
        DataType::Numeric(_) => {
            let values = values.as_binary_view();
            let keys: BinaryViewArray = values.iter().map(|value| value.map(numeric::key_bytes)).collect();
            Arc::new(keys)
        }
        DataType::Bpchar(_) => {
            let values = values.as_string_view();
            let keys: StringViewArray =
                values.iter().map(|value| value.map(|text| text.trim_end_matches(' '))).collect();
            Arc::new(keys)
        }
        DataType::Jsonb => {
            let mut keys = BinaryViewBuilder::with_capacity(values.len());
            let mut key = Vec::new();
            for value in values.as_string_view() {
                key.clear();
                match value {
                    Some(text) => {
                        jsonb::encode_key(text, &mut key);
                        keys.append_value(&key);
                    }
                    None => keys.append_null(),
                }
            }
            Arc::new(keys.finish())
        }
        DataType::Float4 => {
            let normal = |value: f32| if value.is_nan() { f32::NAN } else { value + 0.0 };
            let keys: Float32Array = values.as_primitive::<Float32Type>().unary(normal);
            Arc::new(keys)
        }
        DataType::Float8 => {
            let normal = |value: f64| if value.is_nan() { f64::NAN } else { value + 0.0 };
            let keys: Float64Array = values.as_primitive::<Float64Type>().unary(normal);
            Arc::new(keys)
        }
        DataType::Interval => {
            let keys: Decimal128Array = values
                .as_fixed_size_binary_opt()
                .map(interval_keys)
                .ok_or_else(|| SqlError::internal(format!("intervals come as {}", values.data_type())))?;
            Arc::new(keys.with_precision_and_scale(38, 0).map_err(|error| SqlError::internal(error.to_string()))?)
        }
        other => return Err(SqlError::internal(format!("{} needs no keys", other.sql_name()))),
    })
}

/// Microseconds, with months of 30 days and days of 24 hours.
fn interval_keys(values: &FixedSizeBinaryArray) -> Decimal128Array {
    const DAY: i128 = 86_400_000_000;
    values
        .iter()
        .map(|value| {
            let bytes: [u8; 16] = value?.try_into().ok()?;
            let months = i128::from(i32::from_le_bytes(bytes[0..4].try_into().ok()?));
            let days = i128::from(i32::from_le_bytes(bytes[4..8].try_into().ok()?));
            let micros = i128::from(i64::from_le_bytes(bytes[8..16].try_into().ok()?));
            Some((months * 30 + days) * DAY + micros)
        })
        .collect()
}
