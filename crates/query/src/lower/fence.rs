//! What the optimizer must not move or leave out.
//!
//! Conditions stay above OFFSET and LIMIT, `OFFSET 0` among them, by which people keep them there. The volatile columns
//! of a projection are computed once for each of its rows, read or not: they are not merged into what reads them, and no
//! condition on them is checked below.

use super::Lowerer;
use super::node::{Node, Operator};
use super::stage::{Stage, Work};
use crate::error::Result;
use crate::plan::ColId;
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan};
use std::sync::Arc;

/// What EXPLAIN leaves out.
pub(crate) const FENCE: &str = "Fence";

impl Lowerer<'_> {
    /// No condition passes.
    pub(super) fn fenced(&self, input: LogicalPlan) -> Result<LogicalPlan> {
        Ok(Node::over(Arc::new(Fence { columns: None }), Vec::new(), input)?)
    }

    /// These columns are computed here.
    pub(super) fn computed_here(&self, input: LogicalPlan, columns: &[ColId]) -> Result<LogicalPlan> {
        let reached = columns.iter().map(|id| Ok(self.reach(*id)?.column.clone())).collect::<Result<Vec<_>>>()?;
        let names = reached.iter().map(|column| column.name.clone()).collect();
        let args = reached.into_iter().map(DfExpr::Column).collect();
        Ok(Node::over(Arc::new(Fence { columns: Some(names) }), args, input)?)
    }
}

struct Fence {
    /// On which conditions stay above; `None`: all do, and limits do.
    columns: Option<Vec<String>>,
}

impl Operator for Fence {
    fn name(&self) -> &'static str {
        FENCE
    }

    fn lets_conditions_down(&self) -> bool {
        self.columns.is_some()
    }

    fn holds_conditions_on(&self, column: &str) -> bool {
        self.columns.as_ref().is_none_or(|columns| columns.iter().any(|known| known == column))
    }

    fn needs_no_input(&self) -> bool {
        self.columns.is_none()
    }

    fn lets_limits_down(&self) -> bool {
        self.columns.is_some()
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

/// Where nothing is moved any more it only passes rows on.
impl Stage for Fence {
    fn is_counted(&self) -> bool {
        false
    }

    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        Ok(work.input)
    }
}
