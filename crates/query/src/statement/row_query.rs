//! A SELECT that reaches few rows, by the row engine.

use super::rows::RowsBuilder;
use crate::error::Result;
use crate::plan::Query;
use crate::row::{RowOut, RowPlan, RowRun, Scratch};
use crate::session::Session;
use arrow_array::RecordBatch;
use basalt_expr::EvalContext;

/// `None`: it has no such plan, or takes too much.
pub(crate) fn run(session: &mut Session, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    if std::mem::take(&mut session.took_too_much) {
        return Ok(None);
    }
    let Some(plan) = RowPlan::of_query(query, eval) else { return Ok(None) };
    let txn = session.txn()?;
    if plan.indexed && !txn.sees_indexes(&txn.catalog()) {
        return Ok(None);
    }
    let read = txn.read();
    let types = query.columns.iter().map(|column| column.ty.clone()).collect();
    let mut rows = RowsBuilder::new(types)?;
    let run = RowRun { engine: read.engine(), at: read.at(), eval, scratch: &mut Scratch::default() };
    match plan.run(run, &mut RowOut::Batches(&mut rows))? {
        Some(_) => rows.finish().map(Some),
        None => Ok(None),
    }
}
