//! Base tables: a provider for DataFusion's planner and the operator that reads tablets.
//!
//! Each partition of the operator is a worker of one `exec::Scan`, so that none idles while another has work.

use super::{Lowerer, Reach, name_of};
use crate::error::{Result, SqlError};
use crate::plan::ColId;
use crate::run::stats::RunStats;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType as ArrowType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use basalt_engine::{ReadContext, ScanSpec, ScanStats};
use basalt_exec::{Scan, Stop, Worker};
use basalt_types::{ColumnId, ColumnPredicate, CompareOp, DataType, Datum, PhysType, TableDef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Column, ScalarValue, Statistics};
use datafusion::datasource::{TableType, provider_as_source};
use datafusion::error::Result as DfResult;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{
    Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, Operator, TableProviderFilterPushDown,
};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a scan did, for EXPLAIN; empty until it starts.
type Report = Arc<Mutex<Option<Arc<ScanStats>>>>;

impl Lowerer<'_> {
    pub(super) fn scan(
        &mut self,
        table: &Arc<TableDef>,
        columns: &[(ColId, ColumnId)],
        identity: Option<[ColId; 3]>,
    ) -> Result<LogicalPlan> {
        if !table.is_populated() && !self.ctx.described {
            let message = format!("materialized view \"{}\" has not been populated", table.name);
            return Err(SqlError::new("55000", message).with_hint("Use the REFRESH MATERIALIZED VIEW command."));
        }
        let name = self.fresh_name("t");
        let mut fields = Vec::with_capacity(columns.len() + 3);
        let mut reach = Vec::with_capacity(columns.len() + 3);
        for (id, column) in columns {
            let def = table.column(*column);
            fields.push(Field::new(name_of(*id), def.ty.to_arrow(), !def.not_null));
            reach.push((*id, def.ty.clone()));
        }
        if let Some([tablet, key, stamp]) = identity {
            fields.push(Field::new(name_of(tablet), ArrowType::Int64, false));
            fields.push(Field::new(name_of(key), ArrowType::BinaryView, false));
            fields.push(Field::new(name_of(stamp), ArrowType::Int64, false));
            reach.extend([(tablet, DataType::Int8), (key, DataType::Bytea), (stamp, DataType::Int8)]);
        }
        for (id, ty) in reach {
            self.columns.insert(id, Reach { column: Column::new(Some(name.clone()), name_of(id)), ty });
        }
        let provider = BasaltTable {
            table: table.clone(),
            columns: columns.iter().map(|(_, column)| *column).collect(),
            schema: Arc::new(Schema::new(fields)),
            read: self.ctx.read.clone(),
            rows: self.ctx.system.engine.estimated_rows(table),
            stop: self.ctx.stop.clone(),
            report: Report::default(),
            stats: self.ctx.stats.clone(),
        };
        Ok(LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(provider)), None)?.build()?)
    }
}

/// One scan of one table by one statement.
struct BasaltTable {
    table: Arc<TableDef>,
    /// Column behind each field; the identity's three fields follow.
    columns: Vec<ColumnId>,
    schema: SchemaRef,
    read: ReadContext,
    rows: u64,
    stop: Stop,
    report: Report,
    stats: Arc<RunStats>,
}

impl fmt::Debug for BasaltTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.table.name)
    }
}

impl BasaltTable {
    fn column_of(&self, column: &Column) -> Option<(ColumnId, &DataType)> {
        let index = self.schema.index_of(&column.name).ok()?;
        let id = *self.columns.get(index)?;
        Some((id, &self.table.column(id).ty))
    }

    /// A conjunct that storage can skip by.
    fn predicate(&self, expr: &DfExpr) -> Option<ColumnPredicate> {
        match expr {
            DfExpr::BinaryExpr(binary) => {
                let (column, literal, flipped) = match (&*binary.left, &*binary.right) {
                    (DfExpr::Column(column), DfExpr::Literal(literal, _)) => (column, literal, false),
                    (DfExpr::Literal(literal, _), DfExpr::Column(column)) => (column, literal, true),
                    _ => return None,
                };
                let (id, ty) = self.column_of(column)?;
                let op = match (binary.op, flipped) {
                    (Operator::Eq, _) => CompareOp::Eq,
                    (Operator::NotEq, _) => CompareOp::NotEq,
                    (Operator::Lt, false) | (Operator::Gt, true) => CompareOp::Lt,
                    (Operator::LtEq, false) | (Operator::GtEq, true) => CompareOp::LtEq,
                    (Operator::Gt, false) | (Operator::Lt, true) => CompareOp::Gt,
                    (Operator::GtEq, false) | (Operator::LtEq, true) => CompareOp::GtEq,
                    _ => return None,
                };
                Some(ColumnPredicate::Compare { column: id, op, value: datum(literal, ty)? })
            }
            DfExpr::InList(list) if !list.negated => {
                let DfExpr::Column(column) = &*list.expr else { return None };
                let (id, ty) = self.column_of(column)?;
                let values = list.list.iter().map(|item| match item {
                    DfExpr::Literal(literal, _) => datum(literal, ty),
                    _ => None,
                });
                Some(ColumnPredicate::In { column: id, values: values.collect::<Option<_>>()? })
            }
            DfExpr::IsNull(inner) => match &**inner {
                DfExpr::Column(column) => Some(ColumnPredicate::IsNull { column: self.column_of(column)?.0 }),
                _ => None,
            },
            DfExpr::IsNotNull(inner) => match &**inner {
                DfExpr::Column(column) => Some(ColumnPredicate::IsNotNull { column: self.column_of(column)?.0 }),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A literal as the column stores it; `None` for null and for types whose stored order is another.
fn datum(literal: &ScalarValue, ty: &DataType) -> Option<Datum> {
    if matches!(
        ty,
        DataType::Float4
            | DataType::Float8
            | DataType::Interval
            | DataType::Jsonb
            | DataType::Array(_)
            | DataType::Range(_)
            | DataType::Multirange(_)
    ) {
        return None;
    }
    let decimal = |value: i128| match ty.phys() {
        Some(PhysType::I64) => i64::try_from(value).ok().map(Datum::I64),
        Some(PhysType::I128) => Some(Datum::I128(value)),
        _ => None,
    };
    match literal {
        ScalarValue::Boolean(value) => value.map(Datum::Bool),
        ScalarValue::Int16(value) => value.map(Datum::I16),
        ScalarValue::Int32(value) | ScalarValue::Date32(value) => value.map(Datum::I32),
        ScalarValue::Int64(value)
        | ScalarValue::Time64Microsecond(value)
        | ScalarValue::TimestampMicrosecond(value, _) => value.map(Datum::I64),
        ScalarValue::Decimal128(value, _, scale) if ty.decimal().is_some_and(|(_, own)| own == *scale) => {
            decimal((*value)?)
        }
        ScalarValue::Utf8View(value) => value.as_deref().map(Datum::text),
        ScalarValue::BinaryView(value) if matches!(ty, DataType::Bytea | DataType::Inet) => {
            value.as_deref().map(|bytes| Datum::Bytes(bytes.into()))
        }
        ScalarValue::FixedSizeBinary(16, value) if *ty == DataType::Uuid => {
            value.as_deref()?.try_into().ok().map(Datum::Fixed16)
        }
        _ => None,
    }
    .filter(|value| value.phys() == ty.phys())
}

#[async_trait]
impl TableProvider for BasaltTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[DfExpr],
        limit: Option<usize>,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let wanted = projection.unwrap_or(&all);
        let with_identity = wanted.iter().any(|index| *index >= self.columns.len());
        let columns: Vec<ColumnId> = wanted.iter().filter_map(|index| self.columns.get(*index)).copied().collect();
        // The identity comes as three columns after the others; each field says which of all it is.
        let order = wanted
            .iter()
            .scan(0, |stored, index| {
                Some(match index.checked_sub(self.columns.len()) {
                    Some(part) => columns.len() + part,
                    None => {
                        *stored += 1;
                        *stored - 1
                    }
                })
            })
            .collect();
        let schema = Arc::new(self.schema.project(wanted)?);
        let predicates: Vec<ColumnPredicate> = filters.iter().filter_map(|filter| self.predicate(filter)).collect();
        let partitions = state.config().target_partitions().max(1);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        let selectivity = 0.3f64.powi(i32::try_from(predicates.len().min(4)).unwrap_or(4));
        Ok(Arc::new(BasaltScan {
            source: Arc::new(Source {
                spec: ScanSpec { table: self.table.clone(), columns, predicates, with_identity },
                read: self.read.clone(),
                stop: self.stop.clone(),
                report: self.report.clone(),
                stats: self.stats.clone(),
                started: Mutex::new(None),
            }),
            order,
            rows: ((self.rows as f64) * selectivity).ceil() as usize,
            limit,
            schema,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }))
    }

    fn supports_filters_pushdown(&self, filters: &[&DfExpr]) -> DfResult<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| match self.predicate(filter) {
                Some(_) => TableProviderFilterPushDown::Inexact,
                None => TableProviderFilterPushDown::Unsupported,
            })
            .collect())
    }

    fn statistics(&self) -> Option<Statistics> {
        let rows = usize::try_from(self.rows).unwrap_or(usize::MAX);
        Some(Statistics::new_unknown(&self.schema).with_num_rows(Precision::Inexact(rows)))
    }
}

/// What is scanned, for all partitions.
struct Source {
    spec: ScanSpec,
    read: ReadContext,
    stop: Stop,
    report: Report,
    stats: Arc<RunStats>,
    /// Made when the first partition starts.
    started: Mutex<Option<Arc<Scan>>>,
}

impl Drop for Source {
    fn drop(&mut self) {
        if let Some(scan) = &*self.started.lock() {
            self.stats.add_bytes_read(scan.stats().bytes_read.load(Ordering::Relaxed));
        }
    }
}

impl Source {
    fn worker(&self) -> Result<Worker> {
        let mut started = self.started.lock();
        if let Some(scan) = &*started {
            return Ok(scan.worker());
        }
        let scan = Scan::start(&self.read, self.spec.clone(), self.stop.clone())?;
        *self.report.lock() = Some(scan.stats().clone());
        Ok(started.insert(scan).worker())
    }
}

/// Reads a table's morsels.
struct BasaltScan {
    source: Arc<Source>,
    /// Which of the engine's columns each output field is.
    order: Vec<usize>,
    rows: usize,
    /// Rows after which a partition may stop.
    limit: Option<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl fmt::Debug for BasaltScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column Scan {}", self.source.spec.table.name)
    }
}

impl DisplayAs for BasaltScan {
    fn fmt_as(&self, _t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Column Scan on {}", self.source.spec.table.name)?;
        if let Some(stats) = &*self.source.report.lock() {
            let total = stats.row_groups_total.load(Ordering::Relaxed);
            let pruned = stats.row_groups_pruned.load(Ordering::Relaxed);
            write!(f, " (row groups pruned {pruned}/{total})")?;
        }
        Ok(())
    }
}

/// One partition's progress.
struct Reader {
    source: Arc<Source>,
    /// Taken at the first row that is asked for.
    worker: Option<Worker>,
    order: Vec<usize>,
    limit: Option<usize>,
    schema: SchemaRef,
    rows: usize,
    metrics: BaselineMetrics,
}

impl Reader {
    fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        let timer = self.metrics.elapsed_compute().clone();
        let _timer = timer.timer();
        if self.limit.is_some_and(|limit| self.rows >= limit) {
            return Ok(None);
        }
        let worker = match &mut self.worker {
            Some(worker) => worker,
            None => self.worker.insert(self.source.worker()?),
        };
        let Some(batch) = worker.next_batch().map_err(SqlError::from)? else { return Ok(None) };
        self.rows += batch.rows;
        self.metrics.record_output(batch.rows);
        let columns = self.order.iter().map(|index| batch.columns[*index].clone()).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        Ok(Some(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?))
    }
}

impl ExecutionPlan for BasaltScan {
    fn name(&self) -> &'static str {
        "Column Scan"
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

    fn replace_children(
        self: Arc<Self>,
        _children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _children: Vec<Arc<dyn ExecutionPlan>>) -> DfResult<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    /// The same scan from its beginning.
    fn reset_state(self: Arc<Self>) -> DfResult<Arc<dyn ExecutionPlan>> {
        let Source { spec, read, stop, report, stats, .. } = &*self.source;
        let (spec, read, stop, report) = (spec.clone(), read.clone(), stop.clone(), report.clone());
        let stats = stats.clone();
        Ok(Arc::new(BasaltScan {
            source: Arc::new(Source { spec, read, stop, report, stats, started: Mutex::new(None) }),
            order: self.order.clone(),
            rows: self.rows,
            limit: self.limit,
            schema: self.schema.clone(),
            properties: self.properties.clone(),
            metrics: self.metrics.clone(),
        }))
    }

    fn execute(&self, partition: usize, _context: Arc<TaskContext>) -> DfResult<SendableRecordBatchStream> {
        let reader = Reader {
            source: self.source.clone(),
            worker: None,
            order: self.order.clone(),
            limit: self.limit,
            schema: self.schema.clone(),
            rows: 0,
            metrics: BaselineMetrics::new(&self.metrics, partition),
        };
        let batches = futures::stream::unfold(reader, |mut reader| async move {
            // The gates above say when others get their turn.
            let next = reader.next().transpose()?;
            Some((next, reader))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), batches)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _input_stats: &[Arc<Statistics>],
        args: &StatisticsArgs,
    ) -> DfResult<Arc<Statistics>> {
        let partitions = self.properties.output_partitioning().partition_count();
        let rows = if args.partition().is_some() { self.rows / partitions } else { self.rows };
        let width: usize =
            self.schema.fields().iter().map(|field| field.data_type().primitive_width().unwrap_or(24)).sum();
        Ok(Arc::new(
            Statistics::new_unknown(&self.schema)
                .with_num_rows(Precision::Inexact(rows))
                .with_total_byte_size(Precision::Inexact(rows * width)),
        ))
    }
}
