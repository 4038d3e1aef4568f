//! `count`, `sum` and `avg`.
//!
//! Integer and numeric sums are exact: i64 for `sum(int4)` (22003 on overflow, as there), i128 and wider for
//! the rest. Scaled numerics are added as they are; the scale comes back in the result.

use super::{Binding, GroupsAccumulator, for_each_row};
use crate::error::{Error, Result};
use crate::eval::vector::{VectorBuilder, value_at};
use crate::functions::arg::{Arg, F4, F8, I2, I4, I8, Num, NumColumn, Span, mismatch};
use crate::interval::Interval;
use crate::numeric::{Numeric, NumericSum};
use crate::operators::check_f64;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{ArrayRef, BooleanArray, Int64Array};
use basalt_types::{DataType, Datum};
use std::sync::Arc;

pub(super) fn bind(name: &str, args: &str) -> Option<Binding> {
    Some(match (name, args) {
        ("count", _) => (|_, _| Box::new(Count::default()), |_, _| vec![DataType::Int8]),
        ("sum", "int2" | "int4") => {
            (|args, _| Box::new(SmallSum { ty: args[0].clone(), sums: Vec::new() }), |_, _| vec![DataType::Int8])
        }
        ("sum" | "avg", "int2" | "int4" | "int8" | "numeric") => {
            let make: super::MakeAccumulator = if name == "sum" {
                |args, _| Box::new(ExactSum { ty: args[0].clone(), average: false, sums: Vec::new() })
            } else {
                |args, _| Box::new(ExactSum { ty: args[0].clone(), average: true, sums: Vec::new() })
            };
            (make, |_, _| vec![DataType::Bytea])
        }
        ("sum", "float4" | "float8") => (
            |args, ty| Box::new(FloatSum { arg: args[0].clone(), ty: ty.clone(), sums: Vec::new() }),
            |_, _| vec![DataType::Float8, DataType::Int8],
        ),
        ("sum" | "avg", "interval") => {
            let make: super::MakeAccumulator = if name == "sum" {
                |_, _| Box::new(SpanSum { average: false, sums: Vec::new() })
            } else {
                |_, _| Box::new(SpanSum { average: true, sums: Vec::new() })
            };
            (make, |_, _| vec![DataType::Interval, DataType::Int8])
        }
        _ => return None,
    })
}

/// `count(*)` and `count(x)`.
#[derive(Default)]
struct Count {
    counts: Vec<i64>,
}

impl GroupsAccumulator for Count {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.counts.resize(total_groups, 0);
        for_each_row(groups, args, filter, |_, group| {
            self.counts[group] += 1;
            Ok(())
        })
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.counts.resize(total_groups, 0);
        let counts = states[0].as_primitive::<Int64Type>();
        groups.iter().zip(counts.values()).for_each(|(group, count)| self.counts[*group as usize] += count);
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(Int64Array::from(std::mem::take(&mut self.counts)))])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(self.counts.clone())))
    }

    fn size_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<i64>()
    }
}

/// `sum(int2)`, `sum(int4)`: bigint.
struct SmallSum {
    ty: DataType,
    sums: Vec<Option<i64>>,
}

impl SmallSum {
    fn add(&mut self, group: usize, value: i64) -> Result<()> {
        let sum = self.sums[group].unwrap_or(0).checked_add(value);
        self.sums[group] = Some(sum.ok_or_else(|| Error::out_of_range("bigint"))?);
        Ok(())
    }
}

impl GroupsAccumulator for SmallSum {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_groups, None);
        match self.ty {
            DataType::Int2 => {
                let values = I2::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| self.add(group, i64::from(values[row])))
            }
            _ => {
                let values = I4::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| self.add(group, i64::from(values[row])))
            }
        }
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.sums.resize(total_groups, None);
        let sums = states[0].as_primitive::<Int64Type>();
        for_each_row(groups, states, None, |row, group| self.add(group, sums.value(row)))
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        Ok(vec![Arc::new(Int64Array::from(std::mem::take(&mut self.sums)))])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        Ok(Arc::new(Int64Array::from(self.sums.clone())))
    }

    fn size_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i64>>()
    }
}

/// Exact sums whose result is numeric, and their averages.
struct ExactSum {
    ty: DataType,
    average: bool,
    sums: Vec<NumericSum>,
}

impl GroupsAccumulator for ExactSum {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.sums.resize_with(total_groups, NumericSum::default);
        let sums = &mut self.sums;
        match self.ty {
            DataType::Int2 => {
                let values = I2::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| sums[group].add_i64(i64::from(values[row])))
            }
            DataType::Int4 => {
                let values = I4::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| sums[group].add_i64(i64::from(values[row])))
            }
            DataType::Int8 => {
                let values = I8::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| sums[group].add_i64(values[row]))
            }
            _ => match Num::column(&args[0], &self.ty)? {
                NumColumn::Scaled(values, scale) => {
                    for_each_row(groups, args, filter, |row, group| sums[group].add_scaled(values[row], scale))
                }
                NumColumn::Encoded(values) => for_each_row(groups, args, filter, |row, group| {
                    sums[group].add(&Numeric::decode(values.value(row))?)
                }),
            },
        }
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.sums.resize_with(total_groups, NumericSum::default);
        let states_of = states[0].as_binary_view();
        for_each_row(groups, states, None, |row, group| {
            self.sums[group].merge(&NumericSum::from_bytes(states_of.value(row))?)
        })
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let mut builder = VectorBuilder::new(&DataType::Bytea, self.sums.len());
        for sum in std::mem::take(&mut self.sums) {
            let mut bytes = Vec::with_capacity(50);
            sum.to_bytes(&mut bytes);
            builder.push(&Datum::Bytes(bytes.into()))?;
        }
        Ok(vec![builder.finish()?])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&DataType::Numeric(None), self.sums.len());
        for sum in &self.sums {
            let value = if self.average { sum.avg()? } else { sum.sum()? };
            builder.push(&value.map_or(Datum::Null, |value| Datum::Bytes(value.encoded().into())))?;
        }
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<NumericSum>() + self.sums.iter().map(NumericSum::heap_bytes).sum::<usize>()
    }
}

/// Sums of floats. `sum(float4)` is computed in single precision, as in PostgreSQL.
struct FloatSum {
    arg: DataType,
    ty: DataType,
    sums: Vec<(f64, i64)>,
}

impl FloatSum {
    #[inline]
    fn add(sums: &mut [(f64, i64)], single: bool, group: usize, value: f64) -> Result<()> {
        let (sum, count) = &mut sums[group];
        let next = if single { f64::from(*sum as f32 + value as f32) } else { *sum + value };
        *sum = check_f64(next, sum.is_infinite() || value.is_infinite(), true)?;
        *count += 1;
        Ok(())
    }

    fn is_single(&self) -> bool {
        self.ty == DataType::Float4
    }

    fn result(&self, (sum, count): (f64, i64)) -> Datum {
        match (count, &self.ty) {
            (0, _) => Datum::Null,
            (_, DataType::Float4) => Datum::F32(sum as f32),
            _ => Datum::F64(sum),
        }
    }
}

impl GroupsAccumulator for FloatSum {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_groups, (0.0, 0));
        let (single, sums) = (self.is_single(), &mut self.sums);
        match self.arg {
            DataType::Float4 => {
                let values = F4::column(&args[0], &self.arg)?;
                for_each_row(groups, args, filter, |row, group| Self::add(sums, single, group, f64::from(values[row])))
            }
            _ => {
                let values = F8::column(&args[0], &self.arg)?;
                for_each_row(groups, args, filter, |row, group| Self::add(sums, single, group, values[row]))
            }
        }
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.sums.resize(total_groups, (0.0, 0));
        let (sums, counts) = (states[0].as_primitive::<Float64Type>(), states[1].as_primitive::<Int64Type>());
        let single = self.is_single();
        for (row, group) in groups.iter().enumerate() {
            if counts.value(row) > 0 {
                Self::add(&mut self.sums, single, *group as usize, sums.value(row))?;
                self.sums[*group as usize].1 += counts.value(row) - 1;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let (sums, counts): (Vec<f64>, Vec<i64>) = std::mem::take(&mut self.sums).into_iter().unzip();
        Ok(vec![Arc::new(arrow_array::Float64Array::from(sums)), Arc::new(Int64Array::from(counts))])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&self.ty, self.sums.len());
        self.sums.iter().try_for_each(|sum| builder.push(&self.result(*sum)))?;
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<(f64, i64)>()
    }
}

/// Sums and averages of intervals, field by field.
struct SpanSum {
    average: bool,
    sums: Vec<(Interval, i64)>,
}

impl SpanSum {
    fn add(&mut self, group: usize, value: Interval, count: i64) -> Result<()> {
        let (sum, terms) = &mut self.sums[group];
        *sum = sum.add(value)?;
        *terms += count;
        Ok(())
    }
}

impl GroupsAccumulator for SpanSum {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.sums.resize(total_groups, (Interval::default(), 0));
        let values = Span::column(&args[0], &DataType::Interval)?;
        for_each_row(groups, args, filter, |row, group| self.add(group, Span::at(&values, row)?, 1))
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.sums.resize(total_groups, (Interval::default(), 0));
        let values = Span::column(&states[0], &DataType::Interval)?;
        for (row, group) in groups.iter().enumerate() {
            match value_at(&DataType::Int8, states[1].as_ref(), row) {
                Datum::I64(count) => self.add(*group as usize, Span::at(&values, row)?, count)?,
                other => return Err(mismatch(&DataType::Int8, &other)),
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let mut builder = VectorBuilder::new(&DataType::Interval, self.sums.len());
        let mut counts = Vec::with_capacity(self.sums.len());
        for (sum, count) in std::mem::take(&mut self.sums) {
            builder.push(&Datum::Fixed16(sum.to_bytes()))?;
            counts.push(count);
        }
        Ok(vec![builder.finish()?, Arc::new(Int64Array::from(counts))])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&DataType::Interval, self.sums.len());
        for (sum, count) in &self.sums {
            let value = match (*count, self.average) {
                (0, _) => Datum::Null,
                (_, false) => Datum::Fixed16(sum.to_bytes()),
                (count, true) => Datum::Fixed16(sum.div(count as f64)?.to_bytes()),
            };
            builder.push(&value)?;
        }
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<(Interval, i64)>()
    }
}
