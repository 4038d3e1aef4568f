//! Subqueries inside expressions: each becomes a hole and an entry in the statement's table of subqueries.

use super::binder::{Binder, Bound};
use super::expr::{negate, symbol};
use crate::error::{Result, SqlError};
use crate::plan::{AggregateCall, OutputColumn, Plan, Subquery, SubqueryKind};
use basalt_expr::cast::CastContext;
use basalt_expr::tree::Expr;
use basalt_expr::{array_value, resolve};
use basalt_types::{DataType, Datum};
use sqlparser::ast::{self, BinaryOperator};

impl Binder<'_> {
    fn hole(&mut self, kind: SubqueryKind, bound: Bound, ty: DataType) -> Expr {
        let id = self.fresh();
        self.subqueries.insert(id, Subquery { kind, plan: bound.plan });
        Expr::Hole { id, ty }
    }

    fn single_column(&mut self, query: &ast::Query) -> Result<(Bound, OutputColumn)> {
        let bound = self.query(query)?;
        match bound.columns.as_slice() {
            [column] => {
                let column = column.clone();
                Ok((bound, column))
            }
            _ => Err(SqlError::syntax("subquery must return only one column")),
        }
    }

    pub fn scalar_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let (bound, column) = self.single_column(query)?;
        let kind = SubqueryKind::Scalar { column: column.id, ty: column.ty.clone() };
        let hole = self.hole(kind, bound, column.ty);
        if let Expr::Hole { id, .. } = &hole {
            self.set_typmod(*id, column.typmod);
        }
        self.note_text(&hole, query);
        Ok(hole)
    }

    /// One of `width` outputs of a subquery of at most one row.
    pub fn nth_subquery(&mut self, query: &ast::Query, index: usize, width: usize) -> Result<Expr> {
        let bound = self.query(query)?;
        if bound.columns.len() != width {
            return Err(SqlError::syntax("number of columns does not match number of values"));
        }
        let column = bound.columns[index].clone();
        let kind = SubqueryKind::Scalar { column: column.id, ty: column.ty.clone() };
        Ok(self.hole(kind, bound, column.ty))
    }

    /// `ARRAY(…)`: `array_agg` of its rows, which heeds their order, and an empty array if there are none.
    pub fn array_subquery(&mut self, query: &ast::Query) -> Result<Expr> {
        let (mut bound, column) = self.single_column(query)?;
        // What arrays hold has no modifier. A subquery of arrays makes an array with a dimension more.
        let (part, ty) = match column.ty.element() {
            Some(_) => (column.ty.underlying().base(), column.ty.underlying().base()),
            None => (column.ty.base(), DataType::Array(Box::new(column.ty.base()))),
        };
        let eval = &self.ctx.eval;
        let value = Expr::Hole { id: column.id, ty: column.ty };
        let value = resolve::coerce(value, &part, CastContext::Implicit, eval)?;
        let (resolved, args) = resolve::aggregate(self.registry(), "array_agg", vec![value], eval)?;
        let (gathered, out) = (self.fresh(), self.fresh());
        let call = AggregateCall { resolved, args, distinct: false, filter: None, order_by: Vec::new() };
        let gathered = (gathered, call);
        let rows = Expr::Hole { id: gathered.0, ty: gathered.1.resolved.ty.clone() };
        let empty = Expr::Const { value: array_value::encode(ty.element().unwrap_or(&part), &[])?, ty: ty.clone() };
        let value = Expr::Coalesce { args: vec![rows, empty], ty: ty.clone() };
        let input = Box::new(bound.plan);
        let grouped = Plan::Aggregate { input, groups: Vec::new(), aggregates: vec![gathered], sets: None };
        bound.plan = Plan::Project { input: Box::new(grouped), exprs: vec![(out, value)] };
        let hole = self.hole(SubqueryKind::Scalar { column: out, ty: ty.clone() }, bound, ty);
        self.note_compared(&hole, "array", query);
        Ok(hole)
    }

    pub fn exists(&mut self, query: &ast::Query, negated: bool) -> Result<Expr> {
        let mut bound = self.query(query)?;
        // Neither an order nor a limit of one or more changes whether there is a row.
        loop {
            bound.plan = match bound.plan {
                Plan::Sort { input, .. } => *input,
                Plan::Limit {
                    input,
                    limit: Some(Expr::Const { value: Datum::I64(1..), .. }),
                    offset: None,
                    ties: false,
                } => *input,
                other => {
                    bound.plan = other;
                    break;
                }
            };
        }
        let hole = self.hole(SubqueryKind::Exists, bound, DataType::Bool);
        self.note_text(&hole, query);
        Ok(negate(hole, negated))
    }

    pub fn in_subquery(&mut self, expr: &ast::Expr, query: &ast::Query, negated: bool) -> Result<Expr> {
        let left = match self.row_items(expr)? {
            Some(items) => items,
            None => vec![self.expr(expr)?],
        };
        let any = self.any_subquery(left, "=", query, false)?;
        self.note_compared(&any, &format!("{expr} ="), query);
        Ok(negate(any, negated))
    }

    /// `left op ANY|ALL (…)`, over an array or a subquery.
    pub fn any_all(&mut self, left: &ast::Expr, op: &BinaryOperator, right: &ast::Expr, all: bool) -> Result<Expr> {
        let symbol = symbol(op);
        if let Some(query) = query_of(right) {
            let operands = match self.row_items(left)? {
                Some(items) => items,
                None => vec![self.expr(left)?],
            };
            let compared = self.any_subquery(operands, &symbol, query, all)?;
            self.note_compared(&compared, &format!("{left} {symbol}"), query);
            return Ok(compared);
        }
        let (left, array) = (self.expr(left)?, self.expr(right)?);
        let expr = resolve::any_all(self.registry(), left, &symbol, array, all, &self.ctx.eval)?;
        Ok(self.done(expr))
    }

    /// `(a, b) op (SELECT x, y …)`: the comparison with its only row, null if there is none.
    pub fn row_subquery(&mut self, left: Vec<Expr>, symbol: &str, query: &ast::Query) -> Result<Expr> {
        let mut bound = self.query(query)?;
        if bound.columns.len() != left.len() {
            let many = if bound.columns.len() > left.len() { "many" } else { "few" };
            return Err(SqlError::syntax(format!("subquery has too {many} columns")));
        }
        let right = bound.columns.iter().map(|column| Expr::Hole { id: column.id, ty: column.ty.clone() }).collect();
        let condition = self.compare_rows(left, symbol, right)?;
        let column = self.fresh();
        bound.plan = Plan::Project { input: Box::new(bound.plan), exprs: vec![(column, condition)] };
        Ok(self.hole(SubqueryKind::Scalar { column, ty: DataType::Bool }, bound, DataType::Bool))
    }

    fn any_subquery(&mut self, left: Vec<Expr>, symbol: &str, query: &ast::Query, all: bool) -> Result<Expr> {
        let bound = self.query(query)?;
        if bound.columns.len() != left.len() {
            let many = if bound.columns.len() > left.len() { "many" } else { "few" };
            return Err(SqlError::syntax(format!("subquery has too {many} columns")));
        }
        let mut right = bound.columns.iter().map(|column| Expr::Hole { id: column.id, ty: column.ty.clone() });
        let condition = match (left.as_slice(), bound.columns.len()) {
            ([only], 1) => self.operator(symbol, Some(only.clone()), right.next().unwrap_or(Expr::bool(false)))?,
            _ => {
                let right = right.collect();
                self.compare_rows(left, symbol, right)?
            }
        };
        let columns = bound.columns.iter().map(|column| column.id).collect();
        let kind =
            if all { SubqueryKind::All { columns, condition } } else { SubqueryKind::Any { columns, condition } };
        Ok(self.hole(kind, bound, DataType::Bool))
    }
}

pub(super) fn query_of(expr: &ast::Expr) -> Option<&ast::Query> {
    match expr {
        ast::Expr::Subquery(query) => Some(query),
        ast::Expr::Nested(inner) => query_of(inner),
        _ => None,
    }
}
