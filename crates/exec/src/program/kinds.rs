//! What integers stand for, and which functions of SQL are arithmetic on them.

use crate::kernels::arithmetic::Op;
use basalt_expr::datetime::{TIMESTAMP_MAX, TIMESTAMP_MIN};
use basalt_expr::functions::Function;
use basalt_expr::{Expr, Interval};
use basalt_types::text::LengthUnit;
use basalt_types::{CompareOp, DataType, Datum};

/// Digits behind the point up to which numerics are held in integers.
pub(super) const SCALE_MAX: u8 = 30;
const DAY_MICROS: i128 = 86_400_000_000;
/// Days of an interval whose time goes the other way.
const DAYS_MAX: u32 = 100_000;

/// What the integers of a column stand for. Ordered: scales ascend.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Kind {
    /// int2, int4, int8.
    Whole,
    /// Days.
    Date,
    /// Microseconds without zone.
    Timestamp,
    /// Microseconds in UTC.
    TimestampTz,
    /// Microseconds of a day.
    Time,
    /// Numeric with so many digits behind the point.
    Scaled(u8),
}

impl Kind {
    pub fn of(ty: &DataType) -> Option<Kind> {
        Some(match ty {
            DataType::Int2 | DataType::Int4 | DataType::Int8 => Kind::Whole,
            DataType::Date => Kind::Date,
            DataType::Timestamp => Kind::Timestamp,
            DataType::TimestampTz => Kind::TimestampTz,
            DataType::Time => Kind::Time,
            DataType::Numeric(_) => Kind::Scaled(ty.decimal()?.1 as u8),
            _ => return None,
        })
    }
}

/// What the integers of a kind are after a cast that does not change them and cannot fail.
pub(super) fn widened(kind: Kind, from: &DataType, to: &DataType) -> Option<Kind> {
    match (from, to) {
        (DataType::Int2, DataType::Int4 | DataType::Int8) | (DataType::Int4, DataType::Int8) => Some(Kind::Whole),
        (DataType::Int2 | DataType::Int4 | DataType::Int8, DataType::Numeric(None)) => Some(Kind::Scaled(0)),
        (DataType::Int2 | DataType::Int4 | DataType::Int8, DataType::Numeric(Some(_))) => {
            let digits = match from {
                DataType::Int2 => 5,
                DataType::Int4 => 10,
                _ => 19,
            };
            let (precision, scale) = to.decimal()?;
            (scale == 0 && precision >= digits).then_some(Kind::Scaled(0))
        }
        (DataType::Numeric(_), DataType::Numeric(None)) => Some(kind),
        (DataType::Numeric(_), DataType::Numeric(Some(_))) => {
            let ((p1, s1), (p2, s2)) = (from.decimal()?, to.decimal()?);
            (s1 == s2 && p2 >= p1).then_some(kind)
        }
        (from, to) if from == to => Some(kind),
        _ => None,
    }
}

/// The arithmetic that a function is.
pub(super) fn operation(function: &Function) -> Option<Op> {
    Some(match function.name.as_str() {
        "numeric_add" | "int2pl" | "int4pl" | "int8pl" | "int24pl" | "int42pl" | "int28pl" | "int82pl" | "int48pl"
        | "int84pl" => Op::Add,
        "numeric_sub" | "int2mi" | "int4mi" | "int8mi" | "int24mi" | "int42mi" | "int28mi" | "int82mi" | "int48mi"
        | "int84mi" => Op::Sub,
        "numeric_mul" | "int2mul" | "int4mul" | "int8mul" | "int24mul" | "int42mul" | "int28mul" | "int82mul"
        | "int48mul" | "int84mul" => Op::Mul,
        "int2div" | "int4div" | "int8div" | "int24div" | "int42div" | "int28div" | "int82div" | "int48div"
        | "int84div" => Op::Div,
        "int2mod" | "int4mod" | "int8mod" => Op::Rem,
        _ => return None,
    })
}

/// In what a function counts the length of values of a type, if that is all that it does.
pub(super) fn length_unit(function: &Function, ty: &DataType) -> Option<LengthUnit> {
    match (function.name.as_str(), ty.underlying()) {
        ("length" | "char_length" | "character_length" | "textlen", DataType::Text | DataType::Varchar(_)) => {
            Some(LengthUnit::Chars)
        }
        ("octet_length", DataType::Text | DataType::Varchar(_) | DataType::Bytea) | ("length", DataType::Bytea) => {
            Some(LengthUnit::Bytes)
        }
        _ => None,
    }
}

/// The arithmetic of moving a time by a constant interval: the time's place among the two arguments, and by how many
/// microseconds later.
pub(super) fn shift(function: &Function, args: [&Expr; 2]) -> Option<(usize, i128)> {
    let (at, zoned, back) = match function.name.as_str() {
        "timestamp_pl_interval" => (0, false, false),
        "interval_pl_timestamp" => (1, false, false),
        "timestamp_mi_interval" => (0, false, true),
        "timestamptz_pl_interval" => (0, true, false),
        "interval_pl_timestamptz" => (1, true, false),
        "timestamptz_mi_interval" => (0, true, true),
        _ => return None,
    };
    let Expr::Const { value: Datum::Fixed16(bytes), .. } = args[1 - at] else { return None };
    let Interval { months, days, micros } = Interval::from_bytes(*bytes);
    // Months differ in length, and so do days where there are zones. Very long ways back and forth may leave the range in
    // between.
    let is_odd = micros == i64::MIN || (days.unsigned_abs() > DAYS_MAX && i64::from(days).signum() == -micros.signum());
    if months != 0 || (zoned && days != 0) || is_odd {
        return None;
    }
    let micros = i128::from(days) * DAY_MICROS + i128::from(micros);
    Some((at, if back { -micros } else { micros }))
}

/// Between which finite times lie that are moved to finite ones.
pub(super) fn limits_of_shifted(micros: i128) -> (i128, i128) {
    let (least, most) = (i128::from(TIMESTAMP_MIN), i128::from(TIMESTAMP_MAX));
    (least.max(least + micros), most.min(most + micros))
}

/// Between which values of a type lie; `None` where i128 is narrower.
pub(super) fn limits(ty: &DataType) -> Option<(i128, i128)> {
    match ty {
        DataType::Int2 => Some((i16::MIN.into(), i16::MAX.into())),
        DataType::Int4 => Some((i32::MIN.into(), i32::MAX.into())),
        DataType::Int8 => Some((i64::MIN.into(), i64::MAX.into())),
        _ => None,
    }
}

/// A comparison with a constant as one with an integer of the column's kind; `None` if it is no such thing.
pub(crate) fn comparable_to(column: Kind, op: CompareOp, constant: Kind, value: i128) -> Option<(CompareOp, i128)> {
    match (column, constant) {
        (Kind::Scaled(own), Kind::Scaled(other)) if other <= own => {
            let factor = basalt_expr::numeric::power_of_ten(u32::from(own - other))?;
            Some((op, value.checked_mul(factor)?))
        }
        (Kind::Scaled(own), Kind::Scaled(other)) => {
            let unit = basalt_expr::numeric::power_of_ten(u32::from(other - own))?;
            between_units(op, value, unit)
        }
        // Infinities are no days.
        (Kind::Date, Kind::Timestamp) if value.unsigned_abs() < i64::MAX as u128 => {
            between_units(op, value, DAY_MICROS)
        }
        // Neither infinite, nor beyond what is.
        (Kind::Timestamp, Kind::Date) if (value * DAY_MICROS).unsigned_abs() < i64::MAX as u128 => {
            Some((op, value * DAY_MICROS))
        }
        (own, other) if own == other => Some((op, value)),
        _ => None,
    }
}

/// A comparison of whole units with so many parts of a unit.
fn between_units(op: CompareOp, parts: i128, unit: i128) -> Option<(CompareOp, i128)> {
    let (below, rest) = (parts.div_euclid(unit), parts.rem_euclid(unit));
    match op {
        _ if rest == 0 => Some((op, below)),
        CompareOp::Lt | CompareOp::LtEq => Some((CompareOp::LtEq, below)),
        CompareOp::Gt | CompareOp::GtEq => Some((CompareOp::Gt, below)),
        // No whole unit equals it; the general way says so.
        CompareOp::Eq | CompareOp::NotEq => None,
    }
}
