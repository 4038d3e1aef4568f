//! Numbers by hash: open addressing, half of a hash beside each number. What a number stands for is with whoever asks: what
//! grows hashes nothing again, and what differs is seldom compared.

use crate::error::Result;
use crate::stop::pieces;
use basalt_types::prefetch::prefetch_item;

/// What is looked up together: memory is asked for all of it before it is needed for the first.
pub(crate) const TOGETHER: usize = 32;

/// Of a small table.
const SLOTS_MIN: usize = 64;
/// Slots from which on memory is waited for.
const FAR_MIN: usize = 1 << 14;
/// Slots that are looked at beforehand: most of what is found is in the first one, or next to it.
const NEAR_SLOTS: usize = 4;
/// Slots of which no more are made than are needed soon.
const SCARCE_MIN: usize = 1 << 20;
/// Slots from which on it takes long to make more of them.
const LARGE_MIN: usize = 1 << 17;

/// The hash and the number in each slot, 0 where there is none: numbers are counted from 1.
pub(super) struct Table {
    slots: Vec<u64>,
    used: usize,
}

impl Table {
    /// With so many slots at first: a power of two.
    pub fn new(slots: usize) -> Table {
        Table { slots: vec![0; slots], used: 0 }
    }

    /// With room for so many numbers, before any has come.
    pub fn expecting(numbers: usize) -> Table {
        Table::new((numbers * 2).next_power_of_two().max(SLOTS_MIN))
    }

    pub fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u64>()
    }

    /// Whether it is worth it to [`Table::prefetch`].
    pub fn is_far(&self) -> bool {
        self.slots.len() >= FAR_MIN
    }

    /// Asks memory for where a hash is looked for first.
    pub fn prefetch(&self, hash: u32) {
        prefetch_item(&self.slots, self.first(hash));
    }

    /// The number in the first slot where a hash may be; 0 for none.
    #[inline]
    pub fn first_number(&self, hash: u32) -> u32 {
        self.slots[self.first(hash)] as u32
    }

    /// The number that a hash most likely leads to, if it is found near its first slot; 0 for none.
    #[inline]
    pub fn candidate(&self, hash: u32) -> u32 {
        let (first, last) = (self.first(hash), self.slots.len() - 1);
        for step in 0..NEAR_SLOTS {
            match self.slots[(first + step) & last] {
                0 => return 0,
                slot if (slot >> 32) as u32 == hash => return slot as u32,
                _ => {}
            }
        }
        0
    }

    /// The first slot where a hash may be.
    #[inline]
    fn first(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    #[inline]
    pub fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let last = self.slots.len() - 1;
        let mut at = self.first(hash);
        loop {
            match self.slots[at] {
                0 => return None,
                slot if (slot >> 32) as u32 == hash && is(slot as u32) => return Some(slot as u32),
                _ => at = (at + 1) & last,
            }
        }
    }

    /// Before so many numbers may come: a large table grows with looks at the stop flag.
    pub fn make_room(&mut self, numbers: usize) -> Result<()> {
        let wanted = (self.used + numbers) * 2;
        if self.slots.len() < LARGE_MIN || wanted <= self.slots.len() {
            return Ok(());
        }
        let grown = vec![0; wanted.next_power_of_two()];
        let slots = std::mem::replace(&mut self.slots, grown);
        for piece in pieces(slots.len()) {
            slots[piece?].iter().filter(|slot| **slot != 0).for_each(|slot| self.put(*slot));
        }
        Ok(())
    }

    pub fn insert(&mut self, hash: u32, number: u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            // Few slots soon become many.
            let factor = if self.slots.len() < SCARCE_MIN { 4 } else { 2 };
            let grown = vec![0; self.slots.len() * factor];
            let slots = std::mem::replace(&mut self.slots, grown);
            slots.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.used += 1;
        self.put(u64::from(hash) << 32 | u64::from(number));
    }

    fn put(&mut self, slot: u64) {
        let last = self.slots.len() - 1;
        let mut at = self.first((slot >> 32) as u32);
        while self.slots[at] != 0 {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
    }
}
