//! Indexes as tables: what a row's entries are, and rows by entry.
//!
//! Whoever writes a row writes its entries with it (`txn/entries.rs`, `bulk/entries.rs`), by the ways of any other
//! row: locks, log, hot, files, moves, recovery and savepoints know nothing of indexes. The invariants are in
//! `docs/decisions/0006-indexes-are-tables.md`; of indexes that are built beside writers, in
//! `docs/decisions/0020-indexes-built-online.md`.

use crate::{Engine, Error, ReadContext, Result};
use basalt_types::schema::{Entry, IndexDef, prefix_key};
use basalt_types::{ColumnId, Datum, Key, ObjectId, TableDef, TabletId};
use std::sync::Arc;

/// A row's values in the columns of an index that has expressions or a condition; `None`: it is not in the index.
/// Rows come in column-id order.
pub type IndexValues = dyn Fn(&Arc<TableDef>, &Arc<IndexDef>, &[Datum]) -> Result<Option<Vec<Datum>>> + Send + Sync;

/// A row's entry in one of its table's indexes.
pub(crate) struct RowEntry {
    pub base: ObjectId,
    pub index: Arc<IndexDef>,
    pub entry: Entry,
    pub values: Vec<Datum>,
}

impl Engine {
    /// Who evaluates SQL in indexes. Set once, before rows are written.
    pub fn set_index_values(&self, values: Box<IndexValues>) {
        let _ = self.index_values.set(values);
    }

    /// A row's values in an index; `None` if a partial index leaves it out.
    pub fn index_values(
        &self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        row: &[Datum],
    ) -> Result<Option<Vec<Datum>>> {
        if let Some(values) = index.plain_values(row) {
            return Ok(Some(values));
        }
        match self.index_values.get() {
            Some(values) => values(table, index, row),
            None => Err(Error::Internal(format!("nobody evaluates the expressions of index {}", index.name))),
        }
    }

    /// A row's entries in those indexes that are wanted.
    pub(crate) fn index_entries(
        &self,
        table: &Arc<TableDef>,
        row: &[Datum],
        tablet: TabletId,
        key: &Key,
        is_wanted: impl Fn(&IndexDef) -> bool,
    ) -> Result<Vec<RowEntry>> {
        let mut entries = Vec::new();
        for index in table.indexes.iter().filter(|index| is_wanted(index)) {
            if let Some(values) = self.index_values(table, index, row)? {
                let entry = index.entry(&values, row, tablet, key);
                check_length(&entry)?;
                entries.push(RowEntry { base: table.id, index: index.clone(), entry, values });
            }
        }
        Ok(entries)
    }
}

/// Longest encoded entry. PostgreSQL's own limit for a B-tree is a third of a page.
const ENTRY_BYTES_MAX: usize = 1 << 20;

pub(crate) fn check_length(entry: &Entry) -> Result<()> {
    match entry.len() > ENTRY_BYTES_MAX {
        true => Err(Error::TooLarge(format!(
            "an index entry of {} bytes is longer than the greatest possible, {ENTRY_BYTES_MAX}",
            entry.len()
        ))),
        false => Ok(()),
    }
}

impl ReadContext {
    /// The rows whose entries begin with `values` ([`basalt_types::schema::encode_values`] of the first columns).
    pub fn rows_by_entry(&self, index: &IndexDef, values: &[u8]) -> Result<Vec<(TabletId, Key)>> {
        let prefix = prefix_key(values, false);
        let mut found = Vec::new();
        let columns: Vec<ColumnId> = index.entries.live_columns().map(|column| column.id).collect();
        self.with_prefix(&index.entries, index.tablet(), &prefix, &columns, &mut |_, entry| {
            found.extend(IndexDef::base_of(&entry));
            true
        })?;
        Ok(found)
    }

    /// Whether all files of a table are in the order of keys now, so that a range of them lies together.
    pub fn is_in_key_order(&self, table: &TableDef) -> Result<bool> {
        for tablet in table.tablets() {
            if !self.engine().tablet(tablet)?.view().files.iter().all(|file| file.data.is_sorted()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The rows whose primary key begins with these key bytes of its first columns.
    pub fn rows_by_key_prefix(&self, table: &Arc<TableDef>, prefix: &[u8]) -> Result<Vec<(TabletId, Key)>> {
        let mut found = Vec::new();
        for tablet in table.tablets() {
            self.with_prefix(table, tablet, &Key::from(prefix), &[], &mut |key, _| {
                found.push((tablet, Key::from(key)));
                true
            })?;
        }
        Ok(found)
    }
}
