//! The tables of `basalt_bench::tpcc::tables` as the engine declares them, in one of two layouts.

use anyhow::{Context as _, Result, bail};
use basalt_bench::tpcc::tables::{INDEXES, TABLES};
use basalt_engine::{CatalogEdit, Engine, Isolation, Txn, TxnOptions, catalog};
use basalt_types::schema::{IndexColumn, IndexDef, IndexSource, IndexState, PartitionDef, PrimaryKey};
use basalt_types::{ColumnDef, ColumnId, DataType, Datum, TableDef, Version, key};
use std::collections::HashMap;
use std::sync::Arc;

/// Where rows lie, and what an update does to them.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// As the product has it: rows lie by their primary key and are updated in place.
    InPlace,
    /// Rows lie by row ids, to which the primary key is an index like any other; they are updated in place.
    InPlaceByRowId,
    /// The same layout; every update deletes the row and inserts it under a new row id, to which the entries of all
    /// indexes lead from then on.
    OutOfPlace,
}

/// A table of the benchmark.
pub struct Table {
    pub def: Arc<TableDef>,
    /// The columns of its primary key, whatever that is to the engine; none for `history`.
    pub key: Vec<ColumnId>,
    /// The index that stands for the primary key.
    pub key_index: Option<Arc<IndexDef>>,
}

impl Table {
    /// A column by its name.
    pub fn column(&self, name: &str) -> ColumnId {
        self.def.column_named(name).unwrap_or_else(|| panic!("{} has no column {name}", self.def.name)).id
    }

    pub fn columns<const N: usize>(&self, names: [&str; N]) -> [ColumnId; N] {
        names.map(|name| self.column(name))
    }

    /// Key bytes of the first columns of the primary key.
    pub fn key_bytes(&self, values: &[i32]) -> Vec<u8> {
        let mut out = Vec::with_capacity(24);
        for (column, value) in self.key.iter().zip(values) {
            key::encode_column(&self.def.column(*column).ty, &Datum::I32(*value), &mut out);
        }
        out
    }

    pub fn index(&self, name: &str) -> &Arc<IndexDef> {
        let named = self.def.indexes.iter().find(|index| index.name == name);
        named.unwrap_or_else(|| panic!("{} has no index {name}", self.def.name))
    }
}

/// A transaction as sessions begin them.
pub fn begin(engine: &Arc<Engine>, synchronous_commit: bool, session_version: Version) -> Txn {
    engine.begin(TxnOptions { isolation: Isolation::ReadCommitted, synchronous_commit, session_version, session: 0 })
}

/// Makes all tables.
pub async fn create(engine: &Arc<Engine>, mode: Mode) -> Result<HashMap<&'static str, Arc<Table>>> {
    let mut tables = HashMap::new();
    let mut txn = begin(engine, true, Version::ZERO);
    for (name, columns) in TABLES {
        let table = declare(engine, mode, name, columns)?;
        txn.edit_catalog(vec![CatalogEdit::PutTable(table.def.clone())])?;
        tables.insert(*name, Arc::new(table));
    }
    txn.commit().await?;
    Ok(tables)
}

fn declare(engine: &Engine, mode: Mode, name: &'static str, columns: &str) -> Result<Table> {
    let (columns, key_names) = parse(columns)?;
    let id_of = |wanted: &str| {
        let at = columns.iter().position(|column| column.name == wanted);
        at.map(ColumnId::from_position).with_context(|| format!("{name} has no column {wanted}"))
    };
    let key = key_names.iter().map(|column| id_of(column)).collect::<Result<Vec<_>>>()?;
    let is_key = mode == Mode::InPlace && !key.is_empty();
    let constraint_name = format!("{name}_pkey");
    let mut def = TableDef {
        primary_key: is_key.then(|| PrimaryKey {
            constraint_id: engine.next_object_id(),
            constraint_name: constraint_name.clone(),
            columns: key.clone(),
            include: Vec::new(),
        }),
        partitions: vec![PartitionDef { name: name.to_string(), tablets: vec![engine.next_tablet_id()] }],
        columns,
        ..TableDef::new(engine.next_object_id(), catalog::PUBLIC, name)
    };
    let key_index = (!is_key && !key.is_empty()).then(|| index_of(engine, &def, &constraint_name, &key, true));
    def.indexes.extend(key_index.clone());
    for (index, on) in INDEXES {
        let (table, columns) = on.split_once(" (").context("an index is on columns")?;
        if table == name {
            let columns = columns.trim_end_matches(')').split(", ");
            let columns = columns.map(|name| def.column_named(name).map(|column| column.id).context("no such column"));
            let columns = columns.collect::<Result<Vec<_>>>()?;
            def.indexes.push(index_of(engine, &def, index, &columns, false));
        }
    }
    Ok(Table { def: Arc::new(def), key, key_index })
}

fn index_of(engine: &Engine, table: &TableDef, name: &str, columns: &[ColumnId], unique: bool) -> Arc<IndexDef> {
    let (id, tablet) = (engine.next_object_id(), engine.next_tablet_id());
    let column = |column: &ColumnId| IndexColumn {
        source: IndexSource::Column(*column),
        name: table.column(*column).name.clone(),
        ty: table.column(*column).ty.clone(),
        descending: false,
        nulls_first: false,
        opclass: None,
        collation: None,
    };
    Arc::new(IndexDef {
        id,
        name: name.to_string(),
        method: "btree".to_string(),
        columns: columns.iter().map(column).collect(),
        include: Vec::new(),
        unique,
        nulls_not_distinct: false,
        predicate: None,
        options: Vec::new(),
        constraint: None,
        state: IndexState::Valid,
        entries: IndexDef::entries_table(id, catalog::PUBLIC, name, tablet, Vec::new()),
    })
}

/// Columns and the names of the primary key's, of what CREATE TABLE says of them.
fn parse(columns: &str) -> Result<(Vec<ColumnDef>, Vec<String>)> {
    let (mut found, mut key) = (Vec::new(), Vec::new());
    let mut rest = columns;
    while !rest.is_empty() {
        let mut depth = 0;
        let end = rest.find(|letter: char| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0 && letter == ','
        });
        let part = rest[..end.unwrap_or(rest.len())].trim();
        rest = end.map_or("", |end| &rest[end + 1..]);
        if let Some(names) = part.strip_prefix("PRIMARY KEY (") {
            key.extend(names.trim_end_matches(')').split(", ").map(str::to_string));
            continue;
        }
        let (name, ty) = part.split_once(' ').with_context(|| format!("no type in {part:?}"))?;
        let ty = match ty.strip_suffix(" PRIMARY KEY") {
            Some(ty) => {
                key.push(name.to_string());
                ty
            }
            None => ty,
        };
        found.push(ColumnDef::new(ColumnId::from_position(found.len()), name, type_named(ty)?));
    }
    Ok((found, key))
}

fn type_named(text: &str) -> Result<DataType> {
    let (name, modifier) = text.split_once('(').unwrap_or((text, ""));
    let numbers = modifier.trim_end_matches(')').split(',').filter(|number| !number.is_empty());
    let numbers = numbers.map(|number| number.parse::<u32>()).collect::<Result<Vec<_>, _>>()?;
    Ok(match (name, &numbers[..]) {
        ("int", []) => DataType::Int4,
        ("timestamp", []) => DataType::Timestamp,
        ("varchar", [length]) => DataType::Varchar(Some(*length)),
        ("char", [length]) => DataType::Bpchar(Some(*length)),
        ("numeric", [precision, scale]) => DataType::Numeric(Some((*precision as _, *scale as _))),
        _ => bail!("no type is known by {text:?}"),
    })
}
