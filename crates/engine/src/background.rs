//! Work that nobody waits for: sweeping, freezing, compacting, checkpoints, deleting unused files.
//!
//! Two threads: one moves rows and sweeps, one makes checkpoints, so that a long merge does not keep the
//! log from being cut. Both can be paused, stopped and watched; errors are logged and counted, and the
//! work is tried again in the next round.

use crate::tablet::Tablet;
use crate::{Engine, Error, Result};
use basalt_types::Version;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::Notify;

const ROUND: Duration = Duration::from_millis(100);
/// Hot rows may take this part of the memory limit before freezing stops waiting for rows to cool.
const PRESSURE: f64 = 0.30;
/// Above this part writers wait until freezing has caught up.
const THROTTLE: f64 = 0.45;
/// Samples kept to tell how old a version is.
const AGES_MAX: usize = 1024;

pub struct Background {
    enabled: bool,
    stopping: AtomicBool,
    paused: AtomicBool,
    wake: Mutex<()>,
    wakes: Condvar,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// (when, published then): how old versions are.
    ages: Mutex<VecDeque<(Duration, Version)>>,
    hot_bytes: AtomicU64,
    relieved: Notify,
    doing: Mutex<String>,
    counters: Counters,
}

#[derive(Default)]
struct Counters {
    rounds: AtomicU64,
    frozen_rows: AtomicU64,
    compactions: AtomicU64,
    checkpoints: AtomicU64,
    errors: AtomicU64,
}

/// What background work has done and is doing.
#[derive(Clone, Debug, Default)]
pub struct BackgroundStatus {
    pub paused: bool,
    pub doing: String,
    pub rounds: u64,
    pub frozen_rows: u64,
    pub compactions: u64,
    pub checkpoints: u64,
    pub errors: u64,
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
            relieved: Notify::new(),
            doing: Mutex::new("idle".into()),
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
        let mut threads = self.threads.lock();
        threads.push(spawn("basalt-mover", Engine::move_round));
        threads.push(spawn("basalt-checkpoint", Engine::checkpoint_round));
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
            doing: self.doing.lock().clone(),
            rounds: get(&self.counters.rounds),
            frozen_rows: get(&self.counters.frozen_rows),
            compactions: get(&self.counters.compactions),
            checkpoints: get(&self.counters.checkpoints),
            errors: get(&self.counters.errors),
        }
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Ends both threads after the step that they are at.
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

    /// Lets a writer in. Waits while hot rows take too much memory, then fails rather than wait for ever.
    pub(crate) async fn admit(&self, engine: &Engine) -> Result<()> {
        let limit = (engine.config.memory_bytes_max as f64 * THROTTLE) as u64;
        for _ in 0..600 {
            if self.hot_bytes.load(Ordering::Relaxed) <= limit || !self.enabled {
                return Ok(());
            }
            if self.is_stopping() {
                return Err(Error::ShuttingDown);
            }
            self.wakes.notify_all();
            let _ = tokio::time::timeout(Duration::from_millis(100), self.relieved.notified()).await;
        }
        let held = self.hot_bytes.load(Ordering::Relaxed);
        Err(Error::Memory(format!("hot rows hold {held} bytes and freezing does not keep up (basalt.memory_limit)")))
    }

    fn sleep(&self) {
        let mut guard = self.wake.lock();
        if !self.is_stopping() {
            self.wakes.wait_for(&mut guard, ROUND);
        }
    }

    /// The newest version that is at least `age` old.
    fn version_of_age(&self, now: Duration, age: Duration, published: Version) -> Version {
        let mut ages = self.ages.lock();
        // Far enough apart that the samples kept reach back to `age`, however long that is.
        let apart = age / (AGES_MAX as u32 / 2);
        if ages.back().is_none_or(|(at, _)| *at + apart <= now) {
            ages.push_back((now, published));
        }
        while ages.len() > AGES_MAX || ages.get(1).is_some_and(|(at, _)| *at + age <= now) {
            ages.pop_front();
        }
        match ages.front() {
            Some((at, version)) if *at + age <= now => *version,
            _ => Version::ZERO,
        }
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
    /// Sweeps, freezes what has cooled (anything, under pressure), merges files.
    fn move_round(self: &Arc<Self>) {
        let background = &self.background;
        background.counters.rounds.fetch_add(1, Ordering::Relaxed);
        let now = self.os.clock.monotonic();
        let cool = background.version_of_age(now, self.config.cool_after, self.published());
        for tablet in self.tablets() {
            if background.is_stopping() || background.paused.load(Ordering::Acquire) {
                break;
            }
            self.sweep(&tablet);
            let hot = self.hot_bytes();
            background.hot_bytes.store(hot, Ordering::Relaxed);
            let pressed = hot as f64 > self.config.memory_bytes_max as f64 * PRESSURE;
            let upto = if pressed { self.published() } else { cool };
            if tablet.hot.rows() as u64 >= self.config.freeze_rows_min || (pressed && tablet.hot.rows() > 0) {
                self.step(&tablet, "freeze", |engine| {
                    let moved = engine.freeze(&tablet, upto)?;
                    engine.background.counters.frozen_rows.fetch_add(moved, Ordering::Relaxed);
                    engine.sweep(&tablet);
                    Ok(())
                });
                background.hot_bytes.store(self.hot_bytes(), Ordering::Relaxed);
                background.relieved.notify_waiters();
            }
            self.step(&tablet, "compact", |engine| {
                if engine.compact_if_worth(&tablet)? {
                    engine.background.counters.compactions.fetch_add(1, Ordering::Relaxed);
                }
                Ok(())
            });
        }
        background.hot_bytes.store(self.hot_bytes(), Ordering::Relaxed);
        background.relieved.notify_waiters();
    }

    fn step(self: &Arc<Self>, tablet: &Tablet, what: &str, work: impl FnOnce(&Arc<Self>) -> Result<()>) {
        *self.background.doing.lock() = format!("{what} {}", tablet.id);
        if let Err(error) = work(self) {
            self.background.counters.errors.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(tablet = %tablet.id, %error, "{what} failed");
        }
        *self.background.doing.lock() = "idle".into();
    }

    fn checkpoint_round(self: &Arc<Self>) {
        if !self.checkpoint_is_due() {
            self.collect_files();
            return;
        }
        match self.checkpoint() {
            Ok(()) => {
                self.background.counters.checkpoints.fetch_add(1, Ordering::Relaxed);
            }
            Err(error) => {
                self.background.counters.errors.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(%error, "checkpoint failed");
                self.os.clock.sleep(Duration::from_secs(1));
            }
        }
    }
}
