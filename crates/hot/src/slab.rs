//! Numbered items in chunks: growing never moves what is there, so no insertion pauses the tablet.

use std::ops::{Index, IndexMut};

const CHUNK: usize = 1024;

/// A number that names no item.
pub const NONE: u32 = u32::MAX;

pub struct Slab<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
    len: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { chunks: Vec::new(), free: Vec::new(), len: 0 }
    }
}

impl<T: Default> Slab<T> {
    pub fn insert(&mut self, item: T) -> u32 {
        self.len += 1;
        if let Some(at) = self.free.pop() {
            self[at] = item;
            return at;
        }
        if self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK) {
            // The first chunk grows as needed: most tablets are small.
            let capacity = if self.chunks.is_empty() { 0 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let full = (self.chunks.len() - 1) * CHUNK;
        let chunk = self.chunks.last_mut().expect("just made");
        chunk.push(item);
        let at = full + chunk.len() - 1;
        u32::try_from(at).ok().filter(|at| *at != NONE).expect("fewer than 2^32 items in a tablet")
    }

    /// Takes an item out and leaves the default one; its number is given out again.
    pub fn remove(&mut self, at: u32) -> T {
        let item = std::mem::take(&mut self[at]);
        self.len -= 1;
        if self.len == 0 {
            *self = Slab::default();
        } else {
            self.free.push(at);
        }
        item
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Behind the greatest number that was ever given out.
    pub fn end(&self) -> u32 {
        let last = self.chunks.last().map_or(0, Vec::len);
        (self.chunks.len().saturating_sub(1) * CHUNK + last) as u32
    }

    /// Memory of the slots, without what the items own.
    pub fn bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let slots = self.chunks.len().saturating_sub(1) * CHUNK + last;
        slots * size_of::<T>() + self.free.capacity() * size_of::<u32>()
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: u32) -> &T {
        &self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut T {
        &mut self.chunks[at as usize / CHUNK][at as usize % CHUNK]
    }
}
