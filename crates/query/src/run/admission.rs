//! Which queries wait for their turn to run at all (`sched::admission`).
//!
//! A permit belongs to the task that makes a plan's rows, from before it plans to its last row, or until it would wait for
//! whoever takes them: a suspended portal, a cursor or a client that does not read has none. Nothing that such a task does
//! asks for another: subqueries that run row by row, WITH queries and counts of LIMIT are parts of it
//! (`QueryRuntime::run_inline`, `lower/shared.rs`, `lower/limits.rs`), and functions that wait for others give it back
//! (`fair::wait`). Whoever takes the rows may well start another query before the first has ended (RETURNING, constraints,
//! rows that are locked); the first one's task ends, or fills its channel, without it.
//!
//! Row-engine statements need no permit, nor do queries of system tables and constants alone: who has to see what keeps a
//! server busy, or to end it, must not queue behind it.

use super::RunContext;
use crate::error::{Result, SqlError};
use crate::plan::{Plan, Query};
use crate::system::SystemContext;
use basalt_sched::admission::QueueFull;
use basalt_sched::fair;
use std::sync::Arc;

/// A query's permit, or its place in the queue: gone with this.
pub(super) struct Admitted {
    turns: Arc<fair::Statement>,
    waits: bool,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.turns.give_back_permit();
    }
}

impl Admitted {
    /// 53400 if too many wait.
    pub fn ask(query: &Query, ctx: &RunContext) -> Result<Admitted> {
        let turns = ctx.turns.clone();
        if is_free(query) {
            return Ok(Admitted { turns, waits: false });
        }
        let granted = turns.enter().map_err(|full| refused(full, &ctx.system.settings.effective().query_group))?;
        Ok(Admitted { turns, waits: !granted })
    }

    pub async fn granted(&self, ctx: &RunContext) {
        if self.waits {
            let _waits = Waits::begin(&ctx.system);
            self.turns.admitted().await;
        }
    }
}

fn refused(QueueFull(limits): QueueFull, group: &str) -> SqlError {
    let message = format!("too many queries of query group \"{group}\" are waiting already");
    let detail = format!("{} run, and {} wait for their turn.", limits.active_max, limits.queued_max);
    SqlError::new("53400", message).with_detail(detail).with_hint(
        "Try again later, or with fewer connections; basalt.max_active_queries and basalt.max_queued_queries set the limits.",
    )
}

/// Constants and system tables alone.
fn is_free(query: &Query) -> bool {
    fn reads_little(plan: &Plan) -> bool {
        let itself = !matches!(plan, Plan::Scan { .. } | Plan::ProjectSet { .. } | Plan::Recursive { .. });
        itself && plan.inputs().into_iter().all(reads_little)
    }
    let subqueries = query.subqueries.values().map(|subquery| &subquery.plan);
    let all = subqueries.chain(query.ctes.values().map(|cte| &cte.plan)).chain([&query.plan]);
    query.tables.is_empty() && all.into_iter().all(reads_little)
}

/// Shown in `pg_stat_activity` while it lives.
struct Waits<'a>(&'a SystemContext);

impl Waits<'_> {
    fn begin(system: &SystemContext) -> Waits<'_> {
        system.db.change_info(system.backend_pid, |info| info.queries_queued += 1);
        Waits(system)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.db.change_info(self.0.backend_pid, |info| info.queries_queued = info.queries_queued.saturating_sub(1));
    }
}
