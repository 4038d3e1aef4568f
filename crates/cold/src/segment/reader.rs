//! Reads a segment: pruning, scans, chosen rows, single rows, keys.
//!
//! An open segment holds its footer; page directories and the sparse key index are loaded when first needed
//! and kept. Pages go through the block cache. Any thread may read at any time.

use super::bitmaps::{self, Bitmaps, ChosenRows};
use super::clustering::Clustering;
use super::column::ColumnDecoder;
use super::cursor::{KeyCursor, PageCursor};
use super::directory::{ChunkEntry, Directory, PageEntry, page_rows};
use super::filters::ColumnFilter;
use super::keys::{Keys, SparseKeys, each_hash, encode_keys, find_hash, key_type};
use super::layout::{Layout, MAGIC, RowGroup};
use super::page::Page;
use super::prune::rules_out;
use super::sketches::{self, Sketches};
use super::zone::ZoneMap;
use super::{PAGE_ROWS, ROW_GROUP_ROWS, RowStamps, SegmentMeta, SegmentSchema};
use crate::encoding::dictionary::{Shared, SharedKind};
use crate::encoding::{Damage, Decoded};
use crate::frame::{Extent, Filter, FramedFile, SECTION_KEY_HASHES, SECTION_SPARSE_KEYS};
use crate::{BlockCache, Error, FileKind, Files, Result, Sketch};
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use basalt_types::schema::FileIndexes;
use basalt_types::{ColumnId, ColumnPredicate, DataType, Datum, FileId, Key, PhysType, Version};
use hashbrown::{HashMap, HashSet};
use parking_lot::RwLock;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// Parsed shared blocks that an open segment keeps.
const SHARED_BLOCKS_MAX: usize = 256;

pub struct Segment {
    pub(super) file: FramedFile,
    pub(super) layout: Layout,
    meta: SegmentMeta,
    /// Positions of the key's columns, with the types whose keys their values are.
    pub(super) key_columns: Vec<(usize, DataType)>,
    /// Of the whole file, in schema order.
    zones: Vec<ZoneMap>,
    pub(super) directories: Vec<OnceLock<Directory>>,
    sparse: OnceLock<SparseKeys>,
    filter: Option<Filter>,
    pub(super) column_filters: Vec<ColumnFilter>,
    bitmaps: Vec<Bitmaps>,
    sketches: Option<Sketches>,
    clustering: Option<Clustering>,
    /// Parsed symbol tables and dictionaries by offset, so that single reads need not parse them again.
    shared: RwLock<HashMap<u64, Arc<Shared>>>,
}

impl Segment {
    /// Reads the footer.
    pub fn open(files: &Files, id: FileId, cache: &Arc<BlockCache>) -> Result<Segment> {
        let (file, footer) = FramedFile::open(files, id, FileKind::Segment, MAGIC, cache)?;
        let layout = Layout::decode(&footer.body).map_err(|damage| file.damaged(footer.offset, damage))?;
        if layout.id != id {
            return Err(file.damaged(footer.offset, Damage("the footer names another file")));
        }
        let mut zones: Vec<ZoneMap> = layout.schema.columns.iter().map(|_| ZoneMap::new(0)).collect();
        for row_group in &layout.row_groups {
            zones.iter_mut().zip(&row_group.zones).for_each(|(zone, of_group)| zone.merge(of_group));
        }
        let stamp_range = layout.row_groups.iter().filter_map(|row_group| row_group.stamp_range);
        let meta = SegmentMeta {
            id,
            rows: layout.rows,
            bytes: file.bytes,
            key_range: layout.key_range.clone(),
            sorted: layout.sorted,
            wide: layout.wide,
            stamp_range: stamp_range.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))),
            checksum: footer.crc,
        };
        let directories = layout.row_groups.iter().map(|_| OnceLock::new()).collect();
        let filter = Filter::among(&layout.sections);
        let column_filters = ColumnFilter::all(&layout.sections, &layout.schema, layout.row_groups.len())
            .map_err(|damage| file.damaged(footer.offset, damage))?;
        let bitmaps =
            Bitmaps::all(&layout.sections, &layout.schema).map_err(|damage| file.damaged(footer.offset, damage))?;
        let sketches =
            Sketches::among(&layout.sections, &layout.schema).map_err(|damage| file.damaged(footer.offset, damage))?;
        let clustering = Clustering::among(&layout.sections).map_err(|damage| file.damaged(footer.offset, damage))?;
        let (sparse, shared) = (OnceLock::new(), RwLock::default());
        let key_positions = layout.schema.key_positions().unwrap_or_default();
        let key_columns = key_positions.into_iter().map(|at| (at, key_type(&layout.schema.columns[at]))).collect();
        Ok(Segment {
            file,
            layout,
            meta,
            key_columns,
            zones,
            directories,
            sparse,
            filter,
            column_filters,
            bitmaps,
            sketches,
            clustering,
            shared,
        })
    }

    pub fn id(&self) -> FileId {
        self.file.id
    }

    pub fn rows(&self) -> u32 {
        self.layout.rows
    }

    pub fn meta(&self) -> &SegmentMeta {
        &self.meta
    }

    pub fn schema(&self) -> &SegmentSchema {
        &self.layout.schema
    }

    /// Whether it was written with [`SegmentOptions::zstd`](super::SegmentOptions::zstd).
    pub fn is_zstd(&self) -> bool {
        self.layout.zstd
    }

    /// The order of its rows if that is not the order of their keys.
    pub fn clustering(&self) -> Option<&Clustering> {
        self.clustering.as_ref()
    }

    /// Whether it has what indexes ask of it, as far as it has their columns.
    pub fn has(&self, indexes: &FileIndexes) -> bool {
        let has_bitmaps = |column: &ColumnId| self.bitmaps.iter().any(|bitmaps| bitmaps.column() == *column);
        let has_filters = |column: &ColumnId| self.column_filters.iter().any(|filter| filter.column() == *column);
        let lacks = |column: &ColumnId| self.layout.position(*column).is_none();
        indexes.bitmaps.iter().all(|column| has_bitmaps(column) || lacks(column))
            && indexes.filters.iter().all(|column| has_filters(column) || lacks(column))
    }

    /// Least and greatest key; `None` in an empty file.
    pub fn key_range(&self) -> Option<&(Key, Key)> {
        self.layout.key_range.as_ref()
    }

    pub fn row_groups(&self) -> &[RowGroup] {
        &self.layout.row_groups
    }

    /// Of the whole file; `None` for a column that the file lacks.
    pub fn zone_map(&self, column: ColumnId) -> Option<&ZoneMap> {
        Some(&self.zones[self.layout.position(column)?])
    }

    /// The different values that a column has in this file, nulls and deletions aside. `None` for a column that the file
    /// lacks or has not counted.
    pub fn sketch(&self, column: ColumnId) -> Result<Option<Sketch>> {
        let Some(at) = self.layout.position(column) else { return Ok(None) };
        let known = &self.layout.schema.columns[at];
        sketches::of_column(self.sketches.as_ref(), &self.file, at, known, &self.zones[at])
    }

    /// Of one row group; `None` for a column that the file lacks.
    ///
    /// # Panics
    /// If there is no such row group.
    pub fn row_group_zone_map(&self, row_group: usize, column: ColumnId) -> Option<&ZoneMap> {
        Some(&self.layout.row_groups[row_group].zones[self.layout.position(column)?])
    }

    /// True if no row of the file can satisfy all predicates. Columns that the file lacks decide nothing.
    pub fn prune_file(&self, predicates: &[ColumnPredicate]) -> bool {
        self.any_rules_out(predicates, |column| &self.zones[column])
    }

    /// True if no row of the row group can satisfy all predicates.
    pub fn prune(&self, row_group: usize, predicates: &[ColumnPredicate]) -> bool {
        self.any_rules_out(predicates, |column| &self.layout.row_groups[row_group].zones[column])
    }

    /// The same by filters of columns, which few columns have; asks for blocks of the file.
    pub fn filtered_out(&self, row_group: usize, predicates: &[ColumnPredicate]) -> Result<bool> {
        for predicate in predicates.iter().filter(|_| !self.column_filters.is_empty()) {
            let Some(at) = self.layout.position(predicate.column()) else { continue };
            if let Some(filter) = self.column_filters.iter().find(|filter| filter.is_of(at))
                && filter.rules_out(&self.file, row_group, &self.layout.row_groups[row_group].zones[at], predicate)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The rows that satisfy predicates over some columns, by bitmaps, where these rows are few; asks for blocks of the file.
    pub fn chosen(&self, predicates: &[ColumnPredicate], columns: &[ColumnId]) -> Result<Option<ChosenRows>> {
        match columns.is_empty() {
            true => Ok(None),
            false => bitmaps::chosen(&self.bitmaps, &self.file, self.layout.rows, predicates, columns),
        }
    }

    fn any_rules_out<'z>(&self, predicates: &[ColumnPredicate], zone: impl Fn(usize) -> &'z ZoneMap) -> bool {
        predicates.iter().any(|predicate| match self.layout.position(predicate.column()) {
            Some(at) => rules_out(&self.layout.schema.columns[at], zone(at), predicate),
            None => false,
        })
    }

    /// Row ranges of a row group (page by page, adjacent ones joined) that may hold rows that satisfy all
    /// predicates. Loads the row group's page directory.
    pub fn surviving(&self, row_group: usize, predicates: &[ColumnPredicate]) -> Result<Vec<Range<u32>>> {
        let rows = self.layout.row_groups[row_group].rows;
        let directory = self.directory(row_group)?;
        let mut ranges: Vec<Range<u32>> = Vec::new();
        for page in 0..rows.div_ceil(PAGE_ROWS) {
            if self.any_rules_out(predicates, |column| &directory.chunks[column].pages[page as usize].zone) {
                continue;
            }
            let start = page * PAGE_ROWS;
            let end = start + page_rows(rows, page);
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end = end,
                _ => ranges.push(start..end),
            }
        }
        Ok(ranges)
    }

    pub(super) fn directory(&self, row_group: usize) -> Result<&Directory> {
        let slot = &self.directories[row_group];
        if let Some(directory) = slot.get() {
            return Ok(directory);
        }
        let group = &self.layout.row_groups[row_group];
        // They follow each other, and who asks for one will ask for the next.
        if let Some(last) = self.layout.row_groups.last() {
            self.file.will_read(group.directory.offset..last.directory.offset + u64::from(last.directory.bytes));
        }
        let block = self.file.read_checked(group.directory)?;
        let directory = Directory::parse(&block, group.rows, self.layout.chunks())
            .map_err(|damage| self.file.damaged(group.directory.offset, damage))?;
        Ok(slot.get_or_init(|| directory))
    }

    pub(super) fn shared(&self, chunk: &ChunkEntry) -> Result<Option<Arc<Shared>>> {
        let Some((kind, extent)) = chunk.shared else { return Ok(None) };
        if let Some(shared) = chunk.shared_slot.get() {
            return Ok(Some(shared));
        }
        let shared = self.shared_at(kind, extent)?;
        chunk.shared_slot.put(&shared);
        Ok(Some(shared))
    }

    fn shared_at(&self, kind: SharedKind, extent: Extent) -> Result<Arc<Shared>> {
        if let Some(shared) = self.shared.read().get(&extent.offset).filter(|shared| shared.kind == kind) {
            return Ok(shared.clone());
        }
        let block = self.file.read_checked(extent)?;
        let shared = Arc::new(self.sound(extent.offset, Shared::parse(kind, block))?);
        let mut parsed = self.shared.write();
        if parsed.len() >= SHARED_BLOCKS_MAX {
            parsed.clear();
        }
        parsed.insert(extent.offset, shared.clone());
        Ok(shared)
    }

    /// Rows (counted inside the row group) of some columns, in stored form. `None` for a column that the
    /// file lacks: the caller fills in its default.
    ///
    /// # Panics
    /// If there is no such row group.
    pub fn read(&self, row_group: usize, columns: &[ColumnId], rows: Range<u32>) -> Result<Vec<Option<ArrayRef>>> {
        let read = |column: &ColumnId| match self.layout.position(*column) {
            Some(at) => self.read_chunk(row_group, at, rows.clone()).map(Some),
            None => Ok(None),
        };
        columns.iter().map(read).collect()
    }

    pub(super) fn chunk_type(&self, chunk: usize) -> PhysType {
        self.layout.schema.columns.get(chunk).map_or(PhysType::I64, |column| column.ty)
    }

    fn read_chunk(&self, row_group: usize, chunk: usize, rows: Range<u32>) -> Result<ArrayRef> {
        let group = &self.layout.row_groups[row_group];
        if rows.end > group.rows || rows.start > rows.end {
            return Err(self.out_of_range(group.first_ordinal.saturating_add(rows.end.max(rows.start))));
        }
        let entry = &self.directory(row_group)?.chunks[chunk];
        let pages = rows.start / PAGE_ROWS..rows.end.div_ceil(PAGE_ROWS);
        let ty = self.chunk_type(chunk);
        if rows.is_empty() {
            return self.sound(0, ColumnDecoder::new(ty, 0).finish());
        }
        let shared = self.shared(entry)?;
        let entries = &entry.pages[pages.start as usize..pages.end as usize];
        let extents: Vec<_> = entries.iter().map(|page| page.extent).collect();
        let blocks = self.file.blocks(&extents)?;
        let mut decoder = ColumnDecoder::new(ty, entries.len() * PAGE_ROWS as usize);
        for ((page, extent), block) in pages.clone().zip(&extents).zip(&blocks) {
            let page_rows = page_rows(group.rows, page) as usize;
            let decoded = Page::parse(block, ty, page_rows, shared.as_deref());
            self.sound(extent.offset, decoded.and_then(|page| decoder.append_page(&page)))?;
        }
        let array = self.sound(extents[0].offset, decoder.finish())?;
        let skipped = (rows.start - pages.start * PAGE_ROWS) as usize;
        if skipped == 0 && array.len() == rows.len() { Ok(array) } else { Ok(array.slice(skipped, rows.len())) }
    }

    pub(super) fn sound<T>(&self, offset: u64, decoded: Decoded<T>) -> Result<T> {
        decoded.map_err(|damage| self.file.damaged(offset, damage))
    }

    pub(super) fn out_of_range(&self, ordinal: u32) -> Error {
        Error::OrdinalOutOfRange { path: self.file.path.to_string(), ordinal, rows: self.layout.rows }
    }

    /// The rows at ascending ordinals (repetition allowed) of some columns.
    pub fn read_at(&self, ordinals: &[u32], columns: &[ColumnId]) -> Result<Vec<Option<ArrayRef>>> {
        debug_assert!(ordinals.is_sorted(), "ordinals ascend");
        if let Some(last) = ordinals.iter().max().filter(|last| **last >= self.layout.rows) {
            return Err(self.out_of_range(*last));
        }
        let read = |column: &ColumnId| match self.layout.position(*column) {
            Some(at) => self.read_chunk_at(ordinals, at).map(Some),
            None => Ok(None),
        };
        columns.iter().map(read).collect()
    }

    fn read_chunk_at(&self, ordinals: &[u32], chunk: usize) -> Result<ArrayRef> {
        let ty = self.chunk_type(chunk);
        let mut decoder = ColumnDecoder::new(ty, ordinals.len());
        for in_group in ordinals.chunk_by(|a, b| a / ROW_GROUP_ROWS == b / ROW_GROUP_ROWS) {
            let row_group = (in_group[0] / ROW_GROUP_ROWS) as usize;
            let entry = &self.directory(row_group)?.chunks[chunk];
            let shared = self.shared(entry)?;
            decoder.next_chunk();
            for in_page in in_group.chunk_by(|a, b| a / PAGE_ROWS == b / PAGE_ROWS) {
                let page = in_page[0] % ROW_GROUP_ROWS / PAGE_ROWS;
                let rows = page_rows(self.layout.row_groups[row_group].rows, page) as usize;
                let PageEntry { extent, slot, .. } = &entry.pages[page as usize];
                let block = self.file.block_of(slot, *extent)?;
                let chosen: Vec<u32> = in_page.iter().map(|ordinal| ordinal % PAGE_ROWS).collect();
                let decoded = Page::parse(&block, ty, rows, shared.as_deref());
                self.sound(extent.offset, decoded.and_then(|page| decoder.append_rows(&page, &chosen)))?;
            }
        }
        self.sound(0, decoder.finish())
    }

    /// One row of some columns. `None` for a column that the file lacks.
    pub fn row_at(&self, ordinal: u32, columns: &[ColumnId]) -> Result<Vec<Option<Datum>>> {
        let value = |column: &ColumnId| match self.layout.position(*column) {
            Some(at) => PageCursor::new(self, at).get(ordinal).map(Some),
            None => Ok(None),
        };
        columns.iter().map(value).collect()
    }

    pub fn stamps(&self, row_group: usize) -> Result<RowStamps> {
        if !self.layout.stamped {
            return Ok(RowStamps::Uniform);
        }
        let group = &self.layout.row_groups[row_group];
        if let Some((min, max)) = group.stamp_range
            && min == max
        {
            return Ok(RowStamps::Same(min));
        }
        let versions = self.read_chunk(row_group, self.layout.schema.columns.len(), 0..group.rows)?;
        let versions = versions.as_primitive::<Int64Type>();
        Ok(RowStamps::Each(versions.values().iter().map(|version| Version(*version as u64)).collect()))
    }

    /// The row's own version; `None` if it carries the one under which the file was registered.
    pub fn stamp_at(&self, ordinal: u32) -> Result<Option<Version>> {
        if !self.layout.stamped {
            return Ok(None);
        }
        match PageCursor::new(self, self.layout.schema.columns.len()).get(ordinal)? {
            Datum::I64(version) => Ok(Some(Version(version as u64))),
            _ => Err(self.file.damaged(0, Damage("a row without a version"))),
        }
    }

    pub fn key_at(&self, ordinal: u32) -> Result<Key> {
        Ok(Key::from(KeyCursor::new(self).get(ordinal)?))
    }

    /// The keys of consecutive rows.
    pub fn keys(&self, ordinals: Range<u32>) -> Result<Keys> {
        let mut all = Keys::default();
        let mut start = ordinals.start;
        while start < ordinals.end {
            let row_group = start / ROW_GROUP_ROWS;
            let first = row_group * ROW_GROUP_ROWS;
            let rows = start - first..(ordinals.end - first).min(ROW_GROUP_ROWS);
            if row_group as usize >= self.layout.row_groups.len() {
                return Err(self.out_of_range(start));
            }
            start = first + rows.end;
            let columns = self.read(row_group as usize, &self.layout.schema.key_columns(), rows.clone())?;
            let columns: Vec<ArrayRef> = columns.into_iter().flatten().collect();
            self.sound(0, encode_keys(&self.layout.schema, &columns, 0..rows.len(), &mut all))?;
        }
        Ok(all)
    }

    /// The keys of the rows at ascending ordinals.
    pub fn keys_at(&self, ordinals: &[u32]) -> Result<Keys> {
        let columns = self.read_at(ordinals, &self.layout.schema.key_columns())?;
        let columns: Vec<ArrayRef> = columns.into_iter().flatten().collect();
        let mut keys = Keys::default();
        self.sound(0, encode_keys(&self.layout.schema, &columns, 0..ordinals.len(), &mut keys))?;
        Ok(keys)
    }

    /// Ordinals of the rows with this key, ascending: usually none or one; more when versions of one row
    /// met in this file. Asks the filter first.
    pub fn find(&self, key: &[u8]) -> Result<Vec<u32>> {
        let outside = |range: &(Key, Key)| key < range.0.as_bytes() || key > range.1.as_bytes();
        if self.key_range().is_none_or(outside) {
            return Ok(Vec::new());
        }
        let hash = crate::key_hash(key);
        if !self.may_contain(hash)? {
            return Ok(Vec::new());
        }
        let mut cursor = KeyCursor::new(self);
        let mut found = Vec::new();
        if self.layout.sorted {
            let rows = self.sparse()?.candidates(key, self.layout.rows);
            found.extend(cursor.equal_range(rows, key)?);
            return Ok(found);
        }
        let section = self.layout.section(SECTION_KEY_HASHES);
        let section = section.ok_or_else(|| self.file.damaged(0, Damage("a file without key index")))?;
        for ordinal in find_hash(&self.file, section, hash)? {
            if ordinal >= self.layout.rows {
                return Err(self.file.damaged(section.offset, Damage("a key index with rows beyond the file")));
            }
            if cursor.get(ordinal)? == key {
                found.push(ordinal);
            }
        }
        Ok(found)
    }

    /// A key that two rows have of a file that is not sorted.
    pub fn twin(&self) -> Result<Option<Key>> {
        let Some(section) = self.layout.section(SECTION_KEY_HASHES) else { return Ok(None) };
        let (mut twin, mut before, mut keys) = (None, None, HashSet::new());
        each_hash(&self.file, section, &mut |hash, ordinal| {
            match before.replace((hash, ordinal)) {
                Some((same, earlier)) if same == hash => {
                    if keys.is_empty() {
                        keys.insert(self.key_at(earlier)?);
                    }
                    let key = self.key_at(ordinal)?;
                    if keys.contains(&key) {
                        twin = Some(key);
                        return Ok(false);
                    }
                    keys.insert(key);
                }
                _ => keys.clear(),
            }
            Ok(true)
        })?;
        Ok(twin)
    }

    /// [`find`](Self::find) for ascending keys in a sorted file: calls `found` with the position of a key and an ordinal.
    pub fn find_many(&self, keys: &[&[u8]], found: &mut dyn FnMut(usize, u32)) -> Result<()> {
        let sparse = self.sparse()?;
        let mut cursor = KeyCursor::new(self);
        for (at, key) in keys.iter().enumerate() {
            let rows = sparse.candidates(key, self.layout.rows);
            // Asking the filter is worth a page.
            if rows.is_empty() || !cursor.has_at_hand(rows.start) && !self.may_contain(crate::key_hash(key))? {
                continue;
            }
            cursor.equal_range(rows, key)?.for_each(|ordinal| found(at, ordinal));
        }
        Ok(())
    }

    /// The first ordinal whose key is not below `key` ([`rows`](Self::rows) if there is none).
    ///
    /// # Panics
    /// If the file is not sorted.
    pub fn lower_bound(&self, key: &[u8]) -> Result<u32> {
        assert!(self.layout.sorted, "{} is not sorted", self.file.path);
        KeyCursor::new(self).lower_bound(self.sparse()?.candidates(key, self.layout.rows), key)
    }

    fn sparse(&self) -> Result<&SparseKeys> {
        if let Some(sparse) = self.sparse.get() {
            return Ok(sparse);
        }
        let section = self.layout.section(SECTION_SPARSE_KEYS).filter(|section| section.pages() == 1);
        let section = section.ok_or_else(|| self.file.damaged(0, Damage("a sorted file without sparse key index")))?;
        let block = self.file.read_checked(section.page(0))?;
        let sparse = self.sound(section.offset, SparseKeys::parse(block, self.layout.rows))?;
        Ok(self.sparse.get_or_init(|| sparse))
    }

    /// False only if no row has a key with this hash ([`crate::key_hash`]). True where there is no filter.
    pub fn may_contain(&self, key_hash: u64) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.contains(&self.file, key_hash),
            None => Ok(self.layout.rows > 0),
        }
    }

    /// Bytes that a column's pages and shared blocks take; 0 for a column that the file lacks.
    pub fn column_bytes(&self, column: ColumnId) -> Result<u64> {
        let Some(at) = self.layout.position(column) else { return Ok(0) };
        let mut bytes = 0;
        let mut last_shared = None;
        for row_group in 0..self.layout.row_groups.len() {
            let chunk = &self.directory(row_group)?.chunks[at];
            bytes += chunk.pages.iter().map(|page| u64::from(page.extent.bytes)).sum::<u64>();
            let shared = chunk.shared.map(|(_, extent)| extent);
            if shared != last_shared {
                bytes += shared.map_or(0, |extent| u64::from(extent.bytes));
                last_shared = shared;
            }
        }
        Ok(bytes)
    }

    /// Reads everything, past the cache, and checks every checksum and structure, and the order of
    /// keys.
    pub fn verify(&self) -> Result<()> {
        let fresh = Arc::new(BlockCache::new(0, 0));
        let segment = Segment::open(self.file.files(), self.file.id, &fresh)?;
        for section in &segment.layout.sections {
            (0..section.pages()).try_for_each(|page| segment.file.read_checked(section.page(page)).map(drop))?;
        }
        segment.sketches.iter().try_for_each(|sketches| sketches.verify(&segment.file))?;
        segment.bitmaps.iter().try_for_each(|bitmaps| bitmaps.verify(&segment.file, segment.layout.rows))?;
        let (mut previous, mut hashes): (Option<Vec<u8>>, Vec<u64>) = (None, Vec::new());
        for (index, group) in segment.layout.row_groups.iter().enumerate() {
            for chunk in 0..segment.layout.chunks() {
                segment.read_chunk(index, chunk, 0..group.rows)?;
            }
            let keys = segment.keys(group.first_ordinal..group.first_ordinal + group.rows)?;
            for key in keys.iter() {
                let outside = |(min, max): &(Key, Key)| key < min.as_bytes() || key > max.as_bytes();
                let misplaced = segment.layout.sorted && previous.as_deref().is_some_and(|previous| key < previous);
                if misplaced || segment.key_range().is_none_or(outside) {
                    return Err(segment.file.damaged(0, Damage("keys out of order or out of their range")));
                }
                previous = Some(key.to_vec());
                if !segment.layout.sorted {
                    hashes.push(crate::key_hash(key));
                }
            }
        }
        segment.verify_hashes(&hashes)
    }

    /// Whether the key index of a file that is not sorted names every row under its key.
    fn verify_hashes(&self, hashes: &[u64]) -> Result<()> {
        let Some(section) = self.layout.section(SECTION_KEY_HASHES).filter(|_| !self.layout.sorted) else {
            return Ok(());
        };
        let damaged = || self.file.damaged(section.offset, Damage("a key index that names other rows"));
        let (mut entries, mut before) = (0, None);
        each_hash(&self.file, section, &mut |hash, ordinal| {
            let own = hashes.get(ordinal as usize).is_some_and(|own| (own >> 32) as u32 == hash);
            let ascends = before.replace((hash, ordinal)).is_none_or(|before| before < (hash, ordinal));
            entries += 1;
            if own && ascends { Ok(true) } else { Err(damaged()) }
        })?;
        if entries == hashes.len() { Ok(()) } else { Err(damaged()) }
    }
}
