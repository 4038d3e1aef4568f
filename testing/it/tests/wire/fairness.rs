//! One connection's long work and another's silence leave the rest alone.

use crate::limits::assert_rests;
use anyhow::Result;
use basalt_it::servers::Basalt;
use basalt_it::wire::{Wire, put_message, put_text};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a SELECT 1 may take beside long work.
const SHORT: Duration = Duration::from_millis(150);

/// Runs `work` while three connections ask for SELECT 1 again and again: how long each took, sorted.
fn beside(server: &Basalt, work: impl FnOnce() -> Result<()>) -> Result<Vec<Duration>> {
    let (ready, ended) = (std::sync::Barrier::new(4), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let ask = || -> Result<Vec<Duration>> {
            let wire = server.connect();
            ready.wait();
            let (mut wire, mut took) = (wire?, Vec::new());
            while !ended.load(Ordering::Relaxed) {
                let began = Instant::now();
                assert_eq!(wire.run("SELECT 1")?.text(0, 0), Some("1"));
                took.push(began.elapsed());
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(took)
        };
        let askers: Vec<_> = (0..3).map(|_| scope.spawn(ask)).collect();
        ready.wait();
        let worked = work();
        ended.store(true, Ordering::Relaxed);
        let mut all = Vec::new();
        for asker in askers {
            all.extend(asker.join().expect("an asker lives")?);
        }
        worked?;
        all.sort_unstable();
        Ok(all)
    })
}

/// The machine may be busy with other tests: outliers say nothing, a wait of every connection does.
fn assert_short(took: &[Duration], beside: &str) {
    let (usual, longest) = (took[took.len() * 9 / 10], took[took.len() - 1]);
    assert!(took.len() > 100, "only {} questions beside {beside}: {longest:?}", took.len());
    assert!(usual < SHORT && longest < 10 * SHORT, "SELECT 1 took up to {longest:?}, 90 % {usual:?}, beside {beside}");
}

/// More writers than the server has threads for connections.
const WRITERS: usize = 4;

/// Runs the statements on as many connections, each with a table `t0`, `t1`, … of its own in place of `T`.
fn write_all(server: &Basalt, statements: &[&str]) -> Result<()> {
    std::thread::scope(|scope| {
        let write = |writer: usize| -> Result<()> {
            let mut wire = server.connect()?;
            statements.iter().try_for_each(|sql| wire.run(&sql.replace('T', &format!("t{writer}"))).map(|_| ()))
        };
        let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
        writers.into_iter().try_for_each(|writer| writer.join().expect("a writer lives"))
    })
}

#[test]
fn long_writes_leave_other_connections_alone() -> Result<()> {
    let server = Basalt::start()?;
    let filled = [
        "create table T (id int primary key, x int, s text)",
        "insert into T select i, i, 'row ' || i from generate_series(1, 100000) i",
    ];
    write_all(&server, &filled)?;
    // Scan, evaluate, write, commit; then the same and back.
    let updates = ["begin", "update T set x = x + 1", "commit", "begin", "delete from T", "rollback"];
    let took = beside(&server, || write_all(&server, &updates))?;
    assert_short(&took, "UPDATE and DELETE");
    // However fast the machine is: the threads that serve connections have no part in it.
    let before = (server.cpu_time()?, server.cpu_time_of("basalt-reactor")?);
    write_all(&server, &updates)?;
    let all = server.cpu_time()? - before.0;
    let reactors = server.cpu_time_of("basalt-reactor")? - before.1;
    assert!(reactors * 20 < all, "connections' threads worked for {reactors:?} of {all:?}");
    let others = [
        "insert into T select * from T on conflict (id) do update set x = T.x - 1",
        "alter table T alter column x set not null",
        "alter table T drop constraint T_pkey",
        "alter table T add primary key (id)",
    ];
    let took = beside(&server, || write_all(&server, &others))?;
    assert_short(&took, "INSERT and ALTER TABLE");
    // Rows that are locked one by one, all of a table or up to a limit. Only their number is sent: rows are sent by the
    // threads that serve connections.
    let mut writers = (0..WRITERS).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    let locks = ["select 1 from T for share", "select x from T for update limit 20000"];
    for lock in locks.map(|lock| format!("select count(*) from ({lock}) s")) {
        run_all(&mut writers, &["begin"])?;
        assert_elsewhere(&server, &mut writers, &[&lock])?;
        run_all(&mut writers, &["rollback"])?;
    }
    for writer in 0..WRITERS {
        let sum = server.connect()?.run(&format!("SELECT sum(x - id) FROM t{writer}"))?;
        // Twice up and once down.
        assert_eq!(sum.text(0, 0), Some("100000"));
    }
    Ok(())
}

/// Reading a text takes time in proportion to its length, wherever columns and literals stand in it.
#[test]
fn a_long_text_is_read_in_one_go() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("create table t (id int primary key, x int, s text)")?;
    let rows = (0..20_000).map(|id| format!("({id}, {id} + 1, 'row ' || {id})")).collect::<Vec<_>>().join(",\n");
    let began = Instant::now();
    wire.run(&format!("insert into t values {rows}"))?;
    let sums = (0..2_000).map(|id| format!("s = 'row {id}' or id = {id}")).collect::<Vec<_>>();
    let sums = sums.chunks(50).map(|any| format!("count(*) filter (where {})", any.join("\nor "))).collect::<Vec<_>>();
    let counts = wire.run(&format!("select {}", sums.join(",\n") + " from t"))?;
    assert_eq!((counts.text(0, 0), counts.text(0, sums.len() - 1)), (Some("50"), Some("50")));
    assert!(began.elapsed() < Duration::from_secs(10), "it took {:?}", began.elapsed());
    Ok(())
}

#[test]
fn a_long_write_ends_when_it_is_canceled() -> Result<()> {
    let server = Basalt::start()?;
    let (mut writer, mut other) = (server.connect()?, server.connect()?);
    writer.run("CREATE TABLE t (id int PRIMARY KEY, x int)")?;
    writer.run("INSERT INTO t SELECT i, i FROM generate_series(1, 800000) i")?;
    writer.run("BEGIN")?;
    writer.run("UPDATE t SET x = 0 WHERE id = 1")?;
    writer.run("SAVEPOINT s")?;
    writer.run("SET LOCAL statement_timeout = '200ms'")?;
    let began = Instant::now();
    assert_eq!(writer.simple("UPDATE t SET x = x + 1", None)?.sqlstate(), Some("57014"));
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?} to end", began.elapsed());
    // Up to the savepoint the transaction is as it was.
    writer.run("ROLLBACK TO s")?;
    writer.run("SET LOCAL statement_timeout = 0")?;
    writer.run("UPDATE t SET x = 7 WHERE id = 2")?;
    writer.run("COMMIT")?;
    let reply = other.run("SELECT count(*) FROM t WHERE x = id")?;
    assert_eq!(reply.text(0, 0), Some("799998"));
    assert_rests(&server, &mut other, "a canceled UPDATE")
}

/// Runs the statements as [`write_all`] does; the threads that serve connections must have no part in it.
fn assert_elsewhere(server: &Basalt, writers: &mut [Wire], statements: &[&str]) -> Result<()> {
    let before = (server.cpu_time()?, server.cpu_time_of("basalt-reactor")?);
    run_all(writers, statements)?;
    let all = server.cpu_time()? - before.0;
    let reactors = server.cpu_time_of("basalt-reactor")? - before.1;
    assert!(reactors * 5 < all, "connections' threads worked for {reactors:?} of {all:?} for {statements:?}");
    Ok(())
}

/// Each connection at the same time as the others, with a table of its own in place of `T`. Errors are no matter.
fn run_all(writers: &mut [Wire], statements: &[&str]) -> Result<()> {
    std::thread::scope(|scope| {
        let run = |at: usize, wire: &mut Wire| -> Result<()> {
            statements.iter().try_for_each(|sql| wire.simple(&sql.replace('T', &format!("t{at}")), None).map(|_| ()))
        };
        let running: Vec<_> =
            writers.iter_mut().enumerate().map(|(at, wire)| scope.spawn(move || run(at, wire))).collect();
        running.into_iter().try_for_each(|writer| writer.join().expect("a writer lives"))
    })
}

#[test]
fn the_ends_of_long_transactions_leave_other_connections_alone() -> Result<()> {
    let server = Basalt::start()?;
    let filled =
        ["create table T (id int primary key, x int)", "insert into T select i, i from generate_series(1, 100000) i"];
    write_all(&server, &filled)?;
    let mut writers = (0..WRITERS).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    // What an error takes back up to a savepoint.
    run_all(&mut writers, &["begin", "savepoint s", "update T set x = 0"])?;
    assert_elsewhere(&server, &mut writers, &["select 1 / 0"])?;
    run_all(&mut writers, &["rollback to s", "commit"])?;
    // Locks that are given back.
    run_all(&mut writers, &["begin", "select count(*) from (select 1 from T for share) s"])?;
    assert_elsewhere(&server, &mut writers, &["rollback"])?;
    // Many statements that were short each.
    run_all(&mut writers, &["create table n_T (id int primary key)", "begin"])?;
    let rows = |from: i32| (from..from + 32).map(|id| format!("({id})")).collect::<Vec<_>>().join(", ");
    let inserts: Vec<String> = (0..600).map(|i| format!("insert into n_T values {}", rows(32 * i))).collect();
    run_all(&mut writers, &inserts.iter().map(String::as_str).collect::<Vec<_>>())?;
    assert_elsewhere(&server, &mut writers, &["rollback"])?;
    for writer in 0..WRITERS {
        let sum = server.connect()?.run(&format!("select sum(x - id) from t{writer}"))?;
        assert_eq!(sum.text(0, 0), Some("0"));
    }
    Ok(())
}

/// 57014 while rows are changed or waited for: when the server is ready again, nothing of the statement is left.
#[test]
fn a_canceled_statement_is_undone_when_the_server_is_ready() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    wire.run("create table t (id int primary key, x int)")?;
    wire.run("insert into t select i, i from generate_series(1, 800000) i")?;
    let queue = "select id from t where id <= 3 order by id for update skip locked";
    let first = "select id from t where id = 1 for update nowait";
    let updates = [
        "update t set x = x + 1",
        "insert into t select i, 0 from generate_series(1, 800000) i \
                    on conflict (id) do update set x = 0",
        "select * from t for update",
    ];
    for update in updates {
        wire.run("set statement_timeout = '200ms'")?;
        assert_eq!(wire.simple(update, None)?.sqlstate(), Some("57014"), "{update}");
        assert_eq!(wire.run(queue)?.rows.len(), 3, "rows that nobody holds, after {update}");
        wire.run("begin")?;
        assert_eq!(wire.simple(update, None)?.sqlstate(), Some("57014"), "{update}");
        other.run(first)?;
        wire.run("rollback")?;
        other.run(first)?;
        // With a savepoint locks stay until it is gone back to, and rows are as they were.
        for end in ["rollback", "rollback to s"] {
            wire.run("set statement_timeout = 0")?;
            wire.run("begin")?;
            wire.run("update t set x = 7 where id = 800000")?;
            wire.run("savepoint s")?;
            wire.run("set statement_timeout = '200ms'")?;
            assert_eq!(wire.simple(update, None)?.sqlstate(), Some("57014"), "{update}");
            wire.run(end)?;
            if end == "rollback" {
                other.run(first)?;
            } else {
                assert_eq!(wire.run("select x from t where id = 800000")?.text(0, 0), Some("7"));
                wire.run("rollback")?;
                other.run(first)?;
            }
        }
    }
    wire.run("set statement_timeout = 0")?;
    assert_eq!(other.run("select count(*) from t where x = id")?.text(0, 0), Some("800000"));
    Ok(())
}

#[test]
fn a_batch_that_waits_for_another_transaction_can_be_canceled() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    wire.run("create table t (id int primary key)")?;
    other.run("begin")?;
    other.run("insert into t values (700)")?;
    wire.run("set statement_timeout = '200ms'")?;
    wire.set_read_timeout(Duration::from_secs(10))?;
    let copied = (1..=1000).map(|id| format!("{id}\n")).collect::<String>();
    for block in [false, true] {
        for sql in ["insert into t select i from generate_series(1, 1000) i", "copy t from stdin"] {
            if block {
                wire.run("begin")?;
                wire.run("savepoint s")?;
            }
            let answer = wire.simple(sql, Some(copied.as_bytes()))?;
            assert_eq!(answer.sqlstate(), Some("57014"), "{sql}");
            wire.run("rollback")?;
        }
    }
    other.run("rollback")?;
    wire.run("insert into t select i from generate_series(1, 1000) i")?;
    Ok(())
}

/// Parse and Bind of a statement as the unnamed portal, and Execute for so many rows.
pub fn execute(wire: &mut Wire, sql: Option<&str>, rows_max: u32) -> Result<()> {
    let mut frame = Vec::new();
    if let Some(sql) = sql {
        let mut parse = vec![0];
        put_text(&mut parse, sql);
        parse.extend([0, 0]);
        put_message(&mut frame, b'P', &parse);
        put_message(&mut frame, b'B', &[0, 0, 0, 0, 0, 0, 0, 0]);
    }
    let mut execute = vec![0];
    execute.extend(rows_max.to_be_bytes());
    put_message(&mut frame, b'E', &execute);
    put_message(&mut frame, b'S', &[]);
    wire.send_raw(&frame)
}

/// Statements that have a snapshot pinned, beside the one that asks.
fn statements(wire: &mut Wire) -> Result<i64> {
    let reply = wire.run("SELECT count(*) - 1 FROM basalt.pins WHERE reason IN ('statement', 'transaction')")?;
    Ok(reply.text(0, 0).unwrap_or("no row").parse()?)
}

/// Statements end beside the answers that tell of it.
fn await_statements(wire: &mut Wire, expected: i64, after: &str) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(5);
    loop {
        let pinned = statements(wire)?;
        if pinned == expected {
            return Ok(());
        }
        assert!(Instant::now() < until, "{pinned} snapshots are pinned, expected {expected}, after {after}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn readers_that_do_not_read_leave_the_others_alone() -> Result<()> {
    let server = Basalt::start()?;
    let mut other = server.connect()?;
    other.run("CREATE TABLE t (x int PRIMARY KEY)")?;
    other.run("INSERT INTO t SELECT x FROM generate_series(1, 20000) x")?;
    let idle = statements(&mut other)?;
    let mut silent = Vec::new();
    for _ in 0..4 {
        // Rows without an end, and nobody takes them.
        let mut wire = server.connect()?;
        wire.send_simple("SELECT a.x, repeat('x', 500) FROM t a, t b")?;
        silent.push(wire);
        // A portal that has given a few.
        let mut wire = server.connect()?;
        wire.run("BEGIN")?;
        execute(&mut wire, Some("SELECT a.x, repeat('x', 500) FROM t a, t b"), 10)?;
        assert_eq!(wire.answer(None)?.last().rows.len(), 10);
        silent.push(wire);
    }
    assert_rests(&server, &mut other, "readers that do not read")?;
    assert_eq!(statements(&mut other)?, idle + 8);
    let took = beside(&server, || {
        for _ in 0..20 {
            other.run("SELECT count(*), sum(x) FROM t")?;
        }
        std::thread::sleep(Duration::from_secs(1));
        Ok(())
    })?;
    assert_short(&took, "readers that do not read");
    // Their statements end with them.
    drop(silent);
    await_statements(&mut other, idle, "the readers have gone")?;
    assert_rests(&server, &mut other, "readers that have gone")
}

#[test]
fn a_suspended_portal_ends_with_its_transaction() -> Result<()> {
    let server = Basalt::start()?;
    let (mut wire, mut other) = (server.connect()?, server.connect()?);
    wire.run("CREATE TABLE t (x int PRIMARY KEY)")?;
    wire.run("INSERT INTO t SELECT x FROM generate_series(1, 2000) x")?;
    let idle = statements(&mut other)?;
    for end in ["COMMIT", "ROLLBACK", "SELECT 1 / 0"] {
        wire.run("BEGIN")?;
        execute(&mut wire, Some("SELECT a.x FROM t a, t b"), 10)?;
        assert_eq!(wire.answer(None)?.last().tag.as_deref(), Some("(suspended)"));
        // Between messages of the transaction it stays.
        execute(&mut wire, None, 5)?;
        assert_eq!(wire.answer(None)?.last().rows.len(), 5);
        assert_eq!(statements(&mut other)?, idle + 1);
        wire.simple(end, None)?;
        execute(&mut wire, None, 5)?;
        assert_eq!(wire.answer(None)?.sqlstate(), Some("34000"), "{end}");
        wire.run("ROLLBACK")?;
        await_statements(&mut other, idle, end)?;
    }
    // Without a transaction block it ends at Sync.
    execute(&mut wire, Some("SELECT a.x FROM t a, t b"), 10)?;
    assert_eq!(wire.answer(None)?.last().rows.len(), 10);
    execute(&mut wire, None, 5)?;
    assert_eq!(wire.answer(None)?.sqlstate(), Some("34000"));
    await_statements(&mut other, idle, "Sync")
}

#[test]
fn long_texts_leave_other_connections_alone() -> Result<()> {
    let server = Basalt::start()?;
    let mut wire = server.connect()?;
    wire.run("CREATE TABLE t (id int PRIMARY KEY, v text)")?;
    let rows: Vec<String> = (0..60_000).map(|id| format!("({id}, 'value {id}')")).collect();
    let text = format!("INSERT INTO t VALUES {}", rows.join(", "));
    let took = beside(&server, || {
        for _ in 0..4 {
            wire.run(&text)?;
            wire.run("TRUNCATE t")?;
        }
        Ok(())
    })?;
    assert_short(&took, "long texts");
    Ok(())
}
