//! Single values and keys of an open segment, one ordinal at a time. A cursor keeps the page at hand, so that
//! a search among neighbours fetches each page once.

use super::directory::page_rows;
use super::keys::key_type;
use super::page::{Page, PageValues, Validity};
use super::reader::Segment;
use super::{KeySpec, PAGE_ROWS, ROW_GROUP_ROWS};
use crate::Result;
use crate::encoding::Damage;
use crate::encoding::dictionary::Shared;
use basalt_types::{DataType, Datum, PhysType, key};
use bytes::Bytes;
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
    block: Bytes,
    shared: Option<Arc<Shared>>,
}

impl<'s> PageCursor<'s> {
    pub fn new(segment: &'s Segment, chunk: usize) -> PageCursor<'s> {
        PageCursor { segment, chunk, page: None }
    }

    pub fn get(&mut self, ordinal: u32) -> Result<Datum> {
        let (segment, ty) = (self.segment, self.segment.chunk_type(self.chunk));
        let (page, first, offset) = self.page_of(ordinal)?;
        let at = (ordinal - first) as usize;
        match at < page.rows {
            true => segment.sound(offset, page.get(ty, at)),
            false => Err(segment.out_of_range(ordinal)),
        }
    }

    /// The page of a row, the ordinal of the page's first row, and where the page is in the file.
    fn page_of(&mut self, ordinal: u32) -> Result<(Page<'_>, u32, u64)> {
        let segment = self.segment;
        if !self.has_at_hand(ordinal) {
            self.page = Some(load(segment, self.chunk, ordinal)?);
        }
        let loaded = self.page.as_ref().ok_or_else(|| segment.out_of_range(ordinal))?;
        let ty = segment.chunk_type(self.chunk);
        let page = Page::parse(&loaded.block, ty, loaded.rows, loaded.shared.as_deref());
        Ok((segment.sound(loaded.offset, page)?, loaded.first_ordinal, loaded.offset))
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
    let extent = entry.pages[page as usize].extent;
    Ok(LoadedPage {
        first_ordinal: ordinal / PAGE_ROWS * PAGE_ROWS,
        rows: page_rows(segment.layout.row_groups[row_group].rows, page) as usize,
        offset: extent.offset,
        block: segment.file.block(extent)?,
        shared: segment.shared(entry)?,
    })
}

/// Keys of rows.
pub(super) struct KeyCursor<'s> {
    segment: &'s Segment,
    columns: Vec<(PageCursor<'s>, DataType)>,
    key: Vec<u8>,
}

impl<'s> KeyCursor<'s> {
    pub fn new(segment: &'s Segment) -> KeyCursor<'s> {
        let schema = &segment.layout.schema;
        let positions = schema.key_positions().unwrap_or_default().into_iter();
        let columns = positions.map(|at| (PageCursor::new(segment, at), key_type(&schema.columns[at]))).collect();
        KeyCursor { segment, columns, key: Vec::with_capacity(32) }
    }

    /// Whether the keys around a row cost nothing to fetch.
    pub fn has_at_hand(&self, ordinal: u32) -> bool {
        self.columns.iter().all(|(cursor, _)| cursor.has_at_hand(ordinal))
    }

    /// The first of these rows whose key is not below `key`, or their end. They are in key order.
    pub fn lower_bound(&mut self, rows: Range<u32>, key: &[u8]) -> Result<u32> {
        if let Some(found) = self.lower_bound_of_int(&rows, key)? {
            return Ok(found);
        }
        partition(rows, |ordinal| Ok(self.get(ordinal)? < key))
    }

    /// The same for a key of one integer, where all of the rows are in one page.
    fn lower_bound_of_int(&mut self, rows: &Range<u32>, key: &[u8]) -> Result<Option<u32>> {
        let ([(cursor, _)], false) = (self.columns.as_mut_slice(), rows.is_empty()) else { return Ok(None) };
        let wanted = match cursor.segment.chunk_type(cursor.chunk) {
            PhysType::I32 => key.try_into().ok().map(|key| i64::from((u32::from_be_bytes(key) ^ 1 << 31) as i32)),
            PhysType::I64 if cursor.segment.layout.schema.key != KeySpec::Hidden => {
                key.try_into().ok().map(|key| (u64::from_be_bytes(key) ^ 1 << 63) as i64)
            }
            _ => None,
        };
        let Some(wanted) = wanted else { return Ok(None) };
        let (page, first, _) = cursor.page_of(rows.start)?;
        let (Validity::NoNulls, PageValues::Ints(ints)) = (page.validity, &page.values) else { return Ok(None) };
        if (rows.end - first) as usize > page.rows {
            return Ok(None);
        }
        partition(rows.clone(), |ordinal| Ok(ints.get((ordinal - first) as usize) < wanted)).map(Some)
    }

    pub fn get(&mut self, ordinal: u32) -> Result<&[u8]> {
        let hidden = self.segment.layout.schema.key == KeySpec::Hidden;
        self.key.clear();
        for (cursor, ty) in &mut self.columns {
            match cursor.get(ordinal)? {
                Datum::Null => return Err(self.segment.file.damaged(0, Damage("a key column holds a null"))),
                Datum::I64(rid) if hidden => self.key.extend_from_slice(&rid.to_be_bytes()),
                value => key::encode_column(ty, &value, &mut self.key),
            }
        }
        Ok(&self.key)
    }
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
