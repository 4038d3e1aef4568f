//! `h:m:s.f` and offsets of zones.

use super::decode::{Decoded, Fault};
use super::*;

/// A time of day in parts, as written.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Clock {
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    /// Microseconds.
    pub fraction: i64,
}

impl Clock {
    /// Of microseconds since midnight.
    pub fn of(micros: i64) -> Clock {
        Clock {
            hour: micros / MICROS_PER_HOUR,
            minute: micros / MICROS_PER_MINUTE % 60,
            second: micros / MICROS_PER_SECOND % 60,
            fraction: micros % MICROS_PER_SECOND,
        }
    }

    /// Microseconds since midnight; `None` beyond 24:00:00.
    pub fn micros(&self) -> Option<i64> {
        let fits = (0..=24).contains(&self.hour)
            && (0..60).contains(&self.minute)
            && (0..=60).contains(&self.second)
            && (0..=MICROS_PER_SECOND).contains(&self.fraction);
        let seconds = (self.hour * 60 + self.minute) * 60 + self.second;
        let micros = seconds * MICROS_PER_SECOND + self.fraction;
        (fits && micros <= MICROS_PER_DAY).then_some(micros)
    }
}

/// Reads `h:m`, `h:m:s.f` or `m:s.f`; with `minutes_first` two parts are minutes and seconds. Hours are not bounded.
pub(super) fn read(text: &str, minutes_first: bool) -> Decoded<Clock> {
    let (whole, decimals) = text.split_at(text.find('.').unwrap_or(text.len()));
    let number = |digits: &str| match digits {
        "" => Ok(0),
        digits => digits.parse::<i32>().map(i64::from).map_err(|_| Fault::Range),
    };
    let mut parts = whole.split(':');
    let (first, second) = (number(parts.next().unwrap_or(""))?, number(parts.next().ok_or(Fault::Format)?)?);
    let mut clock = Clock { hour: first, minute: second, ..Clock::default() };
    match parts.next() {
        Some(seconds) => clock.second = number(seconds)?,
        None if minutes_first || !decimals.is_empty() => clock = Clock { minute: first, second, ..Clock::default() },
        None => {}
    }
    if parts.next().is_some() {
        return Err(Fault::Format);
    }
    if !decimals.is_empty() {
        clock.fraction = fraction(decimals)?;
    }
    if clock.minute > 59 || clock.second > 60 {
        return Err(Fault::Range);
    }
    Ok(clock)
}

/// `.123`: microseconds.
pub(super) fn fraction(text: &str) -> Decoded<i64> {
    if text.len() < 2 {
        return if text == "." { Ok(0) } else { Err(Fault::Format) };
    }
    let part: f64 = format!("0{text}").parse().map_err(|_| Fault::Format)?;
    Ok((part * MICROS_PER_SECOND as f64).round_ties_even() as i64)
}

/// `+02`, `-3:30`, `+0530`, `+00:53:28`: seconds east, at most 15:59:59.
pub(super) fn displacement(text: &str) -> Decoded<i32> {
    let (sign, digits) = match text.as_bytes().first() {
        Some(b'+') => (1, &text[1..]),
        Some(b'-') => (-1, &text[1..]),
        _ => return Err(Fault::Format),
    };
    let mut rest = digits;
    let mut number = |after: Option<char>| {
        if let Some(separator) = after {
            rest = rest.strip_prefix(separator)?;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, behind) = rest.split_at(end);
        rest = behind;
        Some(if number.is_empty() { Ok(0) } else { number.parse::<i32>().map_err(|_| Fault::Displacement) })
    };
    let mut hours = number(None).unwrap_or(Ok(0))?;
    let mut minutes = number(Some(':')).transpose()?;
    let seconds = match minutes {
        Some(_) => number(Some(':')).transpose()?.unwrap_or(0),
        None => 0,
    };
    if minutes.is_none() && rest.is_empty() && digits.len() > 2 {
        minutes = Some(hours % 100);
        hours /= 100;
    }
    let minutes = minutes.unwrap_or(0);
    if hours > 15 || minutes > 59 || seconds > 59 {
        return Err(Fault::Displacement);
    }
    if !rest.is_empty() {
        return Err(Fault::Format);
    }
    Ok(sign * (hours * 3600 + minutes * 60 + seconds))
}
