//! What is known of the tables that a query reads, when it is planned. All of it may be missing.

use crate::plan::ColId;
use ahash::AHashMap;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, Datum, ObjectId, TableDef};
use std::fmt;
use std::sync::Arc;

/// Rows of a table that nothing is known of.
pub const ROWS_UNKNOWN: f64 = 1000.0;

#[derive(Clone, Default, Debug)]
pub struct Statistics {
    pub tables: AHashMap<ObjectId, TableFacts>,
    pub sampler: Option<Sampler>,
}

/// Tries conditions on some rows of a table.
#[derive(Clone)]
pub struct Sampler(pub Arc<Try>);

pub type Try = dyn Fn(&Arc<TableDef>, &[(ColId, ColumnId)], &[Expr]) -> Option<Sampled> + Send + Sync;

/// How many rows were looked at, and for how many of them all conditions held.
#[derive(Clone, Copy, Debug)]
pub struct Sampled {
    pub looked: usize,
    pub passed: usize,
}

impl fmt::Debug for Sampler {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sampler")
    }
}

impl Sampled {
    /// The share that passes; `guess` where too few did to say more than that they are few.
    pub fn share(self, guess: f64) -> f64 {
        match self.passed {
            0 => guess.min(0.5 / self.looked as f64),
            passed => passed as f64 / self.looked as f64,
        }
    }
}

#[derive(Clone, Default, Debug)]
pub struct TableFacts {
    pub rows: f64,
    pub columns: AHashMap<ColumnId, ColumnFacts>,
}

#[derive(Clone, Default, Debug)]
pub struct ColumnFacts {
    /// Different values, nulls left out.
    pub distinct: Option<f64>,
    /// The least and the greatest value.
    pub bounds: Option<(Datum, Datum)>,
    /// Share of nulls, from 0 to 1.
    pub nulls: Option<f64>,
}

impl Statistics {
    pub fn rows(&self, table: ObjectId) -> f64 {
        self.tables.get(&table).map_or(ROWS_UNKNOWN, |facts| facts.rows.max(1.0))
    }

    /// Of a table's rows, those for which all conditions hold among some that were tried.
    pub fn sampled(
        &self,
        table: &Arc<TableDef>,
        columns: &[(ColId, ColumnId)],
        conditions: &[Expr],
    ) -> Option<Sampled> {
        let Sampler(sampler) = self.sampler.as_ref().filter(|_| !conditions.is_empty())?;
        sampler(table, columns, conditions)
    }

    pub fn column(&self, table: ObjectId, column: ColumnId) -> Option<&ColumnFacts> {
        self.tables.get(&table)?.columns.get(&column)
    }
}
