//! Volatile outputs are computed after ORDER BY, for the rows that are returned and in their order, as PostgreSQL does:
//! `SELECT nextval('s') FROM t ORDER BY a LIMIT 2` takes two numbers. So are the elements of sets, which stay in their
//! order: `SELECT unnest(a) FROM t ORDER BY b`.

use super::{ColId, Cte, Plan, Query, Subquery};
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::DataType;

impl Query {
    /// Takes volatile outputs above the sort that they stand below and is not by them.
    pub fn delay_volatile(&mut self) {
        let Query { plan, subqueries, ctes, .. } = self;
        let plans = subqueries.values_mut().map(|Subquery { plan, .. }| plan);
        let plans = plans.chain(ctes.values_mut().map(|Cte { plan, .. }| plan));
        plans.chain([plan]).for_each(visit);
    }
}

fn visit(plan: &mut Plan) {
    let sort = match plan {
        // Whole rows are locked, and read again.
        Plan::LockRows(step) => return step.input.inputs_mut().into_iter().for_each(visit),
        Plan::Distinct { input, on: Some(on) } => match &mut **input {
            Plan::Sort { input, keys } => {
                let keys = keys.iter().map(|key| &key.expr).chain(on.iter());
                taken(input, &keys.cloned().collect::<Vec<Expr>>())
            }
            _ => None,
        },
        Plan::Sort { input, keys } => {
            let keys: Vec<Expr> = keys.iter().map(|key| key.expr.clone()).collect();
            if let Some((sets, exprs)) = taken_sets(input, &keys) {
                let sorted = std::mem::replace(plan, Plan::Unit);
                let input = Plan::ProjectSet { input: Box::new(sorted), sets, ordinality: None, keep_empty: false };
                *plan = Plan::Project { input: Box::new(input), exprs };
                return plan.inputs_mut().into_iter().for_each(visit);
            }
            taken(input, &keys)
        }
        _ => None,
    };
    if let Some(exprs) = sort {
        let input = std::mem::replace(plan, Plan::Unit);
        *plan = Plan::Project { input: Box::new(input), exprs };
    }
    plan.inputs_mut().into_iter().for_each(visit);
}

/// Leaves of a projection what is not volatile, or is sorted by, with what the rest is computed from; gives what is to
/// be computed above. The keys are among its columns, so it keeps one.
fn taken(plan: &mut Plan, keys: &[Expr]) -> Option<Vec<(ColId, Expr)>> {
    let Plan::Project { input, exprs } = plan else { return None };
    let is_key = |id: ColId| keys.iter().any(|key| names(key, id));
    let known = input.columns();
    let is_late =
        |(id, expr): &(ColId, Expr)| expr.volatility() == Volatility::Volatile && !is_key(*id) && is_over(expr, &known);
    if !exprs.iter().any(is_late) {
        return None;
    }
    let above = exprs.iter().map(|entry| match is_late(entry) {
        true => entry.clone(),
        false => (entry.0, Expr::Hole { id: entry.0, ty: entry.1.ty() }),
    });
    let above: Vec<(ColId, Expr)> = above.collect();
    exprs.retain(|entry| !is_late(entry));
    let late = above.iter().filter(|entry| is_late(entry)).map(|(_, expr)| expr);
    pass_on(exprs, input, late);
    Some(above)
}

/// As [`taken`], of a projection over sets that are not sorted by: gives the sets, too.
#[allow(clippy::type_complexity)]
fn taken_sets(plan: &mut Plan, keys: &[Expr]) -> Option<(Vec<(ColId, Expr)>, Vec<(ColId, Expr)>)> {
    let Plan::Project { input, exprs } = plan else { return None };
    let columns = input.columns();
    let Plan::ProjectSet { input: below, sets, ordinality: None, keep_empty: false } = &mut **input else {
        return None;
    };
    let is_key = |id: ColId| keys.iter().any(|key| names(key, id));
    let uses_set = |expr: &Expr| sets.iter().any(|(id, _)| names(expr, *id));
    let is_late =
        |(id, expr): &(ColId, Expr)| !is_key(*id) && (uses_set(expr) || expr.volatility() == Volatility::Volatile);
    let columns_below = below.columns();
    if exprs.iter().any(|(id, expr)| is_key(*id) && uses_set(expr) || !is_over(expr, &columns))
        || !sets.iter().all(|(_, expr)| is_over(expr, &columns_below))
    {
        return None;
    }
    let above: Vec<(ColId, Expr)> = exprs
        .iter()
        .map(|entry| match is_late(entry) {
            true => entry.clone(),
            false => (entry.0, Expr::Hole { id: entry.0, ty: entry.1.ty() }),
        })
        .collect();
    let mut early: Vec<(ColId, Expr)> = exprs.iter().filter(|entry| !is_late(entry)).cloned().collect();
    let late = above.iter().filter(|entry| is_late(entry)).map(|(_, expr)| expr);
    pass_on(&mut early, below, late.chain(sets.iter().map(|(_, expr)| expr)));
    let sets = std::mem::take(sets);
    let below = std::mem::replace(&mut **below, Plan::Unit);
    *plan = Plan::Project { input: Box::new(below), exprs: early };
    Some((sets, above))
}

/// Whether an expression holds no subquery, which may refer to any column, and none of an outer query.
fn is_over(expr: &Expr, columns: &[(ColId, DataType)]) -> bool {
    !expr.any(&mut |node| matches!(node, Expr::Hole { id, .. } if !columns.iter().any(|(known, _)| known == id)))
}

/// Adds the columns of `input` that expressions are computed from.
pub(super) fn pass_on<'e>(exprs: &mut Vec<(ColId, Expr)>, input: &Plan, late: impl Iterator<Item = &'e Expr>) {
    let known = input.columns();
    for expr in late {
        expr.walk(&mut |node| {
            if let Expr::Hole { id, .. } = node
                && known.iter().any(|(own, _)| own == id)
                && !exprs.iter().any(|(own, _)| own == id)
            {
                exprs.push((*id, node.clone()));
            }
            true
        });
    }
}

fn names(expr: &Expr, id: ColId) -> bool {
    expr.any(&mut |node| matches!(node, Expr::Hole { id: own, .. } if *own == id))
}
