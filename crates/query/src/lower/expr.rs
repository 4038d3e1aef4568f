//! Expressions: native DataFusion ones where they are proven equal, Basalt's own code elsewhere.

use super::udf::EvalUdf;
use super::{Lowerer, defined, keys};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, Plan, SubqueryKind};
use ahash::AHashSet;
use arrow_schema::DataType as ArrowType;
use basalt_expr::functions::{Function, TypePattern, Volatility};
use basalt_expr::tree::{Expr, Truth};
use basalt_types::{DataType, Datum};
use datafusion::common::{ScalarValue, Spans};
use datafusion::logical_expr::expr::InSubquery;
use datafusion::logical_expr::{
    Expr as DfExpr, LogicalPlan, LogicalPlanBuilder, Operator, Subquery as DfSubquery, binary_expr, cast,
};
use std::sync::Arc;

impl Lowerer<'_> {
    /// One expression; parameters become constants.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<DfExpr> {
        let folded = match self.ctx.inner {
            true => expr.clone().fold(&self.ctx.eval, true),
            false => expr.clone().fold_strict(&self.ctx.eval)?,
        };
        self.lower_expr(&folded)
    }

    /// A condition of a filter, where subqueries may become joins.
    pub(super) fn filter_expr(&mut self, expr: &Expr) -> Result<DfExpr> {
        let outer = (self.in_filter, self.null_is_false);
        (self.in_filter, self.null_is_false) = (true, true);
        let lowered = self.expr(expr);
        (self.in_filter, self.null_is_false) = outer;
        lowered
    }

    fn lower_expr(&mut self, expr: &Expr) -> Result<DfExpr> {
        let passes_null = match expr {
            Expr::And(_) | Expr::Or(_) | Expr::InList { .. } => true,
            Expr::BoolTest { truth: Truth::True, negated: false, .. } => true,
            Expr::Not(inner) => matches!(**inner, Expr::Hole { .. }),
            other => matches!(other, Expr::Hole { .. }),
        };
        let outer = self.null_is_false;
        self.null_is_false = outer && passes_null;
        let lowered = self.lower_node(expr);
        self.null_is_false = outer;
        lowered
    }

    fn lower_node(&mut self, expr: &Expr) -> Result<DfExpr> {
        match expr {
            Expr::Hole { id, ty } if self.query.subqueries.contains_key(id) => self.subquery(*id, ty, false),
            Expr::Hole { id, ty } => self.column(*id, ty),
            Expr::Const { .. } => self.constant(expr),
            Expr::And(args) => self.logic(args, Operator::And),
            Expr::Or(args) => self.logic(args, Operator::Or),
            Expr::Not(inner) => match &**inner {
                Expr::Hole { id, ty } if self.query.subqueries.contains_key(id) => self.subquery(*id, ty, true),
                inner => Ok(DfExpr::Not(Box::new(self.lower_expr(inner)?))),
            },
            Expr::IsNull(inner) => Ok(self.lower_expr(inner)?.is_null()),
            Expr::IsNotNull(inner) => Ok(self.lower_expr(inner)?.is_not_null()),
            // Told by DataFusion's logical plans to be never null, by its physical ones to be perhaps: an aggregation
            // refuses that.
            Expr::BoolTest { .. } if !self.in_filter => self.opaque(expr),
            Expr::BoolTest { expr, truth, negated } => {
                let inner = Box::new(self.lower_expr(expr)?);
                Ok(match (truth, negated) {
                    (Truth::True, false) => DfExpr::IsTrue(inner),
                    (Truth::True, true) => DfExpr::IsNotTrue(inner),
                    (Truth::False, false) => DfExpr::IsFalse(inner),
                    (Truth::False, true) => DfExpr::IsNotFalse(inner),
                    (Truth::Unknown, false) => DfExpr::IsUnknown(inner),
                    (Truth::Unknown, true) => DfExpr::IsNotUnknown(inner),
                })
            }
            Expr::Call { function, args, .. } if args.len() == 2 => match comparison(function) {
                Some(op) => match self.native_comparison(op, &args[0], &args[1])? {
                    Some(native) => Ok(native),
                    None => self.call(expr),
                },
                None => self.call(expr),
            },
            Expr::Call { .. } | Expr::Cast { .. } => self.call(expr),
            Expr::InList { expr: probe, list, negated, .. } => self.in_list(expr, probe, list, *negated),
            Expr::Case { branches, otherwise, .. } if self.may_fail_early(expr) => {
                self.lazy_case(branches, otherwise.as_deref())
            }
            other => self.opaque(other),
        }
    }

    /// Whether a subquery inside may fail for rows that do not reach it.
    fn may_fail_early(&self, expr: &Expr) -> bool {
        expr.any(&mut |node| match node {
            Expr::Hole { id, .. } => self.query.subqueries.get(id).is_some_and(|inner| can_fail(&inner.plan)),
            _ => false,
        })
    }

    /// CASE whose branches are computed for the rows that take them.
    fn lazy_case(&mut self, branches: &[(Expr, Expr)], otherwise: Option<&Expr>) -> Result<DfExpr> {
        let outer = (std::mem::replace(&mut self.lazily, true), std::mem::replace(&mut self.in_filter, false));
        let lowered = self.case_parts(branches, otherwise);
        (self.lazily, self.in_filter) = outer;
        let (branches, otherwise) = lowered?;
        Ok(DfExpr::Case(datafusion::logical_expr::Case::new(None, branches, otherwise)))
    }

    #[allow(clippy::type_complexity)]
    fn case_parts(
        &mut self,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<(Vec<(Box<DfExpr>, Box<DfExpr>)>, Option<Box<DfExpr>>)> {
        let mut parts = Vec::with_capacity(branches.len());
        for (condition, value) in branches {
            parts.push((Box::new(self.lower_expr(condition)?), Box::new(self.lower_expr(value)?)));
        }
        let otherwise = otherwise.map(|value| self.lower_expr(value)).transpose()?;
        Ok((parts, otherwise.map(Box::new)))
    }

    fn logic(&mut self, args: &[Expr], op: Operator) -> Result<DfExpr> {
        let mut lowered = args.iter().map(|arg| self.lower_expr(arg)).collect::<Result<Vec<_>>>()?.into_iter();
        let first = lowered.next().ok_or_else(|| SqlError::internal("AND or OR without operands"))?;
        Ok(lowered.fold(first, |left, right| binary_expr(left, op, right)))
    }

    pub(super) fn constant(&self, expr: &Expr) -> Result<DfExpr> {
        let array = expr.eval(&[], 1, &self.ctx.eval)?;
        Ok(DfExpr::Literal(ScalarValue::try_from_array(&array, 0)?, None))
    }

    /// One call or cast over operands that are lowered apart, so that common parts are computed once.
    fn call(&mut self, expr: &Expr) -> Result<DfExpr> {
        let mut template = expr.clone();
        let mut args = Vec::new();
        for child in template.children_mut() {
            if matches!(child, Expr::Const { .. }) {
                continue;
            }
            let ty = child.ty();
            let lowered = self.lower_expr(child)?;
            *child = Expr::Column { index: args.len(), ty };
            args.push(lowered);
        }
        Ok(EvalUdf::value(template, self.ctx, args))
    }

    /// A whole tree in one call: its parts are evaluated only for the rows that reach them.
    fn opaque(&mut self, expr: &Expr) -> Result<DfExpr> {
        let (template, args) = self.template(expr)?;
        Ok(EvalUdf::value(template, self.ctx, args))
    }

    /// The tree with its holes numbered as arguments.
    pub(super) fn template(&mut self, expr: &Expr) -> Result<(Expr, Vec<DfExpr>)> {
        let mut holes: Vec<(ColId, DataType)> = Vec::new();
        let template = expr.clone().rewrite(&mut |node| match node {
            Expr::Hole { id, ty } => {
                let index = holes.iter().position(|(known, _)| *known == id).unwrap_or_else(|| {
                    holes.push((id, ty.clone()));
                    holes.len() - 1
                });
                Expr::Column { index, ty }
            }
            other => other,
        });
        let outer = std::mem::replace(&mut self.in_filter, false);
        let args = holes.into_iter().map(|(id, ty)| self.lower_expr(&Expr::Hole { id, ty })).collect::<Result<_>>();
        self.in_filter = outer;
        Ok((template, args?))
    }

    /// An expression in the form that equality, grouping and sorting go by.
    pub(super) fn keyed(&mut self, expr: &Expr) -> Result<DfExpr> {
        let lowered = self.expr(expr)?;
        Ok(self.as_key(lowered, &expr.ty()))
    }

    pub(super) fn as_key(&self, lowered: DfExpr, ty: &DataType) -> DfExpr {
        match keys::key_type(ty) {
            Some(key_type) => EvalUdf::key(ty, key_type, self.ctx, lowered),
            None => lowered,
        }
    }

    /// `left op right` by DataFusion's own comparison, where that means the same.
    fn native_comparison(&mut self, op: Operator, left: &Expr, right: &Expr) -> Result<Option<DfExpr>> {
        let Some((left, right)) = self.comparable(left, right, op)? else { return Ok(None) };
        Ok(Some(binary_expr(left, op, right)))
    }

    fn comparable(&mut self, left: &Expr, right: &Expr, op: Operator) -> Result<Option<(DfExpr, DfExpr)>> {
        use DataType::*;
        let (a, b) = (left.ty(), right.ty());
        let plain = |ty: &DataType| {
            matches!(
                ty,
                Bool | Date | Time | Timestamp | TimestampTz | Uuid | Bytea | Oid | Name | Text | Varchar(_) | Enum(_)
            )
        };
        let integer = |ty: &DataType| matches!(ty, Int2 | Int4 | Int8);
        if plain(&a) && plain(&b) && a.to_arrow() == b.to_arrow() {
            return Ok(Some((self.lower_expr(left)?, self.lower_expr(right)?)));
        }
        if integer(&a) && integer(&b) {
            let wide = if a == Int8 || b == Int8 { Int8 } else { if a == Int4 || b == Int4 { Int4 } else { Int2 } };
            return Ok(Some((self.widened(left, &wide)?, self.widened(right, &wide)?)));
        }
        if let (Bpchar(Some(n)), Bpchar(Some(m))) = (&a, &b)
            && n == m
            && matches!(op, Operator::Eq | Operator::NotEq)
        {
            return Ok(Some((self.lower_expr(left)?, self.lower_expr(right)?)));
        }
        if let (Numeric(_), Numeric(_)) = (&a, &b) {
            return self.comparable_numerics(left, right);
        }
        let is_comparable = || basalt_expr::operators::compare::check_comparable(&a, "=").is_ok();
        if a == b && keys::key_type(&a).is_some() && is_comparable() {
            let (left, right) = (self.lower_expr(left)?, self.lower_expr(right)?);
            return Ok(Some((self.as_key(left, &a), self.as_key(right, &b))));
        }
        Ok(None)
    }

    fn widened(&mut self, expr: &Expr, wide: &DataType) -> Result<DfExpr> {
        if expr.ty() == *wide {
            return self.lower_expr(expr);
        }
        if let Expr::Const { value, .. } = expr {
            let number = match value {
                Datum::I16(value) => Some(i64::from(*value)),
                Datum::I32(value) => Some(i64::from(*value)),
                Datum::I64(value) => Some(*value),
                _ => None,
            };
            let scalar = match wide {
                DataType::Int8 => ScalarValue::Int64(number),
                DataType::Int4 => ScalarValue::Int32(number.map(|number| number as i32)),
                _ => ScalarValue::Int16(number.map(|number| number as i16)),
            };
            return Ok(DfExpr::Literal(scalar, None));
        }
        Ok(cast(self.lower_expr(expr)?, wide.to_arrow()))
    }

    /// Scaled decimals compare as integers of one scale; anything else by its keys in the variable form.
    fn comparable_numerics(&mut self, left: &Expr, right: &Expr) -> Result<Option<(DfExpr, DfExpr)>> {
        if let (Some((p1, s1)), Some((p2, s2))) = (left.ty().decimal(), right.ty().decimal()) {
            if let Some(right) = rescaled(right, p1, s1) {
                return Ok(Some((self.lower_expr(left)?, right)));
            }
            if let Some(left) = rescaled(left, p2, s2) {
                return Ok(Some((left, self.lower_expr(right)?)));
            }
            if s1 == s2 {
                let wide = ArrowType::Decimal128(p1.max(p2), s1);
                let (left, right) = (self.lower_expr(left)?, self.lower_expr(right)?);
                let side = |expr: DfExpr, p: u8| if p == p1.max(p2) { expr } else { cast(expr, wide.clone()) };
                return Ok(Some((side(left, p1), side(right, p2))));
            }
        }
        let plain = DataType::Numeric(None);
        let mut side = |expr: &Expr| -> Result<DfExpr> {
            let variable = match expr.ty().decimal() {
                None => expr.clone(),
                Some(_) => Expr::Cast { expr: Box::new(expr.clone()), to: plain.clone(), explicit: false },
            };
            let lowered = self.expr(&variable)?;
            Ok(self.as_key(lowered, &plain))
        };
        Ok(Some((side(left)?, side(right)?)))
    }

    /// IN over constants of a type that compares natively; anything else is Basalt's. Where null is not false, too:
    /// DataFusion makes one list out of two for the same operand, and none at all forgets about null.
    fn in_list(&mut self, whole: &Expr, probe: &Expr, list: &[Expr], negated: bool) -> Result<DfExpr> {
        let mut items = Vec::with_capacity(list.len());
        let ty = probe.ty();
        let native = matches!(
            ty,
            DataType::Int2
                | DataType::Int4
                | DataType::Int8
                | DataType::Text
                | DataType::Varchar(_)
                | DataType::Date
                | DataType::Timestamp
        );
        let native = native && self.in_filter && self.null_is_false;
        for item in list {
            if !native || !matches!(item, Expr::Const { .. }) || item.ty().to_arrow() != ty.to_arrow() {
                return self.opaque(whole);
            }
            items.push(self.constant(item)?);
        }
        Ok(self.lower_expr(probe)?.in_list(items, negated))
    }

    /// A subquery's value: as a join where DataFusion can make it one, otherwise row by row.
    fn subquery(&mut self, id: ColId, ty: &DataType, negated: bool) -> Result<DfExpr> {
        let subquery = &self.query.subqueries[&id];
        let outer = self.outer_columns(id);
        let correlated = !outer.is_empty();
        let joins = !(self.lazily || correlated && self.nested_loops);
        match &subquery.kind {
            SubqueryKind::Scalar { column, ty } if joins => {
                let lowered = self.scalar(&subquery.plan, *column, ty)?;
                Ok(if negated { DfExpr::Not(Box::new(lowered)) } else { lowered })
            }
            SubqueryKind::Exists if joins && self.in_filter => {
                let plan = self.sub_plan(&subquery.plan)?;
                Ok(exists(plan, negated))
            }
            SubqueryKind::Any { columns, condition } if joins && self.in_filter && self.null_is_false => {
                self.any(&subquery.plan, columns, condition, negated, correlated)
            }
            _ => {
                let args = outer.iter().map(|(id, ty)| self.column(*id, ty)).collect::<Result<Vec<_>>>()?;
                let lowered = self.applier.call(self.query, self.ctx, id, ty, &outer, args)?;
                Ok(if negated { DfExpr::Not(Box::new(lowered)) } else { lowered })
            }
        }
    }

    /// Columns that a subquery (and what is nested in it) takes from outside.
    fn outer_columns(&self, id: ColId) -> Vec<(ColId, DataType)> {
        let Some(subquery) = self.query.subqueries.get(&id) else { return Vec::new() };
        let condition = match &subquery.kind {
            SubqueryKind::Any { condition, .. } | SubqueryKind::All { condition, .. } => Some(condition),
            _ => None,
        };
        super::apply::outer_columns(self.query, &subquery.plan, condition)
    }

    /// A subquery's plan; what it does not define is an outer reference.
    fn sub_plan(&mut self, plan: &Plan) -> Result<LogicalPlan> {
        super::pull_up::check(self.query, plan)?;
        let mut local = AHashSet::new();
        defined(plan, &mut local);
        self.local.push(local);
        let outer = std::mem::replace(&mut self.in_filter, false);
        let lowered = self.plan(plan);
        self.in_filter = outer;
        self.local.pop();
        lowered
    }

    fn scalar(&mut self, plan: &Plan, column: ColId, ty: &DataType) -> Result<DfExpr> {
        let mut lowered = self.sub_plan(plan)?;
        let reach = self.reach(column)?.column.clone();
        let name = self.fresh_name("s");
        let builder = LogicalPlanBuilder::from(lowered);
        // An aggregate that refuses a second row (21000); without a row it gives null, which a plain column of
        // the subquery may be declared not to be.
        lowered = if !gives_one_row(plan) {
            let single = super::aggregate::single_value(ty, DfExpr::Column(reach));
            builder.aggregate(Vec::<DfExpr>::new(), vec![single.alias(&name)])?.build()?
        } else {
            builder.project(vec![DfExpr::Column(reach).alias(&name)])?.build()?
        };
        Ok(DfExpr::ScalarSubquery(wrap(lowered)))
    }

    /// Whether the left side of `left = column` has columns, and no subqueries.
    fn has_own_columns(&self, condition: &Expr, inner: &[ColId]) -> bool {
        let hole = |node: &Expr| match node {
            Expr::Hole { id, .. } if !inner.contains(id) => Some(self.query.subqueries.contains_key(id)),
            _ => None,
        };
        condition.any(&mut |node| hole(node) == Some(false)) && !condition.any(&mut |node| hole(node) == Some(true))
    }

    /// `left = ANY (subquery)` in a filter, as a semi or anti join.
    fn any(
        &mut self,
        plan: &Plan,
        columns: &[ColId],
        condition: &Expr,
        negated: bool,
        correlated: bool,
    ) -> Result<DfExpr> {
        let inner_only = |expr: &Expr| matches!(expr, Expr::Hole { id, .. } if columns.contains(id));
        let uses_inner = |expr: &Expr| expr.any(&mut |node| inner_only(node));
        // DataFusion's null-aware anti join takes a null of any inner row for one of each outer row's own, and
        // without a column on the left, or with a subquery there, it is no join by keys and forgets about nulls.
        if !(negated && (correlated || !self.has_own_columns(condition, columns)))
            && let Expr::Call { function, args, .. } = condition
            && comparison(function) == Some(Operator::Eq)
            && let [left, right] = args.as_slice()
            && !uses_inner(left)
            && matches!(right, Expr::Hole { .. } | Expr::Cast { .. })
            && uses_inner(right)
        {
            // The right side stands inside the subquery, where its columns are local.
            let lowered = self.sub_plan(plan)?;
            if let Some(local) = self.local.last_mut() {
                local.extend(columns);
            }
            if let Some((left, right)) = self.comparable(left, right, Operator::Eq)? {
                let name = self.fresh_name("s");
                let lowered = LogicalPlanBuilder::from(lowered).project(vec![right.alias(name)])?.build()?;
                let expr = InSubquery::new(Box::new(left), wrap(lowered), negated);
                return Ok(DfExpr::InSubquery(expr));
            }
        }
        let condition = match negated {
            false => condition.clone(),
            true => Expr::BoolTest { expr: Box::new(condition.clone()), truth: Truth::False, negated: true },
        };
        let filtered = Plan::Filter { input: Box::new(plan.clone()), condition };
        let lowered = self.sub_plan(&filtered)?;
        Ok(exists(lowered, negated))
    }
}

/// Whether an expression of the plan may fail for some values: divisions, roots, and texts that are read.
fn can_fail(plan: &Plan) -> bool {
    let mut found = false;
    plan.clone().rewrite_exprs(&mut |node| {
        found |= match &node {
            Expr::Call { function, .. } => {
                let name = function.name.as_str();
                name.ends_with("div") || name.ends_with("mod") || matches!(name, "sqrt" | "ln" | "log" | "power")
            }
            Expr::Cast { expr, to, .. } => {
                let is_text = |ty: &DataType| matches!(ty, DataType::Text | DataType::Varchar(_) | DataType::Bpchar(_));
                is_text(&expr.ty()) && !is_text(to)
            }
            _ => false,
        };
        node
    });
    found
}

fn wrap(plan: LogicalPlan) -> DfSubquery {
    let outer_ref_columns = plan.all_out_ref_exprs();
    DfSubquery { subquery: Arc::new(plan), outer_ref_columns, spans: Spans::new() }
}

fn exists(plan: LogicalPlan, negated: bool) -> DfExpr {
    DfExpr::Exists(datafusion::logical_expr::expr::Exists::new(wrap(plan), negated))
}

/// An aggregation without groups has one row whatever its input.
fn gives_one_row(plan: &Plan) -> bool {
    match plan {
        Plan::Aggregate { groups, .. } => groups.is_empty(),
        Plan::Project { input, .. } | Plan::Sort { input, .. } => gives_one_row(input),
        _ => false,
    }
}

/// The operator behind a comparison function, by PostgreSQL's names (`int4eq`, `text_le`, …).
pub(super) fn comparison(function: &Function) -> Option<Operator> {
    let name = function.name.as_str();
    // Other functions end in the same letters: `has_table_privilege`, `int4range`.
    let compares = function.ret == TypePattern::Exact(DataType::Bool) && function.volatility == Volatility::Immutable;
    let is_other = name.contains("regex") || name.contains("like") || name.ends_with("range") || name.len() < 5;
    if function.args.len() != 2 || !compares || is_other {
        return None;
    }
    Some(match &name[name.len() - 2..] {
        "eq" => Operator::Eq,
        "ne" => Operator::NotEq,
        "lt" => Operator::Lt,
        "le" => Operator::LtEq,
        "gt" => Operator::Gt,
        "ge" => Operator::GtEq,
        _ => return None,
    })
}

/// A decimal constant as a literal of another precision and scale, if it is exactly that value.
fn rescaled(expr: &Expr, precision: u8, scale: i8) -> Option<DfExpr> {
    let Expr::Const { value, ty } = expr else { return None };
    let (_, own) = ty.decimal()?;
    let digits = match value {
        Datum::I64(value) => i128::from(*value),
        Datum::I128(value) => *value,
        _ => return None,
    };
    let shift = u32::from((i32::from(scale) - i32::from(own)).unsigned_abs() as u8);
    let factor = 10i128.checked_pow(shift)?;
    let moved = if scale >= own {
        digits.checked_mul(factor)?
    } else if digits % factor == 0 {
        digits / factor
    } else {
        return None;
    };
    Some(DfExpr::Literal(ScalarValue::Decimal128(Some(moved), precision, scale), None))
}
