//! What pipelines are and did, for EXPLAIN. What their operators are called knows who made the plan, by their numbers
//! ([`crate::plan::Plan::Noted`]).

use super::{Execution, Pipeline, Ran, Sink, Start, Step};
use crate::plan::JoinKind;
use basalt_engine::{ScanSpec, ScanStats};
use basalt_types::ColumnId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A pipeline in the order of its operators, and what it did if it has begun. Pipelines are counted from 0, in the order
/// in which they run.
pub struct Report {
    pub source: Operator<ReportedSource>,
    pub steps: Vec<Operator<ReportedStep>>,
    pub sink: Operator<ReportedSink>,
    pub effort: Option<Effort>,
    /// If it runs in rounds and makes their rows.
    pub recursion: Option<Recursion>,
}

pub struct Recursion {
    /// The pipeline that makes the first rows.
    pub base: usize,
    /// So far.
    pub rounds: usize,
    pub distinct: bool,
}

pub struct Operator<T> {
    pub what: T,
    /// The numbers of the plan's operators that it stands for.
    pub notes: Vec<usize>,
    /// Rows that it gave, if it has run and gives any.
    pub rows: Option<u64>,
}

pub enum ReportedSource {
    Table {
        spec: ScanSpec,
        /// Columns whose values are sought among the keys of a pipeline's table.
        sought: Vec<(ColumnId, usize)>,
        stats: Option<Arc<ScanStats>>,
    },
    /// So many rows that are known.
    Values(usize),
    /// The rows of pipelines before, one after the other.
    Made(Vec<usize>),
    /// Those rows of a pipeline's table that another has marked, or has not.
    Chosen { table: usize, marks: usize, met: bool },
}

pub enum ReportedStep {
    Filter,
    /// A row for each value of set-returning calls.
    Sets,
    /// With the table that a pipeline built.
    Join {
        table: usize,
        kind: JoinKind,
    },
}

pub enum ReportedSink {
    Aggregate,
    /// A table for joins or, without keys, rows for whoever reads them.
    Build,
    /// Marks on the table of a pipeline.
    Mark {
        table: usize,
    },
    Sort {
        offset: usize,
        limit: Option<usize>,
    },
    /// Rows as they come, of which only these are wanted.
    Limit {
        offset: usize,
        limit: Option<usize>,
    },
    /// Sorted rows, and what window functions give for them.
    Window,
    /// The rows of the whole plan.
    Give {
        offset: usize,
        limit: Option<usize>,
    },
}

/// What a pipeline took.
pub struct Effort {
    /// Those that found something to do.
    pub workers: usize,
    /// From its start to its end.
    pub took: Duration,
    /// Of all workers.
    pub busy: Duration,
    /// The most that it held at once of the memory budget.
    pub held_bytes: usize,
    /// What it wrote to temporary files.
    pub spilled_bytes: u64,
}

impl Execution {
    pub fn report(&self) -> Vec<Report> {
        let all = self.pipelines.all.iter().zip(&self.ran).enumerate();
        let report = |(at, (pipeline, ran)): (usize, (&Arc<Pipeline>, &Option<Arc<Ran>>))| Report {
            recursion: self.recursion(at),
            ..pipeline.report(ran.as_deref())
        };
        all.map(report).collect()
    }

    /// Of segments, so far.
    pub fn bytes_read(&self) -> u64 {
        let scans = self.ran.iter().flatten().filter_map(|ran| ran.scan.as_deref());
        scans.map(|stats| stats.bytes_read.load(Ordering::Relaxed)).sum()
    }

    /// The most that was held at once of the memory budget.
    pub fn held_bytes_max(&self) -> usize {
        self.account.held_bytes_max()
    }

    /// Written to temporary files so far.
    pub fn spilled_bytes(&self) -> u64 {
        self.account.spilled_bytes()
    }
}

impl Pipeline {
    fn report(&self, ran: Option<&Ran>) -> Report {
        let what = match &self.start {
            Start::Table(spec) => {
                let stats = ran.and_then(|ran| ran.scan.clone());
                ReportedSource::Table { spec: spec.clone(), sought: self.sought(), stats }
            }
            Start::Values(_, rows) => ReportedSource::Values(*rows),
            Start::Made(by) => ReportedSource::Made(by.clone()),
            Start::Chosen { table, marks, met } => ReportedSource::Chosen { table: *table, marks: *marks, met: *met },
        };
        let rows = ran.map(|ran| ran.entered.load(Ordering::Relaxed) as u64);
        let source = Operator { what, notes: self.notes.start.clone(), rows };
        let step = |(at, (step, notes)): (usize, (&Step, &Vec<usize>))| {
            let what = match step {
                Step::Filter(_) => ReportedStep::Filter,
                Step::Sets(_) => ReportedStep::Sets,
                Step::Probe(probe) => ReportedStep::Join { table: self.tables[probe.join], kind: probe.kind },
            };
            let rows = ran.map(|ran| ran.passed[at].load(Ordering::Relaxed) as u64);
            Operator { what, notes: notes.clone(), rows }
        };
        let steps = self.steps.iter().zip(&self.notes.steps).enumerate().map(step).collect();
        Report { source, steps, sink: self.reported_sink(ran), effort: ran.map(Ran::effort), recursion: None }
    }

    fn reported_sink(&self, ran: Option<&Ran>) -> Operator<ReportedSink> {
        let what = match &self.sink {
            Sink::Aggregate(_) => ReportedSink::Aggregate,
            Sink::Build(_) => ReportedSink::Build,
            Sink::Mark(probe) => ReportedSink::Mark { table: self.tables[probe.join] },
            Sink::Sort { order, .. } if order.keys.is_empty() => {
                ReportedSink::Limit { offset: order.offset, limit: order.limit }
            }
            Sink::Window { .. } => ReportedSink::Window,
            Sink::Sort { order, .. } => ReportedSink::Sort { offset: order.offset, limit: order.limit },
            Sink::Give { offset, limit, .. } => ReportedSink::Give { offset: *offset, limit: *limit },
        };
        let rows = ran.filter(|_| !matches!(what, ReportedSink::Mark { .. }));
        let rows = rows.map(|ran| ran.made.load(Ordering::Relaxed) as u64);
        Operator { what, notes: self.notes.sink.clone(), rows }
    }
}

impl Ran {
    fn effort(&self) -> Effort {
        Effort {
            workers: self.workers().max(self.workers_before),
            took: Duration::from_nanos(self.took_nanos.load(Ordering::Relaxed)),
            busy: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)),
            held_bytes: self.account.held_bytes_max(),
            spilled_bytes: self.account.spilled_bytes(),
        }
    }
}
