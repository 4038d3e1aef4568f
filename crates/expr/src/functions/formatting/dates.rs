//! Dates, times and intervals by a template (manual table 9.27): `to_char(timestamp, text)`.

use super::{Modifiers, Node, nodes, ordinal_suffix};
use crate::datetime::{
    Civil, TimeZone, day_of_year, days_from_iso_week, is_finite_timestamp, iso_week, iso_weekday, utc_to_local,
};
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::interval::Interval;

/// Longer ones before those that they begin with.
pub(super) const PATTERNS: [&str; 112] = [
    "A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "Day", "Dy", "D", "FF1", "FF2", "FF3",
    "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I", "J", "MI", "MM",
    "MONTH", "MON", "MS", "Month", "Mon", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ",
    "US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y", "a.d.", "a.m.", "ad", "am", "b.c.", "bc", "cc", "day", "ddd",
    "dd", "dy", "d", "ff1", "ff2", "ff3", "ff4", "ff5", "ff6", "fx", "hh24", "hh12", "hh", "iddd", "id", "iw", "iyyy",
    "iyy", "iy", "i", "j", "mi", "mm", "month", "mon", "ms", "of", "p.m.", "pm", "q", "rm", "sssss", "ssss", "ss",
    "tzh", "tzm", "tz", "us", "ww", "w", "y,yyy", "yyyy", "yyy", "yy", "y",
];

pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// From Sunday on.
pub(super) const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// From December back.
pub(super) const ROMAN: [&str; 12] = ["XII", "XI", "X", "IX", "VIII", "VII", "VI", "V", "IV", "III", "II", "I"];

/// Width of the padded names of months and days.
const NAME_WIDTH: usize = 9;

pub(super) fn bind(args: &str) -> Option<Kernel> {
    Some(match args {
        "timestamp,text" => kernel!(|at: Micros, template: Txt| -> Opt<Txt> { of_timestamp(at, template, None) }),
        "timestamptz,text" => kernel!(|at: Micros, template: Txt; info| -> Opt<Txt> {
            let zone = &info.ctx.timezone;
            of_timestamp(utc_to_local(at, zone)?, template, Some((zone, at)))
        }),
        "interval,text" => kernel!(|span: Span, template: Txt| -> Opt<Txt> { of_interval(span, template) }),
        _ => return None,
    })
}

/// What the patterns read.
struct Moment {
    /// The astronomical year, or an interval's.
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    day_of_year: i64,
    /// Days since 1970; `None` for intervals, which are tied to no date.
    days: Option<i64>,
    /// Seconds east of Greenwich, and what the zone is called then.
    zone: Option<(i32, String)>,
}

fn of_timestamp(local: i64, template: &str, zone: Option<(&TimeZone, i64)>) -> Result<Option<String>> {
    if template.is_empty() || !is_finite_timestamp(local) {
        return Ok(None);
    }
    let civil = Civil::from_micros(local);
    let days = civil.days();
    let moment = Moment {
        year: civil.year.into(),
        month: civil.month.into(),
        day: civil.day.into(),
        hour: civil.hour.into(),
        minute: civil.minute.into(),
        second: civil.second.into(),
        micros: civil.micros.into(),
        day_of_year: day_of_year(days).into(),
        days: Some(days),
        zone: zone.map(|(zone, at)| (zone.offset_at(at), zone.abbreviation_at(at).0.to_string())),
    };
    moment.write(template).map(Some)
}

fn of_interval(span: Interval, template: &str) -> Result<Option<String>> {
    if template.is_empty() {
        return Ok(None);
    }
    let (year, month, day) = (i64::from(span.months / 12), i64::from(span.months % 12), i64::from(span.days));
    let seconds = span.micros / 1_000_000;
    let moment = Moment {
        year,
        month,
        day,
        hour: seconds / 3600,
        minute: seconds / 60 % 60,
        second: seconds % 60,
        micros: span.micros % 1_000_000,
        day_of_year: (year * 12 + month) * 30 + day,
        days: None,
        zone: None,
    };
    moment.write(template).map(Some)
}

fn upper(name: &str) -> String {
    name.to_ascii_uppercase()
}

fn lower(name: &str) -> String {
    name.to_ascii_lowercase()
}

impl Moment {
    fn write(&self, template: &str) -> Result<String> {
        let mut out = String::with_capacity(template.len() + 8);
        for node in nodes(template, &PATTERNS, true) {
            match node {
                Node::Pattern { name, modifiers } => self.pattern(name, modifiers, &mut out)?,
                Node::Space(char) | Node::Separator(char) | Node::Char(char) => out.push(char),
            }
        }
        Ok(out)
    }

    /// 22007 for intervals.
    fn days(&self) -> Result<i64> {
        self.days.ok_or_else(|| {
            Error::new("22007", "invalid format specification for an interval value")
                .with_hint("Intervals are not tied to specific calendar dates.")
        })
    }

    /// The year as it is counted: there is no year 0.
    fn counted(&self, year: i64) -> i64 {
        if self.days.is_some() && year <= 0 { 1 - year } else { year }
    }

    fn pattern(&self, name: &str, modifiers: Modifiers, out: &mut String) -> Result<()> {
        if let Some(text) = self.name(name, modifiers)? {
            out.push_str(&text);
            return Ok(());
        }
        let Some((value, width)) = self.number(name)? else { return Ok(()) };
        let text = match (name.to_ascii_uppercase().as_str(), width) {
            ("Y,YYY", _) => format!("{},{:03}", value / 1000, value % 1000),
            // Fractions keep their zeros.
            ("MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6", width) => format!("{value:0width$}"),
            (_, 0) => value.to_string(),
            (_, _) if modifiers.fill => value.to_string(),
            ("DD" | "DDD" | "IDDD" | "WW" | "IW", width) => format!("{value:0width$}"),
            // The sign of an interval's own year makes room for one.
            ("IYYY" | "IYY" | "IY", width) => {
                format!("{value:0width$}", width = width + usize::from(self.days.is_none() && self.year < 0))
            }
            (_, width) => format!("{value:0width$}", width = width + usize::from(value < 0)),
        };
        out.push_str(&text);
        if let Some(capital) = modifiers.ordinal {
            out.push_str(ordinal_suffix(&text, capital));
        }
        Ok(())
    }

    /// Fields printed as numbers, and their width without sign; 0 where they are not padded.
    fn number(&self, name: &str) -> Result<Option<(i64, usize)>> {
        let iso_year = || match self.days {
            Some(days) => self.counted(iso_week(days).0.into()),
            None => self.interval_week().0,
        };
        Ok(Some(match name.to_ascii_uppercase().as_str() {
            "HH24" => (self.hour, 2),
            "HH12" | "HH" => (if self.hour % 12 == 0 { 12 } else { self.hour % 12 }, 2),
            "MI" => (self.minute, 2),
            "SS" => (self.second, 2),
            "SSSS" | "SSSSS" => (self.hour * 3600 + self.minute * 60 + self.second, 0),
            "MS" | "FF3" => (self.micros / 1000, 3),
            "US" | "FF6" => (self.micros, 6),
            "FF1" => (self.micros / 100_000, 1),
            "FF2" => (self.micros / 10_000, 2),
            "FF4" => (self.micros / 100, 4),
            "FF5" => (self.micros / 10, 5),
            "Y,YYY" => (self.counted(self.year), 0),
            "YYYY" => (self.counted(self.year), 4),
            "YYY" => (self.counted(self.year) % 1000, 3),
            "YY" => (self.counted(self.year) % 100, 2),
            "Y" => (self.counted(self.year) % 10, 0),
            "IYYY" => (iso_year(), 4),
            "IYY" => (iso_year() % 1000, 3),
            "IY" => (iso_year() % 100, 2),
            "I" => (iso_year() % 10, 0),
            "MM" => (self.month, 2),
            "DDD" => (self.day_of_year, 3),
            "IDDD" => {
                let of_year = match self.days {
                    Some(days) => days - days_from_iso_week(iso_week(days).0, 1) + 1,
                    None => self.interval_week().2,
                };
                (of_year, 3)
            }
            "DD" => (self.day, 2),
            "D" => (i64::from(iso_weekday(self.days()?)) % 7 + 1, 0),
            "ID" => (iso_weekday(self.days()?).into(), 0),
            "IW" => (self.days.map_or_else(|| self.interval_week().1, |days| iso_week(days).1.into()), 2),
            "WW" => ((self.day_of_year - 1) / 7 + 1, 2),
            "W" => ((self.day - 1) / 7 + 1, 0),
            "CC" => {
                let century = match self.days {
                    None => self.year / 100,
                    Some(_) if self.year > 0 => (self.year - 1) / 100 + 1,
                    Some(_) => self.year / 100 - 1,
                };
                (century, if (-99..=99).contains(&century) { 2 } else { 0 })
            }
            "J" => match self.days {
                Some(days) => (days + 2_440_588, 0),
                None => (julian(self.year, self.month, self.day), 0),
            },
            "Q" if self.month == 0 => return Ok(None),
            "Q" => ((self.month - 1) / 3 + 1, 0),
            _ => return Ok(None),
        }))
    }

    /// Fields printed as words, signs or offsets.
    fn name(&self, name: &str, modifiers: Modifiers) -> Result<Option<String>> {
        let fill = modifiers.fill;
        let afternoon = self.hour.rem_euclid(24) >= 12 && self.hour >= 0;
        let padded = |text: String| if fill || modifiers.translated { text } else { format!("{text:<NAME_WIDTH$}") };
        let weekday = || self.days().map(|days| DAYS[iso_weekday(days) as usize % 7]);
        let month = || -> Result<&str> {
            self.days()?;
            Ok(MONTHS[(self.month as usize).clamp(1, 12) - 1])
        };
        let zone = || {
            self.days()?;
            Ok(self.zone.clone().unwrap_or_default())
        };
        Ok(Some(match name {
            "AM" | "PM" => if afternoon { "PM" } else { "AM" }.to_string(),
            "am" | "pm" => if afternoon { "pm" } else { "am" }.to_string(),
            "A.M." | "P.M." => if afternoon { "P.M." } else { "A.M." }.to_string(),
            "a.m." | "p.m." => if afternoon { "p.m." } else { "a.m." }.to_string(),
            "AD" | "BC" | "ad" | "bc" | "A.D." | "B.C." | "a.d." | "b.c." => {
                self.days()?;
                let era = match (self.year <= 0, name.len()) {
                    (true, 2) => "BC",
                    (true, _) => "B.C.",
                    (false, 2) => "AD",
                    (false, _) => "A.D.",
                };
                if name.starts_with(['a', 'b']) { lower(era) } else { era.to_string() }
            }
            "MONTH" => padded(upper(month()?)),
            "Month" => padded(month()?.to_string()),
            "month" => padded(lower(month()?)),
            "MON" => upper(&month()?[..3]),
            "Mon" => month()?[..3].to_string(),
            "mon" => lower(&month()?[..3]),
            "DAY" => padded(upper(weekday()?)),
            "Day" => padded(weekday()?.to_string()),
            "day" => padded(lower(weekday()?)),
            "DY" => upper(&weekday()?[..3]),
            "Dy" => weekday()?[..3].to_string(),
            "dy" => lower(&weekday()?[..3]),
            "RM" | "rm" => {
                let Some(roman) = self.roman_month() else { return Ok(Some(String::new())) };
                let roman = if name == "rm" { lower(roman) } else { roman.to_string() };
                if fill { roman } else { format!("{roman:<4}") }
            }
            "TZ" => upper(&zone()?.1),
            "tz" => lower(&zone()?.1),
            "TZH" | "tzh" => offset_hours(zone()?.0, 2),
            "TZM" | "tzm" => format!("{:02}", zone()?.0.abs() % 3600 / 60),
            "OF" | "of" => {
                let offset = zone()?.0;
                let hours = offset_hours(offset, if fill { 0 } else { 2 });
                match offset.abs() % 3600 / 60 {
                    0 => hours,
                    minutes => format!("{hours}:{minutes:02}"),
                }
            }
            "FX" | "fx" => String::new(),
            _ => return Ok(None),
        }))
    }

    /// Year, week and day of the year that an interval's fields would have as a date.
    fn interval_week(&self) -> (i64, i64, i64) {
        // The Monday of a year's first week.
        let first = |year: i64| {
            let fourth = julian(year, 1, 4);
            fourth - fourth.rem_euclid(7)
        };
        let day = julian(self.year, self.month, self.day);
        let mut year = if day < first(self.year) { self.year - 1 } else { self.year };
        let mut week = (day - first(year)) / 7 + 1;
        if week >= 52 && day >= first(self.year + 1) {
            year = self.year + 1;
            week = (day - first(year)) / 7 + 1;
        }
        (year, week, day - first(year) + 1)
    }

    fn roman_month(&self) -> Option<&'static str> {
        if self.month == 0 && self.year == 0 {
            return None;
        }
        let index = match self.month {
            0 if self.year >= 0 => 0,
            0 => 11,
            month if month < 0 => -(month + 1),
            month => 12 - month,
        };
        ROMAN.get(index as usize).copied()
    }
}

fn offset_hours(seconds: i32, width: usize) -> String {
    format!("{}{:0width$}", if seconds < 0 { '-' } else { '+' }, seconds.abs() / 3600)
}

/// The Julian day of what may be no date, by PostgreSQL's formula.
fn julian(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year + 4800, month + 1) } else { (year + 4799, month + 13) };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}
