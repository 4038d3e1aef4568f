//! A light client for OLTP benchmarks: TPC-C and YCSB over PostgreSQL's protocol, against any server that speaks it.
//!
//! It shares its machine with the server that it measures, so it costs as little as it can: `address` leads there, `wire` is the protocol,
//! `terminals` keeps many clients on few threads, `tpcc` and `ycsb` say what they do. A library besides, because
//! `bench/engine` has the same population and the same input for an engine without a server.

// Nothing here is simulated: a client measures real time.
#![allow(clippy::disallowed_methods)]

pub mod address;
pub mod latency;
pub mod random;
pub mod terminals;
pub mod tpcc;
pub mod wire;
pub mod ycsb;

/// Of CREATE TABLE.
fn with_clause(storage: &Option<String>) -> String {
    storage.as_ref().map_or_else(String::new, |storage| format!(" WITH ({storage})"))
}
