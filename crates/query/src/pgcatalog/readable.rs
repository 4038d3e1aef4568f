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
    let _ = expr.visit(&mut Reader { scope, row });
    expr.to_string()
}

/// A view's body.
pub(super) fn query(scope: Scope, sql: &str) -> String {
    let Ok(mut query) = crate::bind::parse_query(sql) else { return sql.to_string() };
    let _ = query.visit(&mut Reader { scope, row: None });
    crate::syntax::as_written(&query.to_string())
}

struct Reader<'a> {
    scope: Scope<'a>,
    row: Option<&'a str>,
}

/// A relation of a query that stands there by identity, with the columns that it had.
struct Part {
    own: String,
    columns: Vec<String>,
    /// Whether it has others by now.
    has_grown: bool,
}

impl Part {
    fn spell(&self, items: &mut Vec<ast::SelectItem>) {
        let own = Ident::new(quote_identifier(&self.own));
        let column = |name: &String| {
            let names = vec![own.clone(), Ident::new(quote_identifier(name))];
            ast::SelectItem::UnnamedExpr(ast::Expr::CompoundIdentifier(names))
        };
        items.extend(self.columns.iter().map(column));
    }
}

/// USING and NATURAL: columns of two relations are one in `*`.
fn merges_columns(operator: &ast::JoinOperator) -> bool {
    use ast::JoinOperator::*;
    match operator {
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | FullOuter(on)
        | CrossJoin(on) => matches!(on, ast::JoinConstraint::Using(_) | ast::JoinConstraint::Natural),
        _ => true,
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

    /// Writes a `*` out where it would mean columns, too, that relations did not have when it was written down.
    fn spell_stars(&self, select: &mut ast::Select) {
        let joins = select.from.iter().flat_map(|from| &from.joins);
        let merges = joins.clone().any(|join| merges_columns(&join.join_operator));
        let factors = select
            .from
            .iter()
            .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
        let parts: Vec<Option<Part>> = factors.map(|factor| self.part(factor)).collect();
        let is_plain = !merges && parts.iter().all(Option::is_some);
        let is_grown = parts.iter().flatten().any(|part| part.has_grown);
        let mut items = Vec::with_capacity(select.projection.len());
        for item in std::mem::take(&mut select.projection) {
            use ast::SelectItemQualifiedWildcardKind::ObjectName as OfRelation;
            let of_one = match &item {
                ast::SelectItem::QualifiedWildcard(OfRelation(name), _) => match name.0.as_slice() {
                    [ObjectNamePart::Identifier(ident)] => {
                        let own = crate::bind::names::fold(ident);
                        parts.iter().flatten().find(|part| part.own == own && part.has_grown)
                    }
                    _ => None,
                },
                _ => None,
            };
            match (&item, of_one) {
                (ast::SelectItem::Wildcard(_), _) if is_plain && is_grown => {
                    parts.iter().flatten().for_each(|part| part.spell(&mut items));
                }
                (_, Some(part)) => part.spell(&mut items),
                _ => items.push(item),
            }
        }
        select.projection = items;
    }

    /// A relation in FROM that is named by identity.
    fn part(&self, factor: &TableFactor) -> Option<Part> {
        let TableFactor::Table { name, alias: Some(alias), args: None, .. } = factor else { return None };
        let relation = relations::by_oid(self.scope.catalog, pinned::relation_of(name)?.0)?;
        let listed = pinned::listed_columns(alias);
        let now = columns_now(&relation);
        let had = |number: i16| listed.iter().find(|(_, known)| *known == number).map(|(name, _)| name.clone());
        let columns: Vec<String> = now.iter().filter_map(|(_, number)| had(*number)).collect();
        let own = crate::bind::names::fold(&alias.name);
        Some(Part { own, has_grown: columns.len() < now.len(), columns })
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

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        self.spell_stars(select);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
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
