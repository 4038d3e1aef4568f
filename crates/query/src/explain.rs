//! EXPLAIN: which engine runs what, over which access paths.

use crate::column::{self, column_plan};
use crate::error::{Result, SqlError};
use crate::lower::{BARE_ROWS, FENCE, GATE, IN_ORDER, WHOLE};
use crate::plan::Query;
use crate::run::{QueryRuntime, RunContext};
use basalt_expr::resolve::decimal::TOO_WIDE;
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use std::fmt;
use std::sync::Arc;

/// Operators of Basalt's own beside the column scan; the others are the fallback's.
const OWN: [&str; 7] = ["Apply", "CTE Scan", "Working Table", "Recursive Union", "ProjectSet", "SingleRows", "Append"];

/// A step of a plan: what it is, what it did, and what it reads.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Step {
    pub what: String,
    /// Rows that it gave, where it has run.
    pub rows: Option<usize>,
    pub millis: Option<f64>,
    pub inputs: Vec<Step>,
}

impl Step {
    pub fn new(what: impl Into<String>) -> Step {
        Step { what: what.into(), ..Step::default() }
    }

    /// Text as PostgreSQL's plans are indented.
    pub fn lines(&self, timing: bool, out: &mut Vec<String>) {
        self.lines_at(0, timing, out);
    }

    fn lines_at(&self, depth: usize, timing: bool, out: &mut Vec<String>) {
        let indent = match depth {
            0 => String::new(),
            depth => format!("{}  ->  ", "      ".repeat(depth - 1)),
        };
        let did = match (self.rows, self.millis.filter(|_| timing)) {
            (Some(rows), Some(millis)) => format!("  (actual rows={rows} time={millis:.3} ms)"),
            (Some(rows), None) => format!("  (actual rows={rows})"),
            (None, _) => String::new(),
        };
        out.push(format!("{indent}{}{did}", self.what));
        self.inputs.iter().for_each(|input| input.lines_at(depth + 1, timing, out));
    }

    /// The same as a JSON object, so many spaces in.
    pub fn json(&self, indent: usize, timing: bool) -> String {
        let pad = " ".repeat(indent);
        let mut fields = vec![format!("{pad}  \"Node Type\": {}", quoted(&self.what))];
        if let Some(rows) = self.rows {
            fields.push(format!("{pad}  \"Actual Rows\": {rows}"));
        }
        if let Some(millis) = self.millis.filter(|_| timing) {
            fields.push(format!("{pad}  \"Actual Total Time\": {millis:.3}"));
        }
        if !self.inputs.is_empty() {
            let inputs = self.inputs.iter().map(|input| format!("{pad}    {}", input.json(indent + 4, timing)));
            let inputs = inputs.collect::<Vec<_>>().join(",\n");
            fields.push(format!("{pad}  \"Plans\": [\n{inputs}\n{pad}  ]"));
        }
        format!("{{\n{}\n{pad}}}", fields.join(",\n"))
    }
}

impl Step {
    /// As XML, so many spaces in, as PostgreSQL names its elements.
    pub fn xml(&self, indent: usize, timing: bool, out: &mut String) {
        let pad = " ".repeat(indent);
        out.push_str(&format!("{pad}<Plan>\n{pad}  <Node-Type>{}</Node-Type>\n", escaped(&self.what)));
        if let Some(rows) = self.rows {
            out.push_str(&format!("{pad}  <Actual-Rows>{rows}</Actual-Rows>\n"));
        }
        if let Some(millis) = self.millis.filter(|_| timing) {
            out.push_str(&format!("{pad}  <Actual-Total-Time>{millis:.3}</Actual-Total-Time>\n"));
        }
        if !self.inputs.is_empty() {
            out.push_str(&format!("{pad}  <Plans>\n"));
            self.inputs.iter().for_each(|input| input.xml(indent + 4, timing, out));
            out.push_str(&format!("{pad}  </Plans>\n"));
        }
        out.push_str(&format!("{pad}</Plan>\n"));
    }

    /// As YAML, so many spaces in.
    pub fn yaml(&self, indent: usize, timing: bool, out: &mut String) {
        let pad = " ".repeat(indent);
        out.push_str(&format!("{pad}Node Type: {}\n", quoted(&self.what)));
        if let Some(rows) = self.rows {
            out.push_str(&format!("{pad}Actual Rows: {rows}\n"));
        }
        if let Some(millis) = self.millis.filter(|_| timing) {
            out.push_str(&format!("{pad}Actual Total Time: {millis:.3}\n"));
        }
        if !self.inputs.is_empty() {
            out.push_str(&format!("{pad}Plans: \n"));
        }
        for input in &self.inputs {
            let mut nested = String::new();
            input.yaml(indent + 4, timing, &mut nested);
            // The first line stands behind the list's dash.
            out.push_str(&format!("{pad}  - {}", &nested[indent + 4..]));
        }
    }
}

/// Text between tags of XML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A JSON string.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if (c as u32) < 0x20 => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The plan of a query, and with `analyze` what it did and how many rows it gave.
pub(crate) async fn explain(
    runtime: &Arc<QueryRuntime>,
    query: &Query,
    ctx: &RunContext,
    analyze: bool,
) -> Result<(Vec<Step>, usize)> {
    if let Some(plan) = column_plan(query, ctx)
        && let Some(mut execution) = runtime.column_execution(&plan, ctx)
    {
        let rows = if analyze { runtime.analyze_columns(&mut execution).await? } else { Some(0) };
        if let Some(rows) = rows {
            return Ok((column::steps(&execution), rows));
        }
    }
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
    Ok((steps(&plan, analyze), rows))
}

/// One step per operator that does work; what only moves batches between threads is left out.
fn steps(plan: &Arc<dyn ExecutionPlan>, analyze: bool) -> Vec<Step> {
    let moves = matches!(
        plan.name(),
        "CoalesceBatchesExec" | "CoalescePartitionsExec" | "RepartitionExec" | "CooperativeExec" | "ProjectionExec"
    ) || [GATE, BARE_ROWS, FENCE, IN_ORDER, WHOLE].contains(&plan.name());
    let inputs: Vec<Step> = plan.children().into_iter().flat_map(|child| steps(child, analyze)).collect();
    if moves {
        return inputs;
    }
    let line = Line(plan).to_string();
    let what = match plan.name() {
        "Column Scan" => line,
        name if OWN.contains(&name) => format!("{name}{}", details(&line)),
        name => format!("Fallback: {}{}", name.trim_end_matches("Exec"), details(&line)),
    };
    let metrics = plan.metrics().filter(|_| analyze);
    let rows = metrics.as_ref().map(|metrics| metrics.output_rows().unwrap_or(0));
    let millis = metrics.map(|metrics| metrics.elapsed_compute().unwrap_or(0) as f64 / 1e6);
    vec![Step { what, rows, millis, inputs }]
}

/// What follows the operator's name in its own line.
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
