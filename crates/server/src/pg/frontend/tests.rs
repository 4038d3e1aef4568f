use super::*;
use smallvec::smallvec;

fn error(result: Result<Frontend<'_>, SqlError>) -> (&'static str, String) {
    let error = result.unwrap_err();
    (error.sqlstate, error.message)
}

#[test]
fn messages_are_taken_apart() {
    assert_eq!(parse(b'Q', b"SELECT 1\0").unwrap(), Frontend::Query { sql: "SELECT 1" });
    assert_eq!(
        parse(b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17").unwrap(),
        Frontend::Parse { statement: "s", sql: "SELECT $1", param_oids: vec![23] }
    );
    assert_eq!(
        parse(b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0").unwrap(),
        Frontend::Bind(Bind {
            portal: "p",
            statement: "s",
            param_formats: smallvec![1],
            params: smallvec![Some(&b"ab"[..]), None],
            result_formats: smallvec![],
        })
    );
    assert_eq!(parse(b'E', b"\0\0\0\0\x05").unwrap(), Frontend::Execute { portal: "", max_rows: 5 });
    assert_eq!(parse(b'E', b"\0\xff\xff\xff\xff").unwrap(), Frontend::Execute { portal: "", max_rows: 0 });
    assert_eq!(parse(b'D', b"Sx\0").unwrap(), Frontend::Describe { target: Target::Statement, name: "x" });
    assert_eq!(parse(b'C', b"P\0").unwrap(), Frontend::Close { target: Target::Portal, name: "" });
}

#[test]
fn every_cut_of_a_bind_is_a_protocol_violation() {
    let whole = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\x01";
    for len in 0..whole.len() {
        assert_eq!(error(parse(b'B', &whole[..len])).0, "08P01", "cut at {len}");
    }
    assert!(parse(b'B', whole).is_ok());
    let mut longer = whole.to_vec();
    longer.push(0);
    assert_eq!(error(parse(b'B', &longer)).0, "08P01");
}

#[test]
fn hostile_counts_and_lengths_are_protocol_violations() {
    // 65,535 parameters in a short message; a parameter of length -2; one longer than the message.
    assert_eq!(error(parse(b'B', b"\0\0\0\0\xff\xff\0\0")).0, "08P01");
    assert_eq!(error(parse(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe\0\0")).0, "08P01");
    assert_eq!(error(parse(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0")).0, "08P01");
    assert_eq!(error(parse(b'D', b"Xa\0")).0, "08P01");
    assert_eq!(error(parse(b'z', b"")).0, "08P01");
}

#[test]
fn text_that_is_not_utf8_is_the_statements_error_only() {
    let failed = parse(b'Q', b"SELECT '\xff'\0").unwrap_err();
    assert_eq!(failed.sqlstate, "22021");
    assert_eq!(failed.severity, basalt_query::Severity::Error);
    assert_eq!(failed.message, "invalid byte sequence for encoding \"UTF8\": 0xff");
}
