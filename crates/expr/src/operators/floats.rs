//! `+ - * /` of floats: all rows of a vector without a branch. Where a result tells that a row may be in error, and which one
//! it is decides what is said, rows are computed one after the other.

use super::arithmetic::check_f64;
use crate::error::{Error, Result};
use crate::eval::vector::Vector;
use crate::functions::arg::{Arg, F8, Operand, Out, union_nulls};
use crate::functions::{CallInfo, Kernel};
use arrow_array::{ArrayRef, Float64Array};
use basalt_types::{Datum, widest};
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
}

impl Op {
    #[inline(always)]
    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Op::Add => a + b,
            Op::Sub => a - b,
            Op::Mul => a * b,
            Op::Div => a / b,
        }
    }

    /// 22003 for what leaves the type, 22012 for a division by zero.
    fn checked(self, a: f64, b: f64) -> Result<f64> {
        let result = self.of(a, b);
        match self {
            Op::Add | Op::Sub => check_f64(result, a.is_infinite() || b.is_infinite(), true),
            Op::Mul => check_f64(result, a.is_infinite() || b.is_infinite(), a == 0.0 || b == 0.0),
            Op::Div if b == 0.0 && !a.is_nan() => Err(Error::division_by_zero()),
            Op::Div => check_f64(result, a.is_infinite(), a == 0.0 || b.is_infinite()),
        }
    }

    /// Whether a result may be in error: one that is infinite, 0 where neither factor nor dividend is, or of a division by 0.
    #[inline(always)]
    fn is_doubtful(self, a: f64, b: f64, result: f64) -> bool {
        let is_infinite = result.abs() == f64::INFINITY;
        match self {
            Op::Add | Op::Sub => is_infinite,
            Op::Mul => is_infinite | ((result == 0.0) & (a != 0.0) & (b != 0.0)),
            Op::Div => is_infinite | (b == 0.0) | ((result == 0.0) & (a != 0.0)),
        }
    }
}

/// A side of an operation: a value for each row, or the same for all.
#[derive(Clone, Copy)]
enum Side<'a> {
    Each(&'a [f64]),
    Same(f64),
}

/// The results, and whether any is doubtful.
#[inline(always)]
fn results(op: Op, rows: usize, a: impl Fn(usize) -> f64, b: impl Fn(usize) -> f64) -> (Vec<f64>, bool) {
    // A loop, which becomes a part of whoever is compiled for wide vectors, as an iterator's own need not.
    let (mut results, mut doubtful) = (vec![0.0; rows], false);
    for (row, result) in results.iter_mut().enumerate() {
        let (a, b) = (a(row), b(row));
        *result = op.of(a, b);
        doubtful |= op.is_doubtful(a, b, *result);
    }
    (results, doubtful)
}

macro_rules! by_sides {
    ($op:expr, $rows:expr, $a:expr, $b:expr) => {
        match ($a, $b) {
            (Side::Each(a), Side::Each(b)) => {
                let (a, b) = (&a[..$rows], &b[..$rows]);
                results($op, $rows, |row| a[row], |row| b[row])
            }
            (Side::Each(a), Side::Same(b)) => {
                let a = &a[..$rows];
                results($op, $rows, |row| a[row], |_| b)
            }
            (Side::Same(a), Side::Each(b)) => {
                let b = &b[..$rows];
                results($op, $rows, |_| a, |row| b[row])
            }
            (Side::Same(a), Side::Same(b)) => results($op, $rows, |_| a, |_| b),
        }
    };
}

widest! {
    fn computed(op: Op, rows: usize, a: Side<'_>, b: Side<'_>) -> (Vec<f64>, bool) {
        match op {
            Op::Add => by_sides!(Op::Add, rows, a, b),
            Op::Sub => by_sides!(Op::Sub, rows, a, b),
            Op::Mul => by_sides!(Op::Mul, rows, a, b),
            Op::Div => by_sides!(Op::Div, rows, a, b),
        }
    }
}

fn side<'a>(vector: &'a Vector, info: &CallInfo, at: usize) -> Result<Side<'a>> {
    Ok(match Operand::<F8>::new(vector, &info.arg_types[at])? {
        Operand::Column(values) => Side::Each(values),
        Operand::Const(value) => Side::Same(value),
    })
}

fn vector_of(op: Op, args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    let (a, b) = (side(&args[0], info, 0)?, side(&args[1], info, 1)?);
    let nulls = union_nulls(args);
    let (results, doubtful) = computed(op, rows, a, b);
    if doubtful {
        // What is held for a null means nothing, and often looks like a division by zero.
        let at = |side: Side<'_>, row: usize| match side {
            Side::Each(values) => values[row],
            Side::Same(value) => value,
        };
        let valid = (0..rows).filter(|row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)));
        for row in valid {
            let (a, b) = (at(a, row), at(b, row));
            if op.is_doubtful(a, b, results[row]) {
                op.checked(a, b)?;
            }
        }
    }
    let values: ArrayRef = Arc::new(Float64Array::new(results.into(), nulls));
    Ok(Vector::Array(values))
}

fn scalar_of(op: Op, args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let (a, b) = (F8::of(&args[0], &info.arg_types[0])?, F8::of(&args[1], &info.arg_types[1])?);
    F8::datum(op.checked(a, b)?, info.ty)
}

macro_rules! kernel_of {
    ($op:expr) => {{
        fn scalar(args: &[Datum], info: &CallInfo) -> Result<Datum> {
            scalar_of($op, args, info)
        }
        fn vector(args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
            vector_of($op, args, rows, info)
        }
        Kernel::Native { scalar, vector: Some(vector) }
    }};
}

/// Of two `double precision` operands.
pub(super) fn bind(function: &str) -> Option<Kernel> {
    Some(match function {
        "float8pl" => kernel_of!(Op::Add),
        "float8mi" => kernel_of!(Op::Sub),
        "float8mul" => kernel_of!(Op::Mul),
        "float8div" => kernel_of!(Op::Div),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
