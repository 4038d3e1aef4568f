//! Groups below joins: where they may be made there, and that nothing else comes of it.

use super::answers::{NAMES, Outcome, TABLES, compare, interpreter};
use super::database::Place;
use super::show::show;
use crate::optimize::facts::{ColumnFacts, TableFacts};

/// Tables of which every value is said to be there many times.
pub fn many_rows_per_value() -> Place {
    let mut place = Place::new(TABLES);
    for name in NAMES {
        let table = place.table(name);
        let mut facts = TableFacts { rows: 10_000.0, ..TableFacts::default() };
        for column in table.live_columns() {
            facts.columns.insert(column.id, ColumnFacts { distinct: Some(10.0), ..ColumnFacts::default() });
        }
        place.statistics.tables.insert(table.id, facts);
    }
    place
}

/// Queries whose groups are made before a join.
const BEFORE: &[&str] = &[
    "SELECT a.id, a.s, count(*), sum(d.y), min(d.y) FROM a JOIN d ON a.id = d.x GROUP BY a.id, a.s",
    "SELECT d.x, a.s, count(*) FROM a JOIN d ON a.id = d.x GROUP BY d.x, a.id",
    "SELECT a.id + 1, count(*), count(DISTINCT d.y), sum(d.y) FILTER (WHERE d.y > 1) FROM a, d WHERE a.id = d.x GROUP BY a.id",
    "SELECT a.id, d.y, count(*) FROM a JOIN d ON a.id = d.x GROUP BY a.id, d.y",
    "SELECT a.id, d.y + 1, count(*) FROM a JOIN d ON a.id = d.x GROUP BY a.id, d.y + 1",
    "SELECT a.id, coalesce(a.s, 'none'), count(*) FROM a JOIN d ON a.id = d.x GROUP BY a.id, coalesce(a.s, 'none')",
    "SELECT a.id, a.x, sum(d.y + 1) FROM d JOIN a ON a.id = d.x WHERE d.y < 3 GROUP BY a.id, a.x",
    // Rows of the other side that nobody meets.
    "SELECT a.id, a.s, count(d.y), sum(d.y), max(d.x) FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id, a.s",
    "SELECT a.id, d.y, count(d.x) FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id, d.y",
    "SELECT d.x, a.s, count(*), sum(d.y) FROM d LEFT JOIN a ON a.id = d.x GROUP BY d.x, a.s",
    // Through several joins.
    "SELECT a.id, a.s, b.s, count(*), sum(d.y) FROM a JOIN b ON a.x = b.id JOIN d ON d.x = a.id GROUP BY a.id, a.s, b.s",
    "SELECT a.id, b.s, count(d.y) FROM a LEFT JOIN b ON a.x = b.id LEFT JOIN d ON d.x = a.id GROUP BY a.id, b.s",
    "SELECT a.id, c.z, sum(d.y) FROM a, c, d WHERE c.k1 = a.id AND c.k2 = d.y AND d.x = a.id GROUP BY a.id, c.k1, c.k2",
    "SELECT n, count(*) FROM (SELECT a.id, count(d.y) AS n FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id) q GROUP BY n",
    "SELECT a.id, sum(d.y) AS t FROM a JOIN d ON a.id = d.x GROUP BY a.id HAVING sum(d.y) > 2",
];

/// Queries where they may not, or had better not be.
const BEHIND: &[&str] = &[
    // Several rows of the other side are of one group, or of one key.
    "SELECT a.s, count(*) FROM a JOIN d ON a.id = d.x GROUP BY a.s",
    "SELECT b.x, count(*) FROM b JOIN d ON b.x = d.x GROUP BY b.x",
    // Conditions leave few.
    "SELECT a.id, count(*) FROM a JOIN d ON a.id = d.x WHERE a.x = 2 GROUP BY a.id",
    // What is aggregated comes from both sides.
    "SELECT a.id, sum(a.y + d.y) FROM a JOIN d ON a.id = d.x GROUP BY a.id",
    "SELECT a.id, a.y + d.y, count(*) FROM a JOIN d ON a.id = d.x GROUP BY a.id, a.y + d.y",
    // Nulls in place of a partner count, or are none any more.
    "SELECT a.id, count(*) FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id",
    "SELECT a.id, sum(coalesce(d.y, 1)) FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id",
    "SELECT a.id, coalesce(d.y, 7), count(d.y) FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id, coalesce(d.y, 7)",
    "SELECT a.id, array_agg(d.y) FROM a LEFT JOIN d ON a.id = d.x GROUP BY a.id",
    // More than a key has to match.
    "SELECT a.id, count(*) FROM a JOIN d ON a.id = d.x AND a.y > d.y GROUP BY a.id",
    "SELECT a.id, count(d.x) FROM a LEFT JOIN d ON a.id = d.x AND a.x = 2 GROUP BY a.id",
    "SELECT count(*) FROM a JOIN d ON a.id = d.x",
    "SELECT a.id, count(*) FROM a FULL JOIN d ON a.id = d.x GROUP BY a.id",
];

/// Whether an aggregate lies below a join.
fn is_below_join(tree: &str) -> bool {
    let join = tree.lines().position(|line| [" on ", "Inner", "Left"].iter().any(|part| line.contains(part)));
    let aggregate =
        tree.lines().collect::<Vec<_>>().iter().rposition(|line| line.trim_start().starts_with("Aggregate"));
    join.zip(aggregate).is_some_and(|(join, aggregate)| join < aggregate)
}

#[test]
fn groups_are_made_where_joins_leave_them_as_they_are() {
    let mut place = many_rows_per_value();
    let interpreter = interpreter(&mut place);
    for (all, before) in [(BEFORE, true), (BEHIND, false)] {
        for sql in all {
            let tree = show(&place.optimize(sql).unwrap());
            assert_eq!(is_below_join(&tree), before, "{sql}\n{tree}");
            assert!(matches!(compare(&mut place, &interpreter, sql), Outcome::Same), "{sql}");
        }
    }
}
