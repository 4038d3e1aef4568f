//! Segments: immutable columnar files (DESIGN 6; Krypton section 6).
//!
//! A segment is a PAX file: row groups of 65,536 rows, in each one chunk per column, in each chunk pages of
//! [`PAGE_ROWS`] values that are encoded, checksummed, cached and read on their own. Behind the data come the
//! page directories (one per row group), the key index, the filter, and the footer that names them all.
//! `docs/format/segment.md` has the bytes.
//!
//! Invariants: every row group but the last is full, so an ordinal names (row group, page, position) by
//! division alone; a file exists at its name only once it is complete and durable; every byte that a reader
//! uses is covered by a checksum that is checked when it comes from the store.

mod bitmaps;
mod chunk;
mod clustering;
mod column;
mod cursor;
mod directory;
mod elements;
mod filters;
mod keys;
mod layout;
mod page;
mod prune;
mod read_ahead;
mod reader;
mod sketches;
mod values;
mod vectors;
mod writer;
mod zone;

#[cfg(test)]
mod tests;

use basalt_types::schema::FileIndexes;
use basalt_types::{ColumnId, DataType, FileId, Key, PhysType, RangeKind, Version};
use std::sync::Arc;

pub use bitmaps::ChosenRows;
pub use clustering::Clustering;
pub use keys::Keys;
pub use layout::RowGroup;
pub use reader::Segment;
pub use vectors::ChunkReader;
pub use writer::SegmentWriter;
pub use zone::ZoneMap;

/// Rows of every row group but the last.
pub const ROW_GROUP_ROWS: u32 = 1 << 16;
/// Values of every page but the last of a chunk.
pub const PAGE_ROWS: u32 = 1 << 13;
/// One file's ordinals fit 31 bits.
pub const ROWS_MAX: u32 = 1 << 31;
/// The column that holds the hidden row id of a table without primary key.
pub const HIDDEN_KEY: ColumnId = ColumnId(0);

/// How the stored values of a column compare, as far as their bytes can tell. Zone maps need it: two
/// values that are equal in SQL must not fall on two sides of a bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ValueOrder {
    /// Integers, floats (NaN greatest, -0 = 0), and bytes compared as bytes.
    Natural = 0,
    /// Variable-length numeric: the display scale at the end is not part of the value.
    Numeric = 1,
    /// Blank-padded text: spaces at the end do not count.
    Padded = 2,
    /// Neither order nor equality can be seen from the bytes (json, arrays): null counts only.
    Opaque = 3,
    /// Interval: as [`Opaque`](Self::Opaque) in zone maps; in keys by its length.
    Interval = 4,
    /// Jsonb: as [`Opaque`](Self::Opaque) in zone maps; in keys by its value.
    Jsonb = 5,
    /// Ranges of numerics: as [`Opaque`](Self::Opaque) in zone maps; in keys without display scales.
    NumericRange = 6,
    NumericMultirange = 7,
}

impl ValueOrder {
    /// Whether zone maps hold bounds of such values.
    pub(crate) fn has_bounds(self) -> bool {
        matches!(self, ValueOrder::Natural | ValueOrder::Numeric | ValueOrder::Padded)
    }

    pub fn of(ty: &DataType) -> ValueOrder {
        match ty.underlying() {
            DataType::Numeric(_) if ty.phys() == Some(PhysType::Bytes) => ValueOrder::Numeric,
            DataType::Bpchar(_) => ValueOrder::Padded,
            DataType::Json | DataType::JsonPath | DataType::Array(_) => ValueOrder::Opaque,
            DataType::Jsonb => ValueOrder::Jsonb,
            DataType::Interval => ValueOrder::Interval,
            DataType::Range(RangeKind::Numeric) => ValueOrder::NumericRange,
            DataType::Multirange(RangeKind::Numeric) => ValueOrder::NumericMultirange,
            _ => ValueOrder::Natural,
        }
    }

    fn from_u8(raw: u8) -> Option<ValueOrder> {
        use ValueOrder::*;
        [Natural, Numeric, Padded, Opaque, Interval, Jsonb, NumericRange, NumericMultirange]
            .get(usize::from(raw))
            .copied()
    }
}

/// A column as a file knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentColumn {
    pub id: ColumnId,
    pub ty: PhysType,
    pub order: ValueOrder,
    /// Of a column of arrays, as what their elements rest.
    pub elements: Option<PhysType>,
}

impl SegmentColumn {
    /// `None` for a type that no column can have.
    pub fn new(id: ColumnId, ty: &DataType) -> Option<SegmentColumn> {
        let elements = ty.element().and_then(DataType::phys);
        Some(SegmentColumn { id, ty: ty.phys()?, order: ValueOrder::of(ty), elements })
    }

    /// Whether there can be bitmaps of its values: these have an order that their bytes tell.
    pub fn has_bitmaps(&self) -> bool {
        bitmaps::are_possible(self)
    }

    /// Whether there can be filters of its values: those that are equal have equal bytes.
    pub fn has_filters(&self) -> bool {
        filters::has_filter(self)
    }

    /// The hidden row id, for tables without a primary key.
    pub fn hidden_key() -> SegmentColumn {
        SegmentColumn::integers(HIDDEN_KEY)
    }

    /// 64 bits wide, and in their own order.
    fn integers(id: ColumnId) -> SegmentColumn {
        SegmentColumn { id, ty: PhysType::I64, order: ValueOrder::Natural, elements: None }
    }
}

/// What a row's [`Key`] is made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySpec {
    /// [`Key::hidden`] of the row id in column [`HIDDEN_KEY`].
    Hidden,
    /// The encoded columns, in key order. Their values are never null.
    Columns(Vec<ColumnId>),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentSchema {
    /// The order of the arrays given to [`SegmentWriter::push`].
    pub columns: Vec<SegmentColumn>,
    pub key: KeySpec,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentOptions {
    /// Rows come in ascending key order (equal keys allowed): the key index is sparse. Checked.
    pub sorted: bool,
    /// Write a filter of ten bits a key. Worth it unless the file's key range meets no other file's.
    pub filter: bool,
    /// Bytes of values in a row group at hand with which the file is full.
    pub row_group_bytes_max: usize,
    /// Texts that repeat too seldom for a dictionary are compressed by zstd, in blocks of 16 KiB.
    pub zstd: bool,
    /// What indexes ask of the file.
    pub indexes: FileIndexes,
}

impl Default for SegmentOptions {
    fn default() -> SegmentOptions {
        SegmentOptions {
            sorted: true,
            filter: true,
            row_group_bytes_max: 64 << 20,
            zstd: false,
            indexes: FileIndexes::default(),
        }
    }
}

/// The versions of pushed rows. One file takes one of the two.
#[derive(Clone, Copy, Debug)]
pub enum Stamps<'a> {
    /// All rows carry the version under which the file is registered; nothing is stored per row.
    Uniform,
    /// One version per row.
    Versions(&'a [Version]),
}

/// The versions of a row group as read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RowStamps {
    /// The version under which the file was registered.
    Uniform,
    /// All rows of the row group carry this one.
    Same(Version),
    /// In row order.
    Each(Arc<[Version]>),
}

/// What the file list keeps of a segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SegmentMeta {
    pub id: FileId,
    pub rows: u32,
    pub bytes: u64,
    /// Least and greatest key; `None` in an empty file.
    pub key_range: Option<(Key, Key)>,
    pub sorted: bool,
    /// It was ended because its rows are wide: it is as large as it should be, however few they are.
    pub wide: bool,
    /// Least and greatest version if rows carry their own.
    pub stamp_range: Option<(Version, Version)>,
    /// Checksum of the footer, which holds the checksums of everything else.
    pub checksum: u32,
}
