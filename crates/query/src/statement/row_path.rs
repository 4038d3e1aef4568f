//! The one way of a row into (or out of) a table. Every statement that writes goes through it, row by row
//! ([`RowPath::complete`], then [`RowPath::insert`], [`RowPath::update`] or [`RowPath::delete`]) or in blocks
//! ([`RowPath::complete_block`], then the batch writer of `statement::batch`):
//!
//! 1. defaults: values of columns that the statement does not name (the binder puts them into the row);
//! 2. modifiers of date and time types (`timestamp(3)`) cut the values; generated columns, computed from the rest of
//!    the row;
//! 3. NOT NULL (23502), then CHECK (23514);
//! 4. the write, with what the engine finds about keys (23505);
//! 5. work that follows from the row that was written ([`RowPath::written`]).
//!
//! What a table asks for is bound by `bind::row_rules`. A new kind of rule is added there and at its step here, in the
//! row form and in the block form; no statement has to know of it.

use super::rows;
use crate::bind::{RowCheck, RowRules};
use crate::error::{Result, SqlError};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use basalt_engine::{Catalog, CurrentRow, Inserted, Txn};
use basalt_expr::EvalContext;
use basalt_expr::functions::fit_time;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnBuilder, ColumnId, Datum, ObjectId, TableDef, batch};
use std::sync::Arc;

/// A table as a statement writes to it.
pub(crate) struct RowPath {
    pub table: Arc<TableDef>,
    pub rules: Arc<RowRules>,
    pub catalog: Arc<Catalog>,
    pub eval: Arc<EvalContext>,
}

impl RowPath {
    pub fn new(
        table: &Arc<TableDef>,
        rules: &Arc<RowRules>,
        catalog: &Arc<Catalog>,
        eval: &Arc<EvalContext>,
    ) -> Arc<RowPath> {
        let (table, rules) = (table.clone(), rules.clone());
        Arc::new(RowPath { table, rules, catalog: catalog.clone(), eval: eval.clone() })
    }

    /// Steps 2 and 3 for one row with all its columns (dropped ones null).
    pub fn complete(&self, row: &mut [Datum]) -> Result<()> {
        self.cut_times(row)?;
        if !self.rules.generated.is_empty() {
            let generated = self.rules.generated.iter();
            let generated = generated.map(|(id, expr)| Ok((*id, expr.eval_scalar(row, &self.eval)?)));
            for (id, value) in generated.collect::<Result<Vec<_>>>()? {
                row[id.position()] = value;
            }
            self.cut_times(row)?;
        }
        rows::check_not_null(&self.table, row, &self.catalog, &self.eval)?;
        for check in &self.rules.checks {
            if check.condition.eval_scalar(row, &self.eval)? == Datum::Bool(false) {
                return Err(self.violated(check, row));
            }
        }
        Ok(())
    }

    /// Values of date and time types as their columns keep them.
    fn cut_times(&self, row: &mut [Datum]) -> Result<()> {
        for (at, modifier) in &self.rules.cut {
            let value = std::mem::replace(&mut row[*at], Datum::Null);
            row[*at] = fit_time(&self.table.columns[*at].ty, *modifier, value)?;
        }
        Ok(())
    }

    /// The same for columns in stored form.
    fn cut_blocks(&self, stored: &mut [ArrayRef]) -> Result<()> {
        for (at, modifier) in &self.rules.cut {
            let (ty, array) = (&self.table.columns[*at].ty, &stored[*at]);
            let phys = ty.phys().ok_or_else(|| SqlError::internal("a column's type is storable"))?;
            let mut builder = ColumnBuilder::new(phys, array.len());
            for row in 0..array.len() {
                if !builder.push(&fit_time(ty, *modifier, batch::datum_at(phys, array, row))?) {
                    return Err(SqlError::internal(format!("a value for {} has another form", self.table.name)));
                }
            }
            stored[*at] = builder.finish();
        }
        Ok(())
    }

    /// The same for columns in stored form, one per column of the table in column-id order.
    pub fn complete_block(&self, mut stored: Vec<ArrayRef>) -> Result<Vec<ArrayRef>> {
        self.cut_blocks(&mut stored)?;
        if !self.passes(&stored)? || !self.rules.generated.is_empty() {
            // Row by row: computes what is generated, and meets the first error as PostgreSQL does.
            let rows = stored.first().map_or(0, |column| column.len());
            let types = self.table.phys_types();
            let mut builders: Vec<ColumnBuilder> = types.into_iter().map(|ty| ColumnBuilder::new(ty, rows)).collect();
            for row in 0..rows {
                let mut values = super::batch::stored_row(&self.table, &stored, row);
                self.complete(&mut values)?;
                for (value, builder) in values.iter().zip(&mut builders) {
                    if !builder.push(value) {
                        return Err(SqlError::internal(format!("a value for {} has another form", self.table.name)));
                    }
                }
            }
            stored = builders.iter_mut().map(ColumnBuilder::finish).collect();
        }
        Ok(stored)
    }

    /// Whether all rows of a block keep NOT NULL and CHECK. An error in a condition is left to the row form.
    fn passes(&self, stored: &[ArrayRef]) -> Result<bool> {
        let mut required = self.table.live_columns().filter(|column| column.not_null);
        if required.any(|column| stored[column.id.position()].null_count() > 0) {
            return Ok(false);
        }
        if self.rules.checks.is_empty() || !self.rules.generated.is_empty() {
            return Ok(true);
        }
        let rows = stored.first().map_or(0, |column| column.len());
        let columns = self.table.columns.iter().zip(stored);
        let logical: Vec<ArrayRef> = columns.map(|(column, array)| batch::to_logical(&column.ty, array)).collect();
        Ok(self.rules.checks.iter().all(|check| match check.condition.eval(&logical, rows, &self.eval) {
            Ok(kept) => {
                let kept = kept.as_boolean();
                (0..rows).all(|row| kept.is_null(row) || kept.value(row))
            }
            Err(_) => false,
        }))
    }

    /// 23514.
    #[cold]
    fn violated(&self, check: &RowCheck, row: &[Datum]) -> SqlError {
        let message =
            format!("new row for relation \"{}\" violates check constraint \"{}\"", self.table.name, check.name);
        let mut object = rows::object_of(&self.table, &self.catalog);
        object.constraint = Some(check.name.clone());
        SqlError::new("23514", message)
            .with_detail_if(rows::failing_row(&self.table, row, &self.eval))
            .with_object(object)
    }

    /// Writes a completed row. A live row of its key is the caller's to decide about.
    pub async fn insert(&self, txn: &mut Txn, row: &[Datum]) -> Result<Inserted> {
        self.insert_unless(txn, row, &[]).await
    }

    /// The same with the constraints that are to decide first, if several keep the row out.
    pub async fn insert_unless(&self, txn: &mut Txn, row: &[Datum], arbiters: &[ObjectId]) -> Result<Inserted> {
        let inserted = txn.insert_unless(&self.table, row, arbiters).await.map_err(|error| self.explain(error))?;
        if inserted == Inserted::Done {
            self.check_views(row)?;
            self.written(txn, None, Some(row)).await?;
        }
        Ok(inserted)
    }

    /// Replaces a locked row by a completed one. 23505 if its key is taken.
    pub async fn update(&self, txn: &mut Txn, current: &CurrentRow, old: &[Datum], new: &[Datum]) -> Result<()> {
        match txn.update(&self.table, current, new).await.map_err(|error| self.explain(error))? {
            Inserted::Done => {
                self.check_views(new)?;
                self.written(txn, Some(old), Some(new)).await
            }
            Inserted::Duplicate { index, .. } => Err(self.duplicate(txn, index, new)),
        }
    }

    /// Deletes a locked row.
    pub async fn delete(&self, txn: &mut Txn, current: &CurrentRow, old: &[Datum]) -> Result<()> {
        txn.delete(&self.table, current).await.map_err(|error| self.explain(error))?;
        self.written(txn, Some(old), None).await
    }

    /// 44000 for a row that a view's CHECK OPTION refuses.
    fn check_views(&self, row: &[Datum]) -> Result<()> {
        for check in &self.rules.view_checks {
            if check.condition.eval_scalar(row, &self.eval)? != Datum::Bool(true) {
                let message = format!("new row violates check option for view \"{}\"", check.name);
                let detail = rows::failing_row(&self.table, row, &self.eval);
                return Err(SqlError::new("44000", message).with_detail_if(detail));
            }
        }
        Ok(())
    }

    /// Whether a change of these columns changes a key that others may refer to, and so takes the stronger lock: by
    /// itself, or through a generated column.
    pub fn moves_key(&self, mut columns: impl Iterator<Item = ColumnId>) -> bool {
        let is_key = |column: ColumnId| self.table.is_key_column(column);
        columns.any(|changed| {
            let mut reads = |expr: &Expr| matches!(expr, Expr::Column { index, .. } if *index == changed.position());
            let mut generated = self.rules.generated.iter();
            is_key(changed) || generated.any(|(column, expr)| is_key(*column) && expr.any(&mut reads))
        })
    }

    /// Whether step 5 looks at the values that a changed or deleted row had.
    pub fn wants_old(&self) -> bool {
        false
    }

    /// Step 5: called once for each row that was written by itself, with the values before (none of an INSERT, empty
    /// where [`RowPath::wants_old`] is false) and after (none of a DELETE), in column-id order.
    async fn written(&self, txn: &mut Txn, old: Option<&[Datum]>, new: Option<&[Datum]>) -> Result<()> {
        let _ = (txn, old, new);
        Ok(())
    }

    /// 23505 for a row that a live row keeps out of the primary key or (if one is named) a unique index.
    pub fn duplicate(&self, txn: &Txn, index: Option<ObjectId>, row: &[Datum]) -> SqlError {
        rows::duplicate_row(&self.table, index, row, txn, &self.eval)
    }

    /// An engine's error, with a duplicate key told as PostgreSQL tells it.
    pub fn explain(&self, error: basalt_engine::Error) -> SqlError {
        rows::explain_error(error, &self.table, &self.catalog, &self.eval)
    }
}
