//! PostgreSQL's spellings, as sqlparser reads them in the end.

use super::{Statement, parse};

/// The only query of a text, written out.
fn read(sql: &str) -> String {
    let mut parsed = parse(sql).expect(sql);
    match parsed.pop().map(|parsed| parsed.statement) {
        Some(Statement::Query(query)) => query.to_string(),
        other => panic!("{sql}: {other:?}"),
    }
}

#[test]
fn constants_go_on_behind_a_line_break_only() {
    assert_eq!(read("select 'a'\n 'b' -- c\n'c'"), "SELECT 'abc'");
    assert_eq!(read("select E'a'\n'\\t'"), "SELECT E'a\\t'");
    assert_ne!(read("select 'a' 'b'"), "SELECT 'ab'");
    assert_ne!(read("select 'a' /* x */\n'b'"), "SELECT 'ab'");
}

#[test]
fn unicode_escapes_are_decoded_with_their_own_escape_character() {
    assert_eq!(read(r"select U&'d\0061t\+000061'"), "SELECT 'data'");
    assert_eq!(read(r"select U&'d!0061t!+000061' uescape '!'"), "SELECT 'data'");
    assert_eq!(read(r#"select U&"d\0061ta" from x"#), "SELECT \"data\" FROM x");
    assert!(parse(r"select U&'\00' ").is_err());
    assert!(parse(r"select U&'x' uescape '+'").is_err());
}

#[test]
fn signs_do_not_belong_to_operators() {
    assert_eq!(read("select 1>-1, 1=-1, 1<>-1, 1<=+1"), "SELECT 1 > -1, 1 = -1, 1 <> -1, 1 <= +1");
    assert_eq!(read("select a isnull"), "SELECT a IS NULL");
}

#[test]
fn words_of_other_dialects_are_names() {
    assert_eq!(read("select top, qualify from final"), "SELECT \"top\", \"qualify\" FROM \"final\"");
}

#[test]
fn rows_are_counted_by_limit() {
    assert_eq!(read("select a from t fetch first (1 + 1) rows only"), "SELECT a FROM t LIMIT ((1 + 1))");
    assert_eq!(read("select a from t offset 1 fetch next row only"), "SELECT a FROM t LIMIT (1) OFFSET 1");
}

#[test]
fn select_into_is_a_definition() {
    let parsed = parse("select 1 as a into t").expect("SELECT INTO");
    assert!(matches!(parsed[0].statement, Statement::Define(_)));
}
