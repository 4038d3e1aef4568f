//! UPDATE, DELETE and MERGE of rows that a plan finds: each is locked, looked at again if it changed meanwhile
//! (PostgreSQL manual 13.2.1; under REPEATABLE READ the engine answers 40001 instead), and changed. Where there are very
//! many, together ([`large`]).

mod large;

use self::large::Large;
use super::lock_rows::{Locker, Means, query_of};
use super::row_path::RowPath;
use super::row_query;
use super::rows::{ReturningRows, Written};
use super::touched::Touched;
use crate::bind::{Action, BoundModify, ReadySearch, Search, SearchKind};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, LockRows, OutputColumn, Plan, Query};
use crate::session::interrupt::Pace;
use ahash::AHashMap;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use basalt_engine::{CurrentRow, Inserted, RowLock, Txn};
use basalt_expr::EvalContext;
use basalt_expr::eval::vector::value_at;
use basalt_types::{Datum, Key, Stamp, TabletId};
use std::sync::Arc;

/// The rows of a search, if the row engine finds them and they are few.
pub(crate) fn few(
    txn: &Txn,
    modify: &BoundModify,
    search: &Search,
    path: &RowPath,
    eval: &EvalContext,
) -> Result<Option<Vec<RecordBatch>>> {
    if !search.query.row_locks.is_empty() {
        return Ok(None);
    }
    row_query::few(txn, &ready(search, modify, path).found, eval)
}

fn ready<'s>(search: &'s Search, modify: &BoundModify, path: &RowPath) -> &'s ReadySearch {
    search.ready.get_or_make(|| {
        let step = LockRows { input: search.query.plan.clone(), ..search.step.clone() };
        let found = found_query(search, &search.query, step.input.clone(), reads_old(search, modify, path));
        ReadySearch { step, found }
    })
}

fn reads_old(search: &Search, modify: &BoundModify, path: &RowPath) -> bool {
    search.kind != SearchKind::Delete || modify.returning.is_some() || path.wants_old()
}

/// What the step asks for, and the row as it is found.
fn found_query(search: &Search, query: &Query, plan: Plan, reads_old: bool) -> Arc<Query> {
    let table = &search.step.targets[0].table;
    let old = search.old.iter().filter(|_| reads_old);
    let old = old.map(|(id, column)| (*id, table.column(*column).ty.clone()));
    query_of(query, plan, search.step.found_columns().chain(old))
}

/// Runs one search to its end.
pub(crate) async fn run(
    txn: &mut Txn,
    means: &Means,
    modify: &BoundModify,
    search: &Search,
    path: &RowPath,
    touched: Option<&Touched>,
) -> Result<Written> {
    let of_locked;
    let (query, step, found) = match search.query.row_locks.is_empty() {
        true => {
            let ReadySearch { step, found } = ready(search, modify, path);
            (&search.query, step, found.clone())
        }
        false => {
            let query = means.lock(txn, search.query.clone()).await?;
            let step = LockRows { input: query.plan.clone(), ..search.step.clone() };
            of_locked = (query, step);
            let (query, step) = &of_locked;
            (query, step, found_query(search, query, step.input.clone(), reads_old(search, modify, path)))
        }
    };
    let own_touched = Touched::default();
    let touched = match (touched, search.repeats) {
        (Some(touched), _) => Some(touched),
        (None, true) => Some(&own_touched),
        (None, false) => None,
    };
    let locker = Locker::new(step, query, means);
    let extra = search.extra.iter().map(|index| step.columns[*index].1.clone()).collect();
    let returning = ReturningRows::new(&modify.returning, &modify.table, extra)?;
    let layout = Layout::new(search, reads_old(search, modify, path));
    let large = match touched {
        None => Large::of(txn, modify, search, path),
        Some(_) => None,
    };
    let pace = Pace::default();
    let mut changer = Changer { search, path, touched, locker, layout, returning, large, pace, rows: 0 };
    let mut stream = means.run(txn, found);
    while let Some(batch) = stream.next().await? {
        changer.block(txn, means, &batch).await?;
    }
    drop(stream);
    if let Some(large) = changer.large.take() {
        large.finish(txn, path).await?;
    }
    let rows = changer.rows;
    Ok(Written { rows, returning: changer.returning.finish(txn, Some(means)).await? })
}

/// Where things stand in the batches of a search: outputs, identity, kept columns, the row as it was found.
struct Layout {
    identity: usize,
    kept: usize,
    old: usize,
    reads_old: bool,
}

impl Layout {
    fn new(search: &Search, reads_old: bool) -> Layout {
        let identity = search.step.columns.len();
        let kept = identity + 3;
        Layout { identity, kept, old: kept + search.step.kept.len(), reads_old }
    }
}

struct Changer<'a> {
    search: &'a Search,
    path: &'a RowPath,
    touched: Option<&'a Touched>,
    locker: Locker<'a>,
    layout: Layout,
    returning: ReturningRows<'a>,
    large: Option<Large>,
    pace: Pace,
    rows: u64,
}

/// The outputs of one row of the search.
enum Outputs<'b> {
    Found(&'b RecordBatch, usize),
    Again(Vec<Datum>),
}

impl Changer<'_> {
    fn step(&self) -> &LockRows {
        self.locker.step
    }

    fn value(&self, outputs: &Outputs, index: usize) -> Datum {
        match outputs {
            Outputs::Found(batch, row) => value_at(&self.step().columns[index].1, batch.column(index).as_ref(), *row),
            Outputs::Again(values) => values[index].clone(),
        }
    }

    /// What is to be done with a row; `None`: nothing.
    fn action(&self, outputs: &Outputs) -> Option<&Action> {
        match self.search.choice {
            None => self.search.actions.first(),
            Some(index) => match self.value(outputs, index) {
                Datum::I32(number) => usize::try_from(number).ok().and_then(|number| self.search.actions.get(number)),
                _ => None,
            },
        }
    }

    /// Tablet, key and stamp; `None` where an outer join has no row of the target.
    fn identity(&self, batch: &RecordBatch, row: usize) -> Result<Option<(TabletId, Key, Stamp)>> {
        let malformed = || SqlError::internal("a search gives no row identities");
        let at = self.layout.identity;
        let tablets = batch.column(at).as_primitive_opt::<Int64Type>().ok_or_else(malformed)?;
        if tablets.is_null(row) {
            return Ok(None);
        }
        let tablet = u32::try_from(tablets.value(row)).map(TabletId).map_err(|_| malformed())?;
        let keys = batch.column(at + 1).as_binary_view_opt().ok_or_else(malformed)?;
        let stamps = batch.column(at + 2).as_primitive_opt::<Int64Type>().ok_or_else(malformed)?;
        Ok(Some((tablet, Key::from(keys.value(row)), Stamp::from_raw(stamps.value(row) as u64))))
    }

    /// The row as it was found, in column-id order.
    fn old(&self, batch: &RecordBatch, row: usize) -> Vec<Datum> {
        let table = &self.path.table;
        if !self.layout.reads_old {
            return Vec::new();
        }
        let mut values = vec![Datum::Null; table.columns.len()];
        for (at, (_, column)) in self.search.old.iter().enumerate() {
            let array = batch.column(self.layout.old + at);
            values[column.position()] = value_at(&table.column(*column).ty, array.as_ref(), row);
        }
        values
    }

    async fn row(&mut self, txn: &mut Txn, batch: &RecordBatch, row: usize) -> Result<()> {
        let found = Outputs::Found(batch, row);
        let Some(action) = self.action(&found).cloned() else { return Ok(()) };
        let Some((tablet, key, seen)) = self.identity(batch, row)? else {
            return self.missing(txn, &action, &found).await;
        };
        if let Some(touched) = self.touched
            && touched.contains(&self.path.table, tablet, &key)
        {
            return self.met_again();
        }
        let lock = self.strength(&action);
        let wait = self.locker.means.wait;
        let table = self.path.table.clone();
        let locked = txn.lock_seen_row(&table, tablet, &key, Some(seen), lock, wait).await?.row();
        let Some(mut current) = locked else {
            return match self.search.kind {
                SearchKind::Merge => self.gone(txn, batch, row).await,
                _ => Ok(()),
            };
        };
        if current.stamp == seen {
            self.touch(tablet, key);
            current.values = self.old(batch, row);
            return self.apply(txn, &action, current, &found).await;
        }
        if let Some(touched) = self.touched
            && current.stamp != seen
            && touched.contains(&table, current.tablet, &current.key)
            && self.identity(batch, row)?.is_some_and(|(_, key, _)| key != current.key)
        {
            return self.met_again();
        }
        if current.values.is_empty() {
            let (tablet, key) = (current.tablet, current.key.clone());
            let Some(whole) = txn.lock_row(&table, tablet, &key, lock, wait).await?.row() else { return Ok(()) };
            current = whole;
        }
        let values = self.values(batch, row, Some(&current));
        let Some(outputs) = self.locker.look(txn, values).await? else { return Ok(()) };
        let again = Outputs::Again(outputs);
        match self.action(&again).cloned() {
            Some(Action::Insert(columns)) => self.insert(txn, &columns, &again).await,
            Some(action) => {
                self.touch(tablet, key);
                // What is chosen now may take a stronger lock.
                if self.strength(&action) > lock {
                    let strength = self.strength(&action);
                    let (tablet, key) = (current.tablet, current.key.clone());
                    let Some(whole) = txn.lock_row(&table, tablet, &key, strength, wait).await?.row() else {
                        return Ok(());
                    };
                    current = whole;
                }
                self.apply(txn, &action, current, &again).await
            }
            None => Ok(()),
        }
    }

    fn met_again(&self) -> Result<()> {
        match self.search.kind {
            SearchKind::Merge => Err(SqlError::new("21000", "MERGE command cannot affect row a second time")
                .with_hint("Ensure that not more than one source row matches any one target row.")),
            _ => Ok(()),
        }
    }

    fn touch(&self, tablet: TabletId, key: Key) {
        if let Some(touched) = self.touched {
            touched.insert(&self.path.table, tablet, key);
        }
    }

    fn strength(&self, action: &Action) -> RowLock {
        match action {
            Action::Update(set) if !self.path.moves_key(set.iter().map(|(column, _)| *column)) => RowLock::NoKeyUpdate,
            _ => RowLock::Update,
        }
    }

    /// The values of all relations for a second look: the target's as they are now, the others' as they were.
    fn values(&self, batch: &RecordBatch, row: usize, current: Option<&CurrentRow>) -> AHashMap<ColId, Datum> {
        let step = self.step();
        let kept = step.kept.iter().enumerate();
        let kept = kept.map(|(at, (id, ty))| {
            let array = batch.column(self.layout.kept + at);
            (*id, value_at(ty, array.as_ref(), row))
        });
        let mut values: AHashMap<ColId, Datum> = kept.collect();
        for (id, column) in &step.targets[0].columns {
            let value = current.map_or(Datum::Null, |current| current.values[column.position()].clone());
            values.insert(*id, value);
        }
        if current.is_none()
            && let Some(presence) = self.search.present
        {
            values.insert(presence, Datum::Bool(false));
        }
        values
    }

    /// MERGE: the row was deleted meanwhile, so its source row has no match.
    async fn gone(&mut self, txn: &mut Txn, batch: &RecordBatch, row: usize) -> Result<()> {
        if self.search.present.is_none() {
            return Ok(());
        }
        let values = self.values(batch, row, None);
        let Some(outputs) = self.locker.look(txn, values).await? else { return Ok(()) };
        let again = Outputs::Again(outputs);
        match self.action(&again).cloned() {
            Some(action) => self.missing(txn, &action, &again).await,
            None => Ok(()),
        }
    }

    /// A row of MERGE's source without a match.
    async fn missing(&mut self, txn: &mut Txn, action: &Action, outputs: &Outputs<'_>) -> Result<()> {
        match action {
            Action::Insert(columns) => self.insert(txn, columns, outputs).await,
            Action::Update(_) | Action::Delete => Err(SqlError::internal("a row that is not there is to be changed")),
        }
    }

    async fn insert(&mut self, txn: &mut Txn, columns: &[usize], outputs: &Outputs<'_>) -> Result<()> {
        let mut row: Vec<Datum> = columns.iter().map(|index| self.value(outputs, *index)).collect();
        self.path.complete(&mut row)?;
        match self.path.insert(txn, &row).await? {
            Inserted::Done => {
                self.rows += 1;
                Ok(())
            }
            Inserted::Duplicate { index, .. } => Err(self.path.duplicate(txn, index, &row)),
        }
    }

    async fn apply(
        &mut self,
        txn: &mut Txn,
        action: &Action,
        current: CurrentRow,
        outputs: &Outputs<'_>,
    ) -> Result<()> {
        let mut row = match action {
            Action::Insert(_) => return Err(SqlError::internal("a row that is there is to be inserted")),
            Action::Delete => {
                self.path.delete(txn, &current, &current.values).await?;
                current.values
            }
            Action::Update(set) => {
                let mut row = current.values.clone();
                for (column, index) in set {
                    row[column.position()] = self.value(outputs, *index);
                }
                self.path.complete(&mut row)?;
                self.path.update(txn, &current, &current.values, &row).await?;
                row
            }
        };
        self.rows += 1;
        if !self.returning.is_some() {
            return Ok(());
        }
        row.extend(self.search.extra.iter().map(|index| self.value(outputs, *index)));
        self.returning.push(&row, &self.path.eval)
    }
}

/// The plan of a search, for EXPLAIN.
pub(crate) fn explained(search: &Search) -> Arc<Query> {
    let columns = search.step.columns.iter().map(|(id, ty)| OutputColumn::computed(*id, ty.clone())).collect();
    Arc::new(Query { columns, ..search.query.clone() })
}
