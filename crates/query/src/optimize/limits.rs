//! Limits reach through unions: of each part no more rows are needed than of all together, and in an order the first ones.

use super::columns::{Definitions, hole, substitute};
use super::node::{Node, Op};
use crate::plan::{ColId, SetColumn, SortKey};
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};

/// Rows in an order that are worth it to sort those of each part first, and then all that are left again.
const SORTED_MAX: i64 = 1 << 14;

/// Limits what a limit reads, where that is a union.
pub fn through_unions(limit: &mut Node) {
    let Op::Limit { input, limit, offset } = &mut limit.op else { return };
    if let Some((_, last)) = wanted(limit.as_ref(), offset.as_ref()) {
        limit_parts(input, Vec::new(), last);
    }
}

/// How many rows a limit passes over, and how many come up to its last one; `None` where that is not known, or it has no end.
pub fn wanted(limit: Option<&Expr>, offset: Option<&Expr>) -> Option<(i64, i64)> {
    let count = |expr: &Expr| match expr {
        Expr::Const { value: Datum::I64(count @ 0..), .. } => Some(*count),
        _ => None,
    };
    let offset = offset.map_or(Some(0), count)?;
    Some((offset, count(limit?)?.checked_add(offset)?))
}

/// The rows of a node that come first by these keys, whichever these are without any, are all that is needed.
fn limit_parts(node: &mut Node, keys: Vec<SortKey>, rows: i64) {
    match &mut node.op {
        Op::Sort { input, keys: own } if keys.is_empty() && rows <= SORTED_MAX => limit_parts(input, own.clone(), rows),
        Op::Project { input, exprs } => {
            // What is computed for the order is not computed twice.
            let passed: Definitions =
                exprs.iter().filter(|(_, expr)| matches!(expr, Expr::Hole { .. })).cloned().collect();
            if keys.iter().all(|key| matches!(&key.expr, Expr::Hole { id, .. } if passed.contains_key(id))) {
                limit_parts(input, renamed(&keys, &passed), rows);
            }
        }
        Op::UnionAll { left, right, columns } => {
            limit_part(left, renamed(&keys, &sources(columns, |column| column.left)), rows);
            limit_part(right, renamed(&keys, &sources(columns, |column| column.right)), rows);
        }
        _ => {}
    }
}

fn limit_part(part: &mut Node, keys: Vec<SortKey>, rows: i64) {
    match &part.op {
        Op::UnionAll { .. } => return limit_parts(part, keys, rows),
        // Few rows as they are.
        Op::Values { .. } | Op::Limit { .. } => return,
        _ if keys.is_empty() && part.gives_by_rounds() => return,
        _ => {}
    }
    let mut input = std::mem::replace(part, Node::unit());
    if !keys.is_empty() {
        input = Node::new(Op::Sort { input: Box::new(input), keys });
    }
    let limit = Some(Expr::Const { value: Datum::I64(rows), ty: DataType::Int8 });
    *part = Node::new(Op::Limit { input: Box::new(input), limit, offset: None });
    through_unions(part);
}

fn renamed(keys: &[SortKey], definitions: &Definitions) -> Vec<SortKey> {
    let renamed = |key: &SortKey| SortKey { expr: substitute(key.expr.clone(), definitions), ..key.clone() };
    keys.iter().map(renamed).collect()
}

fn sources(columns: &[SetColumn], of: impl Fn(&SetColumn) -> ColId) -> Definitions {
    columns.iter().map(|column| (column.id, hole(of(column), column.ty.clone()))).collect()
}
