//! pg_terminate_backend: the session ends, its transaction is undone, its client hears 57P01.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;
use std::time::{Duration, Instant};

const PROMPT: Duration = Duration::from_secs(5);

/// What is left to read, which must be a FATAL 57P01 and the end.
fn hears_of_it(wire: &mut Wire) -> Result<()> {
    loop {
        match wire.receive()? {
            (b'E', body) => {
                let text = String::from_utf8_lossy(&body).into_owned();
                ensure!(text.contains("FATAL") && text.contains("C57P01"), "{text}");
                break;
            }
            (b'Z', _) => anyhow::bail!("it is ready for more"),
            _ => {}
        }
    }
    ensure!(wire.receive().is_err(), "the connection goes on");
    Ok(())
}

#[test]
fn a_terminated_session_is_undone_and_told() -> Result<()> {
    let server = Basalt::start()?;
    let mut admin = server.connect()?;
    admin.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    admin.run("INSERT INTO t VALUES (1, 1)")?;
    // Idle in a transaction, with a lock that others wait for.
    let mut idle = server.connect()?;
    idle.run("BEGIN")?;
    idle.run("UPDATE t SET x = 2 WHERE id = 1")?;
    assert_eq!(admin.run(&format!("SELECT pg_terminate_backend({})", idle.key.0))?.text(0, 0), Some("t"));
    hears_of_it(&mut idle)?;
    admin.run("SET lock_timeout = '5s'")?;
    admin.run("UPDATE t SET x = x + 10 WHERE id = 1")?;
    assert_eq!(admin.run("SELECT x FROM t")?.text(0, 0), Some("11"));
    // In the middle of a statement, and while it waits for a lock.
    admin.run("BEGIN")?;
    admin.run("UPDATE t SET x = 12 WHERE id = 1")?;
    for sql in ["SELECT count(*) FROM generate_series(1, 100000000000)", "UPDATE t SET x = 13 WHERE id = 1"] {
        let mut busy = server.connect()?;
        busy.send_simple(sql)?;
        let active = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = {} AND state = 'active'", busy.key.0);
        let begun = Instant::now();
        while server.connect()?.run(&active)?.text(0, 0) != Some("1") {
            ensure!(begun.elapsed() < PROMPT, "the statement does not start");
        }
        let asked = Instant::now();
        admin.run(&format!("SELECT pg_terminate_backend({})", busy.key.0))?;
        hears_of_it(&mut busy)?;
        ensure!(asked.elapsed() < PROMPT, "{sql}: {:?}", asked.elapsed());
    }
    admin.run("COMMIT")?;
    assert_eq!(admin.run("SELECT x FROM t")?.text(0, 0), Some("12"));
    assert_eq!(admin.run("SELECT pg_terminate_backend(999999)")?.text(0, 0), Some("f"));
    // Itself.
    let own = admin.key.0;
    admin.send_simple(&format!("SELECT pg_terminate_backend({own})"))?;
    hears_of_it(&mut admin)
}

#[test]
fn users_end_sessions_of_roles_that_they_act_for() -> Result<()> {
    let server = Basalt::start()?;
    let mut admin = server.connect()?;
    admin.run("CREATE USER ann")?;
    admin.run("CREATE USER ben")?;
    let connect = |user| Wire::connect(server.addr, user, "basalt");
    let (mut ann, mut other, mut ben) = (connect("ann")?, connect("ann")?, connect("ben")?);
    for call in ["pg_terminate_backend", "pg_cancel_backend"] {
        for pid in [admin.key.0, ben.key.0] {
            let answer = ann.simple(&format!("SELECT {call}({pid})"), None)?;
            assert_eq!(answer.sqlstate(), Some("42501"), "{call}({pid})");
        }
    }
    ben.run("SELECT 1")?;
    admin.run("SELECT 1")?;
    assert_eq!(ann.run(&format!("SELECT pg_terminate_backend({})", other.key.0))?.text(0, 0), Some("t"));
    hears_of_it(&mut other)?;
    // Those of roles that it is in, if it inherits.
    admin.run("GRANT ben TO ann")?;
    admin.run("ALTER USER ann NOINHERIT")?;
    let end_ben = format!("SELECT pg_terminate_backend({})", ben.key.0);
    assert_eq!(ann.simple(&end_ben, None)?.sqlstate(), Some("42501"));
    admin.run("ALTER USER ann INHERIT")?;
    assert_eq!(ann.run(&end_ben)?.text(0, 0), Some("t"));
    hears_of_it(&mut ben)
}

/// DROP DATABASE … WITH (FORCE): whoever is in it is ended first.
#[test]
fn sessions_of_a_database_that_is_dropped_by_force_are_ended() -> Result<()> {
    let server = Basalt::start()?;
    let mut admin = server.connect()?;
    admin.run("CREATE DATABASE other")?;
    let inside = || Wire::connect(server.addr, "basalt", "other");
    let (mut idle, mut busy) = (inside()?, inside()?);
    idle.run("CREATE TEMP TABLE mine (id int)")?;
    idle.run("BEGIN")?;
    idle.run("CREATE TABLE t (id int)")?;
    busy.send_simple("SELECT count(*) FROM generate_series(1, 100000000000)")?;
    assert_eq!(admin.simple("DROP DATABASE other", None)?.sqlstate(), Some("55006"));
    let asked = Instant::now();
    admin.run("DROP DATABASE other WITH (FORCE)")?;
    ensure!(asked.elapsed() < PROMPT, "{:?}", asked.elapsed());
    hears_of_it(&mut idle)?;
    hears_of_it(&mut busy)?;
    ensure!(inside().is_err(), "the database is still there");
    admin.run("CREATE DATABASE other")?;
    inside()?.run("CREATE TABLE t (id int)")?;
    Ok(())
}
