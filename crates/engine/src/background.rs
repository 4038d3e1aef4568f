//! Work that nobody waits for: sweeping, freezing, evicting, compacting, checkpoints, deleting unused files.
//!
//! Four threads: one moves rows out of hot and sweeps, one merges files, one makes checkpoints, so that a long
//! merge keeps neither writers from memory nor the log from being cut, and one fills locators. All can be
//! paused, stopped and watched. Work that fails, or panics, is logged, counted, shown in [`BackgroundStatus`]
//! until it succeeds, and tried again later and later; other tablets do not wait for it. (A panic that leaves
//! something half-done stops the engine: [`crate::failstop`].)

mod pressure;

use crate::tablet::Tablet;
use crate::{Engine, Error, Result};
use basalt_cold::BlockKind;
use basalt_meta::FileKind;
use basalt_types::{TabletId, Version};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;

const ROUND: Duration = Duration::from_millis(100);
/// How long a writer waits for memory while not one row leaves hot.
const STUCK_MAX: Duration = Duration::from_secs(60);
/// Work that fails again and again is tried again after this long at last.
const RETRY_MAX: Duration = Duration::from_secs(5);
/// Samples kept to tell how old a version is.
const AGES_MAX: usize = 1024;
/// Rows that would go into row files are cool after up to so many times `cool_after`, while memory is plentiful: in a file they
/// are no quicker to scan, dearer to read and to change, and have to be merged (`docs/decisions/0030-patience.md`).
const ROW_PATIENCE: u32 = 30;

pub struct Background {
    enabled: bool,
    stopping: AtomicBool,
    paused: AtomicBool,
    wake: Mutex<()>,
    wakes: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// (when, published then): how old versions are.
    ages: Mutex<VecDeque<(Duration, Version)>>,
    /// Hot rows less what only older readers need, and that.
    hot_bytes: AtomicU64,
    kept_bytes: AtomicU64,
    /// Tablets in which too few rows had cooled: up to which version, and when that was counted.
    uncooled: Mutex<HashMap<TabletId, (Version, Duration)>>,
    relieved: Notify,
    doing: Mutex<Vec<Task>>,
    failing: Mutex<BTreeMap<Task, Failure>>,
    counters: Counters,
}

/// A kind of work, and the tablet that it is about.
type Task = (&'static str, Option<TabletId>);

/// What became of a task's latest tries.
struct Failure {
    cause: String,
    times: u32,
    retry_at: Duration,
}

#[derive(Default)]
struct Counters {
    rounds: AtomicU64,
    frozen_rows: AtomicU64,
    evicted_rows: AtomicU64,
    compactions: AtomicU64,
    checkpoints: AtomicU64,
    errors: AtomicU64,
    panics: AtomicU64,
}

/// Work that did not succeed when it was tried last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failing {
    pub what: String,
    pub cause: String,
    /// Tries in a row.
    pub times: u32,
}

impl fmt::Display for Failing {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} failed {} times: {}", self.what, self.times, self.cause)
    }
}

/// What background work has done and is doing.
#[derive(Clone, Debug, Default)]
pub struct BackgroundStatus {
    pub paused: bool,
    pub doing: String,
    pub rounds: u64,
    pub frozen_rows: u64,
    pub evicted_rows: u64,
    pub compactions: u64,
    pub checkpoints: u64,
    /// Tries that failed, panics included.
    pub errors: u64,
    pub panics: u64,
    pub failing: Vec<Failing>,
}

impl Background {
    pub(crate) fn new(enabled: bool) -> Background {
        Background {
            enabled,
            stopping: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            wake: Mutex::new(()),
            wakes: Condvar::new(),
            threads: Mutex::default(),
            ages: Mutex::default(),
            hot_bytes: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            uncooled: Mutex::default(),
            relieved: Notify::new(),
            doing: Mutex::default(),
            failing: Mutex::default(),
            counters: Counters::default(),
        }
    }

    pub(crate) fn start(&self, engine: &Arc<Engine>) {
        if !self.enabled {
            return;
        }
        let spawn = |name: &str, body: fn(&Arc<Engine>)| {
            let weak = Arc::downgrade(engine);
            let run = move || rounds(&weak, body);
            std::thread::Builder::new().name(name.into()).spawn(run).expect("threads can be started at startup")
        };
        // What is there counts as old.
        for tablet in engine.tablets() {
            tablet.relieved_upto.store(engine.published().0, Ordering::Relaxed);
        }
        let mut threads = self.threads.lock();
        threads.push(spawn("basalt-mover", Engine::move_round));
        threads.push(spawn("basalt-merger", Engine::merge_round));
        threads.push(spawn("basalt-checkpoint", Engine::checkpoint_round));
        threads.push(spawn("basalt-locator", Engine::locator_round));
    }

    /// Finishes the round under way and starts no other until [`Background::resume`].
    pub fn pause(&self) {
        self.paused.store(true, Ordering::Release);
    }

    pub fn resume(&self) {
        self.paused.store(false, Ordering::Release);
        self.wakes.notify_all();
    }

    pub fn status(&self) -> BackgroundStatus {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        BackgroundStatus {
            paused: self.paused.load(Ordering::Acquire),
            doing: match &self.doing.lock()[..] {
                [] => "idle".into(),
                tasks => tasks.iter().map(name_of).collect::<Vec<_>>().join(", "),
            },
            rounds: get(&self.counters.rounds),
            frozen_rows: get(&self.counters.frozen_rows),
            evicted_rows: get(&self.counters.evicted_rows),
            compactions: get(&self.counters.compactions),
            checkpoints: get(&self.counters.checkpoints),
            errors: get(&self.counters.errors),
            panics: get(&self.counters.panics),
            failing: self.failing.lock().iter().map(|(task, failure)| failure.describe(task)).collect(),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends the threads after the step that they are at.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wakes.notify_all();
        self.relieved.notify_waiters();
        for thread in self.threads.lock().drain(..) {
            if thread.thread().id() != std::thread::current().id() && thread.join().is_err() {
                tracing::error!("a background thread has panicked");
            }
        }
    }

    /// Lets a writer in. Waits while hot rows take too much memory and rows leave; fails if none can leave.
    pub(crate) async fn admit(&self, engine: &Engine) -> Result<()> {
        let (limit, limit_kept) = pressure::throttle_bytes(engine);
        let has_room = || {
            let (hot, kept) = (self.hot_bytes.load(Ordering::Relaxed), self.kept_bytes.load(Ordering::Relaxed));
            (hot <= limit && hot + kept <= limit_kept) || !self.enabled
        };
        // Nearly always, and every row comes by: the clock is not asked.
        if has_room() {
            return Ok(());
        }
        let clock = &engine.os.clock;
        let (mut last_move, mut moved) = (clock.monotonic(), self.moved_rows());
        while clock.monotonic() < last_move + STUCK_MAX {
            if has_room() {
                return Ok(());
            }
            if self.is_stopping() {
                return Err(Error::ShuttingDown);
            }
            if let Some(failure) = engine.failure() {
                return Err(failure);
            }
            self.wakes.notify_all();
            let _ = tokio::time::timeout(Duration::from_millis(100), self.relieved.notified()).await;
            let before = std::mem::replace(&mut moved, self.moved_rows());
            if moved > before {
                last_move = clock.monotonic();
            }
        }
        let (hot, kept) = (self.hot_bytes.load(Ordering::Relaxed), self.kept_bytes.load(Ordering::Relaxed));
        Err(Error::Memory(format!(
            "hot rows hold {hot} bytes, more than {limit}, and none can leave, or {kept} bytes that only older \
             readers need (basalt.pins) take too much (basalt.memory_limit)"
        )))
    }

    fn sleep(&self) {
        let mut guard = self.wake.lock();
        if !self.is_stopping() {
            self.wakes.wait_for(&mut guard, ROUND);
        }
    }

    /// Takes a sample, if it is time for one. Ages up to `age_max` can be asked for later.
    fn note_age(&self, now: Duration, age_max: Duration, published: Version) {
        let mut ages = self.ages.lock();
        // Far enough apart that the samples kept reach back to `age_max`, however long that is.
        let apart = age_max / (AGES_MAX as u32 / 2);
        if ages.back().is_none_or(|(at, _)| *at + apart <= now) {
            ages.push_back((now, published));
        }
        while ages.len() > AGES_MAX || ages.get(1).is_some_and(|(at, _)| *at + age_max <= now) {
            ages.pop_front();
        }
    }

    /// The newest version that is known to be at least `age` old.
    fn version_of_age(&self, now: Duration, age: Duration) -> Version {
        let ages = self.ages.lock();
        let younger = ages.partition_point(|(at, _)| *at + age <= now);
        younger.checked_sub(1).map_or(Version::ZERO, |oldest| ages[oldest].1)
    }
}

fn rounds(engine: &Weak<Engine>, body: fn(&Arc<Engine>)) {
    loop {
        let Some(engine) = engine.upgrade() else { return };
        let background = &engine.background;
        if background.is_stopping() {
            return;
        }
        if !background.paused.load(Ordering::Acquire) {
            body(&engine);
        }
        background.sleep();
    }
}

impl Engine {
    /// Sweeps, freezes what has cooled, and under pressure makes room.
    fn move_round(self: &Arc<Self>) {
        let background = &self.background;
        background.counters.rounds.fetch_add(1, Ordering::Relaxed);
        let now = self.os.clock.monotonic();
        background.note_age(now, self.config.cool_after * ROW_PATIENCE, self.published());
        let cool = background.version_of_age(now, self.config.cool_after);
        let tablets = self.tablets();
        background.forget_dropped(&tablets);
        for tablet in &tablets {
            if background.is_stopping() || background.paused.load(Ordering::Acquire) {
                break;
            }
            self.step(("sweep", Some(tablet.id)), |engine| {
                engine.sweep(tablet);
                Ok(())
            });
            let hot = self.weigh();
            if self.is_pressed(tablet, hot, tablets.len()) {
                self.step(("relieve", Some(tablet.id)), |engine| engine.relieve(tablet, cool));
            } else if let Some(cool) = self.cooled(tablet, now) {
                self.step(("freeze", Some(tablet.id)), |engine| {
                    background.count_frozen(engine.freeze(tablet, cool)?);
                    Ok(())
                });
            } else {
                continue;
            }
            self.step(("sweep", Some(tablet.id)), |engine| {
                engine.sweep(tablet);
                Ok(())
            });
            self.weigh();
            background.relieved.notify_waiters();
        }
        self.weigh();
        background.relieved.notify_waiters();
    }

    /// Merges files, tablet by tablet.
    fn merge_round(self: &Arc<Self>) {
        let background = &self.background;
        let cool = background.version_of_age(self.os.clock.monotonic(), self.config.cool_after);
        for tablet in self.tablets() {
            if background.is_stopping() || background.paused.load(Ordering::Acquire) {
                return;
            }
            tablet.mirror.rest(self.os.clock.monotonic());
            self.step(("compact", Some(tablet.id)), |engine| {
                if engine.compact_if_worth(&tablet, cool)? {
                    engine.background.counters.compactions.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
    }

    /// Notes what hot rows take; returns what moving them out could free.
    pub(crate) fn weigh(&self) -> u64 {
        let kept = self.kept_bytes();
        let hot = self.hot_bytes().saturating_sub(kept);
        self.background.kept_bytes.store(kept, Ordering::Relaxed);
        self.background.hot_bytes.store(hot, Ordering::Relaxed);
        hot
    }

    /// How long rows of a tablet stay hot when nobody changes them: the longer the more room there is.
    pub(crate) fn patience(&self, tablet: &Tablet) -> Duration {
        let catalog = self.catalog();
        let kind = catalog.table_of(tablet.id).map(|table| catalog.file_kind(table));
        match kind {
            Some(FileKind::RowFile) => {
                let times = 1.0 + f64::from(ROW_PATIENCE - 1) * self.background.room(self);
                self.config.cool_after.mul_f64(times)
            }
            _ => self.config.cool_after,
        }
    }

    /// Up to which version a tablet's rows are cool, if enough are.
    fn cooled(&self, tablet: &Tablet, now: Duration) -> Option<Version> {
        // Most tablets of many have few rows: nothing else is asked of them.
        if tablet.hot.rows() < self.freeze_rows_min() {
            return None;
        }
        let patience = self.patience(tablet);
        let cool = self.background.version_of_age(now, patience);
        self.has_cooled(tablet, cool, patience, now).then_some(cool)
    }

    fn freeze_rows_min(&self) -> usize {
        usize::try_from(self.config.freeze_rows_min.max(1)).unwrap_or(usize::MAX)
    }

    /// Whether enough rows of a tablet are cool to be worth a file. Counted again only when more can have
    /// cooled, and a few times per cooling period (`patience`): counting looks at all pages.
    pub(crate) fn has_cooled(&self, tablet: &Tablet, cool: Version, patience: Duration, now: Duration) -> bool {
        let rows_min = self.freeze_rows_min();
        if tablet.hot.rows() < rows_min {
            return false;
        }
        let mut uncooled = self.background.uncooled.lock();
        let again = |(upto, at): &(Version, Duration)| cool > *upto && now >= *at + patience / 10;
        if !uncooled.get(&tablet.id).is_none_or(again) {
            return false;
        }
        let enough = tablet.hot.count_settled(cool, rows_min) >= rows_min;
        match enough {
            true => drop(uncooled.remove(&tablet.id)),
            false => drop(uncooled.insert(tablet.id, (cool, now))),
        }
        enough
    }

    /// One try of a task, unless it failed so often that its time has not come again.
    fn step(self: &Arc<Self>, task: Task, work: impl FnOnce(&Arc<Self>) -> Result<()>) {
        let background = &self.background;
        if !background.is_due(&task, self.os.clock.monotonic()) {
            return;
        }
        background.doing.lock().push(task);
        // What a panic may leave half-done is guarded where it is done.
        let outcome = catch_unwind(AssertUnwindSafe(|| work(self)));
        background.doing.lock().retain(|other| *other != task);
        let cause = match outcome {
            Ok(Ok(())) => return background.succeeded(&task),
            Ok(Err(error)) => error.to_string(),
            Err(panic) => {
                background.counters.panics.fetch_add(1, Ordering::Relaxed);
                format!("panic: {}", message_of(&*panic))
            }
        };
        background.failed(task, cause, self.os.clock.monotonic());
    }

    fn checkpoint_round(self: &Arc<Self>) {
        if !self.checkpoint_is_due() {
            return self.step(("collect files", None), |engine| {
                engine.collect_files();
                Ok(())
            });
        }
        self.step(("checkpoint", None), |engine| {
            engine.checkpoint()?;
            engine.background.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
            Ok(())
        });
    }

    /// Blocks of rows and blocks of columns each have a part of the cache, as files hold rows and columns: a scan of
    /// columns puts out no rows, and the other way round.
    fn share_cache(&self) {
        let (mut rows, mut columns) = (0, 0);
        for tablet in self.tablets() {
            for file in &tablet.view().files {
                let of_file = file.data.bytes_apart();
                (rows, columns) = (rows + of_file.0, columns + of_file.1);
            }
        }
        let all = crate::recovery::cache_bytes(&self.config);
        let part = (u128::from(all) * u128::from(rows) / u128::from((rows + columns).max(1))) as u64;
        // Each is needed now and then: rows that are evicted, tables that are scanned.
        let part = part.clamp(all / 8, all - all / 8);
        let now = self.cache.stats(BlockKind::Row).bytes_max;
        if part.abs_diff(now) > all / 32 {
            self.cache.resize(BlockKind::Row, part);
            self.cache.resize(BlockKind::Column, all - part);
        }
    }

    /// Enters new files, or after a start all, into the locators of their tablets.
    fn locator_round(self: &Arc<Self>) {
        let background = &self.background;
        let halted = || background.is_stopping() || background.paused.load(Ordering::Acquire);
        self.share_cache();
        for tablet in self.tablets() {
            if halted() {
                return;
            }
            self.step(("fill locator", Some(tablet.id)), |engine| Ok(tablet.fill_locator(&engine.locators, &halted)?));
        }
    }
}

impl Background {
    fn is_due(&self, task: &Task, now: Duration) -> bool {
        self.failing.lock().get(task).is_none_or(|failure| failure.retry_at <= now)
    }

    fn succeeded(&self, task: &Task) {
        if let Some(failure) = self.failing.lock().remove(task) {
            tracing::info!("{} works again after {} failures", name_of(task), failure.times);
        }
    }

    fn failed(&self, task: Task, cause: String, now: Duration) {
        tracing::error!(%cause, "{} failed", name_of(&task));
        self.counters.errors.fetch_add(1, Ordering::Relaxed);
        let mut failing = self.failing.lock();
        let times = failing.get(&task).map_or(1, |failure| failure.times.saturating_add(1));
        let wait = (ROUND * 2u32.pow(times.min(10))).min(RETRY_MAX);
        failing.insert(task, Failure { cause, times, retry_at: now + wait });
    }

    /// Forgets tablets that are gone.
    fn forget_dropped(&self, tablets: &[Arc<Tablet>]) {
        let here = |id: TabletId| tablets.iter().any(|tablet| tablet.id == id);
        self.failing.lock().retain(|(_, tablet), _| tablet.is_none_or(here));
        self.uncooled.lock().retain(|tablet, _| here(*tablet));
    }
}

impl Failure {
    fn describe(&self, task: &Task) -> Failing {
        Failing { what: name_of(task), cause: self.cause.clone(), times: self.times }
    }
}

fn name_of(task: &Task) -> String {
    match task {
        (what, Some(tablet)) => format!("{what} {tablet}"),
        (what, None) => (*what).to_string(),
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
