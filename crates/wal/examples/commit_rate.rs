//! How fast the log commits on this disk, beside what the disk's sync alone can do.
//!
//! `cargo run -p basalt-wal --example commit_rate -- DIR [seconds per measurement]`. DIR must not exist; it
//! is left behind for a second look at the files.

use basalt_sched::os::{OpenMode, Os};
use basalt_types::{Epoch, Lsn};
use basalt_wal::{Error, Log, LogConfig, replay};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const PAYLOAD: [u8; 200] = [7; 200];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().ok_or("which directory?")?;
    let seconds: u64 = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let (dir, os, duration) = (Path::new(&dir), Os::real(), Duration::from_secs(seconds));
    os.fs.create_dir_all(dir)?;
    raw_syncs(&os, dir, duration)?;
    let mut start = Lsn(0);
    let log_dir = dir.join("log");
    for (epoch, clients) in [1, 2, 8, 64, 256].into_iter().enumerate() {
        let config = LogConfig::new(log_dir.clone());
        let log = Log::open(os.clone(), config, Epoch(epoch as u32 + 1), start, Box::new(|_| {}))?;
        committers(&os, &log, clients, duration)?;
        log.close()?;
        start = log.durable();
    }
    let log = Log::open(os.clone(), LogConfig::new(log_dir.clone()), Epoch(100), start, Box::new(|_| {}))?;
    bulk(&os, &log)?;
    log.close()?;
    scan(&os, &log_dir)?;
    Ok(())
}

/// Writes and syncs pages with nothing in between: first into merely allocated space, then over old bytes.
fn raw_syncs(os: &Os, dir: &Path, duration: Duration) -> Result<(), Box<dyn std::error::Error>> {
    let file = os.fs.open(&dir.join("raw"), OpenMode::CreateNew)?;
    file.allocate(64 << 20)?;
    file.sync()?;
    for space in ["allocated", "overwritten"] {
        let begin = os.clock.monotonic();
        let mut count = 0;
        while os.clock.monotonic() - begin < duration && count < 16_384 {
            file.write_at(&[1; 4096], count * 4096)?;
            file.sync()?;
            count += 1;
        }
        println!("raw write + sync, {space} space: {:>8.0}/s", rate(os, begin, count));
    }
    Ok(())
}

fn committers(os: &Os, log: &Log, clients: usize, duration: Duration) -> Result<(), Error> {
    let count = AtomicU64::new(0);
    let begin = os.clock.monotonic();
    let commit_all = || -> Result<(), Error> {
        while os.clock.monotonic() - begin < duration {
            let appended = log.append(&[&PAYLOAD])?;
            log.wait_durable_blocking(appended.end)?;
            count.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..clients).map(|_| scope.spawn(commit_all)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a client does not panic"))
    })?;
    let stats = log.stats();
    println!(
        "{clients:>4} clients: {:>8.0} commits/s, {:>6.0} syncs/s, {:>5.1} commits per sync, gathered before {:.0} %",
        rate(os, begin, count.load(Ordering::Relaxed)),
        rate(os, begin, stats.syncs),
        stats.average_group,
        100.0 * stats.gathers as f64 / stats.syncs.max(1) as f64,
    );
    Ok(())
}

fn bulk(os: &Os, log: &Log) -> Result<(), Error> {
    let begin = os.clock.monotonic();
    let records = 2_000_000;
    let mut append = Duration::ZERO;
    for i in 0..records {
        if i % 1000 == 0 {
            let before = os.clock.monotonic();
            while log.end().0 - log.durable().0 > 32 << 20 {
                os.clock.sleep(Duration::from_micros(200));
            }
            append += os.clock.monotonic() - before;
        }
        log.append(&[&PAYLOAD])?;
    }
    let waited = append;
    let appending = os.clock.monotonic() - begin - waited;
    log.wait_durable_blocking(log.end())?;
    let all = os.clock.monotonic() - begin;
    println!(
        "bulk: {:.0} ns per append of {} bytes; {:.0} MB/s durable",
        appending.as_nanos() as f64 / records as f64,
        PAYLOAD.len(),
        (records * PAYLOAD.len()) as f64 / all.as_secs_f64() / 1e6,
    );
    Ok(())
}

fn scan(os: &Os, log_dir: &Path) -> Result<(), Error> {
    let begin = os.clock.monotonic();
    let end = replay(os, log_dir, Lsn(0), &mut |_| {}, &mut |_, _| Ok::<(), Error>(()))?;
    let seconds = (os.clock.monotonic() - begin).as_secs_f64();
    println!("replay: {} records, {:.0} MB/s", end.records, end.end.0 as f64 / seconds / 1e6);
    Ok(())
}

fn rate(os: &Os, begin: Duration, count: u64) -> f64 {
    count as f64 / (os.clock.monotonic() - begin).as_secs_f64()
}
