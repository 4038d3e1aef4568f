//! Builders: an operation and its bound operands in, a typed expression with all casts out.

use super::coerce::{coerce, coerce_argument, resolve_common_type};
use super::{Resolved, decimal};
use crate::aggregates::ResolvedAggregate;
use crate::cast::CastContext;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::Registry;
use crate::tree::Expr;
use basalt_types::{DataType, Datum};

fn types(args: &[Expr]) -> Vec<DataType> {
    args.iter().map(Expr::ty).collect()
}

fn apply(resolved: Resolved, args: Vec<Expr>, ctx: &EvalContext) -> Result<Expr> {
    let patterns = &resolved.function.args;
    let args = args.into_iter().zip(&resolved.arg_types).enumerate().map(|(index, (arg, ty))| {
        // What a polymorphic name stands for is one type, a numeric's physical form included: values may end up
        // beside each other in an array.
        match patterns.get(index).or(patterns.last()) {
            Some(pattern) if pattern.is_polymorphic() => coerce(arg, ty, CastContext::Implicit, ctx),
            _ => coerce_argument(arg, ty, ctx),
        }
    });
    let args = args.collect::<Result<Vec<_>>>()?;
    let ty = decimal::physical_result(resolved.function, &types(&args), resolved.ty);
    Ok(Expr::Call { function: resolved.function, args, ty })
}

/// A function call. A type's name with one argument is a cast where no function has that name.
pub fn call(registry: &Registry, name: &str, args: Vec<Expr>, ctx: &EvalContext) -> Result<Expr> {
    // A literal of unknown type after a type's name is a cast, whatever functions there are.
    if let ([Expr::Const { ty: DataType::Unknown, .. }], Some(ty), false) =
        (args.as_slice(), crate::functions::pattern_types::type_named(name), name.starts_with('_'))
    {
        let arg = args.into_iter().next().expect("one argument");
        return coerce(arg, &ty, CastContext::Explicit, ctx);
    }
    match registry.resolve_function(name, &types(&args)) {
        Ok(resolved) => written_out(registry, apply(resolved, args, ctx)?, ctx),
        Err(error) => match (crate::functions::pattern_types::type_named(name), args.len()) {
            (Some(ty), 1) if !name.starts_with('_') => {
                let arg = args.into_iter().next().expect("one argument");
                coerce(arg, &ty, CastContext::Explicit, ctx).map_err(|_| error)
            }
            _ => Err(error),
        },
    }
}

/// Calls of functions that PostgreSQL defines in SQL, as their definitions: their parts may be constants.
fn written_out(registry: &Registry, call: Expr, ctx: &EvalContext) -> Result<Expr> {
    let Expr::Call { function, mut args, ty } = call else { return Ok(call) };
    match (function.name.as_str(), args.len()) {
        // Of a null nothing is computed.
        ("substring", 3)
            if args.iter().all(|arg| arg.ty() == DataType::Text && !arg.clone().fold(ctx, false).is_null_const()) =>
        {
            let escaped = args.split_off(1);
            args.push(self::call(registry, "similar_to_escape", escaped, ctx)?);
            self::call(registry, "substring", args, ctx)
        }
        ("quote_literal" | "quote_nullable", 1) if args[0].ty() != DataType::Text => {
            let text = coerce(args.remove(0), &DataType::Text, CastContext::Explicit, ctx)?;
            self::call(registry, &function.name, vec![text], ctx)
        }
        ("textanycat", 2) | ("anytextcat", 2) => {
            let texts = args.into_iter().map(|arg| coerce(arg, &DataType::Text, CastContext::Explicit, ctx));
            self::call(registry, "textcat", texts.collect::<Result<_>>()?, ctx)
        }
        _ => Ok(Expr::Call { function, args, ty }),
    }
}

/// `left symbol right`, or `symbol right`.
pub fn operator(registry: &Registry, symbol: &str, left: Option<Expr>, right: Expr, ctx: &EvalContext) -> Result<Expr> {
    let resolved = registry.resolve_operator(symbol, left.as_ref().map(Expr::ty).as_ref(), &right.ty())?;
    written_out(registry, apply(resolved, left.into_iter().chain([right]).collect(), ctx)?, ctx)
}

/// An aggregate and its arguments, cast to what it takes. `count(*)` has none.
pub fn aggregate(
    registry: &Registry,
    name: &str,
    args: Vec<Expr>,
    ctx: &EvalContext,
) -> Result<(ResolvedAggregate, Vec<Expr>)> {
    let args = crate::aggregates::json::prepare(registry, name, args);
    let resolved = registry.resolve_aggregate(name, &types(&args))?;
    let args = args
        .into_iter()
        .zip(&resolved.arg_types)
        .map(|(arg, ty)| coerce(arg, ty, CastContext::Implicit, ctx))
        .collect::<Result<Vec<_>>>()?;
    Ok((resolved, args))
}

/// All of `args` in their common type.
fn unify(what: &str, args: Vec<Expr>, ctx: &EvalContext) -> Result<(Vec<Expr>, DataType)> {
    let ty = common_type(what, args.iter())?;
    let args = args.into_iter().map(|arg| coerce(arg, &ty, CastContext::Implicit, ctx)).collect::<Result<Vec<_>>>()?;
    Ok((args, ty))
}

/// [`resolve_common_type`] of values. A plain null takes no part, unless there is nothing else; but it is of no domain,
/// and has no length or scale to share. COALESCE forgets about it: what it passes on is as it was.
pub fn common_type<'a>(what: &str, args: impl Iterator<Item = &'a Expr> + Clone) -> Result<DataType> {
    let is_null = |arg: &Expr| matches!(arg, Expr::Const { value: Datum::Null, ty: DataType::Unknown });
    let types: Vec<DataType> = args.clone().filter(|arg| !is_null(arg)).map(Expr::ty).collect();
    match types.is_empty() {
        false => {
            let ty = resolve_common_type(what, &types)?;
            let has_nulls = types.len() < args.count();
            Ok(match (has_nulls, what) {
                (false, _) => ty,
                (true, "COALESCE") => ty.underlying().clone(),
                (true, _) => ty.underlying().base(),
            })
        }
        true => resolve_common_type(what, &args.map(Expr::ty).collect::<Vec<_>>()),
    }
}

/// A comparison's function and its operands as it takes them.
fn comparison(registry: &Registry, symbol: &str, left: Expr, right: Expr, ctx: &EvalContext) -> Result<Comparison> {
    match operator(registry, symbol, Some(left), right, ctx)? {
        Expr::Call { function, mut args, ty: DataType::Bool } if args.len() == 2 => {
            let right = args.pop().expect("two operands");
            let left = args.pop().expect("two operands");
            Ok(Comparison { function, left, right })
        }
        _ => Err(Error::new("42804", format!("operator {symbol} does not yield boolean"))),
    }
}

struct Comparison {
    function: &'static crate::functions::Function,
    left: Expr,
    right: Expr,
}

/// `left IS [NOT] DISTINCT FROM right`.
pub fn distinct(registry: &Registry, left: Expr, right: Expr, negated: bool, ctx: &EvalContext) -> Result<Expr> {
    let Comparison { function, left, right } = comparison(registry, "=", left, right, ctx)?;
    Ok(Expr::IsDistinct { left: Box::new(left), right: Box::new(right), equal: function, negated })
}

pub fn nullif(registry: &Registry, left: Expr, right: Expr, ctx: &EvalContext) -> Result<Expr> {
    let Comparison { function, left, right } = comparison(registry, "=", left, right, ctx)?;
    Ok(Expr::NullIf { left: Box::new(left), right: Box::new(right), equal: function })
}

/// The condition of a branch of `CASE`: compared with the operand, if there is one.
pub fn case_condition(registry: &Registry, operand: Option<&Expr>, condition: Expr, ctx: &EvalContext) -> Result<Expr> {
    match operand {
        Some(operand) => operator(registry, "=", Some(operand.clone()), condition, ctx),
        None => boolean("CASE/WHEN", condition, ctx),
    }
}

/// `CASE` of conditions and values.
pub fn case(branches: Vec<(Expr, Expr)>, otherwise: Option<Expr>, ctx: &EvalContext) -> Result<Expr> {
    let (conditions, mut values): (Vec<Expr>, Vec<Expr>) = branches.into_iter().unzip();
    let has_else = otherwise.is_some();
    // PostgreSQL looks at ELSE first when it chooses the type: without one that is a null.
    values.insert(0, otherwise.unwrap_or_else(|| Expr::null(DataType::Unknown)));
    let (mut values, ty) = unify("CASE", values, ctx)?;
    let otherwise = Some(Box::new(values.remove(0))).filter(|_| has_else);
    Ok(Expr::Case { branches: conditions.into_iter().zip(values).collect(), otherwise, ty })
}

/// A condition: boolean, or 42804 as `argument of WHERE must be type boolean, not type integer`.
pub fn boolean(place: &str, expr: Expr, ctx: &EvalContext) -> Result<Expr> {
    let ty = expr.ty();
    coerce(expr, &DataType::Bool, CastContext::Implicit, ctx).map_err(|error| match error.sqlstate {
        "42846" => {
            Error::new("42804", format!("argument of {place} must be type boolean, not type {}", ty.base().sql_name()))
        }
        _ => error,
    })
}

pub fn coalesce(args: Vec<Expr>, ctx: &EvalContext) -> Result<Expr> {
    let (args, ty) = unify("COALESCE", args, ctx)?;
    Ok(Expr::Coalesce { args, ty })
}

/// `GREATEST` or `LEAST`.
pub fn extreme(args: Vec<Expr>, greatest: bool, ctx: &EvalContext) -> Result<Expr> {
    let (args, ty) = unify(if greatest { "GREATEST" } else { "LEAST" }, args, ctx)?;
    Ok(Expr::Extreme { args, greatest, ty })
}

/// `expr [NOT] IN (list)`: one comparison with all items without columns, if they are several and have a common type
/// with the left side, and one with each other item.
pub fn in_list(
    registry: &Registry,
    expr: Expr,
    list: Vec<Expr>,
    has_columns: &dyn Fn(&Expr) -> bool,
    negated: bool,
    ctx: &EvalContext,
) -> Result<Expr> {
    let (columns, others): (Vec<Expr>, Vec<Expr>) = list.iter().cloned().partition(|item| has_columns(item));
    let mut terms = Vec::with_capacity(list.len());
    let together = match others.len() > 1 {
        true => in_common_type(registry, &expr, others, negated, ctx)?,
        false => None,
    };
    let alone = if together.is_some() { columns } else { list };
    terms.extend(together);
    for item in alone {
        terms.push(self::operator(registry, if negated { "<>" } else { "=" }, Some(expr.clone()), item, ctx)?);
    }
    Ok(match terms.len() {
        1 => terms.remove(0),
        _ if negated => Expr::And(terms),
        _ => Expr::Or(terms),
    })
}

/// What is no column, as one comparison with all of them; arrays are compared one by one, and so is what has no
/// common type. As for PostgreSQL's `= ANY`, the items are of the common type, and the left side is of its own, where an
/// operator takes the two as they are (`date = timestamp`).
fn in_common_type(
    registry: &Registry,
    expr: &Expr,
    list: Vec<Expr>,
    negated: bool,
    ctx: &EvalContext,
) -> Result<Option<Expr>> {
    let mut all = types(&list);
    all.insert(0, expr.ty());
    let Ok(common) = resolve_common_type("IN", &all) else { return Ok(None) };
    if common.element().is_some() {
        return Ok(None);
    }
    let probe = Expr::Hole { id: usize::MAX, ty: common };
    let Ok(Comparison { function, left, right }) = comparison(registry, "=", expr.clone(), probe, ctx) else {
        return Ok(None);
    };
    let ty = right.ty();
    let list = list.into_iter().map(|item| coerce_argument(item, &ty, ctx)).collect::<Result<Vec<_>>>()?;
    Ok(Some(Expr::InList { expr: Box::new(left), list, equal: function, negated }))
}

/// `ARRAY[…]`. `element` fixes the element type (`ARRAY[]::int[]`).
pub fn array_literal(elements: Vec<Expr>, element: Option<DataType>, ctx: &EvalContext) -> Result<Expr> {
    if elements.is_empty() && element.is_none() {
        return Err(Error::new("42P18", "cannot determine type of empty array")
            .with_hint("Explicitly cast to the desired type, for example ARRAY[]::integer[]."));
    }
    let (elements, ty) = match element {
        Some(ty) => {
            let cast = |item| coerce(item, &ty, CastContext::Explicit, ctx);
            (elements.into_iter().map(cast).collect::<Result<Vec<_>>>()?, ty)
        }
        None => unify("ARRAY", elements, ctx)?,
    };
    // Arrays as elements make one array with a dimension more.
    let ty = if ty.element().is_some() { ty.underlying().clone() } else { DataType::Array(Box::new(ty)) };
    Ok(Expr::ArrayLiteral { elements, ty })
}

/// `left symbol ANY (array)` or `ALL`.
pub fn any_all(
    registry: &Registry,
    left: Expr,
    symbol: &str,
    array: Expr,
    all: bool,
    ctx: &EvalContext,
) -> Result<Expr> {
    let array_ty = array.ty();
    let element = match (array_ty.element(), &array_ty) {
        (Some(element), _) => element.clone(),
        (_, DataType::Unknown) => left.ty(),
        _ => return Err(Error::new("42809", "op ANY/ALL (array) requires array on right side")),
    };
    let probe = Expr::Hole { id: usize::MAX, ty: element };
    let Comparison { function, left, right } =
        comparison(registry, symbol, left, probe, ctx).map_err(|error| match error.sqlstate {
            "42804" => Error::new("42809", "op ANY/ALL (array) requires operator to yield boolean"),
            _ => error,
        })?;
    let array = coerce(array, &DataType::Array(Box::new(right.ty())), CastContext::Implicit, ctx)?;
    Ok(Expr::AnyAll { left: Box::new(left), function, array: Box::new(array), all })
}
