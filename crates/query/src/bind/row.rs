//! Rows and their fields, arrays and their elements (manual 4.2.3, 4.2.4, 4.2.13, 8.15.3, 8.16, 9.24).

use super::binder::Binder;
use super::expr::or;
use super::pinned;
use super::scope::{ScopeColumn, ScopeRelation, WholeRow};
use super::{names, position};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan};
use crate::syntax::all_fields_mark;
use basalt_expr::cast::CastContext;
use basalt_expr::functions::{TypePattern, structures};
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::{Attribute, CompositeDef, DataType, ObjectId};
use sqlparser::ast::{self, FunctionArg, FunctionArgExpr, FunctionArguments};
use std::sync::{Arc, PoisonError};

/// What is said of `(value).*` that stands for one value.
pub(super) const NO_EXPANSION: &str = "row expansion via \"*\" is not supported here";

impl Binder<'_> {
    /// The fields of `(a, b)` or `ROW(a, t.*)`; `None` for anything that is no row constructor.
    pub(super) fn row_items(&mut self, expr: &ast::Expr) -> Result<Option<Vec<Expr>>> {
        match expr {
            ast::Expr::Tuple(items) => items.iter().map(|item| self.expr(item)).collect::<Result<Vec<_>>>().map(Some),
            ast::Expr::Nested(inner) => self.row_items(inner),
            ast::Expr::Function(function) if is_row_call(function) => self.row_args(function).map(Some),
            _ => Ok(None),
        }
    }

    /// `ROW(…)` as a value.
    pub(super) fn row_constructor(&mut self, function: &ast::Function) -> Result<Expr> {
        Ok(row_of_fields(self.row_args(function)?))
    }

    fn row_args(&mut self, function: &ast::Function) -> Result<Vec<Expr>> {
        let FunctionArguments::List(list) = &function.args else { return Ok(Vec::new()) };
        let mut fields = Vec::with_capacity(list.args.len());
        for arg in &list.args {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => match self.all_fields(expr)? {
                    Some(all) => fields.extend(all.into_iter().map(|(field, _)| field)),
                    None => fields.push(self.expr(expr)?),
                },
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                    let mut items = Vec::new();
                    self.relation_items(name, &mut items)?;
                    fields.extend(items.into_iter().map(|item| item.expr));
                }
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {
                    let visible = self.scope().visible.clone();
                    for column in visible.into_iter().filter(|column| !pinned::is_hidden(&column.name)) {
                        fields.push(self.column_expr(&column));
                    }
                }
                _ => return Err(SqlError::syntax("a row constructor takes no named fields")),
            }
        }
        Ok(fields)
    }

    /// `IS [NOT] NULL`: of a row, all its fields are asked.
    pub(super) fn null_test(&mut self, inner: &ast::Expr, wanted: bool) -> Result<Expr> {
        let bound = self.expr(inner)?;
        // `$1 IS NULL` says nothing about the parameter's type.
        let value = match bound {
            Expr::Param { ty: DataType::Unknown, .. } => bound,
            bound => self.known(bound)?,
        };
        if let Some(fields) = structures::row_fields(&value) {
            let composite = value.ty().composite().cloned();
            let live = composite.iter().flat_map(|composite| composite.live());
            let tests = live.map(|(at, _)| test_null(fields[at].clone(), wanted)).collect();
            return Ok(Expr::and(tests));
        }
        Ok(match value.ty().composite() {
            Some(_) => structures::null_test_of(value, wanted),
            None => test_null(value, wanted),
        })
    }

    /// Rows compare column by column; the first pair that differs decides.
    pub(super) fn row_comparison(&mut self, left: Vec<Expr>, symbol: &str, right: Vec<Expr>) -> Result<Expr> {
        check_lengths(&left, &right)?;
        self.compare_rows(left, symbol, right)
    }

    pub fn compare_rows(&mut self, left: Vec<Expr>, symbol: &str, right: Vec<Expr>) -> Result<Expr> {
        let pairs: Vec<(Expr, Expr)> = left.into_iter().zip(right).collect();
        if let [(left, right)] = pairs.as_slice() {
            return self.operator(symbol, Some(left.clone()), right.clone());
        }
        if let "=" | "<>" = symbol {
            let terms = pairs
                .into_iter()
                .map(|(left, right)| self.operator(symbol, Some(left), right))
                .collect::<Result<Vec<_>>>()?;
            return Ok(if symbol == "=" { Expr::and(terms) } else { or(terms) });
        }
        let strict = match symbol {
            "<" | "<=" => "<",
            ">" | ">=" => ">",
            "~<~" | "~<=~" => "~<~",
            "~>~" | "~>=~" => "~>~",
            _ => {
                for (left, right) in pairs {
                    let ty = self.operator(symbol, Some(left), right)?.ty();
                    if ty != DataType::Bool {
                        let name = ty.base().sql_name().to_string();
                        let message = format!("row comparison operator must yield type boolean, not type {name}");
                        return Err(SqlError::new("42804", message));
                    }
                }
                let message = format!("could not determine interpretation of row comparison operator {symbol}");
                return Err(SqlError::not_supported(message)
                    .with_hint("Row comparison operators must be associated with btree operator families."));
            }
        };
        let last = pairs.len() - 1;
        let mut terms = Vec::with_capacity(pairs.len());
        for (index, (left, right)) in pairs.iter().enumerate() {
            let decisive = if index == last { symbol } else { strict };
            let mut term = Vec::with_capacity(index + 1);
            for (left, right) in &pairs[..index] {
                term.push(self.operator("=", Some(left.clone()), right.clone())?);
            }
            term.push(self.operator(decisive, Some(left.clone()), right.clone())?);
            terms.push(Expr::and(term));
        }
        Ok(or(terms))
    }

    /// `row IS [NOT] DISTINCT FROM row`.
    pub(super) fn row_distinct(&mut self, left: Vec<Expr>, right: Vec<Expr>, negated: bool) -> Result<Expr> {
        check_lengths(&left, &right)?;
        let mut terms = Vec::with_capacity(left.len());
        for (left, right) in left.into_iter().zip(right) {
            let term = resolve::distinct(self.registry(), left, right, negated, &self.ctx.eval)?;
            terms.push(self.done(term));
        }
        Ok(if negated { Expr::and(terms) } else { or(terms) })
    }

    /// `value.field`, `value[1]`, `value[1:2]`, one after the other.
    pub(super) fn accesses(&mut self, root: &ast::Expr, chain: &[ast::AccessExpr]) -> Result<Expr> {
        if matches!(chain.first(), Some(ast::AccessExpr::Subscript(_))) && !takes_subscripts(root) {
            return Err(SqlError::syntax("syntax error at or near \"[\""));
        }
        // Names before the first subscript are of a column: `t.a[1]` is no field `a` of a column `t`.
        let name = |access: &ast::AccessExpr| match access {
            ast::AccessExpr::Dot(ast::Expr::Identifier(ident)) if *ident != all_fields_mark() => Some(ident.clone()),
            _ => None,
        };
        let names: Vec<ast::Ident> = match root {
            // A kept text names its table's row by a mark.
            ast::Expr::Identifier(root) if !pinned::is_row(&root.value) => {
                std::iter::once(root.clone()).chain(chain.iter().map_while(name)).collect()
            }
            _ => Vec::new(),
        };
        let (mut value, mut rest) = match names.len() {
            0 | 1 => (self.expr(root)?, chain),
            count => (self.expr(&ast::Expr::CompoundIdentifier(names))?, &chain[count - 1..]),
        };
        while let Some(access) = rest.first() {
            match access {
                ast::AccessExpr::Dot(ast::Expr::Identifier(ident)) if *ident == all_fields_mark() => {
                    return Err(SqlError::not_supported(NO_EXPANSION));
                }
                ast::AccessExpr::Dot(ast::Expr::Identifier(ident)) => {
                    value = self.field(value, &names::fold(ident))?;
                    rest = &rest[1..];
                }
                ast::AccessExpr::Dot(other) => {
                    return Err(SqlError::syntax(format!("syntax error at or near \"{other}\"")));
                }
                ast::AccessExpr::Subscript(_) => {
                    let is_subscript = |access: &ast::AccessExpr| matches!(access, ast::AccessExpr::Subscript(_));
                    let count = rest.iter().take_while(|access| is_subscript(access)).count();
                    value = self.subscripts(value, &rest[..count])?;
                    rest = &rest[count..];
                }
            }
        }
        Ok(value)
    }

    /// One field of a composite value by name; 42703 if there is none, 42809 if the value has no fields.
    pub(super) fn field(&mut self, value: Expr, name: &str) -> Result<Expr> {
        let ty = value.ty();
        let Some(composite) = ty.composite() else {
            let message = format!(
                "column notation .{name} applied to type {}, which is not a composite type",
                ty.base().sql_name()
            );
            return Err(SqlError::new("42809", message));
        };
        if let Some(at) = pinned::attribute(composite, name) {
            return Ok(structures::field(value, at));
        }
        let (name, number) = pinned::split_number(name);
        if let (Some(number), Some((at, _)), Some(notes)) = (number, composite.attribute_named(name), &self.ctx.fields)
            && !composite.is_anonymous()
        {
            notes.lock().unwrap_or_else(PoisonError::into_inner).push((number, composite.oid, at));
        }
        match composite.attribute_named(name) {
            Some((at, _)) if !gives_any_record(&value) => Ok(structures::field(value, at)),
            _ if composite.is_anonymous() => {
                Err(SqlError::new("42703", format!("could not identify column \"{name}\" in record data type")))
            }
            _ => {
                let message = format!("column \"{name}\" not found in data type {}", ty.sql_name());
                Err(SqlError::new("42703", message))
            }
        }
    }

    /// All subscripts that follow an array.
    fn subscripts(&mut self, value: Expr, chain: &[ast::AccessExpr]) -> Result<Expr> {
        let ty = value.ty();
        match ty.underlying().base() {
            DataType::Array(_) => {}
            DataType::Jsonb => return self.json_subscripts(value, chain),
            DataType::Name => return self.name_subscript(value, chain),
            _ => {
                let name = ty.base().sql_name();
                let message = format!("cannot subscript type {name} because it does not support subscripting");
                return Err(SqlError::new("42804", message));
            }
        }
        if chain.len() > basalt_expr::array_value::DIMENSIONS_MAX {
            return Err(basalt_expr::array_value::too_many_dimensions(chain.len()).into());
        }
        let plain = ty.underlying().clone();
        let array = self.coerce(value, &plain, CastContext::Implicit)?;
        let (bounds, is_slice) = self.bounds(chain)?;
        if is_slice {
            return Ok(structures::array_slice(array, bounds));
        }
        let subscripts = bounds.into_iter().filter_map(|(_, upper)| upper).collect();
        Ok(structures::subscript(array, subscripts))
    }

    /// One character of a name, counted from 0.
    fn name_subscript(&mut self, value: Expr, chain: &[ast::AccessExpr]) -> Result<Expr> {
        let [ast::AccessExpr::Subscript(ast::Subscript::Index { index })] = chain else {
            return Err(SqlError::new("2202E", "wrong number of array subscripts"));
        };
        let text = self.coerce(value, &DataType::Text, CastContext::Implicit)?;
        let index = self.array_index(index)?;
        let from = self.operator("+", Some(index), Expr::int4(1))?;
        let character = self.call("substr", vec![text, from, Expr::int4(1)])?;
        self.coerce(character, &DataType::Char, CastContext::Explicit)
    }

    fn json_subscripts(&mut self, value: Expr, chain: &[ast::AccessExpr]) -> Result<Expr> {
        let plain = DataType::Jsonb;
        let value = self.coerce(value, &plain, CastContext::Implicit)?;
        Ok(structures::json_subscript(value, self.json_indexes(chain)?))
    }

    /// Subscripts of jsonb: integers and texts.
    pub(super) fn json_indexes(&mut self, chain: &[ast::AccessExpr]) -> Result<Vec<Expr>> {
        let mut indexes = Vec::with_capacity(chain.len());
        for access in chain {
            let ast::AccessExpr::Subscript(ast::Subscript::Index { index }) = access else {
                return Err(SqlError::new("42804", "jsonb subscript does not support slices"));
            };
            let place = index;
            let index = self.expr(index)?;
            let index = match index.ty().underlying() {
                DataType::Int2 | DataType::Int4 => self.coerce(index, &DataType::Int4, CastContext::Implicit)?,
                DataType::Unknown
                | DataType::Text
                | DataType::Varchar(_)
                | DataType::Bpchar(_)
                | DataType::Name
                | DataType::Char => self.coerce(index, &DataType::Text, CastContext::Implicit)?,
                other => {
                    let message = format!("subscript type {} is not supported", other.base().sql_name());
                    return Err(SqlError::new("42804", message)
                        .with_hint("jsonb subscript must be coercible to either integer or text.")
                        .at(position::of_start(&self.ctx.sql, place)));
                }
            };
            indexes.push(index);
        }
        Ok(indexes)
    }

    /// Lower and upper bounds, and whether there is a slice among the subscripts: then `[n]` means `[1:n]`.
    #[allow(clippy::type_complexity)]
    pub(super) fn bounds(&mut self, chain: &[ast::AccessExpr]) -> Result<(Vec<(Option<Expr>, Option<Expr>)>, bool)> {
        let mut is_slice = false;
        let mut bounds = Vec::with_capacity(chain.len());
        for access in chain {
            bounds.push(match access {
                ast::AccessExpr::Subscript(ast::Subscript::Index { index }) => (None, Some(self.array_index(index)?)),
                ast::AccessExpr::Subscript(ast::Subscript::Slice { lower_bound, upper_bound, stride: None }) => {
                    is_slice = true;
                    let lower = lower_bound.as_ref().map(|bound| self.array_index(bound)).transpose()?;
                    let upper = upper_bound.as_ref().map(|bound| self.array_index(bound)).transpose()?;
                    (lower, upper)
                }
                other => return Err(SqlError::syntax(format!("syntax error at or near \"{other}\""))),
            });
        }
        if is_slice {
            for (bound, access) in bounds.iter_mut().zip(chain) {
                if matches!(access, ast::AccessExpr::Subscript(ast::Subscript::Index { .. })) {
                    bound.0 = Some(Expr::int4(1));
                }
            }
        }
        Ok((bounds, is_slice))
    }

    fn array_index(&mut self, index: &ast::Expr) -> Result<Expr> {
        let bound = self.expr(index)?;
        let place = position::of_start(&self.ctx.sql, index);
        let index = self.coerce(bound, &DataType::Int4, CastContext::Assignment);
        index.map_err(|error| match error.sqlstate {
            "42846" => SqlError::new("42804", "array subscript must have type integer").at(place),
            _ => error.at(place),
        })
    }

    /// `value.*`: an expression per field, with its name. `None` for anything else.
    pub(super) fn all_fields(&mut self, expr: &ast::Expr) -> Result<Option<Vec<(Expr, String)>>> {
        let ast::Expr::CompoundFieldAccess { root, access_chain } = expr else { return Ok(None) };
        let [chain @ .., ast::AccessExpr::Dot(ast::Expr::Identifier(last))] = access_chain.as_slice() else {
            return Ok(None);
        };
        if *last != all_fields_mark() {
            return Ok(None);
        }
        let value = self.accesses(root, chain)?;
        let ty = value.ty();
        let Some(composite) = ty.composite() else {
            let message = format!("type {} is not composite", ty.base().sql_name());
            return Err(SqlError::new("42809", message));
        };
        let mut fields = Vec::with_capacity(composite.attributes.len());
        for (at, attribute) in composite.live() {
            let field = self.known(structures::field(value.clone(), at))?;
            fields.push((field, attribute.name.clone()));
        }
        Ok(Some(fields))
    }

    /// The row of a relation of FROM by the relation's name, innermost level first.
    pub(super) fn whole_row(&mut self, schema: Option<&str>, name: &str) -> Result<Option<Expr>> {
        for level in (0..self.scopes.len()).rev() {
            let is_own = pinned::is_row(name);
            let is_in = |relation: &ScopeRelation| schema.is_none() || relation.schema.as_deref() == schema;
            let visible =
                |relation: &&ScopeRelation| (relation.name == name || is_own) && !relation.hidden && is_in(relation);
            let Some(relation) = self.scopes[level].relations.iter().find(visible).cloned() else { continue };
            let row = self.row_of_relation(&relation);
            let Some(marker) = relation.marker else { return Ok(Some(row)) };
            // On the side of an outer join that may have no row, its absence is null.
            let scope = &mut self.scopes[level];
            if let Some(first) = relation.columns.first()
                && !scope.markers.iter().any(|(_, known)| *known == marker)
            {
                scope.markers.push((first.id, marker));
            }
            let present = Expr::IsNotNull(Box::new(Expr::Hole { id: marker, ty: DataType::Bool }));
            return Ok(Some(Expr::Case { ty: row.ty(), branches: vec![(present, row)], otherwise: None }));
        }
        Ok(None)
    }

    fn row_of_relation(&mut self, relation: &ScopeRelation) -> Expr {
        if let (WholeRow::Value, [column]) = (&relation.row, relation.columns.as_slice()) {
            return self.column_expr(column);
        }
        let columns: Vec<Expr> = relation.columns.iter().map(|column| self.column_expr(column)).collect();
        let id = ObjectId(relation.oid);
        let named = match (&relation.row, self.ctx.catalog.table(id), self.ctx.catalog.views.get(&id)) {
            (WholeRow::Named(composite), ..) => Some(composite.clone()),
            (_, Some(table), _) => Some(self.ctx.catalog.row_type(table)),
            (_, _, Some(view)) => Some(self.ctx.catalog.view_row_type(view)),
            _ => None,
        };
        match named {
            Some(composite) if composite.live().count() == columns.len() => {
                let mut fields: Vec<Expr> =
                    composite.attributes.iter().map(|attribute| Expr::null(attribute.ty.clone())).collect();
                let places: Vec<usize> = composite.live().map(|(at, _)| at).collect();
                places.into_iter().zip(columns).for_each(|(at, column)| fields[at] = column);
                structures::row(composite, fields)
            }
            _ => {
                let attribute = |column: &ScopeColumn| Attribute::new(column.name.clone(), column.ty.clone());
                let attributes = relation.columns.iter().map(attribute).collect();
                structures::row(Arc::new(CompositeDef::anonymous(attributes)), columns)
            }
        }
    }

    /// Gives the relations whose whole rows the level has met a column that tells whether their row is there.
    pub(super) fn mark_rows(&mut self, plan: &mut Plan) {
        for (column, marker) in std::mem::take(&mut self.scope().markers) {
            let has_marker = plan.columns().iter().any(|(id, _)| *id == marker);
            if !has_marker && !mark(plan, column, marker) {
                wrap(plan, marker);
            }
        }
    }
}

/// Adds the marker as close to the relation that has `column` as the plan lets it pass upwards.
fn mark(plan: &mut Plan, column: ColId, marker: ColId) -> bool {
    let has = |plan: &Plan| plan.columns().iter().any(|(id, _)| *id == column);
    match plan {
        Plan::Join { left, right, .. } => {
            let side = if has(left) { left } else { right };
            if !mark(side, column, marker) {
                wrap(side, marker);
            }
            true
        }
        Plan::Filter { input, .. } | Plan::Sort { input, .. } | Plan::ProjectSet { input, .. } if has(input) => {
            mark(input, column, marker)
        }
        Plan::Project { input, exprs } if has(input) => {
            let marked = mark(input, column, marker);
            if marked {
                exprs.push((marker, Expr::Hole { id: marker, ty: DataType::Bool }));
            }
            marked
        }
        _ => false,
    }
}

fn wrap(plan: &mut Plan, marker: ColId) {
    let input = std::mem::replace(plan, Plan::Unit);
    let passed = input.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
    let exprs = passed.chain([(marker, Expr::bool(true))]).collect();
    *plan = Plan::Project { input: Box::new(input), exprs };
}

/// Whether a value's fields are known to us alone: a function of any types gave an anonymous record.
fn gives_any_record(value: &Expr) -> bool {
    match value {
        Expr::Call { function, ty, .. } => {
            let is_anonymous = ty.composite().is_some_and(|composite| composite.is_anonymous());
            is_anonymous && matches!(function.ret, TypePattern::AnyElement)
        }
        _ => false,
    }
}

/// Whether subscripts may follow: names, parameters, and what stands in parentheses.
fn takes_subscripts(root: &ast::Expr) -> bool {
    match root {
        ast::Expr::Identifier(_)
        | ast::Expr::CompoundIdentifier(_)
        | ast::Expr::CompoundFieldAccess { .. }
        | ast::Expr::Nested(_)
        | ast::Expr::Subquery(_) => true,
        ast::Expr::Value(value) => matches!(value.value, ast::Value::Placeholder(_)),
        _ => false,
    }
}

fn test_null(value: Expr, wanted: bool) -> Expr {
    if wanted { Expr::IsNull(Box::new(value)) } else { Expr::IsNotNull(Box::new(value)) }
}

fn check_lengths(left: &[Expr], right: &[Expr]) -> Result<()> {
    if left.len() != right.len() {
        return Err(SqlError::syntax("unequal number of entries in row expressions"));
    }
    if left.is_empty() {
        return Err(SqlError::not_supported("cannot compare rows of zero length"));
    }
    Ok(())
}

fn is_row_call(function: &ast::Function) -> bool {
    matches!(names::parts(&function.name).as_deref(), Ok([name]) if name == "row")
        && matches!(function.args, FunctionArguments::List(_))
}

/// Whether an expression is a row constructor.
pub(super) fn is_row(expr: &ast::Expr) -> bool {
    match expr {
        ast::Expr::Tuple(_) => true,
        ast::Expr::Nested(inner) => is_row(inner),
        ast::Expr::Function(function) => is_row_call(function),
        _ => false,
    }
}

/// A row of these fields, named `f1`, `f2`, ….
pub(super) fn row_of_fields(fields: Vec<Expr>) -> Expr {
    let named = fields.iter().enumerate().map(|(at, field)| Attribute::new(format!("f{}", at + 1), field.ty()));
    let composite = CompositeDef::anonymous(named.collect());
    structures::row(Arc::new(composite), fields)
}
