//! The front doors: PostgreSQL's protocol, and HTTP for health, metrics and SQL.
//!
//! This crate turns bytes into calls of `basalt_query::Session` and results into bytes. It never knows
//! plans, storage or DataFusion, and no other crate knows a wire format of the protocol.
//!
//! Where to start: [`Server::start`], then `pg/connection.rs` (the life of one connection after login).
//!
//! ```text
//! listen ── accepts ──► pg/login ── Session ──► pg/connection ─┬─ pg/inline    (what need not wait)
//!                                                             ├─ pg/simple    (Query)
//!                                                             ├─ pg/extended  (Parse … Sync)
//!                                                             ├─ pg/copy      (CopyData …)
//!                                                             └─ pg/rows      (batches into the send buffer)
//! http ── /health /metrics /sql
//! ```

pub mod config;
pub mod error;
mod http;
mod listen;
mod pg;
mod reactors;
mod tls;
mod wire;

pub use config::{ServerConfig, TlsFiles};
pub use error::Error;
pub use listen::Server;
