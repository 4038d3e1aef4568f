//! Reads a segment.

use super::{Keys, RowGroup, RowStamps, SegmentMeta, SegmentSchema, ZoneMap};
use crate::{BlockCache, Files, Result};
use arrow_array::ArrayRef;
use basalt_types::{ColumnId, ColumnPredicate, Datum, FileId, Key, Version};
use std::ops::Range;
use std::sync::Arc;

pub struct Segment {}

impl Segment {
    /// Reads the footer.
    pub fn open(_files: &Files, _id: FileId, _cache: &Arc<BlockCache>) -> Result<Segment> {
        unimplemented!()
    }

    pub fn id(&self) -> FileId {
        unimplemented!()
    }

    pub fn rows(&self) -> u32 {
        unimplemented!()
    }

    pub fn meta(&self) -> &SegmentMeta {
        unimplemented!()
    }

    pub fn schema(&self) -> &SegmentSchema {
        unimplemented!()
    }

    pub fn key_range(&self) -> Option<&(Key, Key)> {
        unimplemented!()
    }

    pub fn row_groups(&self) -> &[RowGroup] {
        unimplemented!()
    }

    /// Of the whole file; `None` for a column that the file lacks.
    pub fn zone_map(&self, _column: ColumnId) -> Option<&ZoneMap> {
        unimplemented!()
    }

    /// True if no row of the file can satisfy all predicates. Columns that the file lacks decide nothing.
    pub fn prune_file(&self, _predicates: &[ColumnPredicate]) -> bool {
        unimplemented!()
    }

    /// True if no row of the row group can satisfy all predicates.
    pub fn prune(&self, _row_group: usize, _predicates: &[ColumnPredicate]) -> bool {
        unimplemented!()
    }

    /// Row ranges of a row group (page by page, joined) that may hold rows that satisfy all predicates.
    pub fn surviving(&self, _row_group: usize, _predicates: &[ColumnPredicate]) -> Result<Vec<Range<u32>>> {
        unimplemented!()
    }

    /// Rows (counted inside the row group) of some columns, in stored form. `None` for a column that the
    /// file lacks: the caller fills in its default.
    pub fn read(&self, _row_group: usize, _columns: &[ColumnId], _rows: Range<u32>) -> Result<Vec<Option<ArrayRef>>> {
        unimplemented!()
    }

    /// The rows at ascending ordinals (repetition allowed).
    pub fn read_at(&self, _ordinals: &[u32], _columns: &[ColumnId]) -> Result<Vec<Option<ArrayRef>>> {
        unimplemented!()
    }

    /// One row. `None` for a column that the file lacks.
    pub fn row_at(&self, _ordinal: u32, _columns: &[ColumnId]) -> Result<Vec<Option<Datum>>> {
        unimplemented!()
    }

    pub fn stamps(&self, _row_group: usize) -> Result<RowStamps> {
        unimplemented!()
    }

    /// The row's own version; `None` if it carries the one under which the file was registered.
    pub fn stamp_at(&self, _ordinal: u32) -> Result<Option<Version>> {
        unimplemented!()
    }

    pub fn key_at(&self, _ordinal: u32) -> Result<Key> {
        unimplemented!()
    }

    /// The keys of consecutive rows.
    pub fn keys(&self, _ordinals: Range<u32>) -> Result<Keys> {
        unimplemented!()
    }

    /// Ordinals of the rows with this key, ascending: usually none or one; more when versions of one row
    /// met in this file.
    pub fn find(&self, _key: &[u8]) -> Result<Vec<u32>> {
        unimplemented!()
    }

    /// The first ordinal whose key is not below `key` ([`rows`](Self::rows) if there is none). Of sorted files only.
    pub fn lower_bound(&self, _key: &[u8]) -> Result<u32> {
        unimplemented!()
    }

    /// False only if no row has a key with this hash ([`crate::key_hash`]). True where there is no filter.
    pub fn may_contain(&self, _key_hash: u64) -> Result<bool> {
        unimplemented!()
    }

    /// Reads everything and checks every checksum and structure.
    pub fn verify(&self) -> Result<()> {
        unimplemented!()
    }
}
