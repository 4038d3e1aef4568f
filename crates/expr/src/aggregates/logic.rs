//! `sum(money)`, `bool_and`, `bool_or`, `every`, `bit_and`, `bit_or`, `bit_xor`: folds of two values into one.

use super::{Binding, GroupsAccumulator, for_each_row};
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use crate::functions::bits;
use arrow_array::{ArrayRef, BooleanArray};
use basalt_types::{DataType, Datum};

type Fold = fn(&Datum, &Datum) -> Result<Datum>;

pub(super) fn bind(name: &str, args: &str) -> Option<Binding> {
    let make: super::MakeAccumulator = match (name, args) {
        ("sum", "money") => |_, ty| {
            fold(ty, |a, b| match (a, b) {
                (Datum::I64(sum), Datum::I64(next)) => {
                    sum.checked_add(*next).map(Datum::I64).ok_or_else(|| Error::out_of_range("money"))
                }
                (Datum::Null, next) => Ok(next.clone()),
                (sum, _) => Ok(sum.clone()),
            })
        },
        ("bit_and", "bit") => |_, ty| fold(ty, |a, b| bits::combine_datums(a, b, "AND", |a, b| a && b)),
        ("bit_or", "bit") => |_, ty| fold(ty, |a, b| bits::combine_datums(a, b, "OR", |a, b| a || b)),
        ("bit_xor", "bit") => |_, ty| fold(ty, |a, b| bits::combine_datums(a, b, "XOR", |a, b| a != b)),
        ("bool_and" | "every", "bool") | ("bit_and", "int2" | "int4" | "int8") => {
            |_, ty| fold(ty, |a, b| Ok(combine(a, b, |a, b| a & b)))
        }
        ("bool_or", "bool") | ("bit_or", "int2" | "int4" | "int8") => {
            |_, ty| fold(ty, |a, b| Ok(combine(a, b, |a, b| a | b)))
        }
        ("bit_xor", "int2" | "int4" | "int8") => |_, ty| fold(ty, |a, b| Ok(combine(a, b, |a, b| a ^ b))),
        _ => return None,
    };
    Some((make, |_, ty| vec![ty.clone()]))
}

/// Bitwise over values of one width, a boolean being one bit.
fn combine(a: &Datum, b: &Datum, op: impl Fn(i64, i64) -> i64) -> Datum {
    match (a, b) {
        (Datum::Bool(a), Datum::Bool(b)) => Datum::Bool(op(i64::from(*a), i64::from(*b)) & 1 == 1),
        (Datum::I16(a), Datum::I16(b)) => Datum::I16(op(i64::from(*a), i64::from(*b)) as i16),
        (Datum::I32(a), Datum::I32(b)) => Datum::I32(op(i64::from(*a), i64::from(*b)) as i32),
        (Datum::I64(a), Datum::I64(b)) => Datum::I64(op(*a, *b)),
        (Datum::Null, b) => b.clone(),
        (a, _) => a.clone(),
    }
}

fn fold(ty: &DataType, fold: Fold) -> Box<dyn GroupsAccumulator> {
    Box::new(Folded { ty: ty.clone(), fold, values: Vec::new() })
}

struct Folded {
    ty: DataType,
    fold: Fold,
    values: Vec<Datum>,
}

impl GroupsAccumulator for Folded {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.values.resize(total_groups, Datum::Null);
        for_each_row(groups, args, filter, |row, group| {
            let next = (self.fold)(&self.values[group], &value_at(&self.ty, args[0].as_ref(), row))?;
            self.values[group] = next;
            Ok(())
        })
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.update(groups, states, None, total_groups)
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = self.evaluate()?;
        self.values = Vec::new();
        Ok(vec![states])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&self.ty, self.values.len());
        self.values.iter().try_for_each(|value| builder.push(value))?;
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        self.values.capacity() * size_of::<Datum>()
    }
}
