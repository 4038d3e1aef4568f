//! Keys of rows, and the index that finds rows by them.
//!
//! A sorted file has a sparse index: of every 128th row the shortest prefix of its key that is greater than
//! the key before it (the whole key where both are equal). Any other file has a table of (upper half of the
//! key's hash, ordinal), sorted, in pages whose first hashes are at hand.

use super::{KeySpec, SegmentColumn, SegmentSchema, ValueOrder};
use crate::Result;
use crate::encoding::{Damage, Decoded};
use crate::frame::{FramedFile, SECTION_KEY_HASHES, SECTION_PAGE_BYTES, SECTION_SPARSE_KEYS, Section};
use crate::store::FileSink;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef};
use basalt_types::{ColumnId, DataType, Key, PhysType, RangeKind, Rid, batch, key};
use bytes::Bytes;
use std::ops::Range;

/// Rows between two entries of a sparse index.
pub(super) const SPARSE_ROWS: u32 = 128;
const HASH_ENTRY_BYTES: usize = 8;

/// Keys of consecutive rows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Keys {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// # Panics
    /// If there is no such key.
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] as usize };
        &self.bytes[start..self.ends[index] as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|index| self.get(index))
    }

    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len() as u32);
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

impl SegmentSchema {
    /// Positions of the key columns in the schema; `None` if one is missing.
    pub(super) fn key_positions(&self) -> Option<Vec<usize>> {
        let position = |id: &ColumnId| self.columns.iter().position(|column| column.id == *id);
        match &self.key {
            KeySpec::Hidden => {
                let at = position(&super::HIDDEN_KEY).filter(|at| self.columns[*at].ty == PhysType::I64)?;
                Some(vec![at])
            }
            KeySpec::Columns(columns) => columns.iter().map(position).collect(),
        }
    }

    /// Ids of the key columns, in key order.
    pub(super) fn key_columns(&self) -> Vec<ColumnId> {
        match &self.key {
            KeySpec::Hidden => vec![super::HIDDEN_KEY],
            KeySpec::Columns(columns) => columns.clone(),
        }
    }
}

/// A type whose values are encoded in keys as those of the column.
pub(super) fn key_type(column: &SegmentColumn) -> DataType {
    match (column.order, column.ty) {
        (ValueOrder::Numeric, _) => DataType::Numeric(None),
        (ValueOrder::Padded, _) => DataType::Bpchar(None),
        (ValueOrder::Interval, _) => DataType::Interval,
        (ValueOrder::Jsonb, _) => DataType::Jsonb,
        (ValueOrder::NumericRange, _) => DataType::Range(RangeKind::Numeric),
        (ValueOrder::NumericMultirange, _) => DataType::Multirange(RangeKind::Numeric),
        (_, PhysType::Fixed16) => DataType::Uuid,
        _ => DataType::Bytea,
    }
}

impl SegmentSchema {
    /// The keys of rows that are given as [`SegmentWriter::push`](super::SegmentWriter::push) takes them. `None`: a
    /// key column is not there, or holds a null.
    pub fn keys_of(&self, columns: &[ArrayRef]) -> Option<Keys> {
        let key_columns: Vec<ArrayRef> = self.key_positions()?.iter().map(|at| columns[*at].clone()).collect();
        let mut keys = Keys::default();
        encode_keys(self, &key_columns, 0..columns[0].len(), &mut keys).ok()?;
        Some(keys)
    }
}

/// Appends the keys of rows. `columns` are the key columns, in key order.
pub(super) fn encode_keys(
    schema: &SegmentSchema,
    columns: &[ArrayRef],
    rows: Range<usize>,
    out: &mut Keys,
) -> Decoded<()> {
    if columns.iter().any(|column| column.null_count() > 0) {
        return Err(Damage("a key column holds a null"));
    }
    if schema.key == KeySpec::Hidden {
        for rid in &columns[0].as_primitive::<Int64Type>().values()[rows] {
            out.bytes.extend_from_slice(Key::hidden(Rid(*rid as u64)).as_bytes());
            out.ends.push(out.bytes.len() as u32);
        }
        return Ok(());
    }
    let positions = schema.key_positions().ok_or(Damage("key columns are not in the schema"))?;
    let specs: Vec<(PhysType, DataType)> =
        positions.iter().map(|at| (schema.columns[*at].ty, key_type(&schema.columns[*at]))).collect();
    for row in rows {
        for ((phys, ty), column) in specs.iter().zip(columns) {
            match phys {
                PhysType::Bytes => key::encode_bytes_column(ty, column.as_binary_view().value(row), &mut out.bytes),
                phys => key::encode_column(ty, &batch::datum_at(*phys, column, row), &mut out.bytes),
            }
        }
        out.ends.push(out.bytes.len() as u32);
    }
    Ok(())
}

/// Collects what the key index needs while rows are written.
pub(super) struct KeyIndexBuilder {
    sorted: bool,
    hashes: Option<Vec<u64>>,
    separators: Keys,
    least: Vec<u8>,
    last: Vec<u8>,
    rows: u32,
}

impl KeyIndexBuilder {
    pub fn new(sorted: bool, filter: bool) -> KeyIndexBuilder {
        let hashes = (filter || !sorted).then(Vec::new);
        KeyIndexBuilder { sorted, hashes, separators: Keys::default(), least: Vec::new(), last: Vec::new(), rows: 0 }
    }

    /// Adds the next row; false if the file is sorted and the key is below the last one.
    #[must_use]
    pub fn push(&mut self, key: &[u8]) -> bool {
        if let Some(hashes) = &mut self.hashes {
            hashes.push(crate::key_hash(key));
        }
        if !self.sorted {
            return self.push_unsorted(key);
        }
        if self.rows > 0 && key < self.last.as_slice() {
            return false;
        }
        if self.rows.is_multiple_of(SPARSE_ROWS) {
            let cut = if self.rows == 0 { 0 } else { separator_bytes(&self.last, key) };
            self.separators.bytes.extend_from_slice(&key[..cut]);
            self.separators.ends.push(self.separators.bytes.len() as u32);
        }
        if self.rows == 0 {
            self.least = key.to_vec();
        }
        self.rows += 1;
        self.last.clear();
        self.last.extend_from_slice(key);
        true
    }

    fn push_unsorted(&mut self, key: &[u8]) -> bool {
        if self.rows == 0 || key < self.least.as_slice() {
            self.least = key.to_vec();
        }
        if self.rows == 0 || key > self.last.as_slice() {
            self.last = key.to_vec();
        }
        self.rows += 1;
        true
    }

    /// The last key of a sorted file, the greatest of any other.
    pub fn last(&self) -> &[u8] {
        &self.last
    }

    pub fn key_range(&self) -> Option<(Key, Key)> {
        (self.rows > 0).then(|| (Key::from(self.least.as_slice()), Key::from(self.last.as_slice())))
    }

    /// Writes the key index and, if asked, the filter.
    pub fn finish(self, filter: bool, sink: &mut FileSink) -> Result<Vec<Section>> {
        let mut sections = Vec::new();
        if filter && self.rows > 0 {
            sections.push(crate::frame::write_filter(sink, self.hashes.as_deref().unwrap_or_default())?);
        }
        if self.sorted {
            let content = self.separators.to_bytes();
            sections.push(Section::write(sink, SECTION_SPARSE_KEYS, content.len() as u32, &content, Vec::new())?);
        } else {
            sections.push(write_hashes(sink, self.hashes.unwrap_or_default())?);
        }
        Ok(sections)
    }
}

/// Bytes of `key` that make it greater than `before`; all of them if the two are equal.
fn separator_bytes(before: &[u8], key: &[u8]) -> usize {
    let common = before.iter().zip(key).take_while(|(a, b)| a == b).count();
    (common + 1).min(key.len())
}

fn write_hashes(sink: &mut FileSink, hashes: Vec<u64>) -> Result<Section> {
    let mut entries: Vec<u64> = hashes.iter().zip(0u64..).map(|(hash, ordinal)| hash >> 32 << 32 | ordinal).collect();
    entries.sort_unstable();
    let (mut content, mut first_hashes) = (Vec::with_capacity(entries.len() * HASH_ENTRY_BYTES), Vec::new());
    for page in entries.chunks(SECTION_PAGE_BYTES as usize / HASH_ENTRY_BYTES) {
        first_hashes.extend_from_slice(&((page[0] >> 32) as u32).to_le_bytes());
        page.iter().for_each(|entry| content.extend_from_slice(&entry.to_le_bytes()));
    }
    Section::write(sink, SECTION_KEY_HASHES, SECTION_PAGE_BYTES, &content, first_hashes)
}

impl Keys {
    /// `count u32 | end u32… | bytes`
    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(4 + self.ends.len() * 4 + self.bytes.len());
        out.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        self.ends.iter().for_each(|end| out.extend_from_slice(&end.to_le_bytes()));
        out.extend_from_slice(&self.bytes);
        out
    }
}

/// A sparse index as it lies in the file.
pub(super) struct SparseKeys {
    block: Bytes,
    count: usize,
}

impl SparseKeys {
    pub fn parse(block: Bytes, rows: u32) -> Decoded<SparseKeys> {
        const WHAT: Damage = Damage("sparse key index");
        let sparse = SparseKeys { count: rows.div_ceil(SPARSE_ROWS) as usize, block };
        let head = 4 + sparse.count * 4;
        if sparse.block.len() < head || word(&sparse.block, 0) as usize != sparse.count {
            return Err(WHAT);
        }
        let ends = || (0..sparse.count).map(|i| word(&sparse.block, 1 + i));
        let last = ends().last().unwrap_or(0) as usize;
        if !ends().is_sorted() || sparse.block.len() - head != last {
            return Err(WHAT);
        }
        Ok(sparse)
    }

    fn get(&self, index: usize) -> &[u8] {
        let bytes = &self.block[4 + self.count * 4..];
        let start = if index == 0 { 0 } else { word(&self.block, index) as usize };
        &bytes[start..word(&self.block, index + 1) as usize]
    }

    fn partition(&self, below: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            if below(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Rows outside of this range have other keys; the first row not below `key` is inside it or at its end.
    pub fn candidates(&self, key: &[u8], rows: u32) -> Range<u32> {
        let first = self.partition(|separator| separator < key).saturating_sub(1) as u32;
        let end = self.partition(|separator| separator <= key) as u32;
        first * SPARSE_ROWS..(end * SPARSE_ROWS).min(rows).max(first * SPARSE_ROWS)
    }
}

fn word(block: &[u8], index: usize) -> u32 {
    u32::from_le_bytes(block[index * 4..][..4].try_into().expect("4 bytes"))
}

/// Ordinals whose keys' hashes agree with `hash` in the upper half, ascending.
pub(super) fn find_hash(file: &FramedFile, section: &Section, hash: u64) -> Result<Vec<u32>> {
    let wanted = (hash >> 32) as u32;
    let first_hashes = &section.extra;
    if first_hashes.len() != section.pages() * 4 {
        return Err(file.damaged(section.offset, Damage("key hashes without the first of each page")));
    }
    let mut found = Vec::new();
    let (firsts, _) = first_hashes.as_chunks::<4>();
    let first_page = firsts.partition_point(|first| u32::from_le_bytes(*first) < wanted);
    for page in first_page.saturating_sub(1)..section.pages() {
        if word(first_hashes, page) > wanted {
            break;
        }
        let block = file.block(section.page(page))?;
        let (entries, _) = block.as_chunks::<HASH_ENTRY_BYTES>();
        let entry = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let from = entries.partition_point(|bytes| (entry(bytes) >> 32) < u64::from(wanted));
        let same = entries[from..].iter().map(entry).take_while(|entry| entry >> 32 == u64::from(wanted));
        found.extend(same.map(|entry| entry as u32));
    }
    Ok(found)
}

/// Calls `each` with the upper half of a key's hash and the row, in the order of both, until it says false.
pub(super) fn each_hash(
    file: &FramedFile,
    section: &Section,
    each: &mut dyn FnMut(u32, u32) -> Result<bool>,
) -> Result<()> {
    for page in 0..section.pages() {
        let block = file.block(section.page(page))?;
        let (entries, _) = block.as_chunks::<HASH_ENTRY_BYTES>();
        for entry in entries.iter().map(|bytes| u64::from_le_bytes(*bytes)) {
            if !each((entry >> 32) as u32, entry as u32)? {
                return Ok(());
            }
        }
    }
    Ok(())
}
