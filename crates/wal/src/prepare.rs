//! The thread that allocates log files ahead, so that a full disk is met before a record is accepted.
//!
//! A failure here concerns a file that holds no record: it is removed, appends that need it are refused, and
//! it is tried again every [`RETRY`] and when an append asks. Only when it is unknown whether a live name is
//! durable, or what a live file holds, must the log stop.
//!
//! It writes zeros over a new file before the log comes to it ([`zeros`]).
//!
//! It also removes files kept for reuse that are too many, one after the other and with pauses: commits wait
//! while a file system gives room back.

use crate::directory::ChangeError;
use crate::format::FileHeader;
use crate::log::{LiveFile, Shared, State};
use crate::zeros::{self, Blank};
use parking_lot::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(100);
/// Least pause between two attempts, however many appends ask.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// Pause before a file's room is given back: at least this, and so many times what the last one took.
const TRIM_PAUSE: Duration = Duration::from_millis(50);
const TRIM_PAUSE_FACTOR: u32 = 4;
const TRIM_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Pause between pieces of zeros: at least this, and so many times what the last one took.
const ZEROS_PAUSE_MIN: Duration = Duration::from_millis(1);
const ZEROS_PAUSE_FACTOR: u32 = 2;
const ZEROS_PAUSE_MAX: Duration = Duration::from_millis(100);

pub fn run_prepare(shared: &Shared) {
    let mut pause = TRIM_PAUSE;
    let mut pace = Pace::default();
    let mut state = shared.state.lock();
    while !state.closing && shared.poison.get().is_none() {
        if !state.needs_file(&shared.stream) {
            if state.is_zeros_time()
                && let Some((_, blank)) = state.blank.take()
            {
                match pace.zeros_pay(shared) {
                    Some(true) => write_zeros(shared, &mut state, blank),
                    Some(false) => {}
                    None => {
                        // A little later.
                        let at = state.image.end() + shared.stream.capacity / 8;
                        state.blank = Some((at, blank));
                    }
                }
            } else if !state.excess {
                shared.prepare_wakes.wait(&mut state);
            } else if shared.prepare_wakes.wait_for(&mut state, pause).timed_out() {
                state.excess = false;
                drop(state);
                let began = shared.os.clock.monotonic();
                let more = shared.directory.lock().trim();
                let took = shared.os.clock.monotonic().saturating_sub(began);
                pause = (took * TRIM_PAUSE_FACTOR).clamp(TRIM_PAUSE, TRIM_PAUSE_MAX);
                state = shared.state.lock();
                state.excess |= more;
            }
            continue;
        }
        let header = FileHeader {
            sequence: state.files.back().map_or(1, |file| file.sequence + 1),
            first: state.allocated_end,
            file_bytes: shared.config.file_bytes,
            salt: shared.stream.salt,
            epoch: shared.stream.epoch,
        };
        drop(state);
        let made = shared.directory.lock().make(&header);
        state = shared.state.lock();
        match made {
            Ok((file, used_before)) => {
                pace = Pace::now(shared);
                let blank = (!used_before).then(|| Blank::new(file.clone(), header.file_bytes));
                state.files.push_back(LiveFile {
                    sequence: header.sequence,
                    first: header.first,
                    file_bytes: header.file_bytes,
                    file: Some(file),
                    begun: blank.as_ref().map(Blank::begun),
                });
                // When the file before has shown what it is filled by.
                let from = header.first - shared.stream.capacity / 8 * 7;
                state.blank = blank.map(|blank| (from, blank));
                state.allocated_end = header.end();
                if state.no_space.take().is_some() {
                    tracing::info!("the log can be extended again");
                }
                shared.space.notify_all();
            }
            Err(ChangeError::Harmless(error)) => {
                if state.no_space.is_none() {
                    tracing::warn!(%error, "the log cannot be extended");
                }
                state.no_space = Some(error.to_string());
                shared.space.notify_all();
                drop(state);
                shared.os.clock.sleep(RETRY_MIN);
                state = shared.state.lock();
                if !state.closing {
                    shared.prepare_wakes.wait_for(&mut state, RETRY);
                }
            }
            Err(ChangeError::Fatal(error)) => {
                drop(state);
                shared.poison(&error);
                return;
            }
        }
    }
}

/// What was written and synced when a file was made.
#[derive(Default)]
struct Pace {
    written_bytes: u64,
    syncs: u64,
}

impl Pace {
    fn now(shared: &Shared) -> Pace {
        let counters = &shared.counters;
        Pace {
            written_bytes: counters.written_bytes.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
        }
    }

    fn zeros_pay(&self, shared: &Shared) -> Option<bool> {
        let now = Pace::now(shared);
        zeros::pay(now.written_bytes.saturating_sub(self.written_bytes), now.syncs.saturating_sub(self.syncs))
    }
}

/// Until all is written, the writer comes to the file, or another file is needed. Spares that are too many wait for it.
fn write_zeros(shared: &Shared, state: &mut MutexGuard<'_, State>, mut blank: Blank) {
    let has_time = |state: &State| !state.closing && shared.poison.get().is_none() && !state.needs_file(&shared.stream);
    while has_time(state) {
        let (wrote, took) = MutexGuard::unlocked(state, || {
            let began = shared.os.clock.monotonic();
            let wrote = blank.write_piece();
            (wrote, shared.os.clock.monotonic().saturating_sub(began))
        });
        match wrote {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => {
                let cause = format!("cannot sync zeros in a new file: {error}");
                return MutexGuard::unlocked(state, || shared.poison(cause));
            }
        }
        // Who has asked meanwhile found nobody to wake.
        if has_time(state) {
            let pause = (took * ZEROS_PAUSE_FACTOR).clamp(ZEROS_PAUSE_MIN, ZEROS_PAUSE_MAX);
            shared.prepare_wakes.wait_for(state, pause);
        }
    }
}
