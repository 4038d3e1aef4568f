//! Dates and times to text in the styles of `DateStyle`.

use super::*;
use crate::context::{DateFormat, DateOrder, EvalContext};
use std::io::Write;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

#[inline]
fn two_digits(value: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(&[b'0' + (value / 10 % 10) as u8, b'0' + (value % 10) as u8]);
}

/// The year that is printed, and whether it is before Christ.
fn shown_year(year: i32) -> (u32, bool) {
    if year > 0 { (year as u32, false) } else { (year.unsigned_abs() + 1, true) }
}

fn put_year(year: u32, out: &mut Vec<u8>) {
    if year < 10_000 {
        two_digits(year / 100, out);
        two_digits(year % 100, out);
    } else {
        write!(out, "{year}").expect("a Vec takes every write");
    }
}

fn put_date(year: i32, month: u32, day: u32, ctx: &EvalContext, out: &mut Vec<u8>) {
    let (shown, _) = shown_year(year);
    let day_first = ctx.date_order == DateOrder::Dmy;
    match ctx.date_format {
        DateFormat::Iso => {
            put_year(shown, out);
            out.push(b'-');
            two_digits(month, out);
            out.push(b'-');
            two_digits(day, out);
        }
        DateFormat::German => {
            two_digits(day, out);
            out.push(b'.');
            two_digits(month, out);
            out.push(b'.');
            put_year(shown, out);
        }
        style => {
            let separator = if style == DateFormat::Sql { b'/' } else { b'-' };
            let (first, second) = if day_first { (day, month) } else { (month, day) };
            two_digits(first, out);
            out.push(separator);
            two_digits(second, out);
            out.push(separator);
            put_year(shown, out);
        }
    }
}

fn put_era(year: i32, out: &mut Vec<u8>) {
    if shown_year(year).1 {
        out.extend_from_slice(b" BC");
    }
}

fn put_infinity(negative: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if negative { b"-infinity" } else { b"infinity" });
}

/// Appends a date (days since 1970).
#[inline]
pub fn write_date(days: i32, ctx: &EvalContext, out: &mut Vec<u8>) {
    if days == DATE_INFINITY || days == DATE_NEG_INFINITY {
        return put_infinity(days < 0, out);
    }
    let (year, month, day) = civil_from_days(i64::from(days));
    put_date(year, month, day, ctx, out);
    put_era(year, out);
}

/// Appends a time of day (microseconds since midnight; 24:00:00 is allowed).
pub fn write_time(micros: i64, out: &mut Vec<u8>) {
    put_time(&Civil::with_time(1970, 1, 1, micros), out);
}

fn put_time(civil: &Civil, out: &mut Vec<u8>) {
    two_digits(civil.hour, out);
    out.push(b':');
    two_digits(civil.minute, out);
    out.push(b':');
    two_digits(civil.second, out);
    put_fraction(civil.micros, out);
}

pub(super) fn put_fraction(micros: u32, out: &mut Vec<u8>) {
    if micros != 0 {
        out.push(b'.');
        two_digits(micros / 10_000, out);
        two_digits(micros / 100 % 100, out);
        two_digits(micros % 100, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Appends a timestamp (microseconds since 1970).
pub fn write_timestamp(micros: i64, ctx: &EvalContext, out: &mut Vec<u8>) {
    if micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY {
        return put_infinity(micros < 0, out);
    }
    let civil = Civil::from_micros(micros);
    put_timestamp(&civil, None, ctx, out);
}

/// Appends a timestamp with time zone, in the session's zone.
pub fn write_timestamptz(micros: i64, ctx: &EvalContext, out: &mut Vec<u8>) {
    if micros == TIMESTAMP_INFINITY || micros == TIMESTAMP_NEG_INFINITY {
        return put_infinity(micros < 0, out);
    }
    let offset = ctx.timezone.offset_at(micros);
    let civil = Civil::from_micros(micros.saturating_add(i64::from(offset) * MICROS_PER_SECOND));
    put_timestamp(&civil, Some((offset, micros)), ctx, out);
}

fn put_timestamp(civil: &Civil, zone: Option<(i32, i64)>, ctx: &EvalContext, out: &mut Vec<u8>) {
    if ctx.date_format == DateFormat::Postgres {
        return put_postgres(civil, zone, ctx, out);
    }
    put_date(civil.year, civil.month, civil.day, ctx, out);
    out.push(b' ');
    put_time(civil, out);
    match zone {
        Some((offset, _)) if ctx.date_format == DateFormat::Iso => put_offset(offset, out),
        Some((_, moment)) => put_zone_name(moment, ctx, out),
        None => {}
    }
    put_era(civil.year, out);
}

/// `Wed Dec 17 07:37:16 1997 PST`.
fn put_postgres(civil: &Civil, zone: Option<(i32, i64)>, ctx: &EvalContext, out: &mut Vec<u8>) {
    out.extend_from_slice(WEEKDAYS[iso_weekday(civil.days()) as usize - 1].as_bytes());
    out.push(b' ');
    let month = MONTHS[civil.month as usize - 1].as_bytes();
    if ctx.date_order == DateOrder::Dmy {
        two_digits(civil.day, out);
        out.push(b' ');
        out.extend_from_slice(month);
    } else {
        out.extend_from_slice(month);
        out.push(b' ');
        two_digits(civil.day, out);
    }
    out.push(b' ');
    put_time(civil, out);
    out.push(b' ');
    put_year(shown_year(civil.year).0, out);
    if let Some((_, moment)) = zone {
        put_zone_name(moment, ctx, out);
    }
    put_era(civil.year, out);
}

fn put_zone_name(moment: i64, ctx: &EvalContext, out: &mut Vec<u8>) {
    out.push(b' ');
    out.extend_from_slice(ctx.timezone.abbreviation_at(moment).0.as_bytes());
}

/// `+02`, `-03:30`, `+00:53:28`.
pub(super) fn put_offset(offset: i32, out: &mut Vec<u8>) {
    out.push(if offset < 0 { b'-' } else { b'+' });
    let seconds = offset.unsigned_abs();
    two_digits(seconds / 3600, out);
    if !seconds.is_multiple_of(3600) {
        out.push(b':');
        two_digits(seconds / 60 % 60, out);
        if !seconds.is_multiple_of(60) {
            out.push(b':');
            two_digits(seconds % 60, out);
        }
    }
}
