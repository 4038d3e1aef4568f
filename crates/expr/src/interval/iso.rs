//! ISO 8601's durations (PostgreSQL manual, 8.5.4): with designators (`P1Y2M3DT4H5M6S`), as a date and time
//! (`P0001-02-03T04:05:06`), or that run together (`P00010203T040506`).

use super::Interval;
use super::parse::{Failure, Number, Parsed, Sum, Unit};

/// What stands behind a number, at the end of the text nothing.
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    /// A number and how many digits it begins with.
    fn number(&mut self) -> Parsed<(Number, usize)> {
        if !self.rest.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '-' | '.')) {
            return Err(Failure::Syntax);
        }
        let sign = usize::from(self.rest.starts_with('-'));
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let whole = digits(&self.rest[sign..]);
        let mut end = sign + whole;
        if self.rest[end..].starts_with('.') {
            end += 1 + digits(&self.rest[end + 1..]);
        }
        let exponent = &self.rest[end..];
        if exponent.starts_with(['e', 'E']) {
            let sign = usize::from(exponent[1..].starts_with(['+', '-']));
            let count = digits(&exponent[1 + sign..]);
            end += if count > 0 { 1 + sign + count } else { 0 };
        }
        let value: f64 = self.rest[..end].parse().map_err(|_| Failure::Syntax)?;
        if !(-1e15..=1e15).contains(&value) {
            return Err(Failure::Overflow);
        }
        self.rest = &self.rest[end..];
        Ok((Number { whole: value.trunc() as i64, fraction: value - value.trunc() }, whole))
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.chars().next()?;
        self.rest = &self.rest[next.len_utf8()..];
        Some(next)
    }
}

/// Reads what follows the `P`.
pub(super) fn parse_iso(text: &str) -> Parsed<Interval> {
    let mut sum = Sum::default();
    let mut reader = Reader { rest: text };
    // After the T.
    let mut in_time = false;
    let mut has_field = false;
    while !reader.rest.is_empty() {
        if let Some(time) = reader.rest.strip_prefix('T') {
            (in_time, has_field) = (true, false);
            reader.rest = time;
            continue;
        }
        let (number, digits) = reader.number()?;
        let designator = reader.next();
        let unit = match (in_time, designator) {
            (false, Some('Y')) => Unit::Year,
            (false, Some('M')) => Unit::Month,
            (false, Some('W')) => Unit::Week,
            (false, Some('D')) => Unit::Day,
            (true, Some('H')) => Unit::Hour,
            (true, Some('M')) => Unit::Minute,
            (true, Some('S')) => Unit::Second,
            (false, None | Some('T')) if digits == 8 && !has_field => {
                sum.add_months(number.whole / 10_000, 12)?;
                sum.add_months(number.whole / 100 % 100, 1)?;
                sum.add(Number { whole: number.whole % 100, ..number }, Unit::Day)?;
                in_time = true;
                continue;
            }
            (false, None | Some('T' | '-')) if !has_field => {
                sum.add(number, Unit::Year)?;
                if designator == Some('-') && !date_parts(&mut reader, &mut sum)? {
                    return Err(Failure::Syntax);
                }
                in_time = true;
                continue;
            }
            (true, None) if digits == 6 && !has_field => {
                let part = |whole| Number { whole, fraction: 0.0 };
                sum.add(part(number.whole / 10_000), Unit::Hour)?;
                sum.add(part(number.whole / 100 % 100), Unit::Minute)?;
                sum.add(Number { whole: number.whole % 100, ..number }, Unit::Second)?;
                return sum.finish();
            }
            (true, None | Some(':')) if !has_field => {
                sum.add(number, Unit::Hour)?;
                if designator.is_some() {
                    sum.add(reader.number()?.0, Unit::Minute)?;
                    match reader.next() {
                        None => {}
                        Some(':') => sum.add(reader.number()?.0, Unit::Second)?,
                        Some(_) => return Err(Failure::Syntax),
                    }
                }
                return if reader.rest.is_empty() { sum.finish() } else { Err(Failure::Syntax) };
            }
            _ => return Err(Failure::Syntax),
        };
        sum.add(number, unit)?;
        has_field = true;
    }
    sum.finish()
}

/// `02-03` of `0001-02-03`, and the T after it; false if something else follows.
fn date_parts(reader: &mut Reader<'_>, sum: &mut Sum) -> Parsed<bool> {
    for unit in [Unit::Month, Unit::Day] {
        sum.add(reader.number()?.0, unit)?;
        match reader.next() {
            None | Some('T') => return Ok(true),
            Some('-') if unit == Unit::Month => {}
            Some(_) => return Ok(false),
        }
    }
    Ok(false)
}
