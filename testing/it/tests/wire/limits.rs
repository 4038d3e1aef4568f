//! Cancel, timeouts and the number of connections.

use anyhow::Result;
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::{Answer, Wire};
use std::time::{Duration, Instant};

/// Within which what was told to end has ended. What it interrupts would take minutes, and the machine may be busy.
const SOON: Duration = Duration::from_secs(3);

/// Work without an end: 100,000,000,000 rows, none of which passes.
pub const LONG: &str =
    "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b WHERE (a + b) % 7 = 8";

/// A statement that was ended leaves nothing behind that works: the next query answers at once, and the process
/// soon rests.
pub fn assert_rests(server: &Basalt, wire: &mut Wire, after: &str) -> Result<()> {
    let began = Instant::now();
    assert_eq!(wire.run("SELECT count(*) FROM generate_series(1, 10)")?.text(0, 0), Some("10"));
    let took = began.elapsed();
    assert!(took < SOON, "a query took {took:?} after: {after}");
    let used = |span: Duration| -> Result<Duration> {
        let before = server.cpu_time()?;
        std::thread::sleep(span);
        Ok(server.cpu_time()? - before)
    };
    let until = Instant::now() + SOON;
    loop {
        let used = used(Duration::from_millis(200))?;
        if used < Duration::from_millis(60) {
            return Ok(());
        }
        assert!(Instant::now() < until, "{used:?} of CPU time in 200 ms of rest after: {after}");
    }
}

#[test]
fn cancel_ends_the_running_statement_alone() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    for sql in [LONG, LONG] {
        wire.send_simple(sql)?;
        std::thread::sleep(Duration::from_millis(300));
        // A wrong secret does nothing.
        Wire::cancel(server.addr, (wire.key.0, wire.key.1 ^ 1))?;
        Wire::cancel(server.addr, wire.key)?;
        let began = Instant::now();
        assert_eq!(wire.answer(None)?.sqlstate(), Some("57014"), "{sql}");
        assert!(began.elapsed() < SOON, "{sql} took {:?} to end", began.elapsed());
        assert_rests(&server, &mut wire, sql)?;
    }
    // Nothing runs: nothing happens.
    Wire::cancel(server.addr, wire.key)?;
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(wire.run("SELECT 2")?.text(0, 0), Some("2"));
    Ok(())
}

#[test]
fn cancel_ends_a_wait_for_a_lock() -> Result<()> {
    let server = Basalt::start()?;
    let (mut holder, mut waiter) = (server.connect()?, server.connect()?);
    holder.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    holder.run("INSERT INTO t VALUES (1, 1)")?;
    holder.run("BEGIN")?;
    holder.run("UPDATE t SET x = 2 WHERE id = 1")?;
    waiter.send_simple("UPDATE t SET x = 3 WHERE id = 1")?;
    std::thread::sleep(Duration::from_millis(200));
    Wire::cancel(server.addr, waiter.key)?;
    assert_eq!(waiter.answer(None)?.sqlstate(), Some("57014"));
    holder.run("COMMIT")?;
    waiter.run("UPDATE t SET x = x + 1 WHERE id = 1")?;
    assert_eq!(holder.run("SELECT x FROM t")?.text(0, 0), Some("3"));
    Ok(())
}

#[test]
fn timeouts_end_what_takes_too_long() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    wire.run("SET statement_timeout = '200ms'")?;
    for sql in [LONG, LONG] {
        let began = Instant::now();
        assert_eq!(wire.simple(sql, None)?.sqlstate(), Some("57014"), "{sql}");
        assert!(began.elapsed() < SOON, "{sql} took {:?}", began.elapsed());
        assert_rests(&server, &mut other, sql)?;
    }
    wire.run("SET statement_timeout = 0")?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    wire.run("INSERT INTO t VALUES (1, 1)")?;
    other.run("SET idle_in_transaction_session_timeout = '200ms'")?;
    other.run("BEGIN")?;
    other.run("UPDATE t SET x = 5 WHERE id = 1")?;
    wire.run("SET lock_timeout = '50ms'")?;
    assert_eq!(wire.simple("UPDATE t SET x = 6 WHERE id = 1", None)?.sqlstate(), Some("55P03"));
    wire.run("SET lock_timeout = 0")?;
    // The idle transaction is ended, its session with it, and its locks are free.
    wire.run("UPDATE t SET x = 7 WHERE id = 1")?;
    assert_eq!(wire.run("SELECT x FROM t")?.text(0, 0), Some("7"));
    let (kind, body) = other.receive()?;
    assert_eq!(kind, b'E');
    assert_eq!(basalt_it::wire::fields(&body)?.sqlstate(), "25P03");
    assert!(other.receive().is_err());
    Ok(())
}

#[test]
fn an_idle_session_ends_after_its_time_but_not_a_transaction() -> Result<()> {
    let server = Basalt::start()?;
    let (mut idle, mut in_transaction) = (server.connect()?, server.connect()?);
    for wire in [&mut idle, &mut in_transaction] {
        wire.run("SET idle_session_timeout = '300ms'")?;
    }
    in_transaction.run("BEGIN")?;
    let (kind, body) = idle.receive()?;
    assert_eq!(kind, b'E');
    assert_eq!(basalt_it::wire::fields(&body)?.sqlstate(), "57P05");
    assert!(idle.receive().is_err());
    // As silent for as long.
    assert_eq!(in_transaction.run("SELECT 1")?.text(0, 0), Some("1"));
    in_transaction.run("SET idle_session_timeout = 0")?;
    in_transaction.run("COMMIT")?;
    Ok(())
}

/// One statement per kind of operator that can be busy for long without giving a row.
const BUSY: [&str; 12] = [
    "SELECT count(*) FROM t a, t b, t c WHERE a.x + b.x + c.x < 0",
    "SELECT count(*) FROM t a JOIN t b ON a.x + b.x < a.y",
    "SELECT count(*) FROM t a LEFT JOIN t b ON a.x + b.x < a.y",
    "SELECT count(*) FROM t a JOIN t b USING (k) WHERE a.x + b.x < b.y",
    "SELECT count(*) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.k = a.k AND b.x + a.x < a.y)",
    "SELECT count(*) FROM t a, t b WHERE EXISTS (SELECT 1 FROM t c WHERE c.x + b.x < a.y)",
    "SELECT a.x % 1000, count(*) FROM t a CROSS JOIN t b GROUP BY 1",
    "SELECT a.x + b.x FROM t a, t b ORDER BY 1 LIMIT 5",
    "SELECT max(s) FROM (SELECT sum(a.x) OVER (ORDER BY b.x) s FROM t a, t b) q",
    "SELECT sum((SELECT count(*) FROM t b, t c WHERE b.x + c.x < a.y)) FROM t a",
    "SELECT count(DISTINCT a.x % 10) FROM t a, t b",
    "EXPLAIN ANALYZE SELECT count(*) FROM t a, t b, t c WHERE a.x + b.x + c.x < 0",
];

#[test]
fn a_stop_reaches_every_operator() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    wire.run("CREATE TABLE t (x int PRIMARY KEY, k int NOT NULL, y int NOT NULL)")?;
    wire.run("INSERT INTO t SELECT x, 1, -1 FROM generate_series(1, 100000) x")?;
    wire.run("SET statement_timeout = '300ms'")?;
    for sql in BUSY {
        let began = Instant::now();
        assert_eq!(wire.simple(sql, None)?.sqlstate(), Some("57014"), "{sql}");
        assert!(began.elapsed() < SOON, "{sql} took {:?}", began.elapsed());
        assert_rests(&server, &mut other, sql)?;
    }
    Ok(())
}

#[test]
fn a_statement_ends_when_its_client_has_gone() -> Result<()> {
    let server = Basalt::start()?;
    let mut other = server.connect()?;
    for _ in 0..3 {
        let mut wire = server.connect()?;
        wire.send_simple(LONG)?;
        std::thread::sleep(Duration::from_millis(100));
    }
    let until = Instant::now() + Duration::from_secs(5);
    while other.run("SELECT count(*) FROM pg_stat_activity WHERE state = 'active'")?.text(0, 0) != Some("1") {
        assert!(Instant::now() < until, "statements of clients that have gone go on");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_rests(&server, &mut other, LONG)
}

#[test]
fn connections_beyond_the_limit_are_refused_at_once() -> Result<()> {
    let options = BasaltOptions::default().set("max_connections=5").set("superuser_reserved_connections=0");
    let server = Basalt::start_with(options)?;
    // What the start of the server was seen with may still be ending.
    std::thread::sleep(Duration::from_millis(200));
    let open: Result<Vec<Wire>> = (0..5).map(|_| server.connect()).collect();
    let mut open = open?;
    for _ in 0..20 {
        let refused = Wire::try_connect(server.addr, "basalt", "basalt")?.refused;
        assert_eq!(refused.as_ref().map(|error| error.sqlstate()), Some("53300"));
    }
    open[0].run("SELECT 1")?;
    drop(open.pop());
    let until = Instant::now() + Duration::from_secs(5);
    while Wire::try_connect(server.addr, "basalt", "basalt")?.refused.is_some() {
        assert!(Instant::now() < until, "a closed connection's place stays taken");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// `old_snapshot_threshold = 0`: a snapshot is too old as soon as garbage is collected.
#[test]
fn old_snapshots_end_with_an_error_and_nothing_else_does() -> Result<()> {
    let server = Basalt::start_with(BasaltOptions::default().set("old_snapshot_threshold=0"))?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    // A statement that meets a collection is too old, too.
    let run = |wire: &mut Wire, sql: &str| -> Result<Answer> {
        let until = Instant::now() + SOON;
        loop {
            let ended = wire.simple(sql, None)?;
            match ended.sqlstate() {
                None => return Ok(ended),
                Some("72000") => assert!(Instant::now() < until, "{sql} is always too old"),
                Some(other) => panic!("{sql}: {other}"),
            }
        }
    };
    // The same behind the savepoint `s`.
    let run_in_block = |wire: &mut Wire, sql: &str| -> Result<()> {
        while wire.simple(sql, None)?.sqlstate().is_some() {
            wire.run("ROLLBACK TO s")?;
        }
        Ok(())
    };
    let too_old = |wire: &mut Wire, sql: &str| -> Result<()> {
        let until = Instant::now() + SOON;
        loop {
            let ended = wire.simple(sql, None)?;
            if ended.sqlstate().is_some() {
                assert_eq!(ended.sqlstate(), Some("72000"), "{sql}");
                break;
            }
            assert!(Instant::now() < until, "{sql} is never too old");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(wire.simple(sql, None)?.sqlstate(), Some("25P02"), "{sql}");
        wire.run("ROLLBACK").map(|_| ())
    };
    run(&mut wire, "CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    // In pieces that fit between two collections on a busy machine, too.
    for from in (1..400_000).step_by(20_000) {
        run(&mut wire, &format!("INSERT INTO t SELECT i, i FROM generate_series({from}, {from} + 19999) i"))?;
    }
    let reads = [
        "SELECT sum(x) FROM t",
        "SELECT x FROM t WHERE id = 7",
        "SELECT x FROM t WHERE id > 7 ORDER BY id LIMIT 3",
        "SELECT x FROM t WHERE id = 8 FOR UPDATE",
        "UPDATE t SET x = x WHERE id = 9",
    ];
    for sql in reads {
        wire.run("BEGIN ISOLATION LEVEL REPEATABLE READ")?;
        run(&mut other, "UPDATE t SET x = x + 1 WHERE id BETWEEN 10 AND 20")?;
        too_old(&mut wire, sql)?;
    }
    // Of READ COMMITTED only what reads on: what does not read is nobody's reader.
    wire.run("BEGIN")?;
    wire.run("SAVEPOINT s")?;
    run_in_block(&mut wire, "INSERT INTO t VALUES (0, 0)")?;
    wire.run("SAVEPOINT s2")?;
    assert_eq!(wire.simple("SELECT 1 / (x - 7) FROM t WHERE id = 7", None)?.sqlstate(), Some("22012"));
    run(&mut other, "UPDATE t SET x = x + 1 WHERE id BETWEEN 10 AND 20")?;
    std::thread::sleep(Duration::from_millis(500));
    for sql in ["ROLLBACK TO s2", "SET LOCAL work_mem = '8MB'", "SHOW work_mem", "RELEASE s2", "COMMIT"] {
        wire.run(sql)?;
    }
    let kept = run(&mut other, "SELECT count(*) FROM t WHERE id = 0")?;
    assert_eq!(kept.last().text(0, 0), Some("1"));
    wire.run("BEGIN")?;
    while wire.simple("DECLARE c CURSOR FOR SELECT * FROM t", None)?.sqlstate().is_some() {
        wire.run("ROLLBACK")?;
        wire.run("BEGIN")?;
    }
    run(&mut other, "UPDATE t SET x = x + 1 WHERE id BETWEEN 10 AND 20")?;
    std::thread::sleep(Duration::from_millis(500));
    too_old(&mut wire, "FETCH 10000 FROM c")?;
    assert_eq!(wire.simple("SET old_snapshot_threshold = 1", None)?.sqlstate(), Some("55P02"));
    Ok(())
}

#[test]
fn what_queries_spill_has_a_limit() -> Result<()> {
    let options = BasaltOptions::default().set("basalt.query_memory_limit=64MB").set("basalt.temp_limit=8MB");
    let server = Basalt::start_with(options)?;
    let mut wire = server.connect()?;
    let sorted = "SELECT count(*) FROM (SELECT md5(g::text) || repeat('x', 300) AS t, g FROM generate_series(1, 400000) g \
                  ORDER BY 1 OFFSET 1) q WHERE t > 'a'";
    assert_eq!(wire.simple(sorted, None)?.sqlstate(), Some("53400"));
    // What it had spilled is gone.
    for _ in 0..3 {
        let little = sorted.replace("400000", "2000");
        assert!(wire.simple(&little, None)?.sqlstate().is_none());
        assert_eq!(wire.simple(sorted, None)?.sqlstate(), Some("53400"));
    }
    Ok(())
}
