//! Commands that change rows, alone or together in one statement (WITH).

use super::rows::{Returned, Written};
use super::touched::Touched;
use super::{insert, modify};
use crate::bind::{Bound, BoundWith, Write};
use crate::error::{Result, SqlError};
use crate::plan::{HeldRows, Query};
use crate::session::Session;
use crate::session::outcome::{Outcome, RowStream};
use crate::session::prepared::result_columns;
use arrow_array::RecordBatch;
use basalt_expr::EvalContext;
use std::sync::Arc;

/// Runs one command; `touched` if others belong to its statement.
pub(crate) async fn run(
    session: &mut Session,
    write: &Write,
    eval: &Arc<EvalContext>,
    touched: Option<Arc<Touched>>,
) -> Result<Written> {
    match write {
        Write::Insert(plan) => insert::run(session, plan, eval, touched).await,
        Write::Update(plan) | Write::Delete(plan) | Write::Merge(plan) => {
            modify::run(session, plan, eval, touched).await
        }
        Write::Read(_) => Err(SqlError::internal("a query is run as a command")),
    }
}

/// Runs the commands of WITH, each to its end, and the main one with their rows.
pub(crate) async fn run_with(session: &mut Session, with: &BoundWith, eval: &Arc<EvalContext>) -> Result<Outcome> {
    let mut running = RunningWith { with, eval, touched: Arc::default(), given: vec![None; with.writes.len()] };
    let (before, after) = with.order();
    running.run(session, &before).await?;
    match &with.main {
        Bound::Query(query) => {
            running.run(session, &after).await?;
            let columns = result_columns(&query.columns);
            let rows = super::lock_rows::rows(session, &query.with_given(&running.given), eval).await?;
            Ok(Outcome::Rows(RowStream::new(columns, rows, "SELECT")))
        }
        Bound::Write(write) => {
            let main = write.with_given(&running.given);
            let written = run(session, &main, eval, Some(running.touched.clone())).await?;
            running.run(session, &after).await?;
            written.outcome(&with.main, write.tag())
        }
        Bound::With(_) => Err(SqlError::internal("WITH in WITH")),
    }
}

async fn read(session: &mut Session, query: &Arc<Query>, eval: &Arc<EvalContext>) -> Result<Vec<RecordBatch>> {
    let mut rows = super::lock_rows::rows(session, query, eval).await?;
    let mut batches = Vec::new();
    while let Some(batch) = rows.next(usize::MAX).await? {
        batches.push(batch);
    }
    Ok(batches)
}

struct RunningWith<'a> {
    with: &'a BoundWith,
    eval: &'a Arc<EvalContext>,
    touched: Arc<Touched>,
    /// What the commands gave so far, by slot.
    given: Vec<Option<HeldRows>>,
}

impl RunningWith<'_> {
    async fn run(&mut self, session: &mut Session, slots: &[usize]) -> Result<()> {
        for slot in slots {
            let write = self.with.writes[*slot].with_given(&self.given);
            let batches = match &write {
                Write::Read(query) => read(session, query, self.eval).await?,
                write => {
                    let written = run(session, write, self.eval, Some(self.touched.clone())).await?;
                    written.returning.map_or_else(|| Ok(Vec::new()), Returned::into_batches)?
                }
            };
            self.given[*slot] = Some(HeldRows { batches, memory: None });
        }
        Ok(())
    }
}
