//! What passes do to trees.

use super::answers::TABLES;
use super::database::Place;
use super::show::show;

/// The tree without expected rows.
fn tree(place: &Place, sql: &str) -> String {
    let tree = place.optimize(sql).unwrap_or_else(|| panic!("{sql} has no tree"));
    let line = |line: &str| line.rsplit_once(" ~").map_or(line, |(line, _)| line).to_string();
    show(&tree).lines().map(line).collect::<Vec<_>>().join("\n")
}

fn check(cases: &[(&str, &str)]) {
    let place = Place::new(TABLES);
    let mut wrong = String::new();
    for (sql, expected) in cases {
        let found = tree(&place, sql);
        if found != expected.trim() {
            wrong.push_str(&format!("{sql}\n{found}\n\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn conditions_reach_the_scans() {
    check(&[
        ("SELECT a.id FROM a, b WHERE a.id = b.id AND a.id < 5 AND (a.x = 1 AND b.x = 2 OR a.x = 3 AND b.x = 4)", ""),
        ("SELECT * FROM (SELECT s, count(*) AS n FROM a GROUP BY s) q WHERE s = 'p' AND n > 1", ""),
        ("SELECT * FROM (SELECT x FROM a UNION ALL SELECT y FROM d) q WHERE x = 2", ""),
        ("SELECT * FROM (SELECT x FROM a ORDER BY y LIMIT 2) q WHERE x = 2", ""),
        ("SELECT a.id FROM a LEFT JOIN b ON a.id = b.id AND b.x > 3 AND a.x > 1 WHERE a.id < 7", ""),
    ]);
}

#[test]
fn outer_joins_become_inner_where_nulls_fail() {
    check(&[
        ("SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x WHERE b.y > 1", ""),
        ("SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x WHERE coalesce(b.y, 2) > 1", ""),
        ("SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x WHERE b.y IS DISTINCT FROM 1", ""),
        ("SELECT a.id, b.id FROM a FULL JOIN b ON a.x = b.x WHERE b.y > 1", ""),
        ("SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x JOIN d ON d.x = b.y", ""),
    ]);
}

#[test]
fn subqueries_become_joins() {
    check(&[
        ("SELECT id FROM a WHERE EXISTS (SELECT * FROM b WHERE b.x = a.x AND b.id <> a.id)", ""),
        ("SELECT id FROM a WHERE x NOT IN (SELECT x FROM b)", ""),
        ("SELECT id FROM a WHERE id NOT IN (SELECT id FROM b)", ""),
        ("SELECT id FROM a WHERE y = 5 OR x IN (SELECT x FROM b)", ""),
        ("SELECT id FROM a WHERE y > (SELECT avg(y) FROM b WHERE b.x = a.x)", ""),
        ("SELECT id, (SELECT count(*) FROM b WHERE b.x = a.x) FROM a", ""),
        ("SELECT id, (SELECT y FROM b WHERE b.x = a.x) FROM a", ""),
        ("SELECT id, (SELECT y FROM b WHERE b.id = a.x) FROM a", ""),
        ("SELECT id, (SELECT count(*) FROM b WHERE b.x < a.x) FROM a", ""),
        (
            "SELECT id FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE NOT EXISTS (SELECT * FROM d WHERE d.x = b.x AND d.y = a.x))",
            "",
        ),
    ]);
}

#[test]
fn groups_that_others_decide_are_marked() {
    check(&[
        ("SELECT id, x, s, count(*) FROM a GROUP BY id, x, s", ""),
        ("SELECT b.y, a.id, b.id FROM a JOIN b ON a.x = b.id GROUP BY b.y, a.id, b.id", ""),
        ("SELECT x, y FROM a GROUP BY x, y", ""),
    ]);
}

#[test]
fn what_is_not_understood_has_no_tree() {
    let place = Place::new(TABLES);
    let cases = [
        "SELECT random()",
        "SELECT generate_series(1, 3)",
        "SELECT CASE WHEN x > 1 THEN (SELECT 1) END FROM a",
        "SELECT rank() OVER (ORDER BY x) FROM a",
        "SELECT id FROM a FOR UPDATE",
        "SELECT x FROM a GROUP BY ROLLUP (x)",
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT * FROM r",
        "SELECT id FROM a TABLESAMPLE BERNOULLI (50)",
        "SELECT x FROM a INTERSECT ALL SELECT x FROM b",
        "SELECT DISTINCT ON (x) x, y FROM a ORDER BY x, y",
        "SELECT relname FROM pg_class",
        "SELECT ARRAY(SELECT x FROM b) FROM a",
        "SELECT id, (SELECT y FROM b WHERE b.x = a.x ORDER BY y LIMIT 1) FROM a",
    ];
    for sql in cases {
        assert!(place.optimize(sql).is_none(), "{sql}");
    }
}
