//! A SELECT that reaches few rows, by the row engine.

use super::rows::RowsBuilder;
use crate::error::Result;
use crate::plan::Query;
use crate::row::{Ran, RowOut, RowPlan, RowRun, Scratch};
use crate::session::Session;
use arrow_array::RecordBatch;
use basalt_engine::Txn;
use basalt_expr::EvalContext;
use basalt_types::DataType;

/// `None`: it has no such plan, or takes too much.
pub(crate) fn run(session: &mut Session, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    if std::mem::take(&mut session.took_too_much) {
        return Ok(None);
    }
    batches(session.txn()?, query, eval)
}

/// Runs one after the other, each further on than the one before because of what that has read.
const RUNS_MAX: usize = 4;
/// Rows that are locked or changed on the thread that found them, which serves others, too.
const FEW_ROWS: usize = 128;

/// The same of a query within a statement, if it gives few rows.
pub(crate) fn few(txn: &Txn, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    let is_few = |batches: &Vec<RecordBatch>| batches.iter().map(RecordBatch::num_rows).sum::<usize>() <= FEW_ROWS;
    Ok(batches(txn, query, eval)?.filter(is_few))
}

/// The same of a query within a statement.
pub(crate) fn batches(txn: &Txn, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    let plan = query.row.get_or_make(|| RowPlan::of_more(query, eval));
    let Some(plan) = plan.as_ref().filter(|plan| plan.is_promising()) else { return Ok(None) };
    if plan.indexed && !txn.sees_indexes(&txn.catalog()) {
        return Ok(None);
    }
    let read = txn.read();
    let types: Vec<DataType> = query.columns.iter().map(|column| column.ty.clone()).collect();
    for _ in 0..RUNS_MAX {
        let mut rows = RowsBuilder::new(types.clone())?;
        let run = RowRun { engine: read.engine(), reading: read.reading(), eval, scratch: &mut Scratch::default() };
        match plan.run(run, &mut RowOut::Batches(&mut rows))? {
            Ran::Done(_) => return rows.finish().map(Some),
            Ran::Again => {}
            Ran::TooMuch | Ran::TooSlow { .. } => break,
        }
    }
    Ok(None)
}
