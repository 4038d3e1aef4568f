//! Rows as lines: what text and CSV share. The first line end decides which kind all lines have.

use super::reader::{Fields, Step};
use super::{csv, text};
use crate::error::{Result, SqlError};
use crate::syntax::{CopyFormat, CopyOptions, HeaderChoice};

#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnd {
    Unknown,
    Lf,
    CrLf,
}

pub(crate) struct LineReader {
    csv: bool,
    line_end: LineEnd,
    header: HeaderChoice,
    /// Where the search for the end of an unfinished line goes on, so that a long line is searched once.
    searched: csv::LineSearch,
    scratch: Vec<u8>,
}

impl LineReader {
    pub fn new(options: &CopyOptions) -> LineReader {
        LineReader {
            csv: options.format == CopyFormat::Csv,
            line_end: LineEnd::Unknown,
            header: options.header,
            searched: csv::LineSearch::default(),
            scratch: Vec::new(),
        }
    }

    /// Reads the row at the start of `input`. With `last` an unfinished line is a row too.
    pub fn read_row(&mut self, input: &[u8], last: bool, fields: &mut Fields) -> Result<Step> {
        let found = match self.csv {
            true => self.searched.find(input, &fields.options),
            false => self.searched.find_escaped(input),
        };
        let (line, taken) = match found {
            Some(end) => (&input[..end], end + 1),
            None if !last || input.is_empty() => return Ok(Step::More),
            None if self.csv && self.searched.is_quoted() => {
                fields.line += 1;
                return Err(fields.line_error("22P04", "unterminated CSV quoted field", input));
            }
            None => (input, input.len()),
        };
        let newlines = self.searched.take_newlines();
        self.searched = csv::LineSearch::default();
        fields.line += 1;
        let line = self.without_end(line, found.is_some(), fields)?;
        if line == b"\\." {
            return Ok(Step::End(0));
        }
        if fields.line == 1 && self.header != HeaderChoice::No {
            if self.header == HeaderChoice::Match {
                self.match_header(line, fields)?;
            }
            return Ok(Step::Row(taken));
        }
        match self.csv {
            true => csv::read_line(line, fields, &mut self.scratch)?,
            false => text::read_line(line, fields, &mut self.scratch)?,
        }
        fields.rows += 1;
        fields.line += newlines;
        Ok(Step::Row(taken))
    }

    /// The line without the carriage return that belongs to its end. 22P04 for an end of another kind than the first
    /// line's, and for carriage returns that are data.
    fn without_end<'a>(&mut self, line: &'a [u8], ended: bool, fields: &Fields) -> Result<&'a [u8]> {
        let (inside, last) = match memchr::memchr(b'\r', line) {
            Some(_) => self.returns(line, &fields.options),
            None => (false, false),
        };
        let is_first = self.line_end == LineEnd::Unknown;
        if is_first && inside {
            return Err(SqlError::not_supported("lines that end in carriage returns alone are not supported"));
        }
        if is_first && ended {
            self.line_end = if last { LineEnd::CrLf } else { LineEnd::Lf };
        }
        let is_foreign = last && !is_first && (self.line_end == LineEnd::Lf || !ended);
        if inside || is_foreign {
            return Err(self.literal("carriage return", "\\r", fields));
        }
        if self.line_end == LineEnd::CrLf && ended && !last {
            return Err(self.literal("newline", "\\n", fields));
        }
        Ok(if last { &line[..line.len() - 1] } else { line })
    }

    /// Whether carriage returns that nothing protects are within a line, and whether one is at its end.
    fn returns(&self, line: &[u8], options: &CopyOptions) -> (bool, bool) {
        let (mut inside, mut last, mut quoted, mut at) = (false, false, false, 0);
        while let Some(byte) = line.get(at) {
            let next = line.get(at + 1);
            match *byte {
                b'\\' if !self.csv => at += 1,
                byte if self.csv
                    && quoted
                    && byte == options.escape
                    && next.is_some_and(|next| *next == options.quote || *next == options.escape) =>
                {
                    at += 1;
                }
                byte if self.csv && byte == options.quote => quoted = !quoted,
                b'\r' if quoted => {}
                b'\r' if next.is_none() => last = true,
                b'\r' => inside = true,
                _ => {}
            }
            at += 1;
        }
        (inside, last)
    }

    #[cold]
    fn literal(&self, what: &str, written: &str, fields: &Fields) -> SqlError {
        match self.csv {
            true => fields
                .place_error("22P04", format!("unquoted {what} found in data"))
                .with_hint(format!("Use quoted CSV field to represent {what}.")),
            false => fields
                .place_error("22P04", format!("literal {what} found in data"))
                .with_hint(format!("Use \"{written}\" to represent {what}.")),
        }
    }

    fn match_header(&mut self, line: &[u8], fields: &mut Fields) -> Result<()> {
        let names = match self.csv {
            true => csv::split(line, &fields.options),
            false => text::split(line, &fields.options),
        };
        if names.len() != fields.columns.len() {
            let (got, expected) = (names.len(), fields.columns.len());
            let message = format!("wrong number of fields in header line: got {got}, expected {expected}");
            return Err(fields.line_error("22P04", message, line));
        }
        for (at, (name, column)) in names.iter().zip(&fields.columns).enumerate() {
            if name.as_deref() != Some(column.name.as_bytes()) {
                let got = name.as_deref().map_or("null".to_string(), |name| String::from_utf8_lossy(name).into_owned());
                let message = format!(
                    "column name mismatch in header line field {}: got \"{got}\", expected \"{}\"",
                    at + 1,
                    column.name
                );
                return Err(fields.line_error("22P04", message, line));
            }
        }
        Ok(())
    }
}

/// 22P04 for a line with too few fields.
#[cold]
pub(super) fn missing_data(fields: &Fields, at: usize, line: &[u8]) -> SqlError {
    fields.line_error("22P04", format!("missing data for column \"{}\"", fields.columns[at].name), line)
}

/// 22P04 for a line with too many.
#[cold]
pub(super) fn extra_data(fields: &Fields, line: &[u8]) -> SqlError {
    fields.line_error("22P04", "extra data after last expected column", line)
}
