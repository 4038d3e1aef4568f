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
