//! What the examples share: a keyed table of one tablet, made by a transaction of its own.

use basalt_engine::*;
use basalt_types::schema::{Distribution, OnCommit, PartitionDef, PrimaryKey};
use basalt_types::*;
use std::sync::Arc;

pub fn begin(engine: &Arc<Engine>, synchronous_commit: bool) -> Txn {
    engine.begin(TxnOptions {
        isolation: Isolation::ReadCommitted,
        synchronous_commit,
        session_version: Version::ZERO,
        session: 0,
    })
}

/// Columns `c0`, `c1`, … of these types; the first is the primary key.
pub async fn create(engine: &Arc<Engine>, name: &str, types: &[DataType]) -> Arc<TableDef> {
    let column = |(i, ty): (usize, &DataType)| ColumnDef::new(ColumnId::from_position(i), format!("c{i}"), ty.clone());
    let table = Arc::new(TableDef {
        id: engine.next_object_id(),
        namespace: catalog::PUBLIC,
        name: name.into(),
        owner: "basalt".into(),
        columns: types.iter().enumerate().map(column).collect(),
        primary_key: Some(PrimaryKey {
            constraint_id: engine.next_object_id(),
            constraint_name: format!("{name}_pkey"),
            columns: vec![ColumnId(1)],
            include: Vec::new(),
        }),
        partitions: vec![PartitionDef { name: name.into(), tablets: vec![engine.next_tablet_id()] }],
        distribution: Distribution::Range,
        options: Vec::new(),
        comment: None,
        checks: Vec::new(),
        on_commit: OnCommit::PreserveRows,
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        materialized: None,
        revision: Revision::NEW,
    });
    let mut txn = begin(engine, true);
    txn.edit_catalog(vec![CatalogEdit::PutTable(table.clone())]).expect("create");
    txn.commit().await.expect("create");
    table
}
