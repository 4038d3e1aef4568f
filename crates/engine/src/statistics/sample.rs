//! What some rows say of a table's columns where files say nothing: hot rows and row files have no sketches.
//!
//! Of n rows that are looked at out of N, d values of a column differ and f of them come once. If chance has chosen the
//! rows, n·d / (n − f + f·n/N) values differ in all (Haas and Stokes, "Estimating the number of classes in a finite
//! population", JASA 93, 1998: the estimator Duj1); up to [`ROWS_MAX`] rows are all looked at, and the count is exact.
//!
//! Hot rows are taken at uneven distances, so that nothing that repeats in them hides; of row files a few neighbours at
//! a time, so that few blocks are read. What was found stays until a fifth of the rows has come, gone or changed.

use super::ColumnStatistics;
use crate::data_file::DataFile;
use crate::tablet::Tablet;
use crate::{Engine, Result};
use basalt_cold::{RowFile, key_hash};
use basalt_hot::Rows;
use basalt_types::row::{Field, RowRef};
use basalt_types::{ColumnId, Datum, ObjectId, TableDef, TabletId};
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Rows that are looked at.
const ROWS_MAX: u64 = 4096;
/// Their bytes, about. However long rows are, so many are looked at.
const BYTES_MAX: u64 = 4 << 20;
const ROWS_MIN: u64 = 256;
/// Rows of a row file that are looked at in one place, and how far apart they are on average, at most.
const RUN: u32 = 16;
const APART_MAX: u32 = 7;
/// How many rows more or fewer are no other table.
const FEW: u64 = 50;
/// Tables that change all the time are looked at as often.
const REST: Duration = Duration::from_secs(1);
/// Tables of which something is kept.
const TABLES_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Samples(RwLock<HashMap<ObjectId, Arc<Sample>>>);

/// What is known of a table's rows that are hot or in row files.
pub(super) struct Sample {
    of: Extent,
    taken: Duration,
    /// By position.
    columns: Vec<ColumnStatistics>,
}

/// The rows of a table that no sketch counts.
struct Extent {
    tablets: SmallVec<[TabletId; 4]>,
    columns: usize,
    rows: u64,
    bytes: u64,
    /// How often hot rows had changed by then.
    changes: u64,
}

impl Extent {
    fn of(table: &TableDef, tablets: &[Arc<Tablet>]) -> Extent {
        let (mut rows, mut bytes, mut changes) = (0, 0, 0);
        for tablet in tablets {
            rows += tablet.hot.rows() as u64;
            bytes += tablet.hot.bytes() as u64;
            changes += tablet.hot.changes();
            for file in row_files(tablet) {
                rows += u64::from(file.rows());
                bytes += file.meta().bytes;
            }
        }
        let columns = table.columns.len();
        Extent { tablets: tablets.iter().map(|tablet| tablet.id).collect(), columns, rows, bytes, changes }
    }

    /// How many rows to look at.
    fn wanted(&self) -> u64 {
        let fit = BYTES_MAX / (self.bytes / self.rows.max(1)).max(1);
        fit.clamp(ROWS_MIN, ROWS_MAX)
    }
}

impl Sample {
    fn is_of(&self, now: &Extent, time: Duration) -> bool {
        let is_same = self.of.tablets == now.tablets && self.of.columns == now.columns;
        let has_grown = now.rows.abs_diff(self.of.rows) > FEW + self.of.rows / 5;
        let has_changed = now.changes.saturating_sub(self.of.changes) > FEW + now.rows / 5;
        is_same && !has_grown && (!has_changed || time < self.taken + REST)
    }

    pub(super) fn rows(&self) -> u64 {
        self.of.rows
    }

    pub(super) fn column(&self, column: ColumnId) -> Option<&ColumnStatistics> {
        self.columns.get(column.position())
    }
}

/// The values of some rows, column by column.
struct Values<'t> {
    table: &'t TableDef,
    rows: u64,
    /// Hashes of those that are not null.
    columns: Vec<Vec<u64>>,
}

impl<'t> Values<'t> {
    fn new(table: &'t TableDef) -> Values<'t> {
        Values { table, rows: 0, columns: vec![Vec::new(); table.columns.len()] }
    }

    /// Adds a row. One that does not fit the table, which may have changed meanwhile, says nothing.
    fn add(&mut self, row: &[u8]) {
        let table = self.table;
        let Some(row) = RowRef::new(row).filter(|row| row.column_count() <= table.columns.len()) else { return };
        let mut columns = self.columns.iter_mut();
        let fits = row.each(
            |at| table.phys_type(at),
            0..table.columns.len(),
            |field| {
                let values = columns.next()?;
                if let Field::Value(bytes) = field {
                    values.push(key_hash(bytes));
                }
                Some(())
            },
        );
        for (values, column) in columns.zip(table.columns.iter().skip(row.column_count())) {
            if fits.is_some() && column.missing != Datum::Null {
                values.push(0);
            }
        }
        self.rows += 1;
    }

    /// What they say of so many rows.
    fn of(self, rows: u64) -> Vec<ColumnStatistics> {
        let looked = self.rows;
        let column = |hashes: Vec<u64>| {
            let filled = hashes.len() as f64 / looked.max(1) as f64;
            let distinct = distinct(hashes, rows as f64 * filled);
            ColumnStatistics { bounds: None, nulls: Some(1.0 - filled), distinct: Some(distinct) }
        };
        match looked {
            0 => Vec::new(),
            _ => self.columns.into_iter().map(column).collect(),
        }
    }
}

/// How many values differ among so many, of which these have the hashes.
fn distinct(mut hashes: Vec<u64>, all: f64) -> f64 {
    hashes.sort_unstable();
    let (mut differ, mut once) = (0.0, 0.0);
    for same in hashes.chunk_by(|a, b| a == b) {
        differ += 1.0;
        once += f64::from(u8::from(same.len() == 1));
    }
    let looked = hashes.len() as f64;
    if looked == 0.0 {
        return 0.0;
    }
    looked * differ / (looked - once + once * looked / all.max(looked))
}

fn row_files(tablet: &Tablet) -> impl Iterator<Item = Arc<RowFile>> {
    let view = tablet.view();
    let files = view.files.iter().filter_map(|file| match &file.data {
        DataFile::Rows(file) => Some(file.clone()),
        DataFile::Segment(_) | DataFile::Pair(..) => None,
    });
    files.collect::<Vec<_>>().into_iter()
}

/// The part of the rows that are looked at which these have.
fn part(wanted: u64, rows: u64, all: u64) -> u64 {
    (u128::from(wanted) * u128::from(rows)).div_ceil(u128::from(all.max(1))) as u64
}

/// The entries of a file to look at, ascending.
fn ordinals(rows: u32, wanted: u64) -> Vec<u32> {
    if u64::from(rows) <= wanted {
        return (0..rows).collect();
    }
    let runs = wanted.div_ceil(u64::from(RUN)) as u32;
    let mut out = Vec::with_capacity(runs as usize * RUN as usize);
    let mut state = 0u64;
    // A linear congruential generator (Knuth's MMIX), of which the upper half is even enough.
    let mut below = |bound: u32| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % u64::from(bound)) as u32
    };
    for run in 0..runs {
        let bound = |run: u32| (u64::from(run) * u64::from(rows) / u64::from(runs)) as u32;
        let (from, room) = (bound(run), bound(run + 1) - bound(run));
        let apart = (room / RUN).clamp(1, APART_MAX);
        let from = from + below(room.saturating_sub(RUN * apart) + 1);
        out.extend((0..RUN.min(room)).map(|at| from + at * apart + below(apart)));
    }
    out
}

impl Engine {
    /// What rows without sketches say, if there are any.
    pub(super) fn sample(&self, table: &TableDef, tablets: &[Arc<Tablet>]) -> Option<Arc<Sample>> {
        let (now, time) = (Extent::of(table, tablets), self.os.clock.monotonic());
        if now.rows == 0 {
            return None;
        }
        let known = self.samples.0.read().get(&table.id).cloned();
        if let Some(known) = known.filter(|known| known.is_of(&now, time)) {
            return Some(known);
        }
        let columns = self.looked_at(table, tablets, &now).unwrap_or_else(|error| {
            // Plans do without; `check` tells of it again.
            tracing::warn!(table = %table.name, %error, "rows could not be looked at for statistics");
            Vec::new()
        });
        let sample = Arc::new(Sample { of: now, taken: time, columns });
        let mut all = self.samples.0.write();
        if all.len() >= TABLES_MAX && !all.contains_key(&table.id) {
            all.clear();
        }
        all.insert(table.id, sample.clone());
        Some(sample)
    }

    fn looked_at(&self, table: &TableDef, tablets: &[Arc<Tablet>], of: &Extent) -> Result<Vec<ColumnStatistics>> {
        let (wanted, mut values, mut rows) = (of.wanted(), Values::new(table), Rows::new());
        for tablet in tablets {
            let hot = tablet.hot.rows() as u64;
            rows.clear();
            tablet.hot.sample(part(wanted, hot, of.rows) as usize, &mut rows);
            rows.iter().for_each(|row| values.add(row.row));
            for file in row_files(tablet) {
                let ordinals = ordinals(file.rows(), part(wanted, u64::from(file.rows()), of.rows));
                file.visit_at(&ordinals, |entry| {
                    if let Some(row) = entry.row {
                        values.add(row);
                    }
                })?;
            }
        }
        Ok(values.of(of.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_come_once_stand_for_others() {
        // All of them, or of each of two the half.
        assert_eq!(distinct(vec![1, 2, 2, 3], 4.0), 3.0);
        assert_eq!(distinct(Vec::new(), 9.0), 0.0);
        assert_eq!(distinct((0..1000).collect(), 1e6), 1e6);
        assert_eq!(distinct((0..1000).map(|i| i % 7).collect(), 1e6), 7.0);
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 5_000
        };
        let found = distinct((0..4096).map(|_| random()).collect(), 1e6);
        assert!((4_500.0..5_500.0).contains(&found), "{found}");
    }

    #[test]
    fn entries_are_from_all_of_a_file_and_in_order() {
        for (rows, wanted) in [(10, 4096), (4096, 4096), (4097, 4096), (1_000_000, 4096), (100, 17), (u32::MAX, 4096)] {
            let found = ordinals(rows, wanted);
            assert!(found.is_sorted_by(|a, b| a < b) && found.iter().all(|at| *at < rows), "{rows} {wanted}");
            assert!(found.len() as u64 >= wanted.min(u64::from(rows)), "{rows} {wanted}: {}", found.len());
            let (first, last) = (found[0], found[found.len() - 1]);
            assert!(first <= rows / 4 && last >= rows / 4 * 3, "{rows} {wanted}: {first} to {last}");
        }
    }
}
