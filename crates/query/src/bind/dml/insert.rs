//! INSERT: target columns, VALUES or a query, defaults.

use super::super::binder::Binder;
use super::super::position;
use super::super::row::NO_EXPANSION;
use super::super::scope::{Clause, Scope};
use super::assign::placed;
use super::own_values::Overriding;
use super::returning::Beside;
use super::target::{Target, Verb};
use super::{BoundInsert, InsertSource, is_default, output};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, Query};
use crate::syntax::{TargetStep, target_steps};
use basalt_engine::privilege;
use basalt_expr::cast::CastContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, DataType, TableDef};
use sqlparser::ast::{self, OnInsert, SetExpr, TableObject};
use std::sync::Arc;

impl Binder<'_> {
    pub fn insert(&mut self, insert: &ast::Insert) -> Result<BoundInsert> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::not_supported("INSERT INTO takes a table name"));
        };
        let foreign = insert.or.is_some() || insert.overwrite || !insert.into || insert.output.is_some();
        if foreign || insert.has_table_keyword || !insert.assignments.is_empty() {
            return Err(SqlError::syntax("this form of INSERT is not PostgreSQL's"));
        }
        let alias = insert.table_alias.as_ref().map(|alias| ast::TableAlias {
            explicit: true,
            name: alias.alias.clone(),
            columns: Vec::new(),
            at: None,
        });
        let mut target = self.target(name, alias.as_ref(), Verb::Insert)?;
        target.overriding = Overriding::of(insert);
        self.tables.push(target.table.id);
        let columns = self.insert_targets(&target, &insert.columns)?;
        let command = self.command();
        let (source, width) = match insert.source.as_deref() {
            None => (InsertSource::Values(vec![self.default_row(&target, &[])?]), 0),
            Some(query) => {
                let source = self.insert_source(&target, &columns, !insert.columns.is_empty(), query);
                source.map_err(|error| computed_column(error, &target, columns.len()))?
            }
        };
        let filled = columns.iter().take(width).map(|column| column.id.0 as i16);
        self.need_more_of(command, privilege::INSERT, filled);
        let on_conflict = match &insert.on {
            None => None,
            Some(OnInsert::OnConflict(conflict)) => Some(self.on_conflict(&target, conflict)?),
            Some(_) => return Err(SqlError::syntax("ON DUPLICATE KEY UPDATE is not PostgreSQL's: use ON CONFLICT")),
        };
        let (returning, _) = self.returning(&target, &Beside::default(), insert.returning.as_deref())?;
        let rules = self.target_rules(&target)?;
        Ok(BoundInsert { table: target.table.clone(), rules, source, on_conflict, returning })
    }

    /// Target columns of INSERT in the order of its values; of a view without a list, those before the first that is
    /// computed.
    pub fn insert_targets(&mut self, target: &Target, columns: &[ast::ObjectName]) -> Result<Vec<InsertTarget>> {
        if columns.is_empty() {
            let columns = target.relation.columns.iter().map_while(|column| target.base_column(column.id));
            return Ok(columns.map(|id| InsertTarget { id, steps: Vec::new(), place: None }).collect());
        }
        let mut out: Vec<InsertTarget> = Vec::with_capacity(columns.len());
        for name in columns {
            let place = position::of_name(&self.ctx.sql, name);
            let id = self.target_column(target, name, Verb::Insert)?;
            let steps = target_steps(name)?;
            if out.iter().any(|known| known.id == id && (known.steps.is_empty() || steps.is_empty())) {
                let shown = target.table.column(id).name.clone();
                let message = format!("column \"{shown}\" specified more than once");
                return Err(SqlError::new("42701", message).at(place));
            }
            out.push(InsertTarget { id, steps, place });
        }
        Ok(out)
    }

    /// Rows to insert, and for how many of the target columns they have values.
    fn insert_source(
        &mut self,
        target: &Target,
        targets: &[InsertTarget],
        named: bool,
        query: &ast::Query,
    ) -> Result<(InsertSource, usize)> {
        if let SetExpr::Values(values) = &*query.body
            && query.order_by.is_none()
            && query.limit_clause.is_none()
            && query.fetch.is_none()
            && query.with.is_none()
        {
            let rows: Vec<&[ast::Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
            let width = rows.first().map_or(0, |row| row.len());
            let bound = self.values_in_scope(target, targets, named, &rows);
            let rows = match (bound, rows.as_slice()) {
                // One row is a SELECT without FROM: sets among its values give more rows, `(value).*` more columns.
                (Err(error), [row])
                    if [SETS_IN_VALUES, NO_EXPANSION].contains(&error.message.as_str())
                        && !row.iter().any(is_default) =>
                {
                    return self.insert_source(target, targets, named, &select_of(row)?);
                }
                (bound, _) => bound?,
            };
            if self.subqueries.is_empty() {
                return Ok((InsertSource::Values(rows), width));
            }
            return Ok((InsertSource::Query(Arc::new(self.rows_as_query(&target.table, rows))), width));
        }
        let mut bound = self.query_with(query, true)?;
        let width = bound.columns.len();
        check_width(targets, named, bound.columns.len()).map_err(|error| {
            let surplus = super::super::query::output_expr(&query.body, targets.len());
            error.at_with(|| position::of_expr(&self.ctx.sql, surplus?))
        })?;
        let mut given: Vec<(ColumnId, Expr)> = Vec::with_capacity(bound.columns.len());
        for (index, InsertTarget { id, steps, .. }) in targets.iter().enumerate().take(bound.columns.len()) {
            let column = target.table.column(*id);
            if !target.overriding.takes(column)? {
                continue;
            }
            if bound.columns[index].ty == DataType::Unknown {
                let ty = part_type(&column.ty, steps).unwrap_or(DataType::Text);
                self.retype(&mut bound, index, &ty, CastContext::Assignment)?;
            }
            let source = &bound.columns[index];
            let expr = Expr::Hole { id: source.id, ty: source.ty.clone() };
            if !steps.is_empty() {
                let before = given.iter().position(|(known, _)| known == id).map(|at| given.swap_remove(at).1);
                given.push((*id, self.part_inserted(column, before, steps, expr)?));
                continue;
            }
            given.push((*id, self.assigned(expr, column)?));
        }
        let row = self.default_row(target, &given)?;
        let exprs: Vec<(ColId, Expr)> = row.into_iter().map(|expr| (self.fresh(), expr)).collect();
        let columns = outputs(&target.table, &exprs);
        let plan = Plan::Project { input: Box::new(bound.plan), exprs };
        Ok((InsertSource::Query(Arc::new(self.take_query(plan, columns))), width))
    }

    /// Rows of VALUES as rows of the table.
    pub fn insert_rows(
        &mut self,
        target: &Target,
        overriding: Overriding,
        targets: &[InsertTarget],
        named: bool,
        rows: &[&[ast::Expr]],
    ) -> Result<Vec<Vec<Expr>>> {
        let table = &target.table;
        if let Some(row) = rows.iter().find(|row| row.len() != rows[0].len()) {
            let place = row.first().and_then(|expr| position::of_expr(&self.ctx.sql, expr));
            return Err(SqlError::syntax("VALUES lists must all be the same length").at(place));
        }
        let mut defaults: Vec<Option<Expr>> = vec![None; table.columns.len()];
        let mut bound_rows = Vec::with_capacity(rows.len());
        for row in rows {
            check_width(targets, named, row.len()).map_err(|error| {
                let surplus = row.get(targets.len()).or_else(|| row.first());
                error.at(surplus.and_then(|expr| position::of_expr(&self.ctx.sql, expr)))
            })?;
            let mut values: Vec<Option<Expr>> = vec![None; table.columns.len()];
            for (expr, InsertTarget { id, steps, place }) in row.iter().zip(targets) {
                if is_default(expr) {
                    refuse_default(steps).map_err(|error| error.at(*place))?;
                    continue;
                }
                let column = table.column(*id);
                let taken = overriding.takes(column)?;
                let bound = self.expr(expr)?;
                if !taken {
                    continue;
                }
                let bound = match steps.is_empty() {
                    true => self.assigned(bound, column),
                    false => self.part_inserted(column, values[id.position()].take(), steps, bound),
                };
                let bound = bound.map_err(|error| placed(error, || position::of_expr(&self.ctx.sql, expr)))?;
                values[id.position()] = Some(bound.fold(&self.ctx.eval, false));
            }
            let mut out = Vec::with_capacity(values.len());
            for (position, value) in values.into_iter().enumerate() {
                out.push(match (value, &defaults[position]) {
                    (Some(value), _) => value,
                    (None, Some(default)) => default.clone(),
                    (None, None) => {
                        let default = self.default_value(&table.columns[position])?;
                        defaults[position] = Some(default.clone());
                        default
                    }
                });
            }
            bound_rows.push(out);
        }
        Ok(bound_rows)
    }

    /// VALUES whose expressions contain subqueries run as a plan.
    fn rows_as_query(&mut self, table: &TableDef, rows: Vec<Vec<Expr>>) -> Query {
        let columns: Vec<(ColId, DataType)> =
            table.columns.iter().map(|column| (self.fresh(), column.ty.clone())).collect();
        let outputs = table.columns.iter().zip(&columns).map(|(column, (id, _))| output(column, *id)).collect();
        self.take_query(Plan::Values { columns, rows }, outputs)
    }
}

impl Binder<'_> {
    /// [`Binder::insert_rows`] in a scope of its own.
    pub fn values_in_scope(
        &mut self,
        target: &Target,
        targets: &[InsertTarget],
        named: bool,
        rows: &[&[ast::Expr]],
    ) -> Result<Vec<Vec<Expr>>> {
        let out_of_sight = vec![target.relation.clone()];
        self.scopes.push(Scope { out_of_sight, ..Scope::new(Clause::Values) });
        let bound = self.insert_rows(target, target.overriding, targets, named, rows);
        self.scopes.pop();
        bound
    }
}

/// A column of INSERT's list, or a part of one.
pub(in crate::bind) struct InsertTarget {
    pub id: ColumnId,
    pub steps: Vec<TargetStep>,
    /// In the statement, if it is named there.
    pub place: Option<u32>,
}

/// The type of a part of a column.
fn part_type(whole: &DataType, steps: &[TargetStep]) -> Option<DataType> {
    steps.iter().try_fold(whole.clone(), |ty, step| match step {
        TargetStep::Field(name) => Some(ty.composite()?.attribute_named(name)?.1.ty.clone()),
        TargetStep::Subscripts(chain) => {
            let is_slice =
                |step: &ast::AccessExpr| matches!(step, ast::AccessExpr::Subscript(ast::Subscript::Slice { .. }));
            if chain.iter().any(is_slice) { Some(ty) } else { ty.element().cloned() }
        }
    })
}

/// 0A000: a part of a column has no default.
fn refuse_default(steps: &[TargetStep]) -> Result<()> {
    match steps.last() {
        None => Ok(()),
        Some(TargetStep::Field(_)) => Err(SqlError::not_supported("cannot set a subfield to DEFAULT")),
        Some(TargetStep::Subscripts(_)) => Err(SqlError::not_supported("cannot set an array element to DEFAULT")),
    }
}

/// `named`: the statement lists its columns.
fn check_width(targets: &[InsertTarget], named: bool, given: usize) -> Result<()> {
    let is_repeated = |at: usize| targets[..at].iter().any(|other| other.id == targets[at].id);
    if !named && (0..given.min(targets.len())).any(is_repeated) {
        // Columns of a view that are one of its table.
        return Err(SqlError::syntax("multiple assignments to the same column of a view's table"));
    }
    match given.cmp(&targets.len()) {
        std::cmp::Ordering::Greater => Err(SqlError::syntax(MORE_EXPRESSIONS)),
        std::cmp::Ordering::Less if named => {
            Err(SqlError::syntax("INSERT has more target columns than expressions").at(targets[given].place))
        }
        // Fewer values than columns of the table leave the last ones to their defaults.
        _ => Ok(()),
    }
}

fn outputs(table: &TableDef, exprs: &[(ColId, Expr)]) -> Vec<OutputColumn> {
    table.columns.iter().zip(exprs).map(|(column, (id, _))| output(column, *id)).collect()
}

const SETS_IN_VALUES: &str = "set-returning functions are not allowed in VALUES";

/// `SELECT` of a row of VALUES.
fn select_of(row: &[ast::Expr]) -> Result<ast::Query> {
    let mut query = super::super::parse_query("SELECT 1")?;
    if let SetExpr::Select(select) = &mut *query.body {
        select.projection = row.iter().cloned().map(ast::SelectItem::UnnamedExpr).collect();
    }
    Ok(query)
}

/// A value too many for a view may be one for a column that is computed.
fn computed_column(error: SqlError, target: &Target, columns: usize) -> SqlError {
    match (&target.view, target.relation.columns.get(columns)) {
        (Some(view), Some(column)) if error.message == MORE_EXPRESSIONS => {
            SqlError::not_supported(format!("cannot insert into column \"{}\" of view \"{view}\"", column.name))
                .with_detail("View columns that are not columns of their base relation are not updatable.")
        }
        _ => error,
    }
}

const MORE_EXPRESSIONS: &str = "INSERT has more expressions than target columns";
