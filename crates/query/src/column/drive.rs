//! Runs the pipelines of an execution on the query runtime's threads, one after the other.

use super::Refusal;
use crate::error::{Result, SqlError};
use crate::run::{QueryRuntime, RunContext};
use crate::statement::rows::record_batch;
use arrow_array::RecordBatch;
use basalt_exec::pipeline::{Execution, Progress, Running, Surroundings, Worker};
use basalt_exec::{Error, plan};
use datafusion::execution::memory_pool::MemoryConsumer;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How an execution came to its end.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Well,
    /// Nobody takes its rows any more.
    Unheard,
    /// Another engine has to run the query, for this reason: nothing has left.
    Elsewhere(Refusal),
}

/// Whom the rows go to.
pub(crate) type Receiver = mpsc::Sender<Result<RecordBatch>>;

impl QueryRuntime {
    /// `None` if the column engine cannot run the plan.
    pub(crate) fn column_execution(&self, plan: &plan::Plan, ctx: &RunContext) -> Option<Execution> {
        // Given back with the execution.
        let memory = MemoryConsumer::new("column engine").register(&self.memory_pool(ctx));
        let memory = Mutex::new(memory);
        let around = Surroundings {
            read: ctx.read.clone(),
            ctx: ctx.eval.clone(),
            stop: ctx.stop.clone(),
            clock: ctx.system.db.os().clock.clone(),
            room: Arc::new(move |bytes| memory.lock().try_grow(bytes).is_ok()),
        };
        Execution::new(plan, around)
    }

    /// Runs an execution to its end.
    pub(crate) async fn run_columns(&self, execution: &mut Execution, receiver: &Receiver) -> Result<Ended> {
        let way = Way { receiver: receiver.clone(), left: Arc::default() };
        match self.pipelines(execution, &way).await {
            Ok(ended) => Ok(ended),
            Err(Failed::Engine(error @ (Error::Expr(_) | Error::Beyond(_)))) if !way.left.load(Ordering::Relaxed) => {
                tracing::debug!("the column engine leaves a query to the fallback: {error}");
                Ok(Ended::Elsewhere(error.to_string().into()))
            }
            Err(Failed::Engine(error)) => Err(error.into()),
            Err(Failed::Task(error)) => Err(error),
        }
    }

    async fn pipelines(&self, execution: &mut Execution, way: &Way) -> std::result::Result<Ended, Failed> {
        while let Some(mut running) = execution.start()? {
            if running.computes_what_leaves() && !rehearse(&running, way).await? {
                // All went well, but is too much to be kept: once more.
                match execution.start()? {
                    Some(again) => running = again,
                    None => return Ok(Ended::Well),
                }
            }
            // Dropped, they end.
            let mut workers = JoinSet::new();
            for _ in 0..running.parallelism(self.config().workers) {
                workers.spawn_on(work(running.worker(), way.clone()), self.handle());
            }
            while let Some(ended) = workers.join_next().await {
                match ended.map_err(|error| SqlError::internal(format!("a worker ended: {error}")))?? {
                    Ended::Well => {}
                    ended => return Ok(ended),
                }
            }
            execution.finish(&running)?;
        }
        Ok(Ended::Well)
    }

    /// Runs an execution for what it tells of itself, and counts its rows; or why another engine has to run the query.
    pub(crate) async fn analyze_columns(
        &self,
        execution: &mut Execution,
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
            let ended = self.run_columns(execution, &sender).await;
            drop(sender);
            ended
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

/// The way out of an execution.
#[derive(Clone)]
struct Way {
    receiver: Receiver,
    /// Whether rows have left.
    left: Arc<AtomicBool>,
}

/// Batches that are kept until the last one is known to be well.
const KEPT_BATCHES_MAX: usize = 32;

/// Runs a pipeline whose rows leave without letting them, so that what fails fails before the first one has left; the
/// rows leave then, if they are few. Whether they have.
async fn rehearse(running: &Arc<Running>, way: &Way) -> std::result::Result<bool, Failed> {
    let mut worker = running.worker();
    let mut kept = Some(Vec::new());
    loop {
        match worker.step()? {
            Progress::Done => break,
            Progress::More(None) => {}
            Progress::More(Some(batch)) => match &mut kept {
                Some(batches) if batches.len() < KEPT_BATCHES_MAX => batches.push(batch),
                _ => kept = None,
            },
        }
        tokio::task::yield_now().await;
    }
    let Some(batches) = kept else { return Ok(false) };
    for (columns, rows) in batches {
        way.left.store(true, Ordering::Relaxed);
        if way.receiver.send(record_batch(columns, rows)).await.is_err() {
            break;
        }
    }
    Ok(true)
}

/// One worker to its end; others on this thread get their turn between its steps.
async fn work(mut worker: Worker, way: Way) -> std::result::Result<Ended, Failed> {
    loop {
        match worker.step()? {
            Progress::Done => return Ok(Ended::Well),
            Progress::More(None) => {}
            Progress::More(Some((columns, rows))) => {
                way.left.store(true, Ordering::Relaxed);
                if way.receiver.send(record_batch(columns, rows)).await.is_err() {
                    return Ok(Ended::Unheard);
                }
            }
        }
        tokio::task::yield_now().await;
    }
}
