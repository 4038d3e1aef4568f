//! Names in utility statements, against the catalog.

use crate::error::{Result, SqlError};
use crate::pgcatalog;
use crate::session::Session;
use crate::syntax::Name;
use basalt_engine::{Catalog, Namespace, TableLock, ViewDef};
use basalt_types::TableDef;
use std::sync::Arc;

/// A table or a view.
#[derive(Clone)]
pub(crate) enum Relation {
    Table(Arc<TableDef>),
    View(Arc<ViewDef>),
}

pub(crate) fn no_relation(kind: &str, name: &Name) -> SqlError {
    SqlError::new("42P01", format!("{kind} \"{name}\" does not exist"))
}

/// 3F000 without such a schema.
pub(crate) fn namespace<'a>(session: &Session, catalog: &'a Catalog, name: &str) -> Result<&'a Arc<Namespace>> {
    catalog
        .namespace_named(session.database.id, name)
        .ok_or_else(|| SqlError::new("3F000", format!("schema \"{name}\" does not exist")))
}

/// Whether objects in a schema are Basalt's own.
pub(crate) fn is_system(namespace: &Namespace) -> bool {
    ["pg_catalog", "information_schema", "basalt"].contains(&namespace.name.as_str())
}

/// The schema that a new object goes to.
pub(crate) fn creation_namespace(session: &Session, catalog: &Catalog, name: &Name) -> Result<Arc<Namespace>> {
    let namespace = match &name.schema {
        Some(schema) => namespace(session, catalog, schema)?.clone(),
        None => match session.search_path(catalog).first() {
            Some(first) => namespace(session, catalog, first)?.clone(),
            None => return Err(SqlError::new("3F000", "no schema has been selected to create in")),
        },
    };
    if is_system(&namespace) {
        return Err(SqlError::new(
            "42501",
            format!("permission denied to create \"{}.{}\"", namespace.name, name.name),
        )
        .with_detail("System catalog modifications are currently disallowed."));
    }
    Ok(namespace)
}

/// A table or view by name, if there is one.
pub(crate) fn find(session: &Session, catalog: &Catalog, name: &Name) -> Result<Option<Relation>> {
    let schemas = match &name.schema {
        Some(schema) => vec![schema.clone()],
        None => session.search_path(catalog),
    };
    let system = match &name.schema {
        Some(schema) => pgcatalog::find(schema, &name.name),
        None => pgcatalog::find("pg_catalog", &name.name),
    };
    if system.is_some() {
        return Err(SqlError::new("42501", format!("permission denied: \"{}\" is a system catalog", name.name)));
    }
    for schema in schemas {
        let Some(namespace) = catalog.namespace_named(session.database.id, &schema) else { continue };
        if let Some(table) = catalog.table_named(namespace.id, &name.name) {
            return Ok(Some(Relation::Table(table.clone())));
        }
        if let Some(view) = catalog.view_named(namespace.id, &name.name) {
            return Ok(Some(Relation::View(view.clone())));
        }
    }
    Ok(None)
}

/// Finds a table, locks it, and looks again: while waiting it may have been changed, renamed or dropped.
/// 42P01 without such a table, 42809 for a view.
pub(crate) async fn lock_table(
    session: &mut Session,
    name: &Name,
    mode: TableLock,
    nowait: bool,
) -> Result<Arc<TableDef>> {
    match try_lock_table(session, name, mode, nowait).await? {
        Some(table) => Ok(table),
        None => Err(no_relation("relation", name)),
    }
}

pub(crate) async fn try_lock_table(
    session: &mut Session,
    name: &Name,
    mode: TableLock,
    nowait: bool,
) -> Result<Option<Arc<TableDef>>> {
    loop {
        let catalog = session.txn()?.catalog();
        let id = match find(session, &catalog, name)? {
            Some(Relation::Table(table)) => table.id,
            Some(Relation::View(view)) => {
                return Err(SqlError::new("42809", format!("\"{}\" is not a table", view.name)));
            }
            None => return Ok(None),
        };
        session.lock_table(id, mode, nowait).await?;
        let catalog = session.txn()?.catalog();
        match find(session, &catalog, name)? {
            Some(Relation::Table(table)) if table.id == id => return Ok(Some(table)),
            _ => continue,
        }
    }
}

/// 42501 unless the object is the user's, or the user is a superuser.
pub(crate) fn require_owner(session: &Session, kind: &str, name: &str, owner: &str) -> Result<()> {
    if session.superuser || session.user == owner {
        return Ok(());
    }
    Err(SqlError::new("42501", format!("must be owner of {kind} {name}")))
}
