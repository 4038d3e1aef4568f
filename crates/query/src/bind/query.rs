//! Whole queries: WITH, set operations, VALUES, and what follows the body (ORDER BY, LIMIT).

use super::binder::{Binder, Bound};
use super::names;
use super::position;
use super::scope::{Clause, Scope};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, SetColumn, SetOp, SortKey, Subquery, SubqueryKind};
use crate::syntax::{USING_OPERATOR, WITH_TIES, marked};
use basalt_expr::cast::CastContext;
use basalt_expr::resolve;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum};
use sqlparser::ast::{self, LimitClause, OrderByKind, SetExpr, SetOperator, SetQuantifier, Spanned};

impl Binder<'_> {
    /// Binds a query; values still of unknown type become text.
    pub fn query(&mut self, query: &ast::Query) -> Result<Bound> {
        self.deeper(|binder| binder.query_with(query, false))
    }

    /// As [`Binder::query`]; with `keep_unknown` literals keep their open type for a set operation or INSERT.
    pub fn query_with(&mut self, query: &ast::Query, keep_unknown: bool) -> Result<Bound> {
        refuse_repeated_clauses(query)?;
        super::foreign::refuse_in_query(query)?;
        let known_ctes = self.ctes.len();
        let top = std::mem::take(&mut self.takes_writes);
        if let Some(with) = &query.with {
            self.with(with, top)?;
        }
        let around = std::mem::take(&mut self.next_locking);
        let bound = match query.locks.is_empty() && around.is_empty() {
            true => self.body_and_tail(query, keep_unknown),
            false => self.locked_query(query, around),
        };
        self.ctes.truncate(known_ctes);
        bound
    }

    pub fn body_and_tail(&mut self, query: &ast::Query, keep_unknown: bool) -> Result<Bound> {
        let order_by = order_exprs(query)?;
        let mut bound = match &*query.body {
            SetExpr::Select(select) => self.select(select, order_by, keep_unknown)?,
            body => {
                let bound = self.body(body, keep_unknown)?;
                self.last_scope = None;
                self.sort_output(bound, order_by)?
            }
        };
        let (limit, offset, ties) = self.limits(query)?;
        if ties && order_by.is_empty() {
            return Err(SqlError::syntax("WITH TIES cannot be specified without ORDER BY clause"));
        }
        if ties && matches!(limit, Some(Expr::Const { value: Datum::Null, .. })) {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(SqlError::new("2201W", message));
        }
        if limit.is_some() || offset.is_some() {
            bound.plan = Plan::Limit { input: Box::new(bound.plan), limit, offset, ties };
        }
        Ok(bound)
    }

    pub fn body(&mut self, body: &SetExpr, keep_unknown: bool) -> Result<Bound> {
        match body {
            SetExpr::Select(select) => self.select(select, &[], keep_unknown),
            SetExpr::Query(query) => self.query_with(query, keep_unknown),
            SetExpr::Values(values) => {
                let rows: Vec<&[ast::Expr]> = values.rows.iter().map(|row| row.content.as_slice()).collect();
                self.values(&rows, keep_unknown)
            }
            SetExpr::SetOperation { .. } => self.set_operations(body, keep_unknown),
            SetExpr::Table(table) => {
                let mut parts: Vec<ast::Ident> = Vec::new();
                parts.extend(table.schema_name.iter().map(|name| ast::Ident::new(name.clone())));
                parts.extend(table.table_name.iter().map(|name| ast::Ident::new(name.clone())));
                let query = super::parse_query(&format!("SELECT * FROM {}", ast::ObjectName::from(parts)))?;
                self.query_with(&query, keep_unknown)
            }
            _ => Err(SqlError::not_supported("data-modifying statements inside a query are not supported")),
        }
    }

    /// A chain of them, whose first query stands deepest.
    fn set_operations(&mut self, body: &SetExpr, keep_unknown: bool) -> Result<Bound> {
        let (mut chain, mut first) = (Vec::new(), body);
        while let SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            super::locking::refuse_in_set_operation(left)?;
            super::locking::refuse_in_set_operation(right)?;
            if let SetExpr::Select(select) = &**right
                && let Some(into) = &select.into
            {
                let place = position::of_span(&self.ctx.sql, into.name.span());
                let message = "INTO is only allowed on first SELECT of UNION/INTERSECT/EXCEPT";
                return Err(SqlError::syntax(message).at(place));
            }
            let op = match op {
                SetOperator::Union => SetOp::Union,
                SetOperator::Intersect => SetOp::Intersect,
                SetOperator::Except | SetOperator::Minus => SetOp::Except,
            };
            chain.push((left, op, matches!(set_quantifier, SetQuantifier::All), right));
            first = left;
        }
        let mut bound = self.deeper(|binder| binder.body(first, true))?;
        for (left_body, op, all, right_body) in chain.into_iter().rev() {
            let right = self.deeper(|binder| binder.body(right_body, true))?;
            bound = self.set_operation(op, all, bound, right).map_err(|(error, index)| {
                let exprs = [right_body, left_body].map(|body| output_expr(body, index));
                let place = error.position.or_else(|| self.set_place(exprs, &error));
                error.at(place)
            })?;
        }
        if keep_unknown { Ok(bound) } else { self.all_known(bound) }
    }

    pub fn values(&mut self, rows: &[&[ast::Expr]], keep_unknown: bool) -> Result<Bound> {
        self.scopes.push(Scope::new(Clause::Values));
        let bound = self.values_rows(rows, keep_unknown);
        self.scopes.pop();
        bound
    }

    fn values_rows(&mut self, rows: &[&[ast::Expr]], keep_unknown: bool) -> Result<Bound> {
        let width = rows.first().map_or(0, |row| row.len());
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != width {
                let place = row.first().and_then(|expr| position::of_expr(&self.ctx.sql, expr));
                return Err(SqlError::syntax("VALUES lists must all be the same length").at(place));
            }
            bound.push(row.iter().map(|expr| self.expr(expr)).collect::<Result<Vec<_>>>()?);
        }
        let mut columns = Vec::with_capacity(width);
        for index in 0..width {
            let values = bound.iter().map(|row| &row[index]);
            if keep_unknown && values.clone().all(|value| value.ty() == DataType::Unknown) {
                columns.push(DataType::Unknown);
                continue;
            }
            let ty = resolve::common_type("VALUES", values)?;
            for row in &mut bound {
                let value = std::mem::replace(&mut row[index], Expr::bool(false));
                row[index] = self.coerce(value, &ty, CastContext::Implicit)?;
            }
            columns.push(ty);
        }
        let columns: Vec<(ColId, DataType)> = columns.into_iter().map(|ty| (self.fresh(), ty)).collect();
        let outputs = columns.iter().enumerate().map(|(index, (id, ty))| {
            let name = format!("column{}", index + 1);
            OutputColumn { id: *id, name, ty: ty.clone(), typmod: -1, table_oid: 0, column_no: 0 }
        });
        Ok(Bound { columns: outputs.collect(), plan: Plan::Values { columns, rows: bound } })
    }

    /// Where an error of matching two outputs stands: at the literal that cannot be read, else in the right query.
    fn set_place(&self, exprs: [Option<&ast::Expr>; 2], error: &SqlError) -> Option<u32> {
        let sql = &self.ctx.sql;
        let literal = exprs.iter().flatten().find_map(|expr| position::of_literal(sql, expr.span().start, error));
        literal.or_else(|| position::of_expr(sql, exprs[0]?))
    }

    /// An error says at which output it was met.
    fn set_operation(
        &mut self,
        op: SetOp,
        all: bool,
        left: Bound,
        right: Bound,
    ) -> std::result::Result<Bound, (SqlError, usize)> {
        let given = left.columns.len().min(right.columns.len());
        match left.columns.is_empty() && right.columns.is_empty() && !(op == SetOp::Union && all) {
            // What has no columns is counted by one.
            true => {
                let (left, right) = (self.with_constant(left), self.with_constant(right));
                let bound = self.matched(op, all, left, right, &mut 0).map_err(|error| (error, 0))?;
                Ok(Bound { plan: bound.plan, columns: Vec::new() })
            }
            false => {
                let mut at = given;
                self.matched(op, all, left, right, &mut at).map_err(|error| (error, at))
            }
        }
    }

    fn with_constant(&mut self, bound: Bound) -> Bound {
        let (id, ty) = (self.fresh(), DataType::Int4);
        let plan = Plan::Project { input: Box::new(bound.plan), exprs: vec![(id, Expr::int4(1))] };
        let name = String::new();
        Bound { plan, columns: vec![OutputColumn { id, name, ty, typmod: -1, table_oid: 0, column_no: 0 }] }
    }

    /// `at`: the output that is being matched.
    fn matched(&mut self, op: SetOp, all: bool, left: Bound, right: Bound, at: &mut usize) -> Result<Bound> {
        let name = match op {
            SetOp::Union => "UNION",
            SetOp::Intersect => "INTERSECT",
            SetOp::Except => "EXCEPT",
        };
        if left.columns.len() != right.columns.len() {
            *at = 0;
            return Err(SqlError::syntax(format!("each {name} query must have the same number of columns")));
        }
        let (mut left, mut right) = (left, right);
        let mut columns = Vec::with_capacity(left.columns.len());
        let mut outputs = Vec::with_capacity(left.columns.len());
        for index in 0..left.columns.len() {
            *at = index;
            let (a, b) = (left.columns[index].clone(), right.columns[index].clone());
            let ty = resolve::resolve_common_type(name, &[a.ty.clone(), b.ty.clone()])?;
            if op != SetOp::Union || !all {
                basalt_expr::operators::check_comparable(&ty, "=")?;
            }
            self.retype(&mut left, index, &ty, CastContext::Implicit)?;
            self.retype(&mut right, index, &ty, CastContext::Implicit)?;
            let id = self.fresh();
            let typmod = if a.typmod == b.typmod && a.ty.base() == b.ty.base() { a.typmod } else { -1 };
            self.set_typmod(id, typmod);
            outputs.push(OutputColumn { id, name: a.name, ty: ty.clone(), typmod, table_oid: 0, column_no: 0 });
            columns.push(SetColumn { id, left: left.columns[index].id, right: right.columns[index].id, ty });
        }
        let plan = Plan::SetOp { op, all, left: Box::new(left.plan), right: Box::new(right.plan), columns };
        Ok(Bound { plan, columns: outputs })
    }

    /// Brings one output column to a type: a literal is read as it, anything else is cast.
    pub fn retype(&mut self, bound: &mut Bound, index: usize, ty: &DataType, strength: CastContext) -> Result<()> {
        let column = bound.columns[index].clone();
        if column.ty == *ty {
            return Ok(());
        }
        let id = self.fresh();
        if column.ty == DataType::Unknown
            && let Some(expr) = open_literal(&mut bound.plan, column.id)
        {
            let read = self.coerce(expr.clone(), ty, strength)?;
            *expr_of(&mut bound.plan, column.id).expect("found above") = read;
            bound.columns[index].ty = ty.clone();
            return Ok(());
        }
        if let (DataType::Unknown, Plan::Values { columns, rows }) = (&column.ty, &mut bound.plan) {
            let at = columns.iter().position(|(known, _)| *known == column.id).expect("a column of its plan");
            columns[at].1 = ty.clone();
            for row in rows {
                let value = std::mem::replace(&mut row[at], Expr::bool(false));
                row[at] = resolve::coerce(value, ty, strength, &self.ctx.eval)?;
                let settled = row[at].clone();
                self.done(settled);
            }
            bound.columns[index].ty = ty.clone();
            return Ok(());
        }
        let cast = self.coerce(Expr::Hole { id: column.id, ty: column.ty }, ty, strength)?;
        let input = std::mem::replace(&mut bound.plan, Plan::Unit);
        let passed = input.columns().into_iter().map(|(id, ty)| (id, Expr::Hole { id, ty }));
        let exprs = passed.chain([(id, cast)]).collect();
        bound.plan = Plan::Project { input: Box::new(input), exprs };
        bound.columns[index] = OutputColumn {
            id,
            ty: ty.clone(),
            typmod: if ty.base() == *ty { -1 } else { ty.typmod() },
            table_oid: 0,
            column_no: 0,
            ..bound.columns[index].clone()
        };
        Ok(())
    }

    fn all_known(&mut self, mut bound: Bound) -> Result<Bound> {
        for index in 0..bound.columns.len() {
            if bound.columns[index].ty == DataType::Unknown {
                self.retype(&mut bound, index, &DataType::Text, CastContext::Implicit)?;
            }
        }
        Ok(bound)
    }

    /// ORDER BY of a set operation or VALUES: names and ordinals of the output only.
    fn sort_output(&mut self, bound: Bound, order_by: &[ast::OrderByExpr]) -> Result<Bound> {
        if order_by.is_empty() {
            return Ok(bound);
        }
        let mut keys = Vec::with_capacity(order_by.len());
        for key in order_by {
            if let Some(symbol) = using_operator(key) {
                return Err(self.no_ordering(symbol, keys.last()));
            }
            let place = position::of_start(&self.ctx.sql, &key.expr);
            let column = match &key.expr {
                ast::Expr::Identifier(ident) => {
                    let name = names::fold(ident);
                    bound
                        .columns
                        .iter()
                        .find(|column| column.name == name)
                        .ok_or_else(|| SqlError::new("42703", format!("column \"{name}\" does not exist")))
                }
                ast::Expr::CompoundIdentifier(parts) => {
                    let relation = parts.first().map(names::fold).unwrap_or_default();
                    let message = format!("missing FROM-clause entry for table \"{relation}\"");
                    Err(SqlError::new("42P01", message))
                }
                expr => match constant(expr) {
                    Some(Constant::Integer(number)) => usize::try_from(number)
                        .ok()
                        .and_then(|number| number.checked_sub(1))
                        .and_then(|index| bound.columns.get(index))
                        .ok_or_else(|| bad_ordinal("ORDER BY", number)),
                    Some(Constant::Other) => Err(SqlError::syntax("non-integer constant in ORDER BY")),
                    None => Err(SqlError::not_supported("invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
                        .with_detail("Only result column names can be used, not expressions or functions.")
                        .with_hint(
                            "Add the expression/function to every SELECT, or move the UNION into a FROM clause.",
                        )),
                },
            }
            .map_err(|error| error.at(place))?;
            keys.push(sort_key(Expr::Hole { id: column.id, ty: column.ty.clone() }, &key.options));
        }
        Ok(Bound { plan: Plan::Sort { input: Box::new(bound.plan), keys }, columns: bound.columns })
    }

    /// Keys whose expressions are bound in the current scope.
    pub fn sort_keys(&mut self, order_by: &[ast::OrderByExpr]) -> Result<Vec<SortKey>> {
        let mut keys = Vec::with_capacity(order_by.len());
        for key in order_by {
            if let Some(symbol) = using_operator(key) {
                return Err(self.no_ordering(symbol, keys.last()));
            }
            let expr = self.expr(&key.expr)?;
            keys.push(sort_key(self.known(expr)?, &key.options));
        }
        Ok(keys)
    }

    /// An operator after USING that is none of `<` and `>`.
    pub(super) fn no_ordering(&mut self, symbol: &str, key: Option<&SortKey>) -> SqlError {
        let Some(key) = key else { return SqlError::syntax("an operator after USING needs an expression before") };
        match self.operator(symbol, Some(key.expr.clone()), key.expr.clone()) {
            Ok(_) => SqlError::new("42809", format!("operator {symbol} is not a valid ordering operator"))
                .with_hint("Ordering operators must be \"<\" or \">\" members of btree operator families."),
            Err(error) => error,
        }
    }

    fn limits(&mut self, query: &ast::Query) -> Result<(Option<Expr>, Option<Expr>, bool)> {
        let (mut limit, mut offset, mut ties) = (None, None, false);
        match &query.limit_clause {
            Some(LimitClause::LimitOffset { limit: given, offset: skipped, .. }) => {
                if let Some(expr) = given {
                    let counted = marked(expr, WITH_TIES).and_then(|args| args.first().copied());
                    ties = counted.is_some();
                    limit = Some(self.limit("LIMIT", counted.unwrap_or(expr))?);
                }
                offset = skipped.as_ref().map(|offset| self.limit("OFFSET", &offset.value)).transpose()?;
            }
            Some(LimitClause::OffsetCommaLimit { .. }) => {
                return Err(SqlError::syntax("LIMIT #,# syntax is not supported")
                    .with_hint("Use separate LIMIT and OFFSET clauses."));
            }
            None => {}
        }
        Ok((limit, offset, ties))
    }

    /// A row count. It is bound among the columns of its SELECT, none of which it may use.
    fn limit(&mut self, place: &str, expr: &ast::Expr) -> Result<Expr> {
        let scope = self.last_scope.take().unwrap_or_else(|| Scope::new(Clause::Limit));
        self.scopes.push(Scope { clause: Clause::Limit, ..scope });
        let bound = self.row_count(place, expr);
        self.last_scope = self.scopes.pop();
        bound
    }

    fn row_count(&mut self, place: &str, expr: &ast::Expr) -> Result<Expr> {
        let at = position::of_expr(&self.ctx.sql, expr);
        let bound = self.expr(expr)?;
        let ty = bound.ty();
        let bound =
            self.coerce(bound, &DataType::Int8, CastContext::Assignment).map_err(|error| match error.sqlstate {
                "42846" => {
                    let message = format!("argument of {place} must be type bigint, not type {}", ty.base().sql_name());
                    SqlError::new("42804", message).at(at)
                }
                _ => error.at(at),
            })?;
        let mut used = Vec::new();
        self.columns_of(&bound, &mut used);
        let scope = self.scope();
        if used.iter().any(|id| scope.defines(*id)) {
            return Err(SqlError::new("42P10", format!("argument of {place} must not contain variables")).at(at));
        }
        Ok(bound)
    }

    /// Whether an expression, or a subquery in it, refers to one of these columns.
    pub fn uses(&self, expr: &Expr, is_one: &dyn Fn(ColId) -> bool) -> bool {
        expr.any(&mut |node| match node {
            Expr::Hole { id, .. } => {
                is_one(*id) || self.subqueries.get(id).is_some_and(|inner| self.subquery_uses(inner, is_one))
            }
            _ => false,
        })
    }

    fn subquery_uses(&self, subquery: &Subquery, is_one: &dyn Fn(ColId) -> bool) -> bool {
        let compared = match &subquery.kind {
            SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } => self.uses(condition, is_one),
            SubqueryKind::Scalar { .. } | SubqueryKind::Exists => false,
        };
        compared || self.plan_uses(&subquery.plan, is_one)
    }

    pub fn plan_uses(&self, plan: &Plan, is_one: &dyn Fn(ColId) -> bool) -> bool {
        let mut found = false;
        plan.clone().rewrite_exprs(&mut |node| {
            found |= matches!(node, Expr::Hole { .. }) && self.uses(&node, is_one);
            node
        });
        found || self.reads_shared_that_uses(plan, is_one)
    }

    fn reads_shared_that_uses(&self, plan: &Plan, is_one: &dyn Fn(ColId) -> bool) -> bool {
        if let Plan::Shared { cte, .. } = plan
            && let Some(cte) = self.shared.get(cte)
            && self.plan_uses(&cte.plan, is_one)
        {
            return true;
        }
        plan.inputs().into_iter().any(|input| self.reads_shared_that_uses(input, is_one))
    }
}

/// The expression that gives an output of a query; `None` for one of `*`.
pub(super) fn output_expr(body: &SetExpr, index: usize) -> Option<&ast::Expr> {
    match body {
        SetExpr::Select(select) => {
            let items = select.projection.get(..=index)?;
            let plain = items.iter().map(|item| match item {
                ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => Some(expr),
                _ => None,
            });
            plain.collect::<Option<Vec<_>>>()?.pop()
        }
        SetExpr::Query(query) => output_expr(&query.body, index),
        SetExpr::SetOperation { left, .. } => output_expr(left, index),
        SetExpr::Values(values) => values.rows.first()?.content.get(index),
        _ => None,
    }
}

/// Parentheses around a query do not make it another: `(SELECT … LIMIT 1) LIMIT 2` has two limits.
fn refuse_repeated_clauses(query: &ast::Query) -> Result<()> {
    let SetExpr::Query(inner) = &*query.body else { return Ok(()) };
    let limits = |query: &ast::Query| match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            (limit.is_some() || query.fetch.is_some(), offset.is_some())
        }
        _ => (query.fetch.is_some(), false),
    };
    let ((limit, offset), (inner_limit, inner_offset)) = (limits(query), limits(inner));
    let repeated = [
        ("ORDER BY", query.order_by.is_some() && inner.order_by.is_some()),
        ("OFFSET", offset && inner_offset),
        ("LIMIT", limit && inner_limit),
        ("WITH", query.with.is_some() && inner.with.is_some()),
    ];
    match repeated.iter().find(|(_, twice)| *twice) {
        Some((clause, _)) => Err(SqlError::syntax(format!("multiple {clause} clauses not allowed"))),
        None => Ok(()),
    }
}

/// The operator that stands for itself behind a key: see [`crate::syntax`].
pub(super) fn using_operator(key: &ast::OrderByExpr) -> Option<&str> {
    let args = marked(&key.expr, USING_OPERATOR)?;
    match args.first() {
        Some(ast::Expr::Value(value)) => match &value.value {
            ast::Value::SingleQuotedString(symbol) => Some(symbol),
            _ => None,
        },
        _ => None,
    }
}

/// 42883 for what has no order.
pub(super) fn check_sortable(expr: &Expr) -> Result<()> {
    let checked = basalt_expr::operators::check_comparable(&expr.ty(), "<");
    checked.map_err(|error| SqlError::from(error).with_hint("Use an explicit ordering operator or modify the query."))
}

/// 42883 for what has no equality.
pub(super) fn check_groupable(expr: &Expr) -> Result<()> {
    Ok(basalt_expr::operators::check_comparable(&expr.ty(), "=")?)
}

pub(super) fn sort_key(expr: Expr, options: &ast::OrderByOptions) -> SortKey {
    let descending = options.asc == Some(false);
    SortKey { expr, descending, nulls_first: options.nulls_first.unwrap_or(descending) }
}

fn order_exprs(query: &ast::Query) -> Result<&[ast::OrderByExpr]> {
    match query.order_by.as_ref().map(|order_by| &order_by.kind) {
        None => Ok(&[]),
        Some(OrderByKind::Expressions(keys)) => Ok(keys),
        Some(OrderByKind::All(_)) => Err(SqlError::syntax("ORDER BY ALL is not supported")),
    }
}

/// A constant where an ordinal may stand.
pub(super) enum Constant {
    Integer(i64),
    Other,
}

/// `None` for what is no plain constant.
pub(super) fn constant(expr: &ast::Expr) -> Option<Constant> {
    let of = |value: &ast::Value, sign: i64| match value {
        ast::Value::Number(text, _) => match text.parse::<i32>() {
            Ok(number) => Some(Constant::Integer(sign * i64::from(number))),
            Err(_) => Some(Constant::Other),
        },
        ast::Value::Placeholder(_) => None,
        _ => Some(Constant::Other),
    };
    match expr {
        ast::Expr::Nested(inner) => constant(inner),
        ast::Expr::Value(value) => of(&value.value, 1),
        ast::Expr::UnaryOp { op: ast::UnaryOperator::Minus, expr } => match &**expr {
            ast::Expr::Value(value) if matches!(value.value, ast::Value::Number(..)) => of(&value.value, -1),
            _ => None,
        },
        _ => None,
    }
}

pub(super) fn bad_ordinal(place: &str, number: i64) -> SqlError {
    SqlError::new("42P10", format!("{place} position {number} is not in select list"))
}

/// The literal or parameter of open type that a projection gives as column `id`.
fn open_literal(plan: &mut Plan, id: ColId) -> Option<Expr> {
    match expr_of(plan, id)? {
        expr @ (Expr::Const { ty: DataType::Unknown, .. } | Expr::Param { ty: DataType::Unknown, .. }) => {
            Some(expr.clone())
        }
        _ => None,
    }
}

fn expr_of(plan: &mut Plan, id: ColId) -> Option<&mut Expr> {
    match plan {
        Plan::Project { exprs, .. } => exprs.iter_mut().find(|(known, _)| *known == id).map(|(_, expr)| expr),
        _ => None,
    }
}
