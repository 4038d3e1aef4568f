//! A plan as pipelines: each takes rows from a table or from the pipeline before it, and ends where all rows have to be
//! known before the first one can go on.

mod breaking;
mod compile;
mod execution;
mod explain;
mod held;
mod merge;
mod one_row;
mod prune;
mod reading;
mod rounds;
mod sets;
mod sort;
mod spilling;
mod window;

pub use explain::{Effort, Operator, Recursion, Report, ReportedSink, ReportedSource, ReportedStep};

use crate::aggregate::rows::DealtRows;
use crate::aggregate::{self, Aggregation};
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::join::assembly::Assembly;
use crate::join::{self, Building, Marks};
use crate::memory::{Account, Memory, Reservation};
use crate::plan::Watch;
use crate::program::{Condition, Field, Place, Program, logical};
use crate::scan::{self, Scan};
use crate::spill::hash::KeyHash;
use crate::spill::scatter::Scatter;
use crate::spill::{SpillFile, TempSpace, bytes_of};
use crate::stop::Stop;
use arrow_array::ArrayRef;
use basalt_engine::{BATCH_ROWS, ReadContext, ScanSpec, ScanStats};
use basalt_expr::cast::cast_array;
use basalt_expr::context::EvalContext;
use basalt_sched::{Clock, threads};
use basalt_types::vector::Vector;
use breaking::{Broken, Stage};
use held::Held;
use reading::{Cut, Pair, Reading};
use rounds::{Loop, Rounds};
use sets::Sets;
use sort::{Order, Sorting};
use spilling::{Flushed, Made};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long blocks are taken in before others may have their turn.
const STEPS_TIME: Duration = Duration::from_micros(500);
/// Rows of a batch that an earlier pipeline made.
const HELD_ROWS: usize = 8192;

/// One pipeline.
#[derive(Clone, Debug)]
pub struct Pipeline {
    start: Start,
    program: Arc<Program>,
    steps: Vec<Step>,
    /// The pipelines whose tables its joins look into.
    tables: Vec<usize>,
    sink: Sink,
    notes: Notes,
    /// Who learns how many rows of a table pass the first filter.
    watch: Option<Watch>,
}

/// The numbers that its operators have in the plan. What a join became has the join's number in two pipelines.
#[derive(Clone, Default, Debug)]
struct Notes {
    start: Vec<usize>,
    steps: Vec<Vec<usize>>,
    sink: Vec<usize>,
}

/// Where the rows of a pipeline come from.
#[derive(Clone, Debug)]
enum Start {
    Table(ScanSpec),
    /// Columns of so many rows.
    Values(Vec<Vector>, usize),
    /// What other pipelines made, one after the other.
    Made(Vec<usize>),
    /// The rows of a built table that another pipeline met, or did not meet.
    Chosen {
        table: usize,
        marks: usize,
        met: bool,
    },
}

#[derive(Clone, Debug)]
enum Step {
    Filter(Vec<Condition>),
    Probe(join::Probe),
    Sets(Sets),
}

#[derive(Clone, Debug)]
enum Sink {
    Aggregate(Arc<aggregate::Spec>),
    Build(Arc<join::Spec>),
    Mark(join::Probe),
    Sort {
        columns: Vec<Place>,
        order: Arc<Order>,
    },
    /// Rows that are sorted, and what is computed of them together.
    Window {
        columns: Vec<Place>,
        order: Arc<Order>,
        window: Arc<window::Spec>,
    },
    /// Rows that leave, of which some at the front are passed over.
    Give {
        columns: Vec<Place>,
        offset: usize,
        limit: Option<usize>,
    },
}

/// A plan in pipelines, each behind what it reads. Constants and calls without columns have been computed: those of a plan
/// with parameters or stable calls are for one execution.
#[derive(Clone)]
pub struct Pipelines {
    all: Arc<[Arc<Pipeline>]>,
    /// Those that run in rounds.
    loops: Arc<[Loop]>,
}

impl Pipelines {
    /// What constants take that were computed: long texts, and rows of values.
    pub fn constant_bytes(&self) -> usize {
        let of_step = |step: &Step| match step {
            Step::Filter(conditions) => conditions.iter().map(Condition::constant_bytes).sum(),
            Step::Probe(probe) => probe.residual.iter().map(Condition::constant_bytes).sum(),
            Step::Sets(_) => 0,
        };
        let of_pipeline = |pipeline: &Arc<Pipeline>| {
            let values = match &pipeline.start {
                Start::Values(columns, _) => columns.iter().map(bytes_of).sum(),
                Start::Table(_) | Start::Made(_) | Start::Chosen { .. } => 0,
            };
            values + pipeline.program.constant_bytes() + pipeline.steps.iter().map(of_step).sum::<usize>()
        };
        self.all.iter().map(of_pipeline).sum()
    }
}

/// What an execution is given.
#[derive(Clone)]
pub struct Surroundings {
    pub read: ReadContext,
    pub ctx: Arc<EvalContext>,
    pub stop: Stop,
    pub memory: Arc<dyn Memory>,
    pub temp: Arc<TempSpace>,
    pub clock: Arc<dyn Clock>,
}

/// A plan that runs, pipeline after pipeline.
pub struct Execution {
    pipelines: Pipelines,
    around: Surroundings,
    /// The pipeline whose turn it is.
    at: usize,
    rounds: Vec<Rounds>,
    /// What each pipeline did, as far as they have begun.
    ran: Vec<Option<Arc<Ran>>>,
    /// What each pipeline made, as far as they have ended, and as long as others read it.
    made: Vec<(Arc<Held>, Reservation)>,
    /// The last pipeline that reads what each made.
    last_readers: Vec<usize>,
    /// How often others read what each makes.
    reads: Vec<usize>,
    /// What the pipeline whose turn it is has done already, if it had to be broken.
    broken: Option<Broken>,
    account: Arc<Account>,
    hash: KeyHash,
}

/// What a pipeline did.
struct Ran {
    scan: Option<Arc<ScanStats>>,
    /// Rows that came in.
    entered: AtomicUsize,
    /// Rows that each of its steps let pass.
    passed: Vec<AtomicUsize>,
    /// Rows that it gave.
    made: AtomicUsize,
    /// Of all workers.
    nanos: AtomicU64,
    /// Workers that found something to do.
    workers: AtomicUsize,
    /// The most of them in an earlier round.
    workers_before: usize,
    /// What it asked of the memory budget, and wrote to temporary files.
    account: Arc<Account>,
    began: Duration,
    /// From its start until all it made was put together; 0 before.
    took_nanos: AtomicU64,
}

/// A pipeline that runs.
pub struct Running {
    pipeline: Arc<Pipeline>,
    around: Surroundings,
    source: Source,
    tables: Vec<Arc<join::Table>>,
    stage: Stage,
    /// Whether joins look for partners in what it makes.
    is_looked_into: bool,
    /// How often others read it.
    reads: usize,
    /// Whether the only one who reads it does so by all workers, in any order.
    is_shared: bool,
    /// How many workers there may be.
    workers: AtomicUsize,
    hash: KeyHash,
    /// Where what has no room goes, once there is such a thing.
    file: Mutex<Option<Arc<SpillFile>>>,
    /// What workers that have ended made.
    made: Mutex<Vec<(Made, Option<Flushed>, Reservation)>>,
    /// What is put together by several threads, and what was asked for it.
    assembly: Mutex<Option<(Arc<Assembly>, Reservation)>>,
    /// Of rows that are kept until none can fail any more.
    kept: Mutex<Reservation>,
    /// Rows that have come to its end, if it wants some only.
    arrived: AtomicUsize,
    /// Keys of groups that may be in several pages, where the groups of others may leave early.
    shared_keys: Option<Arc<[i64]>>,
    /// Of each condition of the first filter, the scan's predicates that together say the same, if there are such.
    told_by: Vec<Vec<usize>>,
    ran: Arc<Ran>,
}

enum Source {
    Table(Arc<Scan>),
    /// Parts of at most [`HELD_ROWS`] are counted over all.
    Held {
        held: Vec<Arc<Held>>,
        next: AtomicUsize,
    },
    Chosen {
        table: Arc<join::Table>,
        rows: Vec<u32>,
        next: AtomicUsize,
    },
    /// Rows of a broken pipeline, part by part; or the same as [`Source::Chosen`], `chosen` by whether they were met.
    Parts {
        cut: Cut,
        chosen: Option<bool>,
        parts: Vec<Arc<Pair>>,
        next: AtomicUsize,
    },
}

impl Sink {
    /// Whether the order in which rows come may show in what others read.
    fn shows_order(&self) -> bool {
        matches!(self, Sink::Build(_)) || self.keeps_order()
    }

    /// Whether rows are told apart by floats, of which not every one can be.
    fn has_float_keys(&self) -> bool {
        match self {
            Sink::Build(spec) => spec.has_float_keys(),
            Sink::Aggregate(spec) => spec.has_float_keys(),
            Sink::Mark(_) | Sink::Sort { .. } | Sink::Window { .. } | Sink::Give { .. } => false,
        }
    }

    /// Whether rows have to come one after the other.
    fn keeps_order(&self) -> bool {
        match self {
            Sink::Give { .. } | Sink::Window { .. } => true,
            Sink::Build(spec) => spec.keys.is_empty() && !spec.any_order,
            Sink::Sort { order, .. } => order.keys.is_empty(),
            Sink::Aggregate(spec) => spec.heeds_order(),
            Sink::Mark(_) => false,
        }
    }
}

/// One worker's part in a pipeline.
pub struct Worker {
    running: Arc<Running>,
    scan: Option<scan::Worker>,
    work: Work,
    sink: Local,
    reading: Reading,
    /// Groups that it has dealt out before the end.
    dealt: Vec<DealtRows>,
    dealt_bytes: usize,
    /// What of its rows it has written.
    flushed: Option<Flushed>,
    /// What the others take.
    held: Reservation,
    /// Whether it has found something to do.
    busy: bool,
    counts: Counts,
}

/// What a worker has counted since it last said so: where all workers count each waits for the others.
#[derive(Default)]
struct Counts {
    nanos: u64,
    entered: usize,
    /// By step.
    passed: Vec<usize>,
}

enum Local {
    Aggregate(Box<Aggregation>),
    Build(Building),
    Mark(Marks),
    Sort(Sorting),
    Give,
    /// Once it has rows.
    Cut(Option<Scatter>),
}

/// What came of a step.
pub enum Progress {
    /// Columns of rows that leave, in the types of the plan; or none yet.
    More(Option<(Vec<ArrayRef>, usize)>),
    Done,
}

impl Running {
    /// Whether rows leave before it is known that nothing fails.
    pub fn may_fail_late(&self) -> bool {
        // Sums are put together when they are asked for.
        let sums = matches!(&self.source, Source::Held { held, .. } if held.iter().any(|held| held.is_put_together()));
        let parts = matches!(&self.source, Source::Parts { .. });
        let fails = sums || parts || !self.is_total();
        matches!(self.pipeline.sink, Sink::Give { .. }) && self.stage.cut.is_none() && fails
    }

    /// Whether nothing that is computed of a row fails.
    fn is_total(&self) -> bool {
        self.pipeline.program.never_fails() && self.steps_are_total()
    }

    fn steps_are_total(&self) -> bool {
        // Rows that a batch may have become.
        let mut rows = HELD_ROWS.max(BATCH_ROWS);
        self.pipeline.steps.iter().all(|step| match step {
            Step::Filter(conditions) => conditions.iter().all(Condition::is_total),
            Step::Probe(probe) => {
                let table = &self.tables[probe.join];
                let is_total = probe.is_total(table, &self.pipeline.program, rows);
                rows = rows.saturating_mul(table.partners_max());
                is_total
            }
            Step::Sets(sets) => {
                // However many there are.
                rows = usize::MAX;
                sets.is_total()
            }
        })
    }

    /// Asks the memory budget for so many bytes more, of rows that it gave and that are kept.
    pub fn may_hold(&self, bytes: usize) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let all = kept.bytes() + bytes;
        kept.reach(all)
    }

    /// Of the rows that come to the end of a pipeline that wants some only, those that are among them.
    fn wanted(&self, rows: usize, offset: usize, limit: Option<usize>) -> Range<usize> {
        let before = self.arrived.fetch_add(rows, Ordering::Relaxed);
        let end = limit.map_or(usize::MAX, |limit| offset.saturating_add(limit));
        let to = end.saturating_sub(before).min(rows);
        offset.saturating_sub(before).min(to)..to
    }

    /// Whether all rows that are wanted have come.
    fn has_enough(&self) -> bool {
        let window = match &self.pipeline.sink {
            Sink::Give { offset, limit: Some(limit), .. } => Some((*offset, *limit)),
            Sink::Sort { order, .. } if order.keys.is_empty() => order.limit.map(|limit| (order.offset, limit)),
            _ => None,
        };
        let arrived = self.arrived.load(Ordering::Relaxed);
        window.is_some_and(|(offset, limit)| arrived >= offset.saturating_add(limit))
    }

    /// How many workers have something to do.
    pub fn parallelism(&self, workers: usize) -> usize {
        self.workers.store(workers, Ordering::Relaxed);
        let most = match &self.source {
            Source::Table(scan) => scan.morsels(),
            _ if self.stage.cut.is_none() && self.pipeline.sink.keeps_order() => 1,
            // Few rows are not worth a second worker; which of equal values is met first is then no question of luck.
            Source::Held { held, .. } if are_few(held) => 1,
            Source::Held { held, .. } => held.iter().map(|held| held.parts()).sum(),
            Source::Chosen { rows, .. } => rows.len().div_ceil(HELD_ROWS),
            Source::Parts { parts, .. } => parts.len(),
        };
        workers.min(most).max(1)
    }

    pub fn worker(self: &Arc<Running>) -> Worker {
        let scan = match &self.source {
            Source::Table(scan) => Some(scan.worker()),
            Source::Held { .. } | Source::Chosen { .. } | Source::Parts { .. } => None,
        };
        let sink = match &self.pipeline.sink {
            _ if self.stage.cut.is_some() => Local::Cut(None),
            Sink::Aggregate(spec) => {
                let mut groups = Aggregation::new(spec);
                self.shared_keys.iter().for_each(|keys| groups.leave_early(keys.clone(), &self.around.ctx));
                Local::Aggregate(Box::new(groups))
            }
            Sink::Build(spec) => Local::Build(Building::new(spec)),
            Sink::Mark(probe) => Local::Mark(Marks::new(&self.tables[probe.join])),
            Sink::Sort { order, .. } => {
                let mut rows = Sorting::new(order);
                if let Some((column, _)) = self.pipeline.first_key().filter(|_| self.stage.steps.start == 0)
                    && self.is_total()
                {
                    rows.rule_out_by(column);
                }
                Local::Sort(rows)
            }
            Sink::Window { order, .. } => Local::Sort(Sorting::new(order)),
            Sink::Give { .. } => Local::Give,
        };
        let work = Work::new(self.pipeline.program.clone(), self.around.ctx.clone(), self.tables.clone());
        let (held, reading) = (Reservation::new(&self.ran.account), Reading::Nothing);
        let counts = Counts { passed: vec![0; self.pipeline.steps.len()], ..Counts::default() };
        let (dealt, dealt_bytes, flushed, busy) = (Vec::new(), 0, None, false);
        Worker { running: self.clone(), scan, reading, work, sink, dealt, dealt_bytes, flushed, held, busy, counts }
    }
}

/// Whether one worker takes all at once, had it been held together.
fn are_few(held: &[Arc<Held>]) -> bool {
    held.iter().all(|held| held.parts() <= 1) && held.iter().map(|held| held.rows()).sum::<usize>() <= HELD_ROWS
}

impl Worker {
    /// Takes in blocks until rows leave, or for about half a millisecond: less would cost whoever asks more than it brings.
    pub fn steps(&mut self) -> Result<Progress> {
        self.running.around.stop.clone().watched(|| self.steps_watched())
    }

    fn steps_watched(&mut self) -> Result<Progress> {
        let began = self.running.around.clock.monotonic();
        let (mut now, mut let_in) = (began, began);
        loop {
            match self.one(&mut now)? {
                Progress::More(None) if now < began + STEPS_TIME => {}
                progress => {
                    self.tell();
                    return Ok(progress);
                }
            }
            if now.saturating_sub(let_in) >= threads::LET_IN_EVERY {
                threads::let_in();
                let_in = now;
            }
        }
    }

    /// Takes in one block.
    #[cfg(test)]
    fn step(&mut self) -> Result<Progress> {
        let progress = self.one(&mut self.running.around.clock.monotonic());
        self.tell();
        progress
    }

    fn tell(&mut self) {
        let ran = &self.running.ran;
        ran.nanos.fetch_add(std::mem::take(&mut self.counts.nanos), Ordering::Relaxed);
        ran.entered.fetch_add(std::mem::take(&mut self.counts.entered), Ordering::Relaxed);
        for (passed, own) in ran.passed.iter().zip(&mut self.counts.passed) {
            passed.fetch_add(std::mem::take(own), Ordering::Relaxed);
        }
    }

    /// The next block, from `now` on, which is the time behind it then: clocks are read once for each.
    fn one(&mut self, now: &mut Duration) -> Result<Progress> {
        if self.running.around.stop.is_set() {
            return Err(Error::Stopped);
        }
        if self.running.has_enough() {
            self.end()?;
            return Ok(Progress::Done);
        }
        let Worker { running, scan, work, sink, reading, counts, .. } = self;
        let mut leaves = None;
        let more = match scan {
            Some(scan) => scan.with_block(|block| {
                let mut batch = Batch::of_block(block, work);
                leaves = running.take_in(&mut batch, work, sink, counts)?;
                Ok(())
            })?,
            None => match running.next_rows(reading, work)? {
                Some(given) => {
                    let mut batch = running.batch(&given, work);
                    leaves = running.take_in(&mut batch, work, sink, counts)?;
                    true
                }
                None => false,
            },
        };
        let began = std::mem::replace(now, running.around.clock.monotonic());
        counts.nanos += now.saturating_sub(began).as_nanos() as u64;
        if !more {
            self.end()?;
            return Ok(Progress::Done);
        }
        if !std::mem::replace(&mut self.busy, true) {
            self.running.ran.workers.fetch_add(1, Ordering::Relaxed);
        }
        self.account()?;
        Ok(Progress::More(leaves))
    }
}

impl Running {
    /// Which conditions of the first filter hold for all rows of a block that tells this of the scan's predicates. Nothing
    /// if no filter comes first.
    fn told(&self, predicates: &[bool]) -> Vec<bool> {
        let holds = |by: &Vec<usize>| !by.is_empty() && by.iter().all(|at| predicates[*at]);
        self.told_by.iter().map(holds).collect()
    }

    /// One batch through the pipeline. What leaves, if anything does.
    fn take_in(
        &self,
        batch: &mut Batch<'_>,
        work: &mut Work,
        sink: &mut Local,
        counts: &mut Counts,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let pipeline = &*self.pipeline;
        let steps = self.stage.steps.clone();
        if steps.start == 0 {
            counts.entered += batch.count();
        }
        // What comes behind all rows that a limit keeps is looked at no further.
        if let Local::Sort(rows) = sink
            && let Some((column, wanted)) = rows.wanted()
        {
            batch.rule_out(column, wanted)?;
            if batch.rows() == 0 {
                return Ok(None);
            }
        }
        let mut told = batch.told().filter(|_| steps.start == 0).map(|told| self.told(told));
        for (step, passed) in pipeline.steps[steps.clone()].iter().zip(&mut counts.passed[steps]) {
            match step {
                Step::Filter(conditions) => match told.take() {
                    Some(told) if !told.is_empty() => batch.filter_rest(conditions, told, work)?,
                    _ => batch.filter(conditions, work)?,
                },
                Step::Probe(probe) => probe.apply(batch, work)?,
                Step::Sets(sets) => sets.apply(batch, work)?,
            }
            if batch.rows() == 0 {
                return Ok(None);
            }
            *passed += batch.count();
        }
        match (&pipeline.sink, sink) {
            (_, Local::Cut(scatter)) => self.cut(batch, work, scatter).map(|()| None),
            (Sink::Aggregate(_), Local::Aggregate(groups)) => groups.add(batch, work).map(|()| None),
            (Sink::Build(_), Local::Build(built)) => {
                batch.compact();
                built.add(batch, work).map(|()| None)
            }
            (Sink::Mark(probe), Local::Mark(marks)) => marks.add(probe, batch, work).map(|()| None),
            (Sink::Sort { columns, .. } | Sink::Window { columns, .. }, Local::Sort(rows)) => {
                batch.compact();
                self.arrived.fetch_add(batch.rows(), Ordering::Relaxed);
                rows.add(batch, columns, work).map(|()| None)
            }
            (Sink::Give { columns, offset, limit }, Local::Give) => {
                batch.compact();
                let Range { start: from, end: to } = self.wanted(batch.rows(), *offset, *limit);
                if from >= to {
                    return Ok(None);
                }
                let mut leave = Vec::with_capacity(columns.len());
                for place in columns {
                    let field = work.program.fields[*place].clone();
                    leave.push(leaving(&batch.vector(*place, work)?, &field, &work.ctx)?.slice(from, to - from));
                }
                self.ran.count_made(to - from);
                Ok(Some((leave, to - from)))
            }
            _ => panic!("sinks are made for their pipelines"),
        }
    }
}

/// A column in the type that its expression has.
fn leaving(vector: &Vector, field: &Field, ctx: &EvalContext) -> Result<ArrayRef> {
    let held = field.held();
    let values = logical(vector, &held);
    Ok(if held == field.ty { values } else { cast_array(&held, &field.ty, &values, false, ctx)? })
}

#[cfg(test)]
mod tests;
