//! Random transactions of several clients, checked for what their level forbids (`src/histories.rs`).
//!
//! `BASALT_HISTORY_TXNS` says how many each level commits, `BASALT_HISTORY_LEVELS` which levels (`rc,rr,ser`),
//! `BASALT_SEED` which ones; with `BASALT_HISTORY_SERVER=postgres` PostgreSQL runs them, which shows whether the checker
//! is right. Controls weaken something and must be found: what a level does not promise is asked of it, and the server
//! is told by `BASALT_WEAKEN` to forget a part of its work.

#![allow(clippy::disallowed_methods)]

use anyhow::{Context, Result, bail, ensure};
use basalt_it::histories::run::{Options, Outcome, Rest, TWICE, run};
use basalt_it::histories::{Kind, Level, Order, check, render};
use basalt_it::servers::{Basalt, BasaltOptions, Postgres};
use std::path::Path;
use std::time::{Duration, Instant};

/// Per level, in all states of rest.
const TRANSACTIONS: usize = 2800;
const RESTS: [Rest; 4] = [Rest::Hot, Rest::Cold, Rest::Mixed, Rest::Pressed];
const CLIENTS: u32 = 8;
const CONTROL_TRANSACTIONS: usize = 500;
/// Histories in which a control is looked for.
const CONTROL_TRIES: u64 = 8;
/// Explained in full when a test fails.
const SHOWN_MAX: usize = 3;

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn number(name: &str, default: u64) -> Result<u64> {
    env(name).map_or(Ok(default), |text| text.parse().with_context(|| format!("{name}={text}")))
}

fn is_postgres() -> bool {
    env("BASALT_HISTORY_SERVER").as_deref() == Some("postgres")
}

fn options(level: Level, rest: Rest) -> Result<Options> {
    let client_writes = if level == Level::ReadCommitted { 0 } else { 25 };
    let transactions = number("BASALT_HISTORY_TXNS", TRANSACTIONS as u64)? as usize / RESTS.len();
    let seed = number("BASALT_SEED", 1)?;
    Ok(Options { level, transactions, clients: CLIENTS, seed, rest, client_writes, is_postgres: is_postgres() })
}

/// On a server of its own, which rests rows as `rest` says.
fn run_on_server(options: Options, weaken: Option<&str>) -> Result<Outcome> {
    if options.is_postgres {
        let server = Postgres::start()?;
        server.empty_database()?;
        return run(&|| server.connect(), options);
    }
    let settings: &[&str] = match options.rest {
        Rest::Hot => &[],
        Rest::Cold | Rest::Mixed => &[
            "basalt.cool_after=50ms",
            "basalt.freeze_rows_min=50",
            "basalt.bulk_rows_min=2",
            "basalt.large_changes_min=4",
            "basalt.row_cache_limit=64kB",
        ],
        Rest::Pressed => &["basalt.memory_limit=64MB"],
    };
    let mut server = settings.iter().fold(BasaltOptions::default(), |server, setting| server.set(setting));
    server.env.extend(weaken.map(|what| ("BASALT_WEAKEN".to_string(), what.to_string())));
    let server = Basalt::start_with(server)?;
    let outcome = run(&|| server.connect(), options);
    outcome.with_context(|| format!("{options:?}; the server's log ends:\n{}", server.log_tail()))
}

/// PostgreSQL's SERIALIZABLE promises some serial order, not that of real time.
fn order(level: Level) -> Order {
    if is_postgres() && level == Level::Serializable { Order::Sessions } else { Order::RealTime }
}

fn holds_what_it_promises(level: Level) -> Result<()> {
    if env("BASALT_HISTORY_LEVELS").is_some_and(|levels| !levels.split(',').any(|name| name == short(level))) {
        return Ok(());
    }
    for rest in RESTS {
        let options = options(level, rest)?;
        let outcome = run_on_server(options, None)?;
        ensure!(
            rest != Rest::Pressed || is_postgres() || outcome.evicted_rows > 0,
            "no row was evicted: memory was not short"
        );
        let checking = Instant::now();
        let found = check(&outcome.history, level, order(level));
        tell(&options, &outcome, checking.elapsed());
        if !found.is_empty() {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!(
                "history-{}-{rest:?}-{}.txt",
                short(level),
                std::process::id()
            ));
            std::fs::write(&file, render(&outcome.history))?;
            let shown: Vec<String> =
                found.iter().take(SHOWN_MAX).map(|anomaly| anomaly.explain(&outcome.history)).collect();
            bail!(
                "{} forbids this, {rest:?}, BASALT_SEED={}; {} anomalies: {:?}; the history is in {}\n{}",
                level.sql(),
                options.seed,
                found.len(),
                found.iter().map(|anomaly| anomaly.kind).collect::<Vec<_>>(),
                file.display(),
                shown.join("\n")
            );
        }
    }
    Ok(())
}

fn tell(options: &Options, outcome: &Outcome, checking: Duration) {
    let rate = outcome.committed as f64 / outcome.took.as_secs_f64();
    println!(
        "{}, {:?}, BASALT_SEED={}: {} of {} transactions committed in {:.1?}, {rate:.0} a second; checked in {checking:.1?}",
        options.level.sql(),
        options.rest,
        options.seed,
        outcome.committed,
        outcome.history.transactions.len(),
        outcome.took,
    );
    outcome.counts.iter().for_each(|(what, count)| println!("{count:>8} {what}"));
}

fn short(level: Level) -> &'static str {
    match level {
        Level::ReadCommitted => "rc",
        Level::RepeatableRead => "rr",
        Level::Serializable => "ser",
    }
}

#[test]
fn read_committed_holds_what_it_promises() -> Result<()> {
    holds_what_it_promises(Level::ReadCommitted)
}

#[test]
fn repeatable_read_holds_what_it_promises() -> Result<()> {
    holds_what_it_promises(Level::RepeatableRead)
}

#[test]
fn serializable_holds_what_it_promises() -> Result<()> {
    holds_what_it_promises(Level::Serializable)
}

/// Clients of `level`, asked for what `asked` promises: one of these anomalies must be found, if not in the first history
/// then in one of the next.
fn is_found(level: Level, asked: Level, rest: Rest, weaken: Option<&str>, expected: &[Kind]) -> Result<()> {
    let client_writes = if level == Level::ReadCommitted && asked == level { 0 } else { 50 };
    // Batches are few.
    let times = if weaken == Some("validation-batches") { 6 } else { 1 };
    let options = Options { transactions: CONTROL_TRANSACTIONS * times, client_writes, ..options(level, rest)? };
    let mut kinds = Vec::new();
    for seed in options.seed..options.seed + CONTROL_TRIES {
        let outcome = match run_on_server(Options { seed, ..options }, weaken) {
            // Who reads or writes past the snapshot may. Validation is no excuse.
            Err(error) if weaken.is_some_and(|what| !what.starts_with("validation")) && is_seen_twice(&error) => {
                println!("{weaken:?}, {rest:?}, BASALT_SEED={seed}: {error:#}");
                return Ok(());
            }
            outcome => outcome?,
        };
        let found = check(&outcome.history, asked, order(asked));
        if let Some(shown) = found.iter().find(|anomaly| expected.contains(&anomaly.kind)) {
            println!("{weaken:?}, {rest:?}, BASALT_SEED={seed}: {}", shown.explain(&outcome.history));
            return Ok(());
        }
        kinds.extend(found.iter().map(|anomaly| anomaly.kind));
    }
    bail!(
        "{} with {weaken:?}, {rest:?}, BASALT_SEED={} and the next: of {expected:?} nothing was found, but {kinds:?}",
        level.sql(),
        options.seed
    )
}

/// A statement saw a row before and after a change: said by the client, or by the server's MERGE and ON CONFLICT.
fn is_seen_twice(error: &anyhow::Error) -> bool {
    let text = error.root_cause().to_string();
    [TWICE, "cannot affect row a second time"].iter().any(|said| text.contains(said))
}

#[test]
fn read_committed_loses_updates_and_is_found() -> Result<()> {
    let expected = [Kind::LostUpdate];
    [Rest::Hot, Rest::Cold]
        .into_iter()
        .try_for_each(|rest| is_found(Level::ReadCommitted, Level::RepeatableRead, rest, None, &expected))
}

#[test]
fn repeatable_read_allows_write_skew_and_is_found() -> Result<()> {
    let expected = [Kind::G2Item, Kind::G2];
    [Rest::Hot, Rest::Cold]
        .into_iter()
        .try_for_each(|rest| is_found(Level::RepeatableRead, Level::Serializable, rest, None, &expected))
}

/// What the server forgets, the level that it breaks, where rows rest, and what shows it.
const WEAKENED: [(&str, Level, &[Rest], &[Kind]); 9] = [
    ("statement-snapshot", Level::ReadCommitted, &[Rest::Hot, Rest::Cold], &[Kind::TornStatement]),
    ("re-check", Level::ReadCommitted, &[Rest::Hot, Rest::Cold], &[Kind::LostAppend, Kind::IncompatibleOrder]),
    ("snapshot", Level::RepeatableRead, &[Rest::Hot, Rest::Cold], &[Kind::GSingle, Kind::LongFork, Kind::Internal]),
    (
        "first-updater",
        Level::RepeatableRead,
        &[Rest::Hot, Rest::Cold],
        &[Kind::LostUpdate, Kind::LostAppend, Kind::IncompatibleOrder],
    ),
    ("validation", Level::Serializable, &[Rest::Hot, Rest::Cold], &[Kind::G2Item, Kind::G2]),
    ("validation-keys", Level::Serializable, &[Rest::Hot], &[Kind::G2Item, Kind::G2]),
    ("validation-ranges", Level::Serializable, &[Rest::Hot], &[Kind::G2Item, Kind::G2]),
    ("validation-scans", Level::Serializable, &[Rest::Hot], &[Kind::G2Item, Kind::G2]),
    ("validation-batches", Level::Serializable, &[Rest::Cold], &[Kind::G2Item, Kind::G2]),
];

#[test]
fn a_weakened_server_is_found() -> Result<()> {
    if is_postgres() {
        return Ok(());
    }
    for (what, level, rests, expected) in WEAKENED {
        rests.iter().try_for_each(|rest| is_found(level, level, *rest, Some(what), expected))?;
    }
    Ok(())
}
