//! WITH queries that are computed once, and the working tables of recursive ones.
//!
//! A query that is read in several places is run by a task of its own, as far as its greediest reader has asked;
//! readers share the batches. What belongs to one run of a plan is found by the number of the WITH query, in
//! layers: a subquery that is run per outer row keeps what depends on that row in a layer of its own.

use super::Lowerer;
use super::node::{Columns, Node, Operator};
use super::turns::begin;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, CteId, OutputColumn, Plan, Query};
use crate::run::{QueryRuntime, RunContext, Running};
use ahash::{AHashMap, AHashSet};
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use basalt_types::DataType;
use basalt_types::batch::bytes_of;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::StreamExt;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use tokio::sync::Notify;

/// What the plans of one run share.
#[derive(Default)]
pub struct SharedTables {
    /// Of the run around this one.
    around: Option<Arc<SharedTables>>,
    /// WITH queries whose rows depend on this run.
    own: AHashSet<CteId>,
    ctes: Mutex<AHashMap<CteId, Arc<SharedCte>>>,
    working: Mutex<AHashMap<CteId, WorkingTable>>,
}

/// The rows of a recursion's last round.
pub(super) type WorkingTable = Arc<Mutex<Vec<RecordBatch>>>;

impl SharedTables {
    /// For a run inside another, which depends on a row of it.
    pub fn inside(around: &Arc<SharedTables>, own: AHashSet<CteId>) -> Arc<SharedTables> {
        Arc::new(SharedTables { around: Some(around.clone()), own, ..SharedTables::default() })
    }

    /// Ends what runs for the plans of this run.
    pub fn clear(&self) {
        self.ctes.lock().clear();
        self.working.lock().clear();
    }

    fn layer(self: &Arc<Self>, id: CteId) -> Arc<SharedTables> {
        match &self.around {
            Some(around) if !self.own.contains(&id) => around.layer(id),
            _ => self.clone(),
        }
    }

    pub(super) fn working(self: &Arc<Self>, id: CteId) -> WorkingTable {
        self.layer(id).working.lock().entry(id).or_default().clone()
    }
}

/// Ends what runs for the plans of a run when the run ends.
pub(crate) struct SharedOwner(pub Arc<SharedTables>);

impl Drop for SharedOwner {
    fn drop(&mut self) {
        self.0.clear();
    }
}

/// A WITH query that runs for several readers.
struct SharedCte {
    rows: Mutex<Arc<SharedRows>>,
    runtime: std::sync::Weak<QueryRuntime>,
    query: Query,
    ctx: RunContext,
    task: Mutex<Option<Running<()>>>,
}

#[derive(Default)]
struct SharedRows {
    state: Mutex<SharedState>,
    /// Rows have come, or their end.
    grown: Notify,
    /// A reader has used up what is there.
    asked: Notify,
}

#[derive(Default)]
struct SharedState {
    batches: Vec<RecordBatch>,
    /// Batches that readers want to see.
    wanted: usize,
    end: Option<Result<()>>,
}

impl SharedCte {
    fn start(&self) -> Result<()> {
        let mut task = self.task.lock();
        if task.is_none() {
            let runtime = self.runtime.upgrade().ok_or_else(|| SqlError::new("57P01", "shutting down"))?;
            let (rows, query, ctx) = (self.rows.lock().clone(), self.query.clone(), self.ctx.clone());
            let memory = runtime.reservation("rows of a WITH query");
            let work = runtime.clone();
            *task = Some(runtime.spawn(async move {
                let end = produce(&work, &rows, &query, &ctx, &memory).await;
                rows.state.lock().end = Some(end);
                rows.grown.notify_waiters();
            }));
        }
        Ok(())
    }

    fn restart(&self) {
        *self.task.lock() = None;
        *self.rows.lock() = Arc::default();
    }
}

/// A WITH query of a recursion's step.
#[derive(Clone)]
pub(super) struct SharedOfRound {
    layer: Arc<SharedTables>,
    id: CteId,
}

impl SharedOfRound {
    /// Has its rows computed once more, if somebody has read them: they are those of the next round.
    pub fn restart(&self) {
        let known = self.layer.ctes.lock().get(&self.id).cloned();
        known.iter().for_each(|shared| shared.restart());
    }
}

async fn produce(
    runtime: &Arc<QueryRuntime>,
    rows: &SharedRows,
    query: &Query,
    ctx: &RunContext,
    memory: &MemoryReservation,
) -> Result<()> {
    let plan = Box::pin(runtime.prepare(query, ctx, false)).await?;
    let mut stream = begin(plan, runtime, ctx).await?;
    loop {
        loop {
            let asked = rows.asked.notified();
            if rows.state.lock().has_demand() {
                break;
            }
            asked.await;
        }
        let Some(batch) = stream.next().await.transpose()? else { return Ok(()) };
        memory.try_grow(bytes_of(batch.columns())).map_err(SqlError::from)?;
        rows.state.lock().batches.push(batch);
        rows.grown.notify_waiters();
    }
}

impl SharedState {
    fn has_demand(&self) -> bool {
        self.wanted > self.batches.len()
    }
}

impl SharedRows {
    /// The batch of this number; `None` behind the last.
    async fn batch(&self, number: usize) -> Result<Option<RecordBatch>> {
        loop {
            let mut grown = std::pin::pin!(self.grown.notified());
            grown.as_mut().enable();
            {
                let mut state = self.state.lock();
                if let Some(batch) = state.batches.get(number) {
                    return Ok(Some(batch.clone()));
                }
                if let Some(end) = &state.end {
                    return end.clone().map(|()| None);
                }
                state.wanted = state.wanted.max(number + 1);
            }
            self.asked.notify_one();
            grown.await;
        }
    }
}

/// Columns of a leaf under the names that the plan above knows.
pub(super) fn leaf_schema(columns: &[(ColId, DataType)]) -> SchemaRef {
    let fields = columns.iter().map(|(id, ty)| Field::new(super::name_of(*id), ty.to_arrow(), true));
    Arc::new(Schema::new(fields.collect::<Vec<Field>>()))
}

pub(super) fn renamed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
        .map_err(|error| SqlError::internal(format!("rows of a WITH query are ill-formed: {error}")))
}

impl Lowerer<'_> {
    /// The rows of a WITH query that is computed once.
    pub(super) fn shared(&mut self, id: CteId, columns: &[(ColId, DataType)]) -> Result<LogicalPlan> {
        let query = self.query;
        let cte = query.ctes.get(&id).ok_or_else(|| SqlError::internal(format!("no WITH query has number {id}")))?;
        if !super::apply::outer_columns(query, &cte.plan, None).is_empty() {
            return Err(SqlError::not_supported("a WITH query depends on the row of an outer query"));
        }
        let layer = self.ctx.shared.layer(id);
        let known = layer.ctes.lock().get(&id).cloned();
        let shared = known.unwrap_or_else(|| {
            let outputs = cte.columns.iter().map(|(id, ty)| OutputColumn::computed(*id, ty.clone()));
            let query = super::apply::part(query, cte.plan.clone(), outputs.collect());
            let ctx = RunContext { shared: layer.clone(), ..self.ctx.clone() };
            let runtime = self.applier.runtime();
            let task = Mutex::new(None);
            let shared = Arc::new(SharedCte { rows: Mutex::default(), runtime, query, ctx, task });
            layer.ctes.lock().insert(id, shared.clone());
            shared
        });
        self.leaf(columns, Leaf::Shared { name: cte.name.clone(), shared })
    }

    /// Those WITH queries that read the rows of a recursion's last round, also by way of others.
    pub(super) fn of_round(&self, recursion: CteId) -> Vec<SharedOfRound> {
        fn reads(plan: &Plan, recursion: CteId, query: &Query) -> bool {
            match plan {
                Plan::Working { cte, .. } => *cte == recursion,
                Plan::Shared { cte, .. } => query.ctes.get(cte).is_some_and(|cte| reads(&cte.plan, recursion, query)),
                _ => plan.inputs().into_iter().any(|input| reads(input, recursion, query)),
            }
        }
        let of_round = self.query.ctes.iter().filter(|(_, cte)| reads(&cte.plan, recursion, self.query));
        of_round.map(|(id, _)| SharedOfRound { layer: self.ctx.shared.layer(*id), id: *id }).collect()
    }

    /// Inside a step: the rows of the last round.
    pub(super) fn working(&mut self, id: CteId, columns: &[(ColId, DataType)]) -> Result<LogicalPlan> {
        let rows = self.ctx.shared.working(id);
        self.leaf(columns, Leaf::Working(rows))
    }

    fn leaf(&mut self, columns: &[(ColId, DataType)], leaf: Leaf) -> Result<LogicalPlan> {
        let schema = leaf_schema(columns);
        for (id, ty) in columns {
            self.define(*id, ty);
        }
        let df_schema = Arc::new(DFSchema::try_from(schema.as_ref().clone())?);
        Ok(Node::plan(Arc::new(LeafOperator { leaf, schema }), Vec::new(), df_schema))
    }
}

#[derive(Clone)]
enum Leaf {
    Shared { name: String, shared: Arc<SharedCte> },
    Working(WorkingTable),
}

struct LeafOperator {
    leaf: Leaf,
    schema: SchemaRef,
}

impl Operator for LeafOperator {
    fn name(&self) -> &'static str {
        match &self.leaf {
            Leaf::Shared { .. } => "CTE Scan",
            Leaf::Working(_) => "Working Table",
        }
    }

    fn label(&self) -> String {
        match &self.leaf {
            Leaf::Shared { name, .. } => format!("CTE Scan: {name}"),
            Leaf::Working(_) => "Working Table".to_string(),
        }
    }

    fn columns(&self) -> Columns<'_> {
        Columns::Own
    }

    fn plan(&self, _inputs: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(self.schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(LeafExec {
            leaf: self.leaf.clone(),
            label: self.label(),
            schema: self.schema.clone(),
            properties: Arc::new(properties),
        }))
    }
}

struct LeafExec {
    leaf: Leaf,
    label: String,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for LeafExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl DisplayAs for LeafExec {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl ExecutionPlan for LeafExec {
    fn name(&self) -> &'static str {
        match &self.leaf {
            Leaf::Shared { .. } => "CTE Scan",
            Leaf::Working(_) => "Working Table",
        }
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> DfResult<TreeNodeRecursion>,
    ) -> DfResult<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let schema = self.schema.clone();
        match &self.leaf {
            Leaf::Working(rows) => {
                let batches = rows.lock().clone();
                let named = batches.iter().map(|batch| renamed(batch, &schema).map_err(DataFusionError::from));
                let named: Vec<DfResult<RecordBatch>> = named.collect();
                Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::iter(named))))
            }
            Leaf::Shared { shared, .. } => {
                shared.start()?;
                let rows = shared.rows.lock().clone();
                let out = schema.clone();
                let batches = futures::stream::try_unfold(0, move |number| {
                    let (rows, schema) = (rows.clone(), schema.clone());
                    async move {
                        let batch = rows.batch(number).await?;
                        let batch = batch.map(|batch| renamed(&batch, &schema)).transpose()?;
                        Ok::<_, DataFusionError>(batch.map(|batch| (batch, number + 1)))
                    }
                });
                Ok(Box::pin(RecordBatchStreamAdapter::new(out, batches)))
            }
        }
    }
}
