//! ON CONFLICT: which constraint arbitrates, and what happens to the row that is there
//! (PostgreSQL manual, INSERT, "ON CONFLICT Clause").

use super::super::binder::Binder;
use super::super::scope::{Clause, Scope};
use super::super::{BindContext, ParamTypes, names, pinned};
use super::over_row;
use super::target::Target;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, Query};
use basalt_engine::privilege;
use basalt_expr::tree::Expr;
use basalt_types::schema::{IndexDef, IndexSource};
use basalt_types::{ColumnId, ObjectId, TableDef};
use sqlparser::ast::{self, ConflictTarget, OnConflictAction};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct OnConflict {
    /// The constraints and indexes that decide, by id (a primary key's constraint); none: all of the table's.
    pub arbiters: Vec<ObjectId>,
    pub action: ConflictAction,
}

#[derive(Clone, Debug)]
pub enum ConflictAction {
    DoNothing,
    DoUpdate { columns: Vec<ColumnId>, compute: Compute },
}

/// The condition and the new values of DO UPDATE.
#[derive(Clone, Debug)]
pub enum Compute {
    /// Over the existing row's columns, then the proposed row's, in column-id order.
    Exprs { filter: Option<Expr>, values: Vec<Expr> },
    /// If there are subqueries. Each gives one row from [`Plan::Given`] in slot [`Plan::WRITTEN`]: live columns of the
    /// existing row, then of the proposed one.
    Queries { filter: Option<Arc<Query>>, values: Arc<Query> },
}

impl Binder<'_> {
    pub fn on_conflict(&mut self, target: &Target, conflict: &ast::OnConflict) -> Result<OnConflict> {
        let arbiters = self.arbiters(target, conflict)?;
        if let Some(ConflictTarget::OnConstraint(_)) = &conflict.conflict_target {
            self.need_to_read(arbiter_columns(&target.table, &arbiters).into_iter());
        }
        let update = match &conflict.action {
            OnConflictAction::DoNothing => return Ok(OnConflict { arbiters, action: ConflictAction::DoNothing }),
            OnConflictAction::DoUpdate(update) => update,
        };
        let existing = self.again(target)?;
        let mut proposed = self.again(target)?;
        proposed.relation.name = "excluded".into();
        proposed.relation.schema = None;
        let mut scope = Scope::new(Clause::Update);
        existing.enter(&mut scope);
        scope.relations.push(proposed.relation.clone());
        scope.visible.extend(proposed.relation.columns.iter().cloned());
        self.scopes.push(scope);
        let assignments = self.assignments(&existing, &update.assignments)?;
        self.need_more(privilege::UPDATE, assignments.iter().map(|(column, _)| column.0 as i16));
        let filter = self.where_condition(update.selection.as_ref())?;
        self.scopes.pop();
        let (columns, values): (Vec<ColumnId>, Vec<Expr>) = assignments.into_iter().unzip();
        if !self.subqueries.is_empty() {
            let values = self.conflict_query(&existing, &proposed, values);
            let filter = filter.map(|filter| {
                self.subqueries.clone_from(&values.subqueries);
                Arc::new(self.conflict_query(&existing, &proposed, vec![filter]))
            });
            let compute = Compute::Queries { filter, values: Arc::new(values) };
            return Ok(OnConflict { arbiters, action: ConflictAction::DoUpdate { columns, compute } });
        }
        let mut places = existing.positions();
        let width = target.table.columns.len();
        places.extend(proposed.positions().into_iter().map(|(id, at)| (id, width + at)));
        let place =
            |expr: Expr| over_row(proposed.inlined(existing.inlined(expr)), &places).fold(&self.ctx.eval, false);
        let values = values.into_iter().map(place).collect();
        let compute = Compute::Exprs { filter: filter.map(place), values };
        Ok(OnConflict { arbiters, action: ConflictAction::DoUpdate { columns, compute } })
    }

    fn conflict_query(&mut self, existing: &Target, proposed: &Target, exprs: Vec<Expr>) -> Query {
        let both = existing.base.iter().chain(&proposed.base);
        let given = both.map(|(id, column)| (*id, existing.table.column(*column).ty.clone())).collect();
        let given = Plan::Given { slot: Plan::WRITTEN, columns: given };
        let input = proposed.with_computed(existing.with_computed(given));
        let exprs: Vec<(ColId, Expr)> = exprs.into_iter().map(|expr| (self.fresh(), expr)).collect();
        let columns = exprs.iter().map(|(id, expr)| OutputColumn::computed(*id, expr.ty())).collect();
        self.take_query(Plan::Project { input: Box::new(input), exprs }, columns)
    }

    /// Finds the constraints that a conflict target means. 42P10 if there is none, 42704 for an unknown name.
    fn arbiters(&mut self, target: &Target, conflict: &ast::OnConflict) -> Result<Vec<ObjectId>> {
        let table = &target.table;
        match (&conflict.conflict_target, &conflict.action) {
            (None, OnConflictAction::DoNothing) => match table.indexes.iter().any(|index| index.is_deferrable()) {
                true => Err(deferrable()),
                false => Ok(Vec::new()),
            },
            (None, OnConflictAction::DoUpdate(_)) => {
                Err(SqlError::syntax("ON CONFLICT DO UPDATE requires inference specification or constraint name")
                    .with_hint("For example, ON CONFLICT (column_name)."))
            }
            (Some(ConflictTarget::OnConstraint(name)), _) => {
                let shown = names::parts(name)?.pop().unwrap_or_default();
                if let Some(key) = table.primary_key.as_ref().filter(|key| key.constraint_name == shown) {
                    return Ok(vec![key.constraint_id]);
                }
                let of_constraint =
                    table.indexes.iter().find(|index| index.constraint.is_some() && index.name == shown);
                match of_constraint {
                    Some(index) if index.is_deferrable() => Err(deferrable()),
                    Some(index) => Ok(vec![index.id]),
                    None if crate::statement::checks::has_constraint(table, &shown) => {
                        let message = "constraint in ON CONFLICT clause has no associated index";
                        Err(SqlError::new("42809", message))
                    }
                    None => {
                        let message = format!("constraint \"{shown}\" for table \"{}\" does not exist", table.name);
                        Err(SqlError::new("42704", message))
                    }
                }
            }
            (Some(ConflictTarget::Columns(elements)), _) => self.inferred(target, elements),
        }
    }

    /// A list of columns, as [`crate::syntax::conflict_element`] takes its elements apart.
    fn inferred(&mut self, target: &Target, elements: &[ast::Ident]) -> Result<Vec<ObjectId>> {
        let table = &target.table;
        let mut given = Given::default();
        let target = self.again(target)?;
        for element in elements {
            let element = crate::syntax::conflict_element(element)?;
            let mut scope = Scope::new(Clause::Where);
            target.enter(&mut scope);
            self.scopes.push(scope);
            let bound = match element.is_predicate {
                true => self.condition("WHERE", &element.expr),
                false => self.expr(&element.expr),
            };
            self.scopes.pop();
            // The collation is the only one.
            let plain = match &element.expr {
                ast::Expr::Collate { expr, .. } => expr,
                expr => expr,
            };
            let again = |ctx: &BindContext, expr: &ast::Expr| {
                super::super::bind_row_expr(ctx, table, expr, None, &mut ParamTypes::none()).map(|_| ())
            };
            let text = |expr: &ast::Expr| pinned::expression(self.ctx, Some(table), expr, &again);
            match bound? {
                _ if element.is_predicate => {
                    given.predicate = conjuncts(&element.expr).into_iter().map(text).collect::<Result<_>>()?;
                }
                Expr::Hole { id, .. } if element.is_plain => given.columns.extend(target.base_column(id)),
                _ => given.expressions.push(text(plain)?),
            }
        }
        if !self.subqueries.is_empty() {
            return Err(SqlError::not_supported("cannot use subquery in ON CONFLICT inference"));
        }
        given.columns.sort_unstable();
        given.columns.dedup();
        given.expressions.sort_unstable();
        given.expressions.dedup();
        let mut arbiters = Vec::new();
        if let Some(key) = &table.primary_key {
            let mut columns = key.columns.clone();
            columns.sort_unstable();
            if given.expressions.is_empty() && columns == given.columns {
                arbiters.push(key.constraint_id);
            }
        }
        let pinned = |sql: &str| {
            let again = |ctx: &BindContext, expr: &ast::Expr| {
                super::super::bind_row_expr(ctx, table, expr, None, &mut ParamTypes::none()).map(|_| ())
            };
            let expr = crate::syntax::parse_expr_text(sql).ok()?;
            pinned::expression(self.ctx, Some(table), &expr, &again).ok()
        };
        for index in table.valid_indexes().filter(|index| given.means(index, &pinned)) {
            if index.is_deferrable() {
                return Err(deferrable());
            }
            arbiters.push(index.id);
        }
        if arbiters.is_empty() {
            return Err(SqlError::new(
                "42P10",
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
            ));
        }
        Ok(arbiters)
    }
}

/// Numbers of the columns that arbiters are over.
fn arbiter_columns(table: &TableDef, arbiters: &[ObjectId]) -> Vec<i16> {
    let key = table.primary_key.iter().filter(|key| arbiters.contains(&key.constraint_id));
    let of_key = key.flat_map(|key| key.columns.iter().copied());
    let indexes = table.indexes.iter().filter(|index| arbiters.contains(&index.id));
    let of_indexes = indexes.flat_map(|index| &index.columns).filter_map(|column| match &column.source {
        IndexSource::Column(id) => Some(*id),
        IndexSource::Expression(_) => None,
    });
    of_key.chain(of_indexes).map(|id| id.0 as i16).collect()
}

fn deferrable() -> SqlError {
    let message = "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
    SqlError::new("55000", message)
}

/// What a conflict target lists.
#[derive(Default)]
struct Given {
    columns: Vec<ColumnId>,
    expressions: Vec<String>,
    /// The parts of a condition that AND joins.
    predicate: Vec<String>,
}

fn conjuncts(expr: &ast::Expr) -> Vec<&ast::Expr> {
    match expr {
        ast::Expr::Nested(inner) => conjuncts(inner),
        ast::Expr::BinaryOp { left, op: ast::BinaryOperator::And, right } => {
            conjuncts(left).into_iter().chain(conjuncts(right)).collect()
        }
        other => vec![other],
    }
}

impl Given {
    /// Whether a unique index is of exactly these; a partial one, if its condition is the target's. `pinned` gives the
    /// text under which one that an older program kept would be kept now: its literals are as they were written.
    fn means(&self, index: &IndexDef, pinned: &dyn Fn(&str) -> Option<String>) -> bool {
        let now = |sql: &str, known: &[String]| {
            let differs = !known.is_empty() && !known.iter().any(|known| known == sql);
            let is_older = differs && sql.contains('\'') && !sql.contains(pinned::MARK);
            is_older.then(|| pinned(sql)).flatten().unwrap_or_else(|| sql.to_string())
        };
        let (mut columns, mut expressions) = (Vec::new(), Vec::new());
        for column in &index.columns {
            match &column.source {
                IndexSource::Column(id) => columns.push(*id),
                IndexSource::Expression(sql) => expressions.push(now(sql, &self.expressions)),
            }
        }
        columns.sort_unstable();
        expressions.sort_unstable();
        let implied = index.predicate.as_deref().is_none_or(|own| {
            let Ok(own) = crate::syntax::parse_expr_text(own) else { return false };
            conjuncts(&own).into_iter().all(|part| self.predicate.contains(&now(&part.to_string(), &self.predicate)))
        });
        index.unique && implied && columns == self.columns && expressions == self.expressions
    }
}
