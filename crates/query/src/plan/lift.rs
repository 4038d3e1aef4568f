//! Columns of derived tables and views that may fail are computed for the rows that are left of a join, as PostgreSQL
//! does, which makes simple subqueries part of the query around them: `SELECT q FROM (SELECT id, 10 / y AS q FROM t) s
//! JOIN u USING (id)` divides for the rows that have a match.
//!
//! Such a column moves up through joins and filters; what conditions say of it, they say of its expression.

use super::late::pass_on;
use super::{ColId, Cte, JoinKind, Plan, Query, Subquery};
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::DataType;

/// What was taken out of a plan, over the columns that it has left.
type Late = Vec<(ColId, Expr)>;

impl Query {
    /// Moves columns that may fail above the joins that they stand below.
    pub fn lift_columns(&mut self) {
        let Query { plan, subqueries, ctes, .. } = self;
        let lift = Lift { subqueries: subqueries.keys().copied().collect() };
        let plans = subqueries.values_mut().map(|Subquery { plan, .. }| plan);
        let plans = plans.chain(ctes.values_mut().map(|Cte { plan, .. }| plan));
        plans.chain([plan]).for_each(|plan| lift.settle(plan));
    }
}

struct Lift {
    subqueries: Vec<ColId>,
}

impl Lift {
    /// Computes what may be lifted out of a plan right above it.
    fn settle(&self, plan: &mut Plan) {
        let columns = match plan {
            Plan::Join { .. } | Plan::Filter { .. } => plan.columns(),
            // Whole rows are locked, and read again.
            Plan::LockRows(_) => return,
            other => return other.inputs_mut().into_iter().for_each(|input| self.settle(input)),
        };
        let late = self.lift(plan);
        if late.is_empty() {
            return;
        }
        let exprs = columns.into_iter().map(|(id, ty)| match late.iter().find(|(known, _)| *known == id) {
            Some(entry) => entry.clone(),
            None => (id, Expr::Hole { id, ty }),
        });
        let exprs = exprs.collect();
        *plan = Plan::Project { input: Box::new(std::mem::replace(plan, Plan::Unit)), exprs };
    }

    /// Takes columns out of a plan, which gives what they are computed from instead.
    fn lift(&self, plan: &mut Plan) -> Late {
        match plan {
            Plan::Join { left, right, kind, condition, lateral }
                if !condition.as_ref().is_some_and(|condition| self.holds_subquery(condition)) =>
            {
                let left_is_filled = matches!(kind, JoinKind::Right | JoinKind::Full);
                let right_is_filled = matches!(kind, JoinKind::Left | JoinKind::Full);
                let mut late = match lateral {
                    // The right side may ask for what the left one gives.
                    true => self.lift_side(left, false),
                    false => self.lift_through(left, left_is_filled),
                };
                late.extend(self.lift_through(right, right_is_filled));
                condition.iter_mut().for_each(|condition| substitute(condition, &late));
                late
            }
            Plan::Filter { input, condition } if !self.holds_subquery(condition) && is_simple(input) => {
                let late = self.lift_side(input, true);
                substitute(condition, &late);
                late
            }
            Plan::Project { input, exprs } if exprs.iter().all(|(_, expr)| !self.holds_subquery(expr)) => {
                let below = self.lift_side(input, true);
                exprs.iter_mut().for_each(|(_, expr)| substitute(expr, &below));
                let is_late = |expr: &Expr| !expr.is_total() && expr.volatility() < Volatility::Volatile;
                let late: Late = exprs.iter().filter(|(_, expr)| is_late(expr)).cloned().collect();
                exprs.retain(|(_, expr)| !is_late(expr));
                pass_on(exprs, input, late.iter().map(|(_, expr)| expr));
                if exprs.is_empty() {
                    // Rows have a column.
                    exprs.extend(late);
                    return Vec::new();
                }
                late
            }
            other => {
                other.inputs_mut().into_iter().for_each(|input| self.settle(input));
                Vec::new()
            }
        }
    }

    /// Lifts out of a side of a join. What is `filled` with nulls gives only what is null then, too.
    fn lift_through(&self, plan: &mut Plan, filled: bool) -> Late {
        let columns = plan.columns();
        let late = self.lift_side(plan, true);
        let own = plan.columns();
        let is_null_then = |(_, expr): &(ColId, Expr)| is_null_of_null(expr, &own);
        if !filled || late.iter().all(is_null_then) {
            return late;
        }
        let (late, stays): (Late, Late) = late.into_iter().partition(is_null_then);
        let mut exprs: Late = Vec::with_capacity(columns.len());
        for (id, ty) in columns.into_iter().filter(|(id, _)| !late.iter().any(|(known, _)| known == id)) {
            let found = stays.iter().find(|(known, _)| *known == id);
            exprs.push(found.cloned().unwrap_or((id, Expr::Hole { id, ty })));
        }
        pass_on(&mut exprs, plan, late.iter().map(|(_, expr)| expr));
        *plan = Plan::Project { input: Box::new(std::mem::replace(plan, Plan::Unit)), exprs };
        late
    }

    fn lift_side(&self, plan: &mut Plan, lifts: bool) -> Late {
        if lifts && is_simple(plan) {
            return self.lift(plan);
        }
        self.settle(plan);
        Vec::new()
    }

    fn holds_subquery(&self, expr: &Expr) -> bool {
        expr.any(&mut |node| matches!(node, Expr::Hole { id, .. } if self.subqueries.contains(id)))
    }
}

/// Whether an expression is null where one of these columns is.
fn is_null_of_null(expr: &Expr, columns: &[(ColId, DataType)]) -> bool {
    let is_strict = |node: &Expr| match node {
        Expr::Call { function, .. } => function.strict,
        Expr::Hole { .. } | Expr::Const { .. } | Expr::Param { .. } | Expr::Cast { .. } | Expr::Not(_) => true,
        _ => false,
    };
    let is_one = |node: &Expr| matches!(node, Expr::Hole { id, .. } if columns.iter().any(|(known, _)| known == id));
    expr.any(&mut |node| is_one(node)) && !expr.any(&mut |node| !is_strict(node))
}

/// Puts expressions in the place of the columns that they were.
fn substitute(expr: &mut Expr, late: &Late) {
    if late.is_empty() {
        return;
    }
    let taken = std::mem::replace(expr, Expr::bool(false));
    *expr = taken.rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match late.iter().find(|(known, _)| *known == id) {
            Some((_, expr)) => expr.clone(),
            None => Expr::Hole { id, ty },
        },
        other => other,
    });
}

/// Whether PostgreSQL makes such a subquery part of the query around it.
fn is_simple(plan: &Plan) -> bool {
    match plan {
        Plan::Scan { .. } | Plan::VirtualScan { .. } | Plan::Values { .. } | Plan::Rows { .. } | Plan::Unit => true,
        Plan::Project { input, exprs } => {
            exprs.iter().all(|(_, expr)| expr.volatility() < Volatility::Volatile) && is_simple(input)
        }
        Plan::Filter { input, .. } => is_simple(input),
        Plan::Join { left, right, .. } => is_simple(left) && is_simple(right),
        _ => false,
    }
}
