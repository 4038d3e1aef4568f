//! What is served without waiting, beside sessions that change roles and tables.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::{Answer, Wire};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Time for a statement to come to its wait.
const A_WHILE: Duration = Duration::from_millis(300);

/// What a statement answers that waits for the transaction of `holder`, which commits meanwhile.
fn after_commit_of(holder: &mut Wire, waiter: &mut Wire, sql: &str) -> Result<Answer> {
    waiter.send_simple(sql)?;
    std::thread::sleep(A_WHILE);
    holder.run("COMMIT")?;
    waiter.answer(None)
}

#[test]
fn a_known_text_asks_for_privileges_each_time() -> Result<()> {
    let server = Basalt::start()?;
    let mut admin = server.connect()?;
    admin.run("CREATE TABLE secret (id int PRIMARY KEY, v text)")?;
    admin.run("INSERT INTO secret VALUES (1, 'one'), (2, 'two')")?;
    admin.run("CREATE ROLE alice LOGIN SUPERUSER")?;
    let mut alice = Wire::connect(server.addr, "alice", "basalt")?;
    let mut idle = Wire::connect(server.addr, "alice", "basalt")?;
    for id in [1, 2, 1, 2] {
        assert_eq!(alice.run(&format!("SELECT v FROM secret WHERE id = {id}"))?.rows.len(), 1);
    }
    admin.run("ALTER ROLE alice NOSUPERUSER")?;
    for wire in [&mut alice, &mut idle] {
        for id in [1, 2, 1] {
            let answer = wire.simple(&format!("SELECT v FROM secret WHERE id = {id}"), None)?;
            assert_eq!(answer.sqlstate(), Some("42501"));
        }
    }
    admin.run("GRANT SELECT (id) ON secret TO alice")?;
    for _ in 0..3 {
        assert_eq!(alice.run("SELECT id FROM secret WHERE id = 1")?.rows.len(), 1);
        assert_eq!(alice.simple("SELECT v FROM secret WHERE id = 1", None)?.sqlstate(), Some("42501"));
    }
    Ok(())
}

#[test]
fn rows_that_are_always_ready_end_in_time() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("SET statement_timeout = '300ms'")?;
    for sql in [
        "SELECT repeat('x', 100) FROM generate_series(1, 6000000)",
        "COPY (SELECT repeat('x', 100) FROM generate_series(1, 6000000)) TO STDOUT",
    ] {
        assert_eq!(wire.simple(sql, None)?.sqlstate(), Some("57014"), "{sql}");
    }
    wire.run("SET statement_timeout = 0")?;
    wire.send_simple("SELECT repeat('x', 100) FROM generate_series(1, 6000000)")?;
    std::thread::sleep(A_WHILE);
    Wire::cancel(server.addr, wire.key)?;
    assert_eq!(wire.answer(None)?.sqlstate(), Some("57014"));
    Ok(())
}

/// What others commit while a change of a table waits for its lock is part of the table that it writes anew.
#[test]
fn a_table_that_is_rewritten_keeps_what_its_lock_waited_for() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, v int)")?;
    a.run("INSERT INTO t VALUES (1, 1)")?;
    a.run("BEGIN; INSERT INTO t VALUES (2, 2)")?;
    ensure!(after_commit_of(&mut a, &mut b, "ALTER TABLE t ALTER v TYPE bigint")?.error().is_none());
    assert_eq!(b.run("SELECT count(*), sum(v) FROM t")?.rows[0], [Some(b"2".to_vec()), Some(b"3".to_vec())]);
    // Rows that break a rule are found, too.
    a.run("BEGIN; INSERT INTO t VALUES (3, NULL)")?;
    assert_eq!(after_commit_of(&mut a, &mut b, "ALTER TABLE t ALTER v SET NOT NULL")?.sqlstate(), Some("23502"));
    Ok(())
}

/// A transaction that has changed the catalog itself sees what others did to it while it waited.
#[test]
fn changes_of_a_catalog_meet_below_own_ones() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, v int)")?;
    a.run("INSERT INTO t VALUES (1, 1), (2, 2)")?;
    a.run("BEGIN; CREATE TABLE x (i int)")?;
    b.run("BEGIN; ALTER TABLE t ALTER v TYPE bigint")?;
    ensure!(after_commit_of(&mut b, &mut a, "ALTER TABLE t ADD COLUMN c int")?.error().is_none());
    a.run("COMMIT")?;
    let found = a.run("SELECT count(*), sum(v), count(c), min(pg_typeof(v)::text) FROM t")?;
    let texts: Vec<_> = (0..4).map(|at| found.text(0, at)).collect();
    assert_eq!(texts, [Some("2"), Some("3"), Some("0"), Some("bigint")]);
    a.run("BEGIN; CREATE TABLE y (i int)")?;
    b.run("BEGIN; TRUNCATE t")?;
    assert_eq!(after_commit_of(&mut b, &mut a, "SELECT count(*) FROM t")?.last().text(0, 0), Some("0"));
    a.run("COMMIT")?;
    Ok(())
}

/// Reads without locks, beside a table whose rows are written anew, emptied and filled: a row is there or not, and
/// never anything else.
#[test]
fn reads_without_locks_see_whole_tables() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, v int, w text)")?;
    wire.run("INSERT INTO t SELECT g, 7, 'w' FROM generate_series(1, 100) g")?;
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let readers: Vec<_> = (0..3)
            .map(|reader| {
                let (server, done) = (&server, &done);
                scope.spawn(move || -> Result<u64> {
                    let mut wire = server.connect()?;
                    let mut seen = 0;
                    for id in (1..=100).cycle() {
                        if done.load(Ordering::Relaxed) {
                            break;
                        }
                        let sql = format!("SELECT v, w FROM t WHERE id = {id}");
                        let answer = match reader {
                            0 => wire.extended(&sql, true)?,
                            _ => wire.simple(&sql, None)?,
                        };
                        // The type has changed since the statement was prepared.
                        if reader == 0 && answer.sqlstate() == Some("0A000") {
                            continue;
                        }
                        ensure!(answer.error().is_none(), "{sql}: {:?}", answer.error());
                        for row in &answer.last().rows {
                            ensure!(row[1].as_deref() == Some(b"w"), "{sql}: {row:?}");
                            ensure!(row[0].is_some(), "{sql}: {row:?}");
                            seen += 1;
                        }
                    }
                    Ok(seen)
                })
            })
            .collect();
        for round in 0..25 {
            let ty = if round % 2 == 0 { "bigint" } else { "int" };
            wire.run(&format!("ALTER TABLE t ALTER v TYPE {ty}"))?;
            wire.run("BEGIN; TRUNCATE t; INSERT INTO t SELECT g, 7, 'w' FROM generate_series(1, 100) g; COMMIT")?;
            wire.run("ALTER TABLE t ADD COLUMN extra int DEFAULT 5")?;
            wire.run("ALTER TABLE t DROP COLUMN extra")?;
        }
        done.store(true, Ordering::Relaxed);
        for reader in readers {
            let seen = reader.join().expect("no panic")?;
            ensure!(seen > 0, "a reader saw nothing");
        }
        Ok(())
    })
}

#[test]
fn an_unnamed_text_that_comes_again_means_what_it_means_now() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut wire) = (server.connect()?, server.connect()?);
    admin.run("CREATE TABLE t (id int PRIMARY KEY, v text)")?;
    admin.run("INSERT INTO t VALUES (1, 'one')")?;
    admin.run("CREATE SCHEMA other")?;
    admin.run("CREATE TABLE other.t (id int PRIMARY KEY, v text)")?;
    admin.run("INSERT INTO other.t VALUES (1, 'other')")?;
    let sql = "SELECT v FROM t WHERE id = 1";
    let twice = |wire: &mut Wire| -> Result<String> {
        let mut told = String::new();
        for _ in 0..3 {
            let answer = wire.extended(sql, false)?;
            told = match answer.sqlstate() {
                Some(sqlstate) => sqlstate.to_string(),
                None => answer.last().text(0, 0).unwrap_or_default().to_string(),
            };
        }
        Ok(told)
    };
    assert_eq!(twice(&mut wire)?, "one");
    // Another path, another table.
    wire.run("SET search_path = other, public")?;
    assert_eq!(twice(&mut wire)?, "other");
    wire.run("RESET search_path")?;
    assert_eq!(twice(&mut wire)?, "one");
    // A table of its own comes before all others, in a transaction too.
    wire.run("BEGIN; CREATE TEMP TABLE t (id int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 7)")?;
    assert_eq!(twice(&mut wire)?, "7");
    wire.run("ROLLBACK")?;
    assert_eq!(twice(&mut wire)?, "one");
    // Another type, another error, no table.
    admin.run("ALTER TABLE t ALTER v TYPE bytea USING v::bytea")?;
    assert_eq!(twice(&mut wire)?, "\\x6f6e65");
    admin.run("ALTER TABLE t RENAME v TO w")?;
    assert_eq!(twice(&mut wire)?, "42703");
    admin.run("DROP TABLE t")?;
    assert_eq!(twice(&mut wire)?, "42P01");
    // A transaction that has failed.
    admin.run("CREATE TABLE t (id int PRIMARY KEY, v text)")?;
    assert_eq!(twice(&mut wire)?, "");
    wire.run("BEGIN")?;
    ensure!(wire.simple("SELECT 1 / 0", None)?.error().is_some());
    assert_eq!(twice(&mut wire)?, "25P02");
    wire.run("ROLLBACK")?;
    assert_eq!(twice(&mut wire)?, "");
    Ok(())
}

#[test]
fn an_old_snapshot_reads_through_no_younger_index() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, a int)")?;
    a.run("INSERT INTO t VALUES (1, 5), (2, 6)")?;
    a.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")?;
    b.run("CREATE INDEX i ON t (a)")?;
    b.run("UPDATE t SET a = 7 WHERE id = 1")?;
    for sql in ["SELECT id FROM t WHERE a = 5", "SELECT id FROM t WHERE a IN (5, 7)"] {
        for _ in 0..3 {
            assert_eq!(a.run(sql)?.rows.len(), 1, "{sql}");
            assert_eq!(a.extended(sql, false)?.last().rows.len(), 1, "{sql}");
        }
    }
    assert_eq!(a.run("SELECT id FROM t WHERE a = 7")?.rows.len(), 0);
    a.run("COMMIT")?;
    // An index of its own has entries of rows that it does not see.
    a.run("DROP INDEX i")?;
    a.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t")?;
    b.run("UPDATE t SET a = 8 WHERE id = 2")?;
    a.run("CREATE INDEX i ON t (a)")?;
    assert_eq!(a.run("SELECT id FROM t WHERE a = 6")?.rows.len(), 1);
    assert_eq!(a.run("SELECT id FROM t WHERE a = 8")?.rows.len(), 0);
    a.run("COMMIT")?;
    assert_eq!(a.run("SELECT id FROM t WHERE a = 8")?.rows.len(), 1);
    Ok(())
}

#[test]
fn what_turns_out_to_be_much_is_answered_all_the_same() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE p (a int, b int, c int, v text, PRIMARY KEY (a, b, c))")?;
    wire.run("INSERT INTO p SELECT g % 100, g / 100, g, repeat('x', 100) FROM generate_series(1, 60000) g")?;
    let list: Vec<String> = (0..3000).map(|n| n.to_string()).collect();
    let list = list.join(",");
    for (sql, expected) in [
        ("SELECT count(*) FROM p WHERE a >= 0".to_string(), "60000"),
        (format!("SELECT count(*) FROM p WHERE a IN ({list}) AND b IN ({list}) AND c IN ({list})"), "2999"),
        (format!("SELECT count(*) FROM p WHERE a = ANY('{{{list}}}') AND b = ANY('{{{list}}}')"), "60000"),
        ("SELECT count(*) FROM p x JOIN p y ON y.a = x.b WHERE x.a = 1".to_string(), "60000"),
        ("SELECT sum(length(v)) FROM p WHERE a BETWEEN 1 AND 90".to_string(), "5400000"),
        ("SELECT c FROM p WHERE a > 1 ORDER BY a, b, c OFFSET 50000 LIMIT 1".to_string(), "20085"),
    ] {
        for _ in 0..4 {
            assert_eq!(wire.run(&sql)?.text(0, 0), Some(expected), "{}", &sql[..60]);
            assert_eq!(wire.extended(&sql, false)?.last().text(0, 0), Some(expected), "{}", &sql[..60]);
        }
    }
    wire.run("DELETE FROM p WHERE c < 59990")?;
    for _ in 0..3 {
        assert_eq!(wire.run("SELECT c FROM p ORDER BY a, b, c LIMIT 1")?.text(0, 0), Some("60000"));
        assert_eq!(wire.run("SELECT c FROM p WHERE a >= 0 ORDER BY a DESC, b DESC LIMIT 1")?.text(0, 0), Some("59999"));
    }
    Ok(())
}
