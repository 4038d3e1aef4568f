use super::*;

fn ints(values: Vec<i64>) -> Ints {
    Ints::measured(IntValues::I64(values.into()), None)
}

#[test]
fn sums_beyond_64_bits_are_exact() {
    let mut sum = Sum::default();
    let mut expected = [0i128; 3];
    for round in 0..20 {
        let values: Vec<i64> = (0..100).map(|i| i64::MAX / 200 - i * round).collect();
        let groups: Vec<u32> = (0..100).map(|i| i % 3).collect();
        values.iter().zip(&groups).for_each(|(value, group)| expected[*group as usize] += i128::from(*value));
        sum.add(&ints(values), Groups::Each(&groups), 3).unwrap();
    }
    assert!(expected[1] > i128::from(i64::MAX));
    assert_eq!((1..3).map(|group| sum.total(group).unwrap()).collect::<Vec<_>>(), expected[1..]);
}

#[test]
fn values_of_128_bits_are_added_as_they_are() {
    let mut sum = Sum::default();
    let wide = Ints::measured(IntValues::I128(vec![1 << 100, -3, 1 << 100].into()), None);
    sum.add(&wide, Groups::Each(&[1, 1, 0]), 2).unwrap();
    sum.add(&ints(vec![5]), Groups::One(1), 2).unwrap();
    assert_eq!(sum.total(1).unwrap(), (1 << 100) + 2);
    let most = Ints::measured(IntValues::I128(vec![i128::MAX].into()), None);
    assert!(sum.add(&most, Groups::One(1), 2).is_err());
}

#[test]
fn groups_that_another_worker_lacks_keep_their_extreme() {
    let (mut own, mut other) = (Extreme::new(false), Extreme::new(false));
    own.add(&ints(vec![4, 9]), Groups::Each(&[1, 2]), 3).unwrap();
    other.add(&ints(vec![7, 3]), Groups::Each(&[1, 2]), 3).unwrap();
    let mut state = State::Extreme(own);
    state.merge(&mut State::Extreme(other), &[2, 1], 1, 3).unwrap();
    let State::Extreme(merged) = state else { panic!("an extreme") };
    assert_eq!((merged.value(1), merged.value(2)), (3, 7));
}

#[test]
fn extremes_are_found_of_one_group_and_of_many() {
    let values: Vec<i64> = (0..100).map(|row| (row * 37 % 100) - 50).collect();
    for greatest in [false, true] {
        let mut one = Extreme::new(greatest);
        one.add(&ints(values.clone()), Groups::One(1), 2).unwrap();
        assert_eq!(one.value(1), if greatest { 49 } else { -50 });
        one.add(&ints(vec![]), Groups::One(1), 2).unwrap();
        let narrow = Ints::measured(IntValues::I32(vec![7, 60, -60].into()), None);
        one.add(&narrow, Groups::One(1), 2).unwrap();
        assert_eq!(one.value(1), if greatest { 60 } else { -60 });
        for number in [3, 30] {
            let groups: Vec<u32> = (0..100).map(|row| row % number).collect();
            let mut many = Extreme::new(greatest);
            many.add(&ints(values.clone()), Groups::Each(&groups), number as usize).unwrap();
            let own = values.iter().zip(&groups).filter(|(_, group)| **group == 2).map(|(value, _)| *value);
            assert_eq!(Some(many.value(2)), if greatest { own.max() } else { own.min() });
        }
        // A batch without rows of a group, of values of fewer bits than those behind.
        let mut late = Extreme::new(greatest);
        late.add(&Ints::measured(IntValues::I32(vec![1].into()), None), Groups::Each(&[2]), 3).unwrap();
        let beyond = if greatest { i64::from(i32::MIN) - 1 } else { i64::from(i32::MAX) + 1 };
        late.add(&ints(vec![beyond]), Groups::Each(&[1]), 3).unwrap();
        assert_eq!((late.value(1), late.value(2)), (beyond, 1));
    }
}

#[test]
fn rows_without_a_value_belong_to_no_group() {
    let every = |nth: usize| (0..200).map(|row| row % nth == 0).collect::<NullBuffer>();
    let each: Vec<u32> = (0..200).map(|row| row % 5).collect();
    for nulls in [every(1), every(2), every(3), (0..200).map(|row| row % 7 > 0).collect(), every(1000)] {
        for groups in [Groups::One(4), Groups::Each(&each)] {
            let own = without_nulls(groups, &nulls);
            for (row, own) in own.iter().enumerate() {
                let of = if let Groups::Each(groups) = groups { groups[row] } else { 4 };
                assert_eq!(*own, if nulls.is_valid(row) { of } else { 0 }, "row {row}");
            }
        }
    }
}
