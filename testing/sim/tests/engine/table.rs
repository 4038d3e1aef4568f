//! Tables that the tests use, their rows, and what a scan of them returns.

use arrow_array::{Array, ArrayRef, Int64Array};
use basalt_engine::{Engine, ReadContext, ScanSpec, catalog};
use basalt_sim::Rng;
use basalt_types::batch::{datum_at, to_stored};
use basalt_types::schema::{Distribution, OnCommit, PartitionDef, PrimaryKey};
use basalt_types::{
    ColumnBuilder, ColumnDef, ColumnId, ColumnPredicate, CompareOp, DataType, Datum, Key, ObjectId, Revision, Stamp,
    TableDef, TabletId,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Row = Vec<Datum>;

/// Shapes of tables: key, distribution, tablets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    Keyed,
    KeyedHash4,
    Keyless,
    KeylessHash4,
    /// Key (c2, c1), distributed by c2: the key alone does not name the tablet.
    TextKeyHash4,
}

pub const SHAPES: [Shape; 5] =
    [Shape::Keyed, Shape::KeyedHash4, Shape::Keyless, Shape::KeylessHash4, Shape::TextKeyHash4];

impl Shape {
    pub fn is_keyed(self) -> bool {
        !matches!(self, Shape::Keyless | Shape::KeylessHash4)
    }

    fn tablets(self) -> usize {
        if matches!(self, Shape::Keyed | Shape::Keyless) { 1 } else { 4 }
    }
}

pub fn column(position: usize, name: &str, ty: DataType, missing: Datum) -> ColumnDef {
    let id = ColumnId::from_position(position);
    ColumnDef { missing, ..ColumnDef::new(id, name, ty) }
}

pub fn fresh_tablets(engine: &Engine, count: usize) -> Vec<TabletId> {
    (0..count).map(|_| engine.next_tablet_id()).collect()
}

/// A new table: c1 int8 (unique, the key or a part of it), c2 text, c3 int4, c4 numeric(20,3), c5 bool.
pub fn define(engine: &Engine, shape: Shape, name: &str) -> Arc<TableDef> {
    let key = match shape {
        Shape::Keyed | Shape::KeyedHash4 => vec![ColumnId(1)],
        Shape::Keyless | Shape::KeylessHash4 => Vec::new(),
        Shape::TextKeyHash4 => vec![ColumnId(2), ColumnId(1)],
    };
    let distribution = match shape {
        Shape::Keyed | Shape::Keyless => Distribution::Range,
        Shape::KeyedHash4 => Distribution::Hash(vec![ColumnId(1)]),
        Shape::KeylessHash4 => Distribution::Hash(vec![ColumnId(3)]),
        Shape::TextKeyHash4 => Distribution::Hash(vec![ColumnId(2)]),
    };
    let types = [DataType::Int8, DataType::Text, DataType::Int4, DataType::Numeric(Some((20, 3))), DataType::Bool];
    let columns = types.into_iter().enumerate().map(|(i, ty)| column(i, &format!("c{}", i + 1), ty, Datum::Null));
    let constraint_id = engine.next_object_id();
    let partition = PartitionDef { name: name.into(), tablets: fresh_tablets(engine, shape.tablets()) };
    Arc::new(TableDef {
        id: engine.next_object_id(),
        namespace: catalog::PUBLIC,
        name: name.into(),
        owner: "basalt".into(),
        columns: columns.collect(),
        primary_key: (!key.is_empty()).then(|| PrimaryKey {
            constraint_id,
            constraint_name: format!("{name}_pkey"),
            columns: key,
            include: Vec::new(),
        }),
        partitions: vec![partition],
        distribution,
        options: Vec::new(),
        comment: None,
        checks: Vec::new(),
        on_commit: OnCommit::PreserveRows,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        materialized: None,
        revision: Revision::NEW,
    })
}

/// How many ways [`orient`] knows.
pub const ORIENTATIONS: u64 = 4;

/// Says by number how a table's files are to be: columns, rows, both, or columns in another order than that of keys.
pub fn orient(table: &mut TableDef, number: u64) {
    let options = [
        vec![("orientation", "column")],
        vec![("orientation", "row")],
        vec![("orientation", "row,column")],
        vec![("clustering_key", "c4,c2"), ("orientation", "column")],
    ];
    let chosen = &options[(number % ORIENTATIONS) as usize];
    table.options = chosen.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
}

/// The definition of an existing table with new tablets.
pub fn truncated(engine: &Engine, table: &TableDef) -> Arc<TableDef> {
    let mut next = table.clone();
    let count = next.partitions[0].tablets.len();
    next.partitions[0].tablets = fresh_tablets(engine, count);
    Arc::new(next)
}

/// A row whose c1 is `k`; the rest is random.
pub fn random_row(table: &TableDef, k: i64, rng: &mut Rng) -> Row {
    let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
    let value = |column: &ColumnDef| match (column.id.0, &column.ty) {
        _ if column.dropped => Datum::Null,
        (1, _) => Datum::I64(k),
        (2, _) if key.contains(&ColumnId(2)) => Datum::text(&format!("g\0{}", k % 7)),
        _ if rng.one_in(5) => Datum::Null,
        (_, DataType::Text) => random_text(rng),
        (_, DataType::Int4) => Datum::I32(rng.below(40) as i32 - 20),
        (_, DataType::Numeric(_)) => Datum::I128(i128::from(rng.next_u64() as i64) * 7),
        (_, DataType::Bool) => Datum::Bool(rng.one_in(2)),
        (_, other) => panic!("the tests have no values of type {other:?}"),
    };
    table.columns.iter().map(value).collect()
}

fn random_text(rng: &mut Rng) -> Datum {
    match rng.below(12) {
        0 => Datum::text(""),
        1 => Datum::text(&"long ".repeat(rng.below(800) as usize)),
        2..6 => Datum::text(&format!("v{}", rng.below(5))),
        _ => Datum::text(&format!("value {:x}", rng.next_u64() >> rng.below(60))),
    }
}

/// A row as its table reads it now: later columns filled in, dropped ones null.
pub fn as_read(table: &TableDef, row: &[Datum]) -> Row {
    let value = |(i, column): (usize, &ColumnDef)| match column.dropped {
        true => Datum::Null,
        false => row.get(i).unwrap_or(&column.missing).clone(),
    };
    table.columns.iter().enumerate().map(value).collect()
}

/// What names a row in a test: its key, or c1 where there is none.
pub fn name_of(table: &TableDef, row: &[Datum]) -> Vec<u8> {
    match (table.key_of(row), &row[0]) {
        (Some(key), _) => key.0.into_vec(),
        (None, Datum::I64(k)) => k.to_be_bytes().to_vec(),
        (None, other) => panic!("c1 is {other:?}"),
    }
}

/// Rows as the columns that a bulk insert takes.
pub fn stored_columns(table: &TableDef, rows: &[Row]) -> Vec<ArrayRef> {
    let build = |(i, ty): (usize, basalt_types::PhysType)| {
        let mut builder = ColumnBuilder::new(ty, rows.len());
        for row in rows {
            assert!(builder.push(&row[i]), "column {i} holds another type");
        }
        builder.finish()
    };
    table.phys_types().into_iter().enumerate().map(build).collect()
}

pub struct Found {
    pub tablet: TabletId,
    pub key: Key,
    pub stamp: Stamp,
    /// All columns; those that were not asked for are null.
    pub row: Row,
}

/// Everything a scan returns, in no order.
pub fn scan(read: &ReadContext, table: &Arc<TableDef>, predicates: &[ColumnPredicate]) -> Result<Vec<Found>, String> {
    use arrow_array::cast::AsArray;
    let columns: Vec<ColumnId> = table.live_columns().map(|column| column.id).collect();
    let spec = ScanSpec {
        table: table.clone(),
        columns: columns.clone(),
        predicates: predicates.to_vec(),
        with_identity: true,
    };
    let mut found = Vec::new();
    let (parts, _) = read.scan(spec).map_err(|error| format!("scan of {}: {error}", table.name))?;
    for mut part in parts {
        while let Some(batch) = part.next_batch().map_err(|error| format!("scan of {}: {error}", table.name))? {
            let identity = columns.len();
            let tablets: &Int64Array = batch.columns[identity].as_primitive();
            let keys = batch.columns[identity + 1].as_binary_view();
            let stamps: &Int64Array = batch.columns[identity + 2].as_primitive();
            let stored: Vec<ArrayRef> = (columns.iter().zip(&batch.columns))
                .map(|(id, array)| to_stored(&table.column(*id).ty, array))
                .collect();
            if batch.columns.iter().any(|column| column.len() != batch.rows) {
                return Err(format!("scan of {}: a column has not the batch's {} rows", table.name, batch.rows));
            }
            for index in 0..batch.rows {
                let mut row = vec![Datum::Null; table.columns.len()];
                for (id, array) in columns.iter().zip(&stored) {
                    let ty = table.column(*id).ty.phys().expect("storable");
                    row[id.position()] = datum_at(ty, array, index);
                }
                let tablet = TabletId(tablets.value(index) as u32);
                let stamp = Stamp::from_raw(stamps.value(index) as u64);
                found.push(Found { tablet, key: Key::from(keys.value(index)), stamp, row });
            }
        }
    }
    Ok(found)
}

/// A scan by name; an error if a name comes twice or a row is in the wrong place.
pub fn contents(
    read: &ReadContext,
    table: &Arc<TableDef>,
    predicates: &[ColumnPredicate],
) -> Result<BTreeMap<Vec<u8>, Row>, String> {
    let mut rows = BTreeMap::new();
    for found in scan(read, table, predicates)? {
        let name = name_of(table, &found.row);
        if let Some(key) = table.key_of(&found.row) {
            if key != found.key {
                return Err(format!("{}: row {key:?} is returned with key {:?}", table.name, found.key));
            }
            let tablet = read.engine().route_row(table, &found.row);
            if tablet != found.tablet {
                return Err(format!("{}: row {key:?} of {tablet} is returned by {}", table.name, found.tablet));
            }
        }
        if !table.tablets().any(|tablet| tablet == found.tablet) {
            return Err(format!("{}: a row came from tablet {}", table.name, found.tablet));
        }
        if let Some(other) = rows.insert(name, found.row.clone()) {
            return Err(format!("{}: a row came twice: {other:?} and {:?}", table.name, found.row));
        }
    }
    Ok(rows)
}

/// Says in few words how two contents differ.
pub fn difference(expected: &BTreeMap<Vec<u8>, Row>, got: &BTreeMap<Vec<u8>, Row>) -> Option<String> {
    let mut lines = Vec::new();
    for (name, row) in expected {
        match got.get(name) {
            None => lines.push(format!("missing {}", brief(row))),
            Some(other) if !same(row, other) => lines.push(format!("expected {}, got {}", brief(row), brief(other))),
            Some(_) => {}
        }
    }
    lines.extend(
        got.iter()
            .filter(|(name, _)| !expected.contains_key(*name))
            .map(|(_, row)| format!("unexpected {}", brief(row))),
    );
    if lines.is_empty() {
        return None;
    }
    let count = lines.len();
    lines.truncate(4);
    let (expected, got) = (expected.len(), got.len());
    Some(format!("{count} differences, {expected} rows expected, {got} got: {}", lines.join("; ")))
}

fn same(a: &[Datum], b: &[Datum]) -> bool {
    a == b
}

pub fn brief(row: &[Datum]) -> String {
    let value = |value: &Datum| match value {
        Datum::Bytes(bytes) => format!("{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(24)])),
        other => format!("{other:?}"),
    };
    format!("({})", row.iter().map(value).collect::<Vec<_>>().join(", "))
}

/// A condition over one live column.
pub fn random_predicate(table: &TableDef, rng: &mut Rng) -> ColumnPredicate {
    let live: Vec<&ColumnDef> = table.live_columns().collect();
    let column = *rng.pick(&live);
    let sample = |rng: &mut Rng| loop {
        let k = rng.below(400) as i64;
        let value = random_row(table, k, rng)[column.id.position()].clone();
        if !value.is_null() {
            return value;
        }
    };
    use CompareOp::*;
    match rng.below(8) {
        0 => ColumnPredicate::IsNull { column: column.id },
        1 => ColumnPredicate::IsNotNull { column: column.id },
        2 => ColumnPredicate::In { column: column.id, values: vec![sample(rng), sample(rng), sample(rng)] },
        _ => {
            let op = *rng.pick(&[Eq, NotEq, Lt, LtEq, Gt, GtEq]);
            ColumnPredicate::Compare { column: column.id, op, value: sample(rng) }
        }
    }
}

/// Whether a row fulfils a condition, as SQL has it: nulls compare to nothing.
pub fn fulfils(table: &TableDef, row: &[Datum], predicate: &ColumnPredicate) -> bool {
    use std::cmp::Ordering::*;
    let column = table.column(predicate.column());
    let value = &row[column.id.position()];
    let compare = |other: &Datum| {
        let key = |datum: &Datum| {
            let mut out = Vec::new();
            basalt_types::key::encode_column(&column.ty, datum, &mut out);
            out
        };
        (!value.is_null()).then(|| key(value).cmp(&key(other)))
    };
    match predicate {
        ColumnPredicate::IsNull { .. } => value.is_null(),
        ColumnPredicate::IsNotNull { .. } => !value.is_null(),
        ColumnPredicate::In { values, .. } => values.iter().any(|other| compare(other) == Some(Equal)),
        ColumnPredicate::Among { values, .. } => match value {
            Datum::I16(value) => values.contains(&i64::from(*value)),
            Datum::I32(value) => values.contains(&i64::from(*value)),
            Datum::I64(value) => values.contains(value),
            _ => false,
        },
        ColumnPredicate::Compare { op, value: other, .. } => match (op, compare(other)) {
            (_, None) => false,
            (CompareOp::Eq, Some(order)) => order == Equal,
            (CompareOp::NotEq, Some(order)) => order != Equal,
            (CompareOp::Lt, Some(order)) => order == Less,
            (CompareOp::LtEq, Some(order)) => order != Greater,
            (CompareOp::Gt, Some(order)) => order == Greater,
            (CompareOp::GtEq, Some(order)) => order != Less,
        },
    }
}

/// Where a row is: by key, or by looking for its c1.
pub fn locate(read: &ReadContext, table: &Arc<TableDef>, row: &[Datum]) -> Result<(TabletId, Key), String> {
    if let Some(key) = table.key_of(row) {
        let routed = read.engine().route_row(table, row);
        match read.tablet_of(table, &key) {
            Some(tablet) if tablet != routed => {
                return Err(format!("{}: key {key:?} is of {tablet}, its row of {routed}", table.name));
            }
            _ => return Ok((routed, key)),
        }
    }
    let predicate = ColumnPredicate::Compare { column: ColumnId(1), op: CompareOp::Eq, value: row[0].clone() };
    let mut found = scan(read, table, &[predicate])?;
    found.retain(|found| found.row[0] == row[0]);
    match found.len() {
        1 => Ok((found[0].tablet, found[0].key.clone())),
        count => Err(format!("{}: {count} rows have c1 = {:?}", table.name, row[0])),
    }
}

pub fn by_id(catalog: &basalt_engine::Catalog, id: ObjectId) -> Option<Arc<TableDef>> {
    catalog.table(id).cloned()
}
