use super::*;
use crate::column::KeptPlan;
use crate::plan::{Kept, Plan};

fn kept(queries: &KnownQueries, text: &str, around: &Arc<str>, catalog_version: u64) {
    let (row, columnar) = (Kept::default(), KeptPlan::default());
    let (subqueries, ctes, aliases) = Default::default();
    let query = Query {
        plan: Plan::Unit,
        columns: Vec::new(),
        subqueries,
        ctes,
        tables: Vec::new(),
        aliases,
        row_locks: Vec::new(),
        row,
        columnar,
    };
    queries.keep(KnownQuery {
        text: text.into(),
        around: around.clone(),
        catalog_version,
        parsed: Arc::new(crate::syntax::parse("select 1").unwrap().remove(0)),
        query: Arc::new(query),
    });
}

fn is_known(queries: &KnownQueries, text: &str, around: &Arc<str>, catalog_version: u64) -> bool {
    matches!(queries.look_up(text, around, catalog_version), Coming::Known(_))
}

#[test]
fn a_text_is_worth_keeping_when_it_comes_again() {
    let (queries, around) = (KnownQueries::default(), Arc::from("here"));
    assert!(matches!(queries.look_up("select 1", &around, 1), Coming::First));
    assert!(matches!(queries.look_up("select 1", &around, 1), Coming::Again));
    kept(&queries, "select 1", &around, 1);
    assert!(is_known(&queries, "select 1", &around, 1));
    for other in ["insert into t values (1)", "update t set a = 1"] {
        assert!((0..3).all(|_| matches!(queries.look_up(other, &around, 1), Coming::First)));
    }
}

#[test]
fn a_text_is_known_in_its_catalog_and_surroundings_alone() {
    let (queries, here, there) = (KnownQueries::default(), Arc::from("here"), Arc::from("there"));
    kept(&queries, "select 1", &here, 1);
    assert!(is_known(&queries, "select 1", &here, 1) && is_known(&queries, "select 1", &Arc::from("here"), 1));
    assert!(!is_known(&queries, "select 1", &there, 1));
    assert!(!is_known(&queries, "select 1", &here, 2));
    assert!(!is_known(&queries, "select  1", &here, 1));
    kept(&queries, "select 1", &here, 2);
    assert!(is_known(&queries, "select 1", &here, 2) && !is_known(&queries, "select 1", &here, 1));
}

#[test]
fn texts_that_were_not_used_for_longest_go_when_there_are_too_many() {
    let (queries, around) = (KnownQueries::default(), Arc::from("here"));
    let text = |at: usize| format!("select {at} {}", " ".repeat(5000));
    let all = 3 * BYTES_MAX / 5000;
    for at in 0..all {
        kept(&queries, &text(at), &around, 1);
        assert!(is_known(&queries, &text(at), &around, 1) && is_known(&queries, &text(0), &around, 1));
        let known = queries.known.lock();
        assert!(known.bytes <= BYTES_MAX && known.bytes >= known.entries.len() * 5000);
    }
    assert!(!is_known(&queries, &text(1), &around, 1) && is_known(&queries, &text(all - 1), &around, 1));
    for at in 0..2 * ENTRIES_MAX {
        kept(&queries, &format!("select {at}"), &around, 1);
        assert!(queries.known.lock().entries.len() <= ENTRIES_MAX);
    }
}
