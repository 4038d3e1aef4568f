//! Where keys were found lately. A statement asks several times where its row is (to see it, to lock it, to mark it),
//! and so does the next one that changes what this one locked.
//!
//! What a view's files have of a key never changes, so what was found through a view is right for as long as that view
//! is asked again. Each thread remembers for itself.

use super::{Ask, Place};
use smallvec::SmallVec;
use std::cell::RefCell;

/// Keys that a thread remembers: a power of two.
const KEYS: usize = 256;
/// A longer key is not remembered.
const KEY_BYTES_MAX: usize = 128;

#[derive(Default)]
struct Remembered {
    view: u64,
    key: Vec<u8>,
    search: Search,
}

/// How far the files of a view have been searched for a key.
#[derive(Clone, Default)]
pub(super) struct Search {
    /// Rows found, newest file first.
    pub found: SmallVec<[Place; 2]>,
    /// The next one last.
    pub asks: SmallVec<[Ask; 4]>,
}

thread_local! {
    static RECENT: RefCell<Vec<Remembered>> = const { RefCell::new(Vec::new()) };
}

fn slot_of(view: u64, key: &[u8]) -> usize {
    let mixed = key.iter().fold(view, |mixed, byte| (mixed ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    (mixed ^ mixed >> 32) as usize % KEYS
}

pub(super) fn recall(view: u64, key: &[u8]) -> Option<Search> {
    let of_thread = |recent: &RefCell<Vec<Remembered>>| {
        let recent = recent.borrow();
        let slot = recent.get(slot_of(view, key))?;
        (slot.view == view && slot.key == key).then(|| slot.search.clone())
    };
    // A thread that ends has forgotten.
    RECENT.try_with(of_thread).ok().flatten()
}

pub(super) fn remember(view: u64, key: &[u8], search: Search) {
    if key.len() > KEY_BYTES_MAX {
        return;
    }
    let of_thread = |recent: &RefCell<Vec<Remembered>>| {
        let mut recent = recent.borrow_mut();
        if recent.is_empty() {
            recent.resize_with(KEYS, Remembered::default);
        }
        let slot = &mut recent[slot_of(view, key)];
        (slot.view, slot.search) = (view, search);
        slot.key.clear();
        slot.key.extend_from_slice(key);
    };
    let _ = RECENT.try_with(of_thread);
}
