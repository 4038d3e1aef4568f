//! Whose turn it is while a plan runs: the tasks that DataFusion's operators spawn take turns as a whole (`sched::fair`).
//!
//! A task has a slot for as long as it is polled, whatever it does then, and its gates ([`super::stop`]) give way when that
//! was long enough. What an operator spawns belongs to the statement that its thread computes for: so plans begin with a
//! slot, too.

use basalt_sched::fair::{self, Statement, TaskTurn, computes_for};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::BoxFuture;
use std::any::Any;
use std::future::poll_fn;
use std::sync::Arc;

/// The rows of a plan, which may be a part of what this thread computes already.
pub(crate) async fn begin(
    plan: Arc<dyn ExecutionPlan>,
    ctx: Arc<TaskContext>,
    turns: &Arc<Statement>,
) -> Result<SendableRecordBatchStream> {
    match fair::is_computing() {
        true => execute_stream(plan, ctx),
        false => turns.turn().take(|| execute_stream(plan, ctx)).await,
    }
}

/// For all plans of this process; to be called before the first one.
pub(crate) fn take_turns() {
    // Whoever set it before was another runtime of this process, with the same.
    let _ = set_join_set_tracer(&Tasks);
}

struct Tasks;

/// What a task gives, of any type.
type Given = Box<dyn Any + Send>;

impl JoinSetTracer for Tasks {
    fn trace_future(&self, mut task: BoxFuture<'static, Given>) -> BoxFuture<'static, Given> {
        let Some(statement) = computes_for() else { return task };
        let mut turn = TaskTurn::new(&statement);
        Box::pin(poll_fn(move |cx| turn.poll(cx, |cx| task.as_mut().poll(cx))))
    }

    /// Those read and write files of rows that were spilled, on threads that are not among those who compute.
    fn trace_block(&self, work: Box<dyn FnOnce() -> Given + Send>) -> Box<dyn FnOnce() -> Given + Send> {
        work
    }
}
