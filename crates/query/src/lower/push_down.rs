//! Filters go down, but not below what gives a row for no input, and not to rows that are none of theirs.
//!
//! DataFusion moves a condition without columns below any grouping. Below an aggregation without groups, or a grouping
//! set without columns, it would take the input away and leave the row. It moves what is volatile below anything. And it
//! tells what one side of a join has to fulfil from what the other has (`a.x = b.y AND f(a.x)` makes `f(b.y)`): where
//! that may fail, it would for rows that have no match. So conditions that may fail, or are volatile, are taken to a
//! join's sides here.

use super::conditions::{is_harmless, is_plain, is_volatile, runs_subquery};
use super::node::Node;
use datafusion::common::JoinType;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, Join, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use std::sync::Arc;

/// DataFusion's rule, held back where it must not go.
#[derive(Debug)]
pub(super) struct GuardedPushDown {
    inner: PushDownFilter,
}

impl GuardedPushDown {
    pub const NAME: &str = "push_down_filter";

    pub fn new() -> GuardedPushDown {
        GuardedPushDown { inner: PushDownFilter::new() }
    }

    /// A filter over anything but a join.
    fn filter(&self, filter: Filter, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let stays = match &*filter.input {
            LogicalPlan::TableScan(_) => return self.inner.rewrite(LogicalPlan::Filter(filter), config),
            LogicalPlan::Filter(_) => return self.rewrite(merged(filter), config),
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
            LogicalPlan::Extension(extension)
                if extension.node.as_any().downcast_ref::<Node>().is_some_and(Node::needs_no_input) =>
            {
                split_conjunction(&filter.predicate).iter().any(|part| part.column_refs().is_empty())
            }
            // The same rows go through it.
            LogicalPlan::Projection(_) => return self.inner.rewrite(LogicalPlan::Filter(filter), config),
            _ => false,
        };
        if stays {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let parts = split_conjunction_owned(filter.predicate.clone());
        let (stay, rest): (Vec<Expr>, Vec<Expr>) = parts.into_iter().partition(stays_above);
        let (Some(stay), rest) = (conjunction(stay), conjunction(rest)) else {
            return self.inner.rewrite(LogicalPlan::Filter(filter), config);
        };
        let Some(rest) = rest else { return Ok(Transformed::no(LogicalPlan::Filter(filter))) };
        let below = self.inner.rewrite(LogicalPlan::Filter(Filter::new(rest, filter.input.clone())), config)?;
        if !below.transformed {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        Ok(Transformed::yes(LogicalPlan::Filter(Filter::new(stay, Arc::new(below.data)))))
    }

    /// A join, with the conditions of the filter above it.
    fn join(
        &self,
        above: Option<Expr>,
        mut join: Join,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let (kept, held) = parted(above);
        let (own, own_held) = parted(join.filter.take());
        let mut moved = false;
        let sides = preserved(join.join_type);
        let mut top = Vec::new();
        let mut between = Vec::new();
        for part in held {
            // What is volatile and has no columns is checked once for each row of the whole; what runs a subquery row by
            // row, for as few rows as there may be.
            if part.column_refs().is_empty() && is_volatile(&part) || runs_subquery(&part) {
                top.push(part);
            } else if let Some(part) = to_side(&mut join, sides, part, &mut moved) {
                if join.join_type == JoinType::Inner && is_plain(&part) {
                    moved = true;
                    between.push(part);
                } else {
                    top.push(part);
                }
            }
        }
        let sides = join.join_type.on_lr_is_preserved();
        for part in own_held {
            let alone = part.column_refs().is_empty() && is_volatile(&part);
            between.extend(if alone { Some(part) } else { to_side(&mut join, sides, part, &mut moved) });
        }
        join.filter = conjunction(own);
        let plan = with_filter(conjunction(kept), LogicalPlan::Join(join));
        let below = self.inner.rewrite(plan, config)?;
        let changed = moved || below.transformed;
        let plan = with_filter(conjunction(top), with_join_conditions(below.data, between));
        Ok(if changed { Transformed::yes } else { Transformed::no }(plan))
    }
}

/// What is computed anew for each row is computed for the rows that are here. So is what takes long.
fn stays_above(part: &Expr) -> bool {
    is_volatile(part) || runs_subquery(part)
}

/// The conditions that DataFusion may move, as one, and those that it may not.
fn parted(condition: Option<Expr>) -> (Vec<Expr>, Vec<Expr>) {
    condition.map_or_else(Vec::new, split_conjunction_owned).into_iter().partition(is_harmless)
}

/// Puts a condition on the columns of one side there; gives it back if it belongs to none, or to one that is filled
/// with nulls.
fn to_side(join: &mut Join, (left, right): (bool, bool), part: Expr, moved: &mut bool) -> Option<Expr> {
    let columns = part.column_refs();
    let within = |plan: &LogicalPlan| columns.iter().all(|column| plan.schema().has_column(column));
    let side = match () {
        () if left && within(&join.left) => &mut join.left,
        () if right && within(&join.right) => &mut join.right,
        () => {
            drop(columns);
            return Some(part);
        }
    };
    drop(columns);
    *side = Arc::new(LogicalPlan::Filter(Filter::new(part, side.clone())));
    *moved = true;
    None
}

/// Of which sides every row of the result has one.
fn preserved(kind: JoinType) -> (bool, bool) {
    match kind {
        JoinType::Inner => (true, true),
        JoinType::Full => (false, false),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => (true, false),
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => (false, true),
    }
}

fn with_filter(condition: Option<Expr>, plan: LogicalPlan) -> LogicalPlan {
    match condition {
        Some(condition) => LogicalPlan::Filter(Filter::new(condition, Arc::new(plan))),
        None => plan,
    }
}

/// Adds conditions to the join, above which there may be filters.
fn with_join_conditions(plan: LogicalPlan, conditions: Vec<Expr>) -> LogicalPlan {
    match plan {
        LogicalPlan::Join(mut join) => {
            join.filter = conjunction(join.filter.into_iter().chain(conditions));
            LogicalPlan::Join(join)
        }
        LogicalPlan::Filter(mut filter) if !conditions.is_empty() => {
            filter.input = Arc::new(with_join_conditions(Arc::unwrap_or_clone(filter.input), conditions));
            LogicalPlan::Filter(filter)
        }
        other => with_filter(conjunction(conditions), other),
    }
}

/// Two filters as one, that below first.
fn merged(filter: Filter) -> LogicalPlan {
    let LogicalPlan::Filter(below) = Arc::unwrap_or_clone(filter.input) else { unreachable!("asked for before") };
    let mut parts = split_conjunction_owned(below.predicate);
    for part in split_conjunction_owned(filter.predicate) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    with_filter(conjunction(parts), Arc::unwrap_or_clone(below.input))
}

impl OptimizerRule for GuardedPushDown {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.inner.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) => self.join(None, join, config),
            LogicalPlan::Filter(filter) => match Arc::unwrap_or_clone(filter.input) {
                LogicalPlan::Join(join) => self.join(Some(filter.predicate), join, config),
                input => self.filter(Filter::new(filter.predicate, Arc::new(input)), config),
            },
            other => Ok(Transformed::no(other)),
        }
    }
}
