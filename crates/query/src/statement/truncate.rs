//! TRUNCATE: the table gets new, empty tablets; the old ones go when nobody reads them any more.

use super::{resolve, sequence};
use crate::error::Result;
use crate::session::Session;
use crate::syntax::Name;
use basalt_engine::{CatalogEdit, TableLock};
use basalt_types::TableDef;
use std::sync::Arc;

pub(crate) async fn run(session: &mut Session, names: &[Name], restart: bool) -> Result<()> {
    let mut edits = Vec::new();
    let mut seen = Vec::new();
    for name in names {
        let table = resolve::lock_table(session, name, TableLock::AccessExclusive, false).await?;
        if seen.contains(&table.id) {
            continue;
        }
        seen.push(table.id);
        edits.push(CatalogEdit::PutTable(Arc::new(emptied(session, &table))));
        if restart {
            let catalog = session.txn()?.catalog();
            for sequence in catalog.sequences_of(table.id) {
                edits.push(CatalogEdit::PutSequence(sequence::restarted(session, sequence)));
            }
        }
    }
    Ok(session.txn()?.edit_catalog(edits)?)
}

/// The same table with new tablets.
pub(crate) fn emptied(session: &Session, table: &TableDef) -> TableDef {
    let mut table = table.clone();
    for tablet in table.partitions.iter_mut().flat_map(|partition| &mut partition.tablets) {
        *tablet = session.db.engine().next_tablet_id();
    }
    table
}
