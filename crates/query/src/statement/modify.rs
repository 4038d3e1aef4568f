//! UPDATE and DELETE: find rows at the snapshot, lock each, and look again where one changed meanwhile
//! (PostgreSQL manual 13.2.1). Under REPEATABLE READ the engine answers 40001 instead.
//!
//! The one row of a primary key is changed at once; rows that have to be searched for, off the connection's
//! thread.

use super::row_path::RowPath;
use super::rows::{ReturningRows, Written};
use crate::bind::{BoundModify, PointAccess, RowSource};
use crate::database::Stats;
use crate::error::{Result, SqlError};
use crate::run::BatchStream;
use crate::session::Session;
use crate::session::interrupt::Pace;
use crate::syntax::Isolation;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use basalt_engine::{CurrentRow, RowLock, Txn, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_types::{DataType, Datum, Key, Stamp, TabletId, batch};
use std::sync::Arc;

pub(crate) async fn update(session: &mut Session, plan: &Arc<BoundModify>, eval: &Arc<EvalContext>) -> Result<Written> {
    let moves_key = plan.assignments.iter().any(|(id, _)| plan.table.is_key_column(*id));
    let lock = if moves_key { RowLock::Update } else { RowLock::NoKeyUpdate };
    run(session, plan, eval, lock, false).await
}

pub(crate) async fn delete(session: &mut Session, plan: &Arc<BoundModify>, eval: &Arc<EvalContext>) -> Result<Written> {
    run(session, plan, eval, RowLock::Update, true).await
}

async fn run(
    session: &mut Session,
    plan: &Arc<BoundModify>,
    eval: &Arc<EvalContext>,
    lock: RowLock,
    delete: bool,
) -> Result<Written> {
    let (catalog, wait) = (session.txn()?.catalog(), session.wait_policy());
    let path = RowPath::new(&plan.table, &plan.rules, &catalog, eval);
    let written = match &plan.source {
        RowSource::Point(point) => {
            // READ COMMITTED looks at the newest row anyway; REPEATABLE READ must not meet rows made later.
            let newest = session.block.isolation == Isolation::ReadCommitted;
            let mut changer = Changer::new(plan, path, lock, delete, wait)?;
            changer.point(session.txn()?, point, newest).await?;
            changer.finish()?
        }
        RowSource::Query { query, extra } => {
            let rows = super::lock_rows::start(session, &Arc::new((**query).clone()), eval).await?;
            let extra_types: Vec<DataType> =
                query.columns.iter().skip(3).take(*extra).map(|column| column.ty.clone()).collect();
            let plan = plan.clone();
            let work = session.off_thread(move |txn| {
                Box::pin(async move {
                    let mut changer = Changer::new(&plan, path, lock, delete, wait)?;
                    changer.all(txn, rows, &extra_types).await?;
                    changer.finish()
                })
            });
            work.await?
        }
    };
    Stats::add(&session.db.stats().rows_written, written.rows);
    Ok(written)
}

/// A batch of row identities, and of values that WHERE and SET take from subqueries.
struct Found<'a> {
    tablets: &'a [i64],
    keys: &'a arrow_array::BinaryViewArray,
    stamps: &'a [i64],
    extra: Vec<(basalt_types::PhysType, ArrayRef)>,
}

impl<'a> Found<'a> {
    fn new(columns: &'a [ArrayRef], extra_types: &[DataType]) -> Result<Found<'a>> {
        let malformed = || SqlError::internal("a row source gives no row identities");
        let [tablets, keys, stamps, extra @ ..] = columns else { return Err(malformed()) };
        let stored = extra_types.iter().zip(extra).map(|(ty, array)| {
            let phys = ty.phys().ok_or_else(|| SqlError::internal("a subquery's value has no stored form"))?;
            Ok((phys, batch::to_stored(ty, array)))
        });
        Ok(Found {
            tablets: tablets.as_primitive_opt::<Int64Type>().ok_or_else(malformed)?.values(),
            keys: keys.as_binary_view_opt().ok_or_else(malformed)?,
            stamps: stamps.as_primitive_opt::<Int64Type>().ok_or_else(malformed)?.values(),
            extra: stored.collect::<Result<_>>()?,
        })
    }

    fn extra(&self, row: usize) -> impl Iterator<Item = Datum> + '_ {
        self.extra.iter().map(move |(ty, array)| batch::datum_at(*ty, array, row))
    }
}

struct Changer<'a> {
    plan: &'a BoundModify,
    path: Arc<RowPath>,
    lock: RowLock,
    delete: bool,
    wait: WaitPolicy,
    returning: ReturningRows<'a>,
    rows: u64,
}

impl<'a> Changer<'a> {
    fn new(
        plan: &'a BoundModify,
        path: Arc<RowPath>,
        lock: RowLock,
        delete: bool,
        wait: WaitPolicy,
    ) -> Result<Changer<'a>> {
        let returning = ReturningRows::new(&plan.returning)?;
        Ok(Changer { plan, path, lock, delete, wait, returning, rows: 0 })
    }

    fn finish(self) -> Result<Written> {
        Ok(Written { rows: self.rows, returning: self.returning.finish()? })
    }

    async fn all(&mut self, txn: &mut Txn, mut found: BatchStream, extra_types: &[DataType]) -> Result<()> {
        let mut pace = Pace::default();
        while let Some(rows) = found.next().await? {
            let found = Found::new(rows.columns(), extra_types)?;
            for row in 0..rows.num_rows() {
                self.found(txn, &found, row).await?;
                pace.step().await;
            }
        }
        Ok(())
    }

    async fn point(&mut self, txn: &mut Txn, point: &PointAccess, newest: bool) -> Result<()> {
        let table = &self.plan.table;
        let Some(key) = point.key(table, &self.path.eval)? else { return Ok(()) };
        let read = txn.read();
        let tablets: Vec<TabletId> = match read.tablet_of(table, &key) {
            Some(tablet) => vec![tablet],
            None => table.tablets().collect(),
        };
        for tablet in tablets {
            if !newest && read.get(table, tablet, &key)?.is_none() {
                continue;
            }
            let Some(current) = self.lock_row(txn, tablet, &key, None).await? else { continue };
            let row = current.values.clone();
            if self.passes(&row)? {
                self.change(txn, current, row).await?;
            }
        }
        Ok(())
    }

    async fn found(&mut self, txn: &mut Txn, found: &Found<'_>, row: usize) -> Result<()> {
        let tablet = u32::try_from(found.tablets[row])
            .map(TabletId)
            .map_err(|_| SqlError::internal("a row source gives a wrong tablet"))?;
        let key = Key::from(found.keys.value(row));
        let seen = Stamp::from_raw(found.stamps[row] as u64);
        let needs_values = !self.delete || self.plan.returning.is_some() || self.path.wants_old();
        let without_values = (!needs_values).then_some(seen);
        let Some(current) = self.lock_row(txn, tablet, &key, without_values).await? else { return Ok(()) };
        let unchanged = current.stamp == seen;
        let mut values = current.values.clone();
        values.extend(found.extra(row));
        if unchanged || self.passes(&values)? {
            self.change(txn, current, values).await?;
        }
        Ok(())
    }

    async fn lock_row(
        &self,
        txn: &mut Txn,
        tablet: TabletId,
        key: &Key,
        seen: Option<Stamp>,
    ) -> Result<Option<CurrentRow>> {
        Ok(txn.lock_seen_row(&self.plan.table, tablet, key, seen, self.lock, self.wait).await?.row())
    }

    fn passes(&self, row: &[Datum]) -> Result<bool> {
        match &self.plan.filter {
            Some(filter) => Ok(filter.eval_scalar(row, &self.path.eval)? == Datum::Bool(true)),
            None => Ok(true),
        }
    }

    /// `row` is the locked row with the source's extra columns behind.
    async fn change(&mut self, txn: &mut Txn, current: CurrentRow, mut row: Vec<Datum>) -> Result<()> {
        if self.delete {
            self.path.delete(txn, &current, &current.values).await?;
            self.rows += 1;
            return self.returning.push(&row, &self.path.eval);
        }
        let new = self.plan.assignments.iter().map(|(id, expr)| Ok((*id, expr.eval_scalar(&row, &self.path.eval)?)));
        let new = new.collect::<Result<Vec<_>>>()?;
        for (id, value) in new {
            row[id.position()] = value;
        }
        let width = self.plan.table.columns.len();
        self.path.complete(&mut row[..width])?;
        self.path.update(txn, &current, &current.values, &row[..width]).await?;
        self.rows += 1;
        self.returning.push(&row, &self.path.eval)
    }
}
