//! Operators against a PostgreSQL 15 server's answers: see [`crate::functions::tests`].

#[test]
fn operators_answer_as_postgresql() {
    crate::functions::tests::check(include_str!("tests/cases.txt"));
}
