//! Catalog objects as SQL text.

use super::indexes::{self, Index};
use super::names::Scope;
use super::relations::{self, Relation};
use super::{SystemContext, procs, typing};
use crate::bind::{self, BindContext};
use basalt_engine::{Catalog, ViewDef};
use basalt_expr::tree::Expr;
use basalt_types::schema::CheckDef;
use basalt_types::{ColumnDef, DataType, TableDef};
use std::sync::Arc;

/// `pg_get_indexdef`: the whole index, or one of its columns (from 1).
pub(super) fn index(system: &SystemContext, oid: u32, column: i32, pretty: bool) -> Option<String> {
    let Relation::Index(table, index) = relations::by_oid(&system.catalog, oid)? else { return None };
    if column != 0 {
        let number = usize::try_from(column).unwrap_or(usize::MAX);
        return Some(index.column_definition(system, table, number));
    }
    let visible = Scope::of(system).relation_is_visible(table.id.0) == Some(true);
    Some(index.definition(system, table, !(pretty && visible)))
}

/// `pg_get_constraintdef`.
pub(super) fn constraint(system: &SystemContext, oid: u32) -> Option<String> {
    let catalog = &system.catalog;
    let checks = catalog.tables.values().flat_map(|table| &table.checks);
    if let Some(check) = checks.into_iter().find(|check| check.id.0 == oid) {
        let mut text = format!("CHECK ({})", indexes::in_parens(&expression(system, &check.sql)));
        text.push_str(if check.no_inherit { " NO INHERIT" } else { "" });
        text.push_str(if check.validated { "" } else { " NOT VALID" });
        return Some(text);
    }
    for table in catalog.tables.values() {
        if let Some(key) = table.foreign_keys.iter().find(|key| key.id.0 == oid) {
            let scope = Scope::of(system);
            let is_visible = |oid| scope.relation_is_visible(oid) == Some(true);
            return Some(indexes::foreign_key(catalog, table, key, is_visible));
        }
        let is_own = |index: &Index<'_>| index.constraint().is_some_and(|constraint| constraint.oid == oid);
        if let Some(index) = indexes::of(table).find(is_own) {
            return index.constraint_definition(table);
        }
    }
    None
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
        warnings: Arc::default(),
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
