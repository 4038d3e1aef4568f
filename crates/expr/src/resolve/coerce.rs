//! Bringing expressions to types: implicit and assignment casts, literals of unknown type, common types
//! (manual sections 10.4 and 10.5).

use super::category::{category, is_preferred};
use super::decimal;
use crate::cast::{self, CastContext};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::structures::{self, row_fields};
use crate::io;
use crate::tree::Expr;
use basalt_types::{CompositeDef, DataType, Datum, DomainDef};
use std::sync::Arc;

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
    if *to == DataType::Record && from.composite().is_some() {
        return Ok(expr);
    }
    if let DataType::Domain(domain) = to
        && !(to.is_vector() && matches!(expr, Expr::Const { ty: DataType::Unknown, .. }))
    {
        return coerce_to_domain(expr, domain, to, strength, ctx);
    }
    if let (Some(composite), Some(fields)) = (to.composite(), row_fields(&expr))
        && !composite.is_anonymous()
        && expr.ty().composite().is_some_and(|from| from.is_anonymous())
    {
        return coerce_row(fields.to_vec(), composite, strength, ctx);
    }
    match expr {
        Expr::Const { value: Datum::Null, ty } if ty == DataType::Unknown || is_castable(&ty, to, strength) => {
            Ok(Expr::null(to.clone()))
        }
        Expr::Const { value, ty: DataType::Unknown } => {
            let explicit = strength == CastContext::Explicit;
            Ok(Expr::Const { value: read_literal(&value, to, explicit, ctx)?, ty: to.clone() })
        }
        Expr::Param { index, ty: DataType::Unknown } => Ok(retyped_param(index, to, strength)),
        expr => {
            let (from_base, to_base) = (from.base(), to.base());
            if !is_castable(&from, to, strength) {
                return Err(Error::cannot_cast(&from_base.sql_name(), &to_base.sql_name()));
            }
            let explicit = strength == CastContext::Explicit;
            Ok(Expr::Cast { expr: Box::new(expr), to: to.clone(), explicit })
        }
    }
}

fn is_castable(from: &DataType, to: &DataType, strength: CastContext) -> bool {
    let (from, to) = (from.base(), to.base());
    from == to || from == DataType::Unknown || cast::find_cast(&from, &to).is_some_and(|needed| needed <= strength)
}

/// The value in the base type, or as one of the domains below that it is already, and a cast to the domain, which checks
/// it when it is evaluated.
fn coerce_to_domain(
    expr: Expr,
    domain: &DomainDef,
    to: &DataType,
    strength: CastContext,
    ctx: &EvalContext,
) -> Result<Expr> {
    let (from, mut base) = (expr.ty(), &domain.base);
    while let DataType::Domain(below) = base
        && from != *base
    {
        base = &below.base;
    }
    let expr = match coerce(expr, base, strength, ctx) {
        Ok(expr) => expr,
        Err(error) if error.sqlstate == "42846" => {
            let detail = error.message.replace(&base.sql_name(), &to.sql_name());
            return Err(Error::new("42846", detail));
        }
        Err(error) => return Err(error),
    };
    Ok(Expr::Cast { expr: Box::new(expr), to: to.clone(), explicit: strength == CastContext::Explicit })
}

/// A row constructor as a value of a composite type: each field becomes what its attribute is.
fn coerce_row(fields: Vec<Expr>, to: &Arc<CompositeDef>, strength: CastContext, ctx: &EvalContext) -> Result<Expr> {
    let mut out: Vec<Expr> = to.attributes.iter().map(|attribute| Expr::null(attribute.ty.clone())).collect();
    let count = fields.len();
    let misfit = |detail: &str| {
        let name = DataType::Composite(to.clone()).sql_name();
        Error::cannot_cast("record", &name).with_detail(detail)
    };
    if count != to.live().count() {
        let detail =
            if count < to.live().count() { "Input has too few columns." } else { "Input has too many columns." };
        return Err(misfit(detail));
    }
    for (nth, (field, (at, attribute))) in fields.into_iter().zip(to.live()).enumerate() {
        let from = field.ty().base().sql_name();
        out[at] = coerce(field, &attribute.ty, strength, ctx).map_err(|error| match error.sqlstate {
            "42846" => {
                let to = attribute.ty.base().sql_name();
                misfit(&format!("Cannot cast type {from} to {to} in column {}.", nth + 1))
            }
            _ => error,
        })?;
    }
    Ok(structures::row(to.clone(), out))
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
    let (text, number) = ctx.numbered(text);
    let (base, style) = (to.base(), ctx.of_literals());
    let plain = io::text::parse(&base, text, &style)?;
    let value = if base == *to { plain } else { cast::cast_datum(&base, to, &plain, explicit, &style)? };
    if let Some(number) = number {
        ctx.note_literal(number, to, &value);
    }
    Ok(value)
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
    // A literal of no type has no length or scale to share, and is of no domain.
    let has_literal = known.len() < types.len();
    if !has_literal && rest.iter().all(|ty| ty == first) {
        return Ok((*first).clone());
    }
    let mut chosen = if has_literal { first.underlying().base() } else { first.base() };
    for next in rest.iter().map(|ty| ty.base()) {
        if next == chosen {
            continue;
        }
        if next.underlying() == chosen.underlying() {
            chosen = chosen.underlying().clone();
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
    if chosen == DataType::Numeric(None) && !has_literal { Ok(common_decimal(&known)) } else { Ok(chosen) }
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
