//! DataFusion's session: which of its parts are in use, with which limits.

use crate::error::{Result, SqlError};
use crate::run::RuntimeConfig;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;
use std::sync::Arc;

/// One state for all queries: configuration, optimizer rules, memory pool and spill directory.
pub fn state(config: &RuntimeConfig) -> Result<SessionState> {
    let pool = FairSpillPool::new(usize::try_from(config.memory_bytes_max).unwrap_or(usize::MAX));
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Directories(vec![config.temp_dir.clone()]));
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(disk)
        .build_arc()
        .map_err(|error| SqlError::new("58030", format!("cannot start the query runtime: {error}")))?;
    let mut options = SessionConfig::new().with_target_partitions(config.workers.max(1)).with_batch_size(8192);
    options.options_mut().optimizer.enable_dynamic_filter_pushdown = false;
    options.options_mut().optimizer.max_passes = 3;
    // Types are settled by the binder: no analyzer rule may change them.
    Ok(SessionStateBuilder::new()
        .with_config(options)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_analyzer_rules(Vec::new())
        .build())
}
