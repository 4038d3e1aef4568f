//! A plan of the column engine that is kept with its query.
//!
//! What tables hold decides how a plan goes about it, never what it gives: a plan that was made at one snapshot is right at
//! every other. It is made anew where a table's size is another by now, or where executions saw far more or fewer rows pass
//! conditions than were expected, since then another might be faster. What follows
//! from the execution at hand, a LIMIT by a parameter or a row of constants with `now()`, is no part of a plan that is kept;
//! nor is a plan kept for which rows of a table were looked at with parameters or by the hour: others may pass next time.

use super::facts;
use super::observed::Key;
use crate::plan::Query;
use crate::run::RunContext;
use basalt_exec::pipeline::Pipelines;
use basalt_exec::plan as exec;
use basalt_types::TableDef;
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// Rows more or fewer that make no other plan, and the share of a table's rows that do not either.
const DRIFT_ROWS: u64 = 1000;
const DRIFT_SHARE: f64 = 0.25;

/// A copy of the query, which may be changed, begins without.
#[derive(Default)]
pub(crate) struct KeptPlan(Mutex<Option<Made>>);

#[derive(Clone)]
struct Made {
    lasting: Lasting,
    sizes: Sizes,
    expected: Vec<Expected>,
}

/// How many rows of a table are taken to satisfy conditions, where executions will see how many do.
#[derive(Clone)]
pub(super) struct Expected {
    pub key: Key,
    pub table: Arc<TableDef>,
    pub rows: f64,
}

/// As much of the way to an execution as another can begin with.
#[derive(Clone)]
pub(super) enum Lasting {
    Plan(Arc<exec::Plan>),
    /// Of a query without parameters and stable calls.
    Pipelines(Pipelines),
}

/// Rows of every table that a query scans: hot ones, and those in files, of which statistics are known.
#[derive(Clone)]
pub(super) struct Sizes(Vec<(Arc<TableDef>, (u64, u64))>);

impl Clone for KeptPlan {
    fn clone(&self) -> KeptPlan {
        KeptPlan::default()
    }
}

impl fmt::Debug for KeptPlan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("KeptPlan")
    }
}

impl KeptPlan {
    /// The plan, if tables are about what they were, and what they were taken for.
    pub(super) fn get(&self, ctx: &RunContext) -> Option<Lasting> {
        let made = self.0.lock().clone()?;
        let observed = ctx.system.db.observed();
        let is_wrong = made.expected.iter().any(|Expected { key, table, rows }| {
            observed.is_wrong(*key, *rows, ctx.read.engine().estimated_rows(table))
        });
        (!is_wrong && made.sizes.are_those_of_now(ctx)).then_some(made.lasting)
    }

    /// `sizes`: from before it was made.
    pub(super) fn keep(&self, lasting: Lasting, sizes: Sizes, expected: Vec<Expected>) {
        *self.0.lock() = Some(Made { lasting, sizes, expected });
    }
}

impl Sizes {
    pub fn of(query: &Query, ctx: &RunContext) -> Sizes {
        let mut sizes: Vec<(Arc<TableDef>, (u64, u64))> = Vec::new();
        facts::scans(query, &mut |table, _| {
            if !sizes.iter().any(|(known, _)| known.id == table.id) {
                sizes.push((table.clone(), ctx.read.engine().estimated_places(table)));
            }
        });
        Sizes(sizes)
    }

    fn are_those_of_now(&self, ctx: &RunContext) -> bool {
        self.0.iter().all(|(table, (hot, cold))| {
            let now = ctx.read.engine().estimated_places(table);
            is_about(hot + cold, now.0 + now.1) && is_about(*cold, now.1)
        })
    }
}

pub(super) fn is_about(then: u64, now: u64) -> bool {
    then.abs_diff(now) <= DRIFT_ROWS.max((then.min(now) as f64 * DRIFT_SHARE) as u64)
}

#[cfg(test)]
mod tests {
    use super::is_about;

    #[test]
    fn a_table_has_another_size_beyond_a_quarter_and_a_thousand_rows() {
        assert!(is_about(0, 1000) && is_about(1_000_000, 1_250_000) && is_about(1_250_000, 1_000_000));
        assert!(!is_about(0, 1001) && !is_about(1_000_000, 1_250_001) && !is_about(1_250_001, 1_000_000));
    }
}
