//! Constants and equalities that DataFusion must not take from an operator to those above it.
//!
//! **Constants.** What is constant below an outer join or a UNION ALL is not above it: rows without a match have nulls in
//! its place, and another side's constant may be another one. DataFusion's joins pass the constants of both sides on
//! (`v = 20` below, or a literal in a projection), and its unions those that are constant in all inputs, unless it knows
//! that they differ. Sorting by such a column and grouping by it would then be left out.
//!
//! **Equalities without an end.** Behind `f(c, d) = c` DataFusion writes `f(c, d)` for `c`, which holds a `c` again: the
//! second time it finds another expression than the first, and the plan's orders no longer agree with each other.
//!
//! Such inputs and operators get one above them that passes their rows and keeps what is known of them to itself.
//!
//! A sort that is moved below a join leaves out what is constant there, though DataFusion's joins forget the constants
//! of their right side: above, the order is missed, and there is no plan ([`loses_order`]). Then it is planned again, and
//! nobody knows anything of what is below.

use super::node::Operator;
use super::stage::{self, Stage, Work};
use arrow_schema::SchemaRef;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::equivalence::EquivalenceClass;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, replace_children_if_necessary,
};
use std::sync::Arc;

/// What EXPLAIN leaves out.
pub(crate) const BARE_ROWS: &str = "BareRows";

/// Puts [`BareRows`] where it is needed. Has to run once the sides of joins are chosen, and before orders and
/// distributions are.
#[derive(Debug)]
pub(super) struct HideEquivalences {
    /// All of them, needed or not.
    pub all: bool,
}

/// Whether an operator does not get the order that it was planned with.
pub(crate) fn loses_order(error: &DataFusionError) -> bool {
    error.to_string().contains("does not satisfy order requirements")
}

impl HideEquivalences {
    pub const NAME: &str = "HideEquivalences";
}

impl PhysicalOptimizerRule for HideEquivalences {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_up(|node| {
            if self.all {
                let knows = node.equivalence_properties().eq_group().iter().next().is_some();
                return if knows { Ok(Transformed::yes(bare(node)?)) } else { Ok(Transformed::no(node)) };
            }
            let node = without_lost_constants(node)?;
            match node.data.equivalence_properties().eq_group().iter().any(|class| !is_settled(class, &node.data)) {
                true => Ok(Transformed::yes(bare(node.data)?)),
                false => Ok(node),
            }
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &'static str {
        HideEquivalences::NAME
    }

    fn schema_check(&self) -> bool {
        true
    }
}

fn bare(input: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    stage::over(Arc::new(BareRows), Vec::new(), input)
}

/// Whether the expression that stands for all that are equal is written as itself.
fn is_settled(class: &EquivalenceClass, node: &Arc<dyn ExecutionPlan>) -> bool {
    class.canonical_expr().is_none_or(|canonical| {
        node.equivalence_properties().eq_group().normalize_expr(canonical.clone()).eq(canonical)
    })
}

fn without_lost_constants(node: Arc<dyn ExecutionPlan>) -> Result<Transformed<Arc<dyn ExecutionPlan>>> {
    let Some(sides) = with_lost_constants(&node) else { return Ok(Transformed::no(node)) };
    let mut children: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().cloned().collect();
    let mut hidden = false;
    for (child, loses) in children.iter_mut().zip(sides) {
        if loses && !child.equivalence_properties().constants().is_empty() {
            *child = bare(child.clone())?;
            hidden = true;
        }
    }
    match hidden {
        true => Ok(Transformed::yes(replace_children_if_necessary(node, children)?)),
        false => Ok(Transformed::no(node)),
    }
}

/// For each input whether its constants may be other values above.
fn with_lost_constants(node: &Arc<dyn ExecutionPlan>) -> Option<Vec<bool>> {
    if node.is::<UnionExec>() || node.is::<InterleaveExec>() {
        return Some(vec![true; node.children().len()]);
    }
    let kind = if let Some(join) = node.downcast_ref::<HashJoinExec>() {
        *join.join_type()
    } else if let Some(join) = node.downcast_ref::<NestedLoopJoinExec>() {
        *join.join_type()
    } else {
        node.downcast_ref::<SortMergeJoinExec>()?.join_type()
    };
    match kind {
        JoinType::Left => Some(vec![false, true]),
        JoinType::Right => Some(vec![true, false]),
        JoinType::Full => Some(vec![true, true]),
        _ => None,
    }
}

/// Its input's rows without what is known to be constant, equal or in order among them.
struct BareRows;

impl Operator for BareRows {
    fn name(&self) -> &'static str {
        BARE_ROWS
    }
}

impl Stage for BareRows {
    fn properties(&self, input: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<PlanProperties>> {
        Ok(Arc::new(PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        )))
    }

    fn keeps_order(&self) -> bool {
        false
    }

    fn is_counted(&self) -> bool {
        false
    }

    fn run(&self, work: Work) -> Result<SendableRecordBatchStream> {
        Ok(work.input)
    }
}
