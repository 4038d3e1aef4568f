//! Unnamed statements of the extended protocol that differ in their literals alone.

use crate::fairness::execute;
use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::{Answer, Wire, put_message, put_text};
use std::time::Duration;

/// Time for a statement to come to its wait.
const A_WHILE: Duration = Duration::from_millis(300);

fn hits(wire: &mut Wire) -> Result<i64> {
    let reply = wire.run("SELECT value FROM basalt.counters WHERE name = 'plan_cache_hits'")?;
    Ok(reply.text(0, 0).unwrap_or("no row").parse()?)
}

/// The one value that a text gives, or the error's code.
fn told(answer: &Answer) -> String {
    match answer.sqlstate() {
        Some(sqlstate) => sqlstate.to_string(),
        None => answer.last().text(0, 0).unwrap_or("nothing").to_string(),
    }
}

/// Parse as the unnamed statement, Bind as a portal with a name.
fn bind(wire: &mut Wire, sql: &str, portal: &str) -> Result<()> {
    let (mut frame, mut parse, mut bind) = (Vec::new(), vec![0], Vec::new());
    put_text(&mut parse, sql);
    parse.extend([0, 0]);
    put_message(&mut frame, b'P', &parse);
    put_text(&mut bind, portal);
    bind.extend([0; 7]);
    put_message(&mut frame, b'B', &bind);
    put_message(&mut frame, b'S', &[]);
    wire.send_raw(&frame)?;
    let answer = wire.answer(None)?;
    ensure!(answer.error().is_none(), "{sql}: {:?}", answer.error());
    Ok(())
}

/// Execute of a portal with a name.
fn run(wire: &mut Wire, portal: &str) -> Result<Answer> {
    let (mut frame, mut execute) = (Vec::new(), Vec::new());
    put_text(&mut execute, portal);
    execute.extend([0; 4]);
    put_message(&mut frame, b'E', &execute);
    put_message(&mut frame, b'S', &[]);
    wire.send_raw(&frame)?;
    wire.answer(None)
}

fn prepared(server: &Basalt) -> Result<(Wire, Wire)> {
    let (mut admin, wire) = (server.connect()?, server.connect()?);
    admin.run("CREATE TABLE t (id int PRIMARY KEY, n numeric(8, 2), v text, UNIQUE (v))")?;
    admin.run("INSERT INTO t SELECT g, g * 1.5, 'v' || g FROM generate_series(1, 1000) g")?;
    Ok((admin, wire))
}

#[test]
fn they_share_a_plan_and_mean_what_they_say() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut wire) = prepared(&server)?;
    let before = hits(&mut admin)?;
    for id in 1..=40 {
        let by_key = wire.extended(&format!("SELECT v FROM t WHERE id = {id}"), false)?;
        assert_eq!(told(&by_key), format!("v{id}"));
        let by_text = wire.extended(&format!("SELECT id FROM t WHERE v = 'v{id}'"), true)?;
        assert_eq!(by_text.last().rows, [[Some(i32::to_be_bytes(id).to_vec())]]);
        let changed = wire.extended(&format!("UPDATE t SET n = {id}.25 WHERE id = {id}"), false)?;
        assert_eq!(changed.last().tag.as_deref(), Some("UPDATE 1"));
        let new = 2000 + id;
        let added = wire.extended(&format!("INSERT INTO t VALUES ({new}, 0.5, 'new {id}''s') RETURNING v"), false)?;
        assert_eq!(told(&added), format!("new {id}'s"));
        let gone = wire.extended(&format!("DELETE FROM t WHERE id = {new}"), false)?;
        assert_eq!(gone.last().tag.as_deref(), Some("DELETE 1"));
    }
    let sum = wire.run("SELECT count(*), sum(n) FROM t WHERE id <= 40")?;
    assert_eq!([sum.text(0, 0), sum.text(0, 1)], [Some("40"), Some("830.00")]);
    // All but the first of each; some of a busy machine may be held up.
    let shared = hits(&mut admin)? - before;
    ensure!(shared >= 5 * 38, "{shared} of 200 statements shared a plan");
    Ok(())
}

#[test]
fn their_errors_are_told_as_ever() -> Result<()> {
    let server = Basalt::start()?;
    let (_, mut wire) = prepared(&server)?;
    for round in 0..4 {
        let id = 3000 + round;
        assert_eq!(wire.extended(&format!("SELECT v FROM t WHERE id = '{round}x'"), false)?.sqlstate(), Some("22P02"));
        assert_eq!(wire.extended(&format!("SELECT v FROM t WHERE id = '{id}'"), false)?.sqlstate(), None);
        let insert = |id: i32, v: &str| format!("INSERT INTO t VALUES ({id}, 1.5, '{v}')");
        assert_eq!(wire.extended(&insert(id, &format!("free {round}")), false)?.sqlstate(), None);
        let taken = wire.extended(&insert(id, "whatever"), false)?;
        assert_eq!(taken.sqlstate(), Some("23505"));
        let detail = taken.error().map(|error| error.get(b'D').to_string());
        assert_eq!(detail.as_deref(), Some(&*format!("Key (id)=({id}) already exists.")));
        let taken = wire.extended(&insert(4000 + round, "v7"), false)?;
        assert_eq!(taken.sqlstate(), Some("23505"));
        let wide = wire.extended(&format!("UPDATE t SET n = 12345678.5 WHERE id = {id}"), false)?;
        assert_eq!(wide.sqlstate(), Some("22003"));
        // Nothing of what failed has happened.
        assert_eq!(told(&wire.extended(&format!("SELECT n FROM t WHERE id = {id}"), false)?), "1.50");
        // In a transaction, whose failure ends it.
        wire.run("BEGIN")?;
        assert_eq!(wire.extended(&insert(id, "whatever"), false)?.sqlstate(), Some("23505"));
        assert_eq!(wire.extended(&format!("SELECT v FROM t WHERE id = {round}"), false)?.sqlstate(), Some("25P02"));
        wire.run("ROLLBACK")?;
    }
    assert_eq!(wire.run("SELECT count(*) FROM t WHERE id >= 3000")?.text(0, 0), Some("4"));
    Ok(())
}

/// Parse came before the change, Execute comes after it.
#[test]
fn what_has_changed_since_they_were_parsed_counts() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut wire) = prepared(&server)?;
    admin.run("CREATE ROLE alice LOGIN SUPERUSER")?;
    let text = |id: i32| format!("SELECT v FROM t WHERE id = {id}");
    let mut parsed = |wire: &mut Wire, id: i32, change: &str| -> Result<String> {
        for id in 1..4 {
            ensure!(told(&wire.extended(&text(id), false)?) == format!("v{id}"), "{id} before {change}");
        }
        wire.prepare("", &text(id))?;
        admin.run(change)?;
        Ok(told(&wire.execute("", &[])?))
    };
    assert_eq!(parsed(&mut wire, 5, "ALTER TABLE t ADD w int")?, "v5");
    assert_eq!(parsed(&mut wire, 6, "UPDATE t SET v = 'six' WHERE id = 6")?, "six");
    assert_eq!(parsed(&mut wire, 8, "DELETE FROM t WHERE id = 8")?, "nothing");
    let mut alice = Wire::connect(server.addr, "alice", "basalt")?;
    assert_eq!(parsed(&mut alice, 9, "ALTER ROLE alice NOSUPERUSER")?, "42501");
    assert_eq!(parsed(&mut wire, 9, "ALTER TABLE t ALTER v TYPE varchar(20)")?, "0A000");
    assert_eq!(parsed(&mut wire, 9, "ALTER TABLE t RENAME v TO x")?, "42703");
    Ok(())
}

/// Executed again, in parts, through portals with names, beside a lock.
#[test]
fn they_run_in_every_way() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut wire) = prepared(&server)?;
    for id in 1..4 {
        assert_eq!(told(&wire.extended(&format!("SELECT v FROM t WHERE id = {id}"), false)?), format!("v{id}"));
        let below = wire.extended(&format!("SELECT id FROM t WHERE id < {id} ORDER BY id"), false)?;
        assert_eq!(below.last().rows.len() as i32, id - 1);
        wire.extended(&format!("UPDATE t SET n = n + {id}.5 WHERE id = {id}"), false)?;
    }
    let before = hits(&mut admin)?;
    wire.prepare("", "SELECT v FROM t WHERE id = 77")?;
    for _ in 0..3 {
        assert_eq!(told(&wire.execute("", &[])?), "v77");
    }
    // Portals keep what they were bound to.
    wire.run("BEGIN")?;
    bind(&mut wire, "SELECT v FROM t WHERE id = 78", "one")?;
    bind(&mut wire, "SELECT v FROM t WHERE id = 79", "two")?;
    bind(&mut wire, "UPDATE t SET n = n + 0.5 WHERE id = 79", "three")?;
    for (portal, expected) in [("three", "nothing"), ("two", "v79"), ("one", "v78")] {
        assert_eq!(told(&run(&mut wire, portal)?), expected);
    }
    wire.run("COMMIT")?;
    assert_eq!(wire.run("SELECT n FROM t WHERE id = 79")?.text(0, 0), Some("119.00"));
    ensure!(hits(&mut admin)? - before >= 5, "they share no plan");
    // In parts: no plan that is shared gives them.
    wire.run("BEGIN")?;
    execute(&mut wire, Some("SELECT id FROM t WHERE id < 9 ORDER BY id"), 3)?;
    let mut parts = vec![wire.answer(None)?.last().rows.len()];
    for _ in 0..2 {
        execute(&mut wire, None, 3)?;
        parts.push(wire.answer(None)?.last().rows.len());
    }
    wire.run("COMMIT")?;
    assert_eq!(parts, [3, 3, 2]);
    // Where it waits it is parsed after all, and changes its row once.
    admin.run("BEGIN; UPDATE t SET n = 0 WHERE id = 9")?;
    execute(&mut wire, Some("UPDATE t SET n = n + 4.5 WHERE id = 9"), 0)?;
    std::thread::sleep(A_WHILE);
    admin.run("COMMIT")?;
    assert_eq!(wire.answer(None)?.last().tag.as_deref(), Some("UPDATE 1"));
    assert_eq!(wire.run("SELECT n FROM t WHERE id = 9")?.text(0, 0), Some("4.50"));
    // An empty statement and BEGIN are what they were.
    assert!(wire.extended("", false)?.error().is_none());
    assert_eq!(wire.extended("BEGIN", false)?.last().tag.as_deref(), Some("BEGIN"));
    assert_eq!(told(&wire.extended("SELECT v FROM t WHERE id = 78", false)?), "v78");
    assert_eq!(wire.extended("ROLLBACK", false)?.last().tag.as_deref(), Some("ROLLBACK"));
    Ok(())
}

/// A literal is read by the settings with which it was parsed; a moment is that of the transaction.
#[test]
fn literals_mean_what_they_meant() -> Result<()> {
    let server = Basalt::start()?;
    let (mut admin, mut wire) = (server.connect()?, server.connect()?);
    admin.run("CREATE TABLE moments (id int PRIMARY KEY, at timestamptz)")?;
    admin.run("INSERT INTO moments VALUES (1, now()), (2, now() + interval '1 hour')")?;
    for _ in 0..4 {
        let past = wire.extended("SELECT id FROM moments WHERE id = 1 AND at < 'now'", false)?;
        assert_eq!(told(&past), "1");
        let future = wire.extended("SELECT id FROM moments WHERE id = 2 AND at < 'now'", false)?;
        assert_eq!(told(&future), "nothing");
        let set = wire.extended("UPDATE moments SET at = 'now' WHERE id = 1 RETURNING at = now()", false)?;
        assert_eq!(told(&set), "t");
        std::thread::sleep(Duration::from_millis(5));
    }
    for (zone, hour) in [("UTC", "12"), ("Asia/Tokyo", "03"), ("UTC", "12")] {
        wire.run(&format!("SET TimeZone = '{zone}'"))?;
        for id in [11, 12, 13] {
            wire.extended(&format!("DELETE FROM moments WHERE id = {id}"), false)?;
            wire.extended(&format!("INSERT INTO moments VALUES ({id}, '2026-01-02 12:00')"), false)?;
        }
        let utc = admin.run("SELECT to_char(at AT TIME ZONE 'UTC', 'HH24') FROM moments WHERE id = 13")?;
        assert_eq!(utc.text(0, 0), Some(hour), "{zone}");
    }
    for (id, hour) in [(11, 12), (12, 12), (13, 13)] {
        let sql = format!("SELECT id FROM moments WHERE id = {id} AND at = '2026-01-02 {hour}:00'");
        assert_eq!(told(&wire.extended(&sql, false)?), if hour == 12 { id.to_string() } else { "nothing".into() });
    }
    let before = hits(&mut admin)?;
    wire.run("BEGIN")?;
    bind(&mut wire, "SELECT id FROM moments WHERE id = 11 AND at = '2026-01-02 12:00'", "read")?;
    bind(&mut wire, "INSERT INTO moments VALUES (14, '2026-01-02 12:00')", "write")?;
    bind(&mut wire, "SELECT id FROM moments WHERE id = 12 AND at = '2026-01-02 12:00'", "before")?;
    assert_eq!(told(&run(&mut wire, "before")?), "12");
    wire.run("SET TimeZone = 'Asia/Tokyo'")?;
    assert_eq!(told(&run(&mut wire, "read")?), "11");
    assert_eq!(told(&run(&mut wire, "write")?), "nothing");
    wire.run("COMMIT; SET TimeZone = 'UTC'")?;
    let same = "SELECT count(DISTINCT at) FROM moments WHERE id > 10";
    assert_eq!(wire.run(same)?.text(0, 0), Some("1"));
    // The portal that ran before the change of the setting.
    assert_eq!(hits(&mut admin)? - before, 1);
    Ok(())
}
