//! Group keys: which group each row belongs to.
//!
//! Groups are numbered from 1 in the order in which they came; number 0 stands for rows that do not count. A key column
//! is one word per row: an integer as it is, a text by the number under which it was first seen; groups are found by a
//! hash of their words. Where a batch's keys can only have few values together (codes of small dictionaries, integers
//! between near bounds), that is asked once per combination ([`super::combined`]) and not per row.

mod ascending;

use super::Chosen;
use super::combined::Combined;
use super::table::{TOGETHER, Table};
use super::texts::{Equality, Texts};
use crate::error::{Error, Result};
use crate::kernels::runs::Runs;
use crate::kernels::sums::Groups;
use crate::program::Field;
use crate::stop::{check, pieces};
use ahash::RandomState;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, BinaryViewArray, BooleanArray, FixedSizeBinaryArray, Float32Array, Float64Array};
use arrow_buffer::NullBuffer;
use ascending::Order;
use basalt_types::DataType;
use basalt_types::prefetch::prefetch_item;
use basalt_types::vector::{Codes, IntValues, Ints, Vector};
use basalt_types::widest;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// The groups of a batch's rows.
pub enum Assigned {
    Each(Vec<u32>),
    Runs(Runs),
}

impl Assigned {
    pub fn groups(&self) -> Groups<'_> {
        match self {
            Assigned::Each(groups) => Groups::Each(groups),
            Assigned::Runs(runs) => Groups::Runs(runs),
        }
    }
}

/// The keys of all groups that were seen, and how to find them.
pub struct Keys {
    found: Found,
    combined: Combined,
}

pub(crate) struct Found {
    columns: Vec<KeyColumn>,
    /// By group, those of its columns side by side, so that memory is waited for once; 0 where a key is null.
    words: Vec<u64>,
    /// Groups, the one of rows that do not count among them.
    len: usize,
    table: Table,
    /// Of the hashes in the table.
    seed: u64,
    /// In place of the table, while one integer column's keys lie close together.
    dense: Option<Dense>,
    /// While the table is in its place: what is known of keys that may become dense with more rows.
    waiting: Option<Box<Dense>>,
    order: Order,
    /// Of keys that ascend: where they do so from the front once more, which none has at first.
    more_lists: Vec<usize>,
}

struct KeyColumn {
    form: Form,
    /// By group; empty as long as no key is null.
    nulls: Vec<bool>,
    /// What the words of texts stand for.
    texts: Option<Texts>,
    /// Whether keys leave as they came: of joins they are only compared.
    leaves: bool,
}

/// What the words of a key column are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Integers,
    Bools,
    /// Bits of floats, wide ones or not.
    Floats {
        wide: bool,
    },
    /// Numbers of texts.
    Texts(Equality),
    /// Numbers of values of 16 bytes.
    Fixed,
}

impl Form {
    /// `None` for types whose equality is not that of their stored form.
    pub fn of(field: &Field) -> Option<Form> {
        match field.ty.underlying() {
            _ if field.kind().is_some() => Some(Form::Integers),
            DataType::Oid | DataType::Money => Some(Form::Integers),
            DataType::Bool => Some(Form::Bools),
            DataType::Float4 => Some(Form::Floats { wide: false }),
            DataType::Float8 | DataType::Enum(_) => Some(Form::Floats { wide: true }),
            DataType::Text | DataType::Varchar(_) | DataType::Bytea => Some(Form::Texts(Equality::Bytes)),
            DataType::Bpchar(_) => Some(Form::Texts(Equality::Padded)),
            ty @ DataType::Numeric(_) if ty.decimal().is_none() => Some(Form::Texts(Equality::Numerics)),
            DataType::Uuid => Some(Form::Fixed),
            DataType::Array(element) if element.is_one_by_bytes() => Some(Form::Texts(Equality::Bytes)),
            _ => None,
        }
    }

    /// Of those whose words are numbers.
    fn numbered(self, seeds: &Seeds) -> Option<Texts> {
        match self {
            Form::Integers | Form::Bools | Form::Floats { .. } => None,
            Form::Texts(equality) => Some(Texts::new(equality, seeds.texts.clone())),
            Form::Fixed => Some(Texts::new(Equality::Bytes, seeds.texts.clone())),
        }
    }
}

/// Types whose values are one where their bytes are.
pub(crate) fn is_text(ty: &DataType) -> bool {
    matches!(ty, DataType::Text | DataType::Varchar(_))
}

/// What hashes begin with: a client that knew it could choose keys that all hash alike. Keys with the same can take in
/// each other.
#[derive(Clone, Debug)]
pub struct Seeds {
    texts: RandomState,
    words: u64,
}

impl Seeds {
    pub fn new() -> Seeds {
        let texts = RandomState::new();
        Seeds { words: texts.hash_one(0u64), texts }
    }
}

/// One batch's words of one column.
struct Words {
    words: Vec<u64>,
    nulls: Option<NullBuffer>,
}

impl Keys {
    pub fn new(forms: &[Form], seeds: &Seeds) -> Keys {
        let mut found = Found::new(forms, seeds);
        found.columns.iter_mut().for_each(|column| column.leaves = true);
        if forms == [Form::Integers] {
            found.order = Order::Ascending;
        }
        Keys { found, combined: Combined::default() }
    }

    /// Groups, the one of rows that do not count among them.
    pub fn len(&self) -> usize {
        self.found.len
    }

    pub fn bytes(&self) -> usize {
        self.found.bytes()
    }

    /// The group of each row; 0 for those that the mask leaves out.
    pub fn assign(&mut self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        Ok(match self.assigned(keys, rows, mask)? {
            Assigned::Each(groups) => groups,
            Assigned::Runs(runs) => runs.each(),
        })
    }

    /// The same, in runs if all rows count and each is of its predecessor's group or of the next.
    pub fn assigned(&mut self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Assigned> {
        let Keys { found, combined } = self;
        if let [Vector::Ints(key)] = keys {
            let following = match mask {
                None => found.ascending(key).map(Assigned::Runs),
                Some(mask) => found.ascending_among(key, mask).map(Assigned::Each),
            };
            if let Some(following) = following {
                return Ok(following);
            }
        }
        found.index()?;
        let mut groups = match combined.indexes(keys, rows) {
            Some(indexes) => combined.assign(&indexes, mask, |row| found.group_at(keys, row))?,
            None => found.hashed(keys, rows, mask)?,
        };
        if let Some(mask) = mask {
            groups.iter_mut().zip(mask).for_each(|(group, counts)| *group *= u32::from(*counts));
        }
        Ok(Assigned::Each(groups))
    }

    /// Whether so far all keys ascended, and these do, too, but from further in front.
    pub fn falls_back(&self, keys: &[Vector], mask: Option<&[u8]>) -> bool {
        matches!(keys, [Vector::Ints(key)] if self.found.falls_back(key, mask))
    }

    /// Neither ascend the keys that will come, nor do they lie close together.
    pub fn scatter(&mut self) {
        let found = &mut self.found;
        assert_eq!(found.len, 1, "it is known before keys come");
        found.order = Order::Indexed;
        // Numbers of texts lie close together, whatever the texts.
        if found.columns.iter().any(|column| column.texts.is_none()) {
            found.dense = None;
        }
    }

    /// Makes room for so many groups, of which none has come yet.
    pub fn expect(&mut self, groups: usize) {
        let found = &mut self.found;
        assert_eq!(found.len, 1, "it is known before keys come");
        if found.dense.is_none() {
            found.table = Table::expecting(groups);
        }
        found.words.reserve(groups * found.columns.len());
        found.columns.iter_mut().filter_map(|column| column.texts.as_mut()).for_each(|texts| texts.expect(groups));
    }

    /// Whether they are in an array or a list, which takes in another without a hash.
    pub fn are_put_together_fast(&self) -> bool {
        let of_texts = self.found.columns.iter().any(|column| column.texts.is_some());
        self.found.order != Order::Indexed || self.found.dense.is_some() && !of_texts
    }

    /// Whether an array may take the table's place once there are more rows.
    pub fn may_lie_close(&self) -> bool {
        self.found.waiting.as_ref().is_some_and(|waiting| waiting.is_near())
    }

    /// Takes in another worker's keys: the group of each.
    pub fn merge(&mut self, other: &mut Keys) -> Result<Vec<u32>> {
        const CHUNK: usize = 8192;
        if let Some(groups) = self.found.join_ascending(&other.found)? {
            return Ok(groups);
        }
        other.seal();
        let all = other.len();
        let mut groups = Vec::with_capacity(all - 1);
        for from in (1..all).step_by(CHUNK) {
            check()?;
            let some: Vec<u32> = (from as u32..all.min(from + CHUNK) as u32).collect();
            groups.extend(self.take_in(other, &some, None)?);
        }
        Ok(groups)
    }

    /// Takes in some groups of another with the same seeds, which was sealed: the group of each. `first`: what the first
    /// column has in the place of its own integers.
    pub fn take_in(&mut self, other: &Keys, groups: &[u32], first: Option<&[u32]>) -> Result<Vec<u32>> {
        self.found.index()?;
        self.found.take_in(&other.found, groups, first)
    }

    /// A hash of some groups' keys that is the same for all with the same seeds.
    pub fn hashes(&self, groups: &[u32]) -> Vec<u32> {
        let words = |(at, column): (usize, &KeyColumn)| {
            let Words { mut words, nulls } = self.found.words_at(at, groups);
            if let Some(texts) = &column.texts {
                let of_number = texts.hashes();
                let words = words.iter_mut().enumerate();
                let texts = words.filter(|(row, _)| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row)));
                texts.for_each(|(_, word)| *word = u64::from(of_number[*word as usize]));
            }
            Words { words, nulls }
        };
        let words: Vec<Words> = self.found.columns.iter().enumerate().map(words).collect();
        hashes(self.found.seed, &words, groups.len())
    }

    /// What a column of integers has for a group.
    pub fn integer(&self, column: usize, group: u32) -> i64 {
        self.found.word(column, group as usize) as i64
    }

    /// The keys of some groups in stored form of integers or texts.
    ///
    /// # Panics
    /// If groups came since [`Keys::seal`].
    pub fn vectors(&self, groups: Range<usize>) -> Vec<Vector> {
        (0..self.found.columns.len()).map(|column| self.vector(column, &Chosen::All(groups.clone()))).collect()
    }

    /// The same of one column.
    pub fn vector(&self, column: usize, groups: &Chosen<'_>) -> Vector {
        self.found.vector(column, groups)
    }

    /// The keys of all groups, if they are integers that ascend with the groups' numbers, from number 1 on.
    pub fn ascending(&self) -> Option<&[u64]> {
        self.found.is_one_list().then_some(&self.found.words)
    }

    /// As [`super::states::keep`], of keys that ascend.
    pub fn keep(&mut self, first: usize, places: &[usize]) {
        super::states::keep(&mut self.found.words, first, places);
        self.found.len = self.found.words.len();
    }

    /// Brings groups, which are sealed, into another order: after the one of rows that do not count comes that of row
    /// `rows[0]`, which was number `rows[0] + 1`.
    pub fn reorder(&mut self, rows: &[u32]) {
        let Found { columns, words, .. } = &mut self.found;
        let width = columns.len();
        let mut ordered = Vec::with_capacity(words.len());
        ordered.extend_from_slice(&words[..width]);
        for row in rows {
            ordered.extend_from_slice(&words[(*row as usize + 1) * width..][..width]);
        }
        *words = ordered;
        for column in columns.iter_mut().filter(|column| !column.nulls.is_empty()) {
            let nulls =
                std::iter::once(false).chain(rows.iter().map(|row| column.is_null(*row as usize + 1))).collect();
            column.nulls = nulls;
        }
        // Whoever takes groups in one after the other reads texts one after the other, too.
        for (at, column) in columns.iter_mut().enumerate() {
            if let Some(texts) = column.texts.as_mut().filter(|texts| texts.count() * TEXTS_PER_GROUP_MIN >= rows.len())
            {
                let groups = words.iter_mut().skip(width + at).step_by(width).enumerate();
                let nulls = &column.nulls;
                let known = groups.filter(|(group, _)| !nulls.get(group + 1).is_some_and(|null| *null));
                texts.reorder(known.map(|(_, word)| word));
            }
        }
    }

    /// Makes the dictionary of what [`Keys::vectors`] gives as codes. No key comes any more.
    pub fn seal(&mut self) {
        (self.found.table, self.found.dense, self.found.waiting) = (Table::new(0), None, None);
        self.found.columns.iter_mut().filter_map(|column| column.texts.as_mut()).for_each(Texts::seal);
    }
}

impl Found {
    pub fn bytes(&self) -> usize {
        let of_column = |column: &KeyColumn| column.nulls.capacity() + column.texts.as_ref().map_or(0, Texts::bytes);
        self.columns.iter().map(of_column).sum::<usize>()
            + self.words.capacity() * size_of::<u64>()
            + self.table.bytes()
            + self.dense.as_ref().map_or(0, |dense| dense.numbers.capacity() * 4)
    }

    pub fn new(forms: &[Form], seeds: &Seeds) -> Found {
        let column = |form: &Form| {
            let (nulls, texts, leaves) = (Vec::new(), form.numbered(seeds), false);
            KeyColumn { form: *form, nulls, texts, leaves }
        };
        let dense = matches!(forms, [Form::Integers | Form::Texts(_) | Form::Fixed]).then(Dense::default);
        let (columns, words) = (forms.iter().map(column).collect(), vec![0; forms.len()]);
        let order = Order::Indexed;
        let table = Table::new(TABLE_SLOTS);
        let (seed, waiting, more_lists) = (seeds.words, None, Vec::new());
        Found { columns, words, len: 1, table, seed, dense, waiting, order, more_lists }
    }

    /// The word of a group's key in a column.
    #[inline]
    fn word(&self, column: usize, group: usize) -> u64 {
        self.words[group * self.columns.len() + column]
    }

    /// Whether these are a group's words, which may stand for nulls.
    #[inline]
    fn has_words(&self, group: u32, words: &[u64]) -> bool {
        let from = group as usize * words.len();
        self.words[from..from + words.len()].iter().zip(words).all(|(own, new)| own == new)
    }

    /// The group with these words, which is made if there is none. `null`: whether a column's word stands for a null.
    #[inline]
    fn group(&mut self, words: &[u64], null: impl Fn(usize) -> bool) -> u32 {
        if let Some(dense) = &mut self.dense {
            let number = dense.number((words[0], null(0)));
            if *number == 0 {
                *number = self.len as u32;
                return self.push(words, null);
            }
            return *number;
        }
        let hash = hash(self.seed, words.iter().enumerate().map(|(at, word)| (*word, null(at))));
        self.group_of(hash, words, null)
    }

    /// The group with these words and their hash.
    #[inline]
    fn group_of(&mut self, hash: u32, words: &[u64], null: impl Fn(usize) -> bool) -> u32 {
        if let Some(group) = self.table.find(hash, |group| self.is(group, words, &null)) {
            return group;
        }
        let group = self.push(words, null);
        self.table.insert(hash, group);
        group
    }

    #[inline]
    fn is(&self, group: u32, words: &[u64], null: impl Fn(usize) -> bool) -> bool {
        let mut columns = self.columns.iter().enumerate();
        self.has_words(group, words) && columns.all(|(at, column)| column.is_null(group as usize) == null(at))
    }

    /// Makes a group.
    fn push(&mut self, words: &[u64], null: impl Fn(usize) -> bool) -> u32 {
        let group = self.len;
        self.len += 1;
        self.words.extend_from_slice(words);
        for (at, column) in self.columns.iter_mut().enumerate() {
            if null(at) || !column.nulls.is_empty() {
                column.nulls.resize(group, false);
                column.nulls.push(null(at));
            }
        }
        group as u32
    }

    /// The group of one row.
    fn group_at(&mut self, keys: &[Vector], row: usize) -> Result<u32> {
        let (mut words, mut nulls) = ([0; COMBINED_COLUMNS_MAX], [false; COMBINED_COLUMNS_MAX]);
        self.make_room(bounds(keys), 1)?;
        for (at, (column, key)) in self.columns.iter_mut().zip(keys).enumerate() {
            (words[at], nulls[at]) = column.word_at(key, row)?;
        }
        self.make_room_for_texts(1);
        Ok(self.group(&words[..keys.len()], |at| nulls[at]))
    }

    /// The group of each row, which is made if there is none; 0 for those that the mask leaves out.
    pub fn hashed(&mut self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        let mut words = Vec::with_capacity(keys.len());
        self.make_room(bounds(keys), rows)?;
        for (column, key) in self.columns.iter_mut().zip(keys) {
            words.push(column.words_of(key, mask)?);
            check()?;
        }
        self.make_room_for_texts(rows);
        self.number(&words, rows, mask)
    }

    /// As [`Keys::take_in`].
    fn take_in(&mut self, other: &Found, groups: &[u32], first: Option<&[u32]>) -> Result<Vec<u32>> {
        let mut words: Vec<Words> = (0..other.columns.len()).map(|column| other.words_at(column, groups)).collect();
        if let Some(first) = first {
            words[0].words = first.iter().map(|word| u64::from(*word)).collect();
        }
        let bounds = match (&words[..], &self.columns[..]) {
            ([words], [KeyColumn { texts: None, .. }]) => {
                let all = words.words.iter().map(|word| i128::from(*word as i64));
                all.clone().min().zip(all.max())
            }
            _ => None,
        };
        self.make_room(bounds, groups.len())?;
        for ((words, column), others) in words.iter_mut().zip(&mut self.columns).zip(&other.columns) {
            if let (Some(texts), Some(others)) = (&mut column.texts, &others.texts) {
                texts.make_room(groups.len())?;
                words.words = texts.of_others(others, &words.words, words.nulls.as_ref());
                check()?;
            }
        }
        self.make_room_for_texts(groups.len());
        self.number(&words, groups.len(), None)
    }

    /// The group of each row's words.
    fn number(&mut self, words: &[Words], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        let mut groups = vec![0; rows];
        let counts = |row: usize| mask.is_none_or(|mask| mask[row] != 0);
        if self.dense.is_some() {
            self.number_dense(&words[0], mask, &mut groups);
            return Ok(groups);
        }
        let hashes = hashes(self.seed, words, rows);
        let without_nulls = words.iter().all(|words| words.nulls.is_none());
        let without_nulls = without_nulls && self.columns.iter().all(|column| column.nulls.is_empty());
        let (side_by_side, width) = (side_by_side(words, rows), words.len());
        let of_row = |row: usize| &side_by_side[row * width..(row + 1) * width];
        let mut last: Option<(usize, u32)> = None;
        for from in (0..rows).step_by(TOGETHER) {
            let to = rows.min(from + TOGETHER);
            self.prefetch(&hashes[from..to]);
            for row in (from..to).filter(|row| counts(*row)) {
                let same_nulls = |before: usize| words.iter().all(|words| words.is_null(before) == words.is_null(row));
                let is_same = |before: usize| of_row(before) == of_row(row) && (without_nulls || same_nulls(before));
                // Rows of a group often follow each other.
                groups[row] = match last {
                    Some((before, group)) if hashes[before] == hashes[row] && is_same(before) => group,
                    _ if without_nulls => self.group_of_words(hashes[row], of_row(row)),
                    _ => self.group_of(hashes[row], of_row(row), |at| words[at].is_null(row)),
                };
                last = Some((row, groups[row]));
            }
        }
        Ok(groups)
    }

    /// As [`Found::group_of`] where no key is null.
    #[inline]
    fn group_of_words(&mut self, hash: u32, words: &[u64]) -> u32 {
        if let Some(group) = self.table.find(hash, |group| self.has_words(group, words)) {
            return group;
        }
        let group = self.len as u32;
        self.len += 1;
        self.words.extend_from_slice(words);
        self.table.insert(hash, group);
        group
    }

    /// The same where the only column's words are places in an array.
    fn number_dense(&mut self, words: &Words, mask: Option<&[u8]>, groups: &mut [u32]) {
        let counts = |row: usize| mask.is_none_or(|mask| mask[row] != 0);
        if words.nulls.is_none()
            && let Some(dense) = &self.dense
        {
            dense.known_all(&words.words, groups);
        }
        for (row, group) in groups.iter_mut().enumerate() {
            if !counts(row) {
                *group = 0;
            } else if *group == 0 {
                *group = self.group(&words.words[row..row + 1], |_| words.is_null(row));
            }
        }
    }

    /// Asks memory for what some hashes lead to, where it would be waited for.
    fn prefetch(&self, hashes: &[u32]) {
        if !self.table.is_far() {
            return;
        }
        hashes.iter().for_each(|hash| self.table.prefetch(*hash));
        for hash in hashes {
            let group = self.table.first_number(*hash);
            prefetch_item(&self.words, group as usize * self.columns.len());
        }
    }
}

impl Found {
    /// Makes the array of dense keys wide enough for a batch, or goes over to the table, or comes back; and makes the table
    /// large enough. `bounds`: of integers, if there is no other column.
    fn make_room(&mut self, bounds: Option<(i128, i128)>, rows: usize) -> Result<()> {
        if let Some((min, max)) = bounds {
            if let Some(dense) = &mut self.dense {
                if !dense.reach(min, max, rows) {
                    self.leave_array()?;
                }
            } else if self.waiting.as_mut().is_some_and(|waiting| waiting.is_worth_it(min, max, rows)) {
                self.enter_array()?;
            }
        }
        if self.dense.is_none() { self.table.make_room(rows) } else { Ok(()) }
    }

    fn leave_array(&mut self) -> Result<()> {
        // Once: keys that reach farther and farther would have it come and go.
        let left = self.dense.take().filter(|dense| !dense.again);
        self.waiting = left.map(|dense| Box::new(Dense { numbers: Vec::new(), again: true, ..dense }));
        let column = &self.columns[0];
        for piece in pieces(self.len - 1) {
            let piece = piece?;
            self.table.make_room(piece.len())?;
            for group in piece.start + 1..piece.end + 1 {
                let hash = hash(self.seed, std::iter::once((self.words[group], column.is_null(group))));
                self.table.insert(hash, group as u32);
            }
        }
        Ok(())
    }

    fn enter_array(&mut self) -> Result<()> {
        let Some(mut dense) = self.waiting.take() else { return Ok(()) };
        dense.cover();
        for piece in pieces(self.len - 1) {
            for group in piece.map(|piece| piece.start + 1..piece.end + 1)? {
                *dense.number((self.words[group], self.columns[0].is_null(group))) = group as u32;
            }
        }
        self.table = Table::new(TABLE_SLOTS);
        self.dense = Some(*dense);
        Ok(())
    }

    /// The same for the numbers of a text column's texts, which are always dense.
    fn make_room_for_texts(&mut self, rows: usize) {
        let Some(texts) = self.columns.first().and_then(|column| column.texts.as_ref()) else { return };
        if let Some(dense) = &mut self.dense {
            let reached = dense.reach(0, texts.count() as i128, rows.max(texts.count()));
            assert!(reached, "numbers of texts are dense");
        }
    }

    /// The group of each row; 0 where there is none, and for those that the mask leaves out.
    pub fn find(&self, keys: &[Vector], rows: usize, mask: Option<&[u8]>) -> Result<Vec<u32>> {
        let mut words = Vec::with_capacity(keys.len());
        for (column, key) in self.columns.iter().zip(keys) {
            words.push(column.known_words(key)?);
        }
        let mut groups = vec![0; rows];
        let hashes = if self.dense.is_some() { Vec::new() } else { hashes(self.seed, &words, rows) };
        let (side_by_side, width) = (side_by_side(&words, rows), words.len());
        for (row, group) in groups.iter_mut().enumerate() {
            if row % TOGETHER == 0 && !hashes.is_empty() {
                self.prefetch(&hashes[row..rows.min(row + TOGETHER)]);
            }
            if mask.is_some_and(|mask| mask[row] == 0) {
                continue;
            }
            if let Some(dense) = &self.dense {
                *group = dense.known((words[0].words[row], words[0].is_null(row)));
                continue;
            }
            let of_row = &side_by_side[row * width..(row + 1) * width];
            let is = |group: u32| self.is(group, of_row, |at| words[at].is_null(row));
            *group = self.table.find(hashes[row], is).unwrap_or(0);
        }
        Ok(groups)
    }
}

/// Of the only column, if it is one of integers.
fn bounds(keys: &[Vector]) -> Option<(i128, i128)> {
    if let [Vector::Ints(ints)] = keys { Some((ints.min, ints.max)) } else { None }
}

/// Key columns whose values are looked up together.
pub(super) const COMBINED_COLUMNS_MAX: usize = 8;

impl KeyColumn {
    fn is_null(&self, group: usize) -> bool {
        self.nulls.get(group).copied().unwrap_or(false)
    }

    fn word_at(&mut self, key: &Vector, row: usize) -> Result<(u64, bool)> {
        self.texts.as_mut().map_or(Ok(()), |texts| texts.make_room(1))?;
        if key.nulls().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok((0, true));
        }
        match (key, &mut self.texts) {
            (Vector::Ints(ints), None) => match i64::try_from(ints.values.get(row)) {
                Ok(value) => Ok((value as u64, false)),
                Err(_) => Err(TOO_WIDE),
            },
            (Vector::Codes(codes), Some(texts)) => {
                Ok((texts.number_of(codes.dictionary.value(codes.codes[row] as usize)).into(), false))
            }
            _ => Err(TWO_FORMS),
        }
    }

    /// The same for what is only looked for; texts that nobody knows have a word that no key has.
    fn known_words(&self, key: &Vector) -> Result<Words> {
        let nulls = key.nulls().cloned();
        let words = match (key, &self.texts) {
            (Vector::Ints(ints), None) => of_ints(ints)?,
            (Vector::Flat(values), None) => self.form.words(values),
            (Vector::Codes(codes), Some(texts)) => texts.known_codes(codes),
            (Vector::Flat(values), Some(texts)) => {
                let values = as_views(values);
                texts.known_all(values.len(), |row| values.value(row))
            }
            _ => return Err(TWO_FORMS),
        };
        Ok(Words { words: zeroed(words, nulls.as_ref()), nulls })
    }

    fn words_of(&mut self, key: &Vector, mask: Option<&[u8]>) -> Result<Words> {
        self.texts.as_mut().map_or(Ok(()), |texts| texts.make_room(key.len()))?;
        let nulls = key.nulls().cloned();
        let words = match (key, &mut self.texts) {
            (Vector::Ints(ints), None) => of_ints(ints)?,
            (Vector::Flat(values), None) => {
                if self.leaves {
                    self.form.check(values)?;
                }
                self.form.words(values)
            }
            (Vector::Codes(codes), Some(texts)) => texts.of_codes(codes, mask),
            (Vector::Flat(values), Some(texts)) => texts.of_values(&as_views(values), mask),
            _ => return Err(TWO_FORMS),
        };
        Ok(Words { words: zeroed(words, nulls.as_ref()), nulls })
    }
}

impl Found {
    /// The words of some groups in a column.
    fn words_at(&self, column: usize, groups: &[u32]) -> Words {
        let words = groups.iter().map(|group| self.word(column, *group as usize)).collect();
        let of_column = &self.columns[column];
        let valid = || groups.iter().map(|group| !of_column.is_null(*group as usize)).collect::<NullBuffer>();
        Words { words, nulls: (!of_column.nulls.is_empty()).then(valid) }
    }

    fn vector(&self, column: usize, groups: &Chosen<'_>) -> Vector {
        let of_column = &self.columns[column];
        let words = || -> Vec<u64> {
            match groups {
                Chosen::All(groups) if self.columns.len() == 1 => self.words[groups.clone()].to_vec(),
                groups => groups.iter().map(|group| self.word(column, group)).collect(),
            }
        };
        let valid = || groups.iter().map(|group| !of_column.is_null(group)).collect::<NullBuffer>();
        let nulls = (!of_column.nulls.is_empty()).then(valid);
        match (&of_column.texts, of_column.form) {
            (None, Form::Bools) => {
                let values = words().into_iter().map(|word| word != 0).collect();
                Vector::Flat(Arc::new(BooleanArray::new(values, nulls)))
            }
            (None, Form::Floats { wide: true }) => {
                let values = words().into_iter().map(f64::from_bits).collect();
                Vector::Flat(Arc::new(Float64Array::new(values, nulls)))
            }
            (None, Form::Floats { wide: false }) => {
                let values = words().into_iter().map(|word| f32::from_bits(word as u32)).collect();
                Vector::Flat(Arc::new(Float32Array::new(values, nulls)))
            }
            (None, _) => {
                let values = IntValues::I64(words().into_iter().map(|word| word as i64).collect());
                Vector::Ints(Ints::measured(values, nulls))
            }
            (Some(texts), Form::Fixed) => Vector::Flat(fixed(words().into_iter(), nulls, &texts.sealed())),
            (Some(texts), _) => {
                let codes = words().into_iter().map(|word| word as u32).collect();
                Vector::Codes(Codes { codes, nulls, dictionary: texts.sealed() })
            }
        }
    }
}

const TWO_FORMS: Error = Error::Beyond("a key column in two forms");
const TOO_WIDE: Error = Error::Beyond("keys of more than 64 bits");

impl Form {
    /// Of values that are their own words.
    pub(crate) fn words(self, values: &ArrayRef) -> Vec<u64> {
        match self {
            Form::Bools => values.as_boolean().values().iter().map(u64::from).collect(),
            Form::Floats { wide: true } => {
                let word = |value: &f64| if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
                values.as_primitive::<Float64Type>().values().iter().map(word).collect()
            }
            Form::Floats { wide: false } => {
                let word = |value: &f32| if value.is_nan() { f32::NAN.to_bits() } else { (value + 0.0).to_bits() };
                values.as_primitive::<Float32Type>().values().iter().map(|value| u64::from(word(value))).collect()
            }
            Form::Integers | Form::Texts(_) | Form::Fixed => panic!("keys of {self:?} are held in other forms"),
        }
    }

    /// A key of -0 equals one of 0, but prints in another way.
    fn check(self, values: &ArrayRef) -> Result<()> {
        let found = match self {
            Form::Floats { wide: true } => {
                let values = values.as_primitive::<Float64Type>().values();
                values.iter().any(|value| value.to_bits() == (-0.0f64).to_bits())
            }
            Form::Floats { wide: false } => {
                let values = values.as_primitive::<Float32Type>().values();
                values.iter().any(|value| value.to_bits() == (-0.0f32).to_bits())
            }
            _ => false,
        };
        if found { Err(Error::Beyond("a key of -0")) } else { Ok(()) }
    }
}

/// Texts, or values of 16 bytes as such.
fn as_views(values: &ArrayRef) -> BinaryViewArray {
    match values.as_fixed_size_binary_opt() {
        Some(values) => values.iter().collect(),
        None => values.as_binary_view().clone(),
    }
}

/// Values of 16 bytes by their numbers.
fn fixed(numbers: impl Iterator<Item = u64>, nulls: Option<NullBuffer>, dictionary: &Dictionary) -> ArrayRef {
    const BYTES: usize = 16;
    let mut values = Vec::with_capacity(numbers.size_hint().0 * BYTES);
    for (row, number) in numbers.enumerate() {
        match nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            true => values.extend_from_slice(&[0; BYTES]),
            false => values.extend_from_slice(dictionary.value(number as usize)),
        }
    }
    Arc::new(FixedSizeBinaryArray::new(BYTES as i32, values.into(), nulls))
}

fn of_ints(ints: &Ints) -> Result<Vec<u64>> {
    if i64::try_from(ints.min).is_err() || i64::try_from(ints.max).is_err() {
        return Err(TOO_WIDE);
    }
    Ok(match &ints.values {
        IntValues::I32(values) => values.iter().map(|value| i64::from(*value) as u64).collect(),
        IntValues::I64(values) => values.iter().map(|value| *value as u64).collect(),
        IntValues::I128(values) => values.iter().map(|value| *value as u64).collect(),
    })
}

/// Null keys have the word 0.
fn zeroed(mut words: Vec<u64>, nulls: Option<&NullBuffer>) -> Vec<u64> {
    if let Some(nulls) = nulls {
        words.iter_mut().enumerate().filter(|(row, _)| nulls.is_null(*row)).for_each(|(_, word)| *word = 0);
    }
    words
}

impl Words {
    #[inline]
    fn is_null(&self, row: usize) -> bool {
        self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row))
    }
}

/// The words of each row beside each other.
fn side_by_side(columns: &[Words], rows: usize) -> Cow<'_, [u64]> {
    if let [only] = columns {
        return Cow::Borrowed(&only.words);
    }
    let mut all = vec![0; rows * columns.len()];
    for (at, column) in columns.iter().enumerate() {
        all.iter_mut().skip(at).step_by(columns.len()).zip(&column.words).for_each(|(to, word)| *to = *word);
    }
    Cow::Owned(all)
}

/// A client that knew the seed could choose keys that all hash alike.
fn hash(seed: u64, words: impl Iterator<Item = (u64, bool)>) -> u32 {
    words.fold(seed, |state, (word, null)| mixed(state ^ word ^ u64::from(null))) as u32
}

/// The same for the words of each row.
fn hashes(seed: u64, columns: &[Words], rows: usize) -> Vec<u32> {
    let mut states = vec![seed; rows];
    for Words { words, nulls } in columns {
        if let Some(nulls) = nulls {
            states.iter_mut().enumerate().for_each(|(row, state)| *state ^= u64::from(nulls.is_null(row)));
        }
        mix(&mut states, words);
    }
    states.into_iter().map(|state| state as u32).collect()
}

widest! {
    fn mix(states: &mut [u64], words: &[u64]) {
        for (state, word) in states.iter_mut().zip(words) {
            *state = mixed(*state ^ word);
        }
    }
}

/// All bits of what is mixed depend on all others.
#[inline(always)]
pub(crate) fn mixed(state: u64) -> u64 {
    const FACTOR: u64 = 0xd6e8_feb8_6659_fd93;
    let state = (state ^ state >> 32).wrapping_mul(FACTOR);
    let state = (state ^ state >> 32).wrapping_mul(FACTOR);
    state ^ state >> 32
}

/// Groups by the distance of an integer from where an array begins.
#[derive(Default)]
struct Dense {
    first: i64,
    numbers: Vec<u32>,
    null: u32,
    /// The least and the greatest integer that came.
    bounds: Option<(i64, i64)>,
    /// Rows that came.
    rows: usize,
    /// Whether the table was in its place before.
    again: bool,
}

/// Slots of the array per row that it is worth, those that are always worth it, and slots per row at which it takes the
/// table's place.
const SLOTS_PER_ROW_MAX: usize = 32;
const SLOTS_MIN: usize = 1 << 16;
const SLOTS_PER_ROW_AGAIN: usize = 8;
/// Rows that may still come for one that has.
const ROWS_STILL_MAX: usize = 256;
/// Of a table at first.
const TABLE_SLOTS: usize = 1024;
/// Texts of a column per group, as one of so many, from which on they are brought into the order of groups.
const TEXTS_PER_GROUP_MIN: usize = 4;

impl Dense {
    /// Whether integers between these bounds have slots, which are made if that is worth it.
    fn reach(&mut self, min: i128, max: i128, rows: usize) -> bool {
        let slots = self.slots(min, max, rows);
        let reaches = slots.is_some_and(|slots| slots <= SLOTS_MIN.max(self.rows.saturating_mul(SLOTS_PER_ROW_MAX)));
        if reaches {
            self.cover();
        }
        reaches
    }

    /// Whether it has become worth it.
    fn is_worth_it(&mut self, min: i128, max: i128, rows: usize) -> bool {
        let slots = self.slots(min, max, rows);
        slots.is_some_and(|slots| slots <= self.rows.saturating_mul(SLOTS_PER_ROW_AGAIN))
    }

    /// Whether it would become worth it with so many times the rows.
    fn is_near(&self) -> bool {
        let rows = self.rows.saturating_mul(ROWS_STILL_MAX);
        self.bounds.is_some_and(|(low, high)| high.abs_diff(low) <= rows.saturating_mul(SLOTS_PER_ROW_AGAIN) as u64)
    }

    /// How many slots all integers need that came.
    fn slots(&mut self, min: i128, max: i128, rows: usize) -> Option<usize> {
        self.rows += rows;
        let (min, max) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        let (low, high) = self.bounds.map_or((min, max), |(low, high)| (min.min(low), max.max(high)));
        self.bounds = Some((low, high));
        usize::try_from(high.checked_sub(low)?).ok()?.checked_add(1)
    }

    /// Makes the slots of all integers that came.
    fn cover(&mut self) {
        let Some((low, high)) = self.bounds else { return };
        let place = |integer: i64| usize::try_from(i128::from(integer) - i128::from(self.first)).ok();
        if [low, high].iter().all(|bound| place(*bound).is_some_and(|place| place < self.numbers.len())) {
            return;
        }
        let slots = high.abs_diff(low) as usize + 1;
        // With room on both sides, so that it is not moved for each batch that reaches a little further.
        let first = low.saturating_sub((slots / 4) as i64);
        let mut numbers = vec![0; slots + slots / 2];
        let known = self.numbers.iter().enumerate().filter(|(_, number)| **number != 0);
        known.for_each(|(at, number)| {
            numbers[self.first.wrapping_add(at as i64).wrapping_sub(first) as usize] = *number;
        });
        (self.first, self.numbers) = (first, numbers);
    }

    #[inline]
    fn number(&mut self, (word, null): (u64, bool)) -> &mut u32 {
        match null {
            true => &mut self.null,
            false => &mut self.numbers[(word as i64).wrapping_sub(self.first) as usize],
        }
    }

    /// The numbers of words, which lie within the bounds or do not count.
    fn known_all(&self, words: &[u64], numbers: &mut [u32]) {
        for (word, number) in words.iter().zip(numbers) {
            let at = (*word as i64).wrapping_sub(self.first) as usize;
            *number = self.numbers.get(at).copied().unwrap_or(0);
        }
    }

    fn known(&self, (word, null): (u64, bool)) -> u32 {
        match null {
            true => self.null,
            false => self.numbers.get((word as i64).wrapping_sub(self.first) as usize).copied().unwrap_or(0),
        }
    }
}

/// A number that nobody knows.
pub(crate) fn seed() -> u64 {
    Seeds::new().words
}

/// Texts without nulls as an array whose codes are positions.
pub(super) type Dictionary = Arc<BinaryViewArray>;

#[cfg(test)]
mod tests;
