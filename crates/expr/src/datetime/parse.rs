//! Dates and times from text (manual, 8.5.1 and appendix B).
//!
//! ISO forms take a fast path without allocation. Everything else is cut into fields by their looks ([`split`]),
//! which then say what they give ([`decode`]).

mod clock;
mod decode;
pub(crate) mod split;
mod words;

use decode::{Decoded, Decoder, Fault, Given};
use split::Field;
pub(crate) use words::SIGNIFICANT;
use words::{Special, word};

use super::*;
use crate::context::{DateOrder, EvalContext};
use crate::error::{Error, Result};

/// Reads a date: days since 1970.
#[inline]
pub fn parse_date(text: &str, ctx: &EvalContext) -> Result<i32> {
    if let Some((year, month, day, [])) = iso_date(text.as_bytes())
        && let Some(days) = checked_days(year, month, day)
    {
        return Ok(days as i32);
    }
    match read("date", text, ctx)? {
        Moment::Infinity => Ok(DATE_INFINITY),
        Moment::NegInfinity => Ok(DATE_NEG_INFINITY),
        Moment::Local { days, .. } => match i32::try_from(days) {
            Ok(days) if (DATE_MIN..=DATE_MAX).contains(&days) => Ok(days),
            _ => Err(Error::new("22008", format!("date out of range: \"{text}\""))),
        },
    }
}

/// Reads a time of day: microseconds since midnight. A date or zone beside it is ignored.
pub fn parse_time(text: &str, ctx: &EvalContext) -> Result<i64> {
    if let Some((time, [])) = iso_time(text.as_bytes()) {
        return Ok(time);
    }
    time_of_day("time", text, ctx).map(|time| time.micros)
}

/// Reads a time of day with its zone: without one, as the session's is on the date given, or today.
pub fn parse_timetz(text: &str, ctx: &EvalContext) -> Result<TimeTz> {
    time_of_day("time with time zone", text, ctx)
}

fn time_of_day(type_name: &str, text: &str, ctx: &EvalContext) -> Result<TimeTz> {
    decoded_time(text, ctx).map_err(|fault| fault.of(type_name, text))
}

fn decoded_time(text: &str, ctx: &EvalContext) -> Decoded<TimeTz> {
    let fields = fields(text).ok_or(Fault::Format)?;
    let mut decoder = Decoder::new(ctx, true);
    decoder.read(&fields)?;
    let days = decoder.days()?;
    let micros = decoder.time()?;
    if decoder.seen & decode::TIME != decode::TIME || decoder.has_stray_modifier() {
        return Err(Fault::Format);
    }
    let of_day = |zone: &TimeZone, days: i64| {
        let local = days * MICROS_PER_DAY + micros;
        ((zone.to_utc(local) - local) / MICROS_PER_SECOND) as i32
    };
    let today = || {
        let offset = ctx.timezone.offset_at(ctx.now());
        (ctx.now() + i64::from(offset) * MICROS_PER_SECOND).div_euclid(MICROS_PER_DAY)
    };
    let west = match &decoder.zone {
        Given::Offset(east) => -east,
        Given::Named(zone) => match (zone.only_offset(), days) {
            (Some(east), _) => -east,
            (None, Some(days)) => of_day(zone, days),
            // Its offset depends on the date.
            (None, None) => return Err(Fault::Format),
        },
        Given::Abbreviation(name, zone) => {
            let local = days.unwrap_or_else(today) * MICROS_PER_DAY + micros;
            -TimeZone::abbreviated_offset(name, zone, local)
        }
        Given::None => of_day(&ctx.timezone, days.unwrap_or_else(today)),
    };
    Ok(TimeTz { micros, west })
}

/// Reads a timestamp without time zone: microseconds since 1970. A zone in the text is ignored.
pub fn parse_timestamp(text: &str, ctx: &EvalContext) -> Result<i64> {
    if let Some((micros, [])) = iso_timestamp(text.as_bytes()) {
        return Ok(micros);
    }
    match read("timestamp", text, ctx)? {
        Moment::Infinity => Ok(TIMESTAMP_INFINITY),
        Moment::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Moment::Local { days, time, .. } => join(days, time).ok_or_else(|| out_of_range("timestamp", text)),
    }
}

/// Reads a timestamp with time zone: microseconds since 1970 UTC. Without a zone in the text, the session's.
pub fn parse_timestamptz(text: &str, ctx: &EvalContext) -> Result<i64> {
    let range_error = || out_of_range("timestamp with time zone", text);
    if let Some((local, rest)) = iso_timestamp(text.as_bytes()) {
        if rest.is_empty() {
            return Ok(ctx.timezone.to_utc(local));
        }
        if let Some(offset) = std::str::from_utf8(rest).ok().and_then(parse_offset) {
            return in_range(local.saturating_sub(i64::from(offset) * MICROS_PER_SECOND)).ok_or_else(range_error);
        }
    }
    match read("timestamp with time zone", text, ctx)? {
        Moment::Infinity => Ok(TIMESTAMP_INFINITY),
        Moment::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Moment::Local { days, time, offset } => {
            let local =
                days.checked_mul(MICROS_PER_DAY).and_then(|day| day.checked_add(time)).ok_or_else(range_error)?;
            let utc = match offset {
                Some(east) => local.saturating_sub(i64::from(east) * MICROS_PER_SECOND),
                None => ctx.timezone.to_utc(local),
            };
            in_range(utc).ok_or_else(range_error)
        }
    }
}

fn out_of_range(type_name: &str, text: &str) -> Error {
    let short = type_name.split(' ').next().unwrap_or(type_name);
    Error::new("22008", format!("{short} out of range: \"{text}\""))
}

fn in_range(micros: i64) -> Option<i64> {
    (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&micros).then_some(micros)
}

fn join(days: i64, time: i64) -> Option<i64> {
    let micros = i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(time);
    in_range(i64::try_from(micros).ok()?)
}

fn checked_days(year: i32, month: u32, day: u32) -> Option<i64> {
    ((1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month))
        .then(|| days_from_civil(year, month, day))
}

/// Two digits at the start.
#[inline]
fn pair(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => Some(u32::from(a - b'0') * 10 + u32::from(b - b'0')),
        _ => None,
    }
}

/// `YYYY-MM-DD` at the start, and what follows it.
#[inline]
fn iso_date(bytes: &[u8]) -> Option<(i32, u32, u32, &[u8])> {
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = pair(bytes)? * 100 + pair(&bytes[2..])?;
    let (month, day) = (pair(&bytes[5..])?, pair(&bytes[8..])?);
    (year > 0).then_some((year as i32, month, day, &bytes[10..]))
}

/// `HH:MM:SS[.ffffff]` at the start, and what follows it.
#[inline]
fn iso_time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    if bytes.len() < 8 || bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (pair(bytes)?, pair(&bytes[3..])?, pair(&bytes[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &bytes[8..];
    let mut micros = 0;
    if let Some(digits) = rest.strip_prefix(b".") {
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 6 {
            return None;
        }
        micros = digits[..count].iter().fold(0, |micros, byte| micros * 10 + i64::from(byte - b'0'));
        micros *= 10i64.pow(6 - count as u32);
        rest = &digits[count..];
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some((seconds * MICROS_PER_SECOND + micros, rest))
}

/// `YYYY-MM-DD[ T]HH:MM:SS[.ffffff]` at the start, and what follows it.
#[inline]
fn iso_timestamp(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (year, month, day, rest) = iso_date(bytes)?;
    let days = checked_days(year, month, day)?;
    match rest {
        [] => Some((days * MICROS_PER_DAY, rest)),
        [b' ' | b'T', time @ ..] => {
            let (time, rest) = iso_time(time)?;
            Some((days * MICROS_PER_DAY + time, rest))
        }
        _ => None,
    }
}

/// `+02`, `-3:30`, `+0530`, `+00:53:28`, `Z`: seconds east.
fn parse_offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    clock::displacement(text).ok()
}

/// The same for a zone that may be a number: `None` if it is none, an error if it is too far.
pub(super) fn zone_offset(text: &str) -> Option<std::result::Result<i32, ()>> {
    match clock::displacement(text) {
        Ok(offset) => Some(Ok(offset)),
        Err(Fault::Displacement) => Some(Err(())),
        Err(_) => None,
    }
}

/// The fields of a date, a time or an interval.
pub(crate) fn fields(text: &str) -> Option<Vec<Field>> {
    split::split(text, |name| word(name).is_some())
}

/// What text stands for.
enum Moment {
    Infinity,
    NegInfinity,
    Local {
        days: i64,
        time: i64,
        /// Seconds east.
        offset: Option<i32>,
    },
}

fn read(type_name: &str, text: &str, ctx: &EvalContext) -> Result<Moment> {
    decoded(text, ctx).map_err(|fault| fault.of(type_name, text))
}

fn decoded(text: &str, ctx: &EvalContext) -> Decoded<Moment> {
    let fields = fields(text).ok_or(Fault::Format)?;
    let mut decoder = Decoder::new(ctx, false);
    decoder.read(&fields)?;
    match decoder.special {
        Some(Special::Infinity) => return Ok(Moment::Infinity),
        Some(Special::NegInfinity) => return Ok(Moment::NegInfinity),
        Some(_) => return Ok(Moment::Local { days: 0, time: 0, offset: Some(0) }),
        None => {}
    }
    let days = decoder.days()?;
    let time = decoder.time()?;
    let days = days.ok_or(Fault::Format)?;
    if decoder.has_stray_modifier() {
        return Err(Fault::Format);
    }
    let local = days.saturating_mul(MICROS_PER_DAY).saturating_add(time);
    let offset = match &decoder.zone {
        Given::None => None,
        Given::Offset(east) => Some(*east),
        Given::Named(zone) => Some(((local - zone.to_utc(local)) / MICROS_PER_SECOND) as i32),
        Given::Abbreviation(name, zone) => Some(TimeZone::abbreviated_offset(name, zone, local)),
    };
    Ok(Moment::Local { days, time, offset })
}

/// 1 to 12.
pub(super) fn month_number(word: &str) -> Option<u32> {
    let word = word.to_ascii_lowercase();
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    if word == "sept" {
        return Some(9);
    }
    NAMES.iter().position(|name| *name == word || name[..3] == word).map(|at| at as u32 + 1)
}

fn is_weekday(word: &str) -> bool {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    NAMES.iter().any(|name| *name == word || name[..3] == *word)
        || matches!(word, "tues" | "wednes" | "weds" | "thur" | "thurs")
}
