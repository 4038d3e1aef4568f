//! Plan nodes.

use super::connected::connected;
use super::{Lowerer, keys, name_of};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, JoinKind, Plan, SetColumn, SetOp, SortKey};
use crate::statement::rows::record_batch;
use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use datafusion::common::{Column, DFSchema, JoinType, NullEquality, ScalarValue};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, Values};
use std::sync::Arc;

impl Lowerer<'_> {
    pub(super) fn plan(&mut self, plan: &Plan) -> Result<LogicalPlan> {
        match plan {
            Plan::Unit => Ok(LogicalPlanBuilder::empty(true).build()?),
            Plan::Scan { table, columns, identity, .. } => self.scan(table, columns, *identity),
            Plan::VirtualScan { table, columns } => {
                let rows = table.rows(&self.ctx.system)?;
                let arrays = columns.iter().map(|(_, index)| rows[*index].clone()).collect();
                let batch = record_batch(arrays, rows.first().map_or(0, |column| column.len()))?;
                self.memory(&plan.columns(), &[batch])
            }
            Plan::Values { columns, rows } => self.values(columns, rows),
            Plan::Project { input, exprs } => self.project(input, exprs),
            Plan::ProjectSet { input, sets, ordinality, keep_empty } => {
                self.project_set(input, sets, *ordinality, *keep_empty)
            }
            Plan::Filter { input, condition } => {
                let input = match connected(input, condition) {
                    Some(connected) => self.plan(&connected)?,
                    None => self.plan(input)?,
                };
                let condition = self.filter_expr(condition)?;
                Ok(LogicalPlanBuilder::from(input).filter(condition)?.build()?)
            }
            Plan::Sample { input, identity, percent, seed } => self.sample(input, *identity, percent, seed.as_ref()),
            Plan::Join { left, right, kind, condition, lateral } => {
                self.join(left, right, *kind, condition.as_ref(), *lateral)
            }
            Plan::Aggregate { input, groups, aggregates, sets } => {
                let narrows = self.narrows;
                self.narrows |= self.restarts_at(plan);
                let lowered = match sets {
                    None => self.aggregate(input, groups, aggregates),
                    Some(sets) => self.grouping_sets(input, groups, aggregates, sets),
                };
                self.narrows = narrows;
                lowered
            }
            Plan::Window { input, calls } => self.window(input, calls),
            Plan::Sort { input, keys } => {
                let input = self.plan(input)?;
                let keys = self.sort_keys(keys)?;
                if keys.is_empty() {
                    return Ok(input);
                }
                Ok(LogicalPlanBuilder::from(input).sort(keys)?.build()?)
            }
            Plan::Limit { input, limit, offset, ties: false } => self.limit(input, limit.as_ref(), offset.as_ref()),
            Plan::Limit { input, limit, offset, ties: true } => self.ties(input, limit.as_ref(), offset.as_ref()),
            Plan::Distinct { input, on: None } => {
                let columns: Vec<(ColId, DataType)> = input.columns();
                let input = self.plan(input)?;
                self.distinct(input, &columns)
            }
            Plan::Distinct { input, on: Some(on) } => self.distinct_on(input, on),
            // Only for EXPLAIN: before a run the session has put rows here.
            Plan::Given { columns, .. } => self.memory(columns, &[]),
            Plan::Rows { columns, rows } => self.memory(columns, &rows.batches),
            // Only for EXPLAIN: before a run the session has put rows here.
            Plan::LockRows(rows) => {
                let input = self.plan(&rows.input)?;
                Ok(LogicalPlanBuilder::from(input).build()?)
            }
            Plan::Shared { cte, columns } => self.shared(*cte, columns),
            Plan::Recursive { cte, base, step, distinct, columns } => {
                self.recursive(*cte, base, step, *distinct, columns)
            }
            Plan::Working { cte, columns } => self.working(*cte, columns),
            Plan::SetOp { op, all, left, right, columns } => self.set_operation(*op, *all, left, right, columns),
        }
    }

    /// Rows that are at hand, as a table.
    fn memory(&mut self, columns: &[(ColId, DataType)], batches: &[RecordBatch]) -> Result<LogicalPlan> {
        let name = self.fresh_name("m");
        let fields = columns.iter().map(|(id, ty)| Field::new(name_of(*id), ty.to_arrow(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<Field>>()));
        let named = batches.iter().map(|batch| {
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            RecordBatch::try_new_with_options(schema.clone(), batch.columns().to_vec(), &options)
                .map_err(|error| SqlError::internal(format!("rows at hand are ill-formed: {error}")))
        });
        let table = MemTable::try_new(schema.clone(), vec![named.collect::<Result<Vec<RecordBatch>>>()?])?;
        for (id, ty) in columns {
            let column = Column::new(Some(name.clone()), name_of(*id));
            self.columns.insert(*id, super::Reach { column, ty: ty.clone() });
        }
        Ok(LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(table)), None)?.build()?)
    }

    fn values(&mut self, columns: &[(ColId, DataType)], rows: &[Vec<Expr>]) -> Result<LogicalPlan> {
        let has_holes = rows.iter().flatten().any(|expr| expr.any(&mut |node| matches!(node, Expr::Hole { .. })));
        if rows.is_empty() || columns.is_empty() || has_holes {
            return self.values_one_by_one(columns, rows);
        }
        let fields: Vec<Field> = columns.iter().map(|(id, ty)| Field::new(name_of(*id), ty.to_arrow(), true)).collect();
        let schema = DFSchema::try_from(Schema::new(fields))?;
        let mut values = Vec::with_capacity(rows.len());
        for row in rows {
            values.push(row.iter().map(|expr| self.expr(expr)).collect::<Result<Vec<_>>>()?);
        }
        for (id, ty) in columns {
            self.define(*id, ty);
        }
        Ok(LogicalPlan::Values(Values { schema: Arc::new(schema), values }))
    }

    /// Rows whose expressions need plans of their own.
    fn values_one_by_one(&mut self, columns: &[(ColId, DataType)], rows: &[Vec<Expr>]) -> Result<LogicalPlan> {
        let mut all: Option<LogicalPlanBuilder> = None;
        for row in rows {
            let mut exprs = Vec::with_capacity(row.len());
            for (expr, (id, _)) in row.iter().zip(columns) {
                exprs.push(self.expr(expr)?.alias(name_of(*id)));
            }
            let one = LogicalPlanBuilder::empty(true).project(exprs)?.build()?;
            all = Some(match all {
                None => LogicalPlanBuilder::from(one),
                Some(all) => all.union(one)?,
            });
        }
        for (id, ty) in columns {
            self.define(*id, ty);
        }
        match all {
            Some(all) => Ok(all.build()?),
            None => Ok(LogicalPlanBuilder::empty(false).build()?),
        }
    }

    fn project(&mut self, input: &Plan, exprs: &[(ColId, Expr)]) -> Result<LogicalPlan> {
        let input = self.plan(input)?;
        self.project_over(input, exprs)
    }

    pub(super) fn project_over(&mut self, mut input: LogicalPlan, exprs: &[(ColId, Expr)]) -> Result<LogicalPlan> {
        if super::single_rows::are_needed(exprs.iter().map(|(_, expr)| expr)) {
            input = self.single_rows(input)?;
        }
        let mut out = Vec::with_capacity(exprs.len());
        for (id, expr) in exprs {
            out.push(match expr {
                Expr::Hole { id: known, ty } if known == id => self.column(*id, ty)?,
                expr => {
                    let lowered = self.expr(expr)?;
                    if matches!(lowered, DfExpr::Literal(..)) || self.is_constant(expr) {
                        self.constants.insert(*id);
                    }
                    lowered.alias(name_of(*id))
                }
            });
        }
        let mut volatile = Vec::new();
        for (id, expr) in exprs {
            if !matches!(expr, Expr::Hole { id: known, .. } if known == id) {
                self.define(*id, &expr.ty());
            }
            if self.calls_volatile(expr) {
                volatile.push(*id);
            }
        }
        let projected = LogicalPlanBuilder::from(input).project(out)?.build()?;
        if volatile.is_empty() { Ok(projected) } else { self.computed_here(projected, &volatile) }
    }

    fn join(
        &mut self,
        left: &Plan,
        right: &Plan,
        kind: JoinKind,
        condition: Option<&Expr>,
        lateral: bool,
    ) -> Result<LogicalPlan> {
        let (left_plan, right_plan) = (left, right);
        let left = self.plan(left)?;
        if lateral && self.nested_loops {
            return self.loops(left, right, kind, condition);
        }
        let right = if lateral { self.lateral(right)? } else { self.plan(right)? };
        if matches!(kind, JoinKind::Left | JoinKind::Full) {
            self.may_be_null(right_plan);
        }
        if matches!(kind, JoinKind::Right | JoinKind::Full) {
            self.may_be_null(left_plan);
        }
        let join_type = match kind {
            JoinKind::Inner => JoinType::Inner,
            JoinKind::Left => JoinType::Left,
            JoinKind::Right => JoinType::Right,
            JoinKind::Full => JoinType::Full,
        };
        let mut conditions = Vec::new();
        for conjunct in condition.cloned().map(Expr::split_and).unwrap_or_default() {
            conditions.push(self.expr(&conjunct)?);
        }
        let builder = LogicalPlanBuilder::from(left);
        if kind == JoinKind::Inner && conditions.is_empty() && !lateral {
            return Ok(builder.cross_join(right)?.build()?);
        }
        if conditions.is_empty() {
            conditions.push(DfExpr::Literal(ScalarValue::Boolean(Some(true)), None));
        }
        Ok(builder.join_on(right, join_type, conditions)?.build()?)
    }

    /// A side that an outer join fills with nulls has no constants.
    pub(super) fn may_be_null(&mut self, side: &Plan) {
        for (id, _) in side.columns() {
            self.constants.remove(&id);
        }
    }

    /// The right side of a lateral join: what it does not define comes from the left.
    fn lateral(&mut self, right: &Plan) -> Result<LogicalPlan> {
        super::pull_up::check_lateral(self.query, right)?;
        let mut local = ahash::AHashSet::new();
        super::defined(right, &mut local);
        self.local.push(local);
        let lowered = self.plan(right);
        self.local.pop();
        let lowered = lowered?;
        let outer_ref_columns = lowered.all_out_ref_exprs();
        if outer_ref_columns.is_empty() {
            return Ok(lowered);
        }
        let subquery = datafusion::logical_expr::Subquery {
            subquery: Arc::new(lowered),
            outer_ref_columns,
            spans: datafusion::common::Spans::new(),
        };
        Ok(LogicalPlan::Subquery(subquery))
    }

    pub(super) fn sort_keys(&mut self, keys: &[SortKey]) -> Result<Vec<Sort>> {
        let keys: Vec<&SortKey> = keys.iter().filter(|key| !self.is_constant(&key.expr)).collect();
        keys.iter().map(|key| Ok(Sort::new(self.keyed(&key.expr)?, !key.descending, key.nulls_first))).collect()
    }

    /// Whether an expression has the same value in every row.
    pub(super) fn is_constant(&self, expr: &Expr) -> bool {
        match expr {
            Expr::Const { .. } => true,
            Expr::Hole { id, .. } => self.constants.contains(id),
            _ => false,
        }
    }

    /// DISTINCT: a grouping by everything.
    pub(super) fn distinct(&mut self, input: LogicalPlan, columns: &[(ColId, DataType)]) -> Result<LogicalPlan> {
        self.distinct_ranked(input, columns, None)
    }

    fn distinct_ranked(
        &mut self,
        input: LogicalPlan,
        columns: &[(ColId, DataType)],
        rank: Option<&str>,
    ) -> Result<LogicalPlan> {
        if columns.is_empty() {
            return Ok(LogicalPlanBuilder::from(input).limit(0, Some(1))?.build()?);
        }
        let groups: Vec<(ColId, Expr)> =
            columns.iter().map(|(id, ty)| (*id, Expr::Hole { id: *id, ty: ty.clone() })).collect();
        self.grouped(input, &groups, &[], rank)
    }

    /// The first row of each group: numbered in the input's order, which is kept.
    fn distinct_on(&mut self, input: &Plan, on: &[Expr]) -> Result<LogicalPlan> {
        let columns = input.columns();
        let (body, sort): (&Plan, &[SortKey]) = match input {
            Plan::Sort { input, keys } => (input, keys),
            other => (other, &[]),
        };
        let body = self.plan(body)?;
        let on: Vec<&Expr> = on.iter().filter(|expr| !self.is_constant(expr)).collect();
        let partition = on.into_iter().map(|expr| self.keyed(expr)).collect::<Result<Vec<_>>>()?;
        let name = self.fresh_name("n");
        let body = self.numbered(body, partition, sort, &name)?;
        let mut builder = LogicalPlanBuilder::from(body).filter(super::window::is_first(&name))?;
        let sort = self.sort_keys(sort)?;
        if !sort.is_empty() {
            builder = builder.sort(sort)?;
        }
        let kept = columns.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
        Ok(builder.project(kept)?.build()?)
    }

    fn set_operation(
        &mut self,
        op: SetOp,
        all: bool,
        left: &Plan,
        right: &Plan,
        columns: &[SetColumn],
    ) -> Result<LogicalPlan> {
        let keeps_order = op == SetOp::Union && all;
        let left = if keeps_order { self.union_part(left)? } else { self.plan(left)? };
        let right = if keeps_order { self.union_part(right)? } else { self.plan(right)? };
        let side = |binder: &Self, plan: LogicalPlan, prefix: &str, pick: fn(&SetColumn) -> ColId| {
            let exprs = columns
                .iter()
                .map(|column| Ok(binder.column(pick(column), &column.ty)?.alias(format!("{prefix}{}", column.id))))
                .collect::<Result<Vec<_>>>()?;
            Ok::<LogicalPlan, SqlError>(LogicalPlanBuilder::from(plan).project(exprs)?.build()?)
        };
        let mut left = side(self, left, "c", |column| column.left)?;
        let outputs: Vec<(ColId, DataType)> = columns.iter().map(|column| (column.id, column.ty.clone())).collect();
        if op == SetOp::Union {
            let mut right = side(self, right, "c", |column| column.right)?;
            if !all && columns.iter().any(|column| Self::needs_key(&column.ty)) {
                // Of equal values that do not look alike the left side's is shown.
                let rank = self.fresh_name("s");
                for (number, side) in [&mut left, &mut right].into_iter().enumerate() {
                    let ranked = DfExpr::Literal(ScalarValue::Int64(Some(number as i64)), None).alias(&rank);
                    let exprs = side.schema().columns().into_iter().map(DfExpr::Column).chain([ranked]);
                    *side = LogicalPlanBuilder::from(side.clone()).project(exprs.collect::<Vec<_>>())?.build()?;
                }
                outputs.iter().for_each(|(id, ty)| self.define(*id, ty));
                let both = LogicalPlanBuilder::from(left).union(right)?.build()?;
                return self.distinct_ranked(both, &outputs, Some(&rank));
            }
            outputs.iter().for_each(|(id, ty)| self.define(*id, ty));
            let both = LogicalPlanBuilder::from(left).union(right)?.build()?;
            return if all { Ok(both) } else { self.distinct(both, &outputs) };
        }
        if all {
            let right = side(self, right, "c", |column| column.right)?;
            outputs.iter().for_each(|(id, ty)| self.define(*id, ty));
            return self.copies(op, left, right, &outputs);
        }
        if columns.is_empty() {
            let kind = if op == SetOp::Intersect { JoinType::LeftSemi } else { JoinType::LeftAnti };
            let always = DfExpr::Literal(ScalarValue::Boolean(Some(true)), None);
            let joined = LogicalPlanBuilder::from(left).join_on(right, kind, [always])?;
            return Ok(joined.limit(0, Some(1))?.build()?);
        }
        let right = side(self, right, "r", |column| column.right)?;
        outputs.iter().for_each(|(id, ty)| self.define(*id, ty));
        let kind = if op == SetOp::Intersect { JoinType::LeftSemi } else { JoinType::LeftAnti };
        self.matching(left, right, columns, kind, &outputs)
    }

    /// INTERSECT and EXCEPT: left rows with (without) an equal right row.
    fn matching(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        columns: &[SetColumn],
        kind: JoinType,
        outputs: &[(ColId, DataType)],
    ) -> Result<LogicalPlan> {
        let (mut left_names, mut right_names) = (Vec::new(), Vec::new());
        let (mut left_keys, mut right_keys) = (Vec::new(), Vec::new());
        for column in columns {
            let key = |name: String| self.as_key(DfExpr::Column(Column::new_unqualified(name)), &column.ty);
            left_keys.push(key(format!("c{}", column.id)).alias(format!("kl{}", column.id)));
            right_keys.push(key(format!("r{}", column.id)).alias(format!("kr{}", column.id)));
            left_names.push(Column::new_unqualified(format!("kl{}", column.id)));
            right_names.push(Column::new_unqualified(format!("kr{}", column.id)));
        }
        let kept: Vec<DfExpr> =
            outputs.iter().map(|(id, _)| DfExpr::Column(Column::new_unqualified(name_of(*id)))).collect();
        let left = LogicalPlanBuilder::from(left).project(kept.iter().cloned().chain(left_keys))?;
        let right = LogicalPlanBuilder::from(right).project(right_keys)?;
        let joined = left
            .join_detailed(right.build()?, kind, (left_names, right_names), None, NullEquality::NullEqualsNull)?
            .project(kept)?
            .build()?;
        self.distinct(joined, outputs)
    }

    /// Whether a type needs keys to be grouped by.
    pub(super) fn needs_key(ty: &DataType) -> bool {
        keys::key_type(ty).is_some()
    }
}
