//! Ending a plan that runs: every operator's output passes a gate that shuts when the statement is stopped.
//!
//! Dropping a stream ends it only at its next await, and an operator that computes does not await: it loops
//! over its input. So the gate above each operator answers with an error once the flag is set, whoever asks,
//! and drops the operator with all that it holds. The gates also count batches against the task's budget, so
//! that a plan without I/O gives its thread back to others.
//!
//! And they take turns (`sched::fair`): a gate that a task polls first has a slot for as long as it is polled, unless the task
//! has one ([`super::turns`]), and those below it give way after each step. So no slot is kept while a task waits for
//! another, which no operator of DataFusion's could be told of.
//!
//! A join may compute for minutes over one batch of its input without giving a row: its condition looks at
//! the flag too. Semi and anti joins that have no condition are given one that holds always.

use super::node::Operator;
use super::stage::{self, Stage, Work};
use crate::error::SqlError;
use arrow_array::RecordBatch;
use arrow_schema::{DataType as ArrowType, Schema, SchemaRef};
use basalt_exec::Stop;
use basalt_sched::fair;
use basalt_sched::threads::give_way;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream};
use datafusion::logical_expr::{ColumnarValue, JoinType};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, NestedLoopJoinExecBuilder};
use futures::{Stream, StreamExt};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What EXPLAIN leaves out.
pub(crate) const GATE: &str = "Gate";

/// The plan with a gate above each of its operators.
pub(crate) fn stoppable(
    plan: Arc<dyn ExecutionPlan>,
    stop: &Stop,
    turns: &Arc<fair::Statement>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let gate: Arc<dyn Stage> = Arc::new(Gate(stop.clone(), turns.clone()));
    let behind = |node| stage::over(gate.clone(), Vec::new(), guard_join(node, stop)?);
    let gated = plan.transform_up(|node| behind(node).map(Transformed::yes))?;
    Ok(gated.data)
}

/// A join with a condition that looks at the flag; other operators as they are.
fn guard_join(node: Arc<dyn ExecutionPlan>, stop: &Stop) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        let Some(filter) = guarded(join.filter(), *join.join_type(), stop) else { return Ok(node) };
        return Ok(Arc::new(NestedLoopJoinExecBuilder::from(join).with_filter(Some(filter)).build()?));
    }
    if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        let Some(filter) = guarded(join.filter(), *join.join_type(), stop) else { return Ok(node) };
        // NOT IN has no condition beside its key, and may have none.
        return if join.null_aware { Ok(node) } else { join.builder().with_filter(Some(filter)).build_exec() };
    }
    Ok(node)
}

fn guarded(filter: Option<&JoinFilter>, join: JoinType, stop: &Stop) -> Option<JoinFilter> {
    // Other joins give what they find, and so come to the gate.
    let is_silent = !matches!(join, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full);
    let (inner, columns, schema) = match filter {
        Some(filter) => (filter.expression().clone(), filter.column_indices().to_vec(), filter.schema().clone()),
        None if is_silent => {
            let always: Arc<dyn PhysicalExpr> = Arc::new(Literal::new(ScalarValue::Boolean(Some(true))));
            (always, Vec::new(), Arc::new(Schema::empty()))
        }
        None => return None,
    };
    Some(JoinFilter::new(Arc::new(Guard { inner, stop: stop.clone() }), columns, schema))
}

fn stopped() -> datafusion::error::DataFusionError {
    SqlError::canceled().into()
}

/// An expression that fails once the statement is stopped.
struct Guard {
    inner: Arc<dyn PhysicalExpr>,
    stop: Stop,
}

impl PartialEq for Guard {
    fn eq(&self, other: &Guard) -> bool {
        self.inner.eq(&other.inner)
    }
}

impl Eq for Guard {}

impl Hash for Guard {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.inner, f)
    }
}

impl PhysicalExpr for Guard {
    fn data_type(&self, input: &Schema) -> Result<ArrowType> {
        self.inner.data_type(input)
    }

    fn nullable(&self, input: &Schema) -> Result<bool> {
        self.inner.nullable(input)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.stop.is_set() { Err(stopped()) } else { self.inner.evaluate(batch) }
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.inner]
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn PhysicalExpr>>) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Guard { inner: children.swap_remove(0), stop: self.stop.clone() }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt_sql(f)
    }
}

/// Passes its input's batches until the statement is stopped.
struct Gate(Stop, Arc<fair::Statement>);

impl Operator for Gate {
    fn name(&self) -> &'static str {
        GATE
    }
}

impl Stage for Gate {
    fn is_counted(&self) -> bool {
        false
    }

    fn run(&self, work: Work) -> Result<SendableRecordBatchStream> {
        let (stop, turn) = (self.0.clone(), fair::TaskTurn::new(&self.1));
        Ok(Box::pin(Gated { schema: work.schema, inner: Some(work.input), stop, turn }))
    }
}

struct Gated {
    schema: SchemaRef,
    /// `None` once the statement is stopped.
    inner: Option<SendableRecordBatchStream>,
    stop: Stop,
    turn: fair::TaskTurn,
}

impl Stream for Gated {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.stop.is_set() {
            // Its memory is not needed until all who read it have ended.
            self.inner = None;
            self.turn.rest();
            return Poll::Ready(Some(Err(stopped())));
        }
        if self.inner.is_none() {
            return Poll::Ready(None);
        }
        // What is above it has computed for long enough.
        if fair::is_overdue() {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Gated { inner: Some(inner), turn, .. } = &mut *self else { return Poll::Ready(None) };
        turn.poll(cx, |cx| {
            let budget = ready!(tokio::task::coop::poll_proceed(cx));
            give_way();
            let polled = inner.poll_next_unpin(cx);
            if polled.is_ready() {
                budget.made_progress();
            }
            polled
        })
    }
}

impl RecordBatchStream for Gated {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}
