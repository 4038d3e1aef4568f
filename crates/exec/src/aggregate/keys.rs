//! Group keys: which group each row belongs to.
//!
//! Groups are numbered from 1 in the order in which they came; number 0 stands for rows that do not count. A key column
//! is one word per row: an integer as it is, a text by the number under which it was first seen. While the words of all
//! columns have few values together, they index a table of groups directly; otherwise they are hashed.

use super::texts::Texts;
use crate::error::{Error, Result};
use arrow_array::BinaryViewArray;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use basalt_types::vector::{Codes, IntValues, Ints, Vector};
use std::sync::Arc;

/// Words of all columns together have so many bits at most where they index a table.
const DIRECT_BITS_MAX: u32 = 16;

/// The keys of all groups that were seen, and how to find them.
pub struct Keys {
    columns: Vec<KeyColumn>,
    /// Groups, the one of rows that do not count among them.
    len: usize,
    lookup: Lookup,
}

struct KeyColumn {
    /// By group; 0 where the key is null.
    words: Vec<u64>,
    /// By group; empty as long as no key is null.
    nulls: Vec<bool>,
    /// What the words of texts stand for.
    texts: Option<Texts>,
    /// The least and the greatest word that any batch may have had.
    range: Option<(i64, i64)>,
}

enum Lookup {
    Direct { layout: Layout, table: Vec<u32> },
    Hashed(Table),
}

/// How the words of columns make an index: each less its base, plus one for null.
#[derive(Clone, PartialEq, Default, Debug)]
struct Layout {
    bases: Vec<i64>,
    shifts: Vec<u32>,
    bits: u32,
}

/// One batch's words of one column.
struct Words {
    words: Vec<u64>,
    nulls: Option<NullBuffer>,
}

impl Keys {
    /// `text`: for each key column, whether it holds texts.
    pub fn new(text: &[bool]) -> Keys {
        let column = |text: &bool| KeyColumn {
            words: vec![0],
            nulls: Vec::new(),
            texts: text.then(Texts::default),
            range: None,
        };
        let lookup = Lookup::Direct { layout: Layout::default(), table: Vec::new() };
        Keys { columns: text.iter().map(column).collect(), len: 1, lookup }
    }

    /// Groups, the one of rows that do not count among them.
    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> usize {
        let of_column = |column: &KeyColumn| {
            column.words.capacity() * 8 + column.nulls.capacity() + column.texts.as_ref().map_or(0, Texts::bytes)
        };
        let of_lookup = match &self.lookup {
            Lookup::Direct { table, .. } => table.capacity() * 4,
            Lookup::Hashed(table) => table.slots.capacity() * 8,
        };
        self.columns.iter().map(of_column).sum::<usize>() + of_lookup
    }

    /// The group of each row; 0 for those that the mask leaves out.
    pub fn assign(&mut self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        let mut words = Vec::with_capacity(keys.len());
        for (column, key) in self.columns.iter_mut().zip(keys) {
            words.push(column.words_of(key, mask)?);
        }
        if let Lookup::Direct { layout, .. } = &self.lookup {
            let wanted = Layout::of(&self.columns);
            if wanted.as_ref() != Some(layout) {
                self.lay_out(wanted);
            }
        }
        let mut groups = match &self.lookup {
            Lookup::Direct { .. } => self.assign_direct(&words, rows, mask),
            Lookup::Hashed(_) => self.assign_hashed(&words, rows, mask),
        };
        if let Some(mask) = mask {
            groups.iter_mut().zip(mask).for_each(|(group, counts)| *group *= u32::from(*counts));
        }
        Ok(groups)
    }

    /// Builds the lookup anew for the groups that there are.
    fn lay_out(&mut self, layout: Option<Layout>) {
        match layout {
            Some(layout) => {
                let mut table = vec![0; 1 << layout.bits];
                for group in 1..self.len {
                    table[layout.index(&self.columns, group)] = group as u32;
                }
                self.lookup = Lookup::Direct { layout, table };
            }
            None => {
                let mut table = Table::with_capacity(self.len);
                for group in 1..self.len {
                    table.insert(self.hash_of_group(group), group as u32);
                }
                self.lookup = Lookup::Hashed(table);
            }
        }
    }

    fn hash_of_group(&self, group: usize) -> u32 {
        hash(self.columns.iter().map(|column| (column.words[group], column.is_null(group))))
    }

    fn assign_direct(&mut self, words: &[Words], rows: usize, mask: Option<&[u8]>) -> Vec<u32> {
        let Lookup::Direct { layout, table } = &mut self.lookup else { return Vec::new() };
        let mut groups = layout.indexes(words, rows);
        // Rows that do not count may hold anything: their index is 0, and is not looked at.
        if let Some(mask) = mask {
            groups.iter_mut().zip(mask).for_each(|(index, counts)| *index *= u32::from(*counts));
        }
        let mut absent = Vec::new();
        for (row, group) in groups.iter_mut().enumerate() {
            let found = table[*group as usize];
            if found == 0 && mask.is_none_or(|mask| mask[row] != 0) {
                absent.push((row, *group as usize));
            }
            *group = found;
        }
        for (row, index) in absent {
            if table[index] == 0 {
                table[index] = self.len as u32;
                self.len += 1;
                self.columns.iter_mut().zip(words).for_each(|(column, words)| column.add(words, row));
            }
            groups[row] = table[index];
        }
        groups
    }

    fn assign_hashed(&mut self, words: &[Words], rows: usize, mask: Option<&[u8]>) -> Vec<u32> {
        let Lookup::Hashed(table) = &mut self.lookup else { return Vec::new() };
        let mut groups = vec![0; rows];
        let mut last: Option<(usize, u32)> = None;
        for row in 0..rows {
            if mask.is_some_and(|mask| mask[row] == 0) {
                continue;
            }
            // Rows of a group often follow each other.
            if let Some((before, group)) = last
                && words.iter().all(|words| words.same(before, row))
            {
                groups[row] = group;
                continue;
            }
            let hash = hash(words.iter().map(|words| (words.words[row], words.is_null(row))));
            let columns = &self.columns;
            let found = table.find(hash, |group| {
                columns.iter().zip(words).all(|(column, words)| {
                    column.words[group as usize] == words.words[row]
                        && column.is_null(group as usize) == words.is_null(row)
                })
            });
            let group = found.unwrap_or_else(|| {
                let group = self.len as u32;
                self.len += 1;
                self.columns.iter_mut().zip(words).for_each(|(column, words)| column.add(words, row));
                table.insert(hash, group);
                group
            });
            groups[row] = group;
            last = Some((row, group));
        }
        groups
    }

    /// The keys of some groups, in order of their numbers, in stored form of integers or texts.
    pub fn vectors(&self, groups: std::ops::Range<usize>) -> Vec<Vector> {
        self.columns.iter().map(|column| column.vector(groups.clone())).collect()
    }

    /// What [`Keys::vectors`] gives as codes belongs to these; made once for all groups.
    pub fn seal(&mut self) {
        self.columns.iter_mut().filter_map(|column| column.texts.as_mut()).for_each(Texts::seal);
    }
}

impl KeyColumn {
    fn is_null(&self, group: usize) -> bool {
        self.nulls.get(group).copied().unwrap_or(false)
    }

    fn add(&mut self, words: &Words, row: usize) {
        let null = words.is_null(row);
        if null || !self.nulls.is_empty() {
            self.nulls.resize(self.words.len(), false);
            self.nulls.push(null);
        }
        self.words.push(words.words[row]);
    }

    fn words_of(&mut self, key: &Vector, mask: Option<&[u8]>) -> Result<Words> {
        let nulls = key.nulls().cloned();
        let words = match (key, &mut self.texts) {
            (Vector::Ints(ints), None) => self.of_ints(ints)?,
            (Vector::Codes(codes), Some(texts)) => texts.of_codes(codes, mask),
            (Vector::Flat(values), Some(texts)) => texts.of_values(values.as_binary_view(), mask),
            _ => return Err(Error::Beyond("a key column in two forms")),
        };
        if let Some(texts) = &self.texts {
            self.range = Some((0, texts.len().max(1) as i64 - 1));
        }
        Ok(Words { words: zeroed(words, nulls.as_ref()), nulls })
    }

    fn of_ints(&mut self, ints: &Ints) -> Result<Vec<u64>> {
        let (Ok(min), Ok(max)) = (i64::try_from(ints.min), i64::try_from(ints.max)) else {
            return Err(Error::Beyond("keys of more than 64 bits"));
        };
        self.range = Some(self.range.map_or((min, max), |(least, most)| (least.min(min), most.max(max))));
        Ok(match &ints.values {
            IntValues::I32(values) => values.iter().map(|value| i64::from(*value) as u64).collect(),
            IntValues::I64(values) => values.iter().map(|value| *value as u64).collect(),
            IntValues::I128(values) => values.iter().map(|value| *value as u64).collect(),
        })
    }

    fn vector(&self, groups: std::ops::Range<usize>) -> Vector {
        let words = &self.words[groups.clone()];
        let nulls = (!self.nulls.is_empty()).then(|| groups.map(|group| !self.is_null(group)).collect::<NullBuffer>());
        match &self.texts {
            None => {
                let values = IntValues::I64(words.iter().map(|word| *word as i64).collect());
                Vector::Ints(Ints::measured(values, nulls))
            }
            Some(texts) => {
                let codes = words.iter().map(|word| *word as u32).collect();
                Vector::Codes(Codes { codes, nulls, dictionary: texts.sealed() })
            }
        }
    }
}

/// Null keys have the word 0.
fn zeroed(mut words: Vec<u64>, nulls: Option<&NullBuffer>) -> Vec<u64> {
    if let Some(nulls) = nulls {
        words.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, word)| *word = 0);
    }
    words
}

impl Words {
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    fn same(&self, a: usize, b: usize) -> bool {
        self.words[a] == self.words[b] && self.is_null(a) == self.is_null(b)
    }
}

impl Layout {
    /// `None` if words have too many values together.
    fn of(columns: &[KeyColumn]) -> Option<Layout> {
        let mut layout = Layout::default();
        for column in columns {
            let (min, max) = column.range.unwrap_or((0, 0));
            // One more for null, and room for the words to come.
            let values = u64::try_from(max.checked_sub(min)?).ok()?.checked_add(2)?;
            let bits = values.checked_next_power_of_two()?.trailing_zeros();
            layout.bases.push(min);
            layout.shifts.push(layout.bits);
            layout.bits += bits;
            if layout.bits > DIRECT_BITS_MAX {
                return None;
            }
        }
        Some(layout)
    }

    fn index(&self, columns: &[KeyColumn], group: usize) -> usize {
        let part = |column: &KeyColumn, base: i64| match column.is_null(group) {
            true => 0,
            false => (column.words[group] as i64).wrapping_sub(base) as usize + 1,
        };
        let parts = columns.iter().zip(&self.bases).zip(&self.shifts);
        parts.map(|((column, base), shift)| part(column, *base) << shift).sum()
    }

    fn indexes(&self, words: &[Words], rows: usize) -> Vec<u32> {
        let mut indexes = vec![0u32; rows];
        for ((words, base), shift) in words.iter().zip(&self.bases).zip(&self.shifts) {
            let add = |index: &mut u32, word: u64| *index += ((word as i64).wrapping_sub(*base) as u32 + 1) << shift;
            match &words.nulls {
                None => indexes.iter_mut().zip(&words.words).for_each(|(index, word)| add(index, *word)),
                Some(nulls) => {
                    let rows = indexes.iter_mut().zip(&words.words).enumerate();
                    rows.filter(|(row, _)| nulls.is_valid(*row)).for_each(|(_, (index, word))| add(index, *word));
                }
            }
        }
        indexes
    }
}

fn hash(words: impl Iterator<Item = (u64, bool)>) -> u32 {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    for (word, null) in words {
        let wide = u128::from(state ^ word ^ u64::from(null)) * 0xd6e8_feb8_6659_fd93_u128;
        state = (wide as u64 ^ (wide >> 64) as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    (state ^ state >> 32) as u32
}

/// Open addressing: the hash and the group in each slot, 0 where there is none.
struct Table {
    slots: Vec<u64>,
    used: usize,
}

impl Table {
    fn with_capacity(groups: usize) -> Table {
        Table { slots: vec![0; (groups * 2).next_power_of_two().max(1024)], used: 0 }
    }

    #[inline]
    fn find(&self, hash: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let last = self.slots.len() - 1;
        let mut at = hash as usize & last;
        loop {
            match self.slots[at] {
                0 => return None,
                slot if (slot >> 32) as u32 == hash && is(slot as u32) => return Some(slot as u32),
                _ => at = (at + 1) & last,
            }
        }
    }

    fn insert(&mut self, hash: u32, group: u32) {
        if (self.used + 1) * 2 > self.slots.len() {
            let slots = std::mem::take(&mut self.slots);
            self.slots = vec![0; slots.len() * 2];
            slots.into_iter().filter(|slot| *slot != 0).for_each(|slot| self.put(slot));
        }
        self.used += 1;
        self.put(u64::from(hash) << 32 | u64::from(group));
    }

    fn put(&mut self, slot: u64) {
        let last = self.slots.len() - 1;
        let mut at = (slot >> 32) as usize & last;
        while self.slots[at] != 0 {
            at = (at + 1) & last;
        }
        self.slots[at] = slot;
    }
}

/// Texts without nulls as an array whose codes are positions.
pub(super) type Dictionary = Arc<BinaryViewArray>;

#[cfg(test)]
mod tests;
