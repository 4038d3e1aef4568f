//! A plan as pipelines: each takes rows from a table or from the pipeline before it, and ends where all rows have to be
//! known before the first one can go on.

mod compile;
mod explain;
mod prune;
mod sort;

pub use explain::Described;

use crate::aggregate::{self, Aggregation, Finished};
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::program::{Condition, Field, Place, Program, logical};
use crate::scan::{self, Scan};
use crate::stop::Stop;
use arrow_array::ArrayRef;
use basalt_engine::{ReadContext, ScanSpec, ScanStats};
use basalt_expr::cast::cast_array;
use basalt_expr::context::EvalContext;
use basalt_types::vector::Vector;
use sort::{Order, Sorting};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of a batch that an earlier pipeline made.
const HELD_ROWS: usize = 8192;

/// One pipeline.
#[derive(Debug)]
pub struct Pipeline {
    /// `None`: what the pipeline before it made.
    table: Option<ScanSpec>,
    program: Arc<Program>,
    conditions: Vec<Condition>,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    Aggregate(Arc<aggregate::Spec>),
    Sort {
        columns: Vec<Place>,
        order: Arc<Order>,
    },
    /// Rows that leave, of which some at the front are passed over.
    Give {
        columns: Vec<Place>,
        offset: usize,
        limit: Option<usize>,
    },
}

/// Whether an execution may hold so many bytes more, or (negative) gives them back.
pub type Room = dyn Fn(i64) -> bool + Send + Sync;

/// What an execution is given.
#[derive(Clone)]
pub struct Surroundings {
    pub read: ReadContext,
    pub ctx: Arc<EvalContext>,
    pub stop: Stop,
    pub room: Arc<Room>,
}

/// A plan that runs, pipeline after pipeline.
pub struct Execution {
    pipelines: Vec<Arc<Pipeline>>,
    around: Surroundings,
    stats: Vec<Arc<ScanStats>>,
    /// What each pipeline did, as far as they have begun.
    ran: Vec<Option<Arc<Ran>>>,
}

/// What a pipeline did.
#[derive(Default, Debug)]
struct Ran {
    /// Rows that passed its conditions.
    passed: AtomicUsize,
    /// Rows that it gave.
    made: AtomicUsize,
    /// Of all workers.
    nanos: AtomicU64,
}

/// A pipeline that runs.
pub struct Running {
    pipeline: Arc<Pipeline>,
    around: Surroundings,
    source: Source,
    /// What workers that have ended made.
    made: Mutex<Vec<Made>>,
    ran: Arc<Ran>,
}

enum Source {
    Table(Arc<Scan>),
    Held { held: Held, next: AtomicUsize },
}

/// What a pipeline made for the next.
pub enum Held {
    Nothing,
    Groups(Finished),
    Sorted(Vec<Vector>, usize),
}

impl Held {
    fn rows(&self) -> usize {
        match self {
            Held::Nothing => 0,
            Held::Groups(groups) => groups.groups(),
            Held::Sorted(_, rows) => *rows,
        }
    }
}

enum Made {
    Groups(Aggregation),
    Rows(Sorting),
}

/// One worker's part in a pipeline.
pub struct Worker {
    running: Arc<Running>,
    scan: Option<scan::Worker>,
    work: Work,
    sink: Local,
    /// What was asked of the memory budget.
    held_bytes: usize,
    given: usize,
}

enum Local {
    Aggregate(Aggregation),
    Sort(Sorting),
    Give,
}

/// What came of a step.
pub enum Step {
    /// Columns of rows that leave, in the types of the plan; or none yet.
    More(Option<(Vec<ArrayRef>, usize)>),
    Done,
}

impl Execution {
    /// `None` if the engine cannot run the plan.
    pub fn new(plan: &Plan, around: Surroundings) -> Option<Execution> {
        let pipelines: Vec<Arc<Pipeline>> = compile::pipelines(plan, &around.ctx)?.into_iter().map(Arc::new).collect();
        let ran = vec![None; pipelines.len()];
        Some(Execution { pipelines, around, stats: Vec::new(), ran })
    }

    pub fn pipelines(&self) -> usize {
        self.pipelines.len()
    }

    /// Starts a pipeline with what the one before it made.
    pub fn start(&mut self, pipeline: usize, held: Held) -> Result<Arc<Running>> {
        let ran = Arc::<Ran>::default();
        self.ran[pipeline] = Some(ran.clone());
        let pipeline = self.pipelines[pipeline].clone();
        let source = match &pipeline.table {
            Some(spec) => {
                let scan = Scan::start(&self.around.read, spec.clone(), self.around.stop.clone())?;
                self.stats.push(scan.stats().clone());
                Source::Table(scan)
            }
            None => Source::Held { held, next: AtomicUsize::new(0) },
        };
        Ok(Arc::new(Running { pipeline, around: self.around.clone(), source, made: Mutex::default(), ran }))
    }
}

impl Running {
    /// How many workers have something to do.
    pub fn parallelism(&self, workers: usize) -> usize {
        match &self.source {
            Source::Table(scan) => workers.min(scan.morsels()).max(1),
            // Rows that leave do so in order.
            Source::Held { .. } => 1,
        }
    }

    pub fn worker(self: &Arc<Running>) -> Worker {
        let scan = match &self.source {
            Source::Table(scan) => Some(scan.worker()),
            Source::Held { .. } => None,
        };
        let sink = match &self.pipeline.sink {
            Sink::Aggregate(spec) => Local::Aggregate(Aggregation::new(spec)),
            Sink::Sort { order, .. } => Local::Sort(Sorting::new(order)),
            Sink::Give { .. } => Local::Give,
        };
        let work = Work::new(self.pipeline.program.clone(), self.around.ctx.clone());
        Worker { running: self.clone(), scan, work, sink, held_bytes: 0, given: 0 }
    }

    /// What the workers made together, once all have ended.
    pub fn finish(&self) -> Result<Held> {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let mut groups: Option<Aggregation> = None;
        let mut rows: Option<Sorting> = None;
        for made in made {
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
                Made::Rows(own) => match &mut rows {
                    Some(all) => all.merge(own),
                    None => rows = Some(own),
                },
            }
        }
        let held = match (groups, rows) {
            (Some(groups), _) => Held::Groups(groups.finish()?),
            (None, Some(rows)) => {
                let (columns, count) = rows.finish()?;
                Held::Sorted(columns, count)
            }
            (None, None) => return Ok(Held::Nothing),
        };
        self.ran.made.fetch_add(held.rows(), Ordering::Relaxed);
        Ok(held)
    }
}

impl Worker {
    /// Takes in one block: a millisecond or so.
    pub fn step(&mut self) -> Result<Step> {
        if self.running.around.stop.is_set() {
            return Err(Error::Stopped);
        }
        let running = self.running.clone();
        let began = std::time::Instant::now();
        let mut leaves = None;
        let more = match &mut self.scan {
            Some(scan) => {
                let (sink, work, given) = (&mut self.sink, &mut self.work, &mut self.given);
                scan.with_block(|block| {
                    let mut batch = Batch::of_block(block, work);
                    leaves = running.take_in(&mut batch, work, sink, given)?;
                    Ok(())
                })?
            }
            None => match running.next_held()? {
                Some((columns, rows)) => {
                    let mut batch = Batch::of_vectors(&columns, rows, &self.work);
                    leaves = running.take_in(&mut batch, &mut self.work, &mut self.sink, &mut self.given)?;
                    true
                }
                None => false,
            },
        };
        running.ran.nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        if !more {
            self.end();
            return Ok(Step::Done);
        }
        self.account()?;
        Ok(Step::More(leaves))
    }

    /// Hands over what was made.
    fn end(&mut self) {
        let made = match std::mem::replace(&mut self.sink, Local::Give) {
            Local::Aggregate(groups) => Made::Groups(groups),
            Local::Sort(rows) => Made::Rows(rows),
            Local::Give => return,
        };
        self.running.made.lock().unwrap_or_else(PoisonError::into_inner).push(made);
    }

    fn account(&mut self) -> Result<()> {
        let bytes = match &self.sink {
            Local::Aggregate(groups) => groups.bytes(),
            Local::Sort(rows) => rows.bytes(),
            Local::Give => 0,
        };
        // Asked for in large steps.
        if bytes > self.held_bytes {
            let wanted = (bytes - self.held_bytes).max(1 << 20);
            if !(self.running.around.room)(wanted as i64) {
                return Err(Error::Beyond("more memory than there is"));
            }
            self.held_bytes += wanted;
        }
        Ok(())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        (self.running.around.room)(-(self.held_bytes as i64));
    }
}

impl Running {
    /// One batch through the pipeline. What leaves, if anything does.
    fn take_in(
        &self,
        batch: &mut Batch<'_>,
        work: &mut Work,
        sink: &mut Local,
        given: &mut usize,
    ) -> Result<Option<(Vec<ArrayRef>, usize)>> {
        let pipeline = &*self.pipeline;
        batch.filter(&pipeline.conditions, work)?;
        if batch.rows() == 0 {
            return Ok(None);
        }
        self.ran.passed.fetch_add(batch.count(), Ordering::Relaxed);
        match (&pipeline.sink, sink) {
            (Sink::Aggregate(_), Local::Aggregate(groups)) => groups.add(batch, work).map(|()| None),
            (Sink::Sort { columns, .. }, Local::Sort(rows)) => {
                batch.compact();
                rows.add(batch, columns, work).map(|()| None)
            }
            (Sink::Give { columns, offset, limit }, Local::Give) => {
                batch.compact();
                let from = offset.saturating_sub(*given).min(batch.rows());
                let end = limit.map_or(usize::MAX, |limit| offset + limit);
                let to = end.saturating_sub(*given).min(batch.rows());
                *given += batch.rows();
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
        let Source::Held { held, next } = &self.source else { return Ok(None) };
        let from = next.fetch_add(HELD_ROWS, Ordering::Relaxed);
        match held {
            Held::Groups(groups) if from < groups.groups() => {
                let to = groups.groups().min(from + HELD_ROWS);
                Ok(Some((groups.columns(from..to)?, to - from)))
            }
            Held::Sorted(columns, count) if from < *count => {
                let rows: Vec<u32> = (from as u32..(*count).min(from + HELD_ROWS) as u32).collect();
                Ok(Some((columns.iter().map(|column| column.take(&rows)).collect(), rows.len())))
            }
            Held::Nothing | Held::Groups(_) | Held::Sorted(..) => Ok(None),
        }
    }
}

/// A column in the type that its expression has.
fn leaving(vector: &Vector, field: &Field, ctx: &EvalContext) -> Result<ArrayRef> {
    let held = field.held();
    let values = logical(vector, &held);
    Ok(if held == field.ty { values } else { cast_array(&held, &field.ty, &values, false, ctx)? })
}
