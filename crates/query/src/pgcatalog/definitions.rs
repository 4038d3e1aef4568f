//! Catalog objects as SQL text.

use super::names::Scope;
use super::relations::{self, Relation};
use super::{procs, typing};
use crate::session::names::quote_identifier;
use basalt_engine::{Catalog, ViewDef};
use basalt_types::TableDef;
use basalt_types::schema::PrimaryKey;

fn key_columns(table: &TableDef, key: &PrimaryKey) -> String {
    let names = key.columns.iter().map(|column| quote_identifier(&table.column(*column).name));
    names.collect::<Vec<_>>().join(", ")
}

/// `CREATE INDEX` of a primary key.
pub(super) fn create_index(catalog: &Catalog, table: &TableDef, key: &PrimaryKey, qualified: bool) -> String {
    let name = quote_identifier(&key.constraint_name);
    let schema = catalog.namespaces.get(&table.namespace).filter(|_| qualified);
    let schema = schema.map_or(String::new(), |namespace| format!("{}.", quote_identifier(&namespace.name)));
    let table_name = quote_identifier(&table.name);
    format!("CREATE UNIQUE INDEX {name} ON {schema}{table_name} USING btree ({})", key_columns(table, key))
}

/// `pg_get_indexdef`: the whole index, or one of its columns (from 1).
pub(super) fn index(scope: Scope, oid: u32, column: i32, pretty: bool) -> Option<String> {
    let Relation::Index(table, key) = relations::by_oid(scope.catalog, oid)? else { return None };
    if column != 0 {
        let id = usize::try_from(column - 1).ok().and_then(|index| key.columns.get(index));
        return Some(id.map_or(String::new(), |id| quote_identifier(&table.column(*id).name)));
    }
    let visible = scope.relation_is_visible(table.id.0) == Some(true);
    Some(create_index(scope.catalog, table, key, !(pretty && visible)))
}

/// `pg_get_constraintdef`.
pub(super) fn constraint(catalog: &Catalog, oid: u32) -> Option<String> {
    let Relation::Index(table, key) = relations::by_oid(catalog, oid)? else { return None };
    Some(format!("PRIMARY KEY ({})", key_columns(table, key)))
}

/// `pg_get_viewdef`: the body as it was written, names qualified.
pub(super) fn view_body(view: &ViewDef) -> String {
    format!(" {};", view.sql.trim().trim_end_matches(';'))
}

pub(super) fn view(catalog: &Catalog, oid: u32) -> Option<String> {
    match relations::by_oid(catalog, oid)? {
        Relation::View(view) => Some(view_body(view)),
        Relation::Virtual(table) if table.is_view => Some(String::new()),
        _ => None,
    }
}

/// `pg_get_function_result`.
pub(super) fn function_result(oid: u32) -> Option<String> {
    let proc = procs::by_oid(oid)?;
    let name = typing::format_type(proc.ret, None)?;
    Some(if proc.set { format!("SETOF {name}") } else { name })
}

/// `pg_get_function_arguments`.
pub(super) fn function_arguments(oid: u32) -> Option<String> {
    let proc = procs::by_oid(oid)?;
    let last = proc.args.len().saturating_sub(1);
    let named = proc.args.iter().enumerate().map(|(index, arg)| {
        let name = typing::format_type(*arg, None).unwrap_or_else(|| "-".to_string());
        if proc.variadic.is_some() && index == last { format!("VARIADIC {name}") } else { name }
    });
    Some(named.collect::<Vec<_>>().join(", "))
}
