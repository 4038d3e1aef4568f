use super::*;
use arrow_array::ArrayRef;
use arrow_array::{Array, Float64Array, Int64Array};
use std::collections::HashMap;

fn ints(values: Vec<Option<i64>>) -> Vector {
    let values: ArrayRef = Arc::new(Int64Array::from(values));
    Vector::measured(values)
}

fn texts(values: &[Option<&str>]) -> Vector {
    let values: Vec<Option<&[u8]>> = values.iter().map(|value| value.map(str::as_bytes)).collect();
    Vector::Flat(Arc::new(BinaryViewArray::from(values)))
}

fn codes(entries: &[&str], rows: &[u32], nulls: Option<NullBuffer>) -> Vector {
    let dictionary = BinaryViewArray::from_iter_values(entries.iter().map(|entry| entry.as_bytes()));
    Vector::Codes(Codes { codes: rows.to_vec().into(), nulls, dictionary: Arc::new(dictionary) })
}

#[test]
fn texts_are_the_same_in_every_form() {
    let mut keys = Keys::new(&[Form::Texts(Equality::Bytes)], &Seeds::new());
    let first = keys.assign(&[codes(&["a", "b"], &[1, 0, 1], None)], 3, None).unwrap();
    assert_eq!(first, [1, 2, 1]);
    let second = keys.assign(&[texts(&[Some("a"), None, Some("c"), Some("b")])], 4, None).unwrap();
    assert_eq!(second, [2, 3, 4, 1]);
    let nulls = NullBuffer::from(vec![false, true]);
    let third = keys.assign(&[codes(&["c"], &[0, 0], Some(nulls))], 2, None).unwrap();
    assert_eq!(third, [3, 4]);
    keys.seal();
    let array = keys.vectors(1..keys.len())[0].to_array(basalt_types::PhysType::Bytes);
    let values: Vec<Option<&[u8]>> = array.as_binary_view().iter().collect();
    assert_eq!(values, [Some(b"b".as_slice()), Some(b"a"), None, Some(b"c")]);
}

#[test]
fn rows_that_do_not_count_make_no_group() {
    let mut keys = Keys::new(&[Form::Integers, Form::Texts(Equality::Bytes)], &Seeds::new());
    let columns = [ints(vec![Some(5), Some(6), None]), texts(&[Some("x"), Some("y"), None])];
    assert_eq!(keys.assign(&columns, 3, Some(&[0, 1, 0])).unwrap(), [0, 1, 0]);
    assert_eq!(keys.assign(&columns, 3, None).unwrap(), [2, 1, 3]);
    assert_eq!(keys.len(), 4);
}

/// Few of them, near each other, are looked up by combination; their words would be those of other numbers.
#[test]
fn keys_of_more_than_64_bits_are_refused() {
    let wide: ArrayRef = Arc::new(arrow_array::Decimal128Array::from(vec![1i128 << 80, (1i128 << 80) + 1]));
    let mut keys = Keys::new(&[Form::Integers], &Seeds::new());
    assert!(keys.assign(&[Vector::measured(wide)], 2, None).is_err());
}

/// Whether combinations are looked up or hashed, the groups are those of a map.
#[test]
fn growing_keys_keep_their_groups() {
    let mut keys = Keys::new(&[Form::Integers, Form::Integers], &Seeds::new());
    let mut model = std::collections::HashMap::new();
    for round in 0..60i64 {
        // Ranges grow until combinations are too many.
        let span = 1 << (round / 2);
        let a: Vec<Option<i64>> = (0..500).map(|i| (i % 11 != 0).then_some(i * 7919 % span - span / 3)).collect();
        let b: Vec<Option<i64>> = (0..500).map(|i| (i % 13 != 0).then_some(i % 3)).collect();
        let groups = keys.assign(&[ints(a.clone()), ints(b.clone())], 500, None).unwrap();
        for (row, group) in groups.iter().enumerate() {
            assert_eq!(*model.entry((a[row], b[row])).or_insert(*group), *group, "round {round} row {row}");
        }
    }
    assert_eq!(model.len(), keys.len() - 1);
    let distinct: std::collections::HashSet<u32> = model.values().copied().collect();
    assert_eq!(distinct.len(), model.len());
}

/// One integer column goes from combinations over an array to hashes.
#[test]
fn one_column_of_integers_keeps_its_groups() {
    let mut keys = Keys::new(&[Form::Integers], &Seeds::new());
    let mut model = std::collections::HashMap::new();
    for round in 0..45i64 {
        let values: Vec<Option<i64>> = (0..700)
            .map(|i| (i % 17 != 0).then_some((i * 7919 + round * 31) % (1 << round.max(1)) - round * 5))
            .collect();
        let groups = keys.assign(&[ints(values.clone())], 700, None).unwrap();
        for (row, group) in groups.iter().enumerate() {
            assert_eq!(*model.entry(values[row]).or_insert(*group), *group, "round {round} row {row}");
        }
        let found = keys.found.find(&[ints(values.clone())], 700, None).unwrap();
        assert_eq!(found, groups);
        assert_eq!(keys.found.find(&[ints(vec![Some(i64::MAX), Some(i64::MIN)])], 2, None).unwrap(), [0, 0]);
    }
    assert!(keys.found.dense.is_none(), "ends with hashes");
    assert_eq!(model.len(), keys.len() - 1);
}

#[test]
fn numerics_are_one_however_they_print() {
    let numeric = |coefficient, scale| basalt_expr::Numeric::from_scaled(coefficient, scale).encoded();
    let values = [numeric(15, 1), numeric(1500, 3), numeric(-15, 1), numeric(150, 2)];
    let values: ArrayRef = Arc::new(BinaryViewArray::from_iter_values(values.iter()));
    let mut keys = Keys::new(&[Form::Texts(Equality::Numerics)], &Seeds::new());
    assert_eq!(keys.assign(&[Vector::Flat(values)], 4, None).unwrap(), [1, 1, 2, 1]);
}

/// Workers whose keys ascend, until one that does not comes; their groups are those of a map, and so are they together.
#[test]
fn ascending_keys_keep_their_groups() {
    let mut random = 1u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    for round in 0..200 {
        let mut workers: Vec<(Keys, Vec<i64>)> =
            (0..2).map(|_| (Keys::new(&[Form::Integers], &Seeds::new()), Vec::new())).collect();
        let (mut at, disorder) = (next(50) as i64 - 25, round % 4 == 3);
        for morsel in 0..12 {
            let (keys, seen) = &mut workers[next(2) as usize];
            let rows = 1 + next(60) as usize;
            let mut values: Vec<i64> = (0..rows)
                .map(|_| {
                    at += next(3) as i64;
                    at
                })
                .collect();
            if disorder && morsel == 8 {
                values.reverse();
            }
            let without = round % 3 == 0;
            let mask: Vec<u8> = values.iter().map(|_| u8::from(without || next(4) != 0)).collect();
            let columns = [ints(values.iter().copied().map(Some).collect())];
            let groups = keys.assign(&columns, rows, (!without).then_some(&mask)).unwrap();
            for ((value, group), counts) in values.iter().zip(&groups).zip(&mask) {
                if *counts == 0 {
                    assert_eq!(*group, 0);
                    continue;
                }
                let known = seen.iter().position(|seen| seen == value);
                assert_eq!(*group as usize, known.map_or(seen.len() + 1, |known| known + 1), "round {round}");
                if known.is_none() {
                    seen.push(*value);
                }
            }
        }
        let [(mut own, mut seen), (mut other, others)] = <[_; 2]>::try_from(workers).ok().unwrap();
        let groups = own.merge(&mut other).unwrap();
        assert_eq!(groups.len(), others.len());
        for (value, group) in others.iter().zip(groups) {
            let known = seen.iter().position(|seen| seen == value);
            assert_eq!(group as usize, known.map_or(seen.len() + 1, |known| known + 1), "round {round}");
            if known.is_none() {
                seen.push(*value);
            }
        }
        // A third one finds its groups, whatever order they came in.
        let mut third = Keys::new(&[Form::Integers], &Seeds::new());
        third
            .assign(
                &[ints(others.iter().rev().copied().map(Some).chain([Some(-1000), None]).collect())],
                others.len() + 2,
                None,
            )
            .unwrap();
        let groups = own.merge(&mut third).unwrap();
        for (value, group) in others.iter().rev().zip(&groups) {
            assert_eq!(*group as usize, seen.iter().position(|seen| seen == value).unwrap() + 1, "round {round}");
        }
        assert_eq!(groups[groups.len() - 2..], [seen.len() as u32 + 1, seen.len() as u32 + 2]);
        assert_eq!(own.len(), seen.len() + 3);
    }
}

/// Workers whose ascending keys overlap everywhere, more of them than lists are looked through.
#[test]
fn lists_that_ascend_are_put_together_however_they_overlap() {
    let mut random = 1u64;
    let mut next = move |below: u64| {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (random >> 33) % below
    };
    for round in 0..40 {
        let mut all = Keys::new(&[Form::Integers], &Seeds::new());
        let mut expected: HashMap<i64, u32> = HashMap::new();
        for worker in 0..12 {
            let sparse = [1, 2, 7, 60, 3000][next(5) as usize];
            let mut at = next(500) as i64 - 250;
            let mut values: Vec<i64> = (0..1 + next(900))
                .map(|_| {
                    at += 1 + next(sparse) as i64;
                    at
                })
                .collect();
            if round == 7 {
                values.extend([i64::MAX - 1, i64::MAX]);
                values.insert(0, i64::MIN);
            }
            let mut one = Keys::new(&[Form::Integers], &Seeds::new());
            one.assign(&[ints(values.iter().copied().map(Some).collect())], values.len(), None).unwrap();
            let groups = all.merge(&mut one).unwrap();
            assert_eq!(groups.len(), values.len());
            for (value, group) in values.iter().zip(groups) {
                let new = expected.len() as u32 + 1;
                assert_eq!(*expected.entry(*value).or_insert(new), group, "round {round}, worker {worker}: {value}");
            }
            assert_eq!(all.len(), expected.len() + 1);
        }
        for (value, group) in &expected {
            assert_eq!(all.integer(0, *group), *value);
        }
    }
}

#[test]
fn keys_fall_back_where_they_ascend_from_further_in_front() {
    let column = |values: Vec<i64>| [ints(values.into_iter().map(Some).collect())];
    let mut keys = Keys::new(&[Form::Integers], &Seeds::new());
    let rows = 10_000;
    assert!(!keys.falls_back(&column(vec![1, 2]), None), "there is nothing behind them");
    keys.assign(&column((0..rows).collect()), rows as usize, None).unwrap();
    assert!(keys.falls_back(&column(vec![1, 2]), None) && !keys.falls_back(&column(vec![2, 1]), None));
    assert!(!keys.falls_back(&column(vec![rows - 1, rows]), None), "they go on");
    // Of rows that do not count nothing is heeded.
    assert!(keys.falls_back(&column(vec![rows, 2, 1, 3]), Some(&[0, 1, 0, 1])));
    assert!(!keys.falls_back(&column(vec![1, rows, 5]), Some(&[0, 1, 0])));
    assert!(!keys.falls_back(&column(vec![1, 2]), Some(&[0, 0])));
    assert!(!keys.falls_back(&[ints(vec![Some(1), None])], None), "a null does not ascend");
}

#[test]
fn floats_are_one_where_they_are_equal() {
    let mut keys = Keys::new(&[Form::Floats { wide: true }], &Seeds::new());
    let other_nan = f64::from_bits(f64::NAN.to_bits() | 1 << 63 | 7);
    let values: ArrayRef =
        Arc::new(Float64Array::from(vec![Some(1.5), Some(f64::NAN), None, Some(0.0), Some(other_nan)]));
    assert_eq!(keys.assign(&[Vector::Flat(values)], 5, None).unwrap(), [1, 2, 3, 4, 2]);
    let all = keys.vectors(1..5)[0].to_array(basalt_types::PhysType::F64);
    assert!(all.is_null(2));
    assert_eq!(all.as_primitive::<Float64Type>().value(0), 1.5);
    // It would print as 0.
    let zero: ArrayRef = Arc::new(Float64Array::from(vec![-0.0]));
    assert!(keys.assign(&[Vector::Flat(zero)], 1, None).is_err());
}

#[test]
fn blanks_at_the_end_tell_nothing_apart() {
    let mut keys = Keys::new(&[Form::Texts(Equality::Padded)], &Seeds::new());
    assert_eq!(
        keys.assign(&[texts(&[Some("a "), Some("a"), Some(" a"), Some("  "), Some("")])], 5, None).unwrap(),
        [1, 1, 2, 3, 3]
    );
}

#[test]
fn values_of_sixteen_bytes_come_back_as_they_were() {
    let mut keys = Keys::new(&[Form::Fixed], &Seeds::new());
    let bytes = |of: u8| Some([of; 16]);
    let values = [bytes(7), None, bytes(9), bytes(7)];
    let array = FixedSizeBinaryArray::try_from_sparse_iter_with_size(values.into_iter(), 16).unwrap();
    let vector = Vector::Flat(Arc::new(array));
    assert_eq!(keys.assign(&[vector], 4, None).unwrap(), [1, 2, 3, 1]);
    keys.seal();
    let all = keys.vectors(1..4)[0].to_array(basalt_types::PhysType::Fixed16);
    let all: Vec<Option<&[u8]>> = all.as_fixed_size_binary().iter().collect();
    assert_eq!(all, [Some([7; 16].as_slice()), None, Some([9; 16].as_slice())]);
}

/// Texts of all lengths, of which two workers share some, stay what they are when one takes in the other.
#[test]
fn texts_of_others_lie_where_they_were() {
    let text = |number: usize| format!("{number}{}", "x".repeat(number % 40));
    let seeds = Seeds::new();
    let forms = [Form::Texts(Equality::Bytes), Form::Integers];
    let batch = |numbers: &[usize]| {
        let own: Vec<String> = numbers.iter().map(|number| text(*number)).collect();
        let own: Vec<Option<&str>> =
            own.iter().zip(numbers).map(|(text, number)| (number % 7 != 0).then_some(text.as_str())).collect();
        [texts(&own), ints(numbers.iter().map(|number| Some((*number % 3) as i64)).collect())]
    };
    let worker = |numbers: Vec<usize>| {
        let mut keys = Keys::new(&forms, &seeds);
        for numbers in numbers.chunks(1000) {
            keys.assign(&batch(numbers), numbers.len(), None).unwrap();
        }
        keys
    };
    // The first has none of its own before it takes in another, and gets some more afterwards.
    let mut all = worker(Vec::new());
    for mut other in [worker((0..20_000).collect()), worker((10_000..30_000).collect())] {
        let theirs = other.len();
        let groups = all.merge(&mut other).unwrap();
        assert_eq!(groups.len(), theirs - 1);
        let known: Vec<u32> = (1..theirs as u32).collect();
        assert_eq!(all.take_in(&other, &known, None).unwrap(), groups, "they are known by now");
    }
    let more: Vec<usize> = (25_000..40_000).collect();
    let groups = all.assign(&batch(&more), more.len(), None).unwrap();
    let again = all.assign(&batch(&more), more.len(), None).unwrap();
    assert_eq!(groups, again);
    all.seal();
    let [of_texts, of_ints] = &all.vectors(1..all.len())[..] else { panic!("two columns") };
    let (Vector::Codes(of_texts), Vector::Ints(of_ints)) = (of_texts, of_ints) else { panic!("texts and integers") };
    let found: std::collections::BTreeSet<(Option<String>, i64)> = (0..all.len() - 1)
        .map(|row| {
            let is_null = of_texts.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
            let text = of_texts.dictionary.value(of_texts.codes[row] as usize);
            let text = (!is_null).then(|| String::from_utf8(text.to_vec()).unwrap());
            (text, of_ints.values.get(row) as i64)
        })
        .collect();
    let wanted = (0..40_000).map(|number| ((number % 7 != 0).then(|| text(number)), (number % 3) as i64)).collect();
    assert_eq!(found.len(), all.len() - 1, "each group once");
    assert_eq!(found, wanted);
}

#[test]
fn an_array_that_reaches_a_little_further_with_each_batch_stays_one() {
    let mut keys = Keys::new(&[Form::Integers], &Seeds::new());
    let mut expected = std::collections::HashMap::new();
    for batch in 0..60 {
        // In no order, over nearly the same 150,000 numbers, of which the least and the greatest go on.
        let values: Vec<i64> = (0..8000).map(|row| 1000 - batch + row * 7919 % (150_000 + 2 * batch)).collect();
        let groups = keys.assign(&[ints(values.iter().copied().map(Some).collect())], values.len(), None).unwrap();
        for (value, group) in values.iter().zip(groups) {
            let known = *expected.entry(*value).or_insert(group);
            assert_eq!(known, group, "{value} in batch {batch}");
        }
    }
    assert_eq!(keys.len(), expected.len() + 1);
    assert!(keys.found.dense.is_some(), "numbers that lie close together need no hash");
}

/// Keys that ascend far apart, then others among them.
#[test]
fn keys_that_ascended_are_found_by_those_that_do_not() {
    let mut keys = Keys::new(&[Form::Integers], &Seeds::new());
    let far: Vec<Option<i64>> = (0..1000).map(|at| Some(at * 1000)).collect();
    let groups = keys.assign(&[ints(far)], 1000, None).unwrap();
    assert_eq!(groups, (1..=1000).collect::<Vec<u32>>());
    let near: Vec<Option<i64>> = (0..1000).map(|at| Some(at * 7919 % 60 * 1000)).collect();
    let groups = keys.assign(&[ints(near)], 1000, None).unwrap();
    assert!(groups.iter().enumerate().all(|(at, group)| *group as usize == at * 7919 % 60 + 1));
    assert_eq!(keys.len(), 1001);
}

/// Numbers of which the first batches have too few for an array.
#[test]
fn a_table_becomes_an_array_once_rows_are_enough_for_one() {
    let mut keys = Keys::new(&[Form::Integers], &Seeds::new());
    let mut expected = std::collections::HashMap::new();
    let mut was_hashed = false;
    for batch in 0..60 {
        let null = |row: i64| row % 997 == 5;
        let values: Vec<Option<i64>> =
            (0..4000).map(|row| (!null(row)).then_some((row + batch * 4000) * 7919 % 1_000_003 - 500_000)).collect();
        let groups = keys.assign(&[ints(values.clone())], values.len(), None).unwrap();
        was_hashed |= keys.found.dense.is_none();
        for (value, group) in values.iter().zip(groups) {
            assert_eq!(*expected.entry(*value).or_insert(group), group, "{value:?} in batch {batch}");
        }
    }
    assert_eq!(keys.len(), expected.len() + 1);
    assert!(was_hashed && keys.found.dense.is_some());
    // And is one no more where keys are beyond it.
    let far: Vec<Option<i64>> = vec![Some(1 << 60), Some(3), Some(-(1 << 60)), None];
    let groups = keys.assign(&[ints(far)], 4, None).unwrap();
    assert_eq!(groups[3], expected[&None]);
    assert!(keys.found.dense.is_none() && keys.found.waiting.is_none());
    let (known, of) = expected.iter().find(|(value, _)| value.is_some()).unwrap();
    assert_eq!(keys.assign(&[ints(vec![*known])], 1, None).unwrap(), [*of]);
}
