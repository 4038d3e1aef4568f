//! Runs the pipelines of an execution on the query runtime's threads, one after the other.

use super::Refusal;
use crate::error::{Result, SqlError};
use crate::run::{BATCH_ROWS_MAX, Outlet, QueryRuntime, RunContext};
use crate::statement::rows::record_batch;
use arrow_array::{ArrayRef, RecordBatch};
use basalt_exec::Error;
use basalt_exec::memory::Memory;
use basalt_exec::pipeline::{Execution, Pipelines, Progress, Running, Surroundings, Worker};
use basalt_sched::fair::{Statement, Turn};
use basalt_types::batch::bytes_of;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The part of the queries' memory that one execution holds.
struct QueriesMemory {
    pool: Arc<dyn MemoryPool>,
    bytes_max: usize,
    held: MemoryReservation,
}

impl Memory for QueriesMemory {
    fn grow(&self, bytes: usize) -> bool {
        // The pool shares out what there is among those who can spill, but does not ask whether it is still there.
        self.pool.reserved().saturating_add(bytes) <= self.bytes_max && self.held.try_grow(bytes).is_ok()
    }

    fn shrink(&self, bytes: usize) {
        self.held.shrink(bytes);
    }
}

/// A thread keeps what it spawned last to itself, and wakes no other for it: with one behind them, tasks are where others
/// find them, at once.
fn wake_others(handle: &tokio::runtime::Handle) {
    handle.spawn(std::future::ready(()));
}

/// How an execution came to its end.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Well,
    /// Nobody takes its rows any more.
    Unheard,
    /// Another engine has to run the query, for this reason: nothing has left.
    Elsewhere(Refusal),
}

impl QueryRuntime {
    pub(crate) fn column_execution(&self, pipelines: &Pipelines, ctx: &RunContext) -> Execution {
        let pool = self.memory_pool(ctx);
        let held = MemoryConsumer::new("column engine").with_can_spill(true).register(&pool);
        let bytes_max = usize::try_from(self.config().memory_bytes_max).unwrap_or(usize::MAX);
        let around = Surroundings {
            read: ctx.read.clone(),
            ctx: ctx.eval.clone(),
            stop: ctx.stop.clone(),
            clock: ctx.system.db.os().clock.clone(),
            memory: Arc::new(QueriesMemory { pool, bytes_max, held }),
            temp: self.temp().clone(),
        };
        Execution::of(pipelines, around)
    }

    /// Runs an execution to its end.
    pub(crate) async fn run_columns(
        &self,
        execution: &mut Execution,
        outlet: &Outlet,
        turns: &Arc<Statement>,
    ) -> Result<Ended> {
        let left = Arc::new(AtomicBool::new(false));
        let way = Way::Out { outlet: outlet.clone(), left: left.clone() };
        match self.pipelines(execution, &way, turns).await {
            Ok(ended) => Ok(ended),
            Err(Failed::Engine(error @ (Error::Expr(_) | Error::Beyond(_)))) if !left.load(Ordering::Relaxed) => {
                tracing::debug!("the column engine leaves a query to the fallback: {error}");
                Ok(Ended::Elsewhere(error.to_string().into()))
            }
            Err(Failed::Engine(error)) => Err(error.into()),
            Err(Failed::Task(error)) => Err(error),
        }
    }

    async fn pipelines(
        &self,
        execution: &mut Execution,
        way: &Way,
        turns: &Arc<Statement>,
    ) -> std::result::Result<Ended, Failed> {
        while let Some(mut running) = execution.start()? {
            if running.may_fail_late() {
                let kept = Arc::new(Kept::default());
                self.workers(&running, &Way::Kept(kept.clone()), turns).await?;
                if let Some(batches) = kept.take() {
                    self.finish(execution, &running, turns).await?;
                    // A recursion goes on.
                    match way.send_all(batches).await? {
                        Ended::Well => continue,
                        ended => return Ok(ended),
                    }
                }
                // All went well, but is too much to be kept: once more.
                match execution.start()? {
                    Some(again) => running = again,
                    None => return Ok(Ended::Well),
                }
            }
            match self.workers(&running, way, turns).await? {
                Ended::Well => self.finish(execution, &running, turns).await?,
                ended => return Ok(ended),
            }
        }
        Ok(Ended::Well)
    }

    /// Takes over what a pipeline made. Where there are jobs in it, other threads help, each when it is its turn.
    async fn finish(
        &self,
        execution: &mut Execution,
        running: &Arc<Running>,
        turns: &Arc<Statement>,
    ) -> std::result::Result<(), Failed> {
        while !turns.turn().take(|| execution.finish(running)).await? {
            let mut others = JoinSet::new();
            for _ in 1..self.config().workers {
                others.spawn_on(help(running.clone(), turns.turn()), self.handle());
            }
            wake_others(self.handle());
            help(running.clone(), turns.turn()).await?;
            // Nobody waits for his turn to find that there is nothing to do; who has a job goes through with it.
            others.abort_all();
            while let Some(ended) = others.join_next().await {
                match ended {
                    Err(error) if error.is_cancelled() => {}
                    ended => ended.map_err(|error| SqlError::internal(format!("a helper ended: {error}")))??,
                }
            }
        }
        Ok(())
    }

    /// All workers of a pipeline to their ends.
    async fn workers(
        &self,
        running: &Arc<Running>,
        way: &Way,
        turns: &Arc<Statement>,
    ) -> std::result::Result<Ended, Failed> {
        // Dropped, they end.
        let mut workers = JoinSet::new();
        for _ in 1..running.parallelism(self.config().workers) {
            workers.spawn_on(work(running.worker(), running.clone(), way.clone(), turns.turn()), self.handle());
        }
        if !workers.is_empty() {
            wake_others(self.handle());
        }
        // One of them is this task: a pipeline with little to do wakes nobody.
        match work(running.worker(), running.clone(), way.clone(), turns.turn()).await? {
            Ended::Well => {}
            ended => return Ok(ended),
        }
        while let Some(ended) = workers.join_next().await {
            match ended.map_err(|error| SqlError::internal(format!("a worker ended: {error}")))?? {
                Ended::Well => {}
                ended => return Ok(ended),
            }
        }
        Ok(Ended::Well)
    }

    /// Runs an execution for what it tells of itself, and counts its rows; or why another engine has to run the query.
    pub(crate) async fn analyze_columns(
        &self,
        execution: &mut Execution,
        turns: &Arc<Statement>,
    ) -> Result<std::result::Result<usize, Refusal>> {
        let (sender, mut receiver) = mpsc::channel::<Result<RecordBatch>>(1);
        let count = async move {
            let mut rows = 0;
            while let Some(batch) = receiver.recv().await {
                rows += batch.map_or(0, |batch| batch.num_rows());
            }
            rows
        };
        let run = async {
            let outlet = Outlet::to_own_task(sender);
            self.run_columns(execution, &outlet, turns).await
        };
        let (ended, rows) = tokio::join!(run, count);
        Ok(match ended? {
            Ended::Elsewhere(refusal) => Err(refusal),
            Ended::Well | Ended::Unheard => Ok(rows),
        })
    }
}

enum Failed {
    Engine(Error),
    Task(SqlError),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Engine(error)
    }
}

impl From<SqlError> for Failed {
    fn from(error: SqlError) -> Failed {
        Failed::Task(error)
    }
}

/// Columns and rows of one batch that leaves.
type Leaving = (Vec<ArrayRef>, usize);

/// Where rows go that leave a pipeline.
#[derive(Clone)]
enum Way {
    Out {
        outlet: Outlet,
        /// Whether rows have left.
        left: Arc<AtomicBool>,
    },
    /// What may still fail: rows leave once all are known to be well.
    Kept(Arc<Kept>),
}

/// Bytes of rows that are kept until all are known to be well.
const KEPT_BYTES_MAX: usize = 32 << 20;

/// Batches, or nothing more if they have become too many.
#[derive(Default)]
struct Kept(Mutex<(Vec<Leaving>, usize, bool)>);

impl Kept {
    fn push(&self, batch: Leaving, running: &Running) {
        let mut kept = self.0.lock();
        let (batches, bytes, too_many) = &mut *kept;
        let more = bytes_of(&batch.0);
        *too_many |= *bytes + more > KEPT_BYTES_MAX || !*too_many && !running.may_hold(more);
        match too_many {
            true => batches.clear(),
            false => {
                *bytes += more;
                batches.push(batch);
            }
        }
    }

    /// `None`: they were too many.
    fn take(&self) -> Option<Vec<Leaving>> {
        let (batches, _, too_many) = std::mem::take(&mut *self.0.lock());
        (!too_many).then_some(batches)
    }
}

impl Way {
    async fn send_all(&self, batches: Vec<Leaving>) -> std::result::Result<Ended, Failed> {
        let Way::Out { outlet, left } = self else { return Ok(Ended::Well) };
        for (columns, rows) in batches {
            if !send(outlet, left, columns, rows).await {
                return Ok(Ended::Unheard);
            }
        }
        Ok(Ended::Well)
    }
}

/// Whether somebody takes the rows.
async fn send(outlet: &Outlet, left: &AtomicBool, columns: Vec<ArrayRef>, rows: usize) -> bool {
    left.store(true, Ordering::Relaxed);
    for from in (0..rows).step_by(BATCH_ROWS_MAX) {
        let count = BATCH_ROWS_MAX.min(rows - from);
        let part = columns.iter().map(|column| column.slice(from, count)).collect();
        if !outlet.send(record_batch(part, count)).await {
            return false;
        }
    }
    true
}

/// Does jobs of what a pipeline made as long as there are any.
async fn help(running: Arc<Running>, mut turn: Turn) -> std::result::Result<(), Failed> {
    loop {
        turn.ready().await;
        if !turn.compute(|| running.help())? {
            return Ok(());
        }
        tokio::task::yield_now().await;
    }
}

/// One worker to its end; others get their turn between its steps, and while it waits for whoever takes its rows.
async fn work(
    mut worker: Worker,
    running: Arc<Running>,
    way: Way,
    mut turn: Turn,
) -> std::result::Result<Ended, Failed> {
    loop {
        turn.ready().await;
        match turn.compute(|| worker.steps())? {
            Progress::Done => return Ok(Ended::Well),
            Progress::More(None) => {}
            Progress::More(Some((columns, rows))) => match &way {
                Way::Out { outlet, left } => {
                    turn.rest();
                    if !send(outlet, left, columns, rows).await {
                        return Ok(Ended::Unheard);
                    }
                }
                Way::Kept(kept) => kept.push((columns, rows), &running),
            },
        }
        tokio::task::yield_now().await;
    }
}
