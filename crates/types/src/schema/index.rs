//! Secondary indexes: what the catalog says of one, and how its entries are encoded.
//!
//! An index is a hidden table with a tablet of its own (DESIGN 3: a unique index that does not contain the
//! distribution columns is a global index, itself a table). A row of it is an *entry*: `key`, `tablet`, `row`, and the
//! values of included columns.
//!
//! ```text
//! key      the indexed values, each behind a byte: 1 a value (its key bytes follow), 2 null;
//!          in an entry that need not be unique, then the base row's tablet (4 bytes) and key
//! tablet   of the base row
//! row      the base row's key
//! …        the base row's values in the included columns, one column each; indexes of before have none of them
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
    /// Access method as declared: `btree` or `hash`, which rest in the same way; `bitmap` or `bloom`, which
    /// [rest in files](IndexDef::rests_in_files): the hidden table stays empty, and the state is dead, as nobody looks for
    /// entries.
    pub method: String,
    /// Key columns.
    pub columns: Vec<IndexColumn>,
    /// `INCLUDE`: entries have these columns' values, unless they are [of before](IndexDef::is_covering).
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
    /// Values of included columns.
    pub included: Vec<Datum>,
}

impl Entry {
    /// The hidden table's primary key.
    pub fn key(&self) -> Key {
        prefix_key(&self.bytes, true)
    }

    pub fn values(&self) -> &[u8] {
        &self.bytes[..self.values_len]
    }

    /// Bytes that it takes, about.
    pub fn len(&self) -> usize {
        let included = self.included.iter().map(|value| match value {
            Datum::Bytes(bytes) => bytes.len(),
            _ => size_of::<u64>(),
        });
        self.bytes.len() + included.sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The hidden table's key.
pub const ENTRY_KEY: ColumnId = ColumnId(1);
/// The base row's tablet.
pub const ENTRY_TABLET: ColumnId = ColumnId(2);
/// The base row's key.
pub const ENTRY_ROW: ColumnId = ColumnId(3);
/// Columns of every hidden table. Those behind them are included ones.
const ENTRY_COLUMNS: usize = 3;

/// Whether a key tells a value of this type as it is: no other form of it has the same key.
pub fn is_told_by_key(ty: &DataType) -> bool {
    use DataType::*;
    match ty.underlying() {
        Numeric(_) => ty.decimal().is_some(),
        ty => matches!(
            ty,
            Bool | Int2
                | Int4
                | Int8
                | Text
                | Varchar(_)
                | Bytea
                | Date
                | Time
                | TimeTz
                | Timestamp
                | TimestampTz
                | Bit(_)
                | Varbit(_)
                | Money
                | Uuid
                | Inet
                | Cidr
                | Macaddr
                | Macaddr8
                | PgLsn
                | Xid8
                | Name
                | Char
                | Oid
                | Enum(_)
        ),
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

    /// The entry of a row of the base table (`base`, in column-id order) with these values in the index's columns.
    pub fn entry(&self, values: &[Datum], base: &[Datum], tablet: TabletId, row: &Key) -> Entry {
        let mut bytes = encode_values(&self.columns, values);
        let values_len = bytes.len();
        let exclusive = self.is_exclusive(values) && !self.is_deferrable();
        if !exclusive {
            bytes.extend(tablet.0.to_be_bytes());
            bytes.extend_from_slice(row.as_bytes());
        }
        let included = match self.is_covering() {
            true => self.include.iter().map(|id| base[id.position()].clone()).collect(),
            false => Vec::new(),
        };
        Entry { bytes, values_len, exclusive, included }
    }

    /// Whether its entries have the included columns' values. Those of an index that was made before entries had any do
    /// not, until it is built anew.
    pub fn is_covering(&self) -> bool {
        self.entries.columns.len() > ENTRY_COLUMNS
    }

    /// Where the hidden table has an included column.
    pub fn place_of_included(&self, column: ColumnId) -> Option<ColumnId> {
        let at = self.include.iter().position(|id| *id == column).filter(|_| self.is_covering())?;
        Some(ColumnId::from_position(ENTRY_COLUMNS + at))
    }

    /// Types of the hidden table's included columns.
    pub fn included_types(&self) -> Vec<DataType> {
        self.entries.columns[ENTRY_COLUMNS..].iter().map(|column| column.ty.clone()).collect()
    }

    /// Types of columns that an index of this table is to include.
    pub fn types_to_include(table: &TableDef, include: &[ColumnId]) -> Vec<DataType> {
        include.iter().map(|id| table.column(*id).ty.clone()).collect()
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

    /// Whether a row that changes from `old` to `new` (column-id order) keeps its values here, included ones too: none of
    /// them is computed, and none differs.
    pub fn is_untouched(&self, old: &[Datum], new: &[Datum]) -> bool {
        let keeps = |column: &IndexColumn| match &column.source {
            IndexSource::Column(id) => old[id.position()] == new[id.position()],
            IndexSource::Expression(_) => false,
        };
        let keeps_included = || {
            let mut included = self.include.iter().map(|id| id.position());
            !self.is_covering() || included.all(|at| old[at] == new[at])
        };
        self.predicate.is_none() && self.columns.iter().all(keeps) && keeps_included()
    }

    /// The indexed values in a key of the hidden table, for messages; what a key leaves out is lost
    /// ([`key::take_column`]).
    pub fn values_of_key(&self, key: &Key) -> Option<Vec<Option<Datum>>> {
        let Some(Datum::Bytes(bytes)) = key::take_column(&DataType::Bytea, &mut key.as_bytes()) else { return None };
        self.values_of_entry(&bytes, self.columns.len())
    }

    /// The values of the first `count` columns in the `key` of an entry, with what a key leaves out lost.
    pub fn values_of_entry(&self, bytes: &[u8], count: usize) -> Option<Vec<Option<Datum>>> {
        let mut rest = bytes;
        let mut values = Vec::with_capacity(count);
        for column in &self.columns[..count] {
            let (first, behind) = rest.split_first()?;
            rest = behind;
            values.push(match *first {
                NULL => Some(Datum::Null),
                _ if *column.ty.underlying() == DataType::Interval => {
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

    /// A hidden table for an index of this id, whose entries have values of these types besides.
    pub fn entries_table(
        id: ObjectId,
        namespace: ObjectId,
        name: &str,
        tablet: TabletId,
        included: Vec<DataType>,
    ) -> Arc<TableDef> {
        let columns: [_; ENTRY_COLUMNS] = [
            (ENTRY_KEY, "key", DataType::Bytea),
            (ENTRY_TABLET, "tablet", DataType::Int4),
            (ENTRY_ROW, "row", DataType::Bytea),
        ];
        let column =
            |(id, name, ty): (ColumnId, &str, DataType)| ColumnDef { not_null: true, ..ColumnDef::new(id, name, ty) };
        let included = included.into_iter().enumerate().map(|(at, ty)| {
            let name = format!("included{}", at + 1);
            ColumnDef::new(ColumnId::from_position(ENTRY_COLUMNS + at), &name, ty)
        });
        Arc::new(TableDef {
            primary_key: Some(PrimaryKey {
                constraint_id: id,
                constraint_name: name.to_string(),
                columns: vec![ENTRY_KEY],
                include: Vec::new(),
            }),
            columns: columns.into_iter().map(column).chain(included).collect(),
            partitions: vec![PartitionDef { name: String::new(), tablets: vec![tablet] }],
            distribution: Distribution::Range,
            ..TableDef::new(id, namespace, name)
        })
    }

    /// A row of the hidden table.
    pub fn entry_row(entry: &Entry, tablet: TabletId, row: &Key) -> Vec<Datum> {
        let place = [
            Datum::Bytes(entry.bytes.as_slice().into()),
            Datum::I32(tablet.0 as i32),
            Datum::Bytes(row.as_bytes().into()),
        ];
        place.into_iter().chain(entry.included.iter().cloned()).collect()
    }

    /// The base row that a row of the hidden table leads to.
    pub fn base_of(values: &[Datum]) -> Option<(TabletId, Key)> {
        match values {
            [_, Datum::I32(tablet), Datum::Bytes(row), ..] => Some((TabletId(*tablet as u32), Key::from(&row[..]))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
