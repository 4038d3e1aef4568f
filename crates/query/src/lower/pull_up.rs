//! Which correlated plans DataFusion may turn into joins. It pulls their outer conditions up through filters,
//! projections, inner joins and one grouping. Past anything that counts, numbers or combines rows it would change
//! what they mean (`row_number()` would number the rows of all outer rows), so such plans run row by row.

use super::apply::outer_columns;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, JoinKind, Plan, Query};
use ahash::AHashSet;
use basalt_expr::tree::Expr;

/// 0A000 for a plan whose outer references must stay where they are.
pub(super) fn check(query: &Query, plan: &Plan) -> Result<()> {
    let outer: AHashSet<ColId> = outer_columns(query, plan, None).into_iter().map(|(id, _)| id).collect();
    if outer.is_empty() {
        return Ok(());
    }
    match (Walk { query, outer }).node(plan) {
        Some(_) => Ok(()),
        None => Err(SqlError::not_supported("no join can stand for this correlated subquery")),
    }
}

/// [`check`] for a side of a join that is lateral. Without rows of its own an aggregation there has a row still,
/// whose constants the join would fill with nulls, and groups and DISTINCT would tell rows apart by the columns of
/// conditions that were pulled up.
pub(super) fn check_lateral(query: &Query, plan: &Plan) -> Result<()> {
    let outer: AHashSet<ColId> = outer_columns(query, plan, None).into_iter().map(|(id, _)| id).collect();
    if combines(&Walk { query, outer }, plan) == Some(false) {
        return check(query, plan);
    }
    Err(SqlError::not_supported("no join can stand for this lateral subquery"))
}

/// Whether an aggregation, or DISTINCT, stands above an outer reference. `None` if unknown.
fn combines(walk: &Walk<'_>, plan: &Plan) -> Option<bool> {
    for input in plan.inputs() {
        if combines(walk, input)? {
            return Some(true);
        }
        if matches!(plan, Plan::Distinct { .. } | Plan::Aggregate { .. }) && walk.refers(input)? {
            return Some(true);
        }
    }
    Some(false)
}

/// What stands below a node.
#[derive(Clone, Copy, Default)]
struct Below {
    /// An outer reference.
    uses: bool,
    /// A grouping above one.
    groups: bool,
}

struct Walk<'a> {
    query: &'a Query,
    outer: AHashSet<ColId>,
}

impl Walk<'_> {
    /// `None` where the references cannot be pulled up.
    fn node(&self, plan: &Plan) -> Option<Below> {
        let mut below = Below::default();
        for input in plan.inputs() {
            let input = self.node(input)?;
            below.uses |= input.uses;
            below.groups |= input.groups;
        }
        let own = self.own(plan)?;
        let passes = match plan {
            Plan::Project { .. } | Plan::Sort { .. } => true,
            Plan::Filter { .. } => !below.groups,
            Plan::Join { kind: JoinKind::Inner, lateral: false, .. } => true,
            Plan::Aggregate { .. } => !own && !below.groups,
            Plan::Distinct { on: None, .. } => !below.groups,
            _ => !own && !below.uses,
        };
        let groups = below.uses && matches!(plan, Plan::Aggregate { .. } | Plan::Distinct { .. });
        passes.then_some(Below { uses: below.uses | own, groups: below.groups | groups })
    }

    /// Whether a plan refers outside.
    fn refers(&self, plan: &Plan) -> Option<bool> {
        let mut refers = self.own(plan)?;
        for input in plan.inputs() {
            refers |= self.refers(input)?;
        }
        Some(refers)
    }

    /// Whether the node's own expressions refer outside; `None` if a subquery in them does.
    fn own(&self, plan: &Plan) -> Option<bool> {
        let mut copy = match plan {
            Plan::Recursive { .. } | Plan::Shared { .. } | Plan::Working { .. } => return Some(false),
            other => shallow(other),
        };
        let (mut uses, mut nested) = (false, false);
        for expr in copy.exprs_mut() {
            expr.walk(&mut |node| {
                if let Expr::Hole { id, .. } = node {
                    uses |= self.outer.contains(id);
                    nested |= self.query.subqueries.get(id).is_some_and(|inner| {
                        outer_columns(self.query, &inner.plan, None).iter().any(|(id, _)| self.outer.contains(id))
                    });
                }
                true
            });
        }
        (!nested).then_some(uses)
    }
}

/// The node without what is below it.
fn shallow(plan: &Plan) -> Plan {
    let mut copy = plan.clone();
    for input in copy.inputs_mut() {
        *input = Plan::Unit;
    }
    copy
}
