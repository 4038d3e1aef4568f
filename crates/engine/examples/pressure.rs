//! Upserts over a working set twice as large as the memory for hot rows:
//! `cargo run --release -p basalt-engine --example pressure -- DIR [SECONDS] [MEMORY_MB]`.
//!
//! Every upsert is a transaction (not waiting for the log). Half of them go to a tenth of the keys. Prints
//! rows/s, the longest wait of one upsert, and what background work did, every five seconds.

mod table;

use basalt_engine::*;
use basalt_sched::Os;
use basalt_types::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use table::{begin, create};

const TASKS: u64 = 4;
const ROW_BYTES: u64 = 200;
const REPORT: Duration = Duration::from_secs(5);

fn main() {
    let mut args = std::env::args().skip(1);
    let dir = args.next().expect("usage: pressure DIR [SECONDS] [MEMORY_MB]");
    let mut number = |default| args.next().map_or(default, |text| text.parse().expect("a number"));
    let (seconds, memory_mb) = (number(30), number(128));
    let config = EngineConfig { memory_bytes_max: memory_mb << 20, ..EngineConfig::new(dir) };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("runtime");
    runtime.block_on(measure(config, Duration::from_secs(seconds)));
}

struct Load {
    engine: Arc<Engine>,
    table: Arc<TableDef>,
    keys: u64,
    done: AtomicU64,
    longest_us: AtomicU64,
    stop: AtomicBool,
}

impl Load {
    async fn upsert(&self, id: i64, mix: u64) {
        let text: String = (0..ROW_BYTES as usize / 8).map(|i| format!("{:08x}", (mix >> (i % 32)) as u32)).collect();
        let values = [Datum::I64(id), Datum::I64(mix as i64), Datum::text(&text)];
        let mut txn = begin(&self.engine, false);
        let key = self.table.key_of(&values).expect("keyed");
        let tablet = self.engine.route_row(&self.table, &values);
        let wait = WaitPolicy::Wait(None);
        match txn.lock_row(&self.table, tablet, &key, RowLock::NoKeyUpdate, wait).await.expect("lock") {
            Locked::Row(current) => txn.update(&self.table, &current, &values).await.expect("update"),
            _ => txn.insert(&self.table, &values).await.expect("insert"),
        };
        txn.commit().await.expect("commit");
    }

    async fn run(&self, mut mix: u64) {
        let clock = self.engine.os().clock.clone();
        while !self.stop.load(Ordering::Relaxed) {
            mix = mix.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let drawn = mix >> 33;
            let id = if drawn & 1 == 0 { drawn % (self.keys / 10) * 10 } else { drawn % self.keys };
            let from = clock.monotonic();
            self.upsert(id as i64, mix).await;
            self.longest_us.fetch_max((clock.monotonic() - from).as_micros() as u64, Ordering::Relaxed);
            self.done.fetch_add(1, Ordering::Relaxed);
            // An upsert that waits for nothing does not let others run by itself.
            tokio::task::yield_now().await;
        }
    }
}

async fn measure(config: EngineConfig, time: Duration) {
    let budget = config.memory_bytes_max * 3 / 10;
    let keys = budget * 2 / ROW_BYTES;
    println!("{keys} keys of {ROW_BYTES} bytes; hot rows may take {budget} bytes");
    let engine = Engine::open(Os::real(), config, &|_| {}).expect("open");
    let table = create(&engine, "t", &[DataType::Int8, DataType::Int8, DataType::Text]).await;
    let load = Arc::new(Load {
        engine: engine.clone(),
        table,
        keys,
        done: AtomicU64::new(0),
        longest_us: AtomicU64::new(0),
        stop: AtomicBool::new(false),
    });
    let clock = engine.os().clock.clone();
    let from = clock.monotonic();
    let mut tasks = Vec::new();
    for task in 0..TASKS {
        let load = load.clone();
        tasks.push(tokio::spawn(async move { load.run(task * 7919 + 1).await }));
    }
    let mut before = 0;
    while clock.monotonic() - from < time {
        tokio::time::sleep(REPORT).await;
        let done = load.done.load(Ordering::Relaxed);
        let longest = load.longest_us.swap(0, Ordering::Relaxed);
        let rate = (done - before) as f64 / REPORT.as_secs_f64();
        let (stats, status) = (engine.stats(), engine.background().status());
        println!(
            "{rate:.0} rows/s, longest {longest} us, hot {} MB, {} files of {} MB; {status:?}",
            stats.hot_bytes >> 20,
            stats.files,
            stats.file_bytes >> 20
        );
        before = done;
    }
    load.stop.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await.expect("task");
    }
    let took = (clock.monotonic() - from).as_secs_f64();
    println!("all: {:.0} rows/s", load.done.load(Ordering::Relaxed) as f64 / took);
    engine.shutdown().expect("shutdown");
}
