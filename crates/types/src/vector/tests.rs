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
    let array = vector.to_array();
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
    assert_eq!(vector.to_array().null_count(), 2);
}
