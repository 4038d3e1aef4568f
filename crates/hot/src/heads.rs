//! Searching sorted byte keys that live elsewhere: their common prefix, compared once, and the four bytes
//! behind it of each key in one dense array. Only keys with equal heads are looked up and compared whole.
//!
//! Callers hand in `key_at`, which finds the key at a position.

use std::cmp::Ordering;

#[derive(Default)]
pub struct Heads {
    prefix: Box<[u8]>,
    heads: Vec<u32>,
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
        self.prefix.len() + self.heads.capacity() * size_of::<u32>()
    }

    /// Where the key is, or where it would be inserted.
    #[inline]
    pub fn find<'k>(&self, key: &[u8], key_at: impl Fn(usize) -> &'k [u8]) -> Result<usize, usize> {
        let Some(rest) = key.strip_prefix(&*self.prefix) else {
            return Err(if key < &*self.prefix { 0 } else { self.heads.len() });
        };
        let head = head(rest);
        let mut low = self.heads.partition_point(|other| *other < head);
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

#[inline]
fn head(rest: &[u8]) -> u32 {
    match rest.first_chunk() {
        Some(bytes) => u32::from_be_bytes(*bytes),
        None => rest.iter().enumerate().fold(0, |head, (i, byte)| head | u32::from(*byte) << (24 - 8 * i)),
    }
}

pub fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
