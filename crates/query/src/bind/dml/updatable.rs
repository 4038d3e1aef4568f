//! Which views are rows of one relation, as far as their text says it (PostgreSQL manual, CREATE VIEW, "Updatable
//! Views").

use crate::error::{Result as SqlResult, SqlError};
use basalt_types::ObjectId;
use sqlparser::ast::{self, GroupByExpr, SetExpr, TableFactor};

pub(in crate::bind) const AGGREGATES: &str =
    "Views that return aggregate functions or window functions are not automatically updatable.";

/// The relation that a view's rows come from, its alias there, and the SELECT; or why it cannot be written to.
pub fn parts(query: &ast::Query) -> Result<(&ast::ObjectName, Option<&ast::TableAlias>, &ast::Select), &'static str> {
    if query.with.is_some() {
        return Err("Views containing WITH are not automatically updatable.");
    }
    if query.limit_clause.is_some() || query.fetch.is_some() {
        return Err("Views containing LIMIT or OFFSET are not automatically updatable.");
    }
    let select = match &*query.body {
        SetExpr::Select(select) => select,
        SetExpr::Query(inner) if query.order_by.is_none() && query.locks.is_empty() => return parts(inner),
        SetExpr::SetOperation { .. } => {
            return Err("Views containing UNION, INTERSECT, or EXCEPT are not automatically updatable.");
        }
        _ => return Err(NOT_ONE_RELATION),
    };
    if select.distinct.as_ref().is_some_and(|distinct| !matches!(distinct, ast::Distinct::All)) {
        return Err("Views containing DISTINCT are not automatically updatable.");
    }
    if !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty()) {
        return Err("Views containing GROUP BY are not automatically updatable.");
    }
    if select.having.is_some() {
        return Err("Views containing HAVING are not automatically updatable.");
    }
    match select.from.as_slice() {
        [from] if from.joins.is_empty() => match &from.relation {
            TableFactor::Table { name, alias, args: None, sample: None, .. } => Ok((name, alias.as_ref(), select)),
            TableFactor::Table { sample: Some(_), .. } => {
                Err("Views containing TABLESAMPLE are not automatically updatable.")
            }
            _ => Err(NOT_ONE_RELATION),
        },
        _ => Err(NOT_ONE_RELATION),
    }
}

pub(in crate::bind) const NOT_ONE_RELATION: &str =
    "Views that do not select from a single table or view are not automatically updatable.";

/// The relation that a stored view's rows are rows of; `None` if they are of no one's, or computed.
pub fn updatable_base(sql: &str) -> Option<ObjectId> {
    let query = super::super::parse_query(sql).ok()?;
    let (name, _, select) = parts(&query).ok()?;
    let plain = |item: &ast::SelectItem| {
        use ast::{Expr, SelectItem};
        match item {
            SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..) => true,
            SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => {
                matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_))
            }
            _ => false,
        }
    };
    if !select.projection.iter().any(plain) {
        return None;
    }
    super::super::pinned::relation_of(name)
}

/// The relation that a stored view's rows are rows of, and which of its columns, by number, each of the view's is.
pub fn updatable_columns(sql: &str) -> Option<(ObjectId, Vec<Option<i16>>)> {
    let query = super::super::parse_query(sql).ok()?;
    let (name, alias, select) = parts(&query).ok()?;
    let base = super::super::pinned::relation_of(name)?;
    let listed = super::super::pinned::listed_columns(alias?);
    let number = |ident: &ast::Ident| {
        let name = super::super::names::fold(ident);
        listed.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
    };
    let mut columns = Vec::new();
    for item in &select.projection {
        match item {
            ast::SelectItem::Wildcard(_) | ast::SelectItem::QualifiedWildcard(..) => {
                columns.extend(listed.iter().map(|(_, number)| Some(*number)));
            }
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => {
                columns.push(match expr {
                    ast::Expr::Identifier(ident) => number(ident),
                    ast::Expr::CompoundIdentifier(parts) => parts.last().and_then(number),
                    _ => None,
                });
            }
            _ => return None,
        }
    }
    columns.iter().any(Option::is_some).then_some((base, columns))
}

/// 0A000 for a view WITH CHECK OPTION that cannot be written to.
pub fn check_updatable(query: &ast::Query) -> SqlResult<()> {
    match parts(query) {
        Ok(_) => Ok(()),
        Err(why) => {
            Err(SqlError::not_supported("WITH CHECK OPTION is supported only on automatically updatable views")
                .with_hint(why))
        }
    }
}
