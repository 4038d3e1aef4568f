//! Grouping: expressions above an aggregation see its groups and results, nothing else of its input.

use super::binder::Binder;
use super::position;
use crate::error::{Result, SqlError};
use crate::plan::{AggregateCall, ColId, Plan};
use basalt_expr::tree::Expr;

pub(super) struct Grouping {
    pub groups: Vec<Expr>,
    pub aggregates: Vec<(ColId, AggregateCall)>,
}

impl Binder<'_> {
    /// Puts the aggregation over `input` and rewrites `exprs` to stand above it. 42803 for a column that is
    /// neither grouped nor inside an aggregate, unless a grouped primary key determines it.
    pub fn aggregate_plan<'e>(
        &mut self,
        input: Plan,
        grouping: Grouping,
        exprs: impl Iterator<Item = &'e mut Expr>,
    ) -> Result<Plan> {
        let available = input.columns();
        let is_input = |id: ColId| available.iter().any(|(known, _)| *known == id);
        let mut groups: Vec<(ColId, Expr)> = Vec::with_capacity(grouping.groups.len());
        for expr in grouping.groups {
            let id = match &expr {
                Expr::Hole { id, .. } if is_input(*id) => *id,
                other => {
                    let typmod = self.typmod(other);
                    let id = self.fresh();
                    self.set_typmod(id, typmod);
                    id
                }
            };
            groups.push((id, expr));
        }
        let determined = self.determined_columns(&groups);
        let mut needed: Vec<(ColId, Expr)> = Vec::new();
        for expr in exprs {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = self.above(taken, &groups, &is_input, &determined, &mut needed)?;
        }
        let mut windows = std::mem::take(&mut self.scope().windows);
        for (_, call) in &mut windows {
            for expr in call.exprs_mut() {
                let taken = std::mem::replace(expr, Expr::bool(false));
                *expr = self.above(taken, &groups, &is_input, &determined, &mut needed)?;
            }
        }
        self.scope().windows = windows;
        // Subqueries that are grouped by are computed below.
        let mut input = input;
        let is_subquery = |node: &Expr| matches!(node, Expr::Hole { id, .. } if self.subqueries.contains_key(id));
        let mut computed = Vec::new();
        for (id, expr) in &mut groups {
            if expr.any(&mut |node| is_subquery(node)) {
                let ty = expr.ty();
                computed.push((*id, std::mem::replace(expr, Expr::Hole { id: *id, ty })));
            }
        }
        if !computed.is_empty() {
            let passed = available.iter().map(|(id, ty)| (*id, Expr::Hole { id: *id, ty: ty.clone() }));
            let exprs = passed.chain(computed).collect();
            input = Plan::Project { input: Box::new(input), exprs };
        }
        groups.extend(needed);
        Ok(Plan::Aggregate { input: Box::new(input), groups, aggregates: grouping.aggregates })
    }

    /// Columns of relations whose whole primary key is grouped.
    fn determined_columns(&mut self, groups: &[(ColId, Expr)]) -> Vec<ColId> {
        let grouped =
            |id: &ColId| groups.iter().any(|(_, expr)| matches!(expr, Expr::Hole { id: known, .. } if known == id));
        let relations = self.scope().relations.iter();
        relations
            .filter(|relation| !relation.key.is_empty() && relation.key.iter().all(grouped))
            .flat_map(|relation| relation.columns.iter().map(|column| column.id))
            .collect()
    }

    fn above(
        &mut self,
        mut expr: Expr,
        groups: &[(ColId, Expr)],
        is_input: &dyn Fn(ColId) -> bool,
        determined: &[ColId],
        needed: &mut Vec<(ColId, Expr)>,
    ) -> Result<Expr> {
        if let Some((id, group)) = groups.iter().find(|(_, group)| *group == expr) {
            return Ok(Expr::Hole { id: *id, ty: group.ty() });
        }
        if let Expr::Hole { id, .. } = &expr
            && is_input(*id)
        {
            if !determined.contains(id) {
                return Err(self.not_grouped(*id));
            }
            if !needed.iter().any(|(known, _)| known == id) {
                needed.push((*id, expr.clone()));
            }
            return Ok(expr);
        }
        for child in expr.children_mut() {
            let taken = std::mem::replace(child, Expr::bool(false));
            *child = self.above(taken, groups, is_input, determined, needed)?;
        }
        Ok(expr)
    }

    #[cold]
    fn not_grouped(&mut self, id: ColId) -> SqlError {
        let scope = self.scope();
        let span = scope.seen.iter().find(|(known, _)| *known == id).map(|(_, span)| *span);
        let named = scope.relations.iter().find_map(|relation| {
            let column = relation.columns.iter().find(|column| column.id == id)?;
            Some(format!("{}.{}", relation.name, column.name))
        });
        let message = format!(
            "column \"{}\" must appear in the GROUP BY clause or be used in an aggregate function",
            named.unwrap_or_default()
        );
        SqlError::new("42803", message).at(span.and_then(|span| position::of_span(&self.ctx.sql, span)))
    }
}
