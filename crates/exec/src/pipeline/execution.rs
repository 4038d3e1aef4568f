//! Pipelines one after the other: what each reads, and how long what it made is kept.

use super::breaking::{Broken, Stage};
use super::held::Held;
use super::rounds::Rounds;
use super::sort::Form;
use super::{Execution, Pipeline, Pipelines, Ran, Running, Sink, Source, Start, Step, Surroundings, compile};
use crate::error::{Error, Result};
use crate::join::Table;
use crate::memory::{Account, Reservation};
use crate::plan::Plan;
use crate::program::Def;
use crate::scan::Scan;
use crate::spill::hash::KeyHash;
use basalt_engine::{ScanSpec, ScanStats};
use basalt_expr::context::EvalContext;
use basalt_types::ColumnPredicate;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Keys of a join that a scan is narrowed by: more of them lie everywhere.
const SOUGHT_MAX: usize = 1 << 14;

impl Pipelines {
    /// `None` if the engine cannot run the plan.
    pub fn of(plan: &Plan, ctx: &EvalContext) -> Option<Pipelines> {
        let (all, loops) = compile::pipelines(plan, ctx)?;
        Some(Pipelines { all: all.into_iter().map(Arc::new).collect(), loops: loops.into() })
    }
}

impl Execution {
    /// `None` if the engine cannot run the plan.
    pub fn new(plan: &Plan, around: Surroundings) -> Option<Execution> {
        Some(Execution::of(&Pipelines::of(plan, &around.ctx)?, around))
    }

    pub fn of(pipelines: &Pipelines, around: Surroundings) -> Execution {
        let pipelines = pipelines.clone();
        let count = pipelines.all.len();
        let mut last_readers: Vec<usize> = (0..count).collect();
        let mut reads = vec![0; count];
        for (at, pipeline) in pipelines.all.iter().enumerate() {
            for by in pipeline.reads() {
                last_readers[by] = at;
                reads[by] += 1;
            }
        }
        pipelines.loops.iter().for_each(|turn| turn.keep(&pipelines.all, &mut last_readers, &mut reads));
        let (ran, account) = (vec![None; count], Account::new(around.memory.clone()));
        let rounds = pipelines.loops.iter().map(|turn| Rounds::new(turn, &pipelines.all, &account)).collect();
        let made = (0..count).map(|_| (Arc::new(Held::Nothing), Reservation::new(&account))).collect();
        let (at, broken, hash) = (0, None, KeyHash::new());
        Execution { pipelines, around, at, rounds, ran, made, last_readers, reads, broken, account, hash }
    }

    /// Starts the next pipeline, or what is left of one that was broken; `None` after the last.
    pub fn start(&mut self) -> Result<Option<Arc<Running>>> {
        self.around.stop.clone().watched(|| self.start_watched())
    }

    fn start_watched(&mut self) -> Result<Option<Arc<Running>>> {
        let at = self.at;
        let Some(pipeline) = self.pipelines.all.get(at).cloned() else { return Ok(None) };
        let stage = Stage::of(&pipeline, self.broken.as_ref(), &|by| self.made[by].0.clone());
        let tables = pipeline.tables.iter().map(|by| self.table(*by)).collect::<Result<Vec<Arc<Table>>>>()?;
        // What is broken goes on as it has begun.
        let pipeline = match stage.cut.is_none() && self.broken.is_none() {
            true => pipeline.with_constants(&tables, &self.around.ctx)?,
            false => pipeline,
        };
        let (source, scan) = match &self.broken {
            Some(Broken { cut, parts }) => (
                Source::Parts { cut: cut.clone(), chosen: None, parts: parts.clone(), next: AtomicUsize::new(0) },
                None,
            ),
            None => self.source(&pipeline, &tables)?,
        };
        let by_parts = stage.cut.is_some() || matches!(source, Source::Parts { .. });
        if by_parts && pipeline.sink.shows_order() && self.is_ordered(&pipeline.start) {
            return Err(Error::Beyond("rows in order that look into more than memory holds"));
        }
        for step in &pipeline.steps[stage.steps.clone()] {
            if let Step::Probe(probe) = step {
                probe.check(&tables[probe.join])?;
            }
        }
        let ran = match &self.ran[at] {
            Some(ran) if self.broken.is_some() => ran.again(stage.steps.start),
            Some(ran) if self.is_again(at) => ran.next_round(scan),
            _ => self.ran(&pipeline, scan),
        };
        self.ran[at] = Some(ran.clone());
        let shared_keys = match (&source, &stage.cut) {
            (Source::Table(scan), None) => pipeline.shared_keys(scan)?,
            _ => None,
        };
        let told_by = match &source {
            Source::Table(scan) => pipeline.told_by(scan, &self.around.ctx),
            _ => Vec::new(),
        };
        let kept = Mutex::new(Reservation::new(&ran.account));
        let is_shared = self.reads[at] == 1 && !self.pipelines.all[self.last_readers[at]].sink.keeps_order();
        let is_looked_into = self.pipelines.all.iter().any(|other| other.looks_into(at));
        Ok(Some(Arc::new(Running {
            pipeline,
            around: self.around.clone(),
            source,
            tables,
            stage,
            is_looked_into,
            reads: self.reads[at],
            is_shared,
            workers: AtomicUsize::new(1),
            hash: self.hash.clone(),
            file: Mutex::default(),
            made: Mutex::default(),
            assembly: Mutex::default(),
            kept,
            arrived: AtomicUsize::new(0),
            shared_keys,
            told_by,
            ran,
        })))
    }

    fn ran(&self, pipeline: &Pipeline, scan: Option<Arc<ScanStats>>) -> Arc<Ran> {
        let passed = pipeline.steps.iter().map(|_| AtomicUsize::new(0)).collect();
        let began = self.around.clock.monotonic();
        let (entered, made, nanos, workers, took_nanos) = Default::default();
        let account = self.account.part();
        Arc::new(Ran { scan, entered, passed, made, nanos, workers, workers_before: 0, account, began, took_nanos })
    }

    fn source(&self, pipeline: &Pipeline, tables: &[Arc<Table>]) -> Result<(Source, Option<Arc<ScanStats>>)> {
        let next = AtomicUsize::new(0);
        Ok(match &pipeline.start {
            Start::Table(spec) => {
                let mut spec = self.narrowed(pipeline, spec);
                spec.predicates.extend(pipeline.predicates_behind_one_row(tables));
                let first = pipeline.first_key().map(|(column, descending)| (spec.columns[column], descending));
                let scan = Scan::start(&self.around.read, spec, self.around.stop.clone())?;
                if let Some((column, descending)) = first {
                    scan.begin_with(column, descending)?;
                }
                let stats = scan.stats().clone();
                (Source::Table(scan), Some(stats))
            }
            Start::Values(columns, rows) => {
                (Source::Held { held: vec![Arc::new(Held::Columns(columns.clone(), *rows))], next }, None)
            }
            Start::Made(by) => {
                let held = by.iter().flat_map(|by| self.made[*by].0.each()).cloned().collect();
                (Source::Held { held, next }, None)
            }
            Start::Chosen { table, marks, met } => match (&*self.made[*table].0, &*self.made[*marks].0) {
                (Held::Table(table), Held::Marks(marks)) => {
                    (Source::Chosen { rows: marks.chosen(table, *met)?, table: table.clone(), next }, None)
                }
                (Held::SpilledTable(_), Held::SpilledMarks(cut, parts)) => {
                    (Source::Parts { cut: cut.clone(), chosen: Some(*met), parts: parts.clone(), next }, None)
                }
                _ => panic!("marks are made for what reads them"),
            },
        })
    }

    /// A scan that leaves out what no join has a partner for, as far as storage can tell.
    fn narrowed(&self, pipeline: &Pipeline, spec: &ScanSpec) -> ScanSpec {
        let mut spec = spec.clone();
        for (column, by) in pipeline.sought() {
            if let Held::Table(table) = &*self.made[by].0
                && let Some(values) = table.integer_keys(SOUGHT_MAX)
            {
                spec.predicates.push(ColumnPredicate::Among { column, values: values.into() });
            }
        }
        spec
    }

    /// Whether rows that come from there are in an order that somebody may have asked for.
    fn is_ordered(&self, start: &Start) -> bool {
        let made = |by: usize| match &self.pipelines.all[by].sink {
            Sink::Window { .. } => true,
            Sink::Sort { order, .. } if !order.keys.is_empty() => true,
            Sink::Aggregate(_) => false,
            _ => self.is_ordered(&self.pipelines.all[by].start),
        };
        match start {
            Start::Table(_) | Start::Values(..) => false,
            Start::Made(by) => by.iter().any(|by| made(*by)),
            Start::Chosen { table, .. } => made(*table),
        }
    }

    /// Of one on disk an empty one: parts take its place.
    fn table(&self, by: usize) -> Result<Arc<Table>> {
        match &*self.made[by].0 {
            Held::Table(table) => Ok(table.clone()),
            Held::SpilledTable(table) => Ok(Arc::new(Table::empty(&table.spec)?)),
            _ => panic!("joins look into what was built for them"),
        }
    }

    /// Takes over what a pipeline made, once all its workers have ended; whether it is done with it. If not, there are jobs
    /// to be done before ([`Running::help`]), and no helper may be left when it is asked again.
    pub fn finish(&mut self, running: &Running) -> Result<bool> {
        self.around.stop.clone().watched(|| self.finish_watched(running))
    }

    fn finish_watched(&mut self, running: &Running) -> Result<bool> {
        if let Some(cut) = &running.stage.cut {
            let parts = cut.pairs(running.finish_cut()?);
            if cut.probe.step < running.pipeline.steps.len() {
                self.broken = Some(Broken { cut: cut.clone(), parts });
                return Ok(true);
            }
            let marks = Held::SpilledMarks(cut.clone(), parts);
            self.made[self.at] = (Arc::new(marks), Reservation::new(&running.ran.account));
        } else {
            let Some((held, reservation)) = running.finish()? else { return Ok(false) };
            self.made[self.at] = (Arc::new(held), reservation);
            // Later rounds see others of the rows, or the same once more.
            if self.broken.is_none() && !self.is_again(self.at) {
                running.tell_watch();
            }
        }
        self.broken = None;
        self.advance(self.at)?;
        let took = self.around.clock.monotonic().saturating_sub(running.ran.began);
        running.ran.took_nanos.store(took.as_nanos() as u64, Ordering::Relaxed);
        Ok(true)
    }

    /// Lets go of what nobody reads after a pipeline any more.
    pub(super) fn release(&mut self, after: usize) {
        for (by, last) in self.last_readers.iter().enumerate() {
            if *last == after && by < after {
                self.made[by] = (Arc::new(Held::Nothing), Reservation::new(&self.account));
            }
        }
    }
}

impl Running {
    /// Tells who watches how many rows passed the first filter, if nothing else kept rows from it.
    fn tell_watch(&self) {
        let (Some(watch), Start::Table(spec), Source::Table(scan)) =
            (&self.pipeline.watch, &self.pipeline.start, &self.source)
        else {
            return;
        };
        let is_whole = scan.predicates().len() == spec.predicates.len() && scan.morsels() == 0;
        let ends_early = self.pipeline.first_key().is_some() || self.has_enough();
        if is_whole && !ends_early && self.stage.steps.start == 0 {
            watch.0(self.ran.passed[0].load(Ordering::Relaxed) as u64);
        }
    }
}

impl Pipeline {
    /// The pipelines whose rows or tables it reads.
    pub(super) fn reads(&self) -> Vec<usize> {
        let start = match &self.start {
            Start::Made(by) => by.clone(),
            Start::Chosen { table, marks, .. } => vec![*table, *marks],
            Start::Table(_) | Start::Values(..) => Vec::new(),
        };
        start.into_iter().chain(self.tables.iter().copied()).collect()
    }

    /// Keys that may be in several pages, if groups may leave once their page is taken in and those keys are few.
    fn shared_keys(&self, scan: &Scan) -> Result<Option<Arc<[i64]>>> {
        let (Start::Table(spec), Sink::Aggregate(groups)) = (&self.start, &self.sink) else { return Ok(None) };
        match groups.leaving_early().map(|place| &self.program.defs[place]) {
            Some(Def::Given(column)) => Ok(scan.shared_keys(spec.columns[*column])?.map(Arc::from)),
            _ => Ok(None),
        }
    }

    /// The scan's column by which rows are sorted first of all, if it is one of integers of which a limit asks for few rows
    /// with a value, and whether it descends.
    pub(super) fn first_key(&self) -> Option<(usize, bool)> {
        let (Start::Table(_), Sink::Sort { order, .. }) = (&self.start, &self.sink) else { return None };
        let key = order.keys.first().filter(|key| order.limit.is_some() && key.form == Form::Integers)?;
        match self.program.defs[key.place] {
            Def::Given(column) if !(key.nulls_first && self.program.fields[key.place].nullable) => {
                Some((column, key.descending))
            }
            _ => None,
        }
    }

    fn looks_into(&self, table: usize) -> bool {
        self.tables.contains(&table)
    }
}

impl Ran {
    pub(super) fn count_made(&self, rows: usize) {
        self.made.fetch_add(rows, Ordering::Relaxed);
    }

    /// The same in one more round.
    fn next_round(&self, scan: Option<Arc<ScanStats>>) -> Arc<Ran> {
        if let (Some(scan), Some(before)) = (&scan, &self.scan) {
            scan.add(before);
        }
        let of = |count: &AtomicUsize| AtomicUsize::new(count.load(Ordering::Relaxed));
        Arc::new(Ran {
            scan,
            entered: of(&self.entered),
            passed: self.passed.iter().map(of).collect(),
            made: of(&self.made),
            nanos: AtomicU64::new(self.nanos.load(Ordering::Relaxed)),
            workers: AtomicUsize::new(0),
            workers_before: self.workers().max(self.workers_before),
            account: self.account.clone(),
            began: self.began,
            took_nanos: AtomicU64::new(0),
        })
    }

    /// Workers that found something to do.
    pub(super) fn workers(&self) -> usize {
        self.workers.load(Ordering::Relaxed)
    }

    /// The same, of which some steps run, perhaps once more.
    fn again(self: &Arc<Ran>, from: usize) -> Arc<Ran> {
        self.passed[from..].iter().for_each(|passed| passed.store(0, Ordering::Relaxed));
        self.made.store(0, Ordering::Relaxed);
        self.clone()
    }
}
