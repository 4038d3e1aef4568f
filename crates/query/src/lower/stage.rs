//! Operators of our own over one input, as they run: one `ExecutionPlan` for all of them.

use super::node::{Columns, Operator, appending};
use arrow_array::RecordBatch;
use arrow_schema::{FieldRef, Schema, SchemaRef};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{OrderingRequirements, PhysicalExpr};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet, Time};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, PlanProperties};
use futures::TryStreamExt;
use std::fmt;
use std::sync::Arc;

/// What is particular to one of them. Its output's columns are [`Operator::columns`].
pub(super) trait Stage: Operator + 'static {
    /// What DataFusion may rely on.
    fn properties(&self, input: &Arc<dyn ExecutionPlan>, schema: &SchemaRef) -> Result<Arc<PlanProperties>> {
        match Arc::ptr_eq(&input.schema(), schema) {
            true => Ok(input.properties().clone()),
            false => Ok(Arc::new(appending(input, schema)?)),
        }
    }

    /// Whether rows leave in the order in which they came and DataFusion may count on it. Not for an operator that asks
    /// for an order: one that is wanted above would be put below it, in the place of its own.
    fn keeps_order(&self) -> bool {
        true
    }

    fn distribution(&self, _args: &[Arc<dyn PhysicalExpr>]) -> Distribution {
        Distribution::UnspecifiedDistribution
    }

    fn ordering(&self, _args: &[Arc<dyn PhysicalExpr>]) -> Option<OrderingRequirements> {
        None
    }

    /// Whether rows and times are counted: not for what EXPLAIN leaves out.
    fn is_counted(&self) -> bool {
        true
    }

    fn run(&self, work: Work) -> Result<SendableRecordBatchStream>;
}

/// One part of the input, and what its rows become.
pub(super) struct Work {
    pub input: SendableRecordBatchStream,
    /// Over the input's rows.
    pub args: Vec<Arc<dyn PhysicalExpr>>,
    pub schema: SchemaRef,
    pub context: Arc<TaskContext>,
    /// What it computes, the input's own work apart.
    pub elapsed: Time,
}

/// Something that gives batches one after the other, from what it holds.
pub(super) trait Batches: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Result<Option<RecordBatch>>> + Send;
}

/// What `from` gives, until its end.
pub(super) fn stream_of(from: impl Batches, schema: SchemaRef) -> SendableRecordBatchStream {
    let batches =
        futures::stream::try_unfold(from, |mut from| async move { Ok(from.next().await?.map(|batch| (batch, from))) });
    Box::pin(RecordBatchStreamAdapter::new(schema, batches))
}

struct StageExec {
    stage: Arc<dyn Stage>,
    args: Vec<Arc<dyn PhysicalExpr>>,
    input: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

pub(super) fn over(
    stage: Arc<dyn Stage>,
    args: Vec<Arc<dyn PhysicalExpr>>,
    input: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = schema_over(&*stage, input.schema());
    let properties = stage.properties(&input, &schema)?;
    Ok(Arc::new(StageExec { stage, args, input, schema, properties, metrics: ExecutionPlanMetricsSet::new() }))
}

fn schema_over(stage: &dyn Stage, below: SchemaRef) -> SchemaRef {
    match stage.columns() {
        Columns::Passed { added, nullable } if nullable || !added.is_empty() => {
            let pass = |field: &FieldRef| match nullable {
                true => Arc::new(field.as_ref().clone().with_nullable(true)),
                false => field.clone(),
            };
            let fields: Vec<FieldRef> = below.fields().iter().map(pass).chain(added.iter().cloned()).collect();
            Arc::new(Schema::new_with_metadata(fields, below.metadata().clone()))
        }
        _ => below,
    }
}

impl fmt::Debug for StageExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stage.label())
    }
}

impl DisplayAs for StageExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stage.label())
    }
}

impl ExecutionPlan for StageExec {
    fn name(&self) -> &'static str {
        self.stage.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![self.stage.keeps_order()]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        let single = matches!(self.stage.distribution(&self.args), Distribution::SinglePartition);
        vec![!self.stage.keeps_order() && !single]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![self.stage.distribution(&self.args)]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        vec![self.stage.ordering(&self.args)]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        for arg in &self.args {
            if f(arg)? == TreeNodeRecursion::Stop {
                return Ok(TreeNodeRecursion::Stop);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, mut children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        over(self.stage.clone(), self.args.clone(), children.swap_remove(0))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = self.input.execute(partition, context.clone())?;
        let (args, schema) = (self.args.clone(), self.schema.clone());
        if !self.stage.is_counted() {
            return self.stage.run(Work { input, args, schema, context, elapsed: Time::new() });
        }
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let elapsed = metrics.elapsed_compute().clone();
        let batches = self.stage.run(Work { input, args, schema, context, elapsed })?;
        let counted = batches.inspect_ok(move |batch| metrics.record_output(batch.num_rows()));
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), counted)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        self.stage.is_counted().then(|| self.metrics.clone_inner())
    }
}
