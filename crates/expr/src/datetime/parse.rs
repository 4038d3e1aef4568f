//! Dates and times from text (manual, 8.5.1 and appendix B).
//!
//! ISO forms take a fast path without allocation. Everything else is cut into fields, each of which says
//! what it is by its looks: a clock has colons, a date has separators, a word is in a table.

use super::*;
use crate::context::{DateOrder, EvalContext};
use crate::error::{Error, Result};

/// Reads a date: days since 1970.
#[inline]
pub fn parse_date(text: &str, ctx: &EvalContext) -> Result<i32> {
    if let Some((year, month, day, [])) = iso_date(text.as_bytes())
        && let Some(days) = checked_days(year, month, day)
    {
        return Ok(days as i32);
    }
    match read("date", text, ctx)? {
        Moment::Infinity => Ok(DATE_INFINITY),
        Moment::NegInfinity => Ok(DATE_NEG_INFINITY),
        Moment::Local { days, .. } => match i32::try_from(days) {
            Ok(days) if (DATE_MIN..=DATE_MAX).contains(&days) => Ok(days),
            _ => Err(Error::new("22008", format!("date out of range: \"{text}\""))),
        },
        Moment::Absolute(micros) => {
            let local = micros + i64::from(ctx.timezone.offset_at(micros)) * MICROS_PER_SECOND;
            Ok(local.div_euclid(MICROS_PER_DAY) as i32)
        }
    }
}

/// Reads a time of day: microseconds since midnight. A date beside it is ignored.
pub fn parse_time(text: &str, ctx: &EvalContext) -> Result<i64> {
    if let Some((time, [])) = iso_time(text.as_bytes()) {
        return Ok(time);
    }
    let fields = Fields::scan("time", text, ctx)?;
    if let (Some(Special::Now), None) = (fields.special, fields.time) {
        let local = ctx.now_micros + i64::from(ctx.timezone.offset_at(ctx.now_micros)) * MICROS_PER_SECOND;
        return Ok(local.rem_euclid(MICROS_PER_DAY));
    }
    if fields.special == Some(Special::AllBalls) {
        return Ok(0);
    }
    // A zone whose offset depends on a date needs one.
    if matches!(fields.zone, Some(TimeZone::Named(_))) && fields.date.is_none() && fields.days.is_none() {
        return Err(Error::invalid_datetime("time", text));
    }
    match (fields.clock(text)?, fields.six_digits) {
        (Some(time), _) => Ok(time),
        (None, Some(digits)) if digits / 10_000 < 24 && digits / 100 % 100 < 60 && digits % 100 < 60 => {
            Ok((digits / 10_000 * 3600 + digits / 100 % 100 * 60 + digits % 100) * MICROS_PER_SECOND)
        }
        (None, _) => Err(Error::invalid_datetime("time", text)),
    }
}

/// Reads a time of day with its zone: without one, as the session's is on the date given, or today.
pub fn parse_timetz(text: &str, ctx: &EvalContext) -> Result<TimeTz> {
    const NAME: &str = "time with time zone";
    let fields = Fields::scan(NAME, text, ctx)?;
    match fields.special {
        Some(Special::Now) if fields.time.is_none() => return Ok(TimeTz::of_moment(ctx.now_micros, &ctx.timezone)),
        Some(Special::AllBalls) => return Ok(TimeTz { micros: 0, west: 0 }),
        _ => {}
    }
    let time = match (fields.clock(text)?, fields.six_digits) {
        (Some(time), _) => time,
        (None, Some(digits)) if digits / 10_000 < 24 && digits / 100 % 100 < 60 && digits % 100 < 60 => {
            (digits / 10_000 * 3600 + digits / 100 % 100 * 60 + digits % 100) * MICROS_PER_SECOND
        }
        (None, _) => return Err(Error::invalid_datetime(NAME, text)),
    };
    let has_date = fields.six_digits.is_none() && (fields.date.is_some() || fields.days.is_some());
    let zone = match &fields.zone {
        Some(TimeZone::Fixed(offset)) => return Ok(TimeTz { micros: time, west: -offset }),
        // Its offset depends on the date.
        Some(_) if !has_date => return Err(Error::invalid_datetime(NAME, text)),
        Some(zone) => zone,
        None if !has_date => return Ok(TimeTz::of_time(time, ctx)),
        None => &ctx.timezone,
    };
    let local = join(fields.resolve_days(NAME, text, ctx)?, time).ok_or_else(|| out_of_range("timestamp", text))?;
    Ok(TimeTz { micros: time, west: ((zone.to_utc(local) - local) / MICROS_PER_SECOND) as i32 })
}

/// Reads a timestamp without time zone: microseconds since 1970. A zone in the text is ignored.
pub fn parse_timestamp(text: &str, ctx: &EvalContext) -> Result<i64> {
    if let Some((micros, [])) = iso_timestamp(text.as_bytes()) {
        return Ok(micros);
    }
    match read("timestamp", text, ctx)? {
        Moment::Infinity => Ok(TIMESTAMP_INFINITY),
        Moment::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Moment::Local { days, time, .. } => join(days, time).ok_or_else(|| out_of_range("timestamp", text)),
        Moment::Absolute(micros) => Ok(micros + i64::from(ctx.timezone.offset_at(micros)) * MICROS_PER_SECOND),
    }
}

/// Reads a timestamp with time zone: microseconds since 1970 UTC. Without a zone in the text, the session's.
pub fn parse_timestamptz(text: &str, ctx: &EvalContext) -> Result<i64> {
    let range_error = || out_of_range("timestamp with time zone", text);
    if let Some((local, rest)) = iso_timestamp(text.as_bytes()) {
        if rest.is_empty() {
            return Ok(ctx.timezone.to_utc(local));
        }
        if let Some(offset) = std::str::from_utf8(rest).ok().and_then(parse_offset) {
            return in_range(local.saturating_sub(i64::from(offset) * MICROS_PER_SECOND)).ok_or_else(range_error);
        }
    }
    match read("timestamp with time zone", text, ctx)? {
        Moment::Infinity => Ok(TIMESTAMP_INFINITY),
        Moment::NegInfinity => Ok(TIMESTAMP_NEG_INFINITY),
        Moment::Absolute(micros) => Ok(micros),
        Moment::Local { days, time, zone } => {
            let local = join(days, time).ok_or_else(range_error)?;
            let utc = match zone {
                Some(zone) => zone.to_utc(local),
                None => ctx.timezone.to_utc(local),
            };
            in_range(utc).ok_or_else(range_error)
        }
    }
}

fn out_of_range(type_name: &str, text: &str) -> Error {
    let short = type_name.split(' ').next().unwrap_or(type_name);
    Error::new("22008", format!("{short} out of range: \"{text}\""))
}

fn in_range(micros: i64) -> Option<i64> {
    (TIMESTAMP_MIN..=TIMESTAMP_MAX).contains(&micros).then_some(micros)
}

fn join(days: i64, time: i64) -> Option<i64> {
    let micros = i128::from(days) * i128::from(MICROS_PER_DAY) + i128::from(time);
    in_range(i64::try_from(micros).ok()?)
}

fn checked_days(year: i32, month: u32, day: u32) -> Option<i64> {
    ((1..=12).contains(&month) && day >= 1 && day <= days_in_month(year, month))
        .then(|| days_from_civil(year, month, day))
}

/// Two digits at the start.
#[inline]
fn pair(bytes: &[u8]) -> Option<u32> {
    match bytes {
        [a @ b'0'..=b'9', b @ b'0'..=b'9', ..] => Some(u32::from(a - b'0') * 10 + u32::from(b - b'0')),
        _ => None,
    }
}

/// `YYYY-MM-DD` at the start, and what follows it.
#[inline]
fn iso_date(bytes: &[u8]) -> Option<(i32, u32, u32, &[u8])> {
    if bytes.len() < 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = pair(bytes)? * 100 + pair(&bytes[2..])?;
    let (month, day) = (pair(&bytes[5..])?, pair(&bytes[8..])?);
    (year > 0).then_some((year as i32, month, day, &bytes[10..]))
}

/// `HH:MM:SS[.ffffff]` at the start, and what follows it.
#[inline]
fn iso_time(bytes: &[u8]) -> Option<(i64, &[u8])> {
    if bytes.len() < 8 || bytes[2] != b':' || bytes[5] != b':' {
        return None;
    }
    let (hour, minute, second) = (pair(bytes)?, pair(&bytes[3..])?, pair(&bytes[6..])?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut rest = &bytes[8..];
    let mut micros = 0;
    if let Some(digits) = rest.strip_prefix(b".") {
        let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count > 6 {
            return None;
        }
        micros = digits[..count].iter().fold(0, |micros, byte| micros * 10 + i64::from(byte - b'0'));
        micros *= 10i64.pow(6 - count as u32);
        rest = &digits[count..];
    }
    let seconds = i64::from(hour * 3600 + minute * 60 + second);
    Some((seconds * MICROS_PER_SECOND + micros, rest))
}

/// `YYYY-MM-DD[ T]HH:MM:SS[.ffffff]` at the start, and what follows it.
#[inline]
fn iso_timestamp(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let (year, month, day, rest) = iso_date(bytes)?;
    let days = checked_days(year, month, day)?;
    match rest {
        [] => Some((days * MICROS_PER_DAY, rest)),
        [b' ' | b'T', time @ ..] => {
            let (time, rest) = iso_time(time)?;
            Some((days * MICROS_PER_DAY + time, rest))
        }
        _ => None,
    }
}

/// `+02`, `-3:30`, `+0530`, `+00:53:28`, `Z`: seconds east.
pub(super) fn parse_offset(text: &str) -> Option<i32> {
    if matches!(text, "Z" | "z") {
        return Some(0);
    }
    let (sign, digits) = match text.as_bytes().first()? {
        b'+' => (1, &text[1..]),
        b'-' => (-1, &text[1..]),
        _ => return None,
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b':') {
        return None;
    }
    let number = |text: &str| if text.is_empty() || text.len() > 2 { None } else { text.parse::<i32>().ok() };
    let (hours, minutes, seconds) = if digits.contains(':') {
        let mut parts = digits.split(':');
        let parsed = (number(parts.next()?)?, number(parts.next()?)?, parts.next().map_or(Some(0), number)?);
        if parts.next().is_some() {
            return None;
        }
        parsed
    } else {
        match digits.len() {
            1 | 2 => (number(digits)?, 0, 0),
            3 | 4 => (number(&digits[..digits.len() - 2])?, number(&digits[digits.len() - 2..])?, 0),
            6 => (number(&digits[..2])?, number(&digits[2..4])?, number(&digits[4..])?),
            _ => return None,
        }
    };
    (hours <= 15 && minutes < 60 && seconds < 60).then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// What text stands for.
enum Moment {
    Infinity,
    NegInfinity,
    /// `now`: microseconds UTC.
    Absolute(i64),
    Local {
        days: i64,
        time: i64,
        zone: Option<TimeZone>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    Now,
    Today,
    Tomorrow,
    Yesterday,
    Epoch,
    Infinity,
    NegInfinity,
    AllBalls,
}

/// Fields met so far.
#[derive(Default)]
struct Fields {
    date: Option<(i64, u32, u32)>,
    /// Days since 1970 where the text counts days itself: a Julian day or a day of the year.
    days: Option<i64>,
    month_word: Option<u32>,
    /// Numbers that stand alone, in order: value, digits.
    numbers: Vec<(i64, usize)>,
    time: Option<i64>,
    zone: Option<TimeZone>,
    special: Option<Special>,
    /// Six digits that may be a date or a time.
    six_digits: Option<i64>,
    /// The year in `date` has two digits, to be completed unless it is before Christ.
    short_year: bool,
    before_christ: Option<bool>,
    afternoon: Option<bool>,
}

fn read(type_name: &str, text: &str, ctx: &EvalContext) -> Result<Moment> {
    let fields = Fields::scan(type_name, text, ctx)?;
    let syntax = || Error::invalid_datetime(type_name, text);
    let time = fields.clock(text)?;
    if let Some(special) = fields.special {
        let today = || {
            let local = ctx.now_micros + i64::from(ctx.timezone.offset_at(ctx.now_micros)) * MICROS_PER_SECOND;
            local.div_euclid(MICROS_PER_DAY)
        };
        let shift = match special {
            Special::Infinity if time.is_none() => return Ok(Moment::Infinity),
            Special::NegInfinity if time.is_none() => return Ok(Moment::NegInfinity),
            Special::Now if time.is_none() => return Ok(Moment::Absolute(ctx.now_micros)),
            Special::Epoch if time.is_none() => {
                return Ok(Moment::Local { days: 0, time: 0, zone: Some(TimeZone::UTC) });
            }
            Special::Today => 0,
            Special::Tomorrow => 1,
            Special::Yesterday => -1,
            Special::AllBalls => {
                let days = fields.resolve_days(type_name, text, ctx)?;
                return Ok(Moment::Local { days, time: 0, zone: Some(TimeZone::UTC) });
            }
            _ => return Err(syntax()),
        };
        return Ok(Moment::Local { days: today() + shift, time: time.unwrap_or(0), zone: fields.zone });
    }
    let days = fields.resolve_days(type_name, text, ctx)?;
    Ok(Moment::Local { days, time: time.unwrap_or(0), zone: fields.zone })
}

impl Fields {
    fn scan(type_name: &str, text: &str, ctx: &EvalContext) -> Result<Fields> {
        let mut fields = Fields::default();
        let syntax = || Error::invalid_datetime(type_name, text);
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(syntax());
        }
        while !rest.is_empty() {
            let first = rest.as_bytes()[0];
            if first.is_ascii_whitespace() || first == b',' {
                rest = &rest[1..];
                continue;
            }
            let used = if first.is_ascii_digit() {
                fields.digits(rest, ctx)
            } else if first.is_ascii_alphabetic() {
                fields.word(rest)
            } else if matches!(first, b'+' | b'-') {
                fields.signed(rest)
            } else {
                None
            };
            match used {
                Some(Ok(used)) => rest = &rest[used..],
                Some(Err(problem)) => return Err(problem.of(text)),
                None => return Err(syntax()),
            }
        }
        Ok(fields)
    }

    /// A field that starts with a digit: clock, date or number. The outer `None` is a syntax error.
    fn digits(&mut self, rest: &str, ctx: &EvalContext) -> Option<std::result::Result<usize, Problem>> {
        let bytes = rest.as_bytes();
        let lead = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        match bytes.get(lead) {
            Some(b':') => return Some(self.clock_field(rest)),
            Some(b'-' | b'/' | b'.') if self.date.is_none() && self.days.is_none() => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '/' | '.')))
                    .unwrap_or(rest.len());
                // `2024-01-02T03:04`: the clock begins behind the T.
                let end = rest[..end]
                    .find('T')
                    .filter(|at| rest.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit))
                    .unwrap_or(end);
                if let Some(used) = self.date_field(&rest[..end], ctx) {
                    return Some(used);
                }
            }
            _ => {}
        }
        if lead > 8 {
            return Some(Err(OutOfRange));
        }
        let value: i64 = rest[..lead].parse().ok()?;
        let has_date = self.date.is_some() || self.days.is_some();
        match (has_date, lead) {
            // Concatenated date, then concatenated time.
            (false, 8) if self.numbers.is_empty() && self.month_word.is_none() => {
                self.date = Some((value / 10_000, (value / 100 % 100) as u32, (value % 100) as u32));
            }
            (false, 6) if self.numbers.is_empty() && self.month_word.is_none() && !self.is_time_only() => {
                self.six_digits = Some(value);
                self.short_year = true;
                self.date = Some((value / 10_000, (value / 100 % 100) as u32, (value % 100) as u32));
            }
            (true, 6) if self.time.is_none() => {
                let (used, micros) = fraction(&bytes[lead..]);
                let seconds = value / 10_000 * 3600 + value / 100 % 100 * 60 + value % 100;
                self.time = Some(seconds * MICROS_PER_SECOND + micros);
                return Some(Ok(lead + used));
            }
            (true, 4) if self.time.is_none() && self.numbers.is_empty() && self.month_word.is_none() => {
                self.time = Some((value / 100 * 3600 + value % 100 * 60) * MICROS_PER_SECOND);
            }
            _ => {
                if self.numbers.len() == 3 {
                    return None;
                }
                self.numbers.push((value, lead));
            }
        }
        // `1st`-like suffixes are not part of the language; a word may follow directly (`8am`).
        Some(Ok(lead))
    }

    fn is_time_only(&self) -> bool {
        self.time.is_some()
    }

    /// `h:m`, `h:m:s` with a fraction.
    fn clock_field(&mut self, rest: &str) -> std::result::Result<usize, Problem> {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(rest.len());
        let mut parts = rest[..end].split(':');
        let number = |part: Option<&str>| part.unwrap_or("0").parse::<i64>().map_err(|_| OutOfRange);
        let (hour, minute) = (number(parts.next())?, number(parts.next())?);
        let (whole, decimals) = match parts.next() {
            Some(seconds) => seconds.split_at(seconds.find('.').unwrap_or(seconds.len())),
            None => ("0", ""),
        };
        let second = number(Some(whole))?;
        let (_, micros) = fraction(decimals.as_bytes());
        if parts.next().is_some() || self.time.is_some() || minute > 59 || second > 60 || hour > 24 {
            return Err(OutOfRange);
        }
        let time = (hour * 3600 + minute * 60 + second) * MICROS_PER_SECOND + micros;
        if time > MICROS_PER_DAY {
            return Err(OutOfRange);
        }
        self.time = Some(time);
        Ok(end)
    }

    /// `2024-01-02`, `1/2/2024`, `02.01.2024`, `02-Jan-2024`, `2024.123`, `2024-Jan-02`.
    fn date_field(&mut self, field: &str, ctx: &EvalContext) -> Option<std::result::Result<usize, Problem>> {
        let separator = field.find(['-', '/', '.']).map(|at| field.as_bytes()[at] as char)?;
        let parts: Vec<&str> = field.splitn(4, separator).collect();
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i64>().ok())?;
        match parts[..] {
            [year, day] if separator == '.' && year.len() >= 4 && day.len() == 3 => {
                let (year, day) = (number(year)?, number(day)?);
                if day == 0 || day > 366 || year > 5_874_897 {
                    return Some(Err(OutOfRange));
                }
                self.days = Some(days_from_civil(year as i32, 1, 1) + day - 1);
                Some(Ok(field.len()))
            }
            // What follows a month's name: `Jan-08-1999`.
            [day, year] if self.month_word.is_some() && self.numbers.is_empty() => {
                self.numbers = vec![(number(day)?, day.len()), (number(year)?, year.len())];
                Some(Ok(field.len()))
            }
            [first, second, third] => {
                if third.is_empty() {
                    return None;
                }
                // What is stuck to the year, `2024BC`, is the next word's business.
                let digits = third.bytes().take_while(u8::is_ascii_digit).count();
                let (used, third) = (field.len() - (third.len() - digits), &third[..digits]);
                if let Some(month) = month_number(second) {
                    let (first_value, third_value) = (number(first)?, number(third)?);
                    self.date = Some(if first.len() > 2 {
                        (first_value, month, third_value as u32)
                    } else {
                        self.short_year = third.len() <= 2;
                        (third_value, month, first_value as u32)
                    });
                    return Some(Ok(used));
                }
                let values =
                    [(number(first)?, first.len()), (number(second)?, second.len()), (number(third)?, third.len())];
                Some(self.order(values, ctx.date_order).map(|()| used))
            }
            _ => None,
        }
    }

    /// Three numbers: a year of more than two digits first, else as `DateStyle` orders them.
    fn order(&mut self, values: [(i64, usize); 3], order: DateOrder) -> std::result::Result<(), Problem> {
        let [first, second, third] = values;
        let year_first = first.1 > 2;
        let (year, month, day) = match order {
            _ if year_first => (first, second, third),
            DateOrder::Ymd => (first, second, third),
            DateOrder::Dmy => (third, second, first),
            DateOrder::Mdy => (third, first, second),
        };
        if month.0 > 12 || day.0 > 31 || month.0 == 0 || day.0 == 0 {
            return Err(OutOfRange);
        }
        self.short_year = year.1 <= 2;
        self.date = Some((year.0, month.0 as u32, day.0 as u32));
        Ok(())
    }

    fn word(&mut self, rest: &str) -> Option<std::result::Result<usize, Problem>> {
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let word = rest[..end].to_ascii_lowercase();
        match word.as_str() {
            "am" => self.afternoon = Some(false),
            "pm" => self.afternoon = Some(true),
            "ad" => self.before_christ = Some(false),
            "bc" => self.before_christ = Some(true),
            "t" if self.date.is_some() || self.days.is_some() => {}
            "at" | "on" => {}
            "j" | "jd" | "julian" if rest.as_bytes().get(end).is_some_and(u8::is_ascii_digit) => {
                let digits = rest[end..].bytes().take_while(u8::is_ascii_digit).count();
                let julian: i64 = rest[end..end + digits].parse().ok()?;
                self.days = Some(julian + i64::from(DATE_MIN));
                return Some(Ok(end + digits));
            }
            _ => {
                if let Some(special) = special_word(&word) {
                    self.special.replace(special).is_none().then_some(())?;
                } else if let Some(month) = month_number(&word) {
                    self.month_word.replace(month).is_none().then_some(())?;
                } else if !is_weekday(&word) {
                    return self.zone_name(rest);
                }
            }
        }
        // A separator may stick to a word: `Jan-02`, `Jan.`
        let after = &rest[end..];
        let skip = usize::from(
            after.starts_with('.') || (after.starts_with('-') && self.month_word.is_some() && self.time.is_none()),
        );
        Some(Ok(end + skip))
    }

    /// `Europe/Berlin`, `EST`, `UTC+3`.
    fn zone_name(&mut self, rest: &str) -> Option<std::result::Result<usize, Problem>> {
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '/' | '_' | '-' | '+')))
            .unwrap_or(rest.len());
        if self.zone.is_some() {
            return None;
        }
        if let Some(zone) = TimeZone::parse(&rest[..end]) {
            self.zone = Some(zone);
            return Some(Ok(end));
        }
        if rest[..end].contains('/') {
            return Some(Err(Problem::UnknownZone(rest[..end].to_ascii_lowercase())));
        }
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        self.zone = Some(TimeZone::Fixed(TimeZone::abbreviation(&rest[..letters])?));
        Some(Ok(letters))
    }

    /// `-infinity`, or an offset.
    fn signed(&mut self, rest: &str) -> Option<std::result::Result<usize, Problem>> {
        let word = rest[1..].trim_start();
        if word.len() >= 8 && word.is_char_boundary(8) && word[..8].eq_ignore_ascii_case("infinity") {
            let negative = rest.starts_with('-');
            self.special = Some(if negative { Special::NegInfinity } else { Special::Infinity });
            return Some(Ok(rest.len() - word.len() + 8));
        }
        let end = rest[1..].find(|c: char| !(c.is_ascii_digit() || c == ':')).map_or(rest.len(), |at| at + 1);
        let Some(offset) = parse_offset(&rest[..end]) else {
            let hours = rest[1..end].split(':').next().filter(|hours| matches!(hours.len(), 1 | 2))?;
            return hours.parse::<i32>().is_ok_and(|hours| hours > 15).then_some(Err(Problem::Displacement));
        };
        match self.zone {
            None => self.zone = Some(TimeZone::Fixed(offset)),
            // POSIX: `UTC+3` is west of Greenwich.
            Some(TimeZone::Fixed(base)) => self.zone = Some(TimeZone::Fixed(base - offset)),
            Some(TimeZone::Named(_)) => return None,
        }
        Some(Ok(end))
    }

    /// The time of day, with AM and PM.
    fn clock(&self, text: &str) -> Result<Option<i64>> {
        let Some(time) = self.time else { return Ok(None) };
        let hour = time / MICROS_PER_HOUR;
        match self.afternoon {
            Some(_) if hour > 12 => Err(range(text)),
            Some(true) if hour != 12 => Ok(Some(time + 12 * MICROS_PER_HOUR)),
            Some(false) if hour == 12 => Ok(Some(time - 12 * MICROS_PER_HOUR)),
            _ => Ok(Some(time)),
        }
    }

    fn resolve_days(&self, type_name: &str, text: &str, ctx: &EvalContext) -> Result<i64> {
        let syntax = || Error::invalid_datetime(type_name, text);
        if let Some(days) = self.days {
            return Ok(days);
        }
        let mut short_year = self.short_year;
        let (mut year, month, day) = match (self.date, self.month_word, &self.numbers[..]) {
            (Some(date), None, []) => date,
            // `January 8, 1999`, `8 January 1999`, `1999 January 8`.
            (None, Some(month), [first, second]) => {
                let (year, day) = if first.1 > 2 || (ctx.date_order == DateOrder::Ymd && second.1 <= 2) {
                    (first, second)
                } else {
                    (second, first)
                };
                short_year = year.1 <= 2;
                (year.0, month, u32::try_from(day.0).map_err(|_| range(text))?)
            }
            (None, None, [first, second, third]) => {
                let mut ordered = Fields::default();
                ordered.order([*first, *second, *third], ctx.date_order).map_err(|problem| problem.of(text))?;
                short_year = ordered.short_year;
                ordered.date.ok_or_else(syntax)?
            }
            _ => return Err(syntax()),
        };
        if short_year && self.before_christ.is_none() {
            year = two_digit_year(year);
        }
        let year = match self.before_christ {
            Some(_) if year <= 0 => return Err(range(text)),
            Some(true) => 1 - year,
            // There is no year 0.
            _ if year == 0 => return Err(range(text)),
            _ => year,
        };
        let year = i32::try_from(year).ok().filter(|year| year.abs() < 6_000_000).ok_or_else(|| range(text))?;
        checked_days(year, month, day).ok_or_else(|| range(text))
    }
}

/// Why a field cannot be.
enum Problem {
    OutOfRange,
    Displacement,
    UnknownZone(String),
}

use Problem::OutOfRange;

impl Problem {
    #[cold]
    fn of(self, text: &str) -> Error {
        match self {
            Problem::OutOfRange => range(text),
            Problem::Displacement => Error::new("22009", format!("time zone displacement out of range: \"{text}\"")),
            Problem::UnknownZone(name) => Error::invalid_parameter(format!("time zone \"{name}\" not recognized")),
        }
    }
}

fn range(text: &str) -> Error {
    let error = Error::datetime_field_overflow(text);
    // PostgreSQL suspects the order of day and month where it could be that.
    let slashes = text.bytes().filter(|byte| *byte == b'/').count();
    if slashes == 2 { error.with_hint("Perhaps you need a different \"datestyle\" setting.") } else { error }
}

/// Years of one or two digits are 1970 to 2069.
fn two_digit_year(year: i64) -> i64 {
    if year < 70 { year + 2000 } else { year + 1900 }
}

/// A fraction of a second, `.123`: bytes used and microseconds, rounded.
fn fraction(bytes: &[u8]) -> (usize, i64) {
    let Some(digits) = bytes.strip_prefix(b".") else { return (0, 0) };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut micros = 0;
    for i in 0..6 {
        micros = micros * 10 + digits[..count].get(i).map_or(0, |byte| i64::from(byte - b'0'));
    }
    if count > 6 && digits[6] >= b'5' {
        micros += 1;
    }
    (count + 1, micros)
}

fn special_word(word: &str) -> Option<Special> {
    Some(match word {
        "now" => Special::Now,
        "today" => Special::Today,
        "tomorrow" => Special::Tomorrow,
        "yesterday" => Special::Yesterday,
        "epoch" => Special::Epoch,
        "infinity" => Special::Infinity,
        "allballs" => Special::AllBalls,
        _ => return None,
    })
}

/// 1 to 12.
pub(super) fn month_number(word: &str) -> Option<u32> {
    let word = word.to_ascii_lowercase();
    const NAMES: [&str; 12] = [
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
    if word == "sept" {
        return Some(9);
    }
    NAMES.iter().position(|name| *name == word || name[..3] == word).map(|at| at as u32 + 1)
}

fn is_weekday(word: &str) -> bool {
    const NAMES: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    NAMES.iter().any(|name| *name == word || name[..3] == *word)
        || matches!(word, "tues" | "wednes" | "weds" | "thur" | "thurs")
}
