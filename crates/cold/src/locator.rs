//! From a key's hash to the places where rows with such a key may be (the upper level of the two-level
//! index of SingleStore, SIGMOD 2022; the locator of PolarDB-IMCI, section 4.1).
//!
//! Derived from the files' own keys, never logged: after a restart it is filled again. An entry is a
//! candidate, not an answer: hashes collide and files hold several versions of a row, so the caller compares
//! keys. The caller also decides which files need entries, and looks only for files that are all in.
//!
//! The table is split into pages by bits of the hash, each locked and grown alone, so that no insert ever
//! waits for a rehash of the whole. Entries of a file that is forgotten stay behind, known to be dead by
//! their slot, until there are enough of them to be worth a walk over all pages.
//!
//! All locators of an engine share one [`LocatorBudget`]; what a page would grow beyond it is refused.

use basalt_types::FileId;
use hashbrown::{HashMap, HashTable};
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGES: usize = 1 << 10;
const EMPTY_BYTES: u64 = (PAGES * size_of::<Page>()) as u64;
/// Dead entries are removed once they are this part of all.
const DEAD_PART: u64 = 4;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    pub file: FileId,
    pub ordinal: u32,
}

/// What locators may hold together, and what they hold.
#[derive(Debug)]
pub struct LocatorBudget {
    bytes_max: u64,
    bytes: AtomicU64,
    entries: AtomicU64,
}

impl LocatorBudget {
    pub fn new(bytes_max: u64) -> LocatorBudget {
        LocatorBudget { bytes_max, bytes: AtomicU64::new(0), entries: AtomicU64::new(0) }
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Dead ones included.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    pub fn bytes_left(&self) -> u64 {
        self.bytes_max.saturating_sub(self.bytes())
    }

    /// Counts bytes if they are left.
    fn charge(&self, bytes: u64) -> bool {
        let more = |held: u64| held.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    fn release(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    /// Index into [`Slots`]: half the size of a file id.
    slot: u32,
    ordinal: u32,
}

type Page = Mutex<HashTable<Entry>>;

#[derive(Default)]
struct Slots {
    /// By slot; `None` for one that is dead or free.
    files: Vec<Option<FileId>>,
    by_file: HashMap<FileId, Slot>,
    /// Slots of forgotten files whose entries are still there.
    dead: Vec<u32>,
    dead_entries: u64,
    free: Vec<u32>,
}

#[derive(Clone, Copy)]
struct Slot {
    index: u32,
    entries: u64,
}

pub struct Locator {
    pages: Vec<Page>,
    slots: RwLock<Slots>,
    budget: Arc<LocatorBudget>,
    /// What this locator has charged.
    bytes: AtomicU64,
    entries: AtomicU64,
}

impl Locator {
    /// `None` if the budget has no room for its empty pages.
    pub fn new(budget: &Arc<LocatorBudget>) -> Option<Locator> {
        if !budget.charge(EMPTY_BYTES) {
            return None;
        }
        let mut pages = Vec::with_capacity(PAGES);
        pages.resize_with(PAGES, || Mutex::new(HashTable::new()));
        let (bytes, entries) = (AtomicU64::new(EMPTY_BYTES), AtomicU64::new(0));
        Some(Locator { pages, slots: RwLock::default(), budget: budget.clone(), bytes, entries })
    }

    /// Entries, dead ones included.
    pub fn len(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How much it would grow by so many more entries, at most as long as hashes are spread evenly.
    pub fn growth_bytes(&self, entries: u64) -> u64 {
        let each = (self.len() + entries).div_ceil(PAGES as u64);
        // Three standard deviations above the mean.
        let most = each + 3 * each.isqrt() + 3;
        let buckets = (most * 8 / 7).next_power_of_two();
        let grown = EMPTY_BYTES + PAGES as u64 * (buckets * (size_of::<Entry>() as u64 + 1) + 16);
        grown.saturating_sub(self.memory_bytes())
    }

    /// Inserts the key hashes of a file's rows from `first_ordinal` on. False if the budget is used up: some
    /// may be in, and the file must be forgotten.
    #[must_use]
    pub fn insert_rows(&self, file: FileId, first_ordinal: u32, key_hashes: &[u64]) -> bool {
        let slot = self.take_slot(file, key_hashes.len() as u64);
        let mut by_page: Vec<(u16, u32)> = (0..).zip(key_hashes).map(|(row, hash)| (page_of(*hash), row)).collect();
        by_page.sort_unstable();
        for rows in by_page.chunk_by(|a, b| a.0 == b.0) {
            let mut page = self.pages[usize::from(rows[0].0)].lock();
            let before = page.allocation_size() as u64;
            page.reserve(rows.len(), |entry| entry.hash);
            let grown = page.allocation_size() as u64 - before;
            if !self.budget.charge(grown) {
                page.shrink_to_fit(|entry| entry.hash);
                self.settle_shrunk(before, page.allocation_size() as u64);
                return false;
            }
            self.bytes.fetch_add(grown, Ordering::Relaxed);
            for (_, row) in rows {
                let entry = Entry { hash: key_hashes[*row as usize], slot, ordinal: first_ordinal + row };
                page.insert_unique(entry.hash, entry, |entry| entry.hash);
            }
            self.entries.fetch_add(rows.len() as u64, Ordering::Relaxed);
            self.budget.entries.fetch_add(rows.len() as u64, Ordering::Relaxed);
        }
        true
    }

    /// Counts what a page has given back since its charged size was `before`.
    fn settle_shrunk(&self, before: u64, now: u64) {
        let freed = before.saturating_sub(now);
        self.budget.release(freed);
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
    }

    /// Gives up a file: its entries are no candidates any more.
    pub fn forget(&self, file: FileId) {
        let worth_a_walk = {
            let slots = &mut *self.slots.write();
            let Some(slot) = slots.by_file.remove(&file) else { return };
            slots.files[slot.index as usize] = None;
            slots.dead.push(slot.index);
            slots.dead_entries += slot.entries;
            slots.dead_entries * DEAD_PART >= self.len()
        };
        if worth_a_walk {
            self.remove_dead();
        }
    }

    /// Removes the entries of forgotten files.
    pub fn remove_dead(&self) {
        let mut dead = {
            let mut slots = self.slots.write();
            slots.dead_entries = 0;
            std::mem::take(&mut slots.dead)
        };
        if dead.is_empty() {
            return;
        }
        dead.sort_unstable();
        for page in &self.pages {
            let mut page = page.lock();
            let (entries, before) = (page.len(), page.allocation_size() as u64);
            page.retain(|entry| dead.binary_search(&entry.slot).is_err());
            if page.len() < entries / 2 {
                page.shrink_to_fit(|entry| entry.hash);
            }
            let removed = (entries - page.len()) as u64;
            self.entries.fetch_sub(removed, Ordering::Relaxed);
            self.budget.entries.fetch_sub(removed, Ordering::Relaxed);
            self.settle_shrunk(before, page.allocation_size() as u64);
        }
        // Only now: a slot that is given out again must have no old entries.
        self.slots.write().free.append(&mut dead);
    }

    /// Where rows whose key has this hash may be, in no order.
    pub fn candidates(&self, key_hash: u64) -> Vec<Location> {
        let page = self.pages[usize::from(page_of(key_hash))].lock();
        let mut found = page.iter_hash(key_hash).filter(|entry| entry.hash == key_hash).peekable();
        if found.peek().is_none() {
            return Vec::new();
        }
        let slots = self.slots.read();
        let locate = |entry: &Entry| Some(Location { file: slots.files[entry.slot as usize]?, ordinal: entry.ordinal });
        found.filter_map(locate).collect()
    }

    /// The file's slot, which will have so many entries more.
    fn take_slot(&self, file: FileId, entries: u64) -> u32 {
        let slots = &mut *self.slots.write();
        let slot = slots.by_file.entry(file).or_insert_with(|| match slots.free.pop() {
            Some(index) => {
                slots.files[index as usize] = Some(file);
                Slot { index, entries: 0 }
            }
            None => {
                slots.files.push(Some(file));
                Slot { index: slots.files.len() as u32 - 1, entries: 0 }
            }
        });
        slot.entries += entries;
        slot.index
    }
}

impl Drop for Locator {
    fn drop(&mut self) {
        self.budget.release(*self.bytes.get_mut());
        self.budget.entries.fetch_sub(*self.entries.get_mut(), Ordering::Relaxed);
    }
}

/// The tables inside pages use the lowest and the seven highest bits.
fn page_of(hash: u64) -> u16 {
    ((hash >> 40) as usize % PAGES) as u16
}

#[cfg(test)]
mod tests;
