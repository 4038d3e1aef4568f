//! Hot rows as columns: chunk by chunk in key order, so that no latch is held between batches.

use super::{BATCH_ROWS, Part, ScanBatch, Shared, TabletScan};
use crate::Result;
use crate::freeze::as_bytes;
use crate::tablet::{ReadView, Tablet};
use arrow_array::builder::{BinaryViewBuilder, Int64Builder};
use arrow_array::{ArrayRef, Int64Array};
use basalt_hot::{Reader, Rows};
use basalt_types::batch::to_logical;
use basalt_types::row::{Field, RowRef};
use basalt_types::{ColumnBuilder, Key, PhysType};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub struct HotScan {
    shared: Arc<Shared>,
    tablet: Arc<Tablet>,
    view: Arc<ReadView>,
    /// Where to go on; `None` at the end.
    from: Option<Bound<Key>>,
    types: Vec<PhysType>,
    rows: Rows,
}

pub fn parts(shared: &Arc<Shared>, tablet: &Arc<Tablet>, view: &Arc<ReadView>, out: &mut Vec<TabletScan>) {
    if tablet.hot.is_empty() {
        return;
    }
    let scan = HotScan {
        shared: shared.clone(),
        tablet: tablet.clone(),
        view: view.clone(),
        from: Some(Bound::Unbounded),
        types: shared.spec.table.phys_types(),
        rows: Rows::new(),
    };
    out.push(TabletScan { part: Part::Hot(Box::new(scan)) });
}

impl HotScan {
    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        self.rows.clear();
        while let Some(from) = self.from.take() {
            let reader =
                Reader { at: self.shared.read.at, view: self.view.number, txns: &*self.shared.read.engine.txns };
            let budget = BATCH_ROWS - self.rows.len();
            let last = self.tablet.hot.scan(as_bytes(&from), Bound::Unbounded, &reader, budget, &mut self.rows);
            self.from = last.map(Bound::Excluded);
            if self.rows.len() >= BATCH_ROWS {
                break;
            }
        }
        if self.rows.is_empty() {
            return Ok(None);
        }
        let count = self.rows.len();
        self.shared.stats.hot_rows.fetch_add(count as u64, Ordering::Relaxed);
        self.columns().map(|columns| Some(ScanBatch { columns, rows: count }))
    }

    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let spec = &self.shared.spec;
        let count = self.rows.len();
        // Where each column of a row goes: rows are walked once, from the front.
        let mut slots: Vec<Option<usize>> = vec![None; self.types.len()];
        let mut builders = Vec::new();
        for id in &spec.columns {
            let slot = &mut slots[id.position()];
            if slot.is_none() {
                *slot = Some(builders.len());
                builders.push(ColumnBuilder::new(self.types[id.position()], count));
            }
        }
        let last = slots.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        for row in self.rows.iter() {
            self.push_row(row.row, &slots[..last], &mut builders).ok_or_else(|| self.tablet.damaged_row(row.key))?;
        }
        let arrays: Vec<ArrayRef> = builders.iter_mut().map(|builder| builder.finish()).collect();
        let mut columns: Vec<ArrayRef> = (spec.columns.iter())
            .map(|id| {
                let slot = slots[id.position()].expect("assigned above");
                to_logical(&spec.table.column(*id).ty, &arrays[slot])
            })
            .collect();
        if spec.with_identity {
            self.identity(&mut columns);
        }
        Ok(columns)
    }

    /// `None` if the bytes are damaged.
    fn push_row(&self, bytes: &[u8], slots: &[Option<usize>], builders: &mut [ColumnBuilder]) -> Option<()> {
        let row = RowRef::new(bytes)?;
        let present = row.column_count();
        for (slot, field) in slots.iter().zip(row.fields(&self.types)) {
            let field = field?;
            let Some(slot) = slot else { continue };
            match field {
                Field::Null => builders[*slot].push_null(),
                Field::Value(bytes) => builders[*slot].push_bytes(bytes).then_some(())?,
            }
        }
        for (position, slot) in slots.iter().enumerate().skip(present) {
            if let Some(slot) = slot {
                builders[*slot].push(&self.shared.spec.table.columns[position].missing).then_some(())?;
            }
        }
        Some(())
    }

    fn identity(&self, out: &mut Vec<ArrayRef>) {
        let count = self.rows.len();
        let mut keys = BinaryViewBuilder::with_capacity(count);
        let mut stamps = Int64Builder::with_capacity(count);
        for row in self.rows.iter() {
            keys.append_value(row.key);
            stamps.append_value(row.stamp.raw() as i64);
        }
        out.push(Arc::new(Int64Array::from_value(i64::from(self.tablet.id.0), count)));
        out.push(Arc::new(keys.finish()));
        out.push(Arc::new(stamps.finish()));
    }
}
