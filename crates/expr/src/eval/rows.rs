//! Row by row over vectors: functions without a vector kernel, lists, arrays.

use super::scalar;
use super::vector::{Vector, VectorBuilder, value_at};
use super::{Input, bools};
use crate::array_value;
use crate::context::EvalContext;
use crate::error::{Error, Result};
use crate::functions::{CallInfo, Function, Kernel, SetRows, array_elements};
use crate::tree::Expr;
use ahash::AHashSet;
use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, StringViewArray};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use basalt_types::text::{self, INLINE_BYTES_MAX};
use basalt_types::{DataType, Datum};

/// Calls a function's scalar kernel for each row.
pub(crate) fn call(function: &Function, args: &[Vector], rows: usize, info: &CallInfo) -> Result<Vector> {
    let mut builder = VectorBuilder::of_batch(info.ty, rows);
    let mut values = vec![Datum::Null; args.len()];
    for row in 0..rows {
        for ((slot, arg), ty) in values.iter_mut().zip(args).zip(info.arg_types) {
            if let Vector::Array(array) = arg {
                *slot = value_at(ty, array.as_ref(), row);
            } else if row == 0 {
                *slot = arg.value(ty, 0);
            }
        }
        builder.push(&scalar::invoke(function, &values, info)?)?;
    }
    builder.finish().map(Vector::Array)
}

/// Evaluates a node for each row from its children's vectors, each child standing as a column.
pub(super) fn per_row(expr: &Expr, input: Input) -> Result<Vector> {
    let children = expr.children();
    let types: Vec<DataType> = children.iter().map(|child| child.ty()).collect();
    let vectors = children.iter().map(|child| child.vector(input)).collect::<Result<Vec<_>>>()?;
    let mut flat = expr.clone();
    for (index, child) in flat.children_mut().into_iter().enumerate() {
        *child = Expr::Column { index, ty: types[index].clone() };
    }
    let mut builder = VectorBuilder::of_batch(&expr.ty(), input.rows);
    for row in 0..input.rows {
        let values: Vec<Datum> = vectors.iter().zip(&types).map(|(vector, ty)| vector.value(ty, row)).collect();
        builder.push(&scalar::eval(&flat, &values, input.ctx)?)?;
    }
    builder.finish().map(Vector::Array)
}

/// Against a constant array, one comparison of whole vectors per element; against a column of arrays, one of all their
/// elements.
pub(super) fn any_all(
    node: &Expr,
    left: &Expr,
    function: &'static Function,
    array: &Expr,
    all: bool,
    input: Input,
) -> Result<Vector> {
    let DataType::Array(element_ty) = array.ty() else { return per_row(node, input) };
    let value = match array.vector(input)? {
        Vector::Const(value) => value,
        Vector::Array(arrays) => {
            let (probe, how) = (left.vector(input)?, (function, all));
            let found = array_elements::against_any(&probe, &left.ty(), &arrays, &element_ty, how, input.ctx);
            // The error may belong to an element behind one that decides.
            return found.or_else(|_| per_row(node, input));
        }
    };
    let Datum::Bytes(bytes) = value else { return Ok(Vector::Const(Datum::Null)) };
    let elements = array_value::elements(&element_ty, &bytes)?;
    let probe = left.vector(input)?;
    // Without elements even a null is none of them.
    if function.is_equality()
        && !all
        && !elements.is_empty()
        && let Vector::Array(probe) = &probe
        && let Some(found) = probe_set(probe, &left.ty(), &elements, &element_ty)
    {
        return Ok(found);
    }
    compare_each(&probe, &left.ty(), &elements, &element_ty, function, all, input)
}

pub(super) fn in_list(
    expr: &Expr,
    list: &[Expr],
    equal: &'static Function,
    negated: bool,
    input: Input,
) -> Result<Vector> {
    let found = in_list_vector(expr, list, equal, input)?;
    Ok(match (negated, found) {
        (false, found) => found,
        (true, Vector::Const(value)) => Vector::Const(scalar::not(&value)),
        (true, Vector::Array(array)) => {
            let values = array.as_boolean();
            bools(!values.values(), values.nulls().cloned())
        }
    })
}

fn in_list_vector(expr: &Expr, list: &[Expr], equal: &'static Function, input: Input) -> Result<Vector> {
    if !list.iter().all(Expr::is_harmless) {
        return super::lazy::logic(&one_by_one(expr, list, equal), true, input);
    }
    let probe = expr.vector(input)?;
    let probe_ty = expr.ty();
    let constants: Option<Vec<Datum>> = list
        .iter()
        .map(|item| {
            matches!(item, Expr::Const { .. } | Expr::Param { .. }).then(|| item.eval_scalar(&[], input.ctx).ok())?
        })
        .collect();
    if let (Some(values), Vector::Array(probe)) = (&constants, &probe)
        && list.iter().all(|item| has_form_of(&item.ty(), &probe_ty))
        && let Some(found) = probe_set(probe, &probe_ty, values, &probe_ty)
    {
        return Ok(found);
    }
    let mut state = Votes::new(input.rows, false);
    for item in list {
        let value = item.vector(input)?;
        let types = [probe_ty.clone(), item.ty()];
        state.add(super::call(equal, &[probe.clone(), value], &types, &DataType::Bool, input.rows, input.ctx)?);
    }
    Ok(state.finish())
}

/// Comparisons with the items of a list as PostgreSQL has them: constants are one operand of OR, what is none is another
/// each, reached by the rows that equal nothing before.
fn one_by_one(expr: &Expr, list: &[Expr], equal: &'static Function) -> Vec<Expr> {
    let (constants, others): (Vec<Expr>, Vec<Expr>) =
        list.iter().cloned().partition(|item| matches!(item, Expr::Const { .. } | Expr::Param { .. }));
    let mut out = Vec::with_capacity(others.len() + 1);
    if !constants.is_empty() {
        out.push(Expr::InList { expr: Box::new(expr.clone()), list: constants, equal, negated: false });
    }
    let compared = others.into_iter().map(|item| {
        let args = vec![expr.clone(), item];
        Expr::Call { function: equal, args, ty: DataType::Bool }
    });
    out.extend(compared);
    out
}

fn compare_each(
    probe: &Vector,
    probe_ty: &DataType,
    elements: &[Datum],
    element_ty: &DataType,
    function: &'static Function,
    all: bool,
    input: Input,
) -> Result<Vector> {
    let mut state = Votes::new(input.rows, all);
    let types = [probe_ty.clone(), element_ty.clone()];
    for element in elements {
        let pair = [probe.clone(), Vector::Const(element.clone())];
        state.add(super::call(function, &pair, &types, &DataType::Bool, input.rows, input.ctx)?);
    }
    Ok(state.finish())
}

/// `OR` (or, with `all`, `AND`) over comparisons of whole vectors.
struct Votes {
    all: bool,
    decided: BooleanBuffer,
    unknown: BooleanBuffer,
}

impl Votes {
    fn new(rows: usize, all: bool) -> Votes {
        let none = BooleanBuffer::new_unset(rows);
        Votes { all, decided: none.clone(), unknown: none }
    }

    fn add(&mut self, vote: Vector) {
        let rows = self.decided.len();
        match vote {
            Vector::Const(Datum::Bool(value)) if value != self.all => self.decided = BooleanBuffer::new_set(rows),
            Vector::Const(Datum::Bool(_)) => {}
            Vector::Const(_) => self.unknown = BooleanBuffer::new_set(rows),
            Vector::Array(array) => {
                let values = array.as_boolean();
                let decides = if self.all { super::is_false(values) } else { super::is_true(values) };
                self.decided = &self.decided | &decides;
                if let Some(nulls) = values.nulls() {
                    self.unknown = &self.unknown | &!nulls.inner();
                }
            }
        }
    }

    fn finish(self) -> Vector {
        let valid = &self.decided | &!&self.unknown;
        let nulls = (valid.count_set_bits() < valid.len()).then(|| NullBuffer::new(valid));
        bools(if self.all { !&self.decided } else { self.decided }, nulls)
    }
}

/// Membership in a list, for types whose equality is that of their bytes; `None` for others.
fn probe_set(probe: &ArrayRef, ty: &DataType, values: &[Datum], values_ty: &DataType) -> Option<Vector> {
    if !has_form_of(values_ty, ty) {
        return None;
    }
    let found = among(probe, ty, values)?;
    let nulls = if values.iter().any(Datum::is_null) {
        let valid = match probe.nulls() {
            Some(nulls) => &found & nulls.inner(),
            None => found.clone(),
        };
        Some(NullBuffer::new(valid))
    } else {
        probe.nulls().cloned()
    };
    Some(bools(found, nulls))
}

/// Whether [`among`] knows a type.
pub(crate) fn is_set_of_bytes(ty: &DataType) -> bool {
    use DataType::*;
    matches!(ty, Int2 | Int4 | Int8 | Oid | Date | Time | Timestamp | TimestampTz | Text | Varchar(_))
}

/// Which values are among some: a few are compared one by one, many are hashed. Rows without a value may be either.
/// `None` for types whose equality is not that of their bytes.
pub(crate) fn among(column: &ArrayRef, ty: &DataType, values: &[Datum]) -> Option<BooleanBuffer> {
    let integers = || -> Vec<i64> {
        values
            .iter()
            .filter_map(|value| match value {
                Datum::I16(value) => Some(i64::from(*value)),
                Datum::I32(value) => Some(i64::from(*value)),
                Datum::I64(value) => Some(*value),
                _ => None,
            })
            .collect()
    };
    macro_rules! by_integer {
        ($arrow:ty) => {{
            let (wanted, array) = (integers(), column.as_primitive::<$arrow>());
            match wanted.as_slice() {
                [one] => BooleanBuffer::collect_bool(array.len(), |row| i64::from(array.value(row)) == *one),
                [one, other] => BooleanBuffer::collect_bool(array.len(), |row| {
                    let value = i64::from(array.value(row));
                    (value == *one) | (value == *other)
                }),
                many => {
                    let set: AHashSet<i64> = many.iter().copied().collect();
                    BooleanBuffer::collect_bool(array.len(), |row| set.contains(&i64::from(array.value(row))))
                }
            }
        }};
    }
    Some(match ty {
        DataType::Int2 => by_integer!(Int16Type),
        DataType::Int4 => by_integer!(Int32Type),
        DataType::Int8 | DataType::Oid => by_integer!(Int64Type),
        DataType::Date => by_integer!(Date32Type),
        DataType::Time => by_integer!(Time64MicrosecondType),
        DataType::Timestamp | DataType::TimestampTz => by_integer!(TimestampMicrosecondType),
        DataType::Text | DataType::Varchar(_) => {
            let wanted: Vec<&[u8]> = values
                .iter()
                .filter_map(|value| match value {
                    Datum::Bytes(bytes) => Some(&**bytes),
                    _ => None,
                })
                .collect();
            texts_among(column.as_string_view(), &wanted)
        }
        _ => return None,
    })
}

fn texts_among(column: &StringViewArray, wanted: &[&[u8]]) -> BooleanBuffer {
    let views = column.views();
    // Length and first bytes of a longer one, all of a short one.
    let known: Vec<u128> = wanted.iter().map(|bytes| text::view(bytes, 0, 0)).collect();
    let is = |row: usize, at: usize| match wanted[at].len() <= INLINE_BYTES_MAX {
        true => views[row] == known[at],
        false => views[row] as u64 == known[at] as u64 && column.value(row).as_bytes() == wanted[at],
    };
    match wanted.len() {
        1 => BooleanBuffer::collect_bool(views.len(), |row| is(row, 0)),
        2 => BooleanBuffer::collect_bool(views.len(), |row| is(row, 0) | is(row, 1)),
        _ => {
            let set: AHashSet<&[u8]> = wanted.iter().copied().collect();
            BooleanBuffer::collect_bool(views.len(), |row| set.contains(column.value(row).as_bytes()))
        }
    }
}

/// Whether values of two types are equal where what they hold is: integers of any width are.
fn has_form_of(a: &DataType, b: &DataType) -> bool {
    let is_integer = |ty: &DataType| matches!(ty, DataType::Int2 | DataType::Int4 | DataType::Int8);
    a == b || is_integer(a) && is_integer(b)
}

/// The rows of a set-returning call, to be taken one by one.
pub fn open_set(
    function: &Function,
    args: &[Datum],
    arg_types: &[DataType],
    ty: &DataType,
    ctx: &EvalContext,
) -> Result<SetRows> {
    let Kernel::Set(kernel) = &function.kernel else {
        return Err(Error::internal(format!("function {} returns no set", function.name)));
    };
    if function.strict && args.iter().any(Datum::is_null) {
        return Ok(Box::new(std::iter::empty()));
    }
    kernel(args, &CallInfo { function, arg_types, ty, ctx })
}
