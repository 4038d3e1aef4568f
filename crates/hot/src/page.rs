//! A page: records of neighbouring keys, in one buffer, with a slot directory in key order.
//!
//! ```text
//! record: stamp u64 | rid u64 | moved u64 | seq u32 | undo u32 | row_len u32 | row_cap u32 | key_len u32
//!         | key | row (row_cap bytes reserved)
//! ```
//!
//! A row past [`ROW_INLINE_MAX`] stands apart; the record then holds its number. Bytes of replaced records
//! are dead until [`Page::compact`]. Counters per page let scans take or skip a page without asking each
//! version, and sweeps find what is marked: keys with undo, deletions, and moved rows.

use crate::heads::Heads;
use crate::slab::NONE;
use basalt_types::{Stamp, Version, ViewNo};
use std::num::NonZeroU64;

/// A page is split when its records pass this. Tests have small pages, so that few keys fill many.
pub const PAGE_BYTES: usize = if cfg!(test) { 2 << 10 } else { 32 << 10 };
const ROW_INLINE_MAX: usize = PAGE_BYTES / 8;
const HEADER: usize = 44;
const GROWTH_MIN: usize = 1 << 10;

/// `row_len` of a deletion.
const DELETED: u32 = u32::MAX;
/// `row_cap` of a row that stands apart.
const APART: u32 = u32::MAX;
/// `moved` of a version that did not move.
const STAYS: u64 = u64::MAX;
/// In a slot: the key has something to sweep.
const MARK: u32 = 1 << 31;

/// What a version carries besides its row, and where the next older one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub stamp: Stamp,
    pub rid: u64,
    pub seq: u32,
    pub moved_at: Option<ViewNo>,
    pub deleted: bool,
    /// Number of the next older version, or [`NONE`].
    pub undo: u32,
}

impl Header {
    fn marked(&self) -> bool {
        self.undo != NONE || self.odd()
    }

    /// A row that is here and of a version ≤ `upto`.
    pub fn is_settled(&self, upto: Version) -> bool {
        !self.odd() && self.stamp.as_version().is_some_and(|at| at <= upto)
    }

    fn odd(&self) -> bool {
        self.deleted || self.moved_at.is_some()
    }
}

/// A record as stored.
#[derive(Clone, Copy)]
struct Record {
    header: Header,
    row_len: u32,
    row_cap: u32,
    key_len: u32,
}

pub struct Page {
    bytes: Vec<u8>,
    heads: Heads,
    /// Offsets of the records in key order, with [`MARK`].
    slots: Vec<u32>,
    apart: Vec<Box<[u8]>>,
    apart_bytes: usize,
    dead: usize,
    pub prev: u32,
    pub next: u32,
    /// What the last sweep depended on, if nothing has changed here since.
    pub swept_for: Option<NonZeroU64>,
    /// [`Store::changes`](crate::store::Store::changes) when this page was last touched, or a neighbour left it its keys.
    pub touched: u64,
    /// Bounds of the decided stamps of newest versions; `least` from below, `greatest` from above.
    least: u64,
    greatest: u64,
    undecided: u32,
    odd: u32,
    chained: u32,
    marked: u32,
    moved: u32,
}

impl Default for Page {
    fn default() -> Page {
        Page {
            bytes: Vec::new(),
            heads: Heads::default(),
            slots: Vec::new(),
            apart: Vec::new(),
            apart_bytes: 0,
            dead: 0,
            prev: NONE,
            next: NONE,
            swept_for: None,
            touched: 0,
            least: u64::MAX,
            greatest: 0,
            undecided: 0,
            odd: 0,
            chained: 0,
            marked: 0,
            moved: 0,
        }
    }
}

/// What a page adds to the totals of its store.
#[derive(Clone, Copy)]
pub struct Weight {
    pub bytes: usize,
    pub keys: usize,
    pub rows: usize,
    /// Bytes of rows that have moved, about.
    pub moved_bytes: usize,
}

impl Page {
    /// A page that will be filled to the end.
    pub fn to_fill() -> Page {
        Page { bytes: Vec::with_capacity(PAGE_BYTES), ..Page::default() }
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn weight(&self) -> Weight {
        let apart = self.apart_bytes + self.apart.capacity() * size_of::<Box<[u8]>>();
        let slots = self.slots.capacity() * size_of::<u32>();
        let bytes = self.bytes.capacity() + self.heads.bytes() + slots + apart;
        Weight {
            bytes,
            moved_bytes: bytes * self.moved as usize / self.slots.len().max(1),
            keys: self.slots.len(),
            rows: self.slots.len() - self.odd as usize,
        }
    }

    /// Bytes of the records in use.
    pub fn live_bytes(&self) -> usize {
        self.bytes.len() - self.dead
    }

    pub fn all_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Any key with undo, a deletion or a moved row.
    pub fn has_marks(&self) -> bool {
        self.marked > 0
    }

    /// An upper bound of all stamps here, if all are decided.
    pub fn greatest(&self) -> Option<Version> {
        (self.undecided == 0).then_some(Version(self.greatest))
    }

    /// Each key's newest version decides for all readers from the bound of [`greatest`](Page::greatest) on: it is a row
    /// that stays here, or a deletion.
    pub fn is_plain(&self) -> bool {
        self.undecided == 0 && self.moved == 0
    }

    /// Each key's newest version is a row that stays here and that every reader at `snapshot` sees.
    pub fn wholly_visible(&self, snapshot: Version) -> bool {
        self.undecided == 0 && self.odd == 0 && self.greatest <= snapshot.0
    }

    /// No key has a version that a reader at `snapshot` could see.
    pub fn wholly_invisible(&self, snapshot: Version) -> bool {
        self.undecided == 0 && self.chained == 0 && self.least > snapshot.0
    }

    /// Nothing here is both a row and not moved.
    pub fn has_no_rows(&self) -> bool {
        self.odd as usize == self.len()
    }

    #[inline]
    pub fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.heads.find(key, |i| self.key(i))
    }

    /// The first slot of keys from this one on, or behind it.
    pub fn slot_of(&self, key: &[u8], behind: bool) -> usize {
        self.find(key).map_or_else(|slot| slot, |slot| slot + usize::from(behind))
    }

    #[inline]
    pub fn key(&self, slot: usize) -> &[u8] {
        key_at(&self.bytes, &self.slots, slot)
    }

    #[inline]
    pub fn header(&self, slot: usize) -> Header {
        self.record(slot).1.header
    }

    /// All of an entry, read once.
    #[inline]
    pub fn entry(&self, slot: usize) -> (Header, &[u8], Option<&[u8]>) {
        let (at, record) = self.record(slot);
        let key = &self.bytes[at + HEADER..][..record.key_len as usize];
        (record.header, key, self.row_of(at, &record))
    }

    /// The first slot from `from` on whose key has something to sweep.
    pub fn next_marked(&self, from: usize) -> Option<usize> {
        self.slots.get(from..)?.iter().position(|slot| slot & MARK != 0).map(|i| from + i)
    }

    /// Bytes that a new record needs.
    pub fn need(key: &[u8], row: Option<&[u8]>) -> usize {
        HEADER + key.len() + row.map_or(0, |row| if row.len() > ROW_INLINE_MAX { 4 } else { row.len() })
    }

    /// Inserts a key that `find` put at `slot`. `header.deleted` follows from `row`.
    pub fn insert(&mut self, slot: usize, key: &[u8], header: Header, row: Option<&[u8]>) {
        let header = Header { deleted: row.is_none(), ..header };
        let at = self.append(key, &header, row);
        let (bytes, slots) = (&self.bytes, &self.slots);
        self.heads.insert(slot, key, |i| key_at(bytes, slots, i));
        self.slots.insert(slot, at | if header.marked() { MARK } else { 0 });
        self.count_in(&header);
    }

    /// Replaces the newest version of a key. `header.deleted` follows from `row`.
    pub fn replace(&mut self, slot: usize, header: Header, row: Option<&[u8]>) {
        let header = Header { deleted: row.is_none(), ..header };
        let (at, old) = self.record(slot);
        self.count_out(&old.header);
        let row_len = row.map_or(0, <[u8]>::len);
        if old.row_cap != APART && row_len <= old.row_cap as usize {
            let len = row.map_or(DELETED, |row| row.len() as u32);
            write_record(&mut self.bytes[at..], &Record { header, row_len: len, ..old });
            let body = at + HEADER + old.key_len as usize;
            self.bytes[body..body + row_len].copy_from_slice(row.unwrap_or_default());
            self.slots[slot] = at as u32;
        } else {
            self.forget(at, &old);
            let key = self.key(slot).to_vec();
            self.slots[slot] = self.append(&key, &header, row);
        }
        self.slots[slot] |= if header.marked() { MARK } else { 0 };
        self.count_in(&header);
    }

    /// Changes what a version carries; its row stays.
    pub fn set_header(&mut self, slot: usize, header: Header) {
        let (at, old) = self.record(slot);
        debug_assert_eq!(old.header.deleted, header.deleted, "the row stays");
        self.count_out(&old.header);
        write_record(&mut self.bytes[at..], &Record { header, ..old });
        self.slots[slot] = at as u32 | if header.marked() { MARK } else { 0 };
        self.count_in(&header);
    }

    pub fn remove(&mut self, slot: usize) {
        let (at, record) = self.record(slot);
        self.count_out(&record.header);
        self.forget(at, &record);
        self.heads.remove(slot);
        self.slots.remove(slot);
    }

    /// Rewrites the page without its dead bytes and with exact bounds; memory shrinks to what is in use.
    pub fn compact(&mut self) {
        let (prev, next) = (self.prev, self.next);
        *self = Page { prev, next, ..self.copy(0, self.len()) };
    }

    /// Moves the upper half (by bytes) to a new page; both are left compact. Needs two keys or more.
    pub fn split(&mut self) -> Page {
        let half = self.live_bytes() / 2;
        let mut below = 0;
        let middle = (0..self.len()).position(|slot| {
            let (_, record) = self.record(slot);
            below += record.size();
            below > half
        });
        let middle = middle.unwrap_or(0).clamp(1, self.len() - 1);
        let right = self.copy(middle, self.len());
        let (prev, next) = (self.prev, self.next);
        *self = Page { prev, next, ..self.copy(0, middle) };
        right
    }

    /// Takes over the entries of the page that follows in key order.
    pub fn absorb(&mut self, next: &Page) {
        self.bytes.reserve_exact(next.live_bytes());
        for slot in 0..next.len() {
            let (header, key, row) = next.entry(slot);
            self.insert(self.len(), key, header, row);
        }
    }

    fn copy(&self, from: usize, to: usize) -> Page {
        let size = (from..to).map(|slot| self.record(slot).1.size()).sum();
        let mut page = Page { bytes: Vec::with_capacity(size), ..Page::default() };
        page.slots.reserve_exact(to - from);
        for slot in from..to {
            let (header, key, row) = self.entry(slot);
            let at = page.append(key, &header, row);
            page.slots.push(at | if header.marked() { MARK } else { 0 });
            page.count_in(&header);
        }
        page.heads = Heads::build(page.slots.len(), |i| key_at(&page.bytes, &page.slots, i));
        page
    }

    fn record(&self, slot: usize) -> (usize, Record) {
        let at = (self.slots[slot] & !MARK) as usize;
        (at, read_record(&self.bytes[at..]))
    }

    #[inline]
    fn row_of(&self, at: usize, record: &Record) -> Option<&[u8]> {
        if record.header.deleted {
            return None;
        }
        let body = &self.bytes[at + HEADER + record.key_len as usize..];
        if record.row_cap == APART {
            let number = u32::from_le_bytes(*body.first_chunk().expect("a record is whole"));
            return Some(&self.apart[number as usize]);
        }
        Some(&body[..record.row_len as usize])
    }

    fn append(&mut self, key: &[u8], header: &Header, row: Option<&[u8]>) -> u32 {
        let at = self.bytes.len();
        let need = Page::need(key, row);
        if self.bytes.capacity() - at < need {
            // A page that fills at random grows by a quarter, so that little of it is reserved in vain.
            let more = need.max((at / 4).max(GROWTH_MIN));
            self.bytes.reserve_exact(more.min(PAGE_BYTES.saturating_sub(at)).max(need));
        }
        let key_len = u32::try_from(key.len()).expect("a key is shorter than 4 GiB");
        let (row_len, row_cap) = match row {
            None => (DELETED, 0),
            Some(row) => {
                let len = u32::try_from(row.len()).ok().filter(|len| *len < DELETED).expect("a row is below 4 GiB");
                (len, if row.len() > ROW_INLINE_MAX { APART } else { len })
            }
        };
        self.bytes.resize(at + HEADER, 0);
        write_record(&mut self.bytes[at..], &Record { header: *header, row_len, row_cap, key_len });
        self.bytes.extend_from_slice(key);
        match row {
            Some(row) if row_cap == APART => {
                let number = self.apart.iter().position(|free| free.is_empty()).unwrap_or(self.apart.len());
                if number == self.apart.len() {
                    self.apart.push(row.into());
                } else {
                    self.apart[number] = row.into();
                }
                self.apart_bytes += row.len();
                self.bytes.extend_from_slice(&(number as u32).to_le_bytes());
            }
            Some(row) => self.bytes.extend_from_slice(row),
            None => {}
        }
        u32::try_from(at).ok().filter(|at| at & MARK == 0).expect("a page stays below 2 GiB")
    }

    /// The bytes of a record are dead, and its row, if apart, is dropped.
    fn forget(&mut self, at: usize, record: &Record) {
        self.dead += record.size();
        if record.row_cap == APART {
            let body = &self.bytes[at + HEADER + record.key_len as usize..];
            let number = u32::from_le_bytes(*body.first_chunk().expect("a record is whole"));
            let row = std::mem::take(&mut self.apart[number as usize]);
            self.apart_bytes -= row.len();
        }
    }

    fn count_in(&mut self, header: &Header) {
        match header.stamp.as_version() {
            Some(version) => {
                self.least = self.least.min(version.0);
                self.greatest = self.greatest.max(version.0);
            }
            None => self.undecided += 1,
        }
        self.odd += u32::from(header.odd());
        self.chained += u32::from(header.undo != NONE);
        self.marked += u32::from(header.marked());
        self.moved += u32::from(header.moved_at.is_some());
    }

    fn count_out(&mut self, header: &Header) {
        self.undecided -= u32::from(header.stamp.as_version().is_none());
        self.odd -= u32::from(header.odd());
        self.chained -= u32::from(header.undo != NONE);
        self.marked -= u32::from(header.marked());
        self.moved -= u32::from(header.moved_at.is_some());
    }
}

impl Record {
    fn size(&self) -> usize {
        HEADER + self.key_len as usize + if self.row_cap == APART { 4 } else { self.row_cap as usize }
    }
}

#[inline]
fn key_at<'p>(bytes: &'p [u8], slots: &[u32], slot: usize) -> &'p [u8] {
    let record = &bytes[(slots[slot] & !MARK) as usize..];
    let len = u32::from_le_bytes(record[40..44].try_into().expect("4 bytes"));
    &record[HEADER..HEADER + len as usize]
}

#[inline]
fn read_record(bytes: &[u8]) -> Record {
    let bytes: &[u8; HEADER] = bytes.first_chunk().expect("a slot points at a whole record");
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let moved = u64_at(16);
    let row_len = u32_at(32);
    Record {
        header: Header {
            stamp: Stamp::from_raw(u64_at(0)),
            rid: u64_at(8),
            moved_at: (moved != STAYS).then_some(ViewNo(moved)),
            seq: u32_at(24),
            undo: u32_at(28),
            deleted: row_len == DELETED,
        },
        row_len,
        row_cap: u32_at(36),
        key_len: u32_at(40),
    }
}

fn write_record(bytes: &mut [u8], record: &Record) {
    let header = &record.header;
    let bytes: &mut [u8; HEADER] = bytes.first_chunk_mut().expect("a record is whole");
    bytes[0..8].copy_from_slice(&header.stamp.raw().to_le_bytes());
    bytes[8..16].copy_from_slice(&header.rid.to_le_bytes());
    bytes[16..24].copy_from_slice(&header.moved_at.map_or(STAYS, |view| view.0).to_le_bytes());
    bytes[24..28].copy_from_slice(&header.seq.to_le_bytes());
    bytes[28..32].copy_from_slice(&header.undo.to_le_bytes());
    bytes[32..36].copy_from_slice(&record.row_len.to_le_bytes());
    bytes[36..40].copy_from_slice(&record.row_cap.to_le_bytes());
    bytes[40..44].copy_from_slice(&record.key_len.to_le_bytes());
}

#[cfg(test)]
mod tests;
