//! Functions of dates, times and intervals (manual 9.9).

use super::Kernel;
use super::arg::*;
use crate::datetime::*;
use crate::error::{Error, Result};
use crate::interval::Interval;
use crate::numeric::Numeric;
use basalt_types::Datum;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    match name {
        "extract" => extracts(args),
        "date_part" => parts(args),
        "date_trunc" => truncations(args),
        _ => {
            clocks(name, args).or_else(|| ages(name, args)).or_else(|| makers(name, args)).or_else(|| zones(name, args))
        }
    }
}

fn extracts(args: &str) -> Option<Kernel> {
    Some(match args {
        "text,date" => {
            kernel!(|field: Txt, date: Day| -> Opt<Num> { extract_date(Field::parse(field, "date")?, date) })
        }
        "text,time" => kernel!(|field: Txt, time: Micros| -> Opt<Num> {
            extract_time(Field::parse(field, "time without time zone")?, time)
        }),
        "text,timestamp" => kernel!(|field: Txt, at: Micros| -> Opt<Num> {
            extract_timestamp(Field::parse(field, "timestamp without time zone")?, at, None)
        }),
        "text,timestamptz" => kernel!(|field: Txt, at: Micros; info| -> Opt<Num> {
            extract_timestamp(Field::parse(field, "timestamp with time zone")?, at, Some(&info.ctx.timezone))
        }),
        "text,interval" => {
            kernel!(|field: Txt, span: Span| -> Opt<Num> { extract_interval(Field::parse(field, "interval")?, span) })
        }
        _ => return None,
    })
}

fn float(value: Option<Numeric>) -> Result<Option<f64>> {
    value.map(|value| value.to_f64()).transpose()
}

/// `date_part`: `extract` as double precision; dates as timestamps.
fn parts(args: &str) -> Option<Kernel> {
    Some(match args {
        "text,date" => kernel!(|field: Txt, date: Day| -> Opt<F8> {
            let field = Field::parse(field, "timestamp without time zone")?;
            float(extract_timestamp(field, date_to_timestamp(date)?, None)?)
        }),
        "text,time" => kernel!(|field: Txt, time: Micros| -> Opt<F8> {
            float(extract_time(Field::parse(field, "time without time zone")?, time)?)
        }),
        "text,timestamp" => kernel!(|field: Txt, at: Micros| -> Opt<F8> {
            float(extract_timestamp(Field::parse(field, "timestamp without time zone")?, at, None)?)
        }),
        "text,timestamptz" => kernel!(|field: Txt, at: Micros; info| -> Opt<F8> {
            let field = Field::parse(field, "timestamp with time zone")?;
            float(extract_timestamp(field, at, Some(&info.ctx.timezone))?)
        }),
        "text,interval" => kernel!(|field: Txt, span: Span| -> Opt<F8> {
            let field = Field::parse(field, "interval")?;
            if field == Field::Epoch {
                return Ok(Some(interval_epoch(span)));
            }
            float(extract_interval(field, span)?)
        }),
        _ => return None,
    })
}

/// Seconds, added up in floats as PostgreSQL does it.
fn interval_epoch(span: Interval) -> f64 {
    const DAY_SECONDS: f64 = 86_400.0;
    span.micros as f64 / 1_000_000.0
        + 365.25 * DAY_SECONDS * f64::from(span.months / 12)
        + 30.0 * DAY_SECONDS * f64::from(span.months % 12)
        + DAY_SECONDS * f64::from(span.days)
}

fn truncations(args: &str) -> Option<Kernel> {
    Some(match args {
        // Of infinity nothing is cut off, by whatever name.
        "text,timestamp" => kernel!(|field: Txt, at: Micros| -> Micros {
            match is_finite_timestamp(at) {
                true => date_trunc(Field::parse(field, "timestamp without time zone")?, at, None),
                false => Ok(at),
            }
        }),
        "text,timestamptz" => kernel!(|field: Txt, at: Micros; info| -> Micros {
            match is_finite_timestamp(at) {
                true => date_trunc(Field::parse(field, "timestamp with time zone")?, at, Some(&info.ctx.timezone)),
                false => Ok(at),
            }
        }),
        "text,timestamptz,text" => kernel!(|field: Txt, at: Micros, zone: Txt| -> Micros {
            match is_finite_timestamp(at) {
                true => date_trunc(Field::parse(field, "timestamp with time zone")?, at, Some(&find_zone(zone)?)),
                false => Ok(at),
            }
        }),
        "text,interval" => {
            kernel!(|field: Txt, span: Span| -> Span { trunc_interval(Field::parse(field, "interval")?, span) })
        }
        _ => return None,
    })
}

fn clocks(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("now" | "transaction_timestamp", "-") => scalar!(|_, info| Ok(Datum::I64(info.ctx.now()))),
        ("statement_timestamp", "-") => scalar!(|_, info| Ok(Datum::I64(info.ctx.statement_micros))),
        ("clock_timestamp", "-") => scalar!(|_, info| Ok(Datum::I64((info.ctx.clock)()))),
        ("current_date", "-") => {
            scalar!(|_, info| { Ok(Datum::I32(timestamp_to_date(utc_to_local(info.ctx.now(), &info.ctx.timezone)?))) })
        }
        ("localtimestamp", "-") => {
            scalar!(|_, info| utc_to_local(info.ctx.now(), &info.ctx.timezone).map(Datum::I64))
        }
        ("localtime", "-") => scalar!(|_, info| {
            Ok(Datum::I64(utc_to_local(info.ctx.now(), &info.ctx.timezone)?.rem_euclid(MICROS_PER_DAY)))
        }),
        _ => return None,
    })
}

fn ages(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("age", "timestamp,timestamp") => kernel!(|a: Micros, b: Micros| -> Span { age(a, b) }),
        ("age", "timestamptz,timestamptz") => kernel!(|a: Micros, b: Micros; info| -> Span {
            age(utc_to_local(a, &info.ctx.timezone)?, utc_to_local(b, &info.ctx.timezone)?)
        }),
        ("age", "timestamp") => kernel!(|at: Micros; info| -> Span { age(midnight(info.ctx)?, at) }),
        ("age", "timestamptz") => {
            kernel!(|at: Micros; info| -> Span { age(midnight(info.ctx)?, utc_to_local(at, &info.ctx.timezone)?) })
        }
        ("isfinite", "date") => kernel!(|date: Day| -> Bit { Ok(is_finite_date(date)) }),
        ("isfinite", "timestamp" | "timestamptz") => kernel!(|at: Micros| -> Bit { Ok(is_finite_timestamp(at)) }),
        ("isfinite", "interval") => kernel!(|_span: Span| -> Bit { Ok(true) }),
        ("justify_hours", "interval") => kernel!(|span: Span| -> Span { span.justify_hours() }),
        ("justify_days", "interval") => kernel!(|span: Span| -> Span { span.justify_days() }),
        ("justify_interval", "interval") => kernel!(|span: Span| -> Span { span.justify() }),
        ("date_bin", "interval,timestamp,timestamp" | "interval,timestamptz,timestamptz") => {
            kernel!(|stride: Span, at: Micros, origin: Micros| -> Micros { date_bin(stride, at, origin) })
        }
        _ => return None,
    })
}

/// The start of the current day, local.
fn midnight(ctx: &crate::EvalContext) -> Result<i64> {
    date_to_timestamp(timestamp_to_date(utc_to_local(ctx.now(), &ctx.timezone)?))
}

fn date_bin(stride: Interval, at: i64, origin: i64) -> Result<i64> {
    if !is_finite_timestamp(at) {
        return Ok(at);
    }
    if !is_finite_timestamp(origin) {
        return Err(Error::new("22008", "origin out of range"));
    }
    if stride.months != 0 {
        return Err(Error::not_supported("timestamps cannot be binned into intervals containing months or years"));
    }
    let width = i64::try_from(stride.span()).map_err(|_| Error::datetime_out_of_range("interval"))?;
    if width <= 0 {
        return Err(Error::new("22008", "stride must be greater than zero"));
    }
    let since = at.checked_sub(origin).ok_or_else(|| Error::datetime_out_of_range("interval"))?;
    let bin = since.div_euclid(width).checked_mul(width).and_then(|start| origin.checked_add(start));
    bin.filter(|bin| *bin >= TIMESTAMP_MIN).ok_or_else(|| Error::datetime_out_of_range("timestamp"))
}

fn int(args: &[Datum], at: usize) -> i32 {
    match args.get(at) {
        Some(Datum::I32(value)) => *value,
        _ => 0,
    }
}

fn makers(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("make_date", _) => kernel!(|year: I4, month: I4, day: I4| -> Day { make_date(year, month, day) }),
        ("make_time", _) => kernel!(|hour: I4, minute: I4, second: F8| -> Micros { make_time(hour, minute, second) }),
        ("make_timestamp", _) => {
            kernel!(|year: I4, month: I4, day: I4, hour: I4, minute: I4, second: F8| -> Micros {
                make_timestamp(year, month, day, hour, minute, second)
            })
        }
        ("make_timestamptz", "int4,int4,int4,int4,int4,float8") => {
            kernel!(|year: I4, month: I4, day: I4, hour: I4, minute: I4, second: F8; info| -> Micros {
                local_to_utc(make_timestamp(year, month, day, hour, minute, second)?, &info.ctx.timezone)
            })
        }
        ("make_timestamptz", _) => {
            kernel!(|year: I4, month: I4, day: I4, hour: I4, minute: I4, second: F8, zone: Txt| -> Micros {
                local_to_utc(make_timestamp(year, month, day, hour, minute, second)?, &find_sane_zone(zone)?)
            })
        }
        ("make_interval", _) => scalar!(|args, _| {
            let seconds = if let Some(Datum::F64(seconds)) = args.get(6) { *seconds } else { 0.0 };
            let [years, months, weeks, days, hours, minutes] = [0, 1, 2, 3, 4, 5].map(|at| int(args, at));
            let span = make_interval(years, months, weeks, days, hours, minutes, seconds)?;
            Ok(Datum::Fixed16(span.to_bytes()))
        }),
        ("to_timestamp", "float8") => kernel!(|seconds: F8| -> Micros { timestamp_from_epoch(seconds) }),
        _ => return None,
    })
}

/// A zone given as an interval: hours and minutes east of UTC.
fn offset_micros(span: Interval) -> Result<i64> {
    if span.months != 0 || span.days != 0 {
        return Err(Error::invalid_parameter(format!(
            "interval time zone \"{}\" must not include months or days",
            crate::interval::interval_text(span)
        )));
    }
    Ok(span.micros)
}

fn zones(name: &str, args: &str) -> Option<Kernel> {
    if name != "timezone" {
        return None;
    }
    Some(match args {
        "text,timestamptz" => kernel!(|zone: Txt, at: Micros| -> Micros { utc_to_local(at, &find_zone(zone)?) }),
        "text,timestamp" => kernel!(|zone: Txt, at: Micros| -> Micros { local_to_utc(at, &find_zone(zone)?) }),
        "interval,timestamptz" => {
            kernel!(|zone: Span, at: Micros| -> Micros { timestamp_add(at, Interval::new(0, 0, offset_micros(zone)?)) })
        }
        "interval,timestamp" => kernel!(|zone: Span, at: Micros| -> Micros {
            timestamp_add(at, Interval::new(0, 0, offset_micros(zone)?).negate()?)
        }),
        _ => return None,
    })
}
