//! Comparisons of integers into masks.

use basalt_types::CompareOp;
use basalt_types::span::{Span, Verdict};
use basalt_types::vector::{IntValues, Ints};
use basalt_types::widest;

widest! {
    fn between[T: Copy + Ord](a: &[T], low: T, high: T, inside: bool, mask: &mut [u8]) {
        let rows = mask.iter_mut().zip(a);
        rows.for_each(|(mask, a)| *mask &= u8::from((*a >= low && *a <= high) == inside));
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

/// Clears the rows of the mask whose value is not within the span, or is null.
pub fn within(a: &Ints, span: Span, mask: &mut [u8]) {
    match span.verdict((a.min, a.max)) {
        Verdict::All => {}
        Verdict::None => return mask.fill(0),
        Verdict::Depends => {
            // Within the column's own bounds, which its width holds.
            let (low, high) = (span.low.max(a.min), span.high.min(a.max));
            match &a.values {
                IntValues::I32(values) => between(values, low as i32, high as i32, span.inside, mask),
                IntValues::I64(values) => between(values, low as i64, high as i64, span.inside, mask),
                IntValues::I128(values) => between(values, low, high, span.inside, mask),
            }
        }
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
