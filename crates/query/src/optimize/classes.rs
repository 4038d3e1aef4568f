//! Columns that are equal in every row of a region: what is asked of one is asked of all.
//!
//! Only plain columns of one type whose equal values nothing tells apart that is carried over: comparisons with
//! constants, by the operators of that type.

use super::columns::{ColSet, columns_of, substitute};
use super::conjuncts::equality;
use super::node::Key;
use crate::plan::ColId;
use basalt_expr::functions::Function;
use basalt_expr::tree::Expr;
use basalt_types::{CompareOp, DataType};

pub struct Class {
    pub members: Vec<ColId>,
    pub ty: DataType,
    pub equal: &'static Function,
}

#[derive(Default)]
pub struct Classes {
    pub all: Vec<Class>,
}

impl Classes {
    /// Takes the equalities between columns that `belongs` to out of the conjuncts.
    pub fn of(conjuncts: &mut Vec<Expr>, belongs: impl Fn(ColId) -> bool) -> Classes {
        let mut classes = Classes::default();
        conjuncts.retain(|conjunct| match pair(conjunct) {
            Some((a, b, ty, equal)) if a != b && belongs(a) && belongs(b) => {
                classes.add(a, b, ty, equal);
                false
            }
            _ => true,
        });
        classes
    }

    fn add(&mut self, a: ColId, b: ColId, ty: DataType, equal: &'static Function) {
        let place = |id: ColId| self.all.iter().position(|class| class.members.contains(&id));
        match (place(a), place(b)) {
            (Some(first), Some(second)) if first != second => {
                let (low, high) = (first.min(second), first.max(second));
                let merged = self.all.swap_remove(high);
                self.all[low].members.extend(merged.members);
            }
            (Some(_), Some(_)) => {}
            (Some(class), None) => self.all[class].members.push(b),
            (None, Some(class)) => self.all[class].members.push(a),
            (None, None) => self.all.push(Class { members: vec![a, b], ty, equal }),
        }
    }

    /// The equalities between members that one relation has several of.
    pub fn within(&self, columns: &ColSet) -> Vec<Expr> {
        let mut out = Vec::new();
        for class in &self.all {
            let own: Vec<&ColId> = class.members.iter().filter(|id| columns.contains(id)).collect();
            let column = |id: &ColId| Expr::Hole { id: *id, ty: class.ty.clone() };
            let equal = |pair: &[&ColId]| Expr::Call {
                function: class.equal,
                args: vec![column(pair[0]), column(pair[1])],
                ty: DataType::Bool,
            };
            out.extend(own.windows(2).map(equal));
        }
        out
    }

    /// What conditions on single members say of the others.
    pub fn carried(&self, conjuncts: &[Expr]) -> Vec<Expr> {
        let mut out = Vec::new();
        for conjunct in conjuncts {
            let Some(id) = constrained(conjunct) else { continue };
            let Some(class) = self.all.iter().find(|class| class.members.contains(&id)) else { continue };
            for other in class.members.iter().filter(|other| **other != id) {
                let moved = renamed(conjunct, id, *other, &class.ty);
                if !conjuncts.contains(&moved) && !out.contains(&moved) {
                    out.push(moved);
                }
            }
        }
        out
    }
}

/// What conditions on the left columns of keys say of their right columns.
pub fn carried_over(conjuncts: &[Expr], keys: &[Key]) -> Vec<Expr> {
    let mut out = Vec::new();
    for key in keys {
        let (Expr::Hole { id: left, ty }, Expr::Hole { id: right, .. }) = (&key.left, &key.right) else { continue };
        let asked = conjuncts.iter().filter(|conjunct| constrained(conjunct) == Some(*left));
        if !key.null_safe {
            out.extend(asked.map(|conjunct| renamed(conjunct, *left, *right, ty)));
        }
    }
    out
}

fn renamed(conjunct: &Expr, from: ColId, to: ColId, ty: &DataType) -> Expr {
    let definitions = [(from, Expr::Hole { id: to, ty: ty.clone() })].into_iter().collect();
    substitute(conjunct.clone(), &definitions)
}

/// `column = column`, both of one type.
fn pair(conjunct: &Expr) -> Option<(ColId, ColId, DataType, &'static Function)> {
    match equality(conjunct)? {
        (Expr::Hole { id: a, ty }, Expr::Hole { id: b, ty: other }, equal, false) if ty == other => {
            Some((*a, *b, ty.clone(), equal))
        }
        _ => None,
    }
}

/// The column that a condition compares with constants.
fn constrained(conjunct: &Expr) -> Option<ColId> {
    let is_value = |expr: &Expr| matches!(expr, Expr::Const { .. } | Expr::Param { .. });
    let column = |expr: &Expr| match expr {
        Expr::Hole { id, .. } => Some(*id),
        _ => None,
    };
    match conjunct {
        Expr::Call { function, args, .. } => {
            let op = function.comparison()?;
            match args.as_slice() {
                _ if op == CompareOp::NotEq => None,
                [left, right] if is_value(right) => column(left),
                [left, right] if is_value(left) => column(right),
                _ => None,
            }
        }
        Expr::InList { expr, list, negated: false, .. } if list.iter().all(is_value) => column(expr),
        Expr::Or(_) => {
            let columns = columns_of(conjunct);
            let id = columns.iter().next().copied().filter(|_| columns.len() == 1)?;
            alternatives(conjunct).all(|part| constrained(part) == Some(id)).then_some(id)
        }
        _ => None,
    }
}

fn alternatives(condition: &Expr) -> impl Iterator<Item = &Expr> {
    match condition {
        Expr::Or(args) => args.iter(),
        other => std::slice::from_ref(other).iter(),
    }
}
