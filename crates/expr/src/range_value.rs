//! What ranges and multiranges mean (manual 8.17, 9.20): order of bounds, canonical forms, sets of values.
//!
//! A multirange is a list of ranges, none empty, ascending, with something between each and the next.

use crate::datetime::{DATE_MAX, is_finite_date};
use crate::error::{Error, Result};
use crate::operators::compare_datums;
use basalt_types::range::{self, Bound, RangeKind, RangeValue, Span};
use basalt_types::{DataType, Datum};
use std::cmp::Ordering;

#[cold]
fn damaged(ty: &str, bytes: &[u8]) -> Error {
    Error::new("XX001", format!("stored {ty} of {} bytes is damaged", bytes.len()))
}

/// The ranges of a range (none or one) or a multirange, by the value's type.
pub fn spans(ty: &DataType, value: &Datum) -> Result<Vec<Span>> {
    match (ty.underlying(), value) {
        (DataType::Range(kind), Datum::Bytes(bytes)) => {
            let range = range::decode_range(*kind, bytes).ok_or_else(|| damaged(kind.range_name(), bytes))?;
            Ok(range.into_iter().collect())
        }
        (DataType::Multirange(kind), Datum::Bytes(bytes)) => {
            range::decode_multirange(*kind, bytes).ok_or_else(|| damaged(kind.multirange_name(), bytes))
        }
        (ty, other) => Err(Error::internal(format!("{other:?} is no {}", ty.sql_name()))),
    }
}

fn compare_values(kind: RangeKind, a: &Datum, b: &Datum) -> Ordering {
    compare_datums(&kind.subtype(), a, b)
}

/// Orders two bounds as places on the line: `[3` is before `(3`, `3)` before `3]`, and `3)` before `[3`.
pub fn compare_bounds(kind: RangeKind, a: &Bound, b: &Bound) -> Ordering {
    let side = |bound: &Bound| if bound.is_lower { Ordering::Less } else { Ordering::Greater };
    match (&a.value, &b.value) {
        (None, None) if a.is_lower == b.is_lower => Ordering::Equal,
        (None, _) => side(a),
        (_, None) => side(b).reverse(),
        (Some(left), Some(right)) => {
            // How far from the value itself: below it, at it, above it.
            let shift = |bound: &Bound| match (bound.inclusive, bound.is_lower) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => -1,
            };
            compare_values(kind, left, right).then_with(|| shift(a).cmp(&shift(b)))
        }
    }
}

/// The range between two bounds in its canonical form. 22000 if they are the wrong way round.
pub fn make(kind: RangeKind, mut lower: Bound, mut upper: Bound) -> Result<RangeValue> {
    for bound in [&mut lower, &mut upper] {
        bound.inclusive &= bound.value.is_some();
    }
    if !ordered(kind, &lower, &upper)? {
        return Ok(None);
    }
    if kind.is_discrete() {
        if !lower.inclusive {
            lower.inclusive = step(kind, &mut lower)?;
        }
        if upper.inclusive {
            upper.inclusive = !step(kind, &mut upper)?;
        }
        if !ordered(kind, &lower, &upper)? {
            return Ok(None);
        }
    }
    Ok(Some(Span { lower, upper }))
}

/// Whether anything is between the bounds.
fn ordered(kind: RangeKind, lower: &Bound, upper: &Bound) -> Result<bool> {
    let (Some(least), Some(greatest)) = (&lower.value, &upper.value) else { return Ok(true) };
    match compare_values(kind, least, greatest) {
        Ordering::Greater => {
            Err(Error::new("22000", "range lower bound must be less than or equal to range upper bound"))
        }
        Ordering::Equal => Ok(lower.inclusive && upper.inclusive),
        Ordering::Less => Ok(true),
    }
}

/// Moves a bound of a discrete type one up; false if there is nothing to move.
fn step(kind: RangeKind, bound: &mut Bound) -> Result<bool> {
    match (&mut bound.value, kind) {
        (None, _) => return Ok(false),
        (Some(Datum::I32(days)), RangeKind::Date) => {
            if !is_finite_date(*days) {
                return Ok(false);
            }
            if *days >= DATE_MAX {
                return Err(Error::new("22008", "date out of range"));
            }
            *days += 1;
        }
        (Some(Datum::I32(value)), _) => *value = value.checked_add(1).ok_or_else(|| Error::out_of_range("integer"))?,
        (Some(Datum::I64(value)), _) => *value = value.checked_add(1).ok_or_else(|| Error::out_of_range("bigint"))?,
        (Some(other), kind) => return Err(Error::internal(format!("{other:?} is no bound of {}", kind.range_name()))),
    }
    Ok(true)
}

/// The other side of the place where a bound is.
fn flipped(bound: &Bound) -> Bound {
    Bound { value: bound.value.clone(), inclusive: !bound.inclusive, is_lower: !bound.is_lower }
}

/// Whether nothing is between an upper bound and a lower one, nor in both.
fn meet(kind: RangeKind, upper: &Bound, lower: &Bound) -> bool {
    let (Some(end), Some(start)) = (&upper.value, &lower.value) else { return false };
    match compare_values(kind, end, start) {
        Ordering::Less => {
            kind.is_discrete() && make(kind, flipped(upper), flipped(lower)).is_ok_and(|gap| gap.is_none())
        }
        Ordering::Equal => upper.inclusive != lower.inclusive,
        Ordering::Greater => false,
    }
}

/// A pair of range or multirange values, for what holds between them: each as its ranges.
#[derive(Clone, Copy)]
pub struct Pair<'a> {
    pub kind: RangeKind,
    pub left: &'a [Span],
    pub right: &'a [Span],
}

impl Pair<'_> {
    fn compare(&self, a: &Bound, b: &Bound) -> Ordering {
        compare_bounds(self.kind, a, b)
    }

    /// First and last range of each side; `None` if one is empty.
    fn ends(&self) -> Option<[&Span; 4]> {
        Some([self.left.first()?, self.left.last()?, self.right.first()?, self.right.last()?])
    }

    /// `<<`
    pub fn is_before(&self) -> bool {
        self.ends().is_some_and(|[_, last, first, _]| self.compare(&last.upper, &first.lower).is_lt())
    }

    /// `>>`
    pub fn is_after(&self) -> bool {
        self.ends().is_some_and(|[first, _, _, last]| self.compare(&first.lower, &last.upper).is_gt())
    }

    /// `&<`
    pub fn extends_not_right(&self) -> bool {
        self.ends().is_some_and(|[_, a, _, b]| self.compare(&a.upper, &b.upper).is_le())
    }

    /// `&>`
    pub fn extends_not_left(&self) -> bool {
        self.ends().is_some_and(|[a, _, b, _]| self.compare(&a.lower, &b.lower).is_ge())
    }

    /// `-|-`
    pub fn is_adjacent(&self) -> bool {
        self.ends().is_some_and(|[a_first, a_last, b_first, b_last]| {
            meet(self.kind, &a_last.upper, &b_first.lower) || meet(self.kind, &b_last.upper, &a_first.lower)
        })
    }

    /// `&&`
    pub fn overlaps(&self) -> bool {
        let (mut a, mut b) = (0, 0);
        while let (Some(left), Some(right)) = (self.left.get(a), self.right.get(b)) {
            if self.compare(&left.upper, &right.lower).is_lt() {
                a += 1;
            } else if self.compare(&right.upper, &left.lower).is_lt() {
                b += 1;
            } else {
                return true;
            }
        }
        false
    }

    /// `@>`
    pub fn contains(&self) -> bool {
        let mut rest = self.left;
        self.right.iter().all(|span| {
            while rest.first().is_some_and(|left| self.compare(&left.upper, &span.lower).is_lt()) {
                rest = &rest[1..];
            }
            rest.first().is_some_and(|left| {
                self.compare(&left.lower, &span.lower).is_le() && self.compare(&left.upper, &span.upper).is_ge()
            })
        })
    }

    /// `*`
    pub fn intersection(&self) -> Result<Vec<Span>> {
        let mut out = Vec::new();
        let (mut a, mut b) = (0, 0);
        while let (Some(left), Some(right)) = (self.left.get(a), self.right.get(b)) {
            let is_later = self.compare(&left.lower, &right.lower).is_ge();
            let lower = if is_later { &left.lower } else { &right.lower };
            let ends_first = self.compare(&left.upper, &right.upper).is_le();
            let upper = if ends_first { &left.upper } else { &right.upper };
            if self.compare(lower, upper).is_le() {
                out.extend(make(self.kind, lower.clone(), upper.clone())?);
            }
            if ends_first {
                a += 1;
            } else {
                b += 1;
            }
        }
        Ok(out)
    }

    /// `-`
    pub fn difference(&self) -> Result<Vec<Span>> {
        let mut out = Vec::new();
        let mut rest = self.right;
        for span in self.left {
            while rest.first().is_some_and(|right| self.compare(&right.upper, &span.lower).is_lt()) {
                rest = &rest[1..];
            }
            let mut lower = Some(span.lower.clone());
            for right in rest.iter().take_while(|right| self.compare(&right.lower, &span.upper).is_le()) {
                if let Some(lower) = lower.take().filter(|lower| self.compare(lower, &right.lower).is_lt()) {
                    out.extend(make(self.kind, lower, flipped(&right.lower))?);
                }
                if self.compare(&right.upper, &span.upper).is_lt() {
                    lower = Some(flipped(&right.upper));
                }
            }
            if let Some(lower) = lower {
                out.extend(make(self.kind, lower, span.upper.clone())?);
            }
        }
        Ok(out)
    }

    /// The least range that both sides are in.
    pub fn merged(&self) -> RangeValue {
        let Some([a_first, a_last, b_first, b_last]) = self.ends() else {
            return hull(if self.left.is_empty() { self.right } else { self.left });
        };
        let is_first = self.compare(&a_first.lower, &b_first.lower).is_le();
        let is_last = self.compare(&a_last.upper, &b_last.upper).is_ge();
        let lower = if is_first { &a_first.lower } else { &b_first.lower };
        let upper = if is_last { &a_last.upper } else { &b_last.upper };
        Some(Span { lower: lower.clone(), upper: upper.clone() })
    }

    /// `+` of two ranges. 22000 if something is between them.
    pub fn range_union(&self) -> Result<RangeValue> {
        if self.ends().is_some() && !self.overlaps() && !self.is_adjacent() {
            return Err(Error::new("22000", "result of range union would not be contiguous"));
        }
        Ok(self.merged())
    }

    /// `-` of two ranges. 22000 if it is two ranges.
    pub fn range_difference(&self) -> Result<RangeValue> {
        if let Some([a, _, b, _]) = self.ends()
            && self.compare(&a.lower, &b.lower).is_lt()
            && self.compare(&a.upper, &b.upper).is_gt()
        {
            return Err(Error::new("22000", "result of range difference would not be contiguous"));
        }
        Ok(self.difference()?.into_iter().next())
    }
}

/// The least range that all of them are in.
pub fn hull(spans: &[Span]) -> RangeValue {
    Some(Span { lower: spans.first()?.lower.clone(), upper: spans.last()?.upper.clone() })
}

/// Ranges in any order as a multirange.
pub fn normalized(kind: RangeKind, mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|a, b| {
        compare_bounds(kind, &a.lower, &b.lower).then_with(|| compare_bounds(kind, &a.upper, &b.upper))
    });
    let mut out: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match out.last_mut() {
            Some(last)
                if !compare_bounds(kind, &last.upper, &span.lower).is_lt() || meet(kind, &last.upper, &span.lower) =>
            {
                if compare_bounds(kind, &span.upper, &last.upper).is_gt() {
                    last.upper = span.upper;
                }
            }
            _ => out.push(span),
        }
    }
    out
}

/// Whether a value is in one of the ranges.
pub fn contains_value(kind: RangeKind, spans: &[Span], value: &Datum) -> bool {
    let at = |is_lower| Bound { value: Some(value.clone()), inclusive: true, is_lower };
    let (lower, upper) = (at(true), at(false));
    let after = spans.partition_point(|span| compare_bounds(kind, &span.upper, &upper).is_lt());
    spans.get(after).is_some_and(|span| compare_bounds(kind, &span.lower, &lower).is_le())
}

#[cfg(test)]
mod tests;
