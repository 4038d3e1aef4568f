//! `SELECT nextval('s'), currval('s')`: the second call sees what the first has done for the same row. Expressions are
//! evaluated batch by batch, so such outputs are computed over batches of one row.

use super::Lowerer;
use super::node::{Node, Operator};
use super::stage::{Stage, Work};
use crate::error::Result;
use arrow_array::RecordBatch;
use basalt_expr::tree::Expr;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::{StreamExt, TryStreamExt};
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

    fn lets_conditions_down(&self) -> bool {
        true
    }

    fn lets_limits_down(&self) -> bool {
        true
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

impl Stage for SingleRows {
    fn is_counted(&self) -> bool {
        false
    }

    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        let rows = work.input.map_ok(|batch: RecordBatch| {
            let rows = (0..batch.num_rows()).map(move |row| Ok::<_, DataFusionError>(batch.slice(row, 1)));
            futures::stream::iter(rows)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(work.schema, rows.try_flatten().boxed())))
    }
}
