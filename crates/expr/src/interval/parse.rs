//! `interval` from text: PostgreSQL's units, SQL's `1-2 3 4:05:06`, ISO 8601's `P1Y2M3DT4H5M6S` and
//! `P0001-02-03T04:05:06` (manual, 8.5.4).

use super::Interval;
use crate::context::IntervalStyle;
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
enum Unit {
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
        Some(match word {
            "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecond" | "microseconds" => Unit::Microsecond,
            "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecond" | "milliseconds" => Unit::Millisecond,
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
enum Failure {
    Syntax,
    Overflow,
    /// All fields are good, but their months are too many.
    Months,
}

type Parsed<T> = std::result::Result<T, Failure>;

/// A number as written: `whole + fraction`, the fraction with the number's sign.
#[derive(Clone, Copy)]
struct Number {
    whole: i64,
    fraction: f64,
}

enum Token {
    Number(Number),
    /// `years-months`.
    YearMonth(i64),
    /// Microseconds of `h:m[:s]`, and the sign as written.
    Clock(i64),
    Unit(Unit),
    Ago,
}

#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    micros: i64,
}

/// Reads an interval. `style` matters for one thing: in `SqlStandard` a leading minus covers all fields.
pub fn parse_interval(text: &str, fields: IntervalFields, style: IntervalStyle) -> Result<Interval> {
    let trimmed = text.trim();
    let parsed = if trimmed.starts_with('P') && trimmed.len() > 1 {
        parse_iso(&trimmed[1..])
    } else {
        parse_units(trimmed, fields, style)
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
    fn finish(self) -> Parsed<Interval> {
        let months = i32::try_from(self.months).map_err(|_| Failure::Months)?;
        let days = i32::try_from(self.days).map_err(|_| Failure::Overflow)?;
        Ok(Interval::new(months, days, self.micros))
    }

    fn add_micros(&mut self, micros: f64) -> Parsed<()> {
        let rounded = micros.round_ties_even();
        if rounded.abs() >= i64::MAX as f64 {
            return Err(Failure::Overflow);
        }
        self.micros = self.micros.checked_add(rounded as i64).ok_or(Failure::Overflow)?;
        Ok(())
    }

    fn add_whole_micros(&mut self, count: i64, unit: i64) -> Parsed<()> {
        let micros = count.checked_mul(unit).ok_or(Failure::Overflow)?;
        self.micros = self.micros.checked_add(micros).ok_or(Failure::Overflow)?;
        Ok(())
    }

    /// A fraction of a day goes to time.
    fn add_days(&mut self, days: i64, fraction: f64) -> Parsed<()> {
        self.days = self.days.checked_add(days).ok_or(Failure::Overflow)?;
        self.days = self.days.checked_add(fraction.trunc() as i64).ok_or(Failure::Overflow)?;
        self.add_micros(fraction.fract() * MICROS_PER_DAY as f64)
    }

    fn add_months(&mut self, count: i64, months_per_unit: i64) -> Parsed<()> {
        let months = count.checked_mul(months_per_unit).ok_or(Failure::Overflow)?;
        self.months = self.months.checked_add(months).ok_or(Failure::Overflow)?;
        Ok(())
    }

    fn add(&mut self, number: Number, unit: Unit) -> Parsed<()> {
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

fn parse_units(text: &str, fields: IntervalFields, style: IntervalStyle) -> Parsed<Interval> {
    let (tokens, leading_minus) = tokenize(text)?;
    let sql_negative = style == IntervalStyle::SqlStandard && leading_minus;
    let mut sum = Sum::default();
    let mut unit = None;
    let mut ago = false;
    let mut values = 0;
    let mut seen = 0u32;
    // Every field may be given once.
    let mut once = |units: &[Unit]| {
        let mask = units.iter().fold(0, |mask, unit| mask | 1 << *unit as u32);
        let repeated = seen & mask != 0;
        seen |= mask;
        if repeated { Err(Failure::Syntax) } else { Ok(()) }
    };
    // From the end, so that a number knows its unit, and one before a clock time is days.
    for token in tokens.into_iter().rev() {
        match token {
            Token::Ago if values == 0 && !ago => ago = true,
            Token::Unit(next) if unit.is_none_or(|known: (Unit, bool)| !known.1) => unit = Some((next, true)),
            Token::Ago | Token::Unit(_) => return Err(Failure::Syntax),
            Token::Number(number) => {
                let (of, _) = unit.take().unwrap_or((fields.default_unit(), false));
                once(&[of])?;
                sum.add(number, of)?;
                values += 1;
                // A second number without a unit has no meaning.
                unit = None;
            }
            Token::YearMonth(months) => {
                once(&[Unit::Year, Unit::Month])?;
                sum.add_months(months, 1)?;
                values += 1;
            }
            Token::Clock(micros) => {
                once(&[Unit::Hour, Unit::Minute, Unit::Second])?;
                sum.add_whole_micros(micros, 1)?;
                unit = Some((Unit::Day, false));
                values += 1;
            }
        }
    }
    if values == 0 || unit.is_some_and(|(_, written)| written) {
        return Err(Failure::Syntax);
    }
    if sql_negative && values > 1 {
        sum = Sum { months: -sum.months.abs(), days: -sum.days.abs(), micros: -sum.micros.abs() };
    }
    if ago {
        let negate = |part: i64| part.checked_neg().ok_or(Failure::Overflow);
        sum = Sum { months: negate(sum.months)?, days: negate(sum.days)?, micros: negate(sum.micros)? };
    }
    sum.finish()
}

fn tokenize(text: &str) -> Parsed<(Vec<Token>, bool)> {
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.trim_start_matches(['@', ' ']);
    let leading_minus = rest.starts_with('-');
    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let first = rest.as_bytes()[0];
        if first.is_ascii_whitespace() || first == b',' {
            rest = &rest[1..];
        } else if first.is_ascii_alphabetic() {
            let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
            let word = &rest[..end];
            tokens.push(match word {
                "ago" => Token::Ago,
                word => Token::Unit(Unit::parse(word).ok_or(Failure::Syntax)?),
            });
            rest = rest[end..].trim_start_matches('.');
        } else {
            let sign = usize::from(matches!(first, b'+' | b'-'));
            let body = rest[sign..].trim_start();
            let is_field = |c: char| c.is_ascii_digit() || matches!(c, '.' | ':');
            let mut end = body.find(|c| !is_field(c)).unwrap_or(body.len());
            // The months of `1-2` belong to the field.
            if let [b'-', digit, ..] = body.as_bytes()[end..]
                && digit.is_ascii_digit()
            {
                end += 1 + body[end + 1..].bytes().take_while(u8::is_ascii_digit).count();
            }
            if end == 0 {
                return Err(Failure::Syntax);
            }
            tokens.push(parse_field(&body[..end], first == b'-')?);
            rest = &body[end..];
        }
    }
    Ok((tokens, leading_minus))
}

fn parse_field(field: &str, negative: bool) -> Parsed<Token> {
    let sign = if negative { -1 } else { 1 };
    if field.contains(':') {
        return Ok(Token::Clock(sign * parse_clock(field)?));
    }
    if let Some((years, months)) = field.split_once('-') {
        let (years, months) = (whole(years)?, whole(months)?);
        if months > 11 {
            return Err(Failure::Overflow);
        }
        let total = years.checked_mul(12).and_then(|total| total.checked_add(months)).ok_or(Failure::Overflow)?;
        return Ok(Token::YearMonth(sign * total));
    }
    Ok(Token::Number(parse_number(field, negative)?))
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

/// Microseconds of `h:m`, `h:m:s` or `m:s.fraction`.
fn parse_clock(text: &str) -> Parsed<i64> {
    let parts: Vec<&str> = text.split(':').collect();
    let (hours, minutes, seconds) = match parts[..] {
        [minutes, seconds] if seconds.contains('.') => ("0", minutes, seconds),
        [hours, minutes] => (hours, minutes, "0"),
        [hours, minutes, seconds] => (hours, minutes, seconds),
        _ => return Err(Failure::Syntax),
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    let seconds = parse_number(seconds, false)?;
    if minutes > 59 || seconds.whole > 60 {
        return Err(Failure::Overflow);
    }
    let mut sum = Sum::default();
    sum.add_whole_micros(hours, MICROS_PER_HOUR)?;
    sum.add_whole_micros(minutes, MICROS_PER_MINUTE)?;
    sum.add(seconds, Unit::Second)?;
    Ok(sum.micros)
}

/// What follows the `P` of an ISO 8601 duration.
fn parse_iso(text: &str) -> Parsed<Interval> {
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return Err(Failure::Syntax),
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut sum = Sum::default();
    if date.is_empty() && time.is_none() {
        return Err(Failure::Syntax);
    }
    if !date.is_empty() && date.as_bytes()[1..].contains(&b'-') && !date.ends_with(|c: char| c.is_ascii_alphabetic()) {
        let mut parts = date.splitn(3, '-');
        let mut next = || parts.next().map_or(Ok(0), whole);
        sum.add_months(next()?, 12)?;
        sum.add_months(next()?, 1)?;
        sum.add_days(next()?, 0.0)?;
    } else {
        designated(date, &mut sum, |designator| match designator {
            'Y' => Some(Unit::Year),
            'M' => Some(Unit::Month),
            'W' => Some(Unit::Week),
            'D' => Some(Unit::Day),
            _ => None,
        })?;
    }
    match time {
        Some(time) if time.contains(':') => sum.add_whole_micros(parse_clock(time)?, 1)?,
        Some(time) => designated(time, &mut sum, |designator| match designator {
            'H' => Some(Unit::Hour),
            'M' => Some(Unit::Minute),
            'S' => Some(Unit::Second),
            _ => None,
        })?,
        None => {}
    }
    sum.finish()
}

/// Adds `1Y2M…`.
fn designated(mut text: &str, sum: &mut Sum, unit_of: impl Fn(char) -> Option<Unit>) -> Parsed<()> {
    while !text.is_empty() {
        let end = text.find(|c: char| c.is_ascii_alphabetic()).ok_or(Failure::Syntax)?;
        let designator = text[end..].chars().next().ok_or(Failure::Syntax)?;
        let number = &text[..end];
        let negative = number.starts_with('-');
        let number = parse_number(number.trim_start_matches(['-', '+']), negative)?;
        sum.add(number, unit_of(designator).ok_or(Failure::Syntax)?)?;
        text = &text[end + 1..];
    }
    Ok(())
}
