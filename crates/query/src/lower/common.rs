//! Expressions that stand several times in a node are computed once below it, by DataFusion's rule. Not where that is a
//! condition and the expression may fail: below it would meet rows that another condition excludes.

use super::conditions::is_harmless;
use ahash::AHashSet;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::common_subexpr_eliminate::CommonSubexprEliminate;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule, held back where it must not go.
#[derive(Debug)]
pub(super) struct GuardedCommon {
    inner: CommonSubexprEliminate,
}

impl GuardedCommon {
    pub const NAME: &str = "common_sub_expression_eliminate";

    pub fn new() -> GuardedCommon {
        GuardedCommon { inner: CommonSubexprEliminate::new() }
    }
}

impl OptimizerRule for GuardedCommon {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // It goes through the whole plan by itself.
        let mut repeats = false;
        plan.apply_with_subqueries(|node| {
            if let LogicalPlan::Filter(filter) = node {
                repeats |= !is_harmless(&filter.predicate) && repeats_what_may_fail(&filter.predicate)?;
            }
            Ok(if repeats { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if repeats { Ok(Transformed::no(plan)) } else { self.inner.rewrite(plan, config) }
    }
}

fn repeats_what_may_fail(condition: &Expr) -> Result<bool> {
    let mut known = AHashSet::new();
    let mut repeats = false;
    condition.apply(|node| {
        if matches!(node, Expr::ScalarFunction(_)) && !is_harmless(node) {
            repeats |= !known.insert(node.clone());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(repeats)
}
