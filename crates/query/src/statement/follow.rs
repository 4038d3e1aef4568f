//! Views follow renames: a view keeps its text, so where a table, a view or a column gets another name, the text is
//! written anew, as PostgreSQL's deparsing would show it: `FROM new_name AS old_name (old_column, …)`.

use crate::syntax::{fold, parse_query_text};
use basalt_engine::{Catalog, ViewDef};
use basalt_types::ObjectId;
use sqlparser::ast::{self, Ident, ObjectName, ObjectNamePart, TableAliasColumnDef, TableFactor, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// The view as it must be after the change; `None` if it need not be written anew. With `columns`, columns that got
/// other names keep their old ones in the text.
pub(super) fn after_change(view: &ViewDef, before: &Catalog, after: &Catalog, columns: bool) -> Option<ViewDef> {
    let mut query = parse_query_text(&view.sql).ok()?;
    let mut rewriter = Rewriter { database: database_of(view, before)?, before, after, columns, changed: false };
    let _ = query.visit(&mut rewriter);
    rewriter.changed.then(|| ViewDef { sql: query.to_string(), ..view.clone() })
}

fn database_of(view: &ViewDef, catalog: &Catalog) -> Option<ObjectId> {
    catalog.namespaces.get(&view.namespace).map(|namespace| namespace.database)
}

struct Rewriter<'a> {
    database: ObjectId,
    before: &'a Catalog,
    after: &'a Catalog,
    columns: bool,
    changed: bool,
}

/// A relation before and after the change: schema and name now, and its columns.
struct Renamed {
    schema: String,
    name: String,
    /// Each column before: its name, and its name now if it is still there.
    columns: Vec<(String, Option<String>)>,
}

impl Rewriter<'_> {
    fn relation(&self, schema: &str, name: &str) -> Option<Renamed> {
        let namespace = self.before.namespace_named(self.database, schema)?;
        if let Some(table) = self.before.table_named(namespace.id, name) {
            let now = self.after.tables.get(&table.id)?;
            let live = |id| now.live_columns().find(|column| column.id == id).map(|column| column.name.clone());
            return Some(Renamed {
                schema: self.after.namespaces.get(&now.namespace)?.name.clone(),
                name: now.name.clone(),
                columns: table.live_columns().map(|column| (column.name.clone(), live(column.id))).collect(),
            });
        }
        let view = self.before.view_named(namespace.id, name)?;
        let now = self.after.views.get(&view.id)?;
        let pairs = view.columns.iter().enumerate();
        Some(Renamed {
            schema: self.after.namespaces.get(&now.namespace)?.name.clone(),
            name: now.name.clone(),
            columns: pairs
                .map(|(at, (name, _))| (name.clone(), now.columns.get(at).map(|(name, _)| name.clone())))
                .collect(),
        })
    }

    fn rewrite(&mut self, name: &mut ObjectName, alias: &mut Option<ast::TableAlias>) {
        let [ObjectNamePart::Identifier(schema), ObjectNamePart::Identifier(relation)] = name.0.as_slice() else {
            return;
        };
        let own = |ident: &Ident| fold(&ident.value, ident.quote_style.is_some());
        let (schema, relation) = (own(schema), own(relation));
        let Some(now) = self.relation(&schema, &relation) else { return };
        let shown = |alias: &mut Option<ast::TableAlias>| {
            alias.get_or_insert_with(|| ast::TableAlias {
                explicit: true,
                name: Ident::with_quote('"', relation.clone()),
                columns: Vec::new(),
                at: None,
            });
        };
        let listed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
        let renamed = now.columns.iter().any(|(before, now)| now.as_ref().is_some_and(|now| now != before));
        let dropped = now.columns.iter().any(|(_, now)| now.is_none());
        if (listed && dropped) || (self.columns && renamed) {
            shown(alias);
            if let Some(alias) = alias {
                let given: Vec<Ident> = alias.columns.iter().map(|column| column.name.clone()).collect();
                let columns = now.columns.iter().enumerate().filter(|(_, (_, now))| now.is_some());
                alias.columns = columns
                    .map(|(at, (before, _))| TableAliasColumnDef {
                        name: given.get(at).cloned().unwrap_or_else(|| Ident::with_quote('"', before.clone())),
                        data_type: None,
                    })
                    .collect();
            }
            self.changed = true;
        }
        if now.schema != schema || now.name != relation {
            shown(alias);
            let part = |text: &str| ObjectNamePart::Identifier(Ident::with_quote('"', text));
            name.0 = vec![part(&now.schema), part(&now.name)];
            self.changed = true;
        }
    }
}

impl VisitorMut for Rewriter<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor {
            self.rewrite(name, alias);
        }
        ControlFlow::Continue(())
    }
}
