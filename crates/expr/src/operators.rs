//! Operators: the code behind `pg_operator`'s functions.
//!
//! [`compare`] serves all comparisons, [`arithmetic`] numbers, [`decimal`] scaled numerics, [`dates`]
//! dates and intervals; patterns and JSON have modules of their own.

mod arithmetic;
pub mod compare;
mod dates;
mod decimal;
mod floats;
mod other;

pub(crate) use arithmetic::{check_f64, power, sqrt};
pub(crate) use compare::cast_to_compare;
pub use compare::{SortOrder, check_comparable, compare_arrays, compare_datums, compare_rows, equal_datums};
pub(crate) use other::printed;

use crate::functions::Kernel;
use ahash::AHashMap;
use basalt_types::CompareOp;
use std::sync::LazyLock;

/// Code for an operator, and whether it is strict. `None`: not implemented.
pub(crate) fn bind(symbol: &str, function: &str, left: &str, right: &str) -> Option<(Kernel, bool)> {
    let comparison = match symbol {
        "=" => Some(CompareOp::Eq),
        "<>" => Some(CompareOp::NotEq),
        "<" => Some(CompareOp::Lt),
        "<=" => Some(CompareOp::LtEq),
        ">" => Some(CompareOp::Gt),
        ">=" => Some(CompareOp::GtEq),
        _ => None,
    };
    if let Some(op) = comparison {
        return compare::kernel(op, left, right).map(|kernel| (kernel, true));
    }
    let strict = !matches!(function, "array_cat" | "array_append" | "array_prepend");
    let kernel = arithmetic::bind(function)
        .or_else(|| dates::bind(function))
        .or_else(|| crate::pattern::bind(function))
        .or_else(|| crate::functions::bits::operator(function))
        .or_else(|| crate::functions::network::operator(function))
        .or_else(|| crate::functions::transactions::operator(function))
        .or_else(|| crate::functions::money::bind(function))
        .or_else(|| crate::functions::times::operator(function))
        .or_else(|| crate::functions::ranges::operator(function))
        .or_else(|| crate::functions::pattern_order(function, left))
        .or_else(|| other::bind(function, right))?;
    Some((kernel, strict))
}

/// Code for a function of `pg_proc` that is behind an operator (`int4pl`, `texteq`), by its argument types.
pub(crate) fn bind_function(function: &str, args: &str) -> Option<Kernel> {
    static SYMBOLS: LazyLock<AHashMap<(&str, String), &str>> = LazyLock::new(|| {
        let lines = include_str!("operators/facts.txt").lines();
        let parsed = lines.filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (symbol, left, right, _, function) =
                (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
            let args = if left == "-" { right.to_string() } else { format!("{left},{right}") };
            Some(((function, args), symbol))
        });
        parsed.collect()
    });
    let symbol = SYMBOLS.get(&(function, args.to_string()))?;
    let (left, right) = args.split_once(',').unwrap_or(("-", args));
    bind(symbol, function, left, right).map(|(kernel, _)| kernel)
}

#[cfg(test)]
mod tests;
