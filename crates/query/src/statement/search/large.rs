//! The large way of UPDATE and DELETE (`docs/decisions/0022-transactions-larger-than-memory.md`): a statement that has
//! changed many rows goes on with blocks. Those of a block's rows that rest in files, as they were found, and that
//! nobody else is after are deleted together; what UPDATE makes of them goes into files. All others are left to the way
//! of single rows.

use super::{Changer, Layout};
use crate::bind::{Action, BoundModify, Search, SearchKind};
use crate::error::{Result, SqlError};
use crate::statement::lock_rows::Means;
use crate::statement::row_path::RowPath;
use arrow::compute::take;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use basalt_engine::{Catalog, FoundRow, LargeUpdate, Txn, Undisturbed};
use basalt_expr::eval::vector::value_at;
use basalt_types::schema::ForeignKey;
use basalt_types::{ColumnBuilder, ColumnDef, ColumnId, Datum, Stamp, TabletId, batch};

/// What a statement needs to go on in the large way.
pub(super) struct Large {
    /// Once it goes that way.
    begun: Option<Undisturbed>,
    /// `None`: DELETE.
    update: Option<LargeUpdate>,
}

impl Large {
    /// `None`: all rows of this statement are changed one by one.
    pub fn of(txn: &Txn, modify: &BoundModify, search: &Search, path: &RowPath) -> Option<Large> {
        let [action] = &search.actions[..] else { return None };
        let asks_for_rows = modify.returning.is_some() || path.wants_old() || !path.rules.view_checks.is_empty();
        if search.choice.is_some() || search.repeats || search.kind == SearchKind::Merge || asks_for_rows {
            return None;
        }
        let update = match action {
            Action::Insert(_) => return None,
            Action::Delete if !can_delete(path, &txn.catalog()) => return None,
            Action::Delete => None,
            Action::Update(set) if !can_update(path, &txn.catalog(), set) => return None,
            Action::Update(_) => Some(LargeUpdate::new(&path.table)),
        };
        Some(Large { begun: None, update })
    }

    /// Lists what UPDATE has written.
    pub async fn finish(self, txn: &mut Txn, path: &RowPath) -> Result<()> {
        match self.update {
            Some(update) => update.finish(txn).await.map_err(|error| path.explain(error)),
            None => Ok(()),
        }
    }
}

/// Nothing follows from a row's end: it has no entries in indexes, and nobody refers to it.
fn can_delete(path: &RowPath, catalog: &Catalog) -> bool {
    !path.table.has_entries() && !catalog.is_referenced(path.table.id)
}

/// Nothing follows from what is set: rows keep their keys, their entries in indexes and their references.
fn can_update(path: &RowPath, catalog: &Catalog, set: &[(ColumnId, usize)]) -> bool {
    let table = &path.table;
    let generated = path.rules.generated.iter().map(|(column, _)| *column);
    let changed: Vec<ColumnId> = set.iter().map(|(column, _)| *column).chain(generated).collect();
    let keeps = |columns: &[ColumnId]| !columns.iter().any(|column| changed.contains(column));
    let keeps_reference = |key: &ForeignKey| key.validated && keeps(&key.columns);
    !catalog.is_referenced(table.id)
        && table.primary_key.iter().all(|key| keeps(&key.columns))
        && table.foreign_keys.iter().all(|key| keeps_reference(key))
        && table.indexes.iter().filter(|index| index.loses_entries()).all(|index| {
            let keeps_key = index.plain_columns().is_some_and(|columns| keeps(&columns));
            index.predicate.is_none() && keeps_key && (!index.is_covering() || keeps(&index.include))
        })
}

impl Changer<'_> {
    /// Changes all rows of a block.
    pub(super) async fn block(&mut self, txn: &mut Txn, means: &Means, batch: &RecordBatch) -> Result<()> {
        let done = match self.large.take() {
            Some(mut large) if large.begun.is_some() || txn.engine().is_large_change(self.rows) => {
                let done = self.together(txn, means, &mut large, batch).await?;
                self.large = Some(large);
                Some(done)
            }
            other => {
                self.large = other;
                None
            }
        };
        for row in (0..batch.num_rows()).filter(|row| done.as_ref().is_none_or(|done| !done[*row])) {
            self.row(txn, batch, row).await?;
            self.pace.step().await;
        }
        Ok(())
    }

    /// Changes those rows of a block that can be changed together, and tells which.
    async fn together(
        &mut self,
        txn: &mut Txn,
        means: &Means,
        large: &mut Large,
        batch: &RecordBatch,
    ) -> Result<Vec<bool>> {
        if large.begun.is_none() {
            let (engine, table) = (txn.engine().clone(), self.path.table.clone());
            let begun = means.blocking(move || engine.begin_large_change(&table)).await?;
            large.begun = Some(begun.map_err(|error| self.path.explain(error))?);
        }
        let malformed = || SqlError::internal("a search gives no row identities");
        let Layout { identity, .. } = self.layout;
        let tablets = batch.column(identity).as_primitive_opt::<Int64Type>().ok_or_else(malformed)?.clone();
        let keys = batch.column(identity + 1).as_binary_view_opt().ok_or_else(malformed)?.clone();
        let stamps = batch.column(identity + 2).as_primitive_opt::<Int64Type>().ok_or_else(malformed)?.clone();
        let mut done = vec![false; batch.num_rows()];
        if tablets.null_count() > 0 {
            return Ok(done);
        }
        let mut order: Vec<usize> = (0..batch.num_rows()).collect();
        order.sort_by_key(|row| tablets.value(*row));
        for rows in order.chunk_by(|a, b| tablets.value(*a) == tablets.value(*b)) {
            let tablet = u32::try_from(tablets.value(rows[0])).map(TabletId).map_err(|_| malformed())?;
            let found = rows
                .iter()
                .map(|row| FoundRow { key: keys.value(*row), stamp: Stamp::from_raw(stamps.value(*row) as u64) });
            let marked = txn.delete_resting(tablet, &found.collect::<Vec<FoundRow>>()).await;
            let marked = marked.map_err(|error| self.path.explain(error))?;
            let rows: Vec<usize> = rows.iter().zip(marked).filter(|(_, marked)| *marked).map(|(row, _)| *row).collect();
            if rows.is_empty() {
                continue;
            }
            if let Some(update) = &mut large.update {
                let columns = self.path.complete_block(self.new_versions(batch, &rows)?)?;
                let keys = rows.iter().map(|row| keys.value(*row));
                update.push(txn, tablet, keys, columns).await.map_err(|error| self.path.explain(error))?;
            }
            rows.iter().for_each(|row| done[*row] = true);
            self.rows += rows.len() as u64;
        }
        Ok(done)
    }

    /// What UPDATE makes of rows that are as they were found: one column per column of the table, in stored form.
    fn new_versions(&self, batch: &RecordBatch, rows: &[usize]) -> Result<Vec<ArrayRef>> {
        let table = &self.path.table;
        let Some(Action::Update(set)) = self.search.actions.first() else {
            return Err(SqlError::internal("a statement that is no UPDATE makes new rows"));
        };
        let picked = UInt32Array::from_iter_values(rows.iter().map(|row| *row as u32));
        let column = |column: &ColumnDef| -> Result<ArrayRef> {
            let set = set.iter().find(|(id, _)| *id == column.id).map(|(_, index)| *index);
            let old = || self.search.old.iter().position(|(_, id)| *id == column.id).map(|at| self.layout.old + at);
            let phys = column.ty.phys().ok_or_else(|| SqlError::internal("a column's type is storable"))?;
            match set.or_else(old) {
                Some(at) => {
                    let picked = take(batch.column(at).as_ref(), &picked, None);
                    let picked = picked.map_err(|error| SqlError::internal(error.to_string()))?;
                    if *picked.data_type() == column.ty.to_arrow() {
                        return Ok(batch::to_stored(&column.ty, &picked));
                    }
                    let ty = set.map_or(&column.ty, |index| &self.step().columns[index].1);
                    let mut values = ColumnBuilder::new(phys, rows.len());
                    let push = |row| values.push(&value_at(ty, picked.as_ref(), row));
                    match (0..rows.len()).all(push) {
                        true => Ok(values.finish()),
                        false => Err(SqlError::internal(format!("a value for {} has another form", column.name))),
                    }
                }
                // Dropped, or of no column that rows have.
                None => {
                    let mut nulls = ColumnBuilder::new(phys, rows.len());
                    for _ in rows {
                        assert!(nulls.push(&Datum::Null), "null is of every type");
                    }
                    Ok(nulls.finish())
                }
            }
        };
        table.columns.iter().map(column).collect()
    }
}
