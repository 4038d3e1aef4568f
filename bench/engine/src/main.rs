//! TPC-C on the engine alone: no server, no protocol, no SQL.
//!
//! Terminals without think time, spread over a few threads; each runs one transaction at a time through `basalt_engine`'s
//! `Txn`, with the locks, snapshots and log of the product. A terminal that waits, for a lock or for its commit to be
//! durable, leaves its thread to the others. `--mode` says where updates go. The last line of standard output is one JSON
//! object, for bench/engine_tpcc.py.

// Nothing here is simulated.
#![allow(clippy::disallowed_methods)]

mod check;
mod load;
#[cfg(test)]
mod power_cuts;
mod session;
mod tables;
mod transactions;

use anyhow::{Context as _, Result};
use basalt_bench::terminals::round;
use basalt_bench::tpcc::input::{Inputs, KINDS};
use basalt_engine::{Engine, EngineConfig};
use basalt_sched::Os;
use clap::Parser;
use cpu_time::ProcessTime;
use futures::stream::{FuturesUnordered, TryStreamExt as _};
use serde_json::json;
use session::Session;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tables::{Mode, Table};
use transactions::{End, Terminal};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Nothing cools while it is measured.
const COOL_AFTER: Duration = Duration::from_secs(24 * 3600);

#[derive(Parser)]
#[command(about = "TPC-C on the engine alone")]
struct Options {
    /// An empty or missing directory: data and log
    #[arg(long)]
    dir: PathBuf,
    #[arg(long, value_enum, default_value = "in-place")]
    mode: Mode,
    #[arg(long, default_value_t = 10)]
    warehouses: i32,
    /// That run transactions, and that load before
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Each has one transaction at a time
    #[arg(long, default_value_t = 16)]
    terminals: usize,
    /// Seconds that count
    #[arg(long, default_value_t = 30.0)]
    seconds: f64,
    /// Seconds before that do not
    #[arg(long, default_value_t = 5.0)]
    warmup: f64,
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Commits do not wait for the log, as with `synchronous_commit = off`
    #[arg(long)]
    asynchronous: bool,
    /// Of the engine
    #[arg(long, default_value_t = 12 << 30)]
    memory_bytes: u64,
}

/// What all terminals have done, warm-up and all.
#[derive(Default)]
struct Counts {
    ended: [AtomicU64; 5],
    rolled_back: AtomicU64,
    /// Tried again after a deadlock or a conflict.
    retries: AtomicU64,
}

impl Counts {
    fn by_kind(&self) -> [u64; 5] {
        std::array::from_fn(|kind| self.ended[kind].load(Ordering::Relaxed))
    }
}

fn main() -> Result<()> {
    let options = Options::parse();
    let config = EngineConfig {
        memory_bytes_max: options.memory_bytes,
        cool_after: COOL_AFTER,
        ..EngineConfig::new(&options.dir)
    };
    let engine = Engine::open(Os::real(), config, &|_| {})?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let tables = runtime.block_on(tables::create(&engine, options.mode))?;
    let began = Instant::now();
    let rows = load::load(&engine, &tables, i64::from(options.warehouses), options.threads)?;
    let load_s = began.elapsed().as_secs_f64();
    // What the population has left in the log is no affair of what comes.
    engine.checkpoint()?;
    eprintln!("{rows} rows in {load_s:.1} s");
    let mut result = run(&options, &engine, &tables)?;
    let broken = check::check(&engine, &tables)?;
    for line in &broken {
        eprintln!("condition {line}");
    }
    result["load_s"] = json!(round(load_s));
    result["consistent"] = json!(broken.is_empty());
    engine.shutdown()?;
    println!("{result}");
    std::process::exit(i32::from(!broken.is_empty()));
}

fn run(
    options: &Options,
    engine: &Arc<Engine>,
    tables: &HashMap<&'static str, Arc<Table>>,
) -> Result<serde_json::Value> {
    let counts = Counts::default();
    let begin = Instant::now() + Duration::from_secs_f64(options.warmup);
    let end = begin + Duration::from_secs_f64(options.seconds);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..options.threads)
            .map(|thread| {
                let counts = &counts;
                scope.spawn(move || run_share(options, engine, tables, thread, end, counts))
            })
            .collect();
        std::thread::sleep(begin.saturating_duration_since(Instant::now()));
        let (cpu, before, log) = (ProcessTime::now(), counts.by_kind(), engine.log_end());
        std::thread::sleep(end.saturating_duration_since(Instant::now()));
        let (cpu, after, log) = (cpu.elapsed(), counts.by_kind(), engine.log_end().0 - log.0);
        for thread in threads {
            thread.join().expect("a terminal's thread panicked")?;
        }
        let ended: Vec<u64> = after.iter().zip(&before).map(|(after, before)| after - before).collect();
        let all = ended.iter().sum::<u64>();
        let kinds = KINDS.iter().zip(&ended).map(|(kind, ended)| (kind.to_string(), json!(ended)));
        let kinds: serde_json::Map<_, _> = kinds.collect();
        let stats = engine.stats();
        Ok(json!({
            "mode": format!("{:?}", options.mode),
            "per_s": round(all as f64 / options.seconds),
            "new_orders_per_minute": round(ended[0] as f64 / options.seconds * 60.0),
            "cpu_us": round(cpu.as_secs_f64() * 1e6 / all.max(1) as f64),
            "log_bytes": log / all.max(1),
            "kinds": kinds,
            "rolled_back": counts.rolled_back.load(Ordering::Relaxed),
            "retries": counts.retries.load(Ordering::Relaxed),
            "hot_bytes": stats.hot_bytes,
            "undo_versions": stats.undo_versions,
            "resident_bytes": resident_bytes()?,
        }))
    })
}

/// One thread's terminals.
fn run_share(
    options: &Options,
    engine: &Arc<Engine>,
    tables: &HashMap<&'static str, Arc<Table>>,
    thread: usize,
    end: Instant,
    counts: &Counts,
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let terminals: FuturesUnordered<_> = (thread..options.terminals)
        .step_by(options.threads)
        .map(|client| {
            let session = Session::new(engine, tables, options.mode, !options.asynchronous);
            run_terminal(Terminal::new(session), Inputs::new(client, options.warehouses, options.seed), end, counts)
        })
        .collect();
    runtime.block_on(terminals.try_collect())
}

async fn run_terminal(mut terminal: Terminal<'_>, mut inputs: Inputs, end: Instant, counts: &Counts) -> Result<()> {
    while Instant::now() < end {
        let (kind, input) = inputs.draw();
        let ended = loop {
            match terminal.attempt(&input).await {
                Ok(ended) => break ended,
                Err(error) if session::is_conflict(&error) => counts.retries.fetch_add(1, Ordering::Relaxed),
                Err(error) => return Err(error.context(KINDS[kind])),
            };
        };
        counts.ended[kind].fetch_add(1, Ordering::Relaxed);
        if ended == End::RolledBack {
            counts.rolled_back.fetch_add(1, Ordering::Relaxed);
        }
        // A commit that does not wait would leave no turn to the thread's other terminals.
        tokio::task::yield_now().await;
    }
    Ok(())
}

fn resident_bytes() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}
