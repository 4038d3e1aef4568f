//! Subqueries that are written alike at one level mean the same: `GROUP BY (SELECT …)` is what the select list
//! says, too. Each was bound apart, so what equals a grouping or DISTINCT ON expression but for that is replaced.

use super::binder::Binder;
use crate::plan::{ColId, SubqueryKind};
use basalt_expr::tree::Expr;
use sqlparser::ast;

impl Binder<'_> {
    /// Remembers how a subquery was written.
    pub fn note_text(&mut self, hole: &Expr, query: &ast::Query) {
        self.note_compared(hole, "", query);
    }

    /// The same of one that is compared with an operand: `operand` says how.
    pub fn note_compared(&mut self, hole: &Expr, operand: &str, query: &ast::Query) {
        let Expr::Hole { id, .. } = hole else { return };
        let kind = match self.subqueries.get(id).map(|subquery| &subquery.kind) {
            Some(SubqueryKind::Scalar { .. }) => "",
            Some(SubqueryKind::Exists) => "exists",
            Some(SubqueryKind::Any { .. }) if !operand.is_empty() => "any",
            Some(SubqueryKind::All { .. }) if !operand.is_empty() => "all",
            _ => return,
        };
        let text = format!("{}{operand} {kind}{query}", self.scopes.len());
        self.subquery_texts.push((*id, text));
    }

    /// Replaces what equals one of `targets` by it.
    pub fn unify<'e>(&self, targets: &[Expr], exprs: impl Iterator<Item = &'e mut Expr>) {
        let is_subquery = |node: &Expr| matches!(node, Expr::Hole { id, .. } if self.subqueries.contains_key(id));
        let targets: Vec<(Expr, &Expr)> = targets
            .iter()
            .filter(|target| target.any(&mut |node| is_subquery(node)))
            .map(|target| (self.canonical(target.clone()), target))
            .collect();
        if targets.is_empty() {
            return;
        }
        for expr in exprs {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = self.unified(taken, &targets);
        }
    }

    fn unified(&self, mut expr: Expr, targets: &[(Expr, &Expr)]) -> Expr {
        let own = self.canonical(expr.clone());
        if let Some((_, target)) = targets.iter().find(|(canonical, _)| *canonical == own) {
            return (*target).clone();
        }
        for child in expr.children_mut() {
            let taken = std::mem::replace(child, Expr::bool(false));
            *child = self.unified(taken, targets);
        }
        expr
    }

    /// The tree with each subquery under the number of the first that was written so.
    fn canonical(&self, expr: Expr) -> Expr {
        let text = |id: ColId| self.subquery_texts.iter().find(|(known, _)| *known == id).map(|(_, text)| text);
        let first = |id: ColId| {
            let text = text(id)?;
            self.subquery_texts.iter().find(|(_, other)| other == text).map(|(first, _)| *first)
        };
        expr.rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => Expr::Hole { id: first(id).unwrap_or(id), ty },
            other => other,
        })
    }
}
