//! Rows of several keys, looked up together: hot in one go, then in the row cache, then file by file. What a look for one
//! key does again each time (latch, view, pages of keys, pages of columns) is done once.

use super::row_cache::Asked;
use super::{InFile, Reading, SeenRow, in_files, sees_kept};
use crate::data_file::ColdRows;
use crate::tablet::{ReadView, Tablet};
use crate::{Engine, Result};
use basalt_hot::{Found, Reader, Rows};
use basalt_types::{ColumnId, Datum, ReadAt, Rid, Stamp, TableDef, TabletId, Version};
use std::sync::Arc;

/// Rows that were found ([`Engine::look_many`]), in the order of their keys.
#[derive(Default)]
pub struct SeenRows {
    /// Of hot and of the row cache.
    copies: Rows,
    cold: Vec<ColdRows>,
    /// By key.
    places: Vec<Option<Place>>,
}

#[derive(Clone, Copy)]
enum Place {
    Copy { at: usize },
    Cold { part: usize, at: usize },
}

/// A row in a file, and for which key.
struct Located {
    file: usize,
    ordinal: u32,
    key: usize,
}

impl SeenRows {
    /// Keys that were looked up.
    pub fn keys(&self) -> usize {
        self.places.len()
    }

    /// The row of a key, if there is one. `values`, in column-id order, is where columns are put if they have to be.
    pub fn get<'r>(
        &'r self,
        key: usize,
        table: &TableDef,
        columns: &[ColumnId],
        values: &'r mut [Datum],
    ) -> Option<SeenRow<'r>> {
        Some(match self.places[key]? {
            Place::Copy { at } => SeenRow::Encoded(self.copies.get(at).row),
            Place::Cold { part, at } => self.cold[part].seen(at, table, columns, values),
        })
    }
}

impl Engine {
    /// [`Engine::look`] for several keys of a tablet, which ascend. The rows are copies of what `columns` asks for.
    pub fn look_many(
        &self,
        table: &TableDef,
        tablet: TabletId,
        keys: &[&[u8]],
        Reading { at, noted }: Reading<'_>,
        columns: &[ColumnId],
        out: &mut SeenRows,
    ) -> Result<()> {
        if let Some(noted) = noted {
            keys.iter().for_each(|key| noted.note_key(tablet, key));
        }
        let tablet = self.tablet(tablet)?;
        let view = tablet.view();
        let txns = &*self.txns;
        let SeenRows { copies, cold, places } = out;
        copies.clear();
        cold.clear();
        places.clear();
        places.resize(keys.len(), None);
        tablet.hot.look_many(keys, &Reader { at, view: view.number, txns }, |key, found| match found {
            Found::Row { row, stamp, rid, .. } => {
                places[key] = Some(Place::Copy { at: copies.len() });
                copies.push(&[], row, rid, stamp);
            }
            // As in [`ReadContext::get`](super::ReadContext::get).
            Found::Deleted | Found::Elsewhere | Found::Absent => {}
        });
        if view.files.is_empty() {
            return Ok(());
        }
        let no_stamp = Stamp::version(Version::ZERO);
        let mut missing = Vec::new();
        for key in 0..keys.len() {
            if places[key].is_some() {
                continue;
            }
            let asked = Asked { tablet: tablet.id, view: view.id(), key: keys[key], columns };
            let sees = |origin| sees_kept(&view, origin, &at, txns);
            let kept = self
                .row_cache
                .look(&asked, |origin, row| sees(origin).then(|| copies.push(&[], row, Rid(0), no_stamp)));
            match kept {
                Ok(()) => places[key] = Some(Place::Copy { at: copies.len() - 1 }),
                Err(None) => missing.push(key),
                // Once for each view.
                Err(Some(admission)) => {
                    if let Some(row) = self.look_and_keep(table, &tablet, &view, &asked, admission, &at)? {
                        places[key] = Some(Place::Copy { at: copies.len() });
                        copies.push(&[], &row, Rid(0), no_stamp);
                    }
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let mut found = self.in_files_many(&tablet, &view, keys, &missing, &at)?;
        found.sort_unstable_by_key(|found| (found.file, found.ordinal));
        for of_file in found.chunk_by(|a, b| a.file == b.file) {
            let ordinals: Vec<u32> = of_file.iter().map(|found| found.ordinal).collect();
            for (at, found) in of_file.iter().enumerate() {
                places[found.key] = Some(Place::Cold { part: cold.len(), at });
            }
            let file = &view.files[of_file[0].file];
            cold.push(file.data.values_at(&ordinals, columns)?);
        }
        Ok(())
    }

    /// Where the files of a view have the rows of keys that a reader sees.
    fn in_files_many(
        &self,
        tablet: &Arc<Tablet>,
        view: &ReadView,
        keys: &[&[u8]],
        missing: &[usize],
        at: &ReadAt,
    ) -> Result<Vec<Located>> {
        let txns = &*self.txns;
        let wanted: Vec<&[u8]> = missing.iter().map(|key| keys[*key]).collect();
        let mut candidates = Vec::with_capacity(wanted.len());
        let all_asked = tablet.places_in_runs(view, &wanted, &mut |position, file, ordinal| {
            candidates.push(Located { file: file as usize, ordinal, key: missing[position] });
        })?;
        let mut found = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let file = &view.files[candidate.file];
            if file.sees_row(candidate.ordinal, at, txns)? && !file.deletes.is_deleted(candidate.ordinal, at, txns) {
                found.push(candidate);
            }
        }
        if all_asked || found.len() == wanted.len() {
            return Ok(found);
        }
        let mut is_found = vec![false; keys.len()];
        found.iter().for_each(|found| is_found[found.key] = true);
        for key in missing.iter().filter(|key| !is_found[**key]) {
            if let Some(InFile { position, ordinal, .. }) = in_files(tablet, view, keys[*key], at, txns)? {
                found.push(Located { file: position, ordinal, key: *key });
            }
        }
        Ok(found)
    }
}
