//! Many sessions at once, with freezes, evictions, merges and checkpoints going on: money is neither made nor lost,
//! batches are seen whole or not at all, increments are never lost, deadlocks end.

use crate::table::*;
use basalt_engine::{
    CatalogEdit, Engine, EngineConfig, Error, Isolation, Locked, ReadContext, Result, RowLock, TableLock, Txn,
    TxnOptions, WaitPolicy,
};
use basalt_sched::Clock;
use basalt_sched::os::real::RealClock;
use basalt_sim::{Machine, Rng};
use basalt_types::{Datum, TableDef, Version};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const WAIT: WaitPolicy = WaitPolicy::Wait(None);
const ACCOUNTS: i64 = 60;
const BALANCE: i32 = 1000;
const BATCH_ROWS: usize = 160;

fn load_time() -> Duration {
    Duration::from_secs(crate::setting("BASALT_CONCURRENT_SECONDS", 5))
}

fn start(seed: u64, shapes: &[(&str, Shape)]) -> (Arc<Engine>, Vec<Arc<TableDef>>) {
    let config = EngineConfig { background: true, ..crate::small_config("/data") };
    let engine = crate::open(Machine::new(seed).os(), config).expect("an empty disk");
    let defs: Vec<_> = shapes.iter().map(|(name, shape)| define(&engine, *shape, name)).collect();
    let mut txn = begin(&engine, false);
    txn.edit_catalog(defs.iter().cloned().map(CatalogEdit::PutTable).collect()).expect("fresh tables");
    crate::runtime().block_on(txn.commit()).expect("the disk is sound");
    (engine, defs)
}

fn begin(engine: &Arc<Engine>, repeatable_read: bool) -> Txn {
    let isolation = if repeatable_read { Isolation::RepeatableRead } else { Isolation::ReadCommitted };
    let options = TxnOptions { isolation, synchronous_commit: true, session_version: Version::ZERO, session: 0 };
    engine.begin(options)
}

fn row(table: &TableDef, k: i64, count: i32) -> Row {
    let mut row = vec![Datum::Null; table.columns.len()];
    (row[0], row[2]) = (Datum::I64(k), Datum::I32(count));
    row
}

fn count_of(row: &[Datum]) -> i32 {
    match row[2] {
        Datum::I32(count) => count,
        _ => panic!("c3 of {}", brief(row)),
    }
}

async fn insert_all(engine: &Arc<Engine>, table: &Arc<TableDef>, rows: impl Iterator<Item = Row>) {
    let mut txn = begin(engine, false);
    for row in rows {
        txn.insert(table, &row).await.expect("fresh keys");
    }
    txn.commit().await.expect("the disk is sound");
}

/// Adds to c3 of a row; the lock is waited for. True if the row is there.
async fn add(txn: &mut Txn, table: &Arc<TableDef>, k: i64, amount: i32) -> Result<bool> {
    let wanted = row(table, k, 0);
    let (tablet, key) = locate(&txn.read(), table, &wanted).expect("keyed");
    let Locked::Row(current) = txn.lock_row(table, tablet, &key, RowLock::NoKeyUpdate, WAIT).await? else {
        return Ok(false);
    };
    let mut values = current.values.clone();
    values[2] = Datum::I32(count_of(&values) + amount);
    txn.update(table, &current, &values).await?;
    Ok(true)
}

/// Runs `sessions` threads until time is up, and moves and checkpoints beside them.
fn load(
    engine: &Arc<Engine>,
    tables: &[Arc<TableDef>],
    seed: u64,
    sessions: usize,
    session: impl Fn(usize, &mut Rng, &dyn Fn() -> bool) + Sync,
) {
    let clock = RealClock::new();
    let limit = load_time();
    let stop = AtomicBool::new(false);
    let mut rng = Rng::new(seed);
    std::thread::scope(|scope| {
        for number in 0..sessions {
            let (mut rng, session, stop) = (rng.fork(), &session, &stop);
            scope.spawn(move || {
                // A session that fails must end the others, too.
                let guard = StopOnPanic(stop);
                session(number, &mut rng, &|| stop.load(Ordering::Acquire));
                std::mem::forget(guard);
            });
        }
        while clock.monotonic() < limit && !stop.load(Ordering::Acquire) {
            let table = rng.pick(tables).id;
            match rng.below(5) {
                0 => engine.freeze_table(table),
                1 => engine.evict_table(table),
                2..4 => engine.compact_table(table),
                _ => engine.checkpoint(),
            }
            .unwrap_or_else(|error| {
                stop.store(true, Ordering::Release);
                panic!("maintenance: {error:?}")
            });
            clock.sleep(Duration::from_millis(rng.below(10)));
        }
        stop.store(true, Ordering::Release);
    });
}

struct StopOnPanic<'a>(&'a AtomicBool);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn sum(read: &ReadContext, table: &Arc<TableDef>) -> (usize, i64) {
    let rows = contents(read, table, &[]).unwrap_or_else(|error| panic!("{error}"));
    (rows.len(), rows.values().map(|row| i64::from(count_of(row))).sum())
}

/// Transfers lock two accounts in random order: they deadlock, and one of each cycle is refused.
#[test]
fn transfers_keep_the_sum_that_every_scan_sees() {
    let seed = crate::seed();
    let (engine, tables) = start(seed, &[("one", Shape::Keyed), ("four", Shape::KeyedHash4)]);
    for table in &tables {
        let rows = (0..ACCOUNTS).map(|k| row(table, k, BALANCE));
        crate::runtime().block_on(insert_all(&engine, table, rows));
    }
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let expected = (ACCOUNTS as usize, ACCOUNTS * i64::from(BALANCE));
    load(&engine, &tables, seed, 5, |number, rng, stop| {
        let runtime = crate::runtime();
        while !stop() {
            let table = rng.pick(&tables);
            if number == 0 {
                assert_eq!(sum(&engine.read(Version::ZERO), table), expected, "{}", table.name);
                continue;
            }
            let repeatable_read = rng.one_in(2);
            let few = if rng.one_in(2) { 3 } else { ACCOUNTS as u64 };
            let (from, to, amount) = (rng.below(few) as i64, rng.below(few) as i64, rng.below(50) as i32);
            let outcome = runtime.block_on(async {
                let mut txn = begin(&engine, repeatable_read);
                txn.lock_table(table.id, TableLock::RowExclusive, WAIT).await?;
                assert!(add(&mut txn, table, from, -amount).await?, "account {from} is gone");
                txn.next_statement();
                assert!(add(&mut txn, table, to, amount).await?, "account {to} is gone");
                txn.next_statement();
                if rng.one_in(10) {
                    assert_eq!(sum(&txn.read(), table), expected, "inside of a transaction");
                }
                txn.commit().await
            });
            match outcome {
                Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                Err(Error::Serialization(_) | Error::Deadlock(_)) => refused.fetch_add(1, Ordering::Relaxed),
                Err(error) => panic!("transfer: {error:?}"),
            };
        }
    });
    for table in &tables {
        assert_eq!(sum(&engine.read(Version::ZERO), table), expected, "at the end");
    }
    println!("{} transfers, {} refused", done.load(Ordering::Relaxed), refused.load(Ordering::Relaxed));
    assert!(done.into_inner() > 50 && refused.into_inner() > 0);
    engine.shutdown().expect("the disk is sound");
}

#[test]
fn batches_over_four_tablets_are_seen_whole_or_not_at_all() {
    let seed = crate::seed();
    let (engine, tables) = start(seed, &[("four", Shape::KeyedHash4), ("plain", Shape::KeylessHash4)]);
    let next = AtomicU64::new(0);
    load(&engine, &tables, seed, 4, |number, rng, stop| {
        let runtime = crate::runtime();
        while !stop() {
            let table = rng.pick(&tables);
            if number < 2 {
                let rows = contents(&engine.read(Version::ZERO), table, &[]).unwrap_or_else(|error| panic!("{error}"));
                let mut batches: BTreeMap<i64, usize> = BTreeMap::new();
                for row in rows.values() {
                    let Datum::I64(k) = row[0] else { panic!("c1 is an int8") };
                    *batches.entry(k / BATCH_ROWS as i64).or_default() += 1;
                }
                let torn = batches.iter().find(|(_, rows)| **rows != BATCH_ROWS);
                assert_eq!(torn, None, "{}: a part of a batch is seen", table.name);
                continue;
            }
            let first = next.fetch_add(1, Ordering::Relaxed) as i64 * BATCH_ROWS as i64;
            let rows: Vec<Row> = (first..).take(BATCH_ROWS).map(|k| random_row(table, k, rng)).collect();
            runtime.block_on(async {
                let mut txn = begin(&engine, false);
                txn.lock_table(table.id, TableLock::RowExclusive, WAIT).await.expect("nobody is in the way");
                let mut bulk = txn.bulk_insert(table).expect("a running engine");
                bulk.push(&stored_columns(table, &rows)).await.expect("fresh keys");
                bulk.finish().await.expect("fresh keys");
                match rng.one_in(8) {
                    true => txn.rollback(),
                    false => drop(txn.commit().await.expect("the disk is sound")),
                }
            });
            // Scans read everything: the table must not outgrow them.
            engine.os().clock.sleep(Duration::from_millis(1));
        }
    });
    assert!(next.into_inner() > 10);
    engine.shutdown().expect("the disk is sound");
}

#[test]
fn increments_are_never_lost() {
    let seed = crate::seed();
    let (engine, tables) = start(seed, &[("one", Shape::Keyed)]);
    let table = &tables[0];
    crate::runtime().block_on(insert_all(&engine, table, (0..3).map(|k| row(table, k, 0))));
    let (done, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    load(&engine, &tables, seed, 4, |_, rng, stop| {
        let runtime = crate::runtime();
        while !stop() {
            let (k, repeatable_read) = (rng.below(3) as i64, rng.one_in(2));
            let outcome = runtime.block_on(async {
                let mut txn = begin(&engine, repeatable_read);
                assert!(add(&mut txn, table, k, 1).await?, "row {k} is gone");
                txn.commit().await
            });
            match outcome {
                Ok(_) => done.fetch_add(1, Ordering::Relaxed),
                Err(Error::Serialization(_)) if repeatable_read => refused.fetch_add(1, Ordering::Relaxed),
                Err(error) => panic!("increment, repeatable read = {repeatable_read}: {error:?}"),
            };
        }
    });
    let (done, refused) = (done.into_inner(), refused.into_inner());
    println!("{done} increments, {refused} refused");
    assert_eq!(sum(&engine.read(Version::ZERO), table), (3, done as i64));
    assert!(done > 50 && refused > 0);
    engine.shutdown().expect("the disk is sound");
}
