//! Expressions that rest in the catalog: defaults, CHECK conditions, generation expressions. What they may say is
//! narrower than in a query, and their text must mean the same wherever and whenever it is bound again: it names
//! columns without their table, and everything else by identity (`pinned`).

use super::binder::Binder;
use super::dml::{over_row, row_positions};
use super::scope::{Clause, Scope};
use super::{BindContext, ParamTypes, names, position};
use crate::error::{Result, SqlError};
use basalt_expr::EvalContext;
use basalt_expr::cast::CastContext;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnDef, ColumnId, DataType, TableDef};
use sqlparser::ast::{self, Spanned, VisitMut, VisitorMut};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What an expression is kept for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoredKind {
    Default,
    Check,
    Generated,
    /// ALTER COLUMN … TYPE … USING: not kept, but bound the same way.
    Transform,
}

impl StoredKind {
    fn clause(self) -> Clause {
        match self {
            StoredKind::Default => Clause::Default,
            StoredKind::Check => Clause::Check,
            StoredKind::Generated => Clause::Generated,
            StoredKind::Transform => Clause::Transform,
        }
    }

    fn one(self) -> &'static str {
        match self {
            StoredKind::Default => "DEFAULT expression",
            StoredKind::Check => "check constraint",
            StoredKind::Generated => "column generation expression",
            StoredKind::Transform => "transform expression",
        }
    }
}

/// A default, of the column's type.
pub fn bind_default(ctx: &BindContext, expr: &ast::Expr, column: &str, ty: &DataType) -> Result<Expr> {
    let mut params = ParamTypes::none();
    let mut binder = Binder::new(ctx, &mut params);
    binder.scopes.push(Scope::new(Clause::Default));
    let bound = binder.stored(StoredKind::Default, expr).map_err(|error| match error.sqlstate {
        // There is nothing that a column's name could mean; a literal may name a relation that is not there.
        "42703" | "42P01" if !error.message.starts_with("relation ") => {
            SqlError { hint: None, ..SqlError::not_supported("cannot use column reference in DEFAULT expression") }
                .at(error.position)
        }
        _ => error,
    })?;
    binder.assign_stored(bound, column, ty, "default expression").map_err(|error| {
        let place = position::of_literal(&ctx.sql, expr.span().start, &error);
        error.at(place)
    })
}

/// What an identity column gets of its sequence, as a value of its type.
pub fn identity_value(column: &ColumnDef, eval: &EvalContext) -> Result<Expr> {
    let identity = column.identity.ok_or_else(|| SqlError::internal("not an identity column"))?;
    let next = crate::pgcatalog::next_of_identity(identity.sequence);
    Ok(basalt_expr::resolve::coerce(next, &column.ty, CastContext::Assignment, eval)?)
}

/// A CHECK condition over a row in column-id order.
pub fn bind_check(ctx: &BindContext, table: &Arc<TableDef>, expr: &ast::Expr) -> Result<Expr> {
    Binder::new(ctx, &mut ParamTypes::none()).over_table(table, StoredKind::Check, expr, None)
}

/// A generated column's value over a row in column-id order. 42P17 for what may not be computed once and kept.
pub fn bind_generated(
    ctx: &BindContext,
    table: &Arc<TableDef>,
    column: &str,
    ty: &DataType,
    expr: &ast::Expr,
) -> Result<Expr> {
    let mut params = ParamTypes::none();
    let mut binder = Binder::new(ctx, &mut params);
    let bound = binder.over_table(table, StoredKind::Generated, expr, Some((column, ty)))?;
    let columns = columns_of(&bound);
    if let Some(other) =
        columns.iter().map(|id| table.column(*id)).find(|other| other.generated.is_some() || other.name == column)
    {
        let message = format!("cannot use generated column \"{}\" in column generation expression", other.name);
        let detail = "A generated column cannot reference another generated column.";
        return Err(SqlError::new("42P17", message).with_detail(detail).at(position::of_start(&ctx.sql, expr)));
    }
    if bound.volatility() != Volatility::Immutable {
        return Err(SqlError::new("42P17", "generation expression is not immutable"));
    }
    Ok(bound)
}

/// What ALTER COLUMN … TYPE makes of a row's old values.
pub fn bind_transform(ctx: &BindContext, table: &Arc<TableDef>, expr: &ast::Expr) -> Result<Expr> {
    Binder::new(ctx, &mut ParamTypes::none()).over_table(table, StoredKind::Transform, expr, None)
}

/// Columns that an expression over a row reads, each once.
pub fn columns_of(expr: &Expr) -> Vec<ColumnId> {
    let mut columns = Vec::new();
    expr.walk(&mut |node| {
        if let Expr::Column { index, .. } = node {
            let id = ColumnId::from_position(*index);
            if !columns.contains(&id) {
                columns.push(id);
            }
        }
        true
    });
    columns
}

impl Binder<'_> {
    fn stored(&mut self, kind: StoredKind, expr: &ast::Expr) -> Result<Expr> {
        let before = self.subqueries.len();
        let bound = self.expr(expr)?;
        if self.subqueries.len() > before {
            let place = position::of_expr(&self.ctx.sql, expr);
            return Err(SqlError::not_supported(format!("cannot use subquery in {}", kind.one())).at(place));
        }
        Ok(bound)
    }

    fn assign_stored(&mut self, bound: Expr, column: &str, ty: &DataType, what: &str) -> Result<Expr> {
        let from = bound.ty();
        self.coerce(bound, ty, CastContext::Assignment).map_err(|error| match error.sqlstate {
            "42846" => {
                let (to, from) = (ty.base().sql_name(), from.base().sql_name());
                let message = format!("column \"{column}\" is of type {to} but {what} is of type {from}");
                let hint = "You will need to rewrite or cast the expression.";
                SqlError::new("42804", message).with_hint(hint).at(error.position)
            }
            _ => error,
        })
    }

    /// Binds an expression over a row of a table.
    pub(super) fn over_table(
        &mut self,
        table: &Arc<TableDef>,
        kind: StoredKind,
        expr: &ast::Expr,
        target: Option<(&str, &DataType)>,
    ) -> Result<Expr> {
        let read = self.tables.len();
        let item = self.base_table(table, table.name.clone(), None)?;
        self.tables.truncate(read);
        let mut scope = Scope::new(kind.clause());
        scope.relations = item.relations;
        scope.visible = item.visible;
        self.scopes.push(scope);
        let bound = self.stored(kind, expr);
        let bound = match (bound, kind, target) {
            (Ok(bound), StoredKind::Check, _) => {
                let condition = basalt_expr::resolve::build::boolean("CHECK", bound, &self.ctx.eval);
                condition
                    .map_err(|error| SqlError::from(error).at(position::of_expr(&self.ctx.sql, expr)))
                    .map(|condition| self.done(condition))
            }
            (Ok(bound), _, Some((column, ty))) => self.assign_stored(bound, column, ty, "generation expression"),
            (Ok(bound), StoredKind::Transform, None) => Ok(bound),
            (Ok(bound), _, None) => self.known(bound),
            (Err(error), _, _) => Err(error),
        };
        self.scopes.pop();
        Ok(over_row(bound?, &row_positions(&item.plan)))
    }
}

/// A kept expression after a column got another name.
pub fn rename_column(sql: &str, old: &str, new: &str) -> Result<String> {
    struct Renamer<'a>(&'a str, ast::Ident);
    impl VisitorMut for Renamer<'_> {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
            if let ast::Expr::Identifier(ident) = expr
                && names::fold(ident) == self.0
            {
                *ident = self.1.clone();
            }
            ControlFlow::Continue(())
        }
    }
    let mut expr = super::parse_expr(sql)?;
    let quoted = crate::session::names::quote_identifier(new);
    let ident = if quoted.starts_with('"') { ast::Ident::with_quote('"', new) } else { ast::Ident::new(new) };
    let _ = expr.visit(&mut Renamer(old, ident));
    Ok(expr.to_string())
}
