//! The function catalogue: what exists, by PostgreSQL's names and oids, and the code behind it.
//!
//! Facts (oid, argument types, volatility) are rows of text taken from PostgreSQL's catalog; code is bound
//! to them by name and argument types when the catalogue is first used. A fact without code is not in
//! the catalogue. Every function has a kernel over single values; those that queries spend their time in
//! have one over vectors too.

use crate::context::EvalContext;
use crate::error::Error;
use crate::eval::vector::Vector;
use basalt_types::{CompareOp, DataType, Datum};
use std::fmt;
use std::sync::Arc;

/// When calling again with the same arguments may give another result. Ordered: later is worse.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Volatility {
    Immutable,
    /// Fixed within a statement.
    Stable,
    Volatile,
}

/// A declared argument or result type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypePattern {
    Exact(DataType),
    AnyElement,
    AnyArray,
    AnyNonArray,
    AnyEnum,
    AnyRange,
    AnyMultirange,
    AnyCompatible,
    AnyCompatibleArray,
    AnyCompatibleNonArray,
    /// PostgreSQL's `"any"`.
    Any,
}

/// What a kernel knows beside its arguments.
pub struct CallInfo<'a> {
    pub function: &'a Function,
    pub arg_types: &'a [DataType],
    pub ty: &'a DataType,
    pub ctx: &'a EvalContext,
}

/// One call. Strict functions are not called with nulls.
pub type ScalarKernel = fn(&[Datum], &CallInfo) -> Result<Datum, Error>;
/// One call per row; sees nulls. At least one argument is an array of `rows` elements.
pub type VectorKernel = fn(&[Vector], usize, &CallInfo) -> Result<Vector, Error>;
/// The rows of one call of a set-returning function, each made when it is asked for.
pub type SetRows = Box<dyn Iterator<Item = Result<Datum, Error>> + Send>;
/// One call of a set-returning function. Strict ones are not called with nulls.
pub type SetKernel = fn(&[Datum], &CallInfo) -> Result<SetRows, Error>;
/// Code of a function that another crate registered.
pub type CustomKernel = dyn Fn(&[Datum], &CallInfo) -> Result<Datum, Error> + Send + Sync;

#[derive(Clone)]
pub enum Kernel {
    Native { scalar: ScalarKernel, vector: Option<VectorKernel> },
    Custom(Arc<CustomKernel>),
    Set(SetKernel),
}

pub struct Function {
    /// PostgreSQL's oid, or 0.
    pub oid: u32,
    pub name: String,
    pub args: Vec<TypePattern>,
    /// The last argument may repeat.
    pub variadic: bool,
    /// Trailing arguments that may be left out; the kernel then sees fewer.
    pub optional: usize,
    pub ret: TypePattern,
    pub returns_set: bool,
    /// Null in, null out.
    pub strict: bool,
    pub volatility: Volatility,
    pub kernel: Kernel,
}

impl PartialEq for Function {
    fn eq(&self, other: &Function) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Function {
    /// Whether it is an equality, by PostgreSQL's names (`int4eq`, `network_eq`).
    pub fn is_equality(&self) -> bool {
        names_equality(&self.name)
    }

    /// What it compares its two arguments by, by PostgreSQL's names (`int4eq`, `text_le`, …).
    pub fn comparison(&self) -> Option<CompareOp> {
        let name = self.name.as_str();
        // Other functions end in the same letters: `has_table_privilege`, `int4range`.
        let compares = self.ret == TypePattern::Exact(DataType::Bool) && self.volatility == Volatility::Immutable;
        let is_other = name.contains("regex") || name.contains("like") || name.ends_with("range") || name.len() < 5;
        if self.args.len() != 2 || !compares || is_other {
            return None;
        }
        match op_of(&name[name.len() - 2..])? {
            CompareOp::Eq if !self.is_equality() => None,
            op => Some(op),
        }
    }

    /// The same, two types of time among each other included (`date_lt_timestamp`).
    pub fn comparison_across_types(&self) -> Option<CompareOp> {
        let ends = ["_timestamptz", "_timestamp", "_date"];
        let across = || op_of(ends.iter().find_map(|end| self.name.strip_suffix(end))?.rsplit('_').next()?);
        self.comparison().or_else(across)
    }
}

fn op_of(letters: &str) -> Option<CompareOp> {
    Some(match letters {
        "eq" => CompareOp::Eq,
        "ne" => CompareOp::NotEq,
        "lt" => CompareOp::Lt,
        "le" => CompareOp::LtEq,
        "gt" => CompareOp::Gt,
        "ge" => CompareOp::GtEq,
        _ => return None,
    })
}

/// [`Function::is_equality`] of a function by its name; `network_subeq` and `network_supeq` compare networks otherwise.
pub fn names_equality(name: &str) -> bool {
    name.ends_with("eq") && !name.ends_with("subeq") && !name.ends_with("supeq")
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", self.name, self.args)
    }
}

pub(crate) mod arg;
mod array_columns;
pub(crate) mod array_elements;
pub(crate) mod arrays;
pub(crate) mod bits;
pub(crate) mod casts;
mod dates;
mod enums;
mod formatting;
mod hashes;
mod internals;
pub(crate) mod json;
mod math;
pub(crate) mod money;
pub(crate) mod network;
mod orders;
pub mod pattern_types;
pub mod ranges;
mod registry;
pub mod set_columns;
mod sets;
pub mod spread;
pub(crate) mod strings;
mod strings_regex;
pub mod structures;
mod system;
pub(crate) mod times;
pub(crate) mod transactions;

pub use array_elements::ElementTest;
pub use casts::fit_time;
pub(crate) use registry::read_args;
pub use registry::{Operator, Registry};

/// Code for a function of `pg_proc`, by name and argument type names. `None`: not implemented.
fn bind(name: &str, args: &str) -> Option<Kernel> {
    math::bind(name, args)
        .or_else(|| strings::bind(name, args))
        .or_else(|| strings_regex::bind(name, args))
        .or_else(|| formatting::bind(name, args))
        .or_else(|| dates::bind(name, args))
        .or_else(|| arrays::bind(name, args))
        .or_else(|| enums::bind(name, args))
        .or_else(|| json::bind(name, args))
        .or_else(|| ranges::bind(name, args))
        .or_else(|| hashes::bind(name, args))
        .or_else(|| orders::bind(name, args))
        .or_else(|| sets::bind(name, args))
        .or_else(|| system::bind(name, args))
        .or_else(|| times::bind(name, args))
        .or_else(|| bits::bind(name, args))
        .or_else(|| network::bind(name, args))
        .or_else(|| transactions::bind(name, args))
        .or_else(|| money::bind(name))
        .or_else(|| casts::bind(name, args))
        .or_else(|| crate::operators::bind_function(name, args))
        .or_else(|| internals::bind(name, args))
}

/// Code behind the operators that compare text byte by byte.
pub(crate) fn pattern_order(function: &str, left: &str) -> Option<Kernel> {
    let is_order = function.contains("_pattern_");
    is_order.then(|| internals::bind(function, left)).flatten()
}

#[cfg(test)]
pub(crate) mod tests;
