use super::*;
use crate::eval::vector::{Vector, VectorBuilder};
use arrow_array::Array;
use arrow_array::cast::AsArray;
use basalt_types::{DataType, Datum};

fn refusal(result: Result<()>) -> (&'static str, String) {
    let error = result.expect_err("there is no room");
    (error.sqlstate, error.detail.unwrap_or_default())
}

#[test]
fn values_of_a_batch_beyond_its_room_are_refused() {
    let mut room = Room::new(10);
    assert_eq!(room.take(6), Ok(()));
    assert_eq!(room.take(4), Ok(()));
    let detail = "The values of one batch of rows take 11 bytes; they may take 10.";
    assert_eq!(refusal(room.take(1)), ("53200", detail.to_string()));
    assert_eq!(refusal(room.take(usize::MAX)).0, "53200");
}

#[test]
fn one_value_of_the_greatest_length_has_room_and_two_have_not() {
    let mut room = Room::of_batch();
    assert_eq!(room.take(VALUE_BYTES_MAX), Ok(()));
    assert_eq!(room.take(1 << 20), Ok(()));
    assert_eq!(refusal(room.take(VALUE_BYTES_MAX)).0, "53200");
    assert_eq!(check_longer(VALUE_BYTES_MAX - 1, 1), Ok(()));
    assert_eq!(refusal(check_longer(VALUE_BYTES_MAX, 1)).0, "54000");
}

#[test]
fn builders_of_batches_count_what_they_collect() {
    for ty in [DataType::Text, DataType::Bytea] {
        let mut builder = VectorBuilder::within(&ty, 3, Room::new(10));
        assert_eq!(builder.push(&Datum::text("sixsix")), Ok(()));
        assert_eq!(builder.push(&Datum::Null), Ok(()));
        assert_eq!(refusal(builder.push(&Datum::text("fives"))).0, "53200");
    }
    let mut texts = crate::functions::arg::TextBuilder::within(2, Room::new(10));
    assert_eq!(texts.push("sixsix"), Ok(()));
    assert_eq!(refusal(texts.push("fives")).0, "53200");
}

#[test]
fn rows_of_one_constant_share_its_bytes() {
    let long = "x".repeat(1 << 16);
    let array = Vector::Const(Datum::text(&long)).into_array(&DataType::Text, 8_192).unwrap();
    let texts = array.as_string_view();
    assert_eq!((texts.len(), texts.value(8_191)), (8_192, long.as_str()));
    assert!(array.get_buffer_memory_size() < 1 << 20, "{}", array.get_buffer_memory_size());
}
