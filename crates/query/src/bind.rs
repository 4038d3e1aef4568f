//! From syntax to meaning: names against the catalog, types and overloads by PostgreSQL's rules.

mod dml;
mod params;

pub use dml::{
    BoundInsert, BoundModify, InsertSource, OnConflict, PointAccess, Returning, RowSource, bind_delete, bind_insert,
    bind_update,
};
pub use params::ParamTypes;

use crate::error::{Result, SqlError};
use crate::plan::Query;
use basalt_engine::Catalog;
use basalt_expr::context::EvalContext;
use basalt_expr::functions::Registry;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, ObjectId, TableDef};
use sqlparser::ast;
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
}

/// Binds a query (SELECT, VALUES, TABLE, set operations, WITH). Open parameter types are filled in.
pub fn bind_query(ctx: &BindContext, query: &ast::Query, params: &mut ParamTypes) -> Result<Query> {
    let _ = (ctx, query, params);
    Err(SqlError::not_supported("queries are not supported yet"))
}

/// Binds an expression without columns, cast to `target` as in an assignment if one is given: defaults,
/// EXECUTE's arguments, SET's values.
pub fn bind_scalar(
    ctx: &BindContext,
    expr: &ast::Expr,
    target: Option<&DataType>,
    params: &mut ParamTypes,
) -> Result<Expr> {
    let _ = (ctx, expr, target, params);
    Err(SqlError::not_supported("expressions are not supported yet"))
}

/// Binds an expression over one row of a table; `Expr::Column` is the position in column-id order.
pub fn bind_row_expr(
    ctx: &BindContext,
    table: &TableDef,
    expr: &ast::Expr,
    target: Option<&DataType>,
    params: &mut ParamTypes,
) -> Result<Expr> {
    let _ = (ctx, table, expr, target, params);
    Err(SqlError::not_supported("expressions are not supported yet"))
}

/// The type that a type name in syntax means; 42704 if there is none.
pub fn bind_type(ctx: &BindContext, ty: &ast::DataType) -> Result<DataType> {
    let _ = (ctx, ty);
    Err(SqlError::not_supported("types are not supported yet"))
}
