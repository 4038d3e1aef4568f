//! From names and argument types to functions: PostgreSQL manual chapter 10.
//!
//! [`candidates`] chooses among overloads, [`coerce`] brings expressions to types, [`decimal`] keeps
//! numeric arithmetic in scaled integers. The builders ([`call`], [`operator`], …) do all three.

pub mod build;
pub mod candidates;
pub mod category;
pub mod coerce;
pub mod decimal;

pub use build::{
    aggregate, any_all, array_literal, call, case, case_condition, coalesce, common_type, distinct, extreme, in_list,
    nullif, operator,
};
pub use coerce::{coerce, coerce_const, resolve_common_type};
pub use decimal::{DecimalOp, decimal_result_type};

use crate::aggregates::ResolvedAggregate;
use crate::error::{Error, Result};
use crate::functions::{Function, Operator, Registry, TypePattern};
use basalt_types::DataType;
use candidates::Choice;

/// A function with its types settled.
#[derive(Clone, PartialEq, Debug)]
pub struct Resolved {
    pub function: &'static Function,
    /// What the arguments are to be cast to, one per argument given.
    pub arg_types: Vec<DataType>,
    pub ty: DataType,
}

impl Registry {
    /// Section 10.3. 42883 if there is none, 42725 if there are several.
    pub fn resolve_function(&self, name: &str, args: &[DataType]) -> Result<Resolved> {
        let all = self.functions(name);
        let fitting: Vec<(Vec<TypePattern>, &'static Function)> = all
            .iter()
            .filter_map(|function| {
                Some((expand(&function.args, function.variadic, function.optional, args.len())?, *function))
            })
            .collect();
        // Of two with the same arguments the one that is not VARIADIC counts.
        let is_shadowed = |(patterns, function): &(Vec<TypePattern>, &Function)| {
            function.variadic && fitting.iter().any(|(other, plain)| !plain.variadic && other == patterns)
        };
        let shadowed: Vec<bool> = fitting.iter().map(is_shadowed).collect();
        let mut shadowed = shadowed.into_iter();
        let mut fitting = fitting;
        fitting.retain(|_| !shadowed.next().unwrap_or(false));
        let patterns: Vec<&[TypePattern]> = fitting.iter().map(|(patterns, _)| patterns.as_slice()).collect();
        match candidates::choose(&patterns, args, false) {
            Choice::One(index) => settle(fitting[index].1, &fitting[index].0, args)
                .map_err(|error| unless_alike(error, || no_function(name, args))),
            Choice::None => Err(no_function(name, args)),
            Choice::Many => Err(ambiguous_function(name, args)),
        }
    }

    /// Section 10.2. `left` is `None` for prefix operators.
    pub fn resolve_operator(&self, symbol: &str, left: Option<&DataType>, right: &DataType) -> Result<Resolved> {
        let args: Vec<DataType> = left.into_iter().chain([right]).cloned().collect();
        let fitting: Vec<&'static Operator> = self
            .operators(symbol)
            .iter()
            .copied()
            .filter(|operator| operator.left.is_some() == left.is_some())
            .collect();
        let patterns: Vec<&[TypePattern]> = fitting.iter().map(|operator| operator.function.args.as_slice()).collect();
        match candidates::choose(&patterns, &args, true) {
            Choice::One(index) => settle(fitting[index].function, patterns[index], &args)
                .map_err(|error| unless_alike(error, || no_operator(symbol, left, right))),
            Choice::None => Err(no_operator(symbol, left, right)),
            Choice::Many => {
                Err(Error::new("42725", format!("operator is not unique: {}", operator_text(symbol, left, right)))
                    .with_hint(
                        "Could not choose a best candidate operator. You might need to add explicit type casts.",
                    ))
            }
        }
    }

    /// As functions; `count(*)` is `count` without arguments.
    pub fn resolve_aggregate(&self, name: &str, args: &[DataType]) -> Result<ResolvedAggregate> {
        let fitting: Vec<_> =
            self.aggregates(name).iter().copied().filter(|aggregate| aggregate.args.len() == args.len()).collect();
        let patterns: Vec<&[TypePattern]> = fitting.iter().map(|aggregate| aggregate.args.as_slice()).collect();
        match candidates::choose(&patterns, args, false) {
            Choice::One(index) => {
                let aggregate = fitting[index];
                let (arg_types, ty) = candidates::settle_types(patterns[index], &aggregate.ret, args)?;
                let ty = crate::aggregates::result_type(aggregate, &arg_types, ty);
                Ok(ResolvedAggregate { aggregate, arg_types, ty, orders: Vec::new() })
            }
            Choice::None => Err(no_function(name, args)),
            Choice::Many => Err(ambiguous_function(name, args)),
        }
    }
}

/// [`Registry::resolve_function`] among the built-in functions.
pub fn resolve_function(name: &str, args: &[DataType]) -> Result<Resolved> {
    Registry::builtin().resolve_function(name, args)
}

/// [`Registry::resolve_operator`] among the built-in operators.
pub fn resolve_operator(symbol: &str, left: Option<&DataType>, right: &DataType) -> Result<Resolved> {
    Registry::builtin().resolve_operator(symbol, left, right)
}

/// [`Registry::resolve_aggregate`] among the built-in aggregates.
pub fn resolve_aggregate(name: &str, args: &[DataType]) -> Result<ResolvedAggregate> {
    Registry::builtin().resolve_aggregate(name, args)
}

/// A domain is not its base type where arguments of polymorphic types are compared: no candidate is left then.
fn unless_alike(error: Error, none: impl FnOnce() -> Error) -> Error {
    if error.message.ends_with(candidates::NOT_ALIKE) { none() } else { error }
}

fn settle(function: &'static Function, patterns: &[TypePattern], args: &[DataType]) -> Result<Resolved> {
    let (arg_types, ty) = candidates::settle_types(patterns, &function.ret, args)?;
    let ty = decimal::physical_result(function, &arg_types, ty);
    Ok(Resolved { function, arg_types, ty })
}

/// Declared types for a call with `count` arguments; `None` if it cannot have so many.
fn expand(declared: &[TypePattern], variadic: bool, optional: usize, count: usize) -> Option<Vec<TypePattern>> {
    if variadic {
        let (last, fixed) = declared.split_last()?;
        if count < fixed.len() + 1 {
            return None;
        }
        let element = match last {
            TypePattern::Exact(DataType::Array(element)) => TypePattern::Exact((**element).clone()),
            TypePattern::AnyArray => TypePattern::AnyElement,
            TypePattern::AnyCompatibleArray => TypePattern::AnyCompatible,
            other => other.clone(),
        };
        let repeated = std::iter::repeat_n(element, count - fixed.len());
        return Some(fixed.iter().cloned().chain(repeated).collect());
    }
    let fits = count <= declared.len() && count + optional >= declared.len();
    fits.then(|| declared[..count].to_vec())
}

fn type_list(args: &[DataType]) -> String {
    args.iter().map(|ty| ty.base().sql_name()).collect::<Vec<_>>().join(", ")
}

fn no_function(name: &str, args: &[DataType]) -> Error {
    Error::new("42883", format!("function {name}({}) does not exist", type_list(args)))
        .with_hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

fn ambiguous_function(name: &str, args: &[DataType]) -> Error {
    Error::new("42725", format!("function {name}({}) is not unique", type_list(args)))
        .with_hint("Could not choose a best candidate function. You might need to add explicit type casts.")
}

fn operator_text(symbol: &str, left: Option<&DataType>, right: &DataType) -> String {
    match left {
        Some(left) => format!("{} {symbol} {}", left.base().sql_name(), right.base().sql_name()),
        None => format!("{symbol} {}", right.base().sql_name()),
    }
}

fn no_operator(symbol: &str, left: Option<&DataType>, right: &DataType) -> Error {
    let hint = match left {
        Some(_) => "No operator matches the given name and argument types. You might need to add explicit type casts.",
        None => "No operator matches the given name and argument type. You might need to add an explicit type cast.",
    };
    Error::new("42883", format!("operator does not exist: {}", operator_text(symbol, left, right))).with_hint(hint)
}

#[cfg(test)]
mod tests;
