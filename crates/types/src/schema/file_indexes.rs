//! Indexes that rest in a table's columnar files, beside the columns: bitmaps and filters. They have no entries of their
//! own, so nobody who writes a row knows of them; whoever writes a file does.

use super::{IndexDef, TableDef};
use crate::ColumnId;

/// The columns of a table over which its files have something besides.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileIndexes {
    /// `USING bitmap`: the rows that hold each value.
    pub bitmaps: Vec<ColumnId>,
    /// `USING bloom`: which row groups can hold a value at all.
    pub filters: Vec<ColumnId>,
}

const BITMAP: &str = "bitmap";
const BLOOM: &str = "bloom";

/// Whether indexes of an access method rest in files.
pub fn rests_in_files(method: &str) -> bool {
    matches!(method, BITMAP | BLOOM)
}

impl IndexDef {
    /// Whether it rests in files, and has no entries.
    pub fn rests_in_files(&self) -> bool {
        rests_in_files(&self.method)
    }
}

impl TableDef {
    /// What its indexes ask of its files.
    pub fn file_indexes(&self) -> FileIndexes {
        let columns = |method: &str| {
            let of_method = self.indexes.iter().filter(|index| index.method == method);
            let mut columns: Vec<ColumnId> = of_method.filter_map(|index| index.plain_columns()).flatten().collect();
            columns.sort_unstable();
            columns.dedup();
            columns
        };
        FileIndexes { bitmaps: columns(BITMAP), filters: columns(BLOOM) }
    }
}
