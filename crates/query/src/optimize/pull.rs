//! Taking out of a subquery what it takes from outer rows: the conditions that refer to them move up until they are
//! conditions of the join that the subquery becomes.
//!
//! An equality with an inner expression passes an aggregation as one more group. Where a condition cannot pass, the
//! outer columns come down instead, as their [`domain`], and what is left to move up compares the outer row with the
//! domain's.

use super::columns::{ColSet, Definitions, add_columns_of, free_columns, hole, output, refers, substitute, within};
use super::conjuncts::equality;
use super::convert::{Converter, at_most, bigint, ranked};
use super::domain::{Domain, domain};
use super::limits;
use super::node::{JoinKind, Node, Op};
use crate::plan::{AggregateCall, ColId, SetColumn};
use basalt_expr::tree::Expr;
use basalt_expr::window::Ranking;
use basalt_types::DataType;

/// A tree without outer columns, and the conditions over both that came out of it. `repeats`: whether a row may come
/// more often than before, or less often, if only it comes.
pub fn decorrelated(converter: &mut Converter, outer: &Node, node: Node, repeats: bool) -> Option<(Node, Vec<Expr>)> {
    let free = free_columns(&node);
    if free.is_empty() {
        return Some((node, Vec::new()));
    }
    let mut pull = Pull { converter, outer, free };
    let (node, pulled) = pull.node(node, repeats)?;
    free_columns(&node).is_empty().then_some((node, pulled))
}

/// The same of an aggregation, which has groups: nobody asks for those that have no rows.
pub fn grouped(
    converter: &mut Converter,
    outer: &Node,
    input: Node,
    groups: Vec<(ColId, Expr)>,
    aggregates: Vec<(ColId, AggregateCall)>,
) -> Option<(Node, Vec<Expr>)> {
    let free = free_columns(&input.clone().aggregate(groups.clone(), aggregates.clone()));
    let mut pull = Pull { converter, outer, free };
    let (node, pulled) = pull.aggregate(input, groups, aggregates)?;
    free_columns(&node).is_empty().then_some((node, pulled))
}

struct Pull<'a, 'q> {
    converter: &'a mut Converter<'q>,
    /// What asks the subquery.
    outer: &'a Node,
    /// The outer columns, of `outer` and of what is around it.
    free: ColSet,
}

impl Pull<'_, '_> {
    fn node(&mut self, node: Node, repeats: bool) -> Option<(Node, Vec<Expr>)> {
        if free_columns(&node).is_disjoint(&self.free) {
            return Some((node, Vec::new()));
        }
        match node.op {
            Op::Filter { input, conjuncts } => {
                let (input, mut pulled) = self.node(*input, repeats)?;
                let (outer, own): (Vec<Expr>, Vec<Expr>) =
                    conjuncts.into_iter().partition(|conjunct| refers(conjunct, &self.free));
                pulled.extend(outer);
                Some((input.filter(own), pulled))
            }
            Op::Project { input, exprs } => self.project(*input, exprs, repeats),
            Op::Join { left, right, kind, keys, residual, .. } => {
                self.join(*left, *right, kind, (keys, residual), repeats)
            }
            // Whether a row comes once or twice is nobody's business.
            Op::Aggregate { input, groups, aggregates, .. }
                if repeats && aggregates.is_empty() && !groups.is_empty() =>
            {
                self.project(*input, groups, repeats)
            }
            Op::Aggregate { input, groups, aggregates, .. } if !groups.is_empty() => {
                self.aggregate(*input, groups, aggregates)
            }
            Op::Limit { input, limit, offset } => self.limit(*input, limit, offset, repeats),
            Op::Window { input, mut calls } => {
                let exprs = calls.iter_mut().flat_map(|(_, call)| call.exprs_mut()).collect();
                let (input, pulled) = self.pinned(*input, exprs)?;
                let inner = self.inner_sides(&pulled)?;
                calls.iter_mut().for_each(|(_, call)| call.partition_by.extend(inner.iter().cloned()));
                Some((Node::new(Op::Window { input: Box::new(input), calls }), pulled))
            }
            // Whoever needs an order has it below.
            Op::Sort { input, .. } => self.node(*input, repeats),
            Op::UnionAll { left, right, columns } => self.union(*left, *right, columns),
            _ => None,
        }
    }

    /// The first rows for each outer row: those of the first ranks among the rows that are equal in what outer rows are
    /// compared with. By anything else each outer value would meet all rows, of which a limit asks for a few.
    fn limit(
        &mut self,
        input: Node,
        limit: Option<Expr>,
        offset: Option<Expr>,
        repeats: bool,
    ) -> Option<(Node, Vec<Expr>)> {
        let (mut input, mut keys) = match input.op {
            Op::Sort { input, keys } => (*input, keys),
            op => (Node { op, ..input }, Vec::new()),
        };
        // What is computed of a row is none of a limit's business.
        if let Op::Project { input: below, exprs } = input.op {
            let definitions: Definitions = exprs.iter().cloned().collect();
            for key in &mut keys {
                key.expr = substitute(std::mem::replace(&mut key.expr, Expr::bool(false)), &definitions);
            }
            input = match keys.is_empty() {
                true => *below,
                false => Node::new(Op::Sort { input: below, keys }),
            };
            let limited = Node::new(Op::Limit { input: Box::new(input), limit, offset });
            return self.project(limited, exprs, repeats);
        }
        let (first, last) = limits::wanted(limit.as_ref(), offset.as_ref())?;
        if keys.iter().any(|key| refers(&key.expr, &self.free)) {
            return None;
        }
        let (input, pulled) = self.node(input, false)?;
        let rank = self.converter.fresh();
        let call = ranked(Ranking::RowNumber, self.inner_sides(&pulled)?, keys);
        let ranks = Node::new(Op::Window { input: Box::new(input), calls: vec![(rank, call)] });
        let rank = hole(rank, DataType::Int8);
        let beyond = (first > 0).then(|| at_most(bigint(first.saturating_add(1)), rank.clone()));
        let wanted = beyond.into_iter().chain([at_most(rank, bigint(last))]);
        Some((ranks.filter(wanted.collect::<Option<Vec<Expr>>>()?), pulled))
    }

    fn union(&mut self, left: Node, right: Node, columns: Vec<SetColumn>) -> Option<(Node, Vec<Expr>)> {
        (unions(&left) + unions(&right) < UNIONS_MAX).then_some(())?;
        let mut used = free_columns(&left);
        used.extend(free_columns(&right));
        let sides = [&left, &right].map(|side| self.pinned(side.clone(), Vec::new()));
        if let [Some(left), Some(right)] = sides
            && let Some(united) = self.united(left, right, columns.clone())
        {
            return Some(united);
        }
        // Each meets all that one of them asks of an outer row.
        let [left, right] = [left, right].map(|side| {
            let (side, pulled) = self.node(side, false)?;
            let (side, _, pulled) = self.localized(side, pulled, used.clone())?;
            Some((side, pulled))
        });
        self.united(left?, right?, columns)
    }

    /// Two sides that compare the same of an outer row, each with something of its own.
    fn united(
        &mut self,
        (left, of_left): (Node, Vec<Expr>),
        (right, mut of_right): (Node, Vec<Expr>),
        mut columns: Vec<SetColumn>,
    ) -> Option<(Node, Vec<Expr>)> {
        (of_left.len() == of_right.len()).then_some(())?;
        let passed = |node: &Node| node.columns().into_iter().map(|(id, ty)| (id, hole(id, ty))).collect::<Vec<_>>();
        let (mut left_exprs, mut right_exprs) = (passed(&left), passed(&right));
        let mut pulled = Vec::with_capacity(of_left.len());
        for condition in of_left {
            let id = self.converter.fresh();
            let (own, condition) = self.named(&condition, id)?;
            let mut found = None;
            for (at, other) in of_right.iter().enumerate() {
                let (other, named) = self.named(other, id)?;
                if named == condition {
                    found = Some((at, other));
                }
            }
            let (at, other) = found?;
            of_right.remove(at);
            let (ty, ids) = (own.ty(), (self.converter.fresh(), self.converter.fresh()));
            left_exprs.push((ids.0, own));
            right_exprs.push((ids.1, other));
            columns.push(SetColumn { id, left: ids.0, right: ids.1, ty });
            pulled.push(condition);
        }
        let (left, right) = (Box::new(left.project(left_exprs)), Box::new(right.project(right_exprs)));
        Some((Node::new(Op::UnionAll { left, right, columns }), pulled))
    }

    /// The inner side of a condition, and the condition with a column in its place, which comes first.
    fn named(&self, condition: &Expr, id: ColId) -> Option<(Expr, Expr)> {
        let (left, right, equal, null_safe) = equality(condition)?;
        let inner = self.inner_side(condition)?;
        let (column, outer) = (hole(id, inner.ty()), if inner == left { right } else { left });
        // Of two types the function knows which is which.
        (column.ty() == outer.ty()).then_some(())?;
        let named = match null_safe {
            true => Expr::IsDistinct { left: Box::new(column), right: Box::new(outer.clone()), equal, negated: true },
            false => Expr::Call { function: equal, args: vec![column, outer.clone()], ty: DataType::Bool },
        };
        Some((inner.clone(), named))
    }

    fn project(&mut self, input: Node, mut exprs: Vec<(ColId, Expr)>, repeats: bool) -> Option<(Node, Vec<Expr>)> {
        let (mut input, mut pulled) = self.node(input, repeats)?;
        let mut used = ColSet::new();
        exprs.iter().for_each(|(_, expr)| add_columns_of(expr, &mut used));
        used.retain(|id| self.free.contains(id));
        self.are_one_where_equal(&used).then_some(())?;
        if !used.is_empty() {
            let definitions;
            (input, definitions, pulled) = self.localized(input, pulled, used)?;
            exprs.iter_mut().for_each(|(_, expr)| {
                *expr = substitute(std::mem::replace(expr, Expr::bool(false)), &definitions);
            });
        }
        pass_on(&mut exprs, &input, &pulled);
        Some((input.project(exprs), pulled))
    }

    fn join(
        &mut self,
        left: Node,
        right: Node,
        kind: JoinKind,
        (keys, mut residual): (Vec<super::node::Key>, Vec<Expr>),
        repeats: bool,
    ) -> Option<(Node, Vec<Expr>)> {
        if keys.iter().any(|key| refers(&key.left, &self.free) || refers(&key.right, &self.free)) {
            return None;
        }
        let (mut left, mut pulled) = self.node(left, repeats)?;
        let becomes_inner = kind == JoinKind::Inner || kind == JoinKind::Semi && repeats;
        if becomes_inner && residual.iter().any(|conjunct| refers(conjunct, &self.free)) || kind == JoinKind::Inner {
            let (right, of_right) = self.node(right, repeats)?;
            pulled.extend(of_right);
            let (outer, own): (Vec<Expr>, Vec<Expr>) =
                residual.into_iter().partition(|conjunct| refers(conjunct, &self.free));
            pulled.extend(outer);
            return Some((left.join(right, JoinKind::Inner, own), pulled));
        }
        if kind == JoinKind::Full || !free_columns(&right).is_disjoint(&self.free) {
            return None;
        }
        let mut used = ColSet::new();
        residual.iter().for_each(|conjunct| add_columns_of(conjunct, &mut used));
        used.retain(|id| self.free.contains(id));
        if !used.is_empty() {
            let definitions;
            (left, definitions, pulled) = self.localized(left, pulled, used)?;
            residual = residual.into_iter().map(|conjunct| substitute(conjunct, &definitions)).collect();
        }
        let mut joined = left.join(right, kind, residual);
        if let Op::Join { keys: own, .. } = &mut joined.op {
            *own = keys;
        }
        Some((joined, pulled))
    }

    /// What passes becomes a group: `inner = outer` by the inner side, other conditions if they ask only for groups.
    fn aggregate(
        &mut self,
        input: Node,
        mut groups: Vec<(ColId, Expr)>,
        mut aggregates: Vec<(ColId, AggregateCall)>,
    ) -> Option<(Node, Vec<Expr>)> {
        let of_groups = groups.iter_mut().map(|(_, expr)| expr);
        let exprs = of_groups.chain(aggregates.iter_mut().flat_map(|(_, call)| call.exprs_mut())).collect();
        let (input, pulled) = self.pinned(input, exprs)?;
        let mut conditions = Vec::with_capacity(pulled.len());
        for condition in pulled {
            let inner = self.inner_side(&condition)?.clone();
            let group = match groups.iter().find(|(_, expr)| *expr == inner) {
                Some((id, _)) => *id,
                None => {
                    let id = match &inner {
                        Expr::Hole { id, .. } if !groups.iter().any(|(known, _)| known == id) => *id,
                        _ => self.converter.fresh(),
                    };
                    groups.push((id, inner.clone()));
                    id
                }
            };
            let group = hole(group, inner.ty());
            conditions.push(condition.rewrite(&mut |node| if node == inner { group.clone() } else { node }));
        }
        Some((input.aggregate(groups, aggregates), conditions))
    }

    /// A node where rows of different outer rows are told apart: expressions over it without outer columns, and conditions
    /// that are equalities with an inner side.
    fn pinned(&mut self, input: Node, exprs: Vec<&mut Expr>) -> Option<(Node, Vec<Expr>)> {
        let (mut input, mut pulled) = self.node(input, false)?;
        let mut used = ColSet::new();
        exprs.iter().for_each(|expr| add_columns_of(expr, &mut used));
        used.retain(|id| self.free.contains(id));
        self.are_one_where_equal(&used).then_some(())?;
        if !used.is_empty() || !pulled.iter().all(|condition| self.inner_side(condition).is_some()) {
            let definitions;
            (input, definitions, pulled) = self.localized(input, pulled, used)?;
            for expr in exprs {
                *expr = substitute(std::mem::replace(expr, Expr::bool(false)), &definitions);
            }
        }
        Some((input, pulled))
    }

    /// Whether a value of the domain may stand for all outer ones that equal it, where more is read of it than that:
    /// numerics of one value print with digits of their own.
    fn are_one_where_equal(&self, used: &ColSet) -> bool {
        let columns = self.outer.columns();
        let mut used = columns.iter().filter(|(id, _)| used.contains(id));
        used.all(|(_, ty)| *ty.underlying() != DataType::Numeric(None))
    }

    fn inner_sides(&self, conditions: &[Expr]) -> Option<Vec<Expr>> {
        conditions.iter().map(|condition| self.inner_side(condition).cloned()).collect()
    }

    /// Of an equality with outer columns the side that has none.
    fn inner_side<'e>(&self, condition: &'e Expr) -> Option<&'e Expr> {
        let (left, right, ..) = equality(condition)?;
        let is_outer = |expr: &Expr| refers(expr, &self.free) && within(expr, &self.free);
        let is_inner = |expr: &Expr| !refers(expr, &self.free);
        match () {
            () if is_inner(left) && is_outer(right) => Some(left),
            () if is_inner(right) && is_outer(left) => Some(right),
            () => None,
        }
    }

    /// Joins a node with the domain of all outer columns that its conditions and `used` name. Gives what stands for those
    /// columns below, and the conditions that are left: those on queries further out, too, which have no domain here.
    fn localized(&mut self, node: Node, pulled: Vec<Expr>, mut used: ColSet) -> Option<(Node, Definitions, Vec<Expr>)> {
        let near = output(self.outer);
        let mut is_far = self.free.clone();
        is_far.retain(|id| !near.contains(id));
        let (far, inside): (Vec<Expr>, Vec<Expr>) = pulled.into_iter().partition(|one| refers(one, &is_far));
        inside.iter().chain(&far).for_each(|condition| add_columns_of(condition, &mut used));
        used.retain(|id| self.free.contains(id) && near.contains(id));
        let columns = self.outer.columns().into_iter().filter(|(id, _)| used.contains(id)).collect();
        let Domain { node: domain, definitions, mut conditions } = domain(self.converter, self.outer, columns)?;
        let named = |condition: Expr| substitute(condition, &definitions);
        conditions.extend(far.into_iter().map(named));
        let residual = inside.into_iter().map(named).collect();
        Some((domain.join(node, JoinKind::Inner, residual), definitions, conditions))
    }
}

/// Unions within each other: each is tried twice.
const UNIONS_MAX: usize = 12;

fn unions(node: &Node) -> usize {
    let own = usize::from(matches!(node.op, Op::UnionAll { .. }));
    own + node.inputs().into_iter().map(unions).sum::<usize>()
}

/// Adds the columns of `input` that conditions above refer to.
fn pass_on(exprs: &mut Vec<(ColId, Expr)>, input: &Node, conditions: &[Expr]) {
    let given = output(input);
    for condition in conditions {
        condition.walk(&mut |node| {
            if let Expr::Hole { id, .. } = node
                && given.contains(id)
                && !exprs.iter().any(|(known, _)| known == id)
            {
                exprs.push((*id, node.clone()));
            }
            true
        });
    }
}
