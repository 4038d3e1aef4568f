//! VACUUM, ANALYZE and CHECKPOINT. Freezing and compaction run by themselves; these ask for them now.

use super::resolve::{self, Relation, no_relation};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::TableColumns;
use basalt_types::ObjectId;

/// Freezes tables; with FULL compacts them too. No name means all tables.
pub(crate) async fn run(session: &mut Session, names: &[TableColumns], full: bool) -> Result<()> {
    session.refuse_in_block("VACUUM")?;
    let tables = tables(session, names, "vacuum")?;
    // What a snapshot of this session pins would be kept.
    session.rollback_block().await;
    session.ensure_block();
    let engine = session.db.engine().clone();
    let work = move || -> Result<()> {
        for table in tables {
            let done = engine.freeze_table(table).and_then(|()| match full {
                true => engine.compact_table(table),
                false => Ok(()),
            });
            match done {
                // Dropped meanwhile.
                Err(basalt_engine::Error::TableGone(_)) => {}
                other => other?,
            }
        }
        Ok(())
    };
    blocking(session, work).await
}

/// Statistics are kept as rows are written: there is nothing to gather, but names are checked.
pub(crate) fn analyze(session: &mut Session, names: &[TableColumns]) -> Result<()> {
    tables(session, names, "analyze").map(|_| ())
}

pub(crate) async fn checkpoint(session: &mut Session) -> Result<()> {
    session.require_superuser("must be superuser to do CHECKPOINT")?;
    let engine = session.db.engine().clone();
    blocking(session, move || Ok(engine.checkpoint()?)).await
}

async fn blocking(session: &Session, work: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    let task = session.db.runtime().handle().spawn_blocking(work);
    task.await.map_err(|error| SqlError::internal(error.to_string()))?
}

/// Whether the user owns a table or its database.
fn may_tend(session: &Session, owner: &str) -> bool {
    let owns = |owner: &str| resolve::require_owner(session, "table", "", owner).is_ok();
    owns(owner) || owns(&session.database.owner)
}

/// The tables that are meant and that the user may do this to; a warning for each other that was named.
fn tables(session: &mut Session, names: &[TableColumns], verb: &str) -> Result<Vec<ObjectId>> {
    let catalog = session.current_catalog();
    if names.is_empty() {
        let own = catalog.tables.values().filter(|table| {
            catalog.namespaces.get(&table.namespace).is_some_and(|namespace| namespace.database == session.database.id)
        });
        let allowed = own.filter(|table| may_tend(session, &table.owner));
        return Ok(allowed.map(|table| table.id).collect());
    }
    let mut tables = Vec::new();
    for TableColumns { name, columns } in names {
        match resolve::find(session, &catalog, name)? {
            Some(Relation::Table(table)) if may_tend(session, &table.owner) => {
                if let Some(column) = columns.iter().find(|column| table.column_named(column).is_none()) {
                    let message = format!("column \"{column}\" of relation \"{}\" does not exist", table.name);
                    return Err(SqlError::new("42703", message));
                }
                tables.push(table.id);
            }
            Some(Relation::Table(table)) => {
                let warning = format!("skipping \"{}\" --- only table or database owner can {verb} it", table.name);
                session.notice(SqlError::notice(crate::error::Severity::Warning, "01000", warning));
            }
            Some(_) => {
                let warning =
                    format!("skipping \"{}\" --- cannot {verb} non-tables or special system tables", name.name);
                session.notice(SqlError::notice(crate::error::Severity::Warning, "01000", warning));
            }
            None => return Err(no_relation("relation", name)),
        }
    }
    Ok(tables)
}
