//! Keys that ascend need neither hash nor array: a row is of the last group or of a new one.
//!
//! Rows of a table come in the order of its key, and each worker takes its morsels in that order, so whatever is grouped
//! by the key's first column ascends, through filters and joins that look into tables, too. Workers' groups are put
//! together as sorted lists; they share no more than the keys at which morsels meet. As long as keys ascend nothing
//! finds a group by its key; the first batch that does not ascend has them indexed.

use super::{Dense, Found};
use crate::error::Result;
use crate::kernels::mask;
use crate::kernels::runs::Runs;
use crate::stop::{ROWS, check};
use basalt_types::vector::{IntValues, Ints};

/// How the groups' keys follow each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    /// By number, and nothing else finds them.
    Ascending,
    /// No more so, and nothing finds them yet.
    Unindexed,
    /// Any: they are found by array or table.
    Indexed,
}

impl Found {
    /// The groups of all rows, if keys go on ascending.
    pub(super) fn ascending(&mut self, keys: &Ints) -> Option<Runs> {
        if self.order != Order::Ascending || keys.nulls.as_ref().is_some_and(|nulls| nulls.null_count() > 0) {
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

    /// Takes in another worker's ascending keys: the group of each here. `None` if one of the two does not ascend.
    pub(super) fn join_ascending(&mut self, other: &Found) -> Result<Option<Vec<u32>>> {
        if self.order != Order::Ascending || other.order != Order::Ascending {
            return Ok(None);
        }
        let (own, theirs) = (&mut self.words, &other.words);
        let known = own.len();
        let mut groups = Vec::with_capacity(theirs.len() - 1);
        let (mut at, mut from) = (1, 1);
        let mut steps = 0;
        while from < theirs.len() {
            if steps % ROWS == 0 {
                check()?;
            }
            steps += 1;
            let key = theirs[from] as i64;
            at += ahead(&own[at..known], key);
            if at < known && own[at] as i64 == key {
                groups.push(at as u32);
                from += 1;
                continue;
            }
            // All that lie before the next of ours are new.
            let new = match own[..known].get(at) {
                Some(next) => ahead(&theirs[from..], *next as i64),
                None => theirs.len() - from,
            };
            groups.extend(own.len() as u32..(own.len() + new) as u32);
            own.extend_from_slice(&theirs[from..from + new]);
            from += new;
        }
        if own.len() > known {
            self.order = Order::Unindexed;
        }
        self.len = own.len();
        Ok(Some(groups))
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

/// How many of ascending words are below a key; most often few or very many.
fn ahead(words: &[u64], key: i64) -> usize {
    let mut step = 1;
    while words.get(step - 1).is_some_and(|word| (*word as i64) < key) {
        step *= 2;
    }
    let (from, to) = (step / 2, step.min(words.len()));
    from + words[from..to].partition_point(|word| (*word as i64) < key)
}
