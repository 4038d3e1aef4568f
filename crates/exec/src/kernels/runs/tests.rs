use super::*;

/// Lengths of runs: of one row, of few, of many.
fn keys_of(lengths: &[usize]) -> Vec<i64> {
    let keys = lengths.iter().enumerate();
    keys.flat_map(|(at, length)| std::iter::repeat_n(at as i64 * 3 - 7, *length)).collect()
}

#[test]
fn runs_are_those_of_equal_keys() {
    for lengths in [vec![1], vec![5], vec![1; 100], vec![3, 1, 4, 1, 5, 9, 2, 6], vec![100; 9], vec![1, 900, 1]] {
        let keys = keys_of(&lengths);
        let groups: Vec<u32> =
            lengths.iter().enumerate().flat_map(|(at, length)| vec![at as u32 + 4; *length]).collect();
        let runs = Runs::of(&keys, 4).unwrap();
        assert_eq!((runs.len(), runs.each()), (lengths.len(), groups.clone()));
        let narrow: Vec<i32> = (0..keys.len() as i32).map(|row| row * 7919 % 1000 - 300).collect();
        // Their totals leave 64 bits, those of one group do not.
        let wide: Vec<i64> = (0..keys.len()).map(|row| if row % 3 == 1 { -1 } else { i64::MAX / 1000 }).collect();
        let len = lengths.len() + 6;
        let (mut counts, mut sums, mut wide_sums, mut most) =
            (vec![2; len], vec![2; len], vec![0; len], vec![-500; len]);
        runs.count(&mut counts);
        runs.add(&narrow, &mut sums);
        runs.add(&wide, &mut wide_sums);
        runs.fold(&narrow, &mut most, |most: i32, value| most.max(value));
        for group in 0..len {
            let rows = || (0..keys.len()).filter(|row| groups[*row] as usize == group);
            assert_eq!(counts[group], 2 + rows().count() as i64);
            assert_eq!(sums[group], 2 + rows().map(|row| i64::from(narrow[row])).sum::<i64>());
            assert_eq!(wide_sums[group], rows().map(|row| wide[row]).sum::<i64>());
            assert_eq!(most[group], rows().map(|row| narrow[row]).max().unwrap_or(-500));
        }
    }
}

#[test]
fn totals_may_leave_64_bits() {
    let keys: Vec<i64> = (0..50).collect();
    let values = vec![i64::MAX / 2; 50];
    let mut sums = vec![0; 51];
    Runs::of(&keys, 1).unwrap().add(&values, &mut sums);
    assert_eq!(sums[1..], values);
}

#[test]
fn keys_that_fall_have_no_runs() {
    assert_eq!(Runs::of(&[1, 2, 2, 1], 1), None);
    assert_eq!(Runs::of(&[3, 2], 1), None);
    assert!(Runs::of(&[2], 1).is_some());
}
