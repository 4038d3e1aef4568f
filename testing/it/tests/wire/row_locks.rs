//! SELECT … FOR UPDATE and FOR SHARE between sessions whose order is not fixed.

use anyhow::{Context, Result};
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;
use std::collections::HashSet;
use std::time::Duration;

/// Ends one of two waiting sessions with 40P01; the other must finish.
fn one_is_refused(a: &mut Wire, b: &mut Wire) -> Result<()> {
    let finish = |wire: &mut Wire| -> Result<Option<String>> {
        let state = wire.answer(None)?.sqlstate().map(str::to_string);
        wire.run(if state.is_none() { "COMMIT" } else { "ROLLBACK" })?;
        Ok(state)
    };
    let (of_a, of_b) = std::thread::scope(|scope| {
        let of_a = scope.spawn(|| finish(a));
        (finish(b), of_a.join().expect("the thread lives"))
    });
    let mut states = [of_a?, of_b?];
    states.sort();
    assert_eq!(states, [None, Some("40P01".to_string())]);
    Ok(())
}

#[test]
fn deadlocks_through_locking_clauses_end_one_member() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    a.run("INSERT INTO t VALUES (1, 0), (2, 0)")?;
    // What each session does first, then what it waits with.
    let cases = [
        // Two holders of a shared lock both want more.
        ("SELECT * FROM t WHERE id = 1 FOR SHARE", "UPDATE t SET x = x + 1 WHERE id = 1", 1),
        ("SELECT * FROM t WHERE id = 1 FOR SHARE", "SELECT * FROM t WHERE id = 1 FOR UPDATE", 1),
        ("SELECT * FROM t WHERE x >= 0 FOR SHARE", "SELECT * FROM t WHERE x >= 0 FOR NO KEY UPDATE", 1),
        ("SELECT * FROM t WHERE id = 1 FOR KEY SHARE", "DELETE FROM t WHERE id = 1", 1),
        // Crossed orders.
        ("SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT * FROM t WHERE id = 2 FOR UPDATE", 2),
        ("SELECT * FROM t WHERE id = 1 FOR UPDATE", "SELECT * FROM t WHERE id = 2 FOR SHARE", 2),
    ];
    for (first, second, rows) in cases {
        let other = |sql: &str| match rows {
            1 => sql.to_string(),
            _ => sql.replace("id = 1", "id = 0").replace("id = 2", "id = 1").replace("id = 0", "id = 2"),
        };
        a.run("BEGIN")?;
        b.run("BEGIN")?;
        a.run(first)?;
        b.run(&other(first))?;
        a.send_simple(second)?;
        std::thread::sleep(Duration::from_millis(50));
        b.send_simple(&other(second))?;
        one_is_refused(&mut a, &mut b).with_context(|| format!("{first}; {second}"))?;
        a.run("DELETE FROM t")?;
        a.run("INSERT INTO t VALUES (1, 0), (2, 0)")?;
    }
    Ok(())
}

/// Eight workers take jobs from one table, by three ways of writing it; every job is taken once.
#[test]
fn a_queue_gives_each_job_once() -> Result<()> {
    const WORKERS: usize = 8;
    const JOBS: usize = 400;
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE job (id int PRIMARY KEY, state text NOT NULL)")?;
    wire.run(&format!("INSERT INTO job SELECT g, 'queued' FROM generate_series(1, {JOBS}) g"))?;
    let taken = std::thread::scope(|scope| -> Result<Vec<i32>> {
        let workers: Vec<_> = (0..WORKERS)
            .map(|worker| {
                let mut wire = server.connect()?;
                Ok(scope.spawn(move || work(&mut wire, worker)))
            })
            .collect::<Result<_>>()?;
        // Half of the rows go cold while they are taken.
        wire.run("VACUUM job")?;
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().expect("the worker lives")?);
        }
        Ok(all)
    })?;
    let distinct: HashSet<i32> = taken.iter().copied().collect();
    assert_eq!((taken.len(), distinct.len()), (JOBS, JOBS));
    assert_eq!(wire.run("SELECT count(*) FROM job WHERE state = 'queued'")?.text(0, 0), Some("0"));
    Ok(())
}

fn work(wire: &mut Wire, worker: usize) -> Result<Vec<i32>> {
    let mut taken = Vec::new();
    loop {
        let found = match worker % 3 {
            0 => {
                let queued = "SELECT id FROM job WHERE state = 'queued' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1";
                wire.run(&format!("UPDATE job SET state = 'taken' WHERE id = ({queued}) RETURNING id"))?
            }
            1 => {
                let queued = "SELECT id FROM job WHERE state = 'queued' LIMIT 3 FOR UPDATE SKIP LOCKED";
                wire.run(&format!("DELETE FROM job WHERE id IN ({queued}) RETURNING id"))?
            }
            _ => {
                wire.run("BEGIN")?;
                let sql = "SELECT id FROM job WHERE state = 'queued' ORDER BY id DESC LIMIT 2 FOR UPDATE SKIP LOCKED";
                let found = wire.run(sql)?;
                for row in 0..found.rows.len() {
                    let id = found.text(row, 0).unwrap_or_default();
                    wire.run(&format!("UPDATE job SET state = 'taken' WHERE id = {id}"))?;
                }
                wire.run("COMMIT")?;
                found
            }
        };
        if found.rows.is_empty() {
            // The others may hold what is left, and let it go only by taking it.
            let left = wire.run("SELECT 1 FROM job WHERE state = 'queued' LIMIT 1")?;
            if left.rows.is_empty() {
                return Ok(taken);
            }
            continue;
        }
        for row in 0..found.rows.len() {
            taken.push(found.text(row, 0).context("a null id")?.parse()?);
        }
    }
}

/// Read, compute in the client, write: without the lock increments would be lost.
#[test]
fn read_modify_write_loses_nothing() -> Result<()> {
    const ROUNDS: i32 = 50;
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE counter (id int PRIMARY KEY, n int)")?;
    wire.run("INSERT INTO counter VALUES (1, 0)")?;
    std::thread::scope(|scope| -> Result<()> {
        let clients: Vec<_> = ["id = 1", "id = 1", "n >= 0", "n >= 0"]
            .into_iter()
            .map(|condition| {
                let mut wire = server.connect()?;
                Ok(scope.spawn(move || -> Result<()> {
                    for _ in 0..ROUNDS {
                        wire.run("BEGIN")?;
                        let found = wire.run(&format!("SELECT n FROM counter WHERE {condition} FOR UPDATE"))?;
                        let n: i32 = found.text(0, 0).context("no row")?.parse()?;
                        wire.run(&format!("UPDATE counter SET n = {} WHERE id = 1", n + 1))?;
                        wire.run("COMMIT")?;
                    }
                    Ok(())
                }))
            })
            .collect::<Result<_>>()?;
        clients.into_iter().try_for_each(|client| client.join().expect("the client lives"))
    })?;
    assert_eq!(wire.run("SELECT n FROM counter")?.text(0, 0), Some((4 * ROUNDS).to_string().as_str()));
    Ok(())
}
