//! What passes do to trees.

use super::answers::TABLES;
use super::database::Place;
use super::show::show;

/// The tree without expected rows.
fn tree(place: &Place, sql: &str) -> String {
    let tree = place.optimize(sql).unwrap_or_else(|why| panic!("{sql} has no tree: {why}"));
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
        (
            "SELECT a.id FROM a, b WHERE a.id = b.id AND a.id < 5 AND (a.x = 1 AND b.x = 2 OR a.x = 3 AND b.x = 4)",
            "
Inner on a.id = b.id where ((int4eq(a.x, 1) and int4eq(b.x, 2)) or (int4eq(a.x, 3) and int4eq(b.x, 4)))
  Scan a where int4lt(a.id, 5), (int4eq(a.x, 1) or int4eq(a.x, 3))
  Scan b where (int4eq(b.x, 2) or int4eq(b.x, 4)), int4lt(b.id, 5)
",
        ),
        (
            "SELECT * FROM (SELECT s, count(*) AS n FROM a GROUP BY s) q WHERE s = 'p' AND n > 1",
            "
Filter int84gt(#5, 1)
  Aggregate count by a.s
    Scan a where texteq(a.s, 'p')
",
        ),
        (
            "SELECT * FROM (SELECT x FROM a UNION ALL SELECT y FROM d) q WHERE x = 2",
            "
UnionAll
  Scan a where int4eq(a.x, 2)
  Scan d where int4eq(d.y, 2)
",
        ),
        (
            "SELECT * FROM (SELECT x FROM a ORDER BY y LIMIT 2) q WHERE x = 2",
            "
Filter int4eq(a.x, 2)
  Limit
    Sort a.y
      Scan a
",
        ),
        (
            "SELECT a.id, b.y FROM a LEFT JOIN b ON a.id = b.id AND b.x > 3 AND a.x > 1 WHERE a.id < 7",
            "
Left on a.id = b.id where int4gt(a.x, 1)
  Scan a where int4lt(a.id, 7)
  Scan b where int4gt(b.x, 3)
",
        ),
    ]);
}

#[test]
fn outer_joins_become_inner_where_nulls_fail() {
    check(&[
        (
            "SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x WHERE b.y > 1",
            "
Inner on a.x = b.x
  Scan a
  Scan b where int4gt(b.y, 1)
",
        ),
        (
            "SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x WHERE coalesce(b.y, 2) > 1",
            "
Filter int4gt(Coalesce(b.y, 2), 1)
  Left on a.x = b.x
    Scan a
    Scan b
",
        ),
        (
            "SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x WHERE b.y IS DISTINCT FROM 1",
            "
Filter IsDistinct(b.y, 1)
  Left on a.x = b.x
    Scan a
    Scan b
",
        ),
        (
            "SELECT a.id, b.id FROM a FULL JOIN b ON a.x = b.x WHERE b.y > 1",
            "
Left on b.x = a.x build left
  Scan b where int4gt(b.y, 1)
  Scan a
",
        ),
        (
            "SELECT a.id, b.id FROM a LEFT JOIN b ON a.x = b.x JOIN d ON d.x = b.y",
            "
Inner on b.x = a.x
  Inner on b.y = d.x
    Scan b
    Scan d
  Scan a
",
        ),
    ]);
}

#[test]
fn subqueries_become_joins() {
    check(&[
        (
            "SELECT id FROM a WHERE EXISTS (SELECT * FROM b WHERE b.x = a.x AND b.id <> a.id)",
            "
Semi on a.x = b.x where int4ne(b.id, a.id)
  Scan a
  Scan b
",
        ),
        (
            "SELECT id FROM a WHERE x NOT IN (SELECT x FROM b)",
            "
NullAwareAnti on a.x = b.x
  Scan a
  Scan b
",
        ),
        (
            "SELECT id FROM a WHERE id NOT IN (SELECT id FROM b)",
            "
Anti on a.id = b.id
  Scan a
  Scan b
",
        ),
        (
            "SELECT id FROM a WHERE y = 5 OR x IN (SELECT x FROM b)",
            "
Filter (int4eq(a.y, 5) or #10)
  Mark on a.x = b.x
    Scan a
    Scan b
",
        ),
        (
            "SELECT id FROM a WHERE y > (SELECT avg(y) FROM b WHERE b.x = a.x)",
            "
Inner on a.x = b.x where numeric_gt(a.y, #9)
  Scan a
  Aggregate avg by b.x
    Scan b
",
        ),
        (
            "SELECT id, (SELECT count(*) FROM b WHERE b.x = a.x) FROM a",
            "
Project Coalesce(#9, 0)
  Left on a.x = b.x
    Scan a
    Aggregate count by b.x
      Scan b
",
        ),
        (
            "SELECT id, (SELECT y FROM b WHERE b.x = a.x) FROM a",
            "
Project
  Single on a.x = b.x
    Scan a
    Scan b
",
        ),
        (
            "SELECT id, (SELECT y FROM b WHERE b.id = a.x) FROM a",
            "
Project
  Left on a.x = b.id
    Scan a
    Scan b
",
        ),
        (
            "SELECT id, (SELECT count(*) FROM b WHERE b.x < a.x) FROM a",
            "
Project Coalesce(#9, 0)
  Left on a.x <=> #16
    Scan a
    Aggregate count by #16
      Inner where int4lt(b.x, #16)
        Scan b
        Aggregate by a.x
          Scan a
",
        ),
        (
            "SELECT id FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE NOT EXISTS (SELECT * FROM d WHERE d.x = b.x AND d.y = a.x))",
            "
Anti on a.x <=> #17 build left
  Scan a
  Anti on b.x = d.x, #17 = d.y
    Inner
      Scan b
      Aggregate by a.x
        Scan a
    Scan d
",
        ),
    ]);
}

#[test]
fn groups_that_others_decide_are_marked() {
    check(&[
        (
            "SELECT id, x, s, count(*) FROM a GROUP BY id, x, s",
            "
Aggregate count by a.id with a.x, a.s
  Scan a
",
        ),
        (
            "SELECT b.y, a.id, b.id FROM a JOIN b ON a.x = b.id GROUP BY b.y, a.id, b.id",
            "
Aggregate by a.id with b.y, b.id
  Inner on a.x = b.id
    Scan a
    Scan b
",
        ),
        (
            "SELECT x, y FROM a GROUP BY x, y",
            "
Aggregate by a.x, a.y
  Scan a
",
        ),
    ]);
}

#[test]
fn whole_partitions_are_left_out_below_their_windows() {
    let place = Place::new(TABLES);
    let over = |window: &str| {
        format!("SELECT * FROM (SELECT x, y, rank() OVER ({window}) AS r FROM a) q WHERE x = 2 AND r < 3")
    };
    // Rows leave in the order in which their window saw them.
    let by_x = tree(&place, &over("PARTITION BY x ORDER BY y"));
    assert!(by_x.contains("Filter int84lt(#") && by_x.ends_with("Window\n      Scan a where int4eq(a.x, 2)"), "{by_x}");
    let by_y = tree(&place, &over("PARTITION BY y ORDER BY x"));
    assert!(by_y.contains("Filter int4eq(a.x, 2), int84lt(#") && by_y.ends_with("Window\n      Scan a"), "{by_y}");
    let first = tree(&place, "SELECT DISTINCT ON (x) x, y FROM a ORDER BY x, y");
    assert!(first.starts_with("Sort a.x, a.y\n") && first.ends_with("Window\n      Scan a"), "{first}");
}

#[test]
fn what_is_not_understood_has_no_tree() {
    let place = Place::new(TABLES);
    let cases = [
        "SELECT random()",
        "SELECT generate_series(1, 3)",
        // What may fail where nobody asks: in arithmetic, by several rows, as a sum.
        "SELECT CASE WHEN x > 1 THEN (SELECT max(y / b.x) FROM b WHERE b.id = a.id) END FROM a",
        "SELECT CASE WHEN x > 1 THEN (SELECT y FROM b WHERE b.x = a.x) END FROM a",
        "SELECT COALESCE(x, (SELECT y FROM b WHERE b.x = a.x)) FROM a",
        "SELECT CASE WHEN x > 1 THEN (SELECT sum(y::numeric * y) FROM b WHERE b.id = a.id) END FROM a",
        "SELECT CASE WHEN x > 1 THEN x / y IN (SELECT b.y FROM b) END FROM a",
        "SELECT id FROM a FOR UPDATE",
        "SELECT (WITH RECURSIVE r AS (SELECT x AS n UNION ALL SELECT n + 1 FROM r WHERE n < 3) SELECT max(n) FROM r) FROM a",
        "SELECT id FROM a TABLESAMPLE BERNOULLI (50)",
        "SELECT relname FROM pg_class",
        "SELECT id, (SELECT y FROM b WHERE b.x = a.x LIMIT a.y) FROM a",
    ];
    for sql in cases {
        assert!(place.optimize(sql).is_err(), "{sql}");
    }
}

#[test]
fn arrays_of_subqueries_are_aggregations() {
    let place = Place::new(TABLES);
    let shown = tree(&place, "SELECT ARRAY(SELECT y FROM b WHERE b.x = a.x ORDER BY b.id) FROM a");
    assert!(shown.contains("Left on a.x = b.x") && shown.contains("array_agg"), "{shown}");
    let alone = tree(&place, "SELECT ARRAY(SELECT x FROM b) FROM a");
    assert!(alone.contains("Aggregate") && alone.contains("array_agg"), "{alone}");
}

#[test]
fn constraints_answer_for_rows() {
    check(&[
        // Each row has one partner at most, and nobody reads it.
        ("SELECT a.x FROM a LEFT JOIN b ON a.x = b.id", "Scan a"),
        ("SELECT a.x FROM a LEFT JOIN b ON a.x = b.id AND b.y > a.y", "Scan a"),
        ("SELECT a.x FROM a LEFT JOIN (SELECT x, count(*) FROM b GROUP BY x) b ON b.x = a.x", "Scan a"),
        ("SELECT count(*) FROM a LEFT JOIN b ON a.x = b.id", "Aggregate count\n  Scan a"),
        // It may have several, or is read.
        ("SELECT a.x FROM a LEFT JOIN b ON a.x = b.x", "Left on a.x = b.x\n  Scan a\n  Scan b"),
        ("SELECT a.x, b.y FROM a LEFT JOIN b ON a.x = b.id", "Left on a.x = b.id\n  Scan a\n  Scan b"),
        (
            "SELECT a.x FROM a LEFT JOIN b ON a.x = b.id WHERE b.y > 1",
            "Inner on a.x = b.id\n  Scan a\n  Scan b where int4gt(b.y, 1)",
        ),
        // A key is never null.
        ("SELECT x FROM a WHERE id IS NOT NULL", "Scan a"),
        ("SELECT x FROM a WHERE id IS NULL", "Values 0"),
        ("SELECT x FROM a WHERE x IS NULL", "Scan a where IsNull(a.x)"),
        ("SELECT x FROM a WHERE false", "Values 0"),
        ("SELECT count(*) FROM a WHERE id IS NULL AND x > 1", "Aggregate count\n  Values 0"),
    ]);
}

#[test]
fn limits_reach_the_parts_of_unions() {
    check(&[
        (
            "SELECT * FROM (SELECT x FROM a UNION ALL SELECT y FROM d) q OFFSET 1 LIMIT 3",
            "
Limit
  UnionAll
    Limit
      Scan a
    Limit
      Scan d
",
        ),
        (
            "SELECT x, s FROM (SELECT x, s FROM a UNION ALL SELECT y, NULL FROM d UNION ALL VALUES (1, 'p')) q ORDER BY x DESC LIMIT 3",
            "
Limit
  Sort #13
    UnionAll
      UnionAll
        Limit
          Sort a.x
            Scan a
        Limit
          Sort d.y
            Project null
              Scan d
      Values 1
",
        ),
        // What the order asks for is computed of what is left.
        (
            "SELECT x + 1 FROM (SELECT x FROM a UNION ALL SELECT y FROM d) q ORDER BY x + 1 LIMIT 3",
            "
Limit
  Sort #8
    Project int4pl(#7, 1)
      UnionAll
        Scan a
        Scan d
",
        ),
        (
            "SELECT x FROM (SELECT x FROM a UNION SELECT y FROM d) q LIMIT 3",
            "
Limit
  Aggregate by #7
    UnionAll
      Scan a
      Scan d
",
        ),
    ]);
}
