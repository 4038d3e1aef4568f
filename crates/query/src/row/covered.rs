//! Columns of a row that an index's entry has: whoever needs no others does not look at the row.
//!
//! An entry is written by the transaction that writes its row, and stamped as it is: it is seen by exactly those who see
//! the row with these values (docs/decisions/0021-covering-indexes.md).

use super::shape::Lens;
use crate::error::{Result, SqlError};
use basalt_engine::SeenRow;
use basalt_types::schema::{ENTRY_KEY, ENTRY_ROW, IndexDef, IndexSource, is_told_by_key};
use basalt_types::{ColumnId, DataType, Datum, TableDef, key};
use std::sync::Arc;

#[derive(PartialEq, Debug)]
pub(super) struct Covered {
    /// What of the entry is looked at.
    pub lens: Lens,
    index: Arc<IndexDef>,
    /// Columns of the table by where the entry has them.
    sources: Vec<(ColumnId, Source)>,
    /// Columns that are taken off the front of the entry's key, and the types of those off the row's key.
    key_columns: usize,
    row_types: Vec<DataType>,
    /// Of the table.
    width: usize,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Source {
    /// A place among the index's columns.
    Key(usize),
    /// A place in the table's primary key.
    Row(usize),
    /// A place in [`Covered::lens`].
    Included(ColumnId),
}

impl Source {
    fn of(index: &IndexDef, table: &TableDef, column: ColumnId) -> Option<Source> {
        if let Some(place) = index.place_of_included(column) {
            let ty = &index.entries.column(place).ty;
            return (ty.phys() == table.column(column).ty.phys()).then_some(Source::Included(place));
        }
        let is_it = |source: &IndexSource| matches!(source, IndexSource::Column(id) if *id == column);
        if let Some(at) = index.columns.iter().position(|known| is_it(&known.source)) {
            // What stands before it has to be passed over.
            let is_passed = |ty: &DataType| {
                use DataType::{Bpchar, Float4, Float8, Interval, Numeric};
                is_told_by_key(ty) || matches!(ty.underlying(), Float4 | Float8 | Numeric(_) | Bpchar(_) | Interval)
            };
            let told = is_told_by_key(&index.columns[at].ty);
            if told && index.columns[..at].iter().all(|before| is_passed(&before.ty)) {
                return Some(Source::Key(at));
            }
        }
        let primary_key = table.primary_key.as_ref()?;
        let at = primary_key.columns.iter().position(|known| *known == column)?;
        let is_told = primary_key.columns[..=at].iter().all(|id| is_told_by_key(&table.column(*id).ty));
        is_told.then_some(Source::Row(at))
    }
}

/// Whether entries have all of these columns.
pub(super) fn has_all(index: &IndexDef, table: &TableDef, columns: impl IntoIterator<Item = ColumnId>) -> bool {
    columns.into_iter().all(|column| Source::of(index, table, column).is_some())
}

impl Covered {
    /// `None`: entries have not all of these columns.
    pub fn of(index: &Arc<IndexDef>, table: &TableDef, columns: &[ColumnId]) -> Option<Covered> {
        let source = |column: &ColumnId| Some((*column, Source::of(index, table, *column)?));
        let sources = columns.iter().map(source).collect::<Option<Vec<(ColumnId, Source)>>>()?;
        let (mut key_columns, mut row_columns) = (0, 0);
        // The key at least: it tells that there is an entry.
        let mut looked_at = vec![ENTRY_KEY];
        for (_, source) in &sources {
            match source {
                Source::Key(at) => key_columns = key_columns.max(at + 1),
                Source::Row(at) => row_columns = row_columns.max(at + 1),
                Source::Included(place) => looked_at.push(*place),
            }
        }
        if row_columns > 0 {
            looked_at.push(ENTRY_ROW);
        }
        let of_key = table.primary_key.iter().flat_map(|key| &key.columns).take(row_columns);
        let row_types = of_key.map(|id| table.column(*id).ty.clone()).collect();
        let lens = Lens::new(index.entries.clone(), looked_at)?;
        Some(Covered { lens, index: index.clone(), sources, key_columns, row_types, width: table.columns.len() })
    }

    /// The row's values in column-id order, null where nobody looks.
    pub fn row(&self, entry: &SeenRow<'_>) -> Result<Vec<Datum>> {
        let mut slots = vec![Datum::Null; self.lens.columns.len()];
        self.lens.read(entry, &mut slots)?;
        self.values(slots).ok_or_else(|| {
            SqlError::from(basalt_engine::Error::Corrupt(format!("an entry of index {}", self.index.name)))
        })
    }

    fn values(&self, mut slots: Vec<Datum>) -> Option<Vec<Datum>> {
        let place = |column: ColumnId| self.lens.columns.binary_search(&column).ok();
        let bytes_of = |column: ColumnId| match slots.get(place(column)?)? {
            Datum::Bytes(bytes) => Some(&bytes[..]),
            _ => None,
        };
        let mut of_key = match self.key_columns {
            0 => Vec::new(),
            count => self.index.values_of_entry(bytes_of(ENTRY_KEY)?, count)?,
        };
        let mut of_row = Vec::with_capacity(self.row_types.len());
        if !self.row_types.is_empty() {
            let mut rest = bytes_of(ENTRY_ROW)?;
            for ty in &self.row_types {
                of_row.push(key::take_column(ty, &mut rest)?);
            }
        }
        let mut values = vec![Datum::Null; self.width];
        for (column, source) in &self.sources {
            values[column.position()] = match source {
                Source::Key(at) => of_key[*at].take()?,
                Source::Row(at) => std::mem::replace(&mut of_row[*at], Datum::Null),
                Source::Included(at) => std::mem::replace(&mut slots[place(*at)?], Datum::Null),
            };
        }
        Some(values)
    }
}
