//! Searching sorted byte keys that live elsewhere: their common prefix, compared once, and the eight bytes
//! behind it of each key in one dense array. Only keys with equal heads are looked up and compared whole: each
//! of these looks is a wait for memory. Eight bytes are two integers of a key of several, of which four would
//! often be one that many keys share.
//!
//! Callers hand in `key_at`, which finds the key at a position.

use std::cmp::Ordering;

/// Heads that are counted rather than halved: four lines of cache.
const COUNTED_MAX: usize = 32;

#[derive(Default)]
pub struct Heads {
    prefix: Box<[u8]>,
    heads: Vec<u64>,
}

impl Heads {
    /// For `len` keys in ascending order.
    pub fn build<'k>(len: usize, key_at: impl Fn(usize) -> &'k [u8]) -> Heads {
        let mut built = Heads::default();
        if len > 0 {
            let (first, last) = (key_at(0), key_at(len - 1));
            built.prefix = first[..common_len(first, last)].into();
            built.heads = (0..len).map(|i| head(&key_at(i)[built.prefix.len()..])).collect();
        }
        built
    }

    pub fn bytes(&self) -> usize {
        self.prefix.len() + self.heads.capacity() * size_of::<u64>()
    }

    /// Where the key is, or where it would be inserted.
    #[inline]
    pub fn find<'k>(&self, key: &[u8], key_at: impl Fn(usize) -> &'k [u8]) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return Err(if key < &*self.prefix { 0 } else { self.heads.len() });
        };
        let head = head(rest);
        let mut low = count_below(&self.heads, head);
        let mut high = low;
        // Keys with equal heads are few: widen step by step instead of a second binary search.
        while high < self.heads.len() && self.heads[high] == head && high - low < 8 {
            high += 1;
        }
        if high < self.heads.len() && self.heads[high] == head {
            high += self.heads[high..].partition_point(|other| *other == head);
        }
        while low < high {
            let middle = low.midpoint(high);
            match key_at(middle)[self.prefix.len()..].cmp(rest) {
                Ordering::Less => low = middle + 1,
                Ordering::Equal => return Ok(middle),
                Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Enters a key that `find` put at `at`. `key_at` finds the keys as they were before.
    pub fn insert<'k>(&mut self, at: usize, key: &[u8], key_at: impl Fn(usize) -> &'k [u8]) {
        if self.heads.is_empty() {
            self.prefix = key.into();
        } else if !key.starts_with(&self.prefix) {
            let shorter = common_len(&self.prefix, key);
            self.prefix = key[..shorter].into();
            for (i, slot) in self.heads.iter_mut().enumerate() {
                *slot = head(&key_at(i)[shorter..]);
            }
        }
        self.heads.insert(at, head(&key[self.prefix.len()..]));
    }

    pub fn remove(&mut self, at: usize) {
        self.heads.remove(at);
    }
}

/// How many of the heads, which ascend, are less. Halves until few are left, and counts these: their loads do not wait for
/// each other.
#[inline]
fn count_below(heads: &[u64], head: u64) -> usize {
    let (mut below, mut left) = (0, heads.len());
    while left > COUNTED_MAX {
        let half = left / 2;
        if heads[below + half - 1] < head {
            below += half;
        }
        left -= half;
    }
    below + heads[below..below + left].iter().filter(|other| **other < head).count()
}

#[inline]
fn head(rest: &[u8]) -> u64 {
    match rest.first_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => rest.iter().enumerate().fold(0, |head, (i, byte)| head | u64::from(*byte) << (56 - 8 * i)),
    }
}

pub fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
