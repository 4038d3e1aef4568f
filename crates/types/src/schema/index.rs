//! Secondary indexes: what the catalog says of one, and how its entries are encoded.
//!
//! An index is a hidden table with a tablet of its own (DESIGN 3: a unique index that does not contain the
//! distribution columns is a global index, itself a table). A row of it is an *entry*: `key`, `tablet`, `row`.
//!
//! ```text
//! key      the indexed values, each behind a byte: 1 a value (its key bytes follow), 2 null;
//!          in an entry that need not be unique, then the base row's tablet (4 bytes) and key
//! tablet   of the base row
//! row      the base row's key
//! ```
//!
//! `key` is the hidden table's primary key. So entries that must be unique collide exactly where two rows have the
//! same values, and all others never do. See `docs/decisions/0006-indexes-are-tables.md`.

use super::{Distribution, PartitionDef, PrimaryKey, TableDef};
use crate::{ColumnDef, ColumnId, DataType, Datum, Key, ObjectId, TabletId, key};
use std::sync::Arc;

const VALUE: u8 = 1;
const NULL: u8 = 2;

#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct IndexDef {
    pub id: ObjectId,
    pub name: String,
    /// Access method as declared: `btree` or `hash`. Both rest in the same way.
    pub method: String,
    /// Key columns.
    pub columns: Vec<IndexColumn>,
    /// `INCLUDE`: kept for the catalogs alone, since an entry leads to its row.
    pub include: Vec<ColumnId>,
    pub unique: bool,
    pub nulls_not_distinct: bool,
    /// SQL text of a partial index's condition.
    pub predicate: Option<String>,
    pub options: Vec<(String, String)>,
    /// What `ADD CONSTRAINT` or a table's UNIQUE clause made it for.
    pub constraint: Option<IndexConstraint>,
    #[serde(default)]
    pub state: IndexState,
    /// The hidden table.
    pub entries: Arc<TableDef>,
}

/// What is done with an index, as long as it is made or dropped beside writers
/// (`docs/decisions/0020-indexes-built-online.md`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum IndexState {
    /// Nothing.
    Dead,
    /// Who writes rows takes their entries away, and brings none.
    DeleteOnly,
    /// Who writes rows writes their entries. Not all rows have one.
    WriteOnly,
    /// Every row has its entry: it is read, too.
    #[default]
    Valid,
}

impl IndexState {
    /// Whether every row has its entry, so that rows may be looked for here and values are known to be unique.
    pub fn is_valid(self) -> bool {
        self == IndexState::Valid
    }

    /// Whether whoever brings a row brings its entry.
    pub fn takes_entries(self) -> bool {
        matches!(self, IndexState::Valid | IndexState::WriteOnly)
    }

    /// Whether whoever takes a row away takes its entry away.
    pub fn loses_entries(self) -> bool {
        self != IndexState::Dead
    }
}

#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct IndexColumn {
    pub source: IndexSource,
    /// As `pg_attribute` of the index has it.
    pub name: String,
    pub ty: DataType,
    pub descending: bool,
    pub nulls_first: bool,
    /// An operator class other than the type's own, by name.
    pub opclass: Option<String>,
    pub collation: Option<String>,
}

#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub enum IndexSource {
    Column(ColumnId),
    /// SQL text over the table's columns.
    Expression(String),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct IndexConstraint {
    pub id: ObjectId,
    pub deferrable: bool,
    pub initially_deferred: bool,
    /// A primary key that can be deferred: the rows of its table are not named by it.
    #[serde(default)]
    pub primary: bool,
}

/// One entry of a row in an index.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The hidden table's key column, not yet escaped.
    pub bytes: Vec<u8>,
    /// Bytes of the indexed values alone.
    pub values_len: usize,
    /// Whether no other row may have the same values.
    pub exclusive: bool,
}

impl Entry {
    /// The hidden table's primary key.
    pub fn key(&self) -> Key {
        prefix_key(&self.bytes, true)
    }

    pub fn values(&self) -> &[u8] {
        &self.bytes[..self.values_len]
    }
}

/// Entry bytes as the hidden table's key has them; a whole one, or the beginning of one.
pub fn prefix_key(bytes: &[u8], whole: bool) -> Key {
    let mut out = Vec::with_capacity(bytes.len() + 8);
    key::encode_bytes_column(&DataType::Bytea, bytes, &mut out);
    if !whole {
        out.truncate(out.len() - 2);
    }
    Key(out.into())
}

/// Values of an index's first columns as entries begin with them.
pub fn encode_values(columns: &[IndexColumn], values: &[Datum]) -> Vec<u8> {
    let mut out = Vec::with_capacity(24);
    for (column, value) in columns.iter().zip(values) {
        match value {
            Datum::Null => out.push(NULL),
            value => {
                out.push(VALUE);
                key::encode_column(&column.ty, value, &mut out);
            }
        }
    }
    out
}

/// How the entry of any value but null goes on.
pub fn encode_present(out: &mut Vec<u8>) {
    out.push(VALUE);
}

impl IndexDef {
    pub fn tablet(&self) -> TabletId {
        self.entries.partitions[0].tablets[0]
    }

    /// As [`IndexState::is_valid`].
    pub fn is_valid(&self) -> bool {
        self.state.is_valid()
    }

    /// As [`IndexState::takes_entries`].
    pub fn takes_entries(&self) -> bool {
        self.state.takes_entries()
    }

    /// As [`IndexState::loses_entries`].
    pub fn loses_entries(&self) -> bool {
        self.state.loses_entries()
    }

    /// Whether a violation may last until the end of the statement or transaction.
    pub fn is_deferrable(&self) -> bool {
        self.constraint.is_some_and(|constraint| constraint.deferrable)
    }

    /// The entry of a row of the base table with these values in the index's columns.
    pub fn entry(&self, values: &[Datum], tablet: TabletId, row: &Key) -> Entry {
        let mut bytes = encode_values(&self.columns, values);
        let values_len = bytes.len();
        let exclusive = self.is_exclusive(values) && !self.is_deferrable();
        if !exclusive {
            bytes.extend(tablet.0.to_be_bytes());
            bytes.extend_from_slice(row.as_bytes());
        }
        Entry { bytes, values_len, exclusive }
    }

    /// Whether two rows with these values violate uniqueness, at once or at last.
    pub fn is_exclusive(&self, values: &[Datum]) -> bool {
        self.unique && (self.nulls_not_distinct || values.iter().all(|value| !value.is_null()))
    }

    /// The columns that the index reads directly, in key order; `None` where one is an expression.
    pub fn plain_columns(&self) -> Option<Vec<ColumnId>> {
        let column = |column: &IndexColumn| match &column.source {
            IndexSource::Column(id) => Some(*id),
            IndexSource::Expression(_) => None,
        };
        self.columns.iter().map(column).collect()
    }

    /// Whether a foreign key can refer to its columns, and UPDATE of one of them is one of a key.
    pub fn is_key(&self) -> bool {
        self.unique && self.predicate.is_none() && self.plain_columns().is_some()
    }

    /// The values of a row (column-id order) in the index's columns; `None` unless they are plain columns of every row.
    pub fn plain_values(&self, row: &[Datum]) -> Option<Vec<Datum>> {
        if self.predicate.is_some() {
            return None;
        }
        let value = |column: &IndexColumn| match &column.source {
            IndexSource::Column(id) => Some(row[id.position()].clone()),
            IndexSource::Expression(_) => None,
        };
        self.columns.iter().map(value).collect()
    }

    /// Whether a row that changes from `old` to `new` (column-id order) keeps its values here: none of them is computed,
    /// and none differs.
    pub fn is_untouched(&self, old: &[Datum], new: &[Datum]) -> bool {
        let keeps = |column: &IndexColumn| match &column.source {
            IndexSource::Column(id) => old[id.position()] == new[id.position()],
            IndexSource::Expression(_) => false,
        };
        self.predicate.is_none() && self.columns.iter().all(keeps)
    }

    /// The indexed values in a key of the hidden table, for messages; what a key leaves out is lost
    /// ([`key::take_column`]).
    pub fn values_of_key(&self, key: &Key) -> Option<Vec<Option<Datum>>> {
        let Some(Datum::Bytes(bytes)) = key::take_column(&DataType::Bytea, &mut key.as_bytes()) else { return None };
        let mut rest = &bytes[..];
        let mut values = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let (first, behind) = rest.split_first()?;
            rest = behind;
            values.push(match *first {
                NULL => Some(Datum::Null),
                _ if column.ty == DataType::Interval => {
                    rest = rest.get(16..)?;
                    None
                }
                _ => Some(key::take_column(&column.ty, &mut rest)?),
            });
        }
        Some(values)
    }

    pub fn uses(&self, column: ColumnId) -> bool {
        let in_key = self.columns.iter().any(|other| matches!(other.source, IndexSource::Column(id) if id == column));
        in_key || self.include.contains(&column)
    }

    /// A hidden table for an index of this id.
    pub fn entries_table(id: ObjectId, namespace: ObjectId, name: &str, tablet: TabletId) -> Arc<TableDef> {
        let columns = [("key", DataType::Bytea), ("tablet", DataType::Int4), ("row", DataType::Bytea)];
        let column = |(at, (name, ty)): (usize, (&str, DataType))| ColumnDef {
            not_null: true,
            ..ColumnDef::new(ColumnId::from_position(at), name, ty)
        };
        Arc::new(TableDef {
            primary_key: Some(PrimaryKey {
                constraint_id: id,
                constraint_name: name.to_string(),
                columns: vec![ColumnId::from_position(0)],
            }),
            columns: columns.into_iter().enumerate().map(column).collect(),
            partitions: vec![PartitionDef { name: String::new(), tablets: vec![tablet] }],
            distribution: Distribution::Range,
            ..TableDef::new(id, namespace, name)
        })
    }

    /// A row of the hidden table.
    pub fn entry_row(entry: &Entry, tablet: TabletId, row: &Key) -> [Datum; 3] {
        [Datum::Bytes(entry.bytes.as_slice().into()), Datum::I32(tablet.0 as i32), Datum::Bytes(row.as_bytes().into())]
    }

    /// The base row that a row of the hidden table leads to.
    pub fn base_of(values: &[Datum]) -> Option<(TabletId, Key)> {
        match values {
            [_, Datum::I32(tablet), Datum::Bytes(row)] => Some((TabletId(*tablet as u32), Key::from(&row[..]))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
