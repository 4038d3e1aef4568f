//! The log: one stream of opaque records, made durable by group commit, read back after a crash.
//!
//! [`Log`] appends, [`replay`](replay::replay) reads. `docs/format/log.md` specifies the bytes. This crate
//! knows nothing of what records mean; the engine writes and applies them.

mod buffer;
mod directory;
mod error;
#[cfg(test)]
mod fault_fs;
mod format;
mod gather;
mod log;
mod prepare;
mod replay;
mod start;
mod waiters;
mod writer;
mod zeros;

pub use error::{Error, Result};
pub use format::{FORMAT_VERSION, Flaw, RECORD_BYTES_MAX};
pub use log::{Appended, FLUSH_SOON, Log, LogConfig, OnDurable, Stats};
pub use replay::{Progress, ReplayEnd, Verified, Visit, replay, verify};
