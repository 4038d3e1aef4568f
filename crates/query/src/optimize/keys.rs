//! What a tree's shape says of its rows: which columns tell them apart, and which are never null.

use super::columns::{ColSet, column, output};
use super::conjuncts::{equality, rejects_nulls};
use super::node::{JoinKind, Node, Op};
use crate::plan::ColId;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, Datum, TableDef};

/// Keys of a table: no two rows have the same values in one of them, nulls left out.
pub fn keys_of(table: &TableDef) -> Vec<Vec<ColumnId>> {
    let primary = table.primary_key.iter().map(|key| key.columns.clone());
    let holds = |index: &&std::sync::Arc<basalt_types::schema::IndexDef>| {
        index.is_key() && !index.constraint.is_some_and(|constraint| constraint.deferrable)
    };
    primary.chain(table.valid_indexes().filter(holds).filter_map(|index| index.plain_columns())).collect()
}

/// Whether no two rows have the same values, none of them null, in these columns.
pub fn is_unique(node: &Node, by: &ColSet) -> bool {
    match &node.op {
        Op::Scan { table, columns, .. } => {
            let has = |column: &ColumnId| columns.iter().any(|(id, own)| own == column && by.contains(id));
            keys_of(table).iter().any(|key| key.iter().all(has))
        }
        Op::Values { rows, .. } => rows.len() < 2,
        Op::Shared { plan, columns, .. } => {
            let columns = columns.iter().filter(|column| by.contains(&column.id));
            is_unique(plan, &columns.map(|column| column.source).collect())
        }
        Op::Limit { limit: Some(Expr::Const { value: Datum::I64(..2), .. }), .. } => true,
        Op::Filter { input, .. } | Op::Window { input, .. } | Op::Sort { input, .. } | Op::Limit { input, .. } => {
            is_unique(input, by)
        }
        Op::Project { input, exprs } => is_unique(input, &passed(exprs, by)),
        Op::Aggregate { groups, dependent, .. } => {
            let mut compared = groups.iter().enumerate().filter(|(at, _)| !dependent.contains(at));
            compared.all(|(_, (id, _))| by.contains(id))
        }
        Op::Join { left, right, kind, keys, residual, .. } => match kind {
            JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti | JoinKind::Mark { .. } | JoinKind::Single => {
                is_unique(left, by)
            }
            // A row that is told apart on one side, and has one partner at most on the other.
            JoinKind::Inner | JoinKind::Left => {
                let (mut of_left, mut of_right) = (by.clone(), by.clone());
                let (columns_left, columns_right) = (output(left), output(right));
                // Of a null that equals a null a key may have several.
                let of_keys = keys.iter().filter(|key| !key.null_safe).map(|key| (&key.left, &key.right));
                let of_residual = residual.iter().filter_map(equality).filter(|(.., null_safe)| !null_safe);
                let of_residual = of_residual.map(|(a, b, ..)| (a, b));
                for (a, b) in of_keys.chain(of_residual) {
                    let (Some(a), Some(b)) = (column(a), column(b)) else { continue };
                    for (a, b) in [(a, b), (b, a)] {
                        if columns_left.contains(&a) && columns_right.contains(&b) {
                            of_left.insert(a);
                            of_right.insert(b);
                        }
                    }
                }
                let left_keeps = is_unique(left, by) && is_unique(right, &of_right);
                left_keeps || *kind == JoinKind::Inner && is_unique(right, by) && is_unique(left, &of_left)
            }
            JoinKind::Full => false,
        },
        Op::ProjectSet { .. } | Op::UnionAll { .. } | Op::Working { .. } => false,
        Op::Recursive { distinct, columns, .. } => *distinct && columns.iter().all(|column| by.contains(&column.id)),
    }
}

/// Of a projection's outputs those that are columns of its input, by their names there.
fn passed(exprs: &[(ColId, Expr)], by: &ColSet) -> ColSet {
    exprs.iter().filter(|(id, _)| by.contains(id)).filter_map(|(_, expr)| column(expr)).collect()
}

/// A null is asked to match a null where one side has none: such keys are as good as plain ones, which have the faster
/// tables.
pub fn settle_nulls(node: &mut Node) {
    node.inputs_mut().into_iter().for_each(settle_nulls);
    let Op::Join { left, right, kind, keys, .. } = &mut node.op else { return };
    // These tell a null that matches nothing from another value that does.
    if matches!(kind, JoinKind::NullAwareAnti | JoinKind::Mark { null_aware: true, .. }) {
        return;
    }
    for key in keys.iter_mut().filter(|key| key.null_safe) {
        key.null_safe = !is_never_null_expr(left, &key.left) && !is_never_null_expr(right, &key.right);
    }
}

/// Whether a column is null in no row.
pub fn is_never_null(node: &Node, id: ColId) -> bool {
    match &node.op {
        Op::Scan { table, columns, .. } => columns.iter().any(|(own, column)| {
            let in_key = || table.primary_key.as_ref().is_some_and(|key| key.columns.contains(column));
            *own == id && (table.column(*column).not_null || in_key())
        }),
        Op::Filter { input, conjuncts } => {
            let column = ColSet::from_iter([id]);
            conjuncts.iter().any(|conjunct| rejects_nulls(conjunct, &column)) || is_never_null(input, id)
        }
        Op::Window { input, .. } | Op::ProjectSet { input, .. } | Op::Sort { input, .. } | Op::Limit { input, .. } => {
            is_never_null(input, id)
        }
        Op::Project { input, exprs } => defines(input, exprs, id),
        Op::Aggregate { input, groups, aggregates, .. } => {
            let counts = |(own, call): &(ColId, crate::plan::AggregateCall)| {
                *own == id && call.resolved.aggregate.name == "count"
            };
            defines(input, groups, id) || aggregates.iter().any(counts)
        }
        Op::Shared { plan, columns, .. } => {
            columns.iter().any(|column| column.id == id && is_never_null(plan, column.source))
        }
        Op::Join { left, right, kind, .. } => match kind {
            JoinKind::Full => false,
            JoinKind::Inner => is_never_null(left, id) || is_never_null(right, id),
            _ => is_never_null(left, id),
        },
        Op::Values { .. } | Op::UnionAll { .. } | Op::Recursive { .. } | Op::Working { .. } => false,
    }
}

/// Conditions on a node's rows, without asking for nulls where there are none.
pub fn without_known_nulls(node: &Node, conditions: Vec<Expr>) -> Vec<Expr> {
    let settled = |condition| match condition {
        Expr::IsNull(inner) if is_never_null_expr(node, &inner) => Expr::bool(false),
        Expr::IsNotNull(inner) if is_never_null_expr(node, &inner) => Expr::bool(true),
        other => other,
    };
    conditions.into_iter().map(settled).filter(|condition| *condition != Expr::bool(true)).collect()
}

fn defines(input: &Node, exprs: &[(ColId, Expr)], id: ColId) -> bool {
    exprs.iter().any(|(own, expr)| *own == id && is_never_null_expr(input, expr))
}

/// The same of an expression over a node's columns.
pub fn is_never_null_expr(input: &Node, expr: &Expr) -> bool {
    match expr {
        Expr::Hole { id, .. } => is_never_null(input, *id),
        Expr::Const { value, .. } => !value.is_null(),
        _ => false,
    }
}
