//! What pipelines are and did, for EXPLAIN.

use super::{Execution, Pipeline, Ran, Sink, Start, Step};
use crate::join::Probe;
use std::sync::atomic::Ordering;

/// An operator, what it did if it has run, and what it reads.
#[derive(Clone, PartialEq, Debug)]
pub struct Described {
    pub what: String,
    pub rows: Option<usize>,
    pub millis: Option<f64>,
    pub inputs: Vec<Described>,
}

impl Execution {
    pub fn described(&self) -> Option<Described> {
        self.of_pipeline(self.pipelines.len().checked_sub(1)?)
    }

    fn of_pipeline(&self, at: usize) -> Option<Described> {
        let (pipeline, ran) = (&self.pipelines[at], self.ran[at].as_deref());
        let mut last = match &pipeline.start {
            Start::Table(_) => pipeline.scan(ran)?,
            Start::Made(by) => self.of_pipeline(*by)?,
            Start::Chosen { table, marks, met } => Described {
                what: format!("Column Join ({}, left side held)", if *met { "Semi" } else { "Anti" }),
                rows: None,
                millis: None,
                inputs: vec![self.of_pipeline(*table)?, self.of_pipeline(*marks)?],
            },
        };
        for (at, step) in pipeline.steps.iter().enumerate() {
            let rows = ran.map(|ran| ran.passed[at].load(Ordering::Relaxed));
            let mut inputs = vec![last];
            let what = match step {
                Step::Filter(_) => "Column Filter".to_string(),
                Step::Probe(probe) => {
                    inputs.extend(self.of_pipeline(pipeline.tables[probe.join]));
                    probe.described()
                }
            };
            last = Described { what, rows, millis: None, inputs };
        }
        Some(match pipeline.sink_line() {
            None => last,
            Some(what) => {
                let rows = ran.map(|ran| ran.made.load(Ordering::Relaxed));
                let millis = ran.map(|ran| ran.nanos.load(Ordering::Relaxed) as f64 / 1e6);
                Described { what, rows, millis, inputs: vec![last] }
            }
        })
    }
}

impl Probe {
    fn described(&self) -> String {
        format!("Column Join ({:?}, {} keys)", self.kind, self.keys.len())
    }
}

impl Pipeline {
    fn scan(&self, ran: Option<&Ran>) -> Option<Described> {
        let Start::Table(spec) = &self.start else { return None };
        let mut what = format!("Column Scan on {}", spec.table.name);
        let rows = ran.and_then(|ran| ran.scan.as_deref()).map(|stats| {
            let total = stats.row_groups_total.load(Ordering::Relaxed);
            let pruned = stats.row_groups_pruned.load(Ordering::Relaxed);
            what.push_str(&format!(" (row groups pruned {pruned}/{total})"));
            (stats.rows_read.load(Ordering::Relaxed) + stats.hot_rows.load(Ordering::Relaxed)) as usize
        });
        Some(Described { what, rows, millis: None, inputs: Vec::new() })
    }

    fn sink_line(&self) -> Option<String> {
        match &self.sink {
            Sink::Aggregate(spec) => Some(format!("Column Aggregate ({})", spec.described())),
            Sink::Build(_) => Some("Column Build".to_string()),
            Sink::Mark(_) => Some("Column Mark".to_string()),
            Sink::Sort { order, .. } => Some(match order.limit {
                Some(limit) => format!("Column Sort (top {})", limit.saturating_add(order.offset)),
                None => "Column Sort".to_string(),
            }),
            Sink::Give { limit: Some(limit), .. } => Some(format!("Column Limit ({limit})")),
            Sink::Give { .. } => None,
        }
    }
}
