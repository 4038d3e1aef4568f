//! From syntax to meaning: names against the catalog, types and overloads by PostgreSQL's rules.

mod aggregate;
mod binder;
mod dml;
mod expr;
mod foreign;
mod from;
mod function;
mod function_columns;
mod group;
mod group_by;
mod index_terms;
pub(crate) mod key_values;
pub(crate) mod locking;
mod named_args;
pub mod names;
mod near;
mod needs;
mod ordered_set;
mod outer;
mod output_name;
mod params;
pub(crate) mod pinned;
pub mod point;
pub mod position;
mod precedence;
mod query;
mod recursion;
mod row;
mod row_rules;
mod same;
mod sample;
mod scope;
mod search_cycle;
mod select;
mod sets;
mod stored;
mod subquery;
mod types;
mod unbuilt;
mod window;
mod with;

pub use dml::{
    Action, Bound, BoundInsert, BoundModify, BoundWith, Compute, ConflictAction, CurrentOf, InsertSource, OnConflict,
    Point, PointAccess, PointChange, ReadySearch, Returning, RowSource, Search, SearchKind, Write, bind_statement,
    check_updatable, current_of, is_write, updatable_base, updatable_columns, writes,
};
pub use index_terms::{IndexTerms, bind_index};
pub use needs::{Need, Needs};
pub use output_name::{index_column_name, typname};
pub use params::ParamTypes;
pub use row_rules::{RowCheck, RowRules, bind_row_rules};
pub use stored::{bind_check, bind_default, bind_generated, bind_transform, columns_of, identity_value, rename_column};
pub use types::domain_default;

use crate::error::{Result, SqlError};
use crate::plan::{OutputColumn, Query};
use crate::syntax::Postgres15;
use crate::syntax::chains;
use basalt_engine::Catalog;
use basalt_expr::cast::CastContext;
use basalt_expr::context::EvalContext;
use basalt_expr::functions::Registry;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, DomainDef, ObjectId, TableDef};
use binder::Binder;
use parking_lot::Mutex;
use scope::{Clause, Scope};
use sqlparser::ast;
use sqlparser::parser::Parser;
use std::sync::Arc;

/// What binding may look at.
#[derive(Clone)]
pub struct BindContext {
    pub catalog: Arc<Catalog>,
    pub database: ObjectId,
    /// Schemas for unqualified names, in order; `"$user"` already replaced. `pg_catalog` is searched first
    /// unless it is listed.
    pub search_path: Vec<String>,
    /// Built-in functions and those of this crate.
    pub registry: Arc<Registry>,
    /// Settings that literals are read by (time zone, date order) and names (`'t'::regclass`).
    pub eval: Arc<EvalContext>,
    /// The text that the syntax came from, for error positions.
    pub sql: Arc<str>,
    pub warnings: Warnings,
    /// Where the relations that are named are noted, for privileges.
    pub needs: Option<Arc<Mutex<Needs>>>,
    /// Where fields that bear a number are noted.
    pub fields: Option<pinned::FieldNotes>,
    /// Of the cursor that WHERE CURRENT OF names.
    pub current: Option<Arc<CurrentOf>>,
}

/// What binding found worth a warning; the session tells the client.
pub type Warnings = Arc<Mutex<Vec<SqlError>>>;

/// Binds a query (SELECT, VALUES, TABLE, set operations, WITH). Open parameter types are filled in.
pub fn bind_query(ctx: &BindContext, query: &ast::Query, params: &mut ParamTypes) -> Result<Query> {
    let mut binder = Binder::new(ctx, params);
    let bound = binder.query(query)?;
    Ok(binder.finish(bound))
}

/// Binds an expression without columns, cast to `target` as in an assignment if one is given: defaults,
/// EXECUTE's arguments, SET's values.
pub fn bind_scalar(
    ctx: &BindContext,
    expr: &ast::Expr,
    target: Option<&DataType>,
    params: &mut ParamTypes,
) -> Result<Expr> {
    let mut binder = Binder::new(ctx, params);
    binder.scopes.push(Scope::new(Clause::Default));
    binder.lone_expr(expr, target)
}

/// Binds an expression over one row of a table; `Expr::Column` is the position in column-id order.
pub fn bind_row_expr(
    ctx: &BindContext,
    table: &Arc<TableDef>,
    expr: &ast::Expr,
    target: Option<&DataType>,
    params: &mut ParamTypes,
) -> Result<Expr> {
    let mut binder = Binder::new(ctx, params);
    let item = binder.base_table(table, table.name.clone(), None)?;
    let mut scope = Scope::new(Clause::Where);
    scope.relations = item.relations;
    scope.visible = item.visible;
    binder.scopes.push(scope);
    let bound = binder.lone_expr(expr, target)?;
    Ok(dml::over_row(bound, &dml::row_positions(&item.plan)))
}

/// The type of a column, an attribute or a domain's base, and its modifier if it is a date or time type (or an array of
/// one). 42704 without such a type.
pub fn bind_column_type(ctx: &BindContext, ty: &ast::DataType) -> Result<(DataType, Option<i32>)> {
    let bound = types::resolve(ctx, ty)?;
    let modifier = types::time_modifier(Some(ctx), ty).filter(|_| !matches!(bound, DataType::Domain(_)));
    Ok((bound, modifier))
}

/// The modifier of an output of a date or time type, for columns that are made of it.
pub fn time_modifier_of(output: &OutputColumn) -> Option<i32> {
    let is_time = |ty: &DataType| {
        use DataType::*;
        matches!(ty, Time | TimeTz | Timestamp | TimestampTz | Interval)
    };
    let ty = &output.ty;
    (output.typmod >= 0 && is_time(ty.element().unwrap_or(ty))).then_some(output.typmod)
}

/// The type that a type name in syntax means; 42704 if there is none.
pub fn bind_type(ctx: &BindContext, ty: &ast::DataType) -> Result<DataType> {
    types::resolve(ctx, ty)
}

/// Binds a domain's condition over `VALUE`, which is column 0 in the base type.
pub fn bind_domain_check(ctx: &BindContext, base: &DataType, condition: &ast::Expr) -> Result<Expr> {
    let mut params = ParamTypes::none();
    let mut binder = Binder::new(ctx, &mut params);
    let id = binder.fresh();
    let mut scope = Scope::new(Clause::Default);
    scope.visible.push(from::scope_column("value".into(), id, base.clone()));
    binder.scopes.push(scope);
    let bound = binder.condition("CHECK", condition)?;
    if !binder.subqueries.is_empty() {
        return Err(SqlError::not_supported("cannot use subquery in check constraint"));
    }
    Ok(bound.rewrite(&mut |node| match node {
        Expr::Hole { ty, .. } => Expr::Column { index: 0, ty },
        other => other,
    }))
}

/// The conditions of a domain's own CHECKs by name, in the order in which they are checked.
pub(crate) fn bind_domain_conditions(ctx: &BindContext, domain: &DomainDef) -> Result<Vec<(String, Expr)>> {
    let mut checks: Vec<_> = domain.checks.iter().collect();
    checks.sort_by(|a, b| a.name.cmp(&b.name));
    let bound = checks
        .into_iter()
        .map(|check| Ok((check.name.clone(), bind_domain_check(ctx, &domain.base, &parse_expr(&check.sql)?)?)));
    bound.collect()
}

impl Binder<'_> {
    /// An expression outside of any query: subqueries have nowhere to run.
    fn lone_expr(&mut self, expr: &ast::Expr, target: Option<&DataType>) -> Result<Expr> {
        let bound = self.expr(expr)?;
        if !self.subqueries.is_empty() {
            return Err(SqlError::new("0A000", "cannot use subquery in this expression"));
        }
        match target {
            Some(ty) => self.coerce(bound, ty, CastContext::Assignment),
            None => self.known(bound),
        }
    }
}

/// Parses a stored query (a view's body).
pub(crate) fn parse_query(sql: &str) -> Result<ast::Query> {
    let parsed = Parser::new(&Postgres15).try_with_sql(sql).and_then(|mut parser| parser.parse_query());
    let lowered = parsed.map(|mut query| {
        chains::lower(&mut query);
        *query
    });
    lowered.map_err(|error| SqlError::internal(format!("stored query {sql:?}: {error}")))
}

/// Parses a stored expression (a column's default).
fn parse_expr(sql: &str) -> Result<ast::Expr> {
    let parsed = Parser::new(&Postgres15).try_with_sql(sql).and_then(|mut parser| parser.parse_expr());
    let lowered = parsed.map(|mut expr| {
        chains::lower(&mut expr);
        expr
    });
    lowered.map_err(|error| SqlError::internal(format!("stored expression {sql:?}: {error}")))
}

#[cfg(test)]
mod tests;
