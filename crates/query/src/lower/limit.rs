//! LIMIT, OFFSET and FETCH; WITH TIES is an operator that passes on rows as long as they equal the last one that
//! counts.

use super::Lowerer;
use super::node::{Node, Operator, as_column, with_computed};
use super::stage::{Batches, Stage, Work, stream_of};
use crate::error::{Result, SqlError};
use crate::plan::row_count::{CountPlace, LIMIT, OFFSET, row_count};
use crate::plan::{Plan, SortKey};
use arrow::row::{OwnedRow, RowConverter, SortField};
use arrow_array::{ArrayRef, RecordBatch};
use basalt_expr::tree::Expr;
use basalt_types::Datum;
use datafusion::error::Result as DfResult;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_expr::{LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::Distribution;
use futures::StreamExt;
use std::sync::Arc;

impl Lowerer<'_> {
    pub(super) fn limit(&mut self, input: &Plan, limit: Option<&Expr>, offset: Option<&Expr>) -> Result<LogicalPlan> {
        // As PostgreSQL, which looks at OFFSET first.
        let offset = self.count(offset, OFFSET)?;
        let limit = self.count(limit, LIMIT)?;
        let input = self.plan(input)?;
        if offset.unwrap_or(0) == 0 && limit.is_none() {
            return self.fenced(input);
        }
        Ok(LogicalPlanBuilder::from(input).limit(offset.unwrap_or(0), limit)?.build()?)
    }

    fn count(&mut self, expr: Option<&Expr>, place: CountPlace) -> Result<Option<usize>> {
        let Some(expr) = expr else { return Ok(None) };
        let count = row_count(&self.one_value(expr)?, place)?;
        Ok(count.map(|count| usize::try_from(count).unwrap_or(usize::MAX)))
    }

    /// The value of an expression without columns. 0A000 if it has outer columns: then the query around is run row
    /// by row. What subqueries give is in its place already ([`super::limits`]).
    pub(super) fn one_value(&mut self, expr: &Expr) -> Result<Datum> {
        if expr.any(&mut |node| matches!(node, Expr::Hole { .. })) {
            return Err(SqlError::not_supported("a row count depends on the row of an outer query"));
        }
        Ok(expr.eval_scalar(&[], &self.ctx.eval)?)
    }

    pub(super) fn ties(&mut self, input: &Plan, limit: Option<&Expr>, offset: Option<&Expr>) -> Result<LogicalPlan> {
        let offset = self.count(offset, OFFSET)?.unwrap_or(0);
        let limit = self.count(limit, LIMIT)?;
        let limit = limit
            .ok_or_else(|| SqlError::new("2201W", "row count cannot be null in FETCH FIRST ... WITH TIES clause"))?;
        let passed = input.columns();
        let mut lowered = self.plan(input)?;
        let (mut columns, mut computed, mut order) = (Vec::new(), Vec::new(), Vec::new());
        for key in sort_of(input) {
            if self.is_constant(&key.expr) {
                continue;
            }
            order.push(arrow::compute::SortOptions { descending: key.descending, nulls_first: key.nulls_first });
            let lowered = self.keyed(&key.expr)?;
            columns.push(as_column(lowered, &mut computed, || self.fresh_name("t")));
        }
        if columns.is_empty() {
            // All rows tie.
            let limit = (limit == 0).then_some(0);
            return Ok(LogicalPlanBuilder::from(lowered).limit(offset, limit)?.build()?);
        }
        lowered = with_computed(lowered, computed)?;
        let ties = Node::over(Arc::new(Ties(Arc::new(Spec { offset, limit, order }))), columns, lowered)?;
        let kept = passed.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
        Ok(LogicalPlanBuilder::from(ties).project(kept)?.build()?)
    }
}

/// The order of a plan's rows.
fn sort_of(plan: &Plan) -> &[SortKey] {
    match plan {
        Plan::Sort { keys, .. } => keys,
        Plan::Distinct { input, .. } | Plan::Project { input, .. } | Plan::Filter { input, .. } => sort_of(input),
        _ => &[],
    }
}

struct Spec {
    offset: usize,
    limit: usize,
    order: Vec<arrow::compute::SortOptions>,
}

/// The operator as plans have it.
struct Ties(Arc<Spec>);

impl Operator for Ties {
    fn name(&self) -> &'static str {
        "LimitWithTies"
    }

    fn label(&self) -> String {
        format!("Limit: {} with ties", self.0.limit)
    }

    fn stage(self: Arc<Self>) -> Option<Arc<dyn Stage>> {
        Some(self)
    }
}

impl Stage for Ties {
    fn keeps_order(&self) -> bool {
        false
    }

    fn distribution(&self, _args: &[Arc<dyn PhysicalExpr>]) -> Distribution {
        Distribution::SinglePartition
    }

    fn ordering(&self, args: &[Arc<dyn PhysicalExpr>]) -> Option<OrderingRequirements> {
        let keys = args.iter().zip(&self.0.order);
        let keys = keys.map(|(key, options)| PhysicalSortExpr::new(key.clone(), *options));
        LexOrdering::new(keys).map(OrderingRequirements::from)
    }

    fn run(&self, work: Work) -> DfResult<SendableRecordBatchStream> {
        let schema = work.schema.clone();
        let cutter = Cutter { spec: self.0.clone(), work, met: 0, last: None, converter: None, ended: false };
        Ok(stream_of(cutter, schema))
    }
}

struct Cutter {
    spec: Arc<Spec>,
    work: Work,
    /// Rows met, those of OFFSET included.
    met: usize,
    /// The keys of the last row that counts, once it is met.
    last: Option<OwnedRow>,
    converter: Option<RowConverter>,
    ended: bool,
}

impl Batches for Cutter {
    async fn next(&mut self) -> DfResult<Option<RecordBatch>> {
        while !self.ended && self.spec.limit > 0 {
            let Some(batch) = self.work.input.next().await.transpose()? else { return Ok(None) };
            let kept = self.cut(&batch)?;
            if kept.num_rows() > 0 {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }
}

impl Cutter {
    fn cut(&mut self, batch: &RecordBatch) -> DfResult<RecordBatch> {
        let elapsed = self.work.elapsed.clone();
        let _timer = elapsed.timer();
        let rows = batch.num_rows();
        let first = self.spec.offset.saturating_sub(self.met).min(rows);
        let wanted = self.spec.offset.saturating_add(self.spec.limit);
        let mut end = wanted.saturating_sub(self.met).min(rows);
        if end < rows || wanted == self.met + rows {
            let keys = self.work.args.iter().map(|key| key.evaluate(batch)?.into_array(rows));
            let keys = keys.collect::<DfResult<Vec<ArrayRef>>>()?;
            let converter = match &mut self.converter {
                Some(converter) => converter,
                empty => {
                    let fields = keys.iter().map(|key| SortField::new(key.data_type().clone())).collect();
                    empty.insert(RowConverter::new(fields)?)
                }
            };
            let encoded = converter.convert_columns(&keys)?;
            if self.last.is_none() && end > 0 {
                self.last = Some(encoded.row(end - 1).owned());
            }
            if let Some(last) = &self.last {
                while end < rows && encoded.row(end) == last.row() {
                    end += 1;
                }
            }
            self.ended = end < rows;
        }
        self.met += rows;
        Ok(batch.slice(first, end.saturating_sub(first)))
    }
}
