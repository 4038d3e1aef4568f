//! Rows of a table under another definition: written into new tablets, or looked at where they are.

use super::contains_nulls;
use crate::bind;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::statement::batch::{Block, stored_block};
use crate::statement::row_path::RowPath;
use arrow_array::{Array, ArrayRef, new_null_array};
use basalt_engine::{ScanBatch, ScanSpec};
use basalt_exec::{Scan, Stop};
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnDef, ColumnId, ColumnPredicate, Datum, TableDef, batch as types_batch};
use std::sync::Arc;

/// How the rows of the definition before become rows of the one after.
pub(in crate::statement) struct Rewrite {
    /// Values of columns that change, over a row of the old definition; other columns stay.
    pub values: Vec<(ColumnId, Expr)>,
    /// Generated columns and constraints have to be looked at anew.
    pub complete: bool,
}

/// Whether a batch of the table's rows, read beside the connection's thread, is as `wanted`.
async fn any_batch(
    session: &mut Session,
    table: &Arc<TableDef>,
    columns: Vec<ColumnId>,
    predicates: Vec<ColumnPredicate>,
    wanted: fn(&ScanBatch) -> bool,
) -> Result<bool> {
    let spec = ScanSpec { table: table.clone(), columns, predicates, with_identity: false };
    // What was committed before the lock was granted counts, seen by the snapshot or not.
    let read = session.txn()?.latest();
    let stop = Stop::default();
    let scan = Scan::start(&read, spec, stop.clone())?;
    let search = session.db.runtime().spawn_blocking(stop, move || {
        let mut worker = scan.worker();
        while let Some(batch) = worker.next_batch()? {
            if wanted(&batch) {
                return Ok(true);
            }
        }
        Ok(false)
    });
    search.wait().await
}

pub(super) async fn is_empty(session: &mut Session, table: &Arc<TableDef>) -> Result<bool> {
    Ok(!any_batch(session, table, Vec::new(), Vec::new(), |batch| batch.rows > 0).await?)
}

/// 23502 if a column has nulls.
pub(super) async fn refuse_nulls(session: &mut Session, table: &Arc<TableDef>, id: ColumnId) -> Result<()> {
    if table.columns.len() <= id.position() || table.column(id).not_null {
        return Ok(());
    }
    let is_null = vec![ColumnPredicate::IsNull { column: id }];
    let has_null = |batch: &ScanBatch| batch.columns.iter().any(|column| column.null_count() > 0);
    match any_batch(session, table, vec![id], is_null, has_null).await? {
        true => Err(contains_nulls(&table.name, &table.column(id).name)),
        false => Ok(()),
    }
}

/// Every row of a definition that another takes the place of.
pub(in crate::statement) struct Source {
    table: Arc<TableDef>,
    scan: Arc<Scan>,
    stop: Stop,
}

impl Source {
    /// What the definition's tablets hold now that nobody else writes to them, whatever the new one does to them.
    pub fn start(session: &mut Session, table: &Arc<TableDef>) -> Result<Source> {
        let columns = table.live_columns().map(|column| column.id).collect();
        let spec = ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: false };
        let stop = Stop::default();
        let scan = Scan::start(&session.txn()?.latest(), spec, stop.clone())?;
        Ok(Source { table: table.clone(), scan, stop })
    }

    /// Writes the rows into the tablets of the new definition, which is in place.
    pub async fn write(self, session: &mut Session, after: Arc<TableDef>, rewrite: Rewrite) -> Result<()> {
        let Source { table: before, scan, stop } = self;
        let catalog = session.txn()?.catalog();
        let eval = session.eval_context(Vec::new(), &catalog);
        let rules = match rewrite.complete {
            true => bind::bind_row_rules(&session.bind_context(&catalog, &Arc::from(""), &eval), &after)?,
            // The rows are in the table already: the batch writes them as they are.
            false => Arc::new(bind::RowRules::of_types(&after)),
        };
        let path = RowPath::new(&after, &rules, &catalog, &eval);
        let sender = session.start_batch(&path)?;
        let (source, target) = (before, after.clone());
        let reader = session.db.runtime().spawn_blocking(stop, move || -> Result<()> {
            let mut worker = scan.worker();
            while let Some(batch) = worker.next_batch()? {
                let rows = become_new(&source, &target, &rewrite, &batch, &eval)?;
                let rows = match rewrite.complete {
                    true => stored_block(&path, &rows)?,
                    false => target
                        .columns
                        .iter()
                        .zip(&rows)
                        .map(|(to, array)| types_batch::to_stored(&to.ty, array))
                        .collect(),
                };
                if sender.blocking_send(Block::Rows(rows)).is_err() {
                    return Ok(());
                }
            }
            let _ = sender.blocking_send(Block::End);
            Ok(())
        });
        let read = reader.wait().await;
        let written = session.finish_batch().await;
        explain(read, &after)?;
        written.map_err(as_build_error)?;
        // Entries of a deferrable constraint never collide.
        session.after_build().await.map_err(as_build_error)
    }
}

/// Values that are there twice, as PostgreSQL tells of them when it fills an index.
fn as_build_error(error: SqlError) -> SqlError {
    if error.sqlstate != "23505" {
        return error;
    }
    let constraint = error.object.as_ref().and_then(|object| object.constraint.clone()).unwrap_or_default();
    let detail = error.detail.clone().map(|detail| detail.replace("already exists", "is duplicated"));
    SqlError { message: format!("could not create unique index \"{constraint}\""), detail, ..error }
}

/// Rows that were there are no new rows: PostgreSQL's words for those that break a rule.
fn explain(read: Result<()>, after: &TableDef) -> Result<()> {
    read.map_err(|error| {
        let object = error.object.clone().unwrap_or_default();
        match (error.sqlstate, &object.constraint, &object.column) {
            ("23514", Some(constraint), _) if object.datatype.is_none() => {
                let table = &after.name;
                let message =
                    format!("check constraint \"{constraint}\" of relation \"{table}\" is violated by some row");
                SqlError { message, detail: None, ..error }
            }
            ("23502", _, Some(column)) => SqlError { object: error.object, ..contains_nulls(&after.name, column) },
            _ => error,
        }
    })
}

/// A batch of live columns of the old definition as all columns of the new one, in logical form.
fn become_new(
    before: &TableDef,
    after: &TableDef,
    rewrite: &Rewrite,
    batch: &ScanBatch,
    eval: &EvalContext,
) -> Result<Vec<ArrayRef>> {
    let mut live = batch.columns.iter();
    let null = |column: &ColumnDef| new_null_array(&column.ty.to_arrow(), batch.rows);
    let old: Vec<ArrayRef> = before
        .columns
        .iter()
        .map(|column| match column.dropped {
            true => null(column),
            false => live.next().cloned().unwrap_or_else(|| null(column)),
        })
        .collect();
    let value = |column: &ColumnDef| -> Result<ArrayRef> {
        if let Some((_, expr)) = rewrite.values.iter().find(|(id, _)| *id == column.id) {
            return Ok(expr.eval(&old, batch.rows, eval)?);
        }
        match old.get(column.id.position()) {
            _ if column.dropped => Ok(null(column)),
            Some(array) => Ok(array.clone()),
            None => repeat(column, batch.rows),
        }
    };
    after.columns.iter().map(value).collect()
}

fn repeat(column: &ColumnDef, rows: usize) -> Result<ArrayRef> {
    let phys = column.ty.phys().ok_or_else(|| SqlError::internal("a column's type is storable"))?;
    let mut builder = basalt_types::ColumnBuilder::new(phys, rows);
    for _ in 0..rows {
        match &column.missing {
            Datum::Null => builder.push_null(),
            value if builder.push(value) => {}
            _ => return Err(SqlError::internal(format!("column {} has a missing value of another form", column.name))),
        }
    }
    Ok(types_batch::to_logical(&column.ty, &builder.finish()))
}
