//! `interval` to text in the four styles of `IntervalStyle`.

use super::Interval;
use crate::context::IntervalStyle;
use crate::datetime::{MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use std::io::Write;

/// An interval as it is printed: fields of one sign each, time split up.
struct Fields {
    years: i32,
    months: i32,
    days: i32,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

/// An interval as messages show it, in PostgreSQL's style.
pub(crate) fn interval_text(value: Interval) -> String {
    let mut out = Vec::new();
    write_interval(value, IntervalStyle::Postgres, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// Appends the text form.
pub fn write_interval(value: Interval, style: IntervalStyle, out: &mut Vec<u8>) {
    let fields = Fields {
        years: value.months / 12,
        months: value.months % 12,
        days: value.days,
        hours: value.micros / MICROS_PER_HOUR,
        minutes: value.micros / MICROS_PER_MINUTE % 60,
        seconds: value.micros / MICROS_PER_SECOND % 60,
        micros: value.micros % MICROS_PER_SECOND,
    };
    match style {
        IntervalStyle::Postgres => postgres(&fields, value.micros, out),
        IntervalStyle::PostgresVerbose => verbose(&fields, out),
        IntervalStyle::Iso8601 => iso(&fields, out),
        IntervalStyle::SqlStandard => sql(&fields, value, out),
    }
}

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    out.write_fmt(text).expect("a Vec takes every write");
}

/// Seconds without sign, with as many decimals as needed.
fn put_seconds(fields: &Fields, width: usize, out: &mut Vec<u8>) {
    put(out, format_args!("{:0width$}", fields.seconds.abs()));
    let micros = fields.micros.abs();
    if micros != 0 {
        let text = format!(".{micros:06}");
        out.extend_from_slice(text.trim_end_matches('0').as_bytes());
    }
}

fn put_clock(fields: &Fields, hour_width: usize, out: &mut Vec<u8>) {
    put(out, format_args!("{:0hour_width$}:{:02}:", fields.hours.abs(), fields.minutes.abs()));
    put_seconds(fields, 2, out);
}

fn postgres(fields: &Fields, time: i64, out: &mut Vec<u8>) {
    let start = out.len();
    let mut before_negative = false;
    for (value, unit) in [(fields.years, "year"), (fields.months, "mon"), (fields.days, "day")] {
        if value == 0 {
            continue;
        }
        if out.len() > start {
            out.push(b' ');
        }
        // A positive field after a negative one carries its sign.
        if before_negative && value > 0 {
            out.push(b'+');
        }
        put(out, format_args!("{value} {unit}{}", if value == 1 { "" } else { "s" }));
        before_negative = value < 0;
    }
    if time != 0 || out.len() == start {
        if out.len() > start {
            out.push(b' ');
        }
        if time < 0 {
            out.push(b'-');
        } else if before_negative {
            out.push(b'+');
        }
        put_clock(fields, 2, out);
    }
}

fn verbose(fields: &Fields, out: &mut Vec<u8>) {
    out.push(b'@');
    let start = out.len();
    let parts = [
        (i64::from(fields.years), "year"),
        (i64::from(fields.months), "mon"),
        (i64::from(fields.days), "day"),
        (fields.hours, "hour"),
        (fields.minutes, "min"),
    ];
    // The first field's sign is told by "ago", later ones are relative to it.
    let mut ago = None;
    for (value, unit) in parts {
        if value != 0 {
            let negative = *ago.get_or_insert(value < 0);
            let shown = if negative { -value } else { value };
            put(out, format_args!(" {shown} {unit}{}", if shown == 1 { "" } else { "s" }));
        }
    }
    if fields.seconds != 0 || fields.micros != 0 {
        let below_zero = fields.seconds < 0 || fields.micros < 0;
        let negative = *ago.get_or_insert(below_zero);
        out.push(b' ');
        if below_zero != negative {
            out.push(b'-');
        }
        put_seconds(fields, 1, out);
        let one = fields.seconds.abs() == 1 && fields.micros == 0;
        out.extend_from_slice(if one { b" sec" } else { b" secs" });
    }
    if out.len() == start {
        out.extend_from_slice(b" 0");
    }
    if ago == Some(true) {
        out.extend_from_slice(b" ago");
    }
}

fn iso(fields: &Fields, out: &mut Vec<u8>) {
    let start = out.len();
    out.push(b'P');
    for (value, unit) in [(fields.years, 'Y'), (fields.months, 'M'), (fields.days, 'D')] {
        if value != 0 {
            put(out, format_args!("{value}{unit}"));
        }
    }
    let seconds = fields.seconds != 0 || fields.micros != 0;
    if fields.hours != 0 || fields.minutes != 0 || seconds {
        out.push(b'T');
        for (value, unit) in [(fields.hours, 'H'), (fields.minutes, 'M')] {
            if value != 0 {
                put(out, format_args!("{value}{unit}"));
            }
        }
        if seconds {
            if fields.seconds < 0 || fields.micros < 0 {
                out.push(b'-');
            }
            put_seconds(fields, 1, out);
            out.push(b'S');
        }
    }
    if out.len() == start + 1 {
        out.extend_from_slice(b"T0S");
    }
}

fn sql(fields: &Fields, value: Interval, out: &mut Vec<u8>) {
    let (has_month, has_day, has_time) = (value.months != 0, value.days != 0, value.micros != 0);
    let any_negative = value.months < 0 || value.days < 0 || value.micros < 0;
    let any_positive = value.months > 0 || value.days > 0 || value.micros > 0;
    if !has_month && !has_day && !has_time {
        out.push(b'0');
    } else if (any_negative && any_positive) || (has_month && (has_day || has_time)) {
        // Fields that SQL's literals cannot hold together: every part with its sign.
        let sign = |negative: bool| if negative { '-' } else { '+' };
        put(out, format_args!("{}{}-{}", sign(value.months < 0), fields.years.abs(), fields.months.abs()));
        put(out, format_args!(" {}{} ", sign(value.days < 0), fields.days.unsigned_abs()));
        put(out, format_args!("{}", sign(value.micros < 0)));
        put_clock(fields, 1, out);
    } else {
        if any_negative {
            out.push(b'-');
        }
        if has_month {
            put(out, format_args!("{}-{}", fields.years.abs(), fields.months.abs()));
        } else {
            if has_day {
                put(out, format_args!("{} ", fields.days.unsigned_abs()));
            }
            put_clock(fields, 1, out);
        }
    }
}
