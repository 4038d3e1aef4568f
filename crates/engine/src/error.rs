//! What can go wrong in the engine, as its callers must tell it apart.

use crate::locks::LockWait;
use basalt_types::{ErrorKind, Key, ObjectId};
use std::time::Duration;

#[derive(thiserror::Error, Debug, Clone)]
pub enum Error {
    #[error("could not serialize access due to concurrent {0}")]
    Serialization(&'static str),
    /// What a serializable transaction has read was changed since.
    #[error("could not serialize access due to read/write dependencies among transactions")]
    Dependencies,
    #[error("snapshot too old")]
    SnapshotTooOld,
    /// How those waited who waited for each other, the refused one first.
    #[error("deadlock detected")]
    Deadlock(Vec<LockWait>),
    #[error("could not obtain lock on {0}")]
    LockNotAvailable(String),
    #[error("canceling statement due to lock timeout")]
    LockTimeout(Duration),
    #[error("out of shared memory: {limit} locks are held (basalt.max_locks)")]
    TooManyLocks { limit: usize },
    #[error("no space left on device for the {what}")]
    NoSpace { what: &'static str },
    /// More than a file's format can hold.
    #[error("{0}")]
    TooLarge(String),
    #[error("memory limit reached: {0}")]
    Memory(String),
    #[error("duplicate key {key:?} in {table}")]
    DuplicateKey { table: ObjectId, key: Key },
    /// Of SQL in an index.
    #[error("{0}")]
    Expression(basalt_expr::Error),
    #[error("table {0} does not exist any more")]
    TableGone(ObjectId),
    #[error("{0}")]
    Catalog(#[from] basalt_meta::Error),
    #[error("{0}")]
    Corrupt(String),
    #[error("the data directory {path} is in use by another server")]
    DirectoryInUse { path: String },
    #[error("{0}")]
    Directory(String),
    #[error("the log has failed and the server must be restarted: {0}")]
    LogFailed(String),
    #[error("the engine is shutting down")]
    ShuttingDown,
    #[error("{0}")]
    Io(String),
    #[error("internal error: {0}")]
    Internal(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Serialization(_) | Error::Dependencies | Error::Deadlock(_) | Error::SnapshotTooOld => {
                ErrorKind::Conflict
            }
            Error::LockNotAvailable(_) | Error::LockTimeout(_) => ErrorKind::Retry,
            Error::TooManyLocks { .. } | Error::NoSpace { .. } | Error::TooLarge(_) | Error::Memory(_) => {
                ErrorKind::Limit
            }
            Error::DuplicateKey { .. } | Error::Expression(_) | Error::TableGone(_) => ErrorKind::Invalid,
            Error::Catalog(error) => error.kind(),
            Error::Corrupt(_) => ErrorKind::Corrupt,
            Error::DirectoryInUse { .. } => ErrorKind::Fenced,
            Error::ShuttingDown => ErrorKind::Retry,
            Error::Directory(_) | Error::LogFailed(_) | Error::Io(_) | Error::Internal(_) => ErrorKind::Internal,
        }
    }
}
