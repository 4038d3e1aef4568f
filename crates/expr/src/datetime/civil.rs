//! The proleptic Gregorian calendar, with astronomical years: 0 is 1 BC, -1 is 2 BC.

use super::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};

/// A local date and time taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Civil {
    pub year: i32,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub micros: u32,
}

pub fn is_leap_year(year: i32) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// `month` is 1 to 12.
#[inline]
pub fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap_year(year) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days since 1970-01-01. Counts eras of 400 years from March on, so that the leap day ends a year.
#[inline]
pub fn days_from_civil(year: i32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month, day of a day since 1970-01-01.
#[inline]
pub fn civil_from_days(days: i64) -> (i32, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = (day_of_year - (153 * month_from_march + 2) / 5 + 1) as u32;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 } as u32;
    ((year_of_era + era * 400 + i64::from(month <= 2)) as i32, month, day)
}

impl Civil {
    /// Microseconds since 1970-01-01, local, taken apart.
    #[inline]
    pub fn from_micros(micros: i64) -> Civil {
        let (year, month, day) = civil_from_days(micros.div_euclid(MICROS_PER_DAY));
        Civil::with_time(year, month, day, micros.rem_euclid(MICROS_PER_DAY))
    }

    pub(crate) fn with_time(year: i32, month: u32, day: u32, time: i64) -> Civil {
        Civil {
            year,
            month,
            day,
            hour: (time / MICROS_PER_HOUR) as u32,
            minute: (time / MICROS_PER_MINUTE % 60) as u32,
            second: (time / MICROS_PER_SECOND % 60) as u32,
            micros: (time % MICROS_PER_SECOND) as u32,
        }
    }

    pub fn days(&self) -> i64 {
        days_from_civil(self.year, self.month, self.day)
    }

    /// Microseconds since midnight.
    pub fn time(&self) -> i64 {
        i64::from(self.hour) * MICROS_PER_HOUR
            + i64::from(self.minute) * MICROS_PER_MINUTE
            + i64::from(self.second) * MICROS_PER_SECOND
            + i64::from(self.micros)
    }

    /// Microseconds since 1970-01-01; `None` beyond an i64.
    #[inline]
    pub fn to_micros(&self) -> Option<i64> {
        // Before 1970 the product may pass the least i64 where the sum does not.
        let micros = i128::from(self.days()) * i128::from(MICROS_PER_DAY) + i128::from(self.time());
        i64::try_from(micros).ok()
    }
}

/// ISO 8601 week: its year and number (1 to 53).
pub fn iso_week(days: i64) -> (i32, u32) {
    // The week belongs to the year that its Thursday is in.
    let thursday = days - i64::from(iso_weekday(days)) + 4;
    let (year, _, _) = civil_from_days(thursday);
    let first = days_from_civil(year, 1, 1);
    (year, ((thursday - first) / 7 + 1) as u32)
}

/// The Monday that starts an ISO week.
pub fn days_from_iso_week(year: i32, week: u32) -> i64 {
    let january_4 = days_from_civil(year, 1, 4);
    january_4 - i64::from(iso_weekday(january_4)) + 1 + 7 * (i64::from(week) - 1)
}

/// Monday is 1, Sunday 7.
pub fn iso_weekday(days: i64) -> u32 {
    ((days + 3).rem_euclid(7) + 1) as u32
}

/// January 1st is 1.
pub fn day_of_year(days: i64) -> u32 {
    let (year, _, _) = civil_from_days(days);
    (days - days_from_civil(year, 1, 1) + 1) as u32
}
