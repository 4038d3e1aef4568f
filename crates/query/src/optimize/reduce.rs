//! Groups that no partner asks for are not computed: where few rows are joined with the groups of many, the rows that
//! are grouped are first reduced to those that a partner's key names.
//!
//! The partner's side is computed twice for it, which is worth little beside what is not grouped.

use super::columns::hole;
use super::node::{JoinKind, Key, Node, Op, Side};
use crate::plan::ColId;
use basalt_expr::tree::Expr;
use basalt_types::DataType;

/// How many rows are grouped for each row of the partner, at least.
const ROWS_PER_PARTNER_MIN: f64 = 8.0;
/// Of the groups so many may be left.
const SHARE_MAX: f64 = 0.5;
/// What computing the partner twice may cost beside computing what is grouped.
const COST_MAX: f64 = 4.0;

/// Reduces the input of every aggregate that is joined with few rows.
pub fn reduce(node: &mut Node) {
    node.inputs_mut().into_iter().for_each(reduce);
    let Op::Join { left, right, kind, keys, .. } = &mut node.op else { return };
    let keys: Vec<Key> = keys.iter().filter(|key| !key.null_safe).cloned().collect();
    let flipped = |key: Key| Key { left: key.right, right: key.left, ..key };
    // Rows of the left side without a partner must not be needed; those of the right side never are.
    if matches!(kind, JoinKind::Inner | JoinKind::Semi) {
        by_partner(left, right, keys.clone());
    }
    if matches!(kind, JoinKind::Inner | JoinKind::Semi | JoinKind::Anti | JoinKind::Left | JoinKind::Single) {
        by_partner(right, left, keys.into_iter().map(flipped).collect());
    }
}

/// `keys`: what is equal of the groups and of the partner.
fn by_partner(groups: &mut Node, partner: &Node, keys: Vec<Key>) {
    let share = (partner.rows / groups.rows.max(1.0)).min(1.0);
    let Some((input, definitions)) = aggregate_of(groups) else { return };
    let few = share < SHARE_MAX
        && is_repeatable(partner)
        && partner.rows * ROWS_PER_PARTNER_MIN < input.rows
        && cost(partner) < COST_MAX * cost(input);
    let keys = keys.into_iter().filter_map(|key| {
        let Expr::Hole { id, .. } = key.left else { return None };
        let (_, group) = definitions.iter().find(|(defined, _)| *defined == id)?;
        Some(Key { left: group.clone(), ..key })
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
    *input = Node { op, rows: (rows * share).max(1.0) };
}

/// The input of the aggregate whose groups a node gives, or of the window whose partitions, and which of the node's columns
/// are which of what tells these apart.
fn aggregate_of(node: &mut Node) -> Option<(&mut Node, Vec<(ColId, Expr)>)> {
    match &mut node.op {
        Op::Aggregate { input, groups, .. } if !groups.is_empty() => Some((input, groups.clone())),
        // Whole partitions go, or none of their rows.
        Op::Window { input, calls } => {
            let is_key = |(id, ty): &(ColId, DataType)| {
                calls.iter().all(|(_, call)| call.partition_by.contains(&hole(*id, ty.clone())))
            };
            let keys = input.columns().into_iter().filter(is_key).map(|(id, ty)| (id, hole(id, ty)));
            let keys: Vec<(ColId, Expr)> = keys.collect();
            (!keys.is_empty()).then_some((input, keys))
        }
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

/// Whether a second run gives the same rows: which of equal ones a limit takes, and in which order floats are added,
/// depends on which worker was faster.
pub fn is_repeatable(node: &Node) -> bool {
    let is_exact = |ty: &DataType| !matches!(ty.underlying(), DataType::Float4 | DataType::Float8);
    let own = match &node.op {
        Op::Limit { .. } | Op::Window { .. } => false,
        Op::Aggregate { aggregates, .. } => aggregates.iter().all(|(_, call)| is_exact(&call.resolved.ty)),
        Op::Shared { plan, .. } => is_repeatable(plan),
        Op::Recursive { base, step, .. } => is_repeatable(base) && is_repeatable(step),
        _ => true,
    };
    own && node.inputs().into_iter().all(is_repeatable)
}

/// Rows of all nodes.
fn cost(node: &Node) -> f64 {
    node.rows + node.inputs().into_iter().map(cost).sum::<f64>()
}
