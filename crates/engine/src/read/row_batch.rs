//! Rows in row format as a scan's batch: what hot rows and row files have in common.

use super::{ScanBatch, Shared};
use crate::Result;
use crate::tablet::Tablet;
use arrow_array::builder::{BinaryViewBuilder, Int64Builder};
use arrow_array::{ArrayRef, Int64Array};
use basalt_hot::Rows;
use basalt_types::batch::to_logical;
use basalt_types::row::{Field, RowRef};
use basalt_types::vector::Vector;
use basalt_types::{ColumnBuilder, ColumnId, PhysType};
use std::sync::Arc;

/// Makes batches of one scan of one tablet.
pub struct RowBatches {
    shared: Arc<Shared>,
    tablet: Arc<Tablet>,
    types: Vec<PhysType>,
}

impl RowBatches {
    pub fn new(shared: &Arc<Shared>, tablet: &Arc<Tablet>) -> RowBatches {
        let types = shared.spec.table.phys_types();
        RowBatches { shared: shared.clone(), tablet: tablet.clone(), types }
    }

    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    pub fn tablet(&self) -> &Tablet {
        &self.tablet
    }

    /// The columns that the scan asks for.
    pub fn batch(&self, rows: &Rows) -> Result<ScanBatch> {
        let spec = &self.shared.spec;
        let stored = spec.columns.iter().zip(self.stored(rows)?);
        let mut columns: Vec<ArrayRef> =
            stored.map(|(id, array)| to_logical(&spec.table.column(*id).ty, &array)).collect();
        if spec.with_identity {
            self.identity(rows, &mut columns);
        }
        Ok(ScanBatch { columns, rows: rows.len() })
    }

    /// The same as vectors, and how many rows they have.
    pub fn vectors(&self, rows: &Rows) -> Result<(usize, Vec<Vector>)> {
        Ok((rows.len(), self.stored(rows)?.into_iter().map(Vector::measured).collect()))
    }

    /// In stored form.
    fn stored(&self, rows: &Rows) -> Result<Vec<ArrayRef>> {
        let spec = &self.shared.spec;
        let count = rows.len();
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
        for row in rows.iter() {
            self.push_row(row.row, &slots[..last], &mut builders).ok_or_else(|| self.tablet.damaged_row(row.key))?;
        }
        let arrays: Vec<ArrayRef> = builders.iter_mut().map(|builder| builder.finish()).collect();
        let of = |id: &ColumnId| arrays[slots[id.position()].expect("assigned above")].clone();
        Ok(spec.columns.iter().map(of).collect())
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

    fn identity(&self, rows: &Rows, out: &mut Vec<ArrayRef>) {
        let count = rows.len();
        let mut keys = BinaryViewBuilder::with_capacity(count);
        let mut stamps = Int64Builder::with_capacity(count);
        for row in rows.iter() {
            keys.append_value(row.key);
            stamps.append_value(row.stamp.raw() as i64);
        }
        out.push(Arc::new(Int64Array::from_value(i64::from(self.tablet.id.0), count)));
        out.push(Arc::new(keys.finish()));
        out.push(Arc::new(stamps.finish()));
    }
}
