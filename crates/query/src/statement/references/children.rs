//! Rows that refer to given keys: by an index on the referencing columns (or a primary key that begins with them), or by
//! one scan of the table for all keys together.

use super::{Change, Enforcer};
use crate::error::Result;
use basalt_engine::{ReadContext, ScanBatch, ScanSpec, Txn};
use basalt_types::batch::{datum_at, to_stored};
use basalt_types::schema::{ForeignKey, IndexDef, encode_values};
use basalt_types::{ColumnId, Datum, Key, TableDef, TabletId, key};
use std::collections::HashMap;
use std::sync::Arc;

/// More keys than one in so many rows are looked for by a scan.
const ROWS_PER_KEY_MIN: u64 = 8;

/// A row that refers to one of the keys, by position.
pub(crate) struct Child {
    pub tablet: TabletId,
    pub key: Key,
    pub of: usize,
}

/// The keys that are looked for, in the child's types.
pub(crate) struct Keys {
    table: Arc<TableDef>,
    by_bytes: HashMap<Vec<u8>, usize>,
}

pub(crate) struct Children {
    /// As they were; whoever acts on one locks it and looks again.
    pub rows: Vec<Child>,
    pub keys: Keys,
}

/// Key bytes of values in columns of a table; a null is unlike everything.
pub(super) fn encode(table: &TableDef, columns: &[ColumnId], values: &[Datum]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16);
    for (column, value) in columns.iter().zip(values) {
        out.push(u8::from(!value.is_null()));
        if !value.is_null() {
            key::encode_column(&table.column(*column).ty, value, &mut out);
        }
    }
    out
}

/// The rows of a batch of these columns.
pub(super) fn values_of<'a>(
    table: &TableDef,
    columns: &[ColumnId],
    batch: &'a ScanBatch,
) -> impl Iterator<Item = Vec<Datum>> + 'a {
    let stored: Vec<_> = (columns.iter().zip(&batch.columns))
        .map(|(id, array)| {
            let ty = &table.column(*id).ty;
            (ty.phys().expect("a column's type is storable"), to_stored(ty, array))
        })
        .collect();
    (0..batch.rows).map(move |row| stored.iter().map(|(phys, array)| datum_at(*phys, array, row)).collect())
}

impl Keys {
    /// Which key a row of the child refers to.
    pub fn position(&self, key: &ForeignKey, row: &[Datum]) -> Option<usize> {
        let values: Vec<Datum> = key.columns.iter().map(|id| row[id.position()].clone()).collect();
        self.by_bytes.get(&encode(&self.table, &key.columns, &values)).copied()
    }
}

/// How referencing values are found without a scan.
enum Way<'a> {
    Index(&'a IndexDef),
    PrimaryKey,
}

fn way<'a>(read: &ReadContext, table: &'a TableDef, key: &ForeignKey) -> Result<Option<Way<'a>>> {
    let begins = |columns: &[ColumnId]| {
        columns.len() >= key.columns.len()
            && columns[..key.columns.len()].iter().all(|column| key.columns.contains(column))
    };
    let index = table
        .valid_indexes()
        .find(|index| index.predicate.is_none() && index.plain_columns().is_some_and(|columns| begins(&columns)));
    Ok(match index {
        Some(index) => Some(Way::Index(index)),
        // Files in another order would be looked through as a whole for each key.
        None if table.primary_key.as_ref().is_some_and(|primary| begins(&primary.columns)) => {
            read.is_in_key_order(table)?.then_some(Way::PrimaryKey)
        }
        None => None,
    })
}

/// Rows with these values in the referencing columns.
fn look_up(
    read: &ReadContext,
    table: &Arc<TableDef>,
    key: &ForeignKey,
    way: &Way<'_>,
    values: &[Datum],
) -> Result<Vec<(TabletId, Key)>> {
    let value_of = |id: &ColumnId| {
        let at = key.columns.iter().position(|column| column == id).unwrap_or(0);
        values[at].clone()
    };
    match way {
        Way::Index(index) => {
            let columns = index.plain_columns().unwrap_or_default();
            let first: Vec<Datum> = columns[..key.columns.len()].iter().map(value_of).collect();
            Ok(read.rows_by_entry(index, &encode_values(&index.columns, &first))?)
        }
        Way::PrimaryKey => {
            let columns = table.primary_key.as_ref().map(|primary| &primary.columns[..key.columns.len()]);
            let mut prefix = Vec::new();
            for id in columns.into_iter().flatten() {
                match value_of(id) {
                    Datum::Null => return Ok(Vec::new()),
                    value => key::encode_column(&table.column(*id).ty, &value, &mut prefix),
                }
            }
            Ok(read.rows_by_key_prefix(table, &prefix)?)
        }
    }
}

impl Children {
    /// Rows that refer to the old keys of `changes`. Keys that the child's types cannot hold have none.
    pub async fn find(
        txn: &mut Txn,
        enforcer: &Enforcer,
        table: &Arc<TableDef>,
        key: &ForeignKey,
        changes: &[Change],
    ) -> Result<Children> {
        let mut keys = Keys { table: table.clone(), by_bytes: HashMap::new() };
        let mut wanted = Vec::new();
        for (at, change) in changes.iter().enumerate() {
            let Some(values) = super::actions::as_child(enforcer, table, key, &change.old) else { continue };
            let bytes = encode(table, &key.columns, &values);
            if let std::collections::hash_map::Entry::Vacant(entry) = keys.by_bytes.entry(bytes) {
                entry.insert(at);
                wanted.push((at, values));
            }
        }
        if wanted.is_empty() {
            return Ok(Children { rows: Vec::new(), keys });
        }
        let read = txn.latest();
        let few = wanted.len() as u64 <= 1 + txn.engine().estimated_rows(table) / ROWS_PER_KEY_MIN;
        let mut rows = Vec::new();
        match way(&read, table, key)?.filter(|_| few) {
            Some(way) => {
                for (of, values) in wanted {
                    let found = look_up(&read, table, key, &way, &values)?;
                    rows.extend(found.into_iter().map(|(tablet, key)| Child { tablet, key, of }));
                }
            }
            None => rows = scan(&read, table, key, &keys).await?,
        }
        rows.sort_by_key(|child| child.of);
        Ok(Children { rows, keys })
    }

    /// Whether any row has these values in the referencing columns now, nulls like nulls.
    pub fn any_with(txn: &mut Txn, table: &Arc<TableDef>, key: &ForeignKey, values: &[Datum]) -> Result<bool> {
        let read = txn.latest();
        if let Some(way) = way(&read, table, key)?
            && !values.iter().any(Datum::is_null)
        {
            return Ok(!look_up(&read, table, key, &way, values)?.is_empty());
        }
        let wanted = encode(table, &key.columns, values);
        let spec = ScanSpec {
            table: table.clone(),
            columns: key.columns.clone(),
            predicates: Vec::new(),
            with_identity: false,
        };
        for mut part in read.scan(spec)?.0 {
            while let Some(batch) = part.next_batch()? {
                if values_of(table, &key.columns, &batch).any(|row| encode(table, &key.columns, &row) == wanted) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

async fn scan(read: &ReadContext, table: &Arc<TableDef>, key: &ForeignKey, keys: &Keys) -> Result<Vec<Child>> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    let mut rows = Vec::new();
    let columns = key.columns.clone();
    let width = columns.len();
    let spec = ScanSpec { table: table.clone(), columns, predicates: Vec::new(), with_identity: true };
    for mut part in read.scan(spec)?.0 {
        while let Some(batch) = part.next_batch()? {
            let (tablets, row_keys) =
                (batch.columns[width].as_primitive::<Int64Type>(), batch.columns[width + 1].as_binary_view());
            for (at, values) in values_of(table, &key.columns, &batch).enumerate() {
                if let Some(of) = keys.by_bytes.get(&encode(table, &key.columns, &values)) {
                    let tablet = TabletId(tablets.value(at) as u32);
                    rows.push(Child { tablet, key: Key::from(row_keys.value(at)), of: *of });
                }
            }
            tokio::task::yield_now().await;
        }
    }
    Ok(rows)
}
