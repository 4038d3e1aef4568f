//! SELECT … FOR UPDATE and FOR SHARE between sessions whose order is not fixed.

use anyhow::{Context, Result, bail};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::{Answer, Wire};
use std::collections::HashSet;
use std::time::Duration;

/// Ends one of two waiting sessions with 40P01; the other must finish.
fn one_is_refused(a: &mut Wire, b: &mut Wire) -> Result<()> {
    let finish = |wire: &mut Wire| -> Result<Option<String>> {
        let state = wire.answer(None)?.sqlstate().map(str::to_string);
        wire.run(if state.is_none() { "COMMIT" } else { "ROLLBACK" })?;
        Ok(state)
    };
    let (of_a, of_b) = std::thread::scope(|scope| {
        let of_a = scope.spawn(|| finish(a));
        (finish(b), of_a.join().expect("the thread lives"))
    });
    let mut states = [of_a?, of_b?];
    states.sort();
    assert_eq!(states, [None, Some("40P01".to_string())]);
    Ok(())
}

#[test]
fn deadlocks_through_locking_clauses_end_one_member() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    a.run("INSERT INTO t VALUES (1, 0), (2, 0)")?;
    // What each session does first, then what it waits with.
    let cases = [
        // Two holders of a shared lock both want more.
        ("SELECT * FROM t WHERE id = 1 FOR SHARE", "UPDATE t SET x = x + 1 WHERE id = 1", 1),
        ("SELECT * FROM t WHERE id = 1 FOR SHARE", "SELECT * FROM t WHERE id = 1 FOR UPDATE", 1),
        ("SELECT * FROM t WHERE x >= 0 FOR SHARE", "SELECT * FROM t WHERE x >= 0 FOR NO KEY UPDATE", 1),
        ("SELECT * FROM t WHERE id = 1 FOR KEY SHARE", "DELETE FROM t WHERE id = 1", 1),
        // Crossed orders.
        ("SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT * FROM t WHERE id = 2 FOR UPDATE", 2),
        ("SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT * FROM t WHERE id = 2 FOR SHARE", 2),
    ];
    for (first, second, rows) in cases {
        let other = |sql: &str| match rows {
            1 => sql.to_string(),
            _ => sql.replace("id = 1", "id = 0").replace("id = 2", "id = 1").replace("id = 0", "id = 2"),
        };
        a.run("BEGIN")?;
        b.run("BEGIN")?;
        a.run(first)?;
        b.run(&other(first))?;
        a.send_simple(second)?;
        std::thread::sleep(Duration::from_millis(50));
        b.send_simple(&other(second))?;
        one_is_refused(&mut a, &mut b).with_context(|| format!("{first}; {second}"))?;
        a.run("DELETE FROM t")?;
        a.run("INSERT INTO t VALUES (1, 0), (2, 0)")?;
    }
    Ok(())
}

/// Eight workers take jobs from one table, by three ways of writing it; every job is taken once.
#[test]
fn a_queue_gives_each_job_once() -> Result<()> {
    const WORKERS: usize = 8;
    const JOBS: usize = 400;
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE job (id int PRIMARY KEY, state text NOT NULL)")?;
    wire.run(&format!("INSERT INTO job SELECT g, 'queued' FROM generate_series(1, {JOBS}) g"))?;
    let taken = std::thread::scope(|scope| -> Result<Vec<i32>> {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let mut wire = server.connect()?;
                Ok(scope.spawn(move || work(&mut wire, worker)))
            })
            .collect::<Result<_>>()?;
        // Half of the rows go cold while they are taken.
        wire.run("VACUUM job")?;
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().expect("the worker lives")?);
        }
        Ok(all)
    })?;
    let distinct: HashSet<i32> = taken.iter().copied().collect();
    assert_eq!((taken.len(), distinct.len()), (JOBS, JOBS));
    assert_eq!(wire.run("SELECT count(*) FROM job WHERE state = 'queued'")?.text(0, 0), Some("0"));
    Ok(())
}

fn work(wire: &mut Wire, worker: usize) -> Result<Vec<i32>> {
    let mut taken = Vec::new();
    loop {
        let found = match worker % 3 {
            0 => {
                let queued = "SELECT id FROM job WHERE state = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1";
                wire.run(&format!("UPDATE job SET state = 'taken' WHERE id = ({queued}) RETURNING id"))?
            }
            1 => {
                let queued = "SELECT id FROM job WHERE state = 'queued' LIMIT 3 FOR UPDATE SKIP LOCKED";
                wire.run(&format!("DELETE FROM job WHERE id IN ({queued}) RETURNING id"))?
            }
            _ => {
                wire.run("BEGIN")?;
                let sql = "SELECT id FROM job WHERE state = 'queued' ORDER BY id DESC LIMIT 2 FOR UPDATE SKIP LOCKED";
                let found = wire.run(sql)?;
                for row in 0..found.rows.len() {
                    let id = found.text(row, 0).unwrap_or_default();
                    wire.run(&format!("UPDATE job SET state = 'taken' WHERE id = {id}"))?;
                }
                wire.run("COMMIT")?;
                found
            }
        };
        if found.rows.is_empty() {
            // The others may hold what is left, and let it go only by taking it.
            let left = wire.run("SELECT 1 FROM job WHERE state = 'queued' LIMIT 1")?;
            if left.rows.is_empty() {
                return Ok(taken);
            }
            continue;
        }
        for row in 0..found.rows.len() {
            taken.push(found.text(row, 0).context("a null id")?.parse()?);
        }
    }
}

/// Read, compute in the client, write: without the lock increments would be lost.
#[test]
fn read_modify_write_loses_nothing() -> Result<()> {
    const ROUNDS: i32 = 50;
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE counter (id int PRIMARY KEY, n int)")?;
    wire.run("INSERT INTO counter VALUES (1, 0)")?;
    std::thread::scope(|scope| -> Result<()> {
        let clients: Vec<_> = ["id = 1", "id = 1", "n >= 0", "n >= 0"]
            .into_iter()
            .map(|condition| {
                let mut wire = server.connect()?;
                Ok(scope.spawn(move || -> Result<()> {
                    for _ in 0..ROUNDS {
                        wire.run("BEGIN")?;
                        let found = wire.run(&format!("SELECT n FROM counter WHERE {condition} FOR UPDATE"))?;
                        let n: i32 = found.text(0, 0).context("no row")?.parse()?;
                        wire.run(&format!("UPDATE counter SET n = {} WHERE id = 1", n + 1))?;
                        wire.run("COMMIT")?;
                    }
                    Ok(())
                }))
            })
            .collect::<Result<_>>()?;
        clients.into_iter().try_for_each(|client| client.join().expect("the client lives"))
    })?;
    assert_eq!(wire.run("SELECT n FROM counter")?.text(0, 0), Some((4 * ROUNDS).to_string().as_str()));
    Ok(())
}

/// What a statement of `b` gives that waits until `a` commits `change`.
fn after_change(a: &mut Wire, b: &mut Wire, change: &str, sql: &str) -> Result<Vec<String>> {
    a.run("BEGIN")?;
    a.run(change)?;
    b.send_simple(sql)?;
    std::thread::sleep(Duration::from_millis(100));
    a.run("COMMIT")?;
    rows_of(&b.answer(None)?).with_context(|| sql.to_string())
}

/// Rows as `1|a|null`, or the error.
fn rows_of(answer: &Answer) -> Result<Vec<String>> {
    if let Some(error) = answer.error() {
        bail!("{} {}", error.sqlstate(), error.message());
    }
    let reply = answer.last();
    let show = |row: usize, column| reply.text(row, column).unwrap_or("null").to_string();
    let row = |(at, row): (usize, &Vec<_>)| (0..row.len()).map(|column| show(at, column)).collect::<Vec<_>>().join("|");
    Ok(reply.rows.iter().enumerate().map(row).collect())
}

/// A row of the nullable side is there or not; its values do not say which.
#[test]
fn a_second_look_keeps_the_nullable_side_of_an_outer_join() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE a (id int PRIMARY KEY, v int); CREATE TABLE b (y int, w int)")?;
    a.run("CREATE TABLE c (id int PRIMARY KEY, z int); CREATE TABLE nothing (n int)")?;
    a.run("INSERT INTO a VALUES (1, 10); INSERT INTO b VALUES (null, 7); INSERT INTO c VALUES (1, 5)")?;
    let cases = [
        ("a.v, b.y, c.z FROM a LEFT JOIN (b CROSS JOIN c) ON a.id = c.id WHERE a.id = 1", "11|null|5"),
        ("a.v, c.z FROM a LEFT JOIN (b CROSS JOIN c) ON a.id = c.id WHERE a.id + 0 = 1", "11|5"),
        ("a.v, c.z FROM (b CROSS JOIN c) RIGHT JOIN a ON a.id = c.id WHERE a.id + 0 = 1", "11|5"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT 1 AS n) s ON true", "11|1"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT y, 1 AS n FROM b) s ON true", "11|1"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT coalesce(y, 3) AS n FROM b) s ON true", "11|3"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT 42 AS n FROM b) s ON true", "11|42"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT 42 AS n FROM b LIMIT 1) s ON a.v > 9", "11|42"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT 42 AS n FROM b) s ON a.v < 11", "11|null"),
        ("a.v, s.n FROM a LEFT JOIN LATERAL (SELECT b.y AS n FROM b WHERE b.w < a.v) s ON true", "11|null"),
        ("a.v, s.k FROM a LEFT JOIN LATERAL (SELECT 3 AS k FROM b WHERE b.w < a.v) s ON true", "11|3"),
        ("a.v, b.w FROM a LEFT JOIN b ON b.y IS NULL", "11|7"),
        ("a.v, s.n FROM a LEFT JOIN (b LEFT JOIN (SELECT 9 AS n FROM c) s ON b.w = 7) ON true", "11|9"),
        ("a.v, g FROM a LEFT JOIN generate_series(1, 1) g ON true", "11|1"),
        ("a.v, s.x, s.k FROM a LEFT JOIN (SELECT c.z AS x, 4 AS k FROM b FULL JOIN c ON false) s ON s.x = 5", "11|5|4"),
        // What was not there stays so.
        ("a.v, s.n FROM a LEFT JOIN (SELECT 42 AS n FROM nothing) s ON true", "11|null"),
        ("a.v, s.n FROM a LEFT JOIN (SELECT coalesce(y, 3) AS n FROM b WHERE w = 8) s ON true", "11|null"),
        ("a.v, s.n, c.z FROM a LEFT JOIN (SELECT 42 AS n FROM nothing) s ON true LEFT JOIN c ON true", "11|null|5"),
    ];
    for (select, expected) in cases {
        // A subquery in the list is beyond what is computed row by row.
        for (more, value) in [("", ""), (", a.v + 1", "|12"), (", (SELECT max(w) FROM b)", "|7")] {
            a.run("UPDATE a SET v = 10")?;
            let (columns, rest) = select.split_once(" FROM ").context("no FROM")?;
            let sql = format!("SELECT {columns}{more} FROM {rest} FOR UPDATE OF a");
            let found = after_change(&mut a, &mut b, "UPDATE a SET v = v + 1 WHERE id = 1", &sql)?;
            assert_eq!(found, [format!("{expected}{value}")], "{sql}");
        }
    }
    Ok(())
}

/// A foreign key's kind of lock: what leaves the key alone is none of its business.
#[test]
fn key_share_under_repeatable_read_goes_with_updates_of_other_columns() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, v int)")?;
    a.run("INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)")?;
    a.run("VACUUM t")?;
    for sql in ["SELECT v FROM t WHERE id = 1", "SELECT v FROM t WHERE v < 20"] {
        a.run("UPDATE t SET v = 10 WHERE id = 1")?;
        b.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        b.run("SELECT 1 FROM t")?;
        a.run("UPDATE t SET v = 100 WHERE id = 1")?;
        let locked = b.simple(&format!("{sql} FOR KEY SHARE"), None)?;
        assert_eq!(rows_of(&locked)?, ["10"], "{sql}");
        // Nor is one that has not ended.
        a.run("BEGIN")?;
        a.run("UPDATE t SET v = 101 WHERE id = 1")?;
        assert_eq!(rows_of(&b.simple(&format!("{sql} FOR KEY SHARE"), None)?)?, ["10"], "{sql}");
        a.run("COMMIT")?;
        // The lock is held, and a stronger one meets the change.
        assert_eq!(a.simple("SELECT 1 FROM t WHERE id = 1 FOR UPDATE NOWAIT", None)?.sqlstate(), Some("55P03"));
        assert_eq!(b.simple(&format!("{sql} FOR SHARE"), None)?.sqlstate(), Some("40001"), "{sql}");
        b.run("ROLLBACK")?;
    }
    for change in ["DELETE FROM t WHERE id = 2", "UPDATE t SET id = 9 WHERE id = 3"] {
        b.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        b.run("SELECT 1 FROM t")?;
        a.run(change)?;
        assert_eq!(b.simple("SELECT v FROM t ORDER BY id FOR KEY SHARE", None)?.sqlstate(), Some("40001"), "{change}");
        b.run("ROLLBACK")?;
    }
    Ok(())
}

#[test]
fn explain_analyze_locks_what_it_runs_over() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    wire.run("CREATE TABLE t (id int PRIMARY KEY, v int)")?;
    wire.run("INSERT INTO t VALUES (1, 1), (2, 2)")?;
    for sql in [
        "SELECT * FROM t WHERE id = 1 FOR UPDATE",
        "SELECT * FROM t FOR SHARE",
        "SELECT count(*) FROM (SELECT * FROM t FOR UPDATE) q",
    ] {
        wire.run("BEGIN")?;
        let free = "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT";
        wire.run(&format!("EXPLAIN {sql}"))?;
        assert_eq!(other.simple(free, None)?.sqlstate(), None, "EXPLAIN alone locks nothing: {sql}");
        wire.run(&format!("EXPLAIN ANALYZE {sql}"))?;
        assert_eq!(other.simple(free, None)?.sqlstate(), Some("55P03"), "{sql}");
        wire.run("ROLLBACK")?;
    }
    Ok(())
}

/// Rows that all changed while they were waited for, with values and order as the second look finds them.
#[test]
fn many_changed_rows_are_looked_at_again() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, v int, s text, n numeric(20, 2), l int[])")?;
    a.run("INSERT INTO t SELECT g, g, 's' || g, g + 0.25, ARRAY[g, null] FROM generate_series(1, 5000) g")?;
    let started = std::time::Instant::now();
    let sql = "SELECT id, v * 2, s, n, l FROM t WHERE v > 0 AND v % 2 = 1 ORDER BY v DESC FOR UPDATE";
    let found = after_change(&mut a, &mut b, "UPDATE t SET v = v + 2 * (id % 4), s = s || '!' WHERE id > 10", sql)?;
    let expected = (0..2500).map(|at| 4999 - 2 * at).map(|id| match id > 10 {
        true => format!("{id}|{}|s{id}!|{id}.25|{{{id},NULL}}", 2 * (id + 2 * (id % 4))),
        false => format!("{id}|{}|s{id}|{id}.25|{{{id},NULL}}", 2 * id),
    });
    assert_eq!(found, expected.collect::<Vec<_>>());
    let found = after_change(&mut a, &mut b, "UPDATE t SET v = -id", "SELECT id FROM t WHERE v > 0 FOR UPDATE")?;
    assert!(found.is_empty(), "{} rows pass", found.len());
    eprintln!("second looks: {} ms", started.elapsed().as_millis());
    Ok(())
}

#[test]
fn locked_rows_are_held_within_the_memory_of_queries() -> Result<()> {
    let server = Basalt::start_with(BasaltOptions::default().set("basalt.query_memory_limit=16MB"))?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, s text)")?;
    wire.run("INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 40000) g")?;
    for sql in [
        "SELECT * FROM t FOR UPDATE",
        "SELECT count(s) FROM (SELECT * FROM t FOR UPDATE) q",
        "SELECT * FROM t LIMIT 39000 FOR UPDATE",
    ] {
        assert_eq!(wire.simple(sql, None)?.sqlstate(), Some("53200"), "{sql}");
    }
    // What is let go can be taken again, and what is not asked for is not held.
    for _ in 0..5 {
        let found = wire.run("SELECT * FROM t WHERE id <= 9000 FOR UPDATE")?;
        assert_eq!(found.rows.len(), 9000);
        let found = wire.run("SELECT count(*) FROM (SELECT id FROM t FOR UPDATE) q")?;
        assert_eq!(found.text(0, 0), Some("40000"));
    }
    Ok(())
}
