//! EXPLAIN: which engine runs what, over which access paths, and why the fallback does what the column engine does not.

pub mod document;
mod fallback;
mod pipelines;
mod step;
pub(crate) mod words;

pub use step::{Fact, Shown, Step};

use crate::column::noted_pipelines;
use crate::error::{Result, SqlError};
use crate::lower::begin;
use crate::plan::Query;
use crate::run::{QueryRuntime, RunContext};
use basalt_expr::resolve::decimal::TOO_WIDE;
use datafusion::physical_plan::common::collect;
use std::sync::Arc;

/// The plan of a query, and with `analyze` what it did and how many rows it gave.
pub(crate) async fn explain(
    runtime: &Arc<QueryRuntime>,
    query: &Query,
    ctx: &RunContext,
    analyze: bool,
) -> Result<(Vec<Step>, usize)> {
    let clock = ctx.system.db.os().clock.clone();
    let began = clock.monotonic();
    let planned = noted_pipelines(query, ctx);
    let planned = planned.map(|(pipelines, notes)| (runtime.column_execution(&pipelines, ctx), notes));
    ctx.stats.add_planning(clock.monotonic().saturating_sub(began));
    let refusal = match planned {
        Err(refusal) => refusal,
        Ok((mut execution, notes)) => {
            ctx.stats.ran_on(true);
            let ran = if analyze { runtime.analyze_columns(&mut execution, &ctx.turns).await? } else { Ok(0) };
            ctx.stats.add_bytes_read(execution.bytes_read());
            ctx.stats.add_bytes_spilled(execution.spilled_bytes());
            match ran {
                Ok(rows) => return Ok((vec![pipelines::of_execution(&execution, &notes, analyze)], rows)),
                Err(refusal) => refusal,
            }
        }
    };
    ctx.stats.ran_on(false);
    let began = clock.monotonic();
    let mut plan = runtime.prepare(query, ctx, true).await?;
    ctx.stats.add_planning(clock.monotonic().saturating_sub(began));
    let mut rows = 0;
    if analyze {
        let all = async |plan| collect(begin(plan, runtime, ctx).await?).await;
        let mut batches = all(plan.clone()).await.map_err(SqlError::from);
        if batches.as_ref().is_err_and(|error| error.sqlstate == TOO_WIDE) {
            plan = runtime.prepare(query, ctx, false).await?;
            batches = all(plan.clone()).await.map_err(SqlError::from);
        }
        rows = batches?.iter().map(arrow_array::RecordBatch::num_rows).sum();
    }
    let mut steps = fallback::steps(&plan, analyze);
    if let Some(first) = steps.first_mut() {
        first.facts.push(("Fallback Because Of", Fact::Text(refusal.into_owned())));
    }
    Ok((steps, rows))
}
