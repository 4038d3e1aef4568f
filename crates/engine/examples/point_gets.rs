//! Lookups by key over many files that overlap: `cargo run -p basalt-engine --example point_gets -- DIR`.
//!
//! For 1, 16 and 256 files, each over the whole key range, prints lookups/s of keys that are there and of
//! keys that are not, and rows/s of single-row inserts, first with a locator and then (restarted with no
//! memory for it) by filters alone; and how long filling the locator takes and what it holds.

mod table;

use basalt_engine::*;
use basalt_sched::Os;
use basalt_types::*;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use table::{begin, create};

const ROWS: i64 = 1 << 18;
const LOOKUPS: i64 = 200_000;

fn main() {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).expect("usage: point_gets DIR (empty)"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    for files in [1, 16, 256] {
        runtime.block_on(measure(&dir.join(files.to_string()), files));
    }
}

fn open(dir: &Path, locator_bytes_max: u64) -> Arc<Engine> {
    let config = EngineConfig {
        background: false,
        checkpoint_log_bytes: 1 << 40,
        bulk_rows_min: usize::MAX,
        locator_bytes_max,
        ..EngineConfig::new(dir)
    };
    Engine::open(Os::real(), config, &|_| {}).expect("open")
}

/// Ids lie two apart, so that half of all lookups can miss.
fn id(row: i64) -> i64 {
    row * 2
}

fn values(id: i64) -> Vec<Datum> {
    vec![Datum::I64(id), Datum::I64(id * 7), Datum::text("some text beside the numbers")]
}

async fn measure(dir: &Path, files: i64) {
    let engine = open(dir, 1 << 30);
    let table = create(&engine, "t", &[DataType::Int8, DataType::Int8, DataType::Text]).await;
    for file in 0..files {
        let mut txn = begin(&engine, true);
        let mut batch = txn.bulk_insert(&table).expect("batch");
        let rows: Vec<i64> = (file..ROWS).step_by(files as usize).map(id).collect();
        batch.push(&columns(&rows)).await.expect("push");
        batch.finish().await.expect("finish");
        txn.commit().await.expect("commit");
        engine.freeze_table(table.id).expect("freeze");
    }
    engine.shutdown().expect("shutdown");
    drop(engine);
    for (name, bytes) in [("locator", 1 << 30), ("filters", 0)] {
        let engine = open(dir, bytes);
        let started = engine.os().clock.monotonic();
        engine.freeze_table(table.id).expect("fill");
        let filled = engine.os().clock.monotonic() - started;
        let stats = engine.stats();
        assert_eq!(stats.files, files as u64);
        let hits = lookups(&engine, &table, 0);
        let misses = lookups(&engine, &table, 1);
        let inserts = inserts(&engine, &table).await;
        println!(
            "{files} files, {name}: {hits:.0} hits/s, {misses:.0} misses/s, {inserts:.0} inserts/s; \
             filled in {:.3} s, {} entries, {} bytes",
            filled.as_secs_f64(),
            stats.locator_entries,
            stats.locator_bytes
        );
    }
}

/// Lookups/s of keys at `off` from those that are there.
fn lookups(engine: &Arc<Engine>, table: &Arc<TableDef>, off: i64) -> f64 {
    let tablet = table.tablets().next().expect("one tablet");
    let read = engine.read(Version::ZERO);
    let once = |from: i64, count: i64| {
        for i in from..from + count {
            let id = id(i * 104_729 % ROWS) + off;
            let found = read.get(table, tablet, &table.key_of(&values(id)).expect("keyed")).expect("get");
            assert_eq!(found.is_some(), off == 0);
        }
    };
    once(0, LOOKUPS / 10);
    let started = engine.os().clock.monotonic();
    once(LOOKUPS, LOOKUPS);
    per_second(LOOKUPS, engine.os().clock.monotonic() - started)
}

/// Rows/s of one transaction that inserts between the rows that are there, rolled back.
async fn inserts(engine: &Arc<Engine>, table: &Arc<TableDef>) -> f64 {
    let rows = 20_000;
    let started = engine.os().clock.monotonic();
    let mut txn = begin(engine, true);
    for i in 0..rows {
        let inserted = txn.insert(table, &values(id(i * 104_729 % ROWS) + 1)).await.expect("insert");
        assert_eq!(inserted, Inserted::Done);
    }
    per_second(rows, engine.os().clock.monotonic() - started)
}

fn per_second(count: i64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

fn columns(ids: &[i64]) -> Vec<arrow_array::ArrayRef> {
    let types = [PhysType::I64, PhysType::I64, PhysType::Bytes];
    let mut builders = types.map(|ty| ColumnBuilder::new(ty, ids.len()));
    for id in ids {
        assert!(builders.iter_mut().zip(values(*id)).all(|(builder, value)| builder.push(&value)));
    }
    builders.iter_mut().map(ColumnBuilder::finish).collect()
}
