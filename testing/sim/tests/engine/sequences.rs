//! Sequences through power cuts: a value that somebody was told of is never given again, and a shutdown leaves no gap.
//!
//! One client draws values, restarts sequences, rolls such restarts back, makes checkpoints and shuts down, until the
//! power fails at a random change of the disk. What counts as told is what had been waited for
//! (`Engine::wait_logged`). The control tells before it waits, and must be caught.

use basalt_engine::{CatalogEdit, Engine, Isolation, SequenceDef, SequenceValue, TxnOptions, catalog};
use basalt_sim::{Machine, Rng};
use basalt_types::{DataType, ObjectId, Revision, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const NAMES: [(&str, i64, i64); 3] = [("single", 1, 1), ("cached", 1, 7), ("down", -3, 1)];

#[derive(Default)]
struct Told {
    values: BTreeSet<(ObjectId, i64)>,
    /// The last value of each state that a clean shutdown has left.
    left: BTreeMap<ObjectId, i64>,
}

fn definition(engine: &Engine, (name, increment, cache): (&str, i64, i64)) -> SequenceDef {
    SequenceDef {
        id: engine.next_object_id(),
        namespace: catalog::PUBLIC,
        name: name.into(),
        owner: "basalt".into(),
        ty: DataType::Int8,
        start: 0,
        min: i64::MIN,
        max: i64::MAX,
        increment,
        cache,
        cycle: false,
        owned_by: None,
        state: engine.next_object_id(),
        begins: SequenceValue { last: 0, is_called: false },
        comment: None,
        revision: Revision::NEW,
    }
}

fn begin(engine: &Arc<Engine>) -> basalt_engine::Txn {
    engine.begin(TxnOptions {
        isolation: Isolation::ReadCommitted,
        synchronous_commit: true,
        session_version: Version::ZERO,
        session: 0,
    })
}

fn restarted(engine: &Engine, sequence: &SequenceDef) -> CatalogEdit {
    let begins = SequenceValue { last: 0, is_called: false };
    CatalogEdit::PutSequence(SequenceDef { state: engine.next_object_id(), begins, ..sequence.clone() })
}

/// Works until the engine refuses, which it does when the power is off, or shuts down. An error is a broken promise.
fn work(engine: &Arc<Engine>, told: &mut Told, rng: &mut Rng, early: bool) -> Result<(), String> {
    let runtime = crate::runtime();
    loop {
        let (name, _, _) = NAMES[rng.below(NAMES.len() as u64) as usize];
        let now = engine.catalog();
        let Some(sequence) = now.sequence_named(catalog::PUBLIC, name) else {
            return Err(format!("sequence {name} is gone"));
        };
        match rng.below(40) {
            0 => {
                if engine.checkpoint().is_err() {
                    return Ok(());
                }
            }
            1 => {
                let mut txn = begin(engine);
                if txn.edit_catalog(vec![restarted(engine, sequence)]).is_err() {
                    return Ok(());
                }
                if rng.one_in(2) {
                    txn.rollback();
                } else if runtime.block_on(txn.commit()).is_err() {
                    return Ok(());
                }
            }
            2 => {
                let last = |sequence: &Arc<SequenceDef>| {
                    let state = engine.sequence_state(sequence).filter(|state| state.value.is_called)?;
                    Some((sequence.state, state.value.last))
                };
                let left = now.sequences.values().filter_map(last).collect();
                if engine.shutdown().is_ok() {
                    told.left = left;
                }
                return Ok(());
            }
            _ => {
                let Ok(Some(drawn)) = engine.draw(sequence) else { return Ok(()) };
                if let Some(left) = told.left.remove(&sequence.state)
                    && drawn.first != left + sequence.increment
                {
                    return Err(format!("{name} was shut down at {left} and goes on at {}", drawn.first));
                }
                let waited = early || runtime.block_on(engine.wait_logged(drawn.logged)).is_ok();
                let mut value = drawn.first;
                loop {
                    if waited && !told.values.insert((sequence.state, value)) {
                        return Err(format!("{name} gives {value} again"));
                    }
                    if value == drawn.last {
                        break;
                    }
                    value += sequence.increment;
                }
                if !waited {
                    return Ok(());
                }
            }
        }
    }
}

fn torture(seed: u64, cuts: u64, early: bool) -> Result<usize, String> {
    let mut rng = Rng::new(seed);
    let mut machine = Machine::new(rng.next_u64());
    let engine = crate::open(machine.os(), crate::small_config("/data")).map_err(|error| error.to_string())?;
    let made = NAMES.map(|name| CatalogEdit::PutSequence(definition(&engine, name)));
    let mut txn = begin(&engine);
    txn.edit_catalog(made.to_vec()).expect("fresh sequences");
    crate::runtime().block_on(txn.commit()).expect("no fault is planned");
    drop(engine);
    let mut told = Told::default();
    for cut in 0..cuts {
        let bits = 3 + rng.below(6);
        machine.fs.power_off_after(1 + rng.below(1 << bits));
        match crate::open(machine.os(), crate::small_config("/data")) {
            Ok(engine) => work(&engine, &mut told, &mut rng, early).map_err(|error| format!("cut {cut}: {error}"))?,
            Err(_) if !machine.fs.is_powered() => {}
            Err(error) => return Err(format!("cut {cut}: cannot open: {error:?}")),
        }
        if machine.fs.is_powered() {
            // A clean end: the next start finds the same machine.
            continue;
        }
        told.left.clear();
        machine = machine.power_cut(rng.next_u64());
    }
    Ok(told.values.len())
}

#[test]
fn a_value_that_was_told_is_never_given_again() {
    let cuts = crate::setting("BASALT_TORTURE_CUTS", 150);
    let told = torture(crate::seed(), cuts, false).unwrap();
    assert!(told > 100, "only {told} values in {cuts} cuts");
}

#[test]
fn telling_before_the_lease_is_durable_is_caught() {
    let found = (0..20).any(|at| torture(crate::seed() ^ at, 60, true).is_err());
    assert!(found, "no value was given twice although nobody waited");
}
