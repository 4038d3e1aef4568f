use super::*;
use std::panic::catch_unwind;

fn array(values: &[&[u8]]) -> BinaryViewArray {
    values.iter().map(|value| Some(*value)).collect()
}

#[test]
fn texts_of_any_bytes_come_back() {
    let long = "abcdefghijklmnopqrstuvwxyz".repeat(9);
    for values in [
        vec![],
        vec!["", "a", "twelve bytes"],
        vec!["short", &long],
        vec!["ß"],
        vec!["ascii", "größer als zwölf Bytes"],
    ] {
        let bytes: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        assert!(texts(&array(&bytes)).iter().flatten().eq(values.iter().copied()));
    }
}

#[test]
fn nulls_and_slices_keep_their_place() {
    let values: BinaryViewArray =
        [Some(&b"one"[..]), None, Some(&b"a value that is not inline"[..])].into_iter().collect();
    let expected = [None, Some("a value that is not inline")];
    assert!(texts(&values.slice(1, 2)).iter().eq(expected));
}

#[test]
fn what_is_no_text_is_noticed() {
    let long = [&b"more than twelve bytes, the last of which is "[..], &[0xff]].concat();
    for broken in [&[0x80][..], &b"inline\xc3"[..], &long] {
        let values = array(&[b"before", broken]);
        assert!(catch_unwind(|| texts(&values)).is_err(), "{broken:?}");
    }
    // Cut in the middle of a character of a text that is whole.
    let whole = array(&["a text with an ä in the middle".as_bytes()]);
    let view = *whole.views().first().unwrap();
    let cut = view & !u128::from(u32::MAX) | 16;
    let cut = BinaryViewArray::try_new(vec![cut].into(), whole.data_buffers().to_vec(), None).unwrap();
    assert_eq!(cut.value(0).last(), Some(&0xc3));
    assert!(catch_unwind(|| texts(&cut)).is_err());
}

#[test]
fn positions_are_taken_in_their_order() {
    let values = array(&[b"one", b"a value that is not inline", b"three"]);
    let nulls = Some(NullBuffer::from(vec![true, true, false, true]));
    let taken = take(&values, &[2, 1, 0, 1], nulls);
    let long = Some(&b"a value that is not inline"[..]);
    assert!(taken.iter().eq([Some(&b"three"[..]), long, None, long]));
    assert!(take(&array(&[]), &[0, 7], None).iter().eq([Some(&b""[..]); 2]));
}
