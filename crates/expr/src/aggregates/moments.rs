//! Variance and standard deviation, and averages of floats, beside which PostgreSQL keeps the same.
//!
//! Over integers and numerics exact, from count, sum and sum of squares; over floats by the updating
//! method of Youngs and Cramer, as PostgreSQL does, so that the last digits agree.

use super::{Binding, GroupsAccumulator, for_each_row};
use crate::error::{Error, Result};
use crate::eval::vector::VectorBuilder;
use crate::functions::arg::{Arg, F4, F8, I2, I4, I8, Num, NumColumn};
use crate::numeric::{Numeric, NumericSum};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, BooleanArray, Float64Array};
use basalt_types::{DataType, Datum};
use num_bigint::BigInt;
use std::sync::Arc;

#[derive(Clone, Copy)]
struct Kind {
    sample: bool,
    root: bool,
}

pub(super) fn bind(name: &str, args: &str) -> Option<Binding> {
    if let ("avg", "float4" | "float8") = (name, args) {
        return Some((
            |args, _| Box::new(FloatMoments::new(&args[0], Asked::Average)),
            |_, _| vec![DataType::Float8; 3],
        ));
    }
    let float = match args {
        "float4" | "float8" => true,
        "int2" | "int4" | "int8" | "numeric" => false,
        _ => return None,
    };
    macro_rules! make {
        ($sample:literal, $root:literal) => {
            if float {
                |args, _| Box::new(FloatMoments::new(&args[0], Asked::Spread(Kind { sample: $sample, root: $root })))
            } else {
                |args, _| Box::new(ExactMoments::new(&args[0], Kind { sample: $sample, root: $root }))
            }
        };
    }
    let make: super::MakeAccumulator = match name {
        "variance" | "var_samp" => make!(true, false),
        "var_pop" => make!(false, false),
        "stddev" | "stddev_samp" => make!(true, true),
        "stddev_pop" => make!(false, true),
        _ => return None,
    };
    Some((make, if float { |_, _| vec![DataType::Float8; 3] } else { |_, _| vec![DataType::Bytea; 2] }))
}

struct ExactMoments {
    ty: DataType,
    kind: Kind,
    /// Sums of the values and of their squares.
    sums: Vec<(NumericSum, NumericSum)>,
}

impl ExactMoments {
    fn new(ty: &DataType, kind: Kind) -> ExactMoments {
        ExactMoments { ty: ty.clone(), kind, sums: Vec::new() }
    }

    fn result(&self, values: &NumericSum, squares: &NumericSum) -> Result<Option<Numeric>> {
        let count = values.count();
        if count == 0 || (self.kind.sample && count == 1) {
            return Ok(None);
        }
        let (Some(sum), Some(squares)) = (values.sum()?, squares.sum()?) else { return Ok(None) };
        if !sum.is_finite() {
            return Ok(Some(Numeric::NAN));
        }
        let n = Numeric::from(count);
        let spread = n.mul(&squares)?.sub(&sum.mul(&sum)?)?;
        if spread.signum() <= 0 {
            return Ok(Some(Numeric::ZERO));
        }
        let divisor = if self.kind.sample { n.mul(&Numeric::from(count - 1))? } else { n.mul(&n)? };
        let variance = spread.div(&divisor)?;
        if !self.kind.root {
            return Ok(Some(variance));
        }
        root(&variance).map(Some)
    }
}

/// The square root at the scale of the value, rounded: PostgreSQL gives a deviation its variance's scale.
fn root(value: &Numeric) -> Result<Numeric> {
    let scale = value.scale();
    let digits: String = value.to_string().chars().filter(|char| *char != '.').collect();
    let coefficient = BigInt::parse_bytes(digits.as_bytes(), 10).unwrap_or_default();
    let doubled: BigInt = coefficient * BigInt::from(10).pow(u32::from(scale)) * 4;
    let rounded: BigInt = (doubled.sqrt() + 1) / 2;
    let text = rounded.to_string();
    let width = usize::from(scale) + 1;
    let padded = format!("{text:0>width$}");
    let (whole, fraction) = padded.split_at(padded.len() - usize::from(scale));
    Numeric::parse(&if fraction.is_empty() { whole.to_string() } else { format!("{whole}.{fraction}") })
}

impl GroupsAccumulator for ExactMoments {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.sums.resize_with(total_groups, Default::default);
        let sums = &mut self.sums;
        let mut add_scaled = |group: usize, value: i128, scale: u16| {
            let (values, squares) = &mut sums[group];
            match value.checked_mul(value) {
                Some(square) => squares.add_scaled(square, 2 * scale)?,
                None => {
                    let value = Numeric::from_scaled(value, scale);
                    squares.add(&value.mul(&value)?)?;
                }
            }
            values.add_scaled(value, scale)
        };
        match self.ty.underlying() {
            DataType::Int2 => {
                let column = I2::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| add_scaled(group, column[row].into(), 0))
            }
            DataType::Int4 => {
                let column = I4::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| add_scaled(group, column[row].into(), 0))
            }
            DataType::Int8 => {
                let column = I8::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| add_scaled(group, column[row].into(), 0))
            }
            _ => match Num::column(&args[0], &self.ty)? {
                NumColumn::Scaled(column, scale) => {
                    for_each_row(groups, args, filter, |row, group| add_scaled(group, column[row], scale))
                }
                NumColumn::Encoded(column) => for_each_row(groups, args, filter, |row, group| {
                    let value = Numeric::decode(column.value(row))?;
                    let (values, squares) = &mut sums[group];
                    squares.add(&value.mul(&value)?)?;
                    values.add(&value)
                }),
            },
        }
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.sums.resize_with(total_groups, Default::default);
        let (values, squares) = (states[0].as_binary_view(), states[1].as_binary_view());
        for_each_row(groups, states, None, |row, group| {
            self.sums[group].0.merge(&NumericSum::from_bytes(values.value(row))?)?;
            self.sums[group].1.merge(&NumericSum::from_bytes(squares.value(row))?)
        })
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let mut columns = [(); 2].map(|()| VectorBuilder::new(&DataType::Bytea, self.sums.len()));
        for (values, squares) in std::mem::take(&mut self.sums) {
            for (column, sum) in columns.iter_mut().zip([values, squares]) {
                let mut bytes = Vec::with_capacity(50);
                sum.to_bytes(&mut bytes);
                column.push(&Datum::Bytes(bytes.into()))?;
            }
        }
        columns.into_iter().map(VectorBuilder::finish).collect()
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&DataType::Numeric(None), self.sums.len());
        for (values, squares) in &self.sums {
            let value = self.result(values, squares)?;
            builder.push(&value.map_or(Datum::Null, |value| Datum::Bytes(value.encoded().into())))?;
        }
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        self.sums.capacity() * size_of::<(NumericSum, NumericSum)>()
    }
}

/// Count, sum, and sum of squared deviations.
type State = [f64; 3];

#[derive(Clone, Copy)]
enum Asked {
    Average,
    Spread(Kind),
}

struct FloatMoments {
    ty: DataType,
    asked: Asked,
    states: Vec<State>,
}

impl FloatMoments {
    fn new(ty: &DataType, asked: Asked) -> FloatMoments {
        FloatMoments { ty: ty.clone(), asked, states: Vec::new() }
    }

    fn result(&self, [n, sum, spread]: State) -> Datum {
        match self.asked {
            _ if n == 0.0 => Datum::Null,
            Asked::Average => Datum::F64(sum / n),
            Asked::Spread(Kind { sample: true, .. }) if n <= 1.0 => Datum::Null,
            Asked::Spread(Kind { sample, root }) => {
                let variance = spread / if sample { n - 1.0 } else { n };
                Datum::F64(if root { variance.sqrt() } else { variance })
            }
        }
    }
}

#[inline]
fn take_in([n, sum, spread]: &mut State, value: f64) -> Result<()> {
    let was_finite = !sum.is_infinite() && !value.is_infinite();
    *n += 1.0;
    *sum += value;
    if *n > 1.0 {
        let deviation = value * *n - *sum;
        *spread += deviation * deviation / (*n * (*n - 1.0));
    } else if !value.is_finite() {
        *spread = f64::NAN;
    }
    settle(*sum, spread, was_finite)
}

/// 22003 where finite values lead to infinite sums; a spread of infinite values is no number.
#[inline]
fn settle(sum: f64, spread: &mut f64, was_finite: bool) -> Result<()> {
    if (sum.is_infinite() || spread.is_infinite()) && was_finite {
        return Err(Error::new("22003", "value out of range: overflow"));
    }
    if sum.is_infinite() || spread.is_infinite() {
        *spread = f64::NAN;
    }
    Ok(())
}

fn join(into: &mut State, [n, sum, spread]: State) -> Result<()> {
    if into[0] == 0.0 || n == 0.0 {
        if into[0] == 0.0 {
            *into = [n, sum, spread];
        }
        return Ok(());
    }
    let was_finite = !into[1].is_infinite() && !sum.is_infinite();
    let total = into[0] + n;
    let difference = into[1] / into[0] - sum / n;
    into[2] += spread + into[0] * n * difference * difference / total;
    into[0] = total;
    into[1] += sum;
    settle(into[1], &mut into[2], was_finite)
}

impl GroupsAccumulator for FloatMoments {
    fn update(
        &mut self,
        groups: &[u32],
        args: &[ArrayRef],
        filter: Option<&BooleanArray>,
        total_groups: usize,
    ) -> Result<()> {
        self.states.resize(total_groups, State::default());
        let states = &mut self.states;
        match self.ty.underlying() {
            DataType::Float4 => {
                let values = F4::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| take_in(&mut states[group], f64::from(values[row])))
            }
            _ => {
                let values = F8::column(&args[0], &self.ty)?;
                for_each_row(groups, args, filter, |row, group| take_in(&mut states[group], values[row]))
            }
        }
    }

    fn merge(&mut self, groups: &[u32], states: &[ArrayRef], total_groups: usize) -> Result<()> {
        self.states.resize(total_groups, State::default());
        let columns: Vec<&Float64Array> = states.iter().map(|column| column.as_primitive::<Float64Type>()).collect();
        for (row, group) in groups.iter().enumerate() {
            join(&mut self.states[*group as usize], [0, 1, 2].map(|column| columns[column].value(row)))?;
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ArrayRef>> {
        let states = std::mem::take(&mut self.states);
        let column =
            |at: usize| -> ArrayRef { Arc::new(states.iter().map(|state| state[at]).collect::<Float64Array>()) };
        Ok(vec![column(0), column(1), column(2)])
    }

    fn evaluate(&mut self) -> Result<ArrayRef> {
        let mut builder = VectorBuilder::new(&DataType::Float8, self.states.len());
        self.states.iter().try_for_each(|state| builder.push(&self.result(*state)))?;
        builder.finish()
    }

    fn size_bytes(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}
