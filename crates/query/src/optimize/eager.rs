//! Groups that are made below joins: where a join leaves the groups of one of its sides as they are, that side is
//! grouped before the join and not behind it.
//!
//! It does if the other side has one row at most for each key, and if all rows of a group have the same key. Then fewer
//! rows are joined, and what the other side says of a group is asked for once per group, or only of those groups that a
//! limit leaves (Yan and Larson, "Eager Aggregation and Lazy Aggregation", 1995; of a left join it is the groupjoin of
//! Moerkotte and Neumann, 2011). The other side must be without conditions: groups that find nobody there would have
//! been made in vain.

use super::columns::{ColSet, Definitions, column, columns_of, hole, output, substitute, within};
use super::keys::is_unique;
use super::node::{JoinKind, Key, Node, Op, Side, exprs_of};
use super::place::{dependent_groups, of_groups};
use super::profile::Profile;
use super::subquery::without_rows;
use crate::plan::{AggregateCall, ColId};
use basalt_expr::tree::Expr;

type Groups = Vec<(ColId, Expr)>;
type Aggregates = Vec<(ColId, AggregateCall)>;

/// One join that groups pass.
struct Passed {
    /// Of the grouped rows.
    side: Side,
    /// Whether groups may be joined with nulls in their place.
    nulls: bool,
}

/// What is grouped, somewhere below joins.
struct Place<'n> {
    node: &'n Node,
    /// Columns that groups are made by, of this node.
    by: ColSet,
}

struct Eager<'p> {
    profile: &'p Profile,
    groups: Groups,
    aggregates: Aggregates,
    /// What the aggregates read.
    read: ColSet,
}

/// What gives the same groups as an aggregate of these, if that is better. `profile`: of the input.
pub fn groups_below_joins(
    input: &Node,
    profile: &Profile,
    groups: &Groups,
    aggregates: &Aggregates,
    fresh: impl Fn() -> ColId,
) -> Option<Node> {
    let (input, definitions) = match &input.op {
        Op::Project { input, exprs } => (&**input, exprs.iter().cloned().collect()),
        _ => (input, Definitions::new()),
    };
    if groups.is_empty() || !matches!(input.op, Op::Join { .. }) {
        return None;
    }
    let eager = Eager::new(profile, groups, aggregates, &definitions);
    let mut at = Place { node: input, by: eager.plain_groups() };
    // As deep as they may be made: there are no more rows below than above, and no more groups.
    let mut passed = Vec::new();
    while let Some((join, below)) = eager.below(&at) {
        passed.push(join);
        at = below;
    }
    // Rows that are groups already are put together by nothing.
    let is_worth_it = !passed.is_empty() && !is_unique(at.node, &at.by);
    is_worth_it.then(|| eager.joined(input, eager.grouped(&at), &passed, fresh))?
}

impl Eager<'_> {
    fn new<'p>(profile: &'p Profile, groups: &Groups, aggregates: &Aggregates, definitions: &Definitions) -> Eager<'p> {
        let groups = groups.iter().map(|(id, expr)| (*id, substitute(expr.clone(), definitions))).collect();
        let mut aggregates = aggregates.clone();
        for expr in aggregates.iter_mut().flat_map(|(_, call)| call.exprs_mut()) {
            *expr = substitute(std::mem::replace(expr, Expr::bool(false)), definitions);
        }
        let read = aggregates.iter().flat_map(|(_, call)| exprs_of(call)).flat_map(columns_of).collect();
        Eager { profile, groups, aggregates, read }
    }

    /// Groups that are columns.
    fn plain_groups(&self) -> ColSet {
        self.groups.iter().filter_map(|(_, expr)| column(expr)).collect()
    }

    /// The side of a join whose rows can be grouped before it.
    fn below<'n>(&self, at: &Place<'n>) -> Option<(Passed, Place<'n>)> {
        let Op::Join { left, right, kind, keys, residual, .. } = &at.node.op else { return None };
        let sides: &[Side] = match kind {
            JoinKind::Inner | JoinKind::Left => &[Side::Left, Side::Right],
            _ => return None,
        };
        if keys.is_empty() || !residual.is_empty() || keys.iter().any(|key| key.null_safe) {
            return None;
        }
        let of_left = keys.iter().map(|key| column(&key.left)).collect::<Option<Vec<_>>>()?;
        let of_right = keys.iter().map(|key| column(&key.right)).collect::<Option<Vec<_>>>()?;
        sides.iter().find_map(|side| {
            let (grouped, own, other, others) = match side {
                Side::Left => (left, &of_left, right, &of_right),
                Side::Right => (right, &of_right, left, &of_left),
            };
            let nulls = *kind == JoinKind::Left && *side == Side::Right;
            let columns = output(grouped);
            let decided = self.closure(at, own, others, *kind);
            // Of a left join the keys that are sure to be there: the left ones.
            let settles = match kind {
                JoinKind::Inner => own.iter().all(|id| decided.contains(id)),
                _ => of_left.iter().all(|id| decided.contains(id)),
            };
            let keeps_all = is_whole(other) || *kind == JoinKind::Left && !nulls;
            let tells_apart = is_unique(other, &others.iter().copied().collect());
            let is_read = self.read.iter().all(|id| columns.contains(id));
            if !(settles && keeps_all && tells_apart && is_read && self.are_of_one_side(&columns, nulls)) {
                return None;
            }
            let by = at.by.iter().filter(|id| columns.contains(id)).chain(own).copied().collect();
            Some((Passed { side: *side, nulls }, Place { node: grouped, by }))
        })
    }

    /// The columns that those which groups are made by decide, as far as a node has them.
    fn closure(&self, at: &Place<'_>, own: &[ColId], others: &[ColId], kind: JoinKind) -> ColSet {
        let mut profile = self.within(at.node);
        if kind == JoinKind::Inner {
            for (a, b) in own.iter().zip(others) {
                profile.equate(*a, *b);
            }
        }
        profile.closure(at.by.clone())
    }

    /// What is known of the rows of a node below.
    fn within(&self, node: &Node) -> Profile {
        let columns = output(node);
        let has = |ids: &Vec<ColId>| ids.iter().all(|id| columns.contains(id));
        let mut profile = Profile { rows: node.rows, columns: self.profile.columns.clone(), ..Profile::default() };
        for dependency in self.profile.dependencies.iter().filter(|dependency| has(&dependency.determinant)) {
            let mut dependency = dependency.clone();
            dependency.dependent.retain(|id| columns.contains(id));
            profile.dependencies.push(dependency);
        }
        profile
    }

    /// Whether every group comes from these columns or from others. What is computed of them may not be null where they
    /// are, if they may be joined as nulls, and a row of nulls may not change what is aggregated.
    fn are_of_one_side(&self, columns: &ColSet, nulls: bool) -> bool {
        let is_of_one = |(_, expr): &(ColId, Expr)| match columns_of(expr).is_disjoint(columns) {
            true => true,
            false => within(expr, columns) && (!nulls || column(expr).is_some()),
        };
        self.groups.iter().all(is_of_one) && (!nulls || self.ignores_nulls())
    }

    /// Whether a row of nulls changes no aggregate.
    fn ignores_nulls(&self) -> bool {
        self.aggregates.iter().all(|(_, call)| {
            let keeps_nulls = matches!(call.resolved.aggregate.name.as_str(), "array_agg" | "json_agg" | "jsonb_agg");
            let is_plain = call.filter.is_none() && call.order_by.is_empty();
            let args = !call.args.is_empty() && call.args.iter().all(|arg| column(arg).is_some());
            args && is_plain && !keeps_nulls && without_rows(call).is_some()
        })
    }

    /// The groups of a node.
    fn grouped(&self, at: &Place<'_>) -> Node {
        let (columns, profile) = (output(at.node), self.within(at.node));
        let types = at.node.columns();
        let plain = types.into_iter().filter(|(id, _)| at.by.contains(id)).map(|(id, ty)| (id, hole(id, ty)));
        let mut groups: Groups = plain.collect();
        let is_computed = |expr: &Expr| column(expr).is_none() && !columns_of(expr).is_disjoint(&columns);
        groups.extend(self.groups.iter().filter(|(_, expr)| is_computed(expr)).cloned());
        let dependent = dependent_groups(&groups, &profile);
        let rows = of_groups(&groups, &dependent, &self.aggregates, &profile).rows;
        let (input, aggregates) = (Box::new(at.node.clone()), self.aggregates.clone());
        Node { op: Op::Aggregate { input, groups, dependent, aggregates }, rows }
    }

    /// The joins over groups that were made before them, and what the aggregate gives.
    fn joined(&self, input: &Node, mut grouped: Node, joins: &[Passed], fresh: impl Fn() -> ColId) -> Option<Node> {
        let Op::Aggregate { groups: made, aggregates, .. } = &mut grouped.op else { return None };
        let mut outputs: Groups = Vec::with_capacity(self.groups.len() + self.aggregates.len());
        for (id, expr) in &self.groups {
            let is_made = made.iter().any(|(own, _)| own == id);
            outputs.push((*id, if is_made { hole(*id, expr.ty()) } else { expr.clone() }));
        }
        for (id, call) in aggregates {
            let ty = call.resolved.ty.clone();
            let given = *id;
            if joins.iter().any(|join| join.nulls) {
                *id = fresh();
            }
            let value = hole(*id, ty.clone());
            let value = match without_rows(call) {
                Some(Some(zero)) if *id != given => Expr::Coalesce { args: vec![value, zero], ty },
                _ => value,
            };
            outputs.push((given, value));
        }
        let rows = grouped.rows;
        let mut node = rejoined(input, grouped, joins)?.project(outputs);
        node.rows = rows;
        Some(node)
    }
}

/// A tree of joins with groups in place of what was grouped.
fn rejoined(node: &Node, grouped: Node, joins: &[Passed]) -> Option<Node> {
    let Some((join, below)) = joins.split_first() else { return Some(grouped) };
    let Op::Join { left, right, kind, keys, .. } = &node.op else { return None };
    let (of_groups, other) = match join.side {
        Side::Left => (left, right),
        Side::Right => (right, left),
    };
    let groups = rejoined(of_groups, grouped, below)?;
    let other = (**other).clone();
    let rows = if join.nulls { other.rows } else { groups.rows.min(node.rows) };
    let (mut keys, mut sides) = (keys.clone(), (groups, other));
    let mut is_swapped = join.side == Side::Right;
    // The smaller side of an inner join is the right one.
    if *kind == JoinKind::Inner && (sides.0.rows < sides.1.rows) != is_swapped {
        is_swapped = !is_swapped;
        keys = keys.into_iter().map(Key::swapped).collect();
    }
    if is_swapped {
        sides = (sides.1, sides.0);
    }
    let build = match kind {
        JoinKind::Left if sides.0.rows < sides.1.rows => Side::Left,
        _ => Side::Right,
    };
    let (left, right) = (Box::new(sides.0), Box::new(sides.1));
    Some(Node { op: Op::Join { left, right, kind: *kind, keys, residual: Vec::new(), build }, rows })
}

/// Whether no condition has taken rows from a node, nor anything put them together.
fn is_whole(node: &Node) -> bool {
    match &node.op {
        Op::Scan { filter, .. } => filter.is_empty(),
        Op::Project { input, .. } => is_whole(input),
        Op::Join { left, right, kind, residual, .. } => {
            matches!(kind, JoinKind::Inner | JoinKind::Left) && residual.is_empty() && is_whole(left) && is_whole(right)
        }
        _ => false,
    }
}
