use super::*;

#[test]
fn walkers_find_parts_as_they_are_written() {
    let text = r#"{"a": [1, {"x": "]}\""}, null], "bb": {"c": 2.50}}"#;
    let found: Vec<_> = members(text).collect();
    assert_eq!(found, [("\"a\"", r#"[1, {"x": "]}\""}, null]"#), ("\"bb\"", r#"{"c": 2.50}"#)]);
    let found: Vec<_> = elements(found[0].1).collect();
    assert_eq!(found, ["1", r#"{"x": "]}\""}"#, "null"]);
    assert_eq!(member(text, "bb"), Some(r#"{"c": 2.50}"#));
    assert_eq!(member(text, "b"), None);
    assert_eq!(element("[1, 2, 3]", -1), Some("3"));
    assert_eq!(element("[1, 2, 3]", -4), None);
    assert_eq!(elements(" [ ] ").count(), 0);
    assert_eq!(elements(" [ 1 , [ 2 ] ] ").collect::<Vec<_>>(), ["1", "[ 2 ]"]);
    assert_eq!(kind(" true"), Kind::Bool);
}

#[test]
fn strings_unquote_with_pairs() {
    assert_eq!(unquote(r#""a\n\"\u00e9\ud83d\ude04\/""#), "a\n\"é😄/");
    assert_eq!(unquote(r#""\ud83d""#), "\u{fffd}");
}

#[test]
fn keys_sort_as_postgresql_orders_jsonb() {
    let ascending = [
        "[]",
        "null",
        "\"\"",
        "\"a\"",
        "\"ab\"",
        "\"b\"",
        "-1000000",
        "-1.5",
        "-1",
        "0",
        "0.0001",
        "0.5",
        "1",
        "1.01",
        "2",
        "10",
        "10000",
        "10000.5",
        "false",
        "true",
        "[null]",
        "[[]]",
        "[{}]",
        "[1, 2]",
        "[2, 1]",
        "[1, 1, 1]",
        "{}",
        r#"{"a": 1}"#,
        r#"{"a": 2}"#,
        r#"{"a": []}"#,
        r#"{"aa": 1}"#,
        r#"{"b": 0}"#,
        r#"{"a": 1, "b": 2}"#,
    ];
    for pair in ascending.windows(2) {
        assert_eq!(compare(pair[0], pair[1]), Ordering::Less, "{pair:?}");
    }
    assert_eq!(compare("[1.0, {\"a\": 2.50}]", "[1, {\"a\": 2.5}]"), Ordering::Equal);
    for text in ascending {
        let mut key = Vec::new();
        encode_key(text, &mut key);
        key.push(7);
        let mut input = key.as_slice();
        assert_eq!(decode_key(&mut input).as_deref(), Some(text));
        assert_eq!(input, [7]);
    }
}

#[test]
fn damaged_text_and_keys_end_early() {
    for bad in [
        "", "{", "[", "{\"a\"", "{\"a\":", "\"\\", "[1,", "}", "]", ",", "{1}", "[}", "[:", "[1,}", "[1}", "{\"a\":}",
        "{\"a\":,",
    ] {
        elements(bad).count();
        members(bad).count();
        member(bad, "b");
        element(bad, 3);
        tokens(bad).count();
        encode_key(bad, &mut Vec::new());
        unquote(bad);
    }
    for bad in [&[][..], &[0x11, 0, 0, 0, 1], &[0x03, b'a'], &[0x04, 0x30], &[0x99], &[0x10, 0xff, 0xff, 0xff, 0xff]] {
        assert_eq!(decode_key(&mut &*bad), None, "{bad:?}");
    }
}
