//! Whether two answers mean the same.

use crate::wire::{Answer, Fields, Reply};
use std::collections::HashMap;

/// The type of `char(n)`.
const BPCHAR: u32 = 1042;
/// First id of what users make: such oids differ between servers.
const FIRST_USER_OID: u32 = 16384;
/// Rows that are looked for one by one among others.
const PAIRED_MAX: usize = 1000;

/// What a difference of the order alone begins with.
pub const OTHER_ORDER: &str = "in another order, ";

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Same,
    /// Which of several failing expressions of a statement is met first is nobody's promise (PostgreSQL manual
    /// 4.2.14): one failed where the other did, or neither had to evaluate it.
    OrderOfEvaluation,
    Different(String),
}

/// What Basalt answered beside what PostgreSQL did.
pub fn compare(basalt: &Answer, postgres: &Answer, ordered: bool) -> Verdict {
    let states = (basalt.sqlstate(), postgres.sqlstate());
    match states {
        (None, None) => {}
        (Some(ours), Some(theirs)) if ours == theirs => return Verdict::Same,
        (Some(_), Some(_)) if [basalt, postgres].into_iter().filter_map(Answer::error).all(is_of_a_row) => {
            return Verdict::OrderOfEvaluation;
        }
        (Some(ours), theirs) => {
            let message = basalt.error().map_or("", |fields| fields.message());
            return Verdict::Different(format!("Basalt fails with {ours} ({message}), PostgreSQL {}", told(theirs)));
        }
        (None, theirs) => return Verdict::Different(format!("Basalt succeeds, PostgreSQL {}", told(theirs))),
    }
    let pairs = basalt.replies.iter().zip(&postgres.replies);
    let different = pairs.into_iter().find_map(|(ours, theirs)| difference(ours, theirs, ordered));
    match different {
        Some(text) => Verdict::Different(text),
        None if basalt.status != postgres.status => Verdict::Different("the transaction status differs".into()),
        None => Verdict::Same,
    }
}

/// Whether one side may have met a failing row that the other did not have to look at.
pub fn may_be_order(basalt: &Answer, postgres: &Answer) -> bool {
    let one = basalt.sqlstate().is_none() != postgres.sqlstate().is_none();
    let failed = basalt.error().or(postgres.error());
    one && failed.is_some_and(is_runtime)
}

fn told(state: Option<&str>) -> String {
    state.map_or("succeeds".into(), |state| format!("fails with {state}"))
}

/// Data exceptions and what else depends on values. Formats, flags and escapes are read while statements run.
fn is_runtime(error: &Fields) -> bool {
    let state = error.sqlstate();
    let is_format = state == "42601"
        && ["decimal point", "bound flags", "invalid Unicode"].iter().any(|of| error.message().contains(of));
    // Found out where values are compared.
    let is_compared = state == "42883" && error.message().contains("could not identify an equality operator");
    // Names of encodings that are values.
    let is_encoding = state == "42704" && error.message().contains("encoding");
    // Sums on their way, which functions take as arrays.
    let is_of_sums = state == "XX000" && error.message().contains("-element float8 array");
    let is_value = state.starts_with("22") || matches!(state, "21000" | "0A000" | "54000" | "23502" | "23505");
    is_value || is_format || is_compared || is_encoding || is_of_sums
}

/// The same, and what a table asks of its rows: another row may be met first.
fn is_of_a_row(error: &Fields) -> bool {
    is_runtime(error) || error.sqlstate() == "23514"
}

fn difference(ours: &Reply, theirs: &Reply, ordered: bool) -> Option<String> {
    let shape = |reply: &Reply| -> Vec<(String, u32)> {
        let columns = reply.columns.iter().flatten();
        columns.map(|column| (column.name.clone(), column.type_oid.min(FIRST_USER_OID))).collect()
    };
    if shape(ours) != shape(theirs) {
        return Some(format!("columns {:?}, PostgreSQL's {:?}", shape(ours), shape(theirs)));
    }
    if ours.tag != theirs.tag {
        return Some(format!("tag {:?}, PostgreSQL's {:?}", ours.tag, theirs.tag));
    }
    let (mut own, mut other) = (rows(ours), rows(theirs));
    if !ordered {
        own.sort();
        other.sort();
    }
    if own == other {
        return None;
    }
    // Of equal numbers, intervals and padded texts that are written differently, groups and sets keep any.
    let padded: Vec<bool> = ours.columns.iter().flatten().map(|column| column.type_oid == BPCHAR).collect();
    let plain_row = |row: &String| in_days(&without_zeros(&without_padding(row, &padded)));
    let plain = |rows: &[String]| rows.iter().map(plain_row).collect::<Vec<_>>();
    let (mut own, mut other) = (plain(&own), plain(&other));
    if !ordered {
        own.sort();
        other.sort();
    }
    let paired = || own.iter().zip(&other).all(|(own, other)| same_but_for_sums(own, other));
    if own == other || own.len() == other.len() && (paired() || may_be_paired(&own, &other, ordered)) {
        return None;
    }
    let sorted = |rows: &[String]| {
        let mut rows = rows.to_vec();
        rows.sort();
        rows
    };
    let order = if sorted(&own) == sorted(&other) { OTHER_ORDER } else { "" };
    let first = own.iter().zip(&other).position(|(a, b)| a != b).unwrap_or(own.len().min(other.len()));
    let show = |rows: &[String]| rows.get(first).cloned().unwrap_or_else(|| "no row".into());
    Some(format!("{order}row {first}: {}, PostgreSQL's {}", show(&own), show(&other)))
}

fn rows(reply: &Reply) -> Vec<String> {
    let value = |value: &Option<Vec<u8>>| match value {
        None => "NULL".to_string(),
        Some(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    };
    reply.rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join("|")).collect()
}

/// Whether rows differ in the last digits of fractions alone: sums of floats depend on the order of their rows.
fn same_but_for_sums(own: &str, other: &str) -> bool {
    const FLOAT_DIGITS: usize = 17;
    let same = |(own, other): (&str, &str)| {
        let long = |cell: &str| cell.contains('.') && cell.len() >= 15;
        // Beside a shorter number, as a float is written: a numeric may have more digits.
        let float = |cell: &str| {
            let digits = cell.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
            long(cell) && digits <= FLOAT_DIGITS
        };
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-11 * a.abs().max(b.abs());
        let may_differ = long(own) && long(other) || float(own) || float(other);
        own == other || may_differ && matches!((own.parse(), other.parse()), (Ok(a), Ok(b)) if close(a, b))
    };
    own.split('|').count() == other.split('|').count() && own.split('|').zip(other.split('|')).all(same)
}

/// The same where a last digit has put a row at another place among the others.
fn may_be_paired(own: &[String], other: &[String], ordered: bool) -> bool {
    let (own_alone, own_shared) = apart(own, other);
    let (mut other_alone, other_shared) = apart(other, own);
    let mut has_partner = |own: &&str| match other_alone.iter().position(|other| same_but_for_sums(own, other)) {
        Some(at) => {
            other_alone.swap_remove(at);
            true
        }
        None => false,
    };
    own_alone.len() <= PAIRED_MAX && own_alone.iter().all(&mut has_partner) && (!ordered || own_shared == other_shared)
}

/// Rows that the others lack, and those that they have, in order.
fn apart<'r>(rows: &'r [String], others: &[String]) -> (Vec<&'r str>, Vec<&'r str>) {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    others.iter().for_each(|row| *counts.entry(row).or_default() += 1);
    rows.iter().map(String::as_str).partition(|row| match counts.get_mut(row).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            false
        }
        None => true,
    })
}

/// Cells of padded columns without the spaces at their end.
fn without_padding(row: &str, padded: &[bool]) -> String {
    let cells = row.split('|').enumerate().map(|(at, cell)| match padded.get(at) {
        Some(true) => cell.trim_end_matches(' '),
        _ => cell,
    });
    cells.collect::<Vec<_>>().join("|")
}

/// `1.50` as `1.5`, `-0` as `0`.
fn without_zeros(row: &str) -> String {
    let mut out = String::with_capacity(row.len());
    let mut rest = row;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        out.push_str(&rest[..start]);
        let tail = &rest[start..];
        let end = tail.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(tail.len());
        let number = &tail[..end];
        let plain = match number.contains('.') {
            true => number.trim_end_matches('0').trim_end_matches('.'),
            false => number,
        };
        if plain == "0" && out.ends_with('-') {
            out.pop();
        }
        out.push_str(plain);
        rest = &tail[end..];
    }
    out + rest
}

/// Intervals by their length, as PostgreSQL compares them: `1 mon -1 days +24:00:00` as `30 days 00:00:00`.
fn in_days(row: &str) -> String {
    let cell = |cell: &str| {
        let words: Vec<&str> = cell.split(' ').collect();
        let mut days = 0;
        let mut at = 0;
        while let (Some(Ok(count)), Some(unit)) = (words.get(at).map(|word| word.parse::<i64>()), words.get(at + 1)) {
            days += count
                * match unit.trim_end_matches('s') {
                    "year" => 360,
                    "mon" => 30,
                    "day" => 1,
                    _ => break,
                };
            at += 2;
        }
        let time = match words[at..] {
            [] => Some(0),
            [time] => micros(time),
            _ => None,
        };
        match time {
            Some(micros) => {
                let (whole, part) = (days * 86_400 + micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
                let (hours, rest) = (whole.rem_euclid(86_400) / 3600, whole.rem_euclid(3600));
                let days = whole.div_euclid(86_400);
                let days = if days == 0 { String::new() } else { format!("{days} days ") };
                let part = if part == 0 { String::new() } else { format!(".{part:06}") };
                format!("{days}{hours:02}:{:02}:{:02}{part}", rest / 60, rest % 60)
            }
            None => cell.to_string(),
        }
    };
    row.split('|').map(cell).collect::<Vec<_>>().join("|")
}

/// Microseconds of `[+-]hh:mm:ss[.ffffff]`.
fn micros(time: &str) -> Option<i64> {
    let (sign, digits) = match time.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, time.trim_start_matches('+')),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let parts: Vec<i64> = whole.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [hours, minutes, seconds] = parts[..] else { return None };
    let part: i64 = if part.len() <= 6 { format!("{part:0<6}").parse().ok()? } else { return None };
    Some(sign * ((hours * 3600 + minutes * 60 + seconds) * 1_000_000 + part))
}

#[cfg(test)]
mod tests;
