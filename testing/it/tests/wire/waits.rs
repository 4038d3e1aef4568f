//! Who waits for whom: pg_stat_activity, pg_locks, pg_blocking_pids, and what errors say of it.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::{Answer, Wire};
use std::time::{Duration, Instant};

/// Starts what waits, and comes back when it does.
fn start_waiting(watch: &mut Wire, wire: &mut Wire, sql: &str) -> Result<()> {
    wire.send_simple(sql)?;
    let query = format!("select 1 from pg_stat_activity where pid = {} and wait_event_type = 'Lock'", wire.key.0);
    let begin = Instant::now();
    while watch.run(&query)?.rows.is_empty() {
        ensure!(begin.elapsed() < Duration::from_secs(20), "{sql} does not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn all(wire: &mut Wire, sql: &str) -> Result<Vec<String>> {
    let reply = wire.run(sql)?;
    let cell = |row: usize, column: usize| reply.text(row, column).unwrap_or("-").to_string();
    let columns = reply.rows.first().map_or(0, Vec::len);
    Ok((0..reply.rows.len())
        .map(|row| (0..columns).map(|column| cell(row, column)).collect::<Vec<_>>().join(" "))
        .collect())
}

#[test]
fn who_blocks_whom_is_told() -> Result<()> {
    let server = Basalt::start()?;
    let mut watch = server.connect()?;
    watch.run("CREATE TABLE t (id int PRIMARY KEY, x int); INSERT INTO t VALUES (1, 0), (2, 0)")?;
    let [mut holder, mut row, mut behind, mut table, mut advisory] =
        [(); 5].map(|()| server.connect().expect("a session"));
    holder.run("BEGIN; UPDATE t SET x = 1 WHERE id = 1; SELECT pg_advisory_lock(7), pg_advisory_lock(1, 2)")?;
    start_waiting(&mut watch, &mut row, "UPDATE t SET x = 2 WHERE id = 1")?;
    start_waiting(&mut watch, &mut behind, "DELETE FROM t WHERE id = 1")?;
    start_waiting(&mut watch, &mut table, "ALTER TABLE t ADD COLUMN y int")?;
    start_waiting(&mut watch, &mut advisory, "SELECT pg_advisory_lock_shared(7)")?;
    let pids = [&holder, &row, &behind, &table, &advisory].map(|wire| wire.key.0);
    let [holder_pid, row_pid, behind_pid, table_pid, advisory_pid] = pids;
    let blockers = |watch: &mut Wire, pid: i32| all(watch, &format!("SELECT pg_blocking_pids({pid})"));
    assert_eq!(blockers(&mut watch, holder_pid)?, ["{}"]);
    assert_eq!(blockers(&mut watch, row_pid)?, [format!("{{{holder_pid}}}")]);
    assert_eq!(blockers(&mut watch, behind_pid)?, [format!("{{{holder_pid},{row_pid}}}")]);
    assert_eq!(blockers(&mut watch, table_pid)?, [format!("{{{holder_pid},{row_pid},{behind_pid}}}")]);
    assert_eq!(blockers(&mut watch, advisory_pid)?, [format!("{{{holder_pid}}}")]);
    let events = "SELECT pid, wait_event_type, wait_event, state FROM pg_stat_activity
        WHERE wait_event IS NOT NULL ORDER BY pid";
    let expected = [(row_pid, "tuple"), (behind_pid, "tuple"), (table_pid, "relation"), (advisory_pid, "advisory")];
    assert_eq!(all(&mut watch, events)?, expected.map(|(pid, event)| format!("{pid} Lock {event} active")));
    let waits = "SELECT pid, locktype, relation::regclass, mode FROM pg_locks WHERE NOT granted ORDER BY pid";
    let expected = [
        (row_pid, "tuple t ExclusiveLock"),
        (behind_pid, "tuple t AccessExclusiveLock"),
        (table_pid, "relation t AccessExclusiveLock"),
        (advisory_pid, "advisory - ShareLock"),
    ];
    assert_eq!(all(&mut watch, waits)?, expected.map(|(pid, lock)| format!("{pid} {lock}")));
    let xids =
        format!("SELECT transactionid::text::int8 BETWEEN 1 AND 4294967295 FROM pg_locks WHERE pid = {holder_pid}");
    assert!(all(&mut watch, &xids)?.contains(&"t".to_string()));
    let held = format!(
        "SELECT locktype, relation::regclass, mode, classid, objid, objsubid, fastpath FROM pg_locks
            WHERE granted AND pid = {holder_pid} ORDER BY 1, 3, objsubid"
    );
    let expected = [
        "advisory - ExclusiveLock 0 7 1 f",
        "advisory - ExclusiveLock 1 2 2 f",
        "relation t RowExclusiveLock - - - f",
        "transactionid - ExclusiveLock - - - f",
        "tuple t ExclusiveLock - - - f",
        "virtualxid - ExclusiveLock - - - t",
    ];
    assert_eq!(all(&mut watch, &held)?, expected);
    holder.run("COMMIT; SELECT pg_advisory_unlock_all()")?;
    for wire in [&mut row, &mut behind, &mut table, &mut advisory] {
        assert_eq!(wire.answer(None)?.sqlstate(), None);
    }
    assert_eq!(all(&mut watch, events)?, [] as [String; 0]);
    assert_eq!(all(&mut watch, waits)?, [] as [String; 0]);
    assert_eq!(blockers(&mut watch, row_pid)?, ["{}"]);
    Ok(())
}

/// The DETAIL of a deadlock's error.
fn detail(answer: &Answer) -> Result<String> {
    let error = answer.error().context("nothing was refused")?;
    assert_eq!((error.sqlstate(), error.message()), ("40P01", "deadlock detected"));
    Ok(error.get(b'D').to_string())
}

#[test]
fn a_deadlock_tells_its_circle() -> Result<()> {
    let server = Basalt::start()?;
    let (mut watch, mut a, mut b) = (server.connect()?, server.connect()?, server.connect()?);
    watch.run("CREATE TABLE t (id int PRIMARY KEY, x int); INSERT INTO t VALUES (1, 0), (2, 0)")?;
    let (of_a, of_b) = (a.key.0, b.key.0);
    let circle = |what_b: &str, what_a: &str| {
        format!(
            "Process {of_b} waits for {what_b}; blocked by process {of_a}.\n\
             Process {of_a} waits for {what_a}; blocked by process {of_b}."
        )
    };
    // Begun later, `b` is the one to be refused.
    a.run("BEGIN; UPDATE t SET x = 1 WHERE id = 1")?;
    b.run("BEGIN; UPDATE t SET x = 1 WHERE id = 2")?;
    start_waiting(&mut watch, &mut a, "DELETE FROM t WHERE id = 2")?;
    let told = detail(&b.simple("LOCK TABLE t", None)?)?;
    let expected = circle("AccessExclusiveLock on relation \"t\"", "AccessExclusiveLock on row in relation \"t\"");
    assert_eq!(told, expected);
    b.run("ROLLBACK")?;
    assert_eq!(a.answer(None)?.sqlstate(), None);
    a.run("ROLLBACK")?;

    a.run("SELECT pg_advisory_lock(1)")?;
    b.run("SELECT pg_advisory_lock(2)")?;
    start_waiting(&mut watch, &mut a, "SELECT pg_advisory_lock_shared(2)")?;
    let told = detail(&b.simple("SELECT pg_advisory_lock(1)", None)?)?;
    let database = all(&mut watch, "SELECT oid FROM pg_database WHERE datname = current_database()")?.remove(0);
    let lock = |number: i32| format!("advisory lock [{database},0,{number},1]");
    assert_eq!(told, circle(&format!("ExclusiveLock on {}", lock(1)), &format!("ShareLock on {}", lock(2))));
    b.run("SELECT pg_advisory_unlock_all()")?;
    assert_eq!(a.answer(None)?.sqlstate(), None);
    Ok(())
}

/// Through locks that are kept in two places: whoever waits for the advisory one finds it.
#[test]
fn a_deadlock_through_a_row_and_an_advisory_lock_is_found() -> Result<()> {
    let server = Basalt::start()?;
    let (mut watch, mut a, mut b) = (server.connect()?, server.connect()?, server.connect()?);
    watch.run("CREATE TABLE t (id int PRIMARY KEY, x int); INSERT INTO t VALUES (1, 0)")?;
    assert_eq!(all(&mut watch, "SHOW deadlock_timeout")?, ["1s"]);
    a.run("SET deadlock_timeout = '50ms'")?;
    for advisory_first in [true, false] {
        let (of_a, of_b) = (a.key.0, b.key.0);
        a.run("BEGIN; UPDATE t SET x = 1 WHERE id = 1")?;
        b.run("SELECT pg_advisory_lock(5)")?;
        let (advisory, row) = ("SELECT pg_advisory_xact_lock(5)", "UPDATE t SET x = x + 2 WHERE id = 1");
        let refused = match advisory_first {
            true => {
                start_waiting(&mut watch, &mut a, advisory)?;
                b.send_simple(row)?;
                a.answer(None)?
            }
            false => {
                start_waiting(&mut watch, &mut b, row)?;
                a.simple(advisory, None)?
            }
        };
        let told = detail(&refused)?;
        let lines: Vec<&str> = told.lines().collect();
        assert_eq!(lines.len(), 2, "{told}");
        assert!(lines[0].starts_with(&format!("Process {of_a} waits for ExclusiveLock on advisory lock [")), "{told}");
        assert!(lines[0].ends_with(&format!(",0,5,1]; blocked by process {of_b}.")), "{told}");
        let of_row =
            format!("Process {of_b} waits for ExclusiveLock on row in relation \"t\"; blocked by process {of_a}.");
        assert_eq!(lines[1], of_row);
        a.run("ROLLBACK")?;
        assert_eq!(b.answer(None)?.sqlstate(), None);
        b.run("SELECT pg_advisory_unlock_all()")?;
    }
    let counted = "SELECT value::text FROM basalt.counters WHERE name IN ('deadlocks', 'locks_refused') ORDER BY name";
    assert_eq!(all(&mut watch, counted)?, ["2", "0"]);
    // Nobody is refused for nothing: who has waited long gets it.
    a.run("SELECT pg_advisory_lock(6)")?;
    b.run("SET deadlock_timeout = 1")?;
    start_waiting(&mut watch, &mut b, "SELECT pg_advisory_lock(6)")?;
    std::thread::sleep(Duration::from_millis(300));
    a.run("SELECT pg_advisory_unlock(6)")?;
    assert_eq!(b.answer(None)?.sqlstate(), None);
    assert_eq!(all(&mut watch, "SELECT x::text FROM t")?, ["4"]);
    Ok(())
}

#[test]
fn refused_locks_are_told_by_name() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int); INSERT INTO t VALUES (1, 0)")?;
    a.run("BEGIN; LOCK TABLE t; UPDATE t SET x = 1")?;
    b.run("SET lock_timeout = '50ms'")?;
    let cases = [
        ("BEGIN; LOCK TABLE t IN SHARE MODE NOWAIT", "could not obtain lock on relation \"t\""),
        ("ROLLBACK; BEGIN; LOCK TABLE t IN SHARE MODE", "canceling statement due to lock timeout"),
        ("ROLLBACK; UPDATE t SET x = 2 WHERE id = 1", "canceling statement due to lock timeout"),
    ];
    for (sql, message) in cases {
        let answer = b.simple(sql, None)?;
        let error = answer.error().with_context(|| sql.to_string())?;
        assert_eq!((error.sqlstate(), error.message()), ("55P03", message), "{sql}");
    }
    a.run("ROLLBACK; BEGIN; UPDATE t SET x = 1")?;
    let answer = b.simple("SELECT * FROM t FOR UPDATE NOWAIT", None)?;
    assert_eq!(answer.error().map(|error| error.message()), Some("could not obtain lock on row in relation \"t\""));
    Ok(())
}

/// Who was told that a locked row has the key has read it, without a lock of its own: a serializable transaction that
/// commits after the row has gone is not serializable in the order of commits.
#[test]
fn a_locked_row_that_stood_in_the_way_was_read() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int); INSERT INTO t VALUES (1, 0)")?;
    b.run("SET statement_timeout = '20s'")?;
    for (deletes, state) in [(true, Some("40001")), (false, None)] {
        for nothing in [true, false] {
            a.run("BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE")?;
            b.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SAVEPOINT s")?;
            if nothing {
                b.run("INSERT INTO t VALUES (1, 1) ON CONFLICT DO NOTHING")?;
            } else {
                let refused = b.simple("INSERT INTO t VALUES (1, 1)", None)?;
                assert_eq!(refused.sqlstate(), Some("23505"));
                b.run("ROLLBACK TO s")?;
            }
            b.run("INSERT INTO t VALUES (2, 2)")?;
            a.run(if deletes { "DELETE FROM t WHERE id = 1; COMMIT" } else { "COMMIT" })?;
            assert_eq!(b.simple("COMMIT", None)?.sqlstate(), state, "deletes {deletes}, nothing {nothing}");
            b.run("DELETE FROM t; INSERT INTO t VALUES (1, 0)")?;
        }
    }
    Ok(())
}
