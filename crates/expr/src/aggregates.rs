//! Aggregates over groups: one accumulator holds the states of all groups of one aggregate call.
//!
//! Groups are numbered densely from 0 by whoever groups. Partial states travel as vectors
//! ([`GroupsAccumulator::state`]), so that threads and spills meet in [`GroupsAccumulator::merge`].
//! `DISTINCT` and `ORDER BY` inside a call are done before `update` sees the rows.

use crate::error::Error;
use crate::functions::TypePattern;
use crate::operators::SortOrder;
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::DataType;

pub trait GroupsAccumulator: Send {
    /// Takes in rows: `groups[i]` is the group of row `i`, below `total_groups`. Rows where `filter` is
    /// not true are left out. `args` are vectors of the resolved argument types.
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<(), Error>;

    /// Takes in states that another accumulator of the same call gave: row `i` belongs to `groups[i]`.
    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<(), Error>;

    /// The states of all groups, emptied: one vector per [`ResolvedAggregate::state_types`].
    fn state(&mut self) -> Result<Vec<ArrayRef>, Error>;

    /// The results of all groups, in group order, as vectors of [`ResolvedAggregate::ty`]. Leaves the
    /// states as they are.
    fn evaluate(&mut self) -> Result<ArrayRef, Error>;

    /// Heap memory held, for the memory budget.
    fn size_bytes(&self) -> usize;
}

/// Makes an accumulator for given argument and result types.
pub type MakeAccumulator = fn(&[DataType], &DataType) -> Box<dyn GroupsAccumulator>;

pub struct Aggregate {
    /// PostgreSQL's oid.
    pub oid: u32,
    pub name: String,
    pub args: Vec<TypePattern>,
    pub ret: TypePattern,
    pub make: MakeAccumulator,
    /// Types of a partial state, from argument types and result type.
    pub state_types: fn(&[DataType], &DataType) -> Vec<DataType>,
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Aggregate) -> bool {
        std::ptr::eq(self, other)
    }
}

impl std::fmt::Debug for Aggregate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}({:?})", self.name, self.args)
    }
}

/// Aggregates whose state is a few numbers or a value, whatever they take in, and whose result does not depend on the
/// order of rows.
pub const FOLDING: [&str; 25] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "every",
    "bit_and",
    "bit_or",
    "bit_xor",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "variance",
    "var_pop",
    "var_samp",
    "corr",
    "covar_pop",
    "covar_samp",
    "regr_count",
    "regr_slope",
    "regr_intercept",
    "regr_avgx",
    "regr_avgy",
];

/// An aggregate with its types settled.
#[derive(Clone, PartialEq, Debug)]
pub struct ResolvedAggregate {
    pub aggregate: &'static Aggregate,
    /// What the arguments are to be cast to.
    pub arg_types: Vec<DataType>,
    pub ty: DataType,
    /// Of WITHIN GROUP: the last arguments are in this order. Empty for other aggregates.
    pub orders: Vec<SortOrder>,
}

impl ResolvedAggregate {
    pub fn accumulator(&self) -> Box<dyn GroupsAccumulator> {
        // A hypothetical row has as many columns as are ordered by.
        if self.orders.len() * 2 == self.arg_types.len() && self.aggregate.args == [TypePattern::Any] {
            return ordered::hypothetical(self);
        }
        match ordered::unordered(self) {
            Some(quantiles) => Box::new(quantiles),
            None => (self.aggregate.make)(&self.arg_types, &self.ty),
        }
    }

    /// Whether it takes rows in any order though it has WITHIN GROUP.
    pub fn is_indifferent_to_order(&self) -> bool {
        ordered::unordered(self).is_some()
    }

    /// Whether its state does not grow with what it takes in.
    pub fn is_bounded(&self) -> bool {
        let name = self.aggregate.name.as_str();
        FOLDING.contains(&name) || name.starts_with("regr_")
    }

    pub fn state_types(&self) -> Vec<DataType> {
        (self.aggregate.state_types)(&self.arg_types, &self.ty)
    }
}

mod collect;
mod extreme;
pub(crate) mod json;
pub use json::unwritten;
mod logic;
mod moments;
mod ordered;
mod quantiles;
mod ranges;
mod regression;
mod sums;

/// Calls `each(row, group)` for the rows that count: filtered, and valid in every argument.
pub(crate) fn for_each_row(
    groups: &[u32],
    args: &[ArrayRef],
    filter: Option<&BooleanArray>,
    mut each: impl FnMut(usize, usize) -> Result<(), Error>,
) -> Result<(), Error> {
    let nulls = args.iter().fold(None, |nulls, arg| {
        arrow_buffer::NullBuffer::union(nulls.as_ref(), arrow_array::Array::logical_nulls(arg).as_ref())
    });
    let mask = match (filter.map(crate::eval::is_true), nulls) {
        (None, None) => None,
        (Some(filter), None) => Some(filter),
        (None, Some(nulls)) => Some(nulls.into_inner()),
        (Some(filter), Some(nulls)) => Some(&filter & nulls.inner()),
    };
    match mask {
        None => groups.iter().enumerate().try_for_each(|(row, group)| each(row, *group as usize)),
        Some(mask) => mask.set_indices().try_for_each(|row| each(row, groups[row] as usize)),
    }
}

/// `oid name arg,arg|- result`.
pub(crate) fn read_aggregate(line: &str) -> Option<Aggregate> {
    let mut words = line.split(' ');
    let (oid, name, args, ret) = (words.next()?, words.next()?, words.next()?, words.next()?);
    let (make, state_types) = bind(name, args)?;
    Some(Aggregate {
        oid: oid.parse().ok()?,
        name: name.to_string(),
        args: crate::functions::read_args(args)?,
        ret: TypePattern::parse(ret)?,
        make,
        state_types,
    })
}

pub(crate) type Binding = (MakeAccumulator, fn(&[DataType], &DataType) -> Vec<DataType>);

fn bind(name: &str, args: &str) -> Option<Binding> {
    sums::bind(name, args)
        .or_else(|| extreme::bind(name))
        .or_else(|| logic::bind(name, args))
        .or_else(|| moments::bind(name, args))
        .or_else(|| collect::bind(name, args))
        .or_else(|| json::bind(name))
        .or_else(|| regression::bind(name, args))
        .or_else(|| ordered::bind(name, args))
        .or_else(|| ranges::bind(name))
}

/// `min` and `max` of scaled numerics stay scaled.
pub(crate) fn result_type(aggregate: &Aggregate, args: &[DataType], ty: DataType) -> DataType {
    match (aggregate.name.as_str(), args) {
        ("min" | "max", [arg]) if arg.base() == ty => arg.clone(),
        _ => ty,
    }
}

#[cfg(test)]
mod tests;
