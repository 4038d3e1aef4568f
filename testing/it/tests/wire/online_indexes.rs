//! CREATE INDEX, REINDEX and DROP INDEX CONCURRENTLY beside writers and readers, canceled, and killed at every step.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn one(wire: &mut Wire, sql: &str) -> Result<String> {
    let reply = wire.run(sql)?;
    Ok(reply.text(0, 0).context("a value")?.to_string())
}

fn states(wire: &mut Wire, name: &str) -> Result<String> {
    one(
        wire,
        &format!(
            "SELECT coalesce((SELECT concat(indisvalid, indisready, indislive) FROM pg_index
                JOIN pg_class ON pg_class.oid = indexrelid WHERE relname = '{name}'), 'gone')"
        ),
    )
}

/// What the index finds is what the table has.
fn assert_finds_all(wire: &mut Wire) -> Result<()> {
    let wrong = "SELECT count(*) FROM (SELECT DISTINCT k FROM t) d
        WHERE (SELECT count(*) FROM t WHERE t.k = d.k) <> (SELECT count(*) FROM t WHERE t.k + 0 = d.k)";
    ensure!(one(wire, wrong)? == "0", "a lookup and a scan differ");
    for k in 0..50 {
        let found = one(wire, &format!("SELECT count(*) FROM t WHERE k = {k}"))?;
        ensure!(found == one(wire, &format!("SELECT count(*) FROM t WHERE k + 0 = {k}"))?, "of k = {k}: {found}");
    }
    Ok(())
}

#[test]
fn writers_and_readers_go_on_beside_a_build_that_waits() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b, mut c) = (server.connect()?, server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, k int)")?;
    a.run("INSERT INTO t SELECT g, g % 50 FROM generate_series(1, 2000) g")?;
    for (sql, name, before) in [
        ("CREATE INDEX CONCURRENTLY t_k ON t (k)", "t_k", "fft"),
        ("REINDEX INDEX CONCURRENTLY t_k", "t_k_ccnew", "fft"),
        ("DROP INDEX CONCURRENTLY t_k", "t_k", "ftt"),
    ] {
        a.run("BEGIN")?;
        a.run("UPDATE t SET k = k + 1 WHERE id <= 100")?;
        b.send_simple(sql)?;
        std::thread::sleep(Duration::from_millis(300));
        ensure!(states(&mut c, name)? == before, "{sql}: {}", states(&mut c, name)?);
        c.run("SET lock_timeout = '5s'")?;
        c.run("INSERT INTO t VALUES (100000, 7)")?;
        c.run("UPDATE t SET k = 8 WHERE id = 100000")?;
        c.run("SELECT * FROM t WHERE k = 7")?;
        c.run("DELETE FROM t WHERE id = 100000")?;
        // What alters the table waits for the build.
        c.run("SET lock_timeout = '100ms'")?;
        let refused = c.simple("ALTER TABLE t ADD COLUMN more int", None)?;
        ensure!(refused.sqlstate() == Some("55P03"), "{:?}", refused.sqlstate());
        a.run("COMMIT")?;
        let done = b.answer(None)?;
        ensure!(done.error().is_none(), "{sql}: {}", done.error().map_or("", |error| error.message()));
        ensure!(states(&mut c, "t_k_ccnew")? == "gone" && states(&mut c, "t_k_ccold")? == "gone");
        ensure!(states(&mut c, "t_k")? == if sql.starts_with("DROP") { "gone" } else { "ttt" });
        assert_finds_all(&mut c)?;
    }
    Ok(())
}

#[test]
fn a_build_that_is_ended_leaves_an_index_that_is_not_valid() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, k int)")?;
    a.run("INSERT INTO t SELECT g, g % 50 FROM generate_series(1, 2000) g")?;
    for (setting, sqlstate) in [("statement_timeout", "57014"), ("lock_timeout", "55P03")] {
        a.run("BEGIN")?;
        a.run("UPDATE t SET k = k + 1 WHERE id = 1")?;
        b.run(&format!("SET {setting} = '200ms'"))?;
        let ended = b.simple("CREATE INDEX CONCURRENTLY t_k ON t (k)", None)?;
        ensure!(ended.sqlstate() == Some(sqlstate), "{:?}", ended.sqlstate());
        ensure!(states(&mut b, "t_k")? == "fft");
        a.run("UPDATE t SET k = k + 1 WHERE id = 2")?;
        a.run("COMMIT")?;
        assert_finds_all(&mut b)?;
        b.run(&format!("RESET {setting}"))?;
        b.run("REINDEX INDEX CONCURRENTLY t_k")?;
        ensure!(states(&mut b, "t_k")? == "ttt");
        assert_finds_all(&mut b)?;
        b.run("DROP INDEX CONCURRENTLY t_k")?;
    }
    // Twins; rows that are written anew have all their entries.
    let twins = b.simple("CREATE UNIQUE INDEX CONCURRENTLY t_k ON t (k)", None)?;
    ensure!(twins.sqlstate() == Some("23505") && states(&mut b, "t_k")? == "ftt");
    b.run("TRUNCATE t")?;
    ensure!(states(&mut b, "t_k")? == "ttt");
    Ok(())
}

/// Writers that go on whatever is built.
fn write(wire: &mut Wire, seed: usize, over: &AtomicBool) -> Result<()> {
    let mut at = seed;
    while !over.load(Ordering::Relaxed) {
        at += 1;
        let id = 1 + at * 7919 % 3000;
        let sql = match at % 5 {
            0 => format!("DELETE FROM t WHERE id = {id}"),
            1 => format!("INSERT INTO t VALUES ({id}, {}) ON CONFLICT (id) DO UPDATE SET k = excluded.k", at % 50),
            2 => format!("UPDATE t SET id = id + 10000 WHERE id = {id}"),
            3 => format!(
                "INSERT INTO t SELECT g, g % 50 FROM generate_series({0}, {0} + 40) g ON CONFLICT DO NOTHING",
                id
            ),
            _ => format!("UPDATE t SET k = (k + 1) % 50 WHERE id BETWEEN {id} AND {id} + 10"),
        };
        let answer = wire.simple(&sql, None)?;
        let fine = answer.error().is_none_or(|error| ["23505", "40P01"].contains(&error.sqlstate()));
        ensure!(fine, "{sql}: {}", answer.error().map_or("", |error| error.message()));
    }
    Ok(())
}

#[test]
fn every_row_is_found_after_builds_beside_writers() -> Result<()> {
    let server = Basalt::start_with(BasaltOptions::default().set("basalt.bulk_rows_min=1000"))?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, k int)")?;
    wire.run("INSERT INTO t SELECT g, g % 50 FROM generate_series(1, 3000) g")?;
    wire.run("VACUUM t")?;
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let mut writers = Vec::new();
        for seed in 0..3 {
            let (mut own, over) = (server.connect()?, &over);
            writers.push(scope.spawn(move || write(&mut own, seed * 1000, over)));
        }
        let mut build = || -> Result<()> {
            for _ in 0..3 {
                wire.run("CREATE INDEX CONCURRENTLY t_k ON t (k)")?;
                wire.run("CREATE INDEX CONCURRENTLY t_odd ON t ((k * 2)) WHERE k % 2 = 1")?;
                wire.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
                assert_finds_all(&mut wire)?;
                wire.run("COMMIT")?;
                wire.run("REINDEX TABLE CONCURRENTLY t")?;
                wire.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
                assert_finds_all(&mut wire)?;
                wire.run("COMMIT")?;
                wire.run("DROP INDEX CONCURRENTLY t_k")?;
                wire.run("DROP INDEX CONCURRENTLY t_odd")?;
            }
            Ok(())
        };
        let built = build();
        over.store(true, Ordering::Relaxed);
        for writer in writers {
            writer.join().expect("the thread lives")?;
        }
        built
    })
}

/// The steps of a build: two states, transactions of rows, the last one.
#[test]
fn a_build_that_is_killed_leaves_an_index_that_is_not_valid() -> Result<()> {
    for step in 1..=6 {
        let dir = tempfile::tempdir()?;
        let (data, log) = (dir.path().join("data"), dir.path().join("log"));
        let mut armed = BasaltOptions::default();
        armed.env.push(("BASALT_FAILPOINT".into(), format!("chain-committed:{step}")));
        let server = Basalt::start_on(&data, &log, armed)?;
        let mut wire = server.connect()?;
        wire.run("CREATE TABLE t (id int PRIMARY KEY, k int)")?;
        wire.run("INSERT INTO t SELECT g, g % 50 FROM generate_series(1, 300) g")?;
        ensure!(wire.simple("CREATE UNIQUE INDEX CONCURRENTLY t_k ON t (k, id)", None).is_err(), "step {step} is none");
        drop(server);
        let server = Basalt::start_on(&data, &log, BasaltOptions::default())?;
        let mut wire = server.connect()?;
        let found = states(&mut wire, "t_k")?;
        ensure!(["gone", "fft", "ftt"].contains(&found.as_str()), "after step {step}: {found}");
        wire.run("UPDATE t SET k = k + 1 WHERE id % 3 = 0")?;
        wire.run("DELETE FROM t WHERE id % 7 = 0")?;
        wire.run("INSERT INTO t VALUES (1000, 3)")?;
        assert_finds_all(&mut wire)?;
        match found.as_str() {
            "gone" => wire.run("CREATE UNIQUE INDEX CONCURRENTLY t_k ON t (k, id)")?,
            _ if step % 2 == 0 => wire.run("REINDEX INDEX CONCURRENTLY t_k")?,
            _ => {
                wire.run("DROP INDEX CONCURRENTLY t_k")?;
                wire.run("CREATE INDEX t_k ON t (k)")?
            }
        };
        ensure!(states(&mut wire, "t_k")? == "ttt");
        assert_finds_all(&mut wire)?;
    }
    Ok(())
}
