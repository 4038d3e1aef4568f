//! Reading: a snapshot first, then a pinned view of each tablet.

use crate::{CurrentRow, Engine, Result};
use arrow_array::ArrayRef;
use basalt_types::{ColumnId, ColumnPredicate, Key, ReadAt, TableDef, TabletId};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// How a statement reads: its snapshot (pinned while this lives) and its own writes.
#[derive(Clone)]
pub struct ReadContext {
    #[allow(unused)]
    engine: Arc<Engine>,
}

/// What a scan wants.
#[derive(Clone, Debug)]
pub struct ScanSpec {
    pub table: Arc<TableDef>,
    /// Columns to return, in this order.
    pub columns: Vec<ColumnId>,
    /// Conjuncts that storage may use to skip; rows that fail them may still be returned.
    pub predicates: Vec<ColumnPredicate>,
    /// Adds three columns at the end that name the row: tablet (Int64), key (BinaryView), stamp (Int64).
    pub with_identity: bool,
}

#[derive(Default, Debug)]
pub struct ScanStats {
    pub row_groups_total: AtomicU64,
    pub row_groups_pruned: AtomicU64,
    pub rows_read: AtomicU64,
    pub hot_rows: AtomicU64,
}

/// A part of a table that one worker reads: some row groups of a file, or a range of hot rows.
/// `Send`, independent of its siblings; all were pinned at one moment.
pub struct TabletScan {}

/// Rows in the types that operators use (`DataType::to_arrow`).
pub struct ScanBatch {
    pub columns: Vec<ArrayRef>,
    pub rows: usize,
}

impl ReadContext {
    pub fn at(&self) -> ReadAt {
        todo!()
    }

    /// Pins every tablet of the table and cuts it into parts (row group by row group; hot in ranges).
    pub fn scan(&self, spec: ScanSpec) -> Result<(Vec<TabletScan>, Arc<ScanStats>)> {
        let _ = spec;
        Ok((Vec::new(), Arc::default()))
    }

    /// One row by primary key (or hidden key), at this snapshot.
    pub fn get(&self, table: &Arc<TableDef>, tablet: TabletId, key: &Key) -> Result<Option<CurrentRow>> {
        let _ = (table, tablet, key);
        Ok(None)
    }

    /// Which tablet holds a primary key; `None` if it takes more than the key to know.
    pub fn tablet_of(&self, table: &TableDef, key: &Key) -> Option<TabletId> {
        let _ = (table, key);
        None
    }
}

impl TabletScan {
    /// The next rows (at most 8,192), `None` at the end. Synchronous; milliseconds at most.
    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        Ok(None)
    }
}
