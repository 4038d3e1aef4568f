//! Sort keys as one number: rows are compared by 128 bits that lie side by side, and by their values only where these
//! are equal and do not say all.
//!
//! Keys follow one another from the highest bit on, each with a bit for null and with as many bits as its values have:
//! integers their distance from the least one, texts their first bytes and, where all of a text fits, its length. Texts
//! of one dictionary that has fewer entries than there are rows are numbered in its order, which says all in a few bits.

use super::{Key, KeyValues};
use crate::aggregate::texts::{Equality, key_of};
use crate::error::Result;
use crate::kernels::sums::extreme;
use crate::parted;
use crate::stop::{check, pieces};
use arrow_array::{Array, BinaryViewArray};
use basalt_types::vector::IntValues;
use std::sync::Arc;

/// The rows of a batch that are to be sorted, by their keys.
pub(super) type Columns<'k> = (&'k [KeyValues], usize);

/// How the keys of all rows are packed.
pub(super) struct Packing {
    keys: Vec<Packed>,
    /// Whether equal numbers mean equal keys.
    pub exact: bool,
}

struct Packed {
    shape: Shape,
    /// Of the value, without the one for null.
    bits: u32,
    /// How far up the key begins.
    shift: u32,
    descending: bool,
    nulls_first: bool,
}

enum Shape {
    /// Distances from the least value, without so many of their low bits.
    Integers {
        least: i128,
        dropped: u32,
    },
    Bools,
    /// Nothing is said.
    Hidden,
    /// So many first bytes; and the length where these are all.
    Bytes {
        bytes: u32,
        whole: bool,
    },
    /// The place of each entry of a dictionary in its order.
    Ranks(Vec<u32>),
}

/// The bits of a length, of texts that fit.
const LENGTH_BITS: u32 = 4;

impl Packing {
    pub fn of(keys: &[Key], batches: &[Columns<'_>]) -> Result<Packing> {
        let mut free = u128::BITS;
        let mut packed = Vec::with_capacity(keys.len());
        let mut exact = true;
        for (at, key) in keys.iter().enumerate() {
            let Some(room) = free.checked_sub(1).filter(|_| exact) else {
                exact = false;
                break;
            };
            let values = || batches.iter().map(|(keys, rows)| (&keys[at], *rows));
            let (shape, bits, whole) = match ranks(values(), room)? {
                Some(ranks) => ranks,
                None => shape(values(), room)?,
            };
            free = room - bits;
            exact = whole;
            let Key { descending, nulls_first, .. } = *key;
            packed.push(Packed { shape, bits, shift: free, descending, nulls_first });
        }
        Ok(Packing { keys: packed, exact })
    }

    /// How many bits lie below those of so many of the first keys.
    pub fn shift_of(&self, keys: usize) -> u32 {
        self.keys.iter().take(keys).next_back().map_or(u128::BITS, |key| key.shift)
    }

    /// The numbers of a batch's rows.
    pub fn numbers(&self, (keys, rows): Columns<'_>) -> Vec<u128> {
        let mut numbers = vec![0; rows];
        for (packed, values) in self.keys.iter().zip(keys) {
            packed.add(values, &mut numbers);
        }
        numbers
    }
}

/// Ranks of texts that are all of one dictionary, if it has fewer entries than there are rows.
fn ranks<'k>(batches: impl Iterator<Item = (&'k KeyValues, usize)>, room: u32) -> Result<Option<(Shape, u32, bool)>> {
    let Some((dictionary, equality)) = dictionary(batches) else { return Ok(None) };
    let text = |entry: u32| key_of(equality, dictionary.value(entry as usize));
    let mut order: Vec<u32> = (0..dictionary.len() as u32).collect();
    parted::sort(&mut order, &|a: &u32, b: &u32| text(*a).cmp(text(*b)).then(a.cmp(b)))?;
    let mut ranks = vec![0; order.len()];
    let mut rank = 0;
    for piece in pieces(order.len()) {
        for at in piece? {
            rank += u32::from(at > 0 && text(order[at - 1]) != text(order[at]));
            ranks[order[at] as usize] = rank;
        }
    }
    let bits = u32::BITS - rank.leading_zeros();
    Ok((bits <= room).then_some((Shape::Ranks(ranks), bits, true)))
}

/// The only dictionary of all rows, if it has fewer entries than there are rows.
fn dictionary<'k>(
    batches: impl Iterator<Item = (&'k KeyValues, usize)>,
) -> Option<(&'k Arc<BinaryViewArray>, Equality)> {
    let mut one: Option<(&Arc<BinaryViewArray>, Equality)> = None;
    let mut all = 0;
    for (values, rows) in batches {
        let KeyValues::Codes(codes, equality) = values else { return None };
        let (dictionary, _) = one.get_or_insert((&codes.dictionary, *equality));
        Arc::ptr_eq(dictionary, &codes.dictionary).then_some(())?;
        all += rows;
    }
    one.filter(|(dictionary, _)| dictionary.len() < all)
}

/// How a key is packed into so many bits, how many of them it takes, and whether they say all.
fn shape<'k>(batches: impl Iterator<Item = (&'k KeyValues, usize)>, room: u32) -> Result<(Shape, u32, bool)> {
    let mut bounds: Option<(i128, i128)> = None;
    let mut longest = None;
    for (values, rows) in batches {
        check()?;
        match values {
            KeyValues::Integers(values, _) => {
                if let Some((least, greatest)) = bounds_of(values, rows) {
                    bounds = Some(bounds.map_or((least, greatest), |(min, max)| (min.min(least), max.max(greatest))));
                }
            }
            KeyValues::Bools(_) => return Ok((Shape::Bools, room.min(1), room > 0)),
            KeyValues::Bytes(..) | KeyValues::Codes(..) => {
                let lengths = (0..rows).map(|row| if values.is_null(row) { 0 } else { values.text(row).len() });
                longest = longest.max(Some(lengths.max().unwrap_or(0)));
            }
            KeyValues::Fixed(values) => longest = Some(values.value_length() as usize),
            KeyValues::Arrays(..) => return Ok((Shape::Hidden, 0, false)),
        }
    }
    if let Some(longest) = longest {
        let whole = longest < 1 << LENGTH_BITS && longest as u32 * 8 + LENGTH_BITS <= room;
        let bytes = if whole { longest as u32 } else { (room / 8).min(16) };
        return Ok((Shape::Bytes { bytes, whole }, bytes * 8 + if whole { LENGTH_BITS } else { 0 }, whole));
    }
    let (least, greatest) = bounds.unwrap_or((0, 0));
    let wanted = u128::BITS - (greatest.wrapping_sub(least) as u128).leading_zeros();
    let bits = wanted.min(room);
    Ok((Shape::Integers { least, dropped: wanted - bits }, bits, bits == wanted))
}

/// The least and the greatest of the first values.
fn bounds_of(values: &IntValues, rows: usize) -> Option<(i128, i128)> {
    macro_rules! of {
        ($values:expr) => {{
            let values = &$values[..rows];
            Some((extreme(values, false)?.into(), extreme(values, true)?.into()))
        }};
    }
    match values {
        IntValues::I32(values) => of!(values),
        IntValues::I64(values) => of!(values),
        IntValues::I128(values) => of!(values),
    }
}

impl Packed {
    fn add(&self, values: &KeyValues, numbers: &mut [u128]) {
        match (values, &self.shape) {
            (KeyValues::Integers(integers, _), Shape::Integers { least, dropped }) => {
                let part = |distance: u128| distance.checked_shr(*dropped).unwrap_or(0);
                macro_rules! of {
                    ($integers:expr) => {
                        self.add_each(values, numbers, |row| {
                            let integer: i128 = $integers[row].into();
                            part(integer.wrapping_sub(*least) as u128)
                        })
                    };
                }
                match integers {
                    IntValues::I32(integers) => of!(integers),
                    IntValues::I64(integers) => of!(integers),
                    IntValues::I128(integers) => of!(integers),
                }
            }
            (KeyValues::Bools(bools), Shape::Bools) => {
                // Without room nothing is said.
                self.add_each(values, numbers, |row| u128::from(self.bits == 1 && bools.value(row)));
            }
            (KeyValues::Bytes(..) | KeyValues::Codes(..), Shape::Bytes { bytes, whole }) => {
                self.add_each(values, numbers, |row| of_bytes(values.text(row), *bytes, *whole));
            }
            (KeyValues::Codes(codes, _), Shape::Ranks(ranks)) => {
                self.add_each(values, numbers, |row| u128::from(ranks[codes.codes[row] as usize]));
            }
            (KeyValues::Fixed(fixed), Shape::Bytes { bytes, whole }) => {
                self.add_each(values, numbers, |row| of_bytes(fixed.value(row), *bytes, *whole));
            }
            (KeyValues::Arrays(..), Shape::Hidden) => self.add_each(values, numbers, |_| 0),
            _ => panic!("keys are packed in their own shapes"),
        }
    }

    fn add_each(&self, values: &KeyValues, numbers: &mut [u128], value: impl Fn(usize) -> u128) {
        let all = (1u128 << self.bits) - 1;
        let nulls = values.nulls();
        for (row, number) in numbers.iter_mut().enumerate() {
            let (flag, value) = match nulls.is_some_and(|nulls| nulls.is_null(row)) {
                true => (!self.nulls_first, 0),
                false if self.descending => (self.nulls_first, all - value(row)),
                false => (self.nulls_first, value(row)),
            };
            *number |= (u128::from(flag) << self.bits | value) << self.shift;
        }
    }
}

/// The first bytes of a text, the first one highest.
fn of_bytes(text: &[u8], bytes: u32, whole: bool) -> u128 {
    let mut first = [0; 16];
    let known = text.len().min(bytes as usize);
    first[16 - bytes as usize..][..known].copy_from_slice(&text[..known]);
    let value = u128::from_be_bytes(first);
    if whole { value << LENGTH_BITS | text.len() as u128 } else { value }
}

#[cfg(test)]
mod tests;
