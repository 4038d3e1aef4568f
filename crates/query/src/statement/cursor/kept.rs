//! Rows that a cursor has given and may give again, and where among them it stands.

use crate::error::{Result, SqlError};
use crate::session::outcome::RowSource;
use crate::syntax::FetchRows;
use arrow_array::{RecordBatch, UInt32Array};
use basalt_types::batch::bytes_of;
use datafusion::execution::memory_pool::MemoryReservation;

/// What a cursor keeps that is not declared SCROLL.
const FEW_BYTES_MAX: usize = 8 << 20;

pub(crate) struct Kept {
    batches: Vec<RecordBatch>,
    rows: usize,
    /// There are no rows but the kept ones.
    complete: bool,
    /// Row that it stands on, from 1; 0 is before the first, `rows + 1` behind the last.
    position: usize,
    bytes_max: usize,
    /// NO SCROLL: it does not go back.
    only_forward: bool,
    memory: MemoryReservation,
}

pub(super) enum Filled {
    Rows(Vec<RecordBatch>),
    /// Keeping them takes too much: the source has the rows behind the position again.
    TooMany {
        passed: usize,
    },
}

impl Kept {
    pub fn all(memory: MemoryReservation) -> Kept {
        let bytes_max = usize::MAX;
        Kept { batches: Vec::new(), rows: 0, complete: false, position: 0, bytes_max, only_forward: false, memory }
    }

    pub fn few(memory: MemoryReservation) -> Kept {
        Kept { bytes_max: FEW_BYTES_MAX, ..Kept::all(memory) }
    }

    pub fn forward(memory: MemoryReservation) -> Kept {
        Kept { only_forward: true, ..Kept::few(memory) }
    }

    /// The row that the cursor stands on.
    pub(super) fn current(&self) -> Option<(&RecordBatch, usize)> {
        let mut before = self.position.checked_sub(1)?;
        for batch in &self.batches {
            if before < batch.num_rows() {
                return Some((batch, before));
            }
            before -= batch.num_rows();
        }
        None
    }

    /// The rows that are wanted, in the order of the fetch; the cursor moves.
    pub(super) async fn fetch(&mut self, source: &mut RowSource, wanted: FetchRows) -> Result<Filled> {
        if self.only_forward {
            super::forward(wanted, Some(self.position))?;
        }
        let needed = match wanted {
            FetchRows::Forward(count) => self.position.saturating_add_signed(count as isize),
            FetchRows::Relative(count) => self.position.saturating_add_signed(count as isize),
            FetchRows::Absolute(count) if count >= 0 => count as usize,
            FetchRows::ForwardAll | FetchRows::Absolute(_) => usize::MAX,
            FetchRows::BackwardAll => 0,
        };
        if !self.fill(source, needed).await? {
            return Ok(Filled::TooMany { passed: self.give_back(source) });
        }
        let behind = self.rows + 1;
        let at = |row: usize| if (1..behind).contains(&row) { vec![row] } else { Vec::new() };
        let (rows, position) = match wanted {
            FetchRows::Forward(0) | FetchRows::Relative(0) => (at(self.position), self.position),
            FetchRows::Forward(count) if count > 0 => {
                let last = self.position.saturating_add(count as usize);
                ((self.position + 1..behind.min(last.saturating_add(1))).collect(), last.min(behind))
            }
            FetchRows::ForwardAll => ((self.position + 1..behind).collect(), behind),
            FetchRows::Forward(count) => {
                let first = self.position.saturating_sub(count.unsigned_abs() as usize);
                ((first.max(1)..self.position).rev().collect(), first)
            }
            FetchRows::BackwardAll => ((1..self.position).rev().collect(), 0),
            FetchRows::Relative(count) => {
                let row = self.position.saturating_add_signed(count as isize).min(behind);
                (at(row), row)
            }
            FetchRows::Absolute(count) if count < 0 => {
                let row = behind.saturating_sub(count.unsigned_abs() as usize);
                (at(row), row)
            }
            FetchRows::Absolute(count) => {
                let row = (count as usize).min(behind);
                (at(row), row)
            }
        };
        self.position = position;
        self.take(&rows).map(Filled::Rows)
    }

    /// Keeps rows up to this one; false if that is too many.
    async fn fill(&mut self, source: &mut RowSource, needed: usize) -> Result<bool> {
        while !self.complete && self.rows < needed {
            match source.next(usize::MAX).await? {
                Some(batch) => {
                    let bytes = bytes_of(batch.columns());
                    let fits = self.memory.size().saturating_add(bytes) <= self.bytes_max;
                    let grown = self.memory.try_grow(bytes);
                    if self.bytes_max == usize::MAX {
                        grown.map_err(SqlError::from)?;
                    } else if !fits || grown.is_err() {
                        source.put_back(batch);
                        return Ok(false);
                    }
                    self.rows += batch.num_rows();
                    self.batches.push(batch);
                }
                None => self.complete = true,
            }
        }
        Ok(true)
    }

    /// Gives the rows behind the position back to the source; tells how many are before it.
    fn give_back(&mut self, source: &mut RowSource) -> usize {
        let mut passed = self.position.min(self.rows);
        let mut ahead = Vec::new();
        for batch in self.batches.drain(..) {
            let skipped = passed.min(batch.num_rows());
            passed -= skipped;
            if skipped < batch.num_rows() {
                ahead.push(batch.slice(skipped, batch.num_rows() - skipped));
            }
        }
        ahead.into_iter().rev().for_each(|batch| source.put_back(batch));
        self.memory.free();
        self.position
    }

    /// Rows by number from 1, in runs of one batch each.
    fn take(&self, rows: &[usize]) -> Result<Vec<RecordBatch>> {
        let mut starts = Vec::with_capacity(self.batches.len());
        let mut start = 0;
        for batch in &self.batches {
            starts.push(start);
            start += batch.num_rows();
        }
        let mut out = Vec::new();
        let mut at = 0;
        while at < rows.len() {
            let index = starts.partition_point(|start| *start < rows[at]) - 1;
            let (batch, first) = (&self.batches[index], starts[index]);
            let inside = |row: &&usize| (first + 1..=first + batch.num_rows()).contains(*row);
            let run: Vec<u32> = rows[at..].iter().take_while(inside).map(|row| (row - first - 1) as u32).collect();
            at += run.len();
            let taken = arrow::compute::take_record_batch(batch, &UInt32Array::from(run));
            out.push(taken.map_err(|error| SqlError::internal(format!("rows of a cursor: {error}")))?);
        }
        Ok(out)
    }
}
