//! Index entries of a batch: a batch of each index's own, in the same change set.
//!
//! Entries are made as rows are pushed, because that is when their rows' keys are known: of the primary key, or of the
//! region of row ids that was taken for the block. They go the way of the rows, to hot or into files, and entries that
//! must be unique are checked as primary keys are.

use super::{BulkInsert, Target};
use crate::index::{RowEntry, check_length};
use crate::{Result, Txn};
use arrow_array::ArrayRef;
use basalt_types::batch::datum_at;
use basalt_types::schema::{IndexDef, IndexSource};
use basalt_types::{ColumnBuilder, Datum, Key, Rid, TableDef, TabletId};
use std::sync::Arc;

impl BulkInsert<'_> {
    /// Appends the entries of rows that go to `tablet`, the first of them with the row id `first`.
    pub(super) async fn push_entries(&mut self, tablet: TabletId, columns: &[ArrayRef], first: Rid) -> Result<()> {
        let table = self.table.clone();
        let indexes: Vec<&Arc<IndexDef>> = table.indexes.iter().filter(|index| index.takes_entries()).collect();
        if indexes.is_empty() && table.foreign_keys.is_empty() {
            return Ok(());
        }
        let mut builders: Vec<Vec<ColumnBuilder>> = indexes.iter().map(|index| builders_of(index)).collect();
        let rows = RowReader::new(&table);
        for row in 0..columns[0].len() {
            let values = rows.read(columns, row);
            let key = table.key_of(&values).unwrap_or_else(|| Key::hidden(Rid(first.0 + row as u64)));
            for (index, builders) in indexes.iter().zip(&mut builders) {
                push_entry(self.txn, &table, index, &values, tablet, &key, builders)?;
            }
            table.foreign_keys.iter().for_each(|key| self.txn.note_reference(&table, key, &values));
        }
        for (index, mut builders) in indexes.into_iter().zip(builders) {
            let columns: Vec<ArrayRef> = builders.iter_mut().map(ColumnBuilder::finish).collect();
            if !columns[0].is_empty() {
                let target = Target { table: index.entries.clone(), is_unique: index.unique && !index.is_deferrable() };
                self.push_part(&target, index.tablet(), columns).await?;
            }
        }
        Ok(())
    }
}

impl Txn {
    /// Fills a new index from the rows of its table as they are now. The caller holds a lock on the table that keeps
    /// writers out, and has entered the index into the catalog. [`crate::Error::DuplicateKey`] of the index's id if it
    /// cannot be unique.
    pub async fn build_index(&mut self, table: &Arc<TableDef>, index: &Arc<IndexDef>) -> Result<u64> {
        let read = self.latest();
        let columns = table.live_columns().map(|column| column.id).collect();
        let spec = crate::ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: true };
        let (parts, _) = read.scan(spec)?;
        let mut batch = self.bulk_insert(&index.entries)?;
        batch.is_unique = index.unique && !index.is_deferrable();
        for mut part in parts {
            while let Some(rows) = part.next_batch()? {
                batch.push_built(table, index, &rows.columns, rows.rows).await?;
                tokio::task::yield_now().await;
            }
        }
        batch.finish().await
    }
}

impl BulkInsert<'_> {
    /// Entries of rows that a scan with identity gave.
    async fn push_built(
        &mut self,
        table: &Arc<TableDef>,
        index: &Arc<IndexDef>,
        columns: &[ArrayRef],
        count: usize,
    ) -> Result<()> {
        use arrow_array::cast::AsArray;
        use arrow_array::types::Int64Type;
        let live: Vec<_> = table.live_columns().collect();
        let stored: Vec<ArrayRef> =
            live.iter().zip(columns).map(|(column, array)| basalt_types::batch::to_stored(&column.ty, array)).collect();
        let (tablets, keys) =
            (columns[live.len()].as_primitive::<Int64Type>(), columns[live.len() + 1].as_binary_view());
        let mut builders = builders_of(index);
        let mut values = vec![Datum::Null; table.columns.len()];
        for row in 0..count {
            for (column, array) in live.iter().zip(&stored) {
                values[column.id.position()] = datum_at(column.ty.phys().expect("storable"), array, row);
            }
            let (tablet, key) = (TabletId(tablets.value(row) as u32), Key::from(keys.value(row)));
            push_entry(self.txn, table, index, &values, tablet, &key, &mut builders)?;
        }
        let columns: Vec<ArrayRef> = builders.iter_mut().map(ColumnBuilder::finish).collect();
        self.push(&columns).await
    }
}

fn push_entry(
    txn: &mut Txn,
    table: &Arc<TableDef>,
    index: &Arc<IndexDef>,
    values: &[Datum],
    tablet: TabletId,
    key: &Key,
    builders: &mut [ColumnBuilder],
) -> Result<()> {
    let Some(indexed) = txn.engine.index_values(table, index, values)? else { return Ok(()) };
    let entry = index.entry(&indexed, values, tablet, key);
    check_length(&entry)?;
    for (builder, value) in builders.iter_mut().zip(IndexDef::entry_row(&entry, tablet, key)) {
        assert!(builder.push(&value), "an entry has its table's types");
    }
    txn.note_unique(&RowEntry { base: table.id, index: index.clone(), entry, values: indexed });
    Ok(())
}

fn builders_of(index: &IndexDef) -> Vec<ColumnBuilder> {
    index.entries.phys_types().into_iter().map(|ty| ColumnBuilder::new(ty, 0)).collect()
}

/// Reads of each row what indexes and references need: all of it only for the sake of expressions.
struct RowReader {
    types: Vec<basalt_types::PhysType>,
    needed: Vec<usize>,
}

impl RowReader {
    fn new(table: &TableDef) -> RowReader {
        let types = table.phys_types();
        let mut needed: Vec<usize> = Vec::new();
        needed.extend(table.primary_key.iter().flat_map(|key| &key.columns).map(|id| id.position()));
        for index in table.indexes.iter().filter(|index| index.loses_entries()) {
            if index.predicate.is_some() {
                needed.extend(0..types.len());
            }
            needed.extend(index.include.iter().map(|id| id.position()));
            for column in &index.columns {
                match &column.source {
                    IndexSource::Column(id) => needed.push(id.position()),
                    IndexSource::Expression(_) => needed.extend(0..types.len()),
                }
            }
        }
        needed.extend(table.foreign_keys.iter().flat_map(|key| &key.columns).map(|id| id.position()));
        needed.sort_unstable();
        needed.dedup();
        RowReader { types, needed }
    }

    fn read(&self, columns: &[ArrayRef], row: usize) -> Vec<Datum> {
        let mut values = vec![Datum::Null; self.types.len()];
        for at in &self.needed {
            values[*at] = datum_at(self.types[*at], &columns[*at], row);
        }
        values
    }
}
