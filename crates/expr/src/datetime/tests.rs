mod cases;

use super::*;
use crate::context::{EvalContext, IntervalStyle};
use crate::error::Result;
use crate::interval::{Interval, IntervalFields, parse_interval, write_interval};
use crate::numeric::Numeric;

fn berlin() -> EvalContext {
    EvalContext { timezone: TimeZone::parse("Europe/Berlin").unwrap(), ..EvalContext::at(0) }
}

fn interval(text: &str) -> Interval {
    parse_interval(text, IntervalFields::All, IntervalStyle::Postgres).unwrap()
}

fn interval_text(value: Interval, style: IntervalStyle) -> String {
    let mut out = Vec::new();
    write_interval(value, style, &mut out);
    String::from_utf8(out).unwrap()
}

fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

fn evaluate(operator: &str, left: &str, right: &str, ctx: &EvalContext) -> Result<String> {
    let local = |text: &str| parse_timestamp(text, ctx);
    let moment = |text: &str| parse_timestamptz(text, ctx);
    let number = |value: Option<Numeric>| value.map_or("<null>".to_string(), |value| value.to_string());
    let print = |value: Interval| interval_text(value, IntervalStyle::Postgres);
    let local_text = |micros: i64| written(|out| write_timestamp(micros, ctx, out));
    let moment_text = |micros: i64| written(|out| write_timestamptz(micros, ctx, out));
    let field = |type_name: &str| Field::parse(right, type_name);
    let zone = Some(&ctx.timezone);
    Ok(match operator {
        "timestamp+" => local_text(timestamp_add(local(left)?, interval(right))?),
        "timestamptz+" => moment_text(timestamptz_add(moment(left)?, interval(right), &ctx.timezone)?),
        "extract_ts" => number(extract_timestamp(field("timestamp")?, local(left)?, None)?),
        "extract_tz" => number(extract_timestamp(field("timestamptz")?, moment(left)?, zone)?),
        "extract_date" => number(extract_date(field("date")?, timestamp_to_date(local(left)?))?),
        "extract_iv" => number(extract_interval(field("interval")?, interval(left))?),
        "trunc_ts" => local_text(date_trunc(field("timestamp")?, local(left)?, None)?),
        "trunc_tz" => moment_text(date_trunc(field("timestamptz")?, moment(left)?, zone)?),
        "trunc_iv" => print(trunc_interval(field("interval")?, interval(left))?),
        "age" => print(age(local(left)?, local(right)?)?),
        "timestamp-" => print(timestamp_sub(local(left)?, local(right)?)?),
        "iv*" => print(interval(left).mul(right.parse().unwrap())?),
        "iv/" => print(interval(left).div(right.parse().unwrap())?),
        "justify_hours" => print(interval(left).justify_hours()?),
        "justify_days" => print(interval(left).justify_days()?),
        "justify_interval" => print(interval(left).justify()?),
        "time+" => written(|out| write_time(time_add(parse_time(left, ctx).unwrap(), interval(right)), out)),
        "time-" => written(|out| write_time(time_sub(parse_time(left, ctx).unwrap(), interval(right)), out)),
        other => panic!("no operator {other}"),
    })
}

#[test]
fn operators_agree_with_postgresql() {
    let ctx = berlin();
    let mut wrong = Vec::new();
    for (operator, left, right, expected) in cases::CASES {
        let got = match evaluate(operator, left, right, &ctx) {
            Ok(text) => text,
            Err(error) => format!("ERROR {}: {}", error.sqlstate, error.message),
        };
        if got != *expected {
            wrong.push(format!("{operator} {left:?} {right:?}: expected {expected:?}, got {got:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn interval_styles_agree_with_postgresql() {
    for (value, style, expected) in cases::STYLES {
        let style = match *style {
            "postgres" => IntervalStyle::Postgres,
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            _ => IntervalStyle::Iso8601,
        };
        assert_eq!(interval_text(interval(value), style), *expected, "{value}");
    }
}

#[test]
fn every_day_of_eight_centuries_has_one_date() {
    for days in -150_000..150_000 {
        let (year, month, day) = civil_from_days(days);
        assert_eq!(days_from_civil(year, month, day), days);
        assert!((1..=days_in_month(year, month)).contains(&day));
    }
}

#[test]
fn parts_of_timestamps_are_what_extract_gives() {
    const NAMES: [&str; 19] = [
        "microseconds",
        "ms",
        "second",
        "minute",
        "hour",
        "day",
        "week",
        "month",
        "quarter",
        "year",
        "decade",
        "century",
        "millennium",
        "dow",
        "isodow",
        "doy",
        "isoyear",
        "epoch",
        "Minutes",
    ];
    let steps = (-3_000..3_000i64).map(|step| step * 37_123_456_789_011);
    let all: Vec<i64> =
        steps.filter(|at| *at > TIMESTAMP_MIN).chain([0, -1, 1, 86_399_999_999, TIMESTAMP_MIN]).collect();
    for name in NAMES {
        let part = Part::parse(name).unwrap();
        let field = Field::parse(name, "timestamp").unwrap();
        for (at, value) in all.iter().zip(part.values(&all)) {
            let expected = extract_timestamp(field, *at, None).unwrap().unwrap().to_string();
            let own = Numeric::from_scaled(value.into(), part.scale().into()).to_string();
            assert_eq!(own, expected, "{name} of {at}");
        }
        let infinite = extract_timestamp(field, i64::MAX, None).unwrap();
        assert_eq!(infinite.is_some(), part.is_endless(), "{name}");
    }
    assert_eq!(["julian", "timezone", "timezone_hour", "fortnight"].map(Part::parse), [None; 4]);
}
