//! Why an execution ends early.

#[derive(thiserror::Error, Debug)]
pub enum Error {
    #[error(transparent)]
    Storage(#[from] basalt_engine::Error),
    #[error(transparent)]
    Expr(#[from] basalt_expr::Error),
    #[error("the execution was stopped")]
    Stopped,
    /// The data is beyond what the operators are made for; another engine has to run the statement.
    #[error("{0}")]
    Beyond(&'static str),
    #[error("temporary file: {0}")]
    Temp(#[source] std::io::Error),
    #[error("temporary files of queries may take no more than {bytes_max} bytes (basalt.temp_limit)")]
    TempLimit { bytes_max: u64 },
    #[error("{bytes} bytes at {offset} of a temporary file are not what was written there")]
    TempDamaged { offset: u64, bytes: usize },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
