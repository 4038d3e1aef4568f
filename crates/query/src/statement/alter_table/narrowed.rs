//! Tables without columns that go with their types, and without all that was made of those: as ALTER TABLE … DROP COLUMN
//! … CASCADE has it.

use super::Change;
use super::rewrite::{Rewrite, Source};
use crate::error::{Result, SqlError};
use crate::session::Session;
use basalt_engine::{Catalog, CatalogEdit};
use basalt_types::{ColumnId, ObjectId, TableDef};
use std::sync::Arc;

pub(in crate::statement) struct Narrowed {
    pub before: Arc<TableDef>,
    /// The definition, and what goes with the columns elsewhere.
    pub edits: Vec<CatalogEdit>,
    /// Generated columns that went along, as messages name them.
    pub along: Vec<String>,
    /// Rows were kept by a key that goes.
    moves: bool,
}

/// One for each table of these columns. 0A000 for one that `edits` have another definition of.
pub(in crate::statement) fn all(
    session: &mut Session,
    catalog: &Catalog,
    columns: &[(ObjectId, ColumnId)],
    edits: &[CatalogEdit],
) -> Result<Vec<Narrowed>> {
    let mut tables: Vec<ObjectId> = columns.iter().map(|(table, _)| *table).collect();
    tables.sort();
    tables.dedup();
    let mut all = Vec::with_capacity(tables.len());
    for table in tables.into_iter().filter_map(|id| catalog.table(id)) {
        if edits.iter().any(|edit| matches!(edit, CatalogEdit::PutTable(other) if other.id == table.id)) {
            let message =
                format!("table \"{}\" cannot be altered together with what its columns are made of", table.name);
            return Err(SqlError::not_supported(message).with_hint("Drop the columns first."));
        }
        let columns = columns.iter().filter(|(of, _)| *of == table.id).map(|(_, column)| *column);
        all.push(narrowed(session, table, columns)?);
    }
    Ok(all)
}

fn narrowed(
    session: &mut Session,
    before: &Arc<TableDef>,
    columns: impl Iterator<Item = ColumnId>,
) -> Result<Narrowed> {
    let mut change = Change::of(before, &Arc::from(""));
    for id in columns {
        // One may have gone with another that it is computed from.
        let column = change.table.column(id);
        if !column.dropped {
            change.drop_column(session, &column.name.clone(), false, true)?;
        }
    }
    if change.moves {
        change.make_tablets(session)?;
    }
    let Change { table, mut edits, along, moves, .. } = change;
    edits.push(CatalogEdit::PutTable(Arc::new(table)));
    Ok(Narrowed { before: before.clone(), edits, along, moves })
}

/// The rows that have to move, as they are before the definitions take effect.
pub(in crate::statement) fn sources(session: &mut Session, tables: &[Narrowed]) -> Result<Vec<(ObjectId, Source)>> {
    let moving = tables.iter().filter(|table| table.moves);
    moving.map(|table| Ok((table.before.id, Source::start(session, &table.before)?))).collect()
}

/// Moves them to where they are kept by the definitions that are in place now.
pub(in crate::statement) async fn move_rows(session: &mut Session, sources: Vec<(ObjectId, Source)>) -> Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    let catalog = session.next_statement()?.catalog();
    for (id, rows) in sources {
        let Some(after) = catalog.table(id) else {
            return Err(SqlError::internal(format!("table {} went while its rows were to move", id.0)));
        };
        rows.write(session, after.clone(), Rewrite { values: Vec::new(), complete: false }).await?;
    }
    Ok(())
}
