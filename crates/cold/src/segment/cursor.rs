//! Single values and keys of an open segment, one ordinal at a time. A cursor keeps the page at hand, so that
//! a search among neighbours fetches each page once.

use super::directory::page_rows;
use super::keys::key_type;
use super::page::Page;
use super::reader::Segment;
use super::{KeySpec, PAGE_ROWS, ROW_GROUP_ROWS};
use crate::Result;
use crate::encoding::Damage;
use crate::encoding::dictionary::Shared;
use basalt_types::{DataType, Datum, key};
use bytes::Bytes;
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
        let segment = self.segment;
        let first_ordinal = ordinal / PAGE_ROWS * PAGE_ROWS;
        let loaded = match &mut self.page {
            Some(page) if page.first_ordinal == first_ordinal => page,
            slot => slot.insert(load(segment, self.chunk, ordinal)?),
        };
        let ty = segment.chunk_type(self.chunk);
        let page = Page::parse(&loaded.block, ty, loaded.rows, loaded.shared.as_deref());
        let at = (ordinal - first_ordinal) as usize;
        match page {
            Ok(page) if at < loaded.rows => segment.sound(loaded.offset, page.get(ty, at)),
            Ok(_) => Err(segment.out_of_range(ordinal)),
            Err(damage) => Err(segment.file.damaged(loaded.offset, damage)),
        }
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
