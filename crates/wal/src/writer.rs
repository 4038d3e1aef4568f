//! The thread that writes and syncs. It alone touches the content of log files.
//!
//! Group commit by itself: while one sync runs, commits pile up and the next sync takes them all. With many
//! committers in a closed loop that alone splits them in two groups, those in the running sync and those
//! that just missed it. So after a sync the writer may *gather*: wait until as many wait as were seen at
//! once, at most half of a sync and `gather_max`. One who commits alone is not delayed, because it is all
//! that was seen. A gathering that did not pay (fewer arrivals than the delay was worth) is not tried again
//! for 1, 2, 4, ... flushes.
//!
//! A sync takes a processor as well: some 40 µs of it, in the kernel. Where every processor has something to do,
//! a wait costs those who wait hardly anything, as others get on meanwhile, and a sync that is saved is time for
//! all: there the writer gathers for several times the time of a sync ([`FULL_SYNCS`]; docs/decisions/0023). If
//! nobody came, that is left out for 1, 2, 4, ... flushes, too.

use crate::buffer::Image;
use crate::error::{Error, Result};
use crate::format::{PAGE_BYTES, align_up};
use crate::log::{Shared, State, WriterState};
use basalt_sched::File;
use basalt_types::Lsn;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So much is flushed although nobody waits.
pub const EAGER_BYTES: usize = 1 << 20;
/// Image memory above this is given back after a flush.
const KEEP_BYTES_MAX: usize = 8 << 20;
const SKIP_MAX: u32 = 64;
/// Where processors are busy and others may come, the next sync begins at the latest so many times the time of one, or
/// `gather_max` if that is less, behind the end of the last one. Half-way the writer asks again whether they still are.
const FULL_SYNCS: u32 = 16;
/// So many share the processor time of a sync that each has little of it.
const FULL_ENOUGH: usize = 24;

pub fn run_writer(shared: &Shared) {
    let mut gather = Gather::default();
    let mut spare = Image::default();
    while let Some(batch) = next_batch(shared, &mut gather, std::mem::take(&mut spare)) {
        match flush(shared, batch, &mut gather) {
            Ok(image) => spare = image,
            Err(error) => {
                shared.poison(&error);
                return;
            }
        }
    }
    shared.closed.store(true, Ordering::SeqCst);
    shared.waiters.wake_up_to(u64::MAX);
    shared.drained.notify_waiters();
}

/// What one flush writes, and where.
struct Batch {
    image: Image,
    pieces: Vec<Piece>,
}

/// The part of a batch that goes into one file.
struct Piece {
    file: Arc<dyn File>,
    sequence: u64,
    offset: u64,
    from: usize,
    to: usize,
}

/// Waits for something to flush and takes it; `None` when the log is closed or poisoned.
fn next_batch(shared: &Shared, gather: &mut Gather, mut empty: Image) -> Option<Batch> {
    let mut state = shared.state.lock();
    loop {
        if shared.poison.get().is_some() {
            return None;
        }
        let now = shared.os.clock.monotonic();
        if is_due(shared, &state, now) {
            break;
        }
        if state.closing {
            return None;
        }
        state.writer = WriterState::Idle;
        match state.soon_at {
            Some(at) => {
                // Time spent waiting counts, whatever an injected clock says.
                if shared.writer_wakes.wait_for(&mut state, at.saturating_sub(now)).timed_out() {
                    state.soon_at = Some(now);
                }
            }
            None => shared.writer_wakes.wait(&mut state),
        }
        state.writer = WriterState::Busy;
    }
    gather.wait(shared, &mut state);
    state.image.seal();
    empty.reset(state.image.end());
    let image = std::mem::replace(&mut state.image, empty);
    state.in_flight_bytes = image.bytes.len();
    state.soon_at = None;
    let pieces = pieces(&state, &image);
    Some(Batch { image, pieces })
}

fn is_due(shared: &Shared, state: &State, now: Duration) -> bool {
    !state.image.is_empty()
        && (state.wanted > shared.durable.load(Ordering::SeqCst)
            || state.image.bytes.len() >= EAGER_BYTES
            || state.closing
            || state.soon_at.is_some_and(|at| at <= now))
}

fn pieces(state: &State, image: &Image) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for live in &state.files {
        let Some(file) = &live.file else { continue };
        let (first, end) = (live.first, live.first + live.file_bytes - PAGE_BYTES);
        let (from, to) = (image.start.max(first), image.end().min(end));
        if from < to {
            pieces.push(Piece {
                file: file.clone(),
                sequence: live.sequence,
                offset: PAGE_BYTES + from - first,
                from: (from - image.start) as usize,
                to: (to - image.start) as usize,
            });
        }
    }
    let covered: usize = pieces.iter().map(|piece| piece.to - piece.from).sum();
    assert_eq!(covered, image.bytes.len(), "accepted records lie in allocated files");
    pieces
}

fn flush(shared: &Shared, batch: Batch, gather: &mut Gather) -> Result<Image> {
    let Batch { mut image, pieces } = batch;
    let mut blocks = 0;
    for piece in &pieces {
        // The block headers of a file can vouch for the file before: it is synced by then.
        let durable = shared.durable.load(Ordering::SeqCst);
        blocks = image.write_headers(&shared.stream, blocks, piece.to, durable);
        let bytes = &image.bytes[piece.from..piece.to];
        let path = || shared.config.dir.join(crate::format::log_name(piece.sequence));
        piece.file.write_at(bytes, piece.offset).map_err(|error| Error::io("write", &path())(error))?;
        let before = shared.os.clock.monotonic();
        piece.file.sync().map_err(|error| Error::io("sync", &path())(error))?;
        let after = shared.os.clock.monotonic();
        gather.synced(after, after.saturating_sub(before));
        shared.counters.written_bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if shared.poison.get().is_some() {
            // The prepare thread stopped the log meanwhile: acknowledge nothing more.
            break;
        }
        announce(shared, align_up(image.start + piece.to as u64), after.saturating_sub(before), gather);
    }
    shared.state.lock().in_flight_bytes = 0;
    shared.drained.notify_waiters();
    if image.bytes.capacity() > KEEP_BYTES_MAX {
        image.bytes = Vec::new();
    }
    Ok(image)
}

fn announce(shared: &Shared, durable: u64, latency: Duration, gather: &mut Gather) {
    let counters = &shared.counters;
    counters.syncs.fetch_add(1, Ordering::Relaxed);
    counters.last_sync_nanos.store(latency.as_nanos() as u64, Ordering::Relaxed);
    shared.durable.store(durable, Ordering::SeqCst);
    (shared.on_durable)(Lsn(durable));
    let waiting = shared.waiters.count();
    let served = shared.waiters.wake_up_to(durable);
    counters.commits.fetch_add(served as u64, Ordering::Relaxed);
    gather.saw(waiting.max(served));
}

/// Whether as many wait, or there is another reason not to wait for more.
fn has_enough(waiters: usize, shared: &Shared, state: &State) -> bool {
    let is_much = state.image.bytes.len() >= EAGER_BYTES;
    shared.waiters.count() >= waiters || is_much || state.closing || shared.poison.get().is_some()
}

/// Until as many wait, or until then. False: there was nothing to wait for.
fn wait_for(waiters: usize, until: Duration, shared: &Shared, state: &mut MutexGuard<'_, State>) -> bool {
    let mut waited = false;
    state.writer = WriterState::Gathering(waiters);
    while !has_enough(waiters, shared, state) {
        let now = shared.os.clock.monotonic();
        if now >= until {
            break;
        }
        waited = true;
        if shared.writer_wakes.wait_for(state, until - now).timed_out() {
            break;
        }
    }
    state.writer = WriterState::Busy;
    waited
}

/// Until as many wait, or the second of two steps is over, or processors are not busy any more when one begins. `None`:
/// it is too late, or they are not busy. Else, whether anything was waited for.
fn gather_while_full(
    crowd: usize,
    steps: [Duration; 2],
    shared: &Shared,
    state: &mut MutexGuard<'_, State>,
) -> Option<bool> {
    let mut waited = None;
    for until in steps {
        if shared.os.clock.monotonic() >= until {
            continue;
        }
        // Asks the system.
        if !MutexGuard::unlocked(state, || shared.os.load.is_full()) {
            break;
        }
        let took_time = wait_for(crowd, until, shared, state);
        waited = Some(took_time || waited.unwrap_or_default());
        if has_enough(crowd, shared, state) {
            break;
        }
    }
    waited
}

/// Leaves out what did not pay: 1, 2, 4, ... times, at most [`SKIP_MAX`], until it does.
#[derive(Default)]
struct Backoff {
    /// Still to be left out, and how often it was last time.
    skip: u32,
    last: u32,
}

impl Backoff {
    fn is_over(&mut self) -> bool {
        let over = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        over
    }

    fn note(&mut self, paid: bool) {
        self.last = if paid { 0 } else { (self.last * 2).clamp(1, SKIP_MAX) };
        self.skip = self.last;
    }
}

#[derive(Default)]
struct Gather {
    /// Committers in the last sync and those who waited for the next one at its end.
    seen_at_once: usize,
    /// The same of some syncs before.
    seen_of_late: usize,
    sync_end: Duration,
    sync_latency: Duration,
    /// Of gathering, and of gathering where processors are busy.
    backoff: Backoff,
    full_backoff: Backoff,
}

impl Gather {
    fn synced(&mut self, end: Duration, latency: Duration) {
        self.sync_end = end;
        self.sync_latency = latency;
    }

    fn wait(&mut self, shared: &Shared, state: &mut MutexGuard<'_, State>) {
        let waiting = shared.waiters.count();
        if state.closing || state.image.bytes.len() >= EAGER_BYTES {
            return;
        }
        let begin = shared.os.clock.monotonic();
        let after = |wait: Duration| self.sync_end + wait;
        let gather_max = shared.config.gather_max;
        let crowd = self.seen_of_late.min(FULL_ENOUGH);
        if crowd > 1 && waiting < crowd && self.full_backoff.is_over() {
            let most = gather_max.min(self.sync_latency.saturating_mul(FULL_SYNCS));
            if let Some(waited) = gather_while_full(crowd, [after(most / 2), after(most)], shared, state) {
                let came = shared.waiters.count() > waiting;
                if waited || came {
                    self.full_backoff.note(came);
                }
                shared.counters.gathers.fetch_add(u64::from(waited), Ordering::Relaxed);
                return;
            }
        }
        let target = self.seen_at_once;
        if target <= 1 || waiting >= target || !self.backoff.is_over() {
            return;
        }
        if wait_for(target, after(gather_max.min(self.sync_latency / 2)), shared, state) {
            shared.counters.gathers.fetch_add(1, Ordering::Relaxed);
            let delay = shared.os.clock.monotonic().saturating_sub(begin);
            self.weigh(waiting, shared.waiters.count(), delay);
        }
    }

    /// Those who were in a sync or came during it. Of a crowd before, most may come again.
    fn saw(&mut self, at_once: usize) {
        self.seen_at_once = at_once;
        self.seen_of_late = at_once.max(self.seen_of_late - self.seen_of_late.div_ceil(8));
    }

    /// A gathering pays if those who came save more time (a sync each) than the others lost.
    fn weigh(&mut self, before: usize, after: usize, delay: Duration) {
        let gained = self.sync_latency.as_nanos() * after.saturating_sub(before) as u128;
        let lost = delay.as_nanos() * before.max(1) as u128;
        self.backoff.note(gained > lost);
    }
}
