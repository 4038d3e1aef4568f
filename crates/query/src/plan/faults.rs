//! Which error a query ends with where several of its constants fail.
//!
//! PostgreSQL computes constants as it plans: WITH queries first, then of each SELECT what it gives, its conditions in
//! the order of the text (joins, WHERE, HAVING), its LIMIT, and then what its FROM leaves to be planned by itself.
//! Basalt computes them from the sources upwards; when one fails, this looks for the one that PostgreSQL meets first.

use super::{Plan, Query, SubqueryKind};
use crate::error::SqlError;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;

impl Query {
    /// The error of the constants that are computed first among those that fail.
    pub fn first_fault(&self, eval: &EvalContext) -> Option<SqlError> {
        let search = Search { query: self, eval };
        let mut ctes = self.ctes.values().map(|cte| &cte.plan);
        // Of a copy: expressions of plans are listed to be changed.
        ctes.find_map(|plan| search.plan(&mut plan.clone())).or_else(|| search.plan(&mut self.plan.clone()))
    }
}

struct Search<'q> {
    query: &'q Query,
    eval: &'q EvalContext,
}

impl Search<'_> {
    fn plan(&self, plan: &mut Plan) -> Option<SqlError> {
        let reads_first = has_inputs_first(plan);
        let own = |plan: &mut Plan| self.exprs(plan.exprs_mut());
        let inputs = |plan: &mut Plan| plan.inputs_mut().into_iter().find_map(|input| self.plan(input));
        if let Plan::Window { calls, .. } = plan {
            let mut offsets: Vec<Option<Expr>> =
                calls.iter_mut().flat_map(|(_, call)| call.offsets.each_mut().map(Option::take)).collect();
            return own(plan).or_else(|| inputs(plan)).or_else(|| self.exprs(offsets.iter_mut().flatten()));
        }
        match reads_first {
            true => inputs(plan).or_else(|| own(plan)),
            false => own(plan).or_else(|| inputs(plan)),
        }
    }

    /// Those of one place: what they ask of subqueries comes behind all of them.
    fn exprs<'e>(&self, exprs: impl IntoIterator<Item = &'e mut Expr>) -> Option<SqlError> {
        let exprs: Vec<&Expr> = exprs.into_iter().map(|expr| &*expr).collect();
        let fault = exprs.iter().find_map(|expr| expr.check_constants(self.eval).err());
        if let Some(fault) = fault {
            return Some(fault.into());
        }
        let mut asked = Vec::new();
        for expr in exprs {
            // What planning leaves out, branches that are never taken, asks nothing.
            let Ok(planned) = expr.clone().fold_strict(self.eval) else { continue };
            planned.walk(&mut |node| {
                if let Expr::Hole { id, .. } = node {
                    asked.extend(self.query.subqueries.get(id));
                }
                true
            });
        }
        asked.into_iter().find_map(|subquery| {
            let compared = match subquery.kind.clone() {
                SubqueryKind::Any { mut condition, .. } | SubqueryKind::All { mut condition, .. } => {
                    self.exprs([&mut condition])
                }
                _ => None,
            };
            compared.or_else(|| self.plan(&mut subquery.plan.clone()))
        })
    }
}

/// Whether what it reads belongs to the same SELECT, and comes before it there.
fn has_inputs_first(plan: &Plan) -> bool {
    match plan {
        Plan::Join { .. } | Plan::Limit { .. } | Plan::LockRows(_) => true,
        Plan::Filter { input, .. } => matches!(
            **input,
            Plan::Join { .. } | Plan::Filter { .. } | Plan::Aggregate { .. } | Plan::ProjectSet { .. }
        ),
        _ => false,
    }
}
