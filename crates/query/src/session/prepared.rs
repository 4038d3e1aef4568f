//! Prepared statements and portals.

use super::outcome::{ResultColumn, RowSource};
use crate::bind::{BoundInsert, BoundModify};
use crate::plan::{OutputColumn, Query};
use crate::settings::Effective;
use crate::syntax::Statement;
use basalt_types::{DataType, Datum};
use parking_lot::Mutex;
use std::sync::Arc;

/// A bound statement; shared between executions.
#[derive(Clone)]
pub(crate) enum Bound {
    Query(Arc<Query>),
    Insert(Arc<BoundInsert>),
    Update(Arc<BoundModify>),
    Delete(Arc<BoundModify>),
}

impl Bound {
    pub fn columns(&self) -> Option<Vec<ResultColumn>> {
        let returning = match self {
            Bound::Query(query) => return Some(result_columns(&query.columns)),
            Bound::Insert(insert) => &insert.returning,
            Bound::Update(modify) | Bound::Delete(modify) => &modify.returning,
        };
        returning.as_ref().map(|returning| result_columns(&returning.columns))
    }
}

pub(crate) fn result_columns(columns: &[OutputColumn]) -> Vec<ResultColumn> {
    let column = |column: &OutputColumn| ResultColumn {
        name: column.name.clone(),
        ty: column.ty.clone(),
        typmod: column.typmod,
        table_oid: column.table_oid,
        column_no: column.column_no,
        format: 0,
    };
    columns.iter().map(column).collect()
}

/// A bound statement and what it was bound against.
pub(crate) struct CachedPlan {
    pub catalog_version: u64,
    pub settings: Arc<Effective>,
    pub bound: Bound,
}

pub(crate) struct Prepared {
    pub name: String,
    /// The text that positions refer to.
    pub sql: Arc<str>,
    /// `None`: an empty statement.
    pub statement: Option<Statement>,
    pub types: Vec<DataType>,
    pub columns: Option<Vec<ResultColumn>>,
    pub plan: Mutex<Option<CachedPlan>>,
}

pub(crate) struct Portal {
    pub prepared: Arc<Prepared>,
    pub params: Vec<Datum>,
    pub columns: Option<Vec<ResultColumn>>,
    /// Rows once execution began.
    pub rows: Option<RowSource>,
    /// How rows are counted in the tag.
    pub verb: &'static str,
    /// All rows were given, or the statement has run.
    pub done: bool,
    /// A cursor WITH HOLD: outlives its transaction.
    pub hold: bool,
}
