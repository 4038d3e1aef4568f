//! Execution: plans run on their own runtime, batches come back through a bounded channel.
//!
//! Reactor threads only receive. A statement ends early by dropping its [`BatchStream`]: the task is
//! aborted at its next await, and every operator, which looks at the flag between batches, ends within
//! milliseconds.

mod admission;
mod outlet;
pub(crate) mod stats;

pub(crate) use outlet::Outlet;

use crate::column::{Ended, column_pipelines};
use crate::error::{Result, SqlError};
use crate::explain::Step;
use crate::lower::{
    Applier, Lowerer, Lowering, NodePlanner, SharedOwner, SharedTables, begin, first_row_is_safe, in_order, in_turn,
    loses_order, may_fail_as_join, session, settle_limits, stoppable, take_turns,
};
use crate::plan::Query;
use crate::system::SystemContext;
use admission::Admitted;
use arrow_array::RecordBatch;
use basalt_engine::ReadContext;
use basalt_exec::Stop;
use basalt_exec::spill::TempSpace;
use basalt_expr::context::EvalContext;
use basalt_expr::resolve::decimal::TOO_WIDE;
use basalt_sched::{FileSystem, fair, threads};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use futures::{StreamExt, TryStreamExt};
use stats::{NotedPool, RunStats};
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Batches that may wait for a slow receiver.
const BATCHES_AHEAD_MAX: usize = 4;
/// Rows of a batch that leaves.
pub(crate) const BATCH_ROWS_MAX: usize = 8192;

/// Of a query thread: passes over plans descend by recursion, a thousand levels and more. What is not used takes no memory.
const STACK_BYTES: usize = 64 << 20;

/// After how many tasks a thread looks at those that have yielded, and at timers: with 61, as it is by default, whoever
/// yields would be back after 61 steps of others, a tenth of a second, and nobody could know that it has something to do.
const EVENT_INTERVAL: u32 = 1;

/// Limits of the query runtime.
#[derive(Clone, Debug)]
pub struct RuntimeConfig {
    /// Threads that run plans, and parts that a scan is read in.
    pub workers: usize,
    /// What operators of all running queries may hold together before they spill or fail.
    pub memory_bytes_max: u64,
    /// What they may have on disk together.
    pub temp_bytes_max: u64,
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
    /// Set to end the execution: every operator looks at it between batches.
    pub stop: Stop,
    /// WITH queries that run, and working tables.
    pub shared: Arc<SharedTables>,
    /// Whether constants stand for the values of an outer row: their errors belong to rows that are reached.
    pub inner: bool,
    /// Whether the plan is told, and not run.
    pub described: bool,
    /// Of the statement.
    pub stats: Arc<RunStats>,
    /// Whose turns those are that compute for it.
    pub turns: Arc<fair::Statement>,
}

impl RunContext {
    pub fn new(read: ReadContext, eval: Arc<EvalContext>, system: Arc<SystemContext>) -> RunContext {
        let (stop, shared, stats) = (Stop::default(), Arc::default(), Arc::default());
        let turns = system.db.query_groups().statement(&system.settings.effective().query_group);
        RunContext { read, eval, system, stop, shared, inner: false, described: false, stats, turns }
    }
}

/// Threads, memory pool and spill directory of all queries. One per database.
pub struct QueryRuntime {
    config: RuntimeConfig,
    state: SessionState,
    /// For plans that do not come about with the first.
    forgetful: SessionState,
    /// What the column engine spills.
    temp: Arc<TempSpace>,
    handle: Handle,
    /// Dropped in the background: a runtime must not be shut down inside another.
    threads: Option<Runtime>,
}

impl Drop for QueryRuntime {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            threads.shutdown_background();
        }
    }
}

/// What a thread of the query runtime does first. As many workers as processors keep to one each: left to the kernel, two
/// that are woken at once often share a processor for a few milliseconds beside an idle one.
fn placement(workers: usize, started: std::sync::mpsc::Sender<()>) -> impl Fn() + Send + Sync + 'static {
    let next = AtomicUsize::new(0);
    move || {
        let own = next.fetch_add(1, Ordering::Relaxed);
        let cpus = threads::cpus().unwrap_or_default();
        let kept = if workers == cpus.len() { cpus.get(own) } else { None };
        match kept.map(|cpu| threads::keep_to(&[*cpu])) {
            Some(Ok(())) => {}
            Some(Err(error)) => tracing::debug!("a query thread runs anywhere: {error}"),
            None => threads::keep_nowhere(),
        }
        // After the workers nobody listens.
        let _ = started.send(());
    }
}

impl QueryRuntime {
    /// 58030 if its threads or its directory cannot be had.
    pub fn new(config: RuntimeConfig, fs: Arc<dyn FileSystem>) -> Result<Arc<QueryRuntime>> {
        let temp = TempSpace::open(fs, &config.temp_dir, config.temp_bytes_max).map_err(|error| {
            SqlError::new("58030", format!("cannot use directory {}: {error}", config.temp_dir.display()))
        })?;
        let workers = config.workers.max(1);
        let (started, starts) = std::sync::mpsc::channel();
        let threads = Builder::new_multi_thread()
            .worker_threads(workers)
            .thread_name("basalt-query")
            .thread_stack_size(STACK_BYTES)
            .event_interval(EVENT_INTERVAL)
            .on_thread_start(placement(workers, started))
            .enable_all()
            .build()
            .map_err(|error| SqlError::new("58030", format!("cannot start query threads: {error}")))?;
        // Threads beside the workers come later: these are known by being the first.
        starts.iter().take(workers).for_each(drop);
        take_turns();
        let state = session::state(&config)?;
        let forgetful = session::forgetful(&state);
        let (handle, threads) = (threads.handle().clone(), Some(threads));
        Ok(Arc::new(QueryRuntime { config, state, forgetful, temp, handle, threads }))
    }

    pub fn config(&self) -> &RuntimeConfig {
        &self.config
    }

    pub(crate) fn temp(&self) -> &Arc<TempSpace> {
        &self.temp
    }

    /// Where batches are parsed and written, beside the plans.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Starts a query when its group admits it. Planning errors come with the first `next`, too, and so does 53400 if too
    /// many queries of its group wait already.
    pub fn run(self: &Arc<Self>, query: Arc<Query>, ctx: RunContext) -> BatchStream {
        let admitted = match Admitted::ask(&query, &ctx) {
            Ok(admitted) => admitted,
            Err(error) => return BatchStream::ready(Err(error)),
        };
        let (sender, receiver) = mpsc::channel(BATCHES_AHEAD_MAX);
        let stop = ctx.stop.clone();
        let runtime = self.clone();
        let task = self.handle.spawn(async move {
            admitted.granted(&ctx).await;
            let outlet = Outlet::of_admitted(sender, &ctx.turns);
            if let Err(error) = runtime.feed(&query, &ctx, &outlet).await {
                // A receiver that is gone has no use for the error.
                let _ = outlet.send(Err(error)).await;
            }
            Ok(())
        });
        BatchStream { receiver, feeder: Some(Running { task, stop }) }
    }

    async fn feed(self: &Arc<Self>, query: &Query, ctx: &RunContext, outlet: &Outlet) -> Result<()> {
        let clock = ctx.system.db.os().clock.clone();
        let began = clock.monotonic();
        let execution = column_pipelines(query, ctx).ok().map(|pipelines| self.column_execution(&pipelines, ctx));
        ctx.stats.add_planning(clock.monotonic().saturating_sub(began));
        if let Some(mut execution) = execution {
            let ended = self.run_columns(&mut execution, outlet, &ctx.turns).await;
            ctx.stats.add_bytes_read(execution.bytes_read());
            ctx.stats.add_bytes_spilled(execution.spilled_bytes());
            ctx.stats.ran_on(true);
            if !matches!(ended?, Ended::Elsewhere(_)) {
                return Ok(());
            }
        }
        ctx.stats.ran_on(false);
        let _owner = SharedOwner(ctx.shared.clone());
        let (first, mut batches) = self.start(query, ctx, true).await?;
        let mut next = first;
        while let Some(batch) = next {
            for start in (0..batch.num_rows()).step_by(BATCH_ROWS_MAX) {
                let rows = BATCH_ROWS_MAX.min(batch.num_rows() - start);
                if !outlet.send(Ok(batch.slice(start, rows))).await {
                    return Ok(());
                }
            }
            next = batches.next().await.transpose()?;
        }
        Ok(())
    }

    /// The first batch and those that follow. A query that fails before its first row, and would not have failed if it
    /// had been planned with more care, starts again.
    async fn start(
        self: &Arc<Self>,
        query: &Query,
        ctx: &RunContext,
        narrow: bool,
    ) -> Result<(Option<RecordBatch>, SendableRecordBatchStream)> {
        let mut how = Lowering { narrow, ..Lowering::default() };
        loop {
            let clock = &ctx.system.db.os().clock;
            let began = clock.monotonic();
            let plan = self.prepare_with(query, ctx, how).await?;
            ctx.stats.add_planning(clock.monotonic().saturating_sub(began));
            let mut batches = begin(plan, self, ctx).await?;
            let failed = match batches.next().await.transpose().map_err(SqlError::from) {
                Ok(first) => return Ok((first, batches)),
                Err(error) => error,
            };
            drop(batches);
            if failed.sqlstate == TOO_WIDE && how.narrow {
                how.narrow = false;
            } else if failed.sqlstate.starts_with("22") && !how.careful && may_fail_as_join(query) {
                how.careful = true;
            } else {
                return Err(failed);
            }
            ctx.shared.clear();
        }
    }

    /// Lowers, optimizes and plans. A correlated subquery that the optimizer could not turn into a join is
    /// lowered again to run row by row. With `narrow` the plan may end in [`TOO_WIDE`] before its first row.
    pub(crate) async fn prepare(
        self: &Arc<Self>,
        query: &Query,
        ctx: &RunContext,
        narrow: bool,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.prepare_with(query, ctx, Lowering { narrow, ..Lowering::default() }).await
    }

    async fn prepare_with(
        self: &Arc<Self>,
        query: &Query,
        ctx: &RunContext,
        how: Lowering,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let settled = settle_limits(self, query, ctx).await?;
        let query = settled.as_ref().unwrap_or(query);
        let plan = self.prepare_either(query, ctx, how).await?;
        match how.narrow && !first_row_is_safe(&plan) {
            true => self.prepare_either(query, ctx, Lowering { narrow: false, ..how }).await,
            false => Ok(plan),
        }
    }

    async fn prepare_either(
        self: &Arc<Self>,
        query: &Query,
        ctx: &RunContext,
        how: Lowering,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let correlated = Lowerer::is_correlated(query);
        if !correlated {
            return self.prepare_as(query, ctx, how).await;
        }
        match self.prepare_as(query, ctx, how).await {
            Ok(plan) => Ok(plan),
            Err(_) => self.prepare_as(query, ctx, Lowering { nested_loops: true, ..how }).await,
        }
    }

    async fn prepare_as(
        self: &Arc<Self>,
        query: &Query,
        ctx: &RunContext,
        how: Lowering,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let lowered = Lowerer::new(query, ctx, Applier::new(self), how).lower();
        let logical = lowered.map_err(|error| match ctx.inner || error.is_of_resources() {
            true => error,
            false => query.first_fault(&ctx.eval).unwrap_or(error),
        })?;
        let optimized = self.state.optimize(&logical)?;
        if !how.nested_loops && has_outer_references(&optimized)? {
            return Err(SqlError::not_supported("this correlated subquery has no plan without loops"));
        }
        let optimized = in_order(optimized)?;
        let planner = DefaultPhysicalPlanner::with_extension_planners(vec![Arc::new(NodePlanner)]);
        let plan = match planner.create_physical_plan(&optimized, &self.state).await {
            Err(error) if loses_order(&error) => planner.create_physical_plan(&optimized, &self.forgetful).await?,
            planned => planned?,
        };
        Ok(stoppable(in_turn(plan)?, &ctx.stop, &ctx.turns)?)
    }

    /// For rows that are held beside the operators of plans: an empty part of the same memory.
    pub(crate) fn reservation(&self, what: &str) -> MemoryReservation {
        MemoryConsumer::new(what).register(&self.state.runtime_env().memory_pool)
    }

    /// The queries' memory; what is taken of it is noted with the statement.
    pub(crate) fn memory_pool(&self, ctx: &RunContext) -> Arc<dyn MemoryPool> {
        let all = self.state.runtime_env().memory_pool.clone();
        Arc::new(NotedPool::new(all, ctx.stats.clone()))
    }

    /// What operators of a plan run with.
    pub(crate) fn task_ctx(&self, ctx: &RunContext) -> Arc<TaskContext> {
        let memory_pool = self.memory_pool(ctx);
        let env = RuntimeEnv { memory_pool, ..RuntimeEnv::clone(self.state.runtime_env()) };
        Arc::new(TaskContext::from(&self.state).with_runtime(Arc::new(env)))
    }

    /// Runs a query to its end on this thread, which belongs to the runtime already.
    pub(crate) fn run_inline(self: &Arc<Self>, query: &Query, ctx: &RunContext) -> Result<Vec<RecordBatch>> {
        let collect = async {
            let (first, rest) = self.start(query, ctx, false).await?;
            let mut batches: Vec<RecordBatch> = first.into_iter().collect();
            batches.extend(rest.try_collect::<Vec<RecordBatch>>().await?);
            Ok(batches)
        };
        fair::pause(|| tokio::task::block_in_place(|| self.handle.block_on(collect)))
    }

    /// The steps of EXPLAIN; with `analyze` the query is run, and rows and times are told.
    pub async fn explain(
        self: &Arc<Self>,
        query: Arc<Query>,
        ctx: RunContext,
        analyze: bool,
    ) -> Result<(Vec<Step>, usize)> {
        let runtime = self.clone();
        let stop = ctx.stop.clone();
        let admitted = if analyze { Some(Admitted::ask(&query, &ctx)?) } else { None };
        let work = async move {
            if let Some(admitted) = &admitted {
                admitted.granted(&ctx).await;
            }
            let _owner = SharedOwner(ctx.shared.clone());
            let ctx = RunContext { described: !analyze, ..ctx };
            crate::explain::explain(&runtime, &query, &ctx, analyze).await
        };
        Running { task: self.handle.spawn(work), stop }.wait().await
    }

    /// Runs `work` beside the plans.
    pub(crate) fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Running<T> {
        Running { task: self.handle.spawn(work), stop: Stop::default() }
    }

    /// Runs `work` on a thread that may wait for the disk. `stop` is set when nobody waits for it any more.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        stop: Stop,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Running<T> {
        Running { task: self.handle.spawn_blocking(work), stop }
    }
}

fn has_outer_references(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                found |= matches!(part, DfExpr::OuterReferenceColumn(..) | DfExpr::Exists(_) | DfExpr::InSubquery(_));
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}

/// A task of a statement, which ends when nobody waits for it any more.
pub(crate) struct Running<T> {
    task: JoinHandle<T>,
    stop: Stop,
}

impl<T> Running<Result<T>> {
    pub async fn wait(mut self) -> Result<T> {
        self.ended().await
    }

    /// May be dropped before it is ready; not to be called again after.
    async fn ended(&mut self) -> Result<T> {
        (&mut self.task).await.unwrap_or_else(|error| Err(SqlError::internal(format!("a task ended: {error}"))))
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.stop.set();
        self.task.abort();
    }
}

/// Batches of a running query: one array per output column, in `DataType::to_arrow` form.
pub struct BatchStream {
    receiver: mpsc::Receiver<Result<RecordBatch>>,
    /// `None` once it has ended and that was seen to be well.
    feeder: Option<Running<Result<()>>>,
}

impl BatchStream {
    /// Of what is at hand.
    pub fn ready(batches: Result<Vec<RecordBatch>>) -> BatchStream {
        let batches: Vec<Result<RecordBatch>> = match batches {
            Ok(batches) => batches.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error)],
        };
        let (sender, receiver) = mpsc::channel(batches.len().max(1));
        // There is room for all, and the receiver is here.
        batches.into_iter().for_each(|batch| drop(sender.try_send(batch)));
        BatchStream { receiver, feeder: None }
    }

    /// At most 8,192 rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(batch) = self.receiver.recv().await {
            return batch.map(Some);
        }
        // A feeder that broke down closes its channel, too: what it gave is not all.
        if let Some(feeder) = &mut self.feeder {
            feeder.ended().await?;
            self.feeder = None;
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
