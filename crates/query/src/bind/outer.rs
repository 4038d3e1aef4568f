//! What a subquery takes from the query levels around it.

use super::binder::Binder;
use crate::plan::{ColId, CteId, Plan, SubqueryKind};
use ahash::AHashSet;
use basalt_expr::tree::Expr;
use basalt_types::DataType;

/// What has been met below a subquery, nested ones and WITH queries included.
#[derive(Default)]
struct Met {
    own: AHashSet<ColId>,
    used: Vec<(ColId, DataType)>,
    subqueries: AHashSet<ColId>,
    ctes: AHashSet<CteId>,
}

impl Binder<'_> {
    /// Columns that a subquery uses and does not define.
    pub(super) fn outer_columns(&self, id: ColId) -> Vec<(ColId, DataType)> {
        let mut met = Met::default();
        self.meet_subquery(id, &mut met);
        let Met { own, mut used, .. } = met;
        used.retain(|(id, _)| !own.contains(id));
        used
    }

    fn meet_subquery(&self, id: ColId, met: &mut Met) {
        let Some(subquery) = self.subqueries.get(&id).filter(|_| met.subqueries.insert(id)) else { return };
        self.meet_plan(&subquery.plan, met);
        if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &subquery.kind {
            self.meet_holes(condition, met);
        }
    }

    fn meet_plan(&self, plan: &Plan, met: &mut Met) {
        crate::lower::defined(plan, &mut met.own);
        let mut exprs = Vec::new();
        plan.clone().rewrite_exprs(&mut |node| {
            if let Expr::Hole { .. } = &node {
                exprs.push(node.clone());
            }
            node
        });
        exprs.iter().for_each(|hole| self.meet_holes(hole, met));
        self.meet_ctes(plan, met);
    }

    fn meet_ctes(&self, plan: &Plan, met: &mut Met) {
        if let Plan::Shared { cte, .. } = plan
            && met.ctes.insert(*cte)
            && let Some(cte) = self.shared.get(cte)
        {
            self.meet_plan(&cte.plan, met);
        }
        plan.inputs().into_iter().for_each(|input| self.meet_ctes(input, met));
    }

    fn meet_holes(&self, expr: &Expr, met: &mut Met) {
        expr.walk(&mut |node| {
            if let Expr::Hole { id, ty } = node {
                if self.subqueries.contains_key(id) {
                    self.meet_subquery(*id, met);
                } else if !met.used.iter().any(|(known, _)| known == id) {
                    met.used.push((*id, ty.clone()));
                }
            }
            true
        });
    }
}
