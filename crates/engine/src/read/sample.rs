//! Some pages of a table, spread over its files: what a planner looks at.

use super::cold_scan::{ColdScan, Place};
use super::habits::Habits;
use super::{ReadContext, ScanSpec, ScanStats, Shared, TabletScan};
use crate::Result;
use basalt_cold::{PAGE_ROWS, Segment};
use std::sync::Arc;

impl ReadContext {
    /// Up to `pages` pages of segments, evenly spread over the table's rows; none of a table that has rows alone. What is
    /// read counts as no read of a transaction, and predicates are left alone.
    pub fn sample(&self, spec: ScanSpec, pages: usize) -> Result<Vec<TabletScan>> {
        let read = ReadContext { noted: None, ..self.clone() };
        let shared = Arc::new(Shared {
            read,
            habits: Habits::of(&spec),
            spec,
            stats: Arc::new(ScanStats::default()),
            bitmaps: Vec::new(),
        });
        let (mut files, mut total) = (Vec::new(), 0);
        for id in shared.spec.table.tablets().collect::<Vec<_>>() {
            let tablet = self.engine.tablet(id)?;
            let view = tablet.view();
            for file in &view.files {
                if let Some(segment) = file.data.segment()
                    && file.sees_uniform(&self.at, &*self.engine.txns)
                {
                    total += pages_of(segment).sum::<usize>();
                    files.push((Place::new(&shared, &tablet, &view, file, segment), total));
                }
            }
        }
        let chosen = pages.min(total);
        // The middle of each share, so that neither the oldest nor the newest rows stand for all.
        let middles = (0..chosen).map(|at| (2 * at + 1) * total / (2 * chosen));
        let scan = |page: usize| {
            let (place, end) = files.iter().find(|(_, end)| page < *end).expect("below the number of pages");
            let segment = place.segment();
            let mut page = page + pages_of(segment).sum::<usize>() - end;
            let mut row_group = 0;
            for pages in pages_of(segment) {
                if page < pages {
                    break;
                }
                page -= pages;
                row_group += 1;
            }
            ColdScan::page(place, row_group, page as u32).into_part()
        };
        Ok(middles.map(scan).collect())
    }
}

/// The pages of each row group.
fn pages_of(segment: &Segment) -> impl Iterator<Item = usize> {
    segment.row_groups().iter().map(|group| group.rows.div_ceil(PAGE_ROWS) as usize)
}
