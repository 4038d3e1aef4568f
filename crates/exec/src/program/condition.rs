//! Conditions: comparisons of integers, decisions per entry of a dictionary, and what `expr` decides row by row.

use super::{Arg, General, Kind, Place, Program, Typed, comparable_to, int_of};
use basalt_expr::functions::Function;
use basalt_expr::tree::Expr;
use basalt_types::span::Span;
use basalt_types::{CompareOp, DataType};
use std::sync::Arc;

/// What decides which rows pass. Null is no pass.
#[derive(Clone, PartialEq, Debug)]
pub enum Condition {
    /// A column of integers with one or two constants.
    Within(Place, Span),
    CompareColumns(CompareOp, Place, Place),
    /// Whether a column is null.
    Null(Place, bool),
    /// Of one column of texts: decided once per entry where they are codes.
    Text(Arc<General>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
    General(Arc<General>),
}

impl Condition {
    /// The columns that it asks for.
    pub fn places(&self) -> Vec<Place> {
        match self {
            Condition::Within(place, _) | Condition::Null(place, _) => vec![*place],
            Condition::CompareColumns(_, left, right) => vec![*left, *right],
            Condition::Text(general) | Condition::General(general) => general.places.clone(),
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().flat_map(Condition::places).collect()
            }
        }
    }

    /// What its constants take.
    pub fn constant_bytes(&self) -> usize {
        match self {
            Condition::Within(..) | Condition::CompareColumns(..) | Condition::Null(..) => 0,
            Condition::Text(general) | Condition::General(general) => general.constant_bytes(),
            Condition::All(conditions) | Condition::Any(conditions) => {
                conditions.iter().map(Condition::constant_bytes).sum()
            }
        }
    }

    /// Whether it fails for no value.
    pub fn is_total(&self) -> bool {
        match self {
            Condition::Within(..) | Condition::CompareColumns(..) | Condition::Null(..) => true,
            Condition::Text(general) | Condition::General(general) => general.is_total(),
            Condition::All(conditions) | Condition::Any(conditions) => conditions.iter().all(Condition::is_total),
        }
    }
}

/// The same conditions, of which those over one column of integers are one.
pub fn fused(conditions: Vec<Condition>) -> Vec<Condition> {
    let mut fused = Vec::with_capacity(conditions.len());
    fuse(&mut fused, conditions);
    fused
}

/// Adds conditions to some that are [`fused`].
pub fn fuse(fused: &mut Vec<Condition>, conditions: impl IntoIterator<Item = Condition>) {
    for condition in conditions {
        let both = match &condition {
            // What is outside of a span is never one with anything: programs leave out thousands of values.
            Condition::Within(place, span) if span.inside => fused.iter_mut().find_map(|earlier| match earlier {
                Condition::Within(other, earlier) if other == place => earlier.and(*span).map(|both| (earlier, both)),
                _ => None,
            }),
            _ => None,
        };
        match both {
            Some((earlier, both)) => *earlier = both,
            None => fused.push(condition),
        }
    }
}

impl Program {
    /// `None`: nothing but the general way.
    pub(super) fn condition_of(&mut self, expr: &Expr) -> Option<Condition> {
        Some(match expr {
            // Where an operand is null the others are computed, too, and may fail.
            Expr::And(_) | Expr::Or(_) if !expr.is_total() => self.plain(expr),
            Expr::And(args) => Condition::All(fused(args.iter().map(|arg| self.condition_or_general(arg)).collect())),
            Expr::Or(args) => Condition::Any(args.iter().map(|arg| self.condition_or_general(arg)).collect()),
            Expr::Not(inner) if !inner.is_total() => self.plain(expr),
            Expr::Not(inner) => self.negated(inner).unwrap_or_else(|| self.plain(expr)),
            Expr::IsNull(inner) => self.null_test(inner, true).unwrap_or_else(|| self.plain(expr)),
            Expr::IsNotNull(inner) => self.null_test(inner, false).unwrap_or_else(|| self.plain(expr)),
            Expr::Call { function, args, .. } => {
                let compared = self.comparison(function, args, false);
                compared.unwrap_or_else(|| self.plain(expr))
            }
            Expr::InList { expr: value, list, negated, .. } => {
                let listed = self.in_list(value, list, *negated);
                listed.unwrap_or_else(|| self.plain(expr))
            }
            _ => self.plain(expr),
        })
    }

    fn condition_or_general(&mut self, expr: &Expr) -> Condition {
        self.condition_of(expr).unwrap_or_else(|| self.plain(expr))
    }

    /// What `expr` decides.
    fn plain(&self, expr: &Expr) -> Condition {
        let general = Arc::new(General::new(expr, &self.fields));
        let is_text = |ty: &DataType| matches!(ty, DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_));
        match general.places.as_slice() {
            [only] if is_text(&self.fields[*only].ty) => Condition::Text(general),
            _ => Condition::General(general),
        }
    }

    /// Where a condition is false.
    fn negated(&mut self, expr: &Expr) -> Option<Condition> {
        match expr {
            Expr::Call { function, args, .. } => self.comparison(function, args, true),
            Expr::And(args) => Some(Condition::Any(args.iter().map(|arg| self.negated(arg)).collect::<Option<_>>()?)),
            Expr::Or(args) => Some(Condition::All(args.iter().map(|arg| self.negated(arg)).collect::<Option<_>>()?)),
            Expr::InList { expr, list, negated, .. } => self.in_list(expr, list, !negated),
            Expr::IsNull(inner) => self.null_test(inner, false),
            Expr::IsNotNull(inner) => self.null_test(inner, true),
            _ => None,
        }
    }

    fn null_test(&self, expr: &Expr, null: bool) -> Option<Condition> {
        match expr {
            Expr::Column { index, .. } => Some(Condition::Null(*index, null)),
            _ => None,
        }
    }

    fn comparison(&mut self, function: &Function, args: &[Expr], negated: bool) -> Option<Condition> {
        let op = function.comparison_across_types()?;
        let op = if negated { inverse(op) } else { op };
        let [left, right] = args else { return None };
        let (left, right) = (self.integer(left)?, self.integer(right)?);
        match (left.arg, right.arg) {
            (Arg::Column(column), Arg::Const(value)) => against(op, (column, left.kind), (right.kind, value)),
            (Arg::Const(value), Arg::Column(column)) => {
                against(op.mirrored(), (column, right.kind), (left.kind, value))
            }
            (Arg::Column(_), Arg::Column(_)) => {
                let (Arg::Column(left), Arg::Column(right)) = self.aligned(left, right)? else { return None };
                Some(Condition::CompareColumns(op, left, right))
            }
            (Arg::Const(_), Arg::Const(_)) => None,
        }
    }

    /// Both in the same unit.
    fn aligned(&mut self, left: Typed, right: Typed) -> Option<(Arg, Arg)> {
        match (left.kind, right.kind) {
            (Kind::Scaled(a), Kind::Scaled(b)) => {
                let scale = a.max(b);
                Some((self.rescaled(left, scale)?.arg, self.rescaled(right, scale)?.arg))
            }
            (a, b) if a == b => Some((left.arg, right.arg)),
            _ => None,
        }
    }

    fn in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool) -> Option<Condition> {
        let Typed { arg: Arg::Column(column), kind, .. } = self.integer(expr)? else { return None };
        let op = if negated { CompareOp::NotEq } else { CompareOp::Eq };
        let each = list.iter().map(|item| match item {
            Expr::Const { value, ty } => against(op, (column, kind), (Kind::of(ty)?, int_of(value)?)),
            _ => None,
        });
        let each = each.collect::<Option<Vec<_>>>()?;
        Some(if negated { Condition::All(each) } else { Condition::Any(each) })
    }
}

fn against(op: CompareOp, (column, kind): (Place, Kind), (other, value): (Kind, i128)) -> Option<Condition> {
    let (op, value) = comparable_to(kind, op, other, value)?;
    Some(Condition::Within(column, Span::compared(op, value)))
}

/// The comparison that is true where this one is false.
fn inverse(op: CompareOp) -> CompareOp {
    match op {
        CompareOp::Eq => CompareOp::NotEq,
        CompareOp::NotEq => CompareOp::Eq,
        CompareOp::Lt => CompareOp::GtEq,
        CompareOp::LtEq => CompareOp::Gt,
        CompareOp::Gt => CompareOp::LtEq,
        CompareOp::GtEq => CompareOp::Lt,
    }
}
