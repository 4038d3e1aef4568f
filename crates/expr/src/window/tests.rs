//! Frames and what moves over them, against the same computed row by row from the definitions.

use super::*;
use crate::aggregates::ResolvedAggregate;
use crate::context::EvalContext;
use crate::eval::vector::{from_values, value_at};
use crate::resolve::resolve_aggregate;
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::{DataType, Datum};

fn unchecked() -> Result<()> {
    Ok(())
}

/// Rows of partitions and peers as the keys have them.
fn rows_of(keys: &[(i32, i32)]) -> Rows<'static> {
    let begins = |row: usize| {
        let differs = |key: fn(&(i32, i32)) -> i32| row > 0 && key(&keys[row]) != key(&keys[row - 1]);
        (differs(|key| key.0), differs(|key| key.1))
    };
    Rows::new(keys.len(), begins, &unchecked).unwrap()
}

fn keys() -> Vec<(i32, i32)> {
    (0..4000).map(|row| (row / 1500, (row % 1500) / 3)).collect()
}

fn spec(units: Units, start: Bound, end: Bound, exclude: Exclude) -> FrameSpec {
    FrameSpec { units, start, end, exclude }
}

fn offset(value: i64) -> Offset {
    Offset { value: Datum::I64(value), ty: DataType::Int8 }
}

/// The frame of a row by the definition of ROWS and GROUPS.
fn expected(keys: &[(i32, i32)], row: usize, spec: FrameSpec, offsets: [i64; 2]) -> Vec<usize> {
    let place = |other: usize| match spec.units {
        Units::Rows => other as i64,
        _ => i64::from(keys[other].1),
    };
    let bound = |bound: Bound, offset: i64| match bound {
        Bound::UnboundedPreceding => i64::MIN,
        Bound::Preceding => place(row) - offset,
        Bound::CurrentRow => place(row),
        Bound::Following => place(row) + offset,
        Bound::UnboundedFollowing => i64::MAX,
    };
    let (from, to) = (bound(spec.start, offsets[0]), bound(spec.end, offsets[1]));
    let excluded = |other: usize| match spec.exclude {
        Exclude::NoOthers => false,
        Exclude::CurrentRow => other == row,
        Exclude::Group => keys[other] == keys[row],
        Exclude::Ties => keys[other] == keys[row] && other != row,
    };
    let near = row.saturating_sub(1500)..(row + 1500).min(keys.len());
    near.filter(|other| {
        keys[*other].0 == keys[row].0 && place(*other) >= from && place(*other) <= to && !excluded(*other)
    })
    .collect()
}

#[test]
fn frames_are_those_of_the_definition() {
    let keys = keys();
    let rows = rows_of(&keys);
    let bounds = [
        (Bound::UnboundedPreceding, Bound::CurrentRow),
        (Bound::UnboundedPreceding, Bound::UnboundedFollowing),
        (Bound::Preceding, Bound::Following),
        (Bound::Preceding, Bound::Preceding),
        (Bound::Following, Bound::Following),
        (Bound::CurrentRow, Bound::Following),
        (Bound::Preceding, Bound::UnboundedFollowing),
    ];
    for units in [Units::Rows, Units::Groups] {
        for (start, end) in bounds {
            for exclude in [Exclude::NoOthers, Exclude::CurrentRow, Exclude::Group, Exclude::Ties] {
                let spec = spec(units, start, end, exclude);
                let given = [offset(5), offset(2)];
                let frames = Frames::new(&rows, spec, [Some(&given[0]), Some(&given[1])], None).unwrap();
                for row in (0..keys.len()).step_by(97) {
                    let found: Vec<usize> =
                        frames.ranges(row).into_iter().flatten().map(|place| place as usize).collect();
                    assert_eq!(found, expected(&keys, row, spec, [5, 2]), "{spec:?} at {row}");
                }
            }
        }
    }
}

fn column(ty: &DataType, values: &[Option<i64>]) -> ArrayRef {
    let datum = |value: i64| match ty {
        DataType::Int4 => Datum::I32(value as i32),
        DataType::Float8 => Datum::F64(value as f64),
        _ => Datum::I64(value),
    };
    let data: Vec<Datum> = values.iter().map(|value| value.map_or(Datum::Null, datum)).collect();
    from_values(ty, data.iter(), data.len()).unwrap()
}

fn alone(call: &ResolvedAggregate, input: &ArrayRef, filter: &BooleanArray, places: Vec<usize>) -> Datum {
    let places = arrow_array::UInt32Array::from_iter_values(places.into_iter().map(|place| place as u32));
    let args = arrow::compute::take(input, &places, None).unwrap();
    let filter = arrow::compute::take(filter, &places, None).unwrap();
    let filter = arrow_array::cast::AsArray::as_boolean(&filter).clone();
    let mut state = call.accumulator();
    state.update(&vec![0; places.len()], &[args], Some(&filter), 1).unwrap();
    value_at(&call.ty, state.evaluate().unwrap().as_ref(), 0)
}

#[test]
fn every_way_over_frames_gives_the_same() {
    let keys = keys();
    let rows = rows_of(&keys);
    let values: Vec<Option<i64>> = (0..4000).map(|row| (row % 7 != 3).then_some((row * 7919) % 1009)).collect();
    let filter: BooleanArray = (0..4000).map(|row| Some(row % 5 != 1)).collect();
    let specs = [
        spec(Units::Rows, Bound::Preceding, Bound::Following, Exclude::NoOthers),
        spec(Units::Rows, Bound::UnboundedPreceding, Bound::CurrentRow, Exclude::NoOthers),
        spec(Units::Rows, Bound::UnboundedPreceding, Bound::UnboundedFollowing, Exclude::Group),
        spec(Units::Rows, Bound::UnboundedPreceding, Bound::UnboundedFollowing, Exclude::NoOthers),
    ];
    for (name, ty) in
        [("sum", DataType::Int4), ("avg", DataType::Int8), ("max", DataType::Int4), ("count", DataType::Int8)]
    {
        let call = resolve_aggregate(name, std::slice::from_ref(&ty)).unwrap();
        let input = column(&ty, &values);
        for spec in specs {
            let given = [offset(40), offset(700)];
            let frames = Frames::new(&rows, spec, [Some(&given[0]), Some(&given[1])], None).unwrap();
            let args = [input.clone()];
            let moved = over_frames(&rows, &frames, &call, &args, Some(&filter)).unwrap();
            let of_tree = moving::Input { call: &call, args: &args, filter: Some(&filter) };
            let of_tree = tree::over_frames(&rows, &frames, &of_tree).unwrap();
            for row in (0..keys.len()).step_by(131) {
                let wanted = alone(&call, &input, &filter, expected(&keys, row, spec, [40, 700]));
                assert_eq!(value_at(&call.ty, moved.as_ref(), row), wanted, "{name} {spec:?} at {row}");
                assert_eq!(value_at(&call.ty, of_tree.as_ref(), row), wanted, "tree: {name} {spec:?} at {row}");
            }
        }
    }
}

#[test]
fn range_offsets_meet_the_ends_of_a_type() {
    let ctx = EvalContext::at(0);
    let ends = [i64::from(i32::MIN), -1, 0, 1, i64::from(i32::MAX)].map(Some);
    let values = column(&DataType::Int4, &ends);
    let rows = rows_of(&[(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]);
    let key = RangeKey { ty: DataType::Int4, values: &values, descending: false, nulls_first: false, ctx: &ctx };
    let far = Offset { value: Datum::I64(i64::MAX), ty: DataType::Int8 };
    let near = Offset { value: Datum::I64(1), ty: DataType::Int8 };
    let spec = spec(Units::Range, Bound::Preceding, Bound::Following, Exclude::NoOthers);
    let found = |start: &Offset, end: &Offset| {
        let frames = Frames::new(&rows, spec, [Some(start), Some(end)], Some(&key)).unwrap();
        (frames.start, frames.end)
    };
    assert_eq!(found(&far, &far), (vec![0; 5], vec![5; 5]));
    assert_eq!(found(&near, &near), (vec![0, 1, 1, 2, 4], vec![1, 3, 4, 4, 5]));
    let negative = Offset { value: Datum::I64(-1), ty: DataType::Int8 };
    let refused = Frames::new(&rows, spec, [Some(&negative), Some(&near)], Some(&key)).err().unwrap();
    assert_eq!(refused.sqlstate, "22013");
}
