//! The table that a statement writes to, as its names see it: a base table, or a view whose rows are rows of one
//! (PostgreSQL manual, CREATE VIEW, "Updatable Views").

use super::super::binder::Binder;
use super::super::names::{self, Relation};
use super::super::position;
use super::super::scope::{Scope, ScopeColumn, ScopeRelation};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan};
use basalt_engine::ViewDef;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, TableDef};
use sqlparser::ast;
use std::sync::Arc;

/// What is to be done, as errors name it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::bind) enum Verb {
    Insert,
    Update,
    Delete,
    Merge,
}

/// A target with columns of its own ids: bind it again for another look at its rows.
pub(in crate::bind) struct Target {
    pub table: Arc<TableDef>,
    pub relation: ScopeRelation,
    /// The base table's live columns.
    pub base: Vec<(ColId, ColumnId)>,
    /// Columns of a view that are computed from the base table's.
    pub computed: Vec<(ColId, Expr)>,
    /// Conditions of views, over `base`.
    pub conditions: Vec<ViewCondition>,
    /// The view that was named.
    pub view: Option<String>,
}

/// WHERE of a view.
pub(in crate::bind) struct ViewCondition {
    pub view: String,
    pub condition: Expr,
    /// Whether new rows must meet it, too (CHECK OPTION).
    pub checked: bool,
}

impl Binder<'_> {
    /// Binds the name of a target; `alias` qualifies its columns instead of its own name.
    pub fn target(&mut self, name: &ast::ObjectName, alias: Option<&ast::TableAlias>, verb: Verb) -> Result<Target> {
        let relation = self.ctx.relation(name)?;
        let parts = names::parts(name)?;
        let shown = alias.map_or_else(|| parts.last().cloned().unwrap_or_default(), |alias| names::fold(&alias.name));
        match relation {
            Relation::Table(table) => {
                let schema = alias.is_none().then(|| self.schema_name(&table)).flatten();
                let mut target = self.table_target(&table, shown, alias)?;
                target.relation.schema = schema;
                Ok(target)
            }
            Relation::View(view) if verb == Verb::Merge => {
                let message = format!("cannot execute MERGE on relation \"{}\"", view.name);
                Err(SqlError::not_supported(message).with_detail("This operation is not supported for views."))
            }
            Relation::View(view) => {
                let mut target = self.view_target(&view, verb, true)?;
                target.relation.name = shown;
                target.relation.columns =
                    super::super::from::rename_all(std::mem::take(&mut target.relation.columns), alias)?;
                Ok(target)
            }
            Relation::Virtual(table) => {
                let message = format!("permission denied: \"{}\" is a system catalog", table.name);
                Err(SqlError::new("42501", message).at(position::of_name(&self.ctx.sql, name)))
            }
        }
    }

    fn schema_name(&self, table: &TableDef) -> Option<String> {
        self.ctx.catalog.namespaces.get(&table.namespace).map(|namespace| namespace.name.clone())
    }

    /// A base table with fresh columns.
    pub fn table_target(
        &mut self,
        table: &Arc<TableDef>,
        shown: String,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Target> {
        let mut item = self.base_table(table, shown, alias)?;
        let Plan::Scan { columns: base, .. } = item.plan else {
            return Err(SqlError::internal("a base table is not scanned"));
        };
        Ok(Target {
            table: table.clone(),
            relation: item.relations.remove(0),
            base,
            computed: Vec::new(),
            conditions: Vec::new(),
            view: None,
        })
    }

    fn view_target(&mut self, view: &Arc<ViewDef>, verb: Verb, outermost: bool) -> Result<Target> {
        let _ = outermost;
        Err(cannot_change(view, verb, "This view is not automatically updatable."))
    }

    /// The same target with fresh columns.
    pub fn again(&mut self, target: &Target) -> Result<Target> {
        let mut fresh = Vec::with_capacity(target.base.len());
        for (id, column) in &target.base {
            fresh.push((*id, self.fresh(), *column));
        }
        let mut computed = Vec::with_capacity(target.computed.len());
        for (id, expr) in &target.computed {
            computed.push((*id, self.fresh(), rename(expr.clone(), &fresh)));
        }
        let new_id = |id: ColId| {
            let base = fresh.iter().find(|(old, ..)| *old == id).map(|(_, new, _)| *new);
            let known = base.or_else(|| computed.iter().find(|(old, ..)| *old == id).map(|(_, new, _)| *new));
            known.unwrap_or(id)
        };
        let mut relation = target.relation.clone();
        for column in &mut relation.columns {
            column.id = new_id(column.id);
        }
        for id in &mut relation.key {
            *id = new_id(*id);
        }
        let conditions = target.conditions.iter().map(|known| ViewCondition {
            view: known.view.clone(),
            condition: rename(known.condition.clone(), &fresh),
            checked: known.checked,
        });
        Ok(Target {
            table: target.table.clone(),
            relation,
            conditions: conditions.collect(),
            base: fresh.into_iter().map(|(_, new, column)| (new, column)).collect(),
            computed: computed.into_iter().map(|(_, new, expr)| (new, expr)).collect(),
            view: target.view.clone(),
        })
    }
}

impl Target {
    pub fn column_named(&self, name: &str) -> Option<&ScopeColumn> {
        self.relation.columns.iter().find(|column| column.name == name)
    }

    /// The base table's column behind one of the target's; `None` if it is computed.
    pub fn base_column(&self, id: ColId) -> Option<ColumnId> {
        self.base.iter().find(|(known, _)| *known == id).map(|(_, column)| *column)
    }

    /// Reads the rows: through the views' conditions, with computed columns.
    pub fn plan(&self, identity: Option<[ColId; 3]>) -> Plan {
        let mut plan = Plan::Scan { table: self.table.clone(), columns: self.base.clone(), identity };
        for known in &self.conditions {
            plan = Plan::Filter { input: Box::new(plan), condition: known.condition.clone() };
        }
        self.with_computed(plan)
    }

    /// Adds the computed columns to a plan that has the base table's.
    pub fn with_computed(&self, plan: Plan) -> Plan {
        if self.computed.is_empty() {
            return plan;
        }
        let passed = plan.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
        let exprs = passed.chain(self.computed.iter().cloned()).collect();
        Plan::Project { input: Box::new(plan), exprs }
    }

    /// An expression over the target's columns as one over the base table's.
    pub fn inlined(&self, expr: Expr) -> Expr {
        if self.computed.is_empty() {
            return expr;
        }
        expr.rewrite(&mut |node| match &node {
            Expr::Hole { id, .. } => match self.computed.iter().find(|(known, _)| known == id) {
                Some((_, computed)) => computed.clone(),
                None => node,
            },
            _ => node,
        })
    }

    /// Where each column of the base table stands in its row.
    pub fn positions(&self) -> Vec<(ColId, usize)> {
        self.base.iter().map(|(id, column)| (*id, column.position())).collect()
    }

    /// Puts the target in front of what a scope sees.
    pub fn enter(&self, scope: &mut Scope) {
        scope.relations.insert(0, self.relation.clone());
        let others = std::mem::replace(&mut scope.visible, self.relation.columns.clone());
        scope.visible.extend(others);
    }
}

fn rename(expr: Expr, fresh: &[(ColId, ColId, ColumnId)]) -> Expr {
    expr.rewrite(&mut |node| match node {
        Expr::Hole { id, ty } => {
            let new = fresh.iter().find(|(old, ..)| *old == id).map_or(id, |(_, new, _)| *new);
            Expr::Hole { id: new, ty }
        }
        other => other,
    })
}

/// 55000 for a view that is not simple enough.
fn cannot_change(view: &ViewDef, verb: Verb, why: &str) -> SqlError {
    let (what, to, event) = match verb {
        Verb::Insert => ("insert into", "inserting into", "INSERT"),
        Verb::Update | Verb::Merge => ("update", "updating", "UPDATE"),
        Verb::Delete => ("delete from", "deleting from", "DELETE"),
    };
    let hint = format!(
        "To enable {to} the view, provide an INSTEAD OF {event} trigger or an unconditional ON {event} DO INSTEAD rule."
    );
    SqlError::new("55000", format!("cannot {what} view \"{}\"", view.name)).with_detail(why).with_hint(hint)
}
