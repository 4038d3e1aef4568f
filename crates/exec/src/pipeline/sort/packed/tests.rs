use super::super::{Form, Key, KeyValues, Order};
use super::*;
use crate::aggregate::texts::Equality;
use arrow_array::{BinaryViewArray, BooleanArray};
use arrow_buffer::NullBuffer;
use basalt_types::array::ArrayValue;
use basalt_types::vector::{Codes, IntValues};
use basalt_types::{DataType, Datum, PhysType};
use proptest::prelude::*;
use std::cmp::Ordering;

fn integers(values: Vec<Option<i128>>) -> KeyValues {
    let nulls: NullBuffer = values.iter().map(Option::is_some).collect();
    KeyValues::Integers(IntValues::I128(values.into_iter().map(Option::unwrap_or_default).collect()), Some(nulls))
}

fn texts(values: Vec<Option<Vec<u8>>>) -> KeyValues {
    KeyValues::Bytes(values.iter().map(Option::as_deref).collect::<BinaryViewArray>(), Equality::Bytes)
}

/// Values of one of a few widths, so that keys sometimes fit and sometimes do not.
fn arrays(values: Vec<Option<Vec<Option<i32>>>>) -> KeyValues {
    let stored = |array: &Vec<Option<i32>>| {
        let elements = array.iter().map(|element| element.map_or(Datum::Null, Datum::I32)).collect();
        let Datum::Bytes(bytes) = ArrayValue::plain(elements).encode(PhysType::I32) else { panic!("arrays are bytes") };
        bytes
    };
    let stored: Vec<_> = values.iter().map(|array| array.as_ref().map(stored)).collect();
    KeyValues::Arrays(stored.iter().map(Option::as_deref).collect(), DataType::Int4)
}

fn values(rows: usize) -> impl Strategy<Value = KeyValues> {
    let near = prop::collection::vec(prop::option::of(-3i128..4), rows).prop_map(integers);
    let far = prop::collection::vec(prop::option::of(any::<i64>().prop_map(i128::from)), rows).prop_map(integers);
    let farthest = prop::collection::vec(prop::option::of(any::<i128>()), rows).prop_map(integers);
    let text = |most: usize| prop::collection::vec(prop::sample::select(vec![0u8, b'a', b'b', 255]), 0..most);
    let short = prop::collection::vec(prop::option::of(text(3)), rows).prop_map(texts);
    let long = prop::collection::vec(prop::option::of(text(20)), rows).prop_map(texts);
    let bools = prop::collection::vec(any::<Option<bool>>(), rows);
    let bools = bools.prop_map(|values| KeyValues::Bools(BooleanArray::from(values)));
    let array = prop::collection::vec(prop::option::of(-1i32..2), 0..3);
    let arrays = prop::collection::vec(prop::option::of(array), rows).prop_map(arrays);
    prop_oneof![near, far, farthest, short, long, bools, coded(rows, 8), coded(rows, 20), arrays]
}

/// Texts of one dictionary, in which some may stand twice.
fn coded(rows: usize, entries: usize) -> impl Strategy<Value = KeyValues> {
    let text = prop::collection::vec(prop::sample::select(vec![0u8, b'a', b' ']), 0..18);
    let codes = prop::collection::vec(prop::option::of(any::<prop::sample::Index>()), rows);
    let equality = prop::sample::select(vec![Equality::Bytes, Equality::Padded]);
    (prop::collection::vec(text, 1..entries), codes, equality).prop_map(|(entries, codes, equality)| {
        let nulls = codes.iter().map(Option::is_some).collect::<NullBuffer>();
        let code = |code: Option<prop::sample::Index>| code.map_or(0, |code| code.index(entries.len()) as u32);
        let dictionary = Arc::new(BinaryViewArray::from_iter_values(&entries));
        let codes = codes.into_iter().map(code).collect();
        KeyValues::Codes(Codes { codes, nulls: Some(nulls), dictionary }, equality)
    })
}

fn form(values: &KeyValues) -> Form {
    match values {
        KeyValues::Integers(..) => Form::Integers,
        KeyValues::Bools(_) => Form::Bools,
        KeyValues::Bytes(_, equality) | KeyValues::Codes(_, equality) => Form::Bytes(*equality),
        KeyValues::Fixed(_) => Form::Fixed,
        KeyValues::Arrays(..) => Form::Arrays(PhysType::I32),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 2000 }))]
    #[test]
    fn numbers_are_in_the_order_of_the_keys(
        columns in prop::collection::vec((values(12), any::<bool>(), any::<bool>()), 1..5),
    ) {
        let (mut keys, mut held) = (Vec::new(), Vec::new());
        for (place, (values, descending, nulls_first)) in columns.into_iter().enumerate() {
            keys.push(Key { place, column: Some(place), descending, nulls_first, form: form(&values) });
            held.push(values);
        }
        let order = Order { keys, fields: Vec::new(), offset: 0, limit: None };
        let packing = Packing::of(&order.keys, &[(&held, 12)]).unwrap();
        let numbers = packing.numbers((&held, 12));
        for a in 0..12 {
            for b in 0..12 {
                let wanted = order.compare((&held, a), (&held, b));
                match numbers[a].cmp(&numbers[b]) {
                    Ordering::Equal if !packing.exact => {}
                    found => prop_assert_eq!(found, wanted, "{} {}", a, b),
                }
            }
        }
    }
}

#[test]
fn batches_without_rows_have_shapes_of_their_own() {
    let key = Key { place: 0, column: None, descending: false, nulls_first: false, form: Form::Bytes(Equality::Bytes) };
    let (none, some) = ([texts(Vec::new())], [texts(vec![Some(b"a".to_vec()), None])]);
    assert!(Packing::of(&[key], &[(&none, 0)]).unwrap().numbers((&none, 0)).is_empty());
    let packing = Packing::of(&[key], &[(&none, 0), (&some, 2)]).unwrap();
    assert!(packing.numbers((&some, 2)).is_sorted());
}
