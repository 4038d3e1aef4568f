use super::*;

#[test]
fn positions_are_read_and_ordered() {
    let ascending = ["0/0", "0/1", "16/B374D848", "7FFFFFFF/FFFFFFFF", "80000000/0", "FFFFFFFF/FFFFFFFF"];
    let values = ascending.map(|text| parse_lsn(text).unwrap());
    assert!(values.is_sorted());
    for (text, value) in ascending.iter().zip(values) {
        let mut out = Vec::new();
        write_lsn(value, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), *text);
        assert_eq!(lsn_at(&lsn_bytes(value)), Ok(value));
    }
    for text in ["", "/", "1/", "/1", "0/0 ", "123456789/0", "0x1/2", "-1/0", "1/2/3"] {
        assert_eq!(parse_lsn(text).map_err(|error| error.sqlstate), Err("22P02"), "{text}");
    }
}

#[test]
fn numbers_are_read_as_c_reads_them() {
    for (text, number) in [
        ("010", 8),
        ("0xff", 255),
        ("-1", u64::MAX),
        ("", 0),
        ("asdf", 0),
        (" 12 x", 12),
        ("99999999999999999999999", u64::MAX),
        ("-99999999999999999999", u64::MAX),
        ("08", 0),
        ("0x", 0),
    ] {
        assert_eq!(parse_number(text), number, "{text}");
    }
}
