//! The row engine: statements that reach few rows, each through an index (DESIGN.md 7, engine 1).
//!
//! A plan is compiled once for a bound statement and kept with it ([`RowPlan::of`]). It runs on the thread of its
//! connection without waiting, and its rows go cell by cell into the connection's send buffer ([`RowSink`]): no
//! batches, no tasks, nothing allocated for a row that is only passed on. It means what the other engines mean: the
//! same expressions of `expr`, the same errors.

mod compile;
mod get;
mod sink;

pub use sink::RowSink;

use crate::error::Result;
use basalt_engine::Engine;
use basalt_expr::EvalContext;
use basalt_types::{ObjectId, ReadAt};
use get::Get;

/// A compiled statement.
#[derive(Debug)]
pub(crate) struct RowPlan {
    /// The tables it reads.
    pub tables: Vec<ObjectId>,
    /// Nothing in it depends on the moment: it needs no transaction of its own.
    pub timeless: bool,
    source: Get,
}

/// What a run may use again.
#[derive(Default)]
pub(crate) struct Scratch {
    key: Vec<u8>,
}

/// How a run reads, and what it computes with.
pub(crate) struct RowRun<'a> {
    pub engine: &'a Engine,
    /// Kept pinned by the caller.
    pub at: ReadAt,
    pub eval: &'a EvalContext,
    /// One per output: 0 text, 1 binary.
    pub formats: &'a [i16],
    pub scratch: &'a mut Scratch,
}

impl RowPlan {
    /// Gives the rows to `sink`, and their number. After an error nothing of the row at hand is left there.
    pub fn run(&self, run: RowRun<'_>, sink: &mut dyn RowSink) -> Result<u64> {
        self.source.run(run, sink)
    }
}
