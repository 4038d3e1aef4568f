//! DataFusion's operators as steps.

use super::step::{Fact, Step};
use crate::lower::{BARE_ROWS, FENCE, GATE, IN_ORDER, WHOLE};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{DisplayFormatType, ExecutionPlan};
use std::fmt;
use std::sync::Arc;

/// Operators of Basalt's own beside the column scan; the others are the fallback's.
const OWN: [&str; 7] = ["Apply", "CTE Scan", "Working Table", "Recursive Union", "ProjectSet", "SingleRows", "Append"];

/// One step per operator that does work; what only moves batches between threads is left out. `ran`: with what they did.
pub fn steps(plan: &Arc<dyn ExecutionPlan>, ran: bool) -> Vec<Step> {
    steps_in(plan, ran, &StatisticsContext::new())
}

fn steps_in(plan: &Arc<dyn ExecutionPlan>, ran: bool, statistics: &StatisticsContext) -> Vec<Step> {
    let moves = matches!(
        plan.name(),
        "CoalesceBatchesExec" | "CoalescePartitionsExec" | "RepartitionExec" | "CooperativeExec" | "ProjectionExec"
    ) || [GATE, BARE_ROWS, FENCE, IN_ORDER, WHOLE].contains(&plan.name());
    let inputs: Vec<Step> = plan.children().into_iter().flat_map(|child| steps_in(child, ran, statistics)).collect();
    if moves {
        return inputs;
    }
    let line = Line(plan).to_string();
    let what = match plan.name() {
        "Column Scan" => line,
        name if OWN.contains(&name) => format!("{name}{}", details(&line)),
        name => format!("Fallback: {}{}", name.replacen("Exec", "", 1), details(&line)),
    };
    let estimate = statistics.compute(&**plan, &StatisticsArgs::new()).ok();
    let estimate = estimate.and_then(|known| known.num_rows.get_value().copied()).map(|rows| rows as f64);
    let step = Step { estimate, ..Step::over(what, inputs) };
    vec![match plan.metrics().filter(|_| ran) {
        Some(metrics) => with_metrics(step, &metrics),
        None => step,
    }]
}

fn with_metrics(step: Step, metrics: &MetricsSet) -> Step {
    let step = Step {
        rows: Some(metrics.output_rows().unwrap_or(0)),
        millis: Some(metrics.elapsed_compute().unwrap_or(0) as f64 / 1e6),
        ..step
    };
    match metrics.spilled_bytes().unwrap_or(0) {
        0 => step,
        bytes => step.with("Spilled", Fact::Bytes(bytes as u64)),
    }
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
