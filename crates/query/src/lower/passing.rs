//! Operators that pass their input's rows as they are: what they are for shows in their properties, or in how the rows
//! are handed on.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use std::fmt;
use std::sync::Arc;

/// What is particular to one of them.
pub(super) trait Passage: Send + Sync + 'static {
    fn name(&self) -> &'static str;

    fn properties(&self, input: &Arc<dyn ExecutionPlan>) -> Arc<PlanProperties> {
        input.properties().clone()
    }

    /// Whether what reads it may rely on its input's order, which then is not given up for more partitions.
    fn keeps_order(&self) -> bool {
        true
    }

    fn hand_on(&self, batches: SendableRecordBatchStream) -> SendableRecordBatchStream {
        batches
    }
}

/// The operator that runs.
struct Passing {
    passage: Arc<dyn Passage>,
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

pub(super) fn over(passage: Arc<dyn Passage>, input: Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    let properties = passage.properties(&input);
    Arc::new(Passing { passage, input, properties })
}

impl fmt::Debug for Passing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl DisplayAs for Passing {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl ExecutionPlan for Passing {
    fn name(&self) -> &'static str {
        self.passage.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.passage.keeps_order()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![!self.passage.keeps_order()]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(over(self.passage.clone(), children.swap_remove(0)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(self.passage.hand_on(self.input.execute(partition, context)?))
    }
}
