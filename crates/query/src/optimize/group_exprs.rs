//! Expressions that are grouped by beside the columns that they are computed from: `GROUP BY a, a - 1`, and constants.
//!
//! They tell no rows apart that the columns do not. What fails for no value is computed of the groups; the rest of each
//! group's first row, so that what fails still does.

use super::columns::{ColSet, Definitions, column, substitute};
use crate::plan::ColId;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;

/// The groups that rows are told apart by, and those that are computed from these behind the aggregation.
pub fn computed_behind(groups: Vec<(ColId, Expr)>) -> (Vec<(ColId, Expr)>, Definitions) {
    let columns: ColSet = groups.iter().filter_map(|(_, expr)| column(expr)).collect();
    let is_computed = |expr: &Expr| expr.is_total() && follows_from(expr, &columns);
    let (computed, mut kept): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(_, expr)| is_computed(expr));
    let mut computed = computed.into_iter();
    if kept.is_empty() {
        // Without any there would be a group even of no rows.
        kept.extend(computed.next());
    }
    let of_column = |(id, expr): &(ColId, Expr)| match expr {
        Expr::Hole { id: of, ty } => Some((*of, Expr::Hole { id: *id, ty: ty.clone() })),
        _ => None,
    };
    let by_column: Definitions = kept.iter().filter_map(of_column).collect();
    let behind = computed.map(|(id, expr)| (id, substitute(expr, &by_column))).collect();
    (kept, behind)
}

/// Whether an expression that is no column has one value for all rows that have one value in each of these columns.
pub fn follows_from(expr: &Expr, columns: &ColSet) -> bool {
    let is_same = |expr: &Expr| match expr {
        Expr::Hole { id, ty } => columns.contains(id) && ty.is_one_by_bytes(),
        _ => true,
    };
    !matches!(expr, Expr::Hole { .. })
        && expr.volatility() < Volatility::Volatile
        && !expr.any(&mut |node| !is_same(node))
}
