//! What the tablet's latch protects: pages, index, undo, and the queue of pages with something to sweep.
//!
//! Invariants: the index leads every key to the page that holds it or would; pages are linked in key
//! order; there is at least one page, and only a sole page is empty; a page with marks is queued; `total`
//! is the sum of the pages' weights. Whatever changes the keys or versions of a range touches a page that the
//! range reaches afterwards: a page that goes touches both neighbours, of which the index lets one inherit, and one that
//! loses its first key the page before it.

use crate::heads::common_len;
use crate::index::Index;
use crate::page::{Header, PAGE_BYTES, Page, Weight};
use crate::queue::Queue;
use crate::slab::{NONE, Slab};
use crate::version::Spot;
use basalt_types::{Key, Stamp, TxnId, Version, ViewNo};
use std::cmp::Ordering;

/// A version that is not its key's newest; `header.undo` names the next older one.
pub struct Older {
    pub header: Header,
    pub row: Option<Box<[u8]>>,
}

impl Default for Older {
    fn default() -> Older {
        let header =
            Header { stamp: Stamp::version(Version::ZERO), rid: 0, seq: 0, moved_at: None, deleted: true, undo: NONE };
        Older { header, row: None }
    }
}

/// A place in the pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    pub page: u32,
    pub slot: usize,
}

impl Place {
    pub fn spot(self) -> Spot {
        Spot { page: self.page, slot: self.slot as u32 }
    }
}

pub struct Store {
    pub pages: Slab<Page>,
    index: Index,
    pub undo: Slab<Older>,
    undo_row_bytes: usize,
    pub queue: Queue,
    /// How often what readers may find has been changed. Sweeping changes no answer.
    pub changes: u64,
    /// The view of a move that is being prepared.
    pub moving: Option<ViewNo>,
    /// Keys marked for it that were written since.
    pub disturbed: Vec<Key>,
    first: u32,
    last: u32,
    total: Weight,
}

impl Default for Store {
    fn default() -> Store {
        let mut pages = Slab::default();
        let page = pages.insert(Page::default());
        Store {
            pages,
            index: Index::new(page),
            undo: Slab::default(),
            undo_row_bytes: 0,
            queue: Queue::default(),
            changes: 0,
            moving: None,
            disturbed: Vec::new(),
            first: page,
            last: page,
            total: Weight { bytes: 0, keys: 0, rows: 0, moved_bytes: 0 },
        }
    }
}

impl Store {
    /// Where `key` is (`Ok`), or where it would be inserted.
    #[inline]
    pub fn locate(&self, key: &[u8]) -> Result<Place, Place> {
        self.locate_in(self.index.find(key), key)
    }

    /// The first place of keys from this one on, or behind it.
    pub fn place_of(&self, key: &[u8], behind: bool) -> Place {
        let page = self.index.find(key);
        Place { page, slot: self.pages[page].slot_of(key, behind) }
    }

    /// `locate` for writers: keys greater than all need no descent, nor do keys within the page at hand.
    pub fn locate_near(&self, page: u32, key: &[u8]) -> Result<Place, Place> {
        let last = &self.pages[self.last];
        if last.len() > 0 && last.key(last.len() - 1) < key {
            return Err(Place { page: self.last, slot: last.len() });
        }
        if page != NONE {
            let near = &self.pages[page];
            if near.len() > 1 && near.key(0) <= key && key <= near.key(near.len() - 1) {
                return self.locate_in(page, key);
            }
        }
        self.locate(key)
    }

    /// The same for a key that may have been found at this spot before.
    pub fn locate_at(&self, spot: Spot, key: &[u8]) -> Result<Place, Place> {
        let place = Place { page: spot.page, slot: spot.slot as usize };
        if spot.is_known() && place.slot < self.pages[place.page].len() {
            // A page that went, or has others' keys by now, has not this one.
            if self.pages[place.page].key(place.slot) == key {
                return Ok(place);
            }
        }
        self.locate_near(spot.page, key)
    }

    fn locate_in(&self, page: u32, key: &[u8]) -> Result<Place, Place> {
        match self.pages[page].find(key) {
            Ok(slot) => Ok(Place { page, slot }),
            Err(slot) => Err(Place { page, slot }),
        }
    }

    /// Puts a version on top of a key's newest, or of nothing. Returns where it is.
    ///
    /// # Panics
    /// If the newest version is another transaction's and undecided.
    pub fn push(&mut self, near: Spot, key: &[u8], row: Option<&[u8]>, rid: u64, txn: TxnId, seq: u32) -> Spot {
        let stamp = Stamp::txn(txn);
        let header = Header { stamp, rid, seq, moved_at: None, deleted: row.is_none(), undo: NONE };
        match self.locate_at(near, key) {
            Err(place) => {
                let rid = if row.is_none() { 0 } else { rid };
                self.insert(place, key, Header { rid, ..header }, row)
            }
            Ok(place) => {
                let (newest, _, image) = self.pages[place.page].entry(place.slot);
                assert!(
                    newest.stamp == stamp || newest.stamp.as_version().is_some(),
                    "{txn} writes key {:?} over an undecided version of {:?}",
                    Key::from(key),
                    newest.stamp
                );
                if newest.moved_at.is_some() && newest.moved_at == self.moving {
                    self.disturbed.push(Key::from(key));
                }
                let image = image.map(Box::from);
                let rid = if row.is_none() { newest.rid } else { rid };
                let undo = self.push_undo(Older { header: newest, row: image });
                self.replace(place, Header { rid, undo, ..header }, row)
            }
        }
    }

    /// Undoes the newest version if it is `txn`'s.
    pub fn pop(&mut self, key: &[u8], txn: TxnId) -> bool {
        let Ok(place) = self.locate(key) else { return false };
        let newest = self.pages[place.page].header(place.slot);
        if newest.stamp != Stamp::txn(txn) {
            return false;
        }
        if newest.undo == NONE {
            self.remove(place);
        } else {
            let older = self.take_undo(newest.undo);
            self.replace(place, older.header, older.row.as_deref());
        }
        true
    }

    /// Gives the versions of `txn` on `key` its version. Undecided ones are all above the decided ones.
    pub fn restamp(&mut self, near: Spot, key: &[u8], txn: TxnId, version: Version) -> Spot {
        let Ok(place) = self.locate_at(near, key) else { return near };
        let (from, to) = (Stamp::txn(txn), Stamp::version(version));
        let mut header = self.pages[place.page].header(place.slot);
        let mut older = header.undo;
        let mut undecided = header.stamp.as_version().is_none();
        if header.stamp == from {
            header.stamp = to;
            self.edit(place.page, |page| page.set_header(place.slot, header));
        }
        while undecided && older != NONE {
            let header = &mut self.undo[older].header;
            undecided = header.stamp.as_version().is_none();
            if header.stamp == from {
                header.stamp = to;
            }
            older = header.undo;
        }
        place.spot()
    }

    /// Replaces all that is known of a key.
    pub fn load(&mut self, near: u32, key: &[u8], row: Option<&[u8]>, rid: u64, version: Version) -> u32 {
        let stamp = Stamp::version(version);
        let header = Header { stamp, rid, seq: 0, moved_at: None, deleted: row.is_none(), undo: NONE };
        match self.locate_near(near, key) {
            Err(place) => self.insert(place, key, header, row).page,
            Ok(place) => {
                let mut older = self.pages[place.page].header(place.slot).undo;
                while older != NONE {
                    older = self.take_undo(older).header.undo;
                }
                self.replace(place, header, row).page
            }
        }
    }

    /// Marks the newest version as moved if it is still the expected one, a row, and here.
    pub fn mark_moved(&mut self, place: Place, expected: Stamp, view: ViewNo) -> bool {
        let newest = self.pages[place.page].header(place.slot);
        let as_expected = newest.stamp == expected && expected.as_version().is_some();
        if !as_expected || newest.deleted || newest.moved_at.is_some() {
            return false;
        }
        let moved = Header { moved_at: Some(view), ..newest };
        self.edit(place.page, |page| page.set_header(place.slot, moved));
        true
    }

    /// Whether the newest version is marked for exactly this view.
    pub fn is_marked(&self, place: Place, view: ViewNo) -> bool {
        self.pages[place.page].header(place.slot).moved_at == Some(view)
    }

    /// Takes a mark of exactly this view back, whichever version has it.
    pub fn unmark_moved(&mut self, place: Place, view: ViewNo) {
        let newest = self.pages[place.page].header(place.slot);
        if newest.moved_at == Some(view) {
            let here = Header { moved_at: None, ..newest };
            return self.edit(place.page, |page| page.set_header(place.slot, here));
        }
        let mut at = newest.undo;
        while at != NONE {
            let header = &mut self.undo[at].header;
            if header.moved_at == Some(view) {
                header.moved_at = None;
            }
            at = header.undo;
        }
    }

    pub fn push_undo(&mut self, older: Older) -> u32 {
        self.undo_row_bytes += older.row.as_ref().map_or(0, |row| row.len());
        self.undo.insert(older)
    }

    pub fn take_undo(&mut self, at: u32) -> Older {
        let older = self.undo.remove(at);
        self.undo_row_bytes -= older.row.as_ref().map_or(0, |row| row.len());
        older
    }

    /// Changes a page and keeps totals, queue and time of the last touch true.
    pub fn edit<R>(&mut self, at: u32, change: impl FnOnce(&mut Page) -> R) -> R {
        let page = &mut self.pages[at];
        let before = page.weight();
        let result = change(page);
        page.swept_for = None;
        page.touched = self.changes;
        let after = page.weight();
        if page.has_marks() {
            self.queue.push(at);
        }
        self.total.bytes = self.total.bytes - before.bytes + after.bytes;
        self.total.keys = self.total.keys - before.keys + after.keys;
        self.total.rows = self.total.rows - before.rows + after.rows;
        self.total.moved_bytes = self.total.moved_bytes - before.moved_bytes + after.moved_bytes;
        result
    }

    /// Removes a key; what was its undo is the caller's.
    pub fn remove(&mut self, place: Place) {
        if self.pages[place.page].len() > 1 || self.first == self.last {
            // A range that ends at what is the page's first key now reached the page before.
            let prev = self.pages[place.page].prev;
            if place.slot == 0 && prev != NONE {
                self.pages[prev].touched = self.changes;
            }
            return self.edit(place.page, |page| page.remove(place.slot));
        }
        let key = self.pages[place.page].key(place.slot).to_vec();
        self.edit(place.page, |page| page.remove(place.slot));
        self.drop_page(place.page, &key);
    }

    /// Gives back the memory of a page that was just swept, and joins it with its neighbours where both are
    /// small. A right neighbour with marks waits for its own turn in the round. False: the page is gone.
    pub fn tidy(&mut self, at: u32) -> bool {
        let page = &self.pages[at];
        if page.live_bytes() * 2 < page.all_bytes() {
            self.edit(at, Page::compact);
        }
        let page = &self.pages[at];
        if page.next != NONE && !self.pages[page.next].has_marks() {
            self.join(at, page.next);
        }
        let prev = self.pages[at].prev;
        prev == NONE || !self.join(prev, at)
    }

    /// Moves all of a page to the one before it, if both together are small.
    fn join(&mut self, left: u32, right: u32) -> bool {
        if self.pages[left].live_bytes() + self.pages[right].live_bytes() > PAGE_BYTES / 2 {
            return false;
        }
        let key = self.pages[right].key(0).to_vec();
        if !self.index.left_inherits(&key) {
            return false;
        }
        let absorbed = self.drop_page(right, &key);
        self.edit(left, |page| {
            page.compact();
            page.absorb(&absorbed);
        });
        true
    }

    pub fn bytes(&self) -> usize {
        self.total.bytes
            + self.pages.bytes()
            + self.index.bytes()
            + self.undo.bytes()
            + self.undo_row_bytes
            + self.queue.bytes()
    }

    pub fn kept_bytes(&self) -> usize {
        self.total.moved_bytes + self.undo.bytes() + self.undo_row_bytes
    }

    pub fn keys(&self) -> usize {
        self.total.keys
    }

    pub fn rows(&self) -> usize {
        self.total.rows
    }

    pub fn min_key(&self) -> Option<&[u8]> {
        let page = &self.pages[self.first];
        (page.len() > 0).then(|| page.key(0))
    }

    pub fn max_key(&self) -> Option<&[u8]> {
        let page = &self.pages[self.last];
        (page.len() > 0).then(|| page.key(page.len() - 1))
    }

    pub fn first_place(&self) -> Place {
        Place { page: self.first, slot: 0 }
    }

    /// Behind the greatest key.
    pub fn last_place(&self) -> Place {
        Place { page: self.last, slot: self.pages[self.last].len() }
    }

    fn insert(&mut self, place: Place, key: &[u8], header: Header, row: Option<&[u8]>) -> Spot {
        let place = self.make_room(place, key, Page::need(key, row));
        self.edit(place.page, |page| page.insert(place.slot, key, header, row));
        place.spot()
    }

    fn replace(&mut self, place: Place, header: Header, row: Option<&[u8]>) -> Spot {
        self.edit(place.page, |page| page.replace(place.slot, header, row));
        let page = &self.pages[place.page];
        if page.all_bytes() > PAGE_BYTES {
            if page.live_bytes() <= PAGE_BYTES / 4 * 3 {
                self.edit(place.page, Page::compact);
            } else if page.len() > 1 {
                self.split(place.page);
                return Spot::UNKNOWN;
            }
        }
        place.spot()
    }

    /// Where to insert so that the page stays within its size.
    fn make_room(&mut self, place: Place, key: &[u8], need: usize) -> Place {
        let page = &self.pages[place.page];
        if page.all_bytes() + need <= PAGE_BYTES || page.len() == 0 {
            return place;
        }
        if page.live_bytes() + need <= PAGE_BYTES / 4 * 3 {
            self.edit(place.page, Page::compact);
            return place;
        }
        if place.slot == page.len() {
            // Ascending keys leave full pages behind.
            let separator = separator(page.key(page.len() - 1), key);
            let fresh = if place.page == self.last { Page::to_fill() } else { Page::default() };
            return Place { page: self.link_after(place.page, fresh, separator), slot: 0 };
        }
        if page.len() == 1 {
            return place;
        }
        let right = self.split(place.page);
        let at = if self.pages[right].key(0) < key { right } else { place.page };
        match self.pages[at].find(key) {
            Err(slot) => Place { page: at, slot },
            Ok(_) => unreachable!("the key was not in the page that was split"),
        }
    }

    /// Splits a page of two keys or more; returns the right one.
    fn split(&mut self, at: u32) -> u32 {
        let right = self.edit(at, Page::split);
        let left = &self.pages[at];
        // The whole first key separates: a key between the pages then belongs to the left one.
        let separator = right.key(0).into();
        debug_assert_eq!(left.key(left.len() - 1).cmp(right.key(0)), Ordering::Less);
        self.link_after(at, right, separator)
    }

    fn link_after(&mut self, at: u32, mut page: Page, separator: Box<[u8]>) -> u32 {
        let next = self.pages[at].next;
        (page.prev, page.next) = (at, next);
        page.touched = self.changes;
        let (weight, marked) = (page.weight(), page.has_marks());
        let new = self.pages.insert(page);
        self.total.bytes += weight.bytes;
        self.total.keys += weight.keys;
        self.total.rows += weight.rows;
        self.total.moved_bytes += weight.moved_bytes;
        if marked {
            self.queue.push(new);
        }
        self.pages[at].next = new;
        match next {
            NONE => self.last = new,
            next => self.pages[next].prev = new,
        }
        self.index.insert(separator, new);
        new
    }

    /// Takes a page out; `key` is one that it is responsible for.
    fn drop_page(&mut self, at: u32, key: &[u8]) -> Page {
        self.index.remove(key);
        let page = self.pages.remove(at);
        let weight = page.weight();
        self.total.bytes -= weight.bytes;
        self.total.keys -= weight.keys;
        self.total.rows -= weight.rows;
        self.total.moved_bytes -= weight.moved_bytes;
        match page.prev {
            NONE => self.first = page.next,
            prev => {
                self.pages[prev].next = page.next;
                self.pages[prev].touched = self.changes;
            }
        }
        match page.next {
            NONE => self.last = page.prev,
            next => {
                self.pages[next].prev = page.prev;
                self.pages[next].touched = self.changes;
            }
        }
        page
    }
}

/// The shortest key above `left` and not above `right`.
fn separator(left: &[u8], right: &[u8]) -> Box<[u8]> {
    right[..common_len(left, right) + 1].into()
}

#[cfg(test)]
mod tests;
