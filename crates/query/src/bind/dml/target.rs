//! The table that a statement writes to, as its names see it: a base table, or a view whose rows are rows of one
//! (PostgreSQL manual, CREATE VIEW, "Updatable Views").

use super::super::binder::Binder;
use super::super::index_terms::{self, IndexTerms};
use super::super::names::{self, Relation};
use super::super::position;
use super::super::scope::{Clause, Scope, ScopeColumn, ScopeRelation};
use super::own_values::Overriding;
use super::updatable;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan};
use basalt_engine::{CheckOption, ViewDef, privilege};
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, ObjectId, TableDef};
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

/// A target with columns of its own ids.
pub(in crate::bind) struct Target {
    /// As the statement names it.
    name: ast::ObjectName,
    alias: Option<ast::TableAlias>,
    verb: Verb,
    pub table: Arc<TableDef>,
    pub relation: ScopeRelation,
    /// The base table's live columns.
    pub base: Vec<(ColId, ColumnId)>,
    /// Of the base table.
    terms: Arc<[IndexTerms]>,
    /// Columns of a view that are computed from the base table's.
    pub computed: Vec<(ColId, Expr)>,
    /// Conditions of views, over `base`, the innermost first.
    pub conditions: Vec<ViewCondition>,
    /// The view that was named.
    pub view: Option<String>,
    pub overriding: Overriding,
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
        self.needs_of_next_target();
        self.target_with(name, alias, verb, true)
    }

    /// The same target with fresh columns, without the conditions of views.
    pub fn again(&mut self, target: &Target) -> Result<Target> {
        self.target_with(&target.name, target.alias.as_ref(), target.verb, false)
    }

    fn target_with(
        &mut self,
        name: &ast::ObjectName,
        alias: Option<&ast::TableAlias>,
        verb: Verb,
        conditions: bool,
    ) -> Result<Target> {
        let parts = names::parts(name)?;
        let shown = alias.map_or_else(|| parts.last().cloned().unwrap_or_default(), |alias| names::fold(&alias.name));
        self.check_schema(&parts, position::of_name(&self.ctx.sql, name))?;
        match self.ctx.relation(name)? {
            Relation::Table(table) if table.materialized.is_some() && verb == Verb::Merge => {
                let message = format!("cannot execute MERGE on relation \"{}\"", table.name);
                Err(SqlError::not_supported(message)
                    .with_detail("This operation is not supported for materialized views."))
            }
            Relation::Table(table) => {
                let schema = alias.is_none().then(|| self.schema_name(&table)).flatten();
                let mut target = self.table_target(&table, shown, alias)?;
                target.relation.schema = schema;
                self.need_of_target(&target, table.id, verb, conditions);
                (target.name, target.alias, target.verb) = (name.clone(), alias.cloned(), verb);
                Ok(target)
            }
            Relation::View(view) if verb == Verb::Merge => {
                let message = format!("cannot execute MERGE on relation \"{}\"", view.name);
                Err(SqlError::not_supported(message).with_detail("This operation is not supported for views."))
            }
            Relation::View(view) => {
                let mut target = self.inside_view(&view, |binder| binder.view_target(&view, verb, conditions))?;
                self.need_of_target(&target, view.id, verb, conditions);
                target.relation.name = shown;
                target.relation.columns =
                    super::super::from::rename_all(std::mem::take(&mut target.relation.columns), alias)?;
                (target.name, target.alias, target.verb) = (name.clone(), alias.cloned(), verb);
                Ok(target)
            }
            Relation::Sequence(sequence) => {
                let message = format!("cannot change sequence \"{}\"", sequence.name);
                Err(SqlError::new("42809", message))
            }
            Relation::Virtual(table) => {
                let message = format!("permission denied: \"{}\" is a system catalog", table.name);
                Err(SqlError::new("42501", message).at(position::of_name(&self.ctx.sql, name)))
            }
        }
    }

    /// Notes what a command does to its target; `first`: the target is bound for the first time.
    fn need_of_target(&mut self, target: &Target, relation: ObjectId, verb: Verb, first: bool) {
        let columns = target.relation.columns.iter().map(|column| (column.id, column.column_no));
        if !first {
            return self.need_again(relation, columns);
        }
        let wanted = match verb {
            Verb::Insert => privilege::INSERT,
            Verb::Update => privilege::UPDATE,
            Verb::Delete => privilege::DELETE,
            // WHEN clauses say.
            Verb::Merge => 0,
        };
        let own = target.relation.columns.iter();
        let of_base = own.filter_map(|column| Some((target.base_column(column.id)?.0 as i16, column.column_no)));
        self.need_of_command(relation, wanted, columns, of_base.collect());
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
            name: ast::ObjectName::from(vec![ast::Ident::with_quote('"', &table.name)]),
            alias: None,
            verb: Verb::Update,
            table: table.clone(),
            relation: item.relations.remove(0),
            base,
            terms: index_terms::of_table(self.ctx, table),
            computed: Vec::new(),
            conditions: Vec::new(),
            view: None,
            overriding: Overriding::default(),
        })
    }

    /// The target below a view, with the view's columns.
    fn view_target(&mut self, view: &Arc<ViewDef>, verb: Verb, conditions: bool) -> Result<Target> {
        if view.is_barrier() && conditions {
            let message = format!("changing rows of view \"{}\" is not supported: it is a security barrier", view.name);
            return Err(SqlError::not_supported(message));
        }
        let query = super::super::parse_query(&view.sql)?;
        let (name, alias, select) = updatable::parts(&query).map_err(|why| cannot_change(view, verb, why))?;
        if matches!(self.ctx.relation(name), Ok(Relation::Table(table)) if table.materialized.is_some()) {
            return Err(cannot_change(view, verb, updatable::NOT_ONE_RELATION));
        }
        let mut target = self.target_with(name, alias, verb, conditions)?;
        let mut scope = Scope::new(Clause::Select);
        target.enter(&mut scope);
        self.scopes.push(scope);
        let items = self.items(&select.projection, false);
        let scope = self.scopes.pop();
        let items = items.map_err(|error| SqlError { position: None, ..error })?;
        if scope.is_some_and(|scope| !scope.aggregates.is_empty() || !scope.windows.is_empty()) {
            return Err(cannot_change(view, verb, updatable::AGGREGATES));
        }
        if conditions && let Some(selection) = &select.selection {
            let mut scope = Scope::new(Clause::Where);
            target.enter(&mut scope);
            self.scopes.push(scope);
            let condition = self.condition("WHERE", selection);
            self.scopes.pop();
            let condition = condition.map_err(|error| SqlError { position: None, ..error })?;
            let condition = target.inlined(condition);
            target.conditions.push(ViewCondition { view: view.name.clone(), condition, checked: false });
        }
        if view.check_option == CheckOption::Cascaded {
            target.conditions.iter_mut().for_each(|condition| condition.checked = true);
        } else if view.check_option == CheckOption::Local
            && let Some(own) = target.conditions.last_mut().filter(|own| own.view == view.name)
        {
            own.checked = true;
        }
        let mut columns = Vec::with_capacity(items.len());
        for (item, (name, ty)) in items.into_iter().zip(&view.columns) {
            let typmod = self.typmod(&item.expr);
            let id = match &item.expr {
                Expr::Hole { id, .. } if target.relation.columns.iter().any(|column| column.id == *id) => *id,
                Expr::Call { function, .. } if function.returns_set => {
                    let why = "Views that return set-returning functions are not automatically updatable.";
                    return Err(cannot_change(view, verb, why));
                }
                expr => {
                    let (id, expr) = (self.fresh(), target.inlined(expr.clone()));
                    target.computed.push((id, expr));
                    id
                }
            };
            let (name, ty) = (name.clone(), ty.clone());
            columns.push(ScopeColumn { name, id, ty, typmod, table_oid: view.id.0, column_no: 0 });
        }
        for (index, column) in columns.iter_mut().enumerate() {
            column.column_no = i16::try_from(index + 1).unwrap_or(0);
        }
        let updatable = columns.iter().any(|column| target.base_column(column.id).is_some());
        if !updatable && verb != Verb::Delete {
            return Err(cannot_change(
                view,
                verb,
                "Views that have no updatable columns are not automatically updatable.",
            ));
        }
        target.relation.columns = columns;
        target.relation.oid = view.id.0;
        target.relation.schema = None;
        target.relation.key = Vec::new();
        target.view = Some(view.name.clone());
        Ok(target)
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
        let (table, columns, terms) = (self.table.clone(), self.base.clone(), self.terms.clone());
        let mut plan = Plan::Scan { table, columns, identity, terms };
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
