//! Pipelines that look into a table on disk: they are broken there. Rows come so far, are cut by the hash of their keys,
//! and go on part by part, each with the table of its part (docs/decisions/0017).

use super::held::Held;
use super::reading::{Cut, Pair, ProbeAt};
use super::{Pipeline, Sink, Step};
use crate::join::spill::Spilled;
use crate::program::{Condition, Def, Field, Place};
use crate::spill::scatter::Rows;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

/// What of a pipeline runs at once.
pub(super) struct Stage {
    pub steps: Range<usize>,
    /// How rows are cut that have come through these steps, if they do not go to the pipeline's end.
    pub cut: Option<Cut>,
}

/// Rows of a pipeline that have been cut.
pub(super) struct Broken {
    pub cut: Cut,
    pub parts: Vec<Arc<Pair>>,
}

impl Stage {
    /// The steps from the join that the rows were cut for, or from the first, to the next one of a table on disk.
    pub fn of(pipeline: &Arc<Pipeline>, broken: Option<&Broken>, made: &dyn Fn(usize) -> Arc<Held>) -> Stage {
        let from = broken.map_or(0, |broken| broken.cut.probe.step);
        let spilled = |join: usize| match &*made(pipeline.tables[join]) {
            Held::SpilledTable(table) => Some(table.clone()),
            _ => None,
        };
        let done = broken.map_or(0, |_| from + 1);
        for (at, step) in pipeline.steps.iter().enumerate().skip(done) {
            if let Step::Probe(probe) = step
                && let Some(build) = spilled(probe.join)
            {
                return Stage { steps: from..at, cut: Some(Cut::new(pipeline, at, build)) };
            }
        }
        let all = from..pipeline.steps.len();
        let build = if let Sink::Mark(probe) = &pipeline.sink { spilled(probe.join) } else { None };
        let cut = build.map(|build| Cut::new(pipeline, all.end, build));
        Stage { steps: all, cut }
    }
}

impl Cut {
    pub fn new(pipeline: &Arc<Pipeline>, step: usize, build: Arc<Spilled>) -> Cut {
        let places: Arc<[Place]> = pipeline.kept_places(step).into_iter().collect();
        let fields: Arc<[Field]> = places.iter().map(|place| pipeline.program.fields[*place].clone()).collect();
        let probe = Arc::new(ProbeAt { pipeline: pipeline.clone(), step });
        Cut { probe, build, places, fields }
    }

    /// Rows of both sides, part by part.
    pub fn pairs(&self, probes: Vec<Rows>) -> Vec<Arc<Pair>> {
        let pair = |(build, probe): (&Rows, Rows)| Arc::new(Pair { build: build.clone(), probe, level: 1 });
        self.build.parts.iter().zip(probes).map(pair).collect()
    }
}

impl Pipeline {
    /// Of the columns from which everything from a step on is computed those that are there before it: what was given,
    /// and what earlier joins have found.
    fn kept_places(&self, from: usize) -> BTreeSet<Place> {
        let first_join = match (self.steps.get(from), &self.sink) {
            (Some(Step::Probe(probe)), _) | (None, Sink::Mark(probe)) => probe.join,
            _ => panic!("rows are cut where they look for partners"),
        };
        let mut open: Vec<Place> = self.steps[from..].iter().flat_map(Step::places).chain(self.sink.places()).collect();
        let (mut seen, mut kept) = (BTreeSet::new(), BTreeSet::new());
        while let Some(place) = open.pop() {
            if !seen.insert(place) {
                continue;
            }
            match &self.program.defs[place] {
                Def::Given(_) => drop(kept.insert(place)),
                Def::Payload { join, .. } | Def::Mark { join } if *join < first_join => drop(kept.insert(place)),
                Def::Element { step } if *step < from => drop(kept.insert(place)),
                def => open.extend(def.places()),
            }
        }
        kept
    }
}

impl Step {
    /// Columns that it asks for.
    fn places(&self) -> Vec<Place> {
        match self {
            Step::Filter(conditions) => conditions.iter().flat_map(Condition::places).collect(),
            Step::Probe(probe) => probe.places(),
            Step::Sets(sets) => sets.places(),
        }
    }
}

impl Sink {
    fn places(&self) -> Vec<Place> {
        match self {
            Sink::Aggregate(spec) => spec.places(),
            Sink::Build(spec) => spec.keys.iter().chain(&spec.payload).copied().collect(),
            Sink::Mark(probe) => probe.places(),
            Sink::Sort { columns, order } | Sink::Window { columns, order, .. } => {
                columns.iter().copied().chain(order.keys.iter().map(|key| key.place)).collect()
            }
            Sink::Give { columns, .. } => columns.clone(),
        }
    }
}
