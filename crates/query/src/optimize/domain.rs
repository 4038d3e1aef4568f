//! The distinct values of outer columns, to be joined with a subquery in the place of the outer rows (Neumann and Kemper,
//! "Unnesting Arbitrary Queries", BTW 2015, sections 3.1 and 3.3).

use super::columns::{ColSet, Definitions, copied, free_columns, hole, refers};
use super::conjuncts::equality_of;
use super::convert::Converter;
use super::keys::is_never_null;
use super::node::{JoinKind, Node, Op};
use crate::plan::ColId;
use basalt_expr::tree::Expr;
use basalt_types::{CompareOp, DataType};

pub struct Domain {
    pub node: Node,
    /// What stands in it for the outer columns.
    pub definitions: Definitions,
    /// Outer columns compared with those.
    pub conditions: Vec<Expr>,
}

/// The domain of these columns of `outer`.
pub fn domain(converter: &mut Converter, outer: &Node, columns: Vec<(ColId, DataType)>) -> Option<Domain> {
    let free = free_columns(outer);
    let (copy, names) = copied(&without(outer.clone(), &free)?, &mut converter.next_id);
    let (mut groups, mut definitions, mut conditions) = (Vec::new(), Definitions::new(), Vec::new());
    for (id, ty) in columns {
        let own = converter.fresh();
        groups.push((own, hole(*names.get(&id)?, ty.clone())));
        let equal = equality_of(&ty)?;
        let (left, right) = (hole(id, ty.clone()), hole(own, ty));
        definitions.insert(id, right.clone());
        conditions.push(match is_never_null(outer, id) && equal.comparison() == Some(CompareOp::Eq) {
            true => Expr::Call { function: equal, args: vec![left, right], ty: DataType::Bool },
            false => Expr::IsDistinct { left: Box::new(left), right: Box::new(right), equal, negated: true },
        });
    }
    // Without columns it says only whether there are outer rows, and somebody asks.
    (!groups.is_empty()).then(|| Domain { node: copy.aggregate(groups, Vec::new()), definitions, conditions })
}

/// The rows of a tree and perhaps more: without the conditions that refer to queries further out. A domain may have
/// values that no outer row asks for.
fn without(node: Node, free: &ColSet) -> Option<Node> {
    if free_columns(&node).is_disjoint(free) {
        return Some(node);
    }
    let keep = |conditions: Vec<Expr>| conditions.into_iter().filter(|one| !refers(one, free)).collect::<Vec<Expr>>();
    match node.op {
        Op::Filter { input, conjuncts } => Some(without(*input, free)?.filter(keep(conjuncts))),
        Op::Project { input, exprs } if !exprs.iter().any(|(_, expr)| refers(expr, free)) => {
            Some(without(*input, free)?.project(exprs))
        }
        Op::Join { left, right, kind: JoinKind::Inner, residual, .. } => {
            let (left, right) = (without(*left, free)?, without(*right, free)?);
            Some(left.join(right, JoinKind::Inner, keep(residual)))
        }
        Op::Join { left, kind: JoinKind::Semi | JoinKind::Anti | JoinKind::NullAwareAnti, .. } => without(*left, free),
        _ => None,
    }
}
