//! Beside the accumulators that are given rows in order.

use super::*;
use crate::aggregates::ResolvedAggregate;
use crate::operators::SortOrder;
use crate::resolve::resolve_aggregate;
use arrow_array::{Float64Array, Int32Array};
use std::sync::Arc;

const ROWS: usize = 5000;
const GROUPS: usize = 7;

fn call(name: &str, value: DataType, descending: bool) -> ResolvedAggregate {
    let direct = (name != "mode").then_some(DataType::Float8);
    let types: Vec<DataType> = direct.into_iter().chain([value]).collect();
    let mut resolved = resolve_aggregate(name, &types).unwrap();
    resolved.orders = vec![SortOrder { descending, nulls_first: descending }];
    resolved
}

fn value(row: usize) -> Option<i32> {
    (row % 11 != 3).then(|| (row * 7919 % 613) as i32 - 300)
}

/// Rows of a column with some nulls, their groups, and whether they pass.
fn rows(float: bool) -> (ArrayRef, Vec<u32>, BooleanArray) {
    let values: ArrayRef = match float {
        true => Arc::new(Float64Array::from_iter((0..ROWS).map(|row| match row % 97 {
            5 => Some(f64::NAN),
            6 => Some(f64::NEG_INFINITY),
            7 => Some(-0.0),
            _ => value(row).map(|value| f64::from(value) / 8.0),
        }))),
        false => Arc::new(Int32Array::from_iter((0..ROWS).map(value))),
    };
    // The last group has no rows.
    let groups = (0..ROWS).map(|row| (row * 31 % (GROUPS - 1)) as u32).collect();
    (values, groups, BooleanArray::from_iter((0..ROWS).map(|row| Some(row % 13 != 1))))
}

fn args(call: &ResolvedAggregate, fraction: f64, values: &ArrayRef) -> Vec<ArrayRef> {
    let fractions: ArrayRef = Arc::new(Float64Array::from_value(fraction, values.len()));
    if call.arg_types.len() == 2 { vec![fractions, values.clone()] } else { vec![values.clone()] }
}

fn answers(ty: &DataType, accumulator: &mut dyn GroupsAccumulator) -> Vec<String> {
    let found = accumulator.evaluate().unwrap();
    // Zeros are equal, and either may come.
    (0..GROUPS).map(|group| format!("{:?}", value_at(ty, found.as_ref(), group)).replace("(-0.0)", "(0.0)")).collect()
}

/// By one accumulator that takes all rows in order, one group after the other.
fn in_order(call: &ResolvedAggregate, fraction: f64, float: bool) -> Vec<String> {
    let (values, groups, passes) = rows(float);
    let mut order: Vec<u32> = (0..ROWS as u32).collect();
    let key = |row: &u32| match value_at(&call.arg_types[call.arg_types.len() - 1], values.as_ref(), *row as usize) {
        Datum::I32(value) => i64::from(value),
        Datum::F64(value) => floats::ordered(value),
        _ => i64::MAX,
    };
    order.sort_by_key(key);
    if call.orders[0].descending {
        order.reverse();
    }
    let mut accumulator = (call.aggregate.make)(&call.arg_types, &call.ty);
    for row in order.into_iter().map(|row| row as usize) {
        let (value, passes) = (values.slice(row, 1), passes.slice(row, 1));
        accumulator.update(&groups[row..=row], &args(call, fraction, &value), Some(&passes), GROUPS).unwrap();
    }
    answers(&call.ty, &mut *accumulator)
}

#[test]
fn rows_in_any_order_and_in_parts_have_the_percentiles_of_those_in_order() {
    for float in [false, true] {
        for (name, fractions) in
            [("mode", &[0.0][..]), ("percentile_cont", &FRACTIONS), ("percentile_disc", &FRACTIONS)]
        {
            // A percentile between two is one of floats.
            let value = if float || name == "percentile_cont" { DataType::Float8 } else { DataType::Int4 };
            if !float && value == DataType::Float8 {
                continue;
            }
            for (descending, fraction) in [false, true].into_iter().flat_map(|d| fractions.iter().map(move |f| (d, *f)))
            {
                let call = call(name, value.clone(), descending);
                assert!(call.is_indifferent_to_order());
                let (values, groups, passes) = rows(float);
                let part = |range: std::ops::Range<usize>| {
                    let mut accumulator = call.accumulator();
                    for row in range.step_by(1000) {
                        let (value, passes) = (values.slice(row, 1000), passes.slice(row, 1000));
                        let args = args(&call, fraction, &value);
                        accumulator.update(&groups[row..row + 1000], &args, Some(&passes), GROUPS).unwrap();
                    }
                    accumulator
                };
                let (mut first, mut second) = (part(0..2000), part(2000..ROWS));
                let all: Vec<u32> = (0..GROUPS as u32).collect();
                let states = second.state().unwrap();
                assert_eq!(states.len(), call.state_types().len());
                first.merge(&all, &states, GROUPS).unwrap();
                let found = answers(&call.ty, &mut *first);
                assert_eq!(found, in_order(&call, fraction, float), "{name} {fraction} {descending} {float}");
                assert_eq!(found[GROUPS - 1], "Null");
                // It can be asked again.
                assert_eq!(answers(&call.ty, &mut *first), found);
            }
        }
    }
}

const FRACTIONS: [f64; 6] = [0.0, 0.1, 0.5, 0.77, 0.999, 1.0];

#[test]
fn types_without_words_are_taken_in_order() {
    for (name, ty) in
        [("mode", DataType::Text), ("percentile_disc", DataType::Text), ("percentile_cont", DataType::Interval)]
    {
        let call = call(name, ty, false);
        assert!(!call.is_indifferent_to_order() && call.state_types().is_empty());
    }
}
