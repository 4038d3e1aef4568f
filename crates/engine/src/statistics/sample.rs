//! What some rows say of a table's columns where files say nothing: hot rows and row files have no sketches.
//!
//! Of n rows that are looked at out of N, d values of a column differ and f of them come once. As chance has chosen the
//! rows, n·d / (n − f + f·n/N) values differ in all (Haas and Stokes, "Estimating the number of classes in a finite
//! population", JASA 93, 1998: the estimator Duj1). Up to [`ROWS_MAX`] rows are all looked at, and the count is exact.
//!
//! Each row is chosen by itself. Neighbours would be cheaper to read, and even distances need no draws; but rows of one
//! order or one customer lie together: neighbours meet too often, and rows at even distances never.
//!
//! What was found stays until a fifth of the rows has come, gone or changed. Decision 0035 has figures.

use super::ColumnStatistics;
use crate::data_file::DataFile;
use crate::tablet::{ReadView, Tablet};
use crate::{Engine, Result};
use basalt_cold::{RowFile, key_hash};
use basalt_types::row::{self, Field, RowRef};
use basalt_types::{ColumnId, Datum, ObjectId, PhysType, TableDef, TabletId};
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// Rows that are looked at.
const ROWS_MAX: u64 = 2048;
/// Their bytes, about. However long rows are, so many are looked at; from fewer nothing follows for others.
const BYTES_MAX: u64 = 4 << 20;
const ROWS_MIN: u64 = 30;
/// How many rows more or fewer are no other table.
const FEW: u64 = 50;
/// Tables that change all the time are looked at as often; those of which little was seen, mostly deleted rows, less.
const REST: Duration = Duration::from_secs(1);
const REST_AFTER_NOTHING: Duration = Duration::from_secs(60);
/// Tables of which something is kept.
const TABLES_MAX: usize = 1024;

#[derive(Default)]
pub(crate) struct Samples {
    kept: RwLock<HashMap<ObjectId, Arc<Sample>>>,
    /// Who does not get it uses what is kept, or does without: nobody waits while others' blocks are read.
    looking: Mutex<()>,
}

/// A tablet, with its files of now.
pub(super) type Place = (Arc<Tablet>, Arc<ReadView>);

/// What is known of a table's rows that are hot or in row files.
pub(super) struct Sample {
    of: Extent,
    taken: Duration,
    /// By position; none if too little was seen.
    columns: Vec<ColumnStatistics>,
}

/// The rows of a table that no sketch counts.
struct Extent {
    tablets: SmallVec<[TabletId; 4]>,
    types: Vec<PhysType>,
    rows: u64,
    bytes: u64,
    /// How often hot rows had changed by then; a change and its commit are two, or in a large transaction one.
    changes: u64,
}

impl Extent {
    fn of(table: &TableDef, places: &[Place]) -> Extent {
        let (mut rows, mut bytes, mut changes) = (0, 0, 0);
        for (tablet, view) in places {
            rows += tablet.hot.rows() as u64;
            bytes += tablet.hot.bytes().saturating_sub(tablet.hot.kept_bytes()) as u64;
            changes += tablet.hot.changes();
            for file in row_files(view) {
                rows += u64::from(file.rows());
                bytes += file.meta().bytes;
            }
        }
        let tablets = places.iter().map(|(tablet, _)| tablet.id).collect();
        Extent { tablets, types: table.phys_types(), rows, bytes, changes }
    }

    /// Whether both are of one table, as it is defined now.
    fn is_alike(&self, other: &Extent) -> bool {
        self.tablets == other.tablets && self.types == other.types
    }

    /// How many rows to look at.
    fn wanted(&self) -> u64 {
        let fit = BYTES_MAX / (self.bytes / self.rows.max(1)).max(1);
        fit.clamp(ROWS_MIN, ROWS_MAX)
    }

    /// The part of those that a place with so many rows has.
    fn part(&self, rows: u64) -> u64 {
        let part = (u128::from(self.wanted()) * u128::from(rows)).div_ceil(u128::from(self.rows.max(1)));
        (part as u64).min(self.wanted())
    }
}

impl Sample {
    fn is_of(&self, now: &Extent, time: Duration) -> bool {
        let before = self.of.rows;
        let is_other = now.rows > 2 * before + FEW || before > 2 * now.rows + FEW;
        let has_grown = now.rows.abs_diff(before) > FEW + before / 5;
        let has_changed = now.changes.saturating_sub(self.of.changes) > 2 * (FEW + now.rows / 5);
        let rest = if self.columns.is_empty() { REST_AFTER_NOTHING } else { REST };
        let rests = time < self.taken + rest;
        self.of.is_alike(now) && !is_other && (rests || !has_grown && !has_changed && !self.columns.is_empty())
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
    types: &'t [PhysType],
    rows: u64,
    /// Hashes of those that are not null.
    columns: Vec<Vec<u64>>,
    /// What a row has in columns that it does not know.
    missing: Vec<Option<u64>>,
    of_row: Vec<Option<u64>>,
}

impl<'t> Values<'t> {
    fn new(table: &TableDef, types: &'t [PhysType]) -> Values<'t> {
        let (mut bytes, mut missing) = (Vec::new(), Vec::new());
        let values: Vec<Datum> = table.columns.iter().map(|column| column.missing.clone()).collect();
        row::encode(types, &values, &mut bytes);
        hash(&bytes, types, &mut missing).expect("a row that was just made");
        Values { types, rows: 0, columns: vec![Vec::new(); types.len()], missing, of_row: Vec::new() }
    }

    /// Adds a row. One that does not fit the table, which may have changed meanwhile, says nothing.
    fn add(&mut self, row: &[u8]) {
        if hash(row, self.types, &mut self.of_row).is_none() {
            return;
        }
        self.of_row.extend_from_slice(&self.missing[self.of_row.len()..]);
        for (values, hash) in self.columns.iter_mut().zip(&self.of_row) {
            values.extend(*hash);
        }
        self.rows += 1;
    }

    /// What they say of so many rows.
    fn of(self, rows: u64) -> Vec<ColumnStatistics> {
        let (looked, all) = (self.rows as f64, rows as f64);
        if self.rows < ROWS_MIN.min(rows.div_ceil(2)) {
            return Vec::new();
        }
        let is_all = self.rows >= rows;
        let column = |hashes: Vec<u64>| {
            let filled = hashes.len() as f64 / looked;
            // That none was found says only that there are few.
            let filled = if is_all { filled } else { filled.max(0.5 / looked) };
            let distinct = (is_all || !hashes.is_empty()).then(|| distinct(hashes, all * filled));
            ColumnStatistics { bounds: None, nulls: Some(1.0 - filled), distinct }
        };
        self.columns.into_iter().map(column).collect()
    }
}

/// Hashes of a row's values, of nulls none. `None`: it has other columns.
fn hash(row: &[u8], types: &[PhysType], out: &mut Vec<Option<u64>>) -> Option<()> {
    out.clear();
    let row = RowRef::new(row).filter(|row| row.column_count() <= types.len())?;
    row.each(
        |at| types[at],
        0..types.len(),
        |field| {
            out.push(match field {
                Field::Value(bytes) => Some(key_hash(bytes)),
                Field::Null => None,
            });
            Some(())
        },
    )
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

fn row_files(view: &ReadView) -> impl Iterator<Item = &Arc<RowFile>> {
    view.files.iter().filter_map(|file| match &file.data {
        DataFile::Rows(file) => Some(file),
        DataFile::Segment(_) | DataFile::Pair(..) => None,
    })
}

/// Draws places, the same ones each time.
struct Draws(u64);

impl Draws {
    /// So many of the first `all` numbers, ascending; all of them if they are no more.
    fn among(&mut self, all: u64, wanted: u64) -> Vec<u64> {
        if all <= wanted {
            return (0..all).collect();
        }
        let mut drawn: Vec<u64> = (0..wanted).map(|_| self.below(all)).collect();
        drawn.sort_unstable();
        drawn.dedup();
        drawn
    }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ (mixed >> 31)) * u128::from(bound)) >> 64) as u64
    }
}

impl Engine {
    /// What rows without sketches say, if there are any.
    pub(super) fn sample(&self, table: &TableDef, places: &[Place]) -> Option<Arc<Sample>> {
        let now = Extent::of(table, places);
        if now.rows == 0 {
            return None;
        }
        let kept = self.samples.kept.read().get(&table.id).cloned();
        if kept.as_ref().is_some_and(|kept| kept.is_of(&now, self.os.clock.monotonic())) {
            return kept;
        }
        let Some(_looking) = self.samples.looking.try_lock() else {
            return kept.filter(|kept| kept.of.is_alike(&now));
        };
        let columns = look(table, places, &now).unwrap_or_else(|error| {
            // Plans do without; `check` tells of it again.
            tracing::warn!(table = %table.name, %error, "rows could not be looked at for statistics");
            Vec::new()
        });
        let sample = Arc::new(Sample { of: now, taken: self.os.clock.monotonic(), columns });
        let mut kept = self.samples.kept.write();
        if kept.len() >= TABLES_MAX && !kept.contains_key(&table.id) {
            kept.clear();
        }
        kept.insert(table.id, sample.clone());
        Some(sample)
    }
}

fn look(table: &TableDef, places: &[Place], of: &Extent) -> Result<Vec<ColumnStatistics>> {
    let (mut values, mut draws) = (Values::new(table, &of.types), Draws(0));
    for (tablet, view) in places {
        let (keys, rows) = (tablet.hot.keys() as u64, tablet.hot.rows() as u64);
        // Of keys that were deleted or have moved there is nothing to see.
        let wanted = (u128::from(of.part(rows)) * u128::from(keys)).div_ceil(u128::from(rows.max(1)));
        let drawn = draws.among(keys, (wanted as u64).min(16 * ROWS_MAX));
        tablet.hot.look_at(&drawn, |row| values.add(row));
        for file in row_files(view) {
            let rows = u64::from(file.rows());
            let drawn: Vec<u32> = draws.among(rows, of.part(rows)).into_iter().map(|at| at as u32).collect();
            file.visit_at(&drawn, |entry| entry.row.into_iter().for_each(|row| values.add(row)))?;
        }
    }
    Ok(values.of(of.rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_come_once_stand_for_others() {
        // All that there are.
        assert_eq!(distinct(vec![1, 2, 2, 3], 4.0), 3.0);
        assert_eq!(distinct(Vec::new(), 9.0), 0.0);
        assert_eq!(distinct((0..1000).collect(), 1e6), 1e6);
        assert_eq!(distinct((0..1000).map(|i| i % 7).collect(), 1e6), 7.0);
    }

    /// Values that lie together, in step, or anywhere.
    #[test]
    fn chosen_rows_tell_how_many_values_differ() {
        const ROWS: u64 = 1_000_000;
        let tell = |name: &str, expected: u64, value: &dyn Fn(u64) -> u64| {
            let drawn = Draws(0).among(ROWS, ROWS_MAX);
            assert!(drawn.is_sorted_by(|a, b| a < b) && drawn.iter().all(|at| *at < ROWS));
            let found = distinct(drawn.iter().map(|at| value(*at)).collect(), ROWS as f64) / expected as f64;
            assert!((0.6..1.7).contains(&found), "{name}: {found} of what there is");
        };
        tell("runs of ten", 100_000, &|at| at / 10);
        tell("runs of a hundred", 10_000, &|at| at / 100);
        tell("runs of ten thousand", 100, &|at| at / 10_000);
        tell("a period of ten", 10, &|at| at % 10);
        tell("a period of two thousand", 2_000, &|at| at % 2_000);
        tell("all over", 5_000, &|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 5_000);
    }
}
