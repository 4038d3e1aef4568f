//! What is constant below an outer join or a UNION ALL is not above it: rows without a match have nulls in its place,
//! and another side's constant may be another one.
//!
//! DataFusion's joins pass the constants of both sides on (`v = 20` below, or a literal in a projection), and its unions
//! those that are constant in all inputs, unless it knows that they differ. Sorting by such a column and grouping by it
//! would then be left out. So these inputs get an operator above them that passes their rows and keeps their constants
//! to itself.

use super::node::Operator;
use super::stage::{self, Stage, Work};
use arrow_schema::SchemaRef;
use datafusion::common::JoinType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::union::{InterleaveExec, UnionExec};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, PlanProperties, replace_children_if_necessary,
};
use std::sync::Arc;

/// What EXPLAIN leaves out.
pub(crate) const OUTER_SIDE: &str = "OuterSide";

/// Puts [`OuterSide`] where it is needed. Has to run once the sides of joins are chosen, and before orders and
/// distributions are.
#[derive(Debug)]
pub(super) struct HideConstants;

impl PhysicalOptimizerRule for HideConstants {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let changed = plan.transform_up(|node| {
            let Some(sides) = with_lost_constants(&node) else { return Ok(Transformed::no(node)) };
            let mut children: Vec<Arc<dyn ExecutionPlan>> = node.children().into_iter().cloned().collect();
            let mut hidden = false;
            for (child, loses) in children.iter_mut().zip(sides) {
                if loses && !child.equivalence_properties().constants().is_empty() {
                    *child = stage::over(Arc::new(OuterSide), Vec::new(), child.clone())?;
                    hidden = true;
                }
            }
            match hidden {
                true => Ok(Transformed::yes(replace_children_if_necessary(node, children)?)),
                false => Ok(Transformed::no(node)),
            }
        })?;
        Ok(changed.data)
    }

    fn name(&self) -> &'static str {
        "HideConstants"
    }

    fn schema_check(&self) -> bool {
        true
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
struct OuterSide;

impl Operator for OuterSide {
    fn name(&self) -> &'static str {
        OUTER_SIDE
    }
}

impl Stage for OuterSide {
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
