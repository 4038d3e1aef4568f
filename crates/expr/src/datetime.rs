//! Dates and times: the proleptic Gregorian calendar, time zones, text, arithmetic.
//!
//! Days and microseconds count from 1970-01-01. The range is PostgreSQL's (manual, table 8.9): dates to
//! 5874897-12-31, both from 4714-11-24 BC (Julian day 0); timestamps end at 294247-01-10 04:00:54.775806,
//! thirty years short of PostgreSQL's, because they count from 1970.

mod abbreviations;
mod arithmetic;
mod civil;
mod fields;
mod format;
pub(crate) mod parse;
#[cfg(test)]
mod tests;
mod timetz;
mod zone;

pub use arithmetic::*;
pub use civil::*;
pub use fields::{
    Field, Part, date_trunc, extract_date, extract_interval, extract_time, extract_timestamp, trunc_interval,
};
pub use format::*;
pub use parse::{parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz};
pub use timetz::{TimeTz, write_timetz};
pub use zone::TimeZone;

pub const MICROS_PER_SECOND: i64 = 1_000_000;
pub const MICROS_PER_MINUTE: i64 = 60 * MICROS_PER_SECOND;
pub const MICROS_PER_HOUR: i64 = 60 * MICROS_PER_MINUTE;
pub const MICROS_PER_DAY: i64 = 24 * MICROS_PER_HOUR;

/// 4714-11-24 BC, Julian day 0: the first date of all types.
pub const DATE_MIN: i32 = -2_440_588;
/// 5874897-12-31.
pub const DATE_MAX: i32 = 2_145_042_905;
pub const TIMESTAMP_MIN: i64 = DATE_MIN as i64 * MICROS_PER_DAY;
pub const TIMESTAMP_MAX: i64 = i64::MAX - 1;
/// Dates' and timestamps' infinities.
pub const DATE_INFINITY: i32 = i32::MAX;
pub const DATE_NEG_INFINITY: i32 = i32::MIN;
pub const TIMESTAMP_INFINITY: i64 = i64::MAX;
pub const TIMESTAMP_NEG_INFINITY: i64 = i64::MIN;
/// From 1970-01-01 to 2000-01-01, PostgreSQL's epoch on the wire.
pub const POSTGRES_EPOCH_DAYS: i32 = 10_957;
pub const POSTGRES_EPOCH_MICROS: i64 = POSTGRES_EPOCH_DAYS as i64 * MICROS_PER_DAY;
