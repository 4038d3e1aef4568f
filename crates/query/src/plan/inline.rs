//! WITH queries that one reference reads become part of the query that refers to them, as PostgreSQL's planner
//! has it: what is written MATERIALIZED, calls something volatile or is read twice is computed once, apart.

use super::{ColId, Cte, CteId, Plan, Query, Subquery};
use basalt_engine::RowLock;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::ObjectId;
use std::collections::BTreeMap;

impl Query {
    /// Counts how often each WITH query is referred to by this query and by those that it reads; drops the others.
    pub fn count_references(&mut self) {
        let mut counts: BTreeMap<CteId, usize> = BTreeMap::new();
        count(&self.plan, &mut counts);
        self.subqueries.values().for_each(|subquery| count(&subquery.plan, &mut counts));
        // One that reads another has the greater number.
        for (id, cte) in self.ctes.iter().rev() {
            if counts.contains_key(id) {
                count(&cte.plan, &mut counts);
            }
        }
        self.ctes.retain(|id, cte| {
            cte.references = counts.get(id).copied().unwrap_or(0);
            cte.references > 0
        });
    }

    /// Tables whose rows are locked, in the order of the plan.
    pub fn locked_tables(&self) -> Vec<(ObjectId, RowLock)> {
        let mut out = Vec::new();
        let plans = self.ctes.values().map(|cte| &cte.plan);
        let plans = plans.chain(self.subqueries.values().map(|subquery| &subquery.plan));
        plans.chain([&self.plan]).for_each(|plan| locks(plan, &mut out));
        out
    }

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

fn count(plan: &Plan, counts: &mut BTreeMap<CteId, usize>) {
    if let Plan::Shared { cte, .. } = plan {
        *counts.entry(*cte).or_default() += 1;
    }
    plan.inputs().into_iter().for_each(|input| count(input, counts));
}

fn locks(plan: &Plan, out: &mut Vec<(ObjectId, RowLock)>) {
    if let Plan::LockRows(step) = plan {
        out.extend(step.targets.iter().map(|target| (target.table.id, target.strength)));
    }
    plan.inputs().into_iter().for_each(|input| locks(input, out));
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
