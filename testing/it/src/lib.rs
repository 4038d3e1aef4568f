//! Basalt from outside: its binary as a child process, PostgreSQL 15 beside it as the reference, and a client
//! that shows every byte of the protocol. `tests/sql.rs` compares the two servers statement by statement;
//! `tests/wire/` tests what only a running server shows: drivers, crashes, limits, hostile bytes.

// Tests run on the real machine, with its clock and its files.
#![allow(clippy::disallowed_methods)]

pub mod servers;
pub mod slt;
pub mod wire;
