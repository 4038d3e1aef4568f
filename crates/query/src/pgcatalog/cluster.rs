//! What all databases share: databases, roles, tablespaces.

use super::relations;
use super::rows::{Rows, int4, oid, oids, opt_text, text, yes};
use super::{Fill, SystemContext};
use crate::error::SqlError;
use basalt_engine::Role;
use basalt_engine::catalog::SUPERUSER;
use basalt_types::Datum;

type Result = std::result::Result<(), SqlError>;

pub(super) const DEFAULT_TABLESPACE: u32 = 1663;
/// PostgreSQL's number for UTF8.
pub(super) const UTF8: i32 = 6;
pub(super) const LOCALE: &str = "C.UTF-8";
const HIDDEN_PASSWORD: &str = "********";

pub(super) fn fill_of(name: &str) -> Option<Fill> {
    Some(match name {
        "pg_database" => pg_database,
        "pg_tablespace" => pg_tablespace,
        "pg_authid" => pg_authid,
        "pg_roles" => pg_roles,
        "pg_user" => pg_user,
        "pg_shadow" => pg_shadow,
        "pg_group" => pg_group,
        _ => return None,
    })
}

fn pg_database(system: &SystemContext, rows: &mut Rows) -> Result {
    for database in system.catalog.databases.values() {
        rows.push([
            ("oid", oid(database.id.0)),
            ("datname", text(&database.name)),
            ("datdba", oid(relations::role_oid(&system.catalog, &database.owner))),
            ("encoding", int4(UTF8)),
            ("datlocprovider", text("c")),
            ("datistemplate", yes(false)),
            ("datallowconn", yes(true)),
            ("datconnlimit", int4(-1)),
            ("datfrozenxid", Datum::I64(0)),
            ("datminmxid", Datum::I64(0)),
            ("dattablespace", oid(DEFAULT_TABLESPACE)),
            ("datcollate", text(LOCALE)),
            ("datctype", text(LOCALE)),
        ])?;
    }
    Ok(())
}

fn pg_tablespace(_: &SystemContext, rows: &mut Rows) -> Result {
    for (id, name) in [(DEFAULT_TABLESPACE, "pg_default"), (1664, "pg_global")] {
        rows.push([("oid", oid(id)), ("spcname", text(name)), ("spcowner", oid(SUPERUSER.0))])?;
    }
    Ok(())
}

fn roles(system: &SystemContext) -> impl Iterator<Item = &Role> {
    system.catalog.roles.values().map(|role| &**role)
}

/// 42501 unless the session's user is a superuser: these tables show password verifiers.
fn superuser_only(system: &SystemContext, table: &str) -> Result {
    match system.catalog.role_named(&system.user) {
        Some(role) if role.superuser => Ok(()),
        _ => Err(SqlError::new("42501", format!("permission denied for table {table}"))),
    }
}

fn pg_authid(system: &SystemContext, rows: &mut Rows) -> Result {
    superuser_only(system, "pg_authid")?;
    for role in roles(system) {
        rows.push([
            ("oid", oid(role.id.0)),
            ("rolname", text(&role.name)),
            ("rolsuper", yes(role.superuser)),
            ("rolinherit", yes(true)),
            ("rolcreaterole", yes(role.superuser)),
            ("rolcreatedb", yes(role.superuser)),
            ("rolcanlogin", yes(role.login)),
            ("rolreplication", yes(false)),
            ("rolbypassrls", yes(role.superuser)),
            ("rolconnlimit", int4(-1)),
            ("rolpassword", opt_text(role.password.as_deref())),
        ])?;
    }
    Ok(())
}

fn pg_roles(system: &SystemContext, rows: &mut Rows) -> Result {
    for role in roles(system) {
        rows.push([
            ("rolname", text(&role.name)),
            ("rolsuper", yes(role.superuser)),
            ("rolinherit", yes(true)),
            ("rolcreaterole", yes(role.superuser)),
            ("rolcreatedb", yes(role.superuser)),
            ("rolcanlogin", yes(role.login)),
            ("rolreplication", yes(false)),
            ("rolconnlimit", int4(-1)),
            ("rolpassword", text(HIDDEN_PASSWORD)),
            ("rolbypassrls", yes(role.superuser)),
            ("oid", oid(role.id.0)),
        ])?;
    }
    Ok(())
}

fn pg_user(system: &SystemContext, rows: &mut Rows) -> Result {
    users(system, rows, |_| text(HIDDEN_PASSWORD))
}

fn pg_shadow(system: &SystemContext, rows: &mut Rows) -> Result {
    superuser_only(system, "pg_shadow")?;
    users(system, rows, |role| opt_text(role.password.as_deref()))
}

/// Roles that can log in.
fn users(system: &SystemContext, rows: &mut Rows, password: fn(&Role) -> Datum) -> Result {
    for role in roles(system).filter(|role| role.login) {
        rows.push([
            ("usename", text(&role.name)),
            ("usesysid", oid(role.id.0)),
            ("usecreatedb", yes(role.superuser)),
            ("usesuper", yes(role.superuser)),
            ("userepl", yes(false)),
            ("usebypassrls", yes(role.superuser)),
            ("passwd", password(role)),
        ])?;
    }
    Ok(())
}

fn pg_group(system: &SystemContext, rows: &mut Rows) -> Result {
    for role in roles(system).filter(|role| !role.login) {
        rows.push([("groname", text(&role.name)), ("grosysid", oid(role.id.0)), ("grolist", oids([]))])?;
    }
    Ok(())
}
