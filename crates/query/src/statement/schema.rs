//! CREATE SCHEMA and ALTER SCHEMA.

use super::define::{exists, skipping};
use super::{drop, resolve};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::Definition;
use basalt_engine::{CatalogEdit, Namespace, privilege};
use basalt_types::Revision;

pub(crate) fn create(session: &mut Session, name: &str, if_not_exists: bool, owner: Option<&str>) -> Result<()> {
    let catalog = session.txn()?.catalog();
    session.require_on_database(&catalog, privilege::CREATE, "permission denied for database {}")?;
    check_name(name)?;
    if catalog.namespace_named(session.database.id, name).is_some() {
        if if_not_exists {
            skipping(session, "42P06", format!("schema \"{name}\" already exists"));
            return Ok(());
        }
        return Err(exists("42P06", "schema", name));
    }
    let owner = match owner {
        Some(owner) => resolve::new_owner(session, &catalog, owner, None)?,
        None => session.user.clone(),
    };
    let id = session.db.engine().next_object_id();
    let namespace = Namespace {
        id,
        database: session.database.id,
        name: name.to_string(),
        owner,
        comment: None,
        revision: Revision::NEW,
    };
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutNamespace(namespace)])?)
}

/// An element of CREATE SCHEMA with the schema that it goes to. 42P15 if it names another.
pub(crate) fn inside(element: &Definition, schema: &str) -> Result<Definition> {
    let mut element = element.clone();
    let name = match &mut element {
        Definition::CreateTable(table) => &mut table.name,
        Definition::CreateIndex(index) => &mut index.table,
        Definition::CreateView { name, .. } | Definition::CreateSequence { name, .. } => name,
        other => {
            return Err(SqlError::syntax(format!("{} cannot be an element of a schema", other.tag())));
        }
    };
    match &name.schema {
        Some(other) if other != schema => Err(SqlError::new(
            "42P15",
            format!("CREATE specifies a schema ({other}) different from the one being created ({schema})"),
        )),
        _ => {
            name.schema = Some(schema.to_string());
            Ok(element)
        }
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        return Err(SqlError::new("42939", format!("unacceptable schema name \"{name}\""))
            .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    Ok(())
}

pub(crate) fn alter(session: &mut Session, name: &str, rename: Option<&str>, owner: Option<&str>) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let mut namespace = Namespace::clone(resolve::namespace(session, &catalog, name)?);
    if resolve::is_system(&namespace) {
        return Err(SqlError::new("42501", format!("permission denied to change schema \"{name}\"")));
    }
    resolve::require_owner(session, "schema", name, &namespace.owner)?;
    if let Some(rename) = rename {
        check_name(rename)?;
        if catalog.namespace_named(session.database.id, rename).is_some() {
            return Err(exists("42P06", "schema", rename));
        }
        namespace.name = rename.to_string();
    }
    if let Some(owner) = owner {
        namespace.owner = resolve::new_owner(session, &catalog, owner, None)?;
    }
    drop::replace(session, CatalogEdit::PutNamespace(namespace), &format!("rename schema {name}"))
}
