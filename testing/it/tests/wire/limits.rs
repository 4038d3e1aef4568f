//! Cancel, timeouts and the number of connections.

use anyhow::Result;
use basalt_it::servers::{Basalt, BasaltOptions};
use basalt_it::wire::Wire;
use std::time::{Duration, Instant};

/// Seconds of work.
const LONG: &str = "SELECT count(*) FROM generate_series(1, 20000) a, generate_series(1, 20000) b";

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
        assert!(began.elapsed() < Duration::from_secs(5), "{sql} took {:?} to end", began.elapsed());
        assert_eq!(wire.run("SELECT 1")?.text(0, 0), Some("1"));
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
        assert!(began.elapsed() < Duration::from_secs(5), "{sql} took {:?}", began.elapsed());
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
