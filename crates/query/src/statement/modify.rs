//! UPDATE, DELETE and MERGE. The one row of a primary key is changed at once; rows that have to be searched for, off
//! the connection's thread (`statement::search`).

use super::lock_rows::Means;
use super::row_path::RowPath;
use super::rows::{ReturningRows, Written};
use super::search;
use super::touched::Touched;
use crate::bind::{BoundModify, Point, PointChange, RowSource, Search, SearchKind};
use crate::database::Stats;
use crate::error::Result;
use crate::session::Session;
use crate::syntax::Isolation;
use basalt_engine::{RowLock, Txn, WaitPolicy};
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{Datum, TabletId};
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    plan: &Arc<BoundModify>,
    eval: &Arc<EvalContext>,
    touched: Option<Arc<Touched>>,
) -> Result<Written> {
    let catalog = session.txn()?.catalog();
    let path = RowPath::new(&plan.table, &plan.rules, &catalog, eval);
    check_constants(plan, eval)?;
    let written = match &plan.source {
        RowSource::Point(point) => {
            // What is locked is looked at again; other levels note what they have seen.
            let newest = session.block.isolation == Isolation::ReadCommitted;
            let means = match plan.returning.as_ref().is_some_and(|returning| returning.query.is_some()) {
                true => Some(Means::of(session, eval)?),
                false => None,
            };
            let wait = session.wait_policy();
            let mut returning = ReturningRows::new(&plan.returning, &plan.table, Vec::new())?;
            let txn = session.txn()?;
            let rows = change_point(txn, point, &path, newest, wait, &mut returning, touched.as_deref()).await?;
            Written { rows, returning: returning.finish(txn, means.as_ref()).await? }
        }
        RowSource::Search(search) => {
            if let Some(means) = few(session, plan, search, &path, eval)? {
                Box::pin(search::run(session.txn()?, &means, plan, search, &path, touched.as_deref())).await?
            } else {
                let means = Means::of(session, eval)?;
                let plan = plan.clone();
                let work = session.off_thread(move |txn| {
                    Box::pin(async move {
                        let RowSource::Search(search) = &plan.source else { unreachable!("matched above") };
                        search::run(txn, &means, &plan, search, &path, touched.as_deref()).await
                    })
                });
                work.await?
            }
        }
    };
    Stats::add(&session.db.stats().rows_written, written.rows);
    Ok(written)
}

/// Errors of constants that RETURNING names come before all rows, but behind those of what is set.
fn check_constants(plan: &BoundModify, eval: &EvalContext) -> Result<()> {
    let mut returned = plan.returning.iter().flat_map(|returning| &returning.exprs);
    let fault = match returned.try_for_each(|expr| expr.check_constants(eval)) {
        Err(fault) => Some(fault.into()),
        Ok(()) => plan.returning.iter().find_map(|returning| returning.query.as_ref()?.first_fault(eval)),
    };
    let Some(fault) = fault else { return Ok(()) };
    let set: Vec<&Expr> = match &plan.source {
        RowSource::Point(Point { change: PointChange::Update(set), .. }) => {
            set.iter().map(|(_, value)| value).collect()
        }
        RowSource::Search(search) if search.kind == SearchKind::Update => search.set_exprs(),
        _ => Vec::new(),
    };
    set.into_iter().try_for_each(|expr| expr.check_constants(eval))?;
    Err(fault)
}

/// The means of a search that finds few rows, which have been found: they are changed on the spot.
fn few(
    session: &mut Session,
    plan: &BoundModify,
    search: &Search,
    path: &RowPath,
    eval: &Arc<EvalContext>,
) -> Result<Option<Means>> {
    // It may read system tables.
    if plan.returning.as_ref().is_some_and(|returning| returning.query.is_some()) {
        return Ok(None);
    }
    let Some(found) = search::few(session.txn()?, plan, search, path, eval)? else { return Ok(None) };
    let mut means = Means::of_rows(session, eval)?;
    means.begin_with(found);
    Ok(Some(means))
}

/// The number of rows that were changed.
async fn change_point(
    txn: &mut Txn,
    point: &Point,
    path: &RowPath,
    newest: bool,
    wait: WaitPolicy,
    returning: &mut ReturningRows<'_>,
    touched: Option<&Touched>,
) -> Result<u64> {
    let table = &path.table;
    let Some(key) = point.access.key(table, &path.eval)? else { return Ok(0) };
    let lock = match &point.change {
        PointChange::Update(set) if !path.moves_key(set.iter().map(|(column, _)| *column)) => RowLock::NoKeyUpdate,
        _ => RowLock::Update,
    };
    let read = txn.read();
    let tablets: Vec<TabletId> = match read.tablet_of(table, &key) {
        Some(tablet) => vec![tablet],
        None => table.tablets().collect(),
    };
    let mut rows = 0;
    for tablet in tablets {
        // Whatever is made later is not this statement's, committed or not.
        let seen = match (&point.beside_key, newest && touched.is_none()) {
            (None, true) => read.engine().stamp_of(tablet, key.as_bytes(), read.reading().at)?,
            (None, false) => read.get_columns(table, tablet, &key, &[])?.map(|row| row.stamp),
            // Who does not match as it is seen is not waited for.
            (Some(columns), _) => match read.get_columns(table, tablet, &key, columns)? {
                Some(row) if point.filter.holds_as_planned(&row.values, &path.eval)? => Some(row.stamp),
                _ => None,
            },
        };
        let Some(seen) = seen else { continue };
        if touched.is_some_and(|touched| touched.contains(table, tablet, &key)) {
            continue;
        }
        let locked = txn.lock_known_row(table, tablet, &key, seen, lock, wait).await?;
        let Some(mut current) = locked.row() else { continue };
        // Of the row that was seen, all is known; of a key that is all that is asked for, the key.
        let is_known = match point.beside_key {
            Some(_) => current.stamp == seen,
            None => current.key == key,
        };
        if !is_known && !point.filter.holds_as_planned(&current.values, &path.eval)? {
            continue;
        }
        if let Some(touched) = touched {
            touched.insert(table, tablet, key.clone());
        }
        match &point.change {
            PointChange::Delete => {
                path.delete(txn, &current, &current.values).await?;
                returning.push(&current.values, &path.eval)?;
            }
            PointChange::Update(set) => {
                let values = set.iter().map(|(_, expr)| Ok(expr.eval_as_planned(&current.values, &path.eval)?));
                let values = values.collect::<Result<Vec<Datum>>>()?;
                // The values before are needed no more, unless something follows from them: which references changed.
                let matter = path.wants_old() || txn.wants_old(table) || !table.foreign_keys.is_empty();
                let mut row = match matter {
                    true => current.values.clone(),
                    false => std::mem::take(&mut current.values),
                };
                for ((column, _), value) in set.iter().zip(values) {
                    row[column.position()] = value;
                }
                path.complete(&mut row)?;
                path.update(txn, &current, &current.values, &row).await?;
                returning.push(&row, &path.eval)?;
            }
        }
        rows += 1;
    }
    if rows == 0 {
        // Errors of constants come even where there is no row.
        let values = match &point.change {
            PointChange::Update(set) => set.as_slice(),
            PointChange::Delete => &[],
        };
        let exprs = std::iter::once(&point.filter).chain(values.iter().map(|(_, value)| value));
        exprs.into_iter().try_for_each(|expr| expr.check_constants(&path.eval))?;
    }
    Ok(rows)
}
