//! INSERT, UPDATE and DELETE: expressions over rows that the session locks, re-checks and writes.

use super::{BindContext, ParamTypes};
use crate::error::{Result, SqlError};
use crate::plan::{OutputColumn, Query};
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, Datum, Key, TableDef};
use sqlparser::ast;
use std::sync::Arc;

/// Rows to insert.
#[derive(Clone, Debug)]
pub struct BoundInsert {
    pub table: Arc<TableDef>,
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
    Query(Query),
}

#[derive(Clone, Debug)]
pub enum OnConflict {
    DoNothing,
    /// Expressions over the existing row's columns, then the proposed row's.
    DoUpdate { assignments: Vec<(ColumnId, Expr)>, filter: Option<Expr> },
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
    Query { query: Query, extra: usize },
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
    let _ = (ctx, insert, params);
    Err(SqlError::not_supported("INSERT is not supported yet"))
}

/// Binds `UPDATE table SET … [WHERE …]`.
pub fn bind_update(ctx: &BindContext, update: &ast::Update, params: &mut ParamTypes) -> Result<BoundModify> {
    let _ = (ctx, update, params);
    Err(SqlError::not_supported("UPDATE is not supported yet"))
}

/// Binds `DELETE FROM table [WHERE …]`.
pub fn bind_delete(ctx: &BindContext, delete: &ast::Delete, params: &mut ParamTypes) -> Result<BoundModify> {
    let _ = (ctx, delete, params);
    Err(SqlError::not_supported("DELETE is not supported yet"))
}
