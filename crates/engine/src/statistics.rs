//! What is known of a table's columns, for planning: bounds, the share of nulls, the number of different values.
//!
//! A file holds its own bounds, counts and sketches; here they are merged over the files of all tablets and kept until a
//! tablet's view is another. Files that were added are merged into what is there; only where files have gone does it
//! begin anew. What is kept names the views that it was made of, so it is never of other files than those of now.
//! Deleted rows count until their file is rewritten, hot rows and files without sketches as if they were like the others.
//! Where those are most, some of them are looked at (`statistics/sample.rs`).

use crate::tablet::ReadView;
use crate::{Engine, Result};
use basalt_cold::{Sketch, ZoneMap};
use basalt_types::{ColumnId, Datum, FileId, ObjectId, TableDef};
use parking_lot::RwLock;
pub(crate) use sample::Samples;
use sample::{Place, Sample};
use smallvec::SmallVec;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::Arc;

mod sample;

/// Columns that are kept, of about two kilobytes each.
const COLUMNS_MAX: usize = 4096;

/// All of it may be missing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ColumnStatistics {
    /// The least and the greatest value of files; hot rows may have others.
    pub bounds: Option<(Datum, Datum)>,
    /// Share of nulls, from 0 to 1.
    pub nulls: Option<f64>,
    /// Different values, nulls left out.
    pub distinct: Option<f64>,
}

#[derive(Default)]
pub(crate) struct StatisticsCache(RwLock<HashMap<(ObjectId, ColumnId), Arc<Merged>>>);

#[derive(Clone, Copy, Default)]
struct Nulls {
    rows: u64,
    nulls: u64,
}

impl Nulls {
    fn add(&mut self, zone: &ZoneMap) {
        (self.rows, self.nulls) = (self.rows + u64::from(zone.rows), self.nulls + u64::from(zone.nulls));
    }
}

/// A column over some files.
#[derive(Clone, Default)]
struct Merged {
    /// Of each tablet, in the table's order.
    views: SmallVec<[u64; 4]>,
    /// Ascending.
    files: Vec<FileId>,
    zone: Option<ZoneMap>,
    /// Files that do not know the column, or have rows alone.
    unbounded: usize,
    sketch: Sketch,
    /// What `sketch` says.
    distinct: f64,
    /// Rows of segments that know the column, and nulls among them.
    bounded: Nulls,
    /// The same of segments that have a sketch, and rows of those without one.
    sketched: Nulls,
    unsketched: u64,
    /// Rows of row files.
    in_rows: u64,
    /// A file could not be read: nothing more is known of these views.
    failed: bool,
}

impl Merged {
    fn add(&mut self, view: &ReadView, column: ColumnId) -> Result<()> {
        for file in &view.files {
            let Err(at) = self.files.binary_search(&file.id()) else { continue };
            self.files.insert(at, file.id());
            let Some(segment) = file.data.segment() else {
                (self.unbounded, self.in_rows) = (self.unbounded + 1, self.in_rows + u64::from(file.data.rows()));
                continue;
            };
            let Some(zone) = segment.zone_map(column) else {
                (self.unbounded, self.unsketched) = (self.unbounded + 1, self.unsketched + u64::from(file.data.rows()));
                continue;
            };
            if !zone.all_null() {
                // Rows and nulls are counted apart: there may be more than a zone map can tell of.
                let bounds = ZoneMap { rows: 1, nulls: 0, ..zone.clone() };
                match &mut self.zone {
                    Some(all) => all.merge(&bounds),
                    None => self.zone = Some(bounds),
                }
            }
            self.bounded.add(zone);
            match segment.sketch(column)? {
                Some(sketch) => {
                    self.sketch.merge(&sketch);
                    self.sketched.add(zone);
                }
                None => self.unsketched += u64::from(zone.rows),
            }
        }
        Ok(())
    }

    /// `sample` is asked where files do not say enough.
    fn statistics(&self, column: ColumnId, hot: u64, sample: impl FnOnce() -> Option<Arc<Sample>>) -> ColumnStatistics {
        if self.failed {
            return ColumnStatistics::default();
        }
        // Of all files, or of none.
        let zone = self.zone.as_ref().filter(|_| self.unbounded == 0);
        let bounds = zone.and_then(|zone| zone.min.clone().zip(zone.max.clone()));
        let (in_segments, in_rows) = (self.sketched.rows + self.unsketched, self.in_rows + hot);
        // Of most segments, or of none.
        let of_files = Some(self.bounded).filter(|known| known.rows > 0 && known.rows * 2 >= in_segments);
        let nulls = of_files.map(|known| known.nulls as f64 / known.rows as f64);
        let known = ColumnStatistics { bounds, nulls, distinct: self.distinct_with(self.unsketched + in_rows) };
        // Where rows of segments are fewer, those elsewhere speak for them.
        if known.distinct.is_some() || in_segments > in_rows {
            return known;
        }
        let sample = sample();
        let sampled = sample.as_ref().and_then(|sample| Some((sample.column(column)?, sample.rows() as f64)));
        let Some((sampled, rows)) = sampled else { return known };
        // And for rows that have come since. The more of those differ, the more do these.
        let others = in_segments as f64 + (in_rows as f64 - rows).max(0.0);
        let more = |distinct| with_others(distinct, rows, others / rows);
        let of_sketches = Some(self.distinct).filter(|distinct| *distinct > 0.0);
        let distinct = sampled.distinct.map(more).into_iter().chain(of_sketches).reduce(f64::max);
        let nulls = sampled.nulls.map(|share| {
            let of_files = of_files.unwrap_or_default();
            (of_files.nulls as f64 + share * rows) / (of_files.rows as f64 + rows)
        });
        // Bounds of a part are none.
        ColumnStatistics { bounds: None, nulls, distinct }
    }

    /// With rows that nothing is known of: the more of the others differ, the more do these. `None` if they are most.
    fn distinct_with(&self, others: u64) -> Option<f64> {
        if self.files.is_empty() || others > self.sketched.rows {
            return None;
        }
        let filled = ((self.sketched.rows - self.sketched.nulls) as f64).max(1.0);
        let share = others as f64 / (self.sketched.rows as f64).max(1.0);
        Some(with_others(self.distinct, filled, share))
    }
}

/// So many different values among these, and what others add that are such a share of them.
fn with_others(distinct: f64, of: f64, share: f64) -> f64 {
    distinct * (1.0 + share * (distinct / of).min(1.0))
}

/// What is known of a table's columns at one time.
pub struct TableStatistics<'t> {
    engine: &'t Engine,
    table: &'t TableDef,
    places: SmallVec<[Place; 4]>,
    hot: u64,
    sample: OnceCell<Option<Arc<Sample>>>,
}

impl Engine {
    pub fn statistics_of<'t>(&'t self, table: &'t TableDef) -> TableStatistics<'t> {
        let tablets = table.tablets().filter_map(|id| self.tablet(id).ok());
        let places: SmallVec<[Place; 4]> = tablets.map(|tablet| (tablet.clone(), tablet.view())).collect();
        let hot = places.iter().map(|(tablet, _)| tablet.hot.rows() as u64).sum();
        TableStatistics { engine: self, table, places, hot, sample: OnceCell::new() }
    }
}

impl TableStatistics<'_> {
    /// What files and rows say of a column.
    pub fn column(&self, column: ColumnId) -> ColumnStatistics {
        let of_files = self.of_files(column);
        let sample = || self.sample.get_or_init(|| self.engine.sample(self.table, &self.places)).clone();
        of_files.statistics(column, self.hot, sample)
    }

    fn of_files(&self, column: ColumnId) -> Arc<Merged> {
        let views: SmallVec<[u64; 4]> = self.places.iter().map(|(_, view)| view.id()).collect();
        let (key, cache) = ((self.table.id, column), &self.engine.statistics.0);
        let known = cache.read().get(&key).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.views == views) {
            return known.clone();
        }
        let files = self.places.iter().flat_map(|(_, view)| view.files.iter().map(|file| file.id()));
        let mut files: Vec<FileId> = files.collect();
        files.sort_unstable();
        let is_left =
            |known: &Arc<Merged>| known.files.iter().all(|file| files.binary_search(file).is_ok()) && !known.failed;
        let mut merged = known.filter(is_left).map_or_else(Merged::default, |known| Merged::clone(&known));
        merged.views = views;
        if let Err(error) = self.places.iter().try_for_each(|(_, view)| merged.add(view, column)) {
            // Plans do without; `check` tells of it again.
            tracing::warn!(table = %self.table.name, %error, "statistics of a column could not be read");
            merged.failed = true;
        }
        merged.distinct = merged.sketch.estimate();
        let merged = Arc::new(merged);
        let mut all = cache.write();
        if all.len() >= COLUMNS_MAX && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, merged.clone());
        merged
    }
}
