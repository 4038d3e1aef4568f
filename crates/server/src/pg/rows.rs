//! Result batches into DataRow messages, straight into the send buffer.
//!
//! ```text
//! 'D' | length i32 | column count i16 | per column: length i32 (-1: null), value
//! ```

use super::output::Output;
use arrow_array::RecordBatch;
use basalt_expr::{EvalContext, io};
use basalt_query::{ResultColumn, SqlError};
use std::sync::Arc;

/// The length of a null.
const NULL: i32 = -1;

/// Writes the rows of one batch.
pub struct Encoder<'a> {
    batch: &'a RecordBatch,
    columns: &'a [ResultColumn],
    context: Arc<EvalContext>,
}

impl<'a> Encoder<'a> {
    pub fn new(batch: &'a RecordBatch, columns: &'a [ResultColumn], context: Arc<EvalContext>) -> Encoder<'a> {
        Encoder { batch, columns, context }
    }

    /// Writes rows from `row` on until the batch ends or the buffer is full; returns the next row to write.
    pub fn write(&self, mut row: usize, out: &mut Output) -> Result<usize, SqlError> {
        while row < self.batch.num_rows() {
            let frame = out.begin(b'D');
            if let Err(error) = self.cells(row, out.bytes()) {
                out.take_back(frame);
                return Err(error);
            }
            if !out.end_checked(frame) {
                return Err(SqlError::new("54000", "a result row is longer than 2147483647 bytes"));
            }
            row += 1;
            if out.is_full() {
                break;
            }
        }
        Ok(row)
    }

    fn cells(&self, row: usize, buf: &mut Vec<u8>) -> Result<(), SqlError> {
        buf.extend_from_slice(&(self.columns.len() as i16).to_be_bytes());
        for (column, array) in self.columns.iter().zip(self.batch.columns()) {
            let at = buf.len();
            buf.extend_from_slice(&NULL.to_be_bytes());
            let format_cell = if column.format == 0 { io::text::format_cell } else { io::binary::format_cell };
            if format_cell(&column.ty, array, row, &self.context, buf).map_err(sql_error)? {
                let len = i32::try_from(buf.len() - at - 4)
                    .map_err(|_| SqlError::new("54000", "a value is longer than 2147483647 bytes"))?;
                buf[at..at + 4].copy_from_slice(&len.to_be_bytes());
            }
        }
        Ok(())
    }
}

#[cold]
fn sql_error(error: basalt_expr::Error) -> SqlError {
    SqlError { detail: error.detail, hint: error.hint, ..SqlError::new(error.sqlstate, error.message) }
}
