//! Whether conditions imply the condition of a partial index, so that all rows that meet them have entries (PostgreSQL
//! manual 11.8).
//!
//! What is seen: a condition that is the same; NOT NULL of what is compared; values and bounds that lie within the index's.

use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{CompareOp, DataType, Datum};

/// `part`: one of the parts that AND joins in an index's condition. All of `conditions` hold.
pub(super) fn implies(conditions: &[Expr], part: &Expr) -> bool {
    let part = as_plain(part);
    conditions
        .iter()
        .map(as_plain)
        .any(|condition| condition == part || shows_value(&condition, &part) || is_within(&condition, &part))
}

/// `flag = true` and `flag = false` as `flag` and `NOT flag`; `varchar` as it is, where it is compared as text.
fn as_plain(expr: &Expr) -> Expr {
    expr.clone().rewrite(&mut |node| match node {
        Expr::Cast { expr, to: DataType::Text, .. } if matches!(expr.ty(), DataType::Varchar(_)) => *expr,
        Expr::Call { function, args, ty } => match (function.comparison(), args.as_slice()) {
            (Some(CompareOp::Eq), [flag, Expr::Const { value: Datum::Bool(value), .. }])
            | (Some(CompareOp::Eq), [Expr::Const { value: Datum::Bool(value), .. }, flag]) => match value {
                true => flag.clone(),
                false => Expr::Not(Box::new(flag.clone())),
            },
            _ => Expr::Call { function, args, ty },
        },
        other => other,
    })
}

/// `x IS NOT NULL`, of what meets a comparison.
fn shows_value(condition: &Expr, part: &Expr) -> bool {
    let Expr::IsNotNull(shown) = part else { return false };
    match condition {
        Expr::Call { function, args, .. } => function.comparison().is_some() && args.contains(shown),
        Expr::InList { expr, negated: false, .. } => expr == shown,
        Expr::AnyAll { left, function, all: false, .. } => function.comparison().is_some() && left == shown,
        Expr::Not(flag) => flag == shown,
        flag => *flag == **shown,
    }
}

/// A comparison with constants that is met only where the index's is.
fn is_within(condition: &Expr, part: &Expr) -> bool {
    use CompareOp::{Eq, Gt, GtEq, Lt, LtEq};
    let Some((of, _, wanted)) = compared(part) else { return false };
    if let Expr::InList { expr, list, equal, negated: false } = condition {
        return **expr == *of && equal.is_equality() && list.iter().all(|value| meets(part, of, value));
    }
    match compared(condition) {
        Some((other, value, op)) if other == of => {
            let same_side = matches!((op, wanted), (Eq, _) | (Gt | GtEq, Gt | GtEq) | (Lt | LtEq, Lt | LtEq));
            same_side && meets(part, of, value)
        }
        _ => false,
    }
}

/// What is compared with a constant, with which, and how.
fn compared(expr: &Expr) -> Option<(&Expr, &Expr, CompareOp)> {
    let Expr::Call { function, args, .. } = expr else { return None };
    match (args.as_slice(), function.comparison()?) {
        ([of, value @ Expr::Const { .. }], op) => Some((of, value, op)),
        ([value @ Expr::Const { .. }, of], op) => Some((of, value, op.mirrored())),
        _ => None,
    }
}

/// Whether a comparison of `of` holds for a constant.
fn meets(comparison: &Expr, of: &Expr, value: &Expr) -> bool {
    if !matches!(value, Expr::Const { .. }) || value.ty() != of.ty() {
        return false;
    }
    let of_value = comparison.clone().rewrite(&mut |node| if node == *of { value.clone() } else { node });
    matches!(of_value.eval_scalar(&[], &EvalContext::at(0)), Ok(Datum::Bool(true)))
}
