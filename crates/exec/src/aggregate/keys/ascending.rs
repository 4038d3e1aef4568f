//! Keys that ascend need neither hash nor array: a row is of the last group or of a new one.
//!
//! Rows of a table come in the order of its key, and each worker takes its morsels in that order, so whatever is grouped
//! by the key's first column ascends, through filters and joins that look into tables, too. Workers' groups are put
//! together as sorted lists; they share no more than the keys at which morsels meet. As long as keys ascend nothing
//! finds a group by its key; the first batch that does not ascend has them indexed. One that ascends, but from further in
//! front (hot rows behind those of files), begins groups of its own, which are put together with the others as those of
//! another worker are.

use super::{Dense, Found};
use crate::error::Result;
use crate::kernels::mask;
use crate::kernels::runs::{Runs, ascend};
use crate::stop::{ROWS, check};
use basalt_types::vector::{IntValues, Ints};
use basalt_types::widest;

/// How the groups' keys follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// By number, list by list ([`Found::more_lists`]), and nothing else finds them.
    Ascending,
    /// Any: they are found by array or table.
    Indexed,
}

impl Found {
    /// Whether all keys so far ascend in one list.
    pub(super) fn is_one_list(&self) -> bool {
        self.order == Order::Ascending && self.more_lists.is_empty()
    }

    fn may_ascend(&self, keys: &Ints) -> bool {
        self.is_one_list() && keys.nulls.as_ref().is_none_or(|nulls| nulls.null_count() == 0)
    }

    /// The groups of all rows, if keys go on ascending.
    pub(super) fn ascending(&mut self, keys: &Ints) -> Option<Runs> {
        if !self.may_ascend(keys) {
            return None;
        }
        match &keys.values {
            IntValues::I32(values) => self.ascending_of(values),
            IntValues::I64(values) => self.ascending_of(values),
            IntValues::I128(_) => None,
        }
    }

    fn ascending_of<T: Copy + Ord + Into<i64>>(&mut self, keys: &[T]) -> Option<Runs> {
        let key = |row: u32| -> i64 { keys[row as usize].into() };
        // Word 0 is of rows that do not count.
        let last = self.words[1..].last().map(|word| *word as i64);
        let first = keys.first().map(|key| -> i64 { (*key).into() });
        if first.zip(last).is_some_and(|(first, last)| first < last) {
            return None;
        }
        let goes_on = first.is_some() && first == last;
        let runs = Runs::of(keys, (self.len - usize::from(goes_on)) as u32)?;
        self.words.extend(runs.starts().iter().skip(usize::from(goes_on)).map(|row| key(*row) as u64));
        self.len = self.words.len();
        Some(runs)
    }

    /// The group of each row that a mask lets pass, 0 for the others, if keys go on ascending.
    pub(super) fn ascending_among(&mut self, keys: &Ints, mask: &[u8]) -> Option<Vec<u32>> {
        let (rows, nulls) = (mask::rows(mask), keys.nulls.clone());
        let mut groups = vec![0; mask.len()];
        fn at<T: Copy>(values: &[T], rows: &[u32]) -> Vec<T> {
            rows.iter().map(|row| values[*row as usize]).collect()
        }
        let values = match &keys.values {
            IntValues::I32(values) => IntValues::I32(at(values, &rows).into()),
            IntValues::I64(values) => IntValues::I64(at(values, &rows).into()),
            IntValues::I128(_) => return None,
        };
        let runs = self.ascending(&Ints { values, nulls, ..*keys })?;
        runs.each().iter().zip(rows).for_each(|(group, row)| groups[row as usize] = *group);
        Some(groups)
    }

    /// Whether keys that ascend, too, begin further in front.
    pub(super) fn falls_back(&self, keys: &Ints, mask: Option<&[u8]>) -> bool {
        if !self.may_ascend(keys) || self.len < LIST_MIN {
            return false;
        }
        match &keys.values {
            IntValues::I32(values) => self.falls_back_to(values, mask),
            IntValues::I64(values) => self.falls_back_to(values, mask),
            IntValues::I128(_) => false,
        }
    }

    fn falls_back_to<T: Copy + Ord + Into<i64>>(&self, keys: &[T], mask: Option<&[u8]>) -> bool {
        let last = self.words[self.len - 1] as i64;
        let first = mask.map_or(Some(0), |mask| mask.iter().position(|counts| *counts != 0));
        let first: Option<i64> = first.and_then(|first| keys.get(first)).map(|key| (*key).into());
        if first.is_none_or(|first| first >= last) {
            return false;
        }
        match mask {
            None => ascend(keys),
            Some(mask) => ascend(&mask::rows(mask).into_iter().map(|row| keys[row as usize]).collect::<Vec<_>>()),
        }
    }

    /// Takes in another worker's ascending keys: the group of each here. `None` if one of the two does not ascend, or in
    /// too many lists.
    pub(super) fn join_ascending(&mut self, other: &Found) -> Result<Option<Vec<u32>>> {
        let lists = 2 + self.more_lists.len() + other.more_lists.len();
        if self.order != Order::Ascending || other.order != Order::Ascending || lists > LISTS_MAX {
            return Ok(None);
        }
        let mut groups = Vec::with_capacity(other.words.len() - 1);
        for (from, to) in other.lists() {
            self.join_list(&other.words[from..to], &mut groups)?;
        }
        Ok(Some(groups))
    }

    fn join_list(&mut self, theirs: &[u64], groups: &mut Vec<u32>) -> Result<()> {
        let (mut lists, mut new) = (self.lists(), Vec::with_capacity(theirs.len()));
        for some in theirs.chunks(ROWS) {
            check()?;
            join(&self.words, &mut lists, some, groups, &mut new);
        }
        if new.first().zip(self.words[1..].last()).is_some_and(|(new, last)| (*new as i64) < *last as i64) {
            self.more_lists.push(self.len);
        }
        self.words.extend(new);
        self.len = self.words.len();
        Ok(())
    }

    /// From where to where keys ascend.
    fn lists(&self) -> Vec<(usize, usize)> {
        let starts = std::iter::once(1).chain(self.more_lists.iter().copied());
        starts.zip(self.more_lists.iter().copied().chain([self.words.len()])).collect()
    }

    /// Makes groups found by their keys.
    pub(super) fn index(&mut self) -> Result<()> {
        if self.order == Order::Indexed {
            return Ok(());
        }
        self.order = Order::Indexed;
        let words = &self.words[1..];
        let (min, max) =
            words.iter().fold((i64::MAX, i64::MIN), |(min, max), word| (min.min(*word as i64), max.max(*word as i64)));
        if words.is_empty() {
            return Ok(());
        }
        let mut dense = Dense::default();
        if dense.reach(min.into(), max.into(), words.len()) {
            self.waiting = Some(Box::new(dense));
            return self.enter_array();
        }
        // They are in the table, and only there.
        self.dense = Some(dense);
        self.leave_array()
    }
}

/// Groups before it is worth it to begin another list and not to find each group by its key.
const LIST_MIN: usize = 1 << 12;
/// Lists in which a key is looked for one after the other.
const LISTS_MAX: usize = 8;
/// Words that are compared at once.
const NEAR: usize = 8;

widest! {
    /// The group of each of their ascending keys: where one of the lists has it, or behind all words as one of those that
    /// are new. `lists`: from where each is to be looked through; no key is in two of them.
    fn join(own: &[u64], lists: &mut [(usize, usize)], theirs: &[u64], groups: &mut Vec<u32>, new: &mut Vec<u64>) {
        let mut from = 0;
        while from < theirs.len() {
            let key = theirs[from] as i64;
            let (mut found, mut next) = (None, None);
            for (at, end) in lists.iter_mut() {
                *at += ahead(&own[*at..*end], key);
                if let Some(word) = own[..*end].get(*at) {
                    let word = *word as i64;
                    if word == key {
                        found = Some(*at as u32);
                    }
                    next = Some(next.map_or(word, |next: i64| next.min(word)));
                }
            }
            if let Some(group) = found {
                groups.push(group);
                from += 1;
                continue;
            }
            // All that lie before the next of ours are new.
            let count = next.map_or(theirs.len() - from, |next| ahead(&theirs[from..], next));
            let first = (own.len() + new.len()) as u32;
            groups.extend(first..first + count as u32);
            new.extend_from_slice(&theirs[from..from + count]);
            from += count;
        }
    }
}

/// How many of ascending words are below a key; most often few or very many.
#[inline(always)]
fn ahead(words: &[u64], key: i64) -> usize {
    let mut from = 0;
    while let Some(near) = words[from..].first_chunk::<NEAR>().filter(|_| from < 2 * NEAR) {
        let below = near.iter().map(|word| usize::from((*word as i64) < key)).sum::<usize>();
        from += below;
        if below < NEAR {
            return from;
        }
    }
    let mut step = 1;
    while words.get(from + step - 1).is_some_and(|word| (*word as i64) < key) {
        step *= 2;
    }
    let (from, to) = (from + step / 2, (from + step).min(words.len()));
    from + words[from..to].partition_point(|word| (*word as i64) < key)
}
