//! What a type's modifiers say, in the columns that information_schema has for it wherever something has a type.

use crate::pgcatalog::rows::{int4, opt_text};
use crate::pgcatalog::time_modifiers;
use basalt_types::{DataType, Datum};

/// From `character_maximum_length` to `interval_type`, in the order of columns, attributes and domains.
pub(super) fn facets(ty: &DataType, typmod: i32) -> [(&'static str, Datum); 7] {
    let optional = |value: Option<i32>| value.map_or(Datum::Null, int4);
    let length = character_length(ty);
    let (precision, radix, scale) = numeric_shape(ty);
    [
        ("character_maximum_length", optional(length)),
        ("character_octet_length", optional(octet_length(ty, length))),
        ("numeric_precision", optional(precision)),
        ("numeric_precision_radix", optional(radix)),
        ("numeric_scale", optional(scale)),
        ("datetime_precision", optional(datetime_precision(ty, typmod))),
        ("interval_type", opt_text(interval_fields(ty, typmod).as_deref())),
    ]
}

fn character_length(ty: &DataType) -> Option<i32> {
    match ty {
        DataType::Varchar(Some(length)) | DataType::Bpchar(Some(length)) => i32::try_from(*length).ok(),
        DataType::Bit(Some(length)) | DataType::Varbit(Some(length)) => i32::try_from(*length).ok(),
        _ => None,
    }
}

/// Bytes at most: four per character of UTF-8, 2^30 where characters are not bounded.
fn octet_length(ty: &DataType, length: Option<i32>) -> Option<i32> {
    match ty {
        DataType::Varchar(_) | DataType::Bpchar(_) | DataType::Text => {
            Some(length.map_or(1 << 30, |length| length.saturating_mul(4)))
        }
        _ => None,
    }
}

/// Precision, radix and scale.
pub(super) fn numeric_shape(ty: &DataType) -> (Option<i32>, Option<i32>, Option<i32>) {
    match ty {
        DataType::Int2 => (Some(16), Some(2), Some(0)),
        DataType::Int4 => (Some(32), Some(2), Some(0)),
        DataType::Int8 => (Some(64), Some(2), Some(0)),
        DataType::Float4 => (Some(24), Some(2), None),
        DataType::Float8 => (Some(53), Some(2), None),
        DataType::Numeric(Some((precision, scale))) => (Some(i32::from(*precision)), Some(10), Some(i32::from(*scale))),
        DataType::Numeric(None) => (None, Some(10), None),
        _ => (None, None, None),
    }
}

fn datetime_precision(ty: &DataType, typmod: i32) -> Option<i32> {
    match ty {
        DataType::Date => Some(0),
        DataType::Time | DataType::TimeTz | DataType::Timestamp | DataType::TimestampTz => {
            Some(if typmod < 0 { 6 } else { typmod })
        }
        DataType::Interval => Some(time_modifiers::interval_decimals(typmod).unwrap_or(6)),
        _ => None,
    }
}

/// The fields of an interval's type, in capitals.
fn interval_fields(ty: &DataType, typmod: i32) -> Option<String> {
    let name = (*ty == DataType::Interval).then(|| time_modifiers::name(ty, typmod))??;
    let (_, fields) = name.split_once(' ')?;
    Some(fields.to_uppercase())
}
