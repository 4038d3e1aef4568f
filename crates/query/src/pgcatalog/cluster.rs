//! What all databases share: databases, roles, tablespaces.

use super::relations;
use super::rows::{Rows, int4, micros, oid, oids, opt_text, text, texts, yes};
use super::{Fill, SystemContext, acls};
use crate::error::SqlError;
use basalt_engine::Role;
use basalt_engine::catalog::SUPERUSER;
use basalt_engine::privilege::ObjectClass;
use basalt_types::{Datum, ObjectId};

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
        "pg_auth_members" => pg_auth_members,
        "pg_db_role_setting" => pg_db_role_setting,
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
            ("datacl", acls::of(&system.catalog, ObjectClass::Database, database.id, 0)),
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
            ("rolinherit", yes(role.inherit)),
            ("rolcreaterole", yes(creates(role, role.create_role))),
            ("rolcreatedb", yes(creates(role, role.create_db))),
            ("rolcanlogin", yes(role.login)),
            ("rolreplication", yes(role.replication)),
            ("rolbypassrls", yes(creates(role, role.bypass_rls))),
            ("rolconnlimit", int4(role.connections_max)),
            ("rolpassword", opt_text(role.password.as_deref())),
            ("rolvaliduntil", micros(role.valid_until_micros)),
        ])?;
    }
    Ok(())
}

fn pg_roles(system: &SystemContext, rows: &mut Rows) -> Result {
    for role in roles(system) {
        rows.push([
            ("rolname", text(&role.name)),
            ("rolsuper", yes(role.superuser)),
            ("rolinherit", yes(role.inherit)),
            ("rolcreaterole", yes(creates(role, role.create_role))),
            ("rolcreatedb", yes(creates(role, role.create_db))),
            ("rolcanlogin", yes(role.login)),
            ("rolreplication", yes(role.replication)),
            ("rolconnlimit", int4(role.connections_max)),
            ("rolpassword", text(HIDDEN_PASSWORD)),
            ("rolvaliduntil", micros(role.valid_until_micros)),
            ("rolbypassrls", yes(creates(role, role.bypass_rls))),
            ("rolconfig", config(system, None, Some(role.id))),
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
            ("usecreatedb", yes(creates(role, role.create_db))),
            ("usesuper", yes(role.superuser)),
            ("userepl", yes(role.replication)),
            ("usebypassrls", yes(creates(role, role.bypass_rls))),
            ("passwd", password(role)),
            ("valuntil", micros(role.valid_until_micros)),
            ("useconfig", config(system, None, Some(role.id))),
        ])?;
    }
    Ok(())
}

/// The superuser that a cluster starts with may do everything by name, too.
fn creates(role: &Role, given: bool) -> bool {
    given || role.id == SUPERUSER
}

/// Settings of a role, a database or both, as `name=value`.
fn config(system: &SystemContext, database: Option<ObjectId>, role: Option<ObjectId>) -> Datum {
    let own =
        system.catalog.role_settings.iter().filter(|setting| (setting.database, setting.role) == (database, role));
    let own: Vec<String> = own.map(|setting| format!("{}={}", setting.name, setting.value)).collect();
    if own.is_empty() { Datum::Null } else { texts(own) }
}

fn pg_db_role_setting(system: &SystemContext, rows: &mut Rows) -> Result {
    let of = system.catalog.role_settings.iter().map(|setting| (setting.database, setting.role));
    let of: std::collections::BTreeSet<_> = of.collect();
    for (database, role) in of {
        rows.push([
            ("setdatabase", oid(database.map_or(0, |id| id.0))),
            ("setrole", oid(role.map_or(0, |id| id.0))),
            ("setconfig", config(system, database, role)),
        ])?;
    }
    Ok(())
}

fn pg_auth_members(system: &SystemContext, rows: &mut Rows) -> Result {
    for member in roles(system) {
        for of in &member.member_of {
            rows.push([
                ("roleid", oid(of.role.0)),
                ("member", oid(member.id.0)),
                ("grantor", oid(of.grantor.0)),
                ("admin_option", yes(of.admin)),
            ])?;
        }
    }
    Ok(())
}

fn pg_group(system: &SystemContext, rows: &mut Rows) -> Result {
    for role in roles(system).filter(|role| !role.login) {
        let members = roles(system).filter(|member| member.member_of.iter().any(|of| of.role == role.id));
        let members = oids(members.map(|member| member.id.0));
        rows.push([("groname", text(&role.name)), ("grosysid", oid(role.id.0)), ("grolist", members)])?;
    }
    Ok(())
}
