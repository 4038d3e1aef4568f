//! Ordered-set and hypothetical-set aggregates: `f(direct, …) WITHIN GROUP (ORDER BY …)` (PostgreSQL manual
//! 4.2.7 and tables 9.61, 9.62).

use super::binder::Binder;
use super::function::CallArgs;
use super::scope::Clause;
use crate::error::{Result, SqlError};
use crate::plan::{AggregateCall, SortKey};
use basalt_expr::aggregates::ResolvedAggregate;
use basalt_expr::cast::CastContext;
use basalt_expr::operators::SortOrder;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast;

/// Aggregates that need WITHIN GROUP.
pub(super) fn is_ordered_set(name: &str) -> bool {
    matches!(name, "mode" | "percentile_cont" | "percentile_disc") || is_hypothetical(name)
}

/// Whether a call without WITHIN GROUP would find the aggregate by the number of its arguments.
pub(super) fn has_arguments(name: &str, count: usize) -> bool {
    match name {
        "mode" => count == 1,
        "percentile_cont" | "percentile_disc" => count == 2,
        _ => count > 0,
    }
}

/// Those whose direct arguments are a row to be put among the others.
fn is_hypothetical(name: &str) -> bool {
    matches!(name, "rank" | "dense_rank" | "percent_rank" | "cume_dist")
}

impl Binder<'_> {
    pub(super) fn ordered_set(
        &mut self,
        name: &str,
        function: &ast::Function,
        args: &CallArgs,
    ) -> Result<AggregateCall> {
        if args.distinct {
            return Err(SqlError::syntax("cannot use DISTINCT with WITHIN GROUP"));
        }
        if !args.order_by.is_empty() {
            return Err(SqlError::syntax("cannot use multiple ORDER BY clauses with WITHIN GROUP"));
        }
        let mut direct = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let mut keys = self.sort_keys_open(&function.within_group)?;
        let filter = match function.filter.as_deref() {
            Some(filter) => Some(self.in_clause(Clause::Filter, |binder| binder.condition("FILTER", filter))?),
            None => None,
        };
        let resolved = match is_hypothetical(name) {
            true => self.hypothetical(name, &mut direct, &mut keys)?,
            false => self.ordered(name, &mut direct, &mut keys)?,
        };
        for key in &keys {
            super::query::check_sortable(&key.expr)?;
        }
        let args = direct.into_iter().chain(keys.iter().map(|key| key.expr.clone())).collect();
        Ok(AggregateCall { resolved, args, distinct: false, filter, order_by: keys })
    }

    /// As [`Binder::sort_keys`]; literals keep their open type.
    fn sort_keys_open(&mut self, order_by: &[ast::OrderByExpr]) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for key in order_by {
            let expr = self.expr(&key.expr)?;
            keys.push(super::query::sort_key(expr, &key.options));
        }
        Ok(keys)
    }

    fn ordered(&mut self, name: &str, direct: &mut [Expr], keys: &mut [SortKey]) -> Result<ResolvedAggregate> {
        let wanted = usize::from(name != "mode");
        let types: Vec<DataType> = direct.iter().chain(keys.iter().map(|key| &key.expr)).map(Expr::ty).collect();
        if direct.len() != wanted || keys.len() != 1 {
            let error = no_aggregate(name, &types);
            return Err(match direct.len() == wanted {
                true => error,
                false => {
                    let s = if wanted == 1 { "" } else { "s" };
                    error.with_hint(format!(
                        "There is an ordered-set aggregate {name}, but it requires {wanted} direct argument{s}, not {}.",
                        direct.len()
                    ))
                }
            });
        }
        let mut resolved = self.registry().resolve_aggregate(name, &types).map_err(|error| match error.sqlstate {
            "42883" => no_aggregate(name, &types),
            _ => error.into(),
        })?;
        resolved.orders = orders(keys);
        let exprs = direct.iter_mut().chain(keys.iter_mut().map(|key| &mut key.expr));
        for (expr, ty) in exprs.zip(resolved.arg_types.clone()) {
            let taken = std::mem::replace(expr, Expr::bool(false));
            *expr = self.coerce(taken, &ty, CastContext::Implicit)?;
        }
        Ok(resolved)
    }

    fn hypothetical(&mut self, name: &str, direct: &mut [Expr], keys: &mut [SortKey]) -> Result<ResolvedAggregate> {
        if direct.len() != keys.len() {
            let types: Vec<DataType> = direct.iter().chain(keys.iter().map(|key| &key.expr)).map(Expr::ty).collect();
            return Err(no_aggregate(name, &types).with_hint(format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {}) \
                 must match the number of ordering columns (here {}).",
                direct.len(),
                keys.len()
            )));
        }
        let mut types = Vec::with_capacity(direct.len());
        for (given, key) in direct.iter_mut().zip(keys.iter_mut()) {
            // The column's type decides, where both would do.
            let pair = [key.expr.ty(), given.ty()];
            let ty = resolve::resolve_common_type("WITHIN GROUP", &pair).map_err(|error| match error.sqlstate {
                "42804" => SqlError::new(
                    "42804",
                    format!("WITHIN GROUP types {} and {} cannot be matched", pair[0].sql_name(), pair[1].sql_name()),
                ),
                _ => error.into(),
            })?;
            for expr in [given, &mut key.expr] {
                let taken = std::mem::replace(expr, Expr::bool(false));
                *expr = self.coerce(taken, &ty, CastContext::Implicit)?;
            }
            types.push(ty);
        }
        let mut resolved = self.registry().resolve_aggregate(name, &types[..1])?;
        resolved.arg_types = types.iter().chain(&types).cloned().collect();
        resolved.orders = orders(keys);
        Ok(resolved)
    }
}

fn orders(keys: &[SortKey]) -> Vec<SortOrder> {
    keys.iter().map(|key| SortOrder { descending: key.descending, nulls_first: key.nulls_first }).collect()
}

fn no_aggregate(name: &str, types: &[DataType]) -> SqlError {
    let types: Vec<String> = types.iter().map(|ty| ty.base().sql_name()).collect();
    SqlError::new("42883", format!("function {name}({}) does not exist", types.join(", ")))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}
