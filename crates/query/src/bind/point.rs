//! Recognises conditions that name one row by its whole primary key.

use super::dml::PointAccess;
use super::key_values::{compared_as, comparison, fitting};
use crate::plan::{ColId, LockTarget, Plan, SortKey};
use crate::row;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, CompareOp, DataType, TableDef};

/// Key expressions in key order, if conjuncts of `filter` compare every key column of `scan` with a value
/// that no row decides, and that [fits](super::key_values::fit).
pub(super) fn key_of(table: &TableDef, scan: &Plan, filter: &Expr) -> Option<Vec<Expr>> {
    let Plan::Scan { columns, .. } = scan else { return None };
    let primary_key = table.primary_key.as_ref()?;
    let conjuncts = filter.clone().split_and();
    let mut out = Vec::with_capacity(primary_key.columns.len());
    for key in &primary_key.columns {
        let (id, _) = columns.iter().find(|(_, column)| column == key)?;
        let ty = &table.column(*key).ty;
        out.push(conjuncts.iter().find_map(|conjunct| equal_to(conjunct, *id, ty))?);
    }
    Some(out)
}

/// Whether a condition that names a whole key asks for more: one of exactly as many conjuncts as the key has columns is
/// their equalities.
pub(super) fn asks_more(filter: &Expr, key_columns: usize) -> bool {
    filter.clone().split_and().len() != key_columns
}

/// A SELECT of one row by its whole primary key: what it reads and what it computes from that row.
#[derive(Clone, Debug)]
pub struct PointQuery {
    pub table: std::sync::Arc<TableDef>,
    pub access: PointAccess,
    /// The whole condition, over the row in column-id order.
    pub filter: Expr,
    /// Whether that is more than the key.
    pub asks_more: bool,
    /// One per output column, over the same.
    pub outputs: Vec<Expr>,
    /// What of a row that its key has found these look at, ascending.
    pub columns: Vec<ColumnId>,
    /// Of a locking clause.
    pub lock: Option<LockTarget>,
    /// Whether constants may fail, whatever rows there are.
    checks_constants: bool,
}

impl PointQuery {
    /// Errors of constants come before all rows.
    pub fn check_constants(&self, eval: &EvalContext) -> crate::error::Result<()> {
        if self.checks_constants {
            self.outputs.iter().chain([&self.filter]).try_for_each(|expr| expr.check_constants(eval))?;
        }
        Ok(())
    }
}

/// Whether a bound query is such a SELECT. Sorting or limiting (to one or more) one row changes nothing.
pub fn point_query(query: &crate::plan::Query, eval: &EvalContext) -> Option<PointQuery> {
    if !query.subqueries.is_empty() || !row::is_enabled(eval) {
        return None;
    }
    let (mut plan, lock) = match &query.plan {
        Plan::LockRows(step) if step.limit.is_none() && step.offset.is_none() => (&step.input, step.targets.first()),
        plan => (plan, None),
    };
    while let Plan::Sort { input, keys } = plan {
        if !keys.iter().all(SortKey::is_column) {
            return None;
        }
        plan = input;
    }
    let Plan::Project { input, exprs } = plan else { return None };
    // What only an order asks for is left out, unless it may fail.
    let is_output = |id: &ColId| query.columns.iter().any(|column| column.id == *id);
    if exprs.iter().any(|(id, expr)| !is_output(id) && !expr.is_total()) {
        return None;
    }
    let Plan::Filter { input: scan, condition } = &**input else { return None };
    let Plan::Scan { table, identity, .. } = &**scan else { return None };
    if identity.is_some() != lock.is_some() {
        return None;
    }
    let key = key_of(table, scan, condition)?;
    let places = super::dml::row_positions(scan);
    let mut outputs = Vec::with_capacity(query.columns.len());
    for column in &query.columns {
        let (_, expr) = exprs.iter().find(|(id, _)| *id == column.id)?;
        let output = super::dml::over_row(expr.clone(), &places).fold_deciding(eval);
        output.ty().phys()?;
        outputs.push(output);
    }
    let filter = super::dml::over_row(condition.clone(), &places).fold_deciding(eval);
    // Folded, it may be fewer parts, that say more: `key = 1 AND false`.
    let asks_more = asks_more(condition, key.len());
    let columns = columns_of(outputs.iter().chain(asks_more.then_some(&filter)));
    let checks_constants = outputs.iter().chain([&filter]).any(Expr::has_constants);
    let (table, lock) = (table.clone(), lock.cloned());
    Some(PointQuery { table, access: PointAccess { key }, filter, asks_more, outputs, columns, lock, checks_constants })
}

/// The columns that expressions over a row in column-id order look at, ascending.
pub fn columns_of<'e>(exprs: impl Iterator<Item = &'e Expr>) -> Vec<ColumnId> {
    let mut used = Vec::new();
    for expr in exprs {
        expr.walk(&mut |node| {
            if let Expr::Column { index, .. } = node {
                used.push(ColumnId::from_position(*index));
            }
            true
        });
    }
    used.sort_unstable();
    used.dedup();
    used
}

/// The other side of `column = value`, where that is an equality of keys.
fn equal_to(conjunct: &Expr, id: ColId, ty: &DataType) -> Option<Expr> {
    let Expr::Call { function, args, .. } = conjunct else { return None };
    let [left, right] = args.as_slice() else { return None };
    if comparison(function) != Some(CompareOp::Eq) {
        return None;
    }
    let as_column =
        |expr: &Expr| compared_as(expr, &|expr| matches!(expr, Expr::Hole { id: known, .. } if *known == id));
    let (value, compared) = match (as_column(left), as_column(right)) {
        (Some(compared), None) => (right, compared),
        (None, Some(compared)) => (left, compared),
        _ => return None,
    };
    let fixed = !value.any(&mut |node| matches!(node, Expr::Hole { .. } | Expr::Column { .. }))
        && value.volatility() < basalt_expr::functions::Volatility::Volatile;
    (fixed && fitting(&value.ty(), &compared, ty).is_some()).then(|| value.clone())
}
