//! DataFusion's session: which of its parts are in use, with which limits.

use super::common::GuardedCommon;
use super::equivalences::HideEquivalences;
use super::pool::Pool;
use super::push_down::GuardedPushDown;
use crate::error::{Result, SqlError};
use crate::run::RuntimeConfig;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::optimizer::{Optimizer, OptimizerRule};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::prelude::SessionConfig;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

/// Of the queries' memory a sort sets aside one part in so many, for merging what it has written.
const MERGES: usize = 64;

/// One state for all queries: configuration, optimizer rules, memory pool and spill directory.
pub fn state(config: &RuntimeConfig) -> Result<SessionState> {
    remove_left_files(&config.temp_dir)
        .map_err(|error| SqlError::new("58030", format!("cannot clear {}: {error}", config.temp_dir.display())))?;
    let bytes_max = usize::try_from(config.memory_bytes_max).unwrap_or(usize::MAX);
    let pool = Pool::new(bytes_max);
    let disk = DiskManagerBuilder::default()
        .with_mode(DiskManagerMode::Directories(vec![config.temp_dir.clone()]))
        .with_max_temp_directory_size(config.temp_bytes_max);
    let runtime = RuntimeEnvBuilder::new()
        .with_memory_pool(Arc::new(pool))
        .with_disk_manager_builder(disk)
        .build_arc()
        .map_err(|error| SqlError::new("58030", format!("cannot start the query runtime: {error}")))?;
    let mut options = SessionConfig::new().with_target_partitions(config.workers.max(1)).with_batch_size(8192);
    // Each sort takes it at once, on each worker.
    let for_merges = &mut options.options_mut().execution.sort_spill_reservation_bytes;
    *for_merges = (*for_merges).min(bytes_max / MERGES);
    options.options_mut().optimizer.enable_dynamic_filter_pushdown = false;
    options.options_mut().optimizer.max_passes = 3;
    // Rows of one source stay in its order; tables are read by several workers anyway.
    options.options_mut().optimizer.enable_round_robin_repartition = false;
    // A projection is computed on the rows that its filter lets through. This rule would compute it below the
    // filter, where an expression meets rows that the query excludes (`SELECT a / b … WHERE b <> 0`).
    let mut rules = PhysicalOptimizer::new().rules;
    // Filters are in their places and checked in their order ([`super::conditions`]): they are not to be put together.
    rules.retain(|rule| rule.name() != "ProjectionPushdown" && !rule.name().starts_with("FilterPushdown"));
    // Sides of joins are settled by then, orders are not.
    let settled = rules.iter().position(|rule| rule.name() == "JoinSelection" || rule.name() == "join_selection");
    let settled = settled.ok_or_else(|| SqlError::internal("there is no rule that chooses the sides of joins"))?;
    rules.insert(settled + 1, Arc::new(HideEquivalences { all: false }));
    rules.push(Arc::new(super::whole::WholeBatches));
    let filters: Arc<dyn OptimizerRule + Send + Sync> = Arc::new(GuardedPushDown::new());
    let logical = Optimizer::new().rules.into_iter();
    let logical = logical.map(|rule| match rule.name() {
        GuardedPushDown::NAME => filters.clone(),
        GuardedCommon::NAME => Arc::new(GuardedCommon::new()),
        _ => rule,
    });
    // Types are settled by the binder: no analyzer rule may change them.
    Ok(SessionStateBuilder::new()
        .with_config(options)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_analyzer_rules(Vec::new())
        .with_optimizer_rules(logical.collect())
        .with_physical_optimizer_rules(rules)
        .build())
}

/// The same state for plans that DataFusion cannot make with what it knows of columns.
pub fn forgetful(state: &SessionState) -> SessionState {
    let rules = state.physical_optimizers().iter().map(|rule| match rule.name() == HideEquivalences::NAME {
        true => Arc::new(HideEquivalences { all: true }),
        false => rule.clone(),
    });
    let rules = rules.collect();
    SessionStateBuilder::new_from_existing(state.clone()).with_physical_optimizer_rules(rules).build()
}

/// Removes what DataFusion's operators had written when an earlier process ended without notice.
fn remove_left_files(dir: &Path) -> std::io::Result<()> {
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b"datafusion-") && entry.file_type()?.is_dir() {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
