//! Locks on tables, rows and transactions: fair queues, one wait graph, deadlock detection.

use std::time::Duration;

/// PostgreSQL's table lock modes (manual 13.3.1), weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TableLock {
    AccessShare,
    RowShare,
    RowExclusive,
    ShareUpdateExclusive,
    Share,
    ShareRowExclusive,
    Exclusive,
    AccessExclusive,
}

/// PostgreSQL's row lock modes (manual 13.3.2), weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RowLock {
    KeyShare,
    Share,
    NoKeyUpdate,
    Update,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitPolicy {
    /// Waits at most this long (`lock_timeout`); `None`: for ever.
    Wait(Option<Duration>),
    /// `NOWAIT`.
    Fail,
    /// `SKIP LOCKED`.
    Skip,
}
