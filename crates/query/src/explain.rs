//! EXPLAIN: which engine runs what, over which access paths.

use crate::error::{Result, SqlError};
use crate::lower::GATE;
use crate::plan::Query;
use crate::run::{QueryRuntime, RunContext};
use basalt_expr::resolve::decimal::TOO_WIDE;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use std::fmt;
use std::sync::Arc;

pub(crate) async fn explain(
    runtime: &Arc<QueryRuntime>,
    query: &Query,
    ctx: &RunContext,
    analyze: bool,
) -> Result<Vec<String>> {
    let mut plan = runtime.prepare(query, ctx, true).await?;
    let mut rows = 0;
    if analyze {
        let collect = |plan| datafusion::physical_plan::collect(plan, runtime.state().task_ctx());
        let mut batches = collect(plan.clone()).await.map_err(SqlError::from);
        if batches.as_ref().is_err_and(|error| error.sqlstate == TOO_WIDE) {
            plan = runtime.prepare(query, ctx, false).await?;
            batches = collect(plan.clone()).await.map_err(SqlError::from);
        }
        rows = batches?.iter().map(arrow_array::RecordBatch::num_rows).sum();
    }
    let mut lines = Vec::new();
    describe(&plan, 0, analyze, &mut lines);
    if analyze {
        lines.push(format!("Rows: {rows}"));
    }
    Ok(lines)
}

/// One line per operator that does work; what only moves batches between threads is left out.
fn describe(plan: &Arc<dyn ExecutionPlan>, depth: usize, analyze: bool, lines: &mut Vec<String>) {
    let moves = matches!(
        plan.name(),
        "CoalesceBatchesExec" | "CoalescePartitionsExec" | "RepartitionExec" | "CooperativeExec" | "ProjectionExec"
    ) || plan.name() == GATE;
    let mut below = depth;
    if !moves {
        let indent = match depth {
            0 => String::new(),
            depth => format!("{}->  ", "      ".repeat(depth - 1)),
        };
        let line = Line(plan).to_string();
        let shown = match plan.name() {
            "Column Scan" => line,
            name => format!("Fallback: {}{}", name.trim_end_matches("Exec"), details(&line)),
        };
        let mut text = format!("{indent}{shown}");
        if analyze && let Some(metrics) = plan.metrics() {
            let rows = metrics.output_rows().unwrap_or(0);
            let millis = metrics.elapsed_compute().unwrap_or(0) as f64 / 1e6;
            text.push_str(&format!("  (actual rows={rows} time={millis:.3} ms)"));
        }
        lines.push(text);
        below += 1;
    }
    for child in plan.children() {
        describe(child, below, analyze, lines);
    }
}

/// What follows the operator's name in DataFusion's own line.
fn details(line: &str) -> String {
    match line.split_once(':') {
        Some((_, details)) => format!(" ({})", details.trim()),
        None => String::new(),
    }
}

struct Line<'a>(&'a Arc<dyn ExecutionPlan>);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt_as(DisplayFormatType::Default, f)
    }
}
