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
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
