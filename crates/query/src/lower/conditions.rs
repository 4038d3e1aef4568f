//! Conditions are checked one after the other, as PostgreSQL does: sorted by what they cost, those that cost the same in
//! the order of the text, each for the rows alone that the ones before let through.
//!
//! DataFusion checks the operands of AND for whole batches. That is kept where none of the later ones may fail or is
//! volatile. Others become filters of their own above the rest, once the optimizer has put all conditions into their
//! places; in a join's condition they become CASE.

use super::apply;
use super::udf::EvalUdf;
use basalt_expr::functions::names_equality;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Case, Expr, Filter, Join, LogicalPlan, Operator};
use std::sync::Arc;

/// The plan with its conditions in order.
pub(crate) fn in_order(plan: LogicalPlan) -> Result<LogicalPlan> {
    let ordered = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Filter(filter) => match stages(&filter.predicate) {
            Some(stages) => {
                let mut input = filter.input;
                for stage in stages {
                    input = Arc::new(LogicalPlan::Filter(Filter::new(stage, input)));
                }
                Ok(Transformed::yes(Arc::unwrap_or_clone(input)))
            }
            None => Ok(Transformed::no(LogicalPlan::Filter(filter))),
        },
        LogicalPlan::Join(Join {
            filter: Some(condition),
            left,
            right,
            on,
            join_type,
            join_constraint,
            schema,
            null_equality,
            null_aware,
        }) => {
            let stages = stages(&condition);
            let changed = stages.is_some();
            let filter = stages.map_or(Some(condition), one_by_one);
            let join = Join { filter, left, right, on, join_type, join_constraint, schema, null_equality, null_aware };
            Ok(if changed { Transformed::yes } else { Transformed::no }(LogicalPlan::Join(join)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(ordered.data)
}

/// The parts of a condition, each to be checked for what the ones before let through. `None` if one part will do.
fn stages(condition: &Expr) -> Option<Vec<Expr>> {
    let mut parts = split_conjunction_owned(condition.clone());
    if parts.len() < 2 || parts.iter().all(is_harmless) {
        return None;
    }
    // PostgreSQL gives equalities to their classes first, and has them back behind the others.
    parts.sort_by(|a, b| cost(a).total_cmp(&cost(b)).then(is_equality(a).cmp(&is_equality(b))));
    let mut stages: Vec<Vec<Expr>> = Vec::new();
    for part in parts {
        match stages.last_mut() {
            Some(last) if is_harmless(&part) => last.push(part),
            _ => stages.push(vec![part]),
        }
    }
    (stages.len() > 1).then(|| stages.into_iter().filter_map(conjunction).collect())
}

/// A condition that is true where all parts are, and checks them in turn.
fn one_by_one(parts: Vec<Expr>) -> Option<Expr> {
    let never = || Some(Box::new(Expr::Literal(ScalarValue::Boolean(Some(false)), None)));
    parts
        .into_iter()
        .rev()
        .reduce(|rest, part| Expr::Case(Case::new(None, vec![(Box::new(part), Box::new(rest))], never())))
}

/// Whether nothing in an expression may fail or is volatile.
pub(super) fn is_harmless(expr: &Expr) -> bool {
    !any(expr, &mut |node| match node {
        Expr::ScalarFunction(call) => !EvalUdf::of(&call.func).is_some_and(EvalUdf::is_harmless),
        // DataFusion's plans compute these before.
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) => false,
        _ => false,
    })
}

/// Whether an expression is computed anew for each row.
pub(super) fn is_volatile(expr: &Expr) -> bool {
    any(expr, &mut |node| match node {
        Expr::ScalarFunction(call) => {
            EvalUdf::of(&call.func).is_some_and(EvalUdf::is_volatile) || apply::is_volatile_call(&call.func)
        }
        _ => false,
    })
}

/// Whether a subquery is run row by row.
pub(super) fn runs_subquery(expr: &Expr) -> bool {
    any(expr, &mut |node| match node {
        Expr::ScalarFunction(call) => apply::cost_of(&call.func).is_some_and(|cost| cost > 0.0),
        _ => false,
    })
}

/// Whether a join may check it: nothing volatile, no subqueries.
pub(super) fn is_plain(expr: &Expr) -> bool {
    !any(expr, &mut |node| match node {
        Expr::ScalarFunction(call) => EvalUdf::of(&call.func).is_none_or(EvalUdf::is_volatile),
        Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::OuterReferenceColumn(..) => true,
        _ => false,
    })
}

fn any(expr: &Expr, test: &mut impl FnMut(&Expr) -> bool) -> bool {
    let mut found = false;
    let walked = expr.apply(|node| {
        found |= test(node);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found || walked.is_err()
}

fn is_equality(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryExpr(binary) => binary.op == Operator::Eq,
        Expr::ScalarFunction(call) => names_equality(call.func.name()),
        _ => false,
    }
}

/// See [`basalt_expr::Expr::cost`]. What has no columns is the same for all rows, and comes first.
fn cost(expr: &Expr) -> f64 {
    if expr.column_refs().is_empty() && !is_volatile(expr) {
        return -1.0;
    }
    let mut sum = 0.0;
    let walked = expr.apply(|node| {
        sum += match node {
            Expr::BinaryExpr(binary) => f64::from(!matches!(binary.op, Operator::And | Operator::Or)),
            Expr::InList(list) => list.list.len() as f64 * 0.5,
            Expr::ScalarFunction(call) => match EvalUdf::of(&call.func) {
                Some(udf) => udf.cost(),
                None => apply::cost_of(&call.func).unwrap_or(1.0),
            },
            _ => 0.0,
        };
        Ok(TreeNodeRecursion::Continue)
    });
    if walked.is_err() { f64::INFINITY } else { sum }
}
