//! COMMENT ON tables, views and schemas.

use super::resolve::{self, Relation, no_relation};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{Name, ObjectKind};
use basalt_engine::{CatalogEdit, Namespace, TableLock, ViewDef};
use basalt_types::TableDef;
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    kind: ObjectKind,
    name: &Name,
    column: Option<&str>,
    text: Option<String>,
) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let text = text.filter(|text| !text.is_empty());
    let edit = match kind {
        ObjectKind::Table => {
            let table = resolve::lock_table(session, name, TableLock::ShareUpdateExclusive, false).await?;
            resolve::require_owner(session, "table", &table.name, &table.owner)?;
            CatalogEdit::PutTable(Arc::new(TableDef { comment: text, ..TableDef::clone(&table) }))
        }
        ObjectKind::View => match resolve::find(session, &catalog, name)? {
            Some(Relation::View(view)) => {
                resolve::require_owner(session, "view", &view.name, &view.owner)?;
                CatalogEdit::PutView(ViewDef { comment: text, ..ViewDef::clone(&view) })
            }
            Some(Relation::Table(_)) => return Err(SqlError::new("42809", format!("\"{}\" is not a view", name.name))),
            None => return Err(no_relation("relation", name)),
        },
        ObjectKind::Schema => {
            let namespace = resolve::namespace(session, &catalog, &name.name)?;
            resolve::require_owner(session, "schema", &name.name, &namespace.owner)?;
            CatalogEdit::PutNamespace(Namespace { comment: text, ..Namespace::clone(namespace) })
        }
        ObjectKind::Column | ObjectKind::Database | ObjectKind::Role => {
            let what = column.map_or("this object".to_string(), |column| format!("column \"{column}\""));
            return Err(SqlError::not_supported(format!("a comment on {what} is not supported"))
                .with_hint("Comment on the table."));
        }
    };
    Ok(session.txn()?.edit_catalog(vec![edit])?)
}
