//! What is known of a table's columns, for planning: bounds, the share of nulls, the number of different values.
//!
//! A file holds its own bounds, counts and sketches; here they are merged over the files of all tablets and kept until a
//! tablet's view is another. Files that were added are merged into what is there; only where files have gone does it
//! begin anew. What is kept names the views that it was made of, so it is never of other files than those of now.
//! Deleted rows count until their file is rewritten, hot rows and files without sketches as if they were like the others.
//! Where those are most, some of them are looked at (`statistics/sample.rs`).

use crate::tablet::{ReadView, Tablet};
use crate::{Engine, Result};
use basalt_cold::{Sketch, ZoneMap};
use basalt_types::{ColumnId, Datum, FileId, ObjectId, TableDef};
use parking_lot::RwLock;
use sample::Sample;
pub(crate) use sample::Samples;
use smallvec::SmallVec;
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

/// A column over some files.
#[derive(Clone, Default)]
struct Merged {
    /// Of each tablet, in the table's order.
    views: SmallVec<[u64; 4]>,
    /// Ascending.
    files: Vec<FileId>,
    zone: Option<ZoneMap>,
    /// Files that do not know the column, and their rows.
    unbounded: usize,
    sketch: Sketch,
    /// What `sketch` says.
    distinct: f64,
    /// Rows that have a value and are in `sketch`, and rows of files that are not.
    sketched: u64,
    unsketched: u64,
    /// A file could not be read: nothing more is known of these views.
    failed: bool,
}

impl Merged {
    fn add(&mut self, view: &ReadView, column: ColumnId) -> Result<()> {
        for file in &view.files {
            let Err(at) = self.files.binary_search(&file.id()) else { continue };
            self.files.insert(at, file.id());
            let segment = file.data.segment();
            let Some((segment, zone)) = segment.and_then(|segment| Some((segment, segment.zone_map(column)?))) else {
                (self.unbounded, self.unsketched) = (self.unbounded + 1, self.unsketched + u64::from(file.data.rows()));
                continue;
            };
            match &mut self.zone {
                Some(all) => all.merge(zone),
                None => self.zone = Some(zone.clone()),
            }
            match segment.sketch(column)? {
                Some(sketch) => {
                    self.sketch.merge(&sketch);
                    self.sketched += u64::from(zone.rows - zone.nulls);
                }
                None => self.unsketched += u64::from(zone.rows),
            }
        }
        Ok(())
    }

    /// `sample` is asked where files do not say enough.
    fn statistics(&self, column: ColumnId, hot: u64, sample: impl FnOnce() -> Option<Arc<Sample>>) -> ColumnStatistics {
        // Of all files, or of none.
        let merged = self.zone.as_ref().filter(|_| !self.failed);
        let zone = merged.filter(|_| self.unbounded == 0);
        let bounds = zone.and_then(|zone| zone.min.clone().zip(zone.max.clone()));
        let nulls = merged.filter(|zone| zone.rows > 0);
        let nulls = nulls.map(|zone| f64::from(zone.nulls) / f64::from(zone.rows));
        let distinct = self.distinct_with(self.unsketched + hot);
        if distinct.is_some() {
            return ColumnStatistics { bounds, nulls, distinct };
        }
        let sample = sample();
        let sampled = sample.as_ref().and_then(|sample| Some((sample.column(column)?, sample.rows() as f64)));
        let Some((of_sample, rows)) = sampled else { return ColumnStatistics { bounds, nulls, distinct } };
        // The others are fewer: the more of these differ, the more do those.
        let more = |distinct: f64| distinct * (1.0 + self.sketched as f64 / rows * (distinct / rows).min(1.0));
        let distinct = of_sample.distinct.map(|distinct| more(distinct).max(self.distinct));
        ColumnStatistics { bounds, nulls: nulls.or(of_sample.nulls), distinct }
    }

    /// With rows that nothing is known of: the more of the others differ, the more do these. `None` if they are most.
    fn distinct_with(&self, others: u64) -> Option<f64> {
        if self.files.is_empty() || self.failed || others > self.sketched {
            return None;
        }
        let rows = (self.sketched as f64).max(1.0);
        Some(self.distinct * (1.0 + others as f64 / rows * (self.distinct / rows).min(1.0)))
    }
}

impl Engine {
    /// What files and rows say of a column of a table.
    pub fn column_statistics(&self, table: &TableDef, column: ColumnId) -> ColumnStatistics {
        let tablets: SmallVec<[Arc<Tablet>; 4]> = table.tablets().filter_map(|id| self.tablet(id).ok()).collect();
        let hot = tablets.iter().map(|tablet| tablet.hot.rows() as u64).sum();
        let views: SmallVec<[u64; 4]> = tablets.iter().map(|tablet| tablet.view_id()).collect();
        let key = (table.id, column);
        let known = self.statistics.0.read().get(&key).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.views == views) {
            return known.statistics(column, hot, || self.sample(table, &tablets));
        }
        // Pinned one by one, each perhaps newer than what was just looked at.
        let views: SmallVec<[Arc<ReadView>; 4]> = tablets.iter().map(|tablet| tablet.view()).collect();
        let mut files: Vec<FileId> = views.iter().flat_map(|view| view.files.iter().map(|file| file.id())).collect();
        files.sort_unstable();
        let is_left =
            |known: &Arc<Merged>| known.files.iter().all(|file| files.binary_search(file).is_ok()) && !known.failed;
        let mut merged = known.filter(is_left).map_or_else(Merged::default, |known| Merged::clone(&known));
        merged.views = views.iter().map(|view| view.id()).collect();
        if let Err(error) = views.iter().try_for_each(|view| merged.add(view, column)) {
            // Plans do without; `check` tells of it again.
            tracing::warn!(table = %table.name, %error, "statistics of a column could not be read");
            merged.failed = true;
        }
        merged.distinct = merged.sketch.estimate();
        let merged = Arc::new(merged);
        let statistics = merged.statistics(column, hot, || self.sample(table, &tablets));
        let mut all = self.statistics.0.write();
        if all.len() >= COLUMNS_MAX && !all.contains_key(&key) {
            all.clear();
        }
        all.insert(key, merged);
        statistics
    }
}
