//! What is known of the tables that a query reads, when it is planned. All of it may be missing.

use ahash::AHashMap;
use basalt_types::{ColumnId, Datum, ObjectId};

/// Rows of a table that nothing is known of.
pub const ROWS_UNKNOWN: f64 = 1000.0;

#[derive(Clone, Default, Debug)]
pub struct Statistics {
    pub tables: AHashMap<ObjectId, TableFacts>,
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

    pub fn column(&self, table: ObjectId, column: ColumnId) -> Option<&ColumnFacts> {
        self.tables.get(&table)?.columns.get(&column)
    }
}
