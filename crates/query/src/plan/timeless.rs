//! Whether what a query computes follows from rows alone.

use super::{Plan, Query, SubqueryKind};
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;

impl Query {
    /// Without parameters, and without calls that give something else at another moment or in another session.
    pub fn is_timeless(&self) -> bool {
        let ctes = self.ctes.values().map(|cte| &cte.plan);
        let subqueries = self.subqueries.values().map(|subquery| &subquery.plan);
        let conditions = self.subqueries.values().filter_map(|subquery| match &subquery.kind {
            SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } => Some(condition),
            _ => None,
        });
        // Of copies: expressions of plans are listed to be changed.
        [&self.plan].into_iter().chain(ctes).chain(subqueries).all(|plan| of_plan(&mut plan.clone()))
            && conditions.into_iter().all(of_expr)
    }
}

fn of_plan(plan: &mut Plan) -> bool {
    plan.exprs_mut().into_iter().all(|expr| of_expr(expr)) && plan.inputs_mut().into_iter().all(of_plan)
}

fn of_expr(expr: &Expr) -> bool {
    expr.volatility() == Volatility::Immutable && !expr.any(&mut |node| matches!(node, Expr::Param { .. }))
}
