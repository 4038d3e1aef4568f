//! DROP TABLE, VIEW and SCHEMA, and what depends on what.
//!
//! A view depends on whatever its text needs to bind. An edit breaks a view if it binds before and not
//! after: that is one rule for drops, renames and dropped columns alike.

use super::define::skipping;
use super::resolve::{self, Relation, no_relation};
use crate::bind::{self, ParamTypes};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{Name, ObjectKind, parse_query_text};
use basalt_engine::{Catalog, CatalogEdit, TableLock, ViewDef};
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    kind: ObjectKind,
    names: &[Name],
    if_exists: bool,
    cascade: bool,
) -> Result<()> {
    let mut edits = Vec::new();
    for name in names {
        match kind {
            ObjectKind::Schema => edits.extend(schema_edits(session, &name.name, if_exists, cascade).await?),
            _ => edits.extend(relation_edit(session, kind, name, if_exists).await?),
        }
    }
    if edits.is_empty() {
        return Ok(());
    }
    let what = match kind {
        ObjectKind::View => "view",
        ObjectKind::Schema => "schema",
        _ => "table",
    };
    let names: Vec<String> = names.iter().map(Name::to_string).collect();
    apply(session, edits, &format!("drop {what} {}", names.join(", ")), Some(cascade))
}

async fn relation_edit(
    session: &mut Session,
    kind: ObjectKind,
    name: &Name,
    if_exists: bool,
) -> Result<Option<CatalogEdit>> {
    let what = if kind == ObjectKind::View { "view" } else { "table" };
    if let Some(schema) = &name.schema {
        let catalog = session.txn()?.catalog();
        if catalog.namespace_named(session.database.id, schema).is_none() && if_exists {
            skipping(session, "00000", format!("schema \"{schema}\" does not exist"));
            return Ok(None);
        }
    }
    let catalog = session.txn()?.catalog();
    let wrong = |what: &str, hint: &str| {
        Err(SqlError::new("42809", format!("\"{}\" is not a {what}", name.name)).with_hint(hint))
    };
    match (resolve::find(session, &catalog, name)?, kind) {
        (None, _) if if_exists => {
            skipping(session, "00000", format!("{what} \"{}\" does not exist", name.name));
            Ok(None)
        }
        (None, _) => Err(no_relation(what, name)),
        (Some(Relation::View(view)), ObjectKind::View) => {
            resolve::require_owner(session, "view", &view.name, &view.owner)?;
            session.lock_table(view.id, TableLock::AccessExclusive, false).await?;
            Ok(Some(CatalogEdit::DropView(view.id)))
        }
        (Some(Relation::Table(_)), ObjectKind::View) => wrong("view", "Use DROP TABLE to remove a table."),
        (Some(Relation::View(_)), _) => wrong("table", "Use DROP VIEW to remove a view."),
        (Some(Relation::Table(_)), _) => {
            let table = match resolve::try_lock_table(session, name, TableLock::AccessExclusive, false).await? {
                Some(table) => table,
                None if if_exists => return Ok(None),
                None => return Err(no_relation(what, name)),
            };
            resolve::require_owner(session, "table", &table.name, &table.owner)?;
            Ok(Some(CatalogEdit::DropTable(table.id)))
        }
    }
}

async fn schema_edits(session: &mut Session, name: &str, if_exists: bool, cascade: bool) -> Result<Vec<CatalogEdit>> {
    let catalog = session.txn()?.catalog();
    let Some(namespace) = catalog.namespace_named(session.database.id, name).cloned() else {
        if if_exists {
            skipping(session, "00000", format!("schema \"{name}\" does not exist"));
            return Ok(Vec::new());
        }
        return Err(SqlError::new("3F000", format!("schema \"{name}\" does not exist")));
    };
    if resolve::is_system(&namespace) {
        return Err(SqlError::new(
            "2BP01",
            format!("cannot drop schema {name} because it is required by the database system"),
        ));
    }
    resolve::require_owner(session, "schema", name, &namespace.owner)?;
    let tables: Vec<_> = catalog.tables.values().filter(|table| table.namespace == namespace.id).cloned().collect();
    let views: Vec<_> = catalog.views.values().filter(|view| view.namespace == namespace.id).cloned().collect();
    if !cascade && let Some(inside) = tables.first().map(|table| &table.name).or(views.first().map(|view| &view.name)) {
        return Err(SqlError::new("2BP01", format!("cannot drop schema {name} because other objects depend on it"))
            .with_detail(format!("\"{inside}\" is in schema {name}."))
            .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
    }
    let mut edits = Vec::new();
    for view in views {
        edits.push(CatalogEdit::DropView(view.id));
    }
    for table in tables {
        session.lock_table(table.id, TableLock::AccessExclusive, false).await?;
        edits.push(CatalogEdit::DropTable(table.id));
    }
    edits.push(CatalogEdit::DropNamespace(namespace.id));
    Ok(edits)
}

/// Makes edits, unless they would break views. `cascade` (where the statement has such a word) drops those;
/// otherwise 2BP01.
pub(crate) fn apply(
    session: &mut Session,
    mut edits: Vec<CatalogEdit>,
    what: &str,
    cascade: Option<bool>,
) -> Result<()> {
    let before = session.txn()?.catalog();
    let after = before.apply(&edits).map_err(basalt_engine::Error::from)?;
    let broken = broken_views(session, &before, &Arc::new(after));
    if !broken.is_empty() && cascade != Some(true) {
        let details: Vec<String> = broken.iter().map(|view| format!("view {} depends on it", view.name)).collect();
        let error = SqlError::new("2BP01", format!("cannot {what} because other objects depend on it"))
            .with_detail(details.join("\n"));
        return Err(match cascade {
            Some(_) => error.with_hint("Use DROP ... CASCADE to drop the dependent objects too."),
            None => error.with_hint("Drop the views first, and create them anew."),
        });
    }
    for view in broken {
        session.notice(SqlError::notice(
            crate::error::Severity::Notice,
            "00000",
            format!("drop cascades to view {}", view.name),
        ));
        edits.push(CatalogEdit::DropView(view.id));
    }
    session.txn()?.edit_catalog(edits)?;
    Ok(())
}

fn broken_views(session: &Session, before: &Arc<Catalog>, after: &Arc<Catalog>) -> Vec<Arc<ViewDef>> {
    let kept = after.views.values();
    kept.filter(|view| binds(session, before, view) && !binds(session, after, view)).cloned().collect()
}

fn binds(session: &Session, catalog: &Arc<Catalog>, view: &ViewDef) -> bool {
    let Ok(query) = parse_query_text(&view.sql) else { return false };
    let eval = session.eval_context(Vec::new(), catalog);
    let ctx = session.bind_context(catalog, &Arc::from(view.sql.as_str()), &eval);
    bind::bind_query(&ctx, &query, &mut ParamTypes::none()).is_ok()
}
