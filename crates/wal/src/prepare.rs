//! The thread that allocates log files ahead, so that a full disk is met before a record is accepted.
//!
//! A failure here concerns a file that holds no record: it is removed, appends that need it are refused, and
//! it is tried again every [`RETRY`] and when an append asks. Only when it is unknown whether a live name is
//! durable must the log stop.
//!
//! It also removes files kept for reuse that are too many, one after the other and with pauses: commits wait
//! while a file system gives room back.

use crate::directory::ChangeError;
use crate::format::FileHeader;
use crate::log::{LiveFile, Shared};
use std::time::Duration;

const RETRY: Duration = Duration::from_millis(100);
/// Least pause between two attempts, however many appends ask.
const RETRY_MIN: Duration = Duration::from_millis(10);
/// Pause before a file's room is given back: at least this, and so many times what the last one took.
const TRIM_PAUSE: Duration = Duration::from_millis(50);
const TRIM_PAUSE_FACTOR: u32 = 4;
const TRIM_PAUSE_MAX: Duration = Duration::from_secs(1);

pub fn run_prepare(shared: &Shared) {
    let mut pause = TRIM_PAUSE;
    let mut state = shared.state.lock();
    while !state.closing && shared.poison.get().is_none() {
        if !state.needs_file(&shared.stream) {
            if !state.excess {
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
            Ok(file) => {
                state.files.push_back(LiveFile {
                    sequence: header.sequence,
                    first: header.first,
                    file_bytes: header.file_bytes,
                    file: Some(file),
                });
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
