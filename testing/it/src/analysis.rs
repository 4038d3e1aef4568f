//! Analytic queries by chance, compared with PostgreSQL: joins of every kind, subqueries, set operations, WITH, windows
//! over aggregates, grouping sets, limits, each within the other, over tables of nothing to several row groups.
//!
//! Where [`crate::generate`] tries every function on few rows, this tries few functions on every plan. Every query has
//! one answer: what is numbered or cut off is in an order without ties, but of equal values.

mod aggregate;
mod expr;
mod from;
mod kinds;
mod query;
mod run;
mod tables;
mod window;
mod writers;

pub use run::{Options, Report, run};

use kinds::Kind;
use rand::rngs::StdRng;

struct Generator {
    rng: StdRng,
    tables: Vec<Table>,
    aliases: u32,
}

/// A table, or a WITH query that the statement names.
#[derive(Clone, Debug)]
struct Table {
    name: String,
    columns: Vec<Column>,
    /// About.
    rows: u64,
    /// Whether its first column tells its rows apart.
    has_identity: bool,
}

/// What an expression may refer to.
#[derive(Clone, Debug)]
struct Column {
    sql: String,
    kind: Kind,
}

type Scope = Vec<Column>;
