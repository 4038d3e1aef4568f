//! Rows of segments: row groups that zone maps cannot rule out, less what the reader does not see.

use super::row_file_scan;
use super::{BATCH_ROWS, Part, ScanBatch, Shared, TabletScan};
use crate::Result;
use crate::data_file::DataFile;
use crate::tablet::{FileEntry, ReadView, Tablet};
use arrow_array::builder::{BinaryViewBuilder, Int64Builder};
use arrow_array::{ArrayRef, BooleanArray, Int64Array};
use arrow_buffer::BooleanBuffer;
use arrow_select::filter::filter;
use basalt_cold::{ChosenRows, ChunkReader, PAGE_ROWS, ROW_GROUP_ROWS, RowStamps, Segment};
use basalt_types::automaton::Automaton;
use basalt_types::batch::to_logical;
use basalt_types::span::Span;
use basalt_types::text::LengthUnit;
use basalt_types::vector::{ArrayElements, Ints, Vector};
use basalt_types::{ColumnBuilder, ColumnId, ReadAt, Stamp, TxnStates};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

pub struct ColdScan {
    place: Arc<Place>,
    row_group: usize,
    /// Rows of the row group still to read; last range first.
    ranges: Vec<Range<u32>>,
    /// Whether `ranges` are those of pages that zone maps cannot rule out. Otherwise whoever reads them finds out, beside
    /// others who do so elsewhere.
    narrowed: bool,
    /// Known once rows are asked for.
    stamps: Option<RowStamps>,
    /// Readers of the scan's columns, in its order; empty until the first one is asked for.
    chunks: Vec<Chunk>,
    rows_read: u64,
}

/// Pages that will be read.
pub struct Ahead {
    place: Arc<Place>,
    row_group: usize,
    /// Of the row group; `None`: those that zone maps leave.
    ranges: Option<Vec<Range<u32>>>,
}

impl Ahead {
    pub fn will_read(self) -> Result<()> {
        let Place { shared, segment, .. } = &*self.place;
        let columns = shared.spec.columns.iter().enumerate().filter(|(at, _)| shared.habits.reads(*at));
        let columns: Vec<ColumnId> = columns.map(|(_, column)| *column).collect();
        if segment.seems_at_hand(self.row_group, &columns) {
            return Ok(());
        }
        let ranges = match self.ranges {
            Some(ranges) => ranges,
            // As whoever reads it will find out.
            None => {
                let predicates = &shared.spec.predicates;
                let ranges = segment.surviving(self.row_group, predicates)?;
                if ranges.is_empty() || segment.filtered_out(self.row_group, predicates)? {
                    return Ok(());
                }
                ranges
            }
        };
        Ok(segment.will_read(self.row_group, &columns, &ranges)?)
    }
}

/// What is read, as all parts of one file share it.
pub struct Place {
    shared: Arc<Shared>,
    tablet: Arc<Tablet>,
    /// Keeps the file (and older versions elsewhere) while we read.
    _view: Arc<ReadView>,
    file: Arc<FileEntry>,
    segment: Arc<Segment>,
    /// The rows of the file that bitmaps name, if they do: no others are wanted. Known once it is asked.
    chosen: OnceLock<Option<ChosenRows>>,
}

impl Drop for ColdScan {
    fn drop(&mut self) {
        let bytes = |chunk: &Chunk| match chunk {
            Chunk::Read(chunk) => chunk.bytes_read(),
            Chunk::Unread | Chunk::Missing => 0,
        };
        let read = self.chunks.iter().map(bytes).sum();
        if read > 0 && self.rows_read > 0 {
            let Place { shared, segment, .. } = &*self.place;
            let most_of = |(at, column): (usize, &ColumnId)| {
                let all = segment.chunk_bytes(self.row_group, *column).unwrap_or(0);
                let rows = u64::from(segment.row_groups()[self.row_group].rows);
                // Of the pages whose rows came.
                (bytes(&self.chunks[at]) * rows * 2 > all * self.rows_read).then_some(at)
            };
            shared.habits.note(shared.spec.columns.iter().enumerate().filter_map(most_of));
        }
        let stats = &self.place.shared.stats;
        stats.bytes_read.fetch_add(read, Ordering::Relaxed);
        stats.rows_read.fetch_add(self.rows_read, Ordering::Relaxed);
    }
}

enum Chunk {
    Unread,
    /// The file lacks the column.
    Missing,
    Read(ChunkReader),
}

/// Of so few row groups workers would not get about as much to do each: they are cut into parts.
const FEW_ROW_GROUPS: usize = 16;
const PART_ROWS: u32 = 2 * PAGE_ROWS;

// A block is a page, whole: groups leave with it (`exec`'s `aggregate/early.rs`).
const _: () = assert!(PAGE_ROWS as usize == BATCH_ROWS);

/// Ranges that begin and end with pages, in lots of up to so many rows of the row group.
fn cut(ranges: Vec<Range<u32>>, rows: u32) -> Vec<Vec<Range<u32>>> {
    let mut lots: Vec<(u32, Vec<Range<u32>>)> = Vec::new();
    for range in ranges {
        let mut from = range.start;
        while from < range.end {
            let lot = from / rows;
            let to = range.end.min((lot + 1) * rows);
            match lots.last_mut() {
                Some((known, lot_ranges)) if *known == lot => lot_ranges.push(from..to),
                _ => lots.push((lot, std::iter::once(from..to).collect())),
            }
            from = to;
        }
    }
    lots.into_iter().map(|(_, ranges)| ranges).collect()
}

/// Adds a part per row group, or less, of a file that may hold rows for this reader.
pub fn parts(
    shared: &Arc<Shared>,
    tablet: &Arc<Tablet>,
    view: &Arc<ReadView>,
    out: &mut Vec<TabletScan>,
) -> Result<()> {
    let predicates = &shared.spec.predicates;
    let txns = &*shared.read.engine.txns;
    let few = view.files.iter().map(|file| file.data.row_groups()).sum::<usize>() <= FEW_ROW_GROUPS;
    for file in &view.files {
        let groups = file.data.row_groups();
        shared.stats.row_groups_total.fetch_add(groups as u64, Ordering::Relaxed);
        if !file.sees_uniform(&shared.read.at, txns) {
            shared.stats.row_groups_pruned.fetch_add(groups as u64, Ordering::Relaxed);
            continue;
        }
        let segment = match &file.data {
            DataFile::Segment(segment) | DataFile::Pair(segment, _) => segment,
            DataFile::Rows(rows) => {
                row_file_scan::parts(shared, tablet, view, file, rows, out);
                continue;
            }
        };
        if segment.prune_file(predicates) {
            shared.stats.row_groups_pruned.fetch_add(groups as u64, Ordering::Relaxed);
            continue;
        }
        let place = Place::new(shared, tablet, view, file, segment);
        for row_group in 0..groups {
            if segment.prune(row_group, predicates) {
                shared.stats.row_groups_pruned.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            shared.stats.pages_total.fetch_add(place.pages(row_group), Ordering::Relaxed);
            if !few {
                out.push(ColdScan::new(&place, row_group, None).into_part());
                continue;
            }
            for mut ranges in cut(place.surviving(row_group)?, PART_ROWS) {
                ranges.reverse();
                out.push(ColdScan::new(&place, row_group, Some(ranges)).into_part());
            }
        }
    }
    Ok(())
}

impl Place {
    pub fn new(
        shared: &Arc<Shared>,
        tablet: &Arc<Tablet>,
        view: &Arc<ReadView>,
        file: &Arc<FileEntry>,
        segment: &Arc<Segment>,
    ) -> Arc<Place> {
        let (shared, tablet, view) = (shared.clone(), tablet.clone(), view.clone());
        let (file, segment) = (file.clone(), segment.clone());
        Arc::new(Place { shared, tablet, _view: view, file, segment, chosen: OnceLock::new() })
    }

    fn chosen(&self) -> Result<Option<&ChosenRows>> {
        if let Some(chosen) = self.chosen.get() {
            return Ok(chosen.as_ref());
        }
        let chosen = self.segment.chosen(&self.shared.spec.predicates, &self.shared.bitmaps)?;
        // Whoever comes at the same time finds the same.
        let kept = self.chosen.get_or_init(|| {
            if let Some(chosen) = &chosen {
                let stats = &self.shared.stats;
                stats.bitmap_rows_total.fetch_add(u64::from(self.segment.rows()), Ordering::Relaxed);
                stats.bitmap_rows_chosen.fetch_add(chosen.count as u64, Ordering::Relaxed);
            }
            chosen
        });
        Ok(kept.as_ref())
    }

    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    fn pages(&self, row_group: usize) -> u64 {
        u64::from(self.segment.row_groups()[row_group].rows.div_ceil(PAGE_ROWS))
    }

    /// The rows of a row group that lie in pages which may have some that are wanted, in ranges that begin and end with
    /// pages.
    fn surviving(&self, row_group: usize) -> Result<Vec<Range<u32>>> {
        let Place { shared, segment, .. } = self;
        let predicates = &shared.spec.predicates;
        let ranges = segment.surviving(row_group, predicates)?;
        // Bounds are at hand, filters have to be read.
        let filtered = !ranges.is_empty() && segment.filtered_out(row_group, predicates)?;
        shared.stats.row_groups_filtered.fetch_add(u64::from(filtered), Ordering::Relaxed);
        let ranges = if filtered { Vec::new() } else { self.with_chosen(row_group, ranges)? };
        let pages = self.pages(row_group);
        if ranges.is_empty() {
            // Pages are counted of the other row groups.
            shared.stats.row_groups_pruned.fetch_add(1, Ordering::Relaxed);
            shared.stats.pages_total.fetch_sub(pages, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let read: u32 = ranges.iter().map(|rows| rows.len() as u32).map(|rows| rows.div_ceil(PAGE_ROWS)).sum();
        shared.stats.pages_pruned.fetch_add(pages - u64::from(read), Ordering::Relaxed);
        Ok(ranges)
    }

    /// Ranges of a row group without the pages of which bitmaps have left no row.
    fn with_chosen(&self, row_group: usize, ranges: Vec<Range<u32>>) -> Result<Vec<Range<u32>>> {
        let Some(chosen) = self.chosen()? else { return Ok(ranges) };
        let first = self.segment.row_groups()[row_group].first_ordinal;
        let has_rows = |page: &Range<u32>| {
            let of_page = || chosen.rows.slice((first + page.start) as usize, page.len());
            chosen.count > 0 && of_page().set_indices().next().is_some()
        };
        let mut left: Vec<Range<u32>> = Vec::new();
        for page in ranges.into_iter().flat_map(pages_of).filter(has_rows) {
            match left.last_mut() {
                Some(last) if last.end == page.start => last.end = page.end,
                _ => left.push(page),
            }
        }
        Ok(left)
    }
}

/// A range that begins and ends with pages, page by page.
fn pages_of(range: Range<u32>) -> impl Iterator<Item = Range<u32>> {
    let (from, end) = (range.start, range.end);
    (from..end).step_by(PAGE_ROWS as usize).map(move |start| start..end.min(start + PAGE_ROWS))
}

impl ColdScan {
    /// `left`: the rows of the row group that are to be read, last range first, if that is known.
    fn new(place: &Arc<Place>, row_group: usize, left: Option<Vec<Range<u32>>>) -> ColdScan {
        let (place, narrowed) = (place.clone(), left.is_some());
        let all = 0..place.segment.row_groups()[row_group].rows;
        let ranges = left.unwrap_or_else(|| Vec::from([all]));
        ColdScan { place, row_group, ranges, narrowed, stamps: None, chunks: Vec::new(), rows_read: 0 }
    }

    pub fn into_part(self) -> TabletScan {
        TabletScan { part: Part::Cold(Box::new(self)) }
    }

    /// One page of a row group alone.
    pub fn page(place: &Arc<Place>, row_group: usize, page: u32) -> ColdScan {
        let rows = page * PAGE_ROWS..place.segment.row_groups()[row_group].rows.min((page + 1) * PAGE_ROWS);
        ColdScan::new(place, row_group, Some(vec![rows]))
    }

    pub fn shared(&self) -> &Shared {
        &self.place.shared
    }

    /// `None` if bitmaps, which nobody has asked yet, say which pages will be read.
    pub fn ahead(&self) -> Option<Ahead> {
        if !self.narrowed && !self.place.shared.bitmaps.is_empty() {
            return None;
        }
        let (place, row_group) = (self.place.clone(), self.row_group);
        Some(Ahead { place, row_group, ranges: self.narrowed.then(|| self.ranges.clone()) })
    }

    /// As [`TabletScan::page_bounds`], of pages that may still be read.
    pub fn page_bounds(&self, column: ColumnId, out: &mut Vec<(i64, i64)>) -> Result<bool> {
        Ok(self.place.segment.page_bounds(self.row_group, column, &self.ranges, out)?)
    }

    /// Before the first rows.
    fn open(&mut self) -> Result<()> {
        if self.stamps.is_some() {
            return Ok(());
        }
        if !self.narrowed {
            self.ranges = self.place.surviving(self.row_group)?;
            self.ranges.reverse();
        }
        // Of a row group without a page to read they would be read in vain.
        let stamps = match self.ranges.is_empty() {
            true => RowStamps::Uniform,
            false => self.place.segment.stamps(self.row_group)?,
        };
        self.stamps = Some(stamps);
        Ok(())
    }

    fn stamps(&self) -> &RowStamps {
        self.stamps.as_ref().expect("rows come after what is known of them")
    }

    pub fn next_batch(&mut self) -> Result<Option<ScanBatch>> {
        self.open()?;
        while let Some(rows) = self.next_range() {
            let Some(keep) = self.visible(&rows) else {
                return self.read(rows, None).map(Some);
            };
            if keep.count_set_bits() > 0 {
                return self.read(rows, Some(keep)).map(Some);
            }
        }
        Ok(None)
    }

    /// The predicates of the scan that bitmaps have decided for the rows that come.
    pub fn told(&self) -> Option<&Arc<[bool]>> {
        self.chosen().map(|chosen| &chosen.told)
    }

    /// The next rows of one page of which the reader sees some, and which (`None`: all).
    pub fn next_page(&mut self) -> Result<Option<(Range<u32>, Option<BooleanBuffer>)>> {
        self.open()?;
        while let Some(rows) = self.next_range() {
            let visible = self.visible(&rows);
            if visible.as_ref().is_none_or(|visible| visible.set_indices().next().is_some()) {
                self.rows_read += rows.len() as u64;
                return Ok(Some((rows, visible)));
            }
        }
        Ok(None)
    }

    /// A column, by its place in the scan's list, of one page's rows; with `at`, counted from the first of them, of these
    /// alone.
    pub fn vector(&mut self, column: usize, rows: &Range<u32>, at: Option<&[u32]>) -> Result<Vector> {
        let page = (rows.start / PAGE_ROWS) as usize;
        match self.chunk(column, rows)? {
            (segment, Some(chunk)) => Ok(chunk.vector(segment, page, at)?),
            (_, None) => {
                let id = self.place.shared.spec.columns[column];
                Ok(Vector::measured(self.missing(id, at.map_or(rows.len(), <[u32]>::len))))
            }
        }
    }

    /// Clears the mask of one page's rows where a column is not within the span; whether it was possible without
    /// decoding it.
    pub fn test(&mut self, column: usize, rows: &Range<u32>, span: Span, mask: &mut [u8]) -> Result<bool> {
        match self.chunk(column, rows)? {
            (segment, Some(chunk)) => Ok(chunk.test(segment, (rows.start / PAGE_ROWS) as usize, span, mask)?),
            (_, None) => Ok(false),
        }
    }

    /// Clears the mask of one page's rows where a column is null or not in a set of texts, or is in it if that is
    /// `negated`; whether it was possible without decoding it.
    pub fn search(
        &mut self,
        column: usize,
        rows: &Range<u32>,
        (texts, negated): (&Arc<Automaton>, bool),
        mask: &mut [u8],
    ) -> Result<bool> {
        match self.chunk(column, rows)? {
            (segment, Some(chunk)) => {
                Ok(chunk.search(segment, (rows.start / PAGE_ROWS) as usize, (texts, negated), mask)?)
            }
            (_, None) => Ok(false),
        }
    }

    /// As [`ColdScan::vector`], how long a column's texts are; `None` if that is not known without them.
    pub fn lengths(
        &mut self,
        column: usize,
        rows: &Range<u32>,
        unit: LengthUnit,
        at: Option<&[u32]>,
    ) -> Result<Option<Ints>> {
        self.asked(column, rows, |chunk, segment, page| chunk.lengths(segment, page, unit, at))
    }

    /// As [`ColdScan::vector`], the element at a place of a column's arrays; `None` if that is not known without them.
    pub fn element(
        &mut self,
        column: usize,
        rows: &Range<u32>,
        place: u32,
        at: Option<&[u32]>,
    ) -> Result<Option<Vector>> {
        self.asked(column, rows, |chunk, segment, page| chunk.element(segment, page, place, at))
    }

    /// The same of how many elements there are.
    pub fn counts(&mut self, column: usize, rows: &Range<u32>, at: Option<&[u32]>) -> Result<Option<Ints>> {
        self.asked(column, rows, |chunk, segment, page| chunk.counts(segment, page, at))
    }

    /// The same of all elements.
    pub fn elements(&mut self, column: usize, rows: &Range<u32>, at: Option<&[u32]>) -> Result<Option<ArrayElements>> {
        self.asked(column, rows, |chunk, segment, page| chunk.elements(segment, page, at))
    }

    /// What a column's reader tells of one page; `None` if it tells nothing, or the file lacks the column.
    fn asked<T>(
        &mut self,
        column: usize,
        rows: &Range<u32>,
        ask: impl FnOnce(&mut ChunkReader, &Segment, usize) -> basalt_cold::Result<Option<T>>,
    ) -> Result<Option<T>> {
        match self.chunk(column, rows)? {
            (segment, Some(chunk)) => Ok(ask(chunk, segment, (rows.start / PAGE_ROWS) as usize)?),
            (_, None) => Ok(None),
        }
    }

    /// How many texts a column's codes stand for, if codes are what it holds.
    pub fn dictionary_len(&mut self, column: usize, rows: &Range<u32>) -> Result<Option<usize>> {
        Ok(self.chunk(column, rows)?.1.and_then(|chunk| chunk.dictionary_len()))
    }

    /// The reader of a column, by its place in the scan's list, and the segment that it reads; `None` if the file lacks it.
    fn chunk(&mut self, column: usize, rows: &Range<u32>) -> Result<(&Segment, Option<&mut ChunkReader>)> {
        let Place { shared, segment, .. } = &*self.place;
        let columns = &shared.spec.columns;
        if self.chunks.is_empty() {
            self.chunks.resize_with(columns.len(), || Chunk::Unread);
            let all = rows.start..self.ranges.first().map_or(rows.end, |last| last.end);
            segment.approach(self.row_group, columns, &all)?;
        }
        if let Chunk::Unread = self.chunks[column] {
            // This page and those to come.
            let wanted: Vec<Range<u32>> =
                std::iter::once(rows.clone()).chain(self.ranges.iter().rev().cloned()).collect();
            let chunk = segment.chunk(self.row_group, columns[column], &wanted)?;
            self.chunks[column] = chunk.map_or(Chunk::Missing, Chunk::Read);
        }
        let chunk = match &mut self.chunks[column] {
            Chunk::Read(chunk) => Some(chunk),
            Chunk::Unread | Chunk::Missing => None,
        };
        Ok((segment, chunk))
    }

    /// Cuts the next batch so that it ends where a page ends.
    fn next_range(&mut self) -> Option<Range<u32>> {
        let range = self.ranges.last_mut()?;
        let page_end = (range.start / BATCH_ROWS as u32 + 1) * BATCH_ROWS as u32;
        let batch = range.start..range.end.min(page_end);
        range.start = batch.end;
        if range.start == range.end {
            self.ranges.pop();
        }
        Some(batch)
    }

    fn ordinals(&self, rows: &Range<u32>) -> Range<u32> {
        let first = self.row_group as u32 * ROW_GROUP_ROWS;
        first + rows.start..first + rows.end
    }

    /// Known since the row group was opened.
    fn chosen(&self) -> Option<&ChosenRows> {
        self.place.chosen.get()?.as_ref()
    }

    /// Which rows the reader sees, less those that bitmaps have ruled out; `None`: all.
    fn visible(&self, rows: &Range<u32>) -> Option<BooleanBuffer> {
        let at = &self.place.shared.read.at;
        let txns = &*self.place.shared.read.engine.txns;
        let live = self.place.file.deletes.live(self.ordinals(rows), at, txns);
        let ordinals = self.ordinals(rows);
        let chosen = self.chosen().map(|chosen| chosen.rows.slice(ordinals.start as usize, ordinals.len()));
        let all = [self.arrived(rows, at, txns), live, chosen].into_iter().flatten();
        all.reduce(|some, others| &some & &others)
    }

    /// Rows whose insertion the reader sees; `None`: all.
    fn arrived(&self, rows: &Range<u32>, at: &ReadAt, txns: &dyn TxnStates) -> Option<BooleanBuffer> {
        match self.stamps() {
            // Seen as a whole: parts() has asked.
            RowStamps::Uniform => None,
            RowStamps::Same(version) if at.sees(Stamp::version(*version), 0, txns) => None,
            RowStamps::Same(_) => Some(BooleanBuffer::new_unset(rows.len())),
            RowStamps::Each(versions) => {
                let versions = &versions[rows.start as usize..rows.end as usize];
                if versions.iter().all(|version| *version <= at.snapshot) {
                    return None;
                }
                Some(BooleanBuffer::collect_bool(versions.len(), |i| versions[i] <= at.snapshot))
            }
        }
    }

    /// These rows of one page; with `keep`, only those that it has set.
    fn read(&mut self, rows: Range<u32>, keep: Option<BooleanBuffer>) -> Result<ScanBatch> {
        let kept: Option<Vec<u32>> = keep.as_ref().map(|keep| keep.set_indices().map(|row| row as u32).collect());
        let place = self.place.clone();
        let shared = &place.shared;
        let mut columns = Vec::with_capacity(shared.spec.columns.len() + 3);
        for (column, id) in shared.spec.columns.iter().enumerate() {
            let vector = self.vector(column, &rows, kept.as_deref())?;
            let ty = &shared.spec.table.column(*id).ty;
            columns.push(to_logical(ty, &vector.to_array(ty.phys().expect("storable"))));
        }
        if shared.spec.with_identity {
            let identity = self.identity(&rows)?;
            match &keep {
                None => columns.extend(identity),
                Some(keep) => {
                    let keep = BooleanArray::new(keep.clone(), None);
                    columns.extend(identity.iter().map(|column| filter(column, &keep).expect("lengths agree")));
                }
            }
        }
        self.rows_read += rows.len() as u64;
        Ok(ScanBatch { columns, rows: kept.map_or(rows.len(), |kept| kept.len()) })
    }

    fn missing(&self, id: ColumnId, rows: usize) -> ArrayRef {
        let column = self.place.shared.spec.table.column(id);
        let mut builder = ColumnBuilder::new(column.ty.phys().expect("storable"), rows);
        for _ in 0..rows {
            let fits = builder.push(&column.missing);
            assert!(fits, "the default of column {} is of its type", column.name);
        }
        builder.finish()
    }

    /// Tablet, key and stamp of each row.
    fn identity(&self, rows: &Range<u32>) -> Result<[ArrayRef; 3]> {
        let mut keys = BinaryViewBuilder::with_capacity(rows.len());
        self.place.segment.keys(self.ordinals(rows))?.iter().for_each(|key| keys.append_value(key));
        let mut stamps = Int64Builder::with_capacity(rows.len());
        let uniform = self.place.file.uniform().map(|(stamp, _)| stamp.raw() as i64);
        for row in rows.clone() {
            stamps.append_value(match self.stamps() {
                RowStamps::Uniform => uniform.unwrap_or_default(),
                RowStamps::Same(version) => version.0 as i64,
                RowStamps::Each(versions) => versions[row as usize].0 as i64,
            });
        }
        let tablet = Int64Array::from_value(i64::from(self.place.tablet.id.0), rows.len());
        Ok([Arc::new(tablet), Arc::new(keys.finish()), Arc::new(stamps.finish())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::single_range_in_vec_init)]
    fn ranges_are_cut_where_lots_end() {
        let lots = cut(vec![0..10, 20..50, 60..64], 20);
        assert_eq!(lots, [vec![0..10], vec![20..40], vec![40..50], vec![60..64]]);
        let lots = cut(vec![0..10, 12..15, 25..30], 20);
        assert_eq!(lots, [vec![0..10, 12..15], vec![25..30]]);
        assert!(cut(Vec::new(), 20).is_empty());
    }
}
