use super::*;

#[test]
fn few_and_many_groups_give_the_same() {
    let values: Vec<i32> = (0..1000).map(|i| i * 31 % 977 - 400).collect();
    let long: Vec<i64> = values.iter().map(|value| i64::from(*value) << 33).collect();
    for groups in [2, PASSES_MAX, PASSES_MAX + 1, 100] {
        let of: Vec<u32> = (0..1000).map(|i| i * 7 % groups as u32).collect();
        let (mut sums, mut long_sums, mut counts) = (vec![1; groups], vec![1; groups], vec![5; groups]);
        add(&values, Groups::Each(&of), &mut sums);
        add(&long, Groups::Each(&of), &mut long_sums);
        count(Groups::Each(&of), 1000, &mut counts);
        for group in 1..groups {
            let own = |row: &usize| of[*row] as usize == group;
            let expected: i64 = (0..1000).filter(own).map(|row| i64::from(values[row])).sum();
            assert_eq!(sums[group], 1 + expected);
            assert_eq!(long_sums[group], 1 + (expected << 33));
            assert_eq!(counts[group], 5 + (0..1000).filter(own).count() as i64);
        }
    }
}

#[test]
fn one_group_takes_all_rows() {
    let (mut sums, mut counts) = (vec![0, 2], vec![0, 2]);
    add(&[1, -5, 7], Groups::One(1), &mut sums);
    count(Groups::One(1), 3, &mut counts);
    assert_eq!((sums, counts), (vec![0, 5], vec![0, 5]));
}
