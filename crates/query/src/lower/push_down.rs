//! Filters go down, but not below what gives a row for no input.
//!
//! Volatile conditions stay where they are. DataFusion moves a condition without columns below any grouping. Below an aggregation without groups, or a
//! grouping set without columns, it would take the input away and leave the row.

use super::node::Node;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule, held back where it must not go.
#[derive(Debug)]
pub(super) struct GuardedPushDown {
    inner: PushDownFilter,
}

impl GuardedPushDown {
    pub const NAME: &str = "push_down_filter";

    pub fn new() -> GuardedPushDown {
        GuardedPushDown { inner: PushDownFilter::new() }
    }
}

impl OptimizerRule for GuardedPushDown {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if let LogicalPlan::Filter(filter) = &plan {
            let stays = match &*filter.input {
                LogicalPlan::TableScan(_) | LogicalPlan::Filter(_) => false,
                // What is computed anew for each row is computed for the rows that are here.
                _ if filter.predicate.is_volatile() => true,
                LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
                LogicalPlan::Extension(extension)
                    if extension.node.as_any().downcast_ref::<Node>().is_some_and(Node::needs_no_input) =>
                {
                    split_conjunction(&filter.predicate).iter().any(|part| part.column_refs().is_empty())
                }
                _ => false,
            };
            if stays {
                return Ok(Transformed::no(plan));
            }
        }
        self.inner.rewrite(plan, config)
    }
}
