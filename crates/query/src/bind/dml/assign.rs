//! Values on their way into columns: SET, defaults, assignment casts.

use super::super::binder::Binder;
use super::super::position;
use super::super::row;
use super::super::scope::{Clause, Scope};
use super::super::types::domain_default;
use super::super::{names, parse_expr};
use super::is_default;
use super::own_values::{has_own_values, only_default};
use super::target::{Target, Verb};
use crate::error::{Result, SqlError};
use crate::syntax::{TargetStep, target_steps};
use basalt_expr::cast::CastContext;
use basalt_expr::functions::structures;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnDef, ColumnId, DataType};
use sqlparser::ast::{self, AssignmentTarget, FunctionArg, FunctionArgExpr, FunctionArguments};

/// The right side of one column's assignment.
enum Value<'a> {
    Syntax(&'a ast::Expr),
    Bound(Expr),
    /// One output of a row subquery: each is bound for itself.
    Output {
        query: &'a ast::Query,
        index: usize,
        width: usize,
    },
}

/// An error of a value on its way into a column: what does not fit its length or scale has no place in the text.
pub(super) fn placed(error: SqlError, place: impl FnOnce() -> Option<u32>) -> SqlError {
    match error.sqlstate == "22001" || error.message == "numeric field overflow" {
        true => error,
        false => error.at_with(place),
    }
}

impl Binder<'_> {
    /// An expression as the value of a column: 42804 if it cannot be assigned.
    pub fn assigned(&mut self, expr: Expr, column: &ColumnDef) -> Result<Expr> {
        let from = expr.ty();
        // A row constructor says itself which of its fields does not fit.
        let is_row = structures::row_fields(&expr).is_some() && column.ty.composite().is_some();
        self.coerce(expr, &column.ty, CastContext::Assignment).map_err(|error| match error.sqlstate {
            "42846" if !is_row => SqlError::new(
                "42804",
                format!(
                    "column \"{}\" is of type {} but expression is of type {}",
                    column.name,
                    column.ty.base().sql_name(),
                    from.base().sql_name()
                ),
            )
            .with_hint("You will need to rewrite or cast the expression."),
            _ => error,
        })
    }

    /// What a column gets when INSERT does not name it.
    pub fn default_value(&mut self, column: &ColumnDef) -> Result<Expr> {
        if let Some(identity) = column.identity.filter(|_| !column.dropped) {
            return self.assigned(crate::pgcatalog::next_of_identity(identity.sequence), column);
        }
        let default = column.default.as_deref().or_else(|| domain_default(&column.ty));
        let Some(sql) = default.filter(|_| !column.dropped) else {
            let nothing = Expr::null(column.ty.underlying().clone());
            // A domain may refuse it.
            return match column.dropped {
                true => Ok(nothing),
                false => self.coerce(nothing, &column.ty, CastContext::Assignment),
            };
        };
        let syntax = parse_expr(sql)?;
        self.scopes.push(Scope::new(Clause::Default));
        let bound = self.expr(&syntax);
        self.scopes.pop();
        let bound = bound?;
        self.assigned(bound, column)
    }

    /// The base table's column that a name in SET or in INSERT's list means.
    pub fn target_column(&mut self, target: &Target, name: &ast::ObjectName, verb: Verb) -> Result<ColumnId> {
        let place = position::of_name(&self.ctx.sql, name);
        names::check_column(name).map_err(|error| error.at(place))?;
        let shown = names::parts(name)?.into_iter().next().unwrap_or_default();
        let relation = target.view.as_deref().unwrap_or(&target.table.name);
        let found = target.column_named(&shown).cloned();
        let Some(column) = found else {
            if names::SYSTEM_COLUMNS.contains(&shown.as_str()) {
                let message = format!("cannot assign to system column \"{shown}\"");
                return Err(SqlError::not_supported(message).at(place));
            }
            let message = format!("column \"{shown}\" of relation \"{relation}\" does not exist");
            return Err(SqlError::new("42703", message).at(place));
        };
        target.base_column(column.id).ok_or_else(|| {
            let what = if verb == Verb::Insert { "insert into" } else { "update" };
            SqlError::not_supported(format!("cannot {what} column \"{shown}\" of view \"{relation}\""))
                .with_detail("View columns that are not columns of their base relation are not updatable.")
        })
    }

    /// SET's clauses, bound in the current scope.
    pub fn assignments(&mut self, target: &Target, given: &[ast::Assignment]) -> Result<Vec<(ColumnId, Expr)>> {
        let mut out: Vec<(ColumnId, Expr)> = Vec::with_capacity(given.len());
        // Columns of which only fields have been assigned so far.
        let mut in_parts: Vec<ColumnId> = Vec::new();
        for assignment in given {
            let pairs = match &assignment.target {
                AssignmentTarget::ColumnName(name) => vec![(name, Value::Syntax(&assignment.value))],
                AssignmentTarget::Tuple(names) => {
                    let values = self.row_values(names, &assignment.value)?;
                    names.iter().zip(values).collect()
                }
            };
            for (name, value) in pairs {
                let place = position::of_name(&self.ctx.sql, name);
                let id = self.target_column(target, name, Verb::Update)?;
                let steps = target_steps(name)?;
                let known = out.iter().position(|(known, _)| *known == id);
                if !steps.is_empty() && (known.is_none() || in_parts.contains(&id)) {
                    let before = known.map(|at| out.swap_remove(at).1);
                    let column = target.table.column(id);
                    let before = before.map_or_else(|| self.own_value(column), Ok)?;
                    let value = self.part_assigned(column, before, &steps, value);
                    out.push((id, value.map_err(|error| error.at(place))?));
                    in_parts.push(id);
                    continue;
                }
                if known.is_some() {
                    let message = format!("multiple assignments to same column \"{}\"", target.table.column(id).name);
                    return Err(SqlError::syntax(message).at(place));
                }
                let value = self.assigned_value(target.table.column(id), value)?;
                out.push((id, value));
            }
        }
        Ok(out)
    }

    /// The column itself, of the target's row.
    fn own_value(&mut self, column: &ColumnDef) -> Result<Expr> {
        let own =
            self.scope().relations.first().and_then(|relation| {
                relation.columns.iter().find(|known| known.column_no == column.id.0 as i16).cloned()
            });
        let own = own.ok_or_else(|| SqlError::internal(format!("column {} is not in scope", column.name)))?;
        Ok(self.column_expr(&own))
    }

    /// A column with another value in the part that the steps lead to. `before` is what has become of it already.
    fn part_assigned(&mut self, column: &ColumnDef, before: Expr, steps: &[TargetStep], value: Value) -> Result<Expr> {
        let plain = column.ty.underlying().clone();
        let before = self.coerce(before, &plain, CastContext::Implicit)?;
        let changed = self.with_part(before, steps, value, column)?;
        self.coerce(changed, &column.ty, CastContext::Assignment)
    }

    /// The same for INSERT, whose parts begin from null.
    pub(super) fn part_inserted(
        &mut self,
        column: &ColumnDef,
        before: Option<Expr>,
        steps: &[TargetStep],
        value: Expr,
    ) -> Result<Expr> {
        let before = before.unwrap_or_else(|| Expr::null(column.ty.underlying().clone()));
        self.part_assigned(column, before, steps, Value::Bound(value))
    }

    fn with_part(&mut self, whole: Expr, steps: &[TargetStep], value: Value, column: &ColumnDef) -> Result<Expr> {
        match steps.split_first() {
            Some((TargetStep::Field(name), rest)) => self.with_field(whole, name, rest, value, column),
            Some((TargetStep::Subscripts(chain), rest)) => self.with_element(whole, chain, rest, value, column),
            None => Ok(whole),
        }
    }

    fn with_field(
        &mut self,
        row: Expr,
        name: &str,
        rest: &[TargetStep],
        value: Value,
        column: &ColumnDef,
    ) -> Result<Expr> {
        let ty = row.ty();
        let Some(composite) = ty.composite() else {
            let message = format!(
                "cannot assign to field \"{name}\" of column \"{}\" because its type {} is not a composite type",
                column.name,
                ty.base().sql_name()
            );
            return Err(SqlError::new("42804", message));
        };
        let Some((at, attribute)) = composite.attribute_named(name) else {
            let message = format!(
                "cannot assign to field \"{name}\" of column \"{}\" because there is no such column in data type {}",
                column.name,
                ty.sql_name()
            );
            return Err(SqlError::new("42703", message));
        };
        if matches!(value, Value::Syntax(syntax) if is_default(syntax)) {
            return Err(SqlError::not_supported("cannot set a subfield to DEFAULT"));
        }
        let part = if rest.is_empty() {
            let field = ColumnDef::new(column.id, name, attribute.ty.clone());
            self.assigned_value(&field, value)?
        } else {
            let before = structures::field(row.clone(), at);
            self.part_of(before, &attribute.ty, rest, value, column)?
        };
        Ok(structures::set_field(row, at, part))
    }

    /// A part that is changed inside; domains are taken off and put on again.
    fn part_of(
        &mut self,
        before: Expr,
        ty: &DataType,
        rest: &[TargetStep],
        value: Value,
        column: &ColumnDef,
    ) -> Result<Expr> {
        let before = self.coerce(before, ty.underlying(), CastContext::Implicit)?;
        let changed = self.with_part(before, rest, value, column)?;
        self.coerce(changed, ty, CastContext::Assignment)
    }

    fn with_element(
        &mut self,
        whole: Expr,
        chain: &[ast::AccessExpr],
        rest: &[TargetStep],
        value: Value,
        column: &ColumnDef,
    ) -> Result<Expr> {
        if matches!(value, Value::Syntax(syntax) if is_default(syntax)) {
            return Err(SqlError::not_supported("cannot set an array element to DEFAULT"));
        }
        let ty = whole.ty();
        match ty.underlying() {
            DataType::Jsonb if rest.is_empty() => {
                let indexes = self.json_indexes(chain)?;
                let value = self.element_value(value, &DataType::Jsonb, column)?;
                Ok(structures::set_json_element(whole, indexes, value))
            }
            DataType::Array(element) => {
                let element = (**element).clone();
                let (bounds, is_slice) = self.bounds(chain)?;
                if bounds.len() > basalt_expr::array_value::DIMENSIONS_MAX {
                    return Err(basalt_expr::array_value::too_many_dimensions(bounds.len()).into());
                }
                if is_slice && rest.is_empty() {
                    let values = self.element_value(value, &ty.underlying().base(), column)?;
                    return Ok(structures::set_array_slice(whole, bounds, values));
                }
                if is_slice {
                    return Err(SqlError::not_supported("cannot assign to a part of a slice"));
                }
                let subscripts: Vec<Expr> = bounds.into_iter().filter_map(|(_, upper)| upper).collect();
                let part = match rest.is_empty() {
                    true => self.element_value(value, &element, column)?,
                    false => {
                        let before = structures::subscript(whole.clone(), subscripts.clone());
                        self.part_of(before, &element, rest, value, column)?
                    }
                };
                Ok(structures::set_array_element(whole, subscripts, part))
            }
            DataType::Jsonb => {
                let message = "cannot assign to a field of a jsonb value: its type jsonb is not a composite type";
                Err(SqlError::new("42804", message))
            }
            other => {
                let name = other.base().sql_name();
                let message = format!("cannot subscript type {name} because it does not support subscripting");
                Err(SqlError::new("42804", message))
            }
        }
    }

    /// What goes into an element or a slice.
    fn element_value(&mut self, value: Value, ty: &DataType, column: &ColumnDef) -> Result<Expr> {
        let (bound, place) = match value {
            Value::Syntax(syntax) => (self.expr(syntax)?, position::of_expr(&self.ctx.sql, syntax)),
            Value::Bound(bound) => (bound, None),
            Value::Output { query, index, width } => (self.nth_subquery(query, index, width)?, None),
        };
        let from = bound.ty();
        self.coerce(bound, ty, CastContext::Assignment).map_err(|error| match error.sqlstate {
            "42846" => SqlError::new(
                "42804",
                format!(
                    "subscripted assignment to \"{}\" requires type {} but expression is of type {}",
                    column.name,
                    ty.base().sql_name(),
                    from.base().sql_name()
                ),
            )
            .with_hint("You will need to rewrite or cast the expression.")
            .at(place),
            _ => error.at(place),
        })
    }

    fn assigned_value(&mut self, column: &ColumnDef, value: Value) -> Result<Expr> {
        match value {
            Value::Syntax(syntax) if is_default(syntax) => self.default_value(column),
            _ if has_own_values(column) => Err(only_default(column)),
            Value::Syntax(syntax) => {
                let bound = self.expr(syntax)?;
                self.assigned(bound, column).map_err(|error| placed(error, || position::of_expr(&self.ctx.sql, syntax)))
            }
            Value::Bound(bound) => self.assigned(bound, column),
            Value::Output { query, index, width } => {
                let bound = self.nth_subquery(query, index, width)?;
                self.assigned(bound, column)
            }
        }
    }

    /// The values of `(a, b) = …`.
    fn row_values<'a>(&mut self, names: &[ast::ObjectName], value: &'a ast::Expr) -> Result<Vec<Value<'a>>> {
        let mut values = Vec::with_capacity(names.len());
        match value {
            ast::Expr::Subquery(query) => {
                let width = names.len();
                values.extend((0..width).map(|index| Value::Output { query, index, width }));
            }
            ast::Expr::Tuple(items) => values.extend(items.iter().map(Value::Syntax)),
            ast::Expr::Function(call) if is_row(call) => {
                let FunctionArguments::List(list) = &call.args else { return Err(no_row()) };
                for arg in &list.args {
                    match arg {
                        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => values.push(Value::Syntax(expr)),
                        FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(name)) => {
                            let mut items = Vec::new();
                            self.relation_items(name, &mut items)?;
                            values.extend(items.into_iter().map(|item| Value::Bound(item.expr)));
                        }
                        _ => return Err(no_row()),
                    }
                }
            }
            ast::Expr::Nested(inner) if matches!(**inner, ast::Expr::Subquery(_)) || row::is_row(inner) => {
                return self.row_values(names, inner);
            }
            other => return Err(no_row().at(position::of_expr(&self.ctx.sql, other))),
        }
        match values.len() == names.len() {
            true => Ok(values),
            false => {
                let place = position::of_expr(&self.ctx.sql, value);
                Err(SqlError::syntax("number of columns does not match number of values").at(place))
            }
        }
    }

    /// Values for all columns of the table: those given, defaults elsewhere.
    pub fn default_row(&mut self, target: &Target, given: &[(ColumnId, Expr)]) -> Result<Vec<Expr>> {
        let mut row = Vec::with_capacity(target.table.columns.len());
        for column in &target.table.columns {
            row.push(match given.iter().find(|(id, _)| *id == column.id) {
                Some((_, expr)) => expr.clone(),
                None => self.default_value(column)?,
            });
        }
        Ok(row)
    }

    /// The condition of WHERE, ON or WHEN as it is bound in the current scope.
    pub fn where_condition(&mut self, selection: Option<&ast::Expr>) -> Result<Option<Expr>> {
        match selection {
            Some(selection) => Ok(Some(self.in_clause(Clause::Where, |binder| binder.condition("WHERE", selection))?)),
            None => Ok(None),
        }
    }
}

fn no_row() -> SqlError {
    SqlError::not_supported("source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression")
}

fn is_row(call: &ast::Function) -> bool {
    names::parts(&call.name).is_ok_and(|parts| parts == ["row"])
}

/// A null of a column's type.
pub(super) fn null_of(ty: &DataType) -> Expr {
    Expr::null(ty.clone())
}
