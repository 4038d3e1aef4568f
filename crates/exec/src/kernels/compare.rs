//! Comparisons of integers into masks.

use basalt_types::CompareOp;
use basalt_types::vector::{IntValues, Ints};
use basalt_types::widest;

/// What bounds say about a comparison.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    All,
    None,
    Depends,
}

/// What the bounds of a column say about its comparison with a constant; nulls apart.
pub fn verdict(op: CompareOp, (min, max): (i128, i128), value: i128) -> Verdict {
    let (all, none) = match op {
        CompareOp::Eq => (min == value && max == value, value < min || value > max),
        CompareOp::NotEq => (value < min || value > max, min == value && max == value),
        CompareOp::Lt => (max < value, min >= value),
        CompareOp::LtEq => (max <= value, min > value),
        CompareOp::Gt => (min > value, max <= value),
        CompareOp::GtEq => (min >= value, max < value),
    };
    match (all, none) {
        (true, _) => Verdict::All,
        (_, true) => Verdict::None,
        _ => Verdict::Depends,
    }
}

widest! {
    fn map[T: Copy + Ord](op: CompareOp, a: &[T], b: T, mask: &mut [u8]) {
        let rows = mask.iter_mut().zip(a);
        match op {
            CompareOp::Eq => rows.for_each(|(mask, a)| *mask &= u8::from(*a == b)),
            CompareOp::NotEq => rows.for_each(|(mask, a)| *mask &= u8::from(*a != b)),
            CompareOp::Lt => rows.for_each(|(mask, a)| *mask &= u8::from(*a < b)),
            CompareOp::LtEq => rows.for_each(|(mask, a)| *mask &= u8::from(*a <= b)),
            CompareOp::Gt => rows.for_each(|(mask, a)| *mask &= u8::from(*a > b)),
            CompareOp::GtEq => rows.for_each(|(mask, a)| *mask &= u8::from(*a >= b)),
        }
    }
}

widest! {
    fn zip[A: Copy + Into<T>, B: Copy + Into<T>, T: Ord](op: CompareOp, a: &[A], b: &[B], mask: &mut [u8]) {
        let rows = mask.iter_mut().zip(a.iter().zip(b));
        match op {
            CompareOp::Eq => rows.for_each(|(mask, (a, b))| *mask &= u8::from((*a).into() == (*b).into())),
            CompareOp::NotEq => rows.for_each(|(mask, (a, b))| *mask &= u8::from((*a).into() != (*b).into())),
            CompareOp::Lt => rows.for_each(|(mask, (a, b))| *mask &= u8::from((*a).into() < (*b).into())),
            CompareOp::LtEq => rows.for_each(|(mask, (a, b))| *mask &= u8::from((*a).into() <= (*b).into())),
            CompareOp::Gt => rows.for_each(|(mask, (a, b))| *mask &= u8::from((*a).into() > (*b).into())),
            CompareOp::GtEq => rows.for_each(|(mask, (a, b))| *mask &= u8::from((*a).into() >= (*b).into())),
        }
    }
}

/// Clears the rows of the mask whose value does not compare so, or is null.
pub fn with_const(op: CompareOp, a: &Ints, value: i128, mask: &mut [u8]) {
    match verdict(op, (a.min, a.max), value) {
        Verdict::All => {}
        Verdict::None => return mask.fill(0),
        // Between bounds that the width holds, so the width holds it, too.
        Verdict::Depends => match &a.values {
            IntValues::I32(values) => map(op, values, value as i32, mask),
            IntValues::I64(values) => map(op, values, value as i64, mask),
            IntValues::I128(values) => map(op, values, value, mask),
        },
    }
    super::mask::clear_nulls(a.nulls.as_ref(), mask);
}

/// Clears the rows of the mask whose values do not compare so, or one of which is null.
pub fn columns(op: CompareOp, a: &Ints, b: &Ints, mask: &mut [u8]) {
    use IntValues::{I32, I64, I128};
    match (&a.values, &b.values) {
        (I32(a), I32(b)) => zip::<_, _, i32>(op, a, b, mask),
        (I32(a), I64(b)) => zip::<_, _, i64>(op, a, b, mask),
        (I64(a), I32(b)) => zip::<_, _, i64>(op, a, b, mask),
        (I64(a), I64(b)) => zip::<_, _, i64>(op, a, b, mask),
        (I128(a), I32(b)) => zip::<_, _, i128>(op, a, b, mask),
        (I128(a), I64(b)) => zip::<_, _, i128>(op, a, b, mask),
        (I32(a), I128(b)) => zip::<_, _, i128>(op, a, b, mask),
        (I64(a), I128(b)) => zip::<_, _, i128>(op, a, b, mask),
        (I128(a), I128(b)) => zip::<_, _, i128>(op, a, b, mask),
    }
    super::mask::clear_nulls(a.nulls.as_ref(), mask);
    super::mask::clear_nulls(b.nulls.as_ref(), mask);
}

#[cfg(test)]
mod tests;
