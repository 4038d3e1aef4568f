//! INSERT, UPDATE and DELETE: expressions over rows that the session locks, re-checks and writes.

use super::binder::Binder;
use super::row_rules::RowRules;
use super::scope::{Clause, Scope};
use super::{BindContext, ParamTypes, names, position};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, Query, Subquery};
use basalt_expr::cast::CastContext;
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnDef, ColumnId, DataType, Datum, Key, TableDef};
use sqlparser::ast::{
    self, AssignmentTarget, ConflictTarget, FromTable, OnConflictAction, OnInsert, SetExpr, TableFactor, TableObject,
};
use std::sync::Arc;

/// Rows to insert.
#[derive(Clone, Debug)]
pub struct BoundInsert {
    pub table: Arc<TableDef>,
    pub rules: Arc<RowRules>,
    pub source: InsertSource,
    pub on_conflict: Option<OnConflict>,
    pub returning: Option<Returning>,
}

#[derive(Clone, Debug)]
pub enum InsertSource {
    /// One expression per column of the table in column-id order (dropped ones null): assignment casts and
    /// defaults are in it. No columns, no subqueries: evaluate with the parameters.
    Values(Vec<Vec<Expr>>),
    /// Outputs one column per column of the table in column-id order, of the table's types.
    Query(Arc<Query>),
}

#[derive(Clone, Debug)]
pub enum OnConflict {
    DoNothing,
    /// Expressions over the existing row's columns, then the proposed row's.
    DoUpdate {
        assignments: Vec<(ColumnId, Expr)>,
        filter: Option<Expr>,
    },
}

/// Expressions over the row written (deleted), in column-id order.
#[derive(Clone, Debug)]
pub struct Returning {
    pub columns: Vec<OutputColumn>,
    pub exprs: Vec<Expr>,
}

/// UPDATE or DELETE of one table.
#[derive(Clone, Debug)]
pub struct BoundModify {
    pub table: Arc<TableDef>,
    pub rules: Arc<RowRules>,
    pub source: RowSource,
    /// WHERE over the row's columns in column-id order, then [`RowSource::Query`]'s extra columns.
    pub filter: Option<Expr>,
    /// SET, over the same; empty for DELETE. Values are of the columns' types.
    pub assignments: Vec<(ColumnId, Expr)>,
    pub returning: Option<Returning>,
}

#[derive(Clone, Debug)]
pub enum RowSource {
    /// At most the one row of this primary key.
    Point(PointAccess),
    /// Rows that passed WHERE at the snapshot: tablet (Int64), key (BinaryView), stamp (Int64), then `extra`
    /// columns, which are values of subqueries.
    Query { query: Box<Query>, extra: usize },
}

/// A primary key given by constants and parameters, one expression per key column in key order.
#[derive(Clone, Debug)]
pub struct PointAccess {
    pub key: Vec<Expr>,
}

impl PointAccess {
    /// The encoded key; `None` if a part is null, so that no row has it.
    pub fn key(&self, table: &TableDef, ctx: &EvalContext) -> Result<Option<Key>> {
        let Some(primary_key) = &table.primary_key else {
            return Err(SqlError::internal("point access to a table without a primary key"));
        };
        let mut out = Vec::with_capacity(16);
        for (expr, id) in self.key.iter().zip(&primary_key.columns) {
            let value = expr.eval_scalar(&[], ctx)?;
            if value == Datum::Null {
                return Ok(None);
            }
            basalt_types::key::encode_column(&table.column(*id).ty, &value, &mut out);
        }
        Ok(Some(Key(out.into())))
    }
}

/// Binds `INSERT INTO table …`.
pub fn bind_insert(ctx: &BindContext, insert: &ast::Insert, params: &mut ParamTypes) -> Result<BoundInsert> {
    let TableObject::TableName(name) = &insert.table else {
        return Err(SqlError::not_supported("INSERT INTO takes a table name"));
    };
    let table = ctx.table(name)?;
    let targets = insert_targets(ctx, &table, &insert.columns)?;
    let mut binder = Binder::new(ctx, params);
    binder.tables.push(table.id);
    let source = match insert.source.as_deref() {
        None => InsertSource::Values(vec![binder.default_row(&table, &[])?]),
        Some(query) => binder.insert_source(&table, &targets, !insert.columns.is_empty(), query)?,
    };
    let on_conflict = match &insert.on {
        None => None,
        Some(OnInsert::OnConflict(conflict)) => {
            let alias = insert.table_alias.as_ref().map(|alias| names::fold(&alias.alias));
            Some(binder.on_conflict(&table, alias, conflict)?)
        }
        Some(_) => return Err(SqlError::syntax("ON DUPLICATE KEY UPDATE is not PostgreSQL's: use ON CONFLICT")),
    };
    let alias = insert.table_alias.as_ref().map(|alias| names::fold(&alias.alias));
    let returning = binder.returning(&table, alias, insert.returning.as_deref())?;
    let rules = binder.row_rules(&table)?;
    Ok(BoundInsert { table, rules, source, on_conflict, returning })
}

/// Binds `UPDATE table SET … [WHERE …]`.
pub fn bind_update(ctx: &BindContext, update: &ast::Update, params: &mut ParamTypes) -> Result<BoundModify> {
    if update.from.is_some() || !update.table.joins.is_empty() {
        return Err(SqlError::not_supported("UPDATE ... FROM is not supported yet")
            .with_hint("Use a subquery in SET and WHERE."));
    }
    let (table, alias) = target(ctx, &update.table)?;
    Binder::new(ctx, params).modify(
        table,
        alias,
        &update.assignments,
        update.selection.as_ref(),
        update.returning.as_deref(),
    )
}

/// Binds `DELETE FROM table [WHERE …]`.
pub fn bind_delete(ctx: &BindContext, delete: &ast::Delete, params: &mut ParamTypes) -> Result<BoundModify> {
    if delete.using.is_some() {
        return Err(
            SqlError::not_supported("DELETE ... USING is not supported yet").with_hint("Use a subquery in WHERE.")
        );
    }
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = from.as_slice() else {
        return Err(SqlError::syntax("DELETE takes one table"));
    };
    let (table, alias) = target(ctx, from)?;
    Binder::new(ctx, params).modify(table, alias, &[], delete.selection.as_ref(), delete.returning.as_deref())
}

/// The table of UPDATE or DELETE and the name that its columns are qualified by.
fn target(ctx: &BindContext, from: &ast::TableWithJoins) -> Result<(Arc<TableDef>, String)> {
    let TableFactor::Table { name, alias, args: None, .. } = &from.relation else {
        return Err(SqlError::syntax("a table name is expected"));
    };
    let table = ctx.table(name)?;
    let alias = alias.as_ref().map_or_else(|| table.name.clone(), |alias| names::fold(&alias.name));
    Ok((table, alias))
}

/// Target columns of INSERT in the order of its values.
fn insert_targets(ctx: &BindContext, table: &TableDef, columns: &[ast::ObjectName]) -> Result<Vec<ColumnId>> {
    if columns.is_empty() {
        return Ok(table.live_columns().map(|column| column.id).collect());
    }
    let mut out = Vec::with_capacity(columns.len());
    for name in columns {
        let place = position::of_name(&ctx.sql, name);
        let id = target_column(table, name).map_err(|error| error.at(place))?;
        if out.contains(&id) {
            let message = format!("column \"{}\" specified more than once", table.column(id).name);
            return Err(SqlError::new("42701", message).at(place));
        }
        out.push(id);
    }
    Ok(out)
}

fn target_column(table: &TableDef, name: &ast::ObjectName) -> Result<ColumnId> {
    let parts = names::parts(name)?;
    let column = parts.last().and_then(|name| table.column_named(name));
    column.map(|column| column.id).ok_or_else(|| {
        let shown = parts.last().cloned().unwrap_or_default();
        SqlError::new("42703", format!("column \"{shown}\" of relation \"{}\" does not exist", table.name))
    })
}

fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

impl Binder<'_> {
    /// An expression as the value of a column: 42804 if it cannot be assigned.
    fn assigned(&mut self, expr: Expr, column: &ColumnDef) -> Result<Expr> {
        let from = expr.ty();
        self.coerce(expr, &column.ty, CastContext::Assignment).map_err(|error| match error.sqlstate {
            "42846" => SqlError::new(
                "42804",
                format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column.ty.base().sql_name(),
                    from.base().sql_name()
                ),
            )
            .with_hint("You will need to rewrite or cast the expression."),
            _ => error,
        })
    }

    /// What a column gets when INSERT does not name it.
    fn default_value(&mut self, column: &ColumnDef) -> Result<Expr> {
        let Some(sql) = column.default.as_deref().filter(|_| !column.dropped) else {
            return Ok(Expr::null(column.ty.clone()));
        };
        let syntax = super::parse_expr(sql)?;
        self.scopes.push(Scope::new(Clause::Default));
        let bound = self.expr(&syntax);
        self.scopes.pop();
        let bound = bound?;
        self.assigned(bound, column)
    }

    /// One row: `given` values, defaults elsewhere.
    fn default_row(&mut self, table: &TableDef, given: &[(ColumnId, Expr)]) -> Result<Vec<Expr>> {
        let mut row = Vec::with_capacity(table.columns.len());
        for column in &table.columns {
            row.push(match given.iter().find(|(id, _)| *id == column.id) {
                Some((_, expr)) => expr.clone(),
                None => self.default_value(column)?,
            });
        }
        Ok(row)
    }

    fn insert_source(
        &mut self,
        table: &Arc<TableDef>,
        targets: &[ColumnId],
        named: bool,
        query: &ast::Query,
    ) -> Result<InsertSource> {
        if let SetExpr::Values(values) = &*query.body
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.with.is_none()
        {
            let rows: Vec<&[ast::Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
            let rows = self.insert_rows(table, targets, named, &rows)?;
            if self.subqueries.is_empty() {
                return Ok(InsertSource::Values(rows));
            }
            return Ok(InsertSource::Query(Arc::new(self.rows_as_query(table, rows))));
        }
        let mut bound = self.query_with(query, true)?;
        check_width(targets.len(), named, bound.columns.len())?;
        let mut given = Vec::with_capacity(bound.columns.len());
        for (index, id) in targets.iter().enumerate().take(bound.columns.len()) {
            let column = table.column(*id);
            if bound.columns[index].ty == DataType::Unknown {
                self.retype(&mut bound, index, &column.ty, CastContext::Assignment)?;
            }
            let source = &bound.columns[index];
            let expr = Expr::Hole { id: source.id, ty: source.ty.clone() };
            given.push((*id, self.assigned(expr, column)?));
        }
        let row = self.default_row(table, &given)?;
        let exprs: Vec<(ColId, Expr)> = row.into_iter().map(|expr| (self.fresh(), expr)).collect();
        let columns = outputs(table, &exprs);
        let plan = Plan::Project { input: Box::new(bound.plan), exprs };
        Ok(InsertSource::Query(Arc::new(self.take_query(plan, columns))))
    }

    fn insert_rows(
        &mut self,
        table: &TableDef,
        targets: &[ColumnId],
        named: bool,
        rows: &[&[ast::Expr]],
    ) -> Result<Vec<Vec<Expr>>> {
        if rows.iter().any(|row| row.len() != rows[0].len()) {
            return Err(SqlError::syntax("VALUES lists must all be the same length"));
        }
        let mut defaults: Vec<Option<Expr>> = vec![None; table.columns.len()];
        self.scopes.push(Scope::new(Clause::Values));
        let mut bound_rows = Vec::with_capacity(rows.len());
        for row in rows {
            check_width(targets.len(), named, row.len())?;
            let mut values: Vec<Option<Expr>> = vec![None; table.columns.len()];
            for (expr, id) in row.iter().zip(targets).filter(|(expr, _)| !is_default(expr)) {
                let bound = self.expr(expr)?;
                let bound = self
                    .assigned(bound, table.column(*id))
                    .map_err(|error| error.at(position::of_expr(&self.ctx.sql, expr)))?;
                values[id.position()] = Some(bound.fold(&self.ctx.eval, false));
            }
            let mut out = Vec::with_capacity(values.len());
            for (position, value) in values.into_iter().enumerate() {
                out.push(match value {
                    Some(value) => value,
                    None => {
                        if defaults[position].is_none() {
                            defaults[position] = Some(self.default_value(&table.columns[position])?);
                        }
                        defaults[position].clone().expect("filled above")
                    }
                });
            }
            bound_rows.push(out);
        }
        self.scopes.pop();
        Ok(bound_rows)
    }

    /// VALUES whose expressions contain subqueries run as a plan.
    fn rows_as_query(&mut self, table: &TableDef, rows: Vec<Vec<Expr>>) -> Query {
        let columns: Vec<(ColId, DataType)> =
            table.columns.iter().map(|column| (self.fresh(), column.ty.clone())).collect();
        let outputs = table.columns.iter().zip(&columns).map(|(column, (id, _))| output(column, *id)).collect();
        self.take_query(Plan::Values { columns, rows }, outputs)
    }

    fn take_query(&mut self, plan: Plan, columns: Vec<OutputColumn>) -> Query {
        let mut tables = std::mem::take(&mut self.tables);
        tables.sort_unstable();
        tables.dedup();
        let row_locks = std::mem::take(&mut self.row_locks);
        let subqueries = std::mem::take(&mut self.subqueries);
        let ctes = std::mem::take(&mut self.shared);
        let mut query = Query { plan, columns, subqueries, ctes, tables, row_locks };
        query.inline_ctes();
        query
    }

    /// Opens a scope over the table; gives the plan that scans it and the ids of its live columns.
    fn table_scope(&mut self, table: &Arc<TableDef>, alias: String, clause: Clause) -> Result<Plan> {
        let item = self.base_table(table, alias, None)?;
        let mut scope = Scope::new(clause);
        scope.relations = item.relations;
        scope.visible = item.visible;
        self.scopes.push(scope);
        Ok(item.plan)
    }

    fn on_conflict(
        &mut self,
        table: &Arc<TableDef>,
        alias: Option<String>,
        conflict: &ast::OnConflict,
    ) -> Result<OnConflict> {
        if let Some(ConflictTarget::Columns(columns)) = &conflict.conflict_target {
            let mut given: Vec<String> = columns.iter().map(names::fold).collect();
            let mut key: Vec<String> = table
                .primary_key
                .iter()
                .flat_map(|key| &key.columns)
                .map(|id| table.column(*id).name.clone())
                .collect();
            given.sort_unstable();
            key.sort_unstable();
            if given != key {
                return Err(SqlError::new(
                    "42P10",
                    "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                ));
            }
        }
        let update = match &conflict.action {
            OnConflictAction::DoNothing => return Ok(OnConflict::DoNothing),
            OnConflictAction::DoUpdate(update) => update,
        };
        let existing = self.table_scope(table, alias.unwrap_or_else(|| table.name.clone()), Clause::Update)?;
        let proposed = self.base_table(table, "excluded".into(), None)?;
        self.scope().relations.extend(proposed.relations);
        let assignments = self.assignments(table, &update.assignments)?;
        let filter = update.selection.as_ref().map(|filter| self.condition("WHERE", filter)).transpose()?;
        self.scopes.pop();
        if !self.subqueries.is_empty() {
            return Err(SqlError::not_supported("subqueries in ON CONFLICT DO UPDATE are not supported yet"));
        }
        let mut places = row_positions(&existing, 0);
        places.extend(row_positions(&proposed.plan, table.columns.len()));
        let assignments = assignments.into_iter().map(|(id, expr)| (id, over_row(expr, &places))).collect();
        Ok(OnConflict::DoUpdate { assignments, filter: filter.map(|filter| over_row(filter, &places)) })
    }

    fn assignments(&mut self, table: &TableDef, given: &[ast::Assignment]) -> Result<Vec<(ColumnId, Expr)>> {
        let mut out: Vec<(ColumnId, Expr)> = Vec::with_capacity(given.len());
        for assignment in given {
            let pairs: Vec<(&ast::ObjectName, &ast::Expr)> = match (&assignment.target, &assignment.value) {
                (AssignmentTarget::ColumnName(name), value) => vec![(name, value)],
                (AssignmentTarget::Tuple(names), ast::Expr::Tuple(values)) if names.len() == values.len() => {
                    names.iter().zip(values).collect()
                }
                _ => return Err(SqlError::not_supported("SET (…) = takes a row of as many expressions")),
            };
            for (name, value) in pairs {
                let place = || position::of_name(&self.ctx.sql, name);
                let id = target_column(table, name).map_err(|error| error.at(place()))?;
                if out.iter().any(|(known, _)| *known == id) {
                    let message = format!("multiple assignments to same column \"{}\"", table.column(id).name);
                    return Err(SqlError::syntax(message).at(place()));
                }
                let column = table.column(id);
                let expr = if is_default(value) {
                    self.default_value(column)?
                } else {
                    let bound = self.expr(value)?;
                    let place = position::of_expr(&self.ctx.sql, value);
                    self.assigned(bound, column).map_err(|error| error.at(place))?
                };
                out.push((id, expr));
            }
        }
        Ok(out)
    }

    fn modify(
        mut self,
        table: Arc<TableDef>,
        alias: String,
        assignments: &[ast::Assignment],
        selection: Option<&ast::Expr>,
        returning: Option<&[ast::SelectItem]>,
    ) -> Result<BoundModify> {
        let returning = self.returning(&table, Some(alias.clone()), returning)?;
        let rules = self.row_rules(&table)?;
        let scan = self.table_scope(&table, alias, Clause::Update)?;
        let assignments = self.assignments(&table, assignments)?;
        let filter = match selection {
            Some(selection) => Some(self.in_clause(Clause::Where, |binder| binder.condition("WHERE", selection))?),
            None => None,
        };
        self.scopes.pop();
        let mut places = row_positions(&scan, 0);
        let key = match &filter {
            Some(filter) if self.subqueries.is_empty() => super::point::key_of(&table, &scan, filter, &self.ctx.eval),
            _ => None,
        };
        let source = match key {
            Some(key) => RowSource::Point(PointAccess { key }),
            None => {
                let subqueries: Vec<(ColId, DataType)> =
                    used_subqueries(filter.iter().chain(assignments.iter().map(|(_, expr)| expr)), &self.subqueries);
                for (index, (id, _)) in subqueries.iter().enumerate() {
                    places.push((*id, table.columns.len() + index));
                }
                let query = self.rows_query(scan, filter.clone(), &subqueries);
                RowSource::Query { query: Box::new(query), extra: subqueries.len() }
            }
        };
        let filter = filter.map(|filter| over_row(filter, &places));
        let assignments = assignments.into_iter().map(|(id, expr)| (id, over_row(expr, &places))).collect();
        Ok(BoundModify { table, rules, source, filter, assignments, returning })
    }

    /// The rows that pass `filter`: their identity and the values of subqueries.
    fn rows_query(&mut self, scan: Plan, filter: Option<Expr>, subqueries: &[(ColId, DataType)]) -> Query {
        let ids = [self.fresh(), self.fresh(), self.fresh()];
        let Plan::Scan { table, columns, .. } = scan else { unreachable!("a base table is scanned") };
        let mut plan = Plan::Scan { table, columns, identity: Some(ids) };
        if let Some(condition) = filter {
            plan = Plan::Filter { input: Box::new(plan), condition };
        }
        let types = [DataType::Int8, DataType::Bytea, DataType::Int8];
        let mut exprs: Vec<(ColId, Expr)> =
            ids.into_iter().zip(types).map(|(id, ty)| (id, Expr::Hole { id, ty })).collect();
        for (id, ty) in subqueries {
            exprs.push((self.fresh(), Expr::Hole { id: *id, ty: ty.clone() }));
        }
        let columns = exprs
            .iter()
            .map(|(id, expr)| OutputColumn {
                id: *id,
                name: format!("row{id}"),
                ty: expr.ty(),
                typmod: -1,
                table_oid: 0,
                column_no: 0,
            })
            .collect();
        self.take_query(Plan::Project { input: Box::new(plan), exprs }, columns)
    }

    fn returning(
        &mut self,
        table: &Arc<TableDef>,
        alias: Option<String>,
        items: Option<&[ast::SelectItem]>,
    ) -> Result<Option<Returning>> {
        let Some(items) = items else { return Ok(None) };
        let scan = self.table_scope(table, alias.unwrap_or_else(|| table.name.clone()), Clause::Returning)?;
        let before = self.subqueries.len();
        let items = self.items(items, false);
        self.scopes.pop();
        let items = items?;
        if self.subqueries.len() > before {
            return Err(SqlError::not_supported("subqueries in RETURNING are not supported yet"));
        }
        let places = row_positions(&scan, 0);
        let mut columns = Vec::with_capacity(items.len());
        let mut exprs = Vec::with_capacity(items.len());
        for item in items {
            let (table_oid, column_no) = item.source;
            columns.push(OutputColumn {
                id: self.fresh(),
                name: item.name,
                ty: item.expr.ty(),
                typmod: self.typmod(&item.expr),
                table_oid,
                column_no,
            });
            exprs.push(over_row(item.expr, &places));
        }
        Ok(Some(Returning { columns, exprs }))
    }
}

/// `named`: the statement lists its columns.
fn check_width(targets: usize, named: bool, given: usize) -> Result<()> {
    match given.cmp(&targets) {
        std::cmp::Ordering::Greater => Err(SqlError::syntax("INSERT has more expressions than target columns")),
        std::cmp::Ordering::Less if named => Err(SqlError::syntax("INSERT has more target columns than expressions")),
        // Fewer values than columns of the table leave the last ones to their defaults.
        _ => Ok(()),
    }
}

fn output(column: &ColumnDef, id: ColId) -> OutputColumn {
    let typmod = column.ty.typmod();
    OutputColumn { id, name: column.name.clone(), ty: column.ty.clone(), typmod, table_oid: 0, column_no: 0 }
}

fn outputs(table: &TableDef, exprs: &[(ColId, Expr)]) -> Vec<OutputColumn> {
    table.columns.iter().zip(exprs).map(|(column, (id, _))| output(column, *id)).collect()
}

/// Where each column of a scan stands in a row of its table, `base` values further on.
pub(super) fn row_positions(scan: &Plan, base: usize) -> Vec<(ColId, usize)> {
    match scan {
        Plan::Scan { columns, .. } => columns.iter().map(|(id, column)| (*id, base + column.position())).collect(),
        _ => Vec::new(),
    }
}

/// Column holes as positions in a row.
pub(super) fn over_row(expr: Expr, places: &[(ColId, usize)]) -> Expr {
    expr.rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => match places.iter().find(|(known, _)| *known == id) {
            Some((_, index)) => Expr::Column { index: *index, ty },
            None => Expr::Hole { id, ty },
        },
        other => other,
    })
}

fn used_subqueries<'e>(
    exprs: impl Iterator<Item = &'e Expr>,
    subqueries: &std::collections::BTreeMap<ColId, Subquery>,
) -> Vec<(ColId, DataType)> {
    let mut out: Vec<(ColId, DataType)> = Vec::new();
    for expr in exprs {
        expr.walk(&mut |node| {
            if let Expr::Hole { id, ty } = node
                && subqueries.contains_key(id)
                && !out.iter().any(|(known, _)| known == id)
            {
                out.push((*id, ty.clone()));
            }
            true
        });
    }
    out
}
