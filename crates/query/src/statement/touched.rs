//! Rows that a statement has written: where one row may be met twice, only the first change takes place, or the
//! second is an error (PostgreSQL manual, UPDATE and MERGE, "Notes"; 7.8.2).

use ahash::AHashSet;
use basalt_types::{Key, TableDef, TabletId};
use parking_lot::Mutex;

/// Shared by all commands of a statement.
#[derive(Default)]
pub(crate) struct Touched(Mutex<AHashSet<(u64, Key)>>);

impl Touched {
    /// False if it was there.
    pub fn insert(&self, table: &TableDef, tablet: TabletId, key: Key) -> bool {
        self.0.lock().insert((space(table, tablet), key))
    }

    pub fn contains(&self, table: &TableDef, tablet: TabletId, key: &Key) -> bool {
        self.0.lock().contains(&(space(table, tablet), key.clone()))
    }

    /// A row by its values, if it has a primary key: others are met by their tablet only.
    pub fn insert_row(&self, table: &TableDef, row: &[basalt_types::Datum]) {
        if let Some(key) = table.key_of(row) {
            self.0.lock().insert((space(table, TabletId(0)), key));
        }
    }
}

/// Primary keys name rows of a table, row ids those of a tablet.
fn space(table: &TableDef, tablet: TabletId) -> u64 {
    match table.primary_key {
        Some(_) => u64::from(table.id.0),
        None => u64::from(tablet.0) | 1 << 32,
    }
}
