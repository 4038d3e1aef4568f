//! Distinct texts, numbered in the order in which they came.

use super::keys::Dictionary;
use super::table::{TOGETHER, Table};
use crate::error::{Error, Result};
use crate::stop::{check, pieces};
use ahash::RandomState;
use arrow_array::builder::make_view;
use arrow_array::{Array, BinaryViewArray};
use arrow_buffer::Buffer;
use basalt_types::numeric;
use basalt_types::prefetch::prefetch_item;
use basalt_types::vector::Codes;
use std::sync::Arc;

const UNKNOWN: u32 = u32::MAX;
/// Of a text that is about to get its number.
const ASKED: u32 = u32::MAX - 1;
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
    /// Each number and one.
    numbers: Table,
    hasher: RandomState,
    /// The dictionary that came last, and the numbers of those of its entries that rows had.
    last: Option<(Arc<BinaryViewArray>, Vec<u32>)>,
    sealed: Option<Dictionary>,
}

impl Texts {
    pub fn new(equality: Equality) -> Texts {
        // Fixed keys would let a client choose texts that all hash alike.
        let hasher = RandomState::new();
        let (bytes, ends, numbers) = (Vec::new(), Vec::new(), Table::new(64));
        Texts { equality, bytes, ends, numbers, hasher, last: None, sealed: None }
    }

    /// Before so many texts may come. Texts are addressed by 32 bits; a batch more is always possible.
    pub fn make_room(&mut self, texts: usize) -> Result<()> {
        match self.bytes.len() > BYTES_MAX {
            true => Err(Error::Beyond("more text than keys can have")),
            false => self.numbers.make_room(texts),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * 8 + self.numbers.bytes()
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
        let counts =
            |row: usize| mask.is_none_or(|mask| mask[row] != 0) && nulls.is_none_or(|nulls| nulls.is_valid(row));
        let mut open: Vec<u32> = Vec::new();
        for (row, word) in words.iter_mut().enumerate() {
            if *word == u64::from(UNKNOWN) {
                let code = codes.codes[row];
                match counts(row) {
                    false => *word = 0,
                    true if numbers[code as usize] == UNKNOWN => {
                        numbers[code as usize] = ASKED;
                        open.push(code);
                    }
                    true => {}
                }
            }
        }
        if !open.is_empty() {
            self.number_all(
                open.len(),
                |at| codes.dictionary.value(open[at] as usize),
                |at, number| {
                    numbers[open[at] as usize] = number;
                },
            );
            for (word, code) in words.iter_mut().zip(codes.codes.iter()) {
                if *word == u64::from(UNKNOWN) {
                    *word = u64::from(numbers[*code as usize]);
                }
            }
        }
        self.last = Some((codes.dictionary.clone(), numbers));
        words
    }

    pub fn of_values(&mut self, values: &BinaryViewArray, mask: Option<&[u8]>) -> Vec<u64> {
        let mut words = vec![0; values.len()];
        if mask.is_none() && values.null_count() == 0 {
            self.number_all(values.len(), |row| values.value(row), |row, number| words[row] = u64::from(number));
            return words;
        }
        let counts = |row: &u32| mask.is_none_or(|mask| mask[*row as usize] != 0) && values.is_valid(*row as usize);
        let rows: Vec<u32> = (0..values.len() as u32).filter(counts).collect();
        self.number_all(
            rows.len(),
            |at| values.value(rows[at] as usize),
            |at, number| {
                words[rows[at] as usize] = u64::from(number);
            },
        );
        words
    }

    /// The numbers of so many texts.
    fn number_all<'t>(&mut self, count: usize, text: impl Fn(usize) -> &'t [u8], mut put: impl FnMut(usize, u32)) {
        let mut hashes = [0; TOGETHER];
        for from in (0..count).step_by(TOGETHER) {
            let to = count.min(from + TOGETHER);
            for (at, hash) in (from..to).zip(&mut hashes) {
                *hash = self.hash(key_of(self.equality, text(at)));
            }
            if self.numbers.is_far() {
                self.prefetch(&hashes[..to - from]);
            }
            for (at, hash) in (from..to).zip(hashes) {
                put(at, self.number(text(at), hash));
            }
        }
    }

    /// Asks memory for the slots of some hashes, then for where the texts of what they lead to end, then for these.
    fn prefetch(&self, hashes: &[u32]) {
        hashes.iter().for_each(|hash| self.numbers.prefetch(*hash));
        let mut numbers = [0; TOGETHER];
        for (number, hash) in numbers.iter_mut().zip(hashes) {
            *number = self.numbers.candidate(*hash).wrapping_sub(1) as usize;
            prefetch_item(&self.ends, *number);
        }
        for number in &numbers[..hashes.len()] {
            if let Some(before) = self.ends.get(number.wrapping_sub(1)) {
                prefetch_item(&self.bytes, *before);
            }
        }
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    /// The word of a text, or one that no key has.
    pub fn known(&self, text: &[u8]) -> u64 {
        let text = key_of(self.equality, text);
        let is = |after: u32| key_of(self.equality, text_of(&self.bytes, &self.ends, after - 1)) == text;
        self.numbers.find(self.hash(text), is).map_or(UNKNOWN_WORD, |after| u64::from(after - 1))
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

    /// The number of a text with this hash.
    fn number(&mut self, text: &[u8], hash: u32) -> u32 {
        let Texts { equality, bytes, ends, numbers, .. } = self;
        let key = key_of(*equality, text);
        let is = |after: u32| key_of(*equality, text_of(bytes, ends, after - 1)) == key;
        if let Some(after) = numbers.find(hash, is) {
            return after - 1;
        }
        let number = ends.len() as u32;
        bytes.extend_from_slice(text);
        ends.push(bytes.len());
        numbers.insert(hash, number + 1);
        self.sealed = None;
        number
    }

    /// The same for one text alone.
    pub fn number_of(&mut self, text: &[u8]) -> u32 {
        self.number(text, self.hash(key_of(self.equality, text)))
    }

    /// Makes the dictionary of what there is.
    pub fn seal(&mut self) -> Result<()> {
        const BYTES: usize = 1 << 20;
        let mut bytes = Vec::with_capacity(self.bytes.len());
        for part in self.bytes.chunks(BYTES) {
            check()?;
            bytes.extend_from_slice(part);
        }
        let mut from = 0;
        let mut views: Vec<u128> = Vec::with_capacity(self.ends.len());
        for piece in pieces(self.ends.len()) {
            views.extend(self.ends[piece?].iter().map(|end| {
                let view = make_view(&self.bytes[from..*end], 0, from as u32);
                from = *end;
                view
            }));
        }
        check()?;
        let dictionary = BinaryViewArray::try_new(views.into(), vec![Buffer::from_vec(bytes)], None);
        self.sealed = Some(Arc::new(dictionary.expect("views of the buffer")));
        Ok(())
    }

    /// # Panics
    /// If texts came since [`Texts::seal`].
    pub fn sealed(&self) -> Dictionary {
        self.sealed.clone().expect("sealed")
    }
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
