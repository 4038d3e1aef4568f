//! `interval` from text: PostgreSQL's units, SQL's `1-2 3 4:05:06`, ISO 8601's `P1Y2M3DT4H5M6S` and
//! `P0001-02-03T04:05:06` (manual, 8.5.4).

use super::Interval;
use super::iso::parse_iso;
use crate::context::IntervalStyle;
use crate::datetime::parse::split::{Field, Look};
use crate::datetime::parse::{SIGNIFICANT, fields};
use crate::datetime::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::error::{Error, Result};

/// What `INTERVAL '…' YEAR TO MONTH` and its like keep of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IntervalFields {
    All,
    Year,
    Month,
    YearToMonth,
    Day,
    DayToHour,
    DayToMinute,
    DayToSecond,
    Hour,
    HourToMinute,
    HourToSecond,
    Minute,
    MinuteToSecond,
    Second,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Microsecond,
    Millisecond,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    Decade,
    Century,
    Millennium,
}

impl Unit {
    fn parse(word: &str) -> Option<Unit> {
        Some(match word.get(..SIGNIFICANT).unwrap_or(word) {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => Unit::Millisecond,
            "s" | "sec" | "secs" | "second" | "seconds" => Unit::Second,
            "m" | "min" | "mins" | "minute" | "minutes" => Unit::Minute,
            "h" | "hr" | "hrs" | "hour" | "hours" => Unit::Hour,
            "d" | "day" | "days" => Unit::Day,
            "w" | "week" | "weeks" => Unit::Week,
            "mon" | "mons" | "month" | "months" => Unit::Month,
            "y" | "yr" | "yrs" | "year" | "years" => Unit::Year,
            "dec" | "decs" | "decade" | "decades" => Unit::Decade,
            "c" | "cent" | "century" | "centuries" => Unit::Century,
            "mil" | "mils" | "millennium" | "millennia" => Unit::Millennium,
            _ => return None,
        })
    }
}

/// Why text is no interval.
pub(super) enum Failure {
    Syntax,
    Overflow,
    /// All fields are good, but their months are too many.
    Months,
}

pub(super) type Parsed<T> = std::result::Result<T, Failure>;

/// A number as written: `whole + fraction`, the fraction with the number's sign.
#[derive(Clone, Copy)]
pub(super) struct Number {
    pub whole: i64,
    pub fraction: f64,
}

#[derive(Default)]
pub(super) struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

/// Reads an interval. `style` matters for one thing: in `SqlStandard` a leading minus covers all fields.
pub fn parse_interval(text: &str, fields: IntervalFields, style: IntervalStyle) -> Result<Interval> {
    let trimmed = text.trim();
    let parsed = match trimmed.strip_prefix('P') {
        Some(duration) if !duration.is_empty() => parse_iso(duration),
        _ => parse_units(trimmed, fields, style),
    };
    match parsed {
        Ok(value) => Ok(fields.keep(value)),
        Err(Failure::Syntax) => Err(Error::invalid_datetime("interval", text)),
        Err(Failure::Months) => Err(Interval::out_of_range()),
        Err(Failure::Overflow) => Err(Error::new("22015", format!("interval field value out of range: \"{text}\""))),
    }
}

impl IntervalFields {
    /// The unit of a number that has none.
    fn default_unit(self) -> Unit {
        match self {
            IntervalFields::Year => Unit::Year,
            IntervalFields::Month | IntervalFields::YearToMonth => Unit::Month,
            IntervalFields::Day => Unit::Day,
            IntervalFields::Hour | IntervalFields::DayToHour => Unit::Hour,
            IntervalFields::Minute | IntervalFields::DayToMinute | IntervalFields::HourToMinute => Unit::Minute,
            _ => Unit::Second,
        }
    }

    /// Drops what is finer than the least field.
    pub fn keep(self, value: Interval) -> Interval {
        let cut = |unit: i64| value.micros / unit * unit;
        match self {
            IntervalFields::Year => Interval::new(value.months / 12 * 12, 0, 0),
            IntervalFields::Month | IntervalFields::YearToMonth => Interval::new(value.months, 0, 0),
            IntervalFields::Day => Interval::new(value.months, value.days, 0),
            IntervalFields::Hour | IntervalFields::DayToHour => {
                Interval::new(value.months, value.days, cut(MICROS_PER_HOUR))
            }
            IntervalFields::Minute | IntervalFields::DayToMinute | IntervalFields::HourToMinute => {
                Interval::new(value.months, value.days, cut(MICROS_PER_MINUTE))
            }
            _ => value,
        }
    }
}

impl Sum {
    pub(super) fn finish(self) -> Parsed<Interval> {
        let months = i32::try_from(self.months).map_err(|_| Failure::Months)?;
        let days = i32::try_from(self.days).map_err(|_| Failure::Overflow)?;
        Ok(Interval::new(months, days, self.micros))
    }

    pub(super) fn add_micros(&mut self, micros: f64) -> Parsed<()> {
        let rounded = micros.round_ties_even();
        if rounded.abs() >= i64::MAX as f64 {
            return Err(Failure::Overflow);
        }
        self.micros = self.micros.checked_add(rounded as i64).ok_or(Failure::Overflow)?;
        Ok(())
    }

    pub(super) fn add_whole_micros(&mut self, count: i64, unit: i64) -> Parsed<()> {
        let micros = count.checked_mul(unit).ok_or(Failure::Overflow)?;
        self.micros = self.micros.checked_add(micros).ok_or(Failure::Overflow)?;
        Ok(())
    }

    /// A fraction of a day goes to time.
    pub(super) fn add_days(&mut self, days: i64, fraction: f64) -> Parsed<()> {
        self.days = self.days.checked_add(days).ok_or(Failure::Overflow)?;
        self.days = self.days.checked_add(fraction.trunc() as i64).ok_or(Failure::Overflow)?;
        self.add_micros(fraction.fract() * MICROS_PER_DAY as f64)
    }

    pub(super) fn add_months(&mut self, count: i64, months_per_unit: i64) -> Parsed<()> {
        let months = count.checked_mul(months_per_unit).ok_or(Failure::Overflow)?;
        self.months = self.months.checked_add(months).ok_or(Failure::Overflow)?;
        Ok(())
    }

    pub(super) fn add(&mut self, number: Number, unit: Unit) -> Parsed<()> {
        let Number { whole, fraction } = number;
        let micros_per_unit = match unit {
            Unit::Microsecond => 1,
            Unit::Millisecond => 1_000,
            Unit::Second => MICROS_PER_SECOND,
            Unit::Minute => MICROS_PER_MINUTE,
            Unit::Hour => MICROS_PER_HOUR,
            Unit::Day => return self.add_days(whole, fraction),
            Unit::Week => {
                return self.add_days(whole.checked_mul(7).ok_or(Failure::Overflow)?, fraction * 7.0);
            }
            Unit::Month => {
                self.add_months(whole, 1)?;
                return self.add_days(0, fraction * 30.0);
            }
            Unit::Year | Unit::Decade | Unit::Century | Unit::Millennium => {
                let years = match unit {
                    Unit::Year => 1,
                    Unit::Decade => 10,
                    Unit::Century => 100,
                    _ => 1000,
                };
                self.add_months(whole, 12 * years)?;
                return self.add_months((fraction * (12 * years) as f64).round_ties_even() as i64, 1);
            }
        };
        self.add_whole_micros(whole, micros_per_unit)?;
        self.add_micros(fraction * micros_per_unit as f64)
    }
}

/// A unit that numbers have none of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// As the interval's fields say.
    Default,
    Unit(Unit),
    Nothing,
}

fn parse_units(text: &str, range: IntervalFields, style: IntervalStyle) -> Parsed<Interval> {
    let fields = fields(text).ok_or(Failure::Syntax)?;
    let mut sum = Sum::default();
    let mut expected = Expected::Default;
    let mut ago = false;
    let mut seen = 0u32;
    // Every part may be given once.
    let mut once = |units: &[Unit]| {
        let mask = units.iter().fold(0, |mask, unit| mask | 1 << *unit as u32);
        let repeated = seen & mask != 0;
        seen |= mask;
        if repeated { Err(Failure::Syntax) } else { Ok(()) }
    };
    const SECONDS: [Unit; 3] = [Unit::Second, Unit::Millisecond, Unit::Microsecond];
    let of_clock = [&[Unit::Hour, Unit::Minute], &SECONDS[..]].concat();
    // From the end, so that a number knows its unit, and one before a clock time is days.
    for Field { look, text } in fields.iter().rev() {
        let negative = text.starts_with('-');
        let digits = text.trim_start_matches(['+', '-']);
        match look {
            Look::Word | Look::SignedWord if text == "ago" => {
                ago = true;
                expected = Expected::Nothing;
            }
            Look::Word | Look::SignedWord => expected = Expected::Unit(Unit::parse(text).ok_or(Failure::Syntax)?),
            Look::Clock | Look::Signed if text.contains(':') => {
                let micros = parse_clock(digits, range == IntervalFields::MinuteToSecond)?;
                once(&of_clock)?;
                sum.add_whole_micros(if negative { -micros } else { micros }, 1)?;
                expected = Expected::Unit(Unit::Day);
            }
            _ => {
                let unit = match expected {
                    Expected::Default => range.default_unit(),
                    Expected::Unit(unit) => unit,
                    Expected::Nothing => return Err(Failure::Syntax),
                };
                expected = Expected::Unit(unit);
                if let Some((years, months)) = digits.split_once('-') {
                    let months = whole(months)?;
                    if months > 11 {
                        return Err(Failure::Overflow);
                    }
                    let total = whole(years)?.checked_mul(12).and_then(|total| total.checked_add(months));
                    let total = total.ok_or(Failure::Overflow)?;
                    once(&[Unit::Month])?;
                    sum.add_months(if negative { -total } else { total }, 1)?;
                    expected = Expected::Unit(Unit::Month);
                    continue;
                }
                let number = parse_number(digits, negative)?;
                once(if unit == Unit::Second && number.fraction != 0.0 {
                    &SECONDS
                } else {
                    std::slice::from_ref(&unit)
                })?;
                sum.add(number, unit)?;
                if unit == Unit::Hour {
                    expected = Expected::Unit(Unit::Day);
                }
            }
        }
    }
    if seen == 0 {
        return Err(Failure::Syntax);
    }
    // In SQL's style a minus before all is one of all, if nothing else has a sign.
    let has_sign = |field: &Field| field.text.starts_with(['+', '-']);
    if style == IntervalStyle::SqlStandard
        && fields.first().is_some_and(|first| first.text.starts_with('-'))
        && !fields[1..].iter().any(has_sign)
    {
        sum = Sum { months: -sum.months.abs(), days: -sum.days.abs(), micros: -sum.micros.abs() };
    }
    if ago {
        let negate = |part: i64| part.checked_neg().ok_or(Failure::Overflow);
        sum = Sum { months: negate(sum.months)?, days: negate(sum.days)?, micros: negate(sum.micros)? };
    }
    sum.finish()
}

fn whole(digits: &str) -> Parsed<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Failure::Syntax);
    }
    digits.parse().map_err(|_| Failure::Overflow)
}

/// `12`, `12.5` or `.5`, without its sign.
fn parse_number(text: &str, negative: bool) -> Parsed<Number> {
    let (before, after) = text.split_once('.').unwrap_or((text, ""));
    if (before.is_empty() && after.is_empty()) || !after.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Failure::Syntax);
    }
    let units = if before.is_empty() { 0 } else { whole(before)? };
    let fraction = if after.is_empty() { 0.0 } else { format!("0.{after}").parse().map_err(|_| Failure::Syntax)? };
    Ok(if negative { Number { whole: -units, fraction: -fraction } } else { Number { whole: units, fraction } })
}

/// Microseconds of `h:m`, `h:m:s` or `m:s.fraction`; with `minutes_first` two parts are minutes and seconds.
fn parse_clock(text: &str, minutes_first: bool) -> Parsed<i64> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [minutes, seconds] if minutes_first || seconds.contains('.') => ("0", minutes, seconds),
        [hours, minutes] => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Failure::Syntax),
    };
    let part = |digits: &str| if digits.is_empty() { Ok(0) } else { whole(digits) };
    let (hours, minutes) = (part(hours)?, part(minutes)?);
    let seconds = if seconds.is_empty() { Number { whole: 0, fraction: 0.0 } } else { parse_number(seconds, false)? };
    if minutes > 59 || seconds.whole > 60 {
        return Err(Failure::Overflow);
    }
    let mut sum = Sum::default();
    sum.add_whole_micros(hours, MICROS_PER_HOUR)?;
    sum.add_whole_micros(minutes, MICROS_PER_MINUTE)?;
    sum.add(seconds, Unit::Second)?;
    Ok(sum.micros)
}
