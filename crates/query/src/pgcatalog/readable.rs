//! SQL that rests in the catalog as people read it: what stands there by identity (`bind::pinned`) gets the name that it
//! has now, qualified unless the search path finds it.

use super::names::{self, Scope};
use super::relations::{self, Relation};
use crate::bind::pinned;
use crate::session::names::quote_identifier;
use basalt_expr::EvalContext;
use basalt_types::DataType;
use sqlparser::ast::{self, Ident, ObjectName, ObjectNamePart, TableAlias, TableFactor, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// An expression; `row`: how the row of its table is written.
pub(super) fn expression(scope: Scope, sql: &str, row: Option<&str>) -> String {
    let Ok(mut expr) = crate::syntax::parse_expr_text(sql) else { return sql.to_string() };
    let _ = expr.visit(&mut Reader { scope, row, has_star: false });
    expr.to_string()
}

/// A view's body.
pub(super) fn query(scope: Scope, sql: &str) -> String {
    let Ok(mut query) = crate::bind::parse_query(sql) else { return sql.to_string() };
    let has_star = ast::Visit::visit(&query, &mut StarFinder).is_break();
    let _ = query.visit(&mut Reader { scope, row: None, has_star });
    crate::syntax::as_written(&query.to_string())
}

struct Reader<'a> {
    scope: Scope<'a>,
    row: Option<&'a str>,
    /// Whether a `*` stands for columns that nobody wrote down.
    has_star: bool,
}

/// Breaks off at a `*` among results.
struct StarFinder;

impl ast::Visitor for StarFinder {
    type Break = ();

    fn pre_visit_query(&mut self, query: &ast::Query) -> ControlFlow<()> {
        match has_star(&query.body) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn has_star(body: &ast::SetExpr) -> bool {
    use ast::SelectItem::{QualifiedWildcard, Wildcard};
    match body {
        ast::SetExpr::Select(select) => {
            select.projection.iter().any(|item| matches!(item, Wildcard(_) | QualifiedWildcard(..)))
        }
        ast::SetExpr::SetOperation { left, right, .. } => has_star(left) || has_star(right),
        _ => false,
    }
}

/// Text that stands as it is.
fn raw(text: impl Into<String>) -> ObjectName {
    ObjectName(vec![ObjectNamePart::Identifier(Ident::new(text))])
}

impl Reader<'_> {
    fn ty(&self, ty: &mut ast::DataType) {
        match ty {
            ast::DataType::Array(
                ast::ArrayElemTypeDef::SquareBracket(element, _)
                | ast::ArrayElemTypeDef::AngleBracket(element)
                | ast::ArrayElemTypeDef::Parenthesis(element),
            ) => self.ty(element),
            ast::DataType::Custom(name, _) => {
                if let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
                    && let Some(oid) = pinned::type_oid(&ident.value)
                {
                    *name = raw(names::format_type(self.scope, oid, None).unwrap_or_else(|| oid.to_string()));
                }
            }
            _ => {}
        }
    }

    /// Where a `*` would mean columns, too, that the relation did not have: a query that gives those that it had.
    fn as_it_was(&self, name: &ObjectName, alias: &TableAlias) -> Option<TableFactor> {
        let id = pinned::relation_of(name)?;
        let shown = names::name_of(self.scope, &DataType::Regclass, id.0)?;
        let relation = relations::by_oid(self.scope.catalog, id.0)?;
        let listed = pinned::listed_columns(alias);
        let had = |number: i16| listed.iter().find(|(_, known)| *known == number).map(|(name, _)| name);
        let now = columns_now(&relation);
        if now.iter().all(|(_, number)| had(*number).is_some()) {
            return None;
        }
        let columns = now.iter().filter_map(|(name, number)| {
            let (name, then) = (quote_identifier(name), quote_identifier(had(*number)?));
            Some(if name == then { name } else { format!("{name} AS {then}") })
        });
        let own = quote_identifier(&crate::bind::names::fold(&alias.name));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let query = crate::bind::parse_query(&format!("SELECT 1 FROM (SELECT {columns} FROM {shown}) {own}")).ok()?;
        let ast::SetExpr::Select(mut select) = *query.body else { return None };
        Some(select.from.pop()?.relation)
    }

    fn relation(&self, name: &mut ObjectName, alias: &mut Option<TableAlias>) {
        let Some(id) = pinned::relation_of(name) else { return };
        let Some(shown) = names::name_of(self.scope, &DataType::Regclass, id.0) else { return };
        *name = raw(shown);
        let Some(relation) = relations::by_oid(self.scope.catalog, id.0) else { return };
        let Some(given) = alias else { return };
        let listed = pinned::listed_columns(given);
        let columns = columns_now(&relation);
        let as_listed = |(now, number): &(String, i16)| {
            listed.iter().find(|(_, known)| known == number).map_or(now.clone(), |(name, _)| name.clone())
        };
        let renamed: Vec<String> = columns.iter().map(as_listed).collect();
        let last = columns.iter().zip(&renamed).rposition(|((now, _), then)| now != then);
        given.columns = renamed.into_iter().take(last.map_or(0, |last| last + 1)).map(column_alias).collect();
        let own = crate::bind::names::fold(&given.name);
        if given.columns.is_empty() && own == relation.name() {
            *alias = None;
        } else {
            given.explicit = false;
            given.name = Ident::new(quote_identifier(&own));
        }
    }

    fn value(&self, function: &ast::Function) -> Option<ast::Expr> {
        let (oid, value) = pinned::value_of(function)?;
        let ty = self.scope.catalog.type_of_oid(oid)?;
        let mut text = Vec::new();
        basalt_expr::io::text::format(&ty, &value, &EvalContext::at(0), &mut text).ok()?;
        let text = String::from_utf8(text).ok()?;
        Some(cast(text, names::format_type(self.scope, oid, None)?))
    }

    /// `'16400'::regclass` by name.
    fn object(&self, inner: &ast::Expr, data_type: &ast::DataType) -> Option<ast::Expr> {
        let kind = pinned::reg_name(data_type)?;
        let ast::Expr::Value(value) = inner else { return None };
        let ast::Value::SingleQuotedString(digits) = &value.value else { return None };
        let ty = match kind {
            "regclass" => DataType::Regclass,
            "regtype" => DataType::Regtype,
            _ => DataType::Regnamespace,
        };
        Some(cast(names::name_of(self.scope, &ty, digits.parse().ok()?)?, kind.to_string()))
    }
}

fn column_alias(name: String) -> ast::TableAliasColumnDef {
    ast::TableAliasColumnDef { name: Ident::new(quote_identifier(&name)), data_type: None }
}

fn cast(text: String, ty: String) -> ast::Expr {
    ast::Expr::Cast {
        kind: ast::CastKind::DoubleColon,
        expr: Box::new(ast::Expr::Value(ast::Value::SingleQuotedString(text).into())),
        data_type: ast::DataType::Custom(raw(ty), Vec::new()),
        array: false,
        format: None,
    }
}

/// Names and numbers of a relation's columns.
fn columns_now(relation: &Relation) -> Vec<(String, i16)> {
    match relation {
        Relation::Table(table) => {
            table.live_columns().map(|column| (column.name.clone(), column.id.0 as i16)).collect()
        }
        Relation::View(view) => {
            view.columns.iter().zip(1..).map(|((name, _), number)| (name.clone(), number)).collect()
        }
        Relation::Sequence(_) => {
            let names = super::SEQUENCE_COLUMNS.iter().map(|(name, ..)| (*name).to_string());
            names.zip(1..).collect()
        }
        _ => Vec::new(),
    }
}

impl VisitorMut for Reader<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias: Some(alias), args: None, .. } = factor
            && self.has_star
            && let Some(before) = self.as_it_was(name, alias)
        {
            *factor = before;
            return ControlFlow::Continue(());
        }
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => self.relation(name, alias),
            call => pinned::declared_types(call).for_each(|ty| self.ty(ty)),
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        match expr {
            ast::Expr::Cast { expr: inner, data_type, .. } => match self.object(inner, data_type) {
                Some(object) => *expr = object,
                None => {
                    self.ty(data_type);
                    if let ast::Expr::Cast { expr: literal, data_type: own, .. } = inner.as_ref()
                        && matches!(**literal, ast::Expr::Value(_))
                        && own == data_type
                    {
                        *expr = ast::Expr::clone(inner);
                    }
                }
            },
            ast::Expr::Function(function) => {
                if let Some(value) = self.value(function) {
                    *expr = value;
                }
            }
            ast::Expr::Identifier(ident) if pinned::is_row(&ident.value) => {
                if let Some(row) = self.row {
                    *ident = Ident::new(row);
                }
            }
            ast::Expr::CompoundFieldAccess { access_chain, .. } => {
                for access in access_chain {
                    let ast::AccessExpr::Dot(ast::Expr::Identifier(ident)) = access else { continue };
                    let Some((oid, at)) = pinned::field_of(&ident.value) else { continue };
                    let ty = self.scope.catalog.type_of_oid(oid);
                    let name = ty.as_ref().and_then(|ty| ty.composite()?.attributes.get(at)).map(|field| &field.name);
                    if let Some(name) = name {
                        *ident = Ident::new(quote_identifier(name));
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}
