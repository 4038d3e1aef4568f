//! Distinct texts, numbered in the order in which they came.

use super::keys::Dictionary;
use super::table::{TOGETHER, Table};
use crate::error::{Error, Result};
use ahash::{AHashMap, RandomState};
use arrow_array::{Array, BinaryViewArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ByteView;
use basalt_types::prefetch::prefetch_item;
use basalt_types::vector::Codes;
use basalt_types::{key, numeric};
use std::ops::Range;
use std::sync::Arc;

const UNKNOWN: u32 = u32::MAX;
/// Of a text that is about to get its number.
const ASKED: u32 = u32::MAX - 1;
const TEXTS_MAX: usize = 1 << 31;
const NO_BUFFER: u32 = u32::MAX;
/// Of a text that nobody has seen.
const NOWHERE: usize = usize::MAX;
const BUFFER_BYTES_MIN: usize = 4 << 10;
/// Few buffers are handed on with each array of texts.
const BUFFER_BYTES_MAX: usize = 64 << 20;
/// Bytes of texts that are in their views.
const INLINE_MAX: u32 = 12;
/// Entries of a dictionary per row from which on texts are looked up one by one.
const ENTRIES_PER_ROW_MAX: usize = 4;
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
    /// Of each text, as Arrow has it: short ones are in it, others in a buffer.
    views: Vec<u128>,
    /// Of each text.
    hashes: Vec<u32>,
    /// What views lead to: texts that came as such, and those of others where they were.
    buffers: Vec<Buffer>,
    /// The buffer that texts are written to, which has its place among the others; it does not move.
    own: Vec<u8>,
    own_at: u32,
    taken_in: Vec<TakenIn>,
    /// Where those of a dictionary are among them, by its address: they hold it.
    taken_from: AHashMap<usize, usize>,
    /// Each number and one.
    numbers: Table,
    hasher: RandomState,
    /// The dictionary that came last, and the numbers of those of its entries that rows had.
    last: Option<(Arc<BinaryViewArray>, Vec<u32>)>,
    sealed: Option<Dictionary>,
}

/// Texts of another that were taken in.
struct TakenIn {
    dictionary: Dictionary,
    /// The number of its first buffer here.
    base: u32,
    /// The numbers that its texts have here, as far as they are known; empty where few come twice.
    numbers: Vec<u32>,
}

impl Texts {
    /// Fixed keys of `hasher` would let a client choose texts that all hash alike. Texts of one hasher can take in those of
    /// another that has the same.
    pub fn new(equality: Equality, hasher: RandomState) -> Texts {
        let (views, hashes, buffers, own, taken_in) = (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (own_at, numbers, last, sealed) = (NO_BUFFER, Table::new(64), None, None);
        let taken_from = AHashMap::new();
        Texts { equality, views, hashes, buffers, own, own_at, taken_in, taken_from, numbers, hasher, last, sealed }
    }

    /// Makes room for so many texts, of which none has come yet.
    pub fn expect(&mut self, texts: usize) {
        self.numbers = Table::expecting(texts);
        self.views.reserve(texts);
        self.hashes.reserve(texts);
    }

    /// Before so many texts may come.
    pub fn make_room(&mut self, texts: usize) -> Result<()> {
        match self.count() + texts > TEXTS_MAX {
            true => Err(Error::Beyond("more text than keys can have")),
            false => self.numbers.make_room(texts),
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.hashes.len()
    }

    pub fn bytes(&self) -> usize {
        let of_views = self.hashes.capacity() * (size_of::<u128>() + size_of::<u32>());
        let of_buffers = self.own.capacity() + self.buffers.iter().map(Buffer::capacity).sum::<usize>();
        of_views + of_buffers + self.numbers.bytes()
    }

    /// The number of each row's text; any for rows that do not count.
    pub fn of_codes(&mut self, codes: &Codes, mask: Option<&[u8]>) -> Vec<u64> {
        if codes.dictionary.is_empty() {
            return vec![0; codes.codes.len()];
        }
        let mut numbers = match self.last.take() {
            Some((dictionary, numbers)) if Arc::ptr_eq(&dictionary, &codes.dictionary) => numbers,
            // Most of its entries no row has.
            _ if codes.dictionary.len() > codes.codes.len() * ENTRIES_PER_ROW_MAX => {
                let text = |row: usize| codes.dictionary.value(codes.codes[row] as usize);
                return self.of_rows(codes.codes.len(), text, codes.nulls.as_ref(), mask);
            }
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
        self.of_rows(values.len(), |row| values.value(row), values.nulls(), mask)
    }

    /// The numbers of rows that count and have a text.
    fn of_rows<'t>(
        &mut self,
        rows: usize,
        text: impl Fn(usize) -> &'t [u8],
        nulls: Option<&NullBuffer>,
        mask: Option<&[u8]>,
    ) -> Vec<u64> {
        let mut words = vec![0; rows];
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        if mask.is_none() && nulls.is_none() {
            self.number_all(rows, text, |row, number| words[row] = u64::from(number));
            return words;
        }
        let counts =
            |row: usize| mask.is_none_or(|mask| mask[row] != 0) && nulls.is_none_or(|nulls| nulls.is_valid(row));
        let own: Vec<u32> = (0..rows as u32).filter(|row| counts(*row as usize)).collect();
        self.number_all(
            own.len(),
            |at| text(own[at] as usize),
            |at, number| {
                words[own[at] as usize] = u64::from(number);
            },
        );
        words
    }

    /// The numbers of so many texts.
    fn number_all<'t>(&mut self, count: usize, text: impl Fn(usize) -> &'t [u8], mut put: impl FnMut(usize, u32)) {
        for from in (0..count).step_by(TOGETHER) {
            let some = from..count.min(from + TOGETHER);
            let hashes = self.hashes_of(some.clone(), &text);
            for (at, hash) in some.zip(hashes) {
                put(at, self.number(text(at), hash));
            }
        }
    }

    /// The hashes of some texts that are about to be looked up.
    #[inline]
    fn hashes_of<'t>(&self, some: Range<usize>, text: impl Fn(usize) -> &'t [u8]) -> [u32; TOGETHER] {
        let mut hashes = [0; TOGETHER];
        let own = &mut hashes[..some.len()];
        some.zip(&mut *own).for_each(|(at, hash)| *hash = self.hash(key_of(self.equality, text(at))));
        self.prefetch(own);
        hashes
    }

    /// The numbers of texts of another with the same hasher, which was sealed, by the numbers that they have there.
    ///
    /// # Panics
    /// If it was not sealed.
    pub fn of_others(&mut self, other: &Texts, theirs: &[u64], nulls: Option<&NullBuffer>) -> Vec<u64> {
        let dictionary = other.sealed();
        let address = Arc::as_ptr(&dictionary) as usize;
        let place = self.taken_from.get(&address).copied().unwrap_or_else(|| {
            self.taken_from.insert(address, self.taken_in.len());
            let base = self.buffers.len() as u32;
            self.buffers.extend(dictionary.data_buffers().iter().cloned());
            self.taken_in.push(TakenIn { dictionary: dictionary.clone(), base, numbers: Vec::new() });
            self.taken_in.len() - 1
        });
        assert!(Arc::ptr_eq(&self.taken_in[place].dictionary, &dictionary), "what is held keeps its address");
        let base = self.taken_in[place].base;
        let mut known = std::mem::take(&mut self.taken_in[place].numbers);
        if known.is_empty() && dictionary.len() <= theirs.len() * ENTRIES_PER_ROW_MAX {
            known.resize(dictionary.len(), UNKNOWN);
        }
        let rows = || (0..theirs.len()).filter(|row| nulls.is_none_or(|nulls| nulls.is_valid(*row)));
        let mut words = vec![0; theirs.len()];
        if known.is_empty() {
            let asked: Vec<u32> = rows().map(|row| theirs[row] as u32).collect();
            let numbers = self.numbers_of(other, &dictionary, base, &asked);
            rows().zip(numbers).for_each(|(row, number)| words[row] = u64::from(number));
            return words;
        }
        let mut asked: Vec<u32> = Vec::new();
        for row in rows() {
            let number = &mut known[theirs[row] as usize];
            if *number == UNKNOWN {
                *number = ASKED;
                asked.push(theirs[row] as u32);
            }
        }
        let numbers = self.numbers_of(other, &dictionary, base, &asked);
        asked.iter().zip(numbers).for_each(|(asked, number)| known[*asked as usize] = number);
        rows().for_each(|row| words[row] = u64::from(known[theirs[row] as usize]));
        self.taken_in[place].numbers = known;
        words
    }

    /// The numbers of another's texts, whose first buffer is number `base` here.
    fn numbers_of(&mut self, other: &Texts, dictionary: &Dictionary, base: u32, theirs: &[u32]) -> Vec<u32> {
        let mut numbers = Vec::with_capacity(theirs.len());
        let mut hashes = [0; TOGETHER];
        for theirs in theirs.chunks(TOGETHER) {
            for number in theirs {
                prefetch_item(&other.hashes, *number as usize);
                prefetch_item(dictionary.views(), *number as usize);
            }
            theirs.iter().zip(&mut hashes).for_each(|(number, hash)| *hash = other.hashes[*number as usize]);
            let known = self.prefetch(&hashes[..theirs.len()]);
            for (number, _) in theirs.iter().zip(known).filter(|(_, known)| *known != NOWHERE) {
                prefetch_text(dictionary.views()[*number as usize], |buffer| {
                    &dictionary.data_buffers()[buffer as usize]
                });
            }
            for (number, hash) in theirs.iter().map(|number| *number as usize).zip(hashes) {
                let equality = self.equality;
                let is = |after: u32| self.is(after - 1, key_of(equality, dictionary.value(number)));
                numbers.push(match self.numbers.find(hash, is) {
                    Some(after) => after - 1,
                    None => {
                        let view = ByteView::from(dictionary.views()[number]);
                        let is_inside = view.length <= INLINE_MAX;
                        let buffer_index = if is_inside { view.buffer_index } else { view.buffer_index + base };
                        self.put(ByteView { buffer_index, ..view }.as_u128(), hash)
                    }
                });
            }
        }
        numbers
    }

    /// The hash of each text of [`Texts::of_others`].
    pub fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// Asks memory for the slots of some hashes, then for the views of the texts that have them, then for these: which texts
    /// they are, as far as that is seen.
    fn prefetch(&self, hashes: &[u32]) -> [usize; TOGETHER] {
        let mut numbers = [NOWHERE; TOGETHER];
        if !self.numbers.is_far() {
            return numbers;
        }
        hashes.iter().for_each(|hash| self.numbers.prefetch(*hash));
        for (number, hash) in numbers.iter_mut().zip(hashes) {
            if let Some(known) = self.numbers.candidate(*hash).checked_sub(1) {
                *number = known as usize;
                prefetch_item(&self.views, *number);
            }
        }
        for number in numbers.iter().filter(|number| **number != NOWHERE) {
            prefetch_text(self.views[*number], |buffer| self.buffer(buffer));
        }
        numbers
    }

    fn hash(&self, key: &[u8]) -> u32 {
        self.hasher.hash_one(key) as u32
    }

    /// Whether a number is that of a text.
    #[inline]
    fn is(&self, number: u32, key: &[u8]) -> bool {
        let view = self.views[number as usize];
        let own = ByteView::from(view);
        if own.length <= INLINE_MAX {
            return key_of(self.equality, &view.to_le_bytes()[4..][..own.length as usize]) == key;
        }
        key_of(self.equality, &self.buffer(own.buffer_index)[own.offset as usize..][..own.length as usize]) == key
    }

    #[inline]
    fn buffer(&self, at: u32) -> &[u8] {
        if at == self.own_at { &self.own } else { &self.buffers[at as usize] }
    }

    /// A new text.
    fn put(&mut self, view: u128, hash: u32) -> u32 {
        let number = self.views.len() as u32;
        self.views.push(view);
        self.hashes.push(hash);
        self.numbers.insert(hash, number + 1);
        number
    }

    /// The words of texts, or one that no key has.
    pub fn known_all<'t>(&self, count: usize, text: impl Fn(usize) -> &'t [u8]) -> Vec<u64> {
        let mut words = Vec::with_capacity(count);
        for from in (0..count).step_by(TOGETHER) {
            let some = from..count.min(from + TOGETHER);
            let hashes = self.hashes_of(some.clone(), &text);
            for (at, hash) in some.zip(hashes) {
                let key = key_of(self.equality, text(at));
                let found = self.numbers.find(hash, |after| self.is(after - 1, key));
                words.push(found.map_or(UNKNOWN_WORD, |after| u64::from(after - 1)));
            }
        }
        words
    }

    /// The same for each row.
    pub fn known_codes(&self, codes: &Codes) -> Vec<u64> {
        if codes.dictionary.is_empty() {
            return vec![UNKNOWN_WORD; codes.codes.len()];
        }
        if codes.dictionary.len() > codes.codes.len() {
            let text = |row: usize| codes.dictionary.value(codes.codes[row] as usize);
            return self.known_all(codes.codes.len(), text);
        }
        let words = self.known_all(codes.dictionary.len(), |code| codes.dictionary.value(code));
        codes.codes.iter().map(|code| words[*code as usize]).collect()
    }

    /// The number of a text with this hash.
    fn number(&mut self, text: &[u8], hash: u32) -> u32 {
        let key = key_of(self.equality, text);
        if let Some(after) = self.numbers.find(hash, |after| self.is(after - 1, key)) {
            return after - 1;
        }
        if text.len() <= INLINE_MAX as usize {
            return self.put(basalt_types::text::view(text, 0, 0), hash);
        }
        if text.len() > self.own.capacity() - self.own.len() {
            self.begin_buffer(text.len());
        }
        let view = basalt_types::text::view(text, self.own_at, self.own.len() as u32);
        self.own.extend_from_slice(text);
        self.put(view, hash)
    }

    /// A new buffer, for a text of so many bytes and others.
    fn begin_buffer(&mut self, bytes: usize) {
        let room = (self.own.capacity() * 2).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX).max(bytes);
        self.end_buffer();
        self.own = Vec::with_capacity(room);
        self.own_at = self.buffers.len() as u32;
        self.buffers.push(Buffer::default());
    }

    fn end_buffer(&mut self) {
        if let Some(place) = self.buffers.get_mut(self.own_at as usize).filter(|_| !self.own.is_empty()) {
            *place = Buffer::from_vec(std::mem::take(&mut self.own));
        }
        self.own_at = NO_BUFFER;
    }

    /// The same for one text alone.
    pub fn number_of(&mut self, text: &[u8]) -> u32 {
        self.number(text, self.hash(key_of(self.equality, text)))
    }

    /// Makes the dictionary of what there is. No text comes any more.
    pub fn seal(&mut self) {
        if self.sealed.is_some() {
            return;
        }
        (self.numbers, self.last, self.taken_in) = (Table::new(0), None, Vec::new());
        self.taken_from = AHashMap::new();
        self.end_buffer();
        let (views, buffers) = (std::mem::take(&mut self.views).into(), self.buffers.clone());
        // SAFETY: each view is of bytes of the buffer whose number it has: what it was made of, or what another array's
        // view was of, whose buffers lie here from the number on that was added.
        #[allow(unsafe_code)]
        let dictionary = unsafe { BinaryViewArray::new_unchecked(views, buffers, None) };
        self.sealed = Some(Arc::new(dictionary));
    }

    /// Brings texts, which are sealed, into the order in which rows have them first; rows have other numbers then.
    ///
    /// # Panics
    /// Before [`Texts::seal`].
    pub fn reorder<'r>(&mut self, rows: impl Iterator<Item = &'r mut u64>) {
        let dictionary = self.sealed();
        let all = dictionary.views();
        let (mut order, mut new) = (Vec::with_capacity(all.len()), vec![UNKNOWN; all.len()]);
        for row in rows {
            let number = &mut new[*row as usize];
            if *number == UNKNOWN {
                *number = order.len() as u32;
                order.push(*row as u32);
            }
            *row = u64::from(*number);
        }
        let left = (0..all.len() as u32).filter(|number| new[*number as usize] == UNKNOWN);
        order.extend(left);
        let views = order.iter().map(|number| all[*number as usize]).collect();
        self.hashes = order.iter().map(|number| self.hashes[*number as usize]).collect();
        // SAFETY: each view is one of the same buffers' views.
        #[allow(unsafe_code)]
        let ordered = unsafe { BinaryViewArray::new_unchecked(views, dictionary.data_buffers().to_vec(), None) };
        self.sealed = Some(Arc::new(ordered));
    }

    /// # Panics
    /// Before [`Texts::seal`].
    pub fn sealed(&self) -> Dictionary {
        self.sealed.clone().expect("sealed")
    }
}

/// Asks memory for what a view leads to, which may begin in one line and end in another.
#[inline]
fn prefetch_text<'b>(view: u128, buffer: impl FnOnce(u32) -> &'b [u8]) {
    let view = ByteView::from(view);
    if view.length > INLINE_MAX {
        let (buffer, from) = (buffer(view.buffer_index), view.offset as usize);
        prefetch_item(buffer, from);
        prefetch_item(buffer, from + view.length as usize - 1);
    }
}

/// What of a text tells it from others.
pub(crate) fn key_of(equality: Equality, text: &[u8]) -> &[u8] {
    match equality {
        Equality::Bytes => text,
        Equality::Numerics => numeric::key_bytes(text),
        Equality::Padded => key::unpadded(text),
    }
}
