//! Statements that programs write: thousands of operators, operands, queries or parameters in a row. They are answered, or
//! refused with 54001; nobody else notices.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use std::time::{Duration, Instant};

fn row_of(count: usize, item: impl Fn(usize) -> String, between: &str) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(between)
}

/// The one value, or the SQLSTATE.
fn answer(server: &mut Basalt, sql: &str) -> Result<String> {
    let mut wire = server.connect()?;
    let reply = wire.simple(sql, None)?;
    let told = match reply.sqlstate() {
        Some(sqlstate) => sqlstate.to_string(),
        None => reply.last().text(0, 0).unwrap_or("none").to_string(),
    };
    ensure!(server.is_running(), "the server died of {:.80} …:\n{}", sql, server.log_tail());
    ensure!(server.connect()?.run("SELECT 1")?.text(0, 0) == Some("1"));
    Ok(told)
}

#[test]
fn long_rows_of_operators_are_answered_or_refused() -> Result<()> {
    let mut server = Basalt::start()?;
    server.connect()?.run("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2), (30000)")?;
    let digits = |n: usize| (n % 10).to_string();
    let many = 30_000;
    for (sql, expected) in [
        (format!("SELECT count(*) FROM t WHERE {}", row_of(many, |n| format!("a = {n}"), " OR ")), "2"),
        (format!("SELECT count(*) FROM t WHERE {}", row_of(many, |n| format!("a <> {n}"), " AND ")), "1"),
        (format!("SELECT 1 WHERE {}", row_of(many, |n| format!("1 = {n} AND 2 = 2"), " OR ")), "1"),
        (format!("SELECT {}", row_of(3000, digits, " + ")), "13500"),
        (format!("SELECT {}", row_of(many, digits, " + ")), "54001"),
        (format!("SELECT length({})", row_of(3000, |_| "'a'".into(), " || ")), "3000"),
        (format!("SELECT length({})", row_of(3000, |_| "1::int::text".into(), " || ")), "3000"),
        (format!("SELECT length({})", row_of(many, |_| "'a'".into(), " || ")), "54001"),
        (format!("SELECT '{{}}'::jsonb {}", row_of(many, |_| "-> 'a'".into(), " ")), "54001"),
        (format!("SELECT 1 {}", row_of(many, |_| "IS NULL".into(), " ")), "54001"),
        (format!("SELECT {}", row_of(100, |_| "(1 + 1 + 1 + 1".into(), " + ") + &")".repeat(100)), "400"),
        (
            format!("SELECT {}", row_of(250, |_| format!("({}", row_of(100, digits, "+")), " + ") + &")".repeat(250)),
            "54001",
        ),
        (format!("SELECT {}1{}", "(".repeat(240), ")".repeat(240)), "1"),
        (format!("SELECT {}1{}", "(".repeat(400), ")".repeat(400)), "54001"),
        (format!("SELECT {}1{}", "CASE WHEN 1 = 1 THEN ".repeat(400), " END".repeat(400)), "54001"),
        (format!("SELECT {}true", "NOT ".repeat(500)), "54001"),
        (format!("SELECT {}1", "- ".repeat(500)), "54001"),
        (format!("SELECT {}", row_of(many, |n| format!("a{n} + 1"), ", ")), "42703"),
        (format!("SELECT CASE {} END", row_of(5000, |n| format!("WHEN 1 = {n} THEN {n} + 1"), " ")), "2"),
        (format!("SELECT 1 = ANY (ARRAY[{}])", row_of(many, |n| n.to_string(), ",")), "t"),
    ] {
        let began = Instant::now();
        let told = answer(&mut server, &sql)?;
        ensure!(told == expected, "{:.80} …: {told}, not {expected}", sql);
        ensure!(began.elapsed() < Duration::from_secs(60), "{:.80} … took {:?}", sql, began.elapsed());
    }
    let check = row_of(many, |n| format!("a = {n}"), " OR ");
    answer(&mut server, &format!("CREATE TABLE checked (a int CHECK ({check}), CHECK ({check}))"))?;
    ensure!(answer(&mut server, "INSERT INTO checked VALUES (5) RETURNING a")? == "5");
    ensure!(answer(&mut server, "INSERT INTO checked VALUES (-5)")? == "23514");
    answer(&mut server, &format!("CREATE VIEW v AS SELECT a FROM t WHERE {check}"))?;
    ensure!(answer(&mut server, "SELECT count(*) FROM v")? == "2");
    Ok(())
}

#[test]
fn long_rows_of_queries_are_answered_or_refused() -> Result<()> {
    let mut server = Basalt::start()?;
    let queries = |count: usize, between: &str| row_of(count, |n| format!("SELECT {n} AS a"), between);
    let cube = row_of(12, |n| format!("(a + {n})"), ", ");
    let tables = |count: usize, between: &str| row_of(count, |n| format!("(VALUES ({n})) t{n}(a)"), between);
    for (sql, expected) in [
        (format!("SELECT sum(a) FROM ({}) t", queries(500, " UNION ALL ")), "124750"),
        (format!("SELECT sum(a) FROM ({}) t", queries(500, " UNION ")), "124750"),
        (format!("SELECT sum(a) FROM ({} UNION SELECT 1 UNION ALL SELECT 1) t", queries(500, " UNION ALL ")), "124751"),
        (format!("SELECT sum(a) FROM ({}) t", queries(150, " EXCEPT ")), "0"),
        (format!("SELECT sum(a) FROM ({}) t", queries(10_000, " UNION ALL ")), "54001"),
        (format!("SELECT count(*) FROM (SELECT 1 FROM (VALUES (1)) v(a) GROUP BY CUBE ({cube})) q"), "4096"),
        (format!("SELECT count(*) FROM {}", tables(40, " CROSS JOIN ")), "1"),
        (format!("SELECT count(*) FROM {}", tables(10_000, " CROSS JOIN ")), "54001"),
    ] {
        let told = answer(&mut server, &sql)?;
        ensure!(told == expected, "{:.80} …: {told}, not {expected}", sql);
    }
    Ok(())
}

#[test]
fn many_parameters_are_bound_in_time() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    let count = 20_000;
    let values: Vec<String> = (0..count).map(|n| n.to_string()).collect();
    let began = Instant::now();
    let sql = format!("SELECT count(*) FROM (VALUES {}) v(x)", row_of(count, |n| format!("(${})", n + 1), ","));
    let prepared = wire.prepare("many", &sql)?;
    ensure!(prepared.sqlstate().is_none(), "{prepared:?}");
    let answer = wire.execute("many", &values)?;
    ensure!(answer.last().text(0, 0) == Some("20000"), "{answer:?}");
    ensure!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    Ok(())
}

/// Rows of a recursion leave when they are there: nobody waits for all rounds.
#[test]
fn an_endless_recursion_gives_rows() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    let endless = "WITH RECURSIVE r(n) AS (SELECT 1::bigint UNION ALL SELECT n + 1 FROM r) SELECT n, 1000 / n FROM r";
    let told = wire.run(&format!("EXPLAIN {endless}"))?;
    ensure!(told.text(0, 0) == Some("Column Engine"), "{:?}", told.text(0, 0));
    wire.run("BEGIN")?;
    wire.run(&format!("DECLARE c CURSOR FOR {endless}"))?;
    for from in [1, 1001] {
        let reply = wire.run("FETCH 1000 FROM c")?;
        ensure!(reply.rows.len() == 1000, "{} rows", reply.rows.len());
        for (row, n) in (from..from + 1000).enumerate() {
            let text = |column| reply.text(row, column).map(str::to_string);
            ensure!(text(0) == Some(n.to_string()) && text(1) == Some((1000 / n).to_string()), "row {n}");
        }
    }
    wire.run("COMMIT")?;
    Ok(())
}
