//! SELECT … FOR UPDATE and its kin: rows are found at the snapshot, locked one by one in their order, and
//! looked at again where one changed meanwhile (PostgreSQL manual 13.2.1, 13.3.2). Under REPEATABLE READ the
//! engine answers 40001 instead.
//!
//! Locks belong to the transaction, so they are taken before the rest of the statement runs, off the
//! connection's thread: every [`Plan::LockRows`], innermost first, becomes [`Plan::Rows`]. A row counts for
//! LIMIT once it is locked. A second look computes the query again over relations of one row each: the newest
//! versions of the locked rows, and of the others what the row was made of.

mod second_look;
mod taken;

use self::second_look::SecondLook;
use self::taken::Taken;
use super::row_query;
use super::rows::record_batch;
use crate::error::{Result, SqlError};
use crate::plan::row_count::{CountPlace, LIMIT, OFFSET, row_count};
use crate::plan::{ColId, HeldRows, Kept, LockRows, LockTarget, OnLocked, OutputColumn, Plan, Query};
use crate::run::stats::RunStats;
use crate::run::{BatchStream, QueryRuntime, RunContext};
use crate::session::Session;
use crate::session::interrupt::Pace;
use crate::session::outcome::RowSource;
use crate::system::SystemContext;
use ahash::{AHashMap, AHashSet};
use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use basalt_engine::{CurrentRow, Txn, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_expr::eval::vector::{from_values, value_at};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum, Key, Stamp, TabletId};
use parking_lot::Mutex;
use std::sync::Arc;

/// Under a LIMIT, rows beyond it that are found at first, in case some are gone, or locked and passed over.
const ROWS_SPARE: u64 = 1;
const ROWS_SPARE_SKIPPING: u64 = 64;
/// How many times more are found when they do not do.
const ROWS_GROWTH: u64 = 16;

/// Runs a query, locking its rows first where it says so.
pub(crate) async fn start(session: &mut Session, query: &Arc<Query>, eval: &Arc<EvalContext>) -> Result<BatchStream> {
    let query = match query.row_locks.is_empty() {
        true => query.clone(),
        false => Arc::new(locked(session, query, eval).await?),
    };
    let ctx = session.run_context(eval)?;
    Ok(session.db.runtime().run(query, ctx))
}

/// As [`start`]; rows whose locking is the query's last step come in its order.
pub(crate) async fn rows(session: &mut Session, query: &Arc<Query>, eval: &Arc<EvalContext>) -> Result<RowSource> {
    if !matches!(query.plan, Plan::LockRows(_)) {
        return Ok(RowSource::running(start(session, query, eval).await?));
    }
    let (columns, rows) = match few(session, query, eval).await? {
        Some(few) => few,
        None => match locked(session, query, eval).await?.plan {
            Plan::Rows { columns, rows } => (columns, rows),
            _ => return Err(SqlError::internal("locked rows are not at hand")),
        },
    };
    let place = |column: &OutputColumn| {
        let found = columns.iter().position(|(id, _)| *id == column.id);
        found.ok_or_else(|| SqlError::internal(format!("locked rows lack the column \"{}\"", column.name)))
    };
    let places = query.columns.iter().map(place).collect::<Result<Vec<usize>>>()?;
    let in_order = |batch: &RecordBatch| {
        record_batch(places.iter().map(|at| batch.column(*at).clone()).collect(), batch.num_rows())
    };
    let batches = rows.batches.iter().map(in_order).collect::<Result<Vec<RecordBatch>>>()?;
    Ok(RowSource::held(HeldRows { batches, memory: rows.memory }))
}

/// Locks rows on this thread, if the row engine finds few of them. `None`: it does not, and nothing has happened.
async fn few(
    session: &mut Session,
    query: &Query,
    eval: &Arc<EvalContext>,
) -> Result<Option<(Vec<(ColId, DataType)>, HeldRows)>> {
    let Plan::LockRows(step) = &query.plan else { return Ok(None) };
    let mut means = Means::of_rows(session, eval)?;
    let first = Locker::new(step, query, &means).first_query()?;
    let Some(found) = row_query::few(session.txn()?, &first, eval)? else { return Ok(None) };
    means.begin_with(found);
    let locker = Locker::new(step, query, &means);
    let rows = locker.run(session.txn()?).await?;
    Ok(Some((step.columns.clone(), rows)))
}

/// The query with rows in the place of every lock step.
async fn locked(session: &mut Session, query: &Arc<Query>, eval: &Arc<EvalContext>) -> Result<Query> {
    let means = Means::of(session, eval)?;
    let query = (**query).clone();
    session.off_thread(move |txn| Box::pin(async move { means.lock(txn, query).await })).await
}

/// What rows are found and locked with, apart from the transaction.
pub(crate) struct Means {
    runtime: Arc<QueryRuntime>,
    system: Arc<SystemContext>,
    pub eval: Arc<EvalContext>,
    pub wait: WaitPolicy,
    /// What the first query gives, where that is known.
    begun: Mutex<Option<Vec<RecordBatch>>>,
    /// Of the statement, if plans are expected to run.
    stats: Option<Arc<RunStats>>,
}

impl Means {
    pub fn of(session: &mut Session, eval: &Arc<EvalContext>) -> Result<Means> {
        let catalog = session.txn()?.catalog();
        Ok(Means {
            runtime: session.db.runtime().clone(),
            system: session.system_context(&catalog),
            eval: eval.clone(),
            wait: session.wait_policy(),
            begun: Mutex::default(),
            stats: Some(session.run_stats()),
        })
    }

    /// For queries of the row engine, which reads no system tables.
    pub fn of_rows(session: &mut Session, eval: &Arc<EvalContext>) -> Result<Means> {
        let catalog = session.txn()?.catalog();
        Ok(Means {
            runtime: session.db.runtime().clone(),
            system: session.surroundings(&catalog).system.clone(),
            eval: eval.clone(),
            wait: session.wait_policy(),
            begun: Mutex::default(),
            stats: None,
        })
    }

    /// The first query has been run.
    pub fn begin_with(&mut self, found: Vec<RecordBatch>) {
        self.begun = Mutex::new(Some(found));
    }

    /// Does work that blocks, elsewhere.
    pub async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        let task = self.runtime.handle().spawn_blocking(work);
        task.await.map_err(|error| SqlError::internal(error.to_string()))
    }

    /// The query with rows in the place of every lock step.
    pub async fn lock(&self, txn: &mut Txn, mut query: Query) -> Result<Query> {
        // A WITH query has a greater number than those that it reads.
        for id in query.ctes.keys().copied().collect::<Vec<_>>() {
            let Some(mut cte) = query.ctes.remove(&id) else { continue };
            self.lock_plan(txn, &mut cte.plan, &query).await?;
            query.ctes.insert(id, cte);
        }
        // A subquery has a greater id than those inside it.
        for id in query.subqueries.keys().copied().collect::<Vec<_>>() {
            let Some(mut subquery) = query.subqueries.remove(&id) else { continue };
            self.lock_plan(txn, &mut subquery.plan, &query).await?;
            query.subqueries.insert(id, subquery);
        }
        let mut plan = std::mem::replace(&mut query.plan, Plan::Unit);
        self.lock_plan(txn, &mut plan, &query).await?;
        query.plan = plan;
        Ok(query)
    }

    async fn lock_plan(&self, txn: &mut Txn, plan: &mut Plan, query: &Query) -> Result<()> {
        while let Some(place) = innermost(plan) {
            let Plan::LockRows(step) = std::mem::replace(place, Plan::Unit) else { return Ok(()) };
            let locker = Locker::new(&step, query, self);
            let rows = locker.run(txn).await?;
            *place = Plan::Rows { columns: step.columns, rows };
        }
        Ok(())
    }

    /// A few rows come by the row engine, on this thread.
    pub fn run(&self, txn: &Txn, query: Arc<Query>) -> BatchStream {
        if let Some(batches) = self.begun.lock().take() {
            return BatchStream::ready(Ok(batches));
        }
        if let Some(batches) = row_query::batches(txn, &query, &self.eval).transpose() {
            return BatchStream::ready(batches);
        }
        let ctx = RunContext::new(txn.read(), self.eval.clone(), self.system.clone());
        let stats = self.stats.clone().unwrap_or_default();
        self.runtime.run(query, RunContext { stats, ..ctx })
    }
}

/// A lock step without another below it.
fn innermost(plan: &mut Plan) -> Option<&mut Plan> {
    fn contains(plan: &Plan) -> bool {
        matches!(plan, Plan::LockRows(_)) || plan.inputs().into_iter().any(contains)
    }
    let below = plan.inputs().into_iter().position(contains);
    match below {
        Some(at) => plan.inputs_mut().into_iter().nth(at).and_then(innermost),
        None => matches!(plan, Plan::LockRows(_)).then_some(plan),
    }
}

pub(super) struct Locker<'a> {
    pub step: &'a LockRows,
    /// Has what the step's plan refers to.
    pub query: &'a Query,
    pub means: &'a Means,
    /// `None`: second looks take a plan.
    second_look: Kept<Option<SecondLook>>,
}

/// What became of a row.
enum Fate {
    /// As it was found.
    Stays,
    /// The result's row as it is now.
    Changed(Vec<Datum>),
    Goes,
}

impl<'a> Locker<'a> {
    pub fn new(step: &'a LockRows, query: &'a Query, means: &'a Means) -> Locker<'a> {
        Locker { step, query, means, second_look: Kept::default() }
    }

    async fn run(&self, txn: &mut Txn) -> Result<HeldRows> {
        self.refuse_outer_columns()?;
        let (offset, wanted) = self.counts()?;
        let memory = self.means.runtime.reservation("locked rows");
        let mut taken = Taken::new(&self.step.columns, offset, wanted, memory);
        let mut found_max = self.found_at_first(wanted);
        let mut seen: AHashMap<Vec<u8>, u64> = AHashMap::new();
        loop {
            let mut found = 0;
            // Found again by a longer look: locked already, or passed over.
            let mut again = seen.clone();
            let mut stream = self.means.run(txn, self.query(found_max));
            let mut pace = Pace::default();
            while let Some(batch) = stream.next().await? {
                found += batch.num_rows() as u64;
                for row in 0..batch.num_rows() {
                    if taken.is_enough() {
                        break;
                    }
                    if found_max.is_some() {
                        let identity = self.identity(&batch, row)?;
                        if let Some(count) = again.get_mut(&identity).filter(|count| **count > 0) {
                            *count -= 1;
                            continue;
                        }
                        taken.reserve_entry(identity.len())?;
                        *seen.entry(identity).or_default() += 1;
                    }
                    match self.lock(txn, &batch, row).await? {
                        Fate::Stays => taken.push(row),
                        Fate::Changed(values) => taken.push_changed(values),
                        Fate::Goes => {}
                    }
                    pace.step().await;
                }
                taken.end_batch(&batch)?;
                if taken.is_enough() {
                    break;
                }
            }
            match found_max {
                Some(max) if found >= max && !taken.is_enough() => found_max = Some(max.saturating_mul(ROWS_GROWTH)),
                _ => break,
            }
        }
        Ok(taken.finish())
    }

    /// What is passed over, and how many rows are wanted with those.
    fn counts(&self) -> Result<(u64, Option<u64>)> {
        let limit = self.count(self.step.limit.as_ref(), LIMIT)?;
        let offset = self.count(self.step.offset.as_ref(), OFFSET)?.unwrap_or(0);
        Ok((offset, limit.map(|limit| limit.saturating_add(offset))))
    }

    /// What [`Locker::run`] begins with.
    fn first_query(&self) -> Result<Arc<Query>> {
        let (_, wanted) = self.counts()?;
        Ok(self.query(self.found_at_first(wanted)))
    }

    fn found_at_first(&self, wanted: Option<u64>) -> Option<u64> {
        let skips = self.step.targets.iter().any(|target| target.on_locked == OnLocked::Skip);
        let spare = if skips { ROWS_SPARE_SKIPPING } else { ROWS_SPARE };
        wanted.map(|wanted| wanted.saturating_add(spare))
    }

    fn refuse_outer_columns(&self) -> Result<()> {
        let mut own = AHashSet::new();
        crate::lower::defined(&self.step.input, &mut own);
        let mut outer = false;
        self.step.input.clone().rewrite_exprs(&mut |node| {
            if let Expr::Hole { id, .. } = &node {
                outer |= !own.contains(id) && !self.query.subqueries.contains_key(id);
            }
            node
        });
        match outer {
            true => Err(SqlError::not_supported("locking rows in a correlated subquery is not supported yet")),
            false => Ok(()),
        }
    }

    fn count(&self, expr: Option<&Expr>, place: CountPlace) -> Result<Option<u64>> {
        let Some(expr) = expr else { return Ok(None) };
        if expr.any(&mut |node| matches!(node, Expr::Hole { .. })) {
            return Err(SqlError::not_supported("subqueries in LIMIT and OFFSET are not supported yet"));
        }
        row_count(&expr.eval_scalar(&[], &self.means.eval)?, place)
    }

    fn query(&self, rows_max: Option<u64>) -> Arc<Query> {
        let make = || found_query(self.step, self.query, rows_max);
        match self.step.first.get_or_make(|| (rows_max, make())) {
            (known, query) if *known == rows_max => query.clone(),
            _ => make(),
        }
    }

    /// Tablet, key and stamp of the row of a target.
    fn place<'b>(&self, batch: &'b RecordBatch, row: usize, target: usize) -> Result<(TabletId, &'b [u8], Stamp)> {
        let malformed = || SqlError::internal("a row to lock has no identity");
        let first = self.step.columns.len() + 3 * target;
        let number = |at: usize| {
            let column = batch.column(at).as_primitive_opt::<Int64Type>().ok_or_else(malformed)?;
            Ok::<i64, SqlError>(column.value(row))
        };
        let tablet = u32::try_from(number(first)?).map(TabletId).map_err(|_| malformed())?;
        let keys = batch.column(first + 1).as_binary_view_opt().ok_or_else(malformed)?;
        Ok((tablet, keys.value(row), Stamp::from_raw(number(first + 2)? as u64)))
    }

    /// Names the combination of locked rows that a result row is made of, and the others' values.
    fn identity(&self, batch: &RecordBatch, row: usize) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(32);
        for target in 0..self.step.targets.len() {
            let (tablet, key, _) = self.place(batch, row, target)?;
            out.extend_from_slice(&tablet.0.to_be_bytes());
            out.extend_from_slice(&key.len().to_be_bytes());
            out.extend_from_slice(key);
        }
        let first_kept = self.step.columns.len() + 3 * self.step.targets.len();
        for ((_, ty), column) in self.step.kept.iter().zip(&batch.columns()[first_kept..]) {
            basalt_types::row::put_datum(&value_at(ty, column.as_ref(), row), &mut out);
        }
        Ok(out)
    }

    async fn lock(&self, txn: &mut Txn, batch: &RecordBatch, row: usize) -> Result<Fate> {
        let mut current = Vec::with_capacity(self.step.targets.len());
        let mut changed = false;
        for (index, target) in self.step.targets.iter().enumerate() {
            let (tablet, key, stamp) = self.place(batch, row, index)?;
            let found = lock_row(txn, target, tablet, &Key::from(key), Some(stamp), self.means.wait).await?;
            let Some(found) = found else { return Ok(Fate::Goes) };
            changed |= found.stamp != stamp;
            current.push(found);
        }
        if !changed {
            return Ok(Fate::Stays);
        }
        // One of them is another row now: the rest is needed too.
        for (index, target) in self.step.targets.iter().enumerate() {
            if current[index].values.is_empty() {
                let (tablet, key, _) = self.place(batch, row, index)?;
                let found = lock_row(txn, target, tablet, &Key::from(key), None, self.means.wait).await?;
                let Some(found) = found else { return Ok(Fate::Goes) };
                current[index] = found;
            }
        }
        let first_kept = self.step.columns.len() + 3 * self.step.targets.len();
        let kept = self.step.kept.iter().zip(&batch.columns()[first_kept..]);
        let mut values: AHashMap<ColId, Datum> =
            kept.map(|((id, ty), column)| (*id, value_at(ty, column.as_ref(), row))).collect();
        for (index, (target, current)) in self.step.targets.iter().zip(&current).enumerate() {
            let (tablet, key, _) = self.place(batch, row, index)?;
            values.insert(target.identity[0], Datum::I64(i64::from(tablet.0)));
            values.insert(target.identity[1], Datum::Bytes(key.into()));
            let new = target.columns.iter().map(|(id, column)| (*id, current.values[column.position()].clone()));
            values.extend(new);
        }
        Ok(self.look(txn, values).await?.map_or(Fate::Goes, Fate::Changed))
    }

    /// The result's row over single rows of the relations, if there is one.
    pub async fn look(&self, txn: &Txn, values: AHashMap<ColId, Datum>) -> Result<Option<Vec<Datum>>> {
        match self.second_look.get_or_make(|| SecondLook::of(self.step)) {
            Some(look) => look.row(values, &self.means.eval),
            None => self.look_again(txn, &values).await,
        }
    }

    /// Runs the query over the given row alone.
    async fn look_again(&self, txn: &Txn, values: &AHashMap<ColId, Datum>) -> Result<Option<Vec<Datum>>> {
        let mut plan = self.step.input.clone();
        self.put_row(&mut plan, values)?;
        let query = query_of(self.query, plan, self.step.columns.iter().cloned());
        let mut stream = self.means.run(txn, query);
        while let Some(batch) = stream.next().await? {
            if batch.num_rows() > 0 {
                let columns = self.step.columns.iter().zip(batch.columns());
                return Ok(Some(columns.map(|((_, ty), column)| value_at(ty, column.as_ref(), 0)).collect()));
            }
        }
        Ok(None)
    }

    /// Puts one row in the place of every relation. One that an outer join had filled with nulls stays empty.
    fn put_row(&self, plan: &mut Plan, values: &AHashMap<ColId, Datum>) -> Result<()> {
        let value = |id: &ColId| values.get(id).unwrap_or(&Datum::Null);
        if let Some(id) = self.step.presence_of(plan) {
            *plan = one_row(plan, values, usize::from(*value(&id) == Datum::Bool(true)))?;
            return Ok(());
        }
        match plan {
            Plan::Project { input, .. } | Plan::Filter { input, .. } | Plan::Sort { input, .. } => {
                self.put_row(input, values)?;
            }
            Plan::Limit { input, .. } => {
                let mut input = std::mem::replace(&mut **input, Plan::Unit);
                self.put_row(&mut input, values)?;
                *plan = input;
            }
            Plan::Join { left, right, .. } => {
                self.put_row(left, values)?;
                self.put_row(right, values)?;
            }
            leaf => *leaf = one_row(leaf, values, 1)?,
        }
        Ok(())
    }
}

/// What a lock step asks for; at most so many rows.
pub(crate) fn found_query(step: &LockRows, query: &Query, rows_max: Option<u64>) -> Arc<Query> {
    let mut plan = step.input.clone();
    if let Some(rows_max) = rows_max.and_then(|rows| i64::try_from(rows).ok()) {
        plan = Plan::Limit { input: Box::new(plan), limit: Some(Expr::int8(rows_max)), offset: None, ties: false };
    }
    query_of(query, plan, step.found_columns())
}

/// A plan within a query, with these outputs.
pub(super) fn query_of(query: &Query, plan: Plan, columns: impl Iterator<Item = (ColId, DataType)>) -> Arc<Query> {
    let columns = columns.map(|(id, ty)| OutputColumn::computed(id, ty)).collect();
    Arc::new(Query { plan, columns, tables: Vec::new(), row_locks: Vec::new(), ..query.clone() })
}

/// Locks the row behind a key as a target says. `None`: it is gone, or locked and to be skipped. With the stamp
/// `seen` it comes without values.
pub(crate) async fn lock_row(
    txn: &mut Txn,
    target: &LockTarget,
    tablet: TabletId,
    key: &Key,
    seen: Option<Stamp>,
    wait: WaitPolicy,
) -> Result<Option<CurrentRow>> {
    let wait = match target.on_locked {
        OnLocked::Wait => wait,
        OnLocked::Skip => WaitPolicy::Skip,
        OnLocked::Fail => WaitPolicy::Fail,
    };
    match txn.lock_seen_row(&target.table, tablet, key, seen, target.strength, wait).await {
        Ok(locked) => Ok(locked.row()),
        Err(basalt_engine::Error::LockNotAvailable(_)) => {
            let message = format!("could not obtain lock on row in relation \"{}\"", target.table.name);
            Err(SqlError::new("55P03", message))
        }
        Err(error) => Err(error.into()),
    }
}

/// A relation's columns with the values of one row, or with no row.
fn one_row(relation: &Plan, values: &AHashMap<ColId, Datum>, rows: usize) -> Result<Plan> {
    let columns = relation.columns();
    let value = |id: &ColId| values.get(id).unwrap_or(&Datum::Null);
    let arrays = columns.iter().map(|(id, ty)| from_values(ty, std::iter::once(value(id)).take(rows), rows));
    let batch = record_batch(arrays.collect::<basalt_expr::Result<Vec<_>>>()?, rows)?;
    Ok(Plan::Rows { columns, rows: HeldRows { batches: vec![batch], memory: None } })
}
