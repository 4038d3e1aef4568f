//! Groups that no partner asks for are not computed: where few rows are joined with the groups of many, the rows that
//! are grouped are first reduced to those that a partner's key names.
//!
//! The partner's side is computed twice for it, which is worth little beside what is not grouped.

use super::node::{JoinKind, Key, Node, Op, Side};
use crate::plan::ColId;
use basalt_expr::tree::Expr;

/// How many rows are grouped for each row of the partner, at least.
const ROWS_PER_PARTNER_MIN: f64 = 8.0;
/// What computing the partner twice may cost beside computing what is grouped.
const COST_MAX: f64 = 4.0;

/// Reduces the input of every aggregate that is joined with few rows.
pub fn reduce(node: &mut Node) {
    node.inputs_mut().into_iter().for_each(reduce);
    let Op::Join { left, right, kind, keys, .. } = &mut node.op else { return };
    let (of_left, of_right): (Vec<(Expr, Expr)>, Vec<(Expr, Expr)>) = (keys.iter().filter(|key| !key.null_safe))
        .map(|key| ((key.left.clone(), key.right.clone()), (key.right.clone(), key.left.clone())))
        .unzip();
    let functions: Vec<_> = keys.iter().filter(|key| !key.null_safe).map(|key| key.equal).collect();
    // Rows of the left side without a partner must not be needed; those of the right side never are.
    if matches!(kind, JoinKind::Inner | JoinKind::Semi) {
        by_partner(left, right, of_left.into_iter().zip(functions.iter().copied()));
    }
    if matches!(kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Anti | JoinKind::Left | JoinKind::Single) {
        by_partner(right, left, of_right.into_iter().zip(functions));
    }
}

/// `keys`: an expression over the groups, and what it equals of the partner.
fn by_partner(
    groups: &mut Node,
    partner: &Node,
    keys: impl Iterator<Item = ((Expr, Expr), &'static basalt_expr::functions::Function)>,
) {
    let keys: Vec<_> = keys.collect();
    let Some((input, definitions)) = aggregate_of(groups) else { return };
    let few = partner.rows * ROWS_PER_PARTNER_MIN < input.rows && cost(partner) < COST_MAX * cost(input);
    let keys = keys.into_iter().filter_map(|((own, other), equal)| {
        let Expr::Hole { id, .. } = own else { return None };
        let (_, group) = definitions.iter().find(|(defined, _)| *defined == id)?;
        Some(Key { left: group.clone(), right: other, equal, null_safe: false })
    });
    let keys: Vec<Key> = keys.collect();
    if !few || keys.is_empty() {
        return;
    }
    let rows = input.rows;
    let all = Box::new(std::mem::replace(input, Node::unit()));
    let op = Op::Join {
        left: all,
        right: Box::new(partner.clone()),
        kind: JoinKind::Semi,
        keys,
        residual: Vec::new(),
        build: Side::Right,
    };
    *input = Node { op, rows: rows / ROWS_PER_PARTNER_MIN };
}

/// The input of the aggregate whose groups a node gives, and which of the node's columns are which groups.
fn aggregate_of(node: &mut Node) -> Option<(&mut Node, Vec<(ColId, Expr)>)> {
    match &mut node.op {
        Op::Aggregate { input, groups, .. } if !groups.is_empty() => Some((input, groups.clone())),
        Op::Filter { input, .. } => aggregate_of(input),
        Op::Project { input, exprs } => {
            let (input, groups) = aggregate_of(input)?;
            let passed = exprs.iter().filter_map(|(id, expr)| match expr {
                Expr::Hole { id: of, .. } => {
                    groups.iter().find(|(group, _)| group == of).map(|(_, expr)| (*id, expr.clone()))
                }
                _ => None,
            });
            let passed = passed.collect();
            Some((input, passed))
        }
        _ => None,
    }
}

/// Rows of all nodes.
fn cost(node: &Node) -> f64 {
    node.rows + node.inputs().into_iter().map(cost).sum::<f64>()
}
