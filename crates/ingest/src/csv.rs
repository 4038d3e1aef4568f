//! CSV files: the columns that their first rows suggest, and their bytes in pieces.
//!
//! The bytes go to the server as they are; it alone reads them for good. Here they are only looked at, to
//! make a table that can hold them.

use crate::{Error, FileColumn, Result};
use basalt_sched::{File, FileSystem, OpenMode};
use basalt_types::DataType;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of a file is looked at for its types.
const SAMPLE_BYTES: usize = 4 << 20;

#[derive(Clone, Debug)]
pub struct CsvOptions {
    pub delimiter: u8,
    pub header: bool,
    /// What stands for null when it is not quoted.
    pub null: String,
}

pub struct CsvFile {
    path: PathBuf,
    file: Arc<dyn File>,
    bytes: u64,
}

impl CsvFile {
    pub fn open(fs: &dyn FileSystem, path: &Path) -> Result<CsvFile> {
        let io_error = |source| Error::Io { path: path.to_path_buf(), source };
        let file = fs.open(path, OpenMode::Read).map_err(io_error)?;
        let bytes = file.len().map_err(io_error)?;
        Ok(CsvFile { path: path.to_path_buf(), file, bytes })
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads from `offset` on; empty at the end.
    pub fn read(&self, offset: u64, bytes_max: usize) -> Result<Vec<u8>> {
        let mut buf = vec![0; bytes_max];
        let mut filled = 0;
        while filled < buf.len() {
            match self.file.read_at(&mut buf[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(source) => return Err(Error::Io { path: self.path.clone(), source }),
            }
        }
        buf.truncate(filled);
        Ok(buf)
    }

    /// Names from the header, if there is one (`column1`, … otherwise).
    pub fn names(&self, options: &CsvOptions) -> Result<Vec<String>> {
        Ok(self.infer(options)?.into_iter().map(|column| column.name).collect())
    }

    /// Columns whose types hold every value of the file's beginning.
    pub fn infer(&self, options: &CsvOptions) -> Result<Vec<FileColumn>> {
        let sample = self.read(0, SAMPLE_BYTES)?;
        let whole = sample.len() as u64 == self.bytes;
        let text = match std::str::from_utf8(&sample) {
            Ok(text) => text,
            // The sample may end inside of a character.
            Err(error) if !whole && error.error_len().is_none() => {
                std::str::from_utf8(&sample[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => return Err(Error::NotText { path: self.path.clone(), byte: error.valid_up_to() }),
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut records = split(text, options.delimiter as char, whole);
        if records.is_empty() {
            return Err(Error::Empty { path: self.path.clone() });
        }
        let names: Vec<String> = match options.header {
            true => records.remove(0).into_iter().map(|field| field.text).collect(),
            false => (1..=records[0].len()).map(|i| format!("column{i}")).collect(),
        };
        let types = (0..names.len()).map(|i| {
            let fields = records.iter().filter_map(|record| record.get(i));
            let values = fields.filter(|field| field.quoted || field.text != options.null);
            type_of(values.map(|field| field.text.as_str()))
        });
        let types: Vec<DataType> = types.collect();
        Ok(names.into_iter().zip(types).map(|(name, ty)| FileColumn { name, ty, nullable: true }).collect())
    }
}

struct Field {
    text: String,
    quoted: bool,
}

/// Records of CSV text; the last one only if the text is `whole` or it is complete.
fn split(text: &str, delimiter: char, whole: bool) -> Vec<Vec<Field>> {
    let mut records = Vec::new();
    let mut record = Vec::new();
    let mut field = Field { text: String::new(), quoted: false };
    let mut in_quotes = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if in_quotes && chars.next_if_eq(&'"').is_some() => field.text.push('"'),
            '"' => {
                in_quotes = !in_quotes;
                field.quoted = true;
            }
            c if in_quotes => field.text.push(c),
            c if c == delimiter => {
                record.push(std::mem::replace(&mut field, Field { text: String::new(), quoted: false }));
            }
            '\r' if chars.peek() == Some(&'\n') => {}
            '\n' => {
                record.push(std::mem::replace(&mut field, Field { text: String::new(), quoted: false }));
                records.push(std::mem::take(&mut record));
            }
            c => field.text.push(c),
        }
    }
    if whole && !in_quotes && (!record.is_empty() || !field.text.is_empty() || field.quoted) {
        record.push(field);
        records.push(record);
    }
    records
}

/// The narrowest of a few types that all values read as; text without values.
fn type_of<'a>(values: impl Iterator<Item = &'a str> + Clone) -> DataType {
    if values.clone().next().is_none() {
        return DataType::Text;
    }
    type Candidate = (DataType, fn(&str) -> bool);
    let candidates: [Candidate; 9] = [
        (DataType::Int8, is_integer),
        (DataType::Numeric(None), is_decimal),
        (DataType::Float8, |text| is_float(text)),
        (DataType::Bool, |text| matches!(text, "true" | "false" | "t" | "f" | "TRUE" | "FALSE" | "True" | "False")),
        (DataType::Date, is_date),
        (DataType::Timestamp, |text| is_date(text) || timestamp_zone(text) == Some("")),
        (DataType::TimestampTz, |text| timestamp_zone(text).is_some_and(|zone| !zone.is_empty())),
        (DataType::Time, |text| is_time_of_day(text)),
        (DataType::Uuid, is_uuid),
    ];
    let fits = |check: fn(&str) -> bool| values.clone().all(check);
    candidates.into_iter().find(|(_, check)| fits(*check)).map_or(DataType::Text, |(ty, _)| ty)
}

/// Numbers with leading zeros are rather codes, and stay text.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    text.parse::<i64>().is_ok() && !text.starts_with('+') && (digits.len() == 1 || !digits.starts_with('0'))
}

fn is_decimal(text: &str) -> bool {
    let number = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    is_digits(whole) && is_digits(fraction) && number.len() <= 38 && (whole.len() == 1 || !whole.starts_with('0'))
}

fn is_float(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
        && text.parse::<f64>().is_ok()
        && (is_decimal(text) || text.contains(['e', 'E']))
}

fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |range: std::ops::Range<usize>| bytes[range].iter().all(u8::is_ascii_digit);
    bytes.len() == 10 && bytes[4] == b'-' && bytes[7] == b'-' && digits(0..4) && digits(5..7) && digits(8..10)
}

/// What stands behind the time of `2026-01-31 12:00:00Z`: the zone, or nothing. `None`: not a timestamp.
fn timestamp_zone(text: &str) -> Option<&str> {
    let (date, time) = text.split_once([' ', 'T'])?;
    is_date(date).then(|| time_zone(time))?
}

/// With seconds: `10:15` may be minutes and seconds, or a score.
fn is_time_of_day(text: &str) -> bool {
    text.matches(':').count() == 2 && text.find(':') == Some(2) && time_zone(text) == Some("")
}

/// What stands behind `9:00`, `12:00:00` or `12:00:00.123`: `Z`, `+01`, `+01:00`, `+0100`, or nothing. `None`: not a
/// time of day.
fn time_zone(text: &str) -> Option<&str> {
    let (time, zone) = text.split_at(text.find(['Z', '+', '-', ' ']).unwrap_or(text.len()));
    let (clock, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut parts = clock.split(':');
    let number = |part: Option<&str>, lengths: RangeInclusive<usize>, max: u8| {
        part.is_some_and(|part| lengths.contains(&part.len()) && part.parse::<u8>().is_ok_and(|part| part <= max))
    };
    let (hour, minute, second) = (parts.next(), parts.next(), parts.next());
    let is_clock =
        number(hour, 1..=2, 23) && number(minute, 2..=2, 59) && (second.is_none() || number(second, 2..=2, 60));
    let is_clock = is_clock || matches!(clock, "24:00" | "24:00:00");
    let is_time = is_clock && parts.next().is_none() && is_digits(fraction);
    let offset = zone.strip_prefix(['+', '-']);
    let is_zone = match offset {
        Some(offset) => {
            let (hours, rest) = offset.split_at_checked(2).unwrap_or((offset, ""));
            let minutes = if rest.is_empty() { "00" } else { rest.strip_prefix(':').unwrap_or(rest) };
            number(Some(hours), 2..=2, 15) && number(Some(minutes), 2..=2, 59)
        }
        None => matches!(zone, "" | "Z"),
    };
    (is_time && is_zone).then_some(zone)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    let is_part = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_part)
}

#[cfg(test)]
mod tests;
