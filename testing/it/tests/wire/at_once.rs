//! Writes and locks of single rows by prepared statements: done where their message is read, and begun again elsewhere
//! if they have to wait.

use anyhow::{Result, ensure};
use basalt_it::servers::Basalt;
use basalt_it::wire::{Answer, Wire};
use std::time::Duration;

/// Time for a statement to come to its wait.
const A_WHILE: Duration = Duration::from_millis(300);

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| value.to_string()).collect()
}

/// Runs a prepared statement, whose plan is known after the first time.
fn execute(wire: &mut Wire, name: &str, values: &[&str]) -> Result<Answer> {
    wire.execute(name, &strings(values))
}

fn expect(wire: &mut Wire, name: &str, values: &[&str], tag: &str, row: &[&str]) -> Result<()> {
    let answer = execute(wire, name, values)?;
    ensure!(answer.sqlstate().is_none(), "{name} {values:?}: {answer:?}");
    let reply = answer.last();
    ensure!(reply.tag.as_deref() == Some(tag), "{name} {values:?}: {:?}, not {tag}", reply.tag);
    let found: Vec<&str> = (0..row.len()).map(|column| reply.text(0, column).unwrap_or("null")).collect();
    ensure!(found == row && reply.rows.len() == usize::from(!row.is_empty()), "{name} {values:?}: {found:?}");
    Ok(())
}

/// The answer to a statement that waits for the transaction of `holder`, which ends as `end` says meanwhile.
fn waits(holder: &mut Wire, waiter: &mut Wire, name: &str, values: &[&str], end: &str) -> Result<Answer> {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| execute(waiter, name, values));
        std::thread::sleep(A_WHILE);
        ensure!(!waiting.is_finished(), "{name} {values:?} does not wait");
        holder.run(end)?;
        waiting.join().expect("a client")
    })
}

fn prepared(server: &Basalt) -> Result<Wire> {
    let mut wire = server.connect()?;
    for (name, sql) in [
        ("add", "UPDATE t SET v = v + $2::int WHERE id = $1::int RETURNING v, w"),
        ("lock", "SELECT v, w FROM t WHERE id = $1::int FOR UPDATE"),
        ("try", "SELECT v FROM t WHERE id = $1::int FOR UPDATE NOWAIT"),
        ("skip", "SELECT v FROM t WHERE id = $1::int FOR UPDATE SKIP LOCKED"),
        ("put", "INSERT INTO t (id, v, w) VALUES ($1::int, $2::int, $3)"),
        ("remove", "DELETE FROM t WHERE id = $1::int"),
        ("begin", "BEGIN"),
        ("commit", "COMMIT"),
    ] {
        ensure!(wire.prepare(name, sql)?.sqlstate().is_none(), "{sql}");
    }
    Ok(wire)
}

#[test]
fn each_change_happens_once_wherever_it_is_done() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (prepared_table(&server)?, prepared(&server)?);
    for wire in [&mut a, &mut b] {
        expect(wire, "begin", &[], "BEGIN", &[])?;
        for round in 1..=3 {
            expect(wire, "put", &[&format!("{}", 100 + round), "1", "w"], "INSERT 0 1", &[])?;
            expect(wire, "lock", &[&format!("{}", 100 + round)], "SELECT 1", &["1", "w"])?;
            expect(wire, "remove", &[&format!("{}", 100 + round)], "DELETE 1", &[])?;
            expect(wire, "remove", &[&format!("{}", 100 + round)], "DELETE 0", &[])?;
            expect(wire, "lock", &["999"], "SELECT 0", &[])?;
        }
        expect(wire, "commit", &[], "COMMIT", &[])?;
    }
    // Alone, each statement is a transaction.
    for round in 1..=5 {
        expect(&mut a, "add", &["1", "10"], "UPDATE 1", &[&format!("{}", 10 * round), "one"])?;
    }
    // Behind another's lock: once, over what the other one left.
    for (end, expected) in [("COMMIT", "71"), ("ROLLBACK", "72")] {
        a.run("BEGIN")?;
        expect(&mut a, "add", &["1", "20"], "UPDATE 1", &[if end == "COMMIT" { "70" } else { "91" }, "one"])?;
        let answer = waits(&mut a, &mut b, "add", &["1", "1"], end)?;
        let reply = answer.last();
        assert_eq!((reply.text(0, 0), reply.tag.as_deref()), (Some(expected), Some("UPDATE 1")));
    }
    // In a transaction that has done something before, and goes on.
    a.run("BEGIN")?;
    expect(&mut a, "lock", &["1"], "SELECT 1", &["72", "one"])?;
    expect(&mut b, "begin", &[], "BEGIN", &[])?;
    expect(&mut b, "add", &["2", "5"], "UPDATE 1", &["5", "two"])?;
    b.run("SAVEPOINT s")?;
    expect(&mut b, "add", &["2", "5"], "UPDATE 1", &["10", "two"])?;
    assert_eq!(execute(&mut b, "skip", &["1"])?.last().rows.len(), 0);
    let answer = waits(&mut a, &mut b, "lock", &["1"], "UPDATE t SET v = 1000 WHERE id = 1; COMMIT")?;
    assert_eq!(answer.last().text(0, 0), Some("1000"));
    expect(&mut b, "add", &["1", "1"], "UPDATE 1", &["1001", "one"])?;
    b.run("ROLLBACK TO s")?;
    expect(&mut b, "add", &["2", "1"], "UPDATE 1", &["6", "two"])?;
    expect(&mut b, "commit", &[], "COMMIT", &[])?;
    expect(&mut a, "add", &["1", "0"], "UPDATE 1", &["1000", "one"])?;
    expect(&mut a, "add", &["2", "0"], "UPDATE 1", &["6", "two"])
}

/// A condition is asked before the row's lock is there: what lasts of it must not happen again with the statement.
#[test]
fn a_condition_that_lasts_is_computed_once() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (prepared_table(&server)?, prepared(&server)?);
    a.run("CREATE SEQUENCE s")?;
    let sql = "SELECT v FROM t WHERE id = $1::int AND setval('s', nextval('s') + 10) > 0 FOR UPDATE";
    ensure!(b.prepare("lasts", sql)?.sqlstate().is_none(), "{sql}");
    for _ in 0..3 {
        expect(&mut b, "lasts", &["1"], "SELECT 1", &["0"])?;
    }
    a.run("BEGIN")?;
    expect(&mut a, "add", &["1", "1"], "UPDATE 1", &["1", "one"])?;
    let answer = waits(&mut a, &mut b, "lasts", &["1"], "ROLLBACK")?;
    assert_eq!(answer.last().text(0, 0), Some("0"));
    assert_eq!(a.run("SELECT last_value FROM s")?.text(0, 0), Some("44"));
    Ok(())
}

fn prepared_table(server: &Basalt) -> Result<Wire> {
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, v int CHECK (v >= 0), w text)")?;
    wire.run("INSERT INTO t VALUES (1, 0, 'one'), (2, 0, 'two')")?;
    prepared(server)
}

#[test]
fn errors_are_those_of_the_ordinary_path() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (prepared_table(&server)?, prepared(&server)?);
    for _ in 0..3 {
        for (name, values, sqlstate) in [
            ("put", vec!["1", "1", "x"], "23505"),
            ("add", vec!["1", "-1"], "23514"),
            ("add", vec!["1", "2147483647"], "22003"),
        ] {
            // So that the second addition overflows.
            a.run("UPDATE t SET v = CASE WHEN id = 1 THEN 0 ELSE v END")?;
            if sqlstate == "22003" {
                expect(&mut a, "add", &["1", "1"], "UPDATE 1", &["1", "one"])?;
            }
            assert_eq!(execute(&mut a, name, &values)?.sqlstate(), Some(sqlstate), "{name}");
            expect(&mut a, "begin", &[], "BEGIN", &[])?;
            expect(&mut a, "add", &["2", "1"], "UPDATE 1", &["1", "two"])?;
            assert_eq!(execute(&mut a, name, &values)?.sqlstate(), Some(sqlstate), "{name} in a transaction");
            assert_eq!(execute(&mut a, "add", &["2", "1"])?.sqlstate(), Some("25P02"));
            assert_eq!(execute(&mut a, "lock", &["2"])?.sqlstate(), Some("25P02"));
            expect(&mut a, "commit", &[], "ROLLBACK", &[])?;
            expect(&mut a, "add", &["2", "0"], "UPDATE 1", &["0", "two"])?;
        }
    }
    // Read-only transactions, and locks that are not waited for.
    a.run("BEGIN READ ONLY")?;
    assert_eq!(execute(&mut a, "lock", &["1"])?.sqlstate(), Some("25006"));
    a.run("ROLLBACK")?;
    a.run("BEGIN READ ONLY")?;
    assert_eq!(execute(&mut a, "add", &["1", "1"])?.sqlstate(), Some("25006"));
    a.run("ROLLBACK")?;
    a.run("BEGIN; SELECT FROM t WHERE id = 1 FOR UPDATE")?;
    assert_eq!(execute(&mut b, "try", &["1"])?.sqlstate(), Some("55P03"));
    b.run("SET lock_timeout = '100ms'")?;
    for _ in 0..2 {
        assert_eq!(execute(&mut b, "add", &["1", "1"])?.sqlstate(), Some("55P03"));
    }
    b.run("SET lock_timeout = 0; SET statement_timeout = '100ms'")?;
    assert_eq!(execute(&mut b, "add", &["1", "1"])?.sqlstate(), Some("57014"));
    b.run("RESET statement_timeout")?;
    a.run("COMMIT")?;
    // A key that another is about to insert: waited for, and then taken.
    a.run("BEGIN")?;
    expect(&mut a, "put", &["7", "7", "seven"], "INSERT 0 1", &[])?;
    assert_eq!(waits(&mut a, &mut b, "put", &["7", "8", "eight"], "COMMIT")?.sqlstate(), Some("23505"));
    // What a known plan was made for has changed.
    a.run("ALTER TABLE t ADD CHECK (v < 100)")?;
    assert_eq!(execute(&mut b, "put", &["8", "100", "x"])?.sqlstate(), Some("23514"));
    a.run("CREATE UNIQUE INDEX ON t (w)")?;
    assert_eq!(execute(&mut b, "put", &["8", "1", "one"])?.sqlstate(), Some("23505"));
    a.run("CREATE TABLE child (t int REFERENCES t)")?;
    a.run("INSERT INTO child VALUES (7)")?;
    for _ in 0..2 {
        assert_eq!(execute(&mut b, "remove", &["7"])?.sqlstate(), Some("23503"));
    }
    a.run("DROP TABLE t CASCADE")?;
    assert_eq!(execute(&mut b, "add", &["1", "1"])?.sqlstate(), Some("42P01"));
    Ok(())
}

/// A text parameter that no text can be, whatever it is for.
#[test]
fn zero_bytes_in_texts_are_refused() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = prepared_table(&server)?;
    for _ in 0..2 {
        assert_eq!(execute(&mut wire, "put", &["3", "0", "a\0b"])?.sqlstate(), Some("22021"));
        assert_eq!(execute(&mut wire, "put", &["3\0", "0", "a"])?.sqlstate(), Some("22021"));
    }
    assert_eq!(wire.with_values("SELECT $1::text", &strings(&["\0"]))?.sqlstate(), Some("22021"));
    expect(&mut wire, "remove", &["3"], "DELETE 0", &[])
}

/// Two who wait for each other: one of them is refused, as on the ordinary path.
#[test]
fn a_deadlock_is_found() -> Result<()> {
    let server = Basalt::start()?;
    let (mut a, mut b) = (prepared_table(&server)?, prepared(&server)?);
    for _ in 0..2 {
        for (wire, id) in [(&mut a, "1"), (&mut b, "2")] {
            expect(wire, "begin", &[], "BEGIN", &[])?;
            ensure!(execute(wire, "add", &[id, "1"])?.sqlstate().is_none());
        }
        let (of_a, of_b) = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| execute(&mut a, "lock", &["2"]));
            let of_b = execute(&mut b, "add", &["1", "1"]);
            if of_b.as_ref().is_ok_and(|answer| answer.sqlstate().is_none()) {
                return (waiting.join().expect("a client"), of_b);
            }
            let _ = b.run("ROLLBACK");
            (waiting.join().expect("a client"), of_b)
        });
        let refused = [of_a?, of_b?].iter().filter(|answer| answer.sqlstate() == Some("40P01")).count();
        assert_eq!(refused, 1);
        a.run("ROLLBACK")?;
        b.run("ROLLBACK")?;
    }
    Ok(())
}
