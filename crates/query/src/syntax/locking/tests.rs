use super::*;
use crate::syntax::{Statement, parse};

/// The clauses of the outermost query, and its LIMIT.
#[track_caller]
fn check(sql: &str, expected: &[(RowLock, OnLocked, &[&str])], limit: Option<&str>) {
    let parsed = parse(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let Statement::Query(query) = &parsed[0].statement else { panic!("{sql} is no query") };
    let clauses: Vec<LockingClause> = query.locks.iter().map(LockingClause::of).collect();
    let expected: Vec<LockingClause> = expected
        .iter()
        .map(|(strength, on_locked, of)| LockingClause {
            strength: *strength,
            on_locked: *on_locked,
            of: of.iter().map(ToString::to_string).collect(),
        })
        .collect();
    assert_eq!(clauses, expected, "{sql}");
    assert_eq!(query.limit_clause.as_ref().map(|limit| limit.to_string().trim().to_string()).as_deref(), limit);
}

#[test]
fn clauses_are_read_in_every_form() {
    check("SELECT 1 FROM t FOR UPDATE", &[(RowLock::Update, OnLocked::Wait, &[])], None);
    check("SELECT 1 FROM t FOR share NOWAIT", &[(RowLock::Share, OnLocked::Fail, &[])], None);
    check(
        "SELECT 1 FROM t, u FOR NO KEY UPDATE OF T, \"U\" SKIP LOCKED FOR KEY SHARE OF u",
        &[(RowLock::NoKeyUpdate, OnLocked::Skip, &["t", "U"]), (RowLock::KeyShare, OnLocked::Wait, &["u"])],
        None,
    );
    check("SELECT 1 FROM t FOR READ ONLY", &[], None);
    check("SELECT substring('abc' FROM 1 FOR 2) FROM t", &[], None);
}

#[test]
fn a_limit_may_follow() {
    let skip: &[(RowLock, OnLocked, &[&str])] = &[(RowLock::Update, OnLocked::Skip, &[])];
    check("SELECT 1 FROM t ORDER BY 1 FOR UPDATE SKIP LOCKED LIMIT 1", skip, Some("LIMIT 1"));
    check("(SELECT 1 FROM t LIMIT (SELECT 1 FROM u FOR SHARE) FOR UPDATE SKIP LOCKED)", &[], None);
    check("SELECT 1 FROM t OFFSET 2 FOR UPDATE SKIP LOCKED", skip, Some("OFFSET 2"));
    check("SELECT 1 FROM t WHERE id IN (SELECT 1 FROM u FOR SHARE LIMIT 2) LIMIT 3", &[], Some("LIMIT 3"));
}

#[test]
fn a_clause_that_is_cut_off_is_an_error() {
    for sql in ["SELECT 1 FROM t FOR", "SELECT 1 FROM t FOR UPDATE OF", "SELECT 1 FROM t FOR UPDATE SKIP"] {
        assert_eq!(parse(sql).map(|_| ()).map_err(|error| error.sqlstate), Err("42601"), "{sql}");
    }
}

/// A view's text is written in the canonical form and read again.
#[test]
fn the_canonical_form_is_read_as_itself() {
    check(
        "SELECT 1 FROM t FOR UPDATE OF \"FOR KEY SHARE\".t NOWAIT",
        &[(RowLock::KeyShare, OnLocked::Fail, &["t"])],
        None,
    );
}
