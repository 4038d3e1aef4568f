//! Indexes that rest in a table's columnar files: `USING bitmap` and `USING bloom`. Writers of rows know nothing of them;
//! whoever writes a file writes them beside its columns, and files of before are rewritten
//! (`docs/decisions/0026-indexes-in-files.md`).

use crate::error::{Result, Severity, SqlError};
use crate::session::Session;
use crate::session::interrupt::{Deadline, guard};
use crate::syntax::{CreateIndex, ElementOf};
use basalt_engine::CatalogEdit;
use basalt_exec::Stop;
use basalt_types::schema::IndexDef;
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

/// 0A000 for what such an index cannot have.
pub(super) fn check(create: &CreateIndex) -> Result<()> {
    let any = |is: fn(&crate::syntax::IndexElement) -> bool| create.elements.iter().any(is);
    let cannot = [
        (create.unique, "unique indexes"),
        (!create.include.is_empty(), "included columns"),
        (any(|element| element.descending), "ASC/DESC options"),
        (any(|element| element.nulls_first.is_some()), "NULLS FIRST/LAST options"),
        (any(|element| matches!(element.of, ElementOf::Expression(_))), "expressions"),
        (create.predicate.is_some(), "partial indexes"),
    ];
    if let Some((_, what)) = cannot.into_iter().find(|(is_asked, _)| *is_asked) {
        let error = SqlError::not_supported(format!("access method \"{}\" does not support {what}", create.method));
        return Err(match what {
            "expressions" => error.with_hint("A stored generated column can be indexed."),
            _ => error,
        });
    }
    match create.options.first() {
        Some((name, _)) => Err(SqlError::new("22023", format!("unrecognized parameter \"{name}\""))),
        None => Ok(()),
    }
}

/// Enters the index. Files of before get it once the transaction has committed: before its message is answered, if it is
/// no transaction block ([`renew`]), otherwise in the background.
pub(super) fn create(session: &mut Session, table: &TableDef, index: &Arc<IndexDef>) -> Result<()> {
    session.txn()?.edit_catalog(vec![CatalogEdit::PutIndex { table: table.id, index: index.clone() }])?;
    session.block.renewed.push((table.id, session.deadline));
    Ok(())
}

/// Rewrites the files of tables that have got such an index. What hinders or ends it is a warning: the index is there, and
/// the background goes on.
pub(crate) async fn renew(session: &mut Session, tables: Vec<(ObjectId, Deadline)>) {
    if tables.is_empty() {
        return;
    }
    // The statement that asked for it has ended, but whoever sent it waits, and may cancel.
    session.interrupt.start();
    let state = std::mem::replace(&mut session.info.lock().state, "active");
    for (table, deadline) in tables {
        let (engine, stop) = (session.db.engine().clone(), Stop::default());
        let goes_on = stop.clone();
        let work = move || match engine.renew_files(table, &|| !goes_on.is_set()) {
            // Dropped meanwhile.
            Err(basalt_engine::Error::TableGone(_)) => Ok(true),
            renewed => Ok(renewed?),
        };
        let running = session.db.runtime().spawn_blocking(stop, work);
        let interrupt = session.interrupt.clone();
        let why = match guard(&interrupt, deadline, running.wait()).await {
            Ok(true) => continue,
            Ok(false) => "many rows of some are being changed".to_string(),
            Err(error) => error.message,
        };
        let warning = format!("not all files have the new index yet: {why}");
        let warning = SqlError::notice(Severity::Warning, "01000", warning);
        session.notice(warning.with_hint("They get it in the background, or by VACUUM (FULL)."));
    }
    session.interrupt.stop();
    session.info.lock().state = state;
}

#[cfg(test)]
mod tests {
    use basalt_engine::has_file_index;
    use basalt_types::DataType;

    #[test]
    fn types_with_an_order_can_be_indexed() {
        for (ty, bitmap, bloom) in [
            (DataType::Int4, true, true),
            (DataType::Float8, true, false),
            (DataType::Bool, true, false),
            (DataType::Text, true, true),
            (DataType::Jsonb, false, false),
            (DataType::Interval, false, false),
        ] {
            assert_eq!(has_file_index(&ty, "bitmap"), bitmap, "{ty:?}");
            assert_eq!(has_file_index(&ty, "bloom"), bloom, "{ty:?}");
        }
    }
}
