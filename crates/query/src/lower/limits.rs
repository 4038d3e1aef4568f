//! Row counts (and shares of samples) that subqueries give (`LIMIT (SELECT …)`): computed before the
//! rest of the query is planned.

use super::apply;
use super::turns::begin;
use crate::error::Result;
use crate::plan::{OutputColumn, Plan, Query};
use crate::run::{QueryRuntime, RunContext};
use basalt_expr::eval::vector::value_at;
use basalt_expr::tree::Expr;
use basalt_types::Datum;
use datafusion::physical_plan::common::collect;
use std::sync::Arc;

/// The query with constants in the place of such counts; `None` if it has none. Counts that depend on the row of
/// an outer query stay: they are constants once that row is known.
pub(crate) async fn settle_limits(
    runtime: &Arc<QueryRuntime>,
    query: &Query,
    ctx: &RunContext,
) -> Result<Option<Query>> {
    let plans = query.subqueries.values().map(|subquery| &subquery.plan);
    let mut open = Vec::new();
    for plan in plans.chain(query.ctes.values().map(|cte| &cte.plan)).chain([&query.plan]) {
        open_counts(plan, &mut open);
    }
    open.retain(|expr| apply::outer_columns(query, &Plan::Unit, Some(expr)).is_empty());
    if open.is_empty() {
        return Ok(None);
    }
    let mut known: Vec<(Expr, Expr)> = Vec::with_capacity(open.len());
    for expr in open {
        let value = value_of(runtime, query, ctx, &expr).await?;
        let ty = expr.ty();
        known.push((expr, Expr::Const { value, ty }));
    }
    let mut settled = query.clone();
    let Query { plan, subqueries, ctes, .. } = &mut settled;
    let plans = subqueries.values_mut().map(|subquery| &mut subquery.plan);
    for plan in plans.chain(ctes.values_mut().map(|cte| &mut cte.plan)).chain([plan]) {
        settle(plan, &known);
    }
    Ok(Some(settled))
}

fn open_counts(plan: &Plan, out: &mut Vec<Expr>) {
    let has_hole = |expr: &&Expr| expr.any(&mut |node| matches!(node, Expr::Hole { .. }));
    match plan {
        Plan::Limit { limit, offset, .. } => out.extend(limit.iter().chain(offset).filter(has_hole).cloned()),
        Plan::Sample { percent, seed, .. } => {
            out.extend(std::iter::once(percent).chain(seed).filter(has_hole).cloned());
        }
        _ => {}
    }
    plan.inputs().into_iter().for_each(|input| open_counts(input, out));
}

fn settle(plan: &mut Plan, known: &[(Expr, Expr)]) {
    let counts: Vec<&mut Expr> = match plan {
        Plan::Limit { limit, offset, .. } => limit.iter_mut().chain(offset).collect(),
        Plan::Sample { percent, seed, .. } => std::iter::once(percent).chain(seed).collect(),
        _ => Vec::new(),
    };
    for count in counts {
        if let Some((_, value)) = known.iter().find(|(expr, _)| expr == count) {
            *count = value.clone();
        }
    }
    plan.inputs_mut().into_iter().for_each(|input| settle(input, known));
}

async fn value_of(runtime: &Arc<QueryRuntime>, query: &Query, ctx: &RunContext, expr: &Expr) -> Result<Datum> {
    let (id, ty) = (usize::MAX, expr.ty());
    let plan = Plan::Project { input: Box::new(Plan::Unit), exprs: vec![(id, expr.clone())] };
    let one = apply::part(query, plan, vec![OutputColumn::computed(id, ty.clone())]);
    let plan = Box::pin(runtime.prepare(&one, ctx, false)).await?;
    let batches = collect(begin(plan, runtime, ctx).await?).await?;
    let first = batches.iter().find(|batch| batch.num_rows() > 0);
    Ok(first.map_or(Datum::Null, |batch| value_at(&ty, batch.column(0).as_ref(), 0)))
}
