//! One row at a time, without vectors: constants, point reads, row-wise plans.

use crate::array_value;
use crate::cast;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::{CallInfo, Function, Kernel};
use crate::operators::compare_datums;
use crate::tree::{Expr, Truth};
use basalt_types::{DataType, Datum};
use std::cmp::Ordering;

pub(super) fn eval(expr: &Expr, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
    match expr {
        Expr::Column { index, .. } => match row.get(*index) {
            Some(value) => Ok(value.clone()),
            None => Err(Error::internal(format!("column {index} of {} was asked for", row.len()))),
        },
        Expr::Param { index, .. } => match ctx.params.get(*index) {
            Some(value) => Ok(value.clone()),
            None => Err(Error::new("42P02", format!("there is no parameter ${}", index + 1))),
        },
        Expr::Const { value, .. } => Ok(value.clone()),
        Expr::Call { function, args, ty } => call(function, args, ty, row, ctx),
        Expr::Cast { expr, to, explicit } => {
            let value = eval(expr, row, ctx)?;
            let is_checked = matches!(to, DataType::Domain(_));
            if value.is_null() && !is_checked {
                Ok(value)
            } else {
                cast::cast_datum(&expr.ty(), to, &value, *explicit, ctx)
            }
        }
        Expr::And(args) => logic(args, false, row, ctx),
        Expr::Or(args) => logic(args, true, row, ctx),
        Expr::Not(expr) => Ok(not(&eval(expr, row, ctx)?)),
        Expr::IsNull(expr) => Ok(Datum::Bool(eval(expr, row, ctx)?.is_null())),
        Expr::IsNotNull(expr) => Ok(Datum::Bool(!eval(expr, row, ctx)?.is_null())),
        Expr::BoolTest { expr, truth, negated } => {
            Ok(Datum::Bool(truth_is(&eval(expr, row, ctx)?, *truth) != *negated))
        }
        Expr::IsDistinct { left, right, equal, negated } => {
            let (a, b) = (eval(left, row, ctx)?, eval(right, row, ctx)?);
            let same = match (a.is_null(), b.is_null()) {
                (true, true) => true,
                (false, false) => compare(equal, left, right, [a, b], ctx)? == Datum::Bool(true),
                _ => false,
            };
            Ok(Datum::Bool(same == *negated))
        }
        Expr::NullIf { left, right, equal } => {
            let (a, b) = (eval(left, row, ctx)?, eval(right, row, ctx)?);
            let same = compare(equal, left, right, [a.clone(), b], ctx)? == Datum::Bool(true);
            Ok(if same { Datum::Null } else { a })
        }
        Expr::Case { branches, otherwise, .. } => {
            for (condition, value) in branches {
                if eval(condition, row, ctx)? == Datum::Bool(true) {
                    return eval(value, row, ctx);
                }
            }
            otherwise.as_deref().map_or(Ok(Datum::Null), |value| eval(value, row, ctx))
        }
        Expr::Coalesce { args, .. } => {
            for arg in args {
                let value = eval(arg, row, ctx)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            Ok(Datum::Null)
        }
        Expr::Extreme { args, greatest, ty } => extreme(args, *greatest, ty, row, ctx),
        Expr::InList { expr, list, equal, negated } => {
            let found = in_list(expr, list, equal, row, ctx)?;
            Ok(if *negated { not(&found) } else { found })
        }
        Expr::ArrayLiteral { elements, ty } => {
            let values = elements.iter().map(|element| eval(element, row, ctx)).collect::<Result<Vec<_>>>()?;
            match ty {
                DataType::Array(element) if elements.iter().any(|part| part.ty().element().is_some()) => {
                    array_value::encode_shaped(element, &array_value::nest(element, &values)?)
                }
                DataType::Array(element) => array_value::encode(element, &values),
                other => Err(Error::internal(format!("an array of type {}", other.sql_name()))),
            }
        }
        Expr::AnyAll { left, function, array, all } => any_all(left, function, array, *all, row, ctx),
        Expr::Hole { id, .. } => Err(Error::internal(format!("hole {id} was never filled"))),
    }
}

/// Calls without regard to nulls being allowed: strict functions give null for null.
pub(super) fn invoke(function: &Function, args: &[Datum], info: &CallInfo) -> Result<Datum> {
    if function.strict && args.iter().any(Datum::is_null) {
        return Ok(Datum::Null);
    }
    match &function.kernel {
        Kernel::Native { scalar, .. } => scalar(args, info),
        Kernel::Custom(call) => call(args, info),
        Kernel::Set(_) => Err(Error::new("0A000", "set-valued function called in context that cannot accept a set")),
    }
}

fn call(function: &Function, args: &[Expr], ty: &DataType, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
    match args {
        [a] => {
            let info = CallInfo { function, arg_types: &[a.ty()], ty, ctx };
            invoke(function, &[eval(a, row, ctx)?], &info)
        }
        [a, b] => {
            let info = CallInfo { function, arg_types: &[a.ty(), b.ty()], ty, ctx };
            invoke(function, &[eval(a, row, ctx)?, eval(b, row, ctx)?], &info)
        }
        args => {
            let values = args.iter().map(|arg| eval(arg, row, ctx)).collect::<Result<Vec<_>>>()?;
            let arg_types: Vec<DataType> = args.iter().map(Expr::ty).collect();
            invoke(function, &values, &CallInfo { function, arg_types: &arg_types, ty, ctx })
        }
    }
}

fn compare(equal: &Function, left: &Expr, right: &Expr, values: [Datum; 2], ctx: &EvalContext) -> Result<Datum> {
    let arg_types = [left.ty(), right.ty()];
    invoke(equal, &values, &CallInfo { function: equal, arg_types: &arg_types, ty: &DataType::Bool, ctx })
}

/// `AND` with `decisive` false, `OR` with true.
fn logic(args: &[Expr], decisive: bool, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
    let mut unknown = false;
    for arg in args {
        match eval(arg, row, ctx)? {
            Datum::Bool(value) if value == decisive => return Ok(Datum::Bool(decisive)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(!decisive) })
}

pub(super) fn not(value: &Datum) -> Datum {
    match value {
        Datum::Bool(value) => Datum::Bool(!value),
        _ => Datum::Null,
    }
}

pub(super) fn truth_is(value: &Datum, truth: Truth) -> bool {
    match truth {
        Truth::True => *value == Datum::Bool(true),
        Truth::False => *value == Datum::Bool(false),
        Truth::Unknown => value.is_null(),
    }
}

fn extreme(args: &[Expr], greatest: bool, ty: &DataType, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
    let wanted = if greatest { Ordering::Greater } else { Ordering::Less };
    let mut best = Datum::Null;
    for arg in args {
        let value = eval(arg, row, ctx)?;
        if !value.is_null() && (best.is_null() || compare_datums(ty, &value, &best) == wanted) {
            best = value;
        }
    }
    Ok(best)
}

fn in_list(expr: &Expr, list: &[Expr], equal: &Function, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
    let probe = eval(expr, row, ctx)?;
    if probe.is_null() && !list.is_empty() {
        return Ok(Datum::Null);
    }
    let mut unknown = false;
    for item in list {
        match compare(equal, expr, item, [probe.clone(), eval(item, row, ctx)?], ctx)? {
            Datum::Bool(true) => return Ok(Datum::Bool(true)),
            Datum::Bool(false) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(false) })
}

fn any_all(
    left: &Expr,
    function: &Function,
    array: &Expr,
    all: bool,
    row: &[Datum],
    ctx: &EvalContext,
) -> Result<Datum> {
    let probe = eval(left, row, ctx)?;
    let array_value = eval(array, row, ctx)?;
    let array_ty = array.ty();
    let (Datum::Bytes(bytes), Some(element)) = (&array_value, array_ty.element()) else { return Ok(Datum::Null) };
    let elements = array_value::elements(element, bytes)?;
    let arg_types = [left.ty(), element.clone()];
    let info = CallInfo { function, arg_types: &arg_types, ty: &DataType::Bool, ctx };
    let mut unknown = false;
    for element in elements {
        match invoke(function, &[probe.clone(), element], &info)? {
            Datum::Bool(value) if value != all => return Ok(Datum::Bool(value)),
            Datum::Bool(_) => {}
            _ => unknown = true,
        }
    }
    Ok(if unknown { Datum::Null } else { Datum::Bool(all) })
}
