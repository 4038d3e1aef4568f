//! Rows of segments: row groups that zone maps cannot rule out, less what the reader does not see.

use super::row_file_scan;
use super::{BATCH_ROWS, Part, ScanBatch, Shared, TabletScan};
use crate::Result;
use crate::data_file::DataFile;
use crate::tablet::{FileEntry, ReadView, Tablet};
use arrow_array::builder::{BinaryViewBuilder, Int64Builder};
use arrow_array::{Array, ArrayRef, BooleanArray, Int64Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use basalt_cold::{ROW_GROUP_ROWS, RowStamps, Segment};
use basalt_types::batch::to_logical;
use basalt_types::{ColumnBuilder, ColumnId, ReadAt, Stamp, TxnStates};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub struct ColdScan {
    shared: Arc<Shared>,
    tablet: Arc<Tablet>,
    /// Keeps the file (and older versions elsewhere) while we read.
    _view: Arc<ReadView>,
    file: Arc<FileEntry>,
    segment: Arc<Segment>,
    row_group: usize,
    /// Rows of the row group still to read; last range first.
    ranges: Vec<Range<u32>>,
    stamps: RowStamps,
}

/// Adds a part per row group of a file that may hold rows for this reader.
pub fn parts(
    shared: &Arc<Shared>,
    tablet: &Arc<Tablet>,
    view: &Arc<ReadView>,
    out: &mut Vec<TabletScan>,
) -> Result<()> {
    let predicates = &shared.spec.predicates;
    let txns = &*shared.read.engine.txns;
    for file in &view.files {
        let groups = file.data.row_groups();
        shared.stats.row_groups_total.fetch_add(groups as u64, Ordering::Relaxed);
        if !file.sees_uniform(&shared.read.at, txns) {
            shared.stats.row_groups_pruned.fetch_add(groups as u64, Ordering::Relaxed);
            continue;
        }
        let segment = match &file.data {
            DataFile::Segment(segment) | DataFile::Pair(segment, _) => segment,
            DataFile::Rows(rows) => {
                row_file_scan::parts(shared, tablet, view, file, rows, out);
                continue;
            }
        };
        if segment.prune_file(predicates) {
            shared.stats.row_groups_pruned.fetch_add(groups as u64, Ordering::Relaxed);
            continue;
        }
        for row_group in 0..groups {
            let mut ranges = match segment.prune(row_group, predicates) {
                true => Vec::new(),
                false => segment.surviving(row_group, predicates)?,
            };
            if ranges.is_empty() {
                shared.stats.row_groups_pruned.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            ranges.reverse();
            let scan = ColdScan {
                shared: shared.clone(),
                tablet: tablet.clone(),
                _view: view.clone(),
                file: file.clone(),
                segment: segment.clone(),
                row_group,
                ranges,
                stamps: segment.stamps(row_group)?,
            };
            out.push(TabletScan { part: Part::Cold(Box::new(scan)) });
        }
    }
    Ok(())
}

impl ColdScan {
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        while let Some(rows) = self.next_range() {
            let Some(keep) = self.visible(&rows) else {
                return self.read(rows, None).map(Some);
            };
            if keep.count_set_bits() > 0 {
                return self.read(rows, Some(keep)).map(Some);
            }
        }
        Ok(None)
    }

    /// Cuts the next batch so that it ends where a page ends.
    fn next_range(&mut self) -> Option<Range<u32>> {
        let range = self.ranges.last_mut()?;
        let page_end = (range.start / BATCH_ROWS as u32 + 1) * BATCH_ROWS as u32;
        let batch = range.start..range.end.min(page_end);
        range.start = batch.end;
        if range.start == range.end {
            self.ranges.pop();
        }
        Some(batch)
    }

    fn ordinals(&self, rows: &Range<u32>) -> Range<u32> {
        let first = self.row_group as u32 * ROW_GROUP_ROWS;
        first + rows.start..first + rows.end
    }

    /// Which rows the reader sees; `None`: all.
    fn visible(&self, rows: &Range<u32>) -> Option<BooleanBuffer> {
        let at = &self.shared.read.at;
        let txns = &*self.shared.read.engine.txns;
        let live = self.file.deletes.live(self.ordinals(rows), at, txns);
        match (self.arrived(rows, at, txns), live) {
            (None, live) => live,
            (arrived, None) => arrived,
            (Some(arrived), Some(live)) => Some(&arrived & &live),
        }
    }

    /// Rows whose insertion the reader sees; `None`: all.
    fn arrived(&self, rows: &Range<u32>, at: &ReadAt, txns: &dyn TxnStates) -> Option<BooleanBuffer> {
        match &self.stamps {
            // Seen as a whole: parts() has asked.
            RowStamps::Uniform => None,
            RowStamps::Same(version) if at.sees(Stamp::version(*version), 0, txns) => None,
            RowStamps::Same(_) => Some(BooleanBuffer::new_unset(rows.len())),
            RowStamps::Each(versions) => {
                let versions = &versions[rows.start as usize..rows.end as usize];
                if versions.iter().all(|version| *version <= at.snapshot) {
                    return None;
                }
                Some(BooleanBuffer::collect_bool(versions.len(), |i| versions[i] <= at.snapshot))
            }
        }
    }

    fn read(&self, rows: Range<u32>, keep: Option<BooleanBuffer>) -> Result<ScanBatch> {
        let spec = &self.shared.spec;
        let count = rows.len();
        let stored = self.segment.read(self.row_group, &spec.columns, rows.clone())?;
        let mut columns = Vec::with_capacity(stored.len() + 3);
        for (id, array) in spec.columns.iter().zip(stored) {
            let array = array.unwrap_or_else(|| self.missing(*id, count));
            columns.push(to_logical(&spec.table.column(*id).ty, &array));
        }
        if spec.with_identity {
            self.identity(&rows, &mut columns)?;
        }
        self.shared.stats.rows_read.fetch_add(count as u64, Ordering::Relaxed);
        let Some(keep) = keep else {
            return Ok(ScanBatch { columns, rows: count });
        };
        let keep = BooleanArray::new(keep, None);
        let kept = keep.true_count();
        let columns = columns.iter().map(|column| filter(column, &keep).expect("lengths agree")).collect();
        Ok(ScanBatch { columns, rows: kept })
    }

    fn missing(&self, id: ColumnId, rows: usize) -> ArrayRef {
        let column = self.shared.spec.table.column(id);
        let mut builder = ColumnBuilder::new(column.ty.phys().expect("storable"), rows);
        for _ in 0..rows {
            let fits = builder.push(&column.missing);
            assert!(fits, "the default of column {} is of its type", column.name);
        }
        builder.finish()
    }

    fn identity(&self, rows: &Range<u32>, out: &mut Vec<ArrayRef>) -> Result<()> {
        let mut keys = BinaryViewBuilder::with_capacity(rows.len());
        self.segment.keys(self.ordinals(rows))?.iter().for_each(|key| keys.append_value(key));
        let mut stamps = Int64Builder::with_capacity(rows.len());
        let uniform = self.file.uniform().map(|(stamp, _)| stamp.raw() as i64);
        for row in rows.clone() {
            stamps.append_value(match &self.stamps {
                RowStamps::Uniform => uniform.unwrap_or_default(),
                RowStamps::Same(version) => version.0 as i64,
                RowStamps::Each(versions) => versions[row as usize].0 as i64,
            });
        }
        let tablet = Int64Array::from_value(i64::from(self.tablet.id.0), rows.len());
        out.push(Arc::new(tablet));
        out.push(Arc::new(keys.finish()));
        out.push(Arc::new(stamps.finish()));
        debug_assert!(out.iter().all(|column| column.len() == rows.len()));
        Ok(())
    }
}
