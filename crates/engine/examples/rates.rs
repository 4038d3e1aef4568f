//! Rates of the engine alone, on a real directory: `cargo run --release -p basalt-engine --example rates -- DIR`.
//!
//! Prints rows/s of a large batch (16 columns, keyed), commits/s of single-row inserts from 1 and 16 tasks
//! (durable), scan rows/s, and how fast a log of single rows is replayed.

mod table;

use arrow_array::ArrayRef;
use basalt_engine::*;
use basalt_sched::Os;
use basalt_types::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use table::{begin, create};

const BATCH_ROWS: i64 = 8192;
const BATCHES: i64 = 122;
const SINGLES: i64 = 200_000;

fn main() {
    let dir = PathBuf::from(std::env::args().nth(1).expect("usage: rates DIR (empty)"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(measure(dir));
}

fn open(dir: &std::path::Path) -> Arc<Engine> {
    let os = Os::real();
    let from = os.clock.monotonic();
    let config = EngineConfig { checkpoint_log_bytes: 1 << 40, ..EngineConfig::new(dir) };
    let engine = Engine::open(os.clone(), config, &|_| {}).expect("open");
    println!("open: {:.3} s", seconds(&os, from));
    engine
}

fn seconds(os: &Os, from: Duration) -> f64 {
    (os.clock.monotonic() - from).as_secs_f64()
}

fn wide_types() -> Vec<DataType> {
    let mut types = vec![DataType::Int8; 4];
    types.extend(vec![DataType::Numeric(Some((15, 2))); 4]);
    types.extend(vec![DataType::Text; 2]);
    types.extend(vec![DataType::Date; 3]);
    types.extend(vec![DataType::Text; 3]);
    types
}

fn wide_batch(first: i64) -> Vec<ArrayRef> {
    let words = ["carefully", "final", "deposits", "sleep", "furiously", "regular", "accounts", "among"];
    let types = wide_types();
    let mut columns: Vec<ColumnBuilder> =
        types.iter().map(|ty| ColumnBuilder::new(ty.phys().expect("storable"), BATCH_ROWS as usize)).collect();
    for id in first..first + BATCH_ROWS {
        let mix = (id as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for (i, column) in columns.iter_mut().enumerate() {
            let part = (mix >> (i * 3)) & 0xffff;
            let value = match column.ty() {
                PhysType::I64 if i == 0 => Datum::I64(id),
                PhysType::I64 => Datum::I64(part as i64),
                PhysType::I32 => Datum::I32(8000 + (part % 2500) as i32),
                _ if i < 15 => Datum::text(words[part as usize % 8]),
                _ => Datum::text(&[part, part >> 3, part >> 6, part >> 9].map(|w| words[w as usize % 8]).join(" ")),
            };
            assert!(column.push(&value));
        }
    }
    columns.iter_mut().map(ColumnBuilder::finish).collect()
}

async fn measure(dir: PathBuf) {
    let engine = open(&dir);
    let os = engine.os().clone();
    let wide = create(&engine, "wide", &wide_types()).await;
    let batches: Vec<_> = (0..BATCHES).map(|i| wide_batch(i * BATCH_ROWS)).collect();
    let from = os.clock.monotonic();
    let mut txn = begin(&engine, true);
    let mut bulk = txn.bulk_insert(&wide).expect("bulk");
    for batch in &batches {
        bulk.push(batch).await.expect("push");
    }
    let rows = bulk.finish().await.expect("finish");
    txn.commit().await.expect("commit");
    let took = seconds(&os, from);
    let bytes = engine.stats().file_bytes;
    println!("batch: {rows} rows of 16 columns in {took:.3} s, {:.0} rows/s, {bytes} bytes", rows as f64 / took);

    let from = os.clock.monotonic();
    let columns = (1..=16).map(ColumnId).collect();
    let spec = ScanSpec { table: wide.clone(), columns, predicates: Vec::new(), with_identity: false };
    let mut scanned = 0;
    for mut part in engine.read(Version::ZERO).scan(spec).expect("scan").0 {
        while let Some(batch) = part.next_batch().expect("scan") {
            scanned += batch.rows;
        }
    }
    println!("scan: {:.0} rows/s, all columns, one thread", scanned as f64 / seconds(&os, from));

    let narrow = create(&engine, "narrow", &[DataType::Int8, DataType::Text, DataType::Int4]).await;
    let mut next = 0;
    for tasks in [1, 16] {
        let each = if tasks == 1 { 5000 } else { SINGLES / tasks };
        let from = os.clock.monotonic();
        let mut running = Vec::new();
        for _ in 0..tasks {
            let (engine, narrow, first) = (engine.clone(), narrow.clone(), next);
            next += each;
            running.push(tokio::spawn(async move {
                for id in first..first + each {
                    let mut txn = begin(&engine, true);
                    let values = [Datum::I64(id), Datum::text("a row of some length, as rows are"), Datum::I32(7)];
                    assert_eq!(txn.insert(&narrow, &values).await.expect("insert"), Inserted::Done);
                    txn.commit().await.expect("commit");
                }
            }));
        }
        for task in running {
            task.await.expect("task");
        }
        println!("single rows, {tasks} tasks: {:.0} commits/s durable", (each * tasks) as f64 / seconds(&os, from));
    }
    let stats = engine.stats();
    println!("hot rows {} in {} bytes; log {:?}", stats.hot_rows, stats.hot_bytes, stats.log);
    drop(engine);
    drop(open(&dir));
}
