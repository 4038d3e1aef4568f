//! What can go wrong with the log, with the evidence.

use crate::format::Flaw;
use basalt_types::{Epoch, ErrorKind, Lsn};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A write or sync of the log failed. Final: only a restart, which replays, gives a usable log again.
    #[error("the log has stopped for good: {cause}")]
    Poisoned { cause: String },
    /// The record was not accepted. Preallocation is tried again by itself: the same append may succeed later.
    #[error("no space to extend the log by {needed_bytes} bytes: {cause}")]
    NoSpace { needed_bytes: u64, cause: String },
    #[error("a thread of the log panicked")]
    Panicked,
    #[error("the log is closed")]
    Closed,
    #[error("a log record of {bytes} bytes exceeds the limit of {bytes_max}")]
    TooLarge { bytes: usize, bytes_max: usize },
    #[error("asked to wait for {lsn}, but the log ends at {end}")]
    BeyondEnd { lsn: Lsn, end: Lsn },
    #[error("{path} is damaged at byte {offset} ({lsn}; log durable up to {durable}): {flaw}")]
    Corrupt { path: PathBuf, offset: u64, lsn: Lsn, durable: Lsn, flaw: Flaw },
    #[error("{path}: {what}")]
    BrokenChain { path: PathBuf, what: String },
    #[error("the log is needed from {from}, but its oldest file starts at {first}")]
    Missing { from: Lsn, first: Lsn },
    #[error("the log is needed from {from}, but it ends at {end}")]
    EndsEarly { from: Lsn, end: Lsn },
    #[error("{path} has log format version {found}; this program reads up to {supported}")]
    NewerFormat { path: PathBuf, found: u32, supported: u32 },
    #[error("asked to continue the log at {start}, but it ends at {end}")]
    WrongStart { start: Lsn, end: Lsn },
    #[error("asked to continue the log in {asked}, but {path} already has {found}")]
    StaleEpoch { asked: Epoch, found: Epoch, path: PathBuf },
    #[error("log setting {name} = {value}: {why}")]
    Setting { name: &'static str, value: u64, why: &'static str },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::NoSpace { .. } | Error::TooLarge { .. } => ErrorKind::Limit,
            Error::Corrupt { .. } | Error::BrokenChain { .. } | Error::Missing { .. } | Error::EndsEarly { .. } => {
                ErrorKind::Corrupt
            }
            Error::NewerFormat { .. } | Error::Setting { .. } => ErrorKind::Invalid,
            Error::StaleEpoch { .. } => ErrorKind::Fenced,
            Error::Poisoned { .. }
            | Error::Closed
            | Error::Panicked
            | Error::BeyondEnd { .. }
            | Error::WrongStart { .. }
            | Error::Io { .. } => ErrorKind::Internal,
        }
    }

    /// For `map_err`: says what was being done to which file.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { action, path, source }
    }
}
