//! A SELECT that reaches few rows, by the row engine.

use super::rows::RowsBuilder;
use crate::error::Result;
use crate::plan::Query;
use crate::row::{RowOut, RowPlan, RowRun, Scratch, Tried};
use crate::session::Session;
use arrow_array::RecordBatch;
use basalt_engine::Txn;
use basalt_expr::EvalContext;

/// Tries of a plan whose rows are not in memory, each further on than the one before because of what that has read.
const TRIES_MAX: usize = 8;

/// `None`: it has no such plan, or takes too much.
pub(crate) async fn run(session: &mut Session, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    if std::mem::take(&mut session.took_too_much) {
        return Ok(None);
    }
    for _ in 0..TRIES_MAX {
        match attempt(session.txn()?, query, eval)? {
            Tried::Done(batches) => return Ok(Some(batches)),
            Tried::TooMuch => return Ok(None),
            // Others are served meanwhile, and who waits for the statement may end it.
            Tried::Cold => tokio::task::yield_now().await,
        }
    }
    if let Some(plan) = query.row.get().and_then(Option::as_ref) {
        plan.stays_cold();
    }
    Ok(None)
}

/// Rows that are locked or changed on the thread that found them, which serves others, too.
const FEW_ROWS: usize = 128;

/// The same of a query within a statement, if it gives few rows.
pub(crate) fn few(txn: &Txn, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    let is_few = |batches: &Vec<RecordBatch>| batches.iter().map(RecordBatch::num_rows).sum::<usize>() <= FEW_ROWS;
    Ok(batches(txn, query, eval)?.filter(is_few))
}

/// The same of a query within a statement.
pub(crate) fn batches(txn: &Txn, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    Ok(match attempt(txn, query, eval)? {
        Tried::Done(batches) => Some(batches),
        Tried::Cold | Tried::TooMuch => None,
    })
}

fn attempt(txn: &Txn, query: &Query, eval: &EvalContext) -> Result<Tried<Vec<RecordBatch>>> {
    let plan = query.row.get_or_make(|| RowPlan::of_more(query, eval));
    let Some(plan) = plan.as_ref().filter(|plan| plan.is_promising()) else { return Ok(Tried::TooMuch) };
    if plan.indexed && !txn.sees_indexes(&txn.catalog()) {
        return Ok(Tried::TooMuch);
    }
    let read = txn.read();
    let types = query.columns.iter().map(|column| column.ty.clone()).collect();
    let mut rows = RowsBuilder::new(types)?;
    let run = RowRun { engine: read.engine(), reading: read.reading(), eval, scratch: &mut Scratch::default() };
    match plan.run(run, &mut RowOut::Batches(&mut rows))? {
        Tried::Done(_) => rows.finish().map(Tried::Done),
        Tried::Cold => Ok(Tried::Cold),
        Tried::TooMuch => Ok(Tried::TooMuch),
    }
}
