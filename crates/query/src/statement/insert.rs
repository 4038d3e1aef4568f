//! INSERT: single rows through the transaction, many rows as a batch.

use super::batch::{self, Block};
use super::lock_rows::Means;
use super::row_path::RowPath;
use super::rows::{ReturningRows, RowsBuilder, Written};
use super::touched::Touched;
use crate::bind::{BoundInsert, Compute, ConflictAction, InsertSource, OnConflict, Write};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::plan::{HeldRows, Query};
use crate::run::BatchStream;
use crate::session::Session;
use crate::session::interrupt::Pace;
use arrow_array::ArrayRef;
use basalt_engine::{CurrentRow, Inserted, RowLock, Txn, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_expr::eval::vector::value_at;
use basalt_expr::tree::Expr;
use basalt_types::schema::encode_values;
use basalt_types::{ColumnBuilder, ColumnId, Datum, Key, ObjectId, TableDef, TabletId};
use std::sync::Arc;

/// VALUES lists of at least this many rows are written as a batch.
const BATCH_ROWS_MIN: usize = 256;

/// VALUES lists of more rows than this are written off the connection's thread.
pub(super) const ROWS_INLINE_MAX: usize = 32;

/// Times that ON CONFLICT DO UPDATE tries again because the other row came or went meanwhile.
const CONFLICT_TRIES_MAX: usize = 1_000;

pub(crate) async fn run(
    session: &mut Session,
    insert: &Arc<BoundInsert>,
    eval: &Arc<EvalContext>,
    touched: Option<Arc<Touched>>,
) -> Result<Written> {
    let path = RowPath::new(&insert.table, &insert.rules, &session.txn()?.catalog(), eval);
    check_constants(insert, eval)?;
    let plain = batch::is_plain(insert);
    let means = match Write::Insert(insert.clone()).runs_plans() {
        true => Some(Means::of(session, eval)?),
        false => None,
    };
    let company = Company { means, touched, wait: session.wait_policy() };
    let written = match &insert.source {
        InsertSource::Values(rows) if plain && rows.len() >= BATCH_ROWS_MIN => {
            values_batch(session, insert, &path).await?
        }
        InsertSource::Values(rows) if rows.len() <= ROWS_INLINE_MAX => {
            write_values(session.txn()?, insert, &path, &company).await?
        }
        InsertSource::Values(_) => {
            let insert = insert.clone();
            let work = session
                .off_thread(move |txn| Box::pin(async move { write_values(txn, &insert, &path, &company).await }));
            work.await?
        }
        InsertSource::Query(query) => {
            let stream = super::lock_rows::start(session, query, eval).await?;
            match plain {
                true => query_batch(session, &path, stream).await?,
                false => query_rows(session, insert, stream, path, company).await?,
            }
        }
    };
    Stats::add(&session.db.stats().rows_written, written.rows);
    Ok(written)
}

/// Errors of constants come even where no row meets another, and none is given back; those of the rows come first.
fn check_constants(insert: &BoundInsert, eval: &EvalContext) -> Result<()> {
    let returned = insert.returning.iter().flat_map(|returning| &returning.exprs);
    let on_conflict = insert.on_conflict.as_ref().map(|conflict| &conflict.action);
    let (mut values, mut filter, mut queries) = (&[][..], None, Vec::new());
    queries.extend(insert.returning.iter().filter_map(|returning| returning.query.as_ref()));
    match on_conflict {
        Some(ConflictAction::DoUpdate { compute: Compute::Exprs { filter: of_rows, values: set }, .. }) => {
            (values, filter) = (set, of_rows.as_ref());
        }
        Some(ConflictAction::DoUpdate { compute: Compute::Queries { filter, values }, .. }) => {
            queries.push(values);
            queries.extend(filter);
        }
        _ => {}
    }
    let of_exprs = returned.chain(values).chain(filter).try_for_each(|expr| expr.check_constants(eval));
    let fault = match of_exprs {
        Err(fault) => Some(fault.into()),
        Ok(()) => queries.into_iter().find_map(|query| query.first_fault(eval)),
    };
    let Some(fault) = fault else { return Ok(()) };
    if let InsertSource::Values(rows) = &insert.source {
        rows.iter().flatten().try_for_each(|expr| expr.check_constants(eval))?;
    }
    Err(fault)
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
async fn write_values(txn: &mut Txn, insert: &BoundInsert, path: &RowPath, company: &Company) -> Result<Written> {
    let rows = values(insert)?;
    let mut writer = RowWriter::new(insert, path, company)?;
    let mut pace = Pace::default();
    for row in rows {
        let values = row.iter().map(|expr| Ok(expr.eval_scalar(&[], &path.eval)?)).collect::<Result<Vec<_>>>()?;
        writer.write(txn, values).await?;
        pace.step().await;
    }
    writer.finish(txn).await
}

/// Rows of a query, one by one.
async fn query_rows(
    session: &mut Session,
    insert: &Arc<BoundInsert>,
    mut stream: BatchStream,
    path: Arc<RowPath>,
    company: Company,
) -> Result<Written> {
    let insert = insert.clone();
    let work = session.off_thread(move |txn| {
        Box::pin(async move {
            let mut writer = RowWriter::new(&insert, &path, &company)?;
            let mut pace = Pace::default();
            while let Some(rows) = stream.next().await? {
                let stored = batch::stored(&insert.table, rows.columns());
                for row in 0..rows.num_rows() {
                    writer.write(txn, batch::stored_row(&insert.table, &stored, row)).await?;
                    pace.step().await;
                }
            }
            writer.finish(txn).await
        })
    });
    work.await
}

/// What rows are written with, beside the transaction.
struct Company {
    /// Only where plans are run: subqueries in RETURNING and ON CONFLICT.
    means: Option<Means>,
    /// If other commands belong to the statement.
    touched: Option<Arc<Touched>>,
    wait: WaitPolicy,
}

/// Writes row by row: checks, conflicts, RETURNING.
struct RowWriter<'a> {
    insert: &'a BoundInsert,
    path: &'a RowPath,
    company: &'a Company,
    returning: ReturningRows<'a>,
    rows: u64,
    /// Rows that the statement has written, if it must not write them twice.
    touched: Option<Arc<Touched>>,
}

impl<'a> RowWriter<'a> {
    fn new(insert: &'a BoundInsert, path: &'a RowPath, company: &'a Company) -> Result<RowWriter<'a>> {
        let returning = ReturningRows::new(&insert.returning, &insert.table, Vec::new())?;
        let updates = matches!(&insert.on_conflict, Some(OnConflict { action: ConflictAction::DoUpdate { .. }, .. }));
        let touched = company.touched.clone().or_else(|| updates.then(Arc::default));
        Ok(RowWriter { insert, path, company, returning, rows: 0, touched })
    }

    async fn write(&mut self, txn: &mut Txn, mut row: Vec<Datum>) -> Result<()> {
        self.path.complete(&mut row)?;
        for _ in 0..CONFLICT_TRIES_MAX {
            let arbiters = self.insert.on_conflict.as_ref().map_or(&[][..], |conflict| &conflict.arbiters);
            match self.path.insert_unless(txn, &row, arbiters).await? {
                Inserted::Done => {
                    if let (Some(touched), Some((tablet, key))) = (&self.touched, txn.last_inserted()) {
                        touched.insert(&self.insert.table, *tablet, key.clone());
                    }
                    return self.written(&row);
                }
                Inserted::Duplicate { index, .. } if !self.decides(arbiters, index) => {
                    return Err(self.path.duplicate(txn, index, &row));
                }
                Inserted::Duplicate { tablet, key, index } => match &self.insert.on_conflict {
                    None => return Err(self.path.duplicate(txn, index, &row)),
                    Some(OnConflict { action: ConflictAction::DoNothing, .. }) => {
                        return Ok(txn.check_known(&self.insert.table, tablet, &key)?);
                    }
                    Some(OnConflict { action: ConflictAction::DoUpdate { columns, compute }, .. }) => {
                        let mode = match self.path.moves_key(columns.iter().copied()) {
                            true => RowLock::Update,
                            false => RowLock::NoKeyUpdate,
                        };
                        let Some(current) = self.lock(txn, tablet, &key, mode).await? else { continue };
                        let table = &self.insert.table;
                        // Who had it locked may have given the row another key, or other values of an index.
                        let is_same = (current.tablet, &current.key) == (tablet, &key);
                        if index.is_none() && !is_same || !still_conflicts(txn, table, index, &row, &current.values)? {
                            continue;
                        }
                        if self.touched.as_ref().is_some_and(|touched| touched.contains(table, tablet, &key)) {
                            let message = "ON CONFLICT DO UPDATE command cannot affect row a second time";
                            let hint = "Ensure that no rows proposed for insertion within the same command have \
                                        duplicate constrained values.";
                            return Err(SqlError::new("21000", message).with_hint(hint));
                        }
                        return self.update(txn, current, &row, columns, compute).await;
                    }
                },
            }
        }
        Err(SqlError::new("40001", "could not serialize access due to concurrent update"))
    }

    /// Whether a conflict with this index (none: the primary key) is ON CONFLICT's.
    fn decides(&self, arbiters: &[ObjectId], index: Option<ObjectId>) -> bool {
        let id = index.or(self.insert.table.primary_key.as_ref().map(|key| key.constraint_id));
        arbiters.is_empty() || id.is_some_and(|id| arbiters.contains(&id))
    }

    fn written(&mut self, row: &[Datum]) -> Result<()> {
        if let Some(touched) = &self.touched {
            touched.insert_row(&self.insert.table, row);
        }
        self.rows += 1;
        self.returning.push(row, &self.path.eval)
    }

    async fn lock(&self, txn: &mut Txn, tablet: TabletId, key: &Key, mode: RowLock) -> Result<Option<CurrentRow>> {
        Ok(txn.lock_row(&self.insert.table, tablet, key, mode, self.company.wait).await?.row())
    }

    /// ON CONFLICT DO UPDATE: expressions see the existing row, then the proposed one.
    async fn update(
        &mut self,
        txn: &mut Txn,
        current: CurrentRow,
        proposed: &[Datum],
        columns: &[ColumnId],
        compute: &Compute,
    ) -> Result<()> {
        let Some(new) = self.computed(txn, &current, proposed, compute).await? else { return Ok(()) };
        let mut values = current.values.clone();
        for (id, value) in columns.iter().zip(new) {
            values[id.position()] = value;
        }
        self.path.complete(&mut values)?;
        self.path.update(txn, &current, &current.values, &values).await?;
        if let Some(touched) = &self.touched {
            touched.insert(&self.insert.table, current.tablet, current.key);
        }
        self.written(&values)
    }

    /// The values of SET; `None` if WHERE refuses.
    async fn computed(
        &self,
        txn: &Txn,
        current: &CurrentRow,
        proposed: &[Datum],
        compute: &Compute,
    ) -> Result<Option<Vec<Datum>>> {
        let eval = &self.path.eval;
        let (filter, values) = match compute {
            Compute::Exprs { filter, values } => {
                let mut both = current.values.clone();
                both.extend_from_slice(proposed);
                if let Some(filter) = filter
                    && filter.eval_scalar(&both, eval)? != Datum::Bool(true)
                {
                    return Ok(None);
                }
                let values = values.iter().map(|expr| Ok(expr.eval_scalar(&both, eval)?));
                return values.collect::<Result<Vec<Datum>>>().map(Some);
            }
            Compute::Queries { filter, values } => (filter, values),
        };
        let table = &self.insert.table;
        let types = || table.live_columns().map(|column| column.ty.clone());
        let mut builder = RowsBuilder::new(types().chain(types()).collect())?;
        let live = |row: &[Datum]| table.live_columns().map(|column| row[column.id.position()].clone()).collect();
        let mut both: Vec<Datum> = live(&current.values);
        both.extend::<Vec<Datum>>(live(proposed));
        builder.push(&both)?;
        let rows = HeldRows { batches: builder.finish()?, memory: None };
        if let Some(filter) = filter
            && self.one_row(txn, filter, &rows).await? != [Datum::Bool(true)]
        {
            return Ok(None);
        }
        self.one_row(txn, values, &rows).await.map(Some)
    }

    async fn one_row(&self, txn: &Txn, query: &Query, rows: &HeldRows) -> Result<Vec<Datum>> {
        let Some(means) = &self.company.means else {
            return Err(SqlError::internal("ON CONFLICT has nothing to run with"));
        };
        let mut stream = means.run(txn, query.with_written(rows));
        while let Some(batch) = stream.next().await? {
            if batch.num_rows() > 0 {
                let columns = query.columns.iter().zip(batch.columns());
                return Ok(columns.map(|(column, array)| value_at(&column.ty, array.as_ref(), 0)).collect());
            }
        }
        Err(SqlError::internal("ON CONFLICT computes no row"))
    }

    async fn finish(self, txn: &Txn) -> Result<Written> {
        let rows = self.rows;
        Ok(Written { rows, returning: self.returning.finish(txn, self.company.means.as_ref()).await? })
    }
}

/// A row that was found by an index may have other values by the time it is locked.
fn still_conflicts(
    txn: &Txn,
    table: &Arc<TableDef>,
    index: Option<ObjectId>,
    proposed: &[Datum],
    current: &[Datum],
) -> Result<bool> {
    let Some(index) = index.and_then(|index| table.index(index)) else { return Ok(true) };
    let values = |row: &[Datum]| -> Result<Option<Vec<u8>>> {
        let values = txn.engine().index_values(table, index, row)?;
        Ok(values.map(|values| encode_values(&index.columns, &values)))
    };
    Ok(values(proposed)? == values(current)?)
}
