//! The thread that writes and syncs. It alone touches the content of log files that it has come to (`zeros.rs`: before).
//!
//! What it waits for before a sync: `gather.rs`.

use crate::buffer::Image;
use crate::error::{Error, Result};
use crate::format::{PAGE_BYTES, align_up};
use crate::gather::Gather;
use crate::log::{Shared, State, WriterState};
use crate::zeros::Begun;
use basalt_sched::File;
use basalt_types::Lsn;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// So much is flushed although nobody waits.
pub const EAGER_BYTES: usize = 1 << 20;
/// Image memory above this is given back after a flush.
const KEEP_BYTES_MAX: usize = 8 << 20;

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
    begun: Option<Arc<Begun>>,
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
                begun: live.begun.clone(),
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
        if let Some(begun) = &piece.begun {
            begun.begin().map_err(|error| Error::io("write", &path())(error))?;
        }
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
    // First: whoever finds his record durable answers, and what he has committed must be seen by then.
    (shared.on_durable)(Lsn(durable));
    shared.durable.store(durable, Ordering::SeqCst);
    let waiting = shared.waiters.count();
    let served = shared.waiters.wake_up_to(durable);
    counters.commits.fetch_add(served as u64, Ordering::Relaxed);
    gather.saw(waiting, served);
}
