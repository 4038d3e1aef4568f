//! Writes a segment, row group by row group: memory is bounded by one row group and the indexes. A row group
//! has a fixed number of rows; where they are wide, [`SegmentWriter::is_full`] asks for the next file before that.

use super::bitmaps::BitmapsBuilder;
use super::chunk::ChunkEncoder;
use super::clustering::Clustering;
use super::directory::ChunkEntry;
use super::filters::{FiltersBuilder, Written};
use super::keys::{KeyIndexBuilder, Keys, encode_keys};
use super::layout::{Layout, MAGIC, RowGroup};
use super::zone::ZoneMap;
use super::{
    ROW_GROUP_ROWS, ROWS_MAX, SegmentColumn, SegmentMeta, SegmentOptions, SegmentSchema, Stamps, ValueOrder, sketches,
};
use crate::frame::{self, write_block};
use crate::sketch::Sketch;
use crate::store::FileSink;
use crate::{Error, FileKind, Files, Result};
use arrow_array::{Array, ArrayRef, Int64Array};
use basalt_types::batch::bytes_of;
use basalt_types::{ColumnId, FileId, PhysType, Version};
use std::sync::Arc;

/// Rows of which keys are computed at a time.
const KEY_ROWS: usize = 1024;

pub struct SegmentWriter {
    id: FileId,
    schema: SegmentSchema,
    key_positions: Vec<usize>,
    options: SegmentOptions,
    sink: FileSink,
    encoders: Vec<ChunkEncoder>,
    /// Pieces of the row group at hand, per column of the schema, then the versions.
    pending: Vec<Vec<ArrayRef>>,
    pending_rows: u32,
    pending_bytes: usize,
    rows: u32,
    /// Set by the first push.
    stamped: Option<bool>,
    keys: KeyIndexBuilder,
    filters: FiltersBuilder,
    bitmaps: BitmapsBuilder,
    row_groups: Vec<RowGroup>,
    /// Page directories, written behind the data.
    directories: Vec<Vec<u8>>,
    clustering: Option<Clustering>,
}

impl SegmentWriter {
    /// Starts a file. Nothing is visible in the store before [`finish`](Self::finish).
    pub fn create(files: &Files, id: FileId, schema: SegmentSchema, options: SegmentOptions) -> Result<SegmentWriter> {
        let mut sink = files.create(id, FileKind::Segment)?;
        let Some(key_positions) = schema.key_positions() else {
            let (path, what) = (sink.path().to_string(), format!("key {:?} is not among its columns", schema.key));
            return Err(Error::SchemaMismatch { path, what });
        };
        sink.write(MAGIC)?;
        // Versions ride along as one more column.
        let versions = SegmentColumn::integers(ColumnId(u16::MAX));
        let sketch = |column: &SegmentColumn| sketches::is_sketched(&schema, column).then(Sketch::default);
        let columns = schema
            .columns
            .iter()
            .map(|column| ChunkEncoder::new(*column, sketch(column), options.zstd && is_text(column)));
        let encoders = columns.chain([ChunkEncoder::new(versions, None, false)]).collect();
        Ok(SegmentWriter {
            id,
            key_positions,
            encoders,
            pending: vec![Vec::new(); schema.columns.len() + 1],
            pending_rows: 0,
            pending_bytes: 0,
            rows: 0,
            stamped: None,
            keys: KeyIndexBuilder::new(options.sorted, options.filter),
            filters: FiltersBuilder::new(&schema, &options.indexes.filters),
            bitmaps: BitmapsBuilder::new(&schema, &options.indexes.bitmaps),
            row_groups: Vec::new(),
            directories: Vec::new(),
            clustering: None,
            schema,
            options,
            sink,
        })
    }

    /// Appends rows: one array per column of the schema, in its order, in stored form
    /// ([`PhysType::to_arrow`]). An error leaves the writer fit only to be dropped.
    pub fn push(&mut self, columns: &[ArrayRef], stamps: Stamps<'_>) -> Result<()> {
        let rows = self.check(columns, stamps)?;
        if rows == 0 {
            return Ok(());
        }
        self.push_keys(columns, rows)?;
        let mut arrays = columns.to_vec();
        if let Stamps::Versions(versions) = stamps {
            arrays.push(Arc::new(Int64Array::from_iter_values(versions.iter().map(|version| version.0 as i64))));
        }
        let bytes = bytes_of(&arrays);
        let mut at = 0;
        while at < rows {
            let room = (ROW_GROUP_ROWS - self.pending_rows) as usize;
            let taken = room.min(rows - at);
            for (pieces, array) in self.pending.iter_mut().zip(&arrays) {
                pieces.push(array.slice(at, taken));
            }
            self.pending_rows += taken as u32;
            self.pending_bytes += bytes / rows * taken;
            at += taken;
            if self.pending_rows == ROW_GROUP_ROWS {
                self.write_row_group()?;
            }
        }
        self.rows += rows as u32;
        Ok(())
    }

    /// Rows pushed so far: the ordinal of the next row.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Whether its rows are so wide that the next ones should go to another file.
    pub fn is_full(&self) -> bool {
        self.pending_bytes >= self.options.row_group_bytes_max
    }

    /// Bytes encoded so far; rows of the row group at hand are not counted.
    pub fn bytes(&self) -> u64 {
        self.sink.position()
    }

    /// Says of all rows that they lie in this order. Whoever pushed them knows.
    pub fn set_clustering(&mut self, clustering: Clustering) {
        self.clustering = Some(clustering);
    }

    /// Writes what remains; the file is durable on return.
    pub fn finish(mut self) -> Result<SegmentMeta> {
        let wide = self.is_full();
        if self.pending_rows > 0 {
            self.write_row_group()?;
        }
        for (row_group, directory) in self.row_groups.iter_mut().zip(&self.directories) {
            row_group.directory = write_block(&mut self.sink, directory)?;
        }
        let key_range = self.keys.key_range();
        let mut sections = self.keys.finish(self.options.filter, &mut self.sink)?;
        sections.extend(self.filters.finish(&self.schema, &mut self.sink)?);
        sections.extend(self.bitmaps.finish(&self.schema, &mut self.sink)?);
        let counted = self.encoders.into_iter().map(|encoder| encoder.sketch);
        sections.extend(sketches::write(counted, &self.schema, &self.row_groups, &mut self.sink)?);
        sections.extend(self.clustering.map(|clustering| clustering.write(&mut self.sink)).transpose()?);
        let stamp_range = self.row_groups.iter().filter_map(|row_group| row_group.stamp_range);
        let stamp_range = stamp_range.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let layout = Layout {
            id: self.id,
            rows: self.rows,
            schema: self.schema,
            sorted: self.options.sorted,
            wide,
            zstd: self.options.zstd,
            stamped: self.stamped.unwrap_or(false),
            key_range: key_range.clone(),
            row_groups: self.row_groups,
            sections,
        };
        let (bytes, checksum) = frame::finish(self.sink, &layout.encode(), MAGIC)?;
        let (id, rows, sorted) = (self.id, self.rows, layout.sorted);
        Ok(SegmentMeta { id, rows, bytes, key_range, sorted, wide, stamp_range, checksum })
    }

    /// Number of rows, if the arrays fit the schema.
    fn check(&mut self, columns: &[ArrayRef], stamps: Stamps<'_>) -> Result<usize> {
        if columns.len() != self.schema.columns.len() {
            return Err(self.mismatch(format!("{} arrays for {} columns", columns.len(), self.schema.columns.len())));
        }
        let rows = match (columns.first(), stamps) {
            (Some(column), _) => column.len(),
            (None, Stamps::Versions(versions)) => versions.len(),
            (None, Stamps::Uniform) => 0,
        };
        for (array, column) in columns.iter().zip(&self.schema.columns) {
            if *array.data_type() != column.ty.to_arrow() || array.len() != rows {
                let (ty, len) = (array.data_type(), array.len());
                return Err(self.mismatch(format!("{len} rows of {ty} for {rows} rows of {column:?}")));
            }
        }
        if matches!(stamps, Stamps::Versions(versions) if versions.len() != rows) {
            return Err(self.mismatch(format!("{rows} rows, another number of versions")));
        }
        let stamped = matches!(stamps, Stamps::Versions(_));
        if *self.stamped.get_or_insert(stamped) != stamped {
            return Err(self.mismatch("some rows with versions of their own, some without".into()));
        }
        if rows > (ROWS_MAX - self.rows) as usize {
            return Err(Error::TooManyRows { path: self.sink.path().to_string(), rows_max: ROWS_MAX });
        }
        Ok(rows)
    }

    fn mismatch(&self, what: String) -> Error {
        Error::SchemaMismatch { path: self.sink.path().to_string(), what }
    }

    fn push_keys(&mut self, columns: &[ArrayRef], rows: usize) -> Result<()> {
        let key_columns: Vec<ArrayRef> = self.key_positions.iter().map(|at| columns[*at].clone()).collect();
        let mut keys = Keys::default();
        for start in (0..rows).step_by(KEY_ROWS) {
            let range = start..(start + KEY_ROWS).min(rows);
            keys.clear();
            encode_keys(&self.schema, &key_columns, range, &mut keys)
                .map_err(|damage| self.mismatch(damage.0.into()))?;
            for key in keys.iter() {
                if !self.keys.push(key) {
                    let (path, previous) = (self.sink.path().to_string(), self.keys.last().to_vec());
                    return Err(Error::OutOfOrder { path, previous, key: key.to_vec() });
                }
            }
        }
        Ok(())
    }

    fn write_row_group(&mut self) -> Result<()> {
        let (mut directory, mut chunks) = (Vec::new(), Vec::with_capacity(self.pending.len()));
        let mut zones = Vec::with_capacity(self.pending.len());
        let from = self.sink.position();
        for (encoder, pieces) in self.encoders.iter_mut().zip(&self.pending).filter(|(_, pieces)| !pieces.is_empty()) {
            let chunk = encoder.encode(pieces, &mut self.sink)?;
            chunk.put(&mut directory);
            zones.push(chunk_zone(&chunk));
            chunks.push(chunk);
        }
        let stamp_range = zones.drain(self.schema.columns.len()..).next().and_then(|zone| version_range(&zone));
        let bytes = self.sink.position() - from;
        let written = Written { pieces: &self.pending, chunks: &chunks, zones: &zones, bytes };
        self.filters.add(&self.schema, &self.row_groups, &written);
        self.bitmaps.add(&self.schema, &self.pending);
        self.pending.iter_mut().for_each(Vec::clear);
        let first_ordinal = self.row_groups.len() as u32 * ROW_GROUP_ROWS;
        // The directory is placed when the file is finished.
        let placeholder = frame::Extent { offset: 0, bytes: 0, crc: 0 };
        let rows = std::mem::take(&mut self.pending_rows);
        self.pending_bytes = 0;
        self.row_groups.push(RowGroup { first_ordinal, rows, stamp_range, zones, directory: placeholder });
        self.directories.push(directory);
        Ok(())
    }
}

/// Byte strings but numerics, which are short.
fn is_text(column: &SegmentColumn) -> bool {
    column.ty == PhysType::Bytes && column.order != ValueOrder::Numeric
}

fn chunk_zone(chunk: &ChunkEntry) -> ZoneMap {
    let mut zone = ZoneMap::new(0);
    chunk.pages.iter().for_each(|page| zone.merge(&page.zone));
    zone
}

fn version_range(zone: &ZoneMap) -> Option<(Version, Version)> {
    use basalt_types::Datum;
    match (&zone.min, &zone.max) {
        (Some(Datum::I64(min)), Some(Datum::I64(max))) => Some((Version(*min as u64), Version(*max as u64))),
        _ => None,
    }
}
