//! `interval`: months, days and microseconds, kept apart because months and days vary in length.

mod format;
mod iso;
mod parse;

pub(crate) use format::interval_text;
pub use format::write_interval;
pub use parse::{IntervalFields, parse_interval};

use crate::datetime::{MICROS_PER_DAY, MICROS_PER_SECOND};
use crate::error::{Error, Result};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Compared by length with months of 30 days of 24 hours, as PostgreSQL does: `1 mon` equals `30 days`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    pub months: i32,
    pub days: i32,
    pub micros: i64,
}

/// Arithmetic can fail, which the operators' traits do not allow for.
#[allow(clippy::should_implement_trait)]
impl Interval {
    pub fn new(months: i32, days: i32, micros: i64) -> Interval {
        Interval { months, days, micros }
    }

    /// From the stored form.
    #[inline]
    pub fn from_bytes(bytes: [u8; 16]) -> Interval {
        let [m0, m1, m2, m3, d0, d1, d2, d3, micros @ ..] = bytes;
        Interval {
            months: i32::from_le_bytes([m0, m1, m2, m3]),
            days: i32::from_le_bytes([d0, d1, d2, d3]),
            micros: i64::from_le_bytes(micros),
        }
    }

    #[inline]
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0..4].copy_from_slice(&self.months.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.days.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.micros.to_le_bytes());
        bytes
    }

    /// Microseconds in all, with months of 30 days of 24 hours.
    pub fn span(self) -> i128 {
        basalt_types::key::interval_span(&self.to_bytes())
    }

    #[cold]
    pub(crate) fn out_of_range() -> Error {
        Error::new("22008", "interval out of range")
    }

    fn checked(months: Option<i32>, days: Option<i32>, micros: Option<i64>) -> Result<Interval> {
        match (months, days, micros) {
            (Some(months), Some(days), Some(micros)) => Ok(Interval { months, days, micros }),
            _ => Err(Interval::out_of_range()),
        }
    }

    pub fn add(self, other: Interval) -> Result<Interval> {
        Interval::checked(
            self.months.checked_add(other.months),
            self.days.checked_add(other.days),
            self.micros.checked_add(other.micros),
        )
    }

    pub fn sub(self, other: Interval) -> Result<Interval> {
        Interval::checked(
            self.months.checked_sub(other.months),
            self.days.checked_sub(other.days),
            self.micros.checked_sub(other.micros),
        )
    }

    pub fn negate(self) -> Result<Interval> {
        Interval::checked(self.months.checked_neg(), self.days.checked_neg(), self.micros.checked_neg())
    }

    /// Fractions of months go to days, fractions of days to time.
    pub fn mul(self, factor: f64) -> Result<Interval> {
        self.scale(|part| part * factor)
    }

    pub fn div(self, divisor: f64) -> Result<Interval> {
        if divisor == 0.0 {
            return Err(Error::division_by_zero());
        }
        self.scale(|part| part / divisor)
    }

    fn scale(self, apply: impl Fn(f64) -> f64) -> Result<Interval> {
        let months = apply(f64::from(self.months));
        let days = apply(f64::from(self.days));
        let (whole_months, whole_days) = (to_i32(months.trunc())?, to_i32(days.trunc())?);
        // What months and days leave behind cascades down; rounded to microseconds to hide float noise.
        let month_remainder_days = round_to_micros((months - months.trunc()) * 30.0);
        let mut seconds_remainder =
            round_to_micros((days - days.trunc() + month_remainder_days - month_remainder_days.trunc()) * 86_400.0);
        let mut carried = month_remainder_days.trunc() as i32;
        if seconds_remainder.abs() >= 86_400.0 {
            let days = (seconds_remainder / 86_400.0) as i32;
            carried += days;
            seconds_remainder -= f64::from(days) * 86_400.0;
        }
        let micros = (apply(self.micros as f64) + seconds_remainder * MICROS_PER_SECOND as f64).round_ties_even();
        if micros.is_nan() || micros.abs() >= i64::MAX as f64 {
            return Err(Interval::out_of_range());
        }
        Interval::checked(Some(whole_months), whole_days.checked_add(carried), Some(micros as i64))
    }

    /// `justify_hours`: 24 hours become a day.
    pub fn justify_hours(self) -> Result<Interval> {
        let (mut days, mut micros) =
            (i64::from(self.days) + self.micros / MICROS_PER_DAY, self.micros % MICROS_PER_DAY);
        if days > 0 && micros < 0 {
            (days, micros) = (days - 1, micros + MICROS_PER_DAY);
        } else if days < 0 && micros > 0 {
            (days, micros) = (days + 1, micros - MICROS_PER_DAY);
        }
        Interval::checked(Some(self.months), i32::try_from(days).ok(), Some(micros))
    }

    /// `justify_days`: 30 days become a month.
    pub fn justify_days(self) -> Result<Interval> {
        let (mut months, mut days) = (i64::from(self.months) + i64::from(self.days / 30), self.days % 30);
        if months > 0 && days < 0 {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && days > 0 {
            (months, days) = (months + 1, days - 30);
        }
        Interval::checked(i32::try_from(months).ok(), Some(days), Some(self.micros))
    }

    /// `justify_interval`: both, with one sign throughout.
    pub fn justify(self) -> Result<Interval> {
        let mut days = i64::from(self.days) + self.micros / MICROS_PER_DAY;
        let mut micros = self.micros % MICROS_PER_DAY;
        let mut months = i64::from(self.months) + days / 30;
        days %= 30;
        if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
            (months, days) = (months - 1, days + 30);
        } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
            (months, days) = (months + 1, days - 30);
        }
        if days > 0 && micros < 0 {
            (days, micros) = (days - 1, micros + MICROS_PER_DAY);
        } else if days < 0 && micros > 0 {
            (days, micros) = (days + 1, micros - MICROS_PER_DAY);
        }
        Interval::checked(i32::try_from(months).ok(), i32::try_from(days).ok(), Some(micros))
    }
}

fn to_i32(value: f64) -> Result<i32> {
    if value >= f64::from(i32::MIN) && value <= f64::from(i32::MAX) {
        Ok(value as i32)
    } else {
        Err(Interval::out_of_range())
    }
}

fn round_to_micros(value: f64) -> f64 {
    (value * 1e6).round_ties_even() / 1e6
}

impl PartialEq for Interval {
    fn eq(&self, other: &Interval) -> bool {
        self.span() == other.span()
    }
}

impl Eq for Interval {}

impl PartialOrd for Interval {
    fn partial_cmp(&self, other: &Interval) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Interval {
    fn cmp(&self, other: &Interval) -> Ordering {
        self.span().cmp(&other.span())
    }
}

impl Hash for Interval {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.span().hash(state);
    }
}
