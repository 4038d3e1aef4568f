//! Where in a view's files a key may be: about one probe, whatever the number of files (DESIGN 5, Indexes).
//!
//! Files whose key ranges are disjoint form a *run*: binary search finds the one that may hold a key, and
//! its own filter and key index are asked. Of the files of a view the heaviest run, by rows, stays like
//! that; all others belong into the tablet's [`Locator`], smallest first, as far as its budget goes. What is
//! not in it (yet) is asked run by run, so reads need not wait for it: after a restart, or for a new file.
//!
//! Invariants:
//! 1. A file counts as located once all its rows have entries, and as long as anybody holds its
//!    [`FileEntry`], hence for every view that lists it. Entries are given up only after that. So a plan,
//!    once made for a view, stays right; a later one is merely faster.
//! 2. Candidates in files that the view does not list, or that its plan asks directly, are skipped. The
//!    others are compared by key.
//! 3. The locator is filled without any latch, and no view is held while a file is read: an old view keeps
//!    moved rows in hot.

mod recent;

use super::{FileEntry, ReadView, Tablet};
use arc_swap::{ArcSwapOption, Guard};
use basalt_cold::{Locator, LocatorBudget};
use basalt_types::{FileId, Key};
use parking_lot::{Mutex, RwLock};
use recent::Search;
use smallvec::SmallVec;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// Rows hashed at once while a file is entered.
const CHUNK_ROWS: u32 = basalt_cold::ROW_GROUP_ROWS;
/// Rows entered before readers are told.
const BATCH_ROWS: u64 = 1 << 20;

/// A tablet's locator and which files are in it.
pub(crate) struct Locate {
    hash: fn(&[u8]) -> u64,
    locator: OnceLock<Locator>,
    located: RwLock<HashMap<FileId, Weak<FileEntry>>>,
    /// Grows when a file becomes located: plans of lower generations are out of date.
    generation: AtomicU64,
    /// One thread fills.
    filling: Mutex<()>,
}

/// How to look for a key in one view. Files are named by their positions in it.
pub(super) struct Plan {
    generation: u64,
    /// By id.
    located: Vec<(FileId, u32)>,
    /// Each in key order. Files without rows are in none.
    runs: Vec<Vec<u32>>,
}

/// A view's plan, made when first needed.
#[derive(Default)]
pub(super) struct PlanCache(ArcSwapOption<Plan>);

/// The rows of a view's files that have a key, newest file first, whoever wrote or deleted them: the positions of their
/// files in the view, and their ordinals.
pub(crate) struct Places<'v> {
    view: &'v ReadView,
    key: &'v [u8],
    search: Search,
    /// How many of those found were given.
    given: usize,
    news: News,
}

/// Of a search: whether there is something to remember.
#[derive(Clone, Copy, PartialEq, Eq)]
enum News {
    No,
    Yes,
    /// A file could not be asked: the next one who looks is to meet that, too.
    Failed,
}

/// A row of a file that has a key.
#[derive(Clone, Copy)]
struct Place {
    /// Of the file in the view.
    position: u32,
    ordinal: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Ask {
    position: u32,
    /// `None`: the file's own index knows.
    ordinal: Option<Reverse<u32>>,
}

impl Default for Locate {
    fn default() -> Locate {
        Locate::hashing(basalt_cold::key_hash)
    }
}

impl Locate {
    fn hashing(hash: fn(&[u8]) -> u64) -> Locate {
        Locate {
            hash,
            locator: OnceLock::new(),
            located: RwLock::default(),
            generation: AtomicU64::new(0),
            filling: Mutex::new(()),
        }
    }

    pub fn places<'v>(&self, view: &'v ReadView, key: &'v [u8]) -> Places<'v> {
        if let Some(search) = recent::recall(view.id, key) {
            return Places { view, key, search, given: 0, news: News::No };
        }
        let search = Search { found: SmallVec::new(), asks: self.asks(view, key) };
        let news = if view.files.is_empty() { News::No } else { News::Yes };
        Places { view, key, search, given: 0, news }
    }

    /// Which files are to be asked for a key, and for which row; the next one last.
    fn asks(&self, view: &ReadView, key: &[u8]) -> SmallVec<[Ask; 4]> {
        let mut asks = SmallVec::new();
        if !view.files.is_empty() {
            let plan = self.plan(view);
            let plan = plan.as_ref().expect("just made");
            let in_run = |run: &Vec<u32>| Some(Ask { position: file_in_run(view, run, key)?, ordinal: None });
            asks.extend(plan.runs.iter().filter_map(in_run));
            if let Some(locator) = self.locator.get().filter(|_| !plan.located.is_empty()) {
                for at in locator.candidates((self.hash)(key)) {
                    if let Ok(found) = plan.located.binary_search_by_key(&at.file, |(file, _)| *file) {
                        asks.push(Ask { position: plan.located[found].1, ordinal: Some(Reverse(at.ordinal)) });
                    }
                }
            }
            asks.sort_unstable();
        }
        asks
    }

    /// Where keys are, which ascend, in those files that are asked by their key ranges: calls `each` with the position
    /// of a key, that of the file in the view, and an ordinal. False: there are other files, too.
    fn in_runs(
        &self,
        view: &ReadView,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, u32, u32),
    ) -> basalt_cold::Result<bool> {
        let plan = self.plan(view);
        let plan = plan.as_ref().expect("just made");
        for run in &plan.runs {
            let mut at = 0;
            while at < keys.len() {
                let Some(position) = file_in_run(view, run, keys[at]) else {
                    at += 1;
                    continue;
                };
                let file = &view.files[position as usize].data;
                let greatest = file.key_range().expect("files of runs have rows").1.as_bytes();
                let here = keys[at..].partition_point(|key| *key <= greatest);
                file.find_many(&keys[at..at + here], &mut |i, ordinal| each(at + i, position, ordinal))?;
                at += here;
            }
        }
        Ok(plan.located.is_empty())
    }

    fn plan(&self, view: &ReadView) -> Guard<Option<Arc<Plan>>> {
        let generation = self.generation.load(Ordering::Acquire);
        let cached = view.plan.0.load();
        if cached.as_ref().is_some_and(|plan| plan.generation >= generation) {
            return cached;
        }
        let plan = {
            let located = self.located.read();
            Plan::new(view, generation, |file| located.contains_key(&file))
        };
        view.plan.0.store(Some(Arc::new(plan)));
        view.plan.0.load()
    }

    /// Enters the files of `view()` that lookups have to ask one by one, until that is all, the budget is
    /// used up or `halted`; gives up those that nobody can read any more. Does nothing while another thread
    /// is at it.
    fn fill(
        &self,
        view: &dyn Fn() -> Arc<ReadView>,
        budget: &Arc<LocatorBudget>,
        halted: &dyn Fn() -> bool,
    ) -> basalt_cold::Result<()> {
        let Some(_one) = self.filling.try_lock() else { return Ok(()) };
        self.forget_dead();
        loop {
            let wanted = self.wanted(&view());
            if wanted.is_empty() {
                return Ok(());
            }
            let mut located = Vec::with_capacity(wanted.len());
            let outcome = self.enter_all(&wanted, budget, halted, &mut located);
            if !located.is_empty() {
                self.located.write().extend(located);
                self.generation.fetch_add(1, Ordering::Release);
            }
            if !outcome? {
                return Ok(());
            }
        }
    }

    /// The smallest files outside of a view's heaviest run that are not located.
    fn wanted(&self, view: &ReadView) -> Vec<Arc<FileEntry>> {
        let plan = self.plan(view);
        let others = plan.iter().flat_map(|plan| plan.runs.iter().skip(1)).flatten();
        let mut others: Vec<&Arc<FileEntry>> = others.map(|position| &view.files[*position as usize]).collect();
        others.sort_by_key(|file| file.data.rows());
        let mut rows = 0;
        let fits = |file: &&&Arc<FileEntry>| {
            let first = rows == 0;
            rows += u64::from(file.data.rows());
            first || rows <= BATCH_ROWS
        };
        others.iter().take_while(fits).map(|file| Arc::clone(file)).collect()
    }

    /// False if there was no room, or no time, for one.
    fn enter_all(
        &self,
        files: &[Arc<FileEntry>],
        budget: &Arc<LocatorBudget>,
        halted: &dyn Fn() -> bool,
        located: &mut Vec<(FileId, Weak<FileEntry>)>,
    ) -> basalt_cold::Result<bool> {
        for file in files {
            let Some(locator) = self.locator_within(budget) else { return Ok(false) };
            let growth = || locator.growth_bytes(u64::from(file.data.rows()));
            if growth() > budget.bytes_left() {
                locator.remove_dead();
                if growth() > budget.bytes_left() {
                    return Ok(false);
                }
            }
            // Of a try that ended in a panic.
            locator.forget(file.id());
            match self.enter(locator, file, halted) {
                Ok(true) => located.push((file.id(), Arc::downgrade(file))),
                outcome => {
                    locator.forget(file.id());
                    return outcome;
                }
            }
        }
        Ok(true)
    }

    fn enter(&self, locator: &Locator, file: &FileEntry, halted: &dyn Fn() -> bool) -> basalt_cold::Result<bool> {
        let mut first = 0;
        while first < file.data.rows() {
            if halted() {
                return Ok(false);
            }
            let end = file.data.rows().min(first + CHUNK_ROWS);
            let hashes: Vec<u64> = file.data.keys(first..end)?.iter().map(self.hash).collect();
            if !locator.insert_rows(file.id(), first, &hashes) {
                return Ok(false);
            }
            first = end;
        }
        Ok(true)
    }

    fn locator_within(&self, budget: &Arc<LocatorBudget>) -> Option<&Locator> {
        if self.locator.get().is_none() {
            // `filling` is held: nobody else sets it.
            let _ = self.locator.set(Locator::new(budget)?);
        }
        self.locator.get()
    }

    /// Gives up the entries of files that no view, however old, lists any more.
    fn forget_dead(&self) {
        let Some(locator) = self.locator.get() else { return };
        let mut dead = Vec::new();
        self.located.write().retain(|id, file| {
            let alive = file.strong_count() > 0;
            if !alive {
                dead.push(*id);
            }
            alive
        });
        dead.into_iter().for_each(|file| locator.forget(file));
    }
}

impl Tablet {
    /// Where a key is in the files of a view of this tablet.
    pub(crate) fn places<'v>(&self, view: &'v ReadView, key: &'v [u8]) -> Places<'v> {
        self.locate.places(view, key)
    }

    /// [`Locate::in_runs`] of this tablet.
    pub(crate) fn places_in_runs(
        &self,
        view: &ReadView,
        keys: &[&[u8]],
        each: &mut dyn FnMut(usize, u32, u32),
    ) -> basalt_cold::Result<bool> {
        self.locate.in_runs(view, keys, each)
    }

    /// Enters files into the locator as far as that makes lookups cheaper and the budget allows.
    pub(crate) fn fill_locator(
        &self,
        budget: &Arc<LocatorBudget>,
        halted: &dyn Fn() -> bool,
    ) -> basalt_cold::Result<()> {
        self.locate.fill(&|| self.view(), budget, halted)
    }
}

impl Iterator for Places<'_> {
    type Item = basalt_cold::Result<(usize, u32)>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(place) = self.search.found.get(self.given) {
                self.given += 1;
                return Some(Ok((place.position as usize, place.ordinal)));
            }
            let ask = self.search.asks.pop()?;
            // Unless it comes to its end.
            let before = std::mem::replace(&mut self.news, News::Failed);
            match self.ask(ask) {
                Ok(()) if before == News::Failed => {}
                Ok(()) => self.news = News::Yes,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl Places<'_> {
    /// Adds what a file has.
    fn ask(&mut self, Ask { position, ordinal }: Ask) -> basalt_cold::Result<()> {
        let file = &self.view.files[position as usize].data;
        match ordinal {
            Some(Reverse(ordinal)) => {
                if file.key_at(ordinal)?.as_bytes() == self.key {
                    self.search.found.push(Place { position, ordinal });
                }
            }
            None => {
                let found = file.find(self.key)?.into_iter();
                self.search.found.extend(found.map(|ordinal| Place { position, ordinal }));
            }
        }
        Ok(())
    }
}

impl Drop for Places<'_> {
    fn drop(&mut self) {
        if self.news == News::Yes {
            recent::remember(self.view.id, self.key, std::mem::take(&mut self.search));
        }
    }
}

impl Plan {
    fn new(view: &ReadView, generation: u64, is_located: impl Fn(FileId) -> bool) -> Plan {
        let (mut located, mut direct) = (Vec::new(), Vec::new());
        for (position, file) in (0u32..).zip(&view.files) {
            if is_located(file.id()) {
                located.push((file.id(), position));
            } else if let Some((least, greatest)) = file.data.key_range() {
                direct.push(Ranged { position, rows: u64::from(file.data.rows()), least, greatest });
            }
        }
        located.sort_unstable();
        Plan { generation, located, runs: runs(direct) }
    }
}

/// A file that is to be asked by its key range.
struct Ranged<'v> {
    position: u32,
    rows: u64,
    least: &'v Key,
    greatest: &'v Key,
}

/// Splits files into runs: the heaviest first, the others as few as possible.
fn runs(mut files: Vec<Ranged<'_>>) -> Vec<Vec<u32>> {
    let mut runs: Vec<Vec<u32>> = Vec::new();
    if files.is_empty() {
        return runs;
    }
    files.sort_by_key(|file| file.greatest);
    let chosen = heaviest_run(&files);
    runs.push(files.iter().zip(&chosen).filter(|(_, chosen)| **chosen).map(|(file, _)| file.position).collect());
    let mut rest: Vec<_> = files.iter().zip(chosen).filter(|(_, chosen)| !chosen).map(|(file, _)| file).collect();
    // In order of their least keys, each goes behind the run that ends first, if that ends before it begins.
    rest.sort_by_key(|file| file.least);
    let mut ends: BinaryHeap<Reverse<(&Key, usize)>> = BinaryHeap::new();
    for file in rest {
        let free = ends.peek().filter(|end| end.0.0 < file.least).map(|end| end.0.1);
        let run = free.unwrap_or(runs.len());
        match free {
            Some(run) => {
                ends.pop();
                runs[run].push(file.position);
            }
            None => runs.push(vec![file.position]),
        }
        ends.push(Reverse((file.greatest, run)));
    }
    runs
}

/// Of files sorted by their greatest keys, those disjoint ones that have the most rows together (weighted
/// interval scheduling).
fn heaviest_run(files: &[Ranged<'_>]) -> Vec<bool> {
    let before: Vec<usize> =
        files.iter().map(|file| files.partition_point(|other| other.greatest < file.least)).collect();
    // Rows of the heaviest run among the first i files.
    let mut most = vec![0u64; files.len() + 1];
    for (i, file) in files.iter().enumerate() {
        most[i + 1] = most[i].max(most[before[i]] + file.rows);
    }
    let mut chosen = vec![false; files.len()];
    let mut i = files.len();
    while i > 0 {
        if most[i] == most[i - 1] {
            i -= 1;
        } else {
            chosen[i - 1] = true;
            i = before[i - 1];
        }
    }
    chosen
}

/// The one file of a run whose key range includes the key.
fn file_in_run(view: &ReadView, run: &[u32], key: &[u8]) -> Option<u32> {
    let range = |position: &u32| view.files[*position as usize].data.key_range().expect("files of runs have rows");
    let behind = run.partition_point(|position| range(position).0.as_bytes() <= key);
    let position = run[behind.checked_sub(1)?];
    (key <= range(&position).1.as_bytes()).then_some(position)
}

#[cfg(test)]
mod tests;
