//! Expressions: native DataFusion ones where they are proven equal, Basalt's own code elsewhere.

use super::udf::EvalUdf;
use super::{Lowerer, keys};
use crate::error::{Result, SqlError};
use arrow_schema::DataType as ArrowType;
use basalt_expr::functions::Function;
use basalt_expr::tree::{Expr, Truth};
use basalt_types::{CompareOp, DataType, Datum};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr as DfExpr, Operator, binary_expr, cast};

/// A longer constant is no literal of DataFusion's.
const LITERAL_BYTES_MAX: usize = 64 << 10;

impl Lowerer<'_> {
    /// One expression; parameters become constants.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<DfExpr> {
        self.lower_expr(&self.folded(expr)?)
    }

    pub(super) fn folded(&self, expr: &Expr) -> Result<Expr> {
        Ok(match self.ctx.inner {
            true => expr.clone().fold(&self.ctx.eval, true),
            false => expr.clone().fold_strict(&self.ctx.eval)?,
        })
    }

    /// A condition of a filter, where subqueries may become joins.
    pub(super) fn filter_expr(&mut self, expr: &Expr) -> Result<DfExpr> {
        let outer = (self.in_filter, self.null_is_false);
        (self.in_filter, self.null_is_false) = (true, true);
        let lowered = self.conditions(expr);
        (self.in_filter, self.null_is_false) = outer;
        lowered
    }

    /// The operands of the outermost AND stay apart: whoever checks them does so one after the other
    /// ([`super::conditions`]).
    fn conditions(&mut self, expr: &Expr) -> Result<DfExpr> {
        let mut lowered = Vec::new();
        for part in self.folded(expr)?.conditions() {
            self.is_condition = matches!(&part, Expr::Not(inner) if matches!(**inner, Expr::Hole { .. }));
            lowered.push(self.lower_expr(&part)?);
        }
        self.is_condition = false;
        conjunction(lowered).ok_or_else(|| SqlError::internal("a condition without parts"))
    }

    pub(super) fn lower_expr(&mut self, expr: &Expr) -> Result<DfExpr> {
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
            Expr::Case { branches, otherwise, ty } if self.must_wait(expr) => {
                self.lazy_case(branches, otherwise.as_deref(), ty)
            }
            Expr::Coalesce { args, ty } if self.must_wait(expr) => self.lazy_coalesce(args, ty),
            other => self.opaque(other),
        }
    }

    pub(super) fn constant(&self, expr: &Expr) -> Result<DfExpr> {
        // DataFusion writes its literals out whenever it names what they are part of.
        if matches!(expr, Expr::Const { value: Datum::Bytes(bytes), .. } if bytes.len() > LITERAL_BYTES_MAX) {
            return Ok(EvalUdf::value(expr.clone(), self.ctx, Vec::new()));
        }
        let array = expr.eval(&[], 1, &self.ctx.eval)?;
        Ok(DfExpr::Literal(ScalarValue::try_from_array(&array, 0)?, None))
    }

    /// One call or cast over operands that are lowered apart, so that common parts are computed once.
    pub(super) fn call(&mut self, expr: &Expr) -> Result<DfExpr> {
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
    pub(super) fn opaque(&mut self, expr: &Expr) -> Result<DfExpr> {
        let (template, args) = self.template(expr)?;
        Ok(EvalUdf::value(template, self.ctx, args))
    }

    /// The tree with its holes numbered as arguments. So is what must not be evaluated before it is reached, and holds
    /// subqueries.
    pub(super) fn template(&mut self, expr: &Expr) -> Result<(Expr, Vec<DfExpr>)> {
        let mut template = expr.clone();
        let mut cut = Vec::new();
        self.cut(&mut template, &mut cut);
        let outer = (self.in_filter, self.null_is_false);
        (self.in_filter, self.null_is_false) = (false, false);
        let args = cut.iter().map(|part| self.lower_expr(part)).collect::<Result<_>>();
        (self.in_filter, self.null_is_false) = outer;
        Ok((template, args?))
    }

    fn cut(&self, expr: &mut Expr, out: &mut Vec<Expr>) {
        let waits = matches!(expr, Expr::Case { .. } | Expr::Coalesce { .. } | Expr::And(_) | Expr::Or(_));
        if matches!(expr, Expr::Hole { .. }) || waits && self.must_wait(expr) {
            let ty = expr.ty();
            let index = out.iter().position(|known| known == expr).unwrap_or_else(|| {
                out.push(expr.clone());
                out.len() - 1
            });
            *expr = Expr::Column { index, ty };
            return;
        }
        expr.children_mut().into_iter().for_each(|child| self.cut(child, out));
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
    ///
    /// Constants stand on the right: DataFusion takes `c = 3` and `3 = c`, one of which it has concluded from the other,
    /// for two different values.
    fn native_comparison(&mut self, op: Operator, left: &Expr, right: &Expr) -> Result<Option<DfExpr>> {
        let Some((left, right)) = self.comparable(left, right, op)? else { return Ok(None) };
        Ok(Some(match (&left, &right, op.swap()) {
            (DfExpr::Literal(..), DfExpr::Literal(..), _) => binary_expr(left, op, right),
            (DfExpr::Literal(..), _, Some(op)) => binary_expr(right, op, left),
            _ => binary_expr(left, op, right),
        }))
    }

    pub(super) fn comparable(&mut self, left: &Expr, right: &Expr, op: Operator) -> Result<Option<(DfExpr, DfExpr)>> {
        use DataType::*;
        let (a, b) = (left.ty(), right.ty());
        let plain = |ty: &DataType| {
            matches!(
                ty,
                Bool | Date
                    | Time
                    | Timestamp
                    | TimestampTz
                    | Uuid
                    | Bytea
                    | Oid
                    | Name
                    | Text
                    | Varchar(_)
                    | Enum(_)
                    | Inet
                    | Macaddr
                    | Macaddr8
                    | PgLsn
                    | Xid8
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
            let item = if native { in_width(item, &ty) } else { None };
            match item {
                Some(item) if item.ty().to_arrow() == ty.to_arrow() => items.push(self.constant(&item)?),
                _ => return self.opaque(whole),
            }
        }
        Ok(self.lower_expr(probe)?.in_list(items, negated))
    }
}

/// A constant to compare with, integers in the width of `ty`; `None` if it is none, or too great for that.
fn in_width(expr: &Expr, ty: &DataType) -> Option<Expr> {
    let Expr::Const { value, ty: own } = expr else { return None };
    if own == ty {
        return Some(expr.clone());
    }
    let integer = match value {
        Datum::I16(value) => i64::from(*value),
        Datum::I32(value) => i64::from(*value),
        Datum::I64(value) => *value,
        _ => return Some(expr.clone()),
    };
    let value = match (own, ty) {
        (DataType::Int2 | DataType::Int4 | DataType::Int8, DataType::Int2) => Datum::I16(integer.try_into().ok()?),
        (DataType::Int2 | DataType::Int4 | DataType::Int8, DataType::Int4) => Datum::I32(integer.try_into().ok()?),
        (DataType::Int2 | DataType::Int4, DataType::Int8) => Datum::I64(integer),
        _ => return Some(expr.clone()),
    };
    Some(Expr::Const { value, ty: ty.clone() })
}

/// The operator behind a comparison function.
pub(super) fn comparison(function: &Function) -> Option<Operator> {
    Some(match function.comparison()? {
        CompareOp::Eq => Operator::Eq,
        CompareOp::NotEq => Operator::NotEq,
        CompareOp::Lt => Operator::Lt,
        CompareOp::LtEq => Operator::LtEq,
        CompareOp::Gt => Operator::Gt,
        CompareOp::GtEq => Operator::GtEq,
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
