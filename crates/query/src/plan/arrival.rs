//! The order in which rows come to what heeds it without an ORDER BY of its own.
//!
//! SQL gives the rows of a subquery no order, but PostgreSQL passes them on as they were sorted, and people rely on it:
//! `SELECT array_agg(x) FROM (SELECT x FROM t ORDER BY y) s`. So the keys of the sort below are made keys of whatever
//! takes rows as they come: aggregates that keep their order, windows, DISTINCT ON, and sorts, where they tell apart what
//! is equal.

use super::{AggregateCall, Cte, JoinKind, Plan, Query, SortKey, Subquery, WindowCall};
use basalt_expr::tree::Expr;

/// Aggregates whose result shows the order of their input.
pub(crate) const IN_ORDER: [&str; 7] =
    ["array_agg", "string_agg", "json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg", "xmlagg"];

impl Query {
    /// Hands the order of subqueries on to what takes their rows as they come. Columns that nobody reads are gone by now:
    /// what is passed on has a reader.
    pub fn pass_orders_on(&mut self) {
        let Query { plan, subqueries, ctes, .. } = self;
        let plans = subqueries.values_mut().map(|Subquery { plan, .. }| plan);
        let plans = plans.chain(ctes.values_mut().map(|Cte { plan, .. }| plan));
        plans.chain([&mut *plan]).for_each(|plan| visit(plan, false));
        sort_as_window(plan);
    }
}

/// Sorts what leaves a window at the top of a query, which has it in that order already, part by part.
fn sort_as_window(plan: &mut Plan) {
    match plan {
        Plan::Project { input, .. } | Plan::Filter { input, .. } | Plan::Limit { input, ties: false, .. } => {
            sort_as_window(input);
        }
        Plan::Window { .. } => {
            let keys = order_of(plan);
            if !keys.is_empty() {
                *plan = Plan::Sort { input: Box::new(std::mem::replace(plan, Plan::Unit)), keys };
            }
        }
        _ => {}
    }
}

/// `ties`: whether the keys of a sort say which rows are equal, for WITH TIES.
fn visit(plan: &mut Plan, ties: bool) {
    let passes = matches!(plan, Plan::Distinct { .. } | Plan::Project { .. } | Plan::Filter { .. });
    let below = matches!(plan, Plan::Limit { ties: true, .. }) || ties && passes;
    plan.inputs_mut().into_iter().for_each(|input| visit(input, below));
    match plan {
        Plan::Aggregate { input, aggregates, .. } => {
            let heeds = |call: &AggregateCall| {
                call.order_by.is_empty() && !call.distinct && IN_ORDER.contains(&call.resolved.aggregate.name.as_str())
            };
            let calls: Vec<&mut AggregateCall> =
                aggregates.iter_mut().map(|(_, call)| call).filter(|call| heeds(call)).collect();
            if calls.is_empty() {
                return;
            }
            let order = order_of(input);
            calls.into_iter().for_each(|call| call.order_by.clone_from(&order));
        }
        Plan::Window { input, calls } => {
            let order = order_of(input);
            calls.iter_mut().for_each(|(_, call)| call.arrival.clone_from(&order));
        }
        Plan::Distinct { input, on: Some(on) } => match &mut **input {
            Plan::Sort { .. } => {}
            // It sorts by itself.
            unsorted => {
                let order = order_of(unsorted);
                let keys = on.iter().map(|expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false });
                let mut keys: Vec<SortKey> = keys.collect();
                extend(&mut keys, order);
                let body = std::mem::replace(unsorted, Plan::Unit);
                *unsorted = Plan::Sort { input: Box::new(body), keys };
            }
        },
        Plan::Sort { input, keys } if !ties => {
            let order = order_of(input);
            extend(keys, order);
        }
        _ => {}
    }
}

fn extend(keys: &mut Vec<SortKey>, more: Vec<SortKey>) {
    for key in more {
        if !keys.iter().any(|known| known.expr == key.expr) {
            keys.push(key);
        }
    }
}

/// The order in which a plan gives its rows, over columns of its output: projections on the way pass on what it needs.
fn order_of(plan: &mut Plan) -> Vec<SortKey> {
    match plan {
        Plan::Sort { input, keys } => by_columns(keys.clone(), input),
        Plan::Limit { input, .. } | Plan::Filter { input, .. } | Plan::ProjectSet { input, .. } => order_of(input),
        Plan::Distinct { input, on: Some(_) } => order_of(input),
        Plan::Project { input, exprs } => {
            let mut order = order_of(input);
            for key in &mut order {
                let passed = exprs.iter().find(|(_, expr)| *expr == key.expr).map(|(id, _)| *id);
                match (passed, &mut key.expr) {
                    (Some(out), Expr::Hole { id, .. }) => *id = out,
                    (None, Expr::Hole { id, .. }) => {
                        // Under its id stands what filled the place of columns that nobody read.
                        exprs.retain(|(known, _)| known != id);
                        exprs.push((*id, key.expr.clone()));
                    }
                    _ => {}
                }
            }
            order
        }
        Plan::Window { input, calls } => {
            // One without keys passes rows on.
            let keyed = |(_, call): &&(_, WindowCall)| !call.partition_by.is_empty() || !call.order_by.is_empty();
            let Some((_, first)) = calls.iter().find(keyed).or(calls.first()) else { return order_of(input) };
            let alike =
                |keys: &[SortKey], partitions: &[Expr]| *keys == first.order_by && *partitions == first.partition_by;
            if !calls.iter().filter(keyed).all(|(_, call)| alike(&call.order_by, &call.partition_by)) {
                return Vec::new();
            }
            let keys = first.partition_by.iter();
            let keys = keys.map(|expr| SortKey { expr: expr.clone(), descending: false, nulls_first: false });
            let mut keys: Vec<SortKey> = keys.chain(first.order_by.clone()).collect();
            extend(&mut keys, first.arrival.clone());
            by_columns(keys, input)
        }
        // Rows of the left side are looked at one after the other.
        Plan::Join { left, kind: JoinKind::Inner | JoinKind::Left, lateral: true, .. } => order_of(left),
        _ => Vec::new(),
    }
}

/// The keys, if all are columns of the plan: a hole may also be a subquery.
fn by_columns(keys: Vec<SortKey>, plan: &Plan) -> Vec<SortKey> {
    let columns = plan.columns();
    let is_column = |expr: &Expr| matches!(expr, Expr::Hole { id, .. } if columns.iter().any(|(known, _)| known == id));
    if keys.iter().all(|key| is_column(&key.expr)) { keys } else { Vec::new() }
}
