//! The data of a listed file in either of its two encodings: segments (columns) and row files (rows).
//!
//! Both have ordinals in key order, a key index and one version per row, and stand under the same delete
//! map; so lookups, marks, checks, moves and recovery ask here and do not care which it is. Only scans and
//! merges look inside: each encoding has its own fast way to many rows.

use crate::read::SeenRow;
use crate::{Error, Result, rows};
use arrow_array::ArrayRef;
use basalt_cold::segment::Keys;
use basalt_cold::{BlockCache, Files, ROW_GROUP_ROWS, RowFile, Segment};
use basalt_meta::FileKind;
use basalt_types::{ColumnId, Datum, FileId, Key, TableDef, Version, batch};
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone)]
pub enum DataFile {
    Segment(Arc<Segment>),
    Rows(Arc<RowFile>),
}

impl DataFile {
    pub fn open(files: &Files, cache: &Arc<BlockCache>, id: FileId, kind: FileKind) -> basalt_cold::Result<DataFile> {
        Ok(match kind {
            FileKind::Segment => DataFile::Segment(Arc::new(Segment::open(files, id, cache)?)),
            FileKind::RowFile => DataFile::Rows(Arc::new(RowFile::open(files, id, cache)?)),
        })
    }

    pub fn id(&self) -> FileId {
        match self {
            DataFile::Segment(segment) => segment.id(),
            DataFile::Rows(file) => file.id(),
        }
    }

    pub fn kind(&self) -> FileKind {
        match self {
            DataFile::Segment(_) => FileKind::Segment,
            DataFile::Rows(_) => FileKind::RowFile,
        }
    }

    pub fn rows(&self) -> u32 {
        match self {
            DataFile::Segment(segment) => segment.rows(),
            DataFile::Rows(file) => file.rows(),
        }
    }

    /// Runs of [`ROW_GROUP_ROWS`] rows, the last one shorter: what a scan or a merge reads at a time.
    pub fn row_groups(&self) -> usize {
        self.rows().div_ceil(ROW_GROUP_ROWS) as usize
    }

    /// Least and greatest key; `None` in an empty file.
    pub fn key_range(&self) -> Option<&(Key, Key)> {
        match self {
            DataFile::Segment(segment) => segment.key_range(),
            DataFile::Rows(file) => file.key_range(),
        }
    }

    /// Ordinals of the rows with this key, ascending. Asks the filter first.
    pub fn find(&self, key: &[u8]) -> basalt_cold::Result<Vec<u32>> {
        match self {
            DataFile::Segment(segment) => segment.find(key),
            DataFile::Rows(file) => file.find(key),
        }
    }

    /// [`DataFile::find`] for ascending keys: calls `found` with the position of a key and an ordinal.
    pub fn find_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, u32)) -> basalt_cold::Result<()> {
        match self {
            DataFile::Segment(segment) if segment.meta().sorted => segment.find_many(keys, found),
            _ => keys.iter().enumerate().try_for_each(|(at, key)| {
                self.find(key)?.into_iter().for_each(|ordinal| found(at, ordinal));
                Ok(())
            }),
        }
    }

    /// The first ordinal whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> basalt_cold::Result<u32> {
        match self {
            DataFile::Segment(segment) => segment.lower_bound(key),
            DataFile::Rows(file) => file.lower_bound(key),
        }
    }

    pub fn keys(&self, ordinals: Range<u32>) -> basalt_cold::Result<Keys> {
        match self {
            DataFile::Segment(segment) => segment.keys(ordinals),
            DataFile::Rows(file) => file.keys(ordinals),
        }
    }

    pub fn key_at(&self, ordinal: u32) -> basalt_cold::Result<Key> {
        match self {
            DataFile::Segment(segment) => segment.key_at(ordinal),
            DataFile::Rows(file) => file.key_at(ordinal),
        }
    }

    /// The row's own version; `None` if it carries the one under which the file was registered.
    pub fn stamp_at(&self, ordinal: u32) -> basalt_cold::Result<Option<Version>> {
        match self {
            DataFile::Segment(segment) => segment.stamp_at(ordinal),
            DataFile::Rows(file) => file.stamp_at(ordinal).map(Some),
        }
    }

    /// Greatest version of a row; `None` if rows carry the one under which the file was registered.
    pub fn greatest_stamp(&self) -> Option<Version> {
        let range = match self {
            DataFile::Segment(segment) => segment.meta().stamp_range,
            DataFile::Rows(file) => file.meta().stamp_range,
        };
        range.map(|(_, greatest)| greatest)
    }

    /// One row, all columns in column-id order.
    pub fn row_at(&self, table: &TableDef, ordinal: u32) -> Result<Vec<Datum>> {
        let live: Vec<ColumnId> = table.live_columns().map(|column| column.id).collect();
        self.columns_at(table, ordinal, &live)
    }

    /// The same with at least the given columns, which ascend; the others may be null.
    pub fn columns_at(&self, table: &TableDef, ordinal: u32, columns: &[ColumnId]) -> Result<Vec<Datum>> {
        match self {
            DataFile::Segment(segment) => {
                let mut values = vec![Datum::Null; table.columns.len()];
                for (id, value) in columns.iter().zip(segment.row_at(ordinal, columns)?) {
                    values[id.position()] = value.unwrap_or_else(|| table.column(*id).missing.clone());
                }
                Ok(values)
            }
            DataFile::Rows(file) => {
                let entry = file.entry_at(ordinal)?;
                let values = entry.row.as_deref().and_then(|row| rows::decode_columns(table, row, columns));
                values.ok_or_else(|| damaged(self.id(), ordinal))
            }
        }
    }

    /// Keys and some columns of the rows at ascending ordinals.
    pub fn rows_at(&self, ordinals: &[u32], columns: &[ColumnId]) -> basalt_cold::Result<ColdRows> {
        Ok(match self {
            DataFile::Segment(segment) => ColdRows {
                keys: segment.keys_at(ordinals)?,
                values: ColdValues::Columns(segment.read_at(ordinals, columns)?),
            },
            DataFile::Rows(file) => {
                let mut keys = Keys::default();
                let mut rows = Vec::with_capacity(ordinals.len());
                for ordinal in ordinals {
                    let entry = file.entry_at(*ordinal)?;
                    keys.push(entry.key.as_bytes());
                    rows.push(entry.row.unwrap_or_default());
                }
                ColdRows { keys, values: ColdValues::Rows(rows) }
            }
        })
    }

    /// The same without keys.
    pub fn values_at(&self, ordinals: &[u32], columns: &[ColumnId]) -> basalt_cold::Result<ColdRows> {
        match self {
            DataFile::Segment(segment) => {
                let values = ColdValues::Columns(segment.read_at(ordinals, columns)?);
                Ok(ColdRows { keys: Keys::default(), values })
            }
            DataFile::Rows(_) => self.rows_at(ordinals, columns),
        }
    }

    /// Whether ordinals are in key order.
    pub fn is_sorted(&self) -> bool {
        match self {
            DataFile::Segment(segment) => segment.meta().sorted,
            DataFile::Rows(_) => true,
        }
    }

    /// Whether it is as large as it should be because its rows are.
    pub fn is_wide(&self) -> bool {
        match self {
            DataFile::Segment(segment) => segment.meta().wide,
            DataFile::Rows(_) => false,
        }
    }

    /// Reads everything and checks it.
    pub fn verify(&self) -> basalt_cold::Result<()> {
        match self {
            DataFile::Segment(segment) => segment.verify(),
            DataFile::Rows(file) => file.verify(),
        }
    }
}

/// Some rows of a file ([`DataFile::rows_at`]).
#[derive(Default)]
pub struct ColdRows {
    keys: Keys,
    values: ColdValues,
}

enum ColdValues {
    /// `None`: a column that the file lacks.
    Columns(Vec<Option<ArrayRef>>),
    Rows(Vec<Box<[u8]>>),
}

impl Default for ColdValues {
    fn default() -> ColdValues {
        ColdValues::Rows(Vec::new())
    }
}

impl ColdRows {
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn key(&self, at: usize) -> &[u8] {
        self.keys.get(at)
    }

    /// How many have keys below this one.
    pub fn before(&self, key: &[u8]) -> usize {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) < key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// A row, of which `columns` were read. `values`, in column-id order, is where they are put if they have to be.
    pub fn seen<'r>(
        &'r self,
        at: usize,
        table: &TableDef,
        columns: &[ColumnId],
        values: &'r mut [Datum],
    ) -> SeenRow<'r> {
        match &self.values {
            ColdValues::Columns(arrays) => {
                for (id, array) in columns.iter().zip(arrays) {
                    let column = table.column(*id);
                    values[id.position()] = match (array, column.ty.phys()) {
                        (Some(array), Some(phys)) => batch::datum_at(phys, array, at),
                        _ => column.missing.clone(),
                    };
                }
                SeenRow::Values(values)
            }
            ColdValues::Rows(rows) => SeenRow::Encoded(&rows[at]),
        }
    }
}

/// What the store calls a file of this kind.
pub fn stored_kind(kind: FileKind) -> basalt_cold::FileKind {
    match kind {
        FileKind::Segment => basalt_cold::FileKind::Segment,
        FileKind::RowFile => basalt_cold::FileKind::Row,
    }
}

/// A row file's entry that is sound as bytes, but not as a row.
pub fn damaged(file: FileId, ordinal: u32) -> Error {
    Error::Corrupt(format!("row file {file} holds at ordinal {ordinal} what is no row of its table"))
}
