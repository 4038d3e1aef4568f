//! The way into the column engine: a query's optimized tree ([`crate::optimize`]) as a plan of `exec`, and its pipelines
//! run by the query runtime's threads.
//!
//! What the engine does not run, the fallback does ([`crate::lower`]). It also runs what the engine gave up or what
//! failed before the first row left, so that errors are those of one engine.

mod compile;
mod drive;
mod facts;
mod kept;
pub(crate) mod notes;
mod observed;
mod ordered;
mod window;

pub(crate) use compile::{column_pipelines, noted_pipelines};
pub(crate) use drive::Ended;
pub(crate) use kept::KeptPlan;
pub(crate) use observed::Observed;

use compile::Refusal;
