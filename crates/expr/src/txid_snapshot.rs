//! `pg_snapshot` and `txid_snapshot` (manual 9.27.10): which transactions had ended at a moment.
//!
//! A value rests as its text, `xmin:xmax:xip,…`: all transactions before `xmin` had ended, none from `xmax` on, and those
//! listed were running.

use crate::error::{Error, Result};

#[cfg(test)]
mod tests;

/// How many running transactions PostgreSQL's binary form may list.
const RUNNING_MAX: usize = 0x3fff_ffff / 8;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub least: u64,
    /// One more than the last transaction.
    pub end: u64,
    /// Ascending, all of them in `least..end`.
    pub running: Vec<u64>,
}

/// Takes decimal digits off the front as C's `strtoul` does.
fn take_number(text: &mut &str) -> u64 {
    let trimmed = text.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\x0b');
    let (negative, rest) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let length = rest.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return 0;
    }
    *text = &rest[length..];
    match (rest[..length].parse::<u64>(), negative) {
        (Ok(value), true) => value.wrapping_neg(),
        (Ok(value), false) => value,
        (Err(_), _) => u64::MAX,
    }
}

/// Whether a transaction may have this number.
fn is_valid(number: u64) -> bool {
    number as u32 != 0
}

impl Snapshot {
    /// Reads `12:18:14,16`; 22P02 for what is no snapshot.
    pub fn parse(text: &str) -> Result<Snapshot> {
        Snapshot::read(text).ok_or_else(|| Error::invalid_text("pg_snapshot", text))
    }

    fn read(text: &str) -> Option<Snapshot> {
        let mut rest = text;
        let least = take_number(&mut rest);
        rest = rest.strip_prefix(':')?;
        let end = take_number(&mut rest);
        rest = rest.strip_prefix(':')?;
        if !is_valid(least) || !is_valid(end) || end < least {
            return None;
        }
        let mut running: Vec<u64> = Vec::new();
        while !rest.is_empty() {
            let next = take_number(&mut rest);
            if !(least..end).contains(&next) || running.last().is_some_and(|last| next < *last) {
                return None;
            }
            if running.last() != Some(&next) {
                running.push(next);
            }
            rest = match rest.strip_prefix(',') {
                Some(rest) => rest,
                None if rest.is_empty() => rest,
                None => return None,
            };
        }
        Some(Snapshot { least, end, running })
    }

    /// Text that is the same for equal snapshots.
    pub fn print(&self) -> String {
        let running: Vec<String> = self.running.iter().map(u64::to_string).collect();
        format!("{}:{}:{}", self.least, self.end, running.join(","))
    }

    /// Whether the changes of a transaction show.
    pub fn shows(&self, number: u64) -> bool {
        number < self.least || (number < self.end && self.running.binary_search(&number).is_err())
    }

    /// PostgreSQL's binary form.
    pub fn write_binary(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.running.len() as u32).to_be_bytes());
        [self.least, self.end].iter().chain(&self.running).for_each(|number| out.extend(number.to_be_bytes()));
    }

    /// The inverse of [`Snapshot::write_binary`]; 22P03 for what is no snapshot.
    pub fn read_binary(bytes: &[u8]) -> Result<Snapshot> {
        let invalid = || Error::invalid_binary("invalid external pg_snapshot data");
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or_else(Error::short_binary)?;
        let count = u32::from_be_bytes(*count) as usize;
        if count > RUNNING_MAX {
            return Err(invalid());
        }
        let mut numbers =
            rest.chunks_exact(8).map(|chunk| chunk.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte)));
        let (least, end) = numbers.next().zip(numbers.next()).ok_or_else(Error::short_binary)?;
        if !is_valid(least) || !is_valid(end) || end < least {
            return Err(invalid());
        }
        let mut running: Vec<u64> = Vec::new();
        for _ in 0..count {
            let next = numbers.next().ok_or_else(Error::short_binary)?;
            if next < least || next > end || running.last().is_some_and(|last| next < *last) {
                return Err(invalid());
            }
            if running.last() != Some(&next) {
                running.push(next);
            }
        }
        match rest.len() == (count + 2) * 8 {
            true => Ok(Snapshot { least, end, running }),
            false => Err(Error::invalid_binary("incorrect binary data format")),
        }
    }
}
