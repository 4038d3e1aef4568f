//! Power cuts under load.
//!
//! Several clients write, each under keys of its own, and write down outside of the machine what was
//! acknowledged. The power fails at a random change of the disk: amid a flush, a freeze, an eviction, a merge, a
//! checkpoint, a recovery. Then the disk has what POSIX promises, the engine opens again, and of each
//! client there must be every acknowledged transaction, whole, and nothing else but, perhaps, the one
//! transaction whose commit was asked for and not answered, whole as well. The same disk goes through many
//! cuts.
//!
//! Two controls show that the checker sees losses: a disk that lies about sync, and commits that count as
//! acknowledged before they are durable.

mod client;

use crate::table::*;
use basalt_engine::{CatalogEdit, Engine, EngineConfig, Error, FileKind, FileLine, Isolation, TxnOptions, catalog};
use basalt_sched::Clock;
use basalt_sched::os::real::RealClock;
use basalt_sim::{Controls, Machine, Rng};
use basalt_types::{Datum, TableDef, Version};
use client::{Client, Content, OWN, own_name};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const CLIENTS: usize = 4;
/// Rows of client n have c1 from here times (n + 1).
const CLIENT_KEYS: i64 = 1_000_000;
pub const COUNTERS: i64 = 3;
/// Hot rows of all these tables may take about a third of it.
const PRESSED_BYTES: u64 = 512 << 10;

/// Tables that all clients write. Every token row goes with one increment of a counter.
const TABLES: [(&str, Shape); 6] = [
    ("one", Shape::Keyed),
    ("four", Shape::KeyedHash4),
    ("plain", Shape::KeylessHash4),
    ("text", Shape::TextKeyHash4),
    ("tokens", Shape::Keyless),
    ("counters", Shape::Keyed),
];
const TOKENS: usize = 4;
const COUNTER_TABLE: usize = 5;

#[derive(Clone, Copy, Default, Debug)]
struct Summary {
    cuts: u64,
    cuts_in_recovery: u64,
    acknowledged: u64,
    in_flight_survived: u64,
    in_flight_lost: u64,
    checkpoints: u64,
    moves: u64,
    /// By the engine itself, for want of memory.
    evicted_rows: u64,
}

fn config() -> EngineConfig {
    EngineConfig { background: true, ..crate::small_config("/data") }
}

/// So little memory that rows are evicted while they are warm.
fn pressed() -> EngineConfig {
    EngineConfig { memory_bytes_max: PRESSED_BYTES, cool_after: Duration::from_millis(50), ..config() }
}

fn torture(seed: u64, cuts: u64, controls: Controls) -> Result<Summary, String> {
    let mut rng = Rng::new(seed);
    let mut machine = Machine::new(rng.next_u64());
    let engine = crate::open(machine.os(), config()).map_err(|error| format!("first start: {error}"))?;
    create_tables(&engine);
    engine.shutdown().map_err(|error| format!("first shutdown: {error}"))?;
    drop(engine);
    machine.fs.lie_about_sync(controls.lying_sync);
    let mut clients: Vec<Client> = (0..CLIENTS).map(|n| Client::new(n, controls.early_acknowledgement)).collect();
    let mut summary = Summary::default();
    while summary.cuts < cuts {
        // Now and then the power fails again before the engine is up.
        if rng.one_in(4) {
            machine.fs.power_off_after(1 + rng.below(40));
        }
        let at = format!("after {} cuts", summary.cuts);
        let config = if rng.one_in(2) { pressed() } else { config() };
        match crate::open(machine.os(), config) {
            Ok(engine) => {
                match verify(&engine, &mut clients, &mut summary) {
                    Ok(()) => {}
                    // What was in flight is still open: nobody may write before it is settled.
                    Err(error) if error.contains("the power is off") => {
                        machine = machine.power_cut(rng.next_u64());
                        summary.cuts += 1;
                        continue;
                    }
                    Err(error) => return Err(format!("{at}: {error}")),
                }
                if machine.fs.is_powered() {
                    let bits = 4 + rng.below(7);
                    machine.fs.power_off_after(1 + rng.below(1 << bits));
                }
                cycle(&engine, &machine, &mut clients, &mut rng, &mut summary)
                    .map_err(|error| format!("{at}: {error}"))?;
            }
            Err(_) if !machine.fs.is_powered() => summary.cuts_in_recovery += 1,
            Err(error) => return Err(format!("{at}: cannot open: {error:?}")),
        }
        machine = machine.power_cut(rng.next_u64());
        summary.cuts += 1;
    }
    let engine = crate::open(machine.os(), config()).map_err(|error| format!("last start: {error:?}"))?;
    verify(&engine, &mut clients, &mut summary)?;
    no_file_is_left_over(&engine, &machine)?;
    Ok(summary)
}

fn create_tables(engine: &Arc<Engine>) {
    let mut txn = engine.begin(options(true, Version::ZERO));
    let oriented = |(number, (name, shape)): (u64, &(&str, Shape))| {
        let mut def = (*define(engine, *shape, name)).clone();
        orient(&mut def, number);
        Arc::new(def)
    };
    let defs: Vec<Arc<TableDef>> = (0..).zip(&TABLES).map(oriented).collect();
    txn.edit_catalog(defs.iter().cloned().map(CatalogEdit::PutTable).collect()).expect("fresh tables");
    crate::runtime().block_on(async {
        for k in 0..COUNTERS {
            let mut row = vec![Datum::Null; defs[COUNTER_TABLE].columns.len()];
            (row[0], row[2]) = (Datum::I64(k), Datum::I32(0));
            txn.insert(&defs[COUNTER_TABLE], &row).await.expect("fresh rows");
        }
        txn.commit().await.expect("no fault is planned");
    });
}

fn options(synchronous_commit: bool, session_version: Version) -> TxnOptions {
    TxnOptions { isolation: Isolation::ReadCommitted, synchronous_commit, session_version, session: 0 }
}

/// Load until the power fails.
fn cycle(
    engine: &Arc<Engine>,
    machine: &Machine,
    clients: &mut [Client],
    rng: &mut Rng,
    summary: &mut Summary,
) -> Result<(), String> {
    let stop = AtomicBool::new(false);
    let clock = RealClock::new();
    let outcomes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for client in clients.iter_mut() {
            let (mut rng, stop) = (rng.fork(), &stop);
            threads.push(scope.spawn(move || client.run(engine, machine, &mut rng, stop)));
        }
        let (mut moves, stop_moves) = (rng.fork(), &stop);
        let mover = scope.spawn(move || maintain(engine, machine, &mut moves, stop_moves));
        while machine.fs.is_powered() && clock.monotonic() < Duration::from_secs(2) {
            clock.sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Release);
        let mut outcomes: Vec<_> =
            threads.into_iter().map(|t| t.join().unwrap_or(Err("a client panicked".into()))).collect();
        outcomes.push(mover.join().unwrap_or(Err("maintenance panicked".into())).map(|moves| summary.moves += moves));
        outcomes
    });
    summary.checkpoints += engine.background().status().checkpoints;
    summary.evicted_rows += engine.background().status().evicted_rows;
    outcomes.into_iter().collect()
}

/// Freezes, evicts, merges and checkpoints at random, besides what the engine does by itself.
fn maintain(engine: &Arc<Engine>, machine: &Machine, rng: &mut Rng, stop: &AtomicBool) -> Result<u64, String> {
    let mut moves = 0;
    while !stop.load(Ordering::Acquire) {
        let tables: Vec<_> = engine.catalog().tables.keys().copied().collect();
        let table = *rng.pick(&tables);
        let done = match rng.below(6) {
            0..2 => engine.freeze_table(table),
            2 => engine.evict_table(table),
            3..5 => engine.compact_table(table),
            _ => engine.checkpoint(),
        };
        match done {
            Ok(()) => moves += 1,
            Err(Error::TableGone(_)) => {}
            Err(_) if !machine.fs.is_powered() => break,
            Err(error) => return Err(format!("maintenance: {error:?}")),
        }
        engine.os().clock.sleep(Duration::from_micros(rng.below(3000)));
    }
    Ok(moves)
}

/// Compares what is there with what was acknowledged; then that is what the clients go on from.
fn verify(engine: &Arc<Engine>, clients: &mut [Client], summary: &mut Summary) -> Result<(), String> {
    let mut found: Vec<Content> = vec![Content::new(); CLIENTS];
    let read = engine.read(Version::ZERO);
    let tables = engine.catalog().tables.values().cloned().collect::<Vec<_>>();
    let (mut tokens, mut counted) = (0, 0);
    for table in &tables {
        let index = TABLES.iter().position(|(name, _)| *name == table.name).unwrap_or(OWN);
        let rows = contents(&read, table, &[])?;
        if index == OWN {
            let owner = (0..CLIENTS).find(|n| own_name(*n) == table.name);
            let owner = owner.ok_or_else(|| format!("table {} was never made", table.name))?;
            found[owner].insert((OWN, Vec::new()), client::description(table));
        }
        for (name, row) in rows {
            match (&row[0], &row[2]) {
                (Datum::I64(_), Datum::I32(count)) if index == COUNTER_TABLE => counted += i64::from(*count),
                (Datum::I64(k), _) => {
                    tokens += i64::from(index == TOKENS);
                    let owner = usize::try_from(k / CLIENT_KEYS - 1).ok().and_then(|n| found.get_mut(n));
                    let owner = owner.ok_or_else(|| format!("row {} of nobody", brief(&row)))?;
                    owner.insert((index, name), row);
                }
                _ => return Err(format!("{}: row {} has no c1", table.name, brief(&row))),
            }
        }
    }
    for (client, found) in clients.iter_mut().zip(found) {
        let (acknowledged, survived) = client.settle(found, &tables)?;
        summary.acknowledged += acknowledged;
        match survived {
            Some(true) => summary.in_flight_survived += 1,
            Some(false) => summary.in_flight_lost += 1,
            None => {}
        }
    }
    match tokens == counted {
        true => Ok(()),
        false => Err(format!("torn transactions: {tokens} tokens, but counters say {counted}")),
    }
}

/// After checkpoints, and with nobody reading, the directory holds what is listed and nothing else.
fn no_file_is_left_over(engine: &Arc<Engine>, machine: &Machine) -> Result<(), String> {
    let nothing = EngineConfig { background: false, ..config() };
    engine.shutdown().map_err(|error| format!("shutdown: {error}"))?;
    let machine = machine.power_cut(1);
    let engine = crate::open(machine.os(), nothing).map_err(|error| format!("open after shutdown: {error}"))?;
    let mut txn = engine.begin(options(true, Version::ZERO));
    let setting = CatalogEdit::SetSetting { name: "x".into(), value: Some("y".into()) };
    txn.edit_catalog(vec![setting]).map_err(|error| error.to_string())?;
    crate::runtime().block_on(txn.commit()).map_err(|error| error.to_string())?;
    // Hot rows would give the checkpoint row files of its own.
    for table in engine.catalog().tables.keys() {
        engine.freeze_table(*table).map_err(|error| error.to_string())?;
    }
    engine.checkpoint().map_err(|error| error.to_string())?;
    let names = |line: &FileLine| {
        let extensions: &[&str] = match line.kind {
            FileKind::Segment => &["seg"],
            FileKind::RowFile => &["row"],
            FileKind::Pair => &["seg", "row"],
        };
        extensions.iter().map(|extension| format!("{}.{extension}", line.file)).collect::<Vec<_>>()
    };
    let listed: BTreeSet<String> = engine.file_list().iter().flat_map(names).collect();
    let files = machine.fs.files().into_iter();
    let names = files.filter_map(|(path, _)| path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let there: BTreeSet<String> = names.filter(|name| name.ends_with(".seg") || name.ends_with(".row")).collect();
    match there == listed {
        true => Ok(()),
        false => Err(format!("data files on the disk: {there:?}, listed: {listed:?}")),
    }
}

fn table_named(engine: &Engine, name: &str) -> Option<Arc<TableDef>> {
    engine.catalog().table_named(catalog::PUBLIC, name).cloned()
}

#[test]
fn no_acknowledged_commit_is_lost_or_torn_by_power_cuts() {
    let seed = crate::seed();
    let cuts = crate::setting("BASALT_TORTURE_CUTS", 30);
    let clock = RealClock::new();
    match torture(seed, cuts, Controls::default()) {
        Ok(summary) => {
            println!("{summary:?} in {:?}", clock.monotonic());
            assert!(summary.acknowledged > 0 && summary.moves > 0, "{summary:?}");
        }
        Err(error) => panic!("torture, BASALT_SEED={seed}: {error}"),
    }
}

/// The checker must report a loss with this control, in one of a few tries. A disk that lies may also leave
/// nothing that can be opened.
fn is_caught(controls: Controls) {
    let seed = crate::seed();
    for attempt in 0..5 {
        if let Err(error) = torture(seed.wrapping_add(attempt), 30, controls) {
            let unusable = controls.lying_sync && error.contains("cannot open");
            assert!(unusable || error.contains("has neither") || error.contains("torn"), "no loss: {error}");
            println!("caught: {error}");
            return;
        }
    }
    panic!("BASALT_SEED={seed}: 150 cuts, and the checker saw no loss");
}

#[test]
fn a_disk_that_lies_about_sync_is_caught() {
    is_caught(Controls { lying_sync: true, ..Controls::default() });
}

#[test]
fn acknowledging_before_the_log_is_durable_is_caught() {
    is_caught(Controls { early_acknowledgement: true, ..Controls::default() });
}
