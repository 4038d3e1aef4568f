//! For how many rows of tables conditions held, as executions saw it (Krypton, section 4.1): the next query that asks a table
//! for the same is planned by it, without looking at a sample, and a kept plan that was made of a guess far from it is made
//! anew.
//!
//! What is seen holds while the table is about as large, and for so many plans. It is never more than an estimate: rows that
//! changed meanwhile are corrected by the next execution that asks all of them.

use super::compile::placed;
use crate::optimize::facts::Sampled;
use crate::plan::ColId;
use ahash::RandomState;
use basalt_expr::context::EvalContext;
use basalt_expr::tree::Expr;
use basalt_types::{ColumnId, TableDef};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::{BuildHasher, Hasher};

/// Of which the half that was asked for longest ago goes when there are more.
const ENTRIES_MAX: usize = 4096;
/// Plans that are made of what was seen once: rows may have changed, and not every execution sees all of them.
const PLANS_MAX: u32 = 32;
/// A condition that is longer in words is not known again.
const WORDS_MAX: usize = 16 << 10;
/// So many times more or fewer rows than were expected, and by so many rows, make another plan.
const WRONG_TIMES: f64 = 4.0;
const WRONG_ROWS: f64 = 1000.0;

/// A table and conditions over it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key(u64);

#[derive(Default)]
pub(crate) struct Observed {
    hasher: RandomState,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    entries: HashMap<Key, Entry, RandomState>,
    clock: u64,
}

struct Entry {
    passed: u64,
    /// Of the table.
    rows: u64,
    used: u64,
    /// Plans that may still be made of it.
    left: u32,
}

impl Observed {
    /// The key of conditions over columns of a table, in whatever order they stand, with the values of parameters; `None` if
    /// one of them asks for something else.
    pub fn key(
        &self,
        table: &TableDef,
        columns: &[(ColId, ColumnId)],
        conditions: &[Expr],
        eval: &EvalContext,
    ) -> Option<Key> {
        let ids: Vec<ColId> = columns.iter().map(|(id, _)| *id).collect();
        let mut key = self.hasher.hash_one(table.id);
        for condition in conditions {
            let of_table = placed(condition, &ids).ok()?.fold(eval, true).rewrite(&mut |node| match node {
                Expr::Column { index, ty } => Expr::Column { index: usize::from(columns[index].1.0), ty },
                node => node,
            });
            let mut words = Words { hasher: self.hasher.build_hasher(), left: WORDS_MAX };
            write!(words, "{of_table:?}").ok()?;
            key = key.wrapping_add(words.hasher.finish());
        }
        Some(Key(key))
    }

    /// What was seen of a table that has so many rows now.
    pub fn get(&self, key: Key, rows: u64) -> Option<Sampled> {
        let mut seen = self.seen.lock();
        seen.clock += 1;
        let now = seen.clock;
        let entry = seen.entries.get_mut(&key).filter(|entry| super::kept::is_about(entry.rows, rows))?;
        let Some(left) = entry.left.checked_sub(1) else {
            seen.entries.remove(&key);
            return None;
        };
        (entry.left, entry.used) = (left, now);
        let passed = usize::try_from(entry.passed).unwrap_or(usize::MAX);
        let looked = usize::try_from(entry.rows).unwrap_or(usize::MAX);
        Some(Sampled { looked: looked.max(passed).max(1), passed })
    }

    pub fn put(&self, key: Key, rows: u64, passed: u64) {
        let mut seen = self.seen.lock();
        seen.clock += 1;
        let used = seen.clock;
        seen.entries.insert(key, Entry { passed, rows, used, left: PLANS_MAX });
        if seen.entries.len() > ENTRIES_MAX {
            let mut ages: Vec<u64> = seen.entries.values().map(|entry| entry.used).collect();
            ages.sort_unstable();
            let middle = ages[ages.len() / 2];
            seen.entries.retain(|_, entry| entry.used >= middle);
        }
    }

    /// Whether so many rows, which were expected, are far from what was seen since of a table that has so many rows now.
    pub fn is_wrong(&self, key: Key, expected: f64, rows: u64) -> bool {
        let seen = self.seen.lock();
        let known = seen.entries.get(&key).filter(|entry| super::kept::is_about(entry.rows, rows));
        known.is_some_and(|entry| are_apart(entry.passed as f64, expected))
    }
}

fn are_apart(seen: f64, expected: f64) -> bool {
    let (less, more) = (seen.min(expected), seen.max(expected));
    more > less * WRONG_TIMES && more - less > WRONG_ROWS
}

/// A text of which nothing is kept but its hash, if it is not too long.
struct Words<H> {
    hasher: H,
    left: usize,
}

impl<H: Hasher> Write for Words<H> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.left = self.left.checked_sub(text.len()).ok_or(fmt::Error)?;
        self.hasher.write(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_holds_while_the_table_has_its_size() {
        let observed = Observed::default();
        observed.put(Key(1), 100_000, 40);
        let known = observed.get(Key(1), 110_000).unwrap();
        assert_eq!((known.looked, known.passed), (100_000, 40));
        assert!(observed.get(Key(1), 150_000).is_none());
        assert!(observed.get(Key(2), 100_000).is_none());
        observed.put(Key(1), 100_000, 0);
        (0..PLANS_MAX).for_each(|_| assert_eq!(observed.get(Key(1), 100_000).unwrap().passed, 0));
        assert!(observed.get(Key(1), 100_000).is_none(), "for so many plans");
    }

    #[test]
    fn a_guess_is_wrong_by_much() {
        let observed = Observed::default();
        observed.put(Key(1), 1_000_000, 50_000);
        assert!(observed.is_wrong(Key(1), 300.0, 1_000_000) && observed.is_wrong(Key(1), 900_000.0, 900_000));
        assert!(!observed.is_wrong(Key(1), 20_000.0, 1_000_000) && !observed.is_wrong(Key(1), 150_000.0, 1_000_000));
        assert!(!observed.is_wrong(Key(1), 300.0, 2_000_000), "that was another table");
        observed.put(Key(1), 1_000_000, 3);
        assert!(!observed.is_wrong(Key(1), 600.0, 1_000_000), "hundreds of rows are not worth a plan");
        assert!(!observed.is_wrong(Key(2), 1.0, 1_000_000));
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let observed = Observed::default();
        for key in 0..=ENTRIES_MAX as u64 {
            observed.put(Key(key), 1000, key);
            observed.put(Key(0), 1000, 0);
        }
        assert!(observed.seen.lock().entries.len() <= ENTRIES_MAX / 2 + 2);
        assert!(observed.get(Key(0), 1000).is_some() && observed.get(Key(1), 1000).is_none());
    }
}
