//! `to_char` of timestamps: the template patterns of manual table 9.27 that output uses.

use crate::datetime::{Civil, TimeZone, day_of_year, is_finite_timestamp, iso_week, iso_weekday};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const ROMAN: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What the patterns read.
struct Moment<'a> {
    civil: Civil,
    days: i64,
    micros: i64,
    zone: Option<(&'a TimeZone, i64)>,
}

/// Longest first where one is a prefix of another.
const PATTERNS: [&str; 58] = [
    "HH24", "HH12", "HH", "MI", "SSSSS", "SSSS", "SS", "MS", "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "AM",
    "PM", "A.M.", "P.M.", "am", "pm", "a.m.", "p.m.", "Y,YYY", "YYYY", "YYY", "YY", "Y", "IYYY", "IYY", "IY", "MONTH",
    "Month", "month", "MON", "Mon", "mon", "MM", "DAY", "Day", "day", "DY", "Dy", "dy", "DDD", "DD", "ID", "IW", "D",
    "WW", "W", "CC", "J", "Q", "RM", "TZ", "OF", "tz",
];

/// A local timestamp by a template; null for infinite ones.
pub(super) fn timestamp(micros: i64, format: &str, zone: Option<(&TimeZone, i64)>) -> Option<String> {
    if !is_finite_timestamp(micros) {
        return None;
    }
    let civil = Civil::from_micros(micros);
    let moment = Moment { days: civil.days(), micros: civil.time(), civil, zone };
    let mut out = String::with_capacity(format.len() + 8);
    let mut rest = format;
    while let Some(char) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            let end = quoted.find('"').unwrap_or(quoted.len());
            out.push_str(&quoted[..end]);
            rest = quoted.get(end + 1..).unwrap_or("");
            continue;
        }
        if let Some(escaped) = rest.strip_prefix("\\\"") {
            out.push('"');
            rest = escaped;
            continue;
        }
        let (fill, after_prefix) = match rest.strip_prefix("FM").or_else(|| rest.strip_prefix("fm")) {
            Some(after) => (false, after),
            None => (true, rest),
        };
        let found = PATTERNS.iter().filter(|pattern| starts(after_prefix, pattern)).max_by_key(|pattern| pattern.len());
        let Some(pattern) = found else {
            if fill {
                out.push(char);
                rest = &rest[char.len_utf8()..];
            } else {
                rest = after_prefix;
            }
            continue;
        };
        let (text, number) = moment.field(pattern, &after_prefix[..pattern.len()], fill);
        out.push_str(&text);
        rest = &after_prefix[pattern.len()..];
        if let Some(ordinal) = rest.strip_prefix("TH").or_else(|| rest.strip_prefix("th"))
            && let Some(number) = number
        {
            let suffix = suffix(number);
            out.push_str(&if rest.starts_with("TH") { suffix.to_uppercase() } else { suffix.to_string() });
            rest = ordinal;
        }
    }
    Some(out)
}

/// Names and meridians keep their case; numeric patterns may be written in either.
fn starts(text: &str, pattern: &str) -> bool {
    let Some(head) = text.get(..pattern.len()) else { return false };
    let cased = ["month", "mon", "day", "dy", "am", "pm", "a.m.", "p.m.", "tz"];
    head == pattern || (head.eq_ignore_ascii_case(pattern) && !cased.contains(&pattern.to_lowercase().as_str()))
}

fn suffix(number: i64) -> &'static str {
    match (number % 100, number % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    }
}

impl Moment<'_> {
    fn field(&self, pattern: &str, written: &str, fill: bool) -> (String, Option<i64>) {
        match self.number(pattern) {
            Some((number, width)) => {
                let text = if fill { format!("{number:0width$}") } else { number.to_string() };
                (text, Some(number))
            }
            None => (self.name(pattern, written, fill), None),
        }
    }

    /// Fields printed as numbers, and their width.
    fn number(&self, pattern: &str) -> Option<(i64, usize)> {
        let civil = &self.civil;
        let year = if civil.year <= 0 { 1 - i64::from(civil.year) } else { i64::from(civil.year) };
        let (iso_year, week) = iso_week(self.days);
        let seconds = self.micros / 1_000_000;
        let fraction = self.micros % 1_000_000;
        Some(match pattern {
            "HH24" => (seconds / 3600, 2),
            "HH12" | "HH" => ((seconds / 3600 + 11) % 12 + 1, 2),
            "MI" => (seconds / 60 % 60, 2),
            "SS" => (seconds % 60, 2),
            "SSSS" | "SSSSS" => (seconds, 1),
            "MS" | "FF3" => (fraction / 1000, 3),
            "US" | "FF6" => (fraction, 6),
            "FF1" => (fraction / 100_000, 1),
            "FF2" => (fraction / 10_000, 2),
            "FF4" => (fraction / 100, 4),
            "FF5" => (fraction / 10, 5),
            "YYYY" => (year, 4),
            "YYY" => (year % 1000, 3),
            "YY" => (year % 100, 2),
            "Y" => (year % 10, 1),
            "IYYY" => (i64::from(iso_year), 4),
            "IYY" => (i64::from(iso_year) % 1000, 3),
            "IY" => (i64::from(iso_year) % 100, 2),
            "MM" => (i64::from(civil.month), 2),
            "DDD" => (i64::from(day_of_year(self.days)), 3),
            "DD" => (i64::from(civil.day), 2),
            "D" => (i64::from(iso_weekday(self.days)) % 7 + 1, 1),
            "ID" => (i64::from(iso_weekday(self.days)), 1),
            "IW" => (i64::from(week), 2),
            "WW" => ((i64::from(day_of_year(self.days)) - 1) / 7 + 1, 2),
            "W" => ((i64::from(civil.day) - 1) / 7 + 1, 1),
            "CC" => ((i64::from(civil.year) + 99).div_euclid(100), 2),
            "J" => (self.days + 2_440_588, 1),
            "Q" => ((i64::from(civil.month) - 1) / 3 + 1, 1),
            _ => return None,
        })
    }

    fn name(&self, pattern: &str, written: &str, fill: bool) -> String {
        let month = MONTHS[(self.civil.month as usize - 1) % 12];
        let day = DAYS[(iso_weekday(self.days) as usize - 1) % 7];
        let afternoon = self.micros >= 12 * 3_600_000_000;
        let padded = |name: &str| if fill { format!("{name:<9}") } else { name.to_string() };
        match pattern {
            "MONTH" => padded(&month.to_uppercase()),
            "Month" => padded(month),
            "month" => padded(&month.to_lowercase()),
            "MON" => month[..3].to_uppercase(),
            "Mon" => month[..3].to_string(),
            "mon" => month[..3].to_lowercase(),
            "DAY" => padded(&day.to_uppercase()),
            "Day" => padded(day),
            "day" => padded(&day.to_lowercase()),
            "DY" => day[..3].to_uppercase(),
            "Dy" => day[..3].to_string(),
            "dy" => day[..3].to_lowercase(),
            "AM" | "PM" => if afternoon { "PM" } else { "AM" }.to_string(),
            "am" | "pm" => if afternoon { "pm" } else { "am" }.to_string(),
            "A.M." | "P.M." => if afternoon { "P.M." } else { "A.M." }.to_string(),
            "a.m." | "p.m." => if afternoon { "p.m." } else { "a.m." }.to_string(),
            "Y,YYY" => format!("{},{:03}", self.civil.year / 1000, self.civil.year % 1000),
            "RM" => {
                let roman = ROMAN[(self.civil.month as usize - 1) % 12];
                let roman = if written == "rm" { roman.to_lowercase() } else { roman.to_string() };
                if fill { format!("{roman:<4}") } else { roman }
            }
            "TZ" => self.zone.map_or(String::new(), |(zone, at)| zone.abbreviation_at(at).0.to_uppercase()),
            "tz" => self.zone.map_or(String::new(), |(zone, at)| zone.abbreviation_at(at).0.to_lowercase()),
            "OF" => self.offset(),
            other => other.to_string(),
        }
    }

    fn offset(&self) -> String {
        let seconds = self.zone.map_or(0, |(zone, at)| zone.offset_at(at));
        let (hours, minutes) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
        let sign = if seconds < 0 { '-' } else { '+' };
        if minutes == 0 { format!("{sign}{hours:02}") } else { format!("{sign}{hours:02}:{minutes:02}") }
    }
}
