//! Where sqlparser's precedence is not PostgreSQL's (manual 4.1.6): a sign binds tighter than `^`, and `~`, `@`,
//! `|/` and `||/` bind looser than `+` and `-`; what IS DISTINCT FROM has on its right ends before AND and OR. The syntax is turned around before it is bound.

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

/// Whether the right side of an IS [NOT] DISTINCT FROM among these operands of AND and OR took what follows it.
pub(super) fn swallows(expr: &Expr) -> bool {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            swallows(left) || swallows(right)
        }
        Expr::IsDistinctFrom(_, right) | Expr::IsNotDistinctFrom(_, right) => {
            matches!(&**right, Expr::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. }) || swallows(right)
        }
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => swallows(expr),
        _ => false,
    }
}

/// `a IS DISTINCT FROM b AND c`, which was read as `a IS DISTINCT FROM (b AND c)`, as `(a IS DISTINCT FROM b) AND c`.
pub(super) fn distinct_inside(expr: &Expr) -> Expr {
    let mut sequence = Vec::new();
    let first = flatten(expr, &mut sequence);
    // AND binds tighter.
    let mut terms = vec![first];
    let together = |left: Expr, op: BinaryOperator, right: Expr| Expr::BinaryOp {
        left: Box::new(left),
        op,
        right: Box::new(right),
    };
    for (op, operand) in sequence {
        match (op, terms.pop()) {
            (BinaryOperator::And, Some(last)) => terms.push(together(last, BinaryOperator::And, operand)),
            (_, last) => {
                terms.extend(last);
                terms.push(operand);
            }
        }
    }
    let either = terms.into_iter().reduce(|left, right| together(left, BinaryOperator::Or, right));
    either.unwrap_or_else(|| expr.clone())
}

/// The first operand; what follows it, in the order of the text, goes into `rest`.
fn flatten(expr: &Expr, rest: &mut Vec<(BinaryOperator, Expr)>) -> Expr {
    match expr {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::And | BinaryOperator::Or), right } => {
            let first = flatten(left, rest);
            let place = rest.len();
            let second = flatten(right, rest);
            rest.insert(place, (op.clone(), second));
            first
        }
        Expr::IsDistinctFrom(left, right) => Expr::IsDistinctFrom(left.clone(), Box::new(flatten(right, rest))),
        Expr::IsNotDistinctFrom(left, right) => Expr::IsNotDistinctFrom(left.clone(), Box::new(flatten(right, rest))),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(flatten(expr, rest)) }
        }
        other => other.clone(),
    }
}
