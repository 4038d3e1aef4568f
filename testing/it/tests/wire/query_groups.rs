//! Query groups get their shares of the query threads.

use anyhow::Result;
use basalt_it::servers::{Basalt, BasaltOptions};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CLIENTS: usize = 3;
/// By the column engine, and by the fallback.
const QUERIES: [(&str, &str); 2] = [
    ("column", "select id * 7 % 100003, count(*), sum(k) from t group by 1 order by 2 desc limit 1"),
    ("fallback", "select count(*), max(md5(i::text)) from generate_series(1, 200000) i"),
];

/// Processor time of both groups in microseconds.
fn spent(server: &Basalt) -> Result<[f64; 2]> {
    let mut wire = server.connect()?;
    let reply = wire.run("select cpu_us from basalt.query_groups where name in ('large', 'small') order by name")?;
    Ok([0, 1].map(|row| reply.text(row, 0).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN)))
}

/// Percent of the time that the small group has, while clients of both ask without a pause; whether the column engine is
/// there for either.
fn share_of_small(server: &Basalt, sql: &str, small: bool, large: bool) -> Result<f64> {
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let ask = |group: &'static str, column_engine: bool| {
            let ended = &ended;
            scope.spawn(move || -> Result<()> {
                let mut wire = server.connect()?;
                wire.run(&format!("set basalt.query_group = {group}"))?;
                wire.run(&format!("set basalt.enable_column_engine = {column_engine}"))?;
                while !ended.load(Ordering::Relaxed) {
                    wire.run(sql)?;
                }
                Ok(())
            })
        };
        let clients: Vec<_> = (0..CLIENTS).flat_map(|_| [ask("small", small), ask("large", large)]).collect();
        std::thread::sleep(Duration::from_millis(500));
        let before = spent(server)?;
        std::thread::sleep(Duration::from_secs(3));
        let after = spent(server)?;
        ended.store(true, Ordering::Relaxed);
        clients.into_iter().try_for_each(|client| client.join().expect("a client lives"))?;
        let [large, small] = [0, 1].map(|at| after[at] - before[at]);
        Ok(100.0 * small / (small + large))
    })
}

#[test]
fn groups_get_their_shares_of_processor_time() -> Result<()> {
    let server = Basalt::start_with(BasaltOptions::default().set("basalt.query_groups=small = 20, large = 80"))?;
    let mut wire = server.connect()?;
    wire.run("create table t (id int primary key, k int)")?;
    wire.run("insert into t select i, i * 7 % 100000 from generate_series(1, 1000000) i")?;
    wire.run("vacuum full t")?;
    wire.run("set basalt.query_log_min_duration = 0")?;
    for (engine, sql) in QUERIES {
        wire.run(sql)?;
        let logged = wire.run("select engine from basalt.query_log order by started_at desc limit 1")?;
        assert_eq!(logged.text(0, 0), Some(engine), "{sql}");
    }
    let joined = "select count(*) from t a join t b on a.id = b.k where b.id % 3 <> 1";
    let cases =
        [(true, true), (false, false), (false, true), (true, false)].map(|engines| (QUERIES[0].1, engines)).into_iter();
    for (sql, (small, large)) in cases.chain([(joined, (false, false)), (QUERIES[1].1, (true, true))]) {
        let percent = share_of_small(&server, sql, small, large)?;
        println!("{percent:.1} % ({sql}; column engine for the small group: {small}, for the large one: {large})");
        assert!((12.0..36.0).contains(&percent), "{percent} %: {sql}");
    }
    Ok(())
}

#[test]
fn a_client_that_asks_for_a_group_that_is_not_there_is_told() -> Result<()> {
    let server = Basalt::start_with(BasaltOptions::default().set("basalt.query_groups=small = 20"))?;
    let mut wire = server.connect()?;
    let answer = wire.simple("set basalt.query_group = other", None)?;
    assert_eq!(answer.sqlstate(), Some("22023"));
    assert_eq!(wire.run("set basalt.query_group = small")?.sqlstate(), None);
    Ok(())
}

/// Who sleeps, or waits for a lock, within a query leaves the query threads to others.
#[test]
fn who_waits_within_a_query_has_no_slot() -> Result<()> {
    let server = Basalt::start()?;
    let mut sleepers = (0..8).map(|_| server.connect()).collect::<Result<Vec<_>>>()?;
    for wire in &mut sleepers {
        wire.send_simple("select pg_sleep(3 + i * 0) from generate_series(1, 2) i")?;
    }
    let mut other = server.connect()?;
    other.run("create table t (id int primary key, k int)")?;
    other.run("insert into t select i, i % 10 from generate_series(1, 20000) i")?;
    let began = std::time::Instant::now();
    for (_, sql) in QUERIES {
        other.run(sql)?;
    }
    assert!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
    Ok(())
}
