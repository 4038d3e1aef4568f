//! INSERT: single rows through the transaction, many rows as a batch.

use super::batch::{self, Block};
use super::row_path::RowPath;
use super::rows::{ReturningRows, Written};
use crate::bind::{BoundInsert, InsertSource, OnConflict};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::run::BatchStream;
use crate::session::Session;
use crate::session::interrupt::Pace;
use arrow_array::ArrayRef;
use basalt_engine::{CurrentRow, Inserted, RowLock, Txn, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnBuilder, Datum, Key, TabletId};
use std::collections::HashSet;
use std::sync::Arc;

/// VALUES lists of at least this many rows are written as a batch.
const BATCH_ROWS_MIN: usize = 256;

/// VALUES lists of more rows than this are written off the connection's thread.
const ROWS_INLINE_MAX: usize = 32;

/// Times that ON CONFLICT DO UPDATE tries again because the other row came or went meanwhile.
const CONFLICT_TRIES_MAX: usize = 1_000;

pub(crate) async fn run(session: &mut Session, insert: &Arc<BoundInsert>, eval: &Arc<EvalContext>) -> Result<Written> {
    let path = RowPath::new(&insert.table, &insert.rules, &session.txn()?.catalog(), eval);
    let plain = batch::is_plain(insert.on_conflict.is_some(), &insert.returning);
    let written = match &insert.source {
        InsertSource::Values(rows) if plain && rows.len() >= BATCH_ROWS_MIN => {
            values_batch(session, insert, &path).await?
        }
        InsertSource::Values(rows) if rows.len() <= ROWS_INLINE_MAX => {
            let wait = session.wait_policy();
            write_values(session.txn()?, insert, &path, wait).await?
        }
        InsertSource::Values(_) => {
            let insert = insert.clone();
            let wait = session.wait_policy();
            let work =
                session.off_thread(move |txn| Box::pin(async move { write_values(txn, &insert, &path, wait).await }));
            work.await?
        }
        InsertSource::Query(query) => {
            let stream = super::lock_rows::start(session, query, eval).await?;
            match plain {
                true => query_batch(session, &path, stream).await?,
                false => query_rows(session, insert, stream, path).await?,
            }
        }
    };
    Stats::add(&session.db.stats().rows_written, written.rows);
    Ok(written)
}

async fn values_batch(session: &mut Session, insert: &Arc<BoundInsert>, path: &Arc<RowPath>) -> Result<Written> {
    let sender = session.start_batch(path)?;
    let (insert, path) = (insert.clone(), path.clone());
    let feed = session.db.runtime().spawn(async move {
        let stored = values_block(&insert, &path).await?;
        // A closed channel means that the writer failed; its error comes with the end.
        let _ = sender.send(Block::Rows(stored)).await;
        let _ = sender.send(Block::End).await;
        Ok(())
    });
    feed.wait().await?;
    Ok(Written { rows: session.finish_batch().await?, returning: None })
}

async fn values_block(insert: &BoundInsert, path: &RowPath) -> Result<Vec<ArrayRef>> {
    let table = &insert.table;
    let rows = values(insert)?;
    let mut builders: Vec<ColumnBuilder> =
        table.phys_types().into_iter().map(|ty| ColumnBuilder::new(ty, rows.len())).collect();
    let mut pace = Pace::default();
    for row in rows {
        for (expr, builder) in row.iter().zip(&mut builders) {
            if !builder.push(&expr.eval_scalar(&[], &path.eval)?) {
                return Err(SqlError::internal(format!("a value for {} has another form", table.name)));
            }
        }
        pace.step().await;
    }
    path.complete_block(builders.iter_mut().map(ColumnBuilder::finish).collect())
}

fn values(insert: &BoundInsert) -> Result<&[Vec<Expr>]> {
    match &insert.source {
        InsertSource::Values(rows) => Ok(rows),
        InsertSource::Query(_) => Err(SqlError::internal("rows have no values")),
    }
}

async fn query_batch(session: &mut Session, path: &Arc<RowPath>, mut stream: BatchStream) -> Result<Written> {
    let sender = session.start_batch(path)?;
    let path = path.clone();
    let feed = session.db.runtime().spawn(async move {
        while let Some(rows) = stream.next().await? {
            let stored = batch::stored_block(&path, rows.columns())?;
            if sender.send(Block::Rows(stored)).await.is_err() {
                break;
            }
        }
        let _ = sender.send(Block::End).await;
        Ok(())
    });
    feed.wait().await?;
    Ok(Written { rows: session.finish_batch().await?, returning: None })
}

/// Rows of expressions, one by one.
async fn write_values(txn: &mut Txn, insert: &BoundInsert, path: &RowPath, wait: WaitPolicy) -> Result<Written> {
    let rows = values(insert)?;
    let mut writer = RowWriter::new(insert, path, wait)?;
    let mut pace = Pace::default();
    for row in rows {
        let values = row.iter().map(|expr| Ok(expr.eval_scalar(&[], &path.eval)?)).collect::<Result<Vec<_>>>()?;
        writer.write(txn, values).await?;
        pace.step().await;
    }
    writer.finish()
}

/// Rows of a query, one by one.
async fn query_rows(
    session: &mut Session,
    insert: &Arc<BoundInsert>,
    mut stream: BatchStream,
    path: Arc<RowPath>,
) -> Result<Written> {
    let insert = insert.clone();
    let wait = session.wait_policy();
    let work = session.off_thread(move |txn| {
        Box::pin(async move {
            let mut writer = RowWriter::new(&insert, &path, wait)?;
            let mut pace = Pace::default();
            while let Some(rows) = stream.next().await? {
                let stored = batch::stored(&insert.table, rows.columns());
                for row in 0..rows.num_rows() {
                    writer.write(txn, batch::stored_row(&insert.table, &stored, row)).await?;
                    pace.step().await;
                }
            }
            writer.finish()
        })
    });
    work.await
}

/// Writes row by row: checks, conflicts, RETURNING.
struct RowWriter<'a> {
    insert: &'a BoundInsert,
    path: &'a RowPath,
    wait: WaitPolicy,
    returning: ReturningRows<'a>,
    rows: u64,
    /// Keys of rows that the statement has written, if it must not write them twice.
    written: HashSet<Key>,
}

impl<'a> RowWriter<'a> {
    fn new(insert: &'a BoundInsert, path: &'a RowPath, wait: WaitPolicy) -> Result<RowWriter<'a>> {
        let returning = ReturningRows::new(&insert.returning)?;
        Ok(RowWriter { insert, path, wait, returning, rows: 0, written: HashSet::new() })
    }

    async fn write(&mut self, txn: &mut Txn, mut row: Vec<Datum>) -> Result<()> {
        self.path.complete(&mut row)?;
        for _ in 0..CONFLICT_TRIES_MAX {
            match self.path.insert(txn, &row).await? {
                Inserted::Done => {
                    self.note_written(&row);
                    self.rows += 1;
                    return self.returning.push(&row, &self.path.eval);
                }
                Inserted::Duplicate { tablet, key, index } => match &self.insert.on_conflict {
                    None => return Err(self.path.duplicate(txn, index, &row)),
                    Some(OnConflict::DoNothing) => return Ok(()),
                    Some(OnConflict::DoUpdate { assignments, filter }) => {
                        let Some(current) = self.lock(txn, tablet, &key).await? else { continue };
                        if self.written.contains(&key) {
                            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                            let hint = "Ensure that no rows proposed for insertion within the same command have \
                                        duplicate constrained values.";
                            return Err(SqlError::new("21000", message).with_hint(hint));
                        }
                        return self.update(txn, current, &row, assignments, filter.as_ref()).await;
                    }
                },
            }
        }
        Err(SqlError::new("40001", "could not serialize access due to concurrent update"))
    }

    fn note_written(&mut self, row: &[Datum]) {
        if let Some(OnConflict::DoUpdate { .. }) = &self.insert.on_conflict {
            self.written.extend(self.insert.table.key_of(row));
        }
    }

    async fn lock(&self, txn: &mut Txn, tablet: TabletId, key: &Key) -> Result<Option<CurrentRow>> {
        Ok(txn.lock_row(&self.insert.table, tablet, key, RowLock::Update, self.wait).await?.row())
    }

    /// ON CONFLICT DO UPDATE: expressions see the existing row, then the proposed one.
    async fn update(
        &mut self,
        txn: &mut Txn,
        current: CurrentRow,
        proposed: &[Datum],
        assignments: &[(basalt_types::ColumnId, Expr)],
        filter: Option<&Expr>,
    ) -> Result<()> {
        let mut both = current.values.clone();
        both.extend_from_slice(proposed);
        if let Some(filter) = filter
            && filter.eval_scalar(&both, &self.path.eval)? != Datum::Bool(true)
        {
            return Ok(());
        }
        let mut values = current.values.clone();
        for (id, expr) in assignments {
            values[id.position()] = expr.eval_scalar(&both, &self.path.eval)?;
        }
        self.path.complete(&mut values)?;
        self.path.update(txn, &current, &current.values, &values).await?;
        self.note_written(&values);
        self.rows += 1;
        self.returning.push(&values, &self.path.eval)
    }

    fn finish(self) -> Result<Written> {
        Ok(Written { rows: self.rows, returning: self.returning.finish()? })
    }
}
