use super::*;
use arrow_array::cast::AsArray;

fn codes(codes: &[u32], nulls: Option<Vec<bool>>) -> Codes {
    let long = "a text that does not fit into its view";
    let dictionary = BinaryViewArray::from(vec![long.as_bytes(), b"b", b"c"]);
    Codes { codes: codes.to_vec().into(), nulls: nulls.map(NullBuffer::from), dictionary: Arc::new(dictionary) }
}

#[test]
fn codes_become_the_texts_that_they_stand_for() {
    let vector = Vector::Codes(codes(&[2, 0, 1, 0], Some(vec![true, true, false, true])));
    let array = vector.to_array(PhysType::Bytes);
    let array = array.as_binary_view();
    let texts: Vec<Option<&[u8]>> = array.iter().collect();
    let long = b"a text that does not fit into its view".as_slice();
    assert_eq!(texts, [Some(b"c".as_slice()), Some(long), None, Some(long)]);
    assert_eq!(vector.len(), 4);
}

#[test]
fn chosen_rows_keep_their_nulls() {
    let taken = codes(&[2, 0, 1, 0], Some(vec![true, true, false, true])).take(&[2, 3]);
    assert_eq!(taken.codes.as_ref(), [1, 0]);
    assert_eq!(taken.nulls.map(|nulls| nulls.iter().collect::<Vec<_>>()), Some(vec![false, true]));
}

#[test]
fn an_empty_dictionary_has_nulls_alone() {
    let dictionary = Arc::new(BinaryViewArray::from_iter_values(std::iter::empty::<&[u8]>()));
    let vector = Vector::Codes(Codes { codes: vec![0, 0].into(), nulls: Some(NullBuffer::new_null(2)), dictionary });
    assert_eq!(vector.to_array(PhysType::Bytes).null_count(), 2);
}

#[test]
fn integers_come_back_in_the_width_of_their_column() {
    let values: Vec<Option<i64>> = vec![Some(-7), None, Some(300)];
    let stored: ArrayRef = Arc::new(arrow_array::Int64Array::from(values));
    let Vector::Ints(ints) = Vector::measured(stored.clone()) else { panic!("integers") };
    assert!(ints.min <= -7 && ints.max >= 300);
    let narrow = IntValues::I32((0..3).map(|row| ints.values.get(row) as i32).collect());
    let narrow = Vector::Ints(Ints::measured(narrow, ints.nulls.clone()));
    assert_eq!(&narrow.to_array(PhysType::I64), &stored);
    assert_eq!(narrow.take(&[2, 1]).to_array(PhysType::I16).as_primitive::<Int16Type>().value(0), 300);
    assert_eq!(narrow.take(&[2, 1]).nulls().map(NullBuffer::null_count), Some(1));
}

#[test]
fn rows_of_every_stored_form_can_be_taken() {
    let long = b"a text that does not fit into its view".as_slice();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(false)])),
        Arc::new(arrow_array::Float32Array::from(vec![Some(1.5), None, Some(-2.0)])),
        Arc::new(arrow_array::Float64Array::from(vec![Some(1.5), None, Some(-2.0)])),
        Arc::new(BinaryViewArray::from(vec![Some(long), None, Some(b"b".as_slice())])),
        Arc::new(FixedSizeBinaryArray::try_from_iter([[1u8; 16], [2; 16], [3; 16]].iter()).unwrap()),
    ];
    for array in arrays {
        let taken = Vector::measured(array.clone()).take(&[2, 2, 1]);
        let Vector::Flat(taken) = taken else { panic!("no integers") };
        for (to, from) in [2, 2, 1].into_iter().enumerate() {
            assert_eq!(&taken.slice(to, 1), &array.slice(from, 1));
        }
    }
}

#[test]
fn compacted_vectors_hold_the_same_in_less() {
    let wide = |values: &[i64]| Vector::measured(Arc::new(PrimitiveArray::<Int64Type>::from(values.to_vec())));
    for values in [vec![1, -5, i64::from(i32::MAX)], vec![1, i64::from(i32::MIN) - 1]] {
        let narrow = wide(&values).compacted();
        let Vector::Ints(ints) = &narrow else { panic!("integers stay integers") };
        let is_narrow = matches!(ints.values, IntValues::I32(_));
        assert_eq!(is_narrow, values.iter().all(|value| i32::try_from(*value).is_ok()));
        assert_eq!(narrow.to_array(PhysType::I64).as_primitive::<Int64Type>().values(), &values[..]);
    }
    let long = "a text that does not fit into its view";
    let few: Vec<Option<&str>> = (0..64).map(|i| [Some(long), None, Some(""), Some("b")][i % 4]).collect();
    let many: Vec<Option<String>> = (0..64).map(|i| Some(format!("{}", i % 9))).collect();
    let bytes = |values: Vec<Option<&str>>| {
        Vector::Flat(Arc::new(BinaryViewArray::from_iter(values.into_iter().map(|value| value.map(str::as_bytes)))))
    };
    let none = vec![None; 64];
    let flat_many: Vec<Option<&str>> = many.iter().map(|value| value.as_deref()).collect();
    for (values, is_coded) in [(few, true), (flat_many, false), (none, false)] {
        let flat = bytes(values.clone());
        let compact = flat.clone().compacted();
        assert_eq!(matches!(compact, Vector::Codes(_)), is_coded);
        assert_eq!(compact.to_array(PhysType::Bytes).as_ref(), flat.to_array(PhysType::Bytes).as_ref());
        if let Vector::Codes(codes) = compact {
            let entries: Vec<&[u8]> = codes.dictionary.iter().flatten().collect();
            assert!(entries.is_sorted() && codes.codes.iter().all(|code| (*code as usize) < entries.len()));
        }
    }
}
