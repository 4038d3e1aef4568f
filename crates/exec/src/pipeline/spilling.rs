//! The end of a pipeline: what workers make of its rows, in memory or, where that has no room, on disk; and what they
//! made together.

use super::held::{Counted, Held};
use super::merge::Runs;
use super::sort::Sorting;
use super::{Local, Running, Sink, Worker, window};
use crate::aggregate::Aggregation;
use crate::aggregate::rows::{DealtRows, Parted};
use crate::aggregate::spill as groups;
use crate::batch::{Batch, Work};
use crate::error::{Error, Result};
use crate::join::assembly::{Assembly, Next};
use crate::join::{self, Building, Marks};
use crate::memory::Reservation;
use crate::spill::hash::PARTS;
use crate::spill::scatter::{Rows, Scatter};
use crate::spill::{SPILL_BYTES_MIN, SpillFile};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

const NO_ROOM: Error = Error::Beyond("more memory than there is");

/// What a worker has made, as far as it is in memory.
pub(super) enum Made {
    Groups(Box<Aggregation>),
    /// Groups that are not to be put together at once.
    Dealt(Vec<DealtRows>),
    Built(Building),
    Marked(Marks),
    Rows(Sorting),
    Cut(Option<Scatter>),
}

/// What a worker has written.
pub(super) enum Flushed {
    Groups(groups::Flush),
    Built(join::spill::Flush),
    Held(Rows),
    Runs(Vec<Rows>),
}

impl Worker {
    /// Hands over what was made.
    pub(super) fn end(&mut self) -> Result<()> {
        let mut made = match std::mem::replace(&mut self.sink, Local::Give) {
            Local::Aggregate(groups) => {
                self.running.ran.count_made(groups.left_early());
                Made::Groups(groups)
            }
            Local::Build(built) => Made::Built(built),
            Local::Mark(marks) => Made::Marked(marks),
            Local::Sort(rows) => Made::Rows(rows),
            Local::Cut(scatter) => Made::Cut(scatter),
            Local::Give => return Ok(()),
        };
        // What was dealt out takes in the rest.
        if let Made::Groups(groups) = &made
            && !self.dealt.is_empty()
        {
            let with_rest = self.held.bytes() + groups.rows_bytes();
            if !self.held.reach(with_rest) {
                self.flush_dealt()?;
            }
        }
        // Each worker writes its own rest, beside the others.
        if self.flushed.is_some() {
            self.flush_dealt()?;
            self.running.flush(&mut made, &mut self.flushed)?;
            self.held.shrink_to(0);
        }
        let mut held = std::mem::replace(&mut self.held, Reservation::new(&self.running.ran.account));
        if self.flushed.is_none() {
            made = self.running.dealt(made, std::mem::take(&mut self.dealt), &mut held)?;
        }
        let all = (made, self.flushed.take(), held);
        self.running.made.lock().unwrap_or_else(PoisonError::into_inner).push(all);
        Ok(())
    }

    /// Deals groups out that rows do not come back to.
    fn deal(&mut self) -> Result<()> {
        let Local::Aggregate(groups) = &mut self.sink else { return Ok(()) };
        if self.flushed.is_some() || self.running.reads != 1 || !groups.is_fruitless(self.dealt.len()) {
            return Ok(());
        }
        let so_far = self.held.bytes();
        if !self.held.reach(so_far + groups.rows_bytes()) {
            return Ok(());
        }
        let next = Box::new(groups.anew());
        let own = std::mem::replace(groups, next);
        let dealt = own.into_rows()?.dealt()?;
        self.dealt_bytes += dealt.bytes();
        self.dealt.push(dealt);
        Ok(())
    }

    /// Writes what was dealt out.
    fn flush_dealt(&mut self) -> Result<()> {
        if self.dealt.is_empty() {
            return Ok(());
        }
        self.dealt_bytes = 0;
        let mut dealt = Made::Dealt(std::mem::take(&mut self.dealt));
        self.running.flush(&mut dealt, &mut self.flushed)
    }

    /// Asks for what was made lately, or writes all of it.
    pub(super) fn account(&mut self) -> Result<()> {
        self.deal()?;
        let bytes = self.dealt_bytes
            + match &self.sink {
                Local::Aggregate(groups) => groups.bytes(),
                Local::Build(built) => built.bytes(),
                Local::Mark(marks) => marks.bytes(),
                Local::Sort(rows) => rows.bytes(),
                Local::Give | Local::Cut(_) => 0,
            };
        if self.held.reach(bytes) {
            // A sort forgets rows that a limit rules out.
            self.held.shrink_to(bytes.next_multiple_of(SPILL_BYTES_MIN));
            return Ok(());
        }
        let is_small = match &self.sink {
            Local::Aggregate(groups) => groups.is_small() && self.dealt.is_empty(),
            _ => bytes < SPILL_BYTES_MIN,
        };
        if is_small {
            return Ok(());
        }
        self.flush_dealt()?;
        let mut made = match std::mem::replace(&mut self.sink, Local::Give) {
            Local::Aggregate(groups) => {
                self.running.ran.count_made(groups.left_early());
                Made::Groups(groups)
            }
            Local::Build(built) => Made::Built(built),
            Local::Sort(rows) => Made::Rows(rows),
            _ => return Err(NO_ROOM),
        };
        self.running.flush(&mut made, &mut self.flushed)?;
        self.held.shrink_to(0);
        self.sink = match made {
            Made::Groups(groups) => Local::Aggregate(groups),
            Made::Built(built) => Local::Build(built),
            Made::Rows(rows) => Local::Sort(rows),
            Made::Marked(_) | Made::Cut(_) | Made::Dealt(_) => panic!("what was made begins anew"),
        };
        Ok(())
    }
}

impl Running {
    /// Where this pipeline's rows go that have no room.
    pub(super) fn file(&self) -> Result<Arc<SpillFile>> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &*file {
            return Ok(file.clone());
        }
        let new = self.around.temp.file(&self.ran.account)?;
        Ok(file.insert(new).clone())
    }

    /// Rows that look into a table on disk.
    pub(super) fn cut(&self, batch: &mut Batch<'_>, work: &mut Work, scatter: &mut Option<Scatter>) -> Result<()> {
        let cut = self.stage.cut.as_ref().expect("it is this stage's end");
        batch.compact();
        let scatter = match scatter {
            Some(scatter) => scatter,
            None => scatter.insert(Scatter::new(&self.file()?, cut.fields.clone(), 0)),
        };
        let (columns, hashes) = cut.columns(batch, work)?;
        scatter.add(&columns, &hashes)
    }

    /// Writes what was made, which begins anew.
    fn flush(&self, made: &mut Made, into: &mut Option<Flushed>) -> Result<()> {
        let file = self.file()?;
        match (made, &self.pipeline.sink) {
            (made @ (Made::Groups(_) | Made::Dealt(_)), Sink::Aggregate(spec)) => {
                if !spec.is_spillable() {
                    return Err(NO_ROOM);
                }
                let new = || Flushed::Groups(groups::Flush::new(spec, &self.hash, &file, 0));
                let Flushed::Groups(into) = into.get_or_insert_with(new) else { panic!("groups are flushed as such") };
                match std::mem::replace(made, Made::Groups(Box::new(Aggregation::new(spec)))) {
                    Made::Groups(groups) => groups.into_rows()?.flush(into),
                    Made::Dealt(all) => all.iter().try_for_each(|groups| groups.rows().flush(into)),
                    _ => panic!("they are groups"),
                }
            }
            (Made::Built(built), Sink::Build(spec)) if !spec.keys.is_empty() => {
                let new = || Flushed::Built(join::spill::Flush::new(spec, &self.hash, &file, 0));
                let Flushed::Built(into) = into.get_or_insert_with(new) else { panic!("sides are flushed as such") };
                built.flush(into)
            }
            // Every row looks at each of them.
            (Made::Built(_), Sink::Build(_)) if self.is_looked_into => Err(NO_ROOM),
            (Made::Built(built), Sink::Build(_)) => {
                let Flushed::Held(into) = into.get_or_insert_with(|| Flushed::Held(Rows::new(&file))) else {
                    panic!("rows are flushed as such")
                };
                built.flush_in_order(into)
            }
            (Made::Rows(rows), Sink::Sort { .. } | Sink::Window { .. }) => {
                let Flushed::Runs(into) = into.get_or_insert_with(|| Flushed::Runs(Vec::new())) else {
                    panic!("runs are flushed as such")
                };
                into.push(rows.flush(&file)?);
                Ok(())
            }
            _ => Err(NO_ROOM),
        }
    }

    /// What the workers made together, and what was asked for it; `None` if there are jobs to be done before
    /// ([`Running::help`]), by whoever is free.
    pub(super) fn finish(&self) -> Result<Option<(Held, Reservation)>> {
        let assembly = self.assembly.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((assembly, held)) = assembly {
            return self.assembled(assembly, held);
        }
        let mut all = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        let mut held = Reservation::new(&self.ran.account);
        let spilled = all.iter().any(|(_, flushed, _)| flushed.is_some());
        if spilled {
            for (made, flushed, held) in &mut all {
                self.flush(made, flushed)?;
                held.shrink_to(0);
            }
        }
        let (mut made, mut flushed) = (Vec::new(), Vec::new());
        for (own, written, bytes) in all {
            held.join(bytes);
            made.push(own);
            flushed.extend(written);
        }
        let done = match spilled {
            true => self.flushed(flushed)?,
            false => match self.put_together(made, &mut held)? {
                Together::Held(done) => *done,
                Together::Jobs(assembly) => {
                    self.assemble(assembly, held);
                    return Ok(None);
                }
                Together::NoRoom(made) => {
                    let mut flushed = None;
                    made.into_iter().try_for_each(|mut made| self.flush(&mut made, &mut flushed))?;
                    self.flushed(flushed.into_iter().collect())?
                }
            },
        };
        Ok(Some(self.whole(done, held)))
    }

    /// All parts, of all workers.
    fn flushed(&self, flushed: Vec<Flushed>) -> Result<Held> {
        let file = self.file()?;
        match &self.pipeline.sink {
            Sink::Aggregate(spec) => {
                let mut parts: Option<Vec<groups::Partition>> = None;
                for flush in flushed {
                    let Flushed::Groups(flush) = flush else { panic!("groups are flushed as such") };
                    let own = flush.finish(1)?;
                    match &mut parts {
                        None => parts = Some(own),
                        Some(parts) => parts.iter_mut().zip(own).for_each(|(part, own)| part.append(own)),
                    }
                }
                let parts = parts.unwrap_or_default();
                let spilled = groups::Spilled { spec: spec.clone(), hash: self.hash.clone(), file, parts };
                let counted = Counted::new(&self.ran, spilled.parts.len());
                Ok(Held::SpilledGroups(spilled, counted))
            }
            Sink::Build(spec) if !spec.keys.is_empty() => {
                let of = |flush| if let Flushed::Built(flush) = flush { flush } else { panic!("they are sides") };
                let flushes = flushed.into_iter().map(of).collect();
                let spilled = join::spill::Spilled::new(spec.clone(), self.hash.clone(), file, flushes)?;
                Ok(Held::SpilledTable(Arc::new(spilled)))
            }
            Sink::Build(_) => {
                let mut all = Rows::new(&file);
                for flush in flushed {
                    let Flushed::Held(rows) = flush else { panic!("rows are flushed as such") };
                    all.append(rows);
                }
                Ok(Held::SpilledRows(all))
            }
            Sink::Sort { order, .. } | Sink::Window { order, .. } => {
                let of = |flush| if let Flushed::Runs(runs) = flush { runs } else { panic!("they are runs") };
                let runs = flushed.into_iter().flat_map(of).collect();
                let window = if let Sink::Window { window, .. } = &self.pipeline.sink { Some(window) } else { None };
                Ok(Held::Runs(Runs::new(order.clone(), runs, window.cloned(), &file, &self.around.stop)?))
            }
            Sink::Mark(_) | Sink::Give { .. } => Err(NO_ROOM),
        }
    }

    /// Cut rows of all workers, by part.
    pub(super) fn finish_cut(&self) -> Result<Vec<Rows>> {
        let file = self.file()?;
        let mut parts = vec![Rows::new(&file); PARTS];
        for (made, ..) in std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner)) {
            if let Made::Cut(Some(scatter)) = made {
                parts.iter_mut().zip(scatter.finish()?).for_each(|(part, own)| part.append(own));
            }
        }
        Ok(parts)
    }

    /// Whether the end of this pipeline has a form on disk.
    fn is_spillable(&self) -> bool {
        match &self.pipeline.sink {
            Sink::Aggregate(spec) => spec.is_spillable(),
            Sink::Build(spec) => !spec.keys.is_empty() || !self.is_looked_into,
            Sink::Sort { .. } | Sink::Window { .. } => true,
            Sink::Mark(_) | Sink::Give { .. } => false,
        }
    }

    /// Whether so many bytes more may be held.
    fn has_room(&self, held: &mut Reservation, more: usize) -> Result<bool> {
        let bytes = held.bytes() + more;
        match held.reach(bytes) || bytes < SPILL_BYTES_MIN {
            true => Ok(true),
            false if self.is_spillable() => Ok(false),
            false => Err(NO_ROOM),
        }
    }

    /// Many groups, if others come beside them, as rows that are dealt out: each worker deals its own.
    /// `before`: those that this worker has dealt out already.
    fn dealt(&self, made: Made, mut before: Vec<DealtRows>, held: &mut Reservation) -> Result<Made> {
        let bytes = |dealt: &[DealtRows]| dealt.iter().map(DealtRows::bytes).sum::<usize>();
        match made {
            Made::Groups(groups) if !before.is_empty() => {
                before.push(groups.into_rows()?.dealt()?);
                held.shrink_to(bytes(&before));
                Ok(Made::Dealt(before))
            }
            Made::Groups(groups)
                if self.reads == 1
                    && groups.is_worth_dealing(self.ran.workers())
                    && held.reach(groups.bytes() + groups.rows_bytes()) =>
            {
                let dealt = vec![groups.into_rows()?.dealt()?];
                held.shrink_to(bytes(&dealt));
                Ok(Made::Dealt(dealt))
            }
            made => Ok(made),
        }
    }

    /// Groups that are put together when they are read; what there is no room for comes back.
    fn parted(&self, made: Vec<Made>, held: &mut Reservation) -> Result<Together> {
        let more = |made: &Made| if let Made::Groups(groups) = made { groups.rows_bytes() } else { 0 };
        if !self.has_room(held, made.iter().map(more).sum())? {
            return Ok(Together::NoRoom(made));
        }
        let mut all = Vec::with_capacity(made.len());
        for made in made {
            match made {
                Made::Dealt(rows) => all.extend(rows),
                Made::Groups(groups) if groups.groups() == 0 => {}
                Made::Groups(groups) => all.push(groups.into_rows()?.dealt()?),
                _ => panic!("workers of a pipeline make the same"),
            }
        }
        let parted = Parted::new(all);
        let bytes = parted.bytes() + parted.open_bytes(self.ran.workers());
        if held.reach(bytes) || bytes < SPILL_BYTES_MIN {
            let counted = Counted::new(&self.ran, parted.parts());
            return Ok(Together::Held(Box::new(Held::PartedGroups(parted, counted))));
        }
        Ok(Together::NoRoom(vec![Made::Dealt(parted.into_workers().collect())]))
    }

    /// Whether several workers may compute a window, each of some partitions.
    fn is_parted(&self, rows: &Sorting, window: &window::Spec) -> bool {
        self.is_shared && rows.is_worth_parting(window)
    }

    /// Whether several threads make a table: there is something to share, and room for it.
    fn is_assembled(&self, built: &Building, held: &mut Reservation) -> bool {
        let more = built.assembly_bytes().filter(|_| self.workers.load(Ordering::Relaxed) > 1);
        more.is_some_and(|more| held.reach(held.bytes() + more))
    }

    /// Does a job of what is put together by several threads; whether there was one.
    pub fn help(&self) -> Result<bool> {
        let shared = || {
            let assembly = self.assembly.lock().unwrap_or_else(PoisonError::into_inner);
            assembly.as_ref().map(|(assembly, _)| assembly.clone())
        };
        let Some(assembly) = shared() else { return Ok(false) };
        self.around.stop.clone().watched(|| assembly.work())
    }

    /// What follows on the jobs that were done.
    fn assembled(&self, assembly: Arc<Assembly>, held: Reservation) -> Result<Option<(Held, Reservation)>> {
        let assembly = Arc::into_inner(assembly).expect("whoever helped has ended");
        match assembly.next()? {
            Next::Table(table) => Ok(Some(self.whole(Held::Table(Arc::new(*table)), held))),
            Next::Jobs(assembly) => {
                self.assemble(assembly, held);
                Ok(None)
            }
        }
    }

    fn assemble(&self, assembly: Assembly, held: Reservation) {
        *self.assembly.lock().unwrap_or_else(PoisonError::into_inner) = Some((Arc::new(assembly), held));
    }

    fn whole(&self, done: Held, mut held: Reservation) -> (Held, Reservation) {
        held.shrink_to(done.bytes());
        self.ran.count_made(done.rows());
        (done, held)
    }

    fn put_together(&self, made: Vec<Made>, held: &mut Reservation) -> Result<Together> {
        if made.iter().any(|made| matches!(made, Made::Dealt(_))) {
            return self.parted(made, held);
        }
        // The most groups take in the others.
        let groups = made.iter().map(|made| if let Made::Groups(groups) = made { groups.bytes() } else { 0 });
        let others = groups.clone().sum::<usize>() - groups.max().unwrap_or(0);
        if !self.has_room(held, others)? {
            return Ok(Together::NoRoom(made));
        }
        let mut all: Option<Made> = None;
        for own in made {
            self.check_stop()?;
            all = Some(match all {
                None => own,
                Some(all) => all.merged(own)?,
            });
        }
        let Some(all) = all else { return Ok(Together::Held(Box::new(Held::Nothing))) };
        // An eighth more is left for those that come behind a table.
        let more = match &all {
            Made::Groups(groups) => groups.finish_bytes(),
            Made::Built(built) => (built.bytes() + built.table_bytes()) / 8 * 9 - built.bytes(),
            Made::Rows(rows) => match &self.pipeline.sink {
                Sink::Window { window, .. } if self.is_parted(rows, window) => {
                    rows.finish_bytes() + rows.parting_bytes()
                }
                _ => rows.finish_bytes(),
            },
            Made::Marked(_) | Made::Cut(_) | Made::Dealt(_) => 0,
        };
        if !self.has_room(held, more)? {
            return Ok(Together::NoRoom(vec![all]));
        }
        Ok(Together::Held(Box::new(match all {
            Made::Groups(groups) => Held::Groups(Arc::new(groups.finish()?)),
            Made::Built(built) if self.is_assembled(&built, held) => return Ok(Together::Jobs(built.assembly()?)),
            Made::Built(built) => Held::Table(Arc::new(built.finish()?)),
            Made::Marked(marks) => Held::Marks(marks),
            Made::Rows(rows) => match &self.pipeline.sink {
                Sink::Window { window, .. } if self.is_parted(&rows, window) => {
                    let (parts, workers) = (rows.into_parts(window)?, self.workers.load(Ordering::Relaxed));
                    match parts.parts() > 1 && self.has_room(held, parts.open_bytes(workers))? {
                        true => Held::PartedWindow(parts, workers),
                        false => Held::Windowed(parts.whole()?),
                    }
                }
                Sink::Window { window, .. } => Held::Windowed(rows.finish_window(window)?),
                _ => Held::Sorted(rows.finish()?),
            },
            Made::Cut(_) | Made::Dealt(_) => panic!("neither a broken pipeline's rows nor parts are put together here"),
        })))
    }
}

enum Together {
    Held(Box<Held>),
    Jobs(Assembly),
    /// Nor for putting it together.
    NoRoom(Vec<Made>),
}

impl Made {
    fn merged(self, other: Made) -> Result<Made> {
        Ok(match (self, other) {
            // The larger takes in the smaller.
            (Made::Groups(mut all), Made::Groups(own)) if all.groups() >= own.groups() => {
                all.merge(*own)?;
                Made::Groups(all)
            }
            (Made::Groups(own), Made::Groups(mut all)) => {
                all.merge(*own)?;
                Made::Groups(all)
            }
            (Made::Built(mut all), Made::Built(own)) => {
                all.merge(own);
                Made::Built(all)
            }
            (Made::Marked(mut all), Made::Marked(own)) => {
                all.merge(&own);
                Made::Marked(all)
            }
            (Made::Rows(mut all), Made::Rows(own)) => {
                all.merge(own);
                Made::Rows(all)
            }
            _ => panic!("workers of a pipeline make the same"),
        })
    }
}
