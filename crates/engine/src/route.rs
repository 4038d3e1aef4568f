//! Which tablet a row belongs to.

use basalt_types::schema::Distribution;
use basalt_types::{ColumnId, Datum, TableDef, TabletId, key};

/// By the row's distribution columns; a table with one tablet has no choice. Rows with a null in a
/// distribution column go to the first tablet.
pub fn tablet_of_row(table: &TableDef, values: &[Datum]) -> TabletId {
    let tablets = &table.partitions[0].tablets;
    let columns = match &table.distribution {
        Distribution::Hash(columns) if tablets.len() > 1 => columns,
        _ => return tablets[0],
    };
    let mut bytes = Vec::with_capacity(16);
    for id in columns {
        match &values[id.position()] {
            Datum::Null => return tablets[0],
            value => key::encode_column(&table.column(*id).ty, value, &mut bytes),
        }
    }
    tablets[slot(&bytes, tablets.len())]
}

/// By the primary key alone: possible if the distribution columns are exactly the key's, in order.
pub fn tablet_of_key(table: &TableDef, key: &[u8]) -> Option<TabletId> {
    let tablets = &table.partitions[0].tablets;
    if tablets.len() == 1 {
        return Some(tablets[0]);
    }
    let by_key = table.primary_key.as_ref().is_some_and(|primary| is_hash_of(table, &primary.columns));
    by_key.then(|| tablets[slot(key, tablets.len())])
}

fn is_hash_of(table: &TableDef, columns: &[ColumnId]) -> bool {
    matches!(&table.distribution, Distribution::Hash(hashed) if hashed == columns)
}

fn slot(bytes: &[u8], tablets: usize) -> usize {
    (xxhash_rust::xxh3::xxh3_64(bytes) % tablets as u64) as usize
}
