//! Time zones: fixed offsets, the IANA database, and PostgreSQL's default abbreviations.

use super::abbreviations::{Meaning, meaning};
use super::{MICROS_PER_DAY, MICROS_PER_SECOND, civil_from_days, days_from_civil, is_leap_year, iso_weekday};
use chrono::{DateTime, Offset, TimeZone as _};
use chrono_tz::{OffsetComponents, OffsetName, TZ_VARIANTS, Tz};

/// Where local time is kept. Offsets are seconds *east* of UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeZone {
    Fixed(i32),
    Named(Tz),
}

/// At most a week, as in PostgreSQL.
const SECONDS_MAX: f64 = 604_800.0;

/// Seconds east of UTC of a number of hours.
fn hours(text: &str) -> Option<i32> {
    let seconds = text.parse::<f64>().ok()? * 3600.0;
    (seconds.abs() <= SECONDS_MAX).then_some(seconds as i32)
}

/// The same of `<+05:30>-05:30`, as [`TimeZone::name`] prints it.
fn shown_offset(text: &str) -> Option<i32> {
    let (shown, _) = text.strip_prefix('<')?.split_once('>')?;
    let (sign, digits) = match shown.as_bytes().first()? {
        b'-' => (-1, &shown[1..]),
        b'+' => (1, &shown[1..]),
        _ => return None,
    };
    let mut seconds = 0;
    for (part, unit) in digits.split(':').zip([3600, 60, 1]) {
        seconds += part.parse::<u16>().ok().map(i32::from)?.checked_mul(unit)?;
    }
    (f64::from(seconds) <= SECONDS_MAX).then_some(sign * seconds)
}

/// Seconds east that a zone in POSIX's form has: what it is called, then how far west it is. Zones with summer time
/// in this form are not read.
fn posix(name: &str) -> Option<i32> {
    const HOURS_MAX: i32 = 167;
    if name.starts_with(':') {
        return None;
    }
    let west = match name.strip_prefix('<') {
        Some(inner) => inner.split_once('>')?.1,
        None => name.trim_start_matches(|c: char| !c.is_ascii_digit() && !matches!(c, ',' | '+' | '-')),
    };
    let (sign, digits) = match west.as_bytes().first()? {
        b'+' => (-1, &west[1..]),
        b'-' => (1, &west[1..]),
        _ => (-1, west),
    };
    let mut seconds = 0;
    let mut parts = digits.split(':');
    for (unit, most) in [(3600, HOURS_MAX), (60, 59), (1, 59)] {
        let Some(part) = parts.next() else { break };
        let in_digits = !part.is_empty() && part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
        let value: i32 = part.parse().ok().filter(|value| in_digits && *value <= most)?;
        seconds += value * unit;
    }
    parts.next().is_none().then_some(sign * seconds)
}

impl TimeZone {
    pub const UTC: TimeZone = TimeZone::Named(Tz::UTC);

    /// An IANA name, in any case; hours east of UTC (`-7`, `5.5`); hours west of it behind a name, as POSIX has it
    /// (`UTC+3`, `+03:30`); or a fixed offset as [`TimeZone::name`] prints it. `None` if there is no such zone.
    pub fn parse(name: &str) -> Option<TimeZone> {
        if name.parse::<f64>().is_ok() {
            return hours(name).map(TimeZone::Fixed);
        }
        TimeZone::full_name(name).or_else(|| shown_offset(name).map(TimeZone::Fixed))
    }

    /// An IANA name, in any case.
    fn named(name: &str) -> Option<TimeZone> {
        if let Ok(zone) = name.parse::<Tz>() {
            return Some(TimeZone::Named(zone));
        }
        TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(name)).map(|zone| TimeZone::Named(*zone))
    }

    /// An IANA name in any case, or POSIX's form: what it is called (in `<…>` if that has digits or signs), then how far
    /// west it is (`XYZ+3:30`).
    pub(super) fn full_name(name: &str) -> Option<TimeZone> {
        TimeZone::named(name).or_else(|| posix(name).map(TimeZone::Fixed))
    }

    /// What an abbreviation stands for; one that meant different things is its zone.
    pub(super) fn abbreviation(name: &str) -> Option<TimeZone> {
        match meaning(name)? {
            Meaning::Offset(east) | Meaning::Summer(east) => Some(TimeZone::Fixed(east)),
            Meaning::Of(zone) => TimeZone::named(zone),
        }
    }

    /// Seconds east of UTC, if the zone never had another offset.
    pub(super) fn only_offset(&self) -> Option<i32> {
        match self {
            TimeZone::Fixed(east) => Some(*east),
            TimeZone::Named(zone) => {
                let name = zone.name();
                let fixed =
                    matches!(name, "UTC" | "GMT" | "UCT" | "Zulu" | "Universal" | "Greenwich" | "EST" | "MST" | "HST")
                        || name.starts_with("Etc/")
                        || matches!(name, "GMT0" | "GMT+0" | "GMT-0");
                fixed.then(|| self.offset_at(0))
            }
        }
    }

    /// Seconds east that the zone of this name had when it last called itself so at a local time, or next did;
    /// without any, what it has then.
    pub(super) fn abbreviated_offset(abbreviation: &str, zone: &str, local_micros: i64) -> i32 {
        const WEEK: i64 = 7 * MICROS_PER_DAY;
        /// As far as the clock changes of the database go.
        const WEEKS_MAX: i64 = 120 * 53;
        let Some(zone) = TimeZone::named(zone) else { return 0 };
        let moment = zone.to_utc(local_micros);
        let called_so = |weeks: i64| {
            let then = moment.saturating_add(weeks * WEEK);
            (zone.abbreviation_at(then).0 == abbreviation).then(|| zone.offset_at(then))
        };
        let past = (0..WEEKS_MAX).find_map(|weeks| called_so(-weeks));
        past.or_else(|| (1..WEEKS_MAX).find_map(called_so)).unwrap_or_else(|| zone.offset_at(moment))
    }

    /// As `SHOW timezone` prints it.
    pub fn name(&self) -> String {
        match self {
            TimeZone::Named(zone) => zone.name().to_string(),
            TimeZone::Fixed(offset) => {
                let sign = if *offset < 0 { '-' } else { '+' };
                let opposite = if *offset < 0 { '+' } else { '-' };
                let shown = offset_digits(offset.abs());
                format!("<{sign}{shown}>{opposite}{shown}")
            }
        }
    }

    /// Seconds east of UTC at a moment (microseconds since 1970).
    #[inline]
    pub fn offset_at(&self, utc_micros: i64) -> i32 {
        match self {
            TimeZone::Fixed(offset) => *offset,
            TimeZone::Named(Tz::UTC) => 0,
            TimeZone::Named(zone) => zone.offset_from_utc_datetime(&naive(utc_micros)).fix().local_minus_utc(),
        }
    }

    /// The zone's abbreviation at a moment (`CET`), and whether it is daylight time.
    pub fn abbreviation_at(&self, utc_micros: i64) -> (String, bool) {
        match self {
            TimeZone::Fixed(offset) => {
                let sign = if *offset < 0 { '-' } else { '+' };
                (format!("{sign}{}", offset_digits(offset.abs())), false)
            }
            TimeZone::Named(zone) => {
                let offset = zone.offset_from_utc_datetime(&naive(utc_micros));
                let dst = offset.dst_offset().num_seconds() != 0;
                (offset.abbreviation().unwrap_or("").to_string(), dst)
            }
        }
    }

    /// The moment of a local time. A time that a clock change skips counts with the offset before the
    /// change, one that it repeats with standard time, as PostgreSQL does.
    pub fn to_utc(&self, local_micros: i64) -> i64 {
        let offset = match self {
            TimeZone::Fixed(offset) => *offset,
            TimeZone::Named(Tz::UTC) => 0,
            TimeZone::Named(_) => self.local_offset(local_micros),
        };
        local_micros.saturating_sub(i64::from(offset) * MICROS_PER_SECOND)
    }

    fn local_offset(&self, local_micros: i64) -> i32 {
        // The offsets a day before and after bracket any change near this local time.
        let before = self.offset_at(local_micros.saturating_sub(MICROS_PER_DAY));
        let after = self.offset_at(local_micros.saturating_add(MICROS_PER_DAY));
        if before == after {
            return before;
        }
        let fits =
            |offset: i32| self.offset_at(local_micros.saturating_sub(i64::from(offset) * MICROS_PER_SECOND)) == offset;
        match (fits(before), fits(after)) {
            (true, false) => before,
            (false, true) => after,
            // Skipped: the clock was still on the offset before.
            (false, false) => before,
            // Repeated: the later reading, which is standard time.
            (true, true) => after,
        }
    }
}

pub(super) fn offset_digits(seconds: i32) -> String {
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (minutes, seconds) {
        (0, 0) => format!("{hours:02}"),
        (_, 0) => format!("{hours:02}:{minutes:02}"),
        _ => format!("{hours:02}:{minutes:02}:{seconds:02}"),
    }
}

/// Chrono's form of a moment. Its tables end in 2099: a later moment stands for the same moment of a year
/// with the same calendar, so that the last rules go on for ever.
fn naive(utc_micros: i64) -> chrono::NaiveDateTime {
    let mut micros = utc_micros;
    if micros >= LAST_TABLE_MICROS {
        let year = civil_from_days(micros.div_euclid(MICROS_PER_DAY)).0;
        let first = days_from_civil(year, 1, 1);
        let like = |other: &i32| {
            is_leap_year(*other) == is_leap_year(year)
                && iso_weekday(days_from_civil(*other, 1, 1)) == iso_weekday(first)
        };
        // Any 28 years have all 14 calendars.
        let same = (2060..2088).find(like).unwrap_or(2060);
        micros -= (first - days_from_civil(same, 1, 1)) * MICROS_PER_DAY;
    }
    DateTime::from_timestamp_micros(micros).map_or(chrono::NaiveDateTime::MIN, |moment| moment.naive_utc())
}

/// 2099-01-01.
const LAST_TABLE_MICROS: i64 = 4_070_908_800 * MICROS_PER_SECOND;
