//! Locking clauses: which scans of a query have their rows locked, and what the lock step must be given.
//!
//! A clause without OF means every relation of FROM; on a view or a subquery it means all tables in it, on a
//! WITH query none (PostgreSQL manual, SELECT, "The Locking Clause"). Scans that are meant get an identity,
//! which every projection between them and the clause passes on.

use super::binder::{Binder, Bound};
use super::select::Item;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, JoinKind, Kept, LockRows, LockTarget, Plan, Query, Subquery, SubqueryKind};
use crate::syntax::{LockingClause, strength_name};
use ahash::AHashSet;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast::{self, Distinct, GroupByExpr, SetExpr};
use std::collections::BTreeMap;

impl Binder<'_> {
    /// What the clauses of this level say about a relation of FROM: of several the strongest, and the one
    /// that waits least.
    pub fn locking_of(&mut self, relation: &str) -> Option<LockingClause> {
        let clauses = self.scope().locking.iter();
        let meant = clauses.filter(|clause| clause.of.is_empty() || clause.of.iter().any(|name| name == relation));
        let merged = meant.cloned().reduce(|a, b| LockingClause {
            strength: a.strength.max(b.strength),
            on_locked: a.on_locked.max(b.on_locked),
            of: Vec::new(),
        });
        merged.map(|clause| LockingClause { of: Vec::new(), ..clause })
    }

    /// Named by a clause, but not something that has rows to lock.
    pub fn refuse_to_lock(&mut self, relation: &str, what: &str) -> Result<()> {
        match self.scope().locking.iter().find(|clause| clause.of.iter().any(|name| name == relation)) {
            Some(clause) => Err(cannot_lock(clause, what)),
            None => Ok(()),
        }
    }

    pub fn check_locked_names(&mut self) -> Result<()> {
        let scope = self.scope();
        for clause in &scope.locking {
            let known = |name: &String| scope.relations.iter().any(|relation| relation.name == *name);
            if let Some(name) = clause.of.iter().find(|name| !known(name)) {
                let clause = strength_name(clause.strength);
                let message = format!("relation \"{name}\" in {clause} clause not found in FROM clause");
                return Err(SqlError::new("42P01", message));
            }
        }
        Ok(())
    }

    /// 0A000 where a result row is not one row of each table.
    pub fn check_lockable(&mut self, select: &ast::Select, items: &[Item], having: bool) -> Result<()> {
        let scope = self.scope();
        let Some(clause) = scope.locking.first() else { return Ok(()) };
        let is_set = |node: &Expr| matches!(node, Expr::Call { function, .. } if function.returns_set);
        let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
        let what = if matches!(select.distinct, Some(Distinct::Distinct | Distinct::On(_))) {
            "DISTINCT clause"
        } else if grouped {
            "GROUP BY clause"
        } else if having {
            "HAVING clause"
        } else if !scope.aggregates.is_empty() {
            "aggregate functions"
        } else if !scope.windows.is_empty() {
            "window functions"
        } else if items.iter().any(|item| item.expr.any(&mut |node| is_set(node))) {
            "set-returning functions in the target list"
        } else {
            return Ok(());
        };
        Err(not_allowed_with(clause, what))
    }

    /// Has the rows of a base table locked, if a clause says so.
    pub fn lock_scan(&mut self, plan: &mut Plan, clause: Option<LockingClause>) {
        let (Some(clause), Plan::Scan { table, columns, identity, .. }) = (clause, plan) else { return };
        let ids = [self.fresh(), self.fresh(), self.fresh()];
        *identity = Some(ids);
        self.lock_targets.push(LockTarget {
            table: table.clone(),
            columns: columns.clone(),
            identity: ids,
            strength: clause.strength,
            on_locked: clause.on_locked,
        });
    }

    /// A query with locking clauses of its own, or that a clause `around` it reaches.
    pub fn locked_query(&mut self, query: &ast::Query, around: Vec<LockingClause>) -> Result<Bound> {
        let own: Vec<LockingClause> = query.locks.iter().map(LockingClause::of).collect();
        let clauses: Vec<LockingClause> = own.iter().cloned().chain(around).collect();
        match (&*query.body, own.first(), &clauses[0]) {
            (SetExpr::SetOperation { .. }, _, clause) => {
                return Err(not_allowed_with(clause, "UNION/INTERSECT/EXCEPT"));
            }
            (SetExpr::Values(_), Some(clause), _) => return Err(cannot_lock(clause, "VALUES")),
            _ => {}
        }
        let others = std::mem::take(&mut self.lock_targets);
        self.next_locking = clauses.clone();
        let bound = self.body_and_tail(query, false);
        self.next_locking.clear();
        let targets = std::mem::replace(&mut self.lock_targets, others);
        let mut bound = bound?;
        if own.is_empty() {
            for id in targets.iter().flat_map(|target| target.identity) {
                expose(&mut bound.plan, id);
            }
            self.lock_targets.extend(targets);
            return Ok(bound);
        }
        let plan = std::mem::replace(&mut bound.plan, Plan::Unit);
        let (mut input, limit, offset) = match plan {
            Plan::Limit { ties: true, .. } => {
                let message = "WITH TIES is not supported with row locks";
                return Err(SqlError::not_supported(message).with_hint("Lock the rows of a subquery."));
            }
            Plan::Limit { input, limit, offset, ties: false } => (*input, limit, offset),
            other => (other, None, None),
        };
        check_not_nullable(&input, &targets, false, &clauses[0])?;
        let mut kept = kept_of(&self.subqueries, &input, &targets, &[]);
        let mut presence = Vec::new();
        self.mark_presence(&mut input, false, &mut presence);
        kept.extend(presence.iter().map(|id| (*id, DataType::Bool)));
        for id in kept.iter().map(|(id, _)| *id).chain(targets.iter().flat_map(|target| target.identity)) {
            expose(&mut input, id);
        }
        let mut columns: Vec<(ColId, DataType)> = Vec::with_capacity(bound.columns.len());
        for column in &bound.columns {
            if !columns.iter().any(|(known, _)| *known == column.id) {
                columns.push((column.id, column.ty.clone()));
            }
        }
        let first = Kept::default();
        let step = LockRows { input, columns, targets, kept, presence, limit, offset, first };
        bound.plan = Plan::LockRows(Box::new(step));
        Ok(bound)
    }

    /// Gives every relation on the nullable side of a join a column that is true: null above the join says
    /// that the row was not there, which no other value does.
    pub fn mark_presence(&mut self, plan: &mut Plan, nullable: bool, out: &mut Vec<ColId>) {
        match plan {
            Plan::Project { input, .. }
            | Plan::Filter { input, .. }
            | Plan::Sort { input, .. }
            | Plan::Limit { input, .. } => self.mark_presence(input, nullable, out),
            Plan::Join { left, right, kind, .. } => {
                let (null_left, null_right) = kind.nullable();
                self.mark_presence(left, nullable || null_left, out);
                self.mark_presence(right, nullable || null_right, out);
            }
            leaf if nullable => {
                let id = self.fresh();
                let passed = leaf.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
                let exprs = passed.chain([(id, Expr::bool(true))]).collect();
                *leaf = Plan::Project { input: Box::new(std::mem::replace(leaf, Plan::Unit)), exprs };
                out.push(id);
            }
            _ => {}
        }
    }
}

/// An operand of UNION and its kin has no clause of its own, whatever parentheses are around it.
pub(super) fn refuse_in_set_operation(operand: &SetExpr) -> Result<()> {
    let SetExpr::Query(query) = operand else { return Ok(()) };
    match query.locks.first() {
        Some(clause) => Err(not_allowed_with(&LockingClause::of(clause), "UNION/INTERSECT/EXCEPT")),
        None => refuse_in_set_operation(&query.body),
    }
}

fn not_allowed_with(clause: &LockingClause, what: &str) -> SqlError {
    SqlError::not_supported(format!("{} is not allowed with {what}", strength_name(clause.strength)))
}

fn cannot_lock(clause: &LockingClause, what: &str) -> SqlError {
    SqlError::not_supported(format!("{} cannot be applied to {what}", strength_name(clause.strength)))
}

/// An outer join's missing rows cannot be locked.
fn check_not_nullable(plan: &Plan, targets: &[LockTarget], nullable: bool, clause: &LockingClause) -> Result<()> {
    match plan {
        Plan::Scan { identity: Some(ids), .. } if nullable => {
            match targets.iter().any(|target| target.identity == *ids) {
                true => Err(cannot_lock(clause, "the nullable side of an outer join")),
                false => Ok(()),
            }
        }
        Plan::Join { left, right, kind, .. } => {
            let (null_left, null_right) = kind.nullable();
            check_not_nullable(left, targets, nullable || null_left, clause)?;
            check_not_nullable(right, targets, nullable || null_right, clause)
        }
        other => other.inputs().into_iter().try_for_each(|input| check_not_nullable(input, targets, nullable, clause)),
    }
}

/// Columns of a query's relations that are not locked, as far as any expression uses them. Relations with a column
/// in `presence` are taken as that gives them.
pub(super) fn kept(query: &Query, targets: &[LockTarget], presence: &[ColId]) -> Vec<(ColId, DataType)> {
    kept_of(&query.subqueries, &query.plan, targets, presence)
}

fn kept_of(
    subqueries: &BTreeMap<ColId, Subquery>,
    input: &Plan,
    targets: &[LockTarget],
    presence: &[ColId],
) -> Vec<(ColId, DataType)> {
    let mut used = AHashSet::new();
    holes(input, &mut used);
    for subquery in subqueries.values() {
        holes(&subquery.plan, &mut used);
        if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &subquery.kind {
            condition.walk(&mut |node| {
                if let Expr::Hole { id, .. } = node {
                    used.insert(*id);
                }
                true
            });
        }
    }
    let locked = |id| targets.iter().any(|target| target.columns.iter().any(|(known, _)| *known == id));
    let columns = leaves(input, presence).into_iter().flat_map(Plan::columns);
    let wanted = |id: &ColId| used.contains(id) && !locked(*id) && !presence.contains(id);
    columns.filter(|(id, _)| wanted(id)).collect()
}

/// The relations that the rows of a SELECT are made of.
fn leaves<'p>(plan: &'p Plan, presence: &[ColId]) -> Vec<&'p Plan> {
    match plan {
        Plan::Project { exprs, .. } if defines(exprs, presence) => vec![plan],
        Plan::Project { input, .. }
        | Plan::Filter { input, .. }
        | Plan::Sort { input, .. }
        | Plan::Limit { input, .. } => leaves(input, presence),
        Plan::Join { left, right, .. } => leaves(left, presence).into_iter().chain(leaves(right, presence)).collect(),
        leaf => vec![leaf],
    }
}

/// Whether a projection computes one of these columns.
fn defines(exprs: &[(ColId, Expr)], ids: &[ColId]) -> bool {
    exprs.iter().any(|(id, expr)| ids.contains(id) && !matches!(expr, Expr::Hole { .. }))
}

fn holes(plan: &Plan, used: &mut AHashSet<ColId>) {
    plan.clone().rewrite_exprs(&mut |node| {
        if let Expr::Hole { id, .. } = &node {
            used.insert(*id);
        }
        node
    });
}

/// Makes a column of a relation below part of the output. False if none of them has it.
pub(crate) fn expose(plan: &mut Plan, id: ColId) -> bool {
    if plan.columns().iter().any(|(known, _)| *known == id) {
        return true;
    }
    match plan {
        Plan::Project { input, exprs } => {
            let found = expose(input, id);
            let ty = input.columns().into_iter().find(|(known, _)| *known == id).map(|(_, ty)| ty);
            exprs.extend(ty.map(|ty| (id, Expr::Hole { id, ty })));
            found
        }
        Plan::Join { left, right, .. } => expose(left, id) || expose(right, id),
        Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::Limit { input, .. } => expose(input, id),
        Plan::ProjectSet { input, .. } => expose(input, id),
        _ => false,
    }
}

impl JoinKind {
    /// Whether the left and the right side may be filled with nulls.
    pub fn nullable(self) -> (bool, bool) {
        match self {
            JoinKind::Inner => (false, false),
            JoinKind::Left => (false, true),
            JoinKind::Right => (true, false),
            JoinKind::Full => (true, true),
        }
    }
}
