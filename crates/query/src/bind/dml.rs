//! INSERT, UPDATE, DELETE and MERGE: which rows are found, what becomes of each, what RETURNING gives.
//!
//! UPDATE, DELETE and MERGE search with a plan that is a [`LockRows`] step: the target's scan has an identity, the
//! values that SET and INSERT write are outputs of the plan, and a row that changed before it was locked is looked at
//! again by the same plan over single rows (PostgreSQL manual 13.2.1). The one row of a primary key is changed without
//! a plan. Every row that is written goes through `statement::row_path`.

mod assign;
mod conflict;
mod current_of;
mod insert;
mod merge;
mod modify;
mod own_values;
mod returning;
mod target;
mod updatable;
mod with;

pub use conflict::{Compute, ConflictAction, OnConflict};
pub use current_of::{CurrentOf, current_of};
pub use updatable::{check_updatable, updatable_base, updatable_columns};
pub use with::{Bound, BoundWith, Write, bind_statement, is_write, writes};

use super::key_values::{Fit, fit};
use super::row_rules::RowRules;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Kept, LockRows, OutputColumn, Plan, Query};
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnDef, ColumnId, Datum, Key, TableDef};
use sqlparser::ast;
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

/// What RETURNING computes from each row that was written (or deleted).
#[derive(Clone, Debug)]
pub struct Returning {
    pub columns: Vec<OutputColumn>,
    /// Over the row in column-id order, then what the search gives for it ([`Search::extra`]).
    pub exprs: Vec<Expr>,
    /// Instead of `exprs` if they hold subqueries: computes the outputs of all rows at the end, from
    /// [`Plan::Given`] in slot [`Plan::WRITTEN`]: the row's live columns, then what the search gives.
    pub query: Option<Arc<Query>>,
}

/// UPDATE, DELETE or MERGE of one table.
#[derive(Clone, Debug)]
pub struct BoundModify {
    pub table: Arc<TableDef>,
    pub rules: Arc<RowRules>,
    pub source: RowSource,
    pub returning: Option<Returning>,
}

#[derive(Clone, Debug)]
pub enum RowSource {
    Point(Point),
    Search(Box<Search>),
}

/// At most the one row of a primary key, changed without a plan. Expressions are over the row.
#[derive(Clone, Debug)]
pub struct Point {
    pub access: PointAccess,
    /// The whole condition.
    pub filter: Expr,
    /// Columns that it looks at, ascending, if it asks for more than the key.
    pub beside_key: Option<Vec<ColumnId>>,
    pub change: PointChange,
}

#[derive(Clone, Debug)]
pub enum PointChange {
    Update(Vec<(ColumnId, Expr)>),
    Delete,
}

/// What a search runs with.
#[derive(Debug)]
pub struct ReadySearch {
    /// [`Search::step`] with its input.
    pub step: LockRows,
    /// What that asks for, and the row as it is found.
    pub found: Arc<Query>,
}

/// Rows that are found by a plan.
#[derive(Clone, Debug)]
pub struct Search {
    /// Its plan gives all columns named below, and the identity of the target.
    pub query: Query,
    /// What runs of it have in common, where it locks no rows of its own.
    pub ready: Kept<ReadySearch>,
    /// Its one target is the table; its input is the query's plan. Outputs are what `choice`, `actions` and `extra`
    /// point at.
    pub step: LockRows,
    /// The row as it was found: columns of the target's scan; none where nobody looks at them.
    pub old: Vec<(ColId, ColumnId)>,
    /// Output with the number of the action; without it there is one.
    pub choice: Option<usize>,
    pub actions: Vec<Action>,
    /// Of MERGE with an outer join: the column of `step.presence` that says whether the target has a row.
    pub present: Option<ColId>,
    /// Outputs that RETURNING takes beside the row.
    pub extra: Vec<usize>,
    /// Whether one row of the table may be found more than once.
    pub repeats: bool,
    pub kind: SearchKind,
}

impl Search {
    /// What UPDATE sets, where the search's last projection computes it.
    pub fn set_exprs(&self) -> Vec<&Expr> {
        let Plan::Project { exprs, .. } = &self.query.plan else { return Vec::new() };
        let outputs = self.actions.iter().flat_map(|action| match action {
            Action::Update(set) => set.as_slice(),
            _ => &[],
        });
        let columns = outputs.map(|(_, output)| self.step.columns[*output].0);
        columns.filter_map(|column| Some(&exprs.iter().find(|(id, _)| *id == column)?.1)).collect()
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchKind {
    Update,
    Delete,
    Merge,
}

/// What becomes of a found row; numbers are outputs of the search.
#[derive(Clone, Debug)]
pub enum Action {
    Update(Vec<(ColumnId, usize)>),
    Delete,
    /// Of MERGE: a whole row in column-id order.
    Insert(Vec<usize>),
}

/// A primary key given by constants and parameters, one expression per key column in key order.
#[derive(Clone, Debug)]
pub struct PointAccess {
    /// Of types that [fit](super::key_values::fitting) the key's columns.
    pub key: Vec<Expr>,
}

impl PointAccess {
    /// The encoded key; `None` if a part is null or no value of its column's type, so that no row has it.
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
            let ty = &table.column(*id).ty;
            let Fit::At(value) = fit(value, &expr.ty(), ty)? else { return Ok(None) };
            basalt_types::key::encode_column(ty, &value, &mut out);
        }
        Ok(Some(Key(out.into())))
    }
}

fn is_default(expr: &ast::Expr) -> bool {
    matches!(expr, ast::Expr::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

fn output(column: &ColumnDef, id: ColId) -> OutputColumn {
    let typmod = column.typmod();
    OutputColumn { id, name: column.name.clone(), ty: column.ty.clone(), typmod, table_oid: 0, column_no: 0 }
}

/// Where each column of a scan stands in a row of its table.
pub(super) fn row_positions(scan: &Plan) -> Vec<(ColId, usize)> {
    match scan {
        Plan::Scan { columns, .. } => columns.iter().map(|(id, column)| (*id, column.position())).collect(),
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
