//! The order of tables in FROM: each comes when it can be compared with one that is there already. DataFusion joins
//! tables as they are written, and would cross those that meet only through a third.

use crate::plan::{ColId, JoinKind, Plan};
use ahash::AHashSet;
use basalt_expr::tree::Expr;

/// Tables that two equal sides name.
struct Equality {
    left: AHashSet<usize>,
    right: AHashSet<usize>,
    /// Nothing about it may fail, so that it is a key of the join for sure.
    total: bool,
}

/// The tables below a filter in such an order. `None`: they are.
pub(super) fn connected(input: &Plan, condition: &Expr) -> Option<Plan> {
    let mut tables = Vec::new();
    flatten(input, &mut tables);
    if tables.len() < 3 {
        return None;
    }
    let columns: Vec<AHashSet<ColId>> =
        tables.iter().map(|table| table.columns().into_iter().map(|(id, _)| id).collect()).collect();
    let equalities: Vec<Equality> =
        condition.clone().split_and().iter().filter_map(|conjunct| equality(conjunct, &columns)).collect();
    let mut order = vec![0];
    let mut left: Vec<usize> = (1..tables.len()).collect();
    while !left.is_empty() {
        let joins = |table: &usize, total: bool| {
            let meets = |a: &AHashSet<usize>, b: &AHashSet<usize>| {
                a.iter().all(|one| one == table) && b.iter().all(|one| order.contains(one))
            };
            let all = |equality: &&Equality| equality.total || !total;
            equalities
                .iter()
                .filter(all)
                .any(|equality| meets(&equality.left, &equality.right) || meets(&equality.right, &equality.left))
        };
        let next = left.iter().position(|table| joins(table, true));
        let next = next.or_else(|| left.iter().position(|table| joins(table, false))).unwrap_or(0);
        order.push(left.remove(next));
    }
    if order.is_sorted() {
        return None;
    }
    let mut ordered = order.into_iter().map(|table| tables[table].clone());
    let first = ordered.next()?;
    Some(ordered.fold(first, |left, right| Plan::Join {
        left: Box::new(left),
        right: Box::new(right),
        kind: JoinKind::Inner,
        condition: None,
        lateral: false,
    }))
}

/// The tables of a chain of joins without conditions.
fn flatten<'p>(plan: &'p Plan, out: &mut Vec<&'p Plan>) {
    match plan {
        Plan::Join { left, right, kind: JoinKind::Inner, condition: None, lateral: false } => {
            flatten(left, out);
            flatten(right, out);
        }
        table => out.push(table),
    }
}

fn equality(conjunct: &Expr, columns: &[AHashSet<ColId>]) -> Option<Equality> {
    let Expr::Call { function, args, .. } = conjunct else { return None };
    let [left, right] = args.as_slice() else { return None };
    let tables = |side: &Expr| {
        let mut tables = AHashSet::new();
        side.walk(&mut |node| {
            if let Expr::Hole { id, .. } = node {
                tables.extend(columns.iter().position(|columns| columns.contains(id)));
            }
            true
        });
        tables
    };
    let (of_left, of_right) = (tables(left), tables(right));
    let apart = !of_left.is_empty() && !of_right.is_empty() && of_left.is_disjoint(&of_right);
    let total = left.is_total() && right.is_total();
    (function.is_equality() && apart).then_some(Equality { left: of_left, right: of_right, total })
}

#[cfg(test)]
mod tests {
    use super::*;
    use basalt_expr::EvalContext;
    use basalt_expr::functions::Registry;
    use basalt_expr::resolve;
    use basalt_types::DataType;

    const INT: DataType = DataType::Int4;

    fn hole(id: ColId) -> Expr {
        Expr::Hole { id, ty: INT }
    }

    fn operation(symbol: &str, left: Expr, right: Expr) -> Expr {
        resolve::operator(Registry::builtin(), symbol, Some(left), right, &EvalContext::at(0)).expect("integers")
    }

    /// Tables of one column each, joined in this order; which column comes after which.
    fn order(tables: &[ColId], conditions: Vec<Expr>) -> Option<Vec<ColId>> {
        let mut tables = tables.iter().map(|id| Plan::Given { slot: *id, columns: vec![(*id, INT)] });
        let first = tables.next().expect("a table");
        let joined = tables.fold(first, |left, right| Plan::Join {
            left: Box::new(left),
            right: Box::new(right),
            kind: JoinKind::Inner,
            condition: None,
            lateral: false,
        });
        let connected = connected(&joined, &Expr::and(conditions))?;
        Some(connected.columns().into_iter().map(|(id, _)| id).collect())
    }

    #[test]
    fn a_table_waits_for_one_that_it_is_compared_with() {
        let equal = |a, b| operation("=", hole(a), hole(b));
        assert_eq!(order(&[1, 2, 3], vec![equal(1, 3), equal(3, 2)]), Some(vec![1, 3, 2]));
        assert_eq!(order(&[1, 2, 3], vec![equal(1, 2), equal(2, 3)]), None);
        assert_eq!(order(&[1, 2, 3], vec![equal(2, 3)]), None, "somebody has to be crossed");
        assert_eq!(order(&[1, 2], vec![equal(1, 2)]), None);
    }

    #[test]
    fn what_may_fail_connects_last() {
        let equal = |a, b| operation("=", hole(a), hole(b));
        let ratio = operation("=", operation("/", hole(1), Expr::int4(2)), hole(2));
        assert_eq!(order(&[1, 2, 3], vec![ratio.clone(), equal(1, 3), equal(3, 2)]), Some(vec![1, 3, 2]));
        assert_eq!(order(&[1, 3, 2], vec![ratio]), Some(vec![1, 2, 3]));
    }
}
