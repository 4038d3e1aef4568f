//! What the optimizer is told of the tables of a query: what storage knows without looking at a row, and for how many of
//! some rows of a large table conditions hold, or of all rows if an execution has seen it.

use super::compile::{placed, scan_of};
use crate::optimize::facts::{ColumnFacts, Sampled, Sampler, Statistics, TableFacts};
use crate::plan::{ColId, Plan, Query};
use crate::run::RunContext;
use basalt_engine::ColumnStatistics;
use basalt_exec::sample;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, Datum, TableDef};
use std::sync::Arc;

/// Tables of fewer rows are not worth a look: whichever way they are read takes less.
pub(super) const SAMPLED_ROWS_MIN: u64 = 50_000;

/// The facts of every table that a query scans.
pub(super) fn of(query: &Query, ctx: &RunContext) -> Statistics {
    let mut statistics = Statistics { sampler: Some(sampler(ctx)), ..Statistics::default() };
    scans(query, &mut |table, columns| add(table, columns, ctx, &mut statistics));
    statistics
}

/// Calls `of` with every scan of a query.
pub(super) fn scans(query: &Query, of: &mut impl FnMut(&Arc<TableDef>, &[(ColId, ColumnId)])) {
    fn below(plan: &Plan, of: &mut impl FnMut(&Arc<TableDef>, &[(ColId, ColumnId)])) {
        if let Plan::Scan { table, columns, .. } = plan {
            of(table, columns);
        }
        plan.inputs().into_iter().for_each(|input| below(input, of));
    }
    let ctes = query.ctes.values().map(|cte| &cte.plan);
    let subqueries = query.subqueries.values().map(|subquery| &subquery.plan);
    std::iter::once(&query.plan).chain(ctes).chain(subqueries).for_each(|plan| below(plan, of));
}

/// Whether rows of one of its tables may be looked at to plan a query.
pub(super) fn are_sampled(query: &Query, ctx: &RunContext) -> bool {
    let mut any = false;
    scans(query, &mut |table, _| any |= ctx.read.engine().estimated_rows(table) >= SAMPLED_ROWS_MIN);
    any
}

fn sampler(ctx: &RunContext) -> Sampler {
    let (read, eval) = (ctx.read.clone(), ctx.eval.clone());
    let observed = ctx.system.db.observed().clone();
    let knows = !ctx.system.settings.effective().plans_anew;
    Sampler(Arc::new(move |table: &Arc<TableDef>, columns: &[(ColId, ColumnId)], conditions: &[Expr]| {
        let rows = read.engine().estimated_rows(table);
        (rows >= SAMPLED_ROWS_MIN).then_some(())?;
        if knows
            && let Some(key) = observed.key(table, columns, conditions, &eval)
            && let Some(known) = observed.get(key, rows)
        {
            return Some(known);
        }
        let ids: Vec<ColId> = columns.iter().map(|(id, _)| *id).collect();
        let conditions = conditions.iter().map(|condition| placed(condition, &ids)).collect::<Result<Vec<_>, _>>();
        let conditions = conditions.ok()?;
        // What fails tells nothing here; it fails again where it matters.
        let (looked, passed) = sample::passing(&read, scan_of(table, columns)?, &conditions, &eval).ok()??;
        Some(Sampled { looked, passed })
    }))
}

fn add(table: &Arc<TableDef>, columns: &[(ColId, ColumnId)], ctx: &RunContext, statistics: &mut Statistics) {
    let engine = ctx.read.engine();
    let known = engine.statistics_of(table);
    let facts = statistics
        .tables
        .entry(table.id)
        .or_insert_with(|| TableFacts { rows: engine.estimated_rows(table) as f64, ..TableFacts::default() });
    for (_, column) in columns {
        facts.columns.entry(*column).or_insert_with(|| {
            let ColumnStatistics { bounds, nulls, distinct } = known.column(*column);
            let fit = bounds.as_ref().and_then(range);
            ColumnFacts { distinct: fit.into_iter().chain(distinct).reduce(f64::min), bounds, nulls }
        });
    }
}

/// How many integers lie between two.
fn range((least, most): &(Datum, Datum)) -> Option<f64> {
    let int = |value: &Datum| match value {
        Datum::I16(value) => Some(f64::from(*value)),
        Datum::I32(value) => Some(f64::from(*value)),
        Datum::I64(value) => Some(*value as f64),
        _ => None,
    };
    Some(int(most)? - int(least)? + 1.0)
}
