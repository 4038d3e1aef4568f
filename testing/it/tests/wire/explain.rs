//! What EXPLAIN ANALYZE counted, and why the fallback runs what it runs.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;

fn lines(wire: &mut Wire, sql: &str) -> Result<Vec<String>> {
    let reply = wire.run(sql)?;
    Ok((0..reply.rows.len()).map(|row| reply.text(row, 0).unwrap_or_default().to_string()).collect())
}

/// Two tables in columns: one of 200,000 rows, which are four row groups in the order of `day`.
fn filled(server: &Basalt) -> Result<Wire> {
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE sites (id int PRIMARY KEY, name text NOT NULL)")?;
    wire.run("CREATE TABLE readings (id int PRIMARY KEY, site int NOT NULL, day date NOT NULL, value numeric(8,2))")?;
    wire.run("INSERT INTO sites SELECT i, 'site ' || i FROM generate_series(1, 100) i")?;
    wire.run(
        "INSERT INTO readings SELECT i, i % 100 + 1, date '2020-01-01' + i / 1000, i % 500 * 0.25
         FROM generate_series(1, 200000) i",
    )?;
    wire.run("VACUUM")?;
    Ok(wire)
}

const JOINED: &str = "SELECT name, sum(value) FROM readings JOIN sites ON sites.id = site
                      WHERE day >= '2020-06-01' GROUP BY name ORDER BY 2 DESC, 1 LIMIT 5";

/// The number behind a label in the part of a plan from a step on.
fn number(lines: &[String], from: &str, label: &str) -> Result<u64> {
    let step = lines.iter().position(|line| line.trim_start().starts_with(from));
    let found = step.and_then(|step| lines[step..].iter().find_map(|line| line.trim_start().strip_prefix(label)));
    let digits = found.map(|found| found.trim_matches(|c: char| !c.is_ascii_digit()).to_string());
    let digits = digits.map(|digits| digits.chars().take_while(char::is_ascii_digit).collect::<String>());
    digits.unwrap_or_default().parse().map_err(|_| anyhow::anyhow!("no {label} of {from}: {lines:#?}"))
}

#[test]
fn explain_analyze_tells_what_each_pipeline_did() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    let told = lines(&mut wire, &format!("EXPLAIN (ANALYZE) {JOINED}"))?;
    let has = |part: &str| told.iter().any(|line| line.contains(part));
    for part in [
        "Scan on sites  (rows=100)  (actual rows=100)",
        "Build  (rows=100)  (actual rows=100)",
        "Skips By: day >= '2020-06-01'",
        // 152 days of 1,000 rows, the first of which has one fewer.
        "(actual rows=48001)",
        "Inner Join with Pipeline 1",
        "Hash Cond: readings.site = sites.id",
        "Group Key: sites.name",
        "(actual rows=100)",
        "Top 5",
        "Rows: 5",
        "Worker Time: ",
        "Planning Time: ",
        "Execution Time: ",
    ] {
        ensure!(has(part), "no {part} in {told:#?}");
    }
    ensure!(number(&told, "Scan on readings", "Row Groups: ")? == 2, "{told:#?}");
    ensure!(has("Row Groups: 2 of 4 pruned"), "{told:#?}");
    // A part of one of the two row groups is left out, too.
    ensure!((1..8).contains(&number(&told, "Scan on readings", "Pages: ")?), "{told:#?}");
    let (scanned, all) =
        (number(&told, "Scan on readings", "Bytes Read: ")?, number(&told, "Column Engine", "Bytes Read: ")?);
    ensure!(scanned > 0 && all >= scanned, "{told:#?}");
    ensure!(number(&told, "Pipeline 1", "Memory: ")? > 0, "{told:#?}");
    let plain = lines(&mut wire, &format!("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF, BUFFERS) {JOINED}"))?;
    ensure!(!plain.iter().any(|line| line.contains("(rows=") || line.contains("ime")), "{plain:#?}");
    Ok(())
}

#[test]
fn less_is_read_where_columns_are_asked_for_late() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    let read = |wire: &mut Wire, condition: &str| -> Result<u64> {
        let told = lines(
            wire,
            &format!("EXPLAIN ANALYZE SELECT sum(value), max(day), max(id) FROM readings WHERE {condition}"),
        )?;
        number(&told, "Scan on readings", "Bytes Read: ")
    };
    let (all, none) = (read(&mut wire, "site + 0 >= 0")?, read(&mut wire, "site + 0 < 0")?);
    ensure!(none * 3 < all * 2, "{none} of {all} bytes are read where no row passes the condition");
    Ok(())
}

#[test]
fn the_fallback_is_named_with_the_reason() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    for (sql, reason) in [
        ("SELECT * FROM readings", "a table's rows are passed on as they are"),
        ("SELECT string_agg(name, ',') FROM sites", "string_agg, which depends on the order of rows"),
        ("SELECT count(*) FROM generate_series(1, 10) g", "generate_series"),
        ("SELECT count(*) FROM pg_class", "a system table"),
        ("SELECT count(*) FROM sites WHERE random() < 2", "a volatile function"),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT n FROM r LIMIT 9",
            "a LIMIT, which may end WITH RECURSIVE",
        ),
    ] {
        let told = lines(&mut wire, &format!("EXPLAIN {sql}"))?;
        let expected = format!("Fallback Because Of: {reason}");
        ensure!(told.iter().any(|line| line.trim() == expected), "{sql}: no {expected} in {told:#?}");
        // It runs as it is told.
        wire.run(&format!("EXPLAIN ANALYZE {sql}"))?;
    }
    Ok(())
}

/// What the column engine gives up when it has begun is told as what ran in the end, and why.
#[test]
fn a_plan_that_was_given_up_is_the_fallbacks() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    let grouped = "SELECT x, count(*) FROM (SELECT CASE WHEN id = 5 THEN '-0'::float8 ELSE id END AS x FROM readings) r
                   GROUP BY x";
    ensure!(lines(&mut wire, &format!("EXPLAIN {grouped}"))?[0] == "Column Engine", "EXPLAIN alone does not run it");
    let told = lines(&mut wire, &format!("EXPLAIN (ANALYZE) {grouped}"))?;
    ensure!(told.iter().any(|line| line.trim() == "Fallback Because Of: a key of -0"), "{told:#?}");
    Ok(())
}

/// What the row engine begins and leaves to others because it reaches too many rows is told as what ran in the end.
#[test]
fn a_row_plan_that_was_given_up_is_told() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE marks (id int PRIMARY KEY, mark int NOT NULL, note text NOT NULL)")?;
    wire.run("CREATE INDEX marks_mark ON marks (mark)")?;
    // Of two marks, one is on nearly all rows.
    wire.run(
        "INSERT INTO marks SELECT i, CASE WHEN i > 10 THEN 1 ELSE 0 END, 'note ' || i FROM generate_series(1, 40000) i",
    )?;
    let sql = |mark: u32| format!("SELECT count(*), max(note) FROM marks WHERE mark = {mark}");
    for mark in [0, 1] {
        let told = lines(&mut wire, &format!("EXPLAIN {}", sql(mark)))?;
        ensure!(told.iter().any(|line| line.contains("Key Range on marks by marks_mark")), "{told:#?}");
    }
    let few = lines(&mut wire, &format!("EXPLAIN ANALYZE {}", sql(0)))?;
    ensure!(few[0] == "Aggregate  (actual rows=1)", "{few:#?}");
    let many = lines(&mut wire, &format!("EXPLAIN ANALYZE {}", sql(1)))?;
    ensure!(many[0].starts_with("Column Engine"), "{many:#?}");
    ensure!(many.iter().any(|line| line.trim() == "Row Engine Gave Up On: Aggregate"), "{many:#?}");
    ensure!(many.iter().any(|line| line.contains("actual rows=39990")), "{many:#?}");
    ensure!(many.iter().any(|line| line == "Rows: 1"), "{many:#?}");
    Ok(())
}

#[test]
fn the_log_tells_what_a_statement_took() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    wire.run("SET basalt.query_log_min_duration = 0")?;
    wire.run(JOINED)?;
    wire.run("SELECT name, string_agg(day::text, ',') FROM sites, readings WHERE readings.id < 1000 GROUP BY name, readings.id")?;
    wire.prepare("get", "SELECT value FROM readings WHERE id = $1::int")?;
    for id in ["1", "2", "3"] {
        wire.execute("get", &[id.to_string()])?;
    }
    for sql in ["SELEKT 1", "SELECT value FROM nowhere", "SELECT 1 / (id - 1) FROM readings WHERE id = 1"] {
        ensure!(wire.simple(sql, None)?.sqlstate().is_some(), "{sql}");
    }
    wire.run("SET basalt.query_log_min_duration = -1")?;
    let failed = "SELECT coalesce(engine, 'none') || ' ' || sqlstate FROM basalt.query_log
                  WHERE sqlstate IS NOT NULL ORDER BY started_at";
    let failed = lines(&mut wire, failed)?;
    ensure!(failed == ["none 42601", "none 42P01", "row 22012"], "{failed:?}");
    let log = "SELECT engine, rows, duration_us, planning_us, bytes_read, memory_bytes FROM basalt.query_log
               WHERE query LIKE 'SELECT%' AND sqlstate IS NULL ORDER BY started_at";
    let reply = wire.run(log)?;
    let number = |row, column| reply.text(row, column).and_then(|text| text.parse::<i64>().ok()).unwrap_or(-1);
    let engines: Vec<_> = (0..reply.rows.len()).map(|row| reply.text(row, 0).unwrap_or("null")).collect();
    ensure!(engines == ["column", "fallback", "row", "row", "row"], "{engines:?}");
    let rows: Vec<_> = (0..reply.rows.len()).map(|row| number(row, 1)).collect();
    ensure!(rows == [5, 99_900, 1, 1, 1], "{rows:?}");
    for row in [0, 1] {
        ensure!(number(row, 3) > 0 && number(row, 3) < number(row, 2), "planning is a part of the time: {reply:?}");
        ensure!(number(row, 4) > 100, "bytes were read: {reply:?}");
        ensure!(number(row, 5) > 1000, "memory was held: {reply:?}");
    }
    ensure!((2..5).all(|row| number(row, 4) == 0 && number(row, 5) == 0), "{reply:?}");
    Ok(())
}

#[test]
fn the_log_keeps_as_many_as_it_is_told() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("ALTER SYSTEM SET basalt.query_log_entries = 3")?;
    wire.run("ALTER SYSTEM SET basalt.query_log_min_duration = 0")?;
    let mut later = server.connect()?;
    for number in 1..=9 {
        later.run(&format!("SELECT {number}"))?;
    }
    let kept = |wire: &mut Wire| lines(wire, "SELECT query FROM basalt.query_log ORDER BY started_at");
    ensure!(kept(&mut later)? == ["SELECT 7", "SELECT 8", "SELECT 9"], "{:?}", kept(&mut later)?);
    wire.run("ALTER SYSTEM SET basalt.query_log_entries = 0")?;
    let mut none = server.connect()?;
    none.run("SELECT 10")?;
    ensure!(!kept(&mut none)?.contains(&"SELECT 10".to_string()));
    Ok(())
}

/// What an execution saw of a condition is what the next plan expects, unless the execution did not see all rows.
#[test]
fn conditions_are_expected_to_hold_for_as_many_rows_as_they_did() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    // Where no page is looked at, so that a sample finds none of them; and two conditions that go together.
    let rare = "day = '2020-03-02' AND site + 0 > 0";
    let alike = "value = 1.25 AND site = 6";
    let expected = |wire: &mut Wire, condition: &str| {
        let told = lines(wire, &format!("EXPLAIN SELECT count(*) FROM readings WHERE {condition}"))?;
        number(&told, "Filter", "Filter  (rows=")
    };
    let before = (expected(&mut wire, rare)?, expected(&mut wire, alike)?);
    ensure!(before.0 != 1000 && before.1 != 400, "{before:?}");
    // Neither of these has asked all rows.
    wire.run(&format!("SELECT id FROM readings WHERE {alike} ORDER BY id LIMIT 1"))?;
    wire.run(&format!(
        "SELECT count(*) FROM readings JOIN sites ON sites.id = site AND name = 'no site' WHERE {alike}"
    ))?;
    wire.run(&format!("SELECT id FROM readings WHERE {rare} LIMIT 3"))?;
    ensure!((expected(&mut wire, rare)?, expected(&mut wire, alike)?) == before, "from a part of the rows");
    wire.run(&format!("SELECT max(value) FROM readings WHERE {rare}"))?;
    wire.run("SELECT max(day) FROM readings r WHERE site = 6 AND r.value = 1.25")?;
    ensure!(
        (expected(&mut wire, rare)?, expected(&mut wire, alike)?) == (1000, 400),
        "{:?}",
        expected(&mut wire, alike)?
    );
    // Other values are other conditions, and other rows are seen as they are asked for.
    ensure!(expected(&mut wire, "value = 1.50 AND site = 6")? != 400);
    wire.run("UPDATE readings SET site = 7 WHERE value = 1.25 AND id % 1000 = 5")?;
    wire.run(&format!("SELECT max(value) FROM readings WHERE {alike}"))?;
    let now = expected(&mut wire, alike)?;
    ensure!(now == 200, "{now}");
    Ok(())
}

#[test]
fn a_recursion_tells_its_rounds() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = filled(&server)?;
    let sql = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r JOIN sites ON id = n WHERE n < 50)
               SELECT count(*) FROM r";
    let told = lines(&mut wire, &format!("EXPLAIN {sql}"))?;
    ensure!(told.iter().any(|line| line.trim_start().starts_with("Recursive Union All with Pipeline")), "{told:#?}");
    let told = lines(&mut wire, &format!("EXPLAIN ANALYZE {sql}"))?;
    ensure!(number(&told, "Recursive Union All", "Rounds:")? == 50, "{told:#?}");
    // What rows are joined with is read once.
    ensure!(told.iter().any(|line| line.contains("Scan on sites") && line.contains("actual rows=100")), "{told:#?}");
    Ok(())
}

/// How rows are reached, and what is asked of them besides, in words of the query.
#[test]
fn row_plans_tell_their_conditions() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (a int, b int, \"C d\" text, e numeric, PRIMARY KEY (a, b))")?;
    wire.run("CREATE INDEX t_lower ON t (lower(\"C d\"), b); CREATE TABLE u (id int PRIMARY KEY, a int, b int)")?;
    let cases: [(&str, &[&str]); 9] = [
        (
            "SELECT e FROM t WHERE a = 1 AND b = 2 AND \"C d\" = 'x'",
            &["Point Get on t", "  Index Cond: a = 1 AND b = 2", "  Filter: \"C d\" = 'x'::text"],
        ),
        (
            "SELECT e FROM t WHERE a = 1 AND b > 2 AND b <= 7 AND e * 2 > 5 ORDER BY b LIMIT 3",
            &[
                "Limit",
                "  ->  Key Range on t",
                "        Index Cond: a = 1 AND b > 2 AND b <= 7",
                "        Filter: (e * 2::numeric) > 5::numeric",
            ],
        ),
        (
            "SELECT e FROM t WHERE a IN (1, 2) AND b = ANY ('{3,4}'::int[]) ORDER BY e DESC, b",
            &[
                "Sort",
                "  Sort Key: e DESC, b",
                "  ->  Point Gets on t",
                "        Index Cond: a IN (1, 2) AND b = ANY ('{3,4}'::integer[])",
            ],
        ),
        (
            "SELECT e FROM t WHERE lower(\"C d\") = 'x' AND b < 4",
            &["Key Range on t by t_lower", "  Index Cond: lower(\"C d\") = 'x'::text AND b < 4"],
        ),
        (
            "SELECT u.id, t.e FROM u LEFT JOIN t ON t.a = u.a AND t.b = u.b AND t.e > 1 WHERE u.id = 5",
            &[
                "Nested Loop",
                "  ->  Point Get on u",
                "        Index Cond: u.id = 5",
                "  ->  Point Get on t",
                "        Index Cond: t.a = u.a AND t.b = u.b",
                "        Join Filter: t.e > 1::numeric",
            ],
        ),
        (
            "SELECT x.id FROM u x JOIN u y ON y.id = x.a WHERE x.id = 5",
            &[
                "Nested Loop",
                "  ->  Point Get on u",
                "        Index Cond: u.id = 5",
                "  ->  Point Get on u u_1",
                "        Index Cond: u_1.id = u.a",
            ],
        ),
        (
            "SELECT count(*) FROM u WHERE id BETWEEN 5 AND 6",
            &["Aggregate", "  ->  Key Range on u", "        Index Cond: id >= 5 AND id <= 6"],
        ),
        (
            "UPDATE t SET e = 1 WHERE a = 1 AND b = 2 AND e < 0",
            &[
                "Update on t",
                "  ->  Point Get on t",
                "        Index Cond: a = 1 AND b = 2",
                "        Filter: e < 0::numeric",
            ],
        ),
        ("DELETE FROM u WHERE id = 5", &["Delete on u", "  ->  Point Get on u", "        Index Cond: id = 5"]),
    ];
    for (sql, expected) in cases {
        assert_eq!(lines(&mut wire, &format!("EXPLAIN (COSTS OFF) {sql}"))?, expected, "{sql}");
    }
    // Parameters by their numbers.
    wire.run("PREPARE p (int) AS SELECT e FROM t WHERE a = $1 AND b > $1 + 1")?;
    let told = lines(&mut wire, "EXPLAIN EXECUTE p (3)")?;
    assert_eq!(told, ["Key Range on t", "  Index Cond: a = $1 AND b > $1 + 1"]);
    Ok(())
}
