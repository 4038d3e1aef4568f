use super::*;

#[test]
fn masks_of_any_length_are_counted_and_listed() {
    for len in [0, 1, 63, 64, 65, 127, 128, 1000] {
        let mask: Vec<u8> = (0..len).map(|row| u8::from(row % 3 == 1)).collect();
        let expected: Vec<u32> = (0..len as u32).filter(|row| row % 3 == 1).collect();
        assert_eq!(rows(&mask), expected);
        assert_eq!(count(&mask), expected.len());
    }
    assert_eq!(count(&[1; 3000]), 3000);
}

#[test]
fn masks_are_listed_alike_with_and_without_wide_instructions() {
    for len in [0, 1, 15, 16, 17, 64, 80, 8192] {
        for every in [1, 2, 7, 16, 61, 5000] {
            for from in [0, 1, 15] {
                let mask: Vec<u8> = (0..len).map(|row| u8::from(row % every == from % every)).collect();
                assert_eq!(rows(&mask), found(&mask), "{len} rows, every {every} from {from}");
            }
        }
    }
}

#[test]
fn bits_clear_rows_at_any_offset() {
    let bits = BooleanBuffer::collect_bool(300, |at| at % 7 != 0).slice(5, 200);
    let mut mask = vec![1; 200];
    clear_unset(&bits, &mut mask);
    (0..200).for_each(|row| assert_eq!(mask[row] == 1, (row + 5) % 7 != 0, "row {row}"));
}
