//! Writes a segment.

use super::{SegmentMeta, SegmentOptions, SegmentSchema, Stamps};
use crate::{Files, Result};
use arrow_array::ArrayRef;
use basalt_types::FileId;

pub struct SegmentWriter {}

impl SegmentWriter {
    /// Starts a file. Nothing is visible in the store before [`finish`](Self::finish).
    pub fn create(_: &Files, _: FileId, _: SegmentSchema, _: SegmentOptions) -> Result<SegmentWriter> {
        unimplemented!()
    }

    /// Appends rows: one array per column of the schema, in its order, in stored form.
    pub fn push(&mut self, _columns: &[ArrayRef], _stamps: Stamps<'_>) -> Result<()> {
        unimplemented!()
    }

    /// Rows pushed so far: the ordinal of the next row.
    pub fn rows(&self) -> u32 {
        unimplemented!()
    }

    /// Bytes encoded so far.
    pub fn bytes(&self) -> u64 {
        unimplemented!()
    }

    /// Writes what remains; the file is durable on return.
    pub fn finish(self) -> Result<SegmentMeta> {
        unimplemented!()
    }
}
