//! Single values and keys of an open segment, one ordinal at a time. A cursor keeps the page at hand, so that
//! a search among neighbours fetches each page once.

use super::directory::{PageEntry, page_rows};
use super::page::{Page, PageValues, Validity};
use super::reader::Segment;
use super::{KeySpec, PAGE_ROWS, ROW_GROUP_ROWS};
use crate::Result;
use crate::cache::CachedBlock;
use crate::encoding::Damage;
use crate::encoding::dictionary::Shared;
use crate::encoding::ints::Ints;
use basalt_types::{DataType, Datum, PhysType, key};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// Values of one column, by the position of its chunk.
pub(super) struct PageCursor<'s> {
    segment: &'s Segment,
    chunk: usize,
    page: Option<LoadedPage>,
}

struct LoadedPage {
    first_ordinal: u32,
    rows: usize,
    offset: u64,
    block: Arc<CachedBlock>,
    shared: Option<Arc<Shared>>,
}

impl<'s> PageCursor<'s> {
    pub fn new(segment: &'s Segment, chunk: usize) -> PageCursor<'s> {
        PageCursor { segment, chunk, page: None }
    }

    pub fn get(&mut self, ordinal: u32) -> Result<Datum> {
        self.turn_to(ordinal)?;
        let (segment, ty) = (self.segment, self.segment.chunk_type(self.chunk));
        let Some(loaded) = &self.page else { return Err(segment.out_of_range(ordinal)) };
        let page = self.parse(loaded)?;
        let at = (ordinal - loaded.first_ordinal) as usize;
        match at < page.rows {
            true => segment.sound(loaded.offset, page.get(ty, at)),
            false => Err(segment.out_of_range(ordinal)),
        }
    }

    /// Has the page of a row at hand.
    fn turn_to(&mut self, ordinal: u32) -> Result<()> {
        if !self.has_at_hand(ordinal) {
            self.page = Some(load(self.segment, self.chunk, ordinal)?);
        }
        Ok(())
    }

    fn parse<'c>(&self, loaded: &'c LoadedPage) -> Result<Page<'c>> {
        let ty = self.segment.chunk_type(self.chunk);
        let page = Page::parse(&loaded.block, ty, loaded.rows, loaded.shared.as_deref());
        self.segment.sound(loaded.offset, page)
    }

    fn has_at_hand(&self, ordinal: u32) -> bool {
        self.page.as_ref().is_some_and(|page| page.first_ordinal == ordinal / PAGE_ROWS * PAGE_ROWS)
    }
}

fn load(segment: &Segment, chunk: usize, ordinal: u32) -> Result<LoadedPage> {
    if ordinal >= segment.layout.rows {
        return Err(segment.out_of_range(ordinal));
    }
    let row_group = (ordinal / ROW_GROUP_ROWS) as usize;
    let page = ordinal % ROW_GROUP_ROWS / PAGE_ROWS;
    let entry = &segment.directory(row_group)?.chunks[chunk];
    let PageEntry { extent, slot, .. } = &entry.pages[page as usize];
    Ok(LoadedPage {
        first_ordinal: ordinal / PAGE_ROWS * PAGE_ROWS,
        rows: page_rows(segment.layout.row_groups[row_group].rows, page) as usize,
        offset: extent.offset,
        block: segment.file.block_of(slot, *extent)?,
        shared: segment.shared(entry)?,
    })
}

/// Keys of rows.
pub(super) struct KeyCursor<'s> {
    segment: &'s Segment,
    columns: SmallVec<[(PageCursor<'s>, &'s DataType); 4]>,
    key: Vec<u8>,
}

impl<'s> KeyCursor<'s> {
    pub fn new(segment: &'s Segment) -> KeyCursor<'s> {
        let columns = segment.key_columns.iter().map(|(at, ty)| (PageCursor::new(segment, *at), ty)).collect();
        KeyCursor { segment, columns, key: Vec::new() }
    }

    /// Whether the keys around a row cost nothing to fetch.
    pub fn has_at_hand(&self, ordinal: u32) -> bool {
        self.columns.iter().all(|(cursor, _)| cursor.has_at_hand(ordinal))
    }

    /// The first of these rows whose key is not below `key`, or their end. They are in key order.
    pub fn lower_bound(&mut self, rows: Range<u32>, key: &[u8]) -> Result<u32> {
        if let Some(mut page) = self.in_one_page(&rows, key)? {
            return page.lower_bound(rows);
        }
        partition(rows, |ordinal| Ok(self.get(ordinal)? < key))
    }

    /// Those of these rows that have `key`. They are in key order.
    pub fn equal_range(&mut self, rows: Range<u32>, key: &[u8]) -> Result<Range<u32>> {
        if let Some(mut page) = self.in_one_page(&rows, key)? {
            return page.equal_range(rows);
        }
        let first = partition(rows.clone(), |ordinal| Ok(self.get(ordinal)? < key))?;
        equal_from(first, rows.end, |ordinal| Ok(self.get(ordinal)? == key))
    }

    /// Rows of one page, to be compared with a key. `None`: they are in several.
    fn in_one_page<'c>(&'c mut self, rows: &Range<u32>, key: &'c [u8]) -> Result<Option<KeyPage<'c>>> {
        let first = rows.start / PAGE_ROWS * PAGE_ROWS;
        if rows.is_empty() || rows.end - first > PAGE_ROWS {
            return Ok(None);
        }
        self.columns.iter_mut().try_for_each(|(cursor, _)| cursor.turn_to(rows.start))?;
        let hidden = self.is_hidden();
        let (ints, rest, buffer) = (SmallVec::new(), SmallVec::new(), Vec::new());
        let mut page = KeyPage { segment: self.segment, hidden, first, ints, rest, key, buffer };
        for (cursor, ty) in &self.columns {
            let Some(loaded) = &cursor.page else { return Ok(None) };
            let Page { rows: in_page, validity, values } = cursor.parse(loaded)?;
            if (rows.end - first) as usize > in_page {
                return Ok(None);
            }
            let phys = self.segment.chunk_type(cursor.chunk);
            let is_plain = matches!((validity, &values), (Validity::NoNulls, PageValues::Ints(_)));
            let leads = is_plain && page.rest.is_empty();
            match (leads.then(|| take_int(phys, hidden, &mut page.key)).flatten(), values) {
                (Some(wanted), PageValues::Ints(ints)) => page.ints.push((ints, wanted)),
                (_, values) => {
                    let parsed = Page { rows: in_page, validity, values };
                    page.rest.push(KeyColumn { page: parsed, phys, ty, offset: loaded.offset });
                }
            }
        }
        Ok(Some(page))
    }

    fn is_hidden(&self) -> bool {
        self.segment.layout.schema.key == KeySpec::Hidden
    }

    pub fn get(&mut self, ordinal: u32) -> Result<&[u8]> {
        let hidden = self.is_hidden();
        self.key.clear();
        for (cursor, ty) in &mut self.columns {
            put_part(self.segment, hidden, ty, &cursor.get(ordinal)?, &mut self.key)?;
        }
        Ok(&self.key)
    }
}

/// The key columns of a page, parsed, beside a key that its rows are compared with.
struct KeyPage<'c> {
    segment: &'c Segment,
    hidden: bool,
    first: u32,
    /// Leading columns, each with the key's value.
    ints: SmallVec<[(Ints<'c>, i64); 4]>,
    /// Those behind them, whose part of the key is `key`.
    rest: SmallVec<[KeyColumn<'c>; 2]>,
    key: &'c [u8],
    buffer: Vec<u8>,
}

struct KeyColumn<'c> {
    page: Page<'c>,
    phys: PhysType,
    ty: &'c DataType,
    offset: u64,
}

impl KeyPage<'_> {
    fn lower_bound(&mut self, rows: Range<u32>) -> Result<u32> {
        let same = self.same_ints(rows);
        partition(same, |ordinal| Ok(self.compare_rest(ordinal)?.is_lt()))
    }

    fn equal_range(&mut self, rows: Range<u32>) -> Result<Range<u32>> {
        let same = self.same_ints(rows);
        let end = same.end;
        let first = partition(same, |ordinal| Ok(self.compare_rest(ordinal)?.is_lt()))?;
        equal_from(first, end, |ordinal| Ok(self.compare_rest(ordinal)?.is_eq()))
    }

    /// Those of these rows whose leading columns are the key's; those before them are less, those behind them greater.
    /// Column by column: one that is the same in all of them, as the first ones of a key mostly are, is looked at twice.
    fn same_ints(&self, rows: Range<u32>) -> Range<u32> {
        let place = |ordinal: u32| (ordinal - self.first) as usize;
        let Range { start: mut low, end: mut high } = rows;
        for (ints, wanted) in &self.ints {
            if low == high {
                break;
            }
            let value = |ordinal: u32| ints.get(place(ordinal));
            if value(low) < *wanted {
                low = first_not(low + 1..high, |ordinal| value(ordinal) < *wanted);
            }
            if low < high && value(high - 1) > *wanted {
                high = first_not(low..high - 1, |ordinal| value(ordinal) <= *wanted);
            }
        }
        low..high
    }

    /// The other columns of a row's key beside those of the key.
    fn compare_rest(&mut self, ordinal: u32) -> Result<Ordering> {
        if self.rest.is_empty() {
            // What is left of a longer key.
            return Ok(0.cmp(&self.key.len()));
        }
        let at = (ordinal - self.first) as usize;
        self.buffer.clear();
        for column in &self.rest {
            let value = self.segment.sound(column.offset, column.page.get(column.phys, at))?;
            put_part(self.segment, self.hidden, column.ty, &value, &mut self.buffer)?;
        }
        Ok(self.buffer.as_slice().cmp(self.key))
    }
}

/// Appends a column's part of a key.
fn put_part(segment: &Segment, hidden: bool, ty: &DataType, value: &Datum, out: &mut Vec<u8>) -> Result<()> {
    match value {
        Datum::Null => return Err(segment.file.damaged(0, Damage("a key column holds a null"))),
        Datum::I64(rid) if hidden => out.extend_from_slice(&rid.to_be_bytes()),
        value => key::encode_column(ty, value, out),
    }
    Ok(())
}

/// Takes a column's integer from the front of a key, if it is one and all of it is there.
fn take_int(phys: PhysType, hidden: bool, key: &mut &[u8]) -> Option<i64> {
    let bytes = match phys {
        PhysType::I16 => 2,
        PhysType::I32 => 4,
        PhysType::I64 => 8,
        _ => return None,
    };
    let (part, rest) = key.split_at_checked(bytes)?;
    let value = part.iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let value = match hidden {
        // Row ids are not negative.
        true => i64::try_from(value).ok()?,
        // As a signed number, whose sign bit is flipped.
        false => (value as i64).wrapping_sub(1 << (8 * bytes - 1)),
    };
    *key = rest;
    Some(value)
}

fn equal_from(first: u32, end: u32, mut is_equal: impl FnMut(u32) -> Result<bool>) -> Result<Range<u32>> {
    let mut at = first;
    while at < end && is_equal(at)? {
        at += 1;
    }
    Ok(first..at)
}

/// The first of these ordinals that is not below, or their end. Those below come first.
fn partition(ordinals: Range<u32>, mut below: impl FnMut(u32) -> Result<bool>) -> Result<u32> {
    let Range { start: mut low, end: mut high } = ordinals;
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}

/// [`partition`] by what cannot fail.
fn first_not(ordinals: Range<u32>, below: impl Fn(u32) -> bool) -> u32 {
    let Range { start: mut low, end: mut high } = ordinals;
    while low < high {
        let middle = low + (high - low) / 2;
        if below(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
