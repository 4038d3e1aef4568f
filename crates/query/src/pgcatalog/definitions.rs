//! Catalog objects as SQL text.

use super::names::Scope;
use super::relations::{self, Relation};
use super::{SystemContext, procs, typing};
use crate::bind::{self, BindContext};
use crate::session::names::quote_identifier;
use basalt_engine::{Catalog, ViewDef};
use basalt_expr::tree::Expr;
use basalt_types::schema::{CheckDef, PrimaryKey};
use basalt_types::{ColumnDef, DataType, TableDef};
use std::sync::Arc;

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
pub(super) fn constraint(system: &SystemContext, oid: u32) -> Option<String> {
    let catalog = &system.catalog;
    let checks = catalog.tables.values().flat_map(|table| &table.checks);
    if let Some(check) = checks.into_iter().find(|check| check.id.0 == oid) {
        let mut text = format!("CHECK (({}))", expression(system, &check.sql));
        text.push_str(if check.no_inherit { " NO INHERIT" } else { "" });
        text.push_str(if check.validated { "" } else { " NOT VALID" });
        return Some(text);
    }
    let Relation::Index(table, key) = relations::by_oid(catalog, oid)? else { return None };
    Some(format!("PRIMARY KEY ({})", key_columns(table, key)))
}

/// `pg_get_expr`: kept text, with sequences by name.
pub(super) fn expression(system: &SystemContext, sql: &str) -> String {
    const END: &str = "'::";
    let mut out = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some(at) = rest.find('\'') {
        let digits: String = rest[at + 1..].chars().take_while(char::is_ascii_digit).collect();
        let after = &rest[at + 1 + digits.len()..];
        let names_one = !digits.is_empty()
            && after.starts_with(END)
            && after[END.len()..].get(..8).is_some_and(|word| word.eq_ignore_ascii_case("regclass"));
        let name = digits.parse().ok().filter(|_| names_one);
        let name = name.and_then(|oid| super::names::name_of(Scope::of(system), &DataType::Regclass, oid));
        match name {
            Some(name) => {
                out.push_str(&rest[..at]);
                out.push_str(&format!("'{}'::regclass", name.replace('\'', "''")));
                rest = &after[END.len() + 8..];
            }
            None => {
                out.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// What kept expressions are bound against.
fn bind_context(system: &SystemContext) -> BindContext {
    BindContext {
        catalog: system.catalog.clone(),
        database: Scope::of(system).database,
        search_path: system.lookup_path.clone(),
        registry: system.db.registry().clone(),
        eval: Arc::new(basalt_expr::EvalContext::at(0)),
        sql: Arc::from(""),
    }
}

fn numbers(bound: crate::error::Result<Expr>) -> Vec<i16> {
    let columns = bound.map(|bound| bind::columns_of(&bound)).unwrap_or_default();
    let mut columns: Vec<i16> = columns.iter().map(|id| id.0 as i16).collect();
    columns.sort_unstable();
    columns
}

/// Numbers of the columns that a condition reads.
pub(super) fn check_columns(system: &SystemContext, table: &Arc<TableDef>, check: &CheckDef) -> Vec<i16> {
    let expr = crate::syntax::parse_expr_text(&check.sql);
    numbers(expr.and_then(|expr| bind::bind_check(&bind_context(system), table, &expr)))
}

/// Numbers of the columns that a generated column is computed from.
pub(super) fn generated_columns(
    system: &SystemContext,
    table: &Arc<TableDef>,
    column: &ColumnDef,
    sql: &str,
) -> Vec<i16> {
    let expr = crate::syntax::parse_expr_text(sql);
    let ctx = bind_context(system);
    numbers(expr.and_then(|expr| bind::bind_generated(&ctx, table, &column.name, &column.ty, &expr)))
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
