//! Queries that nobody thought of: made by chance over small tables with nulls, subqueries within subqueries.
//!
//! `OPTIMIZER_SEEDS=100..200` tries others than the few that every run tries.

use super::answers::{Outcome, TABLES, compare, interpreter};
use super::database::Place;
use super::eager::many_rows_per_value;

const SEEDS: std::ops::Range<u64> = 0..4;
const QUERIES_PER_SEED: usize = 60;

struct Maker {
    state: u64,
    aliases: usize,
}

/// Columns that a condition may name.
type Scope = Vec<String>;

impl Maker {
    /// SplitMix64.
    fn number(&mut self, below: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % below as u64) as usize
    }

    fn one_of<'t>(&mut self, all: &[&'t str]) -> &'t str {
        all[self.number(all.len())]
    }

    fn column(&mut self, scope: &Scope) -> String {
        scope[self.number(scope.len())].clone()
    }

    fn relation(&mut self, depth: usize) -> (String, Scope) {
        self.aliases += 1;
        let name = format!("t{}", self.aliases);
        let (text, columns): (String, &[&str]) = match self.number(if depth > 0 { 9 } else { 5 }) {
            0 | 1 => ("a".into(), &["id", "x", "y"]),
            2 => ("b".into(), &["id", "x", "y"]),
            3 => ("c".into(), &["k1", "k2", "x", "z"]),
            4 => ("d".into(), &["x", "y"]),
            5 => {
                let (from, scope) = self.relation(0);
                let (key, value) = (self.column(&scope), self.column(&scope));
                (format!("(SELECT {key} AS x, sum({value}) AS y FROM {from} GROUP BY {key})"), &["x", "y"])
            }
            6 => {
                let (from, scope) = self.relation(0);
                let (x, y) = (self.column(&scope), self.column(&scope));
                let condition = self.condition(&scope, &Scope::new(), depth - 1);
                let all = self.one_of(&["", "DISTINCT "]);
                (format!("(SELECT {all}{x} AS x, coalesce({y}, 3) AS y FROM {from} WHERE {condition})"), &["x", "y"])
            }
            7 => ("(SELECT x, y FROM a UNION ALL SELECT y, x FROM d)".into(), &["x", "y"]),
            _ => {
                let (from, scope) = self.sources(2, depth - 1);
                let (x, y) = (self.column(&scope), self.column(&scope));
                (format!("(SELECT {x} AS x, {y} AS y FROM {from})"), &["x", "y"])
            }
        };
        let scope = columns.iter().map(|column| format!("{name}.{column}")).collect();
        (format!("{text} {name}"), scope)
    }

    /// Up to so many relations, joined.
    fn sources(&mut self, most: usize, depth: usize) -> (String, Scope) {
        let (mut text, mut scope) = self.relation(depth);
        for _ in 0..self.number(most) {
            let (other, columns) = self.relation(depth);
            let (a, b) = (self.column(&scope), self.column(&columns));
            scope.extend(columns);
            let kind = self.one_of(&["JOIN", "JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", ","]);
            text = match kind {
                "," => format!("{text} CROSS JOIN {other}"),
                "FULL JOIN" => format!("{text} FULL JOIN {other} ON {a} = {b}"),
                kind => {
                    let more = match self.number(3) {
                        0 => format!(" AND {}", self.condition(&scope, &Scope::new(), 0)),
                        _ => String::new(),
                    };
                    format!("{text} {kind} {other} ON {a} = {b}{more}")
                }
            };
        }
        (text, scope)
    }

    fn value(&mut self, scope: &Scope, outer: &Scope) -> String {
        let column = match outer.is_empty() || self.number(3) > 0 {
            true => self.column(scope),
            false => self.column(outer),
        };
        match self.number(8) {
            0 => format!("{}", self.number(6)),
            1 => format!("{column} + 1"),
            2 => format!("coalesce({column}, 2)"),
            _ => column,
        }
    }

    fn condition(&mut self, scope: &Scope, outer: &Scope, depth: usize) -> String {
        let (a, b) = (self.value(scope, outer), self.value(scope, outer));
        let op = self.one_of(&["=", "=", "=", "<", "<=", ">", "<>"]);
        match self.number(if depth > 0 { 16 } else { 8 }) {
            0..=3 => format!("{a} {op} {b}"),
            4 => format!("{a} IS {}NULL", self.one_of(&["", "NOT "])),
            5 => format!("{a} IN ({}, {})", self.number(5), self.number(20)),
            6 => {
                let (one, other) = (self.condition(scope, outer, depth), self.condition(scope, outer, depth));
                format!("({one} OR {other})")
            }
            7 => format!("NOT ({})", self.condition(scope, outer, depth)),
            8..=10 => {
                let inner = self.subquery(scope, "1", depth - 1);
                format!("{}EXISTS ({inner})", self.one_of(&["", "NOT "]))
            }
            11 | 12 => {
                let inner = self.subquery(scope, "", depth - 1);
                format!("{a} {}IN ({inner})", self.one_of(&["", "NOT "]))
            }
            13 => {
                let inner = self.subquery(scope, "", depth - 1);
                format!("{a} {op} {} ({inner})", self.one_of(&["ANY", "ALL"]))
            }
            _ => {
                let call = self.one_of(&["max", "min", "count", "sum"]);
                let inner = self.subquery(scope, call, depth - 1);
                format!("{a} {op} ({inner})")
            }
        }
    }

    /// `what`: a constant, an aggregate, or nothing for a column.
    fn subquery(&mut self, outer: &Scope, what: &str, depth: usize) -> String {
        let (from, scope) = self.sources(2, depth);
        let output = match what {
            "" => self.column(&scope),
            "1" => "1".into(),
            call => format!("{call}({})", self.column(&scope)),
        };
        let correlation = match self.number(4) {
            0 => String::new(),
            _ => format!("{} = {} AND ", self.column(&scope), self.column(outer)),
        };
        let condition = self.condition(&scope, outer, depth);
        format!("SELECT {output} FROM {from} WHERE {correlation}{condition}")
    }

    fn query(&mut self) -> String {
        let (from, scope) = self.sources(4, 2);
        let conditions: Vec<String> = (0..self.number(4)).map(|_| self.condition(&scope, &Scope::new(), 2)).collect();
        let filter = if conditions.is_empty() { String::new() } else { format!(" WHERE {}", conditions.join(" AND ")) };
        let (a, b) = (self.column(&scope), self.value(&scope, &Scope::new()));
        match self.number(5) {
            0 => {
                let (call, other) = (self.one_of(&["sum", "count", "min"]), self.column(&scope));
                let groups = self.one_of(&["", ", {other}"]).replace("{other}", &other);
                format!("SELECT {a}, count(*), {call}({b}) FROM {from}{filter} GROUP BY {a}{groups}")
            }
            1 => format!("SELECT DISTINCT {a}, {b} FROM {from}{filter}"),
            2 => {
                let inner = self.subquery(&scope, "count", 1);
                format!("SELECT {a}, ({inner}) FROM {from}{filter}")
            }
            3 => {
                let inner = self.subquery(&scope, "", 1);
                format!("SELECT {a}, {b} IN ({inner}) FROM {from}{filter}")
            }
            _ => format!("SELECT {} FROM {from}{filter}", scope.join(", ")),
        }
    }
}

fn seeds() -> std::ops::Range<u64> {
    let given = std::env::var("OPTIMIZER_SEEDS").ok();
    let parsed = given.and_then(|text| {
        let (first, end) = text.split_once("..")?;
        Some(first.parse().ok()?..end.parse().ok()?)
    });
    parsed.unwrap_or(SEEDS)
}

#[test]
fn trees_of_random_queries_give_what_they_give() {
    check(Place::new(TABLES));
}

#[test]
fn they_do_where_groups_are_made_early() {
    check(many_rows_per_value());
}

fn check(mut place: Place) {
    let interpreter = interpreter(&mut place);
    let (mut same, mut without, mut failed) = (0, 0, 0);
    for seed in seeds() {
        let mut maker = Maker { state: seed, aliases: 0 };
        for _ in 0..QUERIES_PER_SEED {
            let sql = maker.query();
            match compare(&mut place, &interpreter, &sql) {
                Outcome::Same => same += 1,
                Outcome::NoTree => {
                    println!("no tree: {sql}");
                    without += 1;
                }
                Outcome::Failed => failed += 1,
            }
        }
    }
    println!("same {same}, without a tree {without}, failed {failed}");
    assert!(same > 10 * without);
}
