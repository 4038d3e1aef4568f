//! Indexes that rest in files: they are there when CREATE INDEX returns, take part in scans, and outlive the process.

use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;
use std::time::{Duration, Instant};

fn lines(wire: &mut Wire, sql: &str) -> Result<Vec<String>> {
    let reply = wire.run(sql)?;
    Ok((0..reply.rows.len()).map(|row| reply.text(row, 0).unwrap_or_default().to_string()).collect())
}

/// How many rows bitmaps have chosen for a condition; `None`: they took no part.
fn chosen(wire: &mut Wire, condition: &str) -> Result<Option<u64>> {
    let told = lines(wire, &format!("EXPLAIN ANALYZE SELECT count(*), sum(id) FROM t WHERE {condition}"))?;
    let found = told.iter().find_map(|line| line.trim().strip_prefix("Rows Chosen by Bitmaps: "));
    Ok(found.map(str::parse).transpose()?)
}

const CONDITIONS: [&str; 6] = [
    "kind = 7",
    "kind IN (3, 5, 5000)",
    "name = 'n 12'",
    "kind = 7 AND name >= 'n 1' AND name < 'n 11'",
    "ratio BETWEEN 1 AND 1.5 AND kind = 7",
    "kind IS NULL",
];

fn answers(wire: &mut Wire) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for condition in CONDITIONS {
        all.extend(lines(wire, &format!("SELECT count(*) || ' ' || coalesce(sum(id), 0) FROM t WHERE {condition}"))?);
    }
    Ok(all)
}

fn filled(wire: &mut Wire) -> Result<()> {
    wire.run("CREATE TABLE t (id int PRIMARY KEY, kind int, name text, ratio float8)")?;
    wire.run(
        "INSERT INTO t SELECT i, CASE WHEN i > 199900 THEN NULL ELSE i * 7919 % 500 END, 'n ' || i * 31 % 500, i % 1000 / 16.0
         FROM generate_series(1, 200000) i",
    )?;
    wire.run("VACUUM t")?;
    Ok(())
}

/// Waits for the background.
fn come(wire: &mut Wire) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(60);
    while chosen(wire, "kind = 7")?.is_none() {
        ensure!(Instant::now() < until, "no file has been rewritten");
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

#[test]
fn bitmaps_take_part_as_soon_as_they_are_made_and_after_a_kill() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut server = Basalt::start_on(&dir.path().join("data"), &dir.path().join("log"), BasaltOptions::default())?;
    let mut wire = server.connect()?;
    filled(&mut wire)?;
    let expected = answers(&mut wire)?;
    ensure!(chosen(&mut wire, "kind = 7")?.is_none(), "there are none yet");
    // In a block the index is there at once, and its files in the background.
    wire.run("BEGIN")?;
    wire.run("CREATE INDEX ON t USING bitmap (ratio)")?;
    wire.run("ROLLBACK")?;
    wire.run("CREATE INDEX bits ON t USING bitmap (kind, name, ratio)")?;
    let take_part = |wire: &mut Wire| {
        for condition in CONDITIONS {
            let rows = lines(wire, &format!("SELECT count(*) FROM t WHERE {condition}"))?[0].parse::<u64>()?;
            let chosen = chosen(wire, condition)?;
            ensure!(chosen == Some(rows), "{condition}: {chosen:?} of {rows}");
        }
        ensure!(chosen(wire, "kind + 0 = 7")?.is_none(), "a condition on no column");
        ensure!(chosen(wire, "kind >= 0")?.is_none(), "nearly all rows");
        Ok(())
    };
    take_part(&mut wire)?;
    ensure!(answers(&mut wire)? == expected, "{:?}", answers(&mut wire)?);
    server.kill_and_start()?;
    wire = server.connect()?;
    // A move that was not yet durable is made again.
    come(&mut wire)?;
    take_part(&mut wire)?;
    ensure!(answers(&mut wire)? == expected, "after a restart");
    // Rows that are deleted, moved and new are seen as they are.
    wire.run("DELETE FROM t WHERE kind = 7 AND id % 3 = 0")?;
    wire.run("UPDATE t SET kind = 7 WHERE kind = 8 AND id % 3 = 0")?;
    wire.run("INSERT INTO t VALUES (0, 7, 'n 12', 1.25), (-1, NULL, NULL, 'NaN')")?;
    let with = answers(&mut wire)?;
    wire.run("DROP INDEX bits")?;
    ensure!(chosen(&mut wire, "kind = 7")?.is_none(), "of an index that is gone nothing is asked");
    ensure!(with == answers(&mut wire)?, "{with:?}");
    wire.run("CREATE INDEX CONCURRENTLY bits ON t USING bitmap (kind, name, ratio)")?;
    wire.run("VACUUM t")?;
    ensure!(chosen(&mut wire, "kind = 7")?.is_some());
    ensure!(with == answers(&mut wire)?, "{with:?}");
    Ok(())
}

#[test]
fn files_of_before_get_them_in_the_background() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    filled(&mut wire)?;
    let expected = answers(&mut wire)?;
    wire.run("BEGIN")?;
    wire.run("CREATE INDEX bits ON t USING bitmap (kind, name, ratio)")?;
    wire.run("COMMIT")?;
    come(&mut wire)?;
    ensure!(answers(&mut wire)? == expected, "{:?}", answers(&mut wire)?);
    Ok(())
}

/// A filter that is asked for is there where nobody would have made one: of few values, and of few rows.
#[test]
fn filters_are_made_where_they_are_asked_for() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, part int, noise int)")?;
    // Every third value is missing, and all row groups have the same bounds.
    wire.run("INSERT INTO t SELECT i, i * 7919 % 1000 * 3, i FROM generate_series(1, 100000) i")?;
    wire.run("VACUUM t")?;
    let filtered = |wire: &mut Wire| {
        let told = lines(wire, "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE part = 1501")?;
        Ok::<bool, anyhow::Error>(told.iter().any(|line| line.trim() == "Row Groups Pruned by Filters: 2"))
    };
    ensure!(!filtered(&mut wire)?, "a filter without an index would make this test say nothing");
    wire.run("CREATE INDEX ON t USING bloom (part)")?;
    ensure!(filtered(&mut wire)?, "{:?}", lines(&mut wire, "EXPLAIN ANALYZE SELECT count(*) FROM t WHERE part = 1501"));
    ensure!(lines(&mut wire, "SELECT count(*) FROM t WHERE part = 1500")? == ["100"]);
    Ok(())
}

/// What an index is accepted for it is used for: each type with a constant as programs write it.
#[test]
fn every_type_that_can_be_indexed_is_looked_up() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TYPE mood AS ENUM ('sad', 'fine', 'glad')")?;
    wire.run("CREATE DOMAIN code AS varchar(8) CHECK (value <> '')")?;
    wire.run("CREATE DOMAIN small AS int CHECK (value < 1000)")?;
    for (ty, value, asked, rows) in [
        ("int", "i % 400", "= 7", 50),
        ("smallint", "i % 400", "= 7", 50),
        ("bigint", "i % 400", "IN (7, 8)", 100),
        ("boolean", "i % 400 = 1", "= true", 50),
        ("boolean", "i % 400 = 1", "", 50),
        ("real", "i % 400 / 4.0", "= 1.75", 50),
        ("real", "i % 400 / 4.0", ">= 99.5", 100),
        ("float8", "CASE WHEN i % 400 = 3 THEN 'NaN'::float8 ELSE i % 400 END", "= 'NaN'", 50),
        ("numeric(8,2)", "i % 400", "= 7.00", 50),
        ("numeric(30,2)", "i % 400", "< 2", 100),
        ("numeric", "i % 400", "= 7.000", 50),
        ("numeric", "i % 400", "> 397.5", 100),
        ("text", "'t' || i % 400", "= 't7'", 50),
        ("text", "'t' || i % 400", "LIKE 't399%'", 50),
        ("text", "'t' || i % 400", "LIKE 't7%'", 550),
        ("varchar", "'t' || i % 400", "= 't7'", 50),
        ("varchar(5)", "'t' || i % 400", "IN ('t7', 't8')", 100),
        ("varchar(5)", "'t' || i % 400", "LIKE 't399%'", 50),
        ("char(5)", "'t' || i % 400", "= 't7'", 50),
        ("code", "'t' || i % 400", "= 't7'", 50),
        ("small", "i % 400", "= 7", 50),
        ("bytea", "('t' || i % 400)::bytea", "= 't7'", 50),
        ("uuid", "md5((i % 400)::text)::uuid", "= md5('7')::uuid", 50),
        ("date", "date '2024-01-01' + i % 400", "= '2024-01-08'", 50),
        ("date", "date '2024-01-01' + i % 400", "< timestamp '2024-01-02 12:00'", 100),
        ("time", "time '00:00' + i % 400 * interval '1 minute'", "= '00:07'", 50),
        ("timestamp", "timestamp '2024-01-01' + i % 400 * interval '1 h'", "= '2024-01-01 07:00'", 50),
        (
            "timestamptz",
            "timestamptz '2024-01-01' + i % 400 * interval '1 h'",
            "= timestamptz '2024-01-01' + interval '7 h'",
            50,
        ),
        ("mood", "CASE i % 400 WHEN 7 THEN 'glad' WHEN 8 THEN 'fine' ELSE 'sad' END::mood", "= 'glad'", 50),
        ("mood", "CASE i % 400 WHEN 7 THEN 'glad' WHEN 8 THEN 'fine' ELSE 'sad' END::mood", "> 'sad'", 100),
        ("int", "CASE WHEN i % 400 = 7 THEN NULL ELSE i END", "IS NULL", 50),
    ] {
        let what = format!("{ty} {asked}");
        wire.run(&format!("CREATE TABLE t (id int PRIMARY KEY, v {ty})"))?;
        wire.run(&format!("INSERT INTO t SELECT i, {value} FROM generate_series(1, 20000) i"))?;
        wire.run("CREATE INDEX ON t USING bitmap (v)")?;
        wire.run("VACUUM t")?;
        let condition = format!("v {asked}");
        ensure!(
            lines(&mut wire, &format!("SELECT count(*) FROM t WHERE {condition}"))? == [rows.to_string()],
            "{what}"
        );
        let found = chosen(&mut wire, &condition)?;
        // More of the rows than that bitmaps do not name.
        let expected = (rows <= 20_000 / 128).then_some(rows);
        ensure!(found == expected, "{what}: {found:?}");
        wire.run("DROP TABLE t")?;
    }
    for ty in ["interval", "jsonb", "int[]", "inet", "oid", "name", "money", "int4range", "timetz", "bit(3)"] {
        wire.run(&format!("CREATE TABLE t (id int PRIMARY KEY, v {ty})"))?;
        for method in ["bitmap", "bloom"] {
            let refused = wire.simple(&format!("CREATE INDEX ON t USING {method} (v)"), None)?;
            ensure!(refused.sqlstate() == Some("42704"), "{ty}, {method}: {refused:?}");
        }
        wire.run("DROP TABLE t")?;
    }
    Ok(())
}

/// CREATE INDEX is part of its transaction, however that was begun.
#[test]
fn an_index_comes_with_its_transaction_or_not_at_all() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    filled(&mut wire)?;
    let indexes = |wire: &mut Wire| lines(wire, "SELECT count(*) FROM pg_indexes WHERE tablename = 't'");
    for broken in [
        "CREATE INDEX a ON t USING bitmap (kind); SELECT 1/0",
        "CREATE INDEX a ON t USING bitmap (kind); CREATE INDEX b ON t USING bloom (name); INSERT INTO t VALUES (1)",
        "DROP INDEX IF EXISTS b; CREATE INDEX a ON t USING bitmap (kind); SELECT 1/0",
        "SELECT count(*) FROM t; CREATE INDEX a ON t USING bitmap (kind); SELECT 1/0",
        "BEGIN; CREATE INDEX a ON t USING bitmap (kind); SELECT 1/0; COMMIT",
    ] {
        ensure!(wire.simple(broken, None)?.sqlstate().is_some(), "{broken}");
        wire.simple("ROLLBACK", None)?;
        ensure!(indexes(&mut wire)? == ["1"], "{broken}");
    }
    // Locks are held to the end of the message.
    let mut other = server.connect()?;
    other.run("SET lock_timeout = '200ms'")?;
    let held = std::thread::spawn(move || -> Result<Wire> {
        wire.simple(
            "SELECT id FROM t WHERE id = 1 FOR UPDATE; CREATE INDEX a ON t USING bitmap (kind); SELECT pg_sleep(1.5)",
            None,
        )?;
        Ok(wire)
    });
    std::thread::sleep(Duration::from_millis(500));
    let refused = other.simple("UPDATE t SET kind = 3 WHERE id = 1", None)?;
    ensure!(refused.sqlstate() == Some("55P03"), "{refused:?}");
    let mut wire = held.join().map_err(|_| anyhow::anyhow!("the holder panicked"))??;
    ensure!(indexes(&mut wire)? == ["2"]);
    ensure!(chosen(&mut wire, "kind = 7")?.is_some(), "it is complete when the message is answered");
    Ok(())
}
