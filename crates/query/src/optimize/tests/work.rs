//! How many joins are looked at before a query has its order: what planning costs is bounded by that, on any machine.

use super::database::Place;
use crate::optimize::graph;

/// What is looked at of one region, at most: the pairs of a small one; of a large one those of the greedy order and of
/// three lines of 64 leaves.
const LOOKED_MAX: usize = 150_000;

fn tables(count: usize) -> Place {
    let table = |at| format!("CREATE TABLE t{at} (id int PRIMARY KEY, a int, b int);");
    Place::new(&(0..count).map(table).collect::<String>())
}

/// The joins that were looked at until the query had its order.
fn looked(place: &Place, count: usize, conditions: &[String]) -> usize {
    let names: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let sql = format!("SELECT t0.b FROM {} WHERE {}", names.join(", "), conditions.join(" AND "));
    let before = graph::looked();
    assert!(place.optimize(&sql).is_ok(), "{sql}");
    graph::looked() - before
}

fn chain(count: usize) -> Vec<String> {
    (1..count).map(|at| format!("t{}.a = t{at}.id", at - 1)).collect()
}

fn star(count: usize) -> Vec<String> {
    (1..count).map(|at| format!("t0.a + {at} = t{at}.id")).collect()
}

fn clique(count: usize) -> Vec<String> {
    (0..count).flat_map(|a| (a + 1..count).map(move |b| format!("t{a}.a + {b} = t{b}.b + {a}"))).collect()
}

#[test]
fn what_is_looked_at_is_bounded() {
    let place = tables(60);
    let check = |count: usize, conditions: &[String], most: usize| {
        let looked = looked(&place, count, conditions);
        assert!(looked <= most, "{looked} joins of {count} tables");
    };
    // All pairs: (n³ - n) / 6 of a chain, (n - 1) 2ⁿ⁻² of a star.
    check(10, &chain(10), 165);
    check(10, &star(10), 9 << 8);
    check(30, &chain(30), 4495);
    // Of a clique of ten there are too many.
    check(10, &clique(10), 2_000);
    check(30, &star(30), 20_000);
    for conditions in [chain(60), star(60)] {
        check(60, &conditions, LOOKED_MAX);
    }
}
