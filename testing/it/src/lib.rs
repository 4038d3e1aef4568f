//! Basalt from outside: its binary as a child process, PostgreSQL 15 beside it as the reference, and a client
//! that shows every byte of the protocol. `tests/sql.rs` compares the two servers statement by statement, `tests/generated.rs`
//! does with random ones, `tests/analysis.rs` with analytic ones, `tests/histories.rs` checks random transactions for isolation; `tests/wire/` tests what only a running server shows: drivers, crashes, limits, hostile bytes.

// Tests run on the real machine, with its clock and its files.
#![allow(clippy::disallowed_methods)]

pub mod analysis;
pub mod chance;
pub mod engines;
pub mod generate;
pub mod histories;
pub mod servers;
pub mod slt;
pub mod wire;

/// A file or folder of this package. Clones may share a target folder: what Cargo says at run time goes before
/// what it said when the test was built.
pub fn own_path(name: &str) -> std::path::PathBuf {
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    std::path::Path::new(&root).join(name)
}
