//! `f(a, VARIADIC array)` of functions that take any arguments: the array's elements are arguments, however many
//! there are at run time (PostgreSQL manual, 38.5.6).

use super::{CallInfo, Function, Kernel, ScalarKernel, TypePattern, Volatility};
use crate::error::{Error, Result};
use crate::tree::Expr;
use basalt_types::{DataType, Datum};
use std::sync::{Arc, LazyLock};

/// Name, arguments as the catalogue has them, those before the array, result.
const FUNCTIONS: [(&str, &str, usize, DataType); 9] = [
    ("concat", "any", 0, DataType::Text),
    ("concat_ws", "text,any", 1, DataType::Text),
    ("format", "text,any", 1, DataType::Text),
    ("num_nulls", "any", 0, DataType::Int4),
    ("num_nonnulls", "any", 0, DataType::Int4),
    ("json_build_array", "any", 0, DataType::Json),
    ("json_build_object", "any", 0, DataType::Json),
    ("jsonb_build_array", "any", 0, DataType::Jsonb),
    ("jsonb_build_object", "any", 0, DataType::Jsonb),
];

static SPREAD: LazyLock<Vec<(usize, Function)>> = LazyLock::new(|| {
    let function = |(name, args, before, ret): &(&'static str, &str, usize, DataType)| {
        let Some(Kernel::Native { scalar, .. }) = super::bind(name, args) else { return None };
        let kernel = move |args: &[Datum], info: &CallInfo| call(scalar, args, info);
        Some((
            *before,
            Function {
                oid: 0,
                name: (*name).to_string(),
                args: vec![TypePattern::Any; before + 1],
                variadic: false,
                optional: 0,
                ret: TypePattern::Exact(ret.clone()),
                returns_set: false,
                strict: false,
                volatility: Volatility::Stable,
                kernel: Kernel::Custom(Arc::new(kernel)),
            },
        ))
    };
    FUNCTIONS.iter().filter_map(function).collect()
});

/// How many arguments stand before the array of a function that takes any; `None` for other functions.
pub fn fixed_args(name: &str) -> Option<usize> {
    SPREAD.iter().find(|(_, function)| function.name == name).map(|(before, _)| *before)
}

/// The call with an array in the place of the last arguments. `None` if the function is none of these.
pub fn spread(name: &str, args: Vec<Expr>) -> Option<Expr> {
    let functions: &'static [(usize, Function)] = &SPREAD;
    let (_, function) =
        functions.iter().find(|(before, function)| function.name == name && *before + 1 == args.len())?;
    let TypePattern::Exact(ty) = &function.ret else { return None };
    Some(Expr::Call { function, args, ty: ty.clone() })
}

fn call(scalar: ScalarKernel, args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let (Some((array, before)), Some((array_type, before_types))) = (args.split_last(), info.arg_types.split_last())
    else {
        return Err(Error::internal("a VARIADIC array is missing"));
    };
    let element =
        array_type.element().ok_or_else(|| Error::internal(format!("{} is no array", array_type.sql_name())))?;
    let elements = match array {
        Datum::Bytes(bytes) => crate::array_value::decode(element, bytes)?.elements,
        // Of a null array `format` takes nothing.
        _ if info.function.name == "format" => Vec::new(),
        _ => return Ok(Datum::Null),
    };
    let types: Vec<DataType> = before_types.iter().cloned().chain(elements.iter().map(|_| element.clone())).collect();
    let all: Vec<Datum> = before.iter().cloned().chain(elements).collect();
    scalar(&all, &CallInfo { arg_types: &types, ..*info })
}
