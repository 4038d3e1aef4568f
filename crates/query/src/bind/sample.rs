//! TABLESAMPLE (PostgreSQL manual, SELECT, "FROM Clause").

use super::binder::Binder;
use super::from::FromItem;
use super::position;
use super::scope::Clause;
use crate::error::{Result, SqlError};
use crate::plan::Plan;
use crate::syntax::{REPEATABLE, TABLESAMPLE, marked};
use basalt_expr::cast::CastContext;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast::{self, TableSampleKind};

impl Binder<'_> {
    /// `item` is the relation that is sampled: 0A000 unless it is a table.
    pub(super) fn sampled(
        &mut self,
        mut item: FromItem,
        name: &ast::ObjectName,
        sample: &TableSampleKind,
    ) -> Result<FromItem> {
        let place = position::of_name(&self.ctx.sql, name);
        let (TableSampleKind::BeforeTableAlias(sample) | TableSampleKind::AfterTableAlias(sample)) = sample;
        let mut args = sample
            .quantity
            .as_ref()
            .and_then(|quantity| marked(&quantity.value, TABLESAMPLE))
            .ok_or_else(|| SqlError::syntax("TABLESAMPLE takes a method and its arguments in parentheses"))?;
        let seed = args.last().and_then(|last| marked(last, REPEATABLE)).and_then(|seed| seed.first().copied());
        if seed.is_some() {
            args.pop();
        }
        let (method, args) = match args.split_first() {
            Some((ast::Expr::Value(value), args)) => match &value.value {
                ast::Value::SingleQuotedString(method) => (method.clone(), args),
                _ => return Err(SqlError::syntax("TABLESAMPLE takes a method")),
            },
            _ => return Err(SqlError::syntax("TABLESAMPLE takes a method")),
        };
        let ids = [self.fresh(), self.fresh(), self.fresh()];
        match &mut item.plan {
            Plan::Scan { identity: identity @ None, .. } => *identity = Some(ids),
            Plan::Scan { .. } => {
                return Err(SqlError::not_supported("TABLESAMPLE is not supported with row locks")
                    .with_hint("Sample the table in a subquery of IN."));
            }
            Plan::VirtualScan { .. } => {
                return Err(SqlError::not_supported("TABLESAMPLE is not supported for system catalogs").at(place));
            }
            _ => {
                let message = "TABLESAMPLE clause can only be applied to tables and materialized views";
                return Err(SqlError::not_supported(message).at(place));
            }
        }
        if !matches!(method.as_str(), "system" | "bernoulli") {
            return Err(SqlError::new("42704", format!("tablesample method {method} does not exist")));
        }
        let [percent] = args else {
            let message = format!("tablesample method {method} requires 1 argument, not {}", args.len());
            return Err(SqlError::new("2202H", message));
        };
        let percent = self.sample_argument(percent, &DataType::Float4)?;
        let seed = seed.map(|seed| self.sample_argument(seed, &DataType::Float8)).transpose()?;
        item.plan = Plan::Sample { input: Box::new(item.plan), identity: ids, percent, seed };
        Ok(item)
    }

    fn sample_argument(&mut self, expr: &ast::Expr, ty: &DataType) -> Result<Expr> {
        let bound = self.in_clause(Clause::FromFunction, |binder| binder.expr(expr))?;
        let given = bound.ty();
        self.coerce(bound, ty, CastContext::Assignment).map_err(|error| match error.sqlstate {
            "42846" | "42804" => {
                let message =
                    format!("argument of TABLESAMPLE must be type {}, not type {}", ty.sql_name(), given.sql_name());
                SqlError::new("42804", message).at(position::of_expr(&self.ctx.sql, expr))
            }
            _ => error,
        })
    }
}
