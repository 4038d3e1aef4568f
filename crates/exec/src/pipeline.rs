//! A plan as pipelines: each takes rows from a table or from the pipeline before it, and ends where all rows have to be
//! known before the first one can go on.

mod compile;
mod explain;
mod prune;
mod sort;
mod window;

pub use explain::{Effort, Operator, Report, ReportedSink, ReportedSource, ReportedStep};

use crate::aggregate::{self, Aggregation, Finished};
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::join::{self, Building, Marks};
use crate::plan::Plan;
use crate::program::{Condition, Field, Place, Program, logical};
use crate::scan::{self, Scan};
use crate::stop::Stop;
use arrow_array::ArrayRef;
use basalt_engine::{BATCH_ROWS, ReadContext, ScanSpec, ScanStats};
use basalt_expr::cast::cast_array;
use basalt_expr::context::EvalContext;
use basalt_sched::Clock;
use basalt_types::vector::Vector;
use sort::{Order, Sorting};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Rows of a batch that an earlier pipeline made.
const HELD_ROWS: usize = 8192;

/// One pipeline.
#[derive(Debug)]
pub struct Pipeline {
    start: Start,
    program: Arc<Program>,
    steps: Vec<Step>,
    /// The pipelines whose tables its joins look into.
    tables: Vec<usize>,
    sink: Sink,
    notes: Notes,
}

/// The numbers that its operators have in the plan. What a join became has the join's number in two pipelines.
#[derive(Default, Debug)]
struct Notes {
    start: Vec<usize>,
    steps: Vec<Vec<usize>>,
    sink: Vec<usize>,
}

/// Where the rows of a pipeline come from.
#[derive(Debug)]
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

#[derive(Debug)]
enum Step {
    Filter(Vec<Condition>),
    Probe(join::Probe),
}

#[derive(Debug)]
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

/// Whether an execution may hold so many bytes more; what it has it keeps to its end.
pub type Room = dyn Fn(usize) -> bool + Send + Sync;

/// What an execution is given.
#[derive(Clone)]
pub struct Surroundings {
    pub read: ReadContext,
    pub ctx: Arc<EvalContext>,
    pub stop: Stop,
    pub room: Arc<Room>,
    pub clock: Arc<dyn Clock>,
}

/// A plan that runs, pipeline after pipeline.
pub struct Execution {
    pipelines: Vec<Arc<Pipeline>>,
    around: Surroundings,
    /// What each pipeline did, as far as they have begun.
    ran: Vec<Option<Arc<Ran>>>,
    /// What each pipeline made, as far as they have ended.
    made: Vec<Arc<Held>>,
}

/// What a pipeline did.
#[derive(Default)]
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
    /// What it asked of the memory budget.
    held_bytes: AtomicUsize,
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
    /// What workers that have ended made.
    made: Mutex<Vec<Made>>,
    /// Rows that have come to its end, if it wants some only.
    arrived: AtomicUsize,
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
}

/// What a pipeline made for another.
enum Held {
    Nothing,
    Groups(Finished),
    Table(Arc<join::Table>),
    Marks(Marks),
    Sorted(Vec<Vector>, usize),
}

impl Held {
    fn rows(&self) -> usize {
        match self {
            Held::Nothing | Held::Marks(_) => 0,
            Held::Groups(groups) => groups.groups(),
            Held::Table(table) => table.rows,
            Held::Sorted(_, rows) => *rows,
        }
    }

    fn parts(&self) -> usize {
        self.rows().div_ceil(HELD_ROWS)
    }

    fn is_put_together(&self) -> bool {
        matches!(self, Held::Groups(_))
    }

    /// One of the parts.
    fn part(&self, at: usize) -> Result<(Vec<Vector>, usize)> {
        let (from, to) = (at * HELD_ROWS, self.rows().min((at + 1) * HELD_ROWS));
        let taken = |columns: &[Vector]| {
            let rows: Vec<u32> = (from as u32..to as u32).collect();
            columns.iter().map(|column| column.take(&rows)).collect()
        };
        let columns = match self {
            Held::Groups(groups) => groups.columns(from..to)?,
            Held::Table(table) => taken(&table.payload),
            Held::Sorted(columns, _) => taken(columns),
            Held::Nothing | Held::Marks(_) => Vec::new(),
        };
        Ok((columns, to - from))
    }
}

impl Sink {
    /// Whether the order in which rows come shows.
    fn keeps_order(&self) -> bool {
        match self {
            Sink::Give { .. } | Sink::Window { .. } => true,
            Sink::Build(spec) => spec.keys.is_empty(),
            Sink::Sort { order, .. } => order.keys.is_empty(),
            Sink::Aggregate(_) | Sink::Mark(_) => false,
        }
    }
}

enum Made {
    Groups(Aggregation),
    Built(Building),
    Marked(Marks),
    Rows(Sorting),
}

impl Made {
    fn bytes(&self) -> usize {
        match self {
            Made::Groups(groups) => groups.bytes(),
            Made::Built(built) => built.bytes(),
            Made::Marked(marks) => marks.bytes(),
            Made::Rows(rows) => rows.bytes(),
        }
    }
}

/// One worker's part in a pipeline.
pub struct Worker {
    running: Arc<Running>,
    scan: Option<scan::Worker>,
    work: Work,
    sink: Local,
    /// What was asked of the memory budget.
    held_bytes: usize,
    /// Whether it has found something to do.
    busy: bool,
}

enum Local {
    Aggregate(Aggregation),
    Build(Building),
    Mark(Marks),
    Sort(Sorting),
    Give,
}

/// What came of a step.
pub enum Progress {
    /// Columns of rows that leave, in the types of the plan; or none yet.
    More(Option<(Vec<ArrayRef>, usize)>),
    Done,
}

impl Execution {
    /// `None` if the engine cannot run the plan.
    pub fn new(plan: &Plan, around: Surroundings) -> Option<Execution> {
        let pipelines: Vec<Arc<Pipeline>> = compile::pipelines(plan, &around.ctx)?.into_iter().map(Arc::new).collect();
        let ran = vec![None; pipelines.len()];
        Some(Execution { pipelines, around, ran, made: Vec::new() })
    }

    /// Starts the next pipeline; `None` after the last.
    pub fn start(&mut self) -> Result<Option<Arc<Running>>> {
        let Some(pipeline) = self.pipelines.get(self.made.len()).cloned() else { return Ok(None) };
        let (source, scan) = match &pipeline.start {
            Start::Table(spec) => {
                let scan = Scan::start(&self.around.read, spec.clone(), self.around.stop.clone())?;
                let stats = scan.stats().clone();
                (Source::Table(scan), Some(stats))
            }
            Start::Values(columns, rows) => {
                let held = vec![Arc::new(Held::Sorted(columns.clone(), *rows))];
                (Source::Held { held, next: AtomicUsize::new(0) }, None)
            }
            Start::Made(by) => {
                let held = by.iter().map(|by| self.made[*by].clone()).collect();
                (Source::Held { held, next: AtomicUsize::new(0) }, None)
            }
            Start::Chosen { table, marks, met } => {
                let (table, Held::Marks(marks)) = (self.table(*table), &*self.made[*marks]) else {
                    panic!("marks are made for what reads them");
                };
                let rows = marks.chosen(&table, *met);
                (Source::Chosen { table, rows, next: AtomicUsize::new(0) }, None)
            }
        };
        let tables: Vec<Arc<join::Table>> = pipeline.tables.iter().map(|by| self.table(*by)).collect();
        for step in &pipeline.steps {
            if let Step::Probe(probe) = step {
                probe.check(&tables[probe.join])?;
            }
        }
        let passed = pipeline.steps.iter().map(|_| AtomicUsize::new(0)).collect();
        let began = self.around.clock.monotonic();
        let ran = Arc::new(Ran { scan, passed, began, ..Ran::default() });
        self.ran[self.made.len()] = Some(ran.clone());
        Ok(Some(Arc::new(Running {
            pipeline,
            around: self.around.clone(),
            source,
            tables,
            made: Mutex::default(),
            arrived: AtomicUsize::new(0),
            ran,
        })))
    }

    fn table(&self, by: usize) -> Arc<join::Table> {
        match &*self.made[by] {
            Held::Table(table) => table.clone(),
            _ => panic!("joins look into what was built for them"),
        }
    }

    /// Takes over what a pipeline made, once all its workers have ended.
    pub fn finish(&mut self, running: &Running) -> Result<()> {
        self.made.push(Arc::new(running.finish()?));
        let took = self.around.clock.monotonic().saturating_sub(running.ran.began);
        running.ran.took_nanos.store(took.as_nanos() as u64, Ordering::Relaxed);
        Ok(())
    }
}

impl Running {
    /// Whether rows leave before it is known that nothing fails.
    pub fn may_fail_late(&self) -> bool {
        // Sums are put together when they are asked for.
        let sums = matches!(&self.source, Source::Held { held, .. } if held.iter().any(|held| held.is_put_together()));
        let fails = sums || !self.pipeline.program.never_fails() || !self.steps_are_total();
        matches!(self.pipeline.sink, Sink::Give { .. }) && fails
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
        })
    }

    /// Asks the memory budget for bytes that are held to the end of the execution.
    pub fn may_hold(&self, bytes: usize) -> bool {
        let may = (self.around.room)(bytes);
        if may {
            self.ran.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        may
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
        let most = match &self.source {
            Source::Table(scan) => scan.morsels(),
            _ if self.pipeline.sink.keeps_order() => 1,
            Source::Held { held, .. } => held.iter().map(|held| held.rows()).sum::<usize>().div_ceil(HELD_ROWS),
            Source::Chosen { rows, .. } => rows.len().div_ceil(HELD_ROWS),
        };
        workers.min(most).max(1)
    }

    pub fn worker(self: &Arc<Running>) -> Worker {
        let scan = match &self.source {
            Source::Table(scan) => Some(scan.worker()),
            Source::Held { .. } | Source::Chosen { .. } => None,
        };
        let sink = match &self.pipeline.sink {
            Sink::Aggregate(spec) => Local::Aggregate(Aggregation::new(spec)),
            Sink::Build(spec) => Local::Build(Building::new(spec)),
            Sink::Mark(probe) => Local::Mark(Marks::new(&self.tables[probe.join])),
            Sink::Sort { order, .. } | Sink::Window { order, .. } => Local::Sort(Sorting::new(order)),
            Sink::Give { .. } => Local::Give,
        };
        let work = Work::new(self.pipeline.program.clone(), self.around.ctx.clone(), self.tables.clone());
        Worker { running: self.clone(), scan, work, sink, held_bytes: 0, busy: false }
    }

    /// What the workers made together.
    fn finish(&self) -> Result<Held> {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        // Put together it is held a second time.
        let bytes = made.iter().map(Made::bytes).sum::<usize>();
        if !(self.around.room)(bytes) {
            return Err(Error::Beyond("more memory than there is"));
        }
        self.ran.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut groups: Option<Aggregation> = None;
        let mut built: Option<Building> = None;
        let mut marks: Option<Marks> = None;
        let mut rows: Option<Sorting> = None;
        for made in made {
            if self.around.stop.is_set() {
                return Err(Error::Stopped);
            }
            match made {
                Made::Groups(own) => match &mut groups {
                    // The larger takes in the smaller.
                    Some(all) if all.groups() >= own.groups() => all.merge(own)?,
                    Some(all) => {
                        let smaller = std::mem::replace(all, own);
                        all.merge(smaller)?;
                    }
                    None => groups = Some(own),
                },
                Made::Built(own) => match &mut built {
                    Some(all) => all.merge(own),
                    None => built = Some(own),
                },
                Made::Marked(own) => match &mut marks {
                    Some(all) => all.merge(&own),
                    None => marks = Some(own),
                },
                Made::Rows(own) => match &mut rows {
                    Some(all) => all.merge(own),
                    None => rows = Some(own),
                },
            }
        }
        let held = match (groups, built, marks, rows) {
            (Some(groups), ..) => Held::Groups(groups.finish()?),
            (_, Some(built), ..) => Held::Table(Arc::new(built.finish()?)),
            (_, _, Some(marks), _) => Held::Marks(marks),
            (.., Some(rows)) => {
                let (columns, count) = rows.finish()?;
                match &self.pipeline.sink {
                    Sink::Window { window, .. } => {
                        Held::Sorted(window.apply(columns, count, &self.around.stop)?, count)
                    }
                    _ => Held::Sorted(columns, count),
                }
            }
            (None, None, None, None) => return Ok(Held::Nothing),
        };
        self.ran.made.fetch_add(held.rows(), Ordering::Relaxed);
        Ok(held)
    }
}

impl Worker {
    /// Takes in one block: a millisecond or so.
    pub fn step(&mut self) -> Result<Progress> {
        if self.running.around.stop.is_set() {
            return Err(Error::Stopped);
        }
        let running = self.running.clone();
        if running.has_enough() {
            self.end();
            return Ok(Progress::Done);
        }
        let began = running.around.clock.monotonic();
        let mut leaves = None;
        let more = match &mut self.scan {
            Some(scan) => {
                let (sink, work) = (&mut self.sink, &mut self.work);
                scan.with_block(|block| {
                    let mut batch = Batch::of_block(block, work);
                    leaves = running.take_in(&mut batch, work, sink)?;
                    Ok(())
                })?
            }
            None => match running.next_held()? {
                Some((columns, rows)) => {
                    let mut batch = Batch::of_vectors(&columns, rows, &self.work);
                    leaves = running.take_in(&mut batch, &mut self.work, &mut self.sink)?;
                    true
                }
                None => false,
            },
        };
        running.ran.nanos.fetch_add((running.around.clock.monotonic() - began).as_nanos() as u64, Ordering::Relaxed);
        if !more {
            self.end();
            return Ok(Progress::Done);
        }
        if !std::mem::replace(&mut self.busy, true) {
            running.ran.workers.fetch_add(1, Ordering::Relaxed);
        }
        self.account()?;
        Ok(Progress::More(leaves))
    }

    /// Hands over what was made.
    fn end(&mut self) {
        let made = match std::mem::replace(&mut self.sink, Local::Give) {
            Local::Aggregate(groups) => Made::Groups(groups),
            Local::Build(built) => Made::Built(built),
            Local::Mark(marks) => Made::Marked(marks),
            Local::Sort(rows) => Made::Rows(rows),
            Local::Give => return,
        };
        self.running.made.lock().unwrap_or_else(PoisonError::into_inner).push(made);
    }

    fn account(&mut self) -> Result<()> {
        let bytes = match &self.sink {
            Local::Aggregate(groups) => groups.bytes(),
            Local::Build(built) => built.bytes(),
            Local::Mark(marks) => marks.bytes(),
            Local::Sort(rows) => rows.bytes(),
            Local::Give => 0,
        };
        // Asked for in large steps.
        if bytes > self.held_bytes {
            let wanted = (bytes - self.held_bytes).max(1 << 20);
            if !(self.running.around.room)(wanted) {
                return Err(Error::Beyond("more memory than there is"));
            }
            self.held_bytes += wanted;
            self.running.ran.held_bytes.fetch_add(wanted, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl Running {
    /// One batch through the pipeline. What leaves, if anything does.
    fn take_in(
        &self,
        batch: &mut Batch<'_>,
        work: &mut Work,
        sink: &mut Local,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let pipeline = &*self.pipeline;
        self.ran.entered.fetch_add(batch.count(), Ordering::Relaxed);
        for (step, passed) in pipeline.steps.iter().zip(&self.ran.passed) {
            match step {
                Step::Filter(conditions) => batch.filter(conditions, work)?,
                Step::Probe(probe) => probe.apply(batch, work)?,
            }
            if batch.rows() == 0 {
                return Ok(None);
            }
            passed.fetch_add(batch.count(), Ordering::Relaxed);
        }
        match (&pipeline.sink, sink) {
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
                self.ran.made.fetch_add(to - from, Ordering::Relaxed);
                Ok(Some((leave, to - from)))
            }
            _ => panic!("sinks are made for their pipelines"),
        }
    }

    /// The next rows that the pipeline before made.
    fn next_held(&self) -> Result<Option<(Vec<Vector>, usize)>> {
        if let Source::Chosen { table, rows, next } = &self.source {
            let from = next.fetch_add(HELD_ROWS, Ordering::Relaxed).min(rows.len());
            let rows = &rows[from..rows.len().min(from + HELD_ROWS)];
            let columns = table.payload.iter().map(|column| column.take(rows)).collect();
            return Ok((!rows.is_empty()).then_some((columns, rows.len())));
        }
        let Source::Held { held, next } = &self.source else { return Ok(None) };
        let mut at = next.fetch_add(1, Ordering::Relaxed);
        for held in held {
            match at.checked_sub(held.parts()) {
                None => return held.part(at).map(Some),
                Some(beyond) => at = beyond,
            }
        }
        Ok(None)
    }
}

/// A column in the type that its expression has.
fn leaving(vector: &Vector, field: &Field, ctx: &EvalContext) -> Result<ArrayRef> {
    let held = field.held();
    let values = logical(vector, &held);
    Ok(if held == field.ty { values } else { cast_array(&held, &field.ty, &values, false, ctx)? })
}
