//! Reading: which version of a key a reader sees, one key at a time or page by page.

use crate::page::{Header, Page};
use crate::slab::NONE;
use crate::store::{Place, Store};
use crate::{Found, RangeState, Reader, Rows};
use basalt_types::{Key, Rid, Version};
use std::ops::Bound;

/// Keys that one chunk of a scan looks at, and bytes that it copies: the latch is free in between.
const SCAN_KEYS_MAX: usize = 4096;
const SCAN_BYTES_MAX: usize = 1 << 20;
/// Pages that one chunk of a walk passes.
const WALK_PAGES: u32 = 256;

/// How far a walk along all pages has come.
#[derive(Default)]
pub struct Walk {
    page: u32,
    /// Keys of the pages before.
    passed: u64,
}

/// The version that decides for a reader.
enum Seen<'s> {
    Row(Header, &'s [u8]),
    Deleted,
    Elsewhere,
    Nothing,
}

impl Store {
    pub fn get(&self, key: &[u8], reader: &Reader<'_>) -> Found<'_> {
        let mut near = NONE;
        self.get_near(&mut near, key, reader)
    }

    /// The same; `near` is the page where the last key was looked for, and becomes that of this one.
    pub fn get_near(&self, near: &mut u32, key: &[u8], reader: &Reader<'_>) -> Found<'_> {
        let located = self.locate_near(*near, key);
        let (Ok(place) | Err(place)) = located;
        *near = place.page;
        if located.is_err() {
            return Found::Absent;
        }
        let (newest, _, row) = self.pages[place.page].entry(place.slot);
        match self.seen(newest, row, reader) {
            Seen::Row(header, row) => Found::Row { row, stamp: header.stamp, seq: header.seq, rid: Rid(header.rid) },
            Seen::Deleted => Found::Deleted,
            Seen::Elsewhere => Found::Elsewhere,
            Seen::Nothing => Found::Absent,
        }
    }

    #[inline]
    fn seen<'s>(&'s self, newest: Header, row: Option<&'s [u8]>, reader: &Reader<'_>) -> Seen<'s> {
        let (mut header, mut row) = (newest, row);
        while !reader.at.sees(header.stamp, header.seq, reader.txns) {
            if header.undo == NONE {
                return Seen::Nothing;
            }
            let older = &self.undo[header.undo];
            (header, row) = (older.header, older.row.as_deref());
        }
        match (header.moved_at, row) {
            (Some(moved_at), _) if moved_at <= reader.view => Seen::Elsewhere,
            (_, Some(row)) => Seen::Row(header, row),
            (_, None) => Seen::Deleted,
        }
    }

    pub fn scan(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reader: &Reader<'_>,
        rows_max: usize,
        out: &mut Rows,
    ) -> Option<Key> {
        let snapshot = reader.at.snapshot;
        let mut chunk = Chunk::new(self, from, to, rows_max, out);
        while let Some((page, slots)) = chunk.next_page(|page| page.wholly_invisible(snapshot)) {
            if page.wholly_visible(snapshot) {
                for slot in slots {
                    let (header, key, row) = page.entry(slot);
                    out.push(key, row.unwrap_or_default(), Rid(header.rid), header.stamp);
                    if chunk.is_full(out) {
                        return Some(Key::from(key));
                    }
                }
                continue;
            }
            for slot in slots {
                let (newest, key, row) = page.entry(slot);
                if let Seen::Row(header, row) = self.seen(newest, row, reader) {
                    out.push(key, row, Rid(header.rid), header.stamp);
                }
                if chunk.is_full(out) {
                    return Some(Key::from(key));
                }
            }
        }
        chunk.cut_short()
    }

    /// Shows the newest version of the keys at these places, which ascend, if it is a row that is here, and takes them off
    /// the list. False: the walk is over.
    pub fn look_at(&self, walk: &mut Walk, places: &mut &[u64], look: &mut impl FnMut(&[u8])) -> bool {
        let until = self.pages.end().min(walk.page.saturating_add(WALK_PAGES));
        let mut bytes = 0;
        while walk.page < until {
            let page = &self.pages[walk.page];
            let behind = walk.passed + page.len() as u64;
            while let Some((place, rest)) = places.split_first().filter(|(place, _)| **place < behind) {
                if bytes > SCAN_BYTES_MAX {
                    return true;
                }
                *places = rest;
                let (newest, _, row) = page.entry((place - walk.passed) as usize);
                if let Some(row) = row.filter(|_| newest.moved_at.is_none()) {
                    look(row);
                    bytes += row.len();
                }
            }
            (walk.page, walk.passed) = (walk.page + 1, behind);
        }
        !places.is_empty() && walk.page < self.pages.end()
    }

    /// As [`scan`](Store::scan), from the end of the range to its beginning.
    pub fn scan_back(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        reader: &Reader<'_>,
        rows_max: usize,
        out: &mut Rows,
    ) -> Option<Key> {
        let (rows_end, bytes_end) = (out.len() + rows_max.max(1), out.bytes() + SCAN_BYTES_MAX);
        let mut keys_left = SCAN_KEYS_MAX;
        let mut place = self.place_behind(to);
        while place.page != NONE {
            let page = &self.pages[place.page];
            let least = match from {
                Bound::Unbounded => 0,
                Bound::Included(key) => page.slot_of(key, false),
                Bound::Excluded(key) => page.slot_of(key, true),
            };
            for slot in (least..place.slot).rev() {
                let (newest, key, row) = page.entry(slot);
                if let Seen::Row(header, row) = self.seen(newest, row, reader) {
                    out.push(key, row, Rid(header.rid), header.stamp);
                }
                keys_left -= 1;
                if out.len() >= rows_end || out.bytes() >= bytes_end || keys_left == 0 {
                    return Some(Key::from(key));
                }
            }
            if least > 0 {
                return None;
            }
            place = match page.prev {
                NONE => return None,
                prev => Place { page: prev, slot: self.pages[prev].len() },
            };
        }
        None
    }

    /// Behind the last key of a range.
    fn place_behind(&self, to: Bound<&[u8]>) -> Place {
        match to {
            Bound::Unbounded => self.last_place(),
            Bound::Excluded(key) => self.place_of(key, false),
            Bound::Included(key) => self.place_of(key, true),
        }
    }

    pub fn scan_settled(
        &self,
        from: Bound<&[u8]>,
        to: Bound<&[u8]>,
        upto: Version,
        rows_max: usize,
        out: &mut Rows,
    ) -> Option<Key> {
        let mut chunk = Chunk::new(self, from, to, rows_max, out);
        while let Some((page, slots)) = chunk.next_page(Page::has_no_rows) {
            for slot in slots {
                let (newest, key, row) = page.entry(slot);
                if let (true, Some(row)) = (newest.is_settled(upto), row) {
                    out.push(key, row, Rid(newest.rid), newest.stamp);
                }
                if chunk.is_full(out) {
                    return Some(Key::from(key));
                }
            }
        }
        chunk.cut_short()
    }
}

impl Store {
    /// What the pages that a range of keys reaches are like.
    pub fn state_of(&self, from: Bound<&[u8]>, to: Bound<&[u8]>) -> RangeState {
        let (mut touched, mut plain_since) = (0, Some(Version::ZERO));
        let end = match to {
            Bound::Unbounded => NONE,
            Bound::Included(key) => self.pages[self.place_of(key, true).page].next,
            Bound::Excluded(key) => match self.place_of(key, false) {
                Place { page, slot: 0 } => page,
                Place { page, .. } => self.pages[page].next,
            },
        };
        // The first one is always among them: it may have inherited all of the range from pages that are gone.
        let mut at = self.first_of(from).page;
        loop {
            let page = &self.pages[at];
            touched = touched.max(page.touched);
            plain_since = match (plain_since, page.greatest()) {
                (Some(since), Some(greatest)) if page.is_plain() => Some(since.max(greatest)),
                _ => None,
            };
            if at == end || page.next == NONE || page.next == end {
                return RangeState { touched, changes: self.changes, plain_since };
            }
            at = page.next;
        }
    }

    /// The first key of the last page up to which there are no more than so many keys from `from` on; `None` if there are
    /// no more up to the end.
    pub fn cut_behind(&self, from: Bound<&[u8]>, keys: usize) -> Option<Key> {
        let place = self.first_of(from);
        let mut page = &self.pages[place.page];
        let mut left = page.len() - place.slot;
        while page.next != NONE {
            page = &self.pages[page.next];
            left += page.len();
            if left > keys {
                return Some(Key::from(page.key(0)));
            }
        }
        None
    }

    fn first_of(&self, from: Bound<&[u8]>) -> Place {
        match from {
            Bound::Unbounded => self.first_place(),
            Bound::Included(key) => self.place_of(key, false),
            Bound::Excluded(key) => self.place_of(key, true),
        }
    }

    /// Adds to `count` what [`scan_settled`](Store::scan_settled) would find, page by page where it can; ends
    /// at `max`.
    pub fn count_settled(&self, from: Bound<&[u8]>, upto: Version, max: usize, count: &mut usize) -> Option<Key> {
        let mut chunk = Chunk::new(self, from, Bound::Unbounded, 1, &Rows::new());
        let nothing = |page: &Page| page.has_no_rows() || page.wholly_invisible(upto);
        while let Some((page, slots)) = chunk.next_page(nothing) {
            *count += match page.wholly_visible(upto) {
                true => slots.len(),
                false => slots.filter(|slot| page.header(*slot).is_settled(upto)).count(),
            };
            if *count >= max {
                return None;
            }
        }
        chunk.cut_short()
    }
}

/// The walk of one chunk: page after page up to the end of the range or of a budget.
struct Chunk<'s, 'k> {
    store: &'s Store,
    place: Place,
    to: Bound<&'k [u8]>,
    keys_left: usize,
    rows_end: usize,
    bytes_end: usize,
    /// The last key of a page after which the budget for looking was spent.
    cut: Option<&'s [u8]>,
}

impl<'s, 'k> Chunk<'s, 'k> {
    fn new(store: &'s Store, from: Bound<&[u8]>, to: Bound<&'k [u8]>, rows_max: usize, out: &Rows) -> Chunk<'s, 'k> {
        Chunk {
            store,
            place: store.first_of(from),
            to,
            keys_left: SCAN_KEYS_MAX,
            rows_end: out.len() + rows_max.max(1),
            bytes_end: out.bytes() + SCAN_BYTES_MAX,
            cut: None,
        }
    }

    /// The slots of the next page that are in the range; pages that `skip` says are passed over.
    fn next_page(&mut self, skip: impl Fn(&Page) -> bool) -> Option<(&'s Page, std::ops::Range<usize>)> {
        while self.place.page != NONE {
            let page = &self.store.pages[self.place.page];
            let from = self.place.slot;
            let beyond = match self.to {
                Bound::Unbounded => page.len(),
                Bound::Included(key) => page.slot_of(key, true),
                Bound::Excluded(key) => page.slot_of(key, false),
            };
            let next = if beyond < page.len() { NONE } else { page.next };
            self.place = Place { page: next, slot: 0 };
            if from >= beyond {
                continue;
            }
            let skipped = skip(page);
            // A skipped page costs little, but a chunk ends after many of them, too.
            let looked = if skipped { 16 } else { beyond - from };
            let spent = self.keys_left < looked;
            self.keys_left = self.keys_left.saturating_sub(looked);
            if spent && next != NONE {
                self.cut = Some(page.key(beyond - 1));
                self.place.page = NONE;
            }
            if !skipped {
                return Some((page, from..beyond));
            }
        }
        None
    }

    #[inline]
    fn is_full(&self, out: &Rows) -> bool {
        out.len() >= self.rows_end || out.bytes() >= self.bytes_end
    }

    /// Where to go on if the walk ended before the range did.
    fn cut_short(&self) -> Option<Key> {
        self.cut.map(Key::from)
    }
}
