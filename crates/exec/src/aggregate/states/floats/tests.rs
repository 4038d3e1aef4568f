use super::*;

fn sums(single: bool, batches: &[(&[f64], &[u32])], len: usize) -> Result<FloatSum> {
    let mut sum = FloatSum::new(single);
    for (values, groups) in batches {
        sum.add(values, Groups::Each(groups), len)?;
    }
    Ok(sum)
}

#[test]
fn rows_are_added_in_their_order() {
    let values: Vec<f64> = (0..1000).map(|row| f64::from(row) * 0.1 - 7.3).collect();
    let groups: Vec<u32> = (0..1000).map(|row| row % 4).collect();
    let sum = sums(false, &[(&values, &groups)], 4).unwrap();
    for group in 1..4 {
        let own = values.iter().zip(&groups).filter(|(_, of)| **of == group);
        let expected = own.fold(0.0, |sum, (value, _)| sum + value);
        assert_eq!(sum.total(group as usize).to_bits(), expected.to_bits());
    }
    // One group, some of whose rows do not count.
    let some: Vec<u32> = (0..1000).map(|row| u32::from(row % 3 > 0)).collect();
    let one = sums(false, &[(&values, &some)], 2).unwrap();
    let expected = values.iter().zip(&some).filter(|(_, of)| **of == 1).fold(0.0, |sum, (value, _)| sum + value);
    assert_eq!(one.total(1).to_bits(), expected.to_bits());
    let mut all = FloatSum::new(false);
    all.add(&values, Groups::One(1), 2).unwrap();
    assert_eq!(all.total(1).to_bits(), values.iter().fold(0.0, |sum, value| sum + value).to_bits());
}

#[test]
fn sums_beyond_the_type_are_errors_and_infinite_values_none() {
    let large = [f64::MAX, f64::MAX, -f64::MAX];
    assert!(sums(false, &[(&large, &[1, 1, 1])], 2).is_err());
    // Between them a sum that fits; in another group; for rows that do not count.
    let fits = [f64::MAX, -f64::MAX, f64::MAX];
    assert_eq!(sums(false, &[(&fits, &[1, 1, 1])], 2).unwrap().total(1), f64::MAX);
    assert_eq!(sums(false, &[(&large, &[1, 2, 2])], 3).unwrap().total(2), 0.0);
    assert_eq!(sums(false, &[(&large, &[0, 1, 0])], 2).unwrap().total(1), f64::MAX);
    let infinite = sums(false, &[(&[f64::INFINITY, 1.0, f64::MAX], &[1, 1, 1])], 2).unwrap();
    assert_eq!(infinite.total(1), f64::INFINITY);
    let mut nan = sums(false, &[(&[f64::INFINITY, f64::NEG_INFINITY], &[1, 1])], 2).unwrap();
    assert!(nan.total(1).is_nan());
    nan.add(&[1.0], Groups::One(1), 2).unwrap();
    assert!(nan.total(1).is_nan());
    // The first batch leaves no room for the second.
    assert!(
        sums(false, &[(&[f64::MAX * 0.4], &[1]), (&[f64::MAX * 0.4], &[1]), (&[f64::MAX * 0.4], &[1])], 2).is_err()
    );
}

#[test]
fn single_precision_rounds_each_sum() {
    let values: Vec<f64> = (0..100).map(|row| f64::from(0.1f32 * row as f32)).collect();
    let mut sum = FloatSum::new(true);
    sum.add(&values, Groups::One(1), 2).unwrap();
    let expected = values.iter().fold(0f32, |sum, value| sum + *value as f32);
    assert_eq!(sum.total(1), f64::from(expected));
    assert!(sums(true, &[(&[f64::from(f32::MAX), f64::from(f32::MAX)], &[1, 1])], 2).is_err());
}

#[test]
fn sums_of_two_workers_are_added() {
    let mut own = sums(false, &[(&[1.0, 2.0], &[1, 2])], 3).unwrap();
    let other = sums(false, &[(&[0.5, 4.0, 8.0], &[1, 2, 3])], 4).unwrap();
    own.merge(&other, &[2, 3, 1], 1, 4).unwrap();
    assert_eq!(own.stored(1..4), [9.0, 2.5, 4.0]);
    let mut large = sums(false, &[(&[f64::MAX], &[1])], 2).unwrap();
    assert!(large.merge(&sums(false, &[(&[f64::MAX], &[1])], 2).unwrap(), &[1], 1, 2).is_err());
    own.keep(1, &[1, 3]);
    assert_eq!(own.stored(1..4), [9.0, 4.0, 0.0]);
}
