//! The column engine's pipelines as steps, in the order in which they run.

use super::step::{Fact, Parts, Step};
use crate::column::notes::{KeyText, Note, Notes, What};
use basalt_engine::{ScanSpec, ScanStats};
use basalt_exec::pipeline::{
    Effort, Execution, Operator, Recursion, Report, ReportedSink, ReportedSource, ReportedStep,
};
use basalt_exec::plan::JoinKind;
use basalt_expr::EvalContext;
use basalt_types::{ColumnId, ColumnPredicate, CompareOp, DataType, Datum, TableDef};
use std::sync::atomic::{AtomicU64, Ordering};

/// An execution; with what it did if it has run.
pub fn of_execution(execution: &Execution, notes: &Notes, ran: bool) -> Step {
    let reports = execution.report();
    let mut pipelines = Pipelines { notes, reports: &reports, made: Vec::new() };
    let parts = (0..reports.len()).map(|at| pipelines.step(at)).collect();
    let root = Step { parts, parts_are: Parts::Pipelines, ..Step::new("Column Engine") };
    match ran {
        false => root,
        true => root
            .with("Bytes Read", Fact::Bytes(execution.bytes_read()))
            .with("Memory", Fact::Bytes(execution.held_bytes_max() as u64))
            .with_spilled(execution.spilled_bytes()),
    }
}

struct Pipelines<'r> {
    notes: &'r Notes,
    reports: &'r [Report],
    /// Rows that each pipeline so far is expected to give.
    made: Vec<Option<f64>>,
}

impl Pipelines<'_> {
    fn step(&mut self, at: usize) -> Step {
        let report = &self.reports[at];
        let mut parts = vec![self.source(&report.source)];
        for step in &report.steps {
            parts.push(self.middle(step));
        }
        let before = parts.last().and_then(|step| step.estimate);
        let sink = self.sink(at, &report.sink, before);
        let sink = match &report.recursion {
            Some(recursion) => with_rounds(sink, recursion, report.effort.is_some()),
            None => sink,
        };
        self.made.push(sink.estimate);
        parts.push(sink);
        let pipeline = Step { parts, parts_are: Parts::Steps, ..Step::new(format!("Pipeline {}", at + 1)) };
        report.effort.as_ref().map_or(pipeline.clone(), |effort| with_effort(pipeline, effort))
    }

    fn notes_of<T>(&self, operator: &Operator<T>) -> impl Iterator<Item = &Note> {
        operator.notes.iter().filter_map(|note| self.notes.get(*note))
    }

    /// By the operator that comes last.
    fn estimate<T>(&self, operator: &Operator<T>) -> Option<f64> {
        self.notes_of(operator).filter_map(|note| note.rows).last()
    }

    fn source(&self, source: &Operator<ReportedSource>) -> Step {
        let rows = source.rows.map(|rows| rows as usize);
        match &source.what {
            ReportedSource::Table { spec, sought, stats } => {
                let relation = self.notes_of(source).find_map(|note| match &note.what {
                    What::Scan { relation } => Some(relation.clone()),
                    _ => None,
                });
                let of_join = |(column, by): &(ColumnId, usize)| {
                    format!("{} IN (keys of Pipeline {})", name(&spec.table, *column), by + 1)
                };
                let skips: Vec<String> = skips(spec).into_iter().chain(sought.iter().map(of_join)).collect();
                let what = format!("Scan on {}", relation.unwrap_or_else(|| spec.table.name.clone()));
                let step = Step { rows, estimate: self.estimate(source), ..Step::new(what) };
                let step = step
                    .with("Columns", Fact::Texts(spec.columns.iter().map(|id| name(&spec.table, *id)).collect()))
                    .with("Skips By", Fact::Conditions(skips));
                stats.as_deref().map_or(step.clone(), |stats| with_stats(step, stats))
            }
            ReportedSource::Values(count) => Step { rows, estimate: Some(*count as f64), ..Step::new("Values") },
            ReportedSource::Made(by) => match by.as_slice() {
                [by] => Step { rows, estimate: self.made[*by], ..Step::new(format!("Rows of Pipeline {}", by + 1)) },
                several => {
                    let numbers: Vec<String> = several.iter().map(|by| (by + 1).to_string()).collect();
                    let what = format!("Union: Rows of Pipelines {}", numbers.join(", "));
                    let sum = several.iter().map(|by| self.made[*by]).sum();
                    Step { rows, estimate: self.estimate(source).or(sum), ..Step::new(what) }
                }
            },
            ReportedSource::Chosen { table, marks, met } => {
                let (kind, marked) = if *met { ("Semi", "Marked") } else { ("Anti", "Not Marked") };
                let what = format!("{kind} Join: Rows of Pipeline {} {marked} by Pipeline {}", table + 1, marks + 1);
                Step { rows, estimate: self.estimate(source), ..Step::new(what) }
            }
        }
    }

    fn middle(&self, step: &Operator<ReportedStep>) -> Step {
        let what = match &step.what {
            ReportedStep::Filter => "Filter".to_string(),
            ReportedStep::Sets => "ProjectSet".to_string(),
            ReportedStep::Join { table, kind } => format!("{} Join with Pipeline {}", word(*kind), table + 1),
        };
        let rows = step.rows.map(|rows| rows as usize);
        let mut told = Step { rows, estimate: self.estimate(step), ..Step::new(what) };
        let mut conditions = Vec::new();
        for note in self.notes_of(step) {
            match &note.what {
                What::Sets { calls } => told = told.with("Sets", Fact::Texts(calls.clone())),
                What::Filter { conditions: more } => conditions.extend(more.iter().cloned()),
                What::Join { keys, residual } => {
                    let keys = keys.iter().map(KeyText::condition).collect();
                    told = told.with("Hash Cond", Fact::Conditions(keys));
                    told = told.with("Join Filter", Fact::Conditions(residual.clone()));
                }
                _ => {}
            }
        }
        told.with("Filter", Fact::Conditions(conditions))
    }

    /// `before`: rows that are expected to come.
    fn sink(&self, at: usize, sink: &Operator<ReportedSink>, before: Option<f64>) -> Step {
        let rows = sink.rows.map(|rows| rows as usize);
        let step = |what: String, estimate| Step { rows, estimate, ..Step::new(what) };
        let noted = self.estimate(sink);
        match &sink.what {
            ReportedSink::Aggregate => self.with_notes(step("Aggregate".into(), noted), sink),
            ReportedSink::Build if !self.is_looked_into(at) => step("Hold".into(), before),
            ReportedSink::Build => step("Build".into(), before).with("Keys", Fact::Texts(self.keys(at, sink))),
            ReportedSink::Mark { table } => {
                let step = step(format!("Mark Pipeline {}", table + 1), None);
                self.with_join_filter(step.with("Keys", Fact::Texts(self.keys(at, sink))), sink)
            }
            ReportedSink::Sort { offset, limit } => {
                let what = limit.map_or("Sort".into(), |limit| format!("Top {}", limit.saturating_add(*offset)));
                self.with_notes(step(what, noted.or(before)), sink)
            }
            ReportedSink::Window => self.with_notes(step("Window".into(), noted.or(before)), sink),
            ReportedSink::Limit { offset, limit } => limited(step("Hold".into(), before), *offset, *limit),
            ReportedSink::Give { offset, limit } => limited(step("Output".into(), before), *offset, *limit),
        }
    }

    /// Whether a join looks for partners in what a pipeline builds, or another marks it.
    fn is_looked_into(&self, at: usize) -> bool {
        let joins =
            |step: &Operator<ReportedStep>| matches!(step.what, ReportedStep::Join { table, .. } if table == at);
        let marks = |report: &Report| matches!(report.sink.what, ReportedSink::Mark { table } if table == at);
        self.reports.iter().any(|report| marks(report) || report.steps.iter().any(joins))
    }

    fn with_notes(&self, mut step: Step, sink: &Operator<ReportedSink>) -> Step {
        for note in self.notes_of(sink) {
            step = match &note.what {
                What::Aggregate { groups, results } => {
                    step.with("Group Key", Fact::Texts(groups.clone())).with("Results", Fact::Texts(results.clone()))
                }
                What::Sort { keys } => step.with("Sort Key", Fact::Texts(keys.clone())),
                What::Window { calls } => step.with("Results", Fact::Texts(calls.clone())),
                _ => step,
            };
        }
        step
    }

    fn with_join_filter(&self, step: Step, sink: &Operator<ReportedSink>) -> Step {
        let residual = self.notes_of(sink).find_map(|note| match &note.what {
            What::Join { residual, .. } => Some(residual.clone()),
            _ => None,
        });
        step.with("Join Filter", Fact::Conditions(residual.unwrap_or_default()))
    }

    /// The keys of a pipeline that builds or marks: the left ones where the left side is held.
    fn keys(&self, at: usize, sink: &Operator<ReportedSink>) -> Vec<String> {
        let is_held =
            |report: &Report| matches!(&report.source.what, ReportedSource::Chosen { table, .. } if *table == at);
        let holds_left = self.reports.iter().any(is_held);
        let side = |key: &KeyText| if holds_left { key.left.clone() } else { key.right.clone() };
        let keys = self.notes_of(sink).find_map(|note| match &note.what {
            What::Join { keys, .. } => Some(keys.iter().map(side).collect()),
            _ => None,
        });
        keys.unwrap_or_default()
    }
}

/// The end of a step of WITH RECURSIVE; with its rounds if it has run.
fn with_rounds(sink: Step, recursion: &Recursion, ran: bool) -> Step {
    let all = if recursion.distinct { "" } else { " All" };
    let step = Step { what: format!("Recursive Union{all} with Pipeline {}", recursion.base + 1), ..sink };
    if ran { step.with("Rounds", Fact::Count(recursion.rounds as u64)) } else { step }
}

/// A step that passes so many rows over, and gives no more than so many.
fn limited(step: Step, offset: usize, limit: Option<usize>) -> Step {
    let most = limit.map_or(f64::INFINITY, |limit| limit as f64);
    let step = Step { estimate: step.estimate.map(|rows| (rows - offset as f64).min(most)), ..step };
    let step = limit.map_or(step.clone(), |limit| step.with("Limit", Fact::Count(limit as u64)));
    if offset > 0 { step.with("Offset", Fact::Count(offset as u64)) } else { step }
}

fn word(kind: JoinKind) -> &'static str {
    match kind {
        JoinKind::Inner => "Inner",
        JoinKind::Left => "Left",
        JoinKind::Semi => "Semi",
        JoinKind::Anti => "Anti",
        JoinKind::NullAwareAnti => "Null-Aware Anti",
        JoinKind::Single => "Single",
        JoinKind::Mark { null_aware: false } => "Mark",
        JoinKind::Mark { null_aware: true } => "Null-Aware Mark",
    }
}

fn with_effort(step: Step, effort: &Effort) -> Step {
    let step = Step { millis: Some(effort.took.as_secs_f64() * 1e3), ..step }
        .with("Workers", Fact::Count(effort.workers as u64))
        .with("Worker Time", Fact::Millis(effort.busy.as_secs_f64() * 1e3));
    let step = match effort.held_bytes {
        0 => step,
        bytes => step.with("Memory", Fact::Bytes(bytes as u64)),
    };
    step.with_spilled(effort.spilled_bytes)
}

impl Step {
    fn with_spilled(self, bytes: u64) -> Step {
        if bytes == 0 { self } else { self.with("Spilled", Fact::Bytes(bytes)) }
    }
}

fn with_stats(step: Step, stats: &ScanStats) -> Step {
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let pruned = |pruned, total| Fact::Pruned { pruned: get(pruned), total: get(total) };
    let mut step = step.with("Row Groups", pruned(&stats.row_groups_pruned, &stats.row_groups_total));
    if get(&stats.row_groups_filtered) > 0 {
        step = step.with("Row Groups Pruned by Filters", Fact::Count(get(&stats.row_groups_filtered)));
    }
    if get(&stats.bitmap_rows_total) > 0 {
        let (chosen, total) = (get(&stats.bitmap_rows_chosen), get(&stats.bitmap_rows_total));
        step = step.with("Rows Chosen by Bitmaps", Fact::Count(chosen)).with("Rows of Bitmaps", Fact::Count(total));
    }
    if get(&stats.pages_total) > 0 {
        step = step.with("Pages", pruned(&stats.pages_pruned, &stats.pages_total));
    }
    if get(&stats.hot_rows) > 0 {
        step = step.with("Hot Rows", Fact::Count(get(&stats.hot_rows)));
    }
    step.with("Bytes Read", Fact::Bytes(get(&stats.bytes_read)))
}

fn name(table: &TableDef, column: ColumnId) -> String {
    crate::session::names::quote_identifier(&table.column(column).name)
}

/// Whether its values are written without quotes.
fn is_number(ty: &DataType) -> bool {
    matches!(ty.underlying(), DataType::Int2 | DataType::Int4 | DataType::Int8 | DataType::Numeric(_))
}

/// What a scan leaves out whole row groups and pages by.
fn skips(spec: &ScanSpec) -> Vec<String> {
    let table = &spec.table;
    let value = |column: ColumnId, value: &Datum| {
        let mut out = Vec::new();
        let ty = &table.column(column).ty;
        match basalt_expr::io::text::format(ty, value, &EvalContext::at(0), &mut out) {
            Ok(()) if is_number(ty) => String::from_utf8_lossy(&out).into_owned(),
            Ok(()) => format!("'{}'", String::from_utf8_lossy(&out).replace('\'', "''")),
            Err(_) => "…".to_string(),
        }
    };
    let text = |predicate: &ColumnPredicate| match predicate {
        ColumnPredicate::Compare { column, op, value: bound } => {
            let symbol = match op {
                CompareOp::Eq => "=",
                CompareOp::NotEq => "<>",
                CompareOp::Lt => "<",
                CompareOp::LtEq => "<=",
                CompareOp::Gt => ">",
                CompareOp::GtEq => ">=",
            };
            format!("{} {symbol} {}", name(table, *column), value(*column, bound))
        }
        ColumnPredicate::In { column, values } => {
            let values: Vec<String> = values.iter().map(|one| value(*column, one)).collect();
            format!("{} IN ({})", name(table, *column), values.join(", "))
        }
        ColumnPredicate::Among { column, .. } => format!("{} IN (…)", name(table, *column)),
        ColumnPredicate::IsNull { column } => format!("{} IS NULL", name(table, *column)),
        ColumnPredicate::IsNotNull { column } => format!("{} IS NOT NULL", name(table, *column)),
    };
    spec.predicates.iter().map(text).collect()
}
