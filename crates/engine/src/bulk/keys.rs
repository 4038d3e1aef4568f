//! Keys of many rows in one buffer.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef};
use basalt_types::batch::datum_at;
use basalt_types::{Datum, Key, PhysType, Rid, TableDef, key};

/// Encoded keys side by side.
#[derive(Default)]
pub(crate) struct KeyBytes {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl KeyBytes {
    /// Primary keys of rows given as stored columns in column-id order.
    pub fn of(table: &TableDef, columns: &[ArrayRef]) -> KeyBytes {
        let key_columns = &table.primary_key.as_ref().expect("the table has a key").columns;
        let rows = columns[0].len();
        let mut keys =
            KeyBytes { bytes: Vec::with_capacity(rows * 8 * key_columns.len()), ends: Vec::with_capacity(rows) };
        let parts: Vec<_> = (key_columns.iter())
            .map(|id| {
                let column = table.column(*id);
                (&column.ty, column.ty.phys().expect("storable"), &columns[id.position()])
            })
            .collect();
        for row in 0..rows {
            for (ty, phys, column) in &parts {
                let value = match phys {
                    PhysType::I64 => Datum::I64(column.as_primitive::<Int64Type>().value(row)),
                    PhysType::I32 => Datum::I32(column.as_primitive::<Int32Type>().value(row)),
                    PhysType::I16 => Datum::I16(column.as_primitive::<Int16Type>().value(row)),
                    phys => datum_at(*phys, column, row),
                };
                key::encode_column(ty, &value, &mut keys.bytes);
            }
            keys.ends.push(keys.bytes.len() as u32);
        }
        keys
    }

    /// Keys of rows of a table without a key, by their row ids.
    pub fn hidden(ids: &ArrayRef) -> KeyBytes {
        let ids = ids.as_primitive::<Int64Type>().values();
        let bytes = ids.iter().flat_map(|id| Key::hidden(Rid(*id as u64)).0).collect();
        KeyBytes { bytes, ends: (1..=ids.len() as u32).map(|rows| rows * 8).collect() }
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// The first row whose key is not above the one before it (`before` for the first).
    pub fn first_unsorted(&self, before: Option<&[u8]>) -> Option<usize> {
        let mut previous = before;
        for (row, key) in self.iter().enumerate() {
            if previous.is_some_and(|previous| previous >= key) {
                return Some(row);
            }
            previous = Some(key);
        }
        None
    }

    pub fn key(&self, row: usize) -> Key {
        Key::from(self.get(row))
    }
}
