//! The CSV format: quoted fields may hold delimiters and line ends (PostgreSQL manual, COPY, CSV Format).

use super::lines::{extra_data, missing_data};
use super::reader::Fields;
use crate::error::Result;
use crate::syntax::CopyOptions;

/// The state of a search for the end of a line, kept while the line is unfinished.
#[derive(Default)]
pub(super) struct LineSearch {
    at: usize,
    quoted: bool,
    /// Line ends inside quotes.
    newlines: u64,
}

impl LineSearch {
    pub fn is_quoted(&self) -> bool {
        self.quoted
    }

    pub fn take_newlines(&self) -> u64 {
        self.newlines
    }

    /// The line feed that ends a CSV line: one outside quotes.
    pub fn find(&mut self, input: &[u8], options: &CopyOptions) -> Option<usize> {
        let (quote, escape) = (options.quote, options.escape);
        while self.at < input.len() {
            if !self.quoted {
                let Some(found) = memchr::memchr2(b'\n', quote, &input[self.at..]) else {
                    self.at = input.len();
                    return None;
                };
                let found = self.at + found;
                if input[found] == b'\n' {
                    return Some(found);
                }
                self.quoted = true;
                self.at = found + 1;
                continue;
            }
            let Some(found) = memchr::memchr3(quote, escape, b'\n', &input[self.at..]) else {
                self.at = input.len();
                return None;
            };
            let found = self.at + found;
            let byte = input[found];
            if byte == b'\n' {
                self.newlines += 1;
                self.at = found + 1;
            } else if byte == escape && escape != quote {
                // What it escapes may not be here yet.
                match input.get(found + 1) {
                    None => {
                        self.at = found;
                        return None;
                    }
                    Some(next) if *next == quote || *next == escape => self.at = found + 2,
                    Some(_) => self.at = found + 1,
                }
            } else {
                // A doubled quote opens again at once.
                self.quoted = false;
                self.at = found + 1;
            }
        }
        None
    }

    /// The line feed that ends a line of the text format: one that no backslash precedes.
    pub fn find_escaped(&mut self, input: &[u8]) -> Option<usize> {
        loop {
            let Some(found) = memchr::memchr(b'\n', &input[self.at..]) else {
                // A backslash at the end may escape the first byte to come: look again from there.
                let slashes = input.iter().rev().take_while(|byte| **byte == b'\\').count();
                self.at = input.len() - slashes;
                return None;
            };
            let found = self.at + found;
            let slashes = input[..found].iter().rev().take_while(|byte| **byte == b'\\').count();
            if slashes % 2 == 0 {
                return Some(found);
            }
            self.newlines += 1;
            self.at = found + 1;
        }
    }
}

/// Reads the fields of a line into their columns.
pub(super) fn read_line(line: &[u8], fields: &mut Fields, scratch: &mut Vec<u8>) -> Result<()> {
    let count = fields.columns.len();
    if count == 0 {
        return if line.is_empty() { Ok(()) } else { Err(extra_data(fields, line)) };
    }
    let (delimiter, quote) = (fields.options.delimiter, fields.options.quote);
    let quoted_line = memchr::memchr(quote, line).is_some();
    let mut rest = Some(line);
    for at in 0..count {
        let Some(here) = rest else { return Err(missing_data(fields, at, line)) };
        let mut quoted = false;
        let field = if quoted_line {
            let (end, was_quoted) = take_field(here, &fields.options, scratch);
            quoted = was_quoted;
            rest = end.map(|end| &here[end + 1..]);
            scratch.as_slice()
        } else {
            let end = memchr::memchr(delimiter, here);
            rest = end.map(|end| &here[end + 1..]);
            &here[..end.unwrap_or(here.len())]
        };
        let column = &fields.columns[at];
        let null =
            field == fields.options.null.as_bytes() && if quoted { column.force_null } else { !column.force_not_null };
        if null {
            fields.push_null(at)?;
        } else {
            fields.push_text(at, field)?;
        }
    }
    if rest.is_some() { Err(extra_data(fields, line)) } else { Ok(()) }
}

/// Puts the field at the start of `input` into `out`, without quotes. Returns where its delimiter is, and
/// whether any part was quoted.
fn take_field(input: &[u8], options: &CopyOptions, out: &mut Vec<u8>) -> (Option<usize>, bool) {
    out.clear();
    let (mut at, mut any, mut quoted) = (0, false, false);
    while at < input.len() {
        let byte = input[at];
        if !quoted {
            if byte == options.delimiter {
                return (Some(at), any);
            }
            if byte == options.quote {
                (quoted, any) = (true, true);
                at += 1;
                continue;
            }
            let run = memchr::memchr2(options.delimiter, options.quote, &input[at..]).unwrap_or(input.len() - at);
            out.extend_from_slice(&input[at..at + run]);
            at += run;
            continue;
        }
        let next = input.get(at + 1);
        if byte == options.escape && next.is_some_and(|next| *next == options.quote || *next == options.escape) {
            out.push(input[at + 1]);
            at += 2;
        } else if byte == options.quote {
            quoted = false;
            at += 1;
        } else {
            // The escape itself, where it escapes nothing, is data.
            let run = memchr::memchr2(options.quote, options.escape, &input[at + 1..]).unwrap_or(input.len() - at - 1);
            out.extend_from_slice(&input[at..=at + run]);
            at += run + 1;
        }
    }
    (None, any)
}

/// Fields of a header line; `None` for null.
pub(super) fn split(line: &[u8], options: &CopyOptions) -> Vec<Option<Vec<u8>>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let mut field = Vec::new();
        let (end, quoted) = take_field(rest, options, &mut field);
        let null = !quoted && field == options.null.as_bytes();
        fields.push((!null).then_some(field));
        match end {
            Some(end) => rest = &rest[end + 1..],
            None => return fields,
        }
    }
}
