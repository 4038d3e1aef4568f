use super::*;
use std::collections::BTreeSet;

/// Words for integers from the least on.
fn words(of: &BTreeSet<i64>) -> (i64, Vec<u64>) {
    let (least, most) = (*of.first().unwrap(), *of.last().unwrap());
    let mut words = vec![0u64; (most - least) as usize / 64 + 2];
    for one in of {
        let bit = (one - least) as usize;
        words[bit / 64] |= 1 << (bit % 64);
    }
    (least, words)
}

#[test]
fn keys_occur_where_their_bit_is_set_and_nowhere_else() {
    let (low, high) = (i64::from(i32::MIN), i64::from(i32::MAX));
    for base in [0, -1000, low, high - 2000, low - 1000, high - 700, high + 5, i64::MIN, i64::MAX - 2000] {
        let of: BTreeSet<i64> = (0..2000).filter(|at| at % 7 == 0 || at % 64 == 63).map(|at| base + at).collect();
        let (least, words) = words(&of);
        let near = (-70..2200).map(|at| base.saturating_add(at));
        let keys: Vec<i64> = near.chain([i64::MIN, low, -1, 0, 1, high, i64::MAX]).collect();
        let mut mask: Vec<u8> = keys.iter().map(|key| u8::from(key % 5 != 0)).collect();
        let expected: Vec<u8> = keys.iter().map(|key| u8::from(key % 5 != 0 && of.contains(key))).collect();
        clear_absent_i64(&keys, least, &words, &mut mask);
        assert_eq!(mask, expected, "from {base}");
        let keys: Vec<i32> = keys.iter().filter_map(|key| i32::try_from(*key).ok()).collect();
        let mut mask = vec![1; keys.len()];
        let expected: Vec<u8> = keys.iter().map(|key| u8::from(of.contains(&i64::from(*key)))).collect();
        clear_absent_i32(&keys, least, &words, &mut mask);
        assert_eq!(mask, expected, "narrow keys from {base}");
    }
    let mut mask = vec![1; 3];
    clear_absent_i32(&[0, 1, -1], 0, &[0], &mut mask);
    assert_eq!(mask, [0; 3]);
}
