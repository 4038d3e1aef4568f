//! Sums, differences, products and quotients of integers whose bounds say how wide the result has to be.
//!
//! Wrapping arithmetic in the width of the result gives the right result, however its operands are cut to that width:
//! the result is known to fit.

use arrow_buffer::NullBuffer;
use basalt_expr::datetime::{TIMESTAMP_MAX, TIMESTAMP_MIN};
use basalt_types::vector::{IntValues, Ints};
use basalt_types::widest;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Add,
    Sub,
    Mul,
    /// What is left of a quotient without its fraction, by a constant above 0.
    Div,
    /// What is left then, which has the sign of what is divided.
    Rem,
    /// The microseconds between two finite times.
    Elapsed,
}

impl Op {
    /// Between which bounds results lie; `None` if i128 does not hold them.
    fn bounds(self, a: (i128, i128), b: (i128, i128)) -> Option<(i128, i128)> {
        match self {
            Op::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)),
            // What is infinite is no number of microseconds away.
            Op::Elapsed if [a.0, a.1, b.0, b.1].iter().any(|time| !is_finite_time(*time)) => None,
            Op::Sub | Op::Elapsed => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)),
            Op::Mul => {
                let corners =
                    [a.0.checked_mul(b.0)?, a.0.checked_mul(b.1)?, a.1.checked_mul(b.0)?, a.1.checked_mul(b.1)?];
                let least = corners.iter().min().copied()?;
                corners.iter().max().copied().map(|most| (least, most))
            }
            Op::Div | Op::Rem if b.0 != b.1 || b.0 < 1 => None,
            Op::Div => Some((a.0 / b.0, a.1 / b.0)),
            Op::Rem if a.0 > -b.0 && a.1 < b.0 => Some(a),
            Op::Rem => Some((a.0.clamp(1 - b.0, 0), a.1.clamp(0, b.0 - 1))),
        }
    }
}

fn is_finite_time(time: i128) -> bool {
    (i128::from(TIMESTAMP_MIN)..=i128::from(TIMESTAMP_MAX)).contains(&time)
}

/// An operand: a column, or one value for all rows.
#[derive(Clone, Debug)]
pub enum Operand {
    Column(Ints),
    Const(i128),
}

impl Operand {
    fn bounds(&self) -> (i128, i128) {
        match self {
            Operand::Column(ints) => (ints.min, ints.max),
            Operand::Const(value) => (*value, *value),
        }
    }
}

/// One result per row; `None` if bounds do not prove that results fit into i128 and between `limits`.
///
/// # Panics
/// If both operands are constants.
pub fn apply(op: Op, a: &Operand, b: &Operand, limits: Option<(i128, i128)>) -> Option<Ints> {
    let (min, max) = op.bounds(a.bounds(), b.bounds())?;
    let op = if op == Op::Elapsed { Op::Sub } else { op };
    if limits.is_some_and(|(least, most)| min < least || max > most) {
        return None;
    }
    let width = width_of(min, max);
    let (values, nulls) = match (a, b) {
        (Operand::Column(a), Operand::Const(b)) if matches!(op, Op::Div | Op::Rem) => {
            (divided(op, &a.values, *b, width)?, a.nulls.clone())
        }
        _ if matches!(op, Op::Div | Op::Rem) => return None,
        (Operand::Column(a), Operand::Column(b)) => {
            (columns(op, &a.values, &b.values, width), NullBuffer::union(a.nulls.as_ref(), b.nulls.as_ref()))
        }
        (Operand::Column(a), Operand::Const(b)) => {
            // A difference is a sum with the negative; what is cut off does not matter to the result.
            let (op, b) = if op == Op::Sub { (Op::Add, b.wrapping_neg()) } else { (op, *b) };
            (with_const(op, &a.values, b, width), a.nulls.clone())
        }
        (Operand::Const(a), Operand::Column(b)) => (with_const(op, &b.values, *a, width), b.nulls.clone()),
        (Operand::Const(_), Operand::Const(_)) => panic!("constants are computed before"),
    };
    Some(Ints { values, nulls, min, max })
}

#[derive(Clone, Copy)]
enum Width {
    I32,
    I64,
    I128,
}

fn width_of(min: i128, max: i128) -> Width {
    match (i64::try_from(min), i64::try_from(max)) {
        (Ok(min), Ok(max)) if i32::try_from(min).is_ok() && i32::try_from(max).is_ok() => Width::I32,
        (Ok(_), Ok(_)) => Width::I64,
        _ => Width::I128,
    }
}

/// Integers that can be cut to another width.
trait Int: Copy + Default {
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
}

trait CutTo<T>: Copy {
    fn cut(self) -> T;
}

macro_rules! ints {
    ($($ty:ty)*) => {$(
        impl Int for $ty {
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }
        }
        cuts!($ty => i32 i64 i128);
    )*};
}

macro_rules! cuts {
    ($from:ty => $($to:ty)*) => {$(
        impl CutTo<$to> for $from {
            #[inline(always)]
            fn cut(self) -> $to {
                self as $to
            }
        }
    )*};
}

ints!(i32 i64 i128);

widest! {
    fn zip[A: CutTo<O>, B: CutTo<O>, O: Int](op: Op, a: &[A], b: &[B]) -> Vec<O> {
        let pairs = a.iter().zip(b);
        match op {
            Op::Add => pairs.map(|(a, b)| a.cut().add(b.cut())).collect(),
            Op::Sub | Op::Elapsed => pairs.map(|(a, b)| a.cut().sub(b.cut())).collect(),
            Op::Mul => pairs.map(|(a, b)| a.cut().mul(b.cut())).collect(),
            Op::Div | Op::Rem => panic!("what is divided is not cut"),
        }
    }
}

widest! {
    /// `Sub` takes the column from the constant.
    fn map[A: CutTo<O>, O: Int](op: Op, a: &[A], b: O) -> Vec<O> {
        match op {
            Op::Add => a.iter().map(|a| a.cut().add(b)).collect(),
            Op::Sub | Op::Elapsed => a.iter().map(|a| b.sub(a.cut())).collect(),
            Op::Mul => a.iter().map(|a| a.cut().mul(b)).collect(),
            Op::Div | Op::Rem => panic!("what is divided is not cut"),
        }
    }
}

fn columns(op: Op, a: &IntValues, b: &IntValues, width: Width) -> IntValues {
    use IntValues::{I32, I64, I128};
    macro_rules! in_width {
        ($a:expr, $b:expr) => {
            match width {
                Width::I32 => I32(zip::<_, _, i32>(op, $a, $b).into()),
                Width::I64 => I64(zip::<_, _, i64>(op, $a, $b).into()),
                Width::I128 => I128(zip::<_, _, i128>(op, $a, $b).into()),
            }
        };
    }
    match (a, b) {
        (I32(a), I32(b)) => in_width!(a, b),
        (I32(a), I64(b)) => in_width!(a, b),
        (I64(a), I32(b)) => in_width!(a, b),
        (I64(a), I64(b)) => in_width!(a, b),
        (I128(a), I32(b)) => in_width!(a, b),
        (I128(a), I64(b)) => in_width!(a, b),
        (I32(a), I128(b)) => in_width!(a, b),
        (I64(a), I128(b)) => in_width!(a, b),
        (I128(a), I128(b)) => in_width!(a, b),
    }
}

fn with_const(op: Op, a: &IntValues, b: i128, width: Width) -> IntValues {
    use IntValues::{I32, I64, I128};
    macro_rules! in_width {
        ($a:expr) => {
            match width {
                Width::I32 => I32(map::<_, i32>(op, $a, b as i32).into()),
                Width::I64 => I64(map::<_, i64>(op, $a, b as i64).into()),
                Width::I128 => I128(map::<_, i128>(op, $a, b).into()),
            }
        };
    }
    match a {
        I32(a) => in_width!(a),
        I64(a) => in_width!(a),
        I128(a) => in_width!(a),
    }
}

/// In the width of what is divided. `None` if that is beyond 64 bits.
fn divided(op: Op, a: &IntValues, by: i128, width: Width) -> Option<IntValues> {
    use IntValues::{I32, I64, I128};
    let is_quotient = op == Op::Div;
    Some(match (a, i32::try_from(by)) {
        (I32(a), Ok(by)) if is_quotient => I32(quotients(a, by).into()),
        (I32(a), Ok(by)) => I32(remainders(a, by).into()),
        (I32(a), Err(_)) => {
            let wide: Vec<i64> = a.iter().map(|value| i64::from(*value)).collect();
            I32(divided_wide(&wide, i64::try_from(by).ok()?, is_quotient).into())
        }
        (I64(a), _) => {
            let by = i64::try_from(by).ok()?;
            match width {
                Width::I32 => I32(divided_wide(a, by, is_quotient).into()),
                Width::I64 | Width::I128 => I64(divided_wide(a, by, is_quotient).into()),
            }
        }
        (I128(_), _) => return None,
    })
}

/// A double holds integers of 32 bits, and their quotients are further from the next integer than it is exact.
#[inline(always)]
fn quotient(value: i32, by: f64) -> i32 {
    (f64::from(value) / by) as i32
}

widest! {
    fn quotients(values: &[i32], by: i32) -> Vec<i32> {
        let by = f64::from(by);
        values.iter().map(|value| quotient(*value, by)).collect()
    }
}

widest! {
    fn remainders(values: &[i32], by: i32) -> Vec<i32> {
        let divisor = f64::from(by);
        values.iter().map(|value| value.wrapping_sub(quotient(*value, divisor).wrapping_mul(by))).collect()
    }
}

/// As the processor does it, which is quicker than by a reciprocal of 64 bits.
fn divided_wide<O>(values: &[i64], by: i64, is_quotient: bool) -> Vec<O>
where
    i64: CutTo<O>,
{
    match is_quotient {
        true => values.iter().map(|value| (value / by).cut()).collect(),
        false => values.iter().map(|value| (value % by).cut()).collect(),
    }
}

#[cfg(test)]
mod tests;
