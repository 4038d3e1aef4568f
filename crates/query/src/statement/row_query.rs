//! A SELECT that reaches few rows, by the row engine.

use super::rows::RowsBuilder;
use crate::error::Result;
use crate::plan::Query;
use crate::row::{RowOut, RowPlan, RowRun, Scratch};
use crate::session::Session;
use arrow_array::RecordBatch;
use basalt_expr::EvalContext;

/// `None`: it has no such plan, or reaches too many rows.
pub(crate) fn run(session: &mut Session, query: &Query, eval: &EvalContext) -> Result<Option<Vec<RecordBatch>>> {
    let Some(plan) = RowPlan::of_query(query, eval) else { return Ok(None) };
    let read = session.txn()?.read();
    let types = query.columns.iter().map(|column| column.ty.clone()).collect();
    let mut rows = RowsBuilder::new(types)?;
    let run = RowRun { engine: read.engine(), at: read.at(), eval, scratch: &mut Scratch::default() };
    match plan.run(run, &mut RowOut::Batches(&mut rows))? {
        Some(_) => rows.finish().map(Some),
        None => Ok(None),
    }
}
