//! The log as its users see it: append, wait, release.
//!
//! ```text
//! append ──> image in memory ──> writer thread: write, sync ──> on_durable ──> waiters
//!                ^ only within allocated files <── prepare thread: allocates the next file ahead
//! ```
//!
//! Invariants:
//!
//! 1. LSNs are given under the state lock, so LSN order is the order of `append` calls.
//! 2. A record is accepted only if the files that will hold it are allocated: a full disk refuses records,
//!    it never breaks accepted ones.
//! 3. A page that was durable is never written again (start rewrites unproven pages with the same bytes). Zeros are written
//!    over a new file only before the first byte of the stream ([`zeros`](crate::zeros)).
//! 4. A file is durable in full before the first byte of the stream is written to the next one. Hence a sound block
//!    vouches for all files before its own.
//! 5. `durable` only grows, and only after a successful sync of all below it. After the first failed write
//!    or sync it never grows again: nothing is retried, every later call fails with the first cause.
//! 6. Per epoch one stream: files follow each other without gap; each start begins a file at the end that
//!    replay found and cuts off whatever lay behind it.
//!
//! Crashes: before a sync ends, the last flush may be there in part; replay takes its intact blocks up to the
//! first bad one. While a file is prepared, it has no live name, or it has one and no blocks. While a start
//! makes its first file, either the old end counts or the new file does, and they agree. See [`crate::replay`]
//! for the judgement of bad blocks and [`start`](crate::start) for pages that a dying process wrote but
//! never synced.

use crate::buffer::{Image, Stream};
use crate::directory::{ChangeError, Directory};
use crate::error::{Error, Result};
use crate::format::{RECORD_BYTES_MAX, file_bytes_allowed};
use crate::prepare::run_prepare;
use crate::start;
use crate::waiters::{Unpark, Waiters};
use crate::writer::run_writer;
use crate::zeros::{Begun, Blank};
use basalt_sched::{File, Os};
use basalt_types::{Epoch, Lsn};
use parking_lot::{Condvar, Mutex, MutexGuard};
use std::collections::VecDeque;
use std::fmt::Display;
use std::future::Future;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread::{JoinHandle, ThreadId};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Longest delay of a flush asked for by [`Log::flush_soon`], before the flush itself.
pub const FLUSH_SOON: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub struct LogConfig {
    pub dir: PathBuf,
    /// Size of each log file, header included; a multiple of 4096.
    pub file_bytes: u64,
    /// [`Log::admit`] holds callers back while more than this is appended and not yet durable.
    pub buffer_bytes_max: usize,
    /// Released files kept for reuse, at most.
    pub recycle_files_max: usize,
    /// Longest time that the writer waits for more committers.
    pub gather_max: Duration,
}

impl LogConfig {
    pub fn new(dir: PathBuf) -> LogConfig {
        LogConfig {
            dir,
            file_bytes: 64 << 20,
            buffer_bytes_max: 32 << 20,
            recycle_files_max: 4,
            gather_max: Duration::from_millis(2),
        }
    }
}

/// Called by the writer thread after each successful sync, before waiters are woken.
pub type OnDurable = Box<dyn Fn(Lsn) + Send + Sync>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Position of the record: replay from here visits it.
    pub start: Lsn,
    /// Position behind it: durable once [`Log::durable`] is at least this.
    pub end: Lsn,
}

#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Stats {
    pub records: u64,
    pub payload_bytes: u64,
    pub written_bytes: u64,
    pub syncs: u64,
    /// Waits that were served by a sync.
    pub commits: u64,
    /// `commits / syncs`.
    pub average_group: f64,
    pub last_sync: Duration,
    /// Times that the writer waited for more committers.
    pub gathers: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub records: AtomicU64,
    pub payload_bytes: AtomicU64,
    pub written_bytes: AtomicU64,
    pub syncs: AtomicU64,
    pub commits: AtomicU64,
    pub last_sync_nanos: AtomicU64,
    pub gathers: AtomicU64,
}

/// A live file. Only those of this start are ever written and have a handle.
pub(crate) struct LiveFile {
    pub sequence: u64,
    pub first: u64,
    pub file_bytes: u64,
    pub file: Option<Arc<dyn File>>,
    /// Told when the writer comes to it, if it was new.
    pub begun: Option<Arc<Begun>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriterState {
    Busy,
    Idle,
    /// Waits until so many waiters are there.
    Gathering(usize),
}

pub(crate) struct State {
    pub image: Image,
    /// Bytes that the writer has taken and not finished.
    pub in_flight_bytes: usize,
    /// Ascending; the last ones are allocated ahead.
    pub files: VecDeque<LiveFile>,
    /// Position behind the last allocated file.
    pub allocated_end: u64,
    /// Position that an append needs allocated.
    pub needed_end: u64,
    /// The next file, if it is new, and where the log has to be for zeros to be thought of.
    pub blank: Option<(u64, Blank)>,
    /// More files are kept for reuse than are wanted. Set behind what makes it true.
    pub excess: bool,
    /// Why the latest allocation failed; `None` after a success.
    pub no_space: Option<String>,
    /// Greatest LSN that somebody waits for.
    pub wanted: u64,
    /// When a flush is due without a waiter.
    pub soon_at: Option<Duration>,
    pub writer: WriterState,
    pub closing: bool,
}

pub(crate) struct Shared {
    pub os: Os,
    pub config: LogConfig,
    pub stream: Stream,
    pub state: Mutex<State>,
    pub writer_wakes: Condvar,
    pub prepare_wakes: Condvar,
    /// Appenders that wait for the prepare thread.
    pub space: Condvar,
    pub directory: Mutex<Directory>,
    /// Held while files are released: oldest first.
    pub releasing: Mutex<()>,
    pub waiters: Waiters,
    pub durable: AtomicU64,
    pub drained: tokio::sync::Notify,
    pub poison: OnceLock<String>,
    pub closed: AtomicBool,
    pub counters: Counters,
    pub on_durable: OnDurable,
}

impl Shared {
    /// Has the preparing thread look for files that are too many.
    fn trim(&self) {
        self.state.lock().excess = true;
        self.prepare_wakes.notify_one();
    }

    pub fn poisoned(&self) -> Option<Error> {
        self.poison.get().map(|cause| Error::Poisoned { cause: cause.clone() })
    }

    /// Stops the log for good. The first cause stays.
    pub fn poison(&self, cause: impl Display) {
        let cause = cause.to_string();
        if self.poison.set(cause.clone()).is_ok() {
            tracing::error!(%cause, "the log stops");
        }
        drop(self.state.lock());
        self.writer_wakes.notify_all();
        self.prepare_wakes.notify_all();
        self.space.notify_all();
        self.waiters.wake_up_to(u64::MAX);
        self.drained.notify_waiters();
    }

    fn buffered_bytes(&self) -> usize {
        let state = self.state.lock();
        state.image.bytes.len() + state.in_flight_bytes
    }

    /// `Some` when a wait for `lsn` is over.
    fn settled(&self, lsn: u64) -> Option<Result<()>> {
        if self.durable.load(Ordering::SeqCst) >= lsn {
            return Some(Ok(()));
        }
        self.poisoned().map(Err).or_else(|| self.closed.load(Ordering::SeqCst).then_some(Err(Error::Closed)))
    }

    /// Tells the writer that somebody waits for `lsn`; `waiting` is the number of waiters.
    fn want(&self, lsn: u64, waiting: usize) {
        let mut state = self.state.lock();
        state.wanted = state.wanted.max(lsn);
        let wake = match state.writer {
            WriterState::Busy => false,
            WriterState::Idle => true,
            WriterState::Gathering(target) => waiting >= target,
        };
        drop(state);
        if wake {
            self.writer_wakes.notify_one();
        }
    }
}

pub struct Log {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    writer: ThreadId,
}

impl Log {
    /// Continues the log at `start`, the end that replay found (any position, rounded up to a page, in an
    /// empty directory), under an `epoch` above all that the log has seen. Replay's results may be made
    /// durable or shown once this has returned. `on_durable` must not block, nor own the log.
    pub fn open(os: Os, config: LogConfig, epoch: Epoch, start: Lsn, on_durable: OnDurable) -> Result<Arc<Log>> {
        if !file_bytes_allowed(config.file_bytes) {
            let why = "must be a multiple of 4096, from 16384 to 2^40";
            return Err(Error::Setting { name: "file_bytes", value: config.file_bytes, why });
        }
        let started = start::start(&os, &config, epoch, start)?;
        let stream = started.stream;
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                image: Image { start: stream.origin, ..Image::default() },
                in_flight_bytes: 0,
                files: started.files,
                allocated_end: stream.origin + stream.capacity,
                needed_end: 0,
                blank: None,
                no_space: None,
                excess: true,
                wanted: 0,
                soon_at: None,
                writer: WriterState::Busy,
                closing: false,
            }),
            os,
            config,
            stream,
            writer_wakes: Condvar::new(),
            prepare_wakes: Condvar::new(),
            space: Condvar::new(),
            directory: Mutex::new(started.directory),
            releasing: Mutex::new(()),
            waiters: Waiters::default(),
            durable: AtomicU64::new(stream.origin),
            drained: tokio::sync::Notify::new(),
            poison: OnceLock::new(),
            closed: AtomicBool::new(false),
            counters: Counters::default(),
            on_durable,
        });
        let writer = spawn("log-writer", &shared, run_writer)?;
        let writer_id = writer.thread().id();
        let log = Log { shared, threads: Mutex::new(vec![writer]), writer: writer_id };
        let prepare = spawn("log-prepare", &log.shared, run_prepare)?;
        log.threads.lock().push(prepare);
        Ok(Arc::new(log))
    }

    /// Appends one record, the concatenation of `parts`, to the buffer. No I/O. It blocks only when the
    /// allocated files are full and the prepare thread has not failed yet.
    pub fn append(&self, parts: &[&[u8]]) -> Result<Appended> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if bytes > RECORD_BYTES_MAX {
            return Err(Error::TooLarge { bytes, bytes_max: RECORD_BYTES_MAX });
        }
        let crc = parts.iter().fold(0, |crc, part| crc32c::crc32c_append(crc, part));
        // A record that is half in the image would spoil all behind it.
        let _guard = StopOnPanic(&self.shared);
        let mut state = self.with_room_for(bytes)?;
        let start = Lsn(state.image.append(&self.shared.stream, parts, bytes as u32, crc));
        let end = Lsn(state.image.end());
        let full = state.image.bytes.len() >= crate::writer::EAGER_BYTES && state.writer != WriterState::Busy;
        let prepare = state.needs_file(&self.shared.stream) || state.is_zeros_time();
        drop(state);
        if full {
            self.shared.writer_wakes.notify_one();
        }
        if prepare {
            self.shared.prepare_wakes.notify_one();
        }
        self.shared.counters.records.fetch_add(1, Ordering::Relaxed);
        self.shared.counters.payload_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(Appended { start, end })
    }

    fn with_room_for(&self, payload_bytes: usize) -> Result<MutexGuard<'_, State>> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        loop {
            if let Some(error) = shared.poisoned() {
                return Err(error);
            }
            if state.closing {
                return Err(Error::Closed);
            }
            let bound = shared.stream.end_bound(state.image.end(), payload_bytes);
            if bound <= state.allocated_end {
                return Ok(state);
            }
            state.needed_end = state.needed_end.max(bound);
            shared.prepare_wakes.notify_one();
            if let Some(cause) = &state.no_space {
                let needed_bytes = bound - state.allocated_end;
                return Err(Error::NoSpace { needed_bytes, cause: cause.clone() });
            }
            shared.space.wait(&mut state);
        }
    }

    /// Everything below is durable.
    pub fn durable(&self) -> Lsn {
        Lsn(self.shared.durable.load(Ordering::SeqCst))
    }

    /// Position behind the last record appended.
    pub fn end(&self) -> Lsn {
        Lsn(self.shared.state.lock().image.end())
    }

    /// Returns once everything below `lsn` is durable; asks for the flush that this takes. What was durable
    /// before the log was poisoned stays so: waiting for that is still a success.
    pub async fn wait_durable(&self, lsn: Lsn) -> Result<()> {
        if let Some(settled) = self.shared.settled(lsn.0) {
            return settled;
        }
        let end = self.end();
        if lsn > end {
            return Err(Error::BeyondEnd { lsn, end });
        }
        Wait { shared: &self.shared, lsn: lsn.0, id: self.shared.waiters.new_id() }.await
    }

    /// [`Log::wait_durable`] for threads without an executor.
    pub fn wait_durable_blocking(&self, lsn: Lsn) -> Result<()> {
        block_on(self.wait_durable(lsn))
    }

    /// Has what is appended so far flushed within [`FLUSH_SOON`], although nobody waits for it.
    pub fn flush_soon(&self) {
        let mut state = self.shared.state.lock();
        if state.soon_at.is_some() || state.image.is_empty() {
            return;
        }
        state.soon_at = Some(self.shared.os.clock.monotonic() + FLUSH_SOON);
        let wake = state.writer == WriterState::Idle;
        drop(state);
        if wake {
            self.shared.writer_wakes.notify_one();
        }
    }

    /// Back-pressure: returns once no more than `buffer_bytes_max` is buffered. Call it before a piece of work
    /// that appends, never while holding what a flush could need.
    pub async fn admit(&self) -> Result<()> {
        let shared = &*self.shared;
        let has_room = || match shared.poisoned() {
            Some(error) => Err(error),
            None => Ok(shared.buffered_bytes() <= shared.config.buffer_bytes_max),
        };
        while !has_room()? {
            let mut drained = pin!(shared.drained.notified());
            drained.as_mut().enable();
            // What was drained since is not told again.
            if has_room()? {
                break;
            }
            shared.want(self.end().0, usize::MAX);
            drained.await;
        }
        Ok(())
    }

    /// Position of the oldest byte kept.
    pub fn first_lsn(&self) -> Lsn {
        Lsn(self.shared.state.lock().files.front().map_or(self.shared.stream.origin, |file| file.first))
    }

    /// What the files that begin at `lsn` or later, and have been written to, take of the disk. Every start begins a
    /// file: that may be much more than the records in them.
    pub fn bytes_on_disk_since(&self, lsn: Lsn) -> u64 {
        let state = self.shared.state.lock();
        let end = state.image.end();
        let written = state.files.iter().filter(|file| file.first >= lsn.0 && file.first < end);
        written.map(|file| file.file_bytes).sum()
    }

    /// Gives up all files that lie wholly below `lsn` (and below what is durable). Does I/O. After this, replay
    /// is possible from [`Log::first_lsn`] on. Room that is not used again is given back by and by.
    pub fn release_before(&self, lsn: Lsn) -> Result<()> {
        let shared = &*self.shared;
        let _one = shared.releasing.lock();
        let mut released = 0;
        loop {
            if let Some(error) = shared.poisoned() {
                return Err(error);
            }
            let bound = lsn.min(self.durable());
            let mut state = shared.state.lock();
            if state.files.get(1).is_none_or(|next| next.first > bound.0) {
                break;
            }
            let Some(file) = state.files.pop_front() else { break };
            drop(state);
            let retired = shared.directory.lock().retire(file.sequence, file.file_bytes);
            match retired {
                Ok(()) => released += 1,
                Err(ChangeError::Harmless(error)) => {
                    shared.state.lock().files.push_front(file);
                    return Err(error);
                }
                Err(ChangeError::Fatal(error)) => {
                    shared.poison(&error);
                    return Err(error);
                }
            }
        }
        shared.directory.lock().note_released(released);
        shared.trim();
        Ok(())
    }

    /// Another file found no room: released files that are kept for reuse are given up.
    pub fn give_up_spares(&self) {
        self.shared.directory.lock().give_up_spares();
        self.shared.trim();
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.shared.counters;
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (commits, syncs) = (get(&counters.commits), get(&counters.syncs));
        Stats {
            records: get(&counters.records),
            payload_bytes: get(&counters.payload_bytes),
            written_bytes: get(&counters.written_bytes),
            syncs,
            commits,
            average_group: if syncs == 0 { 0.0 } else { commits as f64 / syncs as f64 },
            last_sync: Duration::from_nanos(get(&counters.last_sync_nanos)),
            gathers: get(&counters.gathers),
        }
    }

    /// Stops the log for good, as a failed sync does: for an owner that can no longer vouch for what it
    /// appends. What is appended and not yet durable may or may not be there after the restart.
    pub fn stop(&self, cause: &str) {
        self.shared.poison(cause);
    }

    /// Why the log has stopped, if it has.
    pub fn stopped(&self) -> Option<Error> {
        self.shared.poisoned()
    }

    /// Flushes what is appended, refuses more, and ends the threads.
    pub fn close(&self) -> Result<()> {
        self.shared.state.lock().closing = true;
        self.shared.writer_wakes.notify_all();
        self.shared.prepare_wakes.notify_all();
        self.shared.space.notify_all();
        if std::thread::current().id() == self.writer {
            // Dropped by `on_durable`: the writer ends by itself after this flush.
            return Ok(());
        }
        for thread in std::mem::take(&mut *self.threads.lock()) {
            if thread.join().is_err() {
                self.shared.poison(&Error::Panicked);
            }
        }
        self.shared.poisoned().map_or(Ok(()), Err)
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Err(error) = self.close() {
            tracing::debug!(%error, "the log was poisoned before it was closed");
        }
    }
}

impl State {
    /// Whether the prepare thread has work: always one file ahead of the file being filled, and whatever an
    /// append waits for.
    pub fn needs_file(&self, stream: &Stream) -> bool {
        let ahead = stream.file_end(self.image.end()) + stream.capacity;
        self.allocated_end < ahead.max(self.needed_end)
    }

    /// Whether the log has come to where zeros in the next file are thought of.
    pub fn is_zeros_time(&self) -> bool {
        self.blank.as_ref().is_some_and(|(from, _)| self.image.end() >= *from)
    }
}

fn spawn(name: &str, shared: &Arc<Shared>, run: fn(&Shared)) -> Result<JoinHandle<()>> {
    let shared = shared.clone();
    let dir = shared.config.dir.clone();
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            let _guard = StopOnPanic(&shared);
            run(&shared);
        })
        .map_err(Error::io("start a thread for", &dir))
}

/// A broken invariant in a thread of the log must not leave its users waiting.
struct StopOnPanic<'a>(&'a Shared);

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.poison(&Error::Panicked);
        }
    }
}

struct Wait<'a> {
    shared: &'a Shared,
    lsn: u64,
    id: u64,
}

impl Future for Wait<'_> {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let (shared, lsn) = (self.shared, self.lsn);
        let mut settled = None;
        let entered = shared.waiters.enter(lsn, self.id, context.waker(), || {
            settled = shared.settled(lsn);
            settled.is_some()
        });
        if let Some(settled) = settled {
            return Poll::Ready(settled);
        }
        if let Some(waiting) = entered {
            shared.want(lsn, waiting);
        }
        Poll::Pending
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.shared.waiters.leave(self.lsn, self.id);
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}
