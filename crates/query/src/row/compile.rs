//! From a bound statement to a row plan, if it has one.

use super::RowPlan;
use super::get::Get;
use crate::bind::Bound;
use crate::bind::point::point_query;
use basalt_expr::EvalContext;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;

impl RowPlan {
    /// `eval` decides nothing that another execution of the same plan could see otherwise.
    pub fn of(bound: &Bound, eval: &EvalContext) -> Option<RowPlan> {
        let Bound::Query(query) = bound else { return None };
        let point = point_query(query, eval)?;
        if point.lock.is_some() {
            return None;
        }
        let exprs: Vec<&Expr> = point.access.key.iter().chain(&point.outputs).chain([&point.filter]).collect();
        let timeless = exprs.iter().all(|expr| expr.volatility() == Volatility::Immutable);
        if exprs.iter().any(|expr| expr.volatility() == Volatility::Volatile) {
            return None;
        }
        Some(RowPlan { tables: vec![point.table.id], timeless, source: Get::of(point)? })
    }
}
