//! The data of a listed file in either of its two encodings, segments (columns) and row files (rows), or in both.
//!
//! Both have a key index and one version per row, and stand under the same delete map; so lookups, marks, checks, moves
//! and recovery ask here and do not care which it is. Only scans and merges look inside: each encoding has its own fast
//! way to many rows. Where there are both, the segment is for scans and runs of keys, the row file for everything else.
//! Ordinals are in key order, but for segments of tables that ask for another one (`order.rs`).

use crate::read::SeenRow;
use crate::{Error, Result, rows};
use arrow_array::ArrayRef;
use basalt_cold::segment::Keys;
use basalt_cold::{BlockCache, Files, HeldEntries, ROW_GROUP_ROWS, RowFile, Segment};
use basalt_hot::Rows;
use basalt_meta::FileKind;
use basalt_types::row::{self, RowRef};
use basalt_types::{ColumnId, Datum, FileId, Key, PhysType, Stamp, TableDef, Version, batch};
use std::ops::Range;
use std::sync::Arc;

#[derive(Clone)]
pub enum DataFile {
    Segment(Arc<Segment>),
    Rows(Arc<RowFile>),
    Pair(Arc<Segment>, Arc<RowFile>),
}

impl DataFile {
    /// Its columns, unless it has rows alone.
    pub fn segment(&self) -> Option<&Arc<Segment>> {
        match self {
            DataFile::Segment(segment) | DataFile::Pair(segment, _) => Some(segment),
            DataFile::Rows(_) => None,
        }
    }

    pub fn open(files: &Files, cache: &Arc<BlockCache>, id: FileId, kind: FileKind) -> basalt_cold::Result<DataFile> {
        let segment = || Ok::<_, basalt_cold::Error>(Arc::new(Segment::open(files, id, cache)?));
        let rows = || Ok::<_, basalt_cold::Error>(Arc::new(RowFile::open(files, id, cache)?));
        Ok(match kind {
            FileKind::Segment => DataFile::Segment(segment()?),
            FileKind::RowFile => DataFile::Rows(rows()?),
            FileKind::Pair => {
                let (segment, rows) = (segment()?, rows()?);
                if segment.rows() != rows.rows() || segment.key_range() != rows.key_range() {
                    let path = Files::path(id, basalt_cold::FileKind::Row).to_string();
                    let what = "the segment of this id has other rows";
                    return Err(basalt_cold::Error::Damaged { path, offset: 0, what });
                }
                DataFile::Pair(segment, rows)
            }
        })
    }

    /// Bytes in row format, and in columns.
    pub fn bytes_apart(&self) -> (u64, u64) {
        match self {
            DataFile::Segment(segment) => (0, segment.meta().bytes),
            DataFile::Rows(file) => (file.meta().bytes, 0),
            DataFile::Pair(segment, file) => (file.meta().bytes, segment.meta().bytes),
        }
    }

    pub fn id(&self) -> FileId {
        match self {
            DataFile::Segment(segment) => segment.id(),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.id(),
        }
    }

    pub fn kind(&self) -> FileKind {
        match self {
            DataFile::Segment(_) => FileKind::Segment,
            DataFile::Rows(_) => FileKind::RowFile,
            DataFile::Pair(..) => FileKind::Pair,
        }
    }

    pub fn rows(&self) -> u32 {
        match self {
            DataFile::Segment(segment) => segment.rows(),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.rows(),
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
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.key_range(),
        }
    }

    /// Ordinals of the rows with this key, ascending. Asks the filter first.
    pub fn find(&self, key: &[u8]) -> basalt_cold::Result<Vec<u32>> {
        match self {
            DataFile::Segment(segment) => segment.find(key),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.find(key),
        }
    }

    /// [`DataFile::find`] for ascending keys: calls `found` with the position of a key and an ordinal.
    pub fn find_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, u32)) -> basalt_cold::Result<()> {
        match self {
            DataFile::Segment(segment) if segment.meta().sorted => segment.find_many(keys, found),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.find_many(keys, found),
            DataFile::Segment(_) => keys.iter().enumerate().try_for_each(|(at, key)| {
                self.find(key)?.into_iter().for_each(|ordinal| found(at, ordinal));
                Ok(())
            }),
        }
    }

    /// The first ordinal whose key is not below `key`.
    pub fn lower_bound(&self, key: &[u8]) -> basalt_cold::Result<u32> {
        match self {
            DataFile::Segment(segment) => segment.lower_bound(key),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.lower_bound(key),
        }
    }

    pub fn keys(&self, ordinals: Range<u32>) -> basalt_cold::Result<Keys> {
        match self {
            DataFile::Segment(segment) | DataFile::Pair(segment, _) => segment.keys(ordinals),
            DataFile::Rows(file) => file.keys(ordinals),
        }
    }

    pub fn key_at(&self, ordinal: u32) -> basalt_cold::Result<Key> {
        match self {
            DataFile::Segment(segment) => segment.key_at(ordinal),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.key_at(ordinal),
        }
    }

    /// The row's own version; `None` if it carries the one under which the file was registered.
    pub fn stamp_at(&self, ordinal: u32) -> basalt_cold::Result<Option<Version>> {
        match self {
            DataFile::Segment(segment) => segment.stamp_at(ordinal),
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.stamp_at(ordinal),
        }
    }

    /// Greatest version of a row; `None` if rows carry the one under which the file was registered.
    pub fn greatest_stamp(&self) -> Option<Version> {
        let range = match self {
            DataFile::Segment(segment) => segment.meta().stamp_range,
            DataFile::Rows(file) | DataFile::Pair(_, file) => file.meta().stamp_range,
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
            DataFile::Segment(segment) => segment_values(segment, table, ordinal, columns),
            DataFile::Rows(file) | DataFile::Pair(_, file) => {
                let decode = |row: &[u8]| rows::decode_columns(table, row, columns);
                let values = file.look(ordinal, |entry| entry.row.and_then(decode))?;
                values.ok_or_else(|| damaged(self.id(), ordinal))
            }
        }
    }

    /// Looks at a row, of which `columns`, which ascend, are needed.
    pub fn look<R>(
        &self,
        table: &TableDef,
        ordinal: u32,
        columns: &[ColumnId],
        look: impl FnOnce(SeenRow<'_>) -> R,
    ) -> Result<R> {
        match self {
            DataFile::Segment(segment) => Ok(look(SeenRow::Values(&segment_values(segment, table, ordinal, columns)?))),
            DataFile::Rows(file) | DataFile::Pair(_, file) => {
                let looked = file.look(ordinal, |entry| entry.row.map(|row| look(SeenRow::Encoded(row))))?;
                looked.ok_or_else(|| damaged(self.id(), ordinal))
            }
        }
    }

    /// At least the given columns of a row, which ascend, in row format: the others may be null. It ends behind the last
    /// column that the file has. Of those before, a file lacks what was dropped when it was written.
    pub fn encoded_at(&self, table: &TableDef, ordinal: u32, columns: &[ColumnId]) -> Result<Vec<u8>> {
        let width = columns.last().map_or(0, |last| last.position() + 1);
        let (values, width) = match self {
            DataFile::Segment(segment) => {
                let mut values = vec![Datum::Null; width];
                let mut has = 0;
                for (id, value) in columns.iter().zip(segment.row_at(ordinal, columns)?) {
                    if let Some(value) = value {
                        values[id.position()] = value;
                        has = id.position() + 1;
                    }
                }
                (values, has)
            }
            DataFile::Rows(file) | DataFile::Pair(_, file) => {
                let decode = |row: &[u8]| {
                    let has = RowRef::new(row)?.column_count();
                    Some((rows::decode_columns(table, row, columns)?, has.min(width)))
                };
                let looked = file.look(ordinal, |entry| entry.row.and_then(decode))?;
                looked.ok_or_else(|| damaged(self.id(), ordinal))?
            }
        };
        let values = &values[..width];
        let fits = |(value, ty): (&Datum, PhysType)| value.is_null() || value.phys() == Some(ty);
        if !values.iter().zip(table.each_phys_type()).all(fits) {
            return Err(damaged(self.id(), ordinal));
        }
        let mut out = Vec::new();
        row::encode_as(table.each_phys_type().take(width), values, &mut out);
        Ok(out)
    }

    /// Some columns of the rows at ascending ordinals, which lie near each other, and their keys if they are wanted.
    pub fn rows_at(&self, ordinals: &[u32], columns: &[ColumnId], keyed: bool) -> basalt_cold::Result<ColdRows> {
        match self {
            DataFile::Segment(segment) => {
                let keys = if keyed { segment.keys_at(ordinals)? } else { Keys::default() };
                Ok(ColdRows::Columns { keys, values: segment.read_at(ordinals, columns)? })
            }
            DataFile::Rows(file) | DataFile::Pair(_, file) => Ok(ColdRows::Held(file.hold_at(ordinals)?)),
        }
    }

    /// Some columns of the rows at ascending ordinals, wherever they lie: no block stays in memory for one of its rows. Keys
    /// are not among them.
    pub fn values_at(&self, ordinals: &[u32], columns: &[ColumnId]) -> basalt_cold::Result<ColdRows> {
        match self {
            DataFile::Segment(segment) => {
                Ok(ColdRows::Columns { keys: Keys::default(), values: segment.read_at(ordinals, columns)? })
            }
            DataFile::Rows(file) | DataFile::Pair(_, file) => {
                let mut rows = Rows::new();
                file.visit_at(ordinals, |entry| {
                    // A tombstone has no place here: its bytes, none, fit no table.
                    rows.push(entry.key, entry.row.unwrap_or_default(), entry.rid, Stamp::version(entry.version));
                })?;
                Ok(ColdRows::Rows(rows))
            }
        }
    }

    /// Whether ordinals are in key order.
    pub fn is_sorted(&self) -> bool {
        match self {
            DataFile::Segment(segment) => segment.meta().sorted,
            DataFile::Rows(_) | DataFile::Pair(..) => true,
        }
    }

    /// Whether its rows lie in the order of these columns and then of their keys.
    pub fn is_ordered(&self, clustering: &[ColumnId]) -> bool {
        let known = match self {
            DataFile::Segment(segment) => segment.clustering().map(|clustering| &clustering.columns[..]),
            DataFile::Rows(_) | DataFile::Pair(..) => None,
        };
        match known {
            Some(columns) => columns == clustering,
            None => clustering.is_empty() && self.is_sorted(),
        }
    }

    /// What its first and its last row compare by; `None` in an empty file.
    pub fn order_range(&self) -> Option<(&[u8], &[u8])> {
        let (least, greatest) = self.key_range()?;
        Some(match self.segment().and_then(|segment| segment.clustering()) {
            Some(clustering) => (&clustering.least, &clustering.greatest),
            None => (least.as_bytes(), greatest.as_bytes()),
        })
    }

    /// Two rows of one key in a file that is not in key order.
    pub fn twin(&self) -> basalt_cold::Result<Option<Key>> {
        match self {
            DataFile::Segment(segment) => segment.twin(),
            DataFile::Rows(_) | DataFile::Pair(..) => Ok(None),
        }
    }

    /// Whether it is as large as it should be because its rows are; row files of so many bytes are.
    pub fn is_wide(&self, row_file_bytes: u64) -> bool {
        match self {
            DataFile::Segment(segment) => segment.meta().wide,
            DataFile::Rows(file) => file.meta().bytes >= row_file_bytes,
            DataFile::Pair(segment, file) => segment.meta().wide || file.meta().bytes >= row_file_bytes,
        }
    }

    /// Reads everything and checks it.
    pub fn verify(&self) -> basalt_cold::Result<()> {
        match self {
            DataFile::Segment(segment) => segment.verify(),
            DataFile::Rows(file) => file.verify(),
            DataFile::Pair(segment, file) => {
                segment.verify()?;
                file.verify()
            }
        }
    }
}

/// A row in column-id order, of which some columns are read.
fn segment_values(segment: &Segment, table: &TableDef, ordinal: u32, columns: &[ColumnId]) -> Result<Vec<Datum>> {
    let mut values = vec![Datum::Null; table.columns.len()];
    for (id, value) in columns.iter().zip(segment.row_at(ordinal, columns)?) {
        values[id.position()] = value.unwrap_or_else(|| table.column(*id).missing.clone());
    }
    Ok(values)
}

/// Some rows of a file ([`DataFile::rows_at`]).
pub enum ColdRows {
    /// `None`: a column that the file lacks.
    Columns {
        keys: Keys,
        values: Vec<Option<ArrayRef>>,
    },
    Rows(Rows),
    Held(HeldEntries),
}

impl Default for ColdRows {
    fn default() -> ColdRows {
        ColdRows::Held(HeldEntries::default())
    }
}

impl ColdRows {
    pub fn len(&self) -> usize {
        match self {
            ColdRows::Columns { keys, .. } => keys.len(),
            ColdRows::Rows(rows) => rows.len(),
            ColdRows::Held(entries) => entries.len(),
        }
    }

    pub fn key(&self, at: usize) -> &[u8] {
        match self {
            ColdRows::Columns { keys, .. } => keys.get(at),
            ColdRows::Rows(rows) => rows.get(at).key,
            ColdRows::Held(entries) => entries.get(at).key,
        }
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
        match self {
            ColdRows::Columns { values: arrays, .. } => {
                for (id, array) in columns.iter().zip(arrays) {
                    let column = table.column(*id);
                    values[id.position()] = match (array, column.ty.phys()) {
                        (Some(array), Some(phys)) => batch::datum_at(phys, array, at),
                        _ => column.missing.clone(),
                    };
                }
                SeenRow::Values(values)
            }
            ColdRows::Rows(rows) => SeenRow::Encoded(rows.get(at).row),
            // A tombstone has no place here: its bytes, none, fit no table.
            ColdRows::Held(entries) => SeenRow::Encoded(entries.get(at).row.unwrap_or_default()),
        }
    }
}

/// What the store calls the files of this kind.
pub fn stored_kinds(kind: FileKind) -> &'static [basalt_cold::FileKind] {
    use basalt_cold::FileKind::{Row, Segment};
    match kind {
        FileKind::Segment => &[Segment],
        FileKind::RowFile => &[Row],
        FileKind::Pair => &[Segment, Row],
    }
}

/// A row file's entry that is sound as bytes, but not as a row.
pub fn damaged(file: FileId, ordinal: u32) -> Error {
    Error::Corrupt(format!("row file {file} holds at ordinal {ordinal} what is no row of its table"))
}
