//! Dates and times inside of a path: what `.datetime()` makes, how they compare and print.

use super::exec::{Execution, Failure};
use super::template::{Template, Zoned};
use crate::context::{DateFormat, EvalContext};
use crate::datetime::*;
use crate::error::Error;
use std::cmp::Ordering;

/// What `.datetime()` tries without a template, in this order.
const FORMATS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// Offsets are seconds east of Greenwich.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum DateTime {
    Date(i32),
    Time(i64),
    TimeTz { local: i64, offset: i32 },
    Timestamp(i64),
    TimestampTz { utc: i64, offset: i32 },
}

impl DateTime {
    /// Reads text as the template says, or as ISO 8601 has it.
    pub(super) fn parse(text: &str, template: Option<&str>) -> Result<DateTime, Failure> {
        if let Some(template) = template {
            let template = Template::parse(template).map_err(Failure::Hard)?;
            return template.read(text).and_then(|fields| fields.value()).map_err(Failure::Soft);
        }
        for format in FORMATS {
            let template = Template::parse(format).map_err(Failure::Hard)?;
            if let Ok(value) = template.read(text).and_then(|fields| fields.value()) {
                return Ok(value);
            }
        }
        Err(Failure::Soft(
            Error::new("22031", format!("datetime format is not recognized: \"{text}\""))
                .with_hint("Use a datetime template argument to specify the input data format."),
        ))
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            DateTime::Date(_) => "date",
            DateTime::Time(_) => "time without time zone",
            DateTime::TimeTz { .. } => "time with time zone",
            DateTime::Timestamp(_) => "timestamp without time zone",
            DateTime::TimestampTz { .. } => "timestamp with time zone",
        }
    }

    /// As XML Schema has it, in the zone that was given.
    pub fn write(&self, ctx: &EvalContext, out: &mut Vec<u8>) {
        let iso = EvalContext { date_format: DateFormat::Iso, ..ctx.clone() };
        let timestamp = |micros: i64, out: &mut Vec<u8>| {
            let start = out.len();
            write_timestamp(micros, &iso, out);
            if let Some(blank) = out[start..].iter().position(|byte| *byte == b' ') {
                out[start + blank] = b'T';
            }
        };
        match *self {
            DateTime::Date(days) => write_date(days, &iso, out),
            DateTime::Time(micros) => write_time(micros, out),
            DateTime::TimeTz { local, offset } => {
                write_time(local, out);
                write_offset(offset, out);
            }
            DateTime::Timestamp(micros) => timestamp(micros, out),
            DateTime::TimestampTz { utc, offset } => {
                timestamp(utc.saturating_add(i64::from(offset) * MICROS_PER_SECOND), out);
                write_offset(offset, out);
            }
        }
    }

    /// `None` where the two do not compare. 0A000 where that takes the session's zone, and it is not to be used.
    pub(super) fn compare(&self, other: &DateTime, execution: &Execution<'_>) -> Result<Option<Ordering>, Failure> {
        use DateTime::*;
        let zone = execution.ctx.timezone;
        let needs_zone = |from: &str, to: &str| {
            if execution.use_zone {
                return Ok(());
            }
            let message = format!("cannot convert value from {from} to {to} without time zone usage");
            Err(Failure::Hard(Error::not_supported(message).with_hint("Use *_tz() function for time zone support.")))
        };
        let midnight = |days: i32| date_to_timestamp(days).map_err(Failure::Soft);
        Ok(Some(match (*self, *other) {
            (Date(a), Date(b)) => a.cmp(&b),
            (Date(a), Timestamp(b)) => midnight(a)?.cmp(&b),
            (Timestamp(a), Date(b)) => a.cmp(&midnight(b)?),
            (Date(a), TimestampTz { utc, .. }) => {
                needs_zone("date", "timestamptz")?;
                zone.to_utc(midnight(a)?).cmp(&utc)
            }
            (TimestampTz { utc, .. }, Date(b)) => {
                needs_zone("date", "timestamptz")?;
                utc.cmp(&zone.to_utc(midnight(b)?))
            }
            (Timestamp(a), Timestamp(b)) => a.cmp(&b),
            (Timestamp(a), TimestampTz { utc, .. }) => {
                needs_zone("timestamp", "timestamptz")?;
                zone.to_utc(a).cmp(&utc)
            }
            (TimestampTz { utc, .. }, Timestamp(b)) => {
                needs_zone("timestamp", "timestamptz")?;
                utc.cmp(&zone.to_utc(b))
            }
            (TimestampTz { utc: a, .. }, TimestampTz { utc: b, .. }) => a.cmp(&b),
            (Time(a), Time(b)) => a.cmp(&b),
            (Time(local), TimeTz { .. }) => {
                needs_zone("time", "timetz")?;
                zoned_order(&TimeTz { local, offset: zone.offset_at(execution.ctx.now()) }, other)
            }
            (TimeTz { .. }, Time(local)) => {
                needs_zone("time", "timetz")?;
                zoned_order(self, &TimeTz { local, offset: zone.offset_at(execution.ctx.now()) })
            }
            (TimeTz { .. }, TimeTz { .. }) => zoned_order(self, other),
            _ => return Ok(None),
        }))
    }
}

/// Times of day by the moment, then by the zone: the one further west is later.
fn zoned_order(a: &DateTime, b: &DateTime) -> Ordering {
    let parts = |value: &DateTime| match *value {
        DateTime::TimeTz { local, offset } => (local - i64::from(offset) * MICROS_PER_SECOND, -offset),
        _ => (0, 0),
    };
    parts(a).cmp(&parts(b))
}

/// `+hh:mm`, with seconds where there are any.
fn write_offset(offset: i32, out: &mut Vec<u8>) {
    let seconds = offset.unsigned_abs();
    let sign = if offset < 0 { '-' } else { '+' };
    let mut text = format!("{sign}{:02}:{:02}", seconds / 3600, seconds / 60 % 60);
    if !seconds.is_multiple_of(60) {
        text.push_str(&format!(":{:02}", seconds % 60));
    }
    out.extend_from_slice(text.as_bytes());
}

impl Zoned {
    /// The value that the fields make.
    pub(super) fn value(self) -> crate::error::Result<DateTime> {
        let date =
            || make_date(self.year, self.month, self.day).map_err(|_| Error::datetime_field_overflow(&self.text));
        match (self.is_dated, self.is_timed, self.offset) {
            (true, true, offset) => {
                let local = date_to_timestamp(date()?)?.saturating_add(self.time);
                match offset {
                    Some(offset) => {
                        let utc = local.saturating_sub(i64::from(offset) * MICROS_PER_SECOND);
                        Ok(DateTime::TimestampTz { utc, offset })
                    }
                    None if self.is_zoned => {
                        Err(Error::new("22007", "missing time zone in input string for type timestamptz"))
                    }
                    None => Ok(DateTime::Timestamp(local)),
                }
            }
            (true, false, _) if self.is_zoned => Err(Error::new("22007", "datetime format is zoned but not timed")),
            (true, false, _) => Ok(DateTime::Date(date()?)),
            (false, true, Some(offset)) => Ok(DateTime::TimeTz { local: self.time, offset }),
            (false, true, None) if self.is_zoned => {
                Err(Error::new("22007", "missing time zone in input string for type timetz"))
            }
            (false, true, None) => Ok(DateTime::Time(self.time)),
            (false, false, _) => Err(Error::new("22007", "datetime format is not dated and not timed")),
        }
    }
}
