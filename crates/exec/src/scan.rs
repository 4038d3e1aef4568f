//! The table scan: morsels in one queue, filtered where they are read.
//!
//! All morsels are pinned at one moment (`engine::ReadContext::scan`), so workers may come and go: each takes
//! the next morsel when it has finished its last, and a slow one holds nobody up. A filter sees the columns
//! of the scan in their order; rows that fail it are dropped before they leave, by one selection for all
//! columns.

use arrow::compute::take;
use arrow_array::{ArrayRef, UInt32Array};
use basalt_engine::{ReadContext, ScanBatch, ScanSpec, ScanStats, TabletScan};
use basalt_expr::Expr;
use basalt_expr::context::EvalContext;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(thiserror::Error, Debug)]
pub enum ScanError {
    #[error(transparent)]
    Storage(#[from] basalt_engine::Error),
    /// The filter failed on a row: an error of the statement.
    #[error(transparent)]
    Filter(#[from] basalt_expr::Error),
    #[error("the scan was cancelled")]
    Cancelled,
}

/// A condition over the scan's columns (`Expr::Column` counts from the first of them).
#[derive(Clone)]
pub struct Filter {
    pub condition: Expr,
    pub context: EvalContext,
}

/// A scan that several workers share.
pub struct Scan {
    morsels: Mutex<VecDeque<TabletScan>>,
    filter: Option<Filter>,
    stats: Arc<ScanStats>,
    cancelled: AtomicBool,
}

/// One worker's hold on a scan: the morsel that it is reading.
pub struct Worker {
    scan: Arc<Scan>,
    morsel: Option<TabletScan>,
}

impl Scan {
    /// Pins the table and cuts it into morsels.
    pub fn start(read: &ReadContext, spec: ScanSpec, filter: Option<Filter>) -> Result<Arc<Scan>, ScanError> {
        let (morsels, stats) = read.scan(spec)?;
        let morsels = Mutex::new(VecDeque::from(morsels));
        Ok(Arc::new(Scan { morsels, filter, stats, cancelled: AtomicBool::new(false) }))
    }

    pub fn worker(self: &Arc<Scan>) -> Worker {
        Worker { scan: self.clone(), morsel: None }
    }

    pub fn stats(&self) -> &Arc<ScanStats> {
        &self.stats
    }

    /// Workers stop with [`ScanError::Cancelled`] at their next batch.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    fn next_morsel(&self) -> Option<TabletScan> {
        self.morsels.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Worker {
    /// The next rows that pass the filter (at most `engine::BATCH_ROWS`), `None` when no morsel is left.
    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>, ScanError> {
        loop {
            if self.scan.cancelled.load(Ordering::Relaxed) {
                return Err(ScanError::Cancelled);
            }
            if self.morsel.is_none() {
                self.morsel = self.scan.next_morsel();
            }
            let Some(morsel) = &mut self.morsel else { return Ok(None) };
            let Some(batch) = morsel.next_batch()? else {
                self.morsel = None;
                continue;
            };
            if let Some(batch) = self.keep(batch)? {
                return Ok(Some(batch));
            }
        }
    }

    /// The rows of a batch that pass the filter; `None` if there are none.
    fn keep(&self, batch: ScanBatch) -> Result<Option<ScanBatch>, ScanError> {
        let Some(Filter { condition, context }) = &self.scan.filter else { return Ok(Some(batch)) };
        let kept = condition.filter_indices(&batch.columns, batch.rows, context)?;
        if kept.len() == batch.rows {
            return Ok(Some(batch));
        }
        if kept.is_empty() {
            return Ok(None);
        }
        let rows = kept.len();
        let kept = UInt32Array::from(kept);
        let columns: Vec<ArrayRef> =
            batch.columns.iter().map(|column| take(column, &kept, None).expect("indices are in range")).collect();
        Ok(Some(ScanBatch { columns, rows }))
    }
}
