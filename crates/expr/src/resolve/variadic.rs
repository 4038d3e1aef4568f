//! Calls of the form `f(a, VARIADIC array)` (manual 38.5.6).

use super::coerce::coerce_argument;
use super::{Choice, ambiguous_function, candidates, no_function, settle};
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::{Function, Registry, TypePattern, spread_of};
use crate::tree::Expr;
use basalt_types::DataType;

/// A call whose last argument is the array of all that the function takes variadically.
pub fn call_variadic(registry: &Registry, name: &str, args: Vec<Expr>, ctx: &EvalContext) -> Result<Expr> {
    let types: Vec<DataType> = args.iter().map(Expr::ty).collect();
    let fitting: Vec<(Vec<TypePattern>, &'static Function)> = registry
        .functions(name)
        .iter()
        .filter(|function| function.variadic && function.args.len() == args.len())
        .map(|function| {
            let mut patterns = function.args.clone();
            if let Some(last @ TypePattern::Any) = patterns.last_mut() {
                *last = TypePattern::AnyArray;
            }
            (patterns, *function)
        })
        .collect();
    let takes_any = fitting.iter().any(|(_, function)| function.args.last() == Some(&TypePattern::Any));
    if takes_any && !matches!(types.last(), Some(DataType::Array(_) | DataType::Unknown)) {
        return Err(Error::new("42804", "VARIADIC argument must be an array"));
    }
    let patterns: Vec<&[TypePattern]> = fitting.iter().map(|(patterns, _)| patterns.as_slice()).collect();
    let index = match candidates::choose(&patterns, &types, false) {
        Choice::One(index) => index,
        Choice::None => return Err(no_function(name, &types)),
        Choice::Many => return Err(ambiguous_function(name, &types)),
    };
    let (patterns, function) = &fitting[index];
    let resolved = settle(function, patterns, &types)?;
    let args = args
        .into_iter()
        .zip(&resolved.arg_types)
        .map(|(arg, ty)| coerce_argument(arg, ty, ctx))
        .collect::<Result<Vec<_>>>()?;
    let function = match function.args.last() {
        Some(TypePattern::Any) => spread_of(function)
            .ok_or_else(|| Error::not_supported(format!("VARIADIC is not supported in calls of {name}")))?,
        _ => function,
    };
    Ok(Expr::Call { function, args, ty: resolved.ty })
}
