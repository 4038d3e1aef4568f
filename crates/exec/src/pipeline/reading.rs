//! What a worker reads part by part: groups and tables that are on disk, of which it puts one part together at a time.
//!
//! A part that there is no room for is cut, and its own parts come next; so all of a part is done with before another
//! is opened, and memory holds one per worker.

use super::held::Held;
use super::merge::Merge;
use super::sort::Windowed;
use super::{HELD_ROWS, Pipeline, Ran, Running, Sink, Source, Step};
use crate::aggregate::Finished;
use crate::aggregate::spill as groups;
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::join::spill::{Opened, Spilled};
use crate::join::{Kind, Marks, Probe, Table};
use crate::memory::Reservation;
use crate::program::{Field, Place};
use crate::spill::scatter::{Rows, Scatter};
use basalt_types::vector::Vector;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows that were read.
pub(super) enum Given {
    /// Columns, and how many rows they have.
    Columns(Vec<Vector>, usize),
    /// Groups, of which columns come about when they are asked for.
    Groups(Arc<Finished>, Range<usize>),
}

impl Given {
    fn of((columns, rows): (Vec<Vector>, usize)) -> Given {
        Given::Columns(columns, rows)
    }
}

/// What a worker has begun to read.
pub(super) enum Reading {
    Nothing,
    Groups(GroupsReading),
    Runs(Box<Merge>),
    /// What a window computed of a part, and how far it is read.
    Windowed(Windowed, usize),
    Joined(JoinReading),
    Chosen(ChosenReading),
}

impl Reading {
    /// The next rows of what was begun.
    pub fn next(&mut self, running: &Running, work: &mut Work) -> Result<Option<Given>> {
        match self {
            Reading::Nothing => Ok(None),
            Reading::Groups(groups) => groups.next(running),
            Reading::Runs(merge) => Ok(merge.next(&running.around.stop)?.map(Given::of)),
            Reading::Windowed(windowed, at) => {
                *at += 1;
                Ok((*at <= windowed.parts()).then(|| Given::of(windowed.part(*at - 1))))
            }
            Reading::Joined(join) => join.next(running, work),
            Reading::Chosen(chosen) => chosen.next(running),
        }
    }
}

pub(super) struct GroupsReading {
    pub of: Arc<Held>,
    /// Parts to be read, the next one last.
    pub parts: Vec<groups::Partition>,
    pub open: Option<(Arc<Finished>, usize)>,
    pub held: Reservation,
    /// Whose groups are counted, if they are.
    pub counted: Option<Arc<Ran>>,
}

impl GroupsReading {
    fn next(&mut self, running: &Running) -> Result<Option<Given>> {
        loop {
            if let Some((groups, at)) = &mut self.open {
                let rows = *at..groups.groups().min(*at + HELD_ROWS);
                *at = rows.end;
                if !rows.is_empty() {
                    return Ok(Some(Given::Groups(groups.clone(), rows)));
                }
                self.open = None;
                self.held.shrink_to(0);
            }
            let Some(part) = self.parts.pop() else { return Ok(None) };
            let Held::SpilledGroups(of, _) = &*self.of else { panic!("groups are read where they are") };
            match of.open(&part, &mut self.held, &running.around.stop)? {
                groups::Opened::Groups(groups) => {
                    self.counted.iter().for_each(|ran| ran.count_made(groups.groups()));
                    self.open = Some((Arc::new(*groups), 0));
                }
                groups::Opened::Parts(parts) => self.parts.extend(parts.into_iter().filter(|part| !part.is_empty())),
            }
        }
    }
}

/// Rows of both sides of a join that are in the same part, which was cut so often.
#[derive(Clone)]
pub(super) struct Pair {
    pub build: Rows,
    pub probe: Rows,
    pub level: u32,
}

/// How rows that look for partners were cut.
#[derive(Clone)]
pub(super) struct Cut {
    /// The join that they look into.
    pub probe: Arc<ProbeAt>,
    pub build: Arc<Spilled>,
    /// What there is of a row.
    pub places: Arc<[Place]>,
    pub fields: Arc<[Field]>,
}

/// One join of a pipeline: a step, or its end.
pub(super) struct ProbeAt {
    pub pipeline: Arc<Pipeline>,
    pub step: usize,
}

impl ProbeAt {
    pub fn probe(&self) -> &Probe {
        match (self.pipeline.steps.get(self.step), &self.pipeline.sink) {
            (Some(Step::Probe(probe)), _) | (None, Sink::Mark(probe)) => probe,
            _ => panic!("rows are cut where they look for partners"),
        }
    }
}

impl Cut {
    /// The hashes of a batch's rows, and what is kept of them.
    pub fn columns(&self, batch: &mut Batch<'_>, work: &mut Work) -> Result<(Vec<Vector>, Vec<u64>)> {
        let keys = self.probe.probe().key_columns(batch, work)?;
        let spec = &self.build.spec;
        let hashes = self.build.hash.of_sides(&keys, &spec.forms, &spec.null_safe, batch.rows())?;
        let columns = self.places.iter().map(|place| batch.vector(*place, work)).collect::<Result<_>>()?;
        Ok((columns, hashes))
    }

    /// Those of a part in smaller parts.
    fn cut(&self, rows: &Rows, level: u32, running: &Running, work: &mut Work) -> Result<Vec<Rows>> {
        let mut scatter = Scatter::new(&running.file()?, self.fields.clone(), level);
        for block in 0..rows.blocks() {
            running.check_stop()?;
            let (columns, count) = rows.read(block)?;
            let mut batch = Batch::of_places(&self.places, &columns, count, work);
            let (columns, hashes) = self.columns(&mut batch, work)?;
            scatter.add(&columns, &hashes)?;
        }
        scatter.finish()
    }

    /// The next table of those pairs that are needed, and what looks into it.
    fn open(
        &self,
        pairs: &mut Vec<Pair>,
        held: &mut Reservation,
        running: &Running,
        work: &mut Work,
        is_needed: impl Fn(&Pair) -> bool,
    ) -> Result<Option<(Table, Rows)>> {
        held.shrink_to(0);
        while let Some(pair) = pairs.pop() {
            if !is_needed(&pair) {
                continue;
            }
            match self.build.open(&pair.build, pair.level, held, &running.around.stop)? {
                Opened::Table(table) => return Ok(Some((*table, pair.probe))),
                Opened::Parts(parts) => {
                    let probes = self.cut(&pair.probe, pair.level, running, work)?;
                    let pair = |(build, probe)| Pair { build, probe, level: pair.level + 1 };
                    pairs.extend(parts.into_iter().zip(probes).map(pair));
                }
            }
        }
        Ok(None)
    }
}

/// Rows that go on in their pipeline, once the part of the table is there that they look into.
pub(super) struct JoinReading {
    pub cut: Cut,
    pub pairs: Vec<Pair>,
    pub open: Option<(Rows, usize)>,
    pub held: Reservation,
}

impl JoinReading {
    fn next(&mut self, running: &Running, work: &mut Work) -> Result<Option<Given>> {
        let Probe { kind, join, .. } = self.cut.probe.probe();
        loop {
            if let Some((probe, at)) = &mut self.open {
                if *at < probe.blocks() {
                    *at += 1;
                    return probe.read(*at - 1).map(|read| Some(Given::of(read)));
                }
                self.open = None;
                work.tables[*join] = running.tables[*join].clone().into();
            }
            let wants = matches!(kind, Kind::Inner | Kind::Semi);
            let is_needed = |pair: &Pair| pair.probe.rows > 0 && !(wants && pair.build.rows == 0);
            let opened = self.cut.open(&mut self.pairs, &mut self.held, running, work, is_needed)?;
            let Some((table, probe)) = opened else { return Ok(None) };
            work.tables[*join] = Arc::new(table).into();
            self.open = Some((probe, 0));
        }
    }
}

/// Held rows that others meet, or do not meet, of one part after the other.
pub(super) struct ChosenReading {
    pub cut: Cut,
    pub met: bool,
    pub pairs: Vec<Pair>,
    /// Of the pipeline that marks.
    pub work: Work,
    pub open: Option<(Arc<Table>, Vec<u32>, usize)>,
    pub held: Reservation,
}

impl ChosenReading {
    fn next(&mut self, running: &Running) -> Result<Option<Given>> {
        loop {
            if let Some((table, rows, at)) = &mut self.open {
                let some = &rows[*at..rows.len().min(*at + HELD_ROWS)];
                *at += some.len();
                if !some.is_empty() {
                    let columns = table.payload.iter().map(|column| column.take(some)).collect();
                    return Ok(Some(Given::Columns(columns, some.len())));
                }
                self.open = None;
            }
            let met = self.met;
            let is_needed = |pair: &Pair| pair.build.rows > 0 && !(met && pair.probe.rows == 0);
            let opened = self.cut.open(&mut self.pairs, &mut self.held, running, &mut self.work, is_needed)?;
            let Some((table, probe)) = opened else { return Ok(None) };
            let table = Arc::new(table);
            let rows = self.chosen(&table, &probe, running)?;
            self.open = Some((table, rows, 0));
        }
    }

    fn chosen(&mut self, table: &Arc<Table>, rows: &Rows, running: &Running) -> Result<Vec<u32>> {
        let at = self.cut.probe.clone();
        let probe = at.probe();
        let before = std::mem::replace(&mut self.work.tables[probe.join], table.clone().into());
        let mut marks = Marks::new(table);
        for block in 0..rows.blocks() {
            running.check_stop()?;
            let (columns, count) = rows.read(block)?;
            let mut batch = Batch::of_places(&self.cut.places, &columns, count, &self.work);
            marks.add(probe, &mut batch, &mut self.work)?;
        }
        self.work.tables[probe.join] = before;
        marks.chosen(table, self.met)
    }
}

impl Running {
    pub(super) fn check_stop(&self) -> Result<()> {
        if self.around.stop.is_set() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// The next rows for a worker that reads no table; `None` when none are left.
    pub(super) fn next_rows(&self, reading: &mut Reading, work: &mut Work) -> Result<Option<Given>> {
        loop {
            if let Some(given) = reading.next(self, work)? {
                return Ok(Some(given));
            }
            let given = match &self.source {
                Source::Table(_) => return Ok(None),
                Source::Held { held, next } => match taken(held, next) {
                    None => return Ok(None),
                    Some((held, at)) => self.begun(held, at, reading)?,
                },
                Source::Chosen { table, rows, next } => {
                    let from = next.fetch_add(HELD_ROWS, Ordering::Relaxed).min(rows.len());
                    let rows = &rows[from..rows.len().min(from + HELD_ROWS)];
                    let columns = table.payload.iter().map(|column| column.take(rows)).collect();
                    return Ok((!rows.is_empty()).then_some(Given::Columns(columns, rows.len())));
                }
                Source::Parts { cut, chosen, parts, next } => {
                    let Some(pair) = parts.get(next.fetch_add(1, Ordering::Relaxed)) else { return Ok(None) };
                    *reading = self.begun_part(cut, *chosen, Pair::clone(pair))?;
                    None
                }
            };
            if given.is_some() {
                return Ok(given);
            }
        }
    }

    /// A part's rows, or what gives them one after the other.
    fn begun(&self, held: &Arc<Held>, at: usize, reading: &mut Reading) -> Result<Option<Given>> {
        let own = Reservation::new(&self.ran.account);
        // Before the next one is there.
        *reading = Reading::Nothing;
        *reading = match &**held {
            Held::PartedGroups(groups, counted) => {
                let groups = groups.open(at)?;
                counted.begin(at).iter().for_each(|ran| ran.count_made(groups.groups()));
                let (of, open) = (held.clone(), Some((Arc::new(groups), 0)));
                Reading::Groups(GroupsReading { of, parts: Vec::new(), open, held: own, counted: None })
            }
            Held::SpilledGroups(groups, counted) => {
                let (parts, counted) = (vec![groups.parts[at].clone()], counted.begin(at));
                Reading::Groups(GroupsReading { of: held.clone(), parts, open: None, held: own, counted })
            }
            Held::Runs(runs) => Reading::Runs(Box::new(Merge::new(runs, own)?)),
            Held::PartedWindow(window, _) => Reading::Windowed(window.open(at)?, 0),
            _ => return held.part(at).map(Some),
        };
        Ok(None)
    }

    fn begun_part(&self, cut: &Cut, chosen: Option<bool>, pair: Pair) -> Result<Reading> {
        let (cut, pairs, held) = (cut.clone(), vec![pair], Reservation::new(&self.ran.account));
        let Some(met) = chosen else {
            return Ok(Reading::Joined(JoinReading { cut, pairs, open: None, held }));
        };
        // What earlier joins have found is among the columns that were kept.
        let pipeline = cut.probe.pipeline.clone();
        let table = Arc::new(Table::empty(&cut.build.spec)?);
        let tables = pipeline.tables.iter().map(|_| table.clone()).collect();
        let work = Work::new(pipeline.program.clone(), self.around.ctx.clone(), tables);
        Ok(Reading::Chosen(ChosenReading { cut, met, pairs, work, open: None, held }))
    }

    /// Rows that [`Running::next_rows`] gave.
    pub(super) fn batch<'b>(&self, given: &'b Given, work: &Work) -> Batch<'b> {
        match (given, &self.source) {
            (Given::Groups(groups, some), _) => Batch::of_groups(groups, some.clone(), work),
            (Given::Columns(columns, rows), Source::Parts { cut, chosen: None, .. }) => {
                Batch::of_places(&cut.places, columns, *rows, work)
            }
            (Given::Columns(columns, rows), _) => Batch::of_vectors(columns, *rows, work),
        }
    }
}

/// The next part of several pipelines' rows, and whose it is.
fn taken<'h>(held: &'h [Arc<Held>], next: &AtomicUsize) -> Option<(&'h Arc<Held>, usize)> {
    let mut at = next.fetch_add(1, Ordering::Relaxed);
    for held in held {
        match at.checked_sub(held.parts()) {
            None => return Some((held, at)),
            Some(beyond) => at = beyond,
        }
    }
    None
}
