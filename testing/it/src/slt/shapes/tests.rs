//! What makes a shape, and what does not.

use super::Words;

fn shape(sql: &str) -> String {
    let kept = ["select", "from", "where", "lower", "values", "insert", "into", "int4", "and"];
    Words { kept: kept.iter().map(ToString::to_string).collect() }.shape(sql)
}

#[test]
fn names_and_literals_do_not_count() {
    assert_eq!(shape("select a from t where b = 1"), shape("SELECT xx FROM \"T\" WHERE y = 'it''s'"));
    assert_eq!(shape("select lower(a) -- why"), "select lower ( n )");
    assert_ne!(shape("select lower(a)"), shape("select upper_(a)::int4"));
    assert_ne!(shape("select a < b"), shape("select a <= b"));
}

#[test]
fn lists_count_once() {
    assert_eq!(shape("select a, b, c from t"), shape("select a from t"));
    assert_eq!(shape("insert into t values (1, 'a'), (2, 'b'), (3, 'c')"), shape("insert into t values (5)"));
    assert_eq!(shape("select $$a 'b$$, $x$ $$ $x$, e'a\\n', $1"), shape("select 1"));
}
