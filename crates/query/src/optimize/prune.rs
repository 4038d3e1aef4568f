//! Takes columns away that nobody reads. Every row keeps a column where a scan would have none.

use super::columns::{ColSet, add_columns_of, column, output};
use super::keys::is_unique;
use super::node::{JoinKind, Key, Node, Op, exprs_of};
use crate::plan::WindowCall;
use basalt_expr::tree::Expr;

/// Leaves in a tree what these outputs need.
pub fn prune(node: &mut Node, needed: &ColSet) {
    match &mut node.op {
        Op::Scan { columns, filter, .. } => {
            let mut kept = needed.clone();
            filter.iter().for_each(|expr| add_columns_of(expr, &mut kept));
            let first = columns.first().copied();
            columns.retain(|(id, _)| kept.contains(id));
            if columns.is_empty() {
                columns.extend(first);
            }
        }
        // What a round reads is settled.
        Op::Values { .. } | Op::Recursive { .. } | Op::Working { .. } => {}
        Op::Shared { columns, .. } => {
            let first = columns.first().cloned();
            columns.retain(|column| needed.contains(&column.id));
            if columns.is_empty() {
                columns.extend(first);
            }
        }
        Op::Filter { input, conjuncts } => {
            let below = with(needed, conjuncts.iter());
            prune(input, &below);
        }
        Op::Project { input, exprs } => {
            exprs.retain(|(id, _)| needed.contains(id));
            let below = with(&ColSet::new(), exprs.iter().map(|(_, expr)| expr));
            prune(input, &below);
            drop_needless(node);
        }
        Op::Join { left, right, kind, keys, residual, .. } => {
            if let JoinKind::Mark { id, .. } = kind
                && !needed.contains(id)
            {
                prune(left, needed);
                *node = std::mem::replace(&mut **left, Node::unit());
                return;
            }
            if matches!(kind, JoinKind::Left | JoinKind::Single) && adds_nothing(right, keys, needed) {
                prune(left, needed);
                *node = std::mem::replace(&mut **left, Node::unit());
                return;
            }
            let below = with(needed, keys.iter().flat_map(|key| [&key.left, &key.right]).chain(residual.iter()));
            prune(left, &below);
            prune(right, &below);
        }
        Op::Aggregate { input, groups, aggregates, .. } => {
            aggregates.retain(|(id, _)| needed.contains(id));
            let groups = groups.iter().map(|(_, expr)| expr);
            let below = with(&ColSet::new(), groups.chain(aggregates.iter().flat_map(|(_, call)| exprs_of(call))));
            prune(input, &below);
        }
        Op::Sort { input, keys } => {
            let below = with(needed, keys.iter().map(|key| &key.expr));
            prune(input, &below);
        }
        Op::Window { input, calls } => {
            // Rows are sorted though nobody reads what is computed of them.
            let sorts_well = |call: &WindowCall| {
                call.partition_by.iter().chain(call.order_by.iter().map(|key| &key.expr)).all(Expr::is_total)
            };
            calls.retain(|(id, call)| needed.contains(id) || !sorts_well(call));
            let below = with(needed, calls.iter().flat_map(|(_, call)| call.exprs()));
            prune(input, &below);
            if calls.is_empty() {
                *node = std::mem::replace(&mut **input, Node::unit());
            }
        }
        Op::ProjectSet { input, sets, ordinality, .. } => {
            *ordinality = ordinality.filter(|id| needed.contains(id));
            let below = with(needed, sets.iter().map(|(_, call)| call));
            prune(input, &below);
        }
        Op::Limit { input, .. } => prune(input, needed),
        Op::UnionAll { left, right, columns } => {
            let first = columns.first().cloned();
            columns.retain(|column| needed.contains(&column.id));
            if columns.is_empty() {
                columns.extend(first);
            }
            let (of_left, of_right) = columns.iter().map(|column| (column.left, column.right)).unzip();
            prune(left, &of_left);
            prune(right, &of_right);
        }
    }
}

/// Whether each row has one partner at most in `right`, of which nobody reads a column.
fn adds_nothing(right: &Node, keys: &[Key], needed: &ColSet) -> bool {
    let plain = keys.iter().filter(|key| !key.null_safe).filter_map(|key| column(&key.right)).collect();
    output(right).is_disjoint(needed) && is_unique(right, &plain)
}

fn with<'e>(needed: &ColSet, exprs: impl Iterator<Item = &'e Expr>) -> ColSet {
    let mut out = needed.clone();
    exprs.for_each(|expr| add_columns_of(expr, &mut out));
    out
}

/// A projection goes that computes nothing, and leaves no column of its input out.
fn drop_needless(node: &mut Node) {
    let Op::Project { input, exprs } = &mut node.op else { return };
    let passes = exprs.iter().all(|(id, expr)| matches!(expr, Expr::Hole { id: own, .. } if own == id));
    if exprs.is_empty() || passes && exprs.len() == input.columns().len() {
        *node = std::mem::replace(&mut **input, Node::unit());
    }
}
