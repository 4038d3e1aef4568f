//! Error kinds shared by all crates: a new kind exists only where a caller acts differently.

/// What a caller can do about an error. `query` maps kinds to SQLSTATE in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorKind {
    /// Lost against another transaction: retry the transaction.
    Conflict,
    /// May go through later as it is.
    Retry,
    /// The request itself is wrong.
    Invalid,
    /// A configured or physical limit was met.
    Limit,
    /// Stored bytes are not what was written.
    Corrupt,
    /// Somebody else owns this now.
    Fenced,
    /// A broken invariant, or I/O that failed for reasons unknown.
    Internal,
}
