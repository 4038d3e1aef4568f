//! `SELECT nextval('s'), currval('s')`: the second call sees what the first has done for the same row. Expressions are
//! evaluated batch by batch, so such outputs are computed over batches of one row.

use super::Lowerer;
use super::node::{Columns, Node, Operator};
use crate::error::Result;
use arrow_array::RecordBatch;
use basalt_expr::tree::Expr;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

pub(super) const NAME: &str = "SingleRows";

/// Calls that change the state of sequences, and calls that tell it.
const CHANGE: [&str; 2] = ["nextval", "setval"];
const TELL: [&str; 3] = ["currval", "lastval", "setval"];

/// Whether one call among the outputs of a row may see what another has done.
pub(super) fn are_needed<'e>(exprs: impl Iterator<Item = &'e Expr>) -> bool {
    let (mut all, mut changes, mut tells) = (0, 0, 0);
    for expr in exprs {
        expr.walk(&mut |node| {
            if let Expr::Call { function, .. } = node {
                let (change, tell) = (CHANGE.contains(&function.name.as_str()), TELL.contains(&function.name.as_str()));
                all += usize::from(change || tell);
                changes += usize::from(change);
                tells += usize::from(tell);
            }
            true
        });
    }
    all > 1 && changes > 0 && tells > 0
}

impl Lowerer<'_> {
    /// The same rows, one at a time.
    pub(super) fn single_rows(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        Ok(Node::over(Arc::new(SingleRows), Vec::new(), input)?)
    }
}

struct SingleRows;

impl Operator for SingleRows {
    fn name(&self) -> &'static str {
        NAME
    }

    fn label(&self) -> String {
        NAME.to_string()
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Passed { added: &[], nullable: false }
    }

    fn lets_conditions_down(&self) -> bool {
        true
    }

    fn lets_limits_down(&self) -> bool {
        true
    }

    fn plan(
        &self,
        _args: Vec<Arc<dyn PhysicalExpr>>,
        mut inputs: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let input = inputs.swap_remove(0);
        let properties = input.properties().clone();
        Ok(Arc::new(SingleRowsExec { input, properties }))
    }
}

struct SingleRowsExec {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for SingleRowsExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl DisplayAs for SingleRowsExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(NAME)
    }
}

impl ExecutionPlan for SingleRowsExec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let input = children.swap_remove(0);
        let properties = input.properties().clone();
        Ok(Arc::new(SingleRowsExec { input, properties }))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let batches = self.input.execute(partition, context)?;
        let rows = batches.map_ok(|batch: RecordBatch| {
            let rows = (0..batch.num_rows()).map(move |row| Ok::<_, DataFusionError>(batch.slice(row, 1)));
            futures::stream::iter(rows)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.input.schema(), rows.try_flatten().boxed())))
    }
}
