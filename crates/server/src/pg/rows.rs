//! Result batches into DataRow messages, straight into the send buffer.

use super::output::Output;
use arrow_array::RecordBatch;
use basalt_expr::{EvalContext, io};
use basalt_query::{ResultColumn, RowSink, SqlError};
use std::sync::Arc;

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
            out.begin_row(self.columns.len());
            if let Err(error) = self.cells(row, out).and_then(|()| out.end_row()) {
                out.drop_row();
                return Err(error);
            }
            row += 1;
            if out.is_full() {
                break;
            }
        }
        Ok(row)
    }

    fn cells(&self, row: usize, out: &mut Output) -> Result<(), SqlError> {
        for (column, array) in self.columns.iter().zip(self.batch.columns()) {
            let format_cell = if column.format == 0 { io::text::format_cell } else { io::binary::format_cell };
            match format_cell(&column.ty, array, row, &self.context, out.begin_cell()).map_err(SqlError::from)? {
                true => out.end_cell()?,
                false => out.drop_cell(),
            }
        }
        Ok(())
    }
}
