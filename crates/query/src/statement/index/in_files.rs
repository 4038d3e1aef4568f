//! Indexes that rest in a table's columnar files: `USING bitmap` and `USING bloom`. Writers of rows know nothing of them;
//! whoever writes a file writes them beside its columns, and files of before are rewritten
//! (`docs/decisions/0026-indexes-in-files.md`).

use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{CreateIndex, ElementOf};
use basalt_engine::CatalogEdit;
use basalt_types::schema::IndexDef;
use basalt_types::{DataType, TableDef};
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

/// Whether files can have such an index over values of a type.
pub(super) fn is_indexable(ty: &DataType, method: &str) -> bool {
    basalt_engine::has_file_index(ty, method)
}

/// Enters the index. Outside of a transaction block, or CONCURRENTLY, all columnar files have it on return; otherwise they
/// get it in the background once the transaction has committed.
pub(super) async fn create(session: &mut Session, table: &Arc<TableDef>, index: &Arc<IndexDef>) -> Result<()> {
    let alone = session.refuse_in_block("CREATE INDEX").is_ok();
    session.txn()?.edit_catalog(vec![CatalogEdit::PutIndex { table: table.id, index: index.clone() }])?;
    if !alone {
        return Ok(());
    }
    session.commit_alone().await?;
    session.next_statement()?;
    let (engine, table) = (session.db.engine().clone(), table.id);
    let renewed = session.db.runtime().handle().spawn_blocking(move || engine.renew_files(table)).await;
    match renewed.map_err(|error| SqlError::internal(error.to_string()))? {
        // Dropped meanwhile.
        Ok(()) | Err(basalt_engine::Error::TableGone(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(is_indexable(&ty, "bitmap"), bitmap, "{ty:?}");
            assert_eq!(is_indexable(&ty, "bloom"), bloom, "{ty:?}");
        }
    }
}
