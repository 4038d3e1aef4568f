//! The order of rows in a file: that of their keys, or that of the columns which a table's `clustering_key` names
//! (`docs/decisions/0027-clustering.md`). Nobody who reads rows concludes anything from the second.

use crate::file_writer::file_schema;
use crate::{EngineConfig, Error, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, UInt32Array};
use arrow_select::concat::concat;
use arrow_select::take::take;
use basalt_cold::segment::HIDDEN_KEY;
use basalt_meta::FileKind;
use basalt_types::batch::{bytes_of, datum_at};
use basalt_types::{ColumnId, DataType, Datum, Key, PhysType, Rid, TableDef, Version, key};

/// How rows given as columns in the order of `file_schema` are to lie in files of a kind.
pub(crate) struct Order {
    parts: Vec<Part>,
    clustering: Vec<ColumnId>,
}

struct Part {
    /// Among a file's columns.
    at: usize,
    ty: DataType,
    phys: PhysType,
    form: Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As [`Key::hidden`].
    Hidden,
    /// As in the primary key: never null.
    Key,
    /// Behind a byte that tells it from null.
    Clustering,
}

/// Bytes of a value by which rows of a clustering order are compared.
const PART_BYTES_MAX: usize = 256;

/// Nulls come last.
const VALUE: u8 = 1;
const NULL: u8 = 2;

/// What files of a kind are ordered by before their rows' keys: nothing but in columnar ones, for the other kinds are
/// there for reads by key, and nothing if that is how keys begin.
pub(crate) fn clustering_of(table: &TableDef, kind: FileKind) -> Vec<ColumnId> {
    if kind != FileKind::Segment {
        return Vec::new();
    }
    let columns = table.clustering_key();
    match &table.primary_key {
        Some(primary) if primary.columns.starts_with(&columns) => Vec::new(),
        _ => columns,
    }
}

impl Order {
    pub fn of(table: &TableDef, kind: FileKind) -> Order {
        let clustering = clustering_of(table, kind);
        let columns = file_schema(table).columns;
        let place = |id: ColumnId| columns.iter().position(|column| column.id == id).expect("a column of the table");
        let part = |id: ColumnId, form| {
            let ty = table.column(id).ty.clone();
            Part { at: place(id), phys: ty.phys().expect("storable"), ty, form }
        };
        let mut parts: Vec<Part> = clustering.iter().map(|id| part(*id, Form::Clustering)).collect();
        match &table.primary_key {
            Some(primary) => parts.extend(primary.columns.iter().map(|id| part(*id, Form::Key))),
            None => {
                let (ty, phys) = (DataType::Int8, PhysType::I64);
                parts.push(Part { at: place(HIDDEN_KEY), ty, phys, form: Form::Hidden });
            }
        }
        Order { parts, clustering }
    }

    /// The columns that come before keys; none: rows lie in the order of their keys.
    pub fn clustering(&self) -> &[ColumnId] {
        &self.clustering
    }

    /// Whether rows lie in the order of their keys.
    pub fn is_by_key(&self) -> bool {
        self.clustering.is_empty()
    }

    /// What rows compare by: their keys if there is no clustering.
    pub fn keys(&self, columns: &[ArrayRef]) -> OrderKeys {
        let rows = columns.first().map_or(0, |column| column.len());
        let mut keys =
            OrderKeys { bytes: Vec::with_capacity(rows * 9 * self.parts.len()), ends: Vec::with_capacity(rows) };
        for row in 0..rows {
            for part in &self.parts {
                let from = keys.bytes.len();
                part.encode(&columns[part.at], row, &mut keys.bytes);
                // Values that are told apart only behind that lie in any order.
                if !self.is_by_key() && keys.bytes.len() - from > PART_BYTES_MAX {
                    keys.bytes.truncate(from + PART_BYTES_MAX);
                }
            }
            keys.ends.push(u32::try_from(keys.bytes.len()).expect("rows that are sorted together are few"));
        }
        keys
    }
}

impl Part {
    fn encode(&self, column: &ArrayRef, row: usize, out: &mut Vec<u8>) {
        match self.form {
            Form::Hidden => {
                let rid = Rid(column.as_primitive::<Int64Type>().value(row) as u64);
                return out.extend_from_slice(Key::hidden(rid).as_bytes());
            }
            Form::Clustering if column.is_null(row) => return out.push(NULL),
            Form::Clustering => out.push(VALUE),
            Form::Key => {}
        }
        let value = match self.phys {
            PhysType::I64 => Datum::I64(column.as_primitive::<Int64Type>().value(row)),
            PhysType::I32 => Datum::I32(column.as_primitive::<Int32Type>().value(row)),
            PhysType::I16 => Datum::I16(column.as_primitive::<Int16Type>().value(row)),
            PhysType::Bytes => return key::encode_bytes_column(&self.ty, column.as_binary_view().value(row), out),
            phys => datum_at(phys, column, row),
        };
        key::encode_column(&self.ty, &value, out);
    }
}

/// What rows compare by, side by side.
#[derive(Default)]
pub(crate) struct OrderKeys {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl OrderKeys {
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] as usize };
        &self.bytes[start..self.ends[row] as usize]
    }

    pub fn last(&self) -> Option<&[u8]> {
        self.len().checked_sub(1).map(|last| self.get(last))
    }

    /// Whether each is above the one before it (`before` for the first).
    pub fn ascend(&self, before: Option<&[u8]>) -> bool {
        let mut previous = before;
        for row in 0..self.len() {
            let key = self.get(row);
            if previous.is_some_and(|previous| previous >= key) {
                return false;
            }
            previous = Some(key);
        }
        true
    }

    /// The rows in ascending order.
    pub fn sorted(&self) -> UInt32Array {
        // Most are told apart by their first bytes, which lie side by side here.
        let mut rows: Vec<(u128, u32)> = (0..self.len()).map(|row| (first_bytes(self.get(row)), row as u32)).collect();
        rows.sort_unstable_by(|a, b| {
            let rest = || self.get(a.1 as usize).cmp(self.get(b.1 as usize));
            a.0.cmp(&b.0).then_with(rest).then(a.1.cmp(&b.1))
        });
        UInt32Array::from_iter_values(rows.into_iter().map(|(_, row)| row))
    }
}

/// The first bytes of a key as a number that compares as they do; none count as zeros.
fn first_bytes(key: &[u8]) -> u128 {
    let mut first = [0; 16];
    let bytes = key.len().min(first.len());
    first[..bytes].copy_from_slice(&key[..bytes]);
    u128::from_be_bytes(first)
}

/// Rows that are gathered before they are sorted into a file.
#[derive(Default)]
pub(crate) struct Gathered {
    /// Per column of a file.
    columns: Vec<Vec<ArrayRef>>,
    versions: Vec<Version>,
    rows: usize,
    bytes: usize,
}

/// Rows in order.
pub(crate) struct Sorted {
    columns: Vec<ArrayRef>,
    versions: Vec<Version>,
    keys: OrderKeys,
    /// Of each row, which it was among those gathered.
    pub origins: UInt32Array,
}

/// Rows that go to a file at once.
const PIECE_ROWS: usize = 32_768;

impl Gathered {
    /// Rows as columns of a file, at least one. `versions` may be none of any.
    pub fn add(&mut self, columns: Vec<ArrayRef>, versions: &[Version]) {
        self.rows += columns[0].len();
        self.bytes += bytes_of(&columns);
        self.columns.resize_with(columns.len(), Vec::new);
        self.columns.iter_mut().zip(columns).for_each(|(pieces, piece)| pieces.push(piece));
        self.versions.extend_from_slice(versions);
    }

    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Whether they are enough for a file, or for the memory that may be taken.
    pub fn is_full(&self, rows_max: usize, config: &EngineConfig) -> bool {
        self.rows >= rows_max || self.bytes >= config.sort_bytes()
    }

    pub fn sort(self, order: &Order) -> Result<Sorted> {
        let join = |pieces: Vec<ArrayRef>| {
            let pieces: Vec<&dyn Array> = pieces.iter().map(|piece| &**piece).collect();
            concat(&pieces).map_err(|error| Error::Memory(error.to_string()))
        };
        let columns = self.columns.into_iter().map(join).collect::<Result<Vec<_>>>()?;
        let keys = order.keys(&columns);
        let origins = keys.sorted();
        let columns = columns.iter().map(|column| take(column, &origins, None).expect("indices are in range"));
        let columns = columns.collect();
        let versions = match self.versions.is_empty() {
            true => Vec::new(),
            false => origins.values().iter().map(|row| self.versions[*row as usize]).collect(),
        };
        Ok(Sorted { columns, versions, keys, origins })
    }
}

impl Sorted {
    pub fn columns(&self) -> &[ArrayRef] {
        &self.columns
    }

    /// What two rows compare by that are equal.
    pub fn twin(&self) -> Option<&[u8]> {
        let key = |row: u32| self.keys.get(row as usize);
        let pair = self.origins.values().windows(2).find(|pair| key(pair[0]) == key(pair[1]));
        pair.map(|pair| key(pair[0]))
    }

    /// Rows with their versions, some at a time.
    pub fn pieces(&self) -> impl Iterator<Item = (Vec<ArrayRef>, &[Version])> {
        (0..self.versions.len()).step_by(PIECE_ROWS).map(|first| {
            let rows = PIECE_ROWS.min(self.versions.len() - first);
            let columns = self.columns.iter().map(|column| column.slice(first, rows)).collect();
            (columns, &self.versions[first..first + rows])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_all_their_bytes() {
        let long = |last: u8| [&[7; 20][..], &[last]].concat();
        let all = [long(2), long(1), vec![], vec![0], vec![7], long(1), vec![0, 0]];
        let mut keys = OrderKeys::default();
        for key in &all {
            keys.bytes.extend_from_slice(key);
            keys.ends.push(keys.bytes.len() as u32);
        }
        assert_eq!(keys.sorted().values().to_vec(), [2, 3, 6, 4, 1, 5, 0]);
    }
}
