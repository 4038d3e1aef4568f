//! Which columns a scan reads as a whole, as far as it has come: these are read ahead. Of the others it wants single rows
//! that conditions have left.

use super::ScanSpec;
use basalt_types::ColumnId;
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Habits {
    /// Parts that something was read of, as far as they were read, and in how many of them most of each column.
    parts: AtomicU32,
    mostly: Vec<AtomicU32>,
    /// Before there were any: columns that storage skips by, or all.
    at_first: Vec<bool>,
}

impl Habits {
    pub fn of(spec: &ScanSpec) -> Habits {
        let is_asked = |column: &ColumnId| spec.predicates.iter().any(|predicate| predicate.column() == *column);
        Habits {
            parts: AtomicU32::new(0),
            mostly: spec.columns.iter().map(|_| AtomicU32::new(0)).collect(),
            at_first: spec.columns.iter().map(|column| spec.predicates.is_empty() || is_asked(column)).collect(),
        }
    }

    /// One more part, of which these columns were read for the most part.
    pub fn note(&self, mostly: impl Iterator<Item = usize>) {
        for column in mostly {
            self.mostly[column].fetch_add(1, Ordering::Relaxed);
        }
        self.parts.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether a column, by its place in the scan's list, is read as a whole.
    pub fn reads(&self, column: usize) -> bool {
        match self.parts.load(Ordering::Relaxed) {
            0 => self.at_first[column],
            parts => self.mostly[column].load(Ordering::Relaxed) * 2 >= parts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_ahead_as_they_were_read() {
        let habits = Habits {
            parts: AtomicU32::new(0),
            mostly: (0..3).map(|_| AtomicU32::new(0)).collect(),
            at_first: vec![true, false, false],
        };
        let reads = |habits: &Habits| [0, 1, 2].map(|column| habits.reads(column));
        assert_eq!(reads(&habits), [true, false, false]);
        habits.note([0, 1].into_iter());
        assert_eq!(reads(&habits), [true, true, false]);
        habits.note([0].into_iter());
        habits.note([0, 2].into_iter());
        assert_eq!(reads(&habits), [true, false, false]);
    }
}
