//! Bringing expressions to types: implicit and assignment casts, literals of unknown type, common types
//! (manual sections 10.4 and 10.5).

use super::category::{category, is_preferred};
use super::decimal;
use crate::cast::{self, CastContext};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::io;
use crate::tree::Expr;
use basalt_types::{DataType, Datum};

/// Whether values of `from` become `to` without being asked. Both without modifiers.
pub fn is_implicit(from: &DataType, to: &DataType) -> bool {
    from == to || *from == DataType::Unknown || cast::find_cast(from, to) == Some(CastContext::Implicit)
}

/// `expr` as exactly `to`, or 42804/42846 where no cast of that strength exists. A literal of unknown type
/// is read now, so that its errors are raised while binding, as PostgreSQL does.
pub fn coerce(expr: Expr, to: &DataType, strength: CastContext, ctx: &EvalContext) -> Result<Expr> {
    let from = expr.ty();
    if from == *to {
        return Ok(expr);
    }
    match expr {
        Expr::Const { value: Datum::Null, .. } => Ok(Expr::null(to.clone())),
        Expr::Const { value, ty: DataType::Unknown } => {
            let explicit = strength == CastContext::Explicit;
            Ok(Expr::Const { value: read_literal(&value, to, explicit, ctx)?, ty: to.clone() })
        }
        Expr::Param { index, ty: DataType::Unknown } => Ok(retyped_param(index, to, strength)),
        expr => {
            let (from_base, to_base) = (from.base(), to.base());
            let allowed = from_base == to_base
                || from_base == DataType::Unknown
                || cast::find_cast(&from_base, &to_base).is_some_and(|needed| needed <= strength);
            if !allowed {
                return Err(Error::cannot_cast(&from_base.sql_name(), &to_base.sql_name()));
            }
            let explicit = strength == CastContext::Explicit;
            Ok(Expr::Cast { expr: Box::new(expr), to: to.clone(), explicit })
        }
    }
}

/// The parameter takes the type without its modifier, which a cast then applies.
fn retyped_param(index: usize, to: &DataType, strength: CastContext) -> Expr {
    let param = Expr::Param { index, ty: to.base() };
    if *to == to.base() {
        return param;
    }
    Expr::Cast { expr: Box::new(param), to: to.clone(), explicit: strength == CastContext::Explicit }
}

fn read_literal(value: &Datum, to: &DataType, explicit: bool, ctx: &EvalContext) -> Result<Datum> {
    let Datum::Bytes(bytes) = value else {
        return Err(Error::internal(format!("a literal of unknown type holds {value:?}")));
    };
    let text = std::str::from_utf8(bytes).map_err(|error| Error::invalid_utf8(bytes, error.valid_up_to()))?;
    let base = to.base();
    let plain = io::text::parse(&base, text, ctx)?;
    if base == *to { Ok(plain) } else { cast::cast_datum(&base, to, &plain, explicit, ctx) }
}

/// A function argument as `to`. Numerics may stay in any physical form, since kernels take all of them;
/// numeric constants take the scaled one where they fit.
pub(super) fn coerce_argument(expr: Expr, to: &DataType, ctx: &EvalContext) -> Result<Expr> {
    let is_numeric = to.base() == DataType::Numeric(None);
    if is_numeric && expr.ty().base() == DataType::Numeric(None) {
        return Ok(narrow_const(expr, ctx));
    }
    let coerced = coerce(expr, to, CastContext::Implicit, ctx)?;
    if !is_numeric {
        return Ok(coerced);
    }
    Ok(narrow_const(coerced.fold(ctx, false), ctx))
}

/// A numeric constant in the least scaled type that prints the same.
pub(super) fn narrow_const(expr: Expr, ctx: &EvalContext) -> Expr {
    let Expr::Const { value, ty } = &expr else { return expr };
    let plain = DataType::Numeric(None);
    if value.is_null() || ty.base() != plain {
        return expr;
    }
    let mut text = Vec::new();
    if io::text::format(ty, value, ctx, &mut text).is_err() {
        return expr;
    }
    let narrow = decimal::type_of_literal(&String::from_utf8_lossy(&text));
    if narrow == plain || narrow == *ty {
        return expr;
    }
    match cast::cast_datum(ty, &narrow, value, false, ctx) {
        Ok(value) => Expr::Const { value, ty: narrow },
        Err(_) => expr,
    }
}

/// A constant brought to a column's type, for storage predicates: `None` unless it is exactly that value.
pub fn coerce_const(value: &Datum, from: &DataType, to: &DataType, ctx: &EvalContext) -> Option<Datum> {
    let there = cast::cast_datum(from, to, value, false, ctx).ok()?;
    let back = cast::cast_datum(to, from, &there, false, ctx).ok()?;
    let same = crate::operators::equal_datums(from, &back, value);
    same.then_some(there)
}

/// The type that `UNION`, `CASE`, `VALUES`, `ARRAY`, … bring their parts to. `what` opens the message.
pub fn resolve_common_type(what: &str, types: &[DataType]) -> Result<DataType> {
    let known: Vec<&DataType> = types.iter().filter(|ty| **ty != DataType::Unknown).collect();
    let Some((first, rest)) = known.split_first() else { return Ok(DataType::Text) };
    if rest.iter().all(|ty| ty == first) {
        return Ok((*first).clone());
    }
    let mut chosen = first.base();
    for next in rest.iter().map(|ty| ty.base()) {
        if next == chosen {
            continue;
        }
        if category(&next) != category(&chosen) {
            let message = format!("{what} types {} and {} cannot be matched", chosen.sql_name(), next.sql_name());
            return Err(Error::new("42804", message.trim_start().to_string()));
        }
        if !is_preferred(&chosen) && is_implicit(&chosen, &next) && !is_implicit(&next, &chosen) {
            chosen = next;
        }
    }
    for ty in &known {
        if !is_implicit(&ty.base(), &chosen) {
            let message = format!("{what} could not convert type {} to {}", ty.base().sql_name(), chosen.sql_name());
            return Err(Error::new("42846", message.trim_start().to_string()));
        }
    }
    if chosen == DataType::Numeric(None) { Ok(common_decimal(&known)) } else { Ok(chosen) }
}

/// One scaled type for all, if all have the same scale: otherwise display scales differ from row to row.
fn common_decimal(types: &[&DataType]) -> DataType {
    let mut common: Option<(u8, i8)> = None;
    for ty in types {
        let physical = if ty.base() == DataType::Numeric(None) { (*ty).clone() } else { decimal::physical_of(ty) };
        match (physical.decimal(), common) {
            (Some(found), None) => common = Some(found),
            (Some((p, s)), Some((widest, scale))) if s == scale => common = Some((widest.max(p), scale)),
            _ => return DataType::Numeric(None),
        }
    }
    common.map_or(DataType::Numeric(None), |(p, s)| DataType::Numeric(Some((u16::from(p), i16::from(s)))))
}
