//! Groups that no partner asks for are not computed: where few rows are joined with the groups of many, the rows that
//! are grouped are first reduced to those that a partner's key names.
//!
//! The partner's side is computed twice for it, which is worth little beside what is not grouped.

use super::columns::{Definitions, column, substitute};
use super::node::{JoinKind, Key, Node, Op, Side};
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
    let Some((depth, keys)) = way_down(groups, keys) else { return };
    let mut input = groups;
    for _ in 0..depth {
        input = input.inputs_mut().remove(0);
    }
    let few = share < SHARE_MAX
        && is_repeatable(partner)
        && partner.rows * ROWS_PER_PARTNER_MIN < input.rows
        && cost(partner) < COST_MAX * cost(input);
    if !few {
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

/// How far down it is to the input of the last aggregate or window below which whole groups or partitions are left out by
/// these keys, and what the keys are there.
fn way_down(groups: &Node, mut keys: Vec<Key>) -> Option<(usize, Vec<Key>)> {
    let (mut node, mut depth, mut found) = (groups, 0, None);
    loop {
        keys.retain_mut(|key| below(node, &key.left).map(|left| key.left = left).is_some());
        if keys.is_empty() {
            return found;
        }
        depth += 1;
        if matches!(node.op, Op::Aggregate { .. } | Op::Window { .. }) {
            found = Some((depth, keys.clone()));
        }
        node = node.inputs()[0];
    }
}

/// What a key is in the input of a node, if rows that agree in it stay and go together.
fn below(node: &Node, key: &Expr) -> Option<Expr> {
    match &node.op {
        Op::Aggregate { groups, .. } => {
            let of_key = groups.iter().find(|(id, _)| column(key) == Some(*id));
            of_key.map(|(_, group)| group.clone())
        }
        Op::Window { calls, .. } => calls.iter().all(|(_, call)| call.partition_by.contains(key)).then(|| key.clone()),
        Op::Filter { .. } => Some(key.clone()),
        Op::Project { exprs, .. } => {
            let definitions: Definitions = exprs.iter().cloned().collect();
            Some(substitute(key.clone(), &definitions))
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
