//! Death at named steps (`BASALT_FAILPOINT`): after a restart, what was acknowledged is there, once.

use anyhow::{Context, Result, ensure};
use basalt_it::servers::{Basalt, BasaltOptions};
use std::time::{Duration, Instant};

const PLACES: &[&str] = &[
    "commit-appended:40",
    "commit-durable:40",
    "bulk-registered:1",
    "freeze-file-durable:1",
    "freeze-appended:1",
    "compact-files-durable:1",
    "compact-appended:1",
    "checkpoint-file-durable:2",
    "checkpoint-root-durable:2",
    "checkpoint-log-cut:2",
];

/// Steps that only hot rows under memory pressure come to.
const PLACES_UNDER_PRESSURE: &[&str] = &["evict-file-durable:1", "evict-appended:1", "evict-appended:3"];

/// Steps at which files are written or change hands.
const PLACES_OF_FILES: &[&str] = &[
    "bulk-registered:1",
    "freeze-file-durable:1",
    "freeze-appended:1",
    "compact-files-durable:1",
    "compact-appended:1",
];

/// What is written until the server dies.
struct Load {
    orientation: &'static str,
    settings: &'static [&'static str],
    /// Bytes of filler in each row.
    width: usize,
    /// Whether everything is moved and checkpointed after each batch.
    tidies: bool,
}

const FILES: Load = Load { orientation: "column", settings: &["basalt.bulk_rows_min=1000"], width: 0, tidies: true };
const PAIRS: Load = Load { orientation: "row,column", ..FILES };
/// Batches of less than a 32nd of the memory, which stay hot.
const PRESSURE: Load = Load {
    orientation: "column",
    settings: &["basalt.memory_limit=64MB", "basalt.cool_after=1h"],
    width: 600,
    tidies: false,
};

#[test]
fn nothing_is_lost_at_any_named_step() -> Result<()> {
    let pressed = PLACES_UNDER_PRESSURE.iter().map(|place| (place, &PRESSURE));
    let paired = PLACES_OF_FILES.iter().map(|place| (place, &PAIRS));
    for (place, load) in PLACES.iter().map(|place| (place, &FILES)).chain(paired).chain(pressed) {
        die_at(place, load).with_context(|| format!("{place} ({})", load.orientation))?;
    }
    Ok(())
}

impl Load {
    fn options(&self) -> BasaltOptions {
        self.settings.iter().fold(BasaltOptions::default(), |options, setting| options.set(setting))
    }
}

fn die_at(place: &str, load: &Load) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (data, log) = (dir.path().join("data"), dir.path().join("log"));
    let mut armed = load.options();
    armed.env.push(("BASALT_FAILPOINT".into(), place.into()));
    let mut server = Basalt::start_on(&data, &log, armed)?;
    let mut wire = server.connect()?;
    let mut acknowledged: Vec<u32> = Vec::new();
    let mut in_flight: Vec<u32> = Vec::new();
    let mut next = 0;
    let outcome = (|| -> Result<()> {
        let orientation = load.orientation;
        wire.run(&format!("CREATE TABLE t (id int PRIMARY KEY, x text) WITH (orientation = '{orientation}')"))?;
        for _ in 0..30 {
            for _ in 0..3 {
                in_flight = vec![next];
                next += 1;
                wire.run(&format!("INSERT INTO t VALUES ({}, 'single')", in_flight[0]))?;
                acknowledged.append(&mut in_flight);
            }
            in_flight = (next..next + 3000).collect();
            next += 3000;
            let from = in_flight[0];
            wire.run(&format!(
                "INSERT INTO t SELECT g, 'bulk' || repeat('-', {}) FROM generate_series({from}, {}) g",
                load.width,
                next - 1
            ))?;
            acknowledged.append(&mut in_flight);
            if load.tidies {
                wire.run("VACUUM t")?;
                wire.run("VACUUM FULL t")?;
                wire.run("CHECKPOINT")?;
            }
        }
        Ok(())
    })();
    ensure!(outcome.is_err(), "it never came to this place");
    let until = Instant::now() + Duration::from_secs(10);
    while server.is_running() {
        ensure!(Instant::now() < until, "the statement failed and the server lives: {:#}", outcome.unwrap_err());
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(server);
    let server = Basalt::start_on(&data, &log, load.options())?;
    let mut wire = server.connect()?;
    if acknowledged.is_empty() && wire.simple("SELECT count(*) FROM t", None)?.sqlstate() == Some("42P01") {
        return Ok(());
    }
    let found = wire.run("SELECT id FROM t ORDER BY id")?;
    let found: Vec<u32> =
        (0..found.rows.len()).map(|row| found.text(row, 0).unwrap_or_default().parse()).collect::<Result<_, _>>()?;
    let whole: Vec<u32> = acknowledged.iter().chain(&in_flight).copied().collect();
    ensure!(
        found == acknowledged || found == whole,
        "{} rows found, {} acknowledged, {} in flight",
        found.len(),
        acknowledged.len(),
        in_flight.len()
    );
    Ok(())
}
