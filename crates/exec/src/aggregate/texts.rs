//! Distinct texts, numbered in the order in which they came.

use super::keys::Dictionary;
use crate::error::{Error, Result};
use ahash::RandomState;
use arrow_array::builder::make_view;
use arrow_array::{Array, BinaryViewArray};
use arrow_buffer::Buffer;
use basalt_types::numeric;
use basalt_types::vector::Codes;
use hashbrown::HashTable;
use std::sync::Arc;

const UNKNOWN: u32 = u32::MAX;
const BYTES_MAX: usize = 1 << 30;
/// The word of a text that has no number.
const UNKNOWN_WORD: u64 = u64::MAX;

/// When texts are one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Equality {
    Bytes,
    /// Numerics, if they differ in nothing but how they print.
    Numerics,
    /// If they differ in nothing but the blanks at their ends.
    Padded,
}

pub struct Texts {
    equality: Equality,
    bytes: Vec<u8>,
    /// Where each text ends.
    ends: Vec<usize>,
    /// Half of each text's hash with its number: what grows hashes no text again, and what differs is seldom compared.
    numbers: HashTable<(u32, u32)>,
    hasher: RandomState,
    /// The dictionary that came last, and the numbers of those of its entries that rows had.
    last: Option<(Arc<BinaryViewArray>, Vec<u32>)>,
    sealed: Option<Dictionary>,
}

impl Texts {
    pub fn new(equality: Equality) -> Texts {
        // Fixed keys would let a client choose texts that all hash alike.
        let hasher = RandomState::new();
        let (bytes, ends, numbers) = (Vec::new(), Vec::new(), HashTable::new());
        Texts { equality, bytes, ends, numbers, hasher, last: None, sealed: None }
    }

    /// Texts are addressed by 32 bits; a batch more is always possible.
    pub fn check(&self) -> Result<()> {
        match self.bytes.len() > BYTES_MAX {
            true => Err(Error::Beyond("more text than keys can have")),
            false => Ok(()),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.numbers.capacity() * 9
    }

    /// The number of each row's text; any for rows that do not count.
    pub fn of_codes(&mut self, codes: &Codes, mask: Option<&[u8]>) -> Vec<u64> {
        if codes.dictionary.is_empty() {
            return vec![0; codes.codes.len()];
        }
        let mut numbers = match self.last.take() {
            Some((dictionary, numbers)) if Arc::ptr_eq(&dictionary, &codes.dictionary) => numbers,
            _ => vec![UNKNOWN; codes.dictionary.len()],
        };
        let nulls = codes.nulls.as_ref();
        let mut words: Vec<u64> = codes.codes.iter().map(|code| u64::from(numbers[*code as usize])).collect();
        for (row, word) in words.iter_mut().enumerate() {
            if *word == u64::from(UNKNOWN) {
                let counts = mask.is_none_or(|mask| mask[row] != 0) && nulls.is_none_or(|nulls| nulls.is_valid(row));
                let code = codes.codes[row] as usize;
                if counts && numbers[code] == UNKNOWN {
                    numbers[code] = self.number(codes.dictionary.value(code));
                }
                *word = if counts { u64::from(numbers[code]) } else { 0 };
            }
        }
        self.last = Some((codes.dictionary.clone(), numbers));
        words
    }

    pub fn of_values(&mut self, values: &BinaryViewArray, mask: Option<&[u8]>) -> Vec<u64> {
        let mut words = Vec::with_capacity(values.len());
        for row in 0..values.len() {
            let counts = mask.is_none_or(|mask| mask[row] != 0) && values.is_valid(row);
            words.push(if counts { u64::from(self.number(values.value(row))) } else { 0 });
        }
        words
    }

    /// The word of a text, or one that no key has.
    pub fn known(&self, text: &[u8]) -> u64 {
        let text = key_of(self.equality, text);
        let hash = self.hasher.hash_one(text) as u32;
        let is = |(other, number): &(u32, u32)| {
            *other == hash && key_of(self.equality, text_of(&self.bytes, &self.ends, *number)) == text
        };
        self.numbers.find(spread(hash), is).map_or(UNKNOWN_WORD, |(_, number)| u64::from(*number))
    }

    /// The same for each row.
    pub fn known_codes(&self, codes: &Codes) -> Vec<u64> {
        if codes.dictionary.is_empty() {
            return vec![UNKNOWN_WORD; codes.codes.len()];
        }
        if codes.dictionary.len() > codes.codes.len() {
            return codes.codes.iter().map(|code| self.known(codes.dictionary.value(*code as usize))).collect();
        }
        let words: Vec<u64> =
            (0..codes.dictionary.len()).map(|code| self.known(codes.dictionary.value(code))).collect();
        codes.codes.iter().map(|code| words[*code as usize]).collect()
    }

    /// The number of a text.
    pub fn number(&mut self, text: &[u8]) -> u32 {
        let Texts { equality, bytes, ends, numbers, hasher, .. } = self;
        let equality = *equality;
        let of = |number: u32| key_of(equality, text_of(bytes, ends, number));
        let key = key_of(equality, text);
        let hash = hasher.hash_one(key) as u32;
        if let Some((_, number)) = numbers.find(spread(hash), |(other, number)| *other == hash && of(*number) == key) {
            return *number;
        }
        let number = ends.len() as u32;
        bytes.extend_from_slice(text);
        ends.push(bytes.len());
        numbers.insert_unique(spread(hash), (hash, number), |(hash, _)| spread(*hash));
        self.sealed = None;
        number
    }

    /// Makes the dictionary of what there is.
    pub fn seal(&mut self) {
        let buffer = Buffer::from_slice_ref(&self.bytes);
        let mut from = 0;
        let view = |end: &usize| {
            let view = make_view(&self.bytes[from..*end], 0, from as u32);
            from = *end;
            view
        };
        let views: Vec<u128> = self.ends.iter().map(view).collect();
        let dictionary = BinaryViewArray::try_new(views.into(), vec![buffer], None);
        self.sealed = Some(Arc::new(dictionary.expect("views of the buffer")));
    }

    /// # Panics
    /// If texts came since [`Texts::seal`].
    pub fn sealed(&self) -> Dictionary {
        self.sealed.clone().expect("sealed")
    }
}

/// All bits of a table's hash from half of one.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// What of a text tells it from others.
pub(crate) fn key_of(equality: Equality, text: &[u8]) -> &[u8] {
    match equality {
        Equality::Bytes => text,
        Equality::Numerics => numeric::key_bytes(text),
        Equality::Padded => {
            let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
            &text[..end]
        }
    }
}

fn text_of<'t>(bytes: &'t [u8], ends: &[usize], number: u32) -> &'t [u8] {
    let number = number as usize;
    let from = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[from..ends[number]]
}
