//! `+ − ×` and comparison over scaled i128 (see [`crate::resolve::decimal`] for the types).

use crate::error::Result;
use crate::eval::vector::Vector;
use crate::functions::arg::{Num, NumColumn, Operand, Out, too_wide, union_nulls};
use crate::functions::{CallInfo, Kernel};
use crate::numeric::{Numeric, POWERS_OF_TEN};
use crate::resolve::DecimalOp;
use arrow_array::Decimal128Array;
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// Scaled integers of one side, brought to a common scale by a factor.
pub(super) struct Scaled<'a> {
    values: Source<'a>,
    factor: i128,
}

enum Source<'a> {
    Column(&'a [i128]),
    Const(i128),
}

impl Scaled<'_> {
    #[inline]
    pub(super) fn at(&self, row: usize) -> i128 {
        match self.values {
            Source::Column(values) => values[row].wrapping_mul(self.factor),
            Source::Const(value) => value,
        }
    }
}

/// Raw values and scale of a fixed-scale argument.
fn raw<'a>(vector: &'a Vector, ty: &DataType) -> Result<Option<(Source<'a>, u16)>> {
    use crate::functions::arg::Arg;
    Ok(match vector {
        Vector::Array(array) => match Num::column(array, ty)? {
            NumColumn::Scaled(values, scale) => Some((Source::Column(values), scale)),
            NumColumn::Encoded(_) => None,
        },
        Vector::Const(value) => {
            Numeric::from_datum(value, ty)?.as_scaled().map(|(value, scale)| (Source::Const(value), scale))
        }
    })
}

/// Both arguments at the greater scale, where their precision proves that it fits an i128.
pub(super) fn at_one_scale<'a>(args: &'a [Vector], info: &CallInfo) -> Result<Option<[Scaled<'a>; 2]>> {
    let (Some((a, a_scale)), Some((b, b_scale))) =
        (raw(&args[0], &info.arg_types[0])?, raw(&args[1], &info.arg_types[1])?)
    else {
        return Ok(None);
    };
    let scale = a_scale.max(b_scale);
    let (Some(a), Some(b)) =
        (lift(a, &info.arg_types[0], scale - a_scale), lift(b, &info.arg_types[1], scale - b_scale))
    else {
        return Ok(None);
    };
    Ok(Some([a, b]))
}

fn lift<'a>(values: Source<'a>, ty: &DataType, digits: u16) -> Option<Scaled<'a>> {
    let factor = *POWERS_OF_TEN.get(usize::from(digits))?;
    match values {
        Source::Const(value) => Some(Scaled { values: Source::Const(value.checked_mul(factor)?), factor: 1 }),
        values => {
            let (precision, _) = ty.decimal()?;
            (digits == 0 || u16::from(precision) + digits <= 38).then_some(Scaled { values, factor })
        }
    }
}

pub(super) fn kernel(op: DecimalOp) -> Kernel {
    match op {
        DecimalOp::Add => Kernel::Native { scalar: add_one, vector: Some(add) },
        DecimalOp::Sub => Kernel::Native { scalar: sub_one, vector: Some(sub) },
        DecimalOp::Mul => Kernel::Native { scalar: mul_one, vector: Some(mul) },
    }
}

fn one(args: &[Datum], info: &CallInfo, op: fn(&Numeric, &Numeric) -> Result<Numeric>) -> Result<Datum> {
    let a = Numeric::from_datum(&args[0], &info.arg_types[0])?;
    let b = Numeric::from_datum(&args[1], &info.arg_types[1])?;
    Num::datum(op(&a, &b)?, info.ty)
}

fn add_one(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    one(args, info, Numeric::add)
}

fn sub_one(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    one(args, info, Numeric::sub)
}

fn mul_one(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    one(args, info, Numeric::mul)
}

fn add(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    match (info.ty.decimal(), at_one_scale(args, info)?) {
        (Some((_, scale)), Some([a, b])) if result_scale(args, info, false)? == Some(scale) => {
            scaled(&a, &b, rows, args, info, i128::wrapping_add, i128::checked_add)
        }
        _ => by_value(args, rows, info, Numeric::add),
    }
}

fn sub(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    match (info.ty.decimal(), at_one_scale(args, info)?) {
        (Some((_, scale)), Some([a, b])) if result_scale(args, info, false)? == Some(scale) => {
            scaled(&a, &b, rows, args, info, i128::wrapping_sub, i128::checked_sub)
        }
        _ => by_value(args, rows, info, Numeric::sub),
    }
}

fn mul(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    let sides = (raw(&args[0], &info.arg_types[0])?, raw(&args[1], &info.arg_types[1])?);
    match (info.ty.decimal(), sides) {
        (Some((_, scale)), (Some((a, _)), Some((b, _)))) if result_scale(args, info, true)? == Some(scale) => {
            let (a, b) = (Scaled { values: a, factor: 1 }, Scaled { values: b, factor: 1 });
            scaled(&a, &b, rows, args, info, i128::wrapping_mul, i128::checked_mul)
        }
        _ => by_value(args, rows, info, Numeric::mul),
    }
}

/// The scale that the operation has over these arguments.
fn result_scale(args: &[Vector], info: &CallInfo, product: bool) -> Result<Option<i8>> {
    let (Some((_, a)), Some((_, b))) = (raw(&args[0], &info.arg_types[0])?, raw(&args[1], &info.arg_types[1])?) else {
        return Ok(None);
    };
    Ok(i8::try_from(if product { a + b } else { a.max(b) }).ok())
}

/// Unchecked where the result's precision is below the cut, which proves that nothing overflows.
fn scaled(
    a: &Scaled,
    b: &Scaled,
    rows: usize,
    args: &[Vector],
    info: &CallInfo,
    unchecked: impl Fn(i128, i128) -> i128,
    checked: impl Fn(i128, i128) -> Option<i128>,
) -> Result<Vector> {
    let nulls = union_nulls(args);
    let Some((precision, scale)) = info.ty.decimal() else { return by_value(args, rows, info, Numeric::add) };
    let values: Vec<i128> = if precision < 38 {
        (0..rows).map(|row| unchecked(a.at(row), b.at(row))).collect()
    } else {
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            match checked(a.at(row), b.at(row)) {
                Some(value) => values.push(value),
                None if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) => values.push(0),
                None => return Err(too_wide()),
            }
        }
        values
    };
    let array = Decimal128Array::new(values.into(), nulls)
        .with_precision_and_scale(precision, scale)
        .map_err(crate::eval::vector::from_arrow)?;
    Ok(Vector::Array(Arc::new(array)))
}

fn by_value(
    args: &[Vector],
    rows: usize,
    info: &CallInfo,
    op: fn(&Numeric, &Numeric) -> Result<Numeric>,
) -> Result<Vector> {
    let nulls = union_nulls(args);
    let a = Operand::<Num>::new(&args[0], &info.arg_types[0])?;
    let b = Operand::<Num>::new(&args[1], &info.arg_types[1])?;
    let mut out = Num::builder(info.ty, rows);
    for row in 0..rows {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            Num::skip(&mut out);
        } else {
            Num::push(&mut out, op(&a.at(row)?, &b.at(row)?)?, info.ty)?;
        }
    }
    Num::finish(out, nulls, info.ty).map(Vector::Array)
}
