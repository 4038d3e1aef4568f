//! Aggregate calls and GROUPING: what may be in them, and the query level that they belong to (PostgreSQL
//! manual 4.2.7).

use super::binder::Binder;
use super::function::CallArgs;
use super::ordered_set::{has_arguments, is_ordered_set};
use super::position;
use super::scope::Clause;
use crate::error::{Result, SqlError};
use crate::plan::{AggregateCall, ColId, SortKey};
use basalt_expr::aggregates::unwritten;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::DataType;
use sqlparser::ast;

/// Arguments of GROUPING, whose result has 32 bits.
const GROUPING_ARGS_MAX: usize = 31;

impl Binder<'_> {
    pub(super) fn aggregate_function(&mut self, name: &str, function: &ast::Function, args: &CallArgs) -> Result<Expr> {
        let place = position::of_name(&self.ctx.sql, &function.name);
        let call = self.aggregate_parts(name, function, args)?;
        let exprs: Vec<&Expr> =
            call.args.iter().chain(&call.filter).chain(call.order_by.iter().map(|key| &key.expr)).collect();
        let level = self.level_of(&exprs);
        self.check_inside(&exprs, level).map_err(|error| error.at(place))?;
        let scope = &self.scopes[level];
        if !scope.clause.allows_aggregates() {
            let message = format!("aggregate functions are not allowed in {}", scope.clause.name());
            return Err(SqlError::new("42803", message).at(place));
        }
        let ty = call.resolved.ty.clone();
        if let Some((id, _)) = scope.aggregates.iter().find(|(_, known)| *known == call) {
            return Ok(Expr::Hole { id: *id, ty });
        }
        let id = self.fresh();
        self.set_typmod(id, -1);
        self.call_places.insert(id, place);
        self.scopes[level].aggregates.push((id, call));
        Ok(Expr::Hole { id, ty })
    }

    /// `GROUPING(…)`: settled when the groups are known.
    pub(super) fn grouping(&mut self, function: &ast::Function, args: &CallArgs) -> Result<Expr> {
        let place = args.exprs.first().and_then(|first| position::of_expr(&self.ctx.sql, first));
        if args.exprs.len() > GROUPING_ARGS_MAX {
            let place = position::of_name(&self.ctx.sql, &function.name);
            return Err(SqlError::new("54023", "GROUPING must have fewer than 32 arguments").at(place));
        }
        let bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        let level = self.level_of(&bound.iter().collect::<Vec<_>>());
        let scope = &self.scopes[level];
        if !scope.clause.allows_aggregates() {
            let place = position::of_name(&self.ctx.sql, &function.name);
            let message = format!("grouping operations are not allowed in {}", scope.clause.name());
            return Err(SqlError::new("42803", message).at(place));
        }
        let ty = DataType::Int4;
        if let Some((id, ..)) = scope.groupings.iter().find(|(_, known, _)| *known == bound) {
            return Ok(Expr::Hole { id: *id, ty });
        }
        let id = self.fresh();
        self.scopes[level].groupings.push((id, bound, place));
        Ok(Expr::Hole { id, ty })
    }

    /// An aggregate belongs to the innermost level whose columns its arguments use.
    fn level_of(&self, exprs: &[&Expr]) -> usize {
        let innermost = self.scopes.len() - 1;
        let mut used: Vec<ColId> = Vec::new();
        exprs.iter().for_each(|expr| self.columns_of(expr, &mut used));
        let level_of = |id: &ColId| (0..self.scopes.len()).rev().find(|level| self.scopes[*level].defines(*id));
        let computed = |id: &ColId| {
            (0..self.scopes.len()).rev().find(|level| {
                let scope = &self.scopes[*level];
                scope.aggregates.iter().any(|(known, _)| known == id)
                    || scope.windows.iter().any(|(known, _)| known == id)
            })
        };
        used.iter().filter_map(|id| level_of(id).or_else(|| computed(id))).max().unwrap_or(innermost)
    }

    /// Columns that an expression uses, those that its subqueries take from outside included.
    pub(super) fn columns_of(&self, expr: &Expr, used: &mut Vec<ColId>) {
        expr.walk(&mut |node| {
            if let Expr::Hole { id, .. } = node {
                match self.subqueries.get(id) {
                    Some(_) => used.extend(self.outer_columns(*id).into_iter().map(|(id, _)| id)),
                    None => used.push(*id),
                }
            }
            true
        });
    }

    /// Whether an expression uses columns of the query at hand, not only those of queries around it.
    pub(super) fn uses_own_columns(&self, expr: &Expr) -> bool {
        let Some(scope) = self.scopes.last() else { return false };
        let mut used = Vec::new();
        self.columns_of(expr, &mut used);
        used.iter().any(|id| {
            let aggregate = scope.aggregates.iter().find(|(known, _)| known == id);
            let window = scope.windows.iter().find(|(known, _)| known == id);
            match (aggregate, window) {
                (Some((_, call)), _) => call.clone().exprs_mut().into_iter().any(|arg| self.uses_own_columns(arg)),
                (_, Some((_, call))) => call.clone().exprs_mut().into_iter().any(|arg| self.uses_own_columns(arg)),
                _ => scope.defines(*id) || scope.groupings.iter().any(|(known, ..)| known == id),
            }
        })
    }

    /// Aggregates are neither in each other nor around window functions of their level.
    fn check_inside(&self, exprs: &[&Expr], level: usize) -> Result<()> {
        let scope = &self.scopes[level];
        let mut used = Vec::new();
        exprs.iter().for_each(|expr| self.columns_of(expr, &mut used));
        let refused =
            |id: &ColId, message: &str| SqlError::new("42803", message).at(self.call_places.get(id).copied().flatten());
        if let Some(id) = used.iter().find(|id| scope.windows.iter().any(|(known, _)| known == *id)) {
            return Err(refused(id, "aggregate function calls cannot contain window function calls"));
        }
        if let Some(id) = used.iter().find(|id| scope.aggregates.iter().any(|(known, _)| known == *id)) {
            return Err(refused(id, "aggregate function calls cannot be nested"));
        }
        if exprs.iter().any(|expr| super::select::has_set(expr)) {
            let hint = "You might be able to move the set-returning function into a LATERAL FROM item.";
            return Err(SqlError::not_supported(
                "aggregate function calls cannot contain set-returning function calls",
            )
            .with_hint(hint));
        }
        Ok(())
    }

    /// Name, arguments, DISTINCT, ORDER BY and FILTER of an aggregate, without deciding where it is computed.
    pub(super) fn aggregate_parts(
        &mut self,
        name: &str,
        function: &ast::Function,
        args: &CallArgs,
    ) -> Result<AggregateCall> {
        if is_ordered_set(name) {
            if function.within_group.is_empty() && !has_arguments(name, args.exprs.len()) {
                return Err(self.no_such_function(name, args));
            }
            if function.within_group.is_empty() {
                let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
                return Err(SqlError::new("42809", message));
            }
            return self.ordered_set(name, function, args);
        }
        if !function.within_group.is_empty() {
            if !args.star {
                let keys = function.within_group.iter().map(|key| &key.expr);
                let all = args.exprs.iter().copied().chain(keys);
                let all = all.map(|expr| self.expr(expr)).collect::<Result<Vec<_>>>()?;
                resolve::aggregate(self.registry(), name, all, &self.ctx.eval)?;
            }
            let message = format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP");
            return Err(SqlError::new("42809", message));
        }
        if args.star && name != "count" {
            return Err(self.no_such_function(name, args));
        }
        let bound = args.exprs.iter().map(|arg| self.expr(arg)).collect::<Result<Vec<_>>>()?;
        if bound.is_empty() && !args.star {
            let error = match name {
                "count" => SqlError::new("42809", "count(*) must be used to call a parameterless aggregate function"),
                _ => self.no_such_function(name, args),
            };
            return Err(error);
        }
        let mut order_by = self.sort_keys(args.order_by)?;
        let filter = match function.filter.as_deref() {
            Some(filter) => Some(self.in_clause(Clause::Filter, |binder| binder.condition("FILTER", filter))?),
            None => None,
        };
        let given = bound.clone();
        let (resolved, bound) = resolve::aggregate(self.registry(), name, bound, &self.ctx.eval)
            .map_err(|error| SqlError::from(error).at(position::of_name(&self.ctx.sql, &function.name)))?;
        let bound: Vec<Expr> = bound.into_iter().map(|arg| self.done(arg)).collect();
        for key in &mut order_by {
            // `string_agg(DISTINCT x, ',' ORDER BY x)` orders by the argument as the aggregate takes it.
            if let Some(at) = given.iter().position(|arg| *arg == key.expr).filter(|_| args.distinct) {
                key.expr = unwritten(&bound[at]).clone();
            }
            super::query::check_sortable(&key.expr)?;
        }
        if args.distinct {
            self.check_distinct(args, &given, &bound, &order_by)?;
        }
        Ok(AggregateCall { resolved, args: bound, distinct: args.distinct, filter, order_by })
    }
}

impl Binder<'_> {
    /// `given` are the arguments as they are written, `bound` as the aggregate takes them.
    fn check_distinct(&self, call: &CallArgs, given: &[Expr], bound: &[Expr], order_by: &[SortKey]) -> Result<()> {
        for (arg, syntax) in given.iter().zip(&call.exprs) {
            // The rows of DISTINCT are sorted in PostgreSQL.
            let ty = arg.ty();
            basalt_expr::operators::check_comparable(&ty, "=")
                .and_then(|()| basalt_expr::operators::check_comparable(&ty, "<"))
                .map_err(|error| SqlError::from(error).at(position::of_expr(&self.ctx.sql, syntax)))?;
        }
        if let Some(at) = order_by.iter().position(|key| !bound.iter().any(|arg| *unwritten(arg) == key.expr)) {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            let place = call.order_by.get(at).and_then(|key| position::of_expr(&self.ctx.sql, &key.expr));
            return Err(SqlError::new("42P10", message).at(place));
        }
        Ok(())
    }
}
