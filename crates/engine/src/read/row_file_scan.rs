//! Rows of row files: entry by entry in key order, less what the reader does not see.

use super::row_batch::RowBatches;
use super::{BATCH_ROWS, Part, ScanBatch, Shared, TabletScan};
use crate::data_file::damaged;
use crate::tablet::{FileEntry, ReadView, Tablet};
use crate::{Error, Result};
use basalt_cold::{ROW_GROUP_ROWS, RowFile};
use basalt_hot::Rows;
use basalt_types::Stamp;
use basalt_types::vector::Vector;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries looked at before the batch is measured.
const STEP_ROWS: u32 = 1024;
/// Bytes of rows that close a batch.
const BATCH_BYTES: usize = 1 << 20;

pub struct RowFileScan {
    batches: RowBatches,
    /// Keeps the file while we read.
    _view: Arc<ReadView>,
    entry: Arc<FileEntry>,
    file: Arc<RowFile>,
    /// Still to read.
    ordinals: Range<u32>,
    rows: Rows,
}

/// Adds a part per run of [`ROW_GROUP_ROWS`] entries of a file that the reader sees as a whole, or row by row.
pub fn parts(
    shared: &Arc<Shared>,
    tablet: &Arc<Tablet>,
    view: &Arc<ReadView>,
    entry: &Arc<FileEntry>,
    file: &Arc<RowFile>,
    out: &mut Vec<TabletScan>,
) {
    for first in (0..file.rows()).step_by(ROW_GROUP_ROWS as usize) {
        let scan = RowFileScan {
            batches: RowBatches::new(shared, tablet),
            _view: view.clone(),
            entry: entry.clone(),
            file: file.clone(),
            ordinals: first..file.rows().min(first + ROW_GROUP_ROWS),
            rows: Rows::new(),
        };
        out.push(TabletScan { part: Part::RowFile(Box::new(scan)) });
    }
}

impl RowFileScan {
    pub fn shared(&self) -> &Shared {
        self.batches.shared()
    }

    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        match self.gather()? {
            true => self.batches.batch(&self.rows).map(Some),
            false => Ok(None),
        }
    }

    /// The same as vectors, and how many rows they have.
    pub fn next_vectors(&mut self) -> Result<Option<(usize, Vec<Vector>)>> {
        match self.gather()? {
            true => self.batches.vectors(&self.rows).map(Some),
            false => Ok(None),
        }
    }

    /// The next rows; whether there are any.
    fn gather(&mut self) -> Result<bool> {
        self.rows.clear();
        while !self.ordinals.is_empty() && self.rows.len() < BATCH_ROWS && self.rows.bytes() < BATCH_BYTES {
            let room = STEP_ROWS.min((BATCH_ROWS - self.rows.len()) as u32);
            let step = self.ordinals.start..self.ordinals.end.min(self.ordinals.start + room);
            self.ordinals.start = step.end;
            self.take(step)?;
        }
        Ok(!self.rows.is_empty())
    }

    /// Gathers those of these entries that the reader sees.
    fn take(&mut self, ordinals: Range<u32>) -> Result<()> {
        let shared = self.batches.shared();
        let (at, txns) = (&shared.read.at, &*shared.read.engine.txns);
        let live = self.entry.deletes.live(ordinals.clone(), at, txns);
        let (first, rows) = (ordinals.start, &mut self.rows);
        // Seen as a whole: `parts` is not asked for otherwise.
        let uniform = self.entry.uniform().map(|(stamp, _)| stamp);
        let mut tombstone = None;
        self.file.visit(ordinals.clone(), |ordinal, entry| {
            let stamp = uniform.unwrap_or_else(|| Stamp::version(entry.version));
            let live = live.as_ref().is_none_or(|live| live.value((ordinal - first) as usize));
            if live && (uniform.is_some() || at.sees(stamp, 0, txns)) {
                match entry.row {
                    Some(row) => rows.push(entry.key, row, entry.rid, stamp),
                    None => tombstone = Some(ordinal),
                }
            }
        })?;
        shared.stats.rows_read.fetch_add(ordinals.len() as u64, Ordering::Relaxed);
        tombstone.map_or(Ok(()), |ordinal| Err::<(), Error>(damaged(self.file.id(), ordinal)))
    }
}
