//! For how many rows of tables conditions held, as executions saw it (Krypton, section 4.1): the next query that asks a table
//! for the same is planned by it, without looking at a sample, and a kept plan that was made of a guess far from it is made
//! anew.
//!
//! What is seen holds while the table is about as large. It is never more than an estimate: rows that changed meanwhile are
//! corrected by the next execution.

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
            let mut text = Hashed(self.hasher.build_hasher());
            write!(text, "{of_table:?}").ok()?;
            key = key.wrapping_add(text.0.finish());
        }
        Some(Key(key))
    }

    /// What was seen of a table that has so many rows now.
    pub fn get(&self, key: Key, rows: u64) -> Option<Sampled> {
        let mut seen = self.seen.lock();
        seen.clock += 1;
        let now = seen.clock;
        let entry = seen.entries.get_mut(&key).filter(|entry| super::kept::is_about(entry.rows, rows))?;
        entry.used = now;
        let passed = usize::try_from(entry.passed).unwrap_or(usize::MAX);
        let looked = usize::try_from(entry.rows).unwrap_or(usize::MAX);
        Some(Sampled { looked: looked.max(passed).max(1), passed })
    }

    pub fn put(&self, key: Key, rows: u64, passed: u64) {
        let mut seen = self.seen.lock();
        seen.clock += 1;
        let used = seen.clock;
        seen.entries.insert(key, Entry { passed, rows, used });
        if seen.entries.len() > ENTRIES_MAX {
            let mut ages: Vec<u64> = seen.entries.values().map(|entry| entry.used).collect();
            ages.sort_unstable();
            let middle = ages[ages.len() / 2];
            seen.entries.retain(|_, entry| entry.used >= middle);
        }
    }

    /// Whether so many rows, which were expected, are far from what was seen since.
    pub fn is_wrong(&self, key: Key, expected: f64) -> bool {
        let seen = self.seen.lock();
        seen.entries.get(&key).is_some_and(|entry| are_apart(entry.passed as f64, expected))
    }
}

fn are_apart(seen: f64, expected: f64) -> bool {
    let (less, more) = (seen.min(expected), seen.max(expected));
    more > less * WRONG_TIMES && more - less > WRONG_ROWS
}

/// A text of which nothing is kept but its hash.
struct Hashed<H>(H);

impl<H: Hasher> Write for Hashed<H> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
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
        assert_eq!(observed.get(Key(1), 100_000).unwrap().passed, 0);
    }

    #[test]
    fn a_guess_is_wrong_by_much() {
        let observed = Observed::default();
        observed.put(Key(1), 1_000_000, 50_000);
        assert!(observed.is_wrong(Key(1), 300.0) && observed.is_wrong(Key(1), 900_000.0));
        assert!(!observed.is_wrong(Key(1), 20_000.0) && !observed.is_wrong(Key(1), 150_000.0));
        observed.put(Key(1), 1_000_000, 3);
        assert!(!observed.is_wrong(Key(1), 600.0), "hundreds of rows are not worth a plan");
        assert!(!observed.is_wrong(Key(2), 1.0));
    }

    #[test]
    fn no_more_is_kept_than_fits() {
        let observed = Observed::default();
        for key in 0..=ENTRIES_MAX as u64 {
            observed.put(Key(key), 1000, key);
            observed.get(Key(0), 1000);
        }
        assert!(observed.seen.lock().entries.len() <= ENTRIES_MAX / 2 + 2);
        assert!(observed.get(Key(0), 1000).is_some() && observed.get(Key(1), 1000).is_none());
    }
}
