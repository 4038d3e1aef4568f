//! Dates, times and intervals against each other. Infinities stay infinite.

use super::*;
use crate::error::{Error, Result};
use crate::interval::Interval;

#[inline]
pub fn is_finite_date(days: i32) -> bool {
    days != DATE_INFINITY && days != DATE_NEG_INFINITY
}

#[inline]
pub fn is_finite_timestamp(micros: i64) -> bool {
    micros != TIMESTAMP_INFINITY && micros != TIMESTAMP_NEG_INFINITY
}

#[cold]
fn timestamp_range() -> Error {
    Error::datetime_out_of_range("timestamp")
}

fn checked_timestamp(micros: Option<i64>) -> Result<i64> {
    match micros {
        Some(micros) if (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&micros) => Ok(micros),
        _ => Err(timestamp_range()),
    }
}

/// `date + integer`.
#[inline]
pub fn date_add_days(date: i32, days: i32) -> Result<i32> {
    if !is_finite_date(date) {
        return Ok(date);
    }
    match date.checked_add(days) {
        Some(sum) if (DATE_MIN..=DATE_MAX).contains(&sum) => Ok(sum),
        _ => Err(Error::datetime_out_of_range("date")),
    }
}

/// `date - date`: days.
#[inline]
pub fn date_sub(left: i32, right: i32) -> Result<i32> {
    if !is_finite_date(left) || !is_finite_date(right) {
        return Err(Error::new("22008", "cannot subtract infinite dates"));
    }
    Ok(left - right)
}

/// The date's midnight, local.
#[inline]
pub fn date_to_timestamp(date: i32) -> Result<i64> {
    match date {
        DATE_INFINITY => Ok(TIMESTAMP_INFINITY),
        DATE_NEG_INFINITY => Ok(TIMESTAMP_NEG_INFINITY),
        date => i64::from(date)
            .checked_mul(MICROS_PER_DAY)
            .ok_or_else(|| Error::new("22008", "date out of range for timestamp")),
    }
}

#[inline]
pub fn timestamp_to_date(micros: i64) -> i32 {
    match micros {
        TIMESTAMP_INFINITY => DATE_INFINITY,
        TIMESTAMP_NEG_INFINITY => DATE_NEG_INFINITY,
        micros => micros.div_euclid(MICROS_PER_DAY) as i32,
    }
}

/// `timestamp AT TIME ZONE zone`: the moment of a local time.
pub fn local_to_utc(local: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite_timestamp(local) {
        return Ok(local);
    }
    checked_timestamp(Some(zone.to_utc(local)))
}

/// `timestamptz AT TIME ZONE zone`: the local time of a moment.
pub fn utc_to_local(utc: i64, zone: &TimeZone) -> Result<i64> {
    if !is_finite_timestamp(utc) {
        return Ok(utc);
    }
    checked_timestamp(utc.checked_add(i64::from(zone.offset_at(utc)) * MICROS_PER_SECOND))
}

/// A zone as `AT TIME ZONE` names it, where numbers are hours west, as POSIX has it; 22023 if there is none.
pub fn find_zone(name: &str) -> Result<TimeZone> {
    TimeZone::abbreviation(name)
        .or_else(|| TimeZone::full_name(name))
        .ok_or_else(|| Error::invalid_parameter(format!("time zone \"{name}\" not recognized")))
}

/// A zone of `make_timestamptz`: a number is hours east of Greenwich, with a sign.
pub fn find_sane_zone(name: &str) -> Result<TimeZone> {
    if name.starts_with(|char: char| char.is_ascii_digit()) {
        return Err(Error::invalid_parameter(format!("invalid input syntax for type numeric time zone: \"{name}\""))
            .with_hint("Numeric time zones must have \"-\" or \"+\" as first character."));
    }
    match parse::zone_offset(name) {
        Some(Ok(offset)) => Ok(TimeZone::Fixed(offset)),
        Some(Err(())) => Err(Error::invalid_parameter(format!("numeric time zone \"{name}\" out of range"))),
        None => find_zone(name),
    }
}

/// Moves a date by whole months; the day is cut to the month's last.
fn add_months(civil: &mut Civil, months: i32) -> Option<()> {
    let total = i64::from(civil.year) * 12 + i64::from(civil.month) - 1 + i64::from(months);
    civil.year = i32::try_from(total.div_euclid(12)).ok()?;
    civil.month = (total.rem_euclid(12) + 1) as u32;
    civil.day = civil.day.min(days_in_month(civil.year, civil.month));
    Some(())
}

fn add_calendar(local: i64, interval: Interval) -> Option<i64> {
    let mut moved = local;
    if interval.months != 0 {
        let mut civil = Civil::from_micros(local);
        add_months(&mut civil, interval.months)?;
        moved = civil.to_micros()?;
    }
    moved.checked_add(i64::from(interval.days).checked_mul(MICROS_PER_DAY)?)
}

/// `timestamp + interval`: months first, then days, then time.
pub fn timestamp_add(timestamp: i64, interval: Interval) -> Result<i64> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    checked_timestamp(add_calendar(timestamp, interval).and_then(|moved| moved.checked_add(interval.micros)))
}

/// `timestamptz + interval`: months and days by the zone's calendar, time on the clock of UTC.
pub fn timestamptz_add(timestamp: i64, interval: Interval, zone: &TimeZone) -> Result<i64> {
    if !is_finite_timestamp(timestamp) {
        return Ok(timestamp);
    }
    let mut moved = timestamp;
    if interval.months != 0 || interval.days != 0 {
        let local = utc_to_local(timestamp, zone)?;
        moved = zone.to_utc(add_calendar(local, interval).ok_or_else(timestamp_range)?);
    }
    checked_timestamp(moved.checked_add(interval.micros))
}

/// `timestamp - timestamp`, with or without time zone: days and time.
pub fn timestamp_sub(left: i64, right: i64) -> Result<Interval> {
    if !is_finite_timestamp(left) || !is_finite_timestamp(right) {
        return Err(Error::new("22008", "cannot subtract infinite timestamps"));
    }
    let micros = left.checked_sub(right).ok_or_else(Interval::out_of_range)?;
    Interval::new(0, 0, micros).justify_hours()
}

/// `time + interval`: wraps at midnight; only the interval's time counts.
pub fn time_add(time: i64, interval: Interval) -> i64 {
    (time + interval.micros % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY)
}

/// `time - interval`.
pub fn time_sub(time: i64, interval: Interval) -> i64 {
    (time - interval.micros % MICROS_PER_DAY).rem_euclid(MICROS_PER_DAY)
}

/// `age(left, right)` of local times: years, months, days and time between them, as on a calendar.
pub fn age(left: i64, right: i64) -> Result<Interval> {
    if !is_finite_timestamp(left) || !is_finite_timestamp(right) {
        return Err(timestamp_range());
    }
    let (a, b) = (Civil::from_micros(left), Civil::from_micros(right));
    let sign = if left < right { -1 } else { 1 };
    let mut months = i64::from(sign) * (i64::from(a.year - b.year) * 12 + i64::from(a.month) - i64::from(b.month));
    let mut days = i64::from(sign) * (i64::from(a.day) - i64::from(b.day));
    let mut micros = i64::from(sign) * (a.time() - b.time());
    if micros < 0 {
        micros += MICROS_PER_DAY;
        days -= 1;
    }
    // Borrow the length of the month that the span starts in.
    let month = if sign < 0 { days_in_month(a.year, a.month) } else { days_in_month(b.year, b.month) };
    while days < 0 {
        days += i64::from(month);
        months -= 1;
    }
    let signed = |part: i64| i32::try_from(part * i64::from(sign)).map_err(|_| Interval::out_of_range());
    Ok(Interval::new(signed(months)?, signed(days)?, micros * i64::from(sign)))
}

/// `make_date`; a negative year is before Christ.
pub fn make_date(year: i32, month: i32, day: i32) -> Result<i32> {
    let error = || Error::new("22008", format!("date field value out of range: {year}-{month:02}-{day:02}"));
    let astronomical = match year {
        0 => return Err(error()),
        year if year < 0 => year + 1,
        year => year,
    };
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(astronomical, month as u32) as i32 {
        return Err(error());
    }
    match i32::try_from(days_from_civil(astronomical, month as u32, day as u32)) {
        Ok(days) if (DATE_MIN..=DATE_MAX).contains(&days) => Ok(days),
        _ => Err(Error::new("22008", format!("date out of range: {year}-{month:02}-{day:02}"))),
    }
}

/// `make_time`.
pub fn make_time(hour: i32, minute: i32, second: f64) -> Result<i64> {
    let micros = (second * 1e6).round_ties_even();
    let valid = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60e6).contains(&micros);
    let whole = i64::from(hour) * MICROS_PER_HOUR + i64::from(minute) * MICROS_PER_MINUTE;
    let time = whole.saturating_add(micros as i64);
    if !valid || time > MICROS_PER_DAY {
        return Err(Error::new("22008", format!("time field value out of range: {hour}:{minute:02}:{second:02}")));
    }
    Ok(time)
}

/// `make_timestamp`, local.
pub fn make_timestamp(year: i32, month: i32, day: i32, hour: i32, minute: i32, second: f64) -> Result<i64> {
    let date = make_date(year, month, day)?;
    let time = make_time(hour, minute, second)?;
    checked_timestamp(date_to_timestamp(date)?.checked_add(time))
}

/// `make_interval`.
pub fn make_interval(
    years: i32,
    months: i32,
    weeks: i32,
    days: i32,
    hours: i32,
    minutes: i32,
    seconds: f64,
) -> Result<Interval> {
    let months = i64::from(years) * 12 + i64::from(months);
    let days = i64::from(weeks) * 7 + i64::from(days);
    let seconds = (seconds * 1e6).round_ties_even();
    if !seconds.is_finite() || seconds.abs() >= i64::MAX as f64 {
        return Err(Interval::out_of_range());
    }
    let clock = i64::from(hours) * MICROS_PER_HOUR + i64::from(minutes) * MICROS_PER_MINUTE;
    Ok(Interval::new(
        i32::try_from(months).map_err(|_| Interval::out_of_range())?,
        i32::try_from(days).map_err(|_| Interval::out_of_range())?,
        clock.checked_add(seconds as i64).ok_or_else(Interval::out_of_range)?,
    ))
}

/// `to_timestamp(double precision)`: seconds since 1970.
pub fn timestamp_from_epoch(seconds: f64) -> Result<i64> {
    if seconds.is_nan() {
        return Err(Error::new("22008", "timestamp cannot be NaN"));
    }
    if seconds.is_infinite() {
        return Ok(if seconds > 0.0 { TIMESTAMP_INFINITY } else { TIMESTAMP_NEG_INFINITY });
    }
    if seconds < (TIMESTAMP_MIN as f64) / 1e6 || seconds >= (TIMESTAMP_MAX as f64) / 1e6 {
        return Err(Error::new("22008", format!("timestamp out of range: \"{seconds}\"")));
    }
    // Rounded from the epoch that PostgreSQL counts from, where a float is coarser.
    let micros = ((seconds - POSTGRES_EPOCH_MICROS as f64 / 1e6) * 1e6).round_ties_even();
    Ok(micros as i64 + POSTGRES_EPOCH_MICROS)
}
