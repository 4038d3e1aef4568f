//! Subqueries in expressions: joins where DataFusion can make them, otherwise run for the rows that ask for them
//! ([`super::apply`]).
//!
//! PostgreSQL runs what a row asks for, and a subquery without outer columns once, for the first row that asks. A join
//! is computed before any row asks. So what may fail, or calls something volatile, is no join where that would show;
//! that there are several rows for one is told when a row asks for the value.

use super::expr::comparison;
use super::udf::EvalUdf;
use super::{Lowerer, defined};
use crate::error::Result;
use crate::plan::{ColId, Plan, Query, Subquery, SubqueryKind, can_fail, is_volatile};
use ahash::AHashSet;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::{Expr, Truth};
use basalt_types::DataType;
use datafusion::common::Spans;
use datafusion::logical_expr::ExprSchemable;
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery as DfSubquery};
use std::sync::Arc;

impl Lowerer<'_> {
    /// A subquery's value.
    pub(super) fn subquery(&mut self, id: ColId, ty: &DataType, negated: bool) -> Result<DfExpr> {
        let subquery = &self.query.subqueries[&id];
        let outer = self.outer_columns(id);
        let correlated = !outer.is_empty();
        let joins = !(self.lazily || correlated && self.nested_loops);
        let is_condition = std::mem::take(&mut self.is_condition);
        let lowered = match &subquery.kind {
            SubqueryKind::Scalar { column, ty } if joins && !self.waits(subquery, correlated) => {
                self.scalar(&subquery.plan, *column, ty)?
            }
            SubqueryKind::Exists if gives_one_row(&subquery.plan) && !self.is_volatile(subquery) => {
                return Ok(datafusion::logical_expr::lit(!negated));
            }
            SubqueryKind::Exists if joins && self.in_filter && !self.is_volatile(subquery) => {
                return Ok(exists(self.sub_plan(&subquery.plan)?, negated));
            }
            SubqueryKind::Any { columns, condition } if joins && self.in_filter && self.null_is_false => {
                let correlated = !super::apply::outer_columns(self.query, &subquery.plan, None).is_empty();
                let by_key = !negated || is_condition && !correlated;
                return self.any(&subquery.plan, columns, condition, negated, by_key);
            }
            _ => {
                let args = outer.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
                self.applier.call(self.query, self.ctx, id, ty, &outer, args)?
            }
        };
        Ok(if negated { DfExpr::Not(Box::new(lowered)) } else { lowered })
    }

    pub(super) fn calls_volatile(&self, expr: &Expr) -> bool {
        expr.volatility() == Volatility::Volatile || self.any_subquery(expr, |inner| self.is_volatile(inner))
    }

    fn is_volatile(&self, subquery: &Subquery) -> bool {
        is_volatile(&subquery.plan, &self.query.subqueries)
    }

    /// Whether a scalar subquery is to run when a row asks for it. One with outer columns that may fail is a join first:
    /// run row by row it takes much longer ([`super::Lowering::careful`]).
    fn waits(&self, subquery: &Subquery, correlated: bool) -> bool {
        self.is_volatile(subquery) || (!correlated || self.careful) && can_fail(self.query, &subquery.plan)
    }

    /// Whether a subquery inside may fail for rows that do not reach it.
    pub(super) fn may_fail_early(&self, expr: &Expr) -> bool {
        self.any_subquery(expr, |inner| can_fail(self.query, &inner.plan) || self.is_volatile(inner))
    }

    /// Whether a subquery inside must not be looked at for rows that do not reach it.
    pub(super) fn must_wait(&self, expr: &Expr) -> bool {
        let refuses =
            |inner: &Subquery| matches!(inner.kind, SubqueryKind::Scalar { .. }) && !gives_one_row(&inner.plan);
        self.may_fail_early(expr) || self.any_subquery(expr, refuses)
    }

    pub(super) fn has_subquery(&self, expr: &Expr) -> bool {
        self.any_subquery(expr, |_| true)
    }

    fn any_subquery(&self, expr: &Expr, test: impl Fn(&Subquery) -> bool) -> bool {
        expr.any(&mut |node| match node {
            Expr::Hole { id, .. } => self.query.subqueries.get(id).is_some_and(&test),
            _ => false,
        })
    }

    /// Columns that a subquery (and what is nested in it) takes from outside.
    fn outer_columns(&self, id: ColId) -> Vec<(ColId, DataType)> {
        let Some(subquery) = self.query.subqueries.get(&id) else { return Vec::new() };
        let condition = match &subquery.kind {
            SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } => Some(condition),
            _ => None,
        };
        super::apply::outer_columns(self.query, &subquery.plan, condition)
    }

    /// A subquery's plan; what it does not define is an outer reference.
    fn sub_plan(&mut self, plan: &Plan) -> Result<LogicalPlan> {
        super::pull_up::check(self.query, plan)?;
        let mut local = AHashSet::new();
        defined(plan, &mut local);
        self.local.push(local);
        let outer = std::mem::replace(&mut self.in_filter, false);
        let lowered = self.plan(plan);
        self.in_filter = outer;
        self.local.pop();
        lowered
    }

    fn scalar(&mut self, plan: &Plan, column: ColId, ty: &DataType) -> Result<DfExpr> {
        let mut lowered = self.sub_plan(plan)?;
        let reach = self.reach(column)?.column.clone();
        let name = self.fresh_name("s");
        let builder = LogicalPlanBuilder::from(lowered);
        // Without a row an aggregate gives null, which a plain column of the subquery may be declared not to be. It
        // counts the rows, too, for whoever asks for the value.
        if !gives_one_row(plan) {
            let counted = super::aggregate::counted_value(ty, DfExpr::Column(reach));
            lowered = builder.aggregate(Vec::<DfExpr>::new(), vec![counted.alias(&name)])?.build()?;
            return Ok(EvalUdf::only_row(ty, self.ctx, DfExpr::ScalarSubquery(wrap(lowered))));
        }
        lowered = builder.project(vec![DfExpr::Column(reach).alias(&name)])?.build()?;
        Ok(DfExpr::ScalarSubquery(wrap(lowered)))
    }

    /// Whether the left side of `left = column` has columns, and no subqueries.
    fn has_own_columns(&self, condition: &Expr, inner: &[ColId]) -> bool {
        let hole = |node: &Expr| match node {
            Expr::Hole { id, .. } if !inner.contains(id) => Some(self.query.subqueries.contains_key(id)),
            _ => None,
        };
        condition.any(&mut |node| hole(node) == Some(false)) && !condition.any(&mut |node| hole(node) == Some(true))
    }

    /// `left = ANY (subquery)` in a filter, as a semi or anti join.
    fn any(&mut self, plan: &Plan, columns: &[ColId], condition: &Expr, negated: bool, by_key: bool) -> Result<DfExpr> {
        // A side that comes to null makes all of it null, which a join would not know.
        let condition = &self.folded(condition)?;
        let inner_only = |expr: &Expr| matches!(expr, Expr::Hole { id, .. } if columns.contains(id));
        let uses_inner = |expr: &Expr| expr.any(&mut |node| inner_only(node));
        // DataFusion's null-aware anti join takes a null of any inner row for one of each outer row's own. Beside others
        // in an OR, without a column on the left, or with a subquery there, it is no such join and forgets about nulls.
        // A constant on the left would stand there beside what the subquery says of its column, as another value
        // (`native_comparison`).
        let has_holes = |expr: &Expr| expr.any(&mut |node| matches!(node, Expr::Hole { .. }));
        if by_key
            && (!negated || self.has_own_columns(condition, columns))
            && let Expr::Call { function, args, .. } = condition
            && comparison(function) == Some(Operator::Eq)
            && let [left, right] = args.as_slice()
            && !uses_inner(left)
            && has_holes(left)
            && matches!(right, Expr::Hole { .. } | Expr::Cast { .. })
            && uses_inner(right)
        {
            // What DataFusion knows to be constant, as `id = id`, would be a left side without columns: a whole in one
            // call is nothing to it.
            let left = &match left {
                Expr::Hole { .. } => left.clone(),
                left => Expr::Coalesce { args: vec![left.clone()], ty: left.ty() },
            };
            // The right side stands inside the subquery, where its columns are local.
            let lowered = self.sub_plan(plan)?;
            if let Some(local) = self.local.last_mut() {
                local.extend(columns);
            }
            if let Some((left, mut right)) = self.comparable(left, right, Operator::Eq)? {
                let name = self.fresh_name("s");
                // DataFusion forgets about nulls where no column may be null: what is computed from columns may be.
                if negated && !matches!(left, DfExpr::Column(_)) {
                    right = EvalUdf::nullable(right.get_type(lowered.schema())?, self.ctx, right);
                }
                let lowered = LogicalPlanBuilder::from(lowered).project(vec![right.alias(name)])?.build()?;
                let expr = InSubquery::new(Box::new(left), wrap(lowered), negated);
                return Ok(DfExpr::InSubquery(expr));
            }
        }
        let condition = match negated {
            false => condition.clone(),
            true => Expr::BoolTest { expr: Box::new(condition.clone()), truth: Truth::False, negated: true },
        };
        let filtered = Plan::Filter { input: Box::new(plan.clone()), condition };
        let lowered = self.sub_plan(&filtered)?;
        Ok(exists(lowered, negated))
    }
}

fn wrap(plan: LogicalPlan) -> DfSubquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    DfSubquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}

fn exists(plan: LogicalPlan, negated: bool) -> DfExpr {
    DfExpr::Exists(datafusion::logical_expr::expr::Exists::new(wrap(plan), negated))
}

/// An aggregation without groups has one row whatever its input.
fn gives_one_row(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { groups, .. } => groups.is_empty(),
        Plan::Project { input, .. } | Plan::Sort { input, .. } => gives_one_row(input),
        _ => false,
    }
}

/// Whether a query may fail for the joins alone that its subqueries became. A query that changes something by being run
/// is not run again.
pub(crate) fn may_fail_as_join(query: &Query) -> bool {
    let fails = |inner: &Subquery| {
        let correlated = || !super::apply::outer_columns(query, &inner.plan, None).is_empty();
        matches!(inner.kind, SubqueryKind::Scalar { .. }) && can_fail(query, &inner.plan) && correlated()
    };
    let plans = query.ctes.values().map(|cte| &cte.plan).chain([&query.plan]);
    let mut plans = plans.chain(query.subqueries.values().map(|inner| &inner.plan));
    query.subqueries.values().any(fails) && !plans.any(|plan| is_volatile(plan, &query.subqueries))
}
