//! One row by its whole primary key.

use super::access::KeyPart;
use super::shape::Shape;
use super::{RowOut, RowRun};
use crate::bind::point::PointQuery;
use crate::error::Result;
use basalt_engine::SeenRow;
use basalt_types::TabletId;
use smallvec::SmallVec;

#[derive(PartialEq, Debug)]
pub(super) struct Get {
    /// In key order, each of its column's type.
    pub key: Vec<KeyPart>,
    pub shape: Shape,
}

/// A longer row is copied before it is written: nobody waits for a latch so long.
const LOOK_BYTES_MAX: usize = 16 << 10;

impl Get {
    pub fn of(point: PointQuery) -> Option<Get> {
        let table = point.table;
        let primary_key = table.primary_key.as_ref()?;
        let key = point.access.key.into_iter().zip(&primary_key.columns);
        let key: Vec<KeyPart> = key.map(|(value, id)| KeyPart { value, ty: table.column(*id).ty.clone() }).collect();
        // What names the key is so of the row behind it.
        let filter = point.asks_more.then_some(point.filter);
        Some(Get { key, shape: Shape::new(table.clone(), filter, point.outputs)? })
    }

    pub fn run(&self, run: RowRun<'_>, out: &mut RowOut<'_>) -> Result<u64> {
        let RowRun { engine, reading, eval, scratch } = run;
        self.shape.check_constants(eval)?;
        scratch.key.clear();
        for part in &self.key {
            if !part.encode(&[], eval, &mut scratch.key)? {
                return Ok(0);
            }
        }
        let Shape { lens, computes, .. } = &self.shape;
        let tablets: SmallVec<[TabletId; 1]> = match engine.tablet_of(&lens.table, &scratch.key) {
            Some(tablet) => SmallVec::from_buf([tablet]),
            None => lens.table.tablets().collect(),
        };
        let copies = *computes || matches!(out, RowOut::Batches(_));
        let mut rows = 0;
        for tablet in tablets {
            let seen = engine.look(&lens.table, tablet, &scratch.key, reading, &lens.columns, |row| match row {
                SeenRow::Encoded(bytes) if copies || bytes.len() > LOOK_BYTES_MAX => Err(bytes.to_vec()),
                row => Ok(self.shape.write(&row, eval, out)),
            });
            let written = match seen? {
                Some(Ok(written)) => written?,
                Some(Err(bytes)) => self.shape.write(&SeenRow::Encoded(&bytes), eval, out)?,
                None => false,
            };
            rows += u64::from(written);
        }
        Ok(rows)
    }
}
