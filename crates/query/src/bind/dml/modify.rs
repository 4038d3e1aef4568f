//! UPDATE and DELETE: the search and what it computes for each row.

use super::super::binder::Binder;
use super::super::from::may_be_confused;
use super::super::locking::{expose, kept};
use super::super::near::{invalid_reference, out_of_reach};
use super::super::point;
use super::super::row_rules::RowCheck;
use super::super::scope::{Clause, Scope};
use super::returning::{Beside, Columns};
use super::target::{Target, Verb};
use super::{Action, BoundModify, Point, PointAccess, PointChange, Returning, RowSource, Search, SearchKind, over_row};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, JoinKind, Kept, LockRows, LockTarget, OnLocked, Plan};
use crate::row;
use crate::syntax::cursor_of;
use basalt_engine::{RowLock, privilege};
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, DataType};
use sqlparser::ast::{self, FromTable, TableFactor, UpdateTableFromKind};
use std::sync::Arc;

/// A search under construction.
pub(in crate::bind) struct Searching {
    pub input: Plan,
    pub outputs: Vec<(ColId, Expr)>,
    pub identity: [ColId; 3],
    /// [`LockRows::presence`], marked already.
    pub presence: Vec<ColId>,
    /// The target's among them.
    pub present: Option<ColId>,
}

impl Searching {
    /// Adds an output; gives its number.
    pub fn output(&mut self, id: ColId, expr: Expr) -> usize {
        self.outputs.push((id, expr));
        self.outputs.len() - 1
    }
}

impl Binder<'_> {
    pub fn update(&mut self, update: &ast::Update) -> Result<BoundModify> {
        let foreign = update.or.is_some() || update.output.is_some() || !update.order_by.is_empty();
        if foreign || update.limit.is_some() || !update.table.joins.is_empty() {
            return Err(SqlError::syntax("this form of UPDATE is not PostgreSQL's"));
        }
        let from: &[ast::TableWithJoins] = match &update.from {
            None => &[],
            Some(UpdateTableFromKind::AfterSet(from)) => from,
            Some(UpdateTableFromKind::BeforeSet(_)) => {
                return Err(SqlError::syntax("FROM stands behind SET"));
            }
        };
        let target = self.named_target(&update.table, Verb::Update)?;
        let selection = update.selection.as_ref();
        self.modify(target, from, Some(&update.assignments), selection, update.returning.as_deref())
    }

    pub fn delete(&mut self, delete: &ast::Delete) -> Result<BoundModify> {
        let foreign = !delete.tables.is_empty() || delete.output.is_some() || !delete.order_by.is_empty();
        if foreign || delete.limit.is_some() {
            return Err(SqlError::syntax("this form of DELETE is not PostgreSQL's"));
        }
        let FromTable::WithFromKeyword(from) = &delete.from else {
            return Err(SqlError::syntax("DELETE takes FROM and a table"));
        };
        let [from] = from.as_slice() else {
            return Err(SqlError::syntax("DELETE takes one table"));
        };
        let target = self.named_target(from, Verb::Delete)?;
        let using = delete.using.as_deref().unwrap_or_default();
        self.modify(target, using, None, delete.selection.as_ref(), delete.returning.as_deref())
    }

    fn named_target(&mut self, from: &ast::TableWithJoins, verb: Verb) -> Result<Target> {
        match factor_name(&from.relation).filter(|_| from.joins.is_empty()) {
            Some((name, alias)) => self.target(name, alias, verb),
            None => Err(SqlError::syntax("a table name is expected")),
        }
    }

    /// `assignments`: of UPDATE.
    fn modify(
        &mut self,
        target: Target,
        from: &[ast::TableWithJoins],
        assignments: Option<&[ast::Assignment]>,
        selection: Option<&ast::Expr>,
        returning: Option<&[ast::SelectItem]>,
    ) -> Result<BoundModify> {
        let out_of_sight = vec![target.relation.clone()];
        self.scopes.push(Scope { out_of_sight, ..Scope::new(Clause::FromFunction) });
        // FROM does not see the target, not even a lateral item of it.
        let beside_plan = self.table_list(from).map_err(|error| not_lateral(error, &target, from))?;
        self.scope().out_of_sight.clear();
        let clashes = self.scope().relations.iter().any(|other| {
            other.name == target.relation.name && !other.hidden && may_be_confused(other, &target.relation)
        });
        if clashes {
            let message = format!("table name \"{}\" specified more than once", target.relation.name);
            return Err(SqlError::new("42712", message));
        }
        let beside = Beside {
            relations: self.scope().relations.clone(),
            visible: self.scope().visible.clone(),
            columns: beside_plan.columns(),
        };
        target.enter(self.scope());
        self.scope().clause = Clause::Update;
        let identity = [self.fresh(), self.fresh(), self.fresh()];
        let by_cursor = selection.is_some_and(|selection| cursor_of(selection).is_some());
        let filter = match by_cursor {
            true => Some(self.current_of(&target, identity)?),
            false => self.where_condition(selection)?,
        };
        // As in PostgreSQL, SET comes last: errors and the types of parameters follow that order.
        let (returning, extra) = self.returning_between(&target, &beside, returning)?;
        let set = assignments.map(|assignments| self.assignments(&target, assignments)).transpose()?;
        let updates = if set.is_some() { privilege::UPDATE } else { 0 };
        self.need_more(updates, set.iter().flatten().map(|(column, _)| column.0 as i16));
        self.scopes.pop();
        let rules = self.target_rules(&target)?;
        if from.is_empty()
            && !by_cursor
            && let Some(point) = self.point(&target, set.as_deref(), filter.as_ref())
        {
            if returning.as_ref().is_none_or(|clause| clause.query.is_none()) {
                self.tables.clear();
            }
            let table = target.table.clone();
            return Ok(BoundModify { table, rules, source: RowSource::Point(point), returning });
        }
        let scan = target.plan(Some(identity));
        let mut input = match from.is_empty() {
            true => scan,
            false => Plan::Join {
                left: Box::new(beside_plan),
                right: Box::new(scan),
                kind: JoinKind::Inner,
                condition: None,
                lateral: false,
            },
        };
        let mut presence = Vec::new();
        self.mark_presence(&mut input, false, &mut presence);
        if let Some(condition) = filter {
            input = Plan::Filter { input: Box::new(input), condition };
        }
        let mut searching = Searching { input, outputs: Vec::new(), identity, presence, present: None };
        let (kind, action) = match set {
            Some(set) => {
                let set = set.into_iter().map(|(column, expr)| {
                    let id = self.fresh();
                    (column, searching.output(id, expr))
                });
                (SearchKind::Update, Action::Update(set.collect()))
            }
            None => (SearchKind::Delete, Action::Delete),
        };
        let repeats = !from.is_empty();
        let search = self.search(&target, searching, kind, None, vec![action], repeats);
        self.finish_search(target, search, returning, extra)
    }

    /// Binds RETURNING in the midst of the search: what that has of subqueries and tables so far stays its own.
    fn returning_between(
        &mut self,
        target: &Target,
        beside: &Beside,
        items: Option<&[ast::SelectItem]>,
    ) -> Result<(Option<Returning>, Columns)> {
        let scope = self.scopes.pop();
        let (subqueries, tables) = (std::mem::take(&mut self.subqueries), std::mem::take(&mut self.tables));
        let bound = self.returning(target, beside, items)?;
        (self.subqueries, self.tables) = (subqueries, tables);
        self.scopes.extend(scope);
        Ok(bound)
    }

    /// Puts everything together. `extra`: what RETURNING reads of FROM or USING.
    pub fn finish_search(
        &mut self,
        target: Target,
        mut search: Search,
        returning: Option<Returning>,
        extra: Columns,
    ) -> Result<BoundModify> {
        let rules = self.target_rules(&target)?;
        for (id, ty) in extra {
            search.extra.push(search.step.columns.len());
            let Plan::Project { exprs, .. } = &mut search.query.plan else {
                return Err(SqlError::internal("a search has no projection"));
            };
            if !exprs.iter().any(|(known, _)| *known == id) {
                exprs.push((id, Expr::Hole { id, ty: ty.clone() }));
            }
            search.step.columns.push((id, ty));
        }
        search.query.prune();
        search.query.pass_orders_on();
        let source = RowSource::Search(Box::new(search));
        Ok(BoundModify { table: target.table.clone(), rules, source, returning })
    }

    /// Takes everything that was bound so far into a search.
    pub fn search(
        &mut self,
        target: &Target,
        searching: Searching,
        kind: SearchKind,
        choice: Option<usize>,
        actions: Vec<Action>,
        repeats: bool,
    ) -> Search {
        let Searching { input, outputs, identity, presence, present } = searching;
        let locked = LockTarget {
            table: target.table.clone(),
            columns: target.base.clone(),
            identity,
            strength: RowLock::Update,
            on_locked: OnLocked::Wait,
        };
        let columns: Vec<(ColId, DataType)> = outputs.iter().map(|(id, expr)| (*id, expr.ty())).collect();
        let mut query = self.take_whole_query(Plan::Project { input: Box::new(input), exprs: outputs }, Vec::new());
        let targets = vec![locked];
        let mut kept = kept(&query, &targets, &presence);
        kept.extend(presence.iter().map(|id| (*id, DataType::Bool)));
        let old = target.base.clone();
        let passed = kept.iter().map(|(id, _)| *id).chain(identity).chain(old.iter().map(|(id, _)| *id));
        for id in passed {
            expose(&mut query.plan, id);
        }
        Search {
            query,
            step: LockRows {
                input: Plan::Unit,
                columns,
                targets,
                kept,
                presence,
                limit: None,
                offset: None,
                first: Kept::default(),
            },
            ready: Kept::default(),
            old,
            choice,
            actions,
            present,
            extra: Vec::new(),
            repeats,
            kind,
        }
    }

    /// A change of the one row of a primary key, if nothing in it takes a plan.
    fn point(&self, target: &Target, set: Option<&[(ColumnId, Expr)]>, filter: Option<&Expr>) -> Option<Point> {
        if !self.subqueries.is_empty() || target.view.is_some() || !row::is_enabled(&self.ctx.eval) {
            return None;
        }
        let filter = filter?;
        let scan = target.plan(None);
        let key = point::key_of(&target.table, &scan, filter)?;
        let asks_more = point::asks_more(filter, key.len());
        let places = target.positions();
        let folded = |expr: &Expr| over_row(expr.clone(), &places).fold(&self.ctx.eval, false);
        let change = match set {
            Some(set) => {
                let set = set.iter().map(|(id, expr)| (*id, folded(expr)));
                PointChange::Update(set.collect())
            }
            None => PointChange::Delete,
        };
        let filter = folded(filter);
        let beside_key = asks_more.then(|| point::columns_of(std::iter::once(&filter)));
        Some(Point { access: PointAccess { key }, filter, beside_key, change })
    }

    /// What the table and the views around it ask of rows.
    pub fn target_rules(&mut self, target: &Target) -> Result<Arc<super::RowRules>> {
        let rules = self.row_rules(&target.table)?;
        let checked = target.conditions.iter().filter(|known| known.checked);
        let places = target.positions();
        let view_checks = checked.map(|known| {
            let condition = over_row(known.condition.clone(), &places);
            match condition.any(&mut |node| matches!(node, Expr::Hole { .. })) {
                true => Err(SqlError::not_supported("a CHECK OPTION with subqueries is not supported yet")),
                false => Ok(RowCheck { name: known.view.clone(), condition }),
            }
        });
        let view_checks = view_checks.collect::<Result<Vec<RowCheck>>>()?;
        match view_checks.is_empty() {
            true => Ok(rules),
            false => Ok(Arc::new(super::RowRules { view_checks, ..(*rules).clone() })),
        }
    }
}

/// The name of a target as the statement gives it.
pub(super) fn factor_name(factor: &TableFactor) -> Option<(&ast::ObjectName, Option<&ast::TableAlias>)> {
    match factor {
        TableFactor::Table { name, alias, args: None, sample: None, .. } => Some((name, alias.as_ref())),
        _ => None,
    }
}

/// The target is no part of FROM: what is lateral there may know it, but must not refer to it.
fn not_lateral(error: SqlError, target: &Target, from: &[ast::TableWithJoins]) -> SqlError {
    let name = &target.relation.name;
    let factors = from
        .iter()
        .flat_map(|item| std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation)));
    let lateral = factors.into_iter().any(|factor| matches!(factor, TableFactor::Derived { lateral: true, .. }));
    let by_name = error.message == invalid_reference("42P01", name).message;
    let hint = out_of_reach(name);
    let by_column = || {
        let mut columns = target.relation.columns.iter();
        columns.any(|column| error.message == format!("column \"{}\" does not exist", column.name))
    };
    match lateral && (by_name || by_column()) {
        true => invalid_reference("42P10", name).with_hint(hint).at(error.position),
        false => error,
    }
}
