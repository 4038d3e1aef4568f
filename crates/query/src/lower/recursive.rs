//! WITH RECURSIVE: the base's rows, then the step over the rows of the last round, until a round gives none.
//!
//! Rows leave as they come, so that a LIMIT above ends an endless recursion. The step is planned once; each round
//! resets its operators and reads the working table anew. With UNION, rows that were there before are left out.

use super::node::{Columns, Node, Operator};
use super::shared::{SharedOfRound, WorkingTable, leaf_schema, renamed};
use super::stage::{Batches, stream_of};
use super::{Lowerer, keys, name_of};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, CteId, Plan, SetColumn};
use crate::run::QueryRuntime;
use ahash::AHashSet;
use arrow::row::{RowConverter, SortField};
use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use basalt_types::DataType;
use basalt_types::batch::bytes_of;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result as DfResult;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, reset_plan_states};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::StreamExt;
use std::fmt;
use std::sync::{Arc, Weak};

impl Lowerer<'_> {
    pub(super) fn recursive(
        &mut self,
        id: CteId,
        base: &Plan,
        step: &Plan,
        distinct: bool,
        columns: &[SetColumn],
    ) -> Result<LogicalPlan> {
        let base = self.plan(base)?;
        let base = self.side(base, columns, |column| column.left)?;
        let step = self.plan(step)?;
        let step = self.side(step, columns, |column| column.right)?;
        let outputs: Vec<(ColId, DataType)> = columns.iter().map(|column| (column.id, column.ty.clone())).collect();
        outputs.iter().for_each(|(id, ty)| self.define(*id, ty));
        let schema = leaf_schema(&outputs);
        let operator = Recursion {
            working: self.ctx.shared.working(id),
            of_round: self.of_round(id),
            distinct: distinct.then(|| columns.iter().map(|column| column.ty.clone()).collect()),
            schema: schema.clone(),
            runtime: self.applier.runtime(),
        };
        let df_schema = Arc::new(DFSchema::try_from(schema.as_ref().clone())?);
        Ok(Node::plan(Arc::new(operator), vec![base, step], df_schema))
    }

    fn side(&self, plan: LogicalPlan, columns: &[SetColumn], pick: fn(&SetColumn) -> ColId) -> Result<LogicalPlan> {
        let exprs = columns.iter().map(|column| Ok(self.column(pick(column), &column.ty)?.alias(name_of(column.id))));
        Ok(LogicalPlanBuilder::from(plan).project(exprs.collect::<Result<Vec<_>>>()?)?.build()?)
    }
}

#[derive(Clone)]
struct Recursion {
    working: WorkingTable,
    /// WITH queries of the step that depend on the round.
    of_round: Vec<SharedOfRound>,
    /// The columns' types, where no row may come twice.
    distinct: Option<Vec<DataType>>,
    schema: SchemaRef,
    runtime: Weak<QueryRuntime>,
}

impl Operator for Recursion {
    fn name(&self) -> &'static str {
        "Recursive Union"
    }

    fn label(&self) -> String {
        match self.distinct {
            Some(_) => "Recursive Union".to_string(),
            None => "Recursive Union: all".to_string(),
        }
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Own
    }

    fn plan(&self, mut inputs: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let (step, base) = (inputs.pop(), inputs.pop());
        match (base, step) {
            (Some(base), Some(step)) => Ok(Arc::new(RecursionExec::new(self.clone(), base, step))),
            _ => Err(SqlError::internal("a recursion has two inputs").into()),
        }
    }
}

struct RecursionExec {
    recursion: Recursion,
    base: Arc<dyn ExecutionPlan>,
    step: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl RecursionExec {
    fn new(recursion: Recursion, base: Arc<dyn ExecutionPlan>, step: Arc<dyn ExecutionPlan>) -> RecursionExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(recursion.schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        RecursionExec { recursion, base, step, properties: Arc::new(properties) }
    }
}

impl fmt::Debug for RecursionExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.recursion.label())
    }
}

impl DisplayAs for RecursionExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.recursion.label())
    }
}

impl ExecutionPlan for RecursionExec {
    fn name(&self) -> &'static str {
        "Recursive Union"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.base, &self.step]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::SinglePartition]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
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
        let step = children.swap_remove(1);
        let base = children.swap_remove(0);
        Ok(Arc::new(RecursionExec::new(self.recursion.clone(), base, step)))
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let runtime = self.recursion.runtime.upgrade();
        let runtime = runtime.ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
        self.recursion.working.lock().clear();
        let rounds = Rounds {
            seen: self.recursion.distinct.clone().map(Seen::new).transpose()?,
            memory: runtime.reservation("rows of a recursion"),
            current: self.base.execute(0, context.clone())?,
            recursion: self.recursion.clone(),
            step: self.step.clone(),
            context,
            given: Vec::new(),
        };
        Ok(stream_of(rounds, self.recursion.schema.clone()))
    }
}

struct Rounds {
    recursion: Recursion,
    step: Arc<dyn ExecutionPlan>,
    context: Arc<TaskContext>,
    seen: Option<Seen>,
    memory: MemoryReservation,
    current: SendableRecordBatchStream,
    /// Rows of this round.
    given: Vec<RecordBatch>,
}

impl Batches for Rounds {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        loop {
            while let Some(batch) = self.current.next().await.transpose()? {
                let mut batch = renamed(&batch, &self.recursion.schema)?;
                if let Some(seen) = &mut self.seen {
                    batch = seen.fresh(&batch, &self.memory)?;
                }
                if batch.num_rows() > 0 {
                    self.memory.try_grow(bytes_of(batch.columns()))?;
                    self.given.push(batch.clone());
                    return Ok(Some(batch));
                }
            }
            if self.given.is_empty() {
                return Ok(None);
            }
            let held = |batches: &[RecordBatch]| batches.iter().map(|batch| bytes_of(batch.columns())).sum::<usize>();
            let last = std::mem::replace(&mut *self.recursion.working.lock(), std::mem::take(&mut self.given));
            self.memory.shrink(held(&last).min(self.memory.size()));
            self.recursion.of_round.iter().for_each(|cte| cte.restart());
            self.step = reset_plan_states(self.step.clone())?;
            self.current = self.step.execute(0, self.context.clone())?;
        }
    }
}

/// Rows that came before, by the keys of their values.
struct Seen {
    types: Vec<DataType>,
    converter: RowConverter,
    rows: AHashSet<Box<[u8]>>,
}

impl Seen {
    fn new(types: Vec<DataType>) -> Result<Seen> {
        let fields = types.iter().map(|ty| SortField::new(keys::key_type(ty).unwrap_or_else(|| ty.to_arrow())));
        let converter = RowConverter::new(fields.collect()).map_err(|error| SqlError::internal(error.to_string()))?;
        Ok(Seen { types, converter, rows: AHashSet::new() })
    }

    /// The rows that were not there before, each once.
    fn fresh(&mut self, batch: &RecordBatch, memory: &MemoryReservation) -> DfResult<RecordBatch> {
        let keyed = self.types.iter().zip(batch.columns()).map(|(ty, column)| match keys::key_type(ty) {
            Some(_) => keys::key_array(ty, column),
            None => Ok(column.clone()),
        });
        let keyed = keyed.collect::<Result<Vec<ArrayRef>>>()?;
        if keyed.is_empty() {
            let first = self.rows.insert(Box::default());
            return Ok(batch.slice(0, usize::from(first).min(batch.num_rows())));
        }
        let rows = self.converter.convert_columns(&keyed)?;
        let mut kept = Vec::with_capacity(batch.num_rows());
        let mut added = 0;
        for row in rows.iter() {
            let is_new = self.rows.insert(row.data().into());
            added += if is_new { row.data().len() + 32 } else { 0 };
            kept.push(is_new);
        }
        memory.try_grow(added)?;
        Ok(arrow::compute::filter_record_batch(batch, &BooleanArray::from(kept))?)
    }
}
