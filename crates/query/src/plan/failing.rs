//! What fails for some values, so that it shows for which rows it is computed.

use super::{AggregateCall, Plan, Query, Subquery, SubqueryKind};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};

/// Whether an expression of the plan, or of a subquery in it, is of a kind that fails for some values: divisions, roots,
/// and texts that are read. What merely may leave the range of its type does not count, nor that there may be several
/// rows for one.
pub fn can_fail(query: &Query, plan: &Plan) -> bool {
    let mut found = false;
    let mut nested = Vec::new();
    plan.clone().rewrite_exprs(&mut |node| {
        found |= match &node {
            Expr::Call { function, args, .. } => {
                let name = function.name.as_str();
                let divides = name.ends_with("div") || name.ends_with("mod") || name == "numeric_div_trunc";
                divides && !args.get(1).is_some_and(is_divisor)
                    || matches!(name, "sqrt" | "dsqrt" | "ln" | "log" | "power")
            }
            Expr::Cast { expr, to, .. } => {
                let is_text = |ty: &DataType| matches!(ty, DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_));
                is_text(&expr.ty()) && !is_text(to)
            }
            _ => false,
        };
        if let Expr::Hole { id, .. } = &node {
            nested.push(*id);
        }
        node
    });
    found || nested.iter().filter_map(|id| query.subqueries.get(id)).any(|inner| can_fail(query, &inner.plan))
}

/// A constant that is not zero.
fn is_divisor(expr: &Expr) -> bool {
    match expr {
        Expr::Const { value: Datum::I16(value), .. } => *value != 0,
        Expr::Const { value: Datum::I32(value), .. } => *value != 0,
        Expr::Const { value: Datum::I64(value), .. } => *value != 0,
        Expr::Const { value: Datum::I128(value), .. } => *value != 0,
        Expr::Const { value: Datum::F64(value), .. } => *value != 0.0,
        _ => false,
    }
}

/// Whether a subquery fails for no row at all, so that those may be answered, too, for which nobody asks. What is not
/// known to be harmless (arithmetic, most functions and casts) is not. Of a scalar one it is left open whether there
/// are several rows.
pub fn never_fails(query: &Query, subquery: &Subquery) -> bool {
    let compared = match &subquery.kind {
        SubqueryKind::Scalar { .. } | SubqueryKind::Exists => None,
        SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } => Some(condition),
    };
    let is_harmless_throughout = |condition: &Expr| !condition.any(&mut |node| !is_harmless(query, node));
    let mut harmless = compared.is_none_or(is_harmless_throughout) && is_known(&subquery.plan);
    if harmless {
        subquery.plan.clone().rewrite_exprs(&mut |node| {
            harmless &= is_harmless(query, &node);
            node
        });
    }
    harmless
}

/// Whether a plan is made of operators that fail for nothing but their expressions.
fn is_known(plan: &Plan) -> bool {
    let own = match plan {
        Plan::Unit | Plan::Scan { .. } | Plan::Values { .. } | Plan::SetOp { .. } => true,
        Plan::Project { .. } | Plan::Filter { .. } | Plan::Join { .. } => true,
        Plan::Sort { .. } | Plan::Distinct { .. } => true,
        Plan::Limit { limit, offset, .. } => [limit, offset].into_iter().flatten().all(is_count),
        Plan::Aggregate { aggregates, .. } => aggregates.iter().all(|(_, call)| adds_up(call)),
        _ => false,
    };
    own && plan.inputs().into_iter().all(is_known)
}

/// Whether a node of an expression fails for nothing but what is below it.
fn is_harmless(query: &Query, node: &Expr) -> bool {
    match node {
        Expr::Hole { id, .. } => match query.subqueries.get(id) {
            Some(Subquery { kind: SubqueryKind::Scalar { .. }, plan }) if !plan.is_one_row() => false,
            Some(subquery) => never_fails(query, subquery),
            None => true,
        },
        Expr::Call { function, .. } | Expr::AnyAll { function, .. } => function.comparison().is_some(),
        Expr::Cast { expr, to, .. } => widens(&expr.ty(), to),
        Expr::ArrayLiteral { .. } => false,
        _ => true,
    }
}

fn is_count(expr: &Expr) -> bool {
    matches!(expr, Expr::Const { value: Datum::Null | Datum::I64(0..), .. })
}

/// Aggregates whose results stay within their types, however many rows there are.
fn adds_up(call: &AggregateCall) -> bool {
    let types = &call.resolved.arg_types;
    match call.resolved.aggregate.name.as_str() {
        "count" | "min" | "max" | "bool_and" | "bool_or" | "every" => true,
        "sum" | "avg" => call.args.iter().all(is_bounded),
        "array_agg" => types.iter().all(|ty| ty.element().is_none()),
        _ => false,
    }
}

/// Integers, and numerics with a precision: without one they may be as large as numerics can be.
fn is_bounded(arg: &Expr) -> bool {
    use DataType::{Int2, Int4, Int8, Numeric};
    match arg {
        Expr::Cast { expr, .. } => is_bounded(expr),
        arg => matches!(arg.ty(), Int2 | Int4 | Int8 | Numeric(Some(_))),
    }
}

fn widens(from: &DataType, to: &DataType) -> bool {
    use DataType::{Bpchar, Float4, Float8, Int2, Int4, Int8, Numeric, Text, Varchar};
    match (from, to) {
        (Int2, Int4 | Int8) | (Int4, Int8) | (Float4, Float8) => true,
        (Int2 | Int4 | Int8 | Numeric(_), Numeric(None)) | (Int2 | Int4 | Int8, Float8) => true,
        (Text | Varchar(_) | Bpchar(_), Text | Varchar(None)) => true,
        (from, to) => from == to,
    }
}
