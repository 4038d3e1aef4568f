//! From fields to a date, a time of day and a zone. Every field says what it gives; nothing may be given twice
//! (PostgreSQL manual, B.1).

use super::clock::{self, displacement, fraction};
use super::split::{Field, Look};
use super::words::{Label, Special, Word, word};
use super::*;
use crate::datetime::abbreviations::{Meaning, meaning};

const YEAR: u32 = 1;
const MONTH: u32 = 1 << 1;
const DAY: u32 = 1 << 2;
const HOUR: u32 = 1 << 3;
const MINUTE: u32 = 1 << 4;
const SECOND: u32 = 1 << 5;
const FRACTION: u32 = 1 << 6;
const ZONE: u32 = 1 << 7;
/// A summer-time zone, or the word DST.
const SUMMER: u32 = 1 << 8;
const MODIFIER: u32 = 1 << 9;
const DAY_OF_YEAR: u32 = 1 << 10;
const HALF: u32 = 1 << 11;
const ERA: u32 = 1 << 12;
const WEEKDAY: u32 = 1 << 13;
const DATE: u32 = YEAR | MONTH | DAY;
pub(super) const TIME: u32 = HOUR | MINUTE | SECOND | FRACTION;

/// Why text is no date or time.
pub(super) enum Fault {
    Format,
    Range,
    /// A month or day that another DateStyle might take.
    RangeOfStyle,
    Displacement,
    UnknownZone(String),
}

pub(super) type Decoded<T> = std::result::Result<T, Fault>;

impl Fault {
    #[cold]
    pub fn of(self, type_name: &str, text: &str) -> Error {
        match self {
            Fault::Format => Error::invalid_datetime(type_name, text),
            Fault::Range => Error::datetime_field_overflow(text),
            Fault::RangeOfStyle => {
                Error::datetime_field_overflow(text).with_hint("Perhaps you need a different \"datestyle\" setting.")
            }
            Fault::Displacement => Error::new("22009", format!("time zone displacement out of range: \"{text}\"")),
            Fault::UnknownZone(name) => Error::invalid_parameter(format!("time zone \"{name}\" not recognized")),
        }
    }
}

/// The zone as far as it was given.
#[derive(Clone)]
pub(super) enum Given {
    None,
    /// Seconds east.
    Offset(i32),
    Named(TimeZone),
    /// An abbreviation, and the zone that it was used in.
    Abbreviation(String, &'static str),
}

/// What the fields gave.
pub(super) struct Decoder<'a> {
    ctx: &'a EvalContext,
    /// A time of day alone is asked for.
    time_only: bool,
    pub seen: u32,
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    pub clock: clock::Clock,
    short_year: bool,
    text_month: bool,
    julian: bool,
    before_christ: bool,
    afternoon: Option<bool>,
    label: Option<Label>,
    pub special: Option<Special>,
    pub zone: Given,
}

impl<'a> Decoder<'a> {
    pub fn new(ctx: &'a EvalContext, time_only: bool) -> Decoder<'a> {
        Decoder {
            ctx,
            time_only,
            seen: 0,
            year: 0,
            month: 0,
            day: 0,
            day_of_year: 0,
            clock: clock::Clock::default(),
            short_year: false,
            text_month: false,
            julian: false,
            before_christ: false,
            afternoon: None,
            label: None,
            special: None,
            zone: Given::None,
        }
    }

    /// Takes all fields.
    pub fn read(&mut self, fields: &[Field]) -> Decoded<()> {
        for at in 0..fields.len() {
            let given = self.field(fields, at)?;
            self.give(given)?;
        }
        Ok(())
    }

    fn give(&mut self, given: u32) -> Decoded<()> {
        if self.seen & given != 0 {
            return Err(Fault::Format);
        }
        self.seen |= given;
        Ok(())
    }

    fn has(&self, parts: u32) -> bool {
        self.seen & parts == parts
    }

    /// What numbers that stand alone are taken for: of a time of day, never a date.
    fn seen_by_numbers(&self) -> u32 {
        if self.time_only { self.seen | DATE } else { self.seen }
    }

    fn field(&mut self, fields: &[Field], at: usize) -> Decoded<u32> {
        let Field { look, text } = &fields[at];
        match look {
            Look::Date if self.time_only => self.date_in_time(fields, at),
            Look::Date => self.date(text),
            Look::Clock => {
                match self.label.take() {
                    None | Some(Label::Time) => {}
                    Some(_) => return Err(Fault::Format),
                }
                self.clock = clock::read(text, false)?;
                if !self.time_only && self.clock.micros().is_none() {
                    return Err(Fault::Range);
                }
                Ok(TIME)
            }
            Look::Signed => {
                self.zone = Given::Offset(displacement(text)?);
                Ok(ZONE)
            }
            Look::Number => match self.label.take() {
                Some(label) => self.labelled(label, text),
                None if self.time_only => self.number_in_time(fields, at),
                None => self.bare_number(text),
            },
            Look::Word | Look::SignedWord => self.word(fields, at),
        }
    }

    fn date(&mut self, text: &str) -> Decoded<u32> {
        if self.label == Some(Label::Julian) {
            self.label = None;
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            self.julian_day(number(&text[..digits])?);
            self.zone = Given::Offset(displacement(&text[digits..])?);
            return Ok(DATE | TIME | ZONE);
        }
        if self.label.is_none() && !self.has(MONTH | DAY) {
            return self.calendar_date(text);
        }
        if self.label.is_some() || text.starts_with(|first: char| first.is_ascii_digit()) {
            if self.label.take().is_some_and(|label| label != Label::Time) {
                return Err(Fault::Format);
            }
            return self.time_and_zone(text);
        }
        self.zone = Given::Named(zone_named(text)?);
        Ok(ZONE)
    }

    fn date_in_time(&mut self, fields: &[Field], at: usize) -> Decoded<u32> {
        let text = &fields[at].text;
        let last = fields.last().map(|field| field.look);
        let is_date = at == 0
            && fields.len() >= 2
            && (last == Some(Look::Date) || fields.get(1).is_some_and(|next| next.look == Look::Clock));
        if is_date {
            return self.calendar_date(text);
        }
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            self.label = None;
            return self.time_and_zone(text);
        }
        self.zone = Given::Named(zone_named(text)?);
        Ok(ZONE)
    }

    /// `hhmmss-zz`.
    fn time_and_zone(&mut self, text: &str) -> Decoded<u32> {
        if self.has(TIME) {
            return Err(Fault::Format);
        }
        let at = text.find('-').ok_or(Fault::Format)?;
        self.zone = Given::Offset(displacement(&text[at..])?);
        Ok(self.joined_digits(&text[..at], self.seen_by_numbers())? | ZONE)
    }

    /// A number that a word before it says the meaning of.
    fn labelled(&mut self, label: Label, text: &str) -> Decoded<u32> {
        let (whole, decimals) = text.split_at(text.find('.').unwrap_or(text.len()));
        if !decimals.is_empty() && !matches!(label, Label::Julian | Label::Time | Label::Second) {
            return Err(Fault::Format);
        }
        if label == Label::Time {
            let given = self.joined_digits(text, self.seen | DATE)?;
            return if given == TIME { Ok(given) } else { Err(Fault::Format) };
        }
        let value = number(whole)?;
        Ok(match label {
            Label::Year => {
                self.year = value;
                YEAR
            }
            Label::Month if self.has(HOUR) && (self.time_only || self.has(MONTH)) => {
                self.clock.minute = value;
                MINUTE
            }
            Label::Month => {
                self.month = value;
                MONTH
            }
            Label::Day => {
                self.day = value;
                DAY
            }
            Label::Hour => {
                self.clock.hour = value;
                HOUR
            }
            Label::Minute => {
                self.clock.minute = value;
                MINUTE
            }
            Label::Second => {
                self.clock.second = value;
                if decimals.is_empty() {
                    SECOND
                } else {
                    self.clock.fraction = fraction(decimals)?;
                    SECOND | FRACTION
                }
            }
            Label::Julian => {
                self.julian_day(value);
                if decimals.is_empty() {
                    return Ok(DATE);
                }
                let part: f64 = format!("0{decimals}").parse().map_err(|_| Fault::Format)?;
                self.clock = clock::Clock::of((part * MICROS_PER_DAY as f64).round() as i64);
                DATE | TIME
            }
            Label::Time | Label::Other => return Err(Fault::Format),
        })
    }

    fn julian_day(&mut self, value: i64) {
        let (year, month, day) = civil_from_days(value + i64::from(DATE_MIN));
        (self.year, self.month, self.day) = (i64::from(year), i64::from(month), i64::from(day));
        self.julian = true;
    }

    /// A number that stands alone, of a date or timestamp.
    fn bare_number(&mut self, text: &str) -> Decoded<u32> {
        match text.find('.') {
            Some(_) if self.seen & DATE == 0 => self.calendar_date(text),
            Some(at) if at > 2 => self.joined_digits(text, self.seen),
            None if text.len() >= 6 && !(self.has(DATE) && self.has(TIME)) => self.joined_digits(text, self.seen),
            _ => self.part(text, self.seen),
        }
    }

    fn number_in_time(&mut self, fields: &[Field], at: usize) -> Decoded<u32> {
        let text = &fields[at].text;
        match text.find('.') {
            Some(_) if at == 0 && fields.len() >= 2 && fields.last().is_some_and(|last| last.look == Look::Date) => {
                self.calendar_date(text)
            }
            Some(digits) if digits > 2 => self.joined_digits(text, self.seen | DATE),
            Some(_) => Err(Fault::Format),
            None if text.len() > 4 => self.joined_digits(text, self.seen | DATE),
            None => self.part(text, self.seen | DATE),
        }
    }

    fn word(&mut self, fields: &[Field], at: usize) -> Decoded<u32> {
        let text = &fields[at].text;
        if let Some(meaning) = meaning(text) {
            return Ok(match meaning {
                Meaning::Offset(east) => {
                    self.zone = Given::Offset(east);
                    ZONE
                }
                Meaning::Summer(east) => {
                    self.zone = Given::Offset(east);
                    ZONE | SUMMER
                }
                Meaning::Of(zone) => {
                    self.zone = Given::Abbreviation(text.to_ascii_uppercase(), zone);
                    ZONE
                }
            });
        }
        let Some(known) = word(text) else {
            let zone = zone_named(text).map_err(|_| Fault::Format)?;
            self.zone = Given::Named(zone);
            return Ok(ZONE);
        };
        match known {
            Word::Special(special) => self.special(special),
            Word::Month(_) | Word::Weekday if self.time_only => Err(Fault::Format),
            Word::Month(month) => {
                // A number before it that was taken for a month is a day.
                let was_day = self.has(MONTH) && !self.text_month && !self.has(DAY) && (1..=31).contains(&self.month);
                if was_day {
                    self.day = self.month;
                }
                self.text_month = true;
                self.month = i64::from(month);
                Ok(if was_day { DAY } else { MONTH })
            }
            Word::Weekday => Ok(WEEKDAY),
            Word::Afternoon(afternoon) => {
                self.afternoon = Some(afternoon);
                Ok(HALF)
            }
            Word::BeforeChrist(before) => {
                self.before_christ = before;
                Ok(ERA)
            }
            Word::Summer => {
                let standard = if let Given::Offset(east) = self.zone { east } else { 0 };
                self.zone = Given::Offset(standard + 3600);
                Ok(MODIFIER | SUMMER)
            }
            Word::Filler => Ok(0),
            Word::Label(Label::Time) => {
                let next = fields.get(at + 1).map(|next| next.look);
                let fits = matches!(next, Some(Look::Number | Look::Clock | Look::Date));
                if !fits || (!self.time_only && !self.has(DATE)) {
                    return Err(Fault::Format);
                }
                self.label = Some(Label::Time);
                Ok(0)
            }
            Word::Label(label) => {
                self.label = Some(label);
                Ok(0)
            }
        }
    }

    fn special(&mut self, special: Special) -> Decoded<u32> {
        match special {
            Special::AllBalls => {
                self.clock = clock::Clock::default();
                self.zone = Given::Offset(0);
                return Ok(TIME | ZONE);
            }
            Special::Epoch | Special::Infinity | Special::NegInfinity if !self.time_only => {
                self.special = Some(special);
                return Ok(DATE | TIME | ZONE);
            }
            _ => {}
        }
        // From here on it is asked which moment it is: what is made of that is good for now.
        let now = self.ctx.now();
        let local = now + i64::from(self.ctx.timezone.offset_at(now)) * MICROS_PER_SECOND;
        match special {
            Special::Now if self.time_only => {
                self.clock = clock::Clock::of(local.rem_euclid(MICROS_PER_DAY));
                return Ok(TIME);
            }
            _ if self.time_only => return Err(Fault::Format),
            Special::Now => {
                self.clock = clock::Clock::of(local.rem_euclid(MICROS_PER_DAY));
                self.zone = Given::Offset(self.ctx.timezone.offset_at(now));
            }
            _ => {}
        }
        let shift = match special {
            Special::Tomorrow => 1,
            Special::Yesterday => -1,
            _ => 0,
        };
        let (year, month, day) = civil_from_days(local.div_euclid(MICROS_PER_DAY) + shift);
        (self.year, self.month, self.day) = (i64::from(year), i64::from(month), i64::from(day));
        Ok(if special == Special::Now { DATE | TIME | ZONE } else { DATE })
    }

    /// `1999-01-08`, `1/8/1999`, `08-Jan-1999`, `1999.008`: parts of a date, one of which may be a month's name.
    fn calendar_date(&mut self, text: &str) -> Decoded<u32> {
        let mut parts: Vec<&str> = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            rest = rest.trim_start_matches(|first: char| !first.is_ascii_alphanumeric());
            let first = rest.chars().next().ok_or(Fault::Format)?;
            let end = rest.find(|c: char| c.is_ascii_digit() != first.is_ascii_digit() || !c.is_ascii_alphanumeric());
            let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
            parts.push(part);
            // One separator, whatever it is.
            let mut after = after.chars();
            after.next();
            rest = after.as_str();
        }
        let mut given = 0;
        let is_word = |part: &&str| part.starts_with(|first: char| first.is_ascii_alphabetic());
        let mut text_month = self.text_month;
        for part in parts.iter().filter(|part| is_word(part)) {
            match word(part) {
                Some(Word::Filler) => {}
                Some(Word::Month(month)) if (self.seen | given) & MONTH == 0 => {
                    self.month = i64::from(month);
                    text_month = true;
                    given |= MONTH;
                }
                _ => return Err(Fault::Format),
            }
        }
        let before = std::mem::replace(&mut self.text_month, text_month);
        for part in parts.iter().filter(|part| !is_word(part)) {
            let of_part = self.part(part, self.seen | given)?;
            if (self.seen | given) & of_part != 0 {
                return Err(Fault::Format);
            }
            given |= of_part;
        }
        self.text_month = before;
        if (self.seen | given) & !(DAY_OF_YEAR | ZONE) != DATE {
            return Err(Fault::Format);
        }
        Ok(given)
    }

    /// One number of a date, by what there is already and the order of DateStyle. `seen`: what there is.
    fn part(&mut self, text: &str, seen: u32) -> Decoded<u32> {
        let (whole, decimals) = text.split_at(text.find('.').unwrap_or(text.len()));
        let value = number(whole)?;
        if !decimals.is_empty() {
            if whole.len() > 2 {
                return self.joined_digits(text, seen | DATE);
            }
            self.clock.fraction = fraction(decimals)?;
        }
        let order = self.ctx.date_order;
        if text.len() == 3 && seen & DATE == YEAR && (1..=366).contains(&value) {
            self.day_of_year = value;
            return Ok(DAY_OF_YEAR | MONTH | DAY);
        }
        let is_year = text.len() >= 3 || order == DateOrder::Ymd;
        let given = match seen & DATE {
            0 if is_year => YEAR,
            0 if order == DateOrder::Dmy => DAY,
            0 | YEAR | DAY => MONTH,
            MONTH if self.text_month && is_year => YEAR,
            MONTH => DAY,
            parts if parts == YEAR | MONTH => {
                if self.text_month && text.len() >= 3 && self.short_year {
                    // What looked like a year of two digits was the day.
                    self.day = self.year;
                    self.year = value;
                    self.short_year = false;
                    return Ok(DAY);
                }
                DAY
            }
            parts if parts == MONTH | DAY => YEAR,
            DATE => return self.joined_digits(text, seen),
            _ => return Err(Fault::Format),
        };
        match given {
            YEAR => {
                self.year = value;
                self.short_year = text.len() <= 2;
            }
            MONTH => self.month = value,
            _ => self.day = value,
        }
        Ok(given)
    }

    /// Digits that run together: `yyyymmdd`, `yymmdd`, `hhmmss.fff`, `hhmm`.
    fn joined_digits(&mut self, text: &str, seen: u32) -> Decoded<u32> {
        let (digits, decimals) = text.split_at(text.find('.').unwrap_or(text.len()));
        let of = |part: &str| part.parse::<i64>().unwrap_or(0).min(i64::from(i32::MAX));
        if !decimals.is_empty() {
            let part: f64 = format!("0{decimals}").parse().unwrap_or(0.0);
            self.clock.fraction = (part * MICROS_PER_SECOND as f64).round_ties_even() as i64;
        } else if seen & DATE != DATE && digits.len() >= 6 {
            let (year, month_day) = digits.split_at(digits.len() - 4);
            (self.year, self.month, self.day) = (of(year), of(&month_day[..2]), of(&month_day[2..]));
            if year.len() == 2 {
                self.short_year = true;
            }
            return Ok(DATE);
        }
        if seen & TIME == TIME || !matches!(digits.len(), 4 | 6) {
            return Err(Fault::Format);
        }
        (self.clock.hour, self.clock.minute) = (of(&digits[..2]), of(&digits[2..4]));
        self.clock.second = if digits.len() == 6 { of(&digits[4..]) } else { 0 };
        Ok(TIME)
    }

    /// Days since 1970 of the date; `None` if there is none. Checks its parts.
    pub fn days(&mut self) -> Decoded<Option<i64>> {
        if self.seen & YEAR != 0 && !self.julian {
            if self.before_christ {
                if self.year <= 0 {
                    return Err(Fault::Range);
                }
                self.year = 1 - self.year;
            } else if self.short_year {
                if self.year < 70 {
                    self.year += 2000;
                } else if self.year < 100 {
                    self.year += 1900;
                }
            } else if self.year <= 0 {
                return Err(Fault::Range);
            }
        }
        let year = i32::try_from(self.year).ok().filter(|year| year.abs() < 6_000_000);
        if self.seen & DAY_OF_YEAR != 0 {
            let year = year.ok_or(Fault::Range)?;
            return Ok(Some(days_from_civil(year, 1, 1) + self.day_of_year - 1));
        }
        if self.seen & MONTH != 0 && !(1..=12).contains(&self.month) {
            return Err(Fault::RangeOfStyle);
        }
        if self.seen & DAY != 0 && !(1..=31).contains(&self.day) {
            return Err(Fault::RangeOfStyle);
        }
        if !self.has(DATE) {
            return Ok(None);
        }
        let (year, month, day) = (year.unwrap_or(i32::MAX / 400), self.month as u32, self.day as u32);
        if day > days_in_month(year, month) {
            return Err(Fault::Range);
        }
        Ok(Some(days_from_civil(year, month, day)))
    }

    /// The time of day with AM and PM, microseconds.
    pub fn time(&mut self) -> Decoded<i64> {
        if self.afternoon.is_some() && self.clock.hour > 12 {
            return Err(Fault::Range);
        }
        match self.afternoon {
            Some(false) if self.clock.hour == 12 => self.clock.hour = 0,
            Some(true) if self.clock.hour != 12 => self.clock.hour += 12,
            _ => {}
        }
        self.clock.micros().ok_or(Fault::Range)
    }

    /// Whether the zone is only the word DST, or that beside a zone that knows its summers.
    pub fn has_stray_modifier(&self) -> bool {
        self.seen & MODIFIER != 0 && (self.seen & ZONE == 0 || !matches!(self.zone, Given::Offset(_)))
    }
}

fn zone_named(text: &str) -> Decoded<TimeZone> {
    TimeZone::full_name(text).ok_or_else(|| Fault::UnknownZone(text.to_string()))
}

/// Digits as a number of 32 bits.
fn number(digits: &str) -> Decoded<i64> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Fault::Format);
    }
    digits.parse::<i32>().map(i64::from).map_err(|_| Fault::Range)
}
