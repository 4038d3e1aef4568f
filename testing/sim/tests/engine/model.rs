//! Random operations against a model of committed versions.
//!
//! One thread runs several open transactions, pinned readers, freezes, evictions, merges, checkpoints, restarts and
//! power cuts in a random order. The model knows what each reader must see and what each write must answer,
//! waiting included. A failing list of operations is cut down as far as it goes before it is printed.

mod driver;
mod ops;
mod state;

use basalt_engine::EngineConfig;
use basalt_sched::Clock;
use basalt_sched::os::real::RealClock;
use basalt_sim::{Machine, Rng};
use driver::{Counts, Driver, Host};
use ops::Op;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

const OPS_PER_RUN: usize = 600;

/// Runs a list on a fresh machine. Panics of the engine are failures like others.
fn run(host: Host, config: EngineConfig, ops: &[Op]) -> Result<Counts, String> {
    let work = || {
        let mut driver = Driver::new(host, config)?;
        driver.run(ops)?;
        Ok(driver.done)
    };
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            Err(format!("panic: {}", text.unwrap_or_else(|| format!("{:?}", panic.downcast_ref::<&str>()))))
        }
    }
}

fn simulated(seed: u64, background: bool, ops: &[Op]) -> Result<Counts, String> {
    let config = EngineConfig { background, ..crate::small_config("/data") };
    run(Host::Simulated(Machine::new(seed)), config, ops)
}

/// Leaves out parts of a failing list, large ones first, as long as the rest still fails.
fn shrink(seed: u64, background: bool, mut ops: Vec<Op>, mut error: String, limit: Duration) -> (Vec<Op>, String) {
    let clock = RealClock::new();
    let mut size = ops.len() / 2;
    while size > 0 && clock.monotonic() < limit {
        let mut at = 0;
        while at < ops.len() && clock.monotonic() < limit {
            let mut fewer = ops.clone();
            fewer.drain(at..(at + size).min(ops.len()));
            match simulated(seed, background, &fewer) {
                Err(other) => (ops, error) = (fewer, other),
                Ok(_) => at += size,
            }
        }
        size /= 2;
    }
    (ops, error)
}

fn report(seed: u64, background: bool, ops: Vec<Op>, error: String) -> ! {
    println!("seed {seed} fails: {error}\ncutting the list of operations down …");
    let (ops, error) = shrink(seed, background, ops, error, Duration::from_secs(60));
    let list: Vec<String> = ops.iter().map(|op| format!("    {op:?}")).collect();
    panic!("model test, BASALT_SEED={seed}: {error}\nafter these {} operations:\n{}", ops.len(), list.join("\n"));
}

/// Each run has its own seed, which alone repeats it.
fn next_seed(seed: u64) -> u64 {
    Rng::new(seed).next_u64() >> 1
}

fn seconds() -> Duration {
    Duration::from_secs(crate::setting("BASALT_MODEL_SECONDS", 60))
}

fn add(total: &mut Counts, one: Counts) {
    total.commits += one.commits;
    total.rows_written += one.rows_written;
    total.conflicts += one.conflicts;
    total.blocked += one.blocked;
    total.duplicates += one.duplicates;
    total.stood += one.stood;
    total.checks += one.checks;
    total.rows_compared += one.rows_compared;
    total.restarts += one.restarts;
}

#[test]
fn engine_does_what_the_model_does() {
    let clock = RealClock::new();
    let mut seed = crate::seed();
    let (mut total, mut runs) = (Counts::default(), 0);
    while runs == 0 || clock.monotonic() < seconds().mul_f64(0.6) {
        let ops = ops::generate(seed, OPS_PER_RUN);
        match simulated(seed, false, &ops) {
            Ok(counts) => add(&mut total, counts),
            Err(error) => report(seed, false, ops, error),
        }
        runs += 1;
        seed = next_seed(seed);
    }
    println!("{runs} runs of {OPS_PER_RUN} operations: {total:?}");
    assert!(total.commits > 0 && total.conflicts > 0 && total.blocked > 0, "{total:?}");
    assert!(total.restarts > 0 && total.rows_compared > 0, "{total:?}");
}

/// Seldom met by chance: a key that another transaction has only locked, here by an INSERT that found it taken.
#[test]
fn a_key_that_is_only_locked_is_told_at_once() {
    let insert = |txn, seed| Op::Insert { txn, slot: 1, k: 0, seed };
    let ops = [
        Op::Create { txn: 3, slot: 1 },
        insert(3, 781177790472368849),
        Op::Begin { txn: 0, repeatable_read: false, synchronous: true },
        insert(0, 17070801278198318119),
        insert(1, 17472508608476086920),
    ];
    let counts = simulated(1, false, &ops).expect("does what the model does");
    assert_eq!((counts.duplicates, counts.stood, counts.blocked), (1, 1, 0));
}

#[test]
fn a_key_that_is_being_written_is_waited_for() {
    let insert = |txn, seed| Op::Insert { txn, slot: 1, k: 0, seed };
    let begin = Op::Begin { txn: 0, repeatable_read: false, synchronous: true };
    let ops = [Op::Create { txn: 3, slot: 1 }, begin, insert(0, 781177790472368849), insert(1, 17472508608476086920)];
    let counts = simulated(1, false, &ops).expect("does what the model does");
    assert_eq!((counts.duplicates, counts.stood, counts.blocked), (0, 0, 1));
}

/// Background work depends on the scheduler: a seed need not fail twice, and the list may not shrink.
#[test]
fn engine_does_what_the_model_does_with_background_work() {
    let clock = RealClock::new();
    let mut seed = crate::seed();
    let (mut total, mut runs) = (Counts::default(), 0);
    while runs == 0 || clock.monotonic() < seconds().mul_f64(0.25) {
        let ops = ops::generate(seed, OPS_PER_RUN);
        match simulated(seed, true, &ops) {
            Ok(counts) => add(&mut total, counts),
            Err(error) => report(seed, true, ops, error),
        }
        runs += 1;
        seed = next_seed(seed);
    }
    println!("{runs} runs of {OPS_PER_RUN} operations: {total:?}");
}

#[test]
fn engine_does_what_the_model_does_on_a_real_disk() {
    let clock = RealClock::new();
    let mut seed = crate::seed();
    let mut runs = 0;
    while runs == 0 || clock.monotonic() < seconds().mul_f64(0.15) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let config = crate::small_config(dir.path().to_str().expect("a plain path"));
        if let Err(error) = run(Host::Real, config, &ops::generate(seed, OPS_PER_RUN / 3)) {
            panic!("model test on a real disk, BASALT_SEED={seed}: {error}");
        }
        runs += 1;
        seed = next_seed(seed);
    }
    println!("{runs} runs");
}
