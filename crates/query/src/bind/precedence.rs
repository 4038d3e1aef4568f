//! Where sqlparser's precedence is not PostgreSQL's (manual 4.1.6): a sign binds tighter than `^`, and `~`, `@`,
//! `|/` and `||/` bind looser than `+` and `-`. The syntax is turned around before it is bound.

use sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};

/// `-a ^ b`, which was read as `-(a ^ b)`, as `(-a) ^ b`.
pub(super) fn sign_inside(op: &UnaryOperator, expr: &Expr) -> Option<Expr> {
    if !matches!(op, UnaryOperator::Minus | UnaryOperator::Plus) || !is_power(expr) {
        return None;
    }
    let mut turned = expr.clone();
    let mut place = &mut turned;
    while let Expr::BinaryOp { left, op: BinaryOperator::PGExp | BinaryOperator::BitwiseXor, .. } = place {
        place = left;
    }
    let operand = std::mem::replace(place, Expr::value(sqlparser::ast::Value::Null));
    *place = Expr::UnaryOp { op: *op, expr: Box::new(operand) };
    Some(turned)
}

fn is_power(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryOp { op: BinaryOperator::PGExp | BinaryOperator::BitwiseXor, .. })
}

/// `~a + b`, which was read as `(~a) + b`, as `~(a + b)`.
pub(super) fn prefix_outside(left: &Expr, op: &BinaryOperator, right: &Expr) -> Option<Expr> {
    if !is_sum(op) {
        return None;
    }
    let prefix = first_prefix(left)?;
    let mut sum = left.clone();
    let mut place = &mut sum;
    while let Expr::BinaryOp { left, .. } = place {
        place = left;
    }
    if let Expr::UnaryOp { expr, .. } = place {
        let operand = std::mem::replace(&mut **expr, Expr::value(sqlparser::ast::Value::Null));
        *place = operand;
    }
    let sum = Expr::BinaryOp { left: Box::new(sum), op: op.clone(), right: Box::new(right.clone()) };
    Some(Expr::UnaryOp { op: prefix, expr: Box::new(sum) })
}

fn is_sum(op: &BinaryOperator) -> bool {
    matches!(op, BinaryOperator::Plus | BinaryOperator::Minus)
}

/// The prefix operator that a sum begins with.
fn first_prefix(expr: &Expr) -> Option<UnaryOperator> {
    match expr {
        Expr::BinaryOp { left, op, .. } if is_sum(op) => first_prefix(left),
        Expr::UnaryOp {
            op:
                op @ (UnaryOperator::BitwiseNot
                | UnaryOperator::PGAbs
                | UnaryOperator::PGSquareRoot
                | UnaryOperator::PGCubeRoot),
            ..
        } => Some(*op),
        _ => None,
    }
}
