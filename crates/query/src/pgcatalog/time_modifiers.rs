//! Names of date and time types with their modifiers, as `format_type` prints them.

use basalt_types::DataType;

/// What `INTERVAL`'s modifier says of decimals where none are given.
const FULL_PRECISION: i32 = 0xffff;

/// `timestamp(3) without time zone`, `interval day to second(0)`; `None` for other types and without a modifier.
pub(super) fn name(ty: &DataType, typmod: i32) -> Option<String> {
    if typmod < 0 {
        return None;
    }
    Some(match ty {
        DataType::Timestamp => format!("timestamp({typmod}) without time zone"),
        DataType::TimestampTz => format!("timestamp({typmod}) with time zone"),
        DataType::Time => format!("time({typmod}) without time zone"),
        DataType::TimeTz => format!("time({typmod}) with time zone"),
        DataType::Interval => {
            let decimals = interval_decimals(typmod).map_or(String::new(), |decimals| format!("({decimals})"));
            format!("interval{}{decimals}", fields(typmod >> 16 & 0x7fff))
        }
        _ => return None,
    })
}

/// The decimals of an interval's modifier, if it says some.
pub(super) fn interval_decimals(typmod: i32) -> Option<i32> {
    Some(typmod & FULL_PRECISION).filter(|decimals| typmod >= 0 && *decimals != FULL_PRECISION)
}

/// The fields that a range's bits stand for, behind a blank.
fn fields(range: i32) -> &'static str {
    let [month, year, day, hour, minute, second] = [1, 2, 3, 10, 11, 12].map(|bit| 1 << bit);
    match range {
        range if range == year => " year",
        range if range == month => " month",
        range if range == year | month => " year to month",
        range if range == day => " day",
        range if range == day | hour => " day to hour",
        range if range == day | hour | minute => " day to minute",
        range if range == day | hour | minute | second => " day to second",
        range if range == hour => " hour",
        range if range == hour | minute => " hour to minute",
        range if range == hour | minute | second => " hour to second",
        range if range == minute => " minute",
        range if range == minute | second => " minute to second",
        range if range == second => " second",
        _ => "",
    }
}
