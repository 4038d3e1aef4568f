//! The column engine: what runs over a snapshot's columns, morsel by morsel.
//!
//! A [`plan::Plan`] is run as pipelines ([`pipeline`]): workers take morsels of a [`scan::Scan`], pass their batches
//! (`batch`) through conditions and computed columns (`program`), and end in a sink: groups (`aggregate`), sorted rows
//! (`pipeline::sort`), or rows that leave. What an expression means is asked of `expr`, or of `kernels` that give the
//! same; storage gives vectors that know their bounds and dictionaries. It knows columns; it never knows SQL text,
//! sessions or protocols.

mod aggregate;
mod batch;
mod domain;
mod error;
mod gather;
mod join;
mod kernels;
pub mod memory;
mod parted;
pub mod pipeline;
pub mod plan;
mod program;
pub mod sample;
pub mod scan;
pub mod spill;
pub mod stop;
#[cfg(test)]
mod testing;

pub use error::Error;
pub use scan::{Scan, Worker};
pub use stop::Stop;
