//! How long planning takes. Limits hold in a release build: `cargo test --release -p basalt-query --lib optimize::tests::speed`.

use super::database::Place;
use super::tpch;
use cpu_time::ThreadTime;

const ROUNDS: usize = 20;

/// The least time of some rounds, in microseconds.
fn micros(place: &Place, sql: &str) -> u128 {
    let query = place.bind(sql);
    let round = |_| {
        let start = ThreadTime::now();
        assert!(crate::optimize::optimize(&query, &place.statistics).is_ok(), "{sql}");
        start.elapsed().as_micros()
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}

fn check(what: &str, taken: u128, most: u128) {
    println!("{what}: {taken} µs");
    assert!(cfg!(debug_assertions) || taken <= most, "{what} takes {taken} µs");
}

/// Tables t0, t1, … of three columns each.
fn tables(count: usize) -> Place {
    let table = |at| format!("CREATE TABLE t{at} (id int PRIMARY KEY, a int, b int);");
    Place::new(&(0..count).map(table).collect::<String>())
}

fn joined(count: usize, conditions: impl Iterator<Item = String>) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("t{at}")).collect();
    let conditions: Vec<String> = conditions.collect();
    format!("SELECT t0.b FROM {} WHERE {}", names.join(", "), conditions.join(" AND "))
}

#[test]
fn joins_are_ordered_in_time() {
    let place = tables(30);
    let chain = |count: usize| joined(count, (1..count).map(|at| format!("t{}.a = t{at}.id", at - 1)));
    let star = |count: usize| joined(count, (1..count).map(|at| format!("t0.a + {at} = t{at}.id")));
    let clique = |count: usize| joined(count, (1..count).map(|at| format!("t0.a = t{at}.a")));
    check("chain of 10", micros(&place, &chain(10)), 5_000);
    check("chain of 30", micros(&place, &chain(30)), 50_000);
    check("star of 10", micros(&place, &star(10)), 5_000);
    check("star of 30", micros(&place, &star(30)), 50_000);
    check("clique of 10", micros(&place, &clique(10)), 5_000);
    check("clique of 30", micros(&place, &clique(30)), 50_000);
}

#[test]
fn expressions_do_not_grow_without_end() {
    let place = tables(1);
    let nested = |inner: String, _| format!("SELECT a + a AS a, b FROM ({inner}) q");
    let sql = (0..30).fold("SELECT a, b FROM t0".to_string(), nested);
    check("30 sums of themselves", micros(&place, &sql), 50_000);
}

#[test]
fn tpch_is_planned_in_time() {
    let place = tpch::place();
    for number in 1..=22 {
        check(&format!("q{number}"), micros(&place, &tpch::text(number)), 2_000);
    }
}
