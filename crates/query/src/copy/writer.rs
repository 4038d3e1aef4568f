//! From batches to CopyData messages.
//!
//! A message holds one row, as PostgreSQL's do: clients read row by row. The header of the binary format comes in the
//! message of the first row (of the trailer, if there is none), which is where they look for it.

use super::binary::SIGNATURE;
use crate::error::Result;
use crate::syntax::{CopyFormat, CopyOptions, HeaderChoice};
use arrow_array::{Array, RecordBatch};
use basalt_expr::EvalContext;
use basalt_expr::io::{binary, text};
use basalt_types::DataType;
use std::sync::Arc;

pub(crate) struct WriterColumn {
    pub name: String,
    pub ty: DataType,
    pub force_quote: bool,
}

/// Some messages of COPY TO, one after the other.
#[derive(Default)]
pub struct Chunk {
    bytes: Vec<u8>,
    /// Where each message ends.
    ends: Vec<usize>,
}

impl Chunk {
    fn end_message(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// The bodies of the CopyData messages.
    pub fn messages(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.bytes[start..*end])
    }

    /// All of them as a file has them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

pub(crate) struct CopyWriter {
    columns: Vec<WriterColumn>,
    options: CopyOptions,
    eval: Arc<EvalContext>,
    begun: bool,
    /// Text of the field being written, where it may have to be escaped.
    field: Vec<u8>,
}

impl CopyWriter {
    pub fn new(columns: Vec<WriterColumn>, options: CopyOptions, eval: Arc<EvalContext>) -> CopyWriter {
        CopyWriter { columns, options, eval, begun: false, field: Vec::new() }
    }

    /// What comes before the rows, once.
    fn begin(&mut self, chunk: &mut Chunk) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        match self.options.format {
            CopyFormat::Binary => {
                chunk.bytes.extend_from_slice(SIGNATURE);
                chunk.bytes.extend_from_slice(&[0; 8]);
            }
            _ if self.options.header == HeaderChoice::Yes => {
                for at in 0..self.columns.len() {
                    if at > 0 {
                        chunk.bytes.push(self.options.delimiter);
                    }
                    self.field.clear();
                    self.field.extend_from_slice(self.columns[at].name.as_bytes());
                    self.put_field(false, &mut chunk.bytes);
                }
                chunk.bytes.push(b'\n');
                chunk.end_message();
            }
            _ => {}
        }
    }

    /// What comes after the rows: the header too, if there were none.
    pub fn finish(mut self) -> Chunk {
        let mut chunk = Chunk::default();
        self.begin(&mut chunk);
        if self.options.format == CopyFormat::Binary {
            chunk.bytes.extend_from_slice(&[0xff, 0xff]);
            chunk.end_message();
        }
        chunk
    }

    pub fn rows(&mut self, batch: &RecordBatch) -> Result<Chunk> {
        let mut chunk = Chunk::default();
        if batch.num_rows() == 0 {
            return Ok(chunk);
        }
        chunk.bytes.reserve(batch.num_rows() * self.columns.len() * 12);
        self.begin(&mut chunk);
        for row in 0..batch.num_rows() {
            match self.options.format {
                CopyFormat::Binary => self.binary_row(batch, row, &mut chunk.bytes)?,
                _ => self.line(batch, row, &mut chunk.bytes)?,
            }
            chunk.end_message();
        }
        Ok(chunk)
    }

    fn binary_row(&mut self, batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<()> {
        out.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
        for (column, array) in self.columns.iter().zip(batch.columns()) {
            let at = out.len();
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            if binary::format_cell(&column.ty, array, row, &self.eval, out)? {
                let length = (out.len() - at - 4) as i32;
                out[at..at + 4].copy_from_slice(&length.to_be_bytes());
            }
        }
        Ok(())
    }

    fn line(&mut self, batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<()> {
        for (at, array) in batch.columns().iter().enumerate() {
            if at > 0 {
                out.push(self.options.delimiter);
            }
            if array.is_null(row) {
                out.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            self.field.clear();
            text::format_cell(&self.columns[at].ty, array, row, &self.eval, &mut self.field)?;
            self.put_field(self.columns[at].force_quote, out);
        }
        out.push(b'\n');
        Ok(())
    }

    /// Appends the field that is in `self.field`.
    fn put_field(&self, force_quote: bool, out: &mut Vec<u8>) {
        match self.options.format {
            CopyFormat::Csv => put_csv(&self.field, force_quote, self.columns.len() == 1, &self.options, out),
            _ => put_text(&self.field, self.options.delimiter, out),
        }
    }
}

fn put_text(field: &[u8], delimiter: u8, out: &mut Vec<u8>) {
    let mut rest = field;
    let special = |byte: &u8| matches!(byte, b'\\' | 0x08..=0x0d) || *byte == delimiter;
    while let Some(at) = rest.iter().position(special) {
        out.extend_from_slice(&rest[..at]);
        out.push(b'\\');
        out.push(match rest[at] {
            0x08 => b'b',
            0x0c => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x0b => b'v',
            other => other,
        });
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

fn put_csv(field: &[u8], force_quote: bool, alone: bool, options: &CopyOptions, out: &mut Vec<u8>) {
    let (delimiter, quote, escape) = (options.delimiter, options.quote, options.escape);
    let special = |byte: &u8| *byte == delimiter || *byte == quote || matches!(byte, b'\n' | b'\r');
    let must_quote =
        force_quote || field == options.null.as_bytes() || (alone && field == b"\\.") || field.iter().any(special);
    if !must_quote {
        out.extend_from_slice(field);
        return;
    }
    out.push(quote);
    for byte in field {
        if *byte == quote || *byte == escape {
            out.push(escape);
        }
        out.push(*byte);
    }
    out.push(quote);
}
