//! Arithmetic of dates, times and intervals.

use crate::datetime::*;
use crate::error::Result;
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::interval::Interval;

fn date_plus(date: i32, span: Interval) -> Result<i64> {
    timestamp_add(date_to_timestamp(date)?, span)
}

fn date_plus_time(date: i32, time: i64) -> Result<i64> {
    let start = date_to_timestamp(date)?;
    if is_finite_timestamp(start) { timestamp_add(start, Interval::new(0, 0, time)) } else { Ok(start) }
}

pub(super) fn bind(function: &str) -> Option<Kernel> {
    dates(function).or_else(|| timestamps(function)).or_else(|| intervals(function))
}

fn dates(function: &str) -> Option<Kernel> {
    Some(match function {
        "date_pli" => kernel!(|date: Day, days: I4| -> Day { date_add_days(date, days) }),
        "integer_pl_date" => kernel!(|days: I4, date: Day| -> Day { date_add_days(date, days) }),
        "date_mii" => kernel!(|date: Day, days: I4| -> Day {
            match days.checked_neg() {
                Some(days) => date_add_days(date, days),
                None => Err(crate::Error::datetime_out_of_range("date")),
            }
        }),
        "date_mi" => kernel!(|a: Day, b: Day| -> I4 { date_sub(a, b) }),
        "date_pl_interval" => kernel!(|date: Day, span: Span| -> Micros { date_plus(date, span) }),
        "interval_pl_date" => kernel!(|span: Span, date: Day| -> Micros { date_plus(date, span) }),
        "date_mi_interval" => kernel!(|date: Day, span: Span| -> Micros { date_plus(date, span.negate()?) }),
        "datetime_pl" => kernel!(|date: Day, time: Micros| -> Micros { date_plus_time(date, time) }),
        "timedate_pl" => kernel!(|time: Micros, date: Day| -> Micros { date_plus_time(date, time) }),
        "time_pl_interval" => kernel!(|time: Micros, span: Span| -> Micros { Ok(time_add(time, span)) }),
        "interval_pl_time" => kernel!(|span: Span, time: Micros| -> Micros { Ok(time_add(time, span)) }),
        "time_mi_interval" => kernel!(|time: Micros, span: Span| -> Micros { Ok(time_sub(time, span)) }),
        "time_mi_time" => kernel!(|a: Micros, b: Micros| -> Span { Ok(Interval::new(0, 0, a - b)) }),
        _ => return None,
    })
}

fn timestamps(function: &str) -> Option<Kernel> {
    Some(match function {
        "timestamp_pl_interval" => kernel!(|at: Micros, span: Span| -> Micros { timestamp_add(at, span) }),
        "interval_pl_timestamp" => kernel!(|span: Span, at: Micros| -> Micros { timestamp_add(at, span) }),
        "timestamp_mi_interval" => kernel!(|at: Micros, span: Span| -> Micros { timestamp_add(at, span.negate()?) }),
        "timestamp_mi" | "timestamptz_mi" => kernel!(|a: Micros, b: Micros| -> Span { timestamp_sub(a, b) }),
        "timestamptz_pl_interval" => {
            kernel!(|at: Micros, span: Span; info| -> Micros { timestamptz_add(at, span, &info.ctx.timezone) })
        }
        "interval_pl_timestamptz" => {
            kernel!(|span: Span, at: Micros; info| -> Micros { timestamptz_add(at, span, &info.ctx.timezone) })
        }
        "timestamptz_mi_interval" => {
            kernel!(|at: Micros, span: Span; info| -> Micros { timestamptz_add(at, span.negate()?, &info.ctx.timezone) })
        }
        _ => return None,
    })
}

fn intervals(function: &str) -> Option<Kernel> {
    Some(match function {
        "interval_pl" => kernel!(|a: Span, b: Span| -> Span { a.add(b) }),
        "interval_mi" => kernel!(|a: Span, b: Span| -> Span { a.sub(b) }),
        "interval_um" => kernel!(|a: Span| -> Span { a.negate() }),
        "interval_mul" => kernel!(|a: Span, factor: F8| -> Span { a.mul(factor) }),
        "mul_d_interval" => kernel!(|factor: F8, a: Span| -> Span { a.mul(factor) }),
        "interval_div" => kernel!(|a: Span, divisor: F8| -> Span { a.div(divisor) }),
        _ => return None,
    })
}
