//! `time with time zone`: a time of day and how far its zone is from Greenwich.

use super::*;
use crate::context::EvalContext;
use crate::error::Result;
use crate::interval::Interval;

/// Equal only if both parts are; ordered by the moment in UTC, then by zone, as PostgreSQL orders them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TimeTz {
    /// Microseconds since midnight where the zone is.
    pub micros: i64,
    /// Seconds west of Greenwich.
    pub west: i32,
}

impl TimeTz {
    fn utc(self) -> i64 {
        self.micros + i64::from(self.west) * MICROS_PER_SECOND
    }

    /// The stored form, whose bytes sort as values do.
    pub fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[0..8].copy_from_slice(&(self.utc() as u64 ^ 1 << 63).to_be_bytes());
        bytes[8..12].copy_from_slice(&(self.west as u32 ^ 1 << 31).to_be_bytes());
        bytes
    }

    pub fn from_bytes(bytes: [u8; 16]) -> TimeTz {
        let [u0, u1, u2, u3, u4, u5, u6, u7, w0, w1, w2, w3, ..] = bytes;
        let utc = (u64::from_be_bytes([u0, u1, u2, u3, u4, u5, u6, u7]) ^ 1 << 63) as i64;
        let west = (u32::from_be_bytes([w0, w1, w2, w3]) ^ 1 << 31) as i32;
        TimeTz { micros: utc.wrapping_sub(i64::from(west) * MICROS_PER_SECOND), west }
    }

    /// The local time and offset of a moment.
    pub fn of_moment(utc_micros: i64, zone: &TimeZone) -> TimeTz {
        let offset = zone.offset_at(utc_micros);
        let local = utc_micros.saturating_add(i64::from(offset) * MICROS_PER_SECOND);
        TimeTz { micros: local.rem_euclid(MICROS_PER_DAY), west: -offset }
    }

    /// A time without zone, in the session's as it is today.
    pub fn of_time(micros: i64, ctx: &EvalContext) -> TimeTz {
        let offset = ctx.timezone.offset_at(ctx.now());
        let today = (ctx.now() + i64::from(offset) * MICROS_PER_SECOND).div_euclid(MICROS_PER_DAY);
        let local = today * MICROS_PER_DAY + micros;
        TimeTz { micros, west: ((ctx.timezone.to_utc(local) - local) / MICROS_PER_SECOND) as i32 }
    }

    /// The same moment of the day elsewhere.
    pub fn in_zone(self, west: i32) -> TimeTz {
        let micros = self.utc() - i64::from(west) * MICROS_PER_SECOND;
        TimeTz { micros: micros.rem_euclid(MICROS_PER_DAY), west }
    }

    pub fn plus(self, interval: Interval) -> TimeTz {
        TimeTz { micros: time_add(self.micros, interval), west: self.west }
    }

    pub fn minus(self, interval: Interval) -> TimeTz {
        TimeTz { micros: time_sub(self.micros, interval), west: self.west }
    }

    /// `date + timetz`: a moment.
    pub fn on_date(self, date: i32) -> Result<i64> {
        let start = date_to_timestamp(date)?;
        if !is_finite_timestamp(start) {
            return Ok(start);
        }
        timestamp_add(start, Interval::new(0, 0, self.utc()))
    }

    /// `extract(field FROM timetz)`.
    pub fn extract(self, field: Field) -> Result<crate::Numeric> {
        const NAME: &str = "time with time zone";
        Ok(match field {
            Field::Epoch => crate::Numeric::from_scaled(i128::from(self.utc()), 6),
            Field::Timezone => crate::Numeric::from(i64::from(-self.west)),
            Field::TimezoneHour => crate::Numeric::from(i64::from(-self.west / 3600)),
            Field::TimezoneMinute => crate::Numeric::from(i64::from(-self.west / 60 % 60)),
            field => fields::clock_field(field, self.micros).ok_or_else(|| field.unsupported(NAME))?,
        })
    }
}

/// Appends a time of day and its offset.
pub fn write_timetz(value: TimeTz, out: &mut Vec<u8>) {
    write_time(value.micros, out);
    out.push(if value.west > 0 { b'-' } else { b'+' });
    out.extend_from_slice(zone::offset_digits(value.west.abs()).as_bytes());
}
