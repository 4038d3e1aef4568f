//! Ordered-set and hypothetical-set aggregates: PostgreSQL manual tables 9.61 and 9.62.
//!
//! They are given each group's rows in the order of WITHIN GROUP: first the direct arguments, which are the
//! same in all rows of a group, then the ordered ones. What depends on that order has no partial state.

use super::quantiles::{self, Quantiles};
use super::{Binding, GroupsAccumulator, ResolvedAggregate};
use crate::array_value::{self, ArrayValue};
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use crate::functions::arg::mismatch;
use crate::interval::Interval;
use crate::operators::{SortOrder, compare_rows, equal_datums};
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str, args: &str) -> Option<Binding> {
    let make: super::MakeAccumulator = match (name, args) {
        ("mode", "anyelement") => |args, ty| Box::new(Ordered::new(args, ty, Kind::Mode)),
        ("percentile_cont", "float8,float8" | "float8,interval" | "_float8,float8" | "_float8,interval") => {
            |args, ty| Box::new(Ordered::new(args, ty, Kind::Continuous))
        }
        ("percentile_disc", "float8,anyelement" | "_float8,anyelement") => {
            |args, ty| Box::new(Ordered::new(args, ty, Kind::Discrete))
        }
        // Made by `hypothetical`, which knows the order.
        ("rank" | "dense_rank" | "percent_rank" | "cume_dist", "any") => {
            |args, ty| Box::new(Hypothetical::new("rank", args, ty, &[]))
        }
        _ => return None,
    };
    match name {
        "mode" | "percentile_cont" | "percentile_disc" => Some((make, |args, _| quantiles::state_types(args))),
        _ => Some((make, |_, _| Vec::new())),
    }
}

/// One that takes rows in any order, if values are of a type that allows it.
pub(super) fn unordered(call: &ResolvedAggregate) -> Option<Quantiles> {
    let kind = match call.aggregate.name.as_str() {
        "mode" => Kind::Mode,
        "percentile_cont" => Kind::Continuous,
        "percentile_disc" => Kind::Discrete,
        _ => return None,
    };
    let descending = call.orders.first()?.descending;
    Quantiles::new(&call.arg_types, &call.ty, kind, descending)
}

pub(super) fn hypothetical(call: &ResolvedAggregate) -> Box<dyn GroupsAccumulator> {
    Box::new(Hypothetical::new(&call.aggregate.name, &call.arg_types, &call.ty, &call.orders))
}

#[cold]
fn no_states(name: &str) -> Error {
    Error::internal(format!("{name} takes the rows of a group in one go"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Mode,
    Continuous,
    Discrete,
}

/// `mode` and the percentiles.
struct Ordered {
    /// Of the direct argument, if there is one.
    direct: Option<DataType>,
    value: DataType,
    ty: DataType,
    kind: Kind,
    /// Per group: the direct argument, and the values that are not null, in order.
    groups: Vec<(Datum, Vec<Datum>)>,
}

impl Ordered {
    fn new(args: &[DataType], ty: &DataType, kind: Kind) -> Ordered {
        let (value, direct) = args
            .split_last()
            .map_or((DataType::Void, None), |(value, direct)| (value.clone(), direct.first().cloned()));
        Ordered { direct, value, ty: ty.clone(), kind, groups: Vec::new() }
    }

    fn result(&self, direct: &Datum, values: &[Datum]) -> Result<Datum> {
        if self.kind == Kind::Mode {
            return Ok(self.mode(values));
        }
        let ty = self.direct.as_ref().unwrap_or(&DataType::Void);
        each_fraction(ty, direct, &self.ty, values.is_empty(), &mut |fraction| self.percentile(fraction, values))
    }

    /// The most frequent value; of several the first.
    fn mode(&self, values: &[Datum]) -> Datum {
        let mut best: Option<(&Datum, usize)> = None;
        let mut start = 0;
        for at in 0..values.len() {
            let ends = at + 1 == values.len() || !equal_datums(&self.value, &values[at], &values[at + 1]);
            if ends {
                let count = at + 1 - start;
                if best.is_none_or(|(_, most)| count > most) {
                    best = Some((&values[start], count));
                }
                start = at + 1;
            }
        }
        best.map_or(Datum::Null, |(value, _)| value.clone())
    }

    fn percentile(&self, fraction: f64, values: &[Datum]) -> Result<Datum> {
        if self.kind == Kind::Discrete {
            let row = (fraction * values.len() as f64).ceil() as usize;
            return Ok(values[row.saturating_sub(1).min(values.len() - 1)].clone());
        }
        let place = fraction * (values.len() - 1) as f64;
        let first = &values[(place.floor() as usize).min(values.len() - 1)];
        let second = &values[(place.ceil() as usize).min(values.len() - 1)];
        if place.floor() == place.ceil() {
            return Ok(first.clone());
        }
        let share = place - place.floor();
        match (first, second) {
            (Datum::F64(first), Datum::F64(second)) => Ok(Datum::F64(first + share * (second - first))),
            (Datum::Fixed16(first), Datum::Fixed16(second)) => {
                let (first, second) = (Interval::from_bytes(*first), Interval::from_bytes(*second));
                Ok(Datum::Fixed16(second.sub(first)?.mul(share)?.add(first)?.to_bytes()))
            }
            (other, _) => Err(mismatch(&self.value, other)),
        }
    }
}

/// The percentile that a direct argument of a type asks for, or those that an array of them does. `is_empty`: there are
/// no values.
pub(super) fn each_fraction(
    direct_type: &DataType,
    direct: &Datum,
    ty: &DataType,
    is_empty: bool,
    percentile: &mut dyn FnMut(f64) -> Result<Datum>,
) -> Result<Datum> {
    match (direct, direct_type) {
        (Datum::Bytes(bytes), DataType::Array(element)) => {
            let fractions = array_value::decode(element, bytes)?;
            let checked = fractions.elements.iter().map(fraction).collect::<Result<Vec<_>>>()?;
            if is_empty {
                return Ok(Datum::Null);
            }
            let results = checked.into_iter().map(|fraction| match fraction {
                Some(fraction) => percentile(fraction),
                None => Ok(Datum::Null),
            });
            let elements = results.collect::<Result<Vec<_>>>()?;
            match ty {
                DataType::Array(element) => array_value::encode_shaped(element, &ArrayValue { elements, ..fractions }),
                other => Err(mismatch(other, &"percentiles")),
            }
        }
        (direct, _) => match fraction(direct)? {
            Some(fraction) if !is_empty => percentile(fraction),
            _ => Ok(Datum::Null),
        },
    }
}

/// 22003 unless it is between 0 and 1.
fn fraction(value: &Datum) -> Result<Option<f64>> {
    match value {
        Datum::Null => Ok(None),
        Datum::F64(fraction) if (0.0..=1.0).contains(fraction) => Ok(Some(*fraction)),
        Datum::F64(fraction) => Err(Error::new("22003", format!("percentile value {fraction} is not between 0 and 1"))),
        other => Err(mismatch(&DataType::Float8, other)),
    }
}

impl GroupsAccumulator for Ordered {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.groups.resize(total_groups, (Datum::Null, Vec::new()));
        let filter = filter.map(crate::eval::is_true);
        let [direct @ .., values] = args else { return Err(no_states("an ordered-set aggregate")) };
        for (row, group) in groups.iter().enumerate() {
            if filter.as_ref().is_some_and(|filter| !filter.value(row)) {
                continue;
            }
            let (known, kept) = &mut self.groups[*group as usize];
            if let (Some(column), Some(ty), Datum::Null) = (direct.first(), &self.direct, &known) {
                *known = value_at(ty, column.as_ref(), row);
            }
            if values.is_valid(row) {
                kept.push(value_at(&self.value, values.as_ref(), row));
            }
        }
        Ok(())
    }

    fn merge(&mut self, _groups: &[u32], _states: &[ArrayRef], _total_groups: usize) -> Result<()> {
        Err(no_states("an ordered-set aggregate"))
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        Err(no_states("an ordered-set aggregate"))
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut out = VectorBuilder::new(&self.ty, self.groups.len());
        for (direct, values) in &self.groups {
            out.push(&self.result(direct, values)?)?;
        }
        out.finish()
    }

    fn size_bytes(&self) -> usize {
        let heap = |value: &Datum| if let Datum::Bytes(bytes) = value { bytes.len() } else { 0 };
        let values = self.groups.iter().flat_map(|(_, values)| values);
        values.map(|value| size_of::<Datum>() + heap(value)).sum::<usize>()
            + self.groups.capacity() * size_of::<(Datum, Vec<Datum>)>()
    }
}

/// Where a row would stand among those of its group.
struct Hypothetical {
    function: Function,
    types: Vec<DataType>,
    ty: DataType,
    orders: Vec<SortOrder>,
    places: Vec<Place>,
}

#[derive(Clone, Copy)]
enum Function {
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
}

#[derive(Clone, Default)]
struct Place {
    rows: i64,
    /// Rows before the hypothetical one, distinct ones among them, and rows equal to it.
    before: i64,
    distinct: i64,
    peers: i64,
    last: Vec<Datum>,
}

impl Hypothetical {
    fn new(name: &str, args: &[DataType], ty: &DataType, orders: &[SortOrder]) -> Hypothetical {
        let function = match name {
            "dense_rank" => Function::DenseRank,
            "percent_rank" => Function::PercentRank,
            "cume_dist" => Function::CumeDist,
            _ => Function::Rank,
        };
        let types = args[args.len() / 2..].to_vec();
        Hypothetical { function, types, ty: ty.clone(), orders: orders.to_vec(), places: Vec::new() }
    }

    fn result(&self, place: &Place) -> Datum {
        match self.function {
            Function::Rank => Datum::I64(place.before + 1),
            Function::DenseRank => Datum::I64(place.distinct + 1),
            Function::PercentRank if place.rows == 0 => Datum::F64(0.0),
            Function::PercentRank => Datum::F64(place.before as f64 / place.rows as f64),
            Function::CumeDist => Datum::F64((place.before + place.peers + 1) as f64 / (place.rows + 1) as f64),
        }
    }
}

impl GroupsAccumulator for Hypothetical {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.places.resize(total_groups, Place::default());
        let filter = filter.map(crate::eval::is_true);
        let (direct, ordered) = args.split_at(self.types.len());
        let read = |columns: &[ArrayRef], row: usize| -> Vec<Datum> {
            self.types.iter().zip(columns).map(|(ty, column)| value_at(ty, column.as_ref(), row)).collect()
        };
        for (row, group) in groups.iter().enumerate() {
            if filter.as_ref().is_some_and(|filter| !filter.value(row)) {
                continue;
            }
            let (wanted, found) = (read(direct, row), read(ordered, row));
            let place = &mut self.places[*group as usize];
            place.rows += 1;
            match compare_rows(&self.types, &self.orders, &found, &wanted) {
                std::cmp::Ordering::Less => {
                    place.before += 1;
                    let repeated =
                        !place.last.is_empty() && compare_rows(&self.types, &self.orders, &place.last, &found).is_eq();
                    place.distinct += i64::from(!repeated);
                    place.last = found;
                }
                std::cmp::Ordering::Equal => place.peers += 1,
                std::cmp::Ordering::Greater => {}
            }
        }
        Ok(())
    }

    fn merge(&mut self, _groups: &[u32], _states: &[ArrayRef], _total_groups: usize) -> Result<()> {
        Err(no_states("a hypothetical-set aggregate"))
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        Err(no_states("a hypothetical-set aggregate"))
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut out = VectorBuilder::new(&self.ty, self.places.len());
        self.places.iter().try_for_each(|place| out.push(&self.result(place)))?;
        out.finish()
    }

    fn size_bytes(&self) -> usize {
        self.places.capacity() * size_of::<Place>()
    }
}
