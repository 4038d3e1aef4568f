//! From CopyData bytes to blocks of columns.

use super::binary::BinaryReader;
use super::lines::LineReader;
use crate::error::{Result, SqlError};
use crate::syntax::{CopyFormat, CopyOptions};
use arrow_array::ArrayRef;
use basalt_expr::EvalContext;
use basalt_expr::io::LogicalBuilder;
use basalt_types::{DataType, Datum};
use std::sync::Arc;

/// Rows of one block: a segment's row group.
pub(crate) const BLOCK_ROWS: usize = 65_536;
/// Bytes of input after which a block ends, however few rows it has.
pub(crate) const BLOCK_BYTES: usize = 32 << 20;
/// Longest row, as PostgreSQL's.
pub(crate) const ROW_BYTES_MAX: usize = 1 << 30;

/// A column that fields are read into.
pub(crate) struct FieldColumn {
    pub name: String,
    pub ty: DataType,
    pub force_not_null: bool,
    pub force_null: bool,
}

/// Builders of one block, and what errors need to say where they happened.
pub(crate) struct Fields {
    pub table: String,
    pub columns: Vec<FieldColumn>,
    pub builders: Vec<LogicalBuilder>,
    pub options: CopyOptions,
    pub eval: Arc<EvalContext>,
    /// Of the input, from 1.
    pub line: u64,
    /// Complete rows in the builders.
    pub rows: usize,
}

/// Longest field or line that an error quotes.
const QUOTED_BYTES_MAX: usize = 100;

impl Fields {
    /// Reads one field into its column.
    #[inline]
    pub fn push_text(&mut self, at: usize, field: &[u8]) -> Result<()> {
        let read = basalt_expr::io::text::parse_into(field, &mut self.builders[at], &self.eval);
        read.map_err(|error| self.field_error(error.into(), at, Some(field)))
    }

    pub fn push_binary(&mut self, at: usize, field: &[u8]) -> Result<()> {
        let read = basalt_expr::io::binary::parse_into(field, &mut self.builders[at], &self.eval);
        read.map_err(|error| self.field_error(error.into(), at, None))
    }

    /// A null, which a domain may refuse.
    #[inline]
    pub fn push_null(&mut self, at: usize) -> Result<()> {
        if let DataType::Domain(_) = self.columns[at].ty {
            let checked = basalt_expr::domain::check(&self.columns[at].ty, &Datum::Null, &self.eval);
            checked.map_err(|error| self.field_error(error.into(), at, None))?;
        }
        self.builders[at].push_null();
        Ok(())
    }

    #[cold]
    fn field_error(&self, error: SqlError, at: usize, field: Option<&[u8]>) -> SqlError {
        let place = format!("COPY {}, line {}, column {}", self.table, self.line, self.columns[at].name);
        error.with_context(match field {
            Some(field) => format!("{place}: \"{}\"", quoted(field)),
            None => place,
        })
    }

    #[cold]
    pub fn column_error(&self, sqlstate: &'static str, message: impl Into<String>, at: usize) -> SqlError {
        self.field_error(SqlError::new(sqlstate, message), at, None)
    }

    #[cold]
    pub fn line_error(&self, sqlstate: &'static str, message: impl Into<String>, line: &[u8]) -> SqlError {
        let context = format!("COPY {}, line {}: \"{}\"", self.table, self.line, quoted(line));
        SqlError::new(sqlstate, message).with_context(context)
    }

    #[cold]
    pub fn place_error(&self, sqlstate: &'static str, message: impl Into<String>) -> SqlError {
        SqlError::new(sqlstate, message).with_context(format!("COPY {}, line {}", self.table, self.line))
    }
}

fn quoted(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(QUOTED_BYTES_MAX)]).into_owned();
    if bytes.len() > QUOTED_BYTES_MAX { text + "..." } else { text }
}

enum Format {
    Lines(LineReader),
    Binary(BinaryReader),
}

pub(crate) struct CopyReader {
    fields: Fields,
    format: Format,
    /// Bytes not yet read; whole rows are taken off the front.
    buffer: Vec<u8>,
    bytes_in_block: usize,
    ended: bool,
}

impl CopyReader {
    pub fn new(table: String, columns: Vec<FieldColumn>, options: CopyOptions, eval: Arc<EvalContext>) -> CopyReader {
        let builders = columns.iter().map(|column| LogicalBuilder::new(&column.ty, 0)).collect();
        let format = match options.format {
            CopyFormat::Binary => Format::Binary(BinaryReader::default()),
            _ => Format::Lines(LineReader::new(&options)),
        };
        let fields = Fields { table, columns, builders, options, eval, line: 0, rows: 0 };
        CopyReader { fields, format, buffer: Vec::new(), bytes_in_block: 0, ended: false }
    }

    /// Takes bytes in; calls `emit` with each block that is full.
    pub fn feed(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Vec<ArrayRef>, usize) -> Result<()>) -> Result<()> {
        if self.ended {
            return self.refuse_after_end(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        let taken = self.read_rows(false, emit)?;
        self.buffer.drain(..taken);
        if self.ended {
            let rest = std::mem::take(&mut self.buffer);
            return self.refuse_after_end(&rest);
        }
        if self.buffer.len() > ROW_BYTES_MAX {
            return Err(self.fields.place_error("54000", format!("a row is longer than {ROW_BYTES_MAX} bytes")));
        }
        Ok(())
    }

    /// The input is over: reads a last line without an end, gives the last block.
    pub fn finish(mut self, emit: &mut dyn FnMut(Vec<ArrayRef>, usize) -> Result<()>) -> Result<()> {
        if !self.ended {
            let taken = self.read_rows(true, emit)?;
            if let Format::Binary(binary) = &self.format
                && !self.ended
            {
                binary.end(&self.buffer[taken..], &mut self.fields)?;
            } else if taken < self.buffer.len() && !self.ended {
                return Err(self.fields.place_error("22P04", "unexpected end of data in the middle of a row"));
            }
        }
        self.flush(emit)
    }

    /// Nothing may follow the end marker of the binary format; what follows that of text is ignored.
    fn refuse_after_end(&mut self, bytes: &[u8]) -> Result<()> {
        match self.format {
            Format::Binary(_) if !bytes.is_empty() => {
                self.fields.line += 1;
                Err(self.fields.place_error("22P04", "received copy data after EOF marker"))
            }
            _ => Ok(()),
        }
    }

    /// Reads complete rows; returns the bytes that they took.
    fn read_rows(&mut self, last: bool, emit: &mut dyn FnMut(Vec<ArrayRef>, usize) -> Result<()>) -> Result<usize> {
        let buffer = std::mem::take(&mut self.buffer);
        let mut taken = 0;
        let result = loop {
            let step = match &mut self.format {
                Format::Lines(lines) => lines.read_row(&buffer[taken..], last, &mut self.fields),
                Format::Binary(binary) => binary.read_row(&buffer[taken..], &mut self.fields),
            };
            match step {
                Ok(Step::Row(bytes)) => {
                    taken += bytes;
                    self.bytes_in_block += bytes;
                    if (self.fields.rows >= BLOCK_ROWS || self.bytes_in_block >= BLOCK_BYTES)
                        && let Err(error) = self.flush(emit)
                    {
                        break Err(error);
                    }
                }
                Ok(Step::More) => break Ok(taken),
                Ok(Step::End(bytes)) => {
                    self.ended = true;
                    break Ok(taken + bytes);
                }
                Err(error) => break Err(error),
            }
        };
        self.buffer = buffer;
        result
    }

    fn flush(&mut self, emit: &mut dyn FnMut(Vec<ArrayRef>, usize) -> Result<()>) -> Result<()> {
        self.bytes_in_block = 0;
        if self.fields.rows == 0 {
            return Ok(());
        }
        let arrays = self.fields.builders.iter_mut().map(LogicalBuilder::finish).collect();
        let rows = std::mem::take(&mut self.fields.rows);
        emit(arrays, rows)
    }
}

/// What reading at a place gave.
pub(crate) enum Step {
    /// A row (or a line that is none) of so many bytes.
    Row(usize),
    /// The row is not complete yet.
    More,
    /// The end marker, of so many bytes.
    End(usize),
}
