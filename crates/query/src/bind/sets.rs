//! Set-returning calls in a select list: they leave the expressions around them for nodes of their own
//! (PostgreSQL manual 38.5.9). Calls of one depth advance together; one inside another is a node below it.

use super::binder::Binder;
use super::select::Item;
use crate::plan::{ColId, Plan, SortKey, WindowCall};
use basalt_expr::tree::Expr;
use basalt_types::DataType;

/// Calls that became columns, by how deep they stood.
#[derive(Default)]
struct Levels(Vec<Vec<(ColId, Expr)>>);

fn is_set(node: &Expr) -> bool {
    matches!(node, Expr::Call { function, .. } if function.returns_set)
}

impl Levels {
    /// The level above all sets that the call's arguments use.
    fn of(&self, call: &Expr) -> usize {
        let mut level = 0;
        call.walk(&mut |node| {
            if let Expr::Hole { id, .. } = node
                && let Some(at) = self.0.iter().position(|sets| sets.iter().any(|(known, _)| known == id))
            {
                level = level.max(at + 1);
            }
            true
        });
        level
    }

    fn take(&mut self, binder: &mut Binder, expr: &mut Expr) {
        if !expr.any(&mut |node| is_set(node)) {
            return;
        }
        let taken = std::mem::replace(expr, Expr::bool(false));
        *expr = taken.rewrite(&mut |node| {
            if !is_set(&node) {
                return node;
            }
            let (level, ty) = (self.of(&node), node.ty());
            if self.0.len() <= level {
                self.0.resize_with(level + 1, Vec::new);
            }
            let known = self.0[level].iter().find(|(_, call)| *call == node).map(|(id, _)| *id);
            let id = known.unwrap_or_else(|| {
                let id = binder.fresh();
                self.0[level].push((id, node));
                id
            });
            Expr::Hole { id, ty }
        });
    }

    fn above(self, plan: Plan) -> Plan {
        let none = std::iter::repeat(None);
        self.above_counted(plan, none)
    }

    /// Each level with a column that counts its rows.
    fn above_counted(self, plan: Plan, counts: impl Iterator<Item = Option<ColId>>) -> Plan {
        self.0.into_iter().zip(counts).fold(plan, |input, (sets, ordinality)| Plan::ProjectSet {
            input: Box::new(input),
            sets,
            ordinality,
            keep_empty: false,
        })
    }
}

impl Binder<'_> {
    /// Sets that windows are cut or ordered by come below the windows.
    pub fn window_sets(&mut self, plan: Plan, windows: &mut [(ColId, WindowCall)]) -> Plan {
        let mut levels = Levels::default();
        windows.iter_mut().flat_map(|(_, call)| call.exprs_mut()).for_each(|expr| levels.take(self, expr));
        levels.above(plan)
    }

    /// The sets of a select list, its DISTINCT ON and its ORDER BY, above `plan`. PostgreSQL makes sets of rows that are
    /// in order already, unless the order is one of sets (manual, SELECT, "SELECT List"): `in_order`, rows of one set
    /// stay as they come.
    pub fn set_calls(
        &mut self,
        plan: Plan,
        items: &mut [Item],
        keys: &mut Vec<SortKey>,
        on: &mut [Expr],
        in_order: bool,
    ) -> Plan {
        let by_sets = keys.iter().any(|key| key.expr.any(&mut |node| is_set(node)));
        let mut levels = Levels::default();
        on.iter_mut().for_each(|expr| levels.take(self, expr));
        items.iter_mut().for_each(|item| levels.take(self, &mut item.expr));
        keys.iter_mut().for_each(|key| levels.take(self, &mut key.expr));
        if !in_order || by_sets || keys.is_empty() {
            return levels.above(plan);
        }
        let counts: Vec<ColId> = levels.0.iter().map(|_| self.fresh()).collect();
        let key = |id: &ColId| SortKey {
            expr: Expr::Hole { id: *id, ty: DataType::Int8 },
            descending: false,
            nulls_first: false,
        };
        keys.extend(counts.iter().map(key));
        levels.above_counted(plan, counts.into_iter().map(Some))
    }

    /// Sets that are grouped by come below the grouping; the select list means the same columns.
    pub fn grouped_sets(&mut self, plan: Plan, groups: &mut [Expr], items: &mut [Item], keys: &mut [SortKey]) -> Plan {
        if !groups.iter().any(|group| group.any(&mut |node| is_set(node))) {
            return plan;
        }
        let before = groups.to_vec();
        let mut levels = Levels::default();
        groups.iter_mut().for_each(|group| levels.take(self, group));
        let exprs = items.iter_mut().map(|item| &mut item.expr).chain(keys.iter_mut().map(|key| &mut key.expr));
        for expr in exprs {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = replaced(taken, &before, groups);
        }
        levels.above(plan)
    }
}

/// The tree with every part that equals one of `before` replaced by its partner.
fn replaced(mut expr: Expr, before: &[Expr], after: &[Expr]) -> Expr {
    if let Some(at) = before.iter().position(|group| *group == expr) {
        return after[at].clone();
    }
    for child in expr.children_mut() {
        let taken = std::mem::replace(child, Expr::bool(false));
        *child = replaced(taken, before, after);
    }
    expr
}
