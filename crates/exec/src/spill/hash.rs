//! Hashes that say in which partition a row is: equal keys have the same, in whatever form their columns are.

use crate::aggregate::keys::{Form, mixed};
use crate::aggregate::texts::{Equality, key_of};
use crate::error::{Error, Result};
use ahash::RandomState;
use arrow_array::cast::AsArray;
use arrow_array::{Array, BinaryViewArray};
use basalt_types::vector::{IntValues, Vector};

/// Bits of a hash that one cut takes.
const LEVEL_BITS: u32 = 5;
/// Parts of one cut.
pub(crate) const PARTS: usize = 1 << LEVEL_BITS;
/// Cuts, one within the other.
pub(crate) const LEVELS_MAX: u32 = 4;

/// Which part of a cut a row is in.
pub(crate) fn part_of(hash: u64, level: u32) -> usize {
    (hash >> (level * LEVEL_BITS)) as usize & (PARTS - 1)
}

/// A client that knew the seeds could choose keys that all hash alike.
#[derive(Clone)]
pub(crate) struct KeyHash(RandomState);

const NULL: u64 = 0x5bd1_e995_9e37_79b9;

impl KeyHash {
    pub fn new() -> KeyHash {
        KeyHash(RandomState::new())
    }

    /// The hash of each row's keys.
    pub fn of(&self, keys: &[Vector], forms: &[Form], rows: usize) -> Result<Vec<u64>> {
        let mut hashes = vec![self.0.hash_one(0u64); rows];
        for (key, form) in keys.iter().zip(forms) {
            let words = self.words(key, *form)?;
            for (row, (hash, word)) in hashes.iter_mut().zip(words).enumerate() {
                let null = key.nulls().is_some_and(|nulls| nulls.is_null(row));
                *hash = mixed(*hash ^ if null { NULL } else { word });
            }
        }
        Ok(hashes)
    }

    /// The same for joins: rows with a null that equals nothing have no partner, and go anywhere.
    pub fn of_sides(&self, keys: &[Vector], forms: &[Form], null_safe: &[bool], rows: usize) -> Result<Vec<u64>> {
        let mut hashes = self.of(keys, forms, rows)?;
        for nulls in keys.iter().zip(null_safe).filter(|(_, safe)| !**safe).filter_map(|(key, _)| key.nulls()) {
            let lonely = hashes.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row));
            lonely.for_each(|(row, hash)| *hash = mixed(row as u64 + 1));
        }
        Ok(hashes)
    }

    fn words(&self, key: &Vector, form: Form) -> Result<Vec<u64>> {
        let text = |equality: Equality| move |text: &[u8]| self.0.hash_one(key_of(equality, text));
        let views = |values: &BinaryViewArray, equality: Equality| -> Vec<u64> {
            values.iter().map(Option::unwrap_or_default).map(text(equality)).collect()
        };
        Ok(match (key, form) {
            (Vector::Ints(ints), Form::Integers) => match &ints.values {
                IntValues::I32(values) => values.iter().map(|value| i64::from(*value) as u64).collect(),
                IntValues::I64(values) => values.iter().map(|value| *value as u64).collect(),
                IntValues::I128(values) => values.iter().map(|value| *value as u64).collect(),
            },
            (Vector::Codes(codes), Form::Texts(_)) if codes.dictionary.is_empty() => vec![0; codes.codes.len()],
            (Vector::Codes(codes), Form::Texts(equality)) if codes.dictionary.len() <= codes.codes.len() => {
                let entries = views(&codes.dictionary, equality);
                codes.codes.iter().map(|code| entries[*code as usize]).collect()
            }
            (Vector::Codes(codes), Form::Texts(equality)) => {
                codes.codes.iter().map(|code| text(equality)(codes.dictionary.value(*code as usize))).collect()
            }
            (Vector::Flat(values), Form::Texts(equality)) => views(values.as_binary_view(), equality),
            (Vector::Flat(values), Form::Fixed) => {
                let values = values.as_fixed_size_binary();
                (0..values.len()).map(|row| self.0.hash_one(values.value(row))).collect()
            }
            (Vector::Flat(values), Form::Bools | Form::Floats { .. }) => form.words(values),
            _ => return Err(Error::Beyond("a key column in two forms")),
        })
    }
}
