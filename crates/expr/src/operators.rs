//! Operators: the code behind `pg_operator`'s functions.
//!
//! [`compare`] serves all comparisons, [`arithmetic`] numbers, [`decimal`] scaled numerics, [`dates`]
//! dates and intervals; patterns and JSON have modules of their own.

mod arithmetic;
pub mod compare;
mod dates;
mod decimal;
mod other;

pub(crate) use arithmetic::{check_f64, power, sqrt};
pub use compare::{SortOrder, compare_datums, compare_rows, equal_datums};

use crate::functions::Kernel;
use basalt_types::CompareOp;

/// Code for an operator, and whether it is strict. `None`: not implemented.
pub(crate) fn bind(symbol: &str, function: &str, left: &str, right: &str) -> Option<(Kernel, bool)> {
    let json = matches!(left, "jsonb") && matches!(right, "jsonb");
    let comparison = match symbol {
        "=" => Some(CompareOp::Eq),
        "<>" => Some(CompareOp::NotEq),
        "<" => Some(CompareOp::Lt),
        "<=" => Some(CompareOp::LtEq),
        ">" => Some(CompareOp::Gt),
        ">=" => Some(CompareOp::GtEq),
        _ => None,
    };
    if let Some(op) = comparison.filter(|_| !json || matches!(symbol, "=" | "<>")) {
        return compare::kernel(op, left, right).map(|kernel| (kernel, true));
    }
    let strict = !matches!(function, "array_cat" | "array_append" | "array_prepend");
    let kernel = arithmetic::bind(function)
        .or_else(|| dates::bind(function))
        .or_else(|| crate::pattern::bind(function))
        .or_else(|| other::bind(function, right))?;
    Some((kernel, strict))
}

#[cfg(test)]
mod tests;
