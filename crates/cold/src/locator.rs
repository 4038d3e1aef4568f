//! From a key's hash to the places where rows with such a key may be (the upper level of the two-level
//! index of SingleStore, SIGMOD 2022; the locator of PolarDB-IMCI).
//!
//! Derived from the files' own keys, never logged: after a restart it is filled again. An entry is a
//! candidate, not an answer: hashes collide and files hold several versions of a row, so the caller compares
//! keys. The engine decides which files need entries; sorted files with disjoint key ranges do not.
//!
//! The table is split into pages by the upper bits of the hash, each locked and grown alone, so that no
//! insert ever waits for a rehash of the whole.

use basalt_types::FileId;
use hashbrown::{HashMap, HashTable};
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::{AtomicU64, Ordering};

const PAGES: usize = 1 << 10;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Location {
    pub file: FileId,
    pub ordinal: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    hash: u64,
    /// Index into [`Slots`]: half the size of a file id.
    slot: u32,
    ordinal: u32,
}

#[derive(Default)]
struct Slots {
    files: Vec<Option<FileId>>,
    by_file: HashMap<FileId, u32>,
    free: Vec<u32>,
}

pub struct Locator {
    pages: Vec<Mutex<HashTable<Entry>>>,
    slots: RwLock<Slots>,
    len: AtomicU64,
    bytes: AtomicU64,
}

impl Default for Locator {
    fn default() -> Locator {
        Locator::new()
    }
}

impl Locator {
    pub fn new() -> Locator {
        let mut pages = Vec::with_capacity(PAGES);
        pages.resize_with(PAGES, || Mutex::new(HashTable::new()));
        Locator { pages, slots: RwLock::default(), len: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    /// Entries.
    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) + (PAGES * size_of::<Mutex<HashTable<Entry>>>()) as u64
    }

    pub fn insert(&self, key_hash: u64, at: Location) {
        let slot = self.slot(at.file);
        self.insert_entry(Entry { hash: key_hash, slot, ordinal: at.ordinal });
    }

    /// Inserts the key hashes of a file, in ordinal order from `first_ordinal` on.
    pub fn insert_file(&self, file: FileId, first_ordinal: u32, key_hashes: impl IntoIterator<Item = u64>) {
        let slot = self.slot(file);
        for (hash, ordinal) in key_hashes.into_iter().zip(first_ordinal..) {
            self.insert_entry(Entry { hash, slot, ordinal });
        }
    }

    fn insert_entry(&self, entry: Entry) {
        let mut page = self.page(entry.hash).lock();
        let before = page.allocation_size();
        page.insert_unique(entry.hash, entry, |entry| entry.hash);
        self.bytes.fetch_add((page.allocation_size() - before) as u64, Ordering::Relaxed);
        self.len.fetch_add(1, Ordering::Relaxed);
    }

    /// Removes one entry; false if it was not there.
    pub fn remove(&self, key_hash: u64, at: Location) -> bool {
        let Some(slot) = self.slots.read().by_file.get(&at.file).copied() else { return false };
        let mut page = self.page(key_hash).lock();
        let same = |entry: &Entry| entry.hash == key_hash && entry.slot == slot && entry.ordinal == at.ordinal;
        let Ok(found) = page.find_entry(key_hash, same) else { return false };
        found.remove();
        self.len.fetch_sub(1, Ordering::Relaxed);
        true
    }

    /// Removes every entry of a file. Walks the whole table.
    pub fn remove_file(&self, file: FileId) {
        let Some(slot) = self.slots.read().by_file.get(&file).copied() else { return };
        for page in &self.pages {
            let mut page = page.lock();
            let (entries, before) = (page.len(), page.allocation_size());
            page.retain(|entry| entry.slot != slot);
            if page.len() < entries / 2 {
                page.shrink_to_fit(|entry| entry.hash);
            }
            self.len.fetch_sub((entries - page.len()) as u64, Ordering::Relaxed);
            self.bytes.fetch_sub((before - page.allocation_size()) as u64, Ordering::Relaxed);
        }
        let mut slots = self.slots.write();
        slots.by_file.remove(&file);
        slots.files[slot as usize] = None;
        slots.free.push(slot);
    }

    /// Where rows whose key has this hash may be, in no order.
    pub fn candidates(&self, key_hash: u64) -> Vec<Location> {
        let page = self.page(key_hash).lock();
        let mut found = page.iter_hash(key_hash).filter(|entry| entry.hash == key_hash).peekable();
        if found.peek().is_none() {
            return Vec::new();
        }
        let slots = self.slots.read();
        let locate = |entry: &Entry| Some(Location { file: slots.files[entry.slot as usize]?, ordinal: entry.ordinal });
        found.filter_map(locate).collect()
    }

    fn page(&self, hash: u64) -> &Mutex<HashTable<Entry>> {
        // The table inside uses the lowest and the seven highest bits.
        &self.pages[(hash >> 40) as usize % PAGES]
    }

    fn slot(&self, file: FileId) -> u32 {
        if let Some(slot) = self.slots.read().by_file.get(&file) {
            return *slot;
        }
        let slots = &mut *self.slots.write();
        *slots.by_file.entry(file).or_insert_with(|| match slots.free.pop() {
            Some(slot) => {
                slots.files[slot as usize] = Some(file);
                slot
            }
            None => {
                slots.files.push(Some(file));
                slots.files.len() as u32 - 1
            }
        })
    }
}

#[cfg(test)]
mod tests;
