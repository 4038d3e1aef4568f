//! `extract`, `date_part` and `date_trunc`.

use super::*;
use crate::error::{Error, Result};
use crate::interval::Interval;
use crate::numeric::Numeric;
use std::borrow::Cow;

/// A part of a date or time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    Microseconds,
    Milliseconds,
    Second,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Quarter,
    Year,
    Decade,
    Century,
    Millennium,
    Dow,
    IsoDow,
    Doy,
    IsoYear,
    Julian,
    Epoch,
    Timezone,
    TimezoneHour,
    TimezoneMinute,
}

impl Field {
    /// A field by name; 22023 as `unit "x" not recognized for type date`.
    pub fn parse(name: &str, type_name: &str) -> Result<Field> {
        // Asked for each row, mostly of a name in lower case.
        let lower = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => Cow::Owned(name.to_ascii_lowercase()),
            false => Cow::Borrowed(name),
        };
        Ok(match &*lower {
            "microseconds" | "microsecond" | "us" | "usec" | "usecs" | "useconds" => Field::Microseconds,
            "milliseconds" | "millisecond" | "ms" | "msec" | "msecs" | "mseconds" => Field::Milliseconds,
            "second" | "seconds" | "sec" | "secs" | "s" => Field::Second,
            "minute" | "minutes" | "min" | "mins" | "m" => Field::Minute,
            "hour" | "hours" | "hr" | "hrs" | "h" => Field::Hour,
            "day" | "days" | "d" => Field::Day,
            "week" | "weeks" | "w" => Field::Week,
            "month" | "months" | "mon" | "mons" => Field::Month,
            "quarter" | "qtr" => Field::Quarter,
            "year" | "years" | "yr" | "yrs" | "y" => Field::Year,
            "decade" | "decades" | "dec" | "decs" => Field::Decade,
            "century" | "centuries" | "cent" | "c" => Field::Century,
            "millennium" | "millennia" | "mil" | "mils" => Field::Millennium,
            "dow" => Field::Dow,
            "isodow" => Field::IsoDow,
            "doy" => Field::Doy,
            "isoyear" => Field::IsoYear,
            "julian" | "j" | "jd" => Field::Julian,
            "epoch" => Field::Epoch,
            "timezone" => Field::Timezone,
            "timezone_hour" | "timezone_h" => Field::TimezoneHour,
            "timezone_minute" | "timezone_m" => Field::TimezoneMinute,
            _ => return Err(Error::invalid_parameter(format!("unit \"{lower}\" not recognized for type {type_name}"))),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Field::Microseconds => "microseconds",
            Field::Milliseconds => "milliseconds",
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::Day => "day",
            Field::Week => "week",
            Field::Month => "month",
            Field::Quarter => "quarter",
            Field::Year => "year",
            Field::Decade => "decade",
            Field::Century => "century",
            Field::Millennium => "millennium",
            Field::Dow => "dow",
            Field::IsoDow => "isodow",
            Field::Doy => "doy",
            Field::IsoYear => "isoyear",
            Field::Julian => "julian",
            Field::Epoch => "epoch",
            Field::Timezone => "timezone",
            Field::TimezoneHour => "timezone_hour",
            Field::TimezoneMinute => "timezone_minute",
        }
    }

    /// What `date_trunc` says of fields that are no units.
    #[cold]
    fn not_truncated(self, type_name: &str) -> Error {
        match self {
            Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute => self.unsupported(type_name),
            _ => Error::invalid_parameter(format!("unit \"{}\" not recognized for type {type_name}", self.name())),
        }
    }

    #[cold]
    pub(super) fn unsupported(self, type_name: &str) -> Error {
        Error::not_supported(format!("unit \"{}\" not supported for type {type_name}", self.name()))
    }
}

/// Year, century and the like of an astronomical year, as they are counted: there is no year 0.
fn year_field(field: Field, year: i32) -> i64 {
    let year = i64::from(year);
    match field {
        Field::Year | Field::IsoYear => {
            if year > 0 {
                year
            } else {
                year - 1
            }
        }
        Field::Decade => {
            if year >= 0 {
                year / 10
            } else {
                -((8 - (year - 1)) / 10)
            }
        }
        Field::Century => {
            if year > 0 {
                (year + 99) / 100
            } else {
                -((99 - (year - 1)) / 100)
            }
        }
        _ => {
            if year > 0 {
                (year + 999) / 1000
            } else {
                -((999 - (year - 1)) / 1000)
            }
        }
    }
}

/// Fields of a clock time; seconds with the decimals that PostgreSQL gives them.
pub(super) fn clock_field(field: Field, time: i64) -> Option<Numeric> {
    Some(Numeric::from_scaled(i128::from(clock_units(field, time)?), Part(field).scale().into()))
}

/// The same in units of its scale.
#[inline(always)]
fn clock_units(field: Field, time: i64) -> Option<i64> {
    Some(match field {
        Field::Microseconds | Field::Milliseconds | Field::Second => time % MICROS_PER_MINUTE,
        Field::Minute => time / MICROS_PER_MINUTE % 60,
        Field::Hour => time / MICROS_PER_HOUR,
        _ => return None,
    })
}

/// Fields of a calendar day.
#[inline(always)]
fn day_field(field: Field, days: i64) -> Option<i64> {
    let (year, month, day) = civil_from_days(days);
    Some(match field {
        Field::Day => i64::from(day),
        Field::Month => i64::from(month),
        Field::Quarter => i64::from((month - 1) / 3 + 1),
        Field::Year | Field::Decade | Field::Century | Field::Millennium => year_field(field, year),
        Field::Dow => i64::from(iso_weekday(days) % 7),
        Field::IsoDow => i64::from(iso_weekday(days)),
        Field::Doy => i64::from(day_of_year(days)),
        Field::Week => i64::from(iso_week(days).1),
        Field::IsoYear => year_field(field, iso_week(days).0),
        Field::Julian => days - i64::from(DATE_MIN),
        _ => return None,
    })
}

/// Whether a field of infinite dates and timestamps is infinite: those are that grow for ever, others are null.
fn is_endless(field: Field) -> bool {
    use Field::*;
    matches!(field, Year | Decade | Century | Millennium | Julian | IsoYear | Epoch)
}

/// What an infinite date or timestamp has.
fn infinite_field(field: Field, negative: bool) -> Option<Numeric> {
    is_endless(field).then_some(if negative { Numeric::NEG_INFINITY } else { Numeric::INFINITY })
}

/// A field of timestamps without zone whose values, but for those of infinite ones, are integers of one scale.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part(Field);

impl Part {
    /// `None` where `extract` fails, or gives fractions that end nowhere.
    pub fn parse(name: &str) -> Option<Part> {
        let field = Field::parse(name, "timestamp without time zone").ok()?;
        let is_known = field == Field::Epoch || field != Field::Julian && field_of(field, 0).is_some();
        is_known.then_some(Part(field))
    }

    /// Digits behind the point.
    pub fn scale(self) -> u8 {
        match self.0 {
            Field::Milliseconds => 3,
            Field::Second | Field::Epoch => 6,
            _ => 0,
        }
    }

    /// Whether infinite timestamps have an infinite one; otherwise they have none.
    pub fn is_endless(self) -> bool {
        is_endless(self.0)
    }

    /// Of each timestamp, in units of the scale; of infinite ones anything.
    pub fn values(self, timestamps: &[i64]) -> Vec<i64> {
        // A loop for each, in which the field is a constant.
        macro_rules! of {
            ($($field:ident)*) => {
                match self.0 {
                    $(Field::$field => timestamps.iter().map(|at| field_of(Field::$field, *at).unwrap_or(0)).collect(),)*
                    _ => timestamps.to_vec(),
                }
            };
        }
        of!(Microseconds Milliseconds Second Minute Hour Day Week Month Quarter Year Decade Century Millennium
            Dow IsoDow Doy IsoYear)
    }
}

/// A field of a timestamp's clock or day, in units of its scale.
#[inline(always)]
fn field_of(field: Field, micros: i64) -> Option<i64> {
    clock_units(field, micros.rem_euclid(MICROS_PER_DAY))
        .or_else(|| day_field(field, micros.div_euclid(MICROS_PER_DAY)))
}

/// `extract(field FROM date)`.
pub fn extract_date(field: Field, days: i32) -> Result<Option<Numeric>> {
    let known = day_field(field, 0).is_some() || field == Field::Epoch;
    if !known {
        return Err(field.unsupported("date"));
    }
    if !is_finite_date(days) {
        return Ok(infinite_field(field, days < 0));
    }
    Ok(Some(match day_field(field, i64::from(days)) {
        Some(value) => Numeric::from(value),
        None => Numeric::from(i64::from(days) * 86_400),
    }))
}

/// `extract(field FROM time)`.
pub fn extract_time(field: Field, micros: i64) -> Result<Option<Numeric>> {
    match field {
        Field::Epoch => Ok(Some(Numeric::from_scaled(i128::from(micros), 6))),
        field => clock_field(field, micros).map(Some).ok_or_else(|| field.unsupported("time without time zone")),
    }
}

/// `extract(field FROM timestamp)`. `micros` is local time, or UTC with its zone.
pub fn extract_timestamp(field: Field, micros: i64, zone: Option<&TimeZone>) -> Result<Option<Numeric>> {
    if !is_finite_timestamp(micros) {
        return Ok(infinite_field(field, micros < 0));
    }
    let offset_field = matches!(field, Field::Timezone | Field::TimezoneHour | Field::TimezoneMinute);
    if offset_field && zone.is_none() {
        return Err(field.unsupported("timestamp without time zone"));
    }
    if field == Field::Epoch {
        return Ok(Some(Numeric::from_scaled(i128::from(micros), 6)));
    }
    let offset = zone.map_or(0, |zone| zone.offset_at(micros));
    let local = micros.saturating_add(i64::from(offset) * MICROS_PER_SECOND);
    let (days, time) = (local.div_euclid(MICROS_PER_DAY), local.rem_euclid(MICROS_PER_DAY));
    Ok(Some(match field {
        Field::Timezone => Numeric::from(offset),
        Field::TimezoneHour => Numeric::from(offset / 3600),
        Field::TimezoneMinute => Numeric::from(offset / 60 % 60),
        Field::Julian => {
            let fraction = Numeric::from(time).div(&Numeric::from(MICROS_PER_DAY))?;
            Numeric::from(days - i64::from(DATE_MIN)).add(&fraction)?
        }
        field => match clock_field(field, time) {
            Some(value) => value,
            None => Numeric::from(day_field(field, days).ok_or_else(|| field.unsupported("timestamp"))?),
        },
    }))
}

/// `extract(field FROM interval)`.
pub fn extract_interval(field: Field, interval: Interval) -> Result<Option<Numeric>> {
    let (years, months) = (i64::from(interval.months / 12), i64::from(interval.months % 12));
    Ok(Some(match field {
        Field::Day => Numeric::from(interval.days),
        Field::Month => Numeric::from(months),
        Field::Quarter => Numeric::from(months / 3 + 1),
        Field::Year => Numeric::from(years),
        Field::Decade => Numeric::from(years / 10),
        Field::Century => Numeric::from(years / 100),
        Field::Millennium => Numeric::from(years / 1000),
        Field::Epoch => {
            // A year has 365.25 days here, a month 30.
            let quarter_days = 1461 * years + 120 * months + 4 * i64::from(interval.days);
            let micros = i128::from(quarter_days) * i128::from(MICROS_PER_DAY / 4) + i128::from(interval.micros);
            Numeric::from_scaled(micros, 6)
        }
        field => return clock_field(field, interval.micros).map(Some).ok_or_else(|| field.unsupported("interval")),
    }))
}

/// `date_trunc(field, timestamp)`. `micros` is local time, or UTC with its zone.
pub fn date_trunc(field: Field, micros: i64, zone: Option<&TimeZone>) -> Result<i64> {
    let type_name = if zone.is_some() { "timestamp with time zone" } else { "timestamp without time zone" };
    if !is_finite_timestamp(micros) {
        return Ok(micros);
    }
    let offset = zone.map_or(0, |zone| zone.offset_at(micros));
    let local = micros.saturating_add(i64::from(offset) * MICROS_PER_SECOND);
    let unit = match field {
        Field::Microseconds => Some(1),
        Field::Milliseconds => Some(1_000),
        Field::Second => Some(MICROS_PER_SECOND),
        Field::Minute => Some(MICROS_PER_MINUTE),
        Field::Hour => Some(MICROS_PER_HOUR),
        _ => None,
    };
    if let Some(unit) = unit {
        let truncated = micros - local.rem_euclid(unit);
        return if truncated >= TIMESTAMP_MIN { Ok(truncated) } else { Err(Error::datetime_out_of_range("timestamp")) };
    }
    let days = local.div_euclid(MICROS_PER_DAY);
    let (year, month, _) = civil_from_days(days);
    let first = match field {
        Field::Day => days,
        Field::Week => days - i64::from(iso_weekday(days)) + 1,
        Field::Month => days_from_civil(year, month, 1),
        Field::Quarter => days_from_civil(year, (month - 1) / 3 * 3 + 1, 1),
        Field::Year => days_from_civil(year, 1, 1),
        Field::Decade => {
            let decade = if year > 0 { year / 10 * 10 } else { -((8 - (year - 1)) / 10) * 10 };
            days_from_civil(decade, 1, 1)
        }
        Field::Century | Field::Millennium => {
            let span = if field == Field::Century { 100 } else { 1000 };
            let start = if year > 0 {
                (year + span - 1) / span * span - (span - 1)
            } else {
                -((span - 1 - (year - 1)) / span) * span + 1
            };
            days_from_civil(start, 1, 1)
        }
        field => return Err(field.not_truncated(type_name)),
    };
    let truncated = first
        .checked_mul(MICROS_PER_DAY)
        .filter(|start| *start >= TIMESTAMP_MIN)
        .ok_or_else(|| Error::datetime_out_of_range("timestamp"))?;
    Ok(zone.map_or(truncated, |zone| zone.to_utc(truncated)))
}

/// `date_trunc(field, interval)`.
pub fn trunc_interval(field: Field, interval: Interval) -> Result<Interval> {
    let cut_months = |unit: i32| Interval::new(interval.months / unit * unit, 0, 0);
    let cut_micros = |unit: i64| Interval::new(interval.months, interval.days, interval.micros / unit * unit);
    Ok(match field {
        Field::Millennium => cut_months(12_000),
        Field::Century => cut_months(1_200),
        Field::Decade => cut_months(120),
        Field::Year => cut_months(12),
        Field::Quarter => cut_months(3),
        Field::Month => cut_months(1),
        Field::Day => Interval::new(interval.months, interval.days, 0),
        Field::Hour => cut_micros(MICROS_PER_HOUR),
        Field::Minute => cut_micros(MICROS_PER_MINUTE),
        Field::Second => cut_micros(MICROS_PER_SECOND),
        Field::Milliseconds => cut_micros(1_000),
        Field::Microseconds => interval,
        Field::Week => {
            return Err(field.unsupported("interval").with_detail("Months usually have fractional weeks."));
        }
        field => return Err(field.not_truncated("interval")),
    })
}
