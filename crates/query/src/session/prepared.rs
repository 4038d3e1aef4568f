//! Prepared statements and portals.

use super::outcome::{Columns, ResultColumn, RowSource};
pub(crate) use crate::bind::Bound;
use crate::bind::ParamTypes;
use crate::error::{Result, SqlError};
use crate::plan::OutputColumn;
use crate::plans::Known;
use crate::row::RowPlan;
use crate::settings::Effective;
use crate::statement::at_once::AtOnce;
use crate::statement::cursor::Cursor;
use crate::syntax::Statement;
use basalt_engine::Catalog;
use basalt_expr::context::LiteralStyle;
use basalt_types::{DataType, Datum};
use parking_lot::Mutex;
use std::sync::Arc;

/// [`Prepared::types_of`]; 0 of a catalog that is not committed yet.
pub(super) fn types_of(catalog: &Catalog, own: bool, types: &[DataType], columns: Option<&Columns>) -> Option<u64> {
    let of_columns = columns.into_iter().flat_map(|columns| columns.iter()).map(|column| &column.ty);
    let is_defined = types.iter().chain(of_columns).any(basalt_engine::is_defined);
    is_defined.then_some(if own { 0 } else { catalog.version })
}

impl Prepared {
    /// The same with these columns.
    pub fn giving(&self, columns: Option<Columns>) -> Prepared {
        Prepared {
            name: self.name.clone(),
            sql: self.sql.clone(),
            body: self.body.clone(),
            types: self.types.clone(),
            types_of: self.types_of,
            style: self.style,
            columns,
            plan: Mutex::new(None),
            from_sql: self.from_sql,
            made_micros: self.made_micros,
        }
    }

    /// The same with types as the catalog defines them.
    pub fn redefined(&self, catalog: &Catalog, own: bool) -> Prepared {
        let mut types = self.types.clone();
        types.iter_mut().for_each(|ty| catalog.redefine(ty));
        let columns = self.columns.as_ref().map(|columns| {
            let fresh = columns.iter().map(|column| {
                let mut column = column.clone();
                catalog.redefine(&mut column.ty);
                column
            });
            fresh.collect()
        });
        Prepared { types_of: types_of(catalog, own, &types, columns.as_ref()), types, ..self.giving(columns) }
    }

    /// For binding it again.
    pub fn params(&self) -> ParamTypes {
        ParamTypes::fixed(self.types.clone(), self.style)
    }

    /// `None`: it is empty, a cursor's, or not parsed.
    pub fn statement(&self) -> Option<&Statement> {
        match &self.body {
            Body::Parsed(statement) => Some(statement),
            Body::Nothing | Body::Known(_) => None,
        }
    }

    /// 0A000 if it would give other columns now than its client was told.
    pub fn check_columns(&self, now: Option<&[ResultColumn]>) -> Result<()> {
        let is_same = match (now, &self.columns) {
            (None, None) => true,
            (Some(now), Some(then)) => {
                now.len() == then.len()
                    && now.iter().zip(then.iter()).all(|(now, then)| now.name == then.name && now.ty == then.ty)
            }
            _ => false,
        };
        // Drivers prepare such a statement anew.
        let changed = || SqlError::not_supported("cached plan must not change result type");
        is_same.then_some(()).ok_or_else(|| changed().with_routine("RevalidateCachedQuery"))
    }
}

impl Bound {
    pub fn columns(&self) -> Option<Vec<ResultColumn>> {
        match self {
            Bound::Query(query) => Some(result_columns(&query.columns)),
            Bound::Write(write) => write.returning().map(|returning| result_columns(&returning.columns)),
            Bound::With(with) => with.main.columns(),
        }
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
    /// What the row engine runs, if it can.
    pub row: Option<Arc<RowPlan>>,
    /// What runs where its message is read, though it writes or locks.
    pub at_once: Option<Arc<AtOnce>>,
}

/// What a prepared statement runs.
#[derive(Clone)]
pub(crate) enum Body {
    /// It is empty, or a cursor whose rows its portal has.
    Nothing,
    Parsed(Statement),
    /// A text that the plan cache knows but for its literals. It is parsed where that plan does not serve.
    Known(KnownText),
}

#[derive(Clone)]
pub(crate) struct KnownText {
    pub known: Arc<Known>,
    /// Of the literals.
    pub values: Vec<Datum>,
}

pub(crate) struct Prepared {
    pub name: String,
    /// The text that positions refer to.
    pub sql: Arc<str>,
    pub body: Body,
    pub types: Vec<DataType>,
    /// What its literals were read by.
    pub style: Option<LiteralStyle>,
    /// All in text.
    pub columns: Option<Columns>,
    pub plan: Mutex<Option<CachedPlan>>,
    /// The version of the catalog whose definitions its types carry; `None`: none of them is defined there.
    pub types_of: Option<u64>,
    /// By PREPARE.
    pub from_sql: bool,
    /// When it was made, in microseconds since 1970-01-01.
    pub made_micros: i64,
}

pub(crate) struct Portal {
    pub prepared: Arc<Prepared>,
    pub params: Vec<Datum>,
    pub columns: Option<Columns>,
    /// Rows once execution began.
    pub rows: Option<RowSource>,
    /// How rows are counted in the tag.
    pub verb: &'static str,
    /// All rows were given, or the statement has run.
    pub done: bool,
    /// A cursor WITH HOLD: outlives its transaction.
    pub hold: bool,
    /// Savepoints that were there when it was made, or when its rows were: it goes with the next one.
    pub savepoints: usize,
    /// When it was made, in microseconds since 1970-01-01.
    pub made_micros: i64,
    /// Of DECLARE.
    pub cursor: Option<Cursor>,
}

impl Portal {
    /// Rows of which one has failed are not gone on with.
    pub fn fail(&mut self) {
        self.rows = None;
        self.done = true;
    }
}
