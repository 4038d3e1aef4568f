//! Statements with data-modifying queries in WITH (PostgreSQL manual 7.8.2): each is run once and to its end, at the
//! snapshot of the whole statement; what reads from one gets the rows of its RETURNING.
//!
//! The manual leaves the order open; it is PostgreSQL's: what the main command reads from, the main command, then the
//! others, the last first.

use super::super::binder::{Binder, Bound as BoundQuery, Slot};
use super::super::{BindContext, ParamTypes, position};
use super::conflict::{Compute, ConflictAction};
use super::{BoundInsert, BoundModify, InsertSource, OnConflict, Point, PointChange, Returning, RowSource};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, HeldRows, OutputColumn, Plan, Query, Subquery, is_volatile};
use crate::syntax::Statement;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, ObjectId, TableDef};
use sqlparser::ast::{self, SetExpr};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A bound statement; shared between executions.
#[derive(Clone, Debug)]
pub enum Bound {
    Query(Arc<Query>),
    Write(Write),
    With(Arc<BoundWith>),
}

/// One command that changes rows, or a query of WITH that is run once for all of them.
#[derive(Clone, Debug)]
pub enum Write {
    Insert(Arc<BoundInsert>),
    Update(Arc<BoundModify>),
    Delete(Arc<BoundModify>),
    Merge(Arc<BoundModify>),
    Read(Arc<Query>),
}

#[derive(Clone, Debug)]
pub struct BoundWith {
    /// The n-th gives the rows of [`Plan::Given`] in slot n.
    pub writes: Vec<Write>,
    pub main: Bound,
}

/// Binds a statement that has a plan.
pub fn bind_statement(ctx: &BindContext, statement: &Statement, params: &mut ParamTypes) -> Result<Bound> {
    let mut binder = Binder::new(ctx, params);
    match statement {
        Statement::Insert(insert) => Ok(Bound::Write(Write::Insert(Arc::new(binder.insert(insert)?)))),
        Statement::Update(update) => Ok(Bound::Write(Write::Update(Arc::new(binder.update(update)?)))),
        Statement::Delete(delete) => Ok(Bound::Write(Write::Delete(Arc::new(binder.delete(delete)?)))),
        Statement::Merge(merge) => Ok(Bound::Write(Write::Merge(Arc::new(binder.merge(merge)?)))),
        Statement::Query(query) => {
            // Of a statement that changes nothing, queries in WITH are its own.
            binder.takes_writes = writes(query);
            let main = match is_write(&query.body) {
                true => Bound::Write(binder.write_query(query)?),
                false => {
                    let bound = binder.query(query)?;
                    let columns = bound.columns;
                    Bound::Query(Arc::new(binder.take_query(bound.plan, columns)))
                }
            };
            let writes = std::mem::take(&mut binder.writes);
            match writes.is_empty() {
                true => Ok(main),
                false => Ok(Bound::With(Arc::new(BoundWith { writes, main }))),
            }
        }
        other => Err(SqlError::internal(format!("{} has no plan", other.verb()))),
    }
}

/// Whether the body of a query is a command that changes rows.
pub fn is_write(body: &SetExpr) -> bool {
    matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_))
}

/// Whether a query has commands in WITH that change rows, or is one behind it.
pub fn writes(query: &ast::Query) -> bool {
    let in_with = |with: &ast::With| with.cte_tables.iter().any(|cte| is_write(&cte.query.body));
    is_write(&query.body) || query.with.as_ref().is_some_and(in_with)
}

impl Binder<'_> {
    /// A command behind WITH, or in it.
    fn write_query(&mut self, query: &ast::Query) -> Result<Write> {
        let top = std::mem::take(&mut self.takes_writes);
        if let Some(with) = &query.with {
            self.with(with, top)?;
        }
        match &*query.body {
            SetExpr::Insert(ast::Statement::Insert(insert)) => Ok(Write::Insert(Arc::new(self.insert(insert)?))),
            SetExpr::Update(ast::Statement::Update(update)) => Ok(Write::Update(Arc::new(self.update(update)?))),
            SetExpr::Delete(ast::Statement::Delete(delete)) => Ok(Write::Delete(Arc::new(self.delete(delete)?))),
            SetExpr::Merge(ast::Statement::Merge(merge)) => Ok(Write::Merge(Arc::new(self.merge(merge)?))),
            _ => Err(SqlError::not_supported("this form of statement is not supported")),
        }
    }

    /// A WITH query that changes rows; `top`: its WITH is the statement's. Gives its slot and outputs.
    pub fn write_cte(&mut self, cte: &ast::Cte, top: bool) -> Result<(Slot, Vec<OutputColumn>)> {
        let place = position::of_ident(&self.ctx.sql, &cte.alias.name);
        if !top {
            let message = "WITH clause containing a data-modifying statement must be at the top level";
            return Err(SqlError::not_supported(message).at(place));
        }
        if let SetExpr::Merge(_) = &*cte.query.body {
            return Err(SqlError::not_supported("MERGE not supported in WITH query").at(place));
        }
        let known = self.ctes.len();
        let outer = self.begin_apart();
        let write = self.write_query(&cte.query)?;
        (self.tables, self.subqueries) = outer;
        self.ctes.truncate(known);
        let columns = write.returning().map(|returning| returning.columns.clone());
        let gives_rows = columns.is_some();
        Ok((self.add_slot(write, gives_rows), columns.unwrap_or_default()))
    }

    /// What follows belongs to a query of its own.
    pub fn begin_apart(&mut self) -> (Vec<ObjectId>, BTreeMap<ColId, Subquery>) {
        (std::mem::take(&mut self.tables), std::mem::take(&mut self.subqueries))
    }

    /// Makes a query of a WITH query if it has to be computed once for all commands of the statement: it gives other
    /// rows each time, or locks them. Otherwise gives it back.
    pub fn end_apart(
        &mut self,
        outer: (Vec<ObjectId>, BTreeMap<ColId, Subquery>),
        bound: BoundQuery,
    ) -> Result<(Slot, Vec<OutputColumn>), Box<BoundQuery>> {
        if !is_volatile(&bound.plan, &self.subqueries) && !locks_rows(&bound.plan) {
            self.tables.extend(outer.0);
            self.subqueries.extend(outer.1);
            return Err(Box::new(bound));
        }
        let columns = bound.columns.clone();
        let query = self.take_query(bound.plan, bound.columns);
        (self.tables, self.subqueries) = outer;
        Ok((self.add_slot(Write::Read(Arc::new(query)), true), columns))
    }

    fn add_slot(&mut self, write: Write, gives_rows: bool) -> Slot {
        self.writes.push(write);
        Slot { number: self.writes.len() - 1, gives_rows }
    }
}

fn locks_rows(plan: &Plan) -> bool {
    matches!(plan, Plan::LockRows(_)) || plan.inputs().into_iter().any(locks_rows)
}

impl BoundWith {
    /// The commands' slots in the order in which they run: those before the main command, then those after it.
    pub fn order(&self) -> (Vec<usize>, Vec<usize>) {
        let mut read = Vec::new();
        match &self.main {
            Bound::Query(query) => query.slots(&mut read),
            Bound::Write(write) => write.slots(&mut read),
            Bound::With(_) => {}
        }
        read.sort_unstable();
        let (mut before, mut after) = (Vec::new(), Vec::new());
        read.into_iter().for_each(|slot| self.add(slot, &mut before));
        for slot in (0..self.writes.len()).rev().filter(|slot| !before.contains(slot)) {
            self.add(slot, &mut after);
        }
        after.retain(|slot| !before.contains(slot));
        (before, after)
    }

    /// Adds a command behind those that it reads from.
    fn add(&self, slot: usize, out: &mut Vec<usize>) {
        if out.contains(&slot) {
            return;
        }
        let mut read = Vec::new();
        self.writes[slot].slots(&mut read);
        // A command reads from earlier ones only.
        read.into_iter().filter(|earlier| *earlier < slot).for_each(|earlier| self.add(earlier, out));
        out.push(slot);
    }
}

impl Write {
    fn slots(&self, out: &mut Vec<usize>) {
        self.queries().into_iter().for_each(|query| query.slots(out));
        if let Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) = self
            && let RowSource::Search(search) = &modify.source
        {
            search.query.slots(out);
        }
    }

    pub fn returning(&self) -> Option<&Returning> {
        match self {
            Write::Insert(insert) => insert.returning.as_ref(),
            Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) => modify.returning.as_ref(),
            Write::Read(_) => None,
        }
    }

    /// What is written to.
    pub fn table(&self) -> Option<&Arc<TableDef>> {
        match self {
            Write::Insert(insert) => Some(&insert.table),
            Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) => Some(&modify.table),
            Write::Read(_) => None,
        }
    }

    /// As the command's tag begins.
    pub fn tag(&self) -> &'static str {
        match self {
            Write::Insert(_) => "INSERT 0",
            Write::Update(_) => "UPDATE",
            Write::Delete(_) => "DELETE",
            Write::Merge(_) => "MERGE",
            Write::Read(_) => "SELECT",
        }
    }

    /// The plans that it runs, a search's apart.
    pub fn queries(&self) -> Vec<&Query> {
        let mut out: Vec<&Query> = Vec::new();
        if let Write::Read(query) = self {
            out.push(query);
        }
        if let Write::Insert(insert) = self {
            if let InsertSource::Query(query) = &insert.source {
                out.push(query);
            }
            if let Some(OnConflict {
                action: ConflictAction::DoUpdate { compute: Compute::Queries { filter, values }, .. },
                ..
            }) = &insert.on_conflict
            {
                out.extend(filter.as_deref());
                out.push(values);
            }
        }
        out.extend(self.returning().and_then(|returning| returning.query.as_deref()));
        out
    }

    /// What it computes for a row: without plans, and without a search's.
    pub fn exprs(&self) -> Vec<&Expr> {
        let mut out: Vec<&Expr> = self.returning().iter().flat_map(|returning| &returning.exprs).collect();
        let rules = match self {
            Write::Insert(insert) => {
                if let InsertSource::Values(rows) = &insert.source {
                    out.extend(rows.iter().flatten());
                }
                if let Some(OnConflict {
                    action: ConflictAction::DoUpdate { compute: Compute::Exprs { filter, values }, .. },
                    ..
                }) = &insert.on_conflict
                {
                    out.extend(filter.iter().chain(values));
                }
                &insert.rules
            }
            Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) => {
                if let RowSource::Point(point) = &modify.source {
                    out.extend(point.access.key.iter().chain([&point.filter]));
                    if let PointChange::Update(set) = &point.change {
                        out.extend(set.iter().map(|(_, value)| value));
                    }
                }
                &modify.rules
            }
            Write::Read(_) => return out,
        };
        out.extend(rules.generated.iter().map(|(_, expr)| expr));
        out.extend(rules.checks.iter().chain(&rules.view_checks).map(|check| &check.condition));
        out
    }

    /// What decides between rows that conflict, and the columns that get values where some do not.
    pub fn places(&self) -> (Vec<ObjectId>, Vec<ColumnId>) {
        match self {
            Write::Insert(insert) => match &insert.on_conflict {
                Some(OnConflict { arbiters, action: ConflictAction::DoUpdate { columns, .. } }) => {
                    (arbiters.clone(), columns.clone())
                }
                Some(OnConflict { arbiters, action: ConflictAction::DoNothing }) => (arbiters.clone(), Vec::new()),
                None => Default::default(),
            },
            Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) => match &modify.source {
                RowSource::Point(Point { change: PointChange::Update(set), .. }) => {
                    (Vec::new(), set.iter().map(|(column, _)| *column).collect())
                }
                _ => Default::default(),
            },
            Write::Read(_) => Default::default(),
        }
    }

    /// Whether plans are run beside the one that finds or gives the rows.
    pub fn runs_plans(&self) -> bool {
        let source = match self {
            Write::Insert(insert) => usize::from(matches!(insert.source, InsertSource::Query(_))),
            _ => 0,
        };
        self.queries().len() > source
    }

    /// The same with the rows of WITH's commands in their places.
    pub fn with_given(&self, given: &[Option<HeldRows>]) -> Write {
        let modify = |modify: &BoundModify| {
            let mut modify = modify.clone();
            if let RowSource::Search(search) = &mut modify.source {
                search.query.give(&|slot| given.get(slot).and_then(Option::as_ref));
            }
            give_returning(&mut modify.returning, given);
            Arc::new(modify)
        };
        match self {
            Write::Insert(insert) => {
                let mut insert = (**insert).clone();
                if let InsertSource::Query(query) = &mut insert.source {
                    *query = query.with_given(given);
                }
                if let Some(OnConflict {
                    action: ConflictAction::DoUpdate { compute: Compute::Queries { filter, values }, .. },
                    ..
                }) = &mut insert.on_conflict
                {
                    for query in filter.iter_mut().chain([values]) {
                        *query = query.with_given(given);
                    }
                }
                give_returning(&mut insert.returning, given);
                Write::Insert(Arc::new(insert))
            }
            Write::Update(update) => Write::Update(modify(update)),
            Write::Delete(delete) => Write::Delete(modify(delete)),
            Write::Merge(merge) => Write::Merge(modify(merge)),
            Write::Read(query) => Write::Read(query.with_given(given)),
        }
    }
}

fn give_returning(returning: &mut Option<Returning>, given: &[Option<HeldRows>]) {
    if let Some(query) = returning.as_mut().and_then(|returning| returning.query.as_mut()) {
        *query = query.with_given(given);
    }
}

impl Query {
    /// The same with the rows of WITH's commands in their places.
    pub fn with_given(&self, given: &[Option<HeldRows>]) -> Arc<Query> {
        let mut query = self.clone();
        query.give(&|slot| given.get(slot).and_then(Option::as_ref));
        Arc::new(query)
    }

    /// The same with these rows in [`Plan::WRITTEN`]'s place.
    pub fn with_written(&self, rows: &HeldRows) -> Arc<Query> {
        let mut query = self.clone();
        query.give(&|slot| (slot == Plan::WRITTEN).then_some(rows));
        Arc::new(query)
    }

    /// Slots of WITH's commands that it reads from.
    pub fn slots(&self, out: &mut Vec<usize>) {
        fn note(plan: &Plan, out: &mut Vec<usize>) {
            if let Plan::Given { slot, .. } = plan
                && *slot != Plan::WRITTEN
            {
                out.push(*slot);
            }
            plan.inputs().into_iter().for_each(|input| note(input, out));
        }
        note(&self.plan, out);
        self.subqueries.values().for_each(|subquery| note(&subquery.plan, out));
        self.ctes.values().for_each(|cte| note(&cte.plan, out));
    }

    fn give<'r>(&mut self, find: &impl Fn(usize) -> Option<&'r HeldRows>) {
        self.plan.give(find);
        self.subqueries.values_mut().for_each(|subquery| subquery.plan.give(find));
        self.ctes.values_mut().for_each(|cte| cte.plan.give(find));
    }
}
