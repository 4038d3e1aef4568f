//! SQL on top of the engine: sessions, statements, binder, plans and their execution.
//!
//! The way of a statement: [`session`] (text, transaction, portal) → `statement` (one file per verb) →
//! `bind` (names and types, PostgreSQL's rules) → `plan` → `optimize` and `column` (the column engine), or `lower`
//! (DataFusion's operators) → `run`.
//! This is the only crate that knows DataFusion, and it knows nothing of any wire format.

mod advisory;
pub mod bind;
mod column;
mod copy;
pub mod counters;
pub mod database;
pub mod error;
mod explain;
mod lower;
mod notify;
mod optimize;
pub mod pgcatalog;
pub mod plan;
mod plans;
mod query_groups;
mod query_log;
mod row;
pub mod run;
pub mod scram;
pub mod session;
pub mod settings;
mod statement;
pub mod syntax;
pub mod system;

pub use database::{Database, DatabaseConfig};
pub use error::{Severity, SqlError};
pub use notify::Notification;
pub use row::RowSink;
pub use session::{
    AtOnceQuery, CopyIn, CopyOut, Ended, Outcome, Parsed, ResultColumn, RowStream, Session, SimpleStatement,
    StartupParams, TransactionStatus,
};
