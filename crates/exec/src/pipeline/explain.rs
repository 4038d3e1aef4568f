//! What pipelines are and did, for EXPLAIN.

use super::{Execution, Pipeline, Sink};
use basalt_engine::ScanStats;
use std::sync::atomic::Ordering;

/// An operator of a pipeline, and what it did if it has run.
#[derive(Clone, PartialEq, Debug)]
pub struct Described {
    pub what: String,
    pub rows: Option<usize>,
    pub millis: Option<f64>,
}

impl Execution {
    /// The operators from the last to the first, each of which reads the one behind it.
    pub fn described(&self) -> Vec<Described> {
        let mut all = Vec::new();
        let mut scans = self.stats.iter();
        for (pipeline, ran) in self.pipelines.iter().zip(&self.ran) {
            let stats = if pipeline.table.is_some() { scans.next() } else { None };
            all.extend(pipeline.source_line(stats.map(|stats| &**stats)));
            if !pipeline.conditions.is_empty() {
                let rows = ran.as_ref().map(|ran| ran.passed.load(Ordering::Relaxed));
                all.push(Described { what: "Column Filter".to_string(), rows, millis: None });
            }
            if let Some(what) = pipeline.sink_line() {
                let rows = ran.as_ref().map(|ran| ran.made.load(Ordering::Relaxed));
                let millis = ran.as_ref().map(|ran| ran.nanos.load(Ordering::Relaxed) as f64 / 1e6);
                all.push(Described { what, rows, millis });
            }
        }
        all.reverse();
        all
    }
}

impl Pipeline {
    fn source_line(&self, stats: Option<&ScanStats>) -> Option<Described> {
        let table = self.table.as_ref()?;
        let mut what = format!("Column Scan on {}", table.table.name);
        let rows = stats.map(|stats| {
            let total = stats.row_groups_total.load(Ordering::Relaxed);
            let pruned = stats.row_groups_pruned.load(Ordering::Relaxed);
            what.push_str(&format!(" (row groups pruned {pruned}/{total})"));
            (stats.rows_read.load(Ordering::Relaxed) + stats.hot_rows.load(Ordering::Relaxed)) as usize
        });
        Some(Described { what, rows, millis: None })
    }

    fn sink_line(&self) -> Option<String> {
        match &self.sink {
            Sink::Aggregate(spec) => Some(format!("Column Aggregate ({})", spec.described())),
            Sink::Sort { order, .. } => Some(match order.limit {
                Some(limit) => format!("Column Sort (top {})", limit + order.offset),
                None => "Column Sort".to_string(),
            }),
            Sink::Give { limit: Some(limit), .. } => Some(format!("Column Limit ({limit})")),
            Sink::Give { .. } => None,
        }
    }
}
