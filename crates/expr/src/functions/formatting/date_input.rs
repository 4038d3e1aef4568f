//! `to_date` and `to_timestamp` of text: fields found by a template (manual 9.8).

use super::dates::{DAYS, MONTHS, PATTERNS, ROMAN};
use super::{Modifiers, Node, is_separator, nodes};
use crate::datetime::*;
use crate::error::{Error, Result};
use crate::functions::Kernel;
use crate::functions::arg::*;
use crate::functions::casts::round_timestamp;

pub(super) fn bind(name: &str, args: &str) -> Option<Kernel> {
    Some(match (name, args) {
        ("to_date", "text,text") => kernel!(|text: Txt, template: Txt| -> Day { to_date(text, template) }),
        ("to_timestamp", "text,text") => kernel!(|text: Txt, template: Txt; info| -> Micros {
            to_timestamp(text, template, &info.ctx.timezone)
        }),
        _ => return None,
    })
}

fn invalid(message: String) -> Error {
    Error::new("22007", message)
}

/// Which calendar the fields so far belong to.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Calendar {
    Gregorian,
    IsoWeek,
}

/// What was read; 0 is not there, as PostgreSQL has it.
#[derive(Default)]
struct Fields {
    calendar: Option<Calendar>,
    hour: i32,
    afternoon: i32,
    minute: i32,
    second: i32,
    seconds_of_day: i32,
    weekday: i32,
    day: i32,
    day_of_year: i32,
    month: i32,
    millis: i32,
    year: i32,
    before_christ: i32,
    week: i32,
    week_of_month: i32,
    century: i32,
    julian: i32,
    micros: i32,
    /// What seconds are rounded to, from `FF1`…`FF6`.
    decimals: Option<i32>,
    year_digits: i32,
    twelve_hours: bool,
    zone_sign: i32,
    zone_hours: i32,
    zone_minutes: i32,
}

fn set(field: &mut i32, value: i32, name: &str) -> Result<()> {
    if *field != 0 && *field != value {
        return Err(invalid(format!("conflicting values for \"{name}\" field in formatting string"))
            .with_detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

/// Walks over the input.
struct Reader<'a> {
    rest: &'a str,
    /// What stood before `rest`.
    previous: Option<char>,
    /// Characters passed beyond those that the template names.
    extra: i64,
    exact: bool,
    fields: Fields,
}

fn is_blank(char: char) -> bool {
    char.is_ascii_whitespace() || char == '\x0b'
}

impl Reader<'_> {
    fn advance(&mut self, bytes: usize) {
        self.previous = self.rest[..bytes].chars().next_back().or(self.previous);
        self.rest = &self.rest[bytes..];
    }

    fn skip_char(&mut self) {
        if let Some(char) = self.rest.chars().next() {
            self.advance(char.len_utf8());
        }
    }

    fn skip_blanks(&mut self) {
        while self.rest.starts_with(is_blank) {
            self.skip_char();
            self.extra += 1;
        }
    }

    fn read(&mut self, nodes: &[Node]) -> Result<()> {
        for (at, node) in nodes.iter().enumerate() {
            if self.rest.is_empty() {
                break;
            }
            let is_fixed = matches!(node, Node::Pattern { name, .. } if name.eq_ignore_ascii_case("FX"));
            if !self.exact && !is_fixed && (matches!(node, Node::Pattern { .. }) || at == 0) {
                self.skip_blanks();
            }
            match node {
                Node::Space(_) | Node::Separator(_) if self.exact => self.skip_char(),
                Node::Space(_) | Node::Separator(_) => {
                    self.extra -= 1;
                    if self.rest.starts_with(|char| is_blank(char) || is_separator(char)) {
                        self.skip_char();
                        self.extra += 1;
                    }
                }
                Node::Char(_) if !self.exact && self.extra > 0 => self.extra -= 1,
                Node::Char(_) => self.skip_char(),
                Node::Pattern { name, modifiers } => {
                    let open = modifiers.fill || next_is_no_digit(*modifiers, nodes.get(at + 1));
                    self.pattern(name, *modifiers, open)?;
                    if !self.exact {
                        self.extra = 0;
                        self.skip_blanks();
                    }
                }
            }
        }
        Ok(())
    }

    fn set_calendar(&mut self, calendar: Calendar) -> Result<()> {
        match self.fields.calendar {
            Some(other) if other != calendar => Err(invalid("invalid combination of date conventions".into())
                .with_hint("Do not mix Gregorian and ISO week date conventions in a formatting template.")),
            _ => {
                self.fields.calendar = Some(calendar);
                Ok(())
            }
        }
    }

    /// A number of `width` digits, or of as many as there are where `open`; and how many bytes it took.
    fn number(&mut self, name: &str, width: usize, open: bool) -> Result<(i32, usize)> {
        let start = self.rest;
        let blanks = start.len() - start.trim_start_matches(is_blank).len();
        let body = &start[blanks..];
        let source = if open {
            body
        } else {
            let have = body.len();
            if have < width {
                return Err(invalid(format!("source string too short for \"{name}\" formatting field"))
                    .with_detail(format!("Field requires {width} characters, but only {have} remain."))
                    .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
            }
            let mut end = width;
            while !body.is_char_boundary(end) {
                end -= 1;
            }
            &body[..end]
        };
        let inner = source.trim_start_matches(is_blank);
        let sign = usize::from(inner.starts_with(['+', '-']));
        let digits = inner[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let used = if digits == 0 { 0 } else { source.len() - inner.len() + sign + digits };
        if !open && used > 0 && used < width {
            return Err(invalid(format!("invalid value \"{source}\" for \"{name}\""))
                .with_detail(format!("Field requires {width} characters, but only {used} could be parsed."))
                .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        if used == 0 {
            let shown: String = if open { start.chars().take(width).collect() } else { source.to_string() };
            return Err(
                invalid(format!("invalid value \"{shown}\" for \"{name}\"")).with_detail("Value must be an integer.")
            );
        }
        let value = source[..used].trim_start_matches(is_blank).parse::<i64>().ok();
        let value =
            value.and_then(|value| i32::try_from(value).ok()).ok_or_else(|| {
                Error::new("22008", format!("value for \"{name}\" in source string is out of range"))
                    .with_detail(format!("Value must be in the range {} to {}.", i32::MIN, i32::MAX))
            })?;
        self.advance(blanks + used);
        Ok((value, blanks + used))
    }

    /// Which of `words` comes next, in any case.
    fn word(&mut self, name: &str, words: &[&str]) -> Result<usize> {
        let found = words
            .iter()
            .position(|word| self.rest.get(..word.len()).is_some_and(|head| head.eq_ignore_ascii_case(word)));
        match found {
            Some(at) => {
                self.advance(words[at].len());
                Ok(at)
            }
            None => {
                let shown = self.rest.split(is_blank).next().unwrap_or("");
                Err(invalid(format!("invalid value \"{shown}\" for \"{name}\""))
                    .with_detail("The given value did not match any of the allowed values for this field."))
            }
        }
    }

    fn pattern(&mut self, name: &str, modifiers: Modifiers, open: bool) -> Result<()> {
        let key = name.to_ascii_uppercase();
        if let Some(calendar) = calendar_of(&key) {
            self.set_calendar(calendar)?;
        }
        if self.words(name, &key)? || self.zones(name, &key, open)? {
            return Ok(());
        }
        let width = match key.as_str() {
            "HH24" | "HH12" => 2,
            "ID" => 1,
            "IDDD" => 3,
            "FF1" => 1,
            "FF2" => 2,
            "FF3" | "MS" => 3,
            "FF4" => 4,
            "FF5" => 5,
            "FF6" | "US" => 6,
            key => key.len(),
        };
        if key == "Y,YYY" {
            self.year_with_comma(name)?;
        } else {
            let (value, used) = self.number(name, width, open)?;
            self.store(&key, name, value, used)?;
        }
        if modifiers.ordinal.is_some() {
            self.skip_char();
            self.skip_char();
        }
        Ok(())
    }

    fn store(&mut self, key: &str, name: &str, value: i32, used: usize) -> Result<()> {
        let fields = &mut self.fields;
        let scaled = |digits: usize| value.saturating_mul(10i32.pow(digits.saturating_sub(used) as u32));
        match key {
            "HH" | "HH12" => {
                fields.twelve_hours = true;
                set(&mut fields.hour, value, name)
            }
            "HH24" => set(&mut fields.hour, value, name),
            "MI" => set(&mut fields.minute, value, name),
            "SS" => set(&mut fields.second, value, name),
            "SSSS" | "SSSSS" => set(&mut fields.seconds_of_day, value, name),
            "MS" => {
                set(&mut fields.millis, value, name)?;
                fields.millis = scaled(3);
                Ok(())
            }
            "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                set(&mut fields.micros, value, name)?;
                if let Some(decimals) = key.strip_prefix("FF").and_then(|digits| digits.parse().ok()) {
                    fields.decimals = Some(decimals);
                }
                fields.micros = scaled(6);
                Ok(())
            }
            "MM" => set(&mut fields.month, value, name),
            "DDD" | "IDDD" => set(&mut fields.day_of_year, value, name),
            "DD" => set(&mut fields.day, value, name),
            "D" => set(&mut fields.weekday, value, name),
            "ID" => {
                set(&mut fields.weekday, value, name)?;
                // Counted from Sunday on.
                fields.weekday = if value + 1 > 7 { 1 } else { value + 1 };
                Ok(())
            }
            "WW" | "IW" => set(&mut fields.week, value, name),
            "W" => set(&mut fields.week_of_month, value, name),
            "CC" => set(&mut fields.century, value, name),
            "J" => set(&mut fields.julian, value, name),
            "YYYY" | "IYYY" | "YYY" | "IYY" | "YY" | "IY" | "Y" | "I" => {
                set(&mut fields.year, value, name)?;
                let digits = key.bytes().filter(|byte| matches!(byte, b'Y' | b'I')).count() as i32;
                if digits < 4 && used < 4 {
                    fields.year = near_2020(value);
                }
                fields.year_digits = digits;
                Ok(())
            }
            // A quarter does not tell a date.
            _ => Ok(()),
        }
    }

    fn year_with_comma(&mut self, name: &str) -> Result<()> {
        let error = || invalid(format!("invalid input string for \"{name}\""));
        let (thousands, after) = self.rest.split_once(',').ok_or_else(error)?;
        let digits = after.bytes().take(3).take_while(u8::is_ascii_digit).count();
        let thousands: i32 = thousands.trim_start_matches(is_blank).parse().map_err(|_| error())?;
        let rest: i32 = after[..digits].parse().map_err(|_| error())?;
        let used = self.rest.len() - after.len() + digits;
        let year = thousands
            .checked_mul(1000)
            .and_then(|year| year.checked_add(rest))
            .ok_or_else(|| Error::new("22008", format!("value for \"{name}\" in source string is out of range")))?;
        set(&mut self.fields.year, year, name)?;
        self.fields.year_digits = 4;
        self.advance(used);
        Ok(())
    }

    fn words(&mut self, name: &str, key: &str) -> Result<bool> {
        let short = |words: &[&'static str]| -> Vec<&'static str> { words.iter().map(|word| &word[..3]).collect() };
        match key {
            "AM" | "PM" | "A.M." | "P.M." => {
                let words: [&str; 2] = if key.len() == 2 { ["am", "pm"] } else { ["a.m.", "p.m."] };
                let value = self.word(name, &words)?;
                set(&mut self.fields.afternoon, value as i32, name)?;
                self.fields.twelve_hours = true;
            }
            "AD" | "BC" | "A.D." | "B.C." => {
                let words: [&str; 2] = if key.len() == 2 { ["ad", "bc"] } else { ["a.d.", "b.c."] };
                let value = self.word(name, &words)?;
                set(&mut self.fields.before_christ, value as i32, name)?;
            }
            "MONTH" => {
                let month = self.word(name, &MONTHS)? as i32 + 1;
                set(&mut self.fields.month, month, name)?;
            }
            "MON" => {
                let month = self.word(name, &short(&MONTHS))? as i32 + 1;
                set(&mut self.fields.month, month, name)?;
            }
            "DAY" => {
                let day = self.word(name, &DAYS)? as i32;
                set(&mut self.fields.weekday, day, name)?;
                self.fields.weekday += 1;
            }
            "DY" => {
                let day = self.word(name, &short(&DAYS))? as i32;
                set(&mut self.fields.weekday, day, name)?;
                self.fields.weekday += 1;
            }
            "RM" => {
                let month = 12 - self.word(name, &ROMAN)? as i32;
                set(&mut self.fields.month, month, name)?;
            }
            "FX" => self.exact = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn zones(&mut self, name: &str, key: &str, open: bool) -> Result<bool> {
        match key {
            "TZ" | "OF" => {
                Err(Error::not_supported(format!("formatting field \"{name}\" is only supported in to_char")))
            }
            "TZH" => {
                self.fields.zone_sign = match self.rest.chars().next() {
                    Some(sign @ ('+' | '-' | ' ')) => {
                        self.skip_char();
                        if sign == '-' { -1 } else { 1 }
                    }
                    // A minus that was taken for a separator.
                    _ if self.extra > 0 && self.previous == Some('-') => -1,
                    _ => 1,
                };
                let (value, _) = self.number(name, 2, open)?;
                set(&mut self.fields.zone_hours, value, name)?;
                Ok(true)
            }
            "TZM" => {
                if self.fields.zone_sign == 0 {
                    self.fields.zone_sign = 1;
                }
                let (value, _) = self.number(name, 2, open)?;
                set(&mut self.fields.zone_minutes, value, name)?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

fn calendar_of(key: &str) -> Option<Calendar> {
    match key {
        "DDD" | "DD" | "D" | "MM" | "MONTH" | "MON" | "RM" | "W" | "WW" | "Y,YYY" | "YYYY" | "YYY" | "YY" | "Y" => {
            Some(Calendar::Gregorian)
        }
        "IDDD" | "ID" | "IW" | "IYYY" | "IYY" | "IY" | "I" => Some(Calendar::IsoWeek),
        _ => None,
    }
}

/// Whether a number may take all digits that there are: what follows begins with none.
fn next_is_no_digit(modifiers: Modifiers, next: Option<&Node>) -> bool {
    if modifiers.ordinal.is_some() {
        return true;
    }
    match next {
        None => true,
        Some(Node::Pattern { name, .. }) => matches!(
            name.to_ascii_uppercase().as_str(),
            "AM" | "PM"
                | "A.M."
                | "P.M."
                | "AD"
                | "BC"
                | "A.D."
                | "B.C."
                | "MONTH"
                | "MON"
                | "DAY"
                | "DY"
                | "RM"
                | "FX"
                | "TZ"
                | "TZH"
                | "OF"
        ),
        Some(Node::Space(char) | Node::Separator(char) | Node::Char(char)) => !char.is_ascii_digit(),
    }
}

/// Years of fewer than four digits are those nearest to 2020.
fn near_2020(year: i32) -> i32 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// A local date and time, and the offset from UTC in seconds if the text had one.
struct Read {
    year: i32,
    month: i32,
    day: i32,
    time: i64,
    decimals: Option<i32>,
    offset: Option<i32>,
}

fn read(text: &str, template: &str) -> Result<Read> {
    let nodes = nodes(template, &PATTERNS, true);
    let mut reader = Reader { rest: text, previous: None, extra: 0, exact: false, fields: Fields::default() };
    reader.read(&nodes)?;
    let fields = reader.fields;
    let time = fields.time(text)?;
    let (year, month, day) = fields.date(text)?;
    let offset = match fields.zone_sign {
        0 => None,
        sign if (0..=15).contains(&fields.zone_hours) && (0..60).contains(&fields.zone_minutes) => {
            Some(sign * (fields.zone_hours * 3600 + fields.zone_minutes * 60))
        }
        _ => return Err(Error::new("22009", format!("time zone displacement out of range: \"{text}\""))),
    };
    Ok(Read { year, month, day, time, decimals: fields.decimals, offset })
}

impl Fields {
    fn time(&self, text: &str) -> Result<i64> {
        let total = self.seconds_of_day;
        let (mut hour, mut minute, mut second) = (total / 3600, total % 3600 / 60, total % 60);
        for (part, given) in [(&mut hour, self.hour), (&mut minute, self.minute), (&mut second, self.second)] {
            if given != 0 {
                *part = given;
            }
        }
        if self.twelve_hours {
            if !(1..=12).contains(&hour) {
                return Err(invalid(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            if self.afternoon != 0 && hour < 12 {
                hour += 12;
            } else if self.afternoon == 0 && hour == 12 {
                hour = 0;
            }
        }
        let micros = i64::from(self.millis) * 1000 + i64::from(self.micros);
        let fits = (0..24).contains(&hour)
            && (0..60).contains(&minute)
            && (0..60).contains(&second)
            && (0..MICROS_PER_SECOND).contains(&micros);
        if !fits {
            return Err(Error::datetime_field_overflow(text));
        }
        Ok(i64::from(hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros)
    }

    /// The astronomical year that year, century and era make, if any of them was given.
    fn astronomical_year(&self) -> Option<i32> {
        let century = if self.before_christ != 0 { -self.century } else { self.century };
        if self.year != 0 {
            if self.century != 0 && self.year_digits <= 2 {
                let year = self.year % 100;
                return Some(match (year, century < 0) {
                    (0, negative) => century.saturating_mul(100).saturating_add(i32::from(negative)),
                    (year, true) => (century + 1).saturating_mul(100) - year + 1,
                    (year, false) => (century - 1).saturating_mul(100).saturating_add(year),
                });
            }
            let year = if self.before_christ != 0 { self.year.saturating_neg() } else { self.year };
            return Some(if year < 0 { year + 1 } else { year });
        }
        if self.century == 0 {
            return None;
        }
        let before = if century >= 0 { century - 1 } else { century };
        Some(before.saturating_mul(100).saturating_add(1))
    }

    fn date(&self, text: &str) -> Result<(i32, i32, i32)> {
        let overflow = || Error::datetime_field_overflow(text);
        let given_year = self.astronomical_year();
        let (mut year, mut month, mut day) = (given_year.unwrap_or(0), 1, 1);
        let (mut has_year, mut has_month, mut has_day) = (given_year.is_some(), false, false);
        if year.unsigned_abs() > 10_000_000 {
            return Err(Error::new("22008", format!("date out of range: \"{text}\"")));
        }
        let mut of_days = |days: i64, year: &mut i32, month: &mut i32, day: &mut i32| {
            let (y, m, d) = civil_from_days(days);
            (*year, *month, *day) = (y, m as i32, d as i32);
            (has_year, has_month, has_day) = (true, true, true);
        };
        if self.julian != 0 {
            of_days(i64::from(self.julian) + i64::from(DATE_MIN), &mut year, &mut month, &mut day);
        }
        let mut day_of_year = self.day_of_year;
        if self.week != 0 {
            if self.calendar == Some(Calendar::IsoWeek) {
                let monday = days_from_iso_week(year, 1) + (i64::from(self.week) - 1) * 7;
                let offset = match self.weekday {
                    0 => 0,
                    1 => 6,
                    weekday => i64::from(weekday) - 2,
                };
                of_days(monday + offset, &mut year, &mut month, &mut day);
            } else {
                day_of_year = (self.week.saturating_sub(1)).saturating_mul(7).saturating_add(1);
            }
        }
        let given_day = match self.week_of_month {
            0 => self.day,
            week => week.saturating_sub(1).saturating_mul(7).saturating_add(1),
        };
        if given_day != 0 {
            day = given_day;
            has_day = true;
        }
        if self.month != 0 {
            month = self.month;
            has_month = true;
        }
        if day_of_year != 0 && (month <= 1 || day <= 1) {
            if year == 0 && self.before_christ == 0 {
                return Err(invalid("cannot calculate day of year without year information".into()));
            }
            if self.calendar == Some(Calendar::IsoWeek) {
                let days = days_from_iso_week(year, 1) + i64::from(day_of_year) - 1;
                let (y, m, d) = civil_from_days(days);
                (year, month, day) = (y, m as i32, d as i32);
                has_year = true;
            } else {
                let mut rest = day_of_year;
                let mut found = 1;
                while found <= 12 && rest > days_in_month(year, found) as i32 {
                    rest -= days_in_month(year, found) as i32;
                    found += 1;
                }
                if month <= 1 {
                    month = found as i32;
                }
                if day <= 1 {
                    day = rest;
                }
            }
            (has_month, has_day) = (true, true);
        }
        let month_fits = (1..=12).contains(&month);
        if (has_month && !month_fits) || (has_day && !(1..=31).contains(&day)) {
            return Err(overflow());
        }
        if has_year && has_month && has_day && day > days_in_month(year, month as u32) as i32 {
            return Err(overflow());
        }
        Ok((year, month, day))
    }
}

impl Read {
    fn days(&self, text: &str) -> Result<i64> {
        let days = days_from_civil(self.year, self.month as u32, self.day as u32);
        if (i64::from(DATE_MIN)..=i64::from(DATE_MAX)).contains(&days) {
            Ok(days)
        } else {
            Err(Error::new("22008", format!("date out of range: \"{text}\"")))
        }
    }
}

fn to_date(text: &str, template: &str) -> Result<i32> {
    let read = read(text, template)?;
    read.days(text).map(|days| days as i32)
}

fn to_timestamp(text: &str, template: &str, zone: &TimeZone) -> Result<i64> {
    let read = read(text, template)?;
    let range = || Error::datetime_out_of_range("timestamp");
    let days = read.days(text).map_err(|_| range())?;
    let local = days.checked_mul(MICROS_PER_DAY).and_then(|start| start.checked_add(read.time)).ok_or_else(range)?;
    let utc = match read.offset {
        Some(offset) => local.checked_sub(i64::from(offset) * MICROS_PER_SECOND).ok_or_else(range)?,
        None => zone.to_utc(local),
    };
    let utc = round_timestamp(utc, read.decimals.unwrap_or(-1))?;
    if (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&utc) { Ok(utc) } else { Err(range()) }
}
