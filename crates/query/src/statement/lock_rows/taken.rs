//! Locked rows on their way to whoever asked: copied out of the batches that they were found in, and weighed
//! against the memory of queries (53200), since all of them are held before the first one leaves.

use super::super::rows::record_batch;
use crate::error::{Result, SqlError};
use crate::plan::{ColId, HeldRows};
use arrow::compute::interleave;
use arrow_array::{Array, RecordBatch};
use basalt_expr::eval::vector::from_values;
use basalt_types::batch::{bytes_of, own};
use basalt_types::{DataType, Datum};
use datafusion::execution::memory_pool::MemoryReservation;
use std::sync::Arc;

/// What an entry of a map takes besides its key.
const ENTRY_BYTES: usize = 64;

/// The rows that pass, behind OFFSET and up to LIMIT.
pub(super) struct Taken<'a> {
    columns: &'a [(ColId, DataType)],
    skip: u64,
    /// Rows to lock, skipped ones included.
    wanted: Option<u64>,
    /// Of the batch at hand, in order: (0, its row) or (1, one of `changed`).
    places: Vec<(usize, usize)>,
    changed: Vec<Vec<Datum>>,
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl<'a> Taken<'a> {
    pub fn new(
        columns: &'a [(ColId, DataType)],
        skip: u64,
        wanted: Option<u64>,
        memory: MemoryReservation,
    ) -> Taken<'a> {
        Taken { columns, skip, wanted, places: Vec::new(), changed: Vec::new(), batches: Vec::new(), memory }
    }

    pub fn is_enough(&self) -> bool {
        self.wanted == Some(0)
    }

    /// A row of the batch at hand, as it is there.
    pub fn push(&mut self, row: usize) {
        if self.counts() {
            self.places.push((0, row));
        }
    }

    pub fn push_changed(&mut self, values: Vec<Datum>) {
        if self.counts() {
            self.places.push((1, self.changed.len()));
            self.changed.push(values);
        }
    }

    fn counts(&mut self) -> bool {
        self.wanted = self.wanted.map(|wanted| wanted - 1);
        let passes = self.skip == 0;
        self.skip = self.skip.saturating_sub(1);
        passes
    }

    /// What is remembered of rows met: 53200 if there is no room for it.
    pub fn reserve_entry(&mut self, key_bytes: usize) -> Result<()> {
        Ok(self.memory.try_grow(key_bytes + ENTRY_BYTES)?)
    }

    /// Copies what was pushed out of the batch at hand, whose first columns are the result's.
    pub fn end_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        if self.places.is_empty() {
            return Ok(());
        }
        let mut arrays = Vec::with_capacity(self.columns.len());
        for (at, (_, ty)) in self.columns.iter().enumerate() {
            let changed = from_values(ty, self.changed.iter().map(|values| &values[at]), self.changed.len())?;
            let sources: [&dyn Array; 2] = [batch.column(at), &changed];
            arrays.push(own(interleave(&sources, &self.places).map_err(misfit)?));
        }
        let taken = record_batch(arrays, self.places.len())?;
        self.memory.try_grow(bytes_of(taken.columns()))?;
        self.batches.push(taken);
        self.places.clear();
        self.changed.clear();
        Ok(())
    }

    pub fn finish(self) -> HeldRows {
        HeldRows { batches: self.batches, memory: Some(Arc::new(self.memory)) }
    }
}

/// Views refer to the buffers that they were made from: here they get their own.
fn misfit(error: arrow_schema::ArrowError) -> SqlError {
    SqlError::internal(format!("locked rows do not go together: {error}"))
}
