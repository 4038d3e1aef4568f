//! Whose turn it is while a plan runs: the tasks that DataFusion's operators spawn take turns as a whole (`sched::fair`).
//!
//! A task has a slot for as long as it is polled, whatever it does then (it writes what it spills), and its gates
//! ([`super::stop`]) give way when that was long enough. What an operator spawns belongs to the statement that its thread
//! computes for: so plans begin with a slot, too.

use crate::run::{QueryRuntime, RunContext};
use basalt_sched::fair::{self, TaskTurn, computes_for};
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::future::BoxFuture;
use std::any::Any;
use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use tokio::runtime::Handle;

/// The rows of a plan, which may be a part of what this thread computes already.
pub(crate) async fn begin(
    plan: Arc<dyn ExecutionPlan>,
    runtime: &QueryRuntime,
    ctx: &RunContext,
) -> Result<SendableRecordBatchStream> {
    let execute = || execute_stream(plan, runtime.task_ctx(ctx));
    match fair::is_computing() {
        true => execute(),
        false => ctx.turns.turn().take(execute).await,
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
        let (mut turn, mut seen) = (TaskTurn::new(&statement), Seen::default());
        Box::pin(poll_fn(move |cx| {
            let waker = seen.waker_of(cx.waker());
            turn.poll(&mut Context::from_waker(waker), |cx| task.as_mut().poll(cx))
        }))
    }

    /// On threads that are not among those who compute.
    fn trace_block(&self, work: Box<dyn FnOnce() -> Given + Send>) -> Box<dyn FnOnce() -> Given + Send> {
        work
    }
}

/// Wakes a task where an idle thread finds it. What a thread wakes last it keeps to itself until its own task is put aside,
/// which may take half a millisecond, unless something is behind it.
struct Found(Waker);

impl Wake for Found {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.wake_by_ref();
        if fair::is_computing()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(ready(()));
        }
    }
}

/// The waker that a task was polled with last, and that of its turn.
#[derive(Default)]
struct Seen(Option<(Waker, Waker)>);

impl Seen {
    fn waker_of(&mut self, task: &Waker) -> &Waker {
        let known = self.0.take().filter(|(known, _)| known.will_wake(task));
        &self.0.insert(known.unwrap_or_else(|| (task.clone(), Arc::new(Found(task.clone())).into()))).1
    }
}
