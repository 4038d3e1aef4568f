//! UPDATE and DELETE of more rows than memory holds (docs/decisions/0022-transactions-larger-than-memory.md).

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::{Fields, Wire};
use std::time::Duration;

const MEMORY_MB: u64 = 64;
/// Some 230 bytes each: more than three times the memory.
const ROWS: u64 = 1_000_000;

fn small() -> BasaltOptions {
    BasaltOptions::default().set(&format!("basalt.memory_limit={MEMORY_MB}MB")).set("basalt.cool_after=1h")
}

fn fill(wire: &mut Wire) -> Result<()> {
    wire.run("CREATE TABLE t (id bigint PRIMARY KEY, x int NOT NULL, filler text)")?;
    wire.run("CREATE INDEX ON t (filler)")?;
    wire.run(&format!("INSERT INTO t SELECT i, i % 10, repeat(md5(i::text), 6) FROM generate_series(1, {ROWS}) i"))?;
    Ok(())
}

fn number(wire: &mut Wire, sql: &str) -> Result<u64> {
    Ok(wire.run(sql)?.text(0, 0).context("a null")?.parse()?)
}

/// The most that the process has had in memory since this was asked last.
fn peak_mb(server: &Basalt) -> Result<u64> {
    let id = server.process_id().context("it does not run")?;
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("no VmHWM")?;
    let kb: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
    std::fs::write(format!("/proc/{id}/clear_refs"), "5")?;
    Ok(kb / 1024)
}

fn sum(wire: &mut Wire) -> Result<u64> {
    number(wire, "SELECT sum(x) FROM t")
}

/// Until the server has nothing to do: merges of what was written, of the index's entries too, take memory of their own.
fn wait_until_idle(server: &Basalt) -> Result<()> {
    let id = server.process_id().context("it does not run")?;
    let ticks = || -> Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
        let (_, fields) = stat.rsplit_once(')').context("no name")?;
        let field = |at: usize| fields.split_whitespace().nth(at).context("no field");
        Ok(field(11)?.parse::<u64>()? + field(12)?.parse::<u64>()?)
    };
    let (mut before, mut idle) = (ticks()?, 0);
    for _ in 0..240 {
        std::thread::sleep(Duration::from_millis(250));
        let now = ticks()?;
        idle = if now <= before + 2 { idle + 1 } else { 0 };
        if idle == 12 {
            return Ok(());
        }
        before = now;
    }
    anyhow::bail!("it does not come to rest")
}

const SUM: u64 = ROWS / 10 * 45;

#[test]
fn all_rows_of_a_table_larger_than_memory_are_changed() -> Result<()> {
    let mut server = Basalt::start_with(small())?;
    let mut wire = server.connect()?;
    wire.set_read_timeout(Duration::from_secs(600))?;
    fill(&mut wire)?;
    wait_until_idle(&server)?;
    peak_mb(&server)?;
    assert_eq!(wire.run("UPDATE t SET x = x + 1")?.tag, Some(format!("UPDATE {ROWS}")));
    let updated = peak_mb(&server)?;
    assert_eq!(sum(&mut wire)?, SUM + ROWS);
    // Within one transaction, and taken back.
    wire.run("BEGIN")?;
    wire.run("UPDATE t SET x = x + 1 WHERE id % 2 = 0")?;
    wire.run("SAVEPOINT s")?;
    assert_eq!(wire.run("DELETE FROM t WHERE id % 2 = 1 AND x < 0")?.tag.as_deref(), Some("DELETE 0"));
    wire.run("UPDATE t SET x = 0")?;
    assert_eq!(sum(&mut wire)?, 0);
    wire.run("ROLLBACK TO s")?;
    assert_eq!(sum(&mut wire)?, SUM + ROWS + ROWS / 2);
    wire.run("ROLLBACK")?;
    assert_eq!(sum(&mut wire)?, SUM + ROWS);
    let peak = updated.max(peak_mb(&server)?);
    println!("peaks: {updated} MB, {peak} MB");
    // The process's own needs, encoders and the query beside what the limit covers; not the table, not its locks.
    assert!(peak < MEMORY_MB + 400, "{peak} MB");
    server.kill_and_start()?;
    let mut wire = server.connect()?;
    wire.set_read_timeout(Duration::from_secs(600))?;
    assert_eq!((sum(&mut wire)?, number(&mut wire, "SELECT count(*) FROM t")?), (SUM + ROWS, ROWS));
    // An index that keeps its entries leads to the new versions.
    let by_index = "SELECT x FROM t WHERE filler = repeat(md5('77'), 6)";
    assert_eq!(wire.run(by_index)?.text(0, 0), Some("8"));
    wire.run("DROP INDEX t_filler_idx")?;
    peak_mb(&server)?;
    assert_eq!(wire.run("DELETE FROM t")?.tag, Some(format!("DELETE {ROWS}")));
    assert_eq!(number(&mut wire, "SELECT count(*) FROM t")?, 0);
    let peak = peak_mb(&server)?;
    assert!(peak < MEMORY_MB + 400, "{peak} MB");
    server.kill_and_start()?;
    assert_eq!(number(&mut server.connect()?, "SELECT count(*) FROM t")?, 0);
    Ok(())
}

/// The control: one by one they are too many.
#[test]
fn row_by_row_they_are_too_many() -> Result<()> {
    let server = Basalt::start_with(small().set("basalt.large_changes_min=1000000000"))?;
    let mut wire = server.connect()?;
    wire.set_read_timeout(Duration::from_secs(600))?;
    fill(&mut wire)?;
    assert_eq!(wire.simple("UPDATE t SET x = x + 1", None)?.sqlstate(), Some("53200"));
    assert_eq!(sum(&mut wire)?, SUM);
    Ok(())
}

/// Killed at many moments: all of an UPDATE or nothing of it.
#[test]
fn nothing_is_half_done_after_a_kill() -> Result<()> {
    let mut server = Basalt::start_with(small().set("basalt.large_changes_min=1000"))?;
    let mut wire = server.connect()?;
    fill(&mut wire)?;
    let mut expected = SUM;
    for round in 0..6u64 {
        let mut client = server.connect()?;
        client.send_simple("UPDATE t SET x = x + 1")?;
        let mut waiter = client.try_clone()?;
        let told = std::thread::spawn(move || waiter.answer(None).is_ok_and(|answer| answer.sqlstate().is_none()));
        std::thread::sleep(Duration::from_millis(300 + 900 * round));
        server.kill_and_start()?;
        let acknowledged = told.join().expect("it does not panic");
        let mut wire = server.connect()?;
        wire.set_read_timeout(Duration::from_secs(600))?;
        let found = sum(&mut wire)?;
        ensure!(
            found == expected + ROWS || (found == expected && !acknowledged),
            "round {round}: {found}, expected {expected} or {ROWS} more, acknowledged: {acknowledged}"
        );
        assert_eq!(number(&mut wire, "SELECT count(*) FROM t")?, ROWS);
        expected = found;
    }
    Ok(())
}

/// Steps before the commit record: none of them leaves anything.
#[test]
fn a_death_at_a_step_of_a_large_change_undoes_it() -> Result<()> {
    for place in ["large-marked:1", "large-marked:3", "large-registered:1"] {
        let dir = tempfile::tempdir()?;
        let (data, log) = (dir.path().join("data"), dir.path().join("log"));
        let options = || BasaltOptions::default().set("basalt.large_changes_min=1").set("basalt.segment_rows=65536");
        let mut armed = options();
        armed.env.push(("BASALT_FAILPOINT".into(), place.into()));
        let server = Basalt::start_on(&data, &log, armed)?;
        let mut wire = server.connect()?;
        wire.run("CREATE TABLE t (id bigint PRIMARY KEY, x int NOT NULL)")?;
        wire.run("INSERT INTO t SELECT i, 1 FROM generate_series(1, 200000) i")?;
        let outcome = wire.simple("UPDATE t SET x = x + 1", None);
        ensure!(outcome.is_err(), "{place}: {:?}", outcome.map(|answer| answer.last().tag.clone()));
        drop(server);
        let server = Basalt::start_on(&data, &log, options())?;
        let mut wire = server.connect()?;
        assert_eq!((sum(&mut wire)?, number(&mut wire, "SELECT count(*) FROM t")?), (200_000, 200_000), "{place}");
        wire.run("UPDATE t SET x = x + 1")?;
        assert_eq!(sum(&mut wire)?, 400_000, "{place}");
    }
    Ok(())
}

/// Tables that nobody else knows yet, and tablets that a table has only in this transaction.
#[test]
fn what_the_same_transaction_has_made_is_changed() -> Result<()> {
    let mut server = Basalt::start_with(BasaltOptions::default())?;
    const NUMBERS: &str = "SELECT i, 0 FROM generate_series(1, 40000) i";
    for (name, made, is_kept) in [
        ("a", vec![format!("CREATE TABLE a (id, x) AS {NUMBERS}")], true),
        ("b", vec!["CREATE TABLE b (id int PRIMARY KEY, x int)".into(), format!("INSERT INTO b {NUMBERS}")], true),
        ("c", vec![format!("CREATE TEMP TABLE c (id, x) ON COMMIT DROP AS {NUMBERS}")], false),
        ("d", vec!["ALTER TABLE d ALTER x TYPE bigint".into()], true),
        ("e", vec!["TRUNCATE e".into(), format!("INSERT INTO e {NUMBERS}")], true),
    ] {
        for changes in [false, true] {
            let mut wire = server.connect()?;
            if name == "d" || name == "e" {
                wire.run(&format!("CREATE TABLE {name} (id int PRIMARY KEY, x int)"))?;
                wire.run(&format!("INSERT INTO {name} {NUMBERS}"))?;
            }
            let content = format!("SELECT sum(x), count(*) FROM {name}");
            let told = |wire: &mut Wire| -> Result<(Option<String>, Option<String>)> {
                let answer = wire.run(&content)?;
                Ok((answer.text(0, 0).map(String::from), answer.text(0, 1).map(String::from)))
            };
            let pair = |sum: &str, count: &str| (Some(sum.to_string()), Some(count.to_string()));
            wire.run("BEGIN")?;
            for sql in &made {
                wire.run(sql)?;
            }
            let change = match changes {
                true => format!("UPDATE {name} SET x = x + 1"),
                false => format!("DELETE FROM {name} WHERE id % 2 = 0"),
            };
            let expected = if changes { pair("40000", "40000") } else { pair("0", "20000") };
            let tag = wire.run(&change)?.tag;
            assert_eq!(tag.as_deref(), Some(if changes { "UPDATE 40000" } else { "DELETE 20000" }), "{name}");
            assert_eq!(told(&mut wire)?, expected, "{name}");
            wire.run("SAVEPOINT s")?;
            wire.run(&format!("UPDATE {name} SET x = x + 5"))?;
            wire.run("ROLLBACK TO s")?;
            assert_eq!(told(&mut wire)?, expected, "{name}");
            wire.run("COMMIT")?;
            if is_kept {
                server.kill_and_start()?;
                let mut wire = server.connect()?;
                assert_eq!(told(&mut wire)?, expected, "{name} after a restart");
                wire.run(&format!("DROP TABLE {name}"))?;
            }
        }
    }
    Ok(())
}

/// A merge that ends after rows were found gives none of them away to the way of single rows, where they are looked at, and
/// what is volatile evaluated, once more.
#[test]
fn rows_that_are_merged_meanwhile_are_changed_together() -> Result<()> {
    let options = || BasaltOptions::default().set("basalt.large_changes_min=1000").set("basalt.cool_after=1h");
    let server = Basalt::start_with(options())?;
    let (mut changer, mut locker, mut wire) = (server.connect()?, server.connect()?, server.connect()?);
    wire.run("CREATE TABLE t (id bigint PRIMARY KEY, x int NOT NULL)")?;
    wire.run("CREATE SEQUENCE s")?;
    for part in 0..4 {
        let (first, last) = (part * 25_000 + 1, (part + 1) * 25_000);
        wire.run(&format!("INSERT INTO t SELECT i, 0 FROM generate_series({first}, {last}) i"))?;
    }
    let files = "SELECT count(*) FROM basalt.files WHERE table_name = 't'";
    ensure!(number(&mut wire, files)? > 1, "nothing to merge");
    locker.run("BEGIN")?;
    locker.run("SELECT id FROM t WHERE id % 500 = 1 FOR UPDATE")?;
    let waits = "SELECT value FROM basalt.counters WHERE name = 'lock_waiters'";
    let before = number(&mut wire, waits)?;
    changer.send_simple("UPDATE t SET x = nextval('s')")?;
    while number(&mut wire, waits)? == before {
        std::thread::sleep(Duration::from_millis(10));
    }
    wire.run("VACUUM FULL t")?;
    assert_eq!(number(&mut wire, files)?, 1);
    locker.run("COMMIT")?;
    assert_eq!(changer.answer(None)?.last().tag.as_deref(), Some("UPDATE 100000"));
    assert_eq!(number(&mut wire, "SELECT nextval('s')")?, 100_001);
    // Those of the first block, and those that were locked.
    let hot = number(&mut wire, "SELECT hot_rows FROM basalt.tablets WHERE table_name = 't'")?;
    ensure!(hot < 20_000, "{hot} rows were changed one by one");
    Ok(())
}

/// Few rows, and so many bytes that they are not to be changed in memory.
#[test]
fn wide_rows_in_memory_are_changed() -> Result<()> {
    let server = Basalt::start_with(small())?;
    let mut wire = server.connect()?;
    wire.run("SET statement_timeout = '30s'")?;
    wire.run("CREATE TABLE t (id bigint PRIMARY KEY, x int NOT NULL, filler text)")?;
    for first in (1..15_000).step_by(500) {
        let last = first + 499;
        wire.run(&format!(
            "INSERT INTO t SELECT i, 0, repeat(md5(i::text), 36) FROM generate_series({first}, {last}) i"
        ))?;
    }
    assert_eq!(wire.run("UPDATE t SET x = x + 1")?.tag.as_deref(), Some("UPDATE 15000"));
    assert_eq!(sum(&mut wire)?, 15_000);
    Ok(())
}

/// Two servers, of which one knows no large way, give the same answers.
#[test]
fn large_changes_do_what_single_ones_do() -> Result<()> {
    let large = Basalt::start_with(BasaltOptions::default().set("basalt.large_changes_min=0"))?;
    let single = Basalt::start_with(BasaltOptions::default().set("basalt.large_changes_min=1000000000"))?;
    let (mut large_wire, mut single_wire) = (large.connect()?, single.connect()?);
    let mut both = |sql: &str| -> Result<()> {
        let (one, other) = (large_wire.simple(sql, None)?, single_wire.simple(sql, None)?);
        assert_eq!(one.sqlstate(), other.sqlstate(), "{sql}: {:?} and {:?}", one.error(), other.error());
        // Which of several rows is refused first depends on which worker reads it.
        let told = |error: Option<&Fields>| error.map(|fields| fields.message().to_string());
        assert_eq!(told(one.error()), told(other.error()), "{sql}");
        if one.sqlstate().is_none() {
            let (one, other) = (one.last(), other.last());
            assert_eq!((&one.tag, &one.rows), (&other.tag, &other.rows), "{sql}");
        }
        Ok(())
    };
    for key in ["PRIMARY KEY", ""] {
        for orientation in ["column", "row", "row,column"] {
            both(&format!(
                "CREATE TABLE t (gone int, id int {key}, n numeric(10,2), w numeric, s text CHECK (length(s) < 40), \
                 twice int GENERATED ALWAYS AS (id * 2 + a) STORED, a int NOT NULL, t timestamp(3), j jsonb, l int[]) \
                 WITH (orientation = '{orientation}')"
            ))?;
            both("CREATE INDEX i_n ON t (n)")?;
            both("CREATE INDEX i_id ON t (id) INCLUDE (t)")?;
            both(
                "INSERT INTO t (gone, id, n, w, s, a, t, j, l) SELECT 1, i, i * 1.25, i / 7.0, 's' || i, i, \
                 timestamp '2026-01-01' + i * interval '1 hour', jsonb_build_object('i', i), ARRAY[i, i + 1] \
                 FROM generate_series(1, 3000) i",
            )?;
            both("VACUUM t")?;
            both("ALTER TABLE t DROP COLUMN gone, ADD COLUMN late text DEFAULT 'late'")?;
            let content = "SELECT * FROM t ORDER BY id";
            both("UPDATE t SET s = s || '!', a = a + 1, w = w * 2")?;
            let in_files =
                "SELECT coalesce(sum(rows - deleted_rows), 0)::bigint FROM basalt.files WHERE table_name = 't'";
            assert_eq!(
                (number(&mut large.connect()?, in_files)?, number(&mut single.connect()?, in_files)?),
                (3000, 0)
            );
            both(content)?;
            for sql in [
                "VACUUM t",
                "UPDATE t SET t = t + interval '0.0014 seconds', l = l || 3, j = j || '{\"k\": 1}' WHERE id % 3 = 0",
                // Told by entries alone.
                "SELECT t FROM t WHERE id = 78",
                "SELECT id, t FROM t WHERE id BETWEEN 70 AND 80 ORDER BY id",
                "UPDATE t SET s = NULL, late = NULL WHERE id % 4 = 0",
                "BEGIN",
                "UPDATE t SET a = a * 2",
                "SELECT sum(a), sum(twice) FROM t",
                "SAVEPOINT s",
                "UPDATE t SET a = 1 / (a - 40)",
                "ROLLBACK TO s",
                "UPDATE t SET a = NULL WHERE id > 1500",
                "ROLLBACK TO s",
                "UPDATE t SET s = s || repeat('x', id / 80)",
                "ROLLBACK TO s",
                "DELETE FROM t WHERE id > 2500",
                "UPDATE t SET a = a + 7",
                "INSERT INTO t (id, a) SELECT i, i FROM generate_series(2600, 2700) i",
                "UPDATE t SET late = 'again' WHERE id > 2400",
                "COMMIT",
                "VACUUM t",
                // Of an index, by the way of single rows.
                "UPDATE t SET n = n + 1 WHERE id < 100",
                "SELECT count(*), min(id), max(a) FROM t WHERE n BETWEEN 20 AND 90",
                "UPDATE t SET a = v.a FROM (VALUES (1, 100), (2, 200), (2, 200)) v(id, a) WHERE t.id = v.id",
                "UPDATE t SET a = a + 1 WHERE id < 10 RETURNING id, a, twice",
                "SELECT id, t FROM t WHERE id BETWEEN 70 AND 80 ORDER BY id",
                "DROP INDEX i_n",
                "DROP INDEX i_id",
                "DELETE FROM t WHERE id % 2 = 0",
                "UPDATE t SET a = 5 WHERE id % 5 = 0",
                "VACUUM FULL t",
                "UPDATE t SET id = id + 10000",
                "VACUUM t",
                "DELETE FROM t",
            ] {
                both(sql)?;
                both(content)?;
            }
            both("DROP TABLE t")?;
        }
    }
    Ok(())
}
