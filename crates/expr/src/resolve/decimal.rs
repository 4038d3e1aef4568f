//! Numeric arithmetic in scaled integers.
//!
//! PostgreSQL's numeric results have no modifier, but the display scale of `+`, `-` and `*` follows from
//! the operands' alone: the greater scale, or their sum. Where both operands have a fixed scale every
//! value of the result has the same one, so vectors of scaled i128 print exactly as PostgreSQL prints.
//! Division and everything else choose a scale per value and yield the variable form.
//!
//! A bound on precision above 38 digits is cut to 38: the values of real columns are far below it. A value
//! that does not fit after all gives [`TOO_WIDE`], and [`crate::Expr::widen`] rebuilds the expression over
//! the variable form, which fits anything.

use crate::functions::Function;
use basalt_types::DataType;

/// SQLSTATE of a value beyond 38 digits in a fixed-scale expression: evaluate the widened expression.
pub const TOO_WIDE: &str = "XXD38";

/// Digits up to which operands are worth the risk of a cut bound.
const OPERAND_DIGITS_MAX: u16 = 31;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecimalOp {
    Add,
    Sub,
    Mul,
}

/// The physical type of `left op right`: fixed where both operands are.
pub fn decimal_result_type(op: DecimalOp, left: &DataType, right: &DataType) -> DataType {
    let (Some((p1, s1)), Some((p2, s2))) = (left.decimal(), right.decimal()) else {
        return DataType::Numeric(None);
    };
    let (p1, s1, p2, s2) = (u16::from(p1), s1 as u16, u16::from(p2), s2 as u16);
    let (precision, scale) = match op {
        DecimalOp::Add | DecimalOp::Sub => ((p1 - s1).max(p2 - s2) + 1 + s1.max(s2), s1.max(s2)),
        DecimalOp::Mul => (p1 + p2, s1 + s2),
    };
    if precision <= 38 {
        return DataType::Numeric(Some((precision, scale as i16)));
    }
    if scale > 20 || p1.max(p2) > OPERAND_DIGITS_MAX {
        return DataType::Numeric(None);
    }
    DataType::Numeric(Some((38, scale as i16)))
}

/// How an argument of another type is brought to numeric: integers as scaled integers.
pub fn physical_of(input: &DataType) -> DataType {
    match input {
        DataType::Int2 => DataType::Numeric(Some((5, 0))),
        DataType::Int4 => DataType::Numeric(Some((10, 0))),
        DataType::Int8 => DataType::Numeric(Some((19, 0))),
        _ => DataType::Numeric(None),
    }
}

/// The result type of a numeric function, with a physical scale where it keeps one.
pub(super) fn physical_result(function: &Function, args: &[DataType], ty: DataType) -> DataType {
    let op = match function.name.as_str() {
        "numeric_add" => DecimalOp::Add,
        "numeric_sub" => DecimalOp::Sub,
        "numeric_mul" => DecimalOp::Mul,
        "numeric_uminus" | "numeric_uplus" | "numeric_abs" => return args[0].clone(),
        "abs" if args[0].base() == DataType::Numeric(None) => return args[0].clone(),
        _ => return ty,
    };
    decimal_result_type(op, &args[0], &args[1])
}

/// The least scaled type that holds this decimal literal, given as PostgreSQL prints it.
pub fn type_of_literal(text: &str) -> DataType {
    let digits = text.trim_start_matches(['-', '+']);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return DataType::Numeric(None);
    }
    let precision = whole.trim_start_matches('0').len().max(1) + fraction.len();
    if precision > 38 {
        return DataType::Numeric(None);
    }
    DataType::Numeric(Some((precision as u16, fraction.len() as i16)))
}
