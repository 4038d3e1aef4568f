//! CREATE DATABASE and DROP DATABASE: databases are namespaces in one cluster-wide log.

use super::define::{exists, skipping};
use super::resolve;
use crate::error::{Result, SqlError};
use crate::session::{Session, temp};
use crate::syntax::{DatabaseChange, Name};
use basalt_engine::{CatalogEdit, Database, Namespace, catalog};
use basalt_types::Revision;

/// A new database has the schemas of every database, with ids of its own; `pg_catalog`,
/// `information_schema` and `basalt` are recognised by name.
pub(crate) fn create(session: &mut Session, name: &str, owner: Option<&str>) -> Result<()> {
    session.require_superuser("permission denied to create database")?;
    let current = session.txn()?.catalog();
    if current.database_named(name).is_some() {
        return Err(exists("42P04", "database", name));
    }
    let owner = owner.unwrap_or(&session.user).to_string();
    if current.role_named(&owner).is_none() {
        return Err(SqlError::new("42704", format!("role \"{owner}\" does not exist")));
    }
    let engine = session.db.engine().clone();
    let revision = Revision::NEW;
    let database = Database { id: engine.next_object_id(), name: name.to_string(), owner: owner.clone(), revision };
    let schemas = current.namespaces.values().filter(|namespace| {
        let ids = [catalog::PG_CATALOG, catalog::PUBLIC, catalog::INFORMATION_SCHEMA, catalog::BASALT_SCHEMA];
        ids.contains(&namespace.id)
    });
    let schemas = schemas.map(|namespace| {
        CatalogEdit::PutNamespace(Namespace {
            id: engine.next_object_id(),
            database: database.id,
            name: namespace.name.clone(),
            owner: owner.clone(),
            comment: namespace.comment.clone(),
            revision,
        })
    });
    let mut edits: Vec<CatalogEdit> = schemas.collect();
    edits.insert(0, CatalogEdit::PutDatabase(database));
    Ok(session.txn()?.edit_catalog(edits)?)
}

/// 42501 for those who do not own the database.
pub(crate) fn alter(session: &mut Session, name: &str, change: &DatabaseChange) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let Some(database) = catalog.database_named(name) else {
        return Err(SqlError::new("3D000", format!("database \"{name}\" does not exist")));
    };
    resolve::require_owner(session, "database", name, &database.owner)?;
    let mut database = Database::clone(database);
    match change {
        DatabaseChange::Rename(new) => {
            if catalog.database_named(new).is_some() {
                return Err(exists("42P04", "database", new));
            }
            if database.id == session.database.id {
                return Err(SqlError::not_supported("current database cannot be renamed"));
            }
            if session.db.sessions().iter().any(|other| other.database == name) {
                return Err(SqlError::new("55006", format!("database \"{name}\" is being accessed by other users")));
            }
            database.name = new.clone();
        }
        DatabaseChange::Owner(owner) => database.owner = resolve::new_owner(session, &catalog, owner, None)?,
        DatabaseChange::Nothing => return Ok(()),
    }
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutDatabase(database)])?)
}

pub(crate) fn drop(session: &mut Session, names: &[Name], if_exists: bool) -> Result<()> {
    session.require_superuser("permission denied to drop database")?;
    for name in names {
        let name = &name.name;
        let current = session.txn()?.catalog();
        let Some(database) = current.database_named(name).cloned() else {
            if if_exists {
                skipping(session, "00000", format!("database \"{name}\" does not exist"));
                continue;
            }
            return Err(SqlError::new("3D000", format!("database \"{name}\" does not exist")));
        };
        if database.id == session.database.id {
            return Err(SqlError::new("55006", "cannot drop the currently open database"));
        }
        let others = session.db.sessions().iter().filter(|other| other.database == *name).count();
        if others > 0 {
            return Err(SqlError::new("55006", format!("database \"{name}\" is being accessed by other users"))
                .with_detail(format!("There are {others} other sessions using the database.")));
        }
        let mut edits = Vec::new();
        for namespace in current.namespaces.values().filter(|namespace| namespace.database == database.id) {
            edits.extend(temp::contents(&current, namespace.id));
            edits.push(CatalogEdit::DropNamespace(namespace.id));
        }
        edits.push(CatalogEdit::DropDatabase(database.id));
        session.txn()?.edit_catalog(edits)?;
    }
    Ok(())
}
