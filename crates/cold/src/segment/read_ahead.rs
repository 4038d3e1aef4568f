//! What will be read soon is on its way before anybody waits for it (Krypton, section 4.3: scans prefetch
//! asynchronously).

use super::{PAGE_ROWS, Segment};
use crate::Result;
use basalt_types::ColumnId;
use std::ops::Range;

/// Of one row group: of wide rows its readers ask for the rest themselves.
const AHEAD_BYTES_MAX: u64 = 16 << 20;

impl Segment {
    /// Has the store begin to read those pages of some columns which hold these rows of a row group and are in nobody's
    /// memory, up to some bytes. Waits for the row group's directory alone, if that is not known.
    pub fn will_read(&self, row_group: usize, columns: &[ColumnId], rows: &[Range<u32>]) -> Result<()> {
        let directory = self.directory(row_group)?;
        let mut bytes_left = AHEAD_BYTES_MAX;
        for at in columns.iter().filter_map(|column| self.layout.position(*column)) {
            let chunk = &directory.chunks[at];
            let mut run: Option<Range<u64>> = None;
            for rows in rows.iter().filter(|rows| !rows.is_empty()) {
                let pages = (rows.start / PAGE_ROWS) as usize..rows.end.div_ceil(PAGE_ROWS) as usize;
                for page in chunk.pages[pages].iter().filter(|page| !page.slot.is_there()) {
                    bytes_left = match bytes_left.checked_sub(u64::from(page.extent.bytes)) {
                        Some(left) => left,
                        None => break,
                    };
                    let (start, end) = (page.extent.offset, page.extent.offset + u64::from(page.extent.bytes));
                    match &mut run {
                        Some(run) if run.end == start => run.end = end,
                        _ => run.replace(start..end).into_iter().for_each(|run| self.file.will_read(run)),
                    }
                }
            }
            let Some(run) = run else { continue };
            if let Some((_, shared)) = chunk.shared.filter(|_| !chunk.shared_slot.is_there()) {
                self.file.will_read(shared.offset..shared.offset + u64::from(shared.bytes));
            }
            self.file.will_read(run);
        }
        Ok(())
    }

    /// Whether the first pages of some columns in a row group are in memory, as the others are likely to be then.
    pub fn seems_at_hand(&self, row_group: usize, columns: &[ColumnId]) -> bool {
        if columns.is_empty() {
            return true;
        }
        let Some(directory) = self.directories[row_group].get() else { return false };
        let is_there = |at: usize| directory.chunks[at].pages.first().is_some_and(|page| page.slot.is_there());
        columns.iter().all(|column| self.layout.position(*column).is_none_or(is_there))
    }

    /// Bytes of a column's pages in a row group; 0 for a column that the file lacks.
    pub fn chunk_bytes(&self, row_group: usize, column: ColumnId) -> Result<u64> {
        let Some(at) = self.layout.position(column) else { return Ok(0) };
        Ok(self.directory(row_group)?.chunks[at].pages.iter().map(|page| u64::from(page.extent.bytes)).sum())
    }
}

#[cfg(test)]
mod tests;
