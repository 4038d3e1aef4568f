//! Names in utility statements, against the catalog.

use crate::error::{Result, SqlError};
use crate::pgcatalog;
use crate::session::Session;
use crate::session::names::{TEMP_PREFIX, named_schema};
use crate::syntax::Name;
use basalt_engine::{Catalog, Namespace, SequenceDef, TableLock, ViewDef, privilege};
use basalt_types::{ObjectId, TableDef};
use std::sync::Arc;

/// What a name of the tables' name space means.
#[derive(Clone)]
pub(crate) enum Relation {
    Table(Arc<TableDef>),
    View(Arc<ViewDef>),
    Sequence(Arc<SequenceDef>),
}

pub(crate) fn no_relation(kind: &str, name: &Name) -> SqlError {
    SqlError::new("42P01", format!("{kind} \"{name}\" does not exist"))
}

/// 3F000 without such a schema.
pub(crate) fn namespace<'a>(session: &Session, catalog: &'a Catalog, name: &str) -> Result<&'a Arc<Namespace>> {
    let path = session.lookup_path(catalog);
    catalog
        .namespace_named(session.database.id, named_schema(&path, name))
        .ok_or_else(|| SqlError::new("3F000", format!("schema \"{name}\" does not exist")))
}

/// Whether objects in a schema are Basalt's own.
pub(crate) fn is_system(namespace: &Namespace) -> bool {
    ["pg_catalog", "information_schema", "basalt"].contains(&namespace.name.as_str())
}

/// 42501 for a schema that nothing can be moved into.
pub(crate) fn refuse_system(namespace: &Namespace) -> Result<()> {
    if is_system(namespace) {
        return Err(SqlError::new("42501", format!("permission denied for schema {}", namespace.name)));
    }
    if namespace.name.starts_with(TEMP_PREFIX) {
        return Err(SqlError::not_supported("cannot move objects into or out of temporary schemas"));
    }
    Ok(())
}

/// A role by name, or as CURRENT_USER and its kin name it. 42704.
pub(crate) fn role(session: &Session, catalog: &Catalog, name: &str) -> Result<String> {
    let name = match name {
        "current_user" | "current_role" => &session.user,
        "session_user" => &session.session_user,
        name => name,
    };
    match catalog.role_named(name) {
        Some(role) => Ok(role.name.clone()),
        None => Err(SqlError::new("42704", format!("role \"{name}\" does not exist"))),
    }
}

/// The schema that a new relation goes to, a temporary one perhaps.
pub(crate) fn creation_namespace_of(session: &mut Session, name: &Name, temporary: bool) -> Result<Arc<Namespace>> {
    let own = session.temp_schema();
    let named_own = name.schema.as_ref().is_some_and(|schema| *schema == own || schema == "pg_temp");
    if temporary && name.schema.is_some() && !named_own {
        return Err(SqlError::new("42P16", "cannot create temporary relation in non-temporary schema"));
    }
    let listed_first = || session.settings.effective().search_path.first().is_some_and(|first| first == "pg_temp");
    if temporary || named_own || (name.schema.is_none() && listed_first()) {
        let catalog = session.txn()?.catalog();
        let message = "permission denied to create temporary tables in database \"{}\"";
        session.require_on_database(&catalog, privilege::TEMPORARY, message)?;
        return session.enter_temp_schema();
    }
    let catalog = session.txn()?.catalog();
    creation_namespace(session, &catalog, name)
}

/// Whether objects of a schema go with a session.
pub(crate) fn is_temporary(catalog: &Catalog, namespace: ObjectId) -> bool {
    catalog.namespaces.get(&namespace).is_some_and(|namespace| namespace.name.starts_with(TEMP_PREFIX))
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
    session.require_create(catalog, &namespace)?;
    Ok(namespace)
}

/// The schema that a name has, if there is no such schema.
pub(crate) fn missing_schema<'n>(session: &Session, catalog: &Catalog, name: &'n Name) -> Option<&'n str> {
    name.schema.as_deref().filter(|schema| namespace(session, catalog, schema).is_err())
}

/// A table or view by name, if there is one.
pub(crate) fn find(session: &Session, catalog: &Catalog, name: &Name) -> Result<Option<Relation>> {
    let path = session.lookup_path(catalog);
    let schemas = match &name.schema {
        Some(schema) => vec![named_schema(&path, schema).to_string()],
        None => path,
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
        if name.schema.is_some() && !is_temporary(catalog, namespace.id) && !session.may_use(catalog, namespace) {
            return Err(SqlError::new("42501", format!("permission denied for schema {}", namespace.name)));
        }
        if let Some(table) = catalog.table_named(namespace.id, &name.name) {
            return Ok(Some(Relation::Table(table.clone())));
        }
        if let Some(view) = catalog.view_named(namespace.id, &name.name) {
            return Ok(Some(Relation::View(view.clone())));
        }
        if let Some(sequence) = catalog.sequence_named(namespace.id, &name.name) {
            return Ok(Some(Relation::Sequence(sequence.clone())));
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

/// 42501 for a table that is somebody else's: nobody waits for a lock that he may not have.
pub(crate) fn require_own_table(session: &mut Session, name: &Name) -> Result<()> {
    let catalog = session.txn()?.catalog();
    match find(session, &catalog, name)? {
        Some(Relation::Table(table)) => require_owner(session, table.kind_word(), &table.name, &table.owner),
        _ => Ok(()),
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
            Some(_) => return Err(SqlError::new("42809", format!("\"{}\" is not a table", name.name))),
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

/// 42501 unless the user may make objects in a schema: what is given another name is made there once more.
pub(crate) fn require_create_in(session: &Session, catalog: &Catalog, schema: ObjectId) -> Result<()> {
    match catalog.namespaces.get(&schema) {
        Some(schema) => session.require_create(catalog, schema),
        None => Ok(()),
    }
}

/// The schema that an object is moved to (SET SCHEMA). 3F000, 0A000 for temporary ones, 42501.
pub(crate) fn new_schema(session: &Session, catalog: &Catalog, from: ObjectId, name: &str) -> Result<ObjectId> {
    let namespace = namespace(session, catalog, name)?;
    if namespace.id == from {
        return Ok(from);
    }
    session.require_create(catalog, namespace)?;
    refuse_system(namespace)?;
    if is_temporary(catalog, from) {
        return Err(SqlError::not_supported("cannot move objects into or out of temporary schemas"));
    }
    Ok(namespace.id)
}

/// 42501 unless the object is the user's, or the user is a superuser.
pub(crate) fn require_owner(session: &Session, kind: &str, name: &str, owner: &str) -> Result<()> {
    if session.superuser || session.user == owner {
        return Ok(());
    }
    let catalog = session.catalog_now();
    if let (Some(user), Some(owner)) = (catalog.role_named(&session.user), catalog.role_named(owner))
        && catalog.acts_as(user.id).contains(&owner.id)
    {
        return Ok(());
    }
    Err(SqlError::new("42501", format!("must be owner of {kind} {name}")))
}

/// The role that an object is given to: 42704 without it, 42501 unless the user is in it and it may make objects in the
/// schema.
pub(crate) fn new_owner(session: &Session, catalog: &Catalog, name: &str, schema: Option<ObjectId>) -> Result<String> {
    let name = role(session, catalog, name)?;
    let Some(found) = catalog.role_named(&name).filter(|_| !session.superuser) else { return Ok(name) };
    if !crate::statement::set::is_member(catalog, &session.user, found.id) {
        return Err(SqlError::new("42501", format!("must be member of role \"{name}\"")));
    }
    if let Some(schema) = schema.and_then(|schema| catalog.namespaces.get(&schema)) {
        let key = privilege::AclKey::of(privilege::ObjectClass::Schema, schema.id);
        if catalog.privileges(&name, key, &schema.owner).0 & privilege::CREATE == 0 {
            return Err(SqlError::new("42501", format!("permission denied for schema {}", schema.name)));
        }
    }
    Ok(name)
}
