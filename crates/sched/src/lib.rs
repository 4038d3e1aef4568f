//! What the process takes from the machine: files, clock, randomness, memory, and background workers.
//!
//! Everything here is injected (DESIGN rule 8): tests hand in a simulated disk and clock, and
//! `clippy.toml` bans the direct calls elsewhere. This crate never knows what data is.

pub mod admission;
pub mod code_pages;
pub mod failpoint;
pub mod fair;
pub mod os;
pub mod threads;

pub use os::{Clock, File, FileSystem, OpenMode, Os, Random};
