//! What a statement's writes leave to be checked when all its rows are written (PostgreSQL manual 5.4.3, 5.4.5):
//! values of deferrable unique constraints, references that were made, and referenced keys that went away.
//!
//! Gathered here because every written row comes by here; checked by whoever knows what statements are. Each value
//! is noted once, however many rows have it.

use super::Txn;
use crate::index::RowEntry;
use basalt_types::schema::ForeignKey;
use basalt_types::{ColumnId, Datum, ObjectId, TableDef, key};
use std::collections::HashSet;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Consequence {
    /// Rows of `table` have come by these values of a deferrable unique constraint's index.
    Unique { table: ObjectId, index: ObjectId, values: Vec<Datum> },
    /// Rows of `table` refer by `foreign_key` to the parent with these values in its columns, not all null.
    Reference { table: ObjectId, foreign_key: ObjectId, values: Vec<Datum> },
    /// A row that `foreign_key` of `table` may refer to had the values `old`, none null, in the referenced columns.
    /// It was deleted, or has others now.
    Parent { table: ObjectId, foreign_key: ObjectId, old: Vec<Datum>, new: Option<Vec<Datum>> },
}

#[derive(Default)]
pub(crate) struct Consequences {
    list: Vec<Consequence>,
    seen: HashSet<(ObjectId, Box<[u8]>)>,
}

fn encode(table: &TableDef, columns: &[ColumnId], values: &[Datum]) -> Box<[u8]> {
    let mut out = Vec::with_capacity(16);
    for (column, value) in columns.iter().zip(values) {
        out.push(u8::from(!value.is_null()));
        if !value.is_null() {
            key::encode_column(&table.column(*column).ty, value, &mut out);
        }
    }
    out.into()
}

fn values_of(columns: &[ColumnId], row: &[Datum]) -> Vec<Datum> {
    columns.iter().map(|column| row[column.position()].clone()).collect()
}

impl Consequences {
    pub fn clear(&mut self) {
        self.list.clear();
        self.seen.clear();
    }

    fn unique(&mut self, table: ObjectId, index: ObjectId, bytes: &[u8], values: &[Datum]) {
        if self.seen.insert((index, bytes.into())) {
            self.list.push(Consequence::Unique { table, index, values: values.to_vec() });
        }
    }

    /// A row of the referencing table was written.
    pub fn reference(&mut self, table: &TableDef, key: &ForeignKey, values: Vec<Datum>) {
        if values.iter().all(Datum::is_null) || (!key.match_full && values.iter().any(Datum::is_null)) {
            return;
        }
        if self.seen.insert((key.id, encode(table, &key.columns, &values))) {
            self.list.push(Consequence::Reference { table: table.id, foreign_key: key.id, values });
        }
    }
}

impl Txn {
    /// Takes what has been noted since this was last asked.
    pub fn take_consequences(&mut self) -> Vec<Consequence> {
        self.consequences.seen.clear();
        std::mem::take(&mut self.consequences.list)
    }

    pub(crate) fn note_unique(&mut self, entry: &RowEntry) {
        if entry.index.is_deferrable() && entry.index.is_exclusive(&entry.values) {
            let (index, bytes) = (entry.index.id, entry.entry.values());
            self.consequences.unique(entry.base, index, bytes, &entry.values);
        }
    }

    pub(crate) fn note_reference(&mut self, table: &TableDef, key: &ForeignKey, row: &[Datum]) {
        self.consequences.reference(table, key, values_of(&key.columns, row));
    }

    /// A row was written by itself: its values before and after, in column-id order.
    pub(super) fn note_row(&mut self, table: &Arc<TableDef>, old: Option<&[Datum]>, new: Option<&[Datum]>) {
        if let Some(new) = new {
            for key in &table.foreign_keys {
                let values = values_of(&key.columns, new);
                let changed = |old: &[Datum]| {
                    let before = values_of(&key.columns, old);
                    encode(table, &key.columns, &before) != encode(table, &key.columns, &values)
                };
                if old.is_none_or(changed) {
                    self.consequences.reference(table, key, values);
                }
            }
        }
        let Some(old) = old else { return };
        let catalog = self.catalog();
        for (child, key) in catalog.references_to(table.id) {
            let before = values_of(&key.parent_columns, old);
            let after = new.map(|new| values_of(&key.parent_columns, new));
            let bytes = |values: &[Datum]| encode(table, &key.parent_columns, values);
            let kept = after.as_ref().is_some_and(|after| bytes(after) == bytes(&before));
            if !kept && before.iter().all(|value| !value.is_null()) {
                self.consequences.list.push(Consequence::Parent {
                    table: child.id,
                    foreign_key: key.id,
                    old: before,
                    new: after,
                });
            }
        }
    }

    /// Whether a row's values before its change matter to anything but itself.
    pub fn wants_old(&self, table: &TableDef) -> bool {
        table.has_entries() || self.catalog().is_referenced(table.id)
    }
}
