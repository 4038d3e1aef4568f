//! What can go wrong with files, with the evidence: which file, which byte, expected and found.

use basalt_types::ErrorKind;
use std::io;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {path}: {source}")]
    Store { action: &'static str, path: String, source: object_store::Error },

    #[error(
        "checksum mismatch in {path} at byte {offset}, {bytes} bytes: stored {stored:#010x}, computed {computed:#010x}"
    )]
    Checksum { path: String, offset: u64, bytes: u64, stored: u32, computed: u32 },

    #[error("{path} is damaged at byte {offset}: {what}")]
    Damaged { path: String, offset: u64, what: &'static str },

    #[error("{path} has format version {found}, this program reads version {expected}")]
    FormatVersion { path: String, found: u16, expected: u16 },

    #[error("{path} has {rows} rows, ordinal {ordinal} was asked for")]
    OrdinalOutOfRange { path: String, ordinal: u32, rows: u32 },

    #[error("a file holds at most {rows_max} rows: {path} is full")]
    TooManyRows { path: String, rows_max: u32 },

    #[error("a block of {path} would have {bytes} bytes, at most {bytes_max} are possible")]
    TooLarge { path: String, bytes: u64, bytes_max: u64 },

    #[error("cannot compress texts of {path}: {source}")]
    Compression { path: String, source: io::Error },

    #[error("rows pushed to {path} are out of key order: {key:02x?} after {previous:02x?}")]
    OutOfOrder { path: String, previous: Vec<u8>, key: Vec<u8> },

    #[error("rows pushed to {path} do not fit its schema: {what}")]
    SchemaMismatch { path: String, what: String },

    #[error("stored delete map is damaged at byte {offset}: {what}")]
    DamagedDeleteMap { offset: usize, what: &'static str },
}

impl Error {
    /// The store has no room for the file.
    pub fn is_no_space(&self) -> bool {
        let Error::Store { source, .. } = self else { return false };
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(source);
        while let Some(error) = cause {
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            }
            cause = error.source();
        }
        false
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Store { source: object_store::Error::NotFound { .. }, .. } => ErrorKind::Corrupt,
            Error::Store { .. } if self.is_no_space() => ErrorKind::Limit,
            Error::Store { .. } => ErrorKind::Internal,
            Error::Checksum { .. }
            | Error::Damaged { .. }
            | Error::FormatVersion { .. }
            | Error::DamagedDeleteMap { .. } => ErrorKind::Corrupt,
            Error::Compression { .. } => ErrorKind::Internal,
            Error::TooManyRows { .. } | Error::TooLarge { .. } => ErrorKind::Limit,
            Error::OrdinalOutOfRange { .. } | Error::OutOfOrder { .. } | Error::SchemaMismatch { .. } => {
                ErrorKind::Internal
            }
        }
    }
}
