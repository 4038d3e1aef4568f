//! How long planning takes before anything is lowered or run: parsing and binding of TPC-H's 22 queries over empty
//! tables. Prints the median of each; in a release build one above a millisecond is a failure.
//!
//! `cargo bench -p basalt-query --bench planning`

#![allow(clippy::disallowed_methods)]

use basalt_engine::{Engine, EngineConfig};
use basalt_query::{Database, DatabaseConfig, Outcome, Session, StartupParams};
use basalt_sched::Os;
use std::time::Instant;

const ROUNDS: usize = 200;
const MEDIAN_MICROS_MAX: u128 = 1000;

const TABLES: &str = "
    create table region (r_regionkey int primary key, r_name text, r_comment text);
    create table nation (n_nationkey int primary key, n_name text, n_regionkey int, n_comment text);
    create table supplier (s_suppkey int primary key, s_name text, s_address text, s_nationkey int, s_phone text,
        s_acctbal numeric(15,2), s_comment text);
    create table part (p_partkey int primary key, p_name text, p_mfgr text, p_brand text, p_type text, p_size int,
        p_container text, p_retailprice numeric(15,2), p_comment text);
    create table partsupp (ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15,2),
        ps_comment text, primary key (ps_partkey, ps_suppkey));
    create table customer (c_custkey int primary key, c_name text, c_address text, c_nationkey int, c_phone text,
        c_acctbal numeric(15,2), c_mktsegment text, c_comment text);
    create table orders (o_orderkey bigint primary key, o_custkey int, o_orderstatus text, o_totalprice numeric(15,2),
        o_orderdate date, o_orderpriority text, o_clerk text, o_shippriority int, o_comment text);
    create table lineitem (l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15,2),
        l_extendedprice numeric(15,2), l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag text,
        l_linestatus text, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct text,
        l_shipmode text, l_comment text, primary key (l_orderkey, l_linenumber));";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let engine = Engine::open(Os::real(), EngineConfig::new(dir.path().join("data")), &|_| {})?;
    let db = Database::new(engine, Os::real(), DatabaseConfig::new(dir.path().join("tmp")))?;
    let params = StartupParams { user: "basalt".into(), database: "basalt".into(), ..StartupParams::default() };
    let mut session = Session::open(&db, params)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let slow = runtime.block_on(measure(&mut session))?;
    if slow > 0 && !cfg!(debug_assertions) {
        return Err(format!("{slow} queries take longer than {MEDIAN_MICROS_MAX} µs to plan").into());
    }
    Ok(())
}

/// Prints the medians; how many are too long.
async fn measure(session: &mut Session) -> Result<usize, Box<dyn std::error::Error>> {
    for parsed in session.parse_simple(TABLES)? {
        if let Outcome::Rows(_) = session.run_simple(&parsed).await? {
            return Err("a definition gave rows".into());
        }
    }
    session.finish_simple().await?;
    let mut slow = 0;
    for number in 1..=22 {
        let path = format!("{}/../../testing/it/tpch/q{number:02}.sql", env!("CARGO_MANIFEST_DIR"));
        let sql = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let mut micros = Vec::with_capacity(ROUNDS);
        for _ in 0..ROUNDS {
            let start = Instant::now();
            session.prepare("", &sql, &[]).await?;
            micros.push(start.elapsed().as_micros());
        }
        micros.sort_unstable();
        let median = micros[ROUNDS / 2];
        println!("q{number:02}  median {median:>6} µs  least {:>6} µs", micros[0]);
        slow += usize::from(median > MEDIAN_MICROS_MAX);
    }
    Ok(slow)
}
