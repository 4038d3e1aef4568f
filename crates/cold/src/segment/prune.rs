//! Whether a zone map rules out that any row satisfies a predicate.
//!
//! A comparison is never true of a null, so a run of nulls satisfies `IS NULL` alone. Bounds may lie outside
//! of the values, so they only ever rule out; a column without bounds rules out nothing but by its nulls.

use super::zone::{self, ZoneMap};
use super::{SegmentColumn, ValueOrder};
use basalt_types::{ColumnPredicate, CompareOp, Datum, PhysType};
use std::cmp::Ordering;

/// True if no row under the zone map can satisfy the predicate.
pub(super) fn rules_out(column: &SegmentColumn, zone: &ZoneMap, predicate: &ColumnPredicate) -> bool {
    match predicate {
        ColumnPredicate::IsNull { .. } => zone.nulls == 0,
        ColumnPredicate::IsNotNull { .. } => zone.all_null(),
        ColumnPredicate::Compare { op, value, .. } => zone.all_null() || compare_rules_out(column, zone, *op, value),
        ColumnPredicate::Among { values, .. } => zone.all_null() || none_between(zone, values),
        ColumnPredicate::In { values, .. } => {
            zone.all_null() || values.iter().all(|value| compare_rules_out(column, zone, CompareOp::Eq, value))
        }
    }
}

/// None of ascending integers lies between the bounds.
fn none_between(zone: &ZoneMap, values: &[i64]) -> bool {
    let Some((min, max)) = zone.int_bounds() else { return false };
    values.get(values.partition_point(|value| *value < min)).is_none_or(|next| *next > max)
}

fn compare_rules_out(column: &SegmentColumn, zone: &ZoneMap, op: CompareOp, value: &Datum) -> bool {
    if op == CompareOp::NotEq {
        return is_constant(column, zone, value);
    }
    let Some(value) = zone::comparable_datum(column.order, value) else { return false };
    let order_to = |bound: &Option<Datum>| bound.as_ref().and_then(|bound| zone::compare(bound, &value));
    let (min, max) = (order_to(&zone.min), order_to(&zone.max));
    let all_above = min == Some(Ordering::Greater);
    let all_below = max == Some(Ordering::Less);
    match op {
        CompareOp::Eq => all_above || all_below,
        CompareOp::Lt => all_above || min == Some(Ordering::Equal),
        CompareOp::LtEq => all_above,
        CompareOp::Gt => all_below || max == Some(Ordering::Equal),
        CompareOp::GtEq => all_below,
        CompareOp::NotEq => false,
    }
}

/// Every value equals `value`. Bounds of byte strings may be cut, so they never say so.
fn is_constant(column: &SegmentColumn, zone: &ZoneMap, value: &Datum) -> bool {
    if column.ty == PhysType::Bytes || column.order != ValueOrder::Natural {
        return false;
    }
    let equal =
        |bound: &Option<Datum>| bound.as_ref().and_then(|bound| zone::compare(bound, value)) == Some(Ordering::Equal);
    equal(&zone.min) && equal(&zone.max)
}
