use basalt_types::{ErrorKind, ObjectId};

#[derive(thiserror::Error, Debug, Clone, PartialEq, Eq)]
pub enum Error {
    #[error("{what} \"{name}\" already exists")]
    Exists { what: &'static str, name: String },
    #[error("{what} {name} does not exist")]
    Missing { what: &'static str, name: String },
    #[error("catalog object {0} is not there: the edit was made against another catalog")]
    Stale(ObjectId),
    #[error("{what} \"{name}\" was changed by another transaction meanwhile")]
    Changed { what: &'static str, name: String },
    #[error(
        "{what} \"{name}\" would be left without its {of}: they were made and dropped by two transactions at a time"
    )]
    Orphan { what: &'static str, name: String, of: &'static str },
    #[error("catalog edit cannot be read: {0}")]
    BadEdit(String),
    #[error("types are nested too deeply")]
    TooDeep,
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn kind(&self) -> ErrorKind {
        match self {
            Error::Exists { .. } | Error::Missing { .. } => ErrorKind::Invalid,
            Error::Stale(_) | Error::Changed { .. } | Error::Orphan { .. } => ErrorKind::Conflict,
            Error::BadEdit(_) => ErrorKind::Corrupt,
            Error::TooDeep => ErrorKind::Limit,
        }
    }
}
