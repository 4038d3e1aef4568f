//! Columns that nobody reads are not computed, as in PostgreSQL: neither their values nor their errors are anybody's.
//!
//! What a volatile call gives stays, as its effects may be wanted. So do the columns of set operations, of DISTINCT
//! and of WITH queries that are computed apart, since they decide about rows or have several readers.

use super::{AggregateCall, ColId, Plan, Query, Subquery, SubqueryKind, WindowCall, is_volatile};
use ahash::AHashSet;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use std::collections::BTreeMap;

impl Query {
    /// Takes the columns away that neither the client nor another part of the query reads.
    pub fn prune(&mut self) {
        let mut pruning =
            Pruning { used: AHashSet::new(), pending: std::mem::take(&mut self.subqueries), done: BTreeMap::new() };
        pruning.read_all(&mut self.plan);
        for cte in self.ctes.values_mut() {
            pruning.read_all(&mut cte.plan);
        }
        // Those that nothing visited has named may belong to expressions outside of the plan.
        self.subqueries = pruning.pending;
        self.subqueries.append(&mut pruning.done);
    }
}

struct Pruning {
    /// Columns that what was visited reads. Ids are unique in the whole query.
    used: AHashSet<ColId>,
    /// Subqueries that nothing visited has named.
    pending: BTreeMap<ColId, Subquery>,
    done: BTreeMap<ColId, Subquery>,
}

impl Pruning {
    /// Visits a plan all of whose columns are read.
    fn read_all(&mut self, plan: &mut Plan) {
        self.used.extend(plan.columns().into_iter().map(|(id, _)| id));
        self.visit(plan);
    }

    /// Visits a node after everything that may read its columns.
    fn visit(&mut self, plan: &mut Plan) {
        match plan {
            Plan::Project { exprs, .. } => {
                let stand_in = exprs.first().map(|(id, _)| (*id, Expr::bool(true)));
                self.keep_read(exprs, |expr| vec![expr]);
                // Rows have a column, if only to be counted by.
                if exprs.is_empty() {
                    exprs.extend(stand_in);
                }
            }
            Plan::Values { columns, rows } if rows.len() == 1 => self.keep_read_values(columns, &mut rows[0]),
            Plan::Aggregate { aggregates, sets: None, .. } => self.keep_read(aggregates, AggregateCall::exprs_mut),
            Plan::Window { input, calls } => {
                // By what a window divides and orders is computed all the same.
                let is_plain = |expr: &Expr| matches!(expr, Expr::Hole { .. } | Expr::Const { .. });
                let is_read = |call: &WindowCall| {
                    let mut keys = call.partition_by.iter().chain(call.order_by.iter().map(|key| &key.expr));
                    !keys.all(is_plain)
                };
                self.used.extend(calls.iter().filter(|(_, call)| is_read(call)).map(|(id, _)| *id));
                self.keep_read(calls, WindowCall::exprs_mut);
                if calls.is_empty() {
                    *plan = std::mem::replace(input, Plan::Unit);
                    return self.visit(plan);
                }
            }
            _ => {}
        }
        for expr in plan.exprs_mut() {
            self.read(expr);
        }
        match plan {
            // Whole rows are compared, or locked and read again.
            Plan::Distinct { input, on: None } => self.read_all(input),
            Plan::LockRows(step) => self.read_all(&mut step.input),
            Plan::SetOp { left, right, .. } => {
                self.read_all(left);
                self.read_all(right);
            }
            Plan::Recursive { base, step, .. } => {
                self.read_all(step);
                self.read_all(base);
            }
            // The right side may read the left's columns.
            Plan::Join { left, right, .. } => {
                self.visit(right);
                self.visit(left);
            }
            other => other.inputs_mut().into_iter().for_each(|input| self.visit(input)),
        }
    }

    /// Keeps of a node's own columns those that are read and those that are volatile.
    fn keep_read<T>(&self, columns: &mut Vec<(ColId, T)>, exprs: impl Fn(&mut T) -> Vec<&mut Expr>) {
        columns.retain_mut(|(id, column)| {
            self.used.contains(id) || exprs(column).into_iter().any(|expr| self.is_volatile(expr))
        });
    }

    /// One row is no more than a list of expressions.
    fn keep_read_values(&self, columns: &mut Vec<(ColId, DataType)>, row: &mut Vec<Expr>) {
        let is_kept = |id: ColId, expr: &Expr| self.used.contains(&id) || self.is_volatile(expr);
        let kept: Vec<bool> = columns.iter().zip(row.iter()).map(|((id, _), expr)| is_kept(*id, expr)).collect();
        if kept.iter().any(|kept| *kept) {
            let mut places = kept.iter();
            columns.retain(|_| places.next().is_some_and(|kept| *kept));
            let mut places = kept.iter();
            row.retain(|_| places.next().is_some_and(|kept| *kept));
        }
    }

    fn is_subquery(&self, id: ColId) -> bool {
        self.pending.contains_key(&id) || self.done.contains_key(&id)
    }

    fn is_volatile(&self, expr: &Expr) -> bool {
        expr.volatility() == Volatility::Volatile
            || expr.any(&mut |node| match node {
                Expr::Hole { id, .. } => {
                    self.pending.get(id).is_some_and(|subquery| is_volatile(&subquery.plan, &self.pending))
                }
                _ => false,
            })
    }

    /// Marks what an expression reads, and visits the subqueries that it holds.
    fn read(&mut self, expr: &Expr) {
        let mut named = Vec::new();
        expr.walk(&mut |node| {
            if let Expr::Hole { id, .. } = node {
                self.used.insert(*id);
                named.extend(self.pending.remove_entry(id));
            }
            true
        });
        for (id, mut subquery) in named {
            match &subquery.kind {
                SubqueryKind::Scalar { column, .. } => {
                    self.used.insert(*column);
                }
                // Its columns are nobody's, volatile or not, but DataFusion makes a join of what passes columns on.
                SubqueryKind::Exists => {
                    if let Plan::Project { exprs, .. } = &mut subquery.plan {
                        let stand_in = exprs.first().map(|(id, _)| (*id, Expr::bool(true)));
                        exprs.retain(|(_, expr)| matches!(expr, Expr::Hole { id, .. } if !self.is_subquery(*id)));
                        if exprs.is_empty() {
                            exprs.extend(stand_in);
                        }
                        self.used.extend(exprs.iter().map(|(id, _)| *id));
                    }
                }
                SubqueryKind::Any { columns, condition } | SubqueryKind::All { columns, condition } => {
                    self.used.extend(columns);
                    self.read(&condition.clone());
                }
            }
            self.visit(&mut subquery.plan);
            self.done.insert(id, subquery);
        }
    }
}
