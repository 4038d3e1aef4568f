use basalt_types::ErrorKind;
use std::path::PathBuf;

#[derive(thiserror::Error, Debug)]
pub enum Error {
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{path} is damaged or no Parquet file: {reason}")]
    Parquet { path: PathBuf, reason: String },
    #[error("column \"{column}\" of {path} has type {found}, for which there is no SQL type")]
    UnknownType { path: PathBuf, column: String, found: String },
    #[error("column \"{column}\" of type {from} does not become {to}: {reason}")]
    Convert { column: String, from: String, to: String, reason: String },
    #[error("{path} is empty: there is nothing to tell its columns from")]
    Empty { path: PathBuf },
    #[error("{path} is not UTF-8 text at byte {byte}")]
    NotText { path: PathBuf, byte: usize },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Io { .. } => ErrorKind::Internal,
            Error::Parquet { .. } => ErrorKind::Corrupt,
            _ => ErrorKind::Invalid,
        }
    }
}
