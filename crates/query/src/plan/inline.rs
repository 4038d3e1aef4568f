//! WITH queries that one reference reads become part of the query that refers to them, as PostgreSQL's planner
//! has it: what is written MATERIALIZED, calls something volatile or is read twice is computed once, apart.

use super::{ColId, Cte, CteId, Plan, Query, Subquery};
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use std::collections::BTreeMap;

impl Query {
    /// Puts WITH queries in the place of their only reference, and drops those that nobody reads.
    pub fn inline_ctes(&mut self) {
        if self.ctes.is_empty() {
            return;
        }
        let mut ctes = std::mem::take(&mut self.ctes);
        ctes.retain(|_, cte| cte.references > 0);
        let apart: Vec<CteId> = ctes
            .iter()
            .filter(|(_, cte)| cte.references > 1 || cte.materialized || is_volatile(&cte.plan, &self.subqueries))
            .map(|(id, _)| *id)
            .collect();
        let mut kept: BTreeMap<CteId, Cte> = BTreeMap::new();
        for id in apart {
            kept.extend(ctes.remove(&id).map(|cte| (id, cte)));
        }
        inline(&mut self.plan, &mut ctes);
        self.subqueries.values_mut().for_each(|subquery| inline(&mut subquery.plan, &mut ctes));
        kept.values_mut().for_each(|cte| inline(&mut cte.plan, &mut ctes));
        self.ctes = kept;
    }
}

fn inline(plan: &mut Plan, ctes: &mut BTreeMap<CteId, Cte>) {
    if let Plan::Shared { cte, columns } = plan
        && let Some(mut found) = ctes.remove(cte)
    {
        inline(&mut found.plan, ctes);
        let pairs = columns.iter().zip(&found.columns);
        let exprs = pairs.map(|((id, ty), (own, _))| (*id, Expr::Hole { id: *own, ty: ty.clone() })).collect();
        *plan = Plan::Project { input: Box::new(found.plan), exprs };
        return;
    }
    plan.inputs_mut().into_iter().for_each(|input| inline(input, ctes));
}

/// Whether running the plan twice may give two answers, subqueries included.
pub fn is_volatile(plan: &Plan, subqueries: &BTreeMap<ColId, Subquery>) -> bool {
    let mut volatile = false;
    let mut nested = Vec::new();
    plan.clone().rewrite_exprs(&mut |node| {
        match &node {
            Expr::Call { function, .. } => volatile |= function.volatility == Volatility::Volatile,
            Expr::Hole { id, .. } => nested.push(*id),
            _ => {}
        }
        node
    });
    volatile || nested.iter().filter_map(|id| subqueries.get(id)).any(|inner| is_volatile(&inner.plan, subqueries))
}
