//! A file on its way to the store, in either encoding or in both: rows that leave hot, that a merge keeps, that a batch
//! brings.

use crate::order::Order;
use crate::unlisted::Unlisted;
use crate::{Engine, Error, Result, rows};
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use basalt_cold::segment::Clustering;
use basalt_cold::{KeySpec, RowFileWriter, SegmentColumn, SegmentOptions, SegmentSchema, SegmentWriter, Stamps};
use basalt_hot::{HotRow, Rows};
use basalt_meta::FileKind;
use basalt_types::{ColumnId, DataType, FileId, Rid, TableDef, Version};

pub(crate) struct FileWriter {
    id: FileId,
    kind: FileKind,
    segment: Option<SegmentWriter>,
    row_file: Option<RowFileWriter>,
    /// If rows are to lie in another order than that of their keys.
    clustered: Option<Clustered>,
}

/// An order, and what the first and the last row so far compare by.
struct Clustered {
    order: Order,
    least: Vec<u8>,
    greatest: Vec<u8>,
}

/// A durable file that nobody lists yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WrittenFile {
    pub id: FileId,
    pub kind: FileKind,
    pub bytes: u64,
}

/// What files of a table hold: its live columns, behind the hidden key if it has no other.
pub(crate) fn file_schema(table: &TableDef) -> SegmentSchema {
    let live = table.live_columns().map(|c| SegmentColumn::new(c.id, &c.ty).expect("a column's type is storable"));
    match &table.primary_key {
        Some(primary) => SegmentSchema { columns: live.collect(), key: KeySpec::Columns(primary.columns.clone()) },
        None => {
            let columns = std::iter::once(SegmentColumn::hidden_key()).chain(live).collect();
            SegmentSchema { columns, key: KeySpec::Hidden }
        }
    }
}

/// Whether comparisons of a type's values with constants come to storage as [`ColumnPredicate`](basalt_types::ColumnPredicate)s.
fn is_asked_by_constants(ty: &DataType) -> bool {
    use DataType::*;
    matches!(
        ty.underlying(),
        Bool | Int2
            | Int4
            | Int8
            | Float4
            | Float8
            | Numeric(_)
            | Text
            | Varchar(_)
            | Bpchar(_)
            | Bytea
            | Uuid
            | Date
            | Time
            | Timestamp
            | TimestampTz
            | Enum(_)
    )
}

/// Whether files can have an index of an access method over values of a type
/// ([`FileIndexes`](basalt_types::schema::FileIndexes)).
pub fn has_file_index(ty: &DataType, method: &str) -> bool {
    let column = SegmentColumn::new(ColumnId(1), ty).filter(|_| is_asked_by_constants(ty));
    column.is_some_and(|column| match method {
        "bitmap" => column.has_bitmaps(),
        "bloom" => column.has_filters(),
        _ => false,
    })
}

impl FileWriter {
    /// A new file of a table.
    pub fn create(engine: &Engine, table: &TableDef, kind: FileKind) -> Result<FileWriter> {
        let id = engine.next_file_id();
        let order = Order::of(table, kind);
        let sorted = order.is_by_key();
        let segment = || {
            let row_group_bytes_max = engine.config.row_group_bytes_max;
            let (zstd, indexes) = (table.is_compressed(), table.file_indexes());
            let options = SegmentOptions { sorted, row_group_bytes_max, zstd, indexes, ..SegmentOptions::default() };
            SegmentWriter::create(&engine.files, id, file_schema(table), options)
        };
        let row_file = || RowFileWriter::create(&engine.files, id);
        let (has_columns, has_rows) = (kind != FileKind::RowFile, kind != FileKind::Segment);
        let (segment, row_file) = (has_columns.then(segment).transpose()?, has_rows.then(row_file).transpose()?);
        let clustered = (!sorted).then(|| Clustered { order, least: Vec::new(), greatest: Vec::new() });
        Ok(FileWriter { id, kind, segment, row_file, clustered })
    }

    /// Rows pushed so far: the ordinal of the next one.
    pub fn rows(&self) -> u32 {
        match (&self.segment, &self.row_file) {
            (Some(segment), _) => segment.rows(),
            (None, row_file) => row_file.as_ref().map_or(0, RowFileWriter::rows),
        }
    }

    /// Whether what remains is for another file.
    pub fn is_full(&self, engine: &Engine) -> bool {
        u64::from(self.rows()) >= engine.config.segment_rows
            || self.segment.as_ref().is_some_and(SegmentWriter::is_full)
            || self.row_file.as_ref().is_some_and(|file| file.bytes() >= engine.config.row_file_bytes())
    }

    /// Appends settled hot rows in key order, with their stamps. The file is to be in that order.
    pub fn push_rows(&mut self, table: &TableDef, rows: &Rows) -> Result<()> {
        if let Some(writer) = &mut self.segment {
            let (columns, versions) = settled_columns(table, rows)?;
            writer.push(&columns, Stamps::Versions(&versions))?;
        }
        if let Some(writer) = &mut self.row_file {
            for row in rows.iter() {
                writer.push(row.key, row.rid, Some(settled_version(row)), Some(row.row))?;
            }
        }
        Ok(())
    }

    /// Appends rows given as columns in the order of [`file_schema`], in the order of the file.
    pub fn push_columns(&mut self, table: &TableDef, columns: &[ArrayRef], stamps: Stamps<'_>) -> Result<()> {
        if let Some(writer) = &mut self.segment {
            writer.push(columns, stamps)?;
        }
        if let Some(clustered) = &mut self.clustered {
            clustered.note(columns);
        }
        if let Some(writer) = &mut self.row_file {
            let keys = file_schema(table).keys_of(columns);
            let keys = keys.ok_or_else(|| Error::Internal(format!("rows of table {} lack their keys", table.id)))?;
            // Rows of tables that have a key do without their row ids once they are cold.
            let (rids, live) = match table.primary_key {
                Some(_) => (None, columns),
                None => (Some(columns[0].as_primitive::<Int64Type>().values()), &columns[1..]),
            };
            let encoder = rows::encoder(table, live);
            let mut encoded = Vec::new();
            for (row, key) in keys.iter().enumerate() {
                encoded.clear();
                encoder.encode(row, &mut encoded);
                let version = match stamps {
                    Stamps::Uniform => None,
                    Stamps::Versions(versions) => Some(versions[row]),
                };
                let rid = rids.map_or(Rid(0), |rids| Rid(rids[row] as u64));
                writer.push(key, rid, version, Some(&encoded))?;
            }
        }
        Ok(())
    }

    /// The file is durable on return, and `written` knows of it: also of the half of a pair whose other half failed.
    pub fn finish(self, written: &mut Unlisted) -> Result<WrittenFile> {
        written.add(self.id, self.kind);
        let mut bytes = 0;
        if let Some(mut writer) = self.segment {
            if let Some(Clustered { order, least, greatest }) = self.clustered {
                writer.set_clustering(Clustering { columns: order.clustering().to_vec(), least, greatest });
            }
            bytes += writer.finish()?.bytes;
        }
        if let Some(writer) = self.row_file {
            bytes += writer.finish()?.bytes;
        }
        Ok(WrittenFile { id: self.id, kind: self.kind, bytes })
    }
}

impl Clustered {
    /// Rows that were appended.
    fn note(&mut self, columns: &[ArrayRef]) {
        let rows = columns.first().map_or(0, |column| column.len());
        if rows == 0 {
            return;
        }
        let key_of = |row: usize| {
            let row: Vec<ArrayRef> = columns.iter().map(|column| column.slice(row, 1)).collect();
            self.order.keys(&row).get(0).to_vec()
        };
        let (first, last) = (key_of(0), key_of(rows - 1));
        if self.least.is_empty() {
            self.least = first;
        }
        self.greatest = last;
    }
}

fn settled_version(row: HotRow<'_>) -> Version {
    row.stamp.as_version().expect("settled rows carry versions")
}

/// Settled hot rows as a file's columns, and their stamps.
pub(crate) fn settled_columns(table: &TableDef, rows: &Rows) -> Result<(Vec<ArrayRef>, Vec<Version>)> {
    let columns = rows::segment_columns(table, rows)
        .ok_or_else(|| Error::Corrupt(format!("a hot row of table {} does not fit it", table.id)))?;
    Ok((columns, rows.iter().map(settled_version).collect()))
}
