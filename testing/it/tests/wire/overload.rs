//! More than the server can do at once: queues are bounded, whoever is too many hears so at once, and what was served before
//! goes on being served.

use crate::damage::get;
use crate::fairness::execute;
use crate::limits::LONG;
use anyhow::{Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions, free_addr};
use basalt_it::wire::{Answer, Wire};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is answered at once is answered within this, on a machine that is busy with other tests.
const AT_ONCE: Duration = Duration::from_secs(1);
/// Until something that has to happen has happened.
const PATIENCE: Duration = Duration::from_secs(20);

fn server(active: usize, queued: usize) -> Result<Basalt> {
    let options = BasaltOptions::default()
        .set(&format!("basalt.max_active_queries={active}"))
        .set(&format!("basalt.max_queued_queries={queued}"))
        .set("basalt.query_groups=other = 100");
    Basalt::start_with(options)
}

/// Queries of the default group that run, wait, and were refused.
fn counts(watch: &mut Wire) -> Result<[u64; 3]> {
    let reply = watch.run("select active, queued, refused from basalt.query_groups where name = 'default'")?;
    Ok([0, 1, 2].map(|column| reply.text(0, column).and_then(|text| text.parse().ok()).unwrap_or(u64::MAX)))
}

fn await_counts(watch: &mut Wire, active: u64, queued: u64) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    loop {
        let now = counts(watch)?;
        if now[..2] == [active, queued] {
            return Ok(());
        }
        ensure!(Instant::now() < until, "{now:?} queries run, wait and were refused: expected {active} and {queued}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A session whose query runs, or waits, until it is canceled.
fn start(server: &Basalt, sql: &str) -> Result<Wire> {
    let mut wire = server.connect()?;
    wire.send_simple(sql)?;
    Ok(wire)
}

fn cancel(server: &Basalt, wire: &mut Wire) -> Result<()> {
    Wire::cancel(server.addr, wire.key)?;
    ensure!(wire.answer(None)?.sqlstate() == Some("57014"));
    Ok(())
}

/// The answer, and how long it took.
fn timed(wire: &mut Wire, sql: &str) -> Result<(Answer, Duration)> {
    let began = Instant::now();
    let answer = wire.simple(sql, None)?;
    Ok((answer, began.elapsed()))
}

const SHORT: &str = "select count(*) from generate_series(1, 10)";

#[test]
fn queries_beyond_the_queue_are_refused_at_once_and_the_others_end_well() -> Result<()> {
    let server = server(2, 2)?;
    let mut watch = server.connect()?;
    let mut running = [start(&server, LONG)?, start(&server, LONG)?];
    await_counts(&mut watch, 2, 0)?;
    let mut waiting = [start(&server, SHORT)?, start(&server, SHORT)?];
    await_counts(&mut watch, 2, 2)?;
    let mut late = server.connect()?;
    late.run("create table t (id int primary key, v int)")?;
    late.run("insert into t values (1, 10)")?;
    for round in 1..=5 {
        for sql in [SHORT, "explain analyze select count(*) from generate_series(1, 10)"] {
            let (answer, took) = timed(&mut late, sql)?;
            let error = answer.error().expect("it is refused");
            assert_eq!(error.sqlstate(), "53400");
            assert!(error.message().contains("query group \"default\""), "{}", error.message());
            assert!(took < AT_ONCE, "it took {took:?} to be refused");
        }
        assert_eq!(counts(&mut watch)?, [2, 2, 2 * round]);
        // Other work is served: rows by their keys, constants, system tables, plans that are only told.
        assert_eq!(late.run("select v from t where id = 1")?.text(0, 0), Some("10"));
        late.run("update t set v = v + 1 where id = 1")?;
        late.run("update t set v = v - 1 where id = 1")?;
        late.run("select 1 where exists (select 1)")?;
        late.run("explain select count(*) from generate_series(1, 10)")?;
    }
    running.iter_mut().try_for_each(|wire| cancel(&server, wire))?;
    for wire in &mut waiting {
        assert_eq!(wire.answer(None)?.last().text(0, 0), Some("10"));
    }
    // A task gives its permit back when its last rows have left: its client may know them a moment earlier.
    await_counts(&mut watch, 0, 0)?;
    assert_eq!(counts(&mut watch)?, [0, 0, 10]);
    assert_eq!(late.run(SHORT)?.text(0, 0), Some("10"));
    Ok(())
}

#[test]
fn queries_wait_in_the_order_of_their_arrival() -> Result<()> {
    let server = server(1, 10)?;
    let mut watch = server.connect()?;
    let mut first = start(&server, LONG)?;
    await_counts(&mut watch, 1, 0)?;
    let mut waiting = Vec::new();
    for number in 1..=10 {
        waiting.push(start(&server, "select extract(epoch from clock_timestamp()) from generate_series(1, 1)")?);
        await_counts(&mut watch, 1, number)?;
    }
    // Whoever leaves does not disturb the order.
    cancel(&server, &mut waiting.remove(4))?;
    await_counts(&mut watch, 1, 9)?;
    cancel(&server, &mut first)?;
    let times = waiting.iter_mut().map(|wire| Ok(wire.answer(None)?.last().text(0, 0).unwrap_or("").parse()?));
    let times = times.collect::<Result<Vec<f64>>>()?;
    assert!(times.is_sorted(), "{times:?}");
    Ok(())
}

#[test]
fn query_groups_do_not_wait_for_each_other() -> Result<()> {
    let server = server(1, 0)?;
    let (mut watch, mut other) = (server.connect()?, server.connect()?);
    let _running = start(&server, LONG)?;
    await_counts(&mut watch, 1, 0)?;
    assert_eq!(other.simple(SHORT, None)?.sqlstate(), Some("53400"));
    other.run("set basalt.query_group = other")?;
    for _ in 0..5 {
        let (answer, took) = timed(&mut other, SHORT)?;
        assert!(answer.sqlstate().is_none() && took < AT_ONCE, "{:?} after {took:?}", answer.sqlstate());
    }
    Ok(())
}

#[test]
fn a_query_that_waits_for_its_turn_can_be_ended() -> Result<()> {
    let server = server(1, 10)?;
    let mut watch = server.connect()?;
    let mut running = start(&server, LONG)?;
    await_counts(&mut watch, 1, 0)?;
    let mut waiting = start(&server, SHORT)?;
    await_counts(&mut watch, 1, 1)?;
    let events = "select wait_event_type, wait_event, query from pg_stat_activity where wait_event is not null";
    let seen = watch.run(events)?;
    let seen: Vec<_> = (0..3).map(|column| seen.text(0, column)).collect();
    assert_eq!(seen, [Some("QueryGroup"), Some("Admission"), Some(SHORT)]);
    cancel(&server, &mut waiting)?;
    await_counts(&mut watch, 1, 0)?;
    assert_eq!(watch.run(events)?.rows.len(), 0);
    // By its own limit, in a transaction that had done something, and that can go on behind a savepoint.
    waiting.run("begin; create table t (x int); savepoint s; set local statement_timeout = '100ms'")?;
    for sql in [SHORT, "insert into t select generate_series(1, 3)", "declare c cursor with hold for select x from t"] {
        let ended = waiting.simple(sql, None)?.sqlstate().map(str::to_string);
        let declared = sql.starts_with("declare");
        assert_eq!(ended.as_deref(), if declared { None } else { Some("57014") }, "{sql}");
        if !declared {
            waiting.run("rollback to s; set local statement_timeout = '100ms'")?;
        }
    }
    waiting.run("rollback")?;
    await_counts(&mut watch, 1, 0)?;
    // By its client's end.
    let gone = start(&server, SHORT)?;
    await_counts(&mut watch, 1, 1)?;
    drop(gone);
    await_counts(&mut watch, 1, 0)?;
    // With its session.
    let mut ended = start(&server, SHORT)?;
    await_counts(&mut watch, 1, 1)?;
    watch.run(&format!("select pg_terminate_backend({})", ended.key.0))?;
    let (kind, body) =
        std::iter::repeat_with(|| ended.receive()).find(|got| !matches!(got, Ok((b'T', _)))).expect("it ends")?;
    assert_eq!((kind, basalt_it::wire::fields(&body)?.sqlstate()), (b'E', "57P01"));
    await_counts(&mut watch, 1, 0)?;
    cancel(&server, &mut running)?;
    assert_eq!(waiting.run(SHORT)?.text(0, 0), Some("10"));
    Ok(())
}

#[test]
fn a_server_ends_in_order_while_queries_wait() -> Result<()> {
    let mut server = server(1, 10)?;
    let mut watch = server.connect()?;
    let _running = start(&server, LONG)?;
    await_counts(&mut watch, 1, 0)?;
    let _waiting = [start(&server, SHORT)?, start(&server, SHORT)?];
    await_counts(&mut watch, 1, 2)?;
    assert!(server.terminate(Duration::from_secs(30))?.success());
    Ok(())
}

#[test]
fn who_does_not_take_rows_keeps_nobody_from_running() -> Result<()> {
    let server = server(1, 0)?;
    let mut watch = server.connect()?;
    watch.run("create table t (x int primary key)")?;
    watch.run("insert into t select x from generate_series(1, 5000) x")?;
    let many = "select a.x, repeat('x', 100) from t a, t b";
    let mut silent = Vec::new();
    for _ in 0..3 {
        for sql in [many, &format!("copy ({many}) to stdout")] {
            let mut reader = start(&server, sql)?;
            // What the rows are, and the first one.
            reader.receive()?;
            ensure!(matches!(reader.receive()?, (b'D' | b'd', _)));
            silent.push(reader);
            await_counts(&mut watch, 0, 0)?;
        }
        let mut portal = server.connect()?;
        portal.run("begin")?;
        execute(&mut portal, Some(many), 10)?;
        assert_eq!(portal.answer(None)?.last().rows.len(), 10);
        silent.push(portal);
        await_counts(&mut watch, 0, 0)?;
        let mut cursor = server.connect()?;
        cursor.run("begin")?;
        cursor.run(&format!("declare c cursor for {many}"))?;
        assert_eq!(cursor.run("fetch 10 from c")?.rows.len(), 10);
        silent.push(cursor);
        await_counts(&mut watch, 0, 0)?;
    }
    for _ in 0..10 {
        let (answer, took) = timed(&mut watch, "select count(*) from t")?;
        assert!(answer.sqlstate().is_none() && took < AT_ONCE, "{:?} after {took:?}", answer.sqlstate());
    }
    Ok(())
}

/// Where one query runs and none waits, whatever asks for a second permit is refused.
#[test]
fn no_statement_asks_for_a_second_permit() -> Result<()> {
    let server = server(1, 0)?;
    let mut wire = server.connect()?;
    wire.run("set statement_timeout = '60s'")?;
    for sql in [
        "create table p (x int primary key)",
        "insert into p select x from generate_series(1, 3000) x",
        "create table t (id int primary key, x int references p, s text)",
        "insert into t select x, x, 'row ' || x from p",
        "insert into t select x + 5000, x, (select max(s) from t where t.x < p.x) from p where x < 100",
        "insert into t select x + 9000, x, 'r' from p where x < 9 returning (select count(*) from t)",
        "update t set s = 'u' from p where p.x = t.x and t.id % 2 = (select min(x) from p)",
        "update t set s = 'v' where id < 100 returning (select sum(p.x) from p where p.x < t.id)",
        "delete from t using p where p.x = t.x and t.id > 9000",
        "merge into t using p on t.id = p.x + 100 when matched then update set s = 'm' \
         when not matched then insert values (p.x + 100000, p.x, 'n')",
        "with w as (insert into t select x + 200000, x, 'w' from p returning x) select count(*) from w, p where w.x = p.x",
        "with recursive r as (select 1 as n union all select n + 1 from r where n < 50) \
         select count(*) from r, (select * from p limit (select count(*) from t where id < 10)) q",
        "with s as (select x, random() from p) select count(*) from s a, s b where a.x = b.x",
        "select count(*) from (select * from t, p where t.x = p.x for update of t) q",
        "select x, (select count(*) from t where t.x <= p.x and t.id > (select min(x) from p)) from p limit 40",
        "select count(*) from p, lateral (select sum(t.id) from t where t.x = p.x) q",
        "explain analyze select x, (select count(*) from t where t.x < p.x) from p limit 20",
        "explain analyze insert into p select x + 1000000 from p",
        "copy (select count(*), x from t group by x) to stdout",
        "create table c as select x, count(*) from t group by x",
        "create materialized view m as select x, count(*) from t group by x",
        "refresh materialized view m",
        "alter table t add constraint positive check (x > 0)",
        "create index on t (s)",
        "vacuum full t",
    ] {
        let answer = wire.simple(sql, None)?;
        assert!(answer.error().is_none(), "{sql}: {:?}", answer.error().map(|error| error.message()));
    }
    wire.run("begin")?;
    // Each runs from its declaration on, until its rows have filled their channel.
    let mut watch = server.connect()?;
    for (cursor, query) in [
        ("c cursor with hold", "select a.x from p a, p b"),
        ("s scroll cursor", "select a.x, (select count(*) from t where t.x < a.x) from p a where a.x < 1000"),
    ] {
        wire.run(&format!("declare {cursor} for {query}"))?;
        await_counts(&mut watch, 0, 0)?;
    }
    assert_eq!(wire.run("fetch 10 from c")?.rows.len(), 10);
    assert_eq!(wire.run("fetch 10 from s")?.rows.len(), 10);
    assert_eq!(wire.run("fetch last from s")?.rows.len(), 1);
    wire.run("update t set s = 'w' where x in (select x from p where x < 10)")?;
    wire.run("close s; move 100000 from c; commit")?;
    assert_eq!(wire.run("fetch 10 from c")?.rows.len(), 10);
    Ok(())
}

/// Whoever waits for somebody must not keep from running whom it waits for.
#[test]
fn who_waits_for_a_lock_keeps_nobody_from_running() -> Result<()> {
    let server = server(1, 10)?;
    let (mut holder, mut row, mut advisory) = (server.connect()?, server.connect()?, server.connect()?);
    holder.run("create table t (id int primary key, x int)")?;
    holder.run("insert into t select x, x from generate_series(1, 30000) x")?;
    holder.run("begin")?;
    holder.run("update t set x = 0 where id = 1")?;
    holder.run("select pg_advisory_lock(7)")?;
    row.send_simple("update t set x = x + 1")?;
    advisory.send_simple("select max(length(pg_advisory_lock(7)::text)) from t where id = 7 + x - id")?;
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(holder.run("select count(*) from t where x % 7 < 7")?.text(0, 0), Some("30000"));
    holder.run("select count(pg_advisory_unlock(7)) from t where id = 7 + x - id")?;
    holder.run("commit")?;
    assert!(row.answer(None)?.sqlstate().is_none());
    assert!(advisory.answer(None)?.sqlstate().is_none());
    Ok(())
}

/// Sessions that read rows by their keys, one after the other, for as long as this lives.
struct Readers {
    done: AtomicU64,
    ended: AtomicBool,
}

const READERS: usize = 2;

/// Runs `work` with readers beside it, which must all be answered.
fn beside_readers<T>(server: &Basalt, work: impl FnOnce(&Readers) -> Result<T>) -> Result<T> {
    let mut wire = server.connect()?;
    wire.run("create table kept (id int primary key, v int)")?;
    wire.run("insert into kept select i, i from generate_series(1, 1000) i")?;
    let readers = Readers { done: AtomicU64::new(0), ended: AtomicBool::new(false) };
    let wires = (0..READERS).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let reading: Vec<_> = wires.into_iter().map(|wire| scope.spawn(|| readers.read(wire))).collect();
        let worked = {
            let _ends = Ends(&readers.ended);
            work(&readers)
        };
        for reader in reading {
            reader.join().expect("a reader lives")?;
        }
        worked
    })
}

/// Sets a flag whatever happens, so that threads end which are waited for.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Readers {
    fn read(&self, mut wire: Wire) -> Result<()> {
        wire.prepare("get", "select v from kept where id = $1")?;
        for id in (1..=1000).cycle() {
            if self.ended.load(Ordering::Relaxed) {
                break;
            }
            let answer = wire.execute("get", &[id.to_string()])?;
            ensure!(answer.last().text(0, 0) == Some(id.to_string().as_str()), "{:?}", answer.sqlstate());
            self.done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Reads per second, at the best of so many quarters of a second: other tests run on this machine, too.
    fn best_rate(&self, windows: usize) -> f64 {
        let rate = |_| {
            let (before, began) = (self.done.load(Ordering::Relaxed), Instant::now());
            std::thread::sleep(Duration::from_millis(250));
            (self.done.load(Ordering::Relaxed) - before) as f64 / began.elapsed().as_secs_f64()
        };
        (0..windows).map(rate).fold(0.0, f64::max)
    }
}

fn assert_kept(before: f64, beside: f64, part: f64, what: &str) {
    println!("{beside:.0} of {before:.0} reads/s beside {what}");
    assert!(beside >= part * before, "{beside:.0} of {before:.0} reads/s beside {what}");
}

#[test]
fn half_open_logins_are_bounded_and_sessions_go_on() -> Result<()> {
    /// `half_open_max` of the server.
    const HALF_OPEN_MAX: usize = 128;
    let server = Basalt::start()?;
    beside_readers(&server, |readers| {
        let before = readers.best_rate(4);
        let mut half_open =
            (0..HALF_OPEN_MAX).map(|_| TcpStream::connect(server.addr)).collect::<Result<Vec<_>, _>>()?;
        // Some have begun to say what they want.
        half_open.iter_mut().step_by(2).try_for_each(|stream| stream.write_all(&[0, 0, 0, 40, 0, 3]))?;
        std::thread::sleep(Duration::from_millis(200));
        for _ in 0..20 {
            let began = Instant::now();
            assert_eq!(refusal(server.addr)?.as_deref(), Some("53300"));
            assert!(began.elapsed() < AT_ONCE, "it took {:?}", began.elapsed());
        }
        assert_kept(before, readers.best_rate(4), 0.4, "half-open logins");
        half_open.truncate(HALF_OPEN_MAX / 2);
        let until = Instant::now() + PATIENCE;
        while refusal(server.addr)?.is_some() {
            assert!(Instant::now() < until, "places of logins that have gone stay taken");
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    })
}

/// The error with which a connection is refused.
fn refusal(addr: SocketAddr) -> Result<Option<String>> {
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    let mut head = [0; 5];
    // A server that waits for what the client wants has not refused it.
    if stream.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
    ensure!(head[0] == b'E' && (5..1000).contains(&length), "{head:?}");
    let mut body = vec![0; length - 4];
    stream.read_exact(&mut body)?;
    Ok(Some(basalt_it::wire::fields(&body)?.sqlstate().to_string()))
}

#[test]
fn a_flood_of_connections_leaves_sessions_their_rate() -> Result<()> {
    let options = BasaltOptions::default().set("max_connections=8").set("superuser_reserved_connections=0");
    let server = Basalt::start_with(options)?;
    beside_readers(&server, |readers| {
        // What started the server, and filled the table, may still be ending.
        std::thread::sleep(Duration::from_millis(200));
        let mut held = Vec::new();
        while let Ok(wire) = server.connect() {
            held.push(wire);
        }
        let before = readers.best_rate(4);
        let (ended, refused) = (AtomicBool::new(false), AtomicU64::new(0));
        let flood = || -> Result<()> {
            while !ended.load(Ordering::Relaxed) {
                let began = Instant::now();
                let wire = Wire::try_connect(server.addr, "basalt", "basalt")?;
                assert_eq!(wire.refused.as_ref().map(|error| error.sqlstate()), Some("53300"));
                assert!(began.elapsed() < AT_ONCE, "it took {:?} to be refused", began.elapsed());
                refused.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(4));
            }
            Ok(())
        };
        let beside = std::thread::scope(|scope| -> Result<f64> {
            let floods: Vec<_> = (0..4).map(|_| scope.spawn(flood)).collect();
            let beside = {
                let _ends = Ends(&ended);
                readers.best_rate(8)
            };
            floods.into_iter().try_for_each(|flood| flood.join().expect("a flood lives"))?;
            Ok(beside)
        })?;
        assert!(refused.load(Ordering::Relaxed) > 100, "{refused:?} were refused");
        assert_kept(before, beside, 0.3, "a flood of connections");
        held.iter_mut().try_for_each(|wire| wire.run("select 1").map(|_| ()))
    })
}

/// Sessions that ask for the same at the same time.
const FLOOD: usize = 24;

#[test]
fn a_flood_of_queries_is_served_in_turn_and_leaves_reads_their_rate() -> Result<()> {
    let server = server(2, FLOOD)?;
    let mut wire = server.connect()?;
    wire.run("create table t (id int primary key, k int)")?;
    wire.run("insert into t select i, i * 7 % 100000 from generate_series(1, 500000) i")?;
    wire.run("vacuum full t")?;
    let heavy =
        "select id * n % 100003, count(*), sum(k) from t, generate_series(1, 2) n group by 1 order by 2, 1 limit 1";
    beside_readers(&server, |readers| {
        let before = readers.best_rate(4);
        let (together, answered) = (Barrier::new(FLOOD + 1), AtomicU64::new(0));
        let ask = || -> Result<Duration> {
            let mut wire = server.connect()?;
            together.wait();
            let began = Instant::now();
            wire.run(heavy)?;
            answered.fetch_add(1, Ordering::Relaxed);
            Ok(began.elapsed())
        };
        let (beside, mut took) = std::thread::scope(|scope| -> Result<(f64, Vec<Duration>)> {
            let asking: Vec<_> = (0..FLOOD).map(|_| scope.spawn(ask)).collect();
            together.wait();
            let beside = readers.best_rate(4);
            assert!(answered.load(Ordering::Relaxed) < FLOOD as u64, "the flood has ended before it was measured");
            let took = asking.into_iter().map(|one| one.join().expect("it lives")).collect::<Result<Vec<_>>>()?;
            Ok((beside, took))
        })?;
        took.sort_unstable();
        let (median, last) = (took[FLOOD / 2], took[FLOOD - 1]);
        println!("half were answered after {median:?}, all after {last:?}");
        // Were all begun at once, all would end late.
        assert!(median < last.mul_f64(0.8), "half were answered after {median:?}, all after {last:?}");
        assert_kept(before, beside, 0.2, "a flood of queries");
        Ok(())
    })
}

/// What asks for a page or a statement and is answered at once.
fn post(http: SocketAddr, sql: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(http)?;
    let head = "POST /sql HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/sql\r\n";
    stream.write_all(format!("{head}Content-Length: {}\r\n\r\n{sql}", sql.len()).as_bytes())?;
    Ok(stream)
}

#[test]
fn statements_over_http_beyond_the_limit_are_refused_at_once() -> Result<()> {
    /// `http_requests_max` of the server.
    const REQUESTS_MAX: usize = 64;
    let http = free_addr()?;
    let server = Basalt::start_with(BasaltOptions::default().arg("--http").arg(&http.to_string()))?;
    let held = (0..REQUESTS_MAX).map(|_| post(http, "select pg_sleep(5)")).collect::<Result<Vec<_>>>()?;
    let mut watch = server.connect()?;
    let until = Instant::now() + PATIENCE;
    let sleeping = "select count(*) from pg_stat_activity where query like '%pg_sleep(5)' and state = 'active'";
    while watch.run(sleeping)?.text(0, 0) != Some("64") {
        assert!(Instant::now() < until, "not all statements run");
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..10 {
        let (began, mut answer) = (Instant::now(), String::new());
        post(http, "select 1")?.read_to_string(&mut answer)?;
        assert!(answer.starts_with("HTTP/1.0 503 ") && answer.contains("too many statements"), "{answer}");
        assert!(get(http, "/health")?.contains("\"status\":\"ok\""));
        assert!(began.elapsed() < AT_ONCE, "it took {:?}", began.elapsed());
    }
    for mut stream in held {
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        assert!(answer.starts_with("HTTP/1.0 200 ") && answer.contains("SELECT 1"), "{answer}");
    }
    Ok(())
}
