//! The threads that run connections: one per group of processors, each with an epoll of its own. They keep to their
//! processors while several are at work, or one follows its client.
//!
//! Where a client on this machine runs, its packets say (SO_INCOMING_CPU). A connection that is answered by the
//! reactor of the same processor costs no interrupt of another one, and the two take turns by themselves; but a
//! processor that is full of clients has no time to serve them. So connections move (docs/decisions/0015): to where
//! less is to do, and, where that is even, to where their client is.

mod balance;

use balance::{Balance, Rate};
use basalt_sched::threads::{self, Usage};
use std::cell::Cell;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::block_in_place;

/// No more threads than this do nothing but serve.
const REACTORS_MAX: usize = 16;
/// Deeply nested statements are parsed and bound on a reactor.
const STACK_BYTES: usize = 32 << 20;
/// A connection looks where its client is after so many answers.
const LOOK_EVERY: u32 = 32;
/// It moves when so many looks in a row say the same.
const LOOKS: u32 = 3;

pub struct Reactors {
    reactors: Vec<Reactor>,
    /// The reactor of each processor.
    of_cpu: Vec<Option<usize>>,
    balance: Balance,
    moves: AtomicU64,
}

struct Reactor {
    cpus: Vec<usize>,
    handle: Handle,
    /// Taken when it ends.
    runtime: Option<Runtime>,
    connections: AtomicUsize,
}

/// What a connection knows of itself.
#[derive(Default)]
pub struct Habit {
    answers: u32,
    looked: Option<Duration>,
    /// Where it would go, and how many looks said so.
    wish: Option<usize>,
    looks: u32,
}

impl Reactors {
    pub fn start() -> io::Result<Reactors> {
        let cpus = threads::cpus().unwrap_or_else(|error| {
            tracing::warn!("reactor threads run wherever the system puts them: {error}");
            &[]
        });
        let most = std::thread::available_parallelism()?.get().min(REACTORS_MAX);
        let count = if cpus.is_empty() { most } else { most.min(cpus.len()) };
        let mut of_cpu = vec![None; cpus.last().map_or(0, |last| last + 1)];
        let mut groups = vec![Vec::new(); count];
        for (at, cpu) in cpus.iter().enumerate() {
            let reactor = at * count / cpus.len();
            of_cpu[*cpu] = Some(reactor);
            groups[reactor].push(*cpu);
        }
        let reactors = groups.into_iter().map(Reactor::start).collect::<io::Result<Vec<_>>>()?;
        Ok(Reactors { reactors, of_cpu, balance: Balance::new(count), moves: AtomicU64::new(0) })
    }

    /// Takes a place for a connection, where there are fewest. [`leave`](Self::leave) gives it back.
    pub fn enter(&self) -> usize {
        let connections = |at: &usize| self.reactors[*at].connections.load(Ordering::Relaxed);
        let at = (0..self.reactors.len()).min_by_key(connections).unwrap_or_default();
        self.reactors[at].connections.fetch_add(1, Ordering::Relaxed);
        at
    }

    pub fn leave(&self, at: usize) {
        self.reactors[at].connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn change(&self, from: usize, to: usize) {
        self.leave(from);
        self.reactors[to].connections.fetch_add(1, Ordering::Relaxed);
        self.moves.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that went from one to another.
    pub fn moves(&self) -> u64 {
        self.moves.load(Ordering::Relaxed)
    }

    pub fn handle(&self, at: usize) -> &Handle {
        &self.reactors[at].handle
    }

    /// Runs on another thread than the reactor's, which does its work meanwhile, wherever there is room.
    pub fn relieved<T>(&self, at: usize, work: impl FnOnce() -> T) -> T {
        block_in_place(|| {
            let kept = KEPT.get();
            self.reactors[at].keep(false);
            let done = work();
            self.reactors[at].keep(kept);
            done
        })
    }

    /// Notes an answer of the reactor `at`; says where the connection shall go on, if elsewhere and if it can move.
    /// `client` is the socket of a client on this machine.
    pub fn better(
        &self,
        at: usize,
        habit: &mut Habit,
        can_move: bool,
        client: Option<impl AsFd>,
        now: impl FnOnce() -> Duration,
    ) -> Option<usize> {
        habit.answers += 1;
        if habit.answers < LOOK_EVERY || self.reactors.len() == 1 {
            return None;
        }
        let (answers, now) = (std::mem::take(&mut habit.answers), now());
        // What a system does not tell is not known.
        let cpu = client.and_then(|socket| rustix::net::sockopt::socket_incoming_cpu(socket).ok());
        let home = cpu.and_then(|cpu| *self.of_cpu.get(cpu as usize)?);
        self.balance.note(at, home, answers, taken(), now, threads::idle);
        let took = now.saturating_sub(habit.looked.replace(now)?);
        let own = Rate::of(answers, took);
        self.reactors[at].keep(self.balance.keeps_places(own));
        let wish = self.balance.better(at, home, own);
        habit.looks = if wish == habit.wish { habit.looks + 1 } else { 1 };
        habit.wish = wish;
        let to = wish.filter(|_| habit.looks >= LOOKS && can_move)?;
        self.balance.moves(at, to, own);
        *habit = Habit::default();
        Some(to)
    }
}

thread_local! {
    /// Whether this thread keeps to the processors of its reactor.
    static KEPT: Cell<bool> = const { Cell::new(false) };
    /// What this thread had taken when it was looked at last.
    static TAKEN: Cell<Usage> = const { Cell::new(Usage { spent: Duration::ZERO, rests: 0 }) };
}

/// What this thread has taken since it was asked last; nothing where the system does not say.
fn taken() -> Usage {
    let now = threads::usage().unwrap_or_default();
    let before = TAKEN.replace(now);
    Usage { spent: now.spent.saturating_sub(before.spent), rests: now.rests.saturating_sub(before.rests) }
}

impl Reactor {
    fn start(cpus: Vec<usize>) -> io::Result<Reactor> {
        let runtime = Builder::new_multi_thread()
            // What blocks in place is relieved by another one.
            .worker_threads(1)
            .thread_stack_size(STACK_BYTES)
            .thread_name("basalt-reactor")
            // They begin with what the thread had that starts them. A query that runs keeps no answer waiting.
            .on_thread_start(|| {
                threads::keep_nowhere();
                if let Err(error) = threads::serve_promptly() {
                    tracing::debug!("a reactor thread has the same time slices as others: {error}");
                }
            })
            .enable_all()
            .build()?;
        Ok(Reactor { cpus, handle: runtime.handle().clone(), runtime: Some(runtime), connections: AtomicUsize::new(0) })
    }
}

impl Reactor {
    /// Keeps the calling thread, which runs it, to its processors, or lets it run anywhere.
    fn keep(&self, kept: bool) {
        if KEPT.replace(kept) == kept || self.cpus.is_empty() {
            return;
        }
        if !kept {
            threads::keep_nowhere();
        } else if let Err(error) = threads::keep_to(&self.cpus) {
            tracing::debug!("a reactor thread runs wherever the system puts it: {error}");
        }
    }
}

impl Drop for Reactor {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // It must not be waited for inside of another.
            runtime.shutdown_background();
        }
    }
}
