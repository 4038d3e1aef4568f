//! The engine on a simulated machine: against a model, under concurrency, through power cuts and faults.
//!
//! Seeds are printed. `BASALT_SEED` repeats one; `BASALT_MODEL_SECONDS` and `BASALT_TORTURE_CUTS` make the
//! runs longer than those of `make test`.

mod concurrent;
mod faults;
mod model;
mod sequences;
mod table;
mod torture;

use basalt_engine::{Engine, EngineConfig};
use basalt_sched::Os;
use basalt_sim::{seed, setting};
use std::sync::Arc;
use std::time::Duration;

/// Small limits, so that little data is frozen, merged, cut and checkpointed often.
fn small_config(dir: &str) -> EngineConfig {
    EngineConfig {
        memory_bytes_max: 256 << 20,
        cool_after: Duration::ZERO,
        freeze_rows_min: 16,
        bulk_rows_min: 24,
        segment_rows: 100,
        background: false,
        log_file_bytes: 64 << 10,
        checkpoint_log_bytes: 256 << 10,
        checkpoint_interval: Duration::from_secs(2),
        ..EngineConfig::new(dir)
    }
}

fn open(os: Os, config: EngineConfig) -> basalt_engine::Result<Arc<Engine>> {
    Engine::open(os, config, &|_| {})
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
