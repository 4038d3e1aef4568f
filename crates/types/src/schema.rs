//! Tables and columns as storage needs them. SQL text (defaults, view bodies) is carried, not understood.

mod file_indexes;
mod foreign_key;
mod index;
mod materialized;

pub use file_indexes::{FileIndexes, rests_in_files};
pub use foreign_key::{ForeignKey, ReferentialAction};
pub use index::{
    ENTRY_KEY, ENTRY_ROW, ENTRY_TABLET, Entry, IndexColumn, IndexConstraint, IndexDef, IndexSource, IndexState,
    encode_present, encode_values, is_told_by_key, prefix_key,
};
pub use materialized::Materialized;

use crate::{ColumnId, DataType, Datum, Key, ObjectId, PhysType, Revision, TabletId, key};
use std::sync::Arc;

#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct ColumnDef {
    pub id: ColumnId,
    pub name: String,
    pub ty: DataType,
    pub not_null: bool,
    /// SQL text of `DEFAULT`, evaluated at INSERT.
    pub default: Option<String>,
    /// What rows and files written before this column existed read.
    pub missing: Datum,
    pub dropped: bool,
    /// `GENERATED … AS IDENTITY`: where values come from if INSERT gives none.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// SQL text of `GENERATED ALWAYS AS (…) STORED`, over the row's other columns.
    #[serde(default)]
    pub generated: Option<String>,
    /// Of a date or time type, or an array of one: what values are cut to as they are stored, as `atttypmod` has it.
    #[serde(default)]
    pub time_modifier: Option<i32>,
}

impl ColumnDef {
    /// A nullable column without a default.
    pub fn new(id: ColumnId, name: impl Into<String>, ty: DataType) -> ColumnDef {
        ColumnDef {
            id,
            name: name.into(),
            ty,
            not_null: false,
            default: None,
            missing: Datum::Null,
            dropped: false,
            identity: None,
            generated: None,
            time_modifier: None,
        }
    }

    /// `pg_attribute.atttypmod`: -1 without a modifier.
    pub fn typmod(&self) -> i32 {
        self.time_modifier.unwrap_or_else(|| self.ty.typmod())
    }
}

/// An identity column's source of values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct Identity {
    /// ALWAYS: INSERT gives a value only with OVERRIDING SYSTEM VALUE. Otherwise BY DEFAULT.
    pub always: bool,
    pub sequence: ObjectId,
}

/// A condition that every row satisfies, or leaves unknown.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct CheckDef {
    pub id: ObjectId,
    pub name: String,
    /// SQL text over the table's columns.
    pub sql: String,
    /// Whether rows that were there before it satisfy it too (`NOT VALID` leaves that open).
    pub validated: bool,
    pub no_inherit: bool,
}

/// What a temporary table's rows come to at the end of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub enum OnCommit {
    #[default]
    PreserveRows,
    DeleteRows,
    Drop,
}

/// How rows find their tablet inside a partition.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub enum Distribution {
    /// One tablet, or ranges of the key once it splits.
    Range,
    /// xxh3 of the encoded columns, modulo the number of tablets.
    Hash(Vec<ColumnId>),
}

/// How cold rows lie (`WITH (orientation = …)`). It rules new files; compaction converts the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Orientation {
    /// In segments: for tables that are scanned.
    Column,
    /// In row files: for tables whose rows are read and changed one by one.
    Row,
    /// In both, each row twice.
    RowAndColumn,
}

impl Orientation {
    /// `row`, `column`, or both with a comma, in any order; as names that may be quoted.
    pub fn named(text: &str) -> Option<Orientation> {
        let words: Vec<String> =
            text.split(',').map(|word| word.trim().trim_matches('"').to_ascii_lowercase()).collect();
        match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["column"] => Some(Orientation::Column),
            ["row"] => Some(Orientation::Row),
            ["row", "column"] | ["column", "row"] => Some(Orientation::RowAndColumn),
            _ => None,
        }
    }
}

/// A table starts as one unbounded partition.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct PartitionDef {
    pub name: String,
    pub tablets: Vec<TabletId>,
}

#[derive(Clone, PartialEq, Debug, serde::Serialize, serde::Deserialize)]
pub struct TableDef {
    pub id: ObjectId,
    pub namespace: ObjectId,
    pub name: String,
    pub owner: String,
    /// Every column ever defined, in id order; dropped ones stay.
    pub columns: Vec<ColumnDef>,
    /// Key columns in key order. Without one, rows are named by their hidden row id.
    pub primary_key: Option<PrimaryKey>,
    pub partitions: Vec<PartitionDef>,
    pub distribution: Distribution,
    /// `WITH (…)` options as given, canonical order.
    pub options: Vec<(String, String)>,
    pub comment: Option<String>,
    /// CHECK constraints in name order, which is the order in which they are evaluated.
    #[serde(default)]
    pub checks: Vec<CheckDef>,
    /// Of temporary tables, which live in a session's own schema.
    #[serde(default)]
    pub on_commit: OnCommit,
    /// Secondary indexes, in the order of their making.
    #[serde(default)]
    pub indexes: Vec<Arc<IndexDef>>,
    /// Foreign keys of which this is the referencing table.
    #[serde(default)]
    pub foreign_keys: Vec<Arc<ForeignKey>>,
    /// Of a materialized view.
    #[serde(default)]
    pub materialized: Option<Materialized>,
    #[serde(skip, default = "Revision::kept")]
    pub revision: Revision,
}

#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, serde::Deserialize)]
pub struct PrimaryKey {
    pub constraint_id: ObjectId,
    pub constraint_name: String,
    pub columns: Vec<ColumnId>,
    /// `INCLUDE`: said, and no more, since rows are found by this key with all their columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<ColumnId>,
}

impl TableDef {
    /// A table without columns, partitions or anything else.
    pub fn new(id: ObjectId, namespace: ObjectId, name: &str) -> TableDef {
        TableDef {
            id,
            namespace,
            name: name.to_string(),
            owner: String::new(),
            columns: Vec::new(),
            primary_key: None,
            partitions: Vec::new(),
            distribution: Distribution::Range,
            options: Vec::new(),
            comment: None,
            checks: Vec::new(),
            on_commit: OnCommit::PreserveRows,
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            materialized: None,
            revision: Revision::NEW,
        }
    }

    /// Its own id, and those of what is declared with it.
    pub fn object_ids(&self) -> impl Iterator<Item = ObjectId> {
        let key = self.primary_key.iter().map(|key| key.constraint_id);
        let parts = self.checks.iter().map(|check| check.id).chain(self.foreign_keys.iter().map(|key| key.id));
        let constraints = self.indexes.iter().filter_map(|index| index.constraint.map(|constraint| constraint.id));
        std::iter::once(self.id).chain(key).chain(parts).chain(constraints)
    }

    pub fn index(&self, id: ObjectId) -> Option<&Arc<IndexDef>> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// The indexes that may be read.
    pub fn valid_indexes(&self) -> impl Iterator<Item = &Arc<IndexDef>> {
        self.indexes.iter().filter(|index| index.is_valid())
    }

    /// Whether rows have entries in indexes, which go with them.
    pub fn has_entries(&self) -> bool {
        self.indexes.iter().any(|index| index.loses_entries())
    }

    /// The table as storage has it: itself, then its indexes' hidden tables.
    pub fn stored(self: &Arc<Self>) -> impl Iterator<Item = &Arc<TableDef>> {
        std::iter::once(self).chain(self.indexes.iter().map(|index| &index.entries))
    }

    /// Columns by which the table's rows are told apart, of the primary key or a unique index: whoever changes one
    /// needs the strongest row lock, because references are to them.
    pub fn is_key_column(&self, column: ColumnId) -> bool {
        self.primary_key.as_ref().is_some_and(|key| key.columns.contains(&column))
            || self
                .indexes
                .iter()
                .any(|index| index.is_key() && index.plain_columns().is_some_and(|columns| columns.contains(&column)))
    }

    pub fn live_columns(&self) -> impl Iterator<Item = &ColumnDef> {
        self.columns.iter().filter(|column| !column.dropped)
    }

    pub fn column(&self, id: ColumnId) -> &ColumnDef {
        &self.columns[id.position()]
    }

    pub fn column_named(&self, name: &str) -> Option<&ColumnDef> {
        self.live_columns().find(|column| column.name == name)
    }

    /// Physical types in column-id order: the layout of a row.
    pub fn phys_types(&self) -> Vec<PhysType> {
        self.each_phys_type().collect()
    }

    /// Of a column by its position: any that ever was a column of the table.
    #[inline]
    pub fn phys_type(&self, at: usize) -> PhysType {
        self.columns[at].ty.phys().expect("a column's type is storable")
    }

    /// The same of all columns, one by one.
    pub fn each_phys_type(&self) -> impl Iterator<Item = PhysType> + '_ {
        (0..self.columns.len()).map(|at| self.phys_type(at))
    }

    /// The primary key of a row given in column-id order; `None` for a table without one.
    pub fn key_of(&self, row: &[Datum]) -> Option<Key> {
        let primary_key = self.primary_key.as_ref()?;
        let mut out = Vec::with_capacity(16);
        for id in &primary_key.columns {
            key::encode_column(&self.column(*id).ty, &row[id.position()], &mut out);
        }
        Some(Key(out.into()))
    }

    pub fn tablets(&self) -> impl Iterator<Item = TabletId> + '_ {
        self.partitions.iter().flat_map(|partition| partition.tablets.iter().copied())
    }

    pub fn orientation(&self) -> Orientation {
        self.option("orientation").and_then(Orientation::named).unwrap_or(Orientation::Column)
    }

    /// Whether texts of new segments are compressed by zstd (`WITH (compression = 'zstd')`).
    pub fn is_compressed(&self) -> bool {
        self.option("compression").is_some_and(|method| method.eq_ignore_ascii_case("zstd"))
    }

    /// The columns that rows of columnar files are ordered by (`WITH (clustering_key = 'a,b')`); none: by their keys.
    pub fn clustering_key(&self) -> Vec<ColumnId> {
        let names = self.option("clustering_key").and_then(crate::names::names_of).unwrap_or_default();
        let mut columns: Vec<ColumnId> = Vec::new();
        for column in names.iter().filter_map(|name| self.column_named(name)) {
            if !columns.contains(&column.id) {
                columns.push(column.id);
            }
        }
        columns
    }

    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}
