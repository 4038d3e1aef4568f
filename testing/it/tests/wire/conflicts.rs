//! Conflicts whose loser is not fixed: each server may choose another, the sum must be right.

use anyhow::Result;
use basalt_it::servers::Basalt;
use basalt_it::wire::Wire;
use rand::{Rng, SeedableRng, rngs::StdRng};

#[test]
fn a_deadlock_ends_one_of_its_members() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    a.run("INSERT INTO t VALUES (1, 0), (2, 0)")?;
    for round in 0..5 {
        a.run("BEGIN")?;
        b.run("BEGIN")?;
        a.run("UPDATE t SET x = x + 1 WHERE id = 1")?;
        b.run("UPDATE t SET x = x + 1 WHERE id = 2")?;
        a.send_simple("UPDATE t SET x = x + 1 WHERE id = 2")?;
        std::thread::sleep(std::time::Duration::from_millis(50));
        b.send_simple("UPDATE t SET x = x + 1 WHERE id = 1")?;
        let finish = |wire: &mut Wire| -> Result<Option<String>> {
            let state = wire.answer(None)?.sqlstate().map(str::to_string);
            wire.run(if state.is_none() { "COMMIT" } else { "ROLLBACK" })?;
            Ok(state)
        };
        let (of_a, of_b) = std::thread::scope(|scope| {
            let of_a = scope.spawn(|| finish(&mut a));
            (finish(&mut b), of_a.join().expect("the thread lives"))
        });
        let mut states = [of_a?, of_b?];
        states.sort();
        assert_eq!(states, [None, Some("40P01".to_string())], "round {round}");
    }
    assert_eq!(a.run("SELECT sum(x) FROM t")?.text(0, 0), Some("10"));
    Ok(())
}

/// Money moves between accounts at both isolation levels; every reader sees the same sum.
#[test]
fn transfers_keep_the_sum() -> Result<()> {
    const ACCOUNTS: i32 = 10;
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL)")?;
    wire.run(&format!("INSERT INTO account SELECT g, 1000 FROM generate_series(1, {ACCOUNTS}) g"))?;
    let done = std::thread::scope(|scope| -> Result<u32> {
        let transfers: Vec<_> = (0..4)
            .map(|seed| {
                let mut wire = server.connect()?;
                Ok(scope.spawn(move || transfer(&mut wire, seed, ACCOUNTS)))
            })
            .collect::<Result<_>>()?;
        for _ in 0..30 {
            assert_eq!(wire.run("SELECT sum(balance) FROM account")?.text(0, 0), Some("10000"));
            wire.run("VACUUM account")?;
        }
        transfers.into_iter().map(|transfer| transfer.join().expect("the client lives")).sum()
    })?;
    assert_eq!(wire.run("SELECT sum(balance), count(*) FROM account")?.text(0, 0), Some("10000"));
    assert!(done > 50, "{done} transfers");
    Ok(())
}

fn transfer(wire: &mut Wire, seed: u64, accounts: i32) -> Result<u32> {
    let mut random = StdRng::seed_from_u64(seed);
    let mut done = 0;
    for _ in 0..60 {
        let (from, to) = (random.random_range(1..=accounts), random.random_range(1..=accounts));
        let amount = random.random_range(1..50);
        let level = if random.random() { "READ COMMITTED" } else { "REPEATABLE READ" };
        wire.run(&format!("BEGIN ISOLATION LEVEL {level}"))?;
        let changes = [(from, -amount), (to, amount)].iter().try_for_each(|(id, change)| {
            let sql = format!("UPDATE account SET balance = balance + {change} WHERE id = {id}");
            match wire.simple(&sql, None)?.sqlstate() {
                None => Ok(()),
                Some(state) if state == "40001" || state == "40P01" => anyhow::bail!("{state}"),
                Some(state) => panic!("{sql}: {state}"),
            }
        });
        let end = if changes.is_ok() { "COMMIT" } else { "ROLLBACK" };
        done += u32::from(changes.is_ok());
        wire.run(end)?;
    }
    Ok(done)
}

/// What no lock keeps apart is refused to whoever commits second, where PostgreSQL has the second wait for the first.
#[test]
fn of_two_definitions_that_do_not_go_together_the_second_is_refused() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (server.connect()?, server.connect()?);
    a.run("CREATE TABLE t (id int); CREATE ROLE r; CREATE ROLE s; CREATE SCHEMA q")?;
    for (first, second, sqlstate) in [
        ("CREATE SCHEMA made", "CREATE SCHEMA made", "42P06"),
        ("CREATE SCHEMA IF NOT EXISTS made", "CREATE SCHEMA IF NOT EXISTS made", "42P06"),
        ("ALTER SCHEMA q RENAME TO made", "CREATE SCHEMA made", "42P06"),
        ("CREATE ROLE made", "CREATE ROLE made", "42710"),
        ("ALTER ROLE r RENAME TO made", "CREATE ROLE made", "42710"),
        ("CREATE TYPE made AS ENUM ('a')", "CREATE TYPE made AS ENUM ('a')", "42710"),
        ("CREATE TABLE made (id int)", "CREATE TABLE made (id int)", "42P07"),
        ("CREATE VIEW made AS SELECT 1", "CREATE TABLE made (id int)", "42P07"),
        ("GRANT SELECT ON t TO s", "DROP ROLE s", "40001"),
        ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO s", "DROP ROLE s", "40001"),
        ("CREATE TABLE q.made (id int)", "DROP SCHEMA q", "40001"),
        ("ALTER TABLE t OWNER TO s", "DROP ROLE s", "40001"),
        ("ALTER ROLE s LOGIN", "ALTER ROLE s CREATEDB", "40001"),
    ] {
        for turned in [false, true] {
            let (one, other) = if turned { (&mut b, &mut a) } else { (&mut a, &mut b) };
            let (former, latter) = if turned { (second, first) } else { (first, second) };
            one.run("BEGIN")?;
            one.run(former)?;
            other.run("BEGIN")?;
            other.run(latter)?;
            one.run("COMMIT")?;
            let refused = other.simple("COMMIT", None)?;
            assert_eq!(refused.sqlstate(), Some(sqlstate), "{former}; {latter}");
            // Not all of it is there.
            for owner in ["r", "s"] {
                other.simple(&format!("DROP OWNED BY {owner}"), None)?;
            }
            for gone in ["SCHEMA made", "SCHEMA q", "TABLE t", "TABLE made", "VIEW made", "TYPE made"] {
                other.simple(&format!("DROP {gone} CASCADE"), None)?;
            }
            for role in ["made", "r", "s"] {
                other.simple(&format!("DROP ROLE {role}"), None)?;
            }
            other.run("CREATE TABLE t (id int); CREATE ROLE r; CREATE ROLE s; CREATE SCHEMA q")?;
        }
    }
    Ok(())
}

/// Types go with their database, and its name is free again.
#[test]
fn a_database_is_dropped_with_all_that_is_in_it() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    for _ in 0..2 {
        wire.run("CREATE ROLE r")?;
        wire.run("CREATE DATABASE other")?;
        let mut inside = Wire::connect(server.addr, "basalt", "other")?;
        inside
            .run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN d AS int; CREATE TABLE t (id serial, m mood, x d)")?;
        inside.run("CREATE VIEW v AS SELECT * FROM t; ALTER TYPE mood OWNER TO r")?;
        drop(inside);
        while wire.simple("DROP DATABASE other", None)?.sqlstate() == Some("55006") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        wire.run("DROP ROLE r")?;
    }
    Ok(())
}
