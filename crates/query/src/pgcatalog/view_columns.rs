//! A view's query with the names that the view's columns have: those of its definition (`CREATE VIEW v (a, b)`), or what
//! they were renamed to. PostgreSQL keeps them in the query; here they stand beside it.

use super::SystemContext;
use super::definitions::bind_context;
use crate::bind::{self, ParamTypes};
use crate::session::names::quote_identifier;
use basalt_engine::ViewDef;
use sqlparser::ast::{self, GroupByExpr, Ident, SelectItem, SetExpr};

/// How a view's text gives its columns their names.
pub(super) enum Named {
    /// It has them, or got them now.
    Inside(String),
    /// By what is put around it: ` SELECT * FROM (…) name (a, b)`.
    Around(String),
}

pub(super) fn named(system: &SystemContext, view: &ViewDef) -> Named {
    let Ok(mut query) = bind::parse_query(&view.sql) else { return Named::Inside(view.sql.clone()) };
    let bound = bind::bind_query(&bind_context(system), &query, &mut ParamTypes::none());
    let Ok(bound) = bound else { return Named::Inside(view.sql.clone()) };
    let wanted: Vec<&str> = view.columns.iter().map(|(name, _)| name.as_str()).collect();
    let given = bound.columns.iter().map(|column| column.name.as_str());
    if given.take(wanted.len()).eq(wanted.iter().copied()) {
        return Named::Inside(view.sql.clone());
    }
    match put_in(&mut query, &wanted) {
        true => Named::Inside(query.to_string()),
        false => {
            let columns: Vec<String> = wanted.iter().map(|name| quote_identifier(name)).collect();
            Named::Around(format!("{} ({})", quote_identifier(&view.name), columns.join(", ")))
        }
    }
}

/// Gives the outputs of a SELECT their names; false where other clauses may use the old ones, or outputs are not
/// written one by one.
fn put_in(query: &mut ast::Query, names: &[&str]) -> bool {
    let SetExpr::Select(select) = &mut *query.body else { return false };
    let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(exprs, _) if exprs.is_empty());
    let plain = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if query.order_by.is_some()
        || is_grouped
        || select.distinct.is_some()
        || select.projection.len() != names.len()
        || !select.projection.iter().all(plain)
    {
        return false;
    }
    for (item, name) in select.projection.iter_mut().zip(names) {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::new(quote_identifier(name)) };
        }
    }
    true
}
