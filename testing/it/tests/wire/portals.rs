//! Portals, cursors and pipelines of the extended protocol, on Basalt and on PostgreSQL.

use crate::fairness::execute;
use anyhow::Result;
use basalt_it::servers::{Basalt, Postgres};
use basalt_it::wire::{Wire, put_message, put_text};
use std::time::{Duration, Instant};

/// Time for a statement to come to its wait.
const A_WHILE: Duration = Duration::from_millis(300);

/// Runs a check on both servers.
fn on_both(check: impl Fn(&dyn Fn() -> Result<Wire>) -> Result<()>) -> Result<()> {
    let postgres = Postgres::start()?;
    postgres.empty_database()?;
    check(&|| postgres.connect())?;
    let basalt = Basalt::start()?;
    check(&|| basalt.connect())
}

#[test]
fn fetches_give_what_they_ask_for() -> Result<()> {
    on_both(|connect| {
        let mut wire = connect()?;
        wire.run("BEGIN")?;
        // More than is kept to go back to.
        wire.run("DECLARE c CURSOR FOR SELECT g, repeat('x', 2000) FROM generate_series(1, 20000) g")?;
        let mut next = 1;
        for expected in [3000, 3000, 3000, 3000, 3000, 3000, 2000, 0] {
            let answer = wire.extended("FETCH 3000 FROM c", false)?;
            let reply = answer.last();
            assert_eq!((reply.rows.len(), reply.tag.clone()), (expected, Some(format!("FETCH {expected}"))));
            if expected > 0 {
                assert_eq!(reply.text(0, 0), Some(next.to_string().as_str()));
            }
            next += expected;
        }
        Ok(())
    })
}

#[test]
fn what_a_fetch_gives_is_given_in_parts() -> Result<()> {
    on_both(|connect| {
        let mut wire = connect()?;
        wire.run("BEGIN")?;
        for rows in [7, 20000] {
            wire.run(&format!("DECLARE c CURSOR FOR SELECT g, repeat('x', 2000) FROM generate_series(1, {rows}) g"))?;
            wire.run("MOVE 1 FROM c")?;
            let mut given = Vec::new();
            let mut sql = Some("FETCH 5 FROM c");
            loop {
                execute(&mut wire, sql.take(), 2)?;
                let answer = wire.answer(None)?;
                let reply = answer.last();
                given.extend((0..reply.rows.len()).filter_map(|row| reply.text(row, 0).map(str::to_string)));
                if reply.tag.as_deref() != Some("(suspended)") {
                    break;
                }
            }
            assert_eq!(given, ["2", "3", "4", "5", "6"]);
            assert_eq!(wire.run("FETCH 1 FROM c")?.text(0, 0), Some("7"));
            wire.run("CLOSE c")?;
        }
        Ok(())
    })
}

/// Bind of a named statement, Describe and Execute.
fn bound(wire: &mut Wire, name: &str) -> Result<()> {
    let mut frame = Vec::new();
    let mut bind = vec![0];
    put_text(&mut bind, name);
    bind.extend([0, 0, 0, 0, 0, 0]);
    put_message(&mut frame, b'B', &bind);
    put_message(&mut frame, b'D', b"P\0");
    put_message(&mut frame, b'E', &[0, 0, 0, 0, 0]);
    put_message(&mut frame, b'S', &[]);
    wire.send_raw(&frame)
}

#[test]
fn what_a_prepared_fetch_gives_is_its_cursors() -> Result<()> {
    on_both(|connect| {
        let mut wire = connect()?;
        wire.run("BEGIN")?;
        wire.run("DECLARE c CURSOR FOR SELECT 1 AS a")?;
        wire.prepare("f", "FETCH 1 FROM c")?;
        for (select, expected) in [
            ("SELECT 1 AS a", vec!["1"]),
            ("SELECT 'x'::text AS b", vec!["x"]),
            ("SELECT 'y'::text AS b, 2 AS c, true AS d", vec!["y", "2", "t"]),
            ("SELECT 3 AS e", vec!["3"]),
        ] {
            wire.run("CLOSE c")?;
            wire.run(&format!("DECLARE c CURSOR FOR {select}"))?;
            bound(&mut wire, "f")?;
            let answer = wire.answer(None)?;
            let reply = answer.last();
            assert_eq!(reply.columns.as_ref().map(Vec::len), Some(expected.len()), "{select}");
            let given: Vec<&str> = (0..expected.len()).filter_map(|column| reply.text(0, column)).collect();
            assert_eq!(given, expected, "{select}");
        }
        wire.run("COMMIT")?;
        wire.run("PREPARE p AS SELECT 1")?;
        wire.prepare("e", "EXECUTE p")?;
        wire.run("DEALLOCATE p")?;
        wire.run("PREPARE p AS SELECT 'x'::text, 2")?;
        bound(&mut wire, "e")?;
        let answer = wire.answer(None)?;
        assert_eq!((answer.last().text(0, 0), answer.last().text(0, 1)), (Some("x"), Some("2")));
        Ok(())
    })
}

#[test]
fn discard_all_gives_advisory_locks_back() -> Result<()> {
    on_both(|connect| {
        let (mut holder, mut other) = (connect()?, connect()?);
        holder.run("SELECT pg_advisory_lock(1)")?;
        assert_eq!(other.run("SELECT pg_try_advisory_lock(1)")?.text(0, 0), Some("f"));
        holder.run("DISCARD ALL")?;
        assert_eq!(other.run("SELECT pg_try_advisory_lock(1)")?.text(0, 0), Some("t"));
        Ok(())
    })
}

#[test]
fn now_as_a_parameter_is_now() -> Result<()> {
    on_both(|connect| {
        let mut wire = connect()?;
        wire.run("SELECT 1")?;
        std::thread::sleep(Duration::from_millis(1500));
        let sql = "SELECT extract(epoch FROM clock_timestamp() - $1::timestamptz) < 1";
        let answer = wire.with_values(sql, &["now".to_string()])?;
        assert_eq!(answer.last().text(0, 0), Some("t"));
        Ok(())
    })
}

#[test]
fn a_commit_that_waits_for_others_is_canceled() -> Result<()> {
    let server = Basalt::start()?;
    let (mut holder, mut waiter) = (server.connect()?, server.connect()?);
    holder.run("CREATE TABLE p (id int PRIMARY KEY)")?;
    holder.run("CREATE TABLE c (id int REFERENCES p DEFERRABLE INITIALLY DEFERRED)")?;
    holder.run("INSERT INTO p VALUES (1)")?;
    for explicit in [true, false] {
        holder.run("BEGIN")?;
        holder.run("DELETE FROM p WHERE id = 1")?;
        if explicit {
            waiter.run("BEGIN")?;
            waiter.run("INSERT INTO c VALUES (1)")?;
            waiter.send_simple("COMMIT")?;
        } else {
            waiter.send_simple("INSERT INTO c VALUES (1)")?;
        }
        std::thread::sleep(A_WHILE);
        let began = Instant::now();
        Wire::cancel(server.addr, waiter.key)?;
        let answer = waiter.answer(None)?;
        assert_eq!((answer.sqlstate(), answer.status), (Some("57014"), b'I'), "explicit: {explicit}");
        assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
        holder.run("ROLLBACK")?;
        // A request that comes when nothing runs is forgotten.
        Wire::cancel(server.addr, waiter.key)?;
        std::thread::sleep(A_WHILE);
        assert_eq!(waiter.run("SELECT count(*) FROM c")?.text(0, 0), Some("0"));
    }
    Ok(())
}

#[test]
fn a_pipeline_without_its_end_is_not_idle() -> Result<()> {
    on_both(|connect| {
        let mut wire = connect()?;
        wire.run("SET idle_in_transaction_session_timeout = '500ms'")?;
        let mut frame = Vec::new();
        let mut parse = vec![0];
        put_text(&mut parse, "SELECT 1");
        parse.extend([0, 0]);
        put_message(&mut frame, b'P', &parse);
        put_message(&mut frame, b'B', &[0, 0, 0, 0, 0, 0, 0, 0]);
        put_message(&mut frame, b'E', &[0, 0, 0, 0, 0]);
        put_message(&mut frame, b'H', &[]);
        wire.send_raw(&frame)?;
        std::thread::sleep(Duration::from_millis(1200));
        wire.send(b'S', &[])?;
        assert_eq!(wire.answer(None)?.last().text(0, 0), Some("1"));
        Ok(())
    })
}
