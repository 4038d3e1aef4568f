//! The output of a scan: keys and rows side by side in one buffer, so that a row costs no allocation.

use basalt_types::{Rid, Stamp};

/// One row of [`Rows`], borrowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HotRow<'a> {
    pub key: &'a [u8],
    pub row: &'a [u8],
    pub rid: Rid,
    /// Of the version. A transaction's id if the row is the reader's own, or its commit is so fresh that
    /// the row has yet to be restamped: then the transaction table knows the version.
    pub stamp: Stamp,
}

#[derive(Clone, Copy)]
struct Entry {
    start: usize,
    key_len: u32,
    row_len: u32,
    rid: Rid,
    stamp: Stamp,
}

/// Rows in key order. Keep one and [`clear`](Rows::clear) it between chunks: its memory is reused.
#[derive(Default)]
pub struct Rows {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

impl Rows {
    pub fn new() -> Rows {
        Rows::default()
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.entries.clear();
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of the keys and rows held.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub fn get(&self, i: usize) -> HotRow<'_> {
        let entry = self.entries[i];
        let (key, row) = self.bytes[entry.start..][..entry.key_len as usize + entry.row_len as usize]
            .split_at(entry.key_len as usize);
        HotRow { key, row, rid: entry.rid, stamp: entry.stamp }
    }

    pub fn iter(&self) -> impl ExactSizeIterator<Item = HotRow<'_>> + '_ {
        (0..self.entries.len()).map(|i| self.get(i))
    }

    /// Appends a row.
    pub fn push(&mut self, key: &[u8], row: &[u8], rid: Rid, stamp: Stamp) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(row);
        self.entries.push(Entry { start, key_len: key.len() as u32, row_len: row.len() as u32, rid, stamp });
    }
}
