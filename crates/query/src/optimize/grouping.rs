//! Grouping sets as a union of aggregations, one per set, of rows that are computed once.

use super::columns::{Definitions, hole, substitute};
use super::convert::Converter;
use super::node::{Node, Op, SharedColumn};
use crate::plan::{AggregateCall, ColId, CteId, GroupingSets, Plan, SetColumn};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// What all sets aggregate, and by what.
struct Grouped<'g> {
    input: (CteId, Arc<Node>),
    groups: Vec<(ColId, Expr)>,
    aggregates: Vec<(ColId, AggregateCall)>,
    sets: &'g GroupingSets,
}

impl Converter<'_> {
    pub fn grouping_sets(
        &mut self,
        input: &Plan,
        groups: &[(ColId, Expr)],
        aggregates: &[(ColId, AggregateCall)],
        sets: &GroupingSets,
    ) -> Option<Node> {
        let (input, groups, aggregates) = self.aggregated(input, groups, aggregates)?;
        let grouped = Grouped { input: self.shared_node(input)?, groups, aggregates, sets };
        let outputs = grouped.outputs();
        let mut parts = Vec::with_capacity(sets.sets.len());
        // Totals first, as PostgreSQL has them where an order does not tell them from groups of null.
        for set in sets.sets.iter().rev() {
            parts.push(self.by_set(&grouped, set, &outputs));
        }
        self.union_all(parts, outputs)
    }

    /// The rows of all parts, in their order, as columns `outputs`. The tree is as low as can be: what walks it takes a
    /// frame for each level.
    pub fn union_all(&mut self, mut parts: Vec<(Node, Vec<ColId>)>, outputs: Vec<(ColId, DataType)>) -> Option<Node> {
        while parts.len() > 2 {
            let mut joined = Vec::with_capacity(parts.len().div_ceil(2));
            let mut rest = parts.into_iter();
            while let Some(left) = rest.next() {
                joined.push(match rest.next() {
                    Some(right) => {
                        let ids: Vec<ColId> = outputs.iter().map(|_| self.fresh()).collect();
                        (both(left, right, &ids, &outputs), ids)
                    }
                    None => left,
                });
            }
            parts = joined;
        }
        let (last, first) = (parts.pop()?, parts.pop());
        Some(match first {
            Some(first) => {
                let ids: Vec<ColId> = outputs.iter().map(|(id, _)| *id).collect();
                both(first, last, &ids, &outputs)
            }
            None => {
                let (node, ids) = last;
                let named = outputs.into_iter().zip(ids).map(|((id, ty), own)| (id, hole(own, ty)));
                node.project(named.collect())
            }
        })
    }

    /// The groups of one set, and its columns in the order of the outputs.
    fn by_set(&mut self, grouped: &Grouped<'_>, set: &[usize], outputs: &[(ColId, DataType)]) -> (Node, Vec<ColId>) {
        let (cte, plan) = &grouped.input;
        let column = |(source, ty): (ColId, DataType)| SharedColumn { id: self.fresh(), source, ty };
        let columns: Vec<SharedColumn> = plan.columns().into_iter().map(column).collect();
        let own: Definitions =
            columns.iter().map(|column| (column.source, hole(column.id, column.ty.clone()))).collect();
        let input = Node::new(Op::Shared { cte: *cte, plan: plan.clone(), columns });
        let mut values = Vec::with_capacity(outputs.len());
        let mut groups = Vec::with_capacity(set.len());
        for (at, (_, expr)) in grouped.groups.iter().enumerate() {
            values.push(match set.contains(&at) {
                true => {
                    groups.push((self.fresh(), substitute(expr.clone(), &own)));
                    hole(self.next_id - 1, expr.ty())
                }
                false => Expr::null(expr.ty()),
            });
        }
        let mut aggregates = Vec::with_capacity(grouped.aggregates.len());
        for (_, call) in &grouped.aggregates {
            let mut call = call.clone();
            for expr in call.exprs_mut() {
                *expr = substitute(std::mem::replace(expr, Expr::bool(false)), &own);
            }
            let id = self.fresh();
            values.push(hole(id, call.resolved.ty.clone()));
            aggregates.push((id, call));
        }
        values.extend(grouped.sets.groupings.iter().map(|(_, asked)| absent(asked, set)));
        let exprs: Vec<(ColId, Expr)> = values.into_iter().map(|value| (self.fresh(), value)).collect();
        let ids = exprs.iter().map(|(id, _)| *id).collect();
        (input.aggregate(groups, aggregates).project(exprs), ids)
    }
}

impl Grouped<'_> {
    fn outputs(&self) -> Vec<(ColId, DataType)> {
        let groups = self.groups.iter().map(|(id, expr)| (*id, expr.ty()));
        let calls = self.aggregates.iter().map(|(id, call)| (*id, call.resolved.ty.clone()));
        groups.chain(calls).chain(self.sets.groupings.iter().map(|(id, _)| (*id, DataType::Int4))).collect()
    }
}

/// The rows of both, as columns `ids`.
fn both(
    (left, of_left): (Node, Vec<ColId>),
    (right, of_right): (Node, Vec<ColId>),
    ids: &[ColId],
    outputs: &[(ColId, DataType)],
) -> Node {
    let pairs = of_left.into_iter().zip(of_right).zip(ids.iter().zip(outputs));
    let columns = pairs.map(|((left, right), (id, (_, ty)))| SetColumn { id: *id, left, right, ty: ty.clone() });
    let columns = columns.collect();
    Node::new(Op::UnionAll { left: Box::new(left), right: Box::new(right), columns })
}

/// A bit for each group, set where a set lacks it; that of the last one is the lowest.
fn absent(asked: &[usize], set: &[usize]) -> Expr {
    let bits = asked.iter().fold(0, |bits, group| bits << 1 | i32::from(!set.contains(group)));
    Expr::Const { value: Datum::I32(bits), ty: DataType::Int4 }
}
