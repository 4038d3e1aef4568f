//! What a store is told of pages that will be read.

use super::*;
use crate::segment::{KeySpec, SegmentColumn, SegmentOptions, SegmentSchema, SegmentWriter, Stamps};
use crate::store::ReadAhead;
use crate::{BlockCache, Files};
use arrow_array::{ArrayRef, Int64Array};
use basalt_types::{DataType, Epoch, FileId};
use object_store::memory::InMemory;
use object_store::path::Path;
use parking_lot::Mutex;
use std::sync::Arc;

/// Remembers what it was told.
#[derive(Default, Debug)]
struct Told(Mutex<Vec<Range<u64>>>);

impl ReadAhead for Told {
    fn will_read(&self, _: &Path, range: Range<u64>) {
        self.0.lock().push(range);
    }
}

const KEY: ColumnId = ColumnId(1);
const NOISE: ColumnId = ColumnId(2);
const LACKING: ColumnId = ColumnId(3);
const ROWS: usize = 100_000;

fn segment() -> (Segment, Arc<Told>) {
    let told = Arc::new(Told::default());
    let files = Files::with_read_ahead(Arc::new(InMemory::new()), told.clone());
    let id = FileId { epoch: Epoch(1), serial: 1 };
    let column = |id| SegmentColumn::new(id, &DataType::Int8).unwrap();
    let schema = SegmentSchema { columns: vec![column(KEY), column(NOISE)], key: KeySpec::Columns(vec![KEY]) };
    let mut writer = SegmentWriter::create(&files, id, schema, SegmentOptions::default()).unwrap();
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values(0..ROWS as i64));
    let scatter = |i: i64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
    let noise: ArrayRef = Arc::new(Int64Array::from_iter_values((0..ROWS as i64).map(scatter)));
    writer.push(&[keys, noise], Stamps::Uniform).unwrap();
    writer.finish().unwrap();
    let cache = Arc::new(BlockCache::new(1 << 20, 64 << 20));
    (Segment::open(&files, id, &cache).unwrap(), told)
}

#[test]
fn the_store_is_told_of_pages_that_nobody_has() {
    let (segment, told) = segment();
    let take = || std::mem::take(&mut *told.0.lock());
    let pages = |column: usize, pages: Range<usize>| {
        let pages = &segment.directory(0).unwrap().chunks[column].pages[pages];
        let last = &pages[pages.len() - 1];
        pages[0].extent.offset..last.extent.offset + u64::from(last.extent.bytes)
    };
    assert!(!segment.seems_at_hand(0, &[NOISE]));
    segment.directory(0).unwrap();
    assert_eq!(take().len(), 1, "all page directories, once for the first");

    // Rows of the third and the fourth page, and of the seventh; of a column that the file lacks there is nothing.
    let rows = [2 * PAGE_ROWS..4 * PAGE_ROWS, 6 * PAGE_ROWS..7 * PAGE_ROWS];
    segment.will_read(0, &[NOISE, LACKING], &rows).unwrap();
    assert_eq!(take(), [pages(1, 2..4), pages(1, 6..7)]);
    let all = 0..8 * PAGE_ROWS;
    let all = std::slice::from_ref(&all);
    segment.will_read(0, &[KEY, NOISE], all).unwrap();
    assert_eq!(take(), [pages(0, 0..8), pages(1, 0..8)]);

    // What is in memory is left out.
    let held: Vec<_> = (0..3)
        .map(|page| {
            let rows = page * PAGE_ROWS..(page + 1) * PAGE_ROWS;
            let mut chunk = segment.chunk(0, NOISE, std::slice::from_ref(&rows)).unwrap().unwrap();
            chunk.vector(&segment, page as usize, None).unwrap();
            chunk
        })
        .collect();
    segment.will_read(0, &[NOISE], all).unwrap();
    assert_eq!(take(), [pages(1, 3..8)]);
    assert!(segment.seems_at_hand(0, &[NOISE]) && !segment.seems_at_hand(0, &[KEY, NOISE]));
    drop(held);
    assert_eq!(segment.chunk_bytes(0, NOISE).unwrap(), pages(1, 0..8).end - pages(1, 0..8).start);
    assert_eq!(segment.chunk_bytes(0, LACKING).unwrap(), 0);
}
