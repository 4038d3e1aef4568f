//! The integers between two bounds, or all others: what a comparison with a constant lets pass.

use crate::CompareOp;

/// What bounds of a column say about a test of its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    All,
    None,
    Depends,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Both inclusive; none lies between them if they are in the wrong order.
    pub low: i128,
    pub high: i128,
    /// Whether those between the bounds pass, or the others.
    pub inside: bool,
}

impl Span {
    /// Those that compare so with a value.
    pub fn compared(op: CompareOp, value: i128) -> Span {
        let between = |low, high| Span { low, high, inside: true };
        let nothing = between(0, -1);
        match op {
            CompareOp::Eq => between(value, value),
            CompareOp::NotEq => Span { inside: false, ..between(value, value) },
            CompareOp::Lt => value.checked_sub(1).map_or(nothing, |high| between(i128::MIN, high)),
            CompareOp::LtEq => between(i128::MIN, value),
            CompareOp::Gt => value.checked_add(1).map_or(nothing, |low| between(low, i128::MAX)),
            CompareOp::GtEq => between(value, i128::MAX),
        }
    }

    /// Those that pass both; `None` if no span says so.
    pub fn and(self, other: Span) -> Option<Span> {
        let both = self.inside && other.inside;
        both.then(|| Span { low: self.low.max(other.low), high: self.high.min(other.high), inside: true })
    }

    pub fn contains(self, value: i128) -> bool {
        (self.low <= value && value <= self.high) == self.inside
    }

    /// What is known of values between `min` and `max`.
    pub fn verdict(self, (min, max): (i128, i128)) -> Verdict {
        let within = self.low <= min && max <= self.high;
        let apart = max < self.low || self.high < min || self.low > self.high;
        match (within, apart, self.inside) {
            (_, true, inside) => {
                if inside {
                    Verdict::None
                } else {
                    Verdict::All
                }
            }
            (true, _, inside) => {
                if inside {
                    Verdict::All
                } else {
                    Verdict::None
                }
            }
            _ => Verdict::Depends,
        }
    }
}

#[cfg(test)]
mod tests;
