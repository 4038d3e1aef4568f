//! TRUNCATE: the table gets new, empty tablets; the old ones go when nobody reads them any more.

use super::{cursor, index, resolve, sequence};
use crate::error::{Result, Severity, SqlError};
use crate::session::Session;
use crate::syntax::Name;
use basalt_engine::{CatalogEdit, TableLock, privilege};
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

pub(crate) async fn run(session: &mut Session, names: &[Name], restart: bool, cascade: bool) -> Result<()> {
    let mut tables: Vec<ObjectId> = Vec::new();
    for name in names {
        // Nobody waits for a table that he may not empty.
        let catalog = session.txn()?.catalog();
        if let Some(resolve::Relation::Table(table)) = resolve::find(session, &catalog, name)?
            && table.materialized.is_none()
        {
            session.require_on(table.id, privilege::TRUNCATE, &[])?;
        }
        let table = resolve::lock_table(session, name, TableLock::AccessExclusive, false).await?;
        if table.materialized.is_some() {
            return Err(SqlError::new("42809", format!("\"{}\" is not a table", table.name)));
        }
        session.require_on(table.id, privilege::TRUNCATE, &[])?;
        refuse_in_use(session, &table).await?;
        if !tables.contains(&table.id) {
            tables.push(table.id);
        }
    }
    if cascade {
        add_referencing(session, &mut tables).await?;
    }
    let catalog = session.txn()?.catalog();
    let mut edits = Vec::new();
    for id in &tables {
        let Some(table) = catalog.table(*id) else { continue };
        if let Some((child, _)) = catalog.references_to(*id).find(|(child, _)| !tables.contains(&child.id)) {
            let message = "cannot truncate a table referenced in a foreign key constraint";
            return Err(SqlError::not_supported(message)
                .with_detail(format!("Table \"{}\" references \"{}\".", child.name, table.name))
                .with_hint(format!(
                    "Truncate table \"{}\" at the same time, or use TRUNCATE ... CASCADE.",
                    child.name
                )));
        }
        edits.push(CatalogEdit::PutTable(Arc::new(emptied(session, table))));
        if restart {
            for sequence in catalog.sequences_of(*id) {
                edits.push(CatalogEdit::PutSequence(sequence::restarted(session, sequence)));
            }
        }
    }
    Ok(session.txn()?.edit_catalog(edits)?)
}

/// 55006 for a table that a cursor reads, or whose rows are to be checked yet.
async fn refuse_in_use(session: &mut Session, table: &TableDef) -> Result<()> {
    cursor::refuse_in_use(session, table, "TRUNCATE")?;
    session.refuse_pending(table, "TRUNCATE").await
}

/// Tables whose rows refer to rows of those named, and so on.
async fn add_referencing(session: &mut Session, tables: &mut Vec<ObjectId>) -> Result<()> {
    let mut at = 0;
    while at < tables.len() {
        let catalog = session.txn()?.catalog();
        let children: Vec<Arc<TableDef>> = catalog.references_to(tables[at]).map(|(child, _)| child.clone()).collect();
        for child in children {
            if tables.contains(&child.id) {
                continue;
            }
            session.require_on(child.id, privilege::TRUNCATE, &[])?;
            session.lock_table(child.id, TableLock::AccessExclusive, false).await?;
            // Whoever was waited for may have taken the constraint or the table away, or given it to somebody else.
            let catalog = session.txn()?.catalog();
            if !catalog.references_to(tables[at]).any(|(now, _)| now.id == child.id) {
                continue;
            }
            session.require_on(child.id, privilege::TRUNCATE, &[])?;
            let notice = format!("truncate cascades to table \"{}\"", child.name);
            session.notice(SqlError::notice(Severity::Notice, "00000", notice));
            refuse_in_use(session, &child).await?;
            tables.push(child.id);
        }
        at += 1;
    }
    Ok(())
}

/// The same table with new tablets, and its indexes with theirs.
pub(crate) fn emptied(session: &Session, table: &TableDef) -> TableDef {
    let mut table = table.clone();
    for tablet in table.partitions.iter_mut().flat_map(|partition| &mut partition.tablets) {
        *tablet = session.db.engine().next_tablet_id();
    }
    empty_indexes(session, &mut table);
    table
}

/// Rows will be written anew: so are entries.
pub(crate) fn empty_indexes(session: &Session, table: &mut TableDef) {
    let indexes = table.indexes.iter().map(|index| index::emptied(session, table, index));
    table.indexes = indexes.collect();
}
