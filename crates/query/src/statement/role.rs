//! CREATE, ALTER and DROP ROLE. Passwords are kept as SCRAM verifiers.

use super::define::{exists, skipping};
use crate::error::{Result, SqlError};
use crate::scram;
use crate::session::Session;
use crate::syntax::{Name, RoleOptions};
use basalt_engine::{Catalog, CatalogEdit, Role};
use basalt_types::ObjectId;

pub(crate) fn create(session: &mut Session, name: &str, user: bool, options: &RoleOptions) -> Result<()> {
    session.require_superuser("permission denied to create role")?;
    if name.starts_with("pg_") || matches!(name, "public" | "none") {
        return Err(SqlError::new("42939", format!("role name \"{name}\" is reserved")));
    }
    if session.txn()?.catalog().role_named(name).is_some() {
        return Err(exists("42710", "role", name));
    }
    let mut role = Role::new(session.db.engine().next_object_id(), name);
    role.superuser = options.superuser.unwrap_or(false);
    role.login = options.login.unwrap_or(user);
    if let Some(Some(password)) = &options.password {
        role.password = Some(verifier(session, password)?);
    }
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutRole(role)])?)
}

/// A password as it is kept; one that is a verifier already stays.
fn verifier(session: &Session, password: &str) -> Result<String> {
    if scram::is_verifier(password) {
        return Ok(password.to_string());
    }
    if password.len() == 35 && password.starts_with("md5") {
        return Err(SqlError::not_supported("MD5 passwords are not supported")
            .with_hint("Give the password itself; it is kept as a SCRAM-SHA-256 verifier."));
    }
    let mut salt = [0; scram::SALT_BYTES];
    session.db.os().random.fill(&mut salt);
    Ok(scram::make_verifier(password, &salt, scram::ITERATIONS))
}

pub(crate) fn alter(session: &mut Session, name: &str, options: &RoleOptions, rename: Option<&str>) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let name = if name == "current_user" || name == "session_user" { session.user.clone() } else { name.to_string() };
    let Some(role) = catalog.role_named(&name) else {
        return Err(SqlError::new("42704", format!("role \"{name}\" does not exist")));
    };
    let own_password =
        name == session.user && options.superuser.is_none() && options.login.is_none() && rename.is_none();
    if !own_password {
        session.require_superuser("permission denied")?;
    }
    let mut role = Role::clone(role);
    if let Some(rename) = rename {
        if catalog.role_named(rename).is_some() {
            return Err(exists("42710", "role", rename));
        }
        if name == session.session_user {
            return Err(SqlError::not_supported("session user cannot be renamed"));
        }
        if owns_something(&catalog, &name) {
            return Err(SqlError::new("2BP01", format!("role \"{name}\" cannot be renamed because it owns objects")));
        }
        role.name = rename.to_string();
    }
    role.superuser = options.superuser.unwrap_or(role.superuser);
    role.login = options.login.unwrap_or(role.login);
    match &options.password {
        Some(Some(password)) => role.password = Some(verifier(session, password)?),
        Some(None) => role.password = None,
        None => {}
    }
    require_a_superuser(&catalog, role.id, role.superuser && role.login, "altered")?;
    Ok(session.txn()?.edit_catalog(vec![CatalogEdit::PutRole(role)])?)
}

/// 55000 if nobody were left who can log in and manage roles: there would be no way back. `stays`: the changed role
/// itself still can.
fn require_a_superuser(catalog: &Catalog, changed: ObjectId, stays: bool, done: &str) -> Result<()> {
    let can = |role: &Role| role.superuser && role.login;
    let Some(before) = catalog.roles.get(&changed).filter(|role| can(role)) else { return Ok(()) };
    if stays || catalog.roles.values().any(|role| role.id != changed && can(role)) {
        return Ok(());
    }
    Err(SqlError::new("55000", format!("role \"{}\" cannot be {done}", before.name))
        .with_detail("It is the last superuser that can log in: nobody could manage roles and settings any more.")
        .with_hint("Let another role be SUPERUSER LOGIN first."))
}

fn owns_something(catalog: &Catalog, name: &str) -> bool {
    catalog.tables.values().any(|table| table.owner == name)
        || catalog.views.values().any(|view| view.owner == name)
        || catalog.namespaces.values().any(|namespace| namespace.owner == name)
        || catalog.databases.values().any(|database| database.owner == name)
}

pub(crate) fn drop(session: &mut Session, names: &[Name], if_exists: bool) -> Result<()> {
    session.require_superuser("permission denied to drop role")?;
    for name in names {
        let name = &name.name;
        let catalog = session.txn()?.catalog();
        let Some(role) = catalog.role_named(name) else {
            if if_exists {
                skipping(session, "00000", format!("role \"{name}\" does not exist"));
                continue;
            }
            return Err(SqlError::new("42704", format!("role \"{name}\" does not exist")));
        };
        if *name == session.user || *name == session.session_user {
            return Err(SqlError::new("55006", "current user cannot be dropped"));
        }
        if role.id == basalt_engine::catalog::SUPERUSER {
            return Err(SqlError::new(
                "2BP01",
                format!("cannot drop role {name} because it is required by the database system"),
            ));
        }
        if owns_something(&catalog, name) {
            return Err(SqlError::new(
                "2BP01",
                format!("role \"{name}\" cannot be dropped because some objects depend on it"),
            )
            .with_hint("Give its tables, views, schemas and databases to another owner first."));
        }
        let id = role.id;
        require_a_superuser(&catalog, id, false, "dropped")?;
        session.txn()?.edit_catalog(vec![CatalogEdit::DropRole(id)])?;
    }
    Ok(())
}
