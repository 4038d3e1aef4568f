//! CREATE DATABASE and DROP DATABASE: databases are namespaces in one cluster-wide log.

use super::define::{exists, skipping};
use super::resolve;
use super::role::{Signal, check_may_signal};
use crate::error::{Result, SqlError};
use crate::session::{Session, temp};
use crate::syntax::DatabaseChange;
use crate::system::SessionInfo;
use basalt_engine::{CatalogEdit, Database, Namespace, catalog};
use basalt_types::Revision;
use std::sync::Arc;
use std::time::Duration;

/// How long DROP DATABASE … WITH (FORCE) waits for sessions that it ends, as in PostgreSQL.
const ENDED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(10);

/// A new database has the schemas of every database, with ids of its own; `pg_catalog`,
/// `information_schema` and `basalt` are recognised by name.
pub(crate) fn create(session: &mut Session, name: &str, owner: Option<&str>) -> Result<()> {
    let current = session.txn()?.catalog();
    if let Some(owner) = owner {
        resolve::role(session, &current, owner)?;
    }
    session.require_attribute(&current, |role| role.create_db, "permission denied to create database")?;
    let owner = resolve::new_owner(session, &current, owner.unwrap_or("current_user"), None)?;
    if current.database_named(name).is_some() {
        return Err(exists("42P04", "database", name));
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
            session.require_attribute(&catalog, |role| role.create_db, "permission denied to rename database")?;
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
        DatabaseChange::Owner(owner) => {
            let owner = resolve::new_owner(session, &catalog, owner, None)?;
            if owner != database.owner {
                session.require_attribute(
                    &catalog,
                    |role| role.create_db,
                    "permission denied to change owner of database",
                )?;
            }
            database.owner = owner;
        }
        DatabaseChange::Nothing => return Ok(()),
    }
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutDatabase(database)])?)
}

/// `force`: sessions in it are ended.
pub(crate) async fn drop(session: &mut Session, name: &str, if_exists: bool, force: bool) -> Result<()> {
    let Some(database) = to_drop(session, name, if_exists)? else { return Ok(()) };
    if force {
        end_others(session, &database).await?;
    }
    let others = others_in(session, &database.name).len();
    if others > 0 {
        return Err(SqlError::new("55006", format!("database \"{name}\" is being accessed by other users"))
            .with_detail(match others {
                1 => "There is 1 other session using the database.".to_string(),
                others => format!("There are {others} other sessions using the database."),
            }));
    }
    // As it is now: sessions that have ended may have taken something along.
    let Some(database) = to_drop(session, name, if_exists)? else { return Ok(()) };
    let current = session.txn()?.catalog();
    let mut edits = Vec::new();
    for namespace in current.namespaces.values().filter(|namespace| namespace.database == database.id) {
        edits.extend(temp::contents(&current, namespace.id));
        edits.push(CatalogEdit::DropNamespace(namespace.id));
    }
    edits.push(CatalogEdit::DropDatabase(database.id));
    Ok(session.txn()?.edit_catalog(edits)?)
}

/// The database of a name, which the user may drop; nothing where there is none and that is no error.
fn to_drop(session: &mut Session, name: &str, if_exists: bool) -> Result<Option<Arc<Database>>> {
    let catalog = session.txn()?.catalog();
    let Some(database) = catalog.database_named(name) else {
        let message = format!("database \"{name}\" does not exist");
        if if_exists {
            skipping(session, "00000", message);
            return Ok(None);
        }
        return Err(SqlError::new("3D000", message));
    };
    resolve::require_owner(session, "database", name, &database.owner)?;
    if database.id == session.database.id {
        return Err(SqlError::new("55006", "cannot drop the currently open database"));
    }
    Ok(Some(database.clone()))
}

fn others_in(session: &Session, database: &str) -> Vec<SessionInfo> {
    let mut sessions = session.db.sessions();
    sessions.retain(|other| other.database == database);
    sessions
}

/// Ends the sessions of a database, and waits until they are gone. 42501 for those of others.
async fn end_others(session: &Session, database: &Database) -> Result<()> {
    let others = others_in(session, &database.name);
    let catalog = session.catalog_now();
    for other in &others {
        check_may_signal(&catalog, &session.user, &other.user, Signal::Terminate)?;
    }
    for other in &others {
        if let Some((interrupt, _)) = session.db.backend(other.pid) {
            interrupt.terminate();
        }
    }
    let clock = session.db.os().clock.clone();
    let until = clock.monotonic() + ENDED_WITHIN;
    while !others_in(session, &database.name).is_empty() && clock.monotonic() < until {
        tokio::time::sleep(LOOK_AGAIN_AFTER).await;
    }
    Ok(())
}
