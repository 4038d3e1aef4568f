//! Which key a row has: keys by number, from 1; 0 stands for none.
//!
//! Integer keys are one number together, by their distances from the least ones. Where there are not too many such
//! numbers for the rows that are held, a bit says which of them occur, and the number of a key is how many lie below it
//! (its rank): a bit and a half for each, neither hash nor comparison, and a row without partner is ruled out by one bit.
//! Else they are found by a hash of that number. Keys of other types are found as groups are.

use super::guard::{BITS_MAX as GUARD_BITS_MAX, BITS_PER_ROW_MAX as GUARD_BITS_PER_ROW_MAX, Guard};
use super::packing::Packing;
use super::{Part, Spec};
use crate::aggregate::keys::{Found, Seeds, seed};
use crate::aggregate::table::TOGETHER;
use crate::error::{Error, Result};
use crate::kernels::mask;
use crate::kernels::occur::{clear_absent_i32, clear_absent_i64};
use crate::spill::bytes_of;
use crate::stop::{check, pieces};
use basalt_types::prefetch::prefetch_item;
use basalt_types::vector::{IntValues, Ints, Vector};
use basalt_types::widest;

/// Bits per row that ranks are worth, and those that are always worth it.
const BITS_PER_ROW_MAX: u64 = 256;
const BITS_MIN: u64 = 1 << 20;
const BITS_MAX: u64 = 1 << 30;
/// Slots of a table of packed keys.
const SLOTS_MIN: usize = 1024;
const SLOTS_AT_ONCE_MAX: usize = 1 << 17;

pub(super) enum Lookup {
    Ranked(Packing, Ranks),
    Packed { packing: Packing, slots: Slots, guards: Vec<Option<Guard>> },
    Found { found: Found, guards: Vec<Option<Guard>>, null_safe: Vec<bool> },
}

/// Which numbers occur, and how many below each.
pub(super) struct Ranks {
    /// One more word at the end, which is 0.
    words: Vec<u64>,
    /// How many lie below each word.
    below: Vec<u32>,
}

/// Open addressing: the number of each packed key.
pub(super) struct Slots {
    slots: Vec<(u64, u32)>,
    used: u32,
    seed: u64,
}

impl Lookup {
    /// The lookup, and the number of each row's key: 0 where it is null.
    pub fn build(spec: &Spec, parts: &[Part], rows: usize) -> Result<(Lookup, Vec<u32>)> {
        if spec.keys.is_empty() {
            // All rows have the same key.
            let mut found = Found::new(&spec.forms, &Seeds::new());
            found.hashed(&[], rows.min(1), None)?;
            return Ok((Lookup::Found { found, guards: Vec::new(), null_safe: Vec::new() }, vec![1; rows]));
        }
        let guard = |at: usize| Guard::new(parts.iter().map(|part| &part.keys[at]), rows);
        let guards = || {
            let guards = (0..spec.keys.len()).map(|at| if spec.null_safe[at] { Ok(None) } else { guard(at) });
            guards.collect::<Result<Vec<_>>>()
        };
        // A packed key has no place for a null that others are equal to.
        let safe_nulls =
            |part: &Part| part.keys.iter().zip(&spec.null_safe).any(|(key, safe)| *safe && key.nulls().is_some());
        let Some(packing) = Packing::of(spec, parts).filter(|_| !parts.iter().any(safe_nulls)) else {
            let mut found = Found::new(&spec.forms, &Seeds::new());
            let mut of_rows = Vec::with_capacity(rows);
            for part in parts {
                check()?;
                let valued = valued(unsafe_keys(&part.keys, &spec.null_safe), part.rows);
                of_rows.extend(found.hashed(&part.keys, part.rows, valued.as_deref())?);
            }
            let null_safe = spec.null_safe.clone();
            return Ok((Lookup::Found { found, guards: guards()?, null_safe }, of_rows));
        };
        if packing.numbers <= bits_max(rows) {
            let ranks = Ranks::of(&packing, parts)?;
            let lookup = Lookup::Ranked(packing, ranks);
            let mut of_rows = Vec::with_capacity(rows);
            for part in parts {
                check()?;
                of_rows.extend(lookup.numbers(&part.keys, part.rows, None)?);
            }
            return Ok((lookup, of_rows));
        }
        let mut slots = Slots::expecting(rows);
        let mut of_rows = Vec::with_capacity(rows);
        for part in parts {
            check()?;
            slots.make_room(part.rows)?;
            let valued = valued(part.keys.iter(), part.rows);
            let packed = packing.pack(&part.keys, part.rows)?;
            of_rows.extend((0..part.rows).map(|row| {
                if row % TOGETHER == 0 {
                    packed[row..part.rows.min(row + TOGETHER)].iter().for_each(|packed| slots.prefetch(*packed));
                }
                match &valued {
                    Some(valued) if valued[row] == 0 => 0,
                    _ => slots.number(packed[row]),
                }
            }));
        }
        Ok((Lookup::Packed { packing, slots, guards: guards()? }, of_rows))
    }

    /// What [`Lookup::build`] will take, at most.
    pub fn bytes_expected(spec: &Spec, parts: &[Part], rows: usize) -> usize {
        const SLOTS_PER_ROW_MAX: usize = 4;
        // Rows that are held without keys are looked for by nobody.
        if spec.keys.is_empty() {
            return 0;
        }
        let guards = GUARD_BITS_MAX.min(rows.saturating_mul(GUARD_BITS_PER_ROW_MAX)) / 8 * spec.keys.len();
        match Packing::of(spec, parts) {
            Some(packing) if packing.numbers <= bits_max(rows) => packing.numbers as usize / 16 * 3,
            Some(_) => rows * SLOTS_PER_ROW_MAX * size_of::<(u64, u32)>() + guards,
            None => {
                let keys: usize = parts.iter().flat_map(|part| &part.keys).map(bytes_of).sum();
                keys * 2 + rows * (spec.keys.len() + SLOTS_PER_ROW_MAX) * size_of::<u64>() + guards
            }
        }
    }

    pub fn bytes(&self) -> usize {
        let all = |guards: &[Option<Guard>]| guards.iter().flatten().map(Guard::bytes).sum::<usize>();
        match self {
            Lookup::Ranked(_, ranks) => ranks.words.len() * 8 + ranks.below.len() * 4,
            Lookup::Packed { slots, guards, .. } => slots.slots.len() * size_of::<(u64, u32)>() + all(guards),
            Lookup::Found { found, guards, .. } => found.bytes() + all(guards),
        }
    }

    /// All keys in their order, if they are single integers.
    pub fn integers(&self) -> Option<Vec<i64>> {
        match self {
            Lookup::Ranked(packing, ranks) => {
                let least = packing.least_alone()?;
                let bits = |(at, word): (usize, &u64)| Bits(*word).map(move |bit| at as i64 * 64 + bit);
                Some(ranks.words.iter().enumerate().flat_map(bits).map(|bit| least + bit).collect())
            }
            Lookup::Packed { packing, slots, .. } => {
                let least = packing.least_alone()?;
                let used = slots.slots.iter().filter(|(_, number)| *number != 0);
                let mut keys: Vec<i64> = used.map(|(packed, _)| least + *packed as i64).collect();
                keys.sort_unstable();
                Some(keys)
            }
            Lookup::Found { .. } => None,
        }
    }

    /// What rules rows out by one key alone, by key.
    pub fn guards(&self) -> &[Option<Guard>] {
        match self {
            Lookup::Ranked(..) => &[],
            Lookup::Packed { guards, .. } | Lookup::Found { guards, .. } => guards,
        }
    }

    /// Clears the rows of the mask whose key does not occur, if that takes less than to find its number.
    pub fn screen(&self, keys: &[Vector], rows: usize, mask: &mut [u8]) -> Result<bool> {
        let Lookup::Ranked(packing, ranks) = self else { return Ok(false) };
        match packing.alone(keys) {
            Some((Ints { values: IntValues::I32(values), .. }, least)) => {
                clear_absent_i32(values, least, &ranks.words, mask)
            }
            Some((Ints { values: IntValues::I64(values), .. }, least)) => {
                clear_absent_i64(values, least, &ranks.words, mask)
            }
            _ => clear_absent_i64(&signed(packing.pack(keys, rows)?), 0, &ranks.words, mask),
        }
        keys.iter().for_each(|key| mask::clear_nulls(key.nulls(), mask));
        Ok(true)
    }

    /// The number of each row's key. Rows that the mask leaves out may have any.
    pub fn numbers(&self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        let mut numbers = match self {
            Lookup::Ranked(packing, Ranks { words, below }) => match packing.alone(keys) {
                Some((Ints { values: IntValues::I32(values), .. }, least)) => rank_i32(values, least, words, below),
                Some((Ints { values: IntValues::I64(values), .. }, least)) => rank_i64(values, least, words, below),
                _ => rank_i64(&signed(packing.pack(keys, rows)?), 0, words, below),
            },
            Lookup::Packed { packing, slots, .. } => {
                let packed = packing.pack(keys, rows)?;
                let mut numbers = vec![0; rows];
                for (row, number) in numbers.iter_mut().enumerate() {
                    if row % TOGETHER == 0 {
                        packed[row..rows.min(row + TOGETHER)].iter().for_each(|packed| slots.prefetch(*packed));
                    }
                    if mask.is_none_or(|mask| mask[row] != 0) {
                        *number = slots.known(packed[row]);
                    }
                }
                numbers
            }
            Lookup::Found { found, .. } => found.find(keys, rows, mask)?,
        };
        let nowhere = vec![false; keys.len()];
        let null_safe = if let Lookup::Found { null_safe, .. } = self { null_safe } else { &nowhere };
        for nulls in unsafe_keys(keys, null_safe).filter_map(Vector::nulls) {
            numbers.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, number)| *number = 0);
        }
        Ok(numbers)
    }
}

/// The places of a word's bits that are set.
struct Bits(u64);

impl Iterator for Bits {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        let bit = (self.0 != 0).then(|| i64::from(self.0.trailing_zeros()));
        self.0 &= self.0.wrapping_sub(1);
        bit
    }
}

/// Numbers that so many rows are worth a bit each.
fn bits_max(rows: usize) -> u64 {
    BITS_MIN.max((rows as u64).saturating_mul(BITS_PER_ROW_MAX)).min(BITS_MAX)
}

/// Packed keys as the loops over ranks take them: what has none lies below all.
fn signed(packed: Vec<u64>) -> Vec<i64> {
    packed.into_iter().map(|packed| packed as i64).collect()
}

impl Ranks {
    fn of(packing: &Packing, parts: &[Part]) -> Result<Ranks> {
        let mut words = vec![0u64; packing.numbers.div_ceil(64) as usize + 1];
        for part in parts {
            check()?;
            let valued = valued(part.keys.iter(), part.rows);
            for (row, packed) in packing.pack(&part.keys, part.rows)?.into_iter().enumerate() {
                if valued.as_ref().is_none_or(|valued| valued[row] == 1) {
                    words[(packed / 64) as usize] |= 1 << (packed % 64);
                }
            }
        }
        let mut all = 0;
        let mut below = Vec::with_capacity(words.len());
        for piece in pieces(words.len()) {
            below.extend(words[piece?].iter().map(|word| {
                let below = all;
                all += word.count_ones();
                below
            }));
        }
        Ok(Ranks { below, words })
    }
}

macro_rules! ranked {
    ($rank:ident, $native:ty) => {
        widest! {
            fn $rank(keys: &[$native], least: i64, words: &[u64], below: &[u32]) -> Vec<u32> {
                assert!(words.len() == below.len() && !words.is_empty(), "a word has what lies below it");
                let end = words.len() as u64 - 1;
                let mut numbers = vec![0; keys.len()];
                for (number, key) in numbers.iter_mut().zip(keys) {
                    let bit = i64::from(*key).wrapping_sub(least) as u64;
                    let at = (bit / 64).min(end) as usize;
                    // SAFETY: there are as many of both, and no place behind the end is asked for.
                    let (word, below) = unsafe { (*words.get_unchecked(at), *below.get_unchecked(at)) };
                    let bit = 1u64 << (bit % 64);
                    let rank = below + (word & (bit - 1)).count_ones();
                    *number = if word & bit == 0 { 0 } else { rank + 1 };
                }
                numbers
            }
        }
    };
}

ranked!(rank_i32, i32);
ranked!(rank_i64, i64);

impl Slots {
    /// Few keys have room at once; many may be few different ones.
    fn expecting(keys: usize) -> Slots {
        let slots = keys.saturating_mul(2).clamp(SLOTS_MIN, SLOTS_AT_ONCE_MAX).next_power_of_two();
        Slots { slots: vec![(0, 0); slots], used: 0, seed: seed() }
    }

    #[inline]
    fn place(&self, packed: u64) -> usize {
        let wide = u128::from(packed ^ self.seed) * 0xd6e8_feb8_6659_fd93_u128;
        (wide as u64 ^ (wide >> 64) as u64) as usize & (self.slots.len() - 1)
    }

    /// Asks memory for where a key is looked for first.
    #[inline]
    fn prefetch(&self, packed: u64) {
        prefetch_item(&self.slots, self.place(packed));
    }

    /// The number of a key, 0 if it is none.
    #[inline]
    fn known(&self, packed: u64) -> u32 {
        let mut at = self.place(packed);
        loop {
            match self.slots[at] {
                (_, 0) => return 0,
                (known, number) if known == packed => return number,
                _ => at = (at + 1) & (self.slots.len() - 1),
            }
        }
    }

    /// Before so many keys come.
    fn make_room(&mut self, keys: usize) -> Result<()> {
        let wanted = (self.used as usize + keys) * 2;
        if wanted > self.slots.len() {
            let grown = vec![(0, 0); wanted.next_power_of_two()];
            let slots = std::mem::replace(&mut self.slots, grown);
            for piece in pieces(slots.len()) {
                slots[piece?].iter().filter(|(_, number)| *number != 0).for_each(|slot| self.put(*slot));
            }
        }
        Ok(())
    }

    /// The number of a key, which is given one if it has none: there is room for it.
    fn number(&mut self, packed: u64) -> u32 {
        let known = self.known(packed);
        if known != 0 {
            return known;
        }
        self.used += 1;
        self.put((packed, self.used));
        self.used
    }

    fn put(&mut self, slot: (u64, u32)) {
        let mut at = self.place(slot.0);
        while self.slots[at].1 != 0 {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }
}

/// Keys of which a null equals nothing.
fn unsafe_keys<'k>(keys: &'k [Vector], null_safe: &'k [bool]) -> impl Iterator<Item = &'k Vector> {
    keys.iter().zip(null_safe).filter(|(_, safe)| !**safe).map(|(key, _)| key)
}

/// Rows without a null among their keys; `None`: all.
pub(super) fn valued<'k>(keys: impl Iterator<Item = &'k Vector>, rows: usize) -> Option<Vec<u8>> {
    let mut mask = None;
    for nulls in keys.filter_map(Vector::nulls) {
        mask::clear_nulls(Some(nulls), mask.get_or_insert_with(|| mask::all(rows)));
    }
    mask
}

/// Of keys in another form than those that are held.
pub(super) const OTHER_FORM: Error = Error::Beyond("a join key in another form");
