//! UNION ALL gives the rows of its parts one part after the other, as PostgreSQL does: `SELECT 1 UNION ALL SELECT 2`.
//!
//! DataFusion mixes partitions as they come. Where it would mix those of a union, each part is brought together by
//! itself, and the parts are read in turn; within a part all workers read. A part's own ORDER BY is kept by an operator
//! that asks for it.

use super::Lowerer;
use super::node::{Node, Operator};
use crate::error::Result;
use crate::plan::Plan;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements, Partitioning, PhysicalExpr};
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::scalar_subquery::ScalarSubqueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::union::UnionExec;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PlanProperties,
    replace_children_if_necessary,
};
use futures::{StreamExt, TryStreamExt};
use std::fmt;
use std::sync::Arc;

/// What EXPLAIN leaves out: the operator that keeps a part's order.
pub(crate) const IN_ORDER: &str = "InOrder";
/// The parts of a union in turn.
const APPEND: &str = "Append";

/// The plan with the parts of unions read in turn.
pub(crate) fn in_turn(plan: Arc<dyn ExecutionPlan>) -> DfResult<Arc<dyn ExecutionPlan>> {
    let changed = plan.transform_up(|node| {
        let Some(mixed) = node.downcast_ref::<CoalescePartitionsExec>() else { return Ok(Transformed::no(node)) };
        let Some(whole) = united(mixed.input())? else { return Ok(Transformed::no(node)) };
        Ok(Transformed::yes(match mixed.fetch() {
            Some(rows) => Arc::new(GlobalLimitExec::new(whole, 0, Some(rows))),
            None => whole,
        }))
    })?;
    let plan = changed.data;
    match plan.output_partitioning().partition_count() > 1 {
        true => Ok(united(&plan)?.unwrap_or(plan)),
        false => Ok(plan),
    }
}

/// A plan over a union as one that reads the parts in turn.
fn united(plan: &Arc<dyn ExecutionPlan>) -> DfResult<Option<Arc<dyn ExecutionPlan>>> {
    if plan.is::<ScalarSubqueryExec>() {
        // The subqueries follow the plan that has their values.
        let mut children: Vec<Arc<dyn ExecutionPlan>> = plan.children().into_iter().cloned().collect();
        let Some(main) = united(&children[0])? else { return Ok(None) };
        children[0] = main;
        return replace_children_if_necessary(plan.clone(), children).map(Some);
    }
    let parts = parts(plan)?;
    Ok(parts.map(|parts| -> Arc<dyn ExecutionPlan> { InTurn::new(parts, plan.schema(), None) }))
}

/// The parts of the union that a plan takes row by row, each with what the plan does to its rows, in one partition.
/// `None` if there is no such union.
fn parts(plan: &Arc<dyn ExecutionPlan>) -> DfResult<Option<Vec<Arc<dyn ExecutionPlan>>>> {
    if let Some(union) = plan.downcast_ref::<UnionExec>() {
        return union.inputs().iter().map(|part| Ok(one_partition(part.clone()))).collect::<DfResult<_>>().map(Some);
    }
    let partial =
        |aggregate: &AggregateExec| *aggregate.mode() == AggregateMode::Partial && aggregate.group_expr().is_empty();
    let passes = plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<LocalLimitExec>()
        || plan.downcast_ref::<AggregateExec>().is_some_and(partial)
        || [super::FENCE, super::single_rows::NAME].contains(&plan.name());
    if !passes {
        return Ok(None);
    }
    let children = plan.children();
    let [input] = children.as_slice() else { return Ok(None) };
    let Some(inputs) = parts(input)? else { return Ok(None) };
    let over = |input| replace_children_if_necessary(plan.clone(), vec![input]);
    inputs.into_iter().map(over).collect::<DfResult<_>>().map(Some)
}

fn one_partition(plan: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.output_partitioning().partition_count() {
        1 => plan,
        _ => Arc::new(CoalescePartitionsExec::new(plan)),
    }
}

impl Lowerer<'_> {
    /// A part of UNION ALL; its rows come in the order of its ORDER BY.
    pub(super) fn union_part(&mut self, part: &Plan) -> Result<LogicalPlan> {
        match part {
            Plan::Sort { .. } => {
                let lowered = self.plan(part)?;
                Ok(Node::over(Arc::new(Ordered), Vec::new(), lowered)?)
            }
            Plan::Project { input, exprs } => {
                let input = self.union_part(input)?;
                self.project_over(input, exprs)
            }
            other => self.plan(other),
        }
    }
}

/// Keeps the order of its input.
struct Ordered;

impl Operator for Ordered {
    fn name(&self) -> &'static str {
        IN_ORDER
    }

    fn lets_conditions_down(&self) -> bool {
        true
    }

    fn lets_limits_down(&self) -> bool {
        true
    }

    fn plan(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let input = &inputs[0];
        let (schema, order) = (input.schema(), input.output_ordering().cloned());
        Ok(InTurn::new(inputs, schema, order))
    }
}

/// The rows of its inputs, one input after the other.
struct InTurn {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    /// Of the whole: a part may have columns that are never null.
    schema: SchemaRef,
    /// In which each input's rows come.
    order: Option<LexOrdering>,
    properties: Arc<PlanProperties>,
}

impl InTurn {
    fn new(inputs: Vec<Arc<dyn ExecutionPlan>>, schema: SchemaRef, order: Option<LexOrdering>) -> Arc<InTurn> {
        let first = &inputs[0];
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            first.pipeline_behavior(),
            first.boundedness(),
        );
        Arc::new(InTurn { inputs, schema, order, properties: Arc::new(properties) })
    }
}

impl fmt::Debug for InTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl DisplayAs for InTurn {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for InTurn {
    fn name(&self) -> &'static str {
        if self.inputs.len() == 1 { IN_ORDER } else { APPEND }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition; self.inputs.len()]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.order.clone().map(OrderingRequirements::from); self.inputs.len()]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.inputs.len()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, inputs: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(InTurn::new(inputs, self.schema.clone(), self.order.clone()))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let inputs = futures::stream::iter(self.inputs.clone());
        let batches = inputs.map(move |input| input.execute(0, context.clone())).try_flatten();
        let schema = self.schema.clone();
        let batches = batches.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            Ok(RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches.boxed())))
    }
}
