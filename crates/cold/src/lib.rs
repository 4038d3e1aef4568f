//! Cold data: immutable segments (columns) and row files, what is deleted from them, and how they are
//! stored, cached and found again.
//!
//! Data comes in through [`SegmentWriter`] (freeze, compaction, bulk loads) and [`RowFileWriter`]
//! (checkpoints, eviction), rests on an object store behind [`Files`], and goes out through [`Segment`] and
//! [`RowFile`], page by page through [`BlockCache`]. Which files make up a table, and when they become
//! visible, is the engine's knowledge: nothing here knows a catalog, a log or a transaction beyond its stamp.
//!
//! Byte layouts: `docs/format/segment.md`, `docs/format/rowfile.md`.

pub mod cache;
pub mod delete_map;
mod encoding;
pub mod error;
mod filter;
mod frame;
pub mod locator;
pub mod rowfile;
pub mod segment;
mod sketch;
pub mod store;

pub use cache::{BlockCache, BlockKind, CacheStats, blocks_brought};
pub use delete_map::{AlreadyMarked, DeleteMap, Mark};
pub use error::{Error, Result};
pub use filter::key_hash;
pub use locator::{Location, Locator, LocatorBudget};
pub use rowfile::{HeldEntries, RowEntry, RowEntryRef, RowFile, RowFileMeta, RowFileWriter};
pub use segment::{
    ChosenRows, ChunkReader, KeySpec, Keys, PAGE_ROWS, ROW_GROUP_ROWS, RowGroup, RowStamps, Segment, SegmentColumn,
    SegmentMeta, SegmentOptions, SegmentSchema, SegmentWriter, Stamps, ValueOrder, ZoneMap,
};
pub use sketch::Sketch;
pub use store::{FileKind, Files, LocalStore};
