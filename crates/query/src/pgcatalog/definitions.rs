//! Catalog objects as SQL text.

use super::deparse::Deparser;
use super::indexes::{self, Index};
use super::names::Scope;
use super::relations::{self, Relation};
use super::view_columns::{self, Named};
use super::{SystemContext, procs, readable, typing, user_types};
use crate::bind::{self, BindContext};
use crate::session::names::quote_identifier;
use basalt_engine::ViewDef;
use basalt_expr::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::schema::CheckDef;
use basalt_types::{ColumnDef, DataType, ObjectId, TableDef};
use std::sync::Arc;

/// `pg_get_indexdef`: the whole index, or one of its columns (from 1).
pub(crate) fn index(system: &SystemContext, oid: u32, column: i32, pretty: bool) -> Option<String> {
    let Relation::Index(table, index) = relations::by_oid(&system.catalog, oid)? else { return None };
    if column != 0 {
        let number = usize::try_from(column).unwrap_or(usize::MAX);
        return Some(index.column_definition(system, table, number, pretty));
    }
    let visible = Scope::of(system).relation_is_visible(table.id.0) == Some(true);
    Some(index.definition(system, table, !(pretty && visible), pretty))
}

/// `pg_get_constraintdef`.
pub(super) fn constraint(system: &SystemContext, oid: u32, pretty: bool) -> Option<String> {
    let catalog = &system.catalog;
    let checks = catalog.tables.values().flat_map(|table| table.checks.iter().map(move |check| (table, check)));
    if let Some((table, check)) = checks.into_iter().find(|(_, check)| check.id.0 == oid) {
        let mut text = format!("CHECK ({})", check_text(system, table, &check.sql, pretty));
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

/// A condition over a row of a table, as PostgreSQL writes it.
pub(super) fn check_text(system: &SystemContext, table: &Arc<TableDef>, sql: &str, pretty: bool) -> String {
    over_table(system, table, sql, pretty, |ctx, expr| bind::bind_check(ctx, table, expr))
        .unwrap_or_else(|| indexes::in_parens(&table_expression(system, table, sql)))
}

/// A value over a row of a table: an index's.
pub(super) fn value_text(system: &SystemContext, table: &Arc<TableDef>, sql: &str, pretty: bool) -> String {
    over_table(system, table, sql, pretty, |ctx, expr| bind::bind_transform(ctx, table, expr))
        .unwrap_or_else(|| table_expression(system, table, sql))
}

/// A column's default, or what it is computed from.
pub(super) fn default_text(system: &SystemContext, table: &Arc<TableDef>, column: &ColumnDef, pretty: bool) -> String {
    let (name, ty) = (&column.name, &column.ty);
    let (sql, text) = match (&column.generated, &column.default) {
        (Some(sql), _) => {
            (sql, over_table(system, table, sql, pretty, |ctx, expr| bind::bind_generated(ctx, table, name, ty, expr)))
        }
        (None, Some(sql)) => (sql, over_table(system, table, sql, pretty, |ctx, expr| default_of(ctx, expr, name, ty))),
        (None, None) => return String::new(),
    };
    text.unwrap_or_else(|| table_expression(system, table, sql))
}

/// A default, which may be longer than its type takes.
fn default_of(ctx: &BindContext, expr: &sqlparser::ast::Expr, name: &str, ty: &DataType) -> crate::error::Result<Expr> {
    bind::bind_default(ctx, expr, name, ty).or_else(|_| bind::bind_default(ctx, expr, name, &ty.base()))
}

fn over_table(
    system: &SystemContext,
    table: &TableDef,
    sql: &str,
    pretty: bool,
    bound: impl FnOnce(&BindContext, &sqlparser::ast::Expr) -> crate::error::Result<Expr>,
) -> Option<String> {
    let columns: Vec<String> = table.columns.iter().map(|column| quote_identifier(&column.name)).collect();
    deparsed(system, &columns, sql, pretty, bound)
}

fn deparsed(
    system: &SystemContext,
    columns: &[String],
    sql: &str,
    pretty: bool,
    bound: impl FnOnce(&BindContext, &sqlparser::ast::Expr) -> crate::error::Result<Expr>,
) -> Option<String> {
    if sql.contains(bind::pinned::ROW) {
        return None;
    }
    let syntax = crate::syntax::parse_expr_text(sql).ok()?;
    let bound = bound(&bind_context(system), &syntax).ok()?;
    Deparser { system, columns, source: sql, pretty }.text(&bound)
}

/// A domain's condition on `VALUE`.
pub(super) fn domain_check_text(system: &SystemContext, base: &DataType, sql: &str, pretty: bool) -> String {
    let columns = ["VALUE".to_string()];
    deparsed(system, &columns, sql, pretty, |ctx, expr| bind::bind_domain_check(ctx, base, expr))
        .unwrap_or_else(|| indexes::in_parens(&expression(system, sql)))
}

/// A domain's default.
pub(super) fn domain_default_text(system: &SystemContext, base: &DataType, sql: &str) -> String {
    deparsed(system, &[], sql, false, |ctx, expr| default_of(ctx, expr, "value", base))
        .unwrap_or_else(|| expression(system, sql))
}

/// What stands for an expression in a column of type `pg_node_tree`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Node {
    /// Of a table's column by its number.
    Default(u32, u16),
    /// Expressions of an index.
    Index(u32),
    Predicate(u32),
    /// A CHECK constraint, of a table or a domain.
    Check(u32),
}

impl Node {
    pub fn text(self) -> String {
        match self {
            Node::Default(table, column) => format!("{{DEFAULT {table} {column}}}"),
            Node::Index(index) => format!("{{INDEX {index}}}"),
            Node::Predicate(index) => format!("{{PREDICATE {index}}}"),
            Node::Check(constraint) => format!("{{CHECK {constraint}}}"),
        }
    }

    fn read(text: &str) -> Option<Node> {
        let mut words = text.strip_prefix('{')?.strip_suffix('}')?.split(' ');
        let (kind, oid) = (words.next()?, words.next()?.parse().ok()?);
        Some(match kind {
            "DEFAULT" => Node::Default(oid, words.next()?.parse().ok()?),
            "INDEX" => Node::Index(oid),
            "PREDICATE" => Node::Predicate(oid),
            "CHECK" => Node::Check(oid),
            _ => return None,
        })
    }
}

/// `pg_get_expr`.
pub(super) fn node_text(system: &SystemContext, node: &str, pretty: bool) -> String {
    let catalog = &system.catalog;
    let of_index = |oid| match relations::by_oid(catalog, oid)? {
        Relation::Index(table, index) => Some((table, index)),
        _ => None,
    };
    let text = Node::read(node).and_then(|node| match node {
        Node::Default(table, column) => {
            let table = catalog.table(ObjectId(table))?;
            let column = table.columns.iter().find(|known| known.id.0 == column)?;
            Some(default_text(system, table, column, pretty))
        }
        Node::Index(index) => {
            let (table, index) = of_index(index)?;
            let texts = index.expressions().into_iter().map(|sql| value_text(system, table, sql, pretty));
            Some(texts.collect::<Vec<_>>().join(", "))
        }
        Node::Predicate(index) => {
            let (table, index) = of_index(index)?;
            Some(check_text(system, table, index.predicate()?, pretty))
        }
        Node::Check(constraint) => {
            let checks = |table: &Arc<TableDef>| table.checks.iter().find(|check| check.id.0 == constraint).cloned();
            let found = catalog.tables.values().find_map(|table| Some((table, checks(table)?)));
            match found {
                Some((table, check)) => Some(check_text(system, table, &check.sql, pretty)),
                None => user_types::check_text(system, constraint, pretty),
            }
        }
    });
    text.unwrap_or_else(|| expression(system, node))
}

/// Kept text, with the names that things have now.
pub(super) fn expression(system: &SystemContext, sql: &str) -> String {
    readable::expression(Scope::of(system), sql, None)
}

/// The same of a text over a table's columns.
fn table_expression(system: &SystemContext, table: &TableDef, sql: &str) -> String {
    readable::expression(Scope::of(system), sql, Some(&format!("{}.*", quote_identifier(&table.name))))
}

/// Dates, times and intervals are shown as the session writes them, and what older programs kept is read as it reads it.
pub(super) fn eval(system: &SystemContext) -> EvalContext {
    let settings = system.settings.effective();
    EvalContext {
        timezone: settings.timezone,
        date_format: settings.date_format,
        date_order: settings.date_order,
        interval_style: settings.interval_style,
        ..EvalContext::at(0)
    }
}

/// What kept expressions are bound against.
pub(super) fn bind_context(system: &SystemContext) -> BindContext {
    BindContext {
        catalog: system.catalog.clone(),
        database: Scope::of(system).database,
        search_path: system.lookup_path.clone(),
        registry: system.db.registry().clone(),
        eval: Arc::new(eval(system)),
        sql: Arc::from(""),
        warnings: Arc::default(),
        needs: None,
        fields: None,
        current: None,
    }
}

/// In the order in which they are read.
fn in_order(bound: crate::error::Result<Expr>) -> Vec<i16> {
    let columns = bound.map(|bound| bind::columns_of(&bound)).unwrap_or_default();
    columns.iter().map(|id| id.0 as i16).collect()
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
    in_order(expr.and_then(|expr| bind::bind_check(&bind_context(system), table, &expr)))
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

/// `pg_get_viewdef`: the body as it was written, with the names that things have now.
pub(super) fn view_body(system: &SystemContext, view: &ViewDef) -> String {
    let readable = |sql: &str| readable::query(Scope::of(system), sql);
    match view_columns::named(system, view) {
        Named::Inside(sql) => format!(" {};", readable(&sql)),
        Named::Around(name) => format!(" SELECT * FROM ({}) {name};", readable(&view.sql)),
    }
}

pub(super) fn view(system: &SystemContext, oid: u32) -> Option<String> {
    match relations::by_oid(&system.catalog, oid)? {
        Relation::View(view) => Some(view_body(system, view)),
        Relation::Table(table) => Some(view_body(system, &ViewDef::of_materialized(table)?)),
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
