//! Numeric arithmetic in scaled integers.
//!
//! PostgreSQL's numeric results have no modifier, but the display scale of `+`, `-` and `*` follows from
//! the operands' alone: the greater scale, or their sum. Where both operands have a fixed scale every
//! value of the result has the same one, so vectors of scaled i128 print exactly as PostgreSQL prints.
//! Division and everything else choose a scale per value and yield the variable form.
//!
//! A bound on precision above 38 digits leaves the scaled form, too. The values of real columns are far
//! below such bounds: [`crate::Expr::narrow`] rebuilds an expression over 38 digits for a caller that can
//! start again without it, for a value that does not fit after all gives [`TOO_WIDE`].

use crate::functions::Function;
use basalt_types::DataType;

/// SQLSTATE of a value beyond 38 digits in a narrowed expression: evaluate the expression as it was. No
/// client may ever see it.
pub const TOO_WIDE: &str = "XXD38";

/// Digits up to which the operands of a narrowed operation are worth the risk.
const OPERAND_DIGITS_MAX: u16 = 31;
/// Digits behind the point that leave enough before it.
const NARROWED_SCALE_MAX: i8 = 20;

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
    match precision <= 38 {
        true => DataType::Numeric(Some((precision, scale as i16))),
        false => DataType::Numeric(None),
    }
}

/// The scaled type in which `left op right` is likely to fit, if its bound does not prove it.
pub(crate) fn narrowed_type(function: &Function, left: &DataType, right: &DataType) -> Option<DataType> {
    let op = op_of(function)?;
    let ((p1, s1), (p2, s2)) = (left.decimal()?, right.decimal()?);
    let scale = match op {
        DecimalOp::Add | DecimalOp::Sub => s1.max(s2),
        DecimalOp::Mul => s1 + s2,
    };
    match decimal_result_type(op, left, right) {
        DataType::Numeric(None) if scale <= NARROWED_SCALE_MAX && u16::from(p1.max(p2)) <= OPERAND_DIGITS_MAX => {
            Some(DataType::Numeric(Some((38, i16::from(scale)))))
        }
        DataType::Numeric(None) => None,
        proven => Some(proven),
    }
}

fn op_of(function: &Function) -> Option<DecimalOp> {
    match function.name.as_str() {
        "numeric_add" => Some(DecimalOp::Add),
        "numeric_sub" => Some(DecimalOp::Sub),
        "numeric_mul" => Some(DecimalOp::Mul),
        _ => None,
    }
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
    match function.name.as_str() {
        "numeric_uminus" | "numeric_uplus" | "numeric_abs" => args[0].clone(),
        "abs" if args[0].base() == DataType::Numeric(None) => args[0].clone(),
        _ => op_of(function).map_or(ty, |op| decimal_result_type(op, &args[0], &args[1])),
    }
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
