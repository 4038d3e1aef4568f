//! Values beside keys: which comparisons of a key column are comparisons of encoded keys, and where a value of another
//! type stands among those of the column's type.
//!
//! PostgreSQL's operators compare types of one family by value (`int4 = int8`, `real < double precision`), or cast the
//! column to the other side's type. Where that cast keeps order and tells any two values apart, the condition is one over
//! the column itself; all else is for who evaluates it row by row.

use crate::error::{Result, SqlError};
use basalt_expr::numeric::Numeric as Decimal;
use basalt_expr::tree::Expr;
use basalt_types::{CompareOp, DataType, Datum, PhysType};

/// Where a value stands among those of a key column's type.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Fit {
    /// It is this one.
    At(Datum),
    /// It is none: greater than this one, less than the next.
    Behind(Datum),
    BelowAll,
    AboveAll,
}

/// What comparisons with a value of some type may ask of encoded keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Fitting {
    Equality,
    Order,
}

const MICROS_PER_DAY: i64 = 86_400_000_000;

/// Whether two values of a type are in the order of their keys, as ORDER BY has it.
pub(crate) fn sorts_as_keys(ty: &DataType) -> bool {
    use DataType::*;
    match ty.underlying() {
        Array(element) => sorts_as_keys(element),
        Composite(composite) => {
            !composite.is_anonymous() && composite.live().all(|(_, field)| sorts_as_keys(&field.ty))
        }
        ty => !matches!(ty, Json | JsonPath | Xid | PgSnapshot | TxidSnapshot | Record | Unknown | Void),
    }
}

/// What `expr` compares as, if it is what `is_term` knows: itself, or cast in a way that keeps order and equality.
pub(crate) fn compared_as(expr: &Expr, is_term: &dyn Fn(&Expr) -> bool) -> Option<DataType> {
    if is_term(expr) {
        return Some(expr.ty().underlying().clone());
    }
    let Expr::Cast { expr: inner, to, .. } = expr else { return None };
    compared_as(inner, is_term)?;
    embeds(&inner.ty(), to).then(|| to.clone())
}

/// Whether a cast keeps order and equality, and never fails.
fn embeds(from: &DataType, to: &DataType) -> bool {
    use DataType::*;
    let from = from.underlying();
    match (from, to) {
        (Int2, Int4 | Int8 | Float4 | Float8) | (Int4, Int8 | Float8) | (Float4, Float8) => true,
        (Int2 | Int4 | Int8 | Numeric(_), Numeric(None)) => true,
        (Int2, Numeric(Some((precision, 0)))) => *precision >= 5,
        (Int4, Numeric(Some((precision, 0)))) => *precision >= 10,
        (Int8, Numeric(Some((precision, 0)))) => *precision >= 19,
        (Bpchar(_), Bpchar(None) | Text) => true,
        (Bit(_) | Varbit(_), Bit(None) | Varbit(None)) => true,
        (Varchar(_) | Text | Name, Varchar(None) | Text) => true,
        (Cidr, Inet) => true,
        (from, Oid) if from.is_reg() => true,
        // Elements of other lengths and scales compare as they did.
        (Array(from), Array(to)) if has_form_of(from, to) => embeds(from, to),
        _ => from == to,
    }
}

/// Whether a column of type `column` can be found by a value of type `value`, where an operator compares it as
/// `compared`.
pub(crate) fn fitting(value: &DataType, compared: &DataType, column: &DataType) -> Option<Fitting> {
    use DataType::*;
    let (value, compared, column) = (value.underlying(), compared.underlying(), column.underlying());
    let is_number = |ty: &DataType| matches!(ty, Int2 | Int4 | Int8 | Float4 | Float8 | Numeric(_));
    if is_number(column) {
        let fits = matches!(
            (compared, value),
            (Int2 | Int4 | Int8, Int2 | Int4 | Int8) | (Float4 | Float8, Float4 | Float8) | (Numeric(_), Numeric(_))
        );
        return fits.then_some(Fitting::Order);
    }
    match (column, compared, value) {
        (Date | Timestamp, Date | Timestamp, Date | Timestamp) => Some(Fitting::Order),
        // As text it has no trailing blanks, which other texts have.
        (Bpchar(_), Text, Text | Varchar(_) | Name) => Some(Fitting::Equality),
        (column, compared, value) => {
            let is_same = has_form_of(value, column) && has_form_of(compared, column) && sorts_as_keys(column);
            is_same.then_some(Fitting::Order)
        }
    }
}

/// Whether values of two types have one form, and their keys, too.
fn has_form_of(a: &DataType, b: &DataType) -> bool {
    use DataType::*;
    match (a, b) {
        (Text | Varchar(_) | Name, Text | Varchar(_) | Name) => true,
        (Bpchar(_), Bpchar(_)) => true,
        (Bit(_) | Varbit(_), Bit(_) | Varbit(_)) => true,
        (Inet | Cidr, Inet | Cidr) => true,
        (a, b) if (*a == Oid || a.is_reg()) && (*b == Oid || b.is_reg()) => true,
        (Enum(a), Enum(b)) => a.oid == b.oid,
        (Array(a), Array(b)) => has_form_of(a, b),
        (a, b) => a == b,
    }
}

/// Where a value, not null, of type `from` stands among those of `column`. The two [fit](fitting).
pub(crate) fn fit(value: Datum, from: &DataType, column: &DataType) -> Result<Fit> {
    use DataType::*;
    let (from, column) = (from.underlying(), column.underlying());
    if from == column {
        return Ok(Fit::At(value));
    }
    let malformed = || SqlError::internal(format!("a value of type {} has another form", from.sql_name()));
    match (column, from) {
        (Int2 | Int4 | Int8 | Numeric(_), Int2 | Int4 | Int8) => {
            let value = integer_of(&value).ok_or_else(malformed)?;
            numeric(&Decimal::from(value), column)
        }
        (Int2 | Int4 | Int8 | Numeric(_), Numeric(_)) => numeric(&Decimal::from_datum(&value, from)?, column),
        (Int2 | Int4 | Int8, Float4 | Float8) => {
            let value = float_of(&value).ok_or_else(malformed)?;
            let floor = value.floor();
            // The bounds of an i128 are far beyond those of the column.
            match value.is_nan() || value > i64::MAX as f64 {
                true => Ok(Fit::AboveAll),
                false if value < i64::MIN as f64 => Ok(Fit::BelowAll),
                false => Ok(scaled(floor as i128, floor == value, column)),
            }
        }
        (Float4, Float8) => {
            let value = float_of(&value).ok_or_else(malformed)?;
            let nearest = value as f32;
            Ok(match f64::from(nearest) {
                back if back == value || value.is_nan() => Fit::At(Datum::F32(nearest)),
                back if back > value => Fit::Behind(Datum::F32(nearest.next_down())),
                _ => Fit::Behind(Datum::F32(nearest)),
            })
        }
        (Float8, Float4) => Ok(Fit::At(Datum::F64(float_of(&value).ok_or_else(malformed)?))),
        (Date, Timestamp) => match value {
            Datum::I64(i64::MAX) => Ok(Fit::At(Datum::I32(i32::MAX))),
            Datum::I64(i64::MIN) => Ok(Fit::At(Datum::I32(i32::MIN))),
            Datum::I64(micros) => {
                let day = Datum::I32(micros.div_euclid(MICROS_PER_DAY) as i32);
                let is_midnight = micros.rem_euclid(MICROS_PER_DAY) == 0;
                Ok(if is_midnight { Fit::At(day) } else { Fit::Behind(day) })
            }
            _ => Err(malformed()),
        },
        (Timestamp, Date) => match value {
            Datum::I32(i32::MAX) => Ok(Fit::At(Datum::I64(i64::MAX))),
            Datum::I32(i32::MIN) => Ok(Fit::At(Datum::I64(i64::MIN))),
            Datum::I32(day) => Ok(match i64::from(day).checked_mul(MICROS_PER_DAY) {
                Some(micros) => Fit::At(Datum::I64(micros)),
                // Behind all moments but infinity.
                None => Fit::Behind(Datum::I64(i64::MAX - 1)),
            }),
            _ => Err(malformed()),
        },
        (Bpchar(_), Text | Varchar(_) | Name) => Ok(match &value {
            Datum::Bytes(text) if text.last() == Some(&b' ') => Fit::Behind(Datum::Bytes(text.clone())),
            _ => Fit::At(value),
        }),
        _ => Ok(Fit::At(value)),
    }
}

fn integer_of(value: &Datum) -> Option<i64> {
    match value {
        Datum::I16(value) => Some(i64::from(*value)),
        Datum::I32(value) => Some(i64::from(*value)),
        Datum::I64(value) => Some(*value),
        _ => None,
    }
}

fn float_of(value: &Datum) -> Option<f64> {
    match value {
        Datum::F32(value) => Some(f64::from(*value)),
        Datum::F64(value) => Some(*value),
        _ => None,
    }
}

/// Among integers, scaled ones too, or numerics of any scale.
fn numeric(value: &Decimal, column: &DataType) -> Result<Fit> {
    let scale = match (column, column.decimal()) {
        (_, Some((_, scale))) => scale as u16,
        (DataType::Numeric(_), None) => return Ok(Fit::At(value.to_datum(&DataType::Numeric(None))?)),
        _ => 0,
    };
    let beyond = || if value.signum() < 0 { Fit::BelowAll } else { Fit::AboveAll };
    // Neither NaN nor infinities, which no scaled integer is.
    let Some(nearest) = value.to_scaled(i32::from(scale)) else { return Ok(beyond()) };
    Ok(match Decimal::from_scaled(nearest, scale).cmp(value) {
        std::cmp::Ordering::Equal => scaled(nearest, true, column),
        std::cmp::Ordering::Less => scaled(nearest, false, column),
        std::cmp::Ordering::Greater => {
            nearest.checked_sub(1).map_or(Fit::BelowAll, |floor| scaled(floor, false, column))
        }
    })
}

/// An integer, or what is between it and the next one.
fn scaled(floor: i128, exact: bool, column: &DataType) -> Fit {
    let (least, most) = match column.phys() {
        Some(PhysType::I16) => (i128::from(i16::MIN), i128::from(i16::MAX)),
        Some(PhysType::I32) => (i128::from(i32::MIN), i128::from(i32::MAX)),
        Some(PhysType::I64) => (i128::from(i64::MIN), i128::from(i64::MAX)),
        _ => (i128::MIN, i128::MAX),
    };
    if floor < least {
        return Fit::BelowAll;
    }
    if floor > most {
        return Fit::AboveAll;
    }
    let datum = match column.phys() {
        Some(PhysType::I16) => Datum::I16(floor as i16),
        Some(PhysType::I32) => Datum::I32(floor as i32),
        Some(PhysType::I64) => Datum::I64(floor as i64),
        _ => Datum::I128(floor),
    };
    if exact { Fit::At(datum) } else { Fit::Behind(datum) }
}

/// What a function compares its two arguments by: [`basalt_expr::functions::Function::comparison`], and dates with
/// timestamps (`date_lt_timestamp`).
pub(crate) fn comparison(function: &basalt_expr::functions::Function) -> Option<CompareOp> {
    use CompareOp::*;
    function.comparison().or_else(|| {
        Some(match function.name.as_str() {
            "date_eq_timestamp" | "timestamp_eq_date" => Eq,
            "date_lt_timestamp" | "timestamp_lt_date" => Lt,
            "date_le_timestamp" | "timestamp_le_date" => LtEq,
            "date_gt_timestamp" | "timestamp_gt_date" => Gt,
            "date_ge_timestamp" | "timestamp_ge_date" => GtEq,
            _ => return None,
        })
    })
}

#[cfg(test)]
mod tests;
