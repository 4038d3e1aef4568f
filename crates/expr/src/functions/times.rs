//! `time with time zone`, OVERLAPS, and sleeping clocks (manual 9.9).

use super::arg::*;
use super::{CallInfo, Kernel};
use crate::datetime::*;
use crate::error::{Error, Result};
use crate::functions::casts::round_micros;
use crate::interval::Interval;
use basalt_types::{DataType, Datum};

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    if name == "overlaps" {
        return Some(scalar!(overlaps));
    }
    fields(name, args).or_else(|| operator(name))
}

fn fields(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("extract", "text,timetz") => {
            kernel!(|field: Txt, time: Ttz| -> Num { time.extract(Field::parse(field, "time with time zone")?) })
        }
        ("date_part", "text,timetz") => kernel!(|field: Txt, time: Ttz| -> F8 {
            time.extract(Field::parse(field, "time with time zone")?)?.to_f64()
        }),
        ("timezone", "text,timetz") => kernel!(|zone: Txt, time: Ttz; info| -> Ttz {
            Ok(time.in_zone(-find_zone(zone)?.offset_at(info.ctx.now())))
        }),
        ("timezone", "interval,timetz") => kernel!(|zone: Span, time: Ttz| -> Ttz {
            if zone.months != 0 || zone.days != 0 {
                return Err(Error::invalid_parameter(format!(
                    "interval time zone \"{}\" must not include months or days",
                    crate::interval::interval_text(zone)
                )));
            }
            Ok(time.in_zone(-(zone.micros / MICROS_PER_SECOND) as i32))
        }),
        ("timetz", "timetz,int4") => kernel!(|time: Ttz, modifier: I4| -> Ttz {
            Ok(TimeTz { micros: round_micros(time.micros, modifier), west: time.west })
        }),
        ("timestamptz", "date,timetz") => kernel!(|date: Day, time: Ttz| -> Micros { time.on_date(date) }),
        ("timestamp", "date,time") => kernel!(|date: Day, time: Micros| -> Micros { on_date(date, time) }),
        ("timestamptz", "date,time") => kernel!(|date: Day, time: Micros; info| -> Micros {
            local_to_utc(on_date(date, time)?, &info.ctx.timezone)
        }),
        ("timeofday", "-") => scalar!(|_, info| Ok(Datum::text(&time_of_day((info.ctx.clock)(), &info.ctx.timezone)))),
        _ => return None,
    })
}

fn on_date(date: i32, time: i64) -> Result<i64> {
    timestamp_add(date_to_timestamp(date)?, Interval::new(0, 0, time))
}

/// As `timeofday` prints the clock: `Wed Feb 21 13:30:53.123456 2024 UTC`.
fn time_of_day(now: i64, zone: &TimeZone) -> String {
    const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let local = now.saturating_add(i64::from(zone.offset_at(now)) * MICROS_PER_SECOND);
    let at = Civil::from_micros(local);
    let day = DAYS[(iso_weekday(at.days()) as usize + 6) % 7];
    let month = MONTHS[(at.month as usize + 11) % 12];
    format!(
        "{day} {month} {:02} {:02}:{:02}:{:02}.{:06} {:04} {}",
        at.day,
        at.hour,
        at.minute,
        at.second,
        at.micros,
        at.year,
        zone.abbreviation_at(now).0
    )
}

/// What an operator's function does.
pub(crate) fn operator(function: &str) -> Option<Kernel> {
    Some(match function {
        "timetz_pl_interval" => kernel!(|time: Ttz, span: Span| -> Ttz { Ok(time.plus(span)) }),
        "interval_pl_timetz" => kernel!(|span: Span, time: Ttz| -> Ttz { Ok(time.plus(span)) }),
        "timetz_mi_interval" => kernel!(|time: Ttz, span: Span| -> Ttz { Ok(time.minus(span)) }),
        "datetimetz_pl" => kernel!(|date: Day, time: Ttz| -> Micros { time.on_date(date) }),
        "timetzdate_pl" => kernel!(|time: Ttz, date: Day| -> Micros { time.on_date(date) }),
        _ => return None,
    })
}

/// An end as something to compare: microseconds, in UTC where there is a zone.
fn end(args: &[Datum], at: usize, info: &CallInfo) -> Result<Option<i128>> {
    Ok(match &args[at] {
        Datum::Null => None,
        Datum::I64(micros) => Some(i128::from(*micros)),
        // Bytes that sort as unsigned.
        Datum::Fixed16(bytes) => Some((u128::from_be_bytes(*bytes) ^ 1 << 127) as i128),
        other => return Err(mismatch(&info.arg_types[at], other)),
    })
}

/// The two ends of a period, the lesser first; the second may be a length, or unknown.
fn period(args: &[Datum], at: usize, info: &CallInfo) -> Result<Option<(i128, Option<i128>)>> {
    let first = end(args, at, info)?;
    let second = match (&info.arg_types[at + 1], &args[at + 1], &args[at]) {
        (DataType::Interval, Datum::Fixed16(bytes), Datum::I64(start)) => {
            let span = Interval::from_bytes(*bytes);
            Some(i128::from(match info.arg_types[at] {
                DataType::Time => time_add(*start, span),
                DataType::TimestampTz => timestamptz_add(*start, span, &info.ctx.timezone)?,
                _ => timestamp_add(*start, span)?,
            }))
        }
        (DataType::Interval, ..) => None,
        _ => end(args, at + 1, info)?,
    };
    Ok(match (first, second) {
        (None, None) => None,
        (None, Some(one)) | (Some(one), None) => Some((one, None)),
        (Some(first), Some(second)) => Some((first.min(second), Some(first.max(second)))),
    })
}

/// `(start1, end1) OVERLAPS (start2, end2)`, with SQL's unknowns.
fn overlaps(args: &[Datum], info: &CallInfo) -> Result<Datum> {
    let (Some((start1, end1)), Some((start2, end2))) = (period(args, 0, info)?, period(args, 2, info)?) else {
        return Ok(Datum::Null);
    };
    let later_within = |start: i128, end: Option<i128>, other_end: Option<i128>| match (other_end, end) {
        (None, _) => Datum::Null,
        (Some(other_end), _) if start < other_end => Datum::Bool(true),
        (_, None) => Datum::Null,
        _ => Datum::Bool(false),
    };
    Ok(match start1.cmp(&start2) {
        std::cmp::Ordering::Greater => later_within(start1, end1, end2),
        std::cmp::Ordering::Less => later_within(start2, end2, end1),
        std::cmp::Ordering::Equal if end1.is_none() || end2.is_none() => Datum::Null,
        std::cmp::Ordering::Equal => Datum::Bool(true),
    })
}
