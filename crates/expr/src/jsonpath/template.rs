//! Templates of `.datetime()`: the patterns of manual table 9.26 as the SQL standard reads them. Separators and
//! quoted text must be in the input as they are in the template, nothing may be left over on either side.

use crate::datetime::{MICROS_PER_DAY, MICROS_PER_HOUR, MICROS_PER_MINUTE, MICROS_PER_SECOND};
use crate::error::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    /// Digits that are the end of a year.
    Year(usize),
    Month,
    MonthName,
    Day,
    Hour24,
    Hour12,
    Minute,
    Second,
    SecondOfDay,
    /// Digits of a fraction of a second.
    Fraction(usize),
    Meridiem,
    ZoneHour,
    ZoneMinute,
}

/// Longest first where one begins with another.
const PATTERNS: [(&str, Field); 31] = [
    ("SSSSS", Field::SecondOfDay),
    ("SSSS", Field::SecondOfDay),
    ("YYYY", Field::Year(4)),
    ("YYY", Field::Year(3)),
    ("YY", Field::Year(2)),
    ("Y", Field::Year(1)),
    ("RRRR", Field::Year(4)),
    ("RR", Field::Year(2)),
    ("MONTH", Field::MonthName),
    ("MON", Field::MonthName),
    ("MM", Field::Month),
    ("DD", Field::Day),
    ("HH24", Field::Hour24),
    ("HH12", Field::Hour12),
    ("HH", Field::Hour12),
    ("MI", Field::Minute),
    ("SS", Field::Second),
    ("MS", Field::Fraction(3)),
    ("US", Field::Fraction(6)),
    ("FF1", Field::Fraction(1)),
    ("FF2", Field::Fraction(2)),
    ("FF3", Field::Fraction(3)),
    ("FF4", Field::Fraction(4)),
    ("FF5", Field::Fraction(5)),
    ("FF6", Field::Fraction(6)),
    ("AM", Field::Meridiem),
    ("PM", Field::Meridiem),
    ("A.M.", Field::Meridiem),
    ("P.M.", Field::Meridiem),
    ("TZH", Field::ZoneHour),
    ("TZM", Field::ZoneMinute),
];

const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Node {
    /// The field, and its pattern.
    Field(Field, &'static str),
    Separator(char),
    Quoted(char),
}

pub(super) struct Template {
    nodes: Vec<Node>,
}

/// What a template found.
pub(super) struct Zoned {
    /// The input, for messages.
    pub text: String,
    pub is_dated: bool,
    pub is_timed: bool,
    /// The template has a zone.
    pub is_zoned: bool,
    pub year: i32,
    pub month: i32,
    pub day: i32,
    /// Microseconds since midnight.
    pub time: i64,
    /// Seconds east of Greenwich.
    pub offset: Option<i32>,
}

fn malformed(message: impl Into<String>) -> Error {
    Error::new("22007", message)
}

impl Template {
    pub fn parse(text: &str) -> Result<Template> {
        let mut nodes = Vec::new();
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let pattern = PATTERNS
                .into_iter()
                .find(|(name, _)| rest.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name)));
            if let Some((name, field)) = pattern {
                nodes.push(Node::Field(field, name));
                rest = &rest[name.len()..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            match c {
                '"' => {
                    let mut escaped = false;
                    let mut end = rest.len();
                    for (at, inner) in rest.char_indices() {
                        match inner {
                            '"' if !escaped => {
                                end = at;
                                break;
                            }
                            '\\' if !escaped => escaped = true,
                            inner => {
                                nodes.push(Node::Quoted(inner));
                                escaped = false;
                            }
                        }
                    }
                    rest = rest.get(end + 1..).unwrap_or("");
                }
                '-' | '.' | '/' | ',' | '\'' | ';' | ':' | ' ' => nodes.push(Node::Separator(c)),
                c => return Err(malformed(format!("invalid datetime format separator: \"{c}\""))),
            }
        }
        Ok(Template { nodes })
    }

    /// Whether a field's digits go as far as there are digits.
    fn is_open(&self, at: usize) -> bool {
        match self.nodes.get(at + 1) {
            None => true,
            Some(Node::Field(field, _)) => matches!(field, Field::MonthName | Field::Meridiem | Field::ZoneHour),
            Some(Node::Separator(_)) => true,
            Some(Node::Quoted(c)) => !c.is_ascii_digit(),
        }
    }

    pub fn read(&self, text: &str) -> Result<Zoned> {
        let mut reader = Reader { rest: text, found: Parts::default() };
        for (at, node) in self.nodes.iter().enumerate() {
            if reader.rest.is_empty() {
                return Err(malformed("input string is too short for datetime format"));
            }
            match node {
                Node::Separator(c) => match reader.rest.strip_prefix(*c) {
                    Some(rest) => reader.rest = rest,
                    None => return Err(malformed(format!("unmatched format separator \"{c}\""))),
                },
                Node::Quoted(c) => match reader.rest.strip_prefix(*c) {
                    Some(rest) => reader.rest = rest,
                    None => return Err(malformed(format!("unmatched format character \"{c}\""))),
                },
                Node::Field(field, name) => reader.field(*field, name, self.is_open(at))?,
            }
        }
        if !reader.rest.trim_start_matches(|c: char| c.is_ascii_whitespace()).is_empty() {
            return Err(malformed("trailing characters remain in input string after datetime format"));
        }
        let has = |test: fn(&Field) -> bool| {
            self.nodes.iter().any(|node| matches!(node, Node::Field(field, _) if test(field)))
        };
        let is_dated = has(|field| matches!(field, Field::Year(_) | Field::Month | Field::MonthName | Field::Day));
        let is_zoned = has(|field| matches!(field, Field::ZoneHour | Field::ZoneMinute));
        let is_timed = has(|field| {
            !matches!(
                field,
                Field::Year(_) | Field::Month | Field::MonthName | Field::Day | Field::ZoneHour | Field::ZoneMinute
            )
        });
        reader.found.settle(text, is_dated, is_timed, is_zoned)
    }
}

#[derive(Default)]
struct Parts {
    year: Option<i32>,
    month: Option<i32>,
    day: Option<i32>,
    hour: Option<i32>,
    is_hour12: bool,
    is_pm: Option<bool>,
    minute: Option<i32>,
    second: Option<i32>,
    second_of_day: Option<i32>,
    micros: Option<i32>,
    zone_sign: i32,
    zone_hour: Option<i32>,
    zone_minute: Option<i32>,
}

struct Reader<'a> {
    rest: &'a str,
    found: Parts,
}

impl Reader<'_> {
    fn digits(&mut self, name: &str, length: usize, is_open: bool) -> Result<(i32, usize)> {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_whitespace());
        let limit = if is_open { usize::MAX } else { length };
        let available = self.rest.bytes().take(limit).take_while(u8::is_ascii_digit).count();
        if !is_open && self.rest.len() < length {
            return Err(malformed(format!("source string too short for \"{name}\" formatting field"))
                .with_detail(format!("Field requires {length} characters, but only {} remain.", self.rest.len()))
                .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        if available == 0 {
            let shown: String = self.rest.chars().take(length).collect();
            return Err(
                malformed(format!("invalid value \"{shown}\" for \"{name}\"")).with_detail("Value must be an integer.")
            );
        }
        if !is_open && available < length {
            let shown: String = self.rest.chars().take(length).collect();
            return Err(malformed(format!("invalid value \"{shown}\" for \"{name}\""))
                .with_detail(format!("Field requires {length} characters, but only {available} could be parsed."))
                .with_hint("If your source string is not fixed-width, try using the \"FM\" modifier."));
        }
        let value = self.rest[..available]
            .parse()
            .map_err(|_| Error::new("22008", format!("value for \"{name}\" in source string is out of range")))?;
        self.rest = &self.rest[available..];
        Ok((value, available))
    }

    fn set(&mut self, slot: fn(&mut Parts) -> &mut Option<i32>, value: i32, name: &str) -> Result<()> {
        let slot = slot(&mut self.found);
        if slot.is_some_and(|known| known != value) {
            return Err(malformed(format!("conflicting values for \"{name}\" field in formatting string"))
                .with_detail("This value contradicts a previous setting for the same field type."));
        }
        *slot = Some(value);
        Ok(())
    }

    fn number(
        &mut self,
        slot: fn(&mut Parts) -> &mut Option<i32>,
        name: &str,
        length: usize,
        is_open: bool,
    ) -> Result<()> {
        let (value, _) = self.digits(name, length, is_open)?;
        self.set(slot, value, name)
    }

    fn field(&mut self, field: Field, name: &str, is_open: bool) -> Result<()> {
        match field {
            Field::Year(length) => {
                let (year, digits) = self.digits(name, length, is_open)?;
                // Fewer than four digits mean the year nearest to 2020.
                let year = match digits {
                    1..=3 if length < 4 => match year {
                        0..=69 => year + 2000,
                        70..=99 => year + 1900,
                        100..=519 => year + 2000,
                        _ => year + 1000,
                    },
                    _ => year,
                };
                self.set(|found| &mut found.year, year, name)
            }
            Field::Month => self.number(|found| &mut found.month, name, 2, is_open),
            Field::Day => self.number(|found| &mut found.day, name, 2, is_open),
            Field::Hour24 => self.number(|found| &mut found.hour, name, 2, is_open),
            Field::Hour12 => {
                self.found.is_hour12 = true;
                self.number(|found| &mut found.hour, name, 2, is_open)
            }
            Field::Minute => self.number(|found| &mut found.minute, name, 2, is_open),
            Field::Second => self.number(|found| &mut found.second, name, 2, is_open),
            Field::SecondOfDay => self.number(|found| &mut found.second_of_day, name, 5, is_open),
            Field::Fraction(length) => {
                let (value, digits) = self.digits(name, length, is_open)?;
                if digits > 6 {
                    return Err(Error::new("22008", format!("value for \"{name}\" in source string is out of range")));
                }
                self.set(|found| &mut found.micros, value * 10_i32.pow(6 - digits as u32), name)
            }
            Field::MonthName => {
                let rest = self.rest.to_ascii_lowercase();
                let by = |length: Option<usize>| {
                    MONTHS.iter().position(|month| rest.starts_with(&month[..length.unwrap_or(month.len())]))
                };
                let full = if name.len() > 3 { None } else { Some(3) };
                let Some(month) = by(full) else {
                    return Err(malformed(format!("invalid value \"{}\" for \"{name}\"", self.rest))
                        .with_detail("The given value did not match any of the allowed values for this field."));
                };
                self.rest = &self.rest[full.unwrap_or(MONTHS[month].len())..];
                self.set(|found| &mut found.month, month as i32 + 1, name)
            }
            Field::Meridiem => {
                let dotted = name.contains('.');
                let names = if dotted { ["a.m.", "p.m."] } else { ["am", "pm"] };
                let length = names[0].len();
                let head = self.rest.get(..length).unwrap_or("").to_ascii_lowercase();
                let Some(which) = names.iter().position(|name| *name == head) else {
                    return Err(malformed(format!("invalid value \"{}\" for \"{name}\"", self.rest))
                        .with_detail("The given value did not match any of the allowed values for this field."));
                };
                self.rest = &self.rest[length..];
                self.found.is_pm = Some(which == 1);
                self.found.is_hour12 = true;
                Ok(())
            }
            Field::ZoneHour => {
                self.found.zone_sign = 1;
                if let Some(rest) = self.rest.strip_prefix(['+', '-', ' ']) {
                    // Behind a blank the hours may have a sign of their own.
                    let signed = rest.strip_prefix(['+', '-']).filter(|_| self.rest.starts_with(' '));
                    let sign = if signed.is_some() { rest } else { self.rest };
                    self.found.zone_sign = if sign.starts_with('-') { -1 } else { 1 };
                    self.rest = signed.unwrap_or(rest);
                }
                self.number(|found| &mut found.zone_hour, name, 2, is_open)
            }
            Field::ZoneMinute => {
                if self.found.zone_sign == 0 {
                    self.found.zone_sign = 1;
                }
                self.number(|found| &mut found.zone_minute, name, 2, is_open)
            }
        }
    }
}

impl Parts {
    fn settle(self, text: &str, is_dated: bool, is_timed: bool, is_zoned: bool) -> Result<Zoned> {
        let overflow = || Error::datetime_field_overflow(text);
        let mut hour = self.hour.unwrap_or(0);
        if self.is_hour12 {
            if self.hour.is_some() && !(1..=12).contains(&hour) {
                return Err(malformed(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            hour = match self.is_pm {
                Some(true) if hour < 12 => hour + 12,
                Some(false) if hour == 12 => 0,
                _ => hour,
            };
        }
        let (minute, second) = (self.minute.unwrap_or(0), self.second.unwrap_or(0));
        if !(0..=24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
            return Err(overflow());
        }
        let mut time = i64::from(hour) * MICROS_PER_HOUR
            + i64::from(minute) * MICROS_PER_MINUTE
            + i64::from(second) * MICROS_PER_SECOND;
        if let Some(seconds) = self.second_of_day {
            time = i64::from(seconds) * MICROS_PER_SECOND;
        }
        time += i64::from(self.micros.unwrap_or(0));
        if !(0..=MICROS_PER_DAY).contains(&time) {
            return Err(overflow());
        }
        let offset = match (self.zone_hour, self.zone_minute) {
            (None, None) => None,
            (hour, minute) => {
                let (hour, minute) = (hour.unwrap_or(0), minute.unwrap_or(0));
                if hour > 15 || minute > 59 {
                    return Err(overflow());
                }
                Some(self.zone_sign * (hour * 3600 + minute * 60))
            }
        };
        let (month, day) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        // Without a year it is 1 BC, as the manual has it for to_timestamp.
        let year = match self.year {
            Some(year) if year > 0 => year,
            _ => -1,
        };
        Ok(Zoned { text: text.to_string(), is_dated, is_timed, is_zoned, year, month, day, time, offset })
    }
}
