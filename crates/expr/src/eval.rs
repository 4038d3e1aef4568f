//! Evaluation: over vectors ([`Expr::eval`]) and over single rows ([`Expr::eval_scalar`]).
//!
//! Both give the same values and the same errors. `CASE`, `COALESCE`, `AND`, `OR` evaluate an operand only
//! for the rows that reach it. Where most rows do, the operand is first tried on all of them, which is
//! cheaper than gathering; if that fails, the error may belong to a row that does not count, so the operand
//! is evaluated again on exactly the rows that do.

mod lazy;
pub(crate) mod room;
pub(crate) mod rows;
mod scalar;
pub mod vector;

pub use rows::open_set;

use crate::cast;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::{CallInfo, Function, Kernel, VectorKernel};
use crate::tree::{Expr, Truth};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_buffer::BooleanBuffer;
use basalt_types::{DataType, Datum};
use std::sync::Arc;
use vector::Vector;

/// The vectors that columns of an expression refer to.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    columns: &'a [ArrayRef],
    rows: usize,
    ctx: &'a EvalContext,
}

impl Expr {
    /// One value per row, as a vector of [`DataType::to_arrow`] of this expression's type.
    pub fn eval(&self, columns: &[ArrayRef], rows: usize, ctx: &EvalContext) -> Result<ArrayRef> {
        let input = Input { columns, rows, ctx };
        let ty = self.ty();
        self.vector(input)?.into_array(&ty, rows)
    }

    /// Positions of the rows for which this condition is true, ascending.
    pub fn filter_indices(&self, columns: &[ArrayRef], rows: usize, ctx: &EvalContext) -> Result<Vec<u32>> {
        match self.vector(Input { columns, rows, ctx })? {
            Vector::Const(Datum::Bool(true)) => Ok((0..rows as u32).collect()),
            Vector::Const(_) => Ok(Vec::new()),
            Vector::Array(array) => Ok(is_true(array.as_boolean()).set_indices().map(|index| index as u32).collect()),
        }
    }

    /// The value for one row, given as values of the columns' types.
    pub fn eval_scalar(&self, row: &[Datum], ctx: &EvalContext) -> Result<Datum> {
        scalar::eval(self, row, ctx)
    }

    pub(crate) fn vector(&self, input: Input) -> Result<Vector> {
        match self {
            Expr::Column { index, .. } => match input.columns.get(*index) {
                Some(array) => Ok(Vector::Array(array.clone())),
                None => Err(Error::internal(format!("column {index} of {} was asked for", input.columns.len()))),
            },
            Expr::Param { .. } | Expr::Const { .. } => Ok(Vector::Const(scalar::eval(self, &[], input.ctx)?)),
            Expr::Call { function, args, ty } => {
                let vectors = args.iter().map(|arg| arg.vector(input)).collect::<Result<Vec<_>>>()?;
                let arg_types: Vec<DataType> = args.iter().map(Expr::ty).collect();
                call(function, &vectors, &arg_types, ty, input.rows, input.ctx)
            }
            Expr::Cast { expr, to, explicit } => match expr.vector(input)? {
                Vector::Const(value) => {
                    Ok(Vector::Const(cast::cast_datum(&expr.ty(), to, &value, *explicit, input.ctx)?))
                }
                Vector::Array(array) => {
                    Ok(Vector::Array(cast::cast_array(&expr.ty(), to, &array, *explicit, input.ctx)?))
                }
            },
            Expr::And(args) => lazy::logic(args, false, input),
            Expr::Or(args) => lazy::logic(args, true, input),
            Expr::Not(expr) => Ok(match expr.vector(input)? {
                Vector::Const(value) => Vector::Const(scalar::not(&value)),
                Vector::Array(array) => {
                    let values = array.as_boolean();
                    bools(!values.values(), values.nulls().cloned())
                }
            }),
            Expr::IsNull(expr) => null_test(expr, true, input),
            Expr::IsNotNull(expr) => null_test(expr, false, input),
            Expr::BoolTest { expr, truth, negated } => bool_test(expr, *truth, *negated, input),
            Expr::IsDistinct { left, right, equal, negated } => distinct(left, right, equal, *negated, input),
            Expr::Case { branches, otherwise, ty } => lazy::case(branches, otherwise.as_deref(), ty, input),
            Expr::Coalesce { args, ty } => lazy::coalesce(args, ty, input),
            Expr::NullIf { left, right, equal } => null_if(left, right, equal, input),
            Expr::InList { expr, list, equal, negated } => rows::in_list(expr, list, equal, *negated, input),
            Expr::Extreme { .. } | Expr::ArrayLiteral { .. } => rows::per_row(self, input),
            Expr::AnyAll { left, function, array, all } => rows::any_all(self, left, function, array, *all, input),
            Expr::Hole { id, .. } => Err(Error::internal(format!("hole {id} was never filled"))),
        }
    }
}

/// Calls a function over vectors: by its vector kernel, or row by row.
pub(crate) fn call(
    function: &'static Function,
    args: &[Vector],
    arg_types: &[DataType],
    ty: &DataType,
    rows: usize,
    ctx: &EvalContext,
) -> Result<Vector> {
    let info = CallInfo { function, arg_types, ty, ctx };
    let constant = args.iter().all(|arg| matches!(arg, Vector::Const(_)));
    if function.strict && args.iter().any(|arg| matches!(arg, Vector::Const(Datum::Null))) {
        return Ok(Vector::Const(Datum::Null));
    }
    if constant && function.volatility < crate::functions::Volatility::Volatile {
        let values: Vec<Datum> = args.iter().map(|arg| arg.value(ty, 0)).collect();
        return Ok(Vector::Const(scalar::invoke(function, &values, &info)?));
    }
    let kernel: Option<VectorKernel> = match &function.kernel {
        Kernel::Native { vector, .. } if !constant => *vector,
        _ => None,
    };
    match kernel {
        Some(kernel) => kernel(args, rows, &info),
        None => rows::call(function, args, rows, &info),
    }
}

pub(crate) fn bools(values: BooleanBuffer, nulls: Option<arrow_buffer::NullBuffer>) -> Vector {
    Vector::Array(Arc::new(BooleanArray::new(values, nulls)))
}

/// Rows that are true and not null.
pub(crate) fn is_true(array: &BooleanArray) -> BooleanBuffer {
    match array.nulls() {
        Some(nulls) => array.values() & nulls.inner(),
        None => array.values().clone(),
    }
}

pub(crate) fn is_false(array: &BooleanArray) -> BooleanBuffer {
    let unset = !array.values();
    match array.nulls() {
        Some(nulls) => &unset & nulls.inner(),
        None => unset,
    }
}

fn null_test(expr: &Expr, wanted: bool, input: Input) -> Result<Vector> {
    Ok(match expr.vector(input)? {
        Vector::Const(value) => Vector::Const(Datum::Bool(value.is_null() == wanted)),
        Vector::Array(array) => {
            let valid = match array.logical_nulls() {
                Some(nulls) => nulls.into_inner(),
                None => BooleanBuffer::new_set(array.len()),
            };
            bools(if wanted { !&valid } else { valid }, None)
        }
    })
}

fn bool_test(expr: &Expr, truth: Truth, negated: bool, input: Input) -> Result<Vector> {
    Ok(match expr.vector(input)? {
        Vector::Const(value) => Vector::Const(Datum::Bool(scalar::truth_is(&value, truth) != negated)),
        Vector::Array(array) => {
            let values = array.as_boolean();
            let found = match truth {
                Truth::True => is_true(values),
                Truth::False => is_false(values),
                Truth::Unknown => match values.nulls() {
                    Some(nulls) => !nulls.inner(),
                    None => BooleanBuffer::new_unset(values.len()),
                },
            };
            bools(if negated { !&found } else { found }, None)
        }
    })
}

/// `equal(left, right)` over the operands as they are; null where an operand is.
fn equality(left: &Expr, right: &Expr, equal: &'static Function, input: Input) -> Result<[Vector; 3]> {
    let (a, b) = (left.vector(input)?, right.vector(input)?);
    let same = call(equal, &[a.clone(), b.clone()], &[left.ty(), right.ty()], &DataType::Bool, input.rows, input.ctx)?;
    Ok([a, b, same])
}

fn distinct(left: &Expr, right: &Expr, equal: &'static Function, negated: bool, input: Input) -> Result<Vector> {
    let [a, b, same] = equality(left, right, equal, input)?;
    let same = same.into_array(&DataType::Bool, input.rows)?;
    let same = is_true(same.as_boolean());
    let (a, b) = (a.validity(input.rows), b.validity(input.rows));
    let both_null = &!&a & &!&b;
    let not_distinct = &same | &both_null;
    Ok(bools(if negated { not_distinct } else { !&not_distinct }, None))
}

fn null_if(left: &Expr, right: &Expr, equal: &'static Function, input: Input) -> Result<Vector> {
    let [a, _, same] = equality(left, right, equal, input)?;
    match (a, same) {
        (Vector::Const(_), Vector::Const(Datum::Bool(true))) => Ok(Vector::Const(Datum::Null)),
        (a, Vector::Const(same)) => Ok(if same == Datum::Bool(true) { Vector::Const(Datum::Null) } else { a }),
        (a, Vector::Array(same)) => {
            let array = a.into_array(&left.ty(), input.rows)?;
            arrow::compute::nullif(&array, same.as_boolean()).map(Vector::Array).map_err(vector::from_arrow)
        }
    }
}

#[cfg(test)]
mod tests;
