use super::*;

#[test]
fn an_error_carries_its_fields_and_drops_zero_bytes() {
    let mut out = Output::default();
    let mut error = SqlError::new("42P01", "no \0table").with_hint("make it");
    error.position = Some(15);
    out.error(&error);
    let expected = b"SERROR\0VERROR\0C42P01\0Mno table\0Hmake it\0P15\0\0";
    assert_eq!(out.buf[0], b'E');
    assert_eq!(out.buf[1..5], (expected.len() as u32 + 4).to_be_bytes());
    assert_eq!(&out.buf[5..], expected);
    out.buf.clear();
    out.error(&SqlError::notice(Severity::Warning, "25001", "already"));
    assert_eq!(out.buf[0], b'N');
    out.buf.clear();
    out.error(&SqlError::not_supported("no").with_routine("RevalidateCachedQuery"));
    assert_eq!(&out.buf[5..], b"SERROR\0VERROR\0C0A000\0Mno\0RRevalidateCachedQuery\0\0");
}

#[test]
fn a_row_description_tells_type_length_and_modifier() {
    let mut out = Output::default();
    let ty = DataType::Varchar(Some(5));
    let typmod = ty.typmod();
    out.row_description(&[ResultColumn { name: "a".into(), ty, typmod, table_oid: 7, column_no: 2, format: 1 }]);
    let expected: &[u8] = b"T\0\0\0\x1a\0\x01a\0\0\0\0\x07\0\x02\0\0\x04\x13\xff\xff\0\0\0\x09\0\x01";
    assert_eq!(out.buf, expected);
}

#[tokio::test]
async fn a_dropped_flush_goes_on_where_it_stopped() {
    let (mut near, mut far) = tokio::io::duplex(10);
    let mut out = Output::default();
    out.copy_data(&[1; 25]);
    // The pipe takes ten bytes, then waits: the flush is dropped there.
    assert!(tokio::time::timeout(std::time::Duration::from_millis(20), out.flush(&mut near)).await.is_err());
    let reader = tokio::spawn(async move {
        let mut all = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut far, &mut all).await.unwrap();
        all
    });
    out.flush(&mut near).await.unwrap();
    drop(near);
    let all = reader.await.unwrap();
    assert_eq!(all.len(), 30);
    assert_eq!(&all[..5], b"d\0\0\0\x1d");
}
