//! RETURNING: expressions over the row as it was written, and over what the search found beside it.

use super::super::binder::Binder;
use super::super::scope::{Clause, Scope, ScopeColumn, ScopeRelation};
use super::target::Target;
use super::{Returning, over_row};
use crate::error::Result;
use crate::plan::{ColId, OutputColumn, Plan, SubqueryKind};
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast;
use std::sync::Arc;

/// What FROM or USING brings into scope beside the target.
#[derive(Default)]
pub(in crate::bind) struct Beside {
    pub relations: Vec<ScopeRelation>,
    pub visible: Vec<ScopeColumn>,
    /// All columns that its plan outputs.
    pub columns: Columns,
}

/// Columns by id, with their types.
pub(in crate::bind) type Columns = Vec<(ColId, DataType)>;

impl Binder<'_> {
    /// Binds the clause when no other part of the statement has subqueries that are not taken yet. Gives the columns
    /// of `beside` that it uses, in the order in which they follow the row.
    pub fn returning(
        &mut self,
        target: &Target,
        beside: &Beside,
        items: Option<&[ast::SelectItem]>,
    ) -> Result<(Option<Returning>, Columns)> {
        let Some(items) = items else { return Ok((None, Vec::new())) };
        let target = self.again(target)?;
        let mut scope = Scope::new(Clause::Returning);
        scope.relations.clone_from(&beside.relations);
        scope.visible.clone_from(&beside.visible);
        target.enter(&mut scope);
        self.scopes.push(scope);
        let items = self.items(items, false);
        self.scopes.pop();
        let items = items?;
        let mut columns = Vec::with_capacity(items.len());
        let mut exprs = Vec::with_capacity(items.len());
        for item in items {
            let (table_oid, column_no) = item.source;
            let (ty, typmod) = (item.expr.ty(), self.typmod(&item.expr));
            columns.push(OutputColumn { id: self.fresh(), name: item.name, ty, typmod, table_oid, column_no });
            exprs.push(item.expr);
        }
        let used = self.used_of(&exprs, &beside.columns);
        if !self.subqueries.is_empty() {
            let base = target.base.iter().map(|(id, column)| (*id, target.table.column(*column).ty.clone()));
            let given = Plan::Given { slot: Plan::WRITTEN, columns: base.chain(used.iter().cloned()).collect() };
            let exprs = columns.iter().map(|column| column.id).zip(exprs).collect();
            let plan = Plan::Project { input: Box::new(target.with_computed(given)), exprs };
            let query = Arc::new(self.take_query(plan, columns.clone()));
            return Ok((Some(Returning { columns, exprs: Vec::new(), query: Some(query) }), used));
        }
        let mut places = target.positions();
        let width = target.table.columns.len();
        places.extend(used.iter().enumerate().map(|(index, (id, _))| (*id, width + index)));
        let exprs = exprs.into_iter().map(|expr| over_row(target.inlined(expr), &places).fold(&self.ctx.eval, false));
        let exprs = exprs.collect();
        Ok((Some(Returning { columns, exprs, query: None }), used))
    }

    /// Those of `columns` that expressions use, themselves or in their subqueries.
    fn used_of(&self, exprs: &[Expr], columns: &[(ColId, DataType)]) -> Vec<(ColId, DataType)> {
        let mut used: Vec<(ColId, DataType)> = Vec::new();
        let mut note = |node: Expr| {
            if let Expr::Hole { id, .. } = &node
                && let Some(column) = columns.iter().find(|(known, _)| known == id)
                && !used.iter().any(|(known, _)| known == id)
            {
                used.push(column.clone());
            }
            node
        };
        for expr in exprs {
            expr.clone().rewrite(&mut note);
        }
        for subquery in self.subqueries.values() {
            subquery.plan.clone().rewrite_exprs(&mut note);
            if let SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } = &subquery.kind {
                condition.clone().rewrite(&mut note);
            }
        }
        used
    }
}
