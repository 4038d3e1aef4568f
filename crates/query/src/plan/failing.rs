//! What fails for some values, so that it shows for which rows it is computed.

use super::{Plan, Query};
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
