//! The columns of a function in FROM that returns rows (manual 7.2.1.4): those of its composite type or of its OUT
//! parameters, or, where it returns any record, of a column definition list.

use super::binder::Binder;
use super::names;
use super::types;
use crate::error::{Result, SqlError};
use basalt_expr::functions::{TypePattern, structures};
use basalt_expr::tree::Expr;
use basalt_types::{Attribute, CompositeDef, DataType};
use sqlparser::ast::{self, TableAlias};
use std::sync::Arc;

/// Names and types of a column definition list; `None` where an alias lists no more than names.
pub(super) fn given(alias: &TableAlias) -> Option<Vec<(ast::Ident, ast::DataType)>> {
    let column = |column: &ast::TableAliasColumnDef| Some((column.name.clone(), column.data_type.clone()?));
    let columns: Vec<_> = alias.columns.iter().filter_map(column).collect();
    (!columns.is_empty()).then_some(columns)
}

/// The name of a set's only column, where the function has an OUT parameter of that name.
pub(super) fn value_name(call: &Expr) -> Option<&'static str> {
    let Expr::Call { function, .. } = call else { return None };
    let has_name = matches!(
        function.name.as_str(),
        "json_array_elements" | "json_array_elements_text" | "jsonb_array_elements" | "jsonb_array_elements_text"
    );
    has_name.then_some("value")
}

/// A call beside others that give sets: a value is a set of one row.
pub(super) fn one_row(call: Expr) -> Expr {
    match &call {
        Expr::Call { function, .. } if function.returns_set => call,
        _ => structures::set_of_one(call),
    }
}

impl Binder<'_> {
    /// A call in FROM with the columns that its definition list gives it. 42601 where a list is missing or has no
    /// place; 42804 if the function's rows are of other types.
    pub(super) fn with_columns(&mut self, call: Expr, given: Option<&[(ast::Ident, ast::DataType)]>) -> Result<Expr> {
        let ty = call.ty();
        let returns_any = match &call {
            _ if ty == DataType::Record => true,
            Expr::Call { function, .. } => {
                let is_anonymous = ty.composite().is_some_and(|composite| composite.is_anonymous());
                is_anonymous && !matches!(&function.ret, TypePattern::Exact(DataType::Composite(_)))
            }
            _ => false,
        };
        let Some(given) = given else {
            return match returns_any {
                true => {
                    let message = "a column definition list is required for functions returning \"record\"";
                    Err(SqlError::syntax(message))
                }
                false => Ok(call),
            };
        };
        if !returns_any {
            let what = match ty.composite() {
                Some(composite) if composite.is_anonymous() => "redundant for a function with OUT parameters",
                Some(_) => "redundant for a function returning a named composite type",
                None => "only allowed for functions returning \"record\"",
            };
            return Err(SqlError::syntax(format!("a column definition list is {what}")));
        }
        let mut attributes: Vec<Attribute> = Vec::with_capacity(given.len());
        for (name, ty) in given {
            let name = names::fold(name);
            if attributes.iter().any(|known| known.name == name) {
                return Err(SqlError::new("42701", format!("column \"{name}\" specified more than once")));
            }
            let time_modifier = types::time_modifier(Some(self.ctx), ty);
            attributes.push(Attribute { time_modifier, ..Attribute::new(name, types::resolve(self.ctx, ty)?) });
        }
        let found = ty.composite().cloned();
        if let Some(found) = &found {
            let same = |(a, b): (&Attribute, &Attribute)| a.ty.base() == b.ty.base();
            if found.attributes.len() != attributes.len() || !found.attributes.iter().zip(&attributes).all(same) {
                let message = "function return row and query-specified return row do not match";
                return Err(SqlError::new("42804", message));
            }
        }
        let ty = DataType::Composite(Arc::new(CompositeDef::anonymous(attributes)));
        Ok(match call {
            Expr::Call { function, args, .. } => Expr::Call { function, args, ty },
            other => other,
        })
    }
}
