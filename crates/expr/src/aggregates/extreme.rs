//! `min` and `max` of every ordered type.

use super::{Binding, GroupsAccumulator, for_each_row};
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use crate::operators::{check_comparable, compare_datums};
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use basalt_types::{DataType, Datum, PhysType};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) fn bind(name: &str) -> Option<Binding> {
    let make: super::MakeAccumulator = match name {
        "min" => |_, ty| make(ty, Ordering::Less),
        "max" => |_, ty| make(ty, Ordering::Greater),
        _ => return None,
    };
    Some((make, |_, ty| vec![ty.clone()]))
}

fn make(ty: &DataType, wanted: Ordering) -> Box<dyn GroupsAccumulator> {
    macro_rules! plain {
        ($arrow:ty) => {
            Box::new(Plain::<$arrow> { ty: ty.clone(), wanted, best: Vec::new() })
        };
    }
    match ty {
        DataType::Int2 => plain!(Int16Type),
        DataType::Int4 => plain!(Int32Type),
        DataType::Int8 | DataType::Oid => plain!(Int64Type),
        DataType::Date => plain!(Date32Type),
        DataType::Time => plain!(Time64MicrosecondType),
        DataType::Timestamp | DataType::TimestampTz => plain!(TimestampMicrosecondType),
        DataType::Numeric(_) if matches!(ty.phys(), Some(PhysType::I64 | PhysType::I128)) => plain!(Decimal128Type),
        _ => Box::new(Extreme { ty: ty.clone(), wanted, best: Vec::new(), has_compared: false }),
    }
}

/// Types whose order is that of their native integers.
struct Plain<T: ArrowPrimitiveType> {
    ty: DataType,
    wanted: Ordering,
    best: Vec<Option<T::Native>>,
}

impl<T> Plain<T>
where
    T: ArrowPrimitiveType,
    T::Native: Ord,
{
    fn array(&self) -> PrimitiveArray<T> {
        self.best.iter().copied().collect::<PrimitiveArray<T>>().with_data_type(self.ty.to_arrow())
    }
}

impl<T> GroupsAccumulator for Plain<T>
where
    T: ArrowPrimitiveType + Send,
    T::Native: Ord,
{
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.best.resize(total_groups, None);
        let values = args[0].as_primitive::<T>().values();
        for_each_row(groups, args, filter, |row, group| {
            let best = &mut self.best[group];
            if best.is_none_or(|best| values[row].cmp(&best) == self.wanted) {
                *best = Some(values[row]);
            }
            Ok(())
        })
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.update(groups, states, None, total_groups)
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.array();
        self.best = Vec::new();
        Ok(vec![Arc::new(states)])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(self.array()))
    }

    fn size_bytes(&self) -> usize {
        self.best.capacity() * size_of::<Option<T::Native>>()
    }
}

struct Extreme {
    ty: DataType,
    wanted: Ordering,
    best: Vec<Datum>,
    /// Whether the type has been found to have an order.
    has_compared: bool,
}

impl Extreme {
    /// 42883 for arrays of what has no order, which only a second value brings to light.
    fn compare(&mut self, group: usize, value: &Datum) -> Result<Ordering> {
        if !self.has_compared {
            if let DataType::Array(element) = &self.ty
                && check_comparable(element, "<").is_err()
            {
                let message = format!("could not identify a comparison function for type {}", element.sql_name());
                return Err(Error::new("42883", message));
            }
            self.has_compared = true;
        }
        Ok(compare_datums(&self.ty, value, &self.best[group]))
    }
}

impl GroupsAccumulator for Extreme {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.best.resize(total_groups, Datum::Null);
        for_each_row(groups, args, filter, |row, group| {
            let value = value_at(&self.ty, args[0].as_ref(), row);
            let ordering = if self.best[group].is_null() { self.wanted } else { self.compare(group, &value)? };
            // Of equal values that look different the later stays, of padded strings the earlier, as in PostgreSQL.
            if ordering == self.wanted || (ordering.is_eq() && !matches!(self.ty, DataType::Bpchar(_))) {
                self.best[group] = value;
            }
            Ok(())
        })
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.update(groups, states, None, total_groups)
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.evaluate()?;
        self.best = Vec::new();
        Ok(vec![states])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&self.ty, self.best.len());
        self.best.iter().try_for_each(|best| builder.push(best))?;
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        let heap = self.best.iter().map(|best| if let Datum::Bytes(bytes) = best { bytes.len() } else { 0 });
        self.best.capacity() * size_of::<Datum>() + heap.sum::<usize>()
    }
}
