//! The share of rows that a condition lets through. Conditions are taken to be independent of each other; where
//! nothing is known, the shares are the ones that PostgreSQL assumes (`selfuncs.h`).

use super::profile::{ColumnProfile, number};
use crate::plan::ColId;
use basalt_expr::functions::Function;
use basalt_expr::tree::{Expr, Truth};
use basalt_types::{CompareOp, DataType, Datum};

const EQUAL: f64 = 0.005;
const RANGE: f64 = 1.0 / 3.0;
const STARTS_WITH: f64 = 0.02;
const CONTAINS: f64 = 0.05;
const IS_NULL: f64 = 0.01;
const UNKNOWN: f64 = 0.5;

/// What is known of columns.
pub type Known<'a> = dyn Fn(ColId) -> Option<&'a ColumnProfile> + 'a;

/// Of conjuncts together. Two ends of one range count as a range.
pub fn of_all(conjuncts: &[Expr], known: &Known) -> f64 {
    let mut share = 1.0;
    let mut ranges: Vec<(ColId, f64, f64)> = Vec::new();
    let is_equal_to = |condition: &Expr, id: ColId| match condition {
        Expr::Call { function, args, .. } if function.comparison_across_types() == Some(CompareOp::Eq) => {
            matches!(args.as_slice(), [left, right] if compared(left, right).is_some_and(|(own, ..)| own == id))
        }
        Expr::InList { expr, negated: false, .. } => column(expr) == Some(id),
        _ => false,
    };
    for conjunct in conjuncts {
        // What is equal to something is not null, and has been counted so.
        if let Expr::IsNotNull(inner) = conjunct
            && column(inner).is_some_and(|id| conjuncts.iter().any(|other| is_equal_to(other, id)))
        {
            continue;
        }
        match range(conjunct, known) {
            Some((id, below, above)) => match ranges.iter_mut().find(|(own, ..)| *own == id) {
                Some((_, cut_below, cut_above)) => {
                    *cut_below = cut_below.max(below);
                    *cut_above = cut_above.max(above);
                }
                None => ranges.push((id, below, above)),
            },
            None => share *= of(conjunct, known),
        }
    }
    let left = |(_, below, above): &(ColId, f64, f64)| (1.0 - below - above).clamp(1e-4, 1.0);
    share * ranges.iter().map(left).product::<f64>()
}

pub fn of(condition: &Expr, known: &Known) -> f64 {
    let share = match condition {
        Expr::Const { value, .. } => return f64::from(u8::from(*value == Datum::Bool(true))),
        Expr::And(args) => of_all(args, known),
        Expr::Or(args) => 1.0 - args.iter().map(|arg| 1.0 - of(arg, known)).product::<f64>(),
        Expr::Not(inner) => 1.0 - of(inner, known),
        Expr::IsNull(inner) => nulls(inner, known).unwrap_or(IS_NULL),
        Expr::IsNotNull(inner) => 1.0 - nulls(inner, known).unwrap_or(IS_NULL),
        Expr::BoolTest { expr, truth: Truth::True, negated } => negate(of(expr, known), *negated),
        Expr::BoolTest { expr, truth: Truth::False, negated } => negate(1.0 - of(expr, known), *negated),
        Expr::InList { expr, list, negated, .. } => {
            unequal((list.len() as f64 * equal_to(expr, known)).min(1.0), *negated, &[expr], known)
        }
        Expr::AnyAll { .. } => RANGE,
        Expr::IsDistinct { left, right, negated, .. } => negate(1.0 - of_equality(left, right, known), !*negated),
        Expr::Call { function, args, .. } => of_call(function, args, known),
        _ => UNKNOWN,
    };
    share.clamp(1e-7, 1.0)
}

fn negate(share: f64, negated: bool) -> f64 {
    if negated { 1.0 - share } else { share }
}

fn of_call(function: &Function, args: &[Expr], known: &Known) -> f64 {
    match (function.comparison_across_types(), args) {
        (Some(CompareOp::Eq), [left, right]) => of_equality(left, right, known),
        (Some(CompareOp::NotEq), [left, right]) => {
            unequal(of_equality(left, right, known), true, &[left, right], known)
        }
        (Some(op), [left, right]) => cut(op, left, right, known).map_or(RANGE, |(_, below, above)| 1.0 - below - above),
        (None, [_, pattern]) if function.name.ends_with("like") => {
            let negated = function.name.ends_with("nlike");
            negate(of_pattern(pattern), negated)
        }
        _ => UNKNOWN,
    }
}

/// The rows that are equal, or those that are not: nulls are neither.
fn unequal(share: f64, negated: bool, sides: &[&Expr], known: &Known) -> f64 {
    let filled: f64 = sides.iter().map(|side| 1.0 - nulls(side, known).unwrap_or(0.0)).product();
    if negated { (filled - share).max(0.0) } else { share }
}

fn of_pattern(pattern: &Expr) -> f64 {
    match pattern {
        Expr::Const { value: Datum::Bytes(bytes), .. } => match bytes.first() {
            Some(b'%' | b'_') => CONTAINS,
            _ => STARTS_WITH,
        },
        _ => CONTAINS,
    }
}

fn of_equality(left: &Expr, right: &Expr, known: &Known) -> f64 {
    match (is_value(left), is_value(right)) {
        (false, true) => equal_to(left, known),
        (true, false) => equal_to(right, known),
        _ => {
            let distinct = |side: &Expr| column(side).and_then(known).map(|column| column.distinct);
            match distinct(left).into_iter().chain(distinct(right)).reduce(f64::max) {
                Some(most) => 1.0 / most,
                None => EQUAL,
            }
        }
    }
}

/// The share of rows in which an expression has a given value.
fn equal_to(expr: &Expr, known: &Known) -> f64 {
    match column(expr).and_then(known) {
        Some(column) if column.known => (1.0 - column.nulls) / column.distinct,
        Some(column) => (1.0 - column.nulls) * (1.0 / column.distinct).max(EQUAL),
        None => EQUAL,
    }
}

fn nulls(expr: &Expr, known: &Known) -> Option<f64> {
    column(expr).and_then(known).map(|column| column.nulls)
}

fn is_value(expr: &Expr) -> bool {
    !expr.any(&mut |node| matches!(node, Expr::Hole { .. }))
}

/// The column that an expression is, under casts.
fn column(expr: &Expr) -> Option<ColId> {
    match expr {
        Expr::Hole { id, .. } => Some(*id),
        Expr::Cast { expr, .. } => column(expr),
        _ => None,
    }
}

/// A column and a value, in this order if `true`.
fn compared<'e>(left: &'e Expr, right: &'e Expr) -> Option<(ColId, &'e Expr, bool)> {
    match (column(left), column(right)) {
        (Some(id), None) if is_value(right) => Some((id, right, true)),
        (None, Some(id)) if is_value(left) => Some((id, left, false)),
        _ => None,
    }
}

/// Of a comparison of a bounded column with a constant: what it cuts off below and above, as shares.
fn range(condition: &Expr, known: &Known) -> Option<(ColId, f64, f64)> {
    let Expr::Call { function, args, .. } = condition else { return None };
    let [left, right] = args.as_slice() else { return None };
    cut(function.comparison_across_types()?, left, right, known)
}

fn cut(op: CompareOp, left: &Expr, right: &Expr, known: &Known) -> Option<(ColId, f64, f64)> {
    let (id, value, in_order) = compared(left, right)?;
    let is_upper = match op {
        CompareOp::Lt | CompareOp::LtEq => in_order,
        CompareOp::Gt | CompareOp::GtEq => !in_order,
        CompareOp::Eq | CompareOp::NotEq => return None,
    };
    let (least, greatest) = known(id)?.bounds.filter(|(least, greatest)| greatest > least)?;
    let Expr::Const { value, ty } = value else { return None };
    let value = number(ty, value)?;
    let value = value / unit(ty, least.abs().max(greatest.abs()), value);
    let at = ((value - least) / (greatest - least)).clamp(0.0, 1.0);
    Some(if is_upper { (id, 0.0, 1.0 - at) } else { (id, at, 0.0) })
}

/// Microseconds of a day where a moment stands beside days: bounds of dates are small numbers.
fn unit(ty: &DataType, greatest: f64, value: f64) -> f64 {
    const DAY_MICROS: f64 = 86_400e6;
    let is_moment = matches!(ty, DataType::Timestamp | DataType::TimestampTz);
    if is_moment && greatest < 1e7 && value.abs() > 1e9 { DAY_MICROS } else { 1.0 }
}
