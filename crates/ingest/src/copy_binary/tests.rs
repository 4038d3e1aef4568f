use super::*;
use arrow_array::{Decimal128Array, Int32Array, StringArray};
use std::sync::Arc;

fn batch(arrays: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(arrays.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

fn encode(columns: &[(&str, DataType)], batch: &RecordBatch) -> Result<Vec<u8>> {
    let encoder = CopyEncoder::new(columns.iter().map(|(name, ty)| (name.to_string(), ty.clone())));
    let mut out = Vec::new();
    encoder.begin(&mut out);
    encoder.rows(batch, &mut out)?;
    encoder.end(&mut out);
    Ok(out)
}

#[test]
fn rows_are_framed_and_values_take_the_tables_types() {
    let batch = batch(vec![
        ("a", Arc::new(Int32Array::from(vec![Some(7), None]))),
        ("b", Arc::new(StringArray::from(vec!["x", "yz"]))),
    ]);
    let out = encode(&[("a", DataType::Int8), ("b", DataType::Text)], &batch).unwrap();
    let mut expected = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0".to_vec();
    expected.extend(b"\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x07\0\0\0\x01x");
    expected.extend(b"\0\x02\xff\xff\xff\xff\0\0\0\x02yz\xff\xff");
    assert_eq!(out, expected);
}

#[test]
fn decimals_keep_their_scale_on_the_wire() {
    let values = Decimal128Array::from(vec![12345]).with_precision_and_scale(15, 2).unwrap();
    let batch = batch(vec![("a", Arc::new(values))]);
    let out = encode(&[("a", DataType::Numeric(None))], &batch).unwrap();
    // 123.45: two digits (123, 4500), weight 0, positive, display scale 2.
    let expected = b"\0\x01\0\0\0\x0c\0\x02\0\0\0\0\0\x02\0\x7b\x11\x94\xff\xff";
    assert_eq!(&out[19..], expected);
}

#[test]
fn values_that_do_not_fit_name_their_column() {
    let batch = batch(vec![("big", Arc::new(Int32Array::from(vec![70_000])))]);
    let error = encode(&[("big", DataType::Int2)], &batch).unwrap_err();
    assert!(error.to_string().starts_with("column \"big\" of type Int32 does not become smallint"), "{error}");
}
