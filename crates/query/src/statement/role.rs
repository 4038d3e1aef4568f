//! CREATE, ALTER, DROP and GRANT ROLE, and settings of roles. Passwords are kept as SCRAM verifiers.

use super::define::{exists, skipping};
use super::{allowed, resolve};
use crate::error::{Result, Severity, SqlError};
use crate::scram;
use crate::session::Session;
use crate::settings::Settings;
use crate::syntax::{Name, RoleGrant, RoleOptions, RoleSettingClause, SetValue, SettingChange};
use basalt_engine::{Catalog, CatalogEdit, Membership, Role, RoleSetting};
use basalt_types::{DataType, Datum, ObjectId};

pub(crate) fn create(session: &mut Session, name: &str, user: bool, options: &RoleOptions) -> Result<()> {
    let catalog = session.txn()?.catalog();
    for (asked, what) in [
        (options.superuser, "superusers"),
        (options.replication, "replication users"),
        (options.bypass_rls, "bypassrls users"),
    ] {
        if asked == Some(true) {
            session.require_superuser(&format!("must be superuser to create {what}"))?;
        }
    }
    session.require_attribute(&catalog, |role| role.create_role, "permission denied to create role")?;
    if name.starts_with("pg_") || matches!(name, "public" | "none") {
        return Err(SqlError::new("42939", format!("role name \"{name}\" is reserved")));
    }
    if catalog.role_named(name).is_some() {
        return Err(exists("42710", "role", name));
    }
    let mut role = Role::new(session.db.engine().next_object_id(), name);
    role.login = user;
    attributes(session, &mut role, options)?;
    if let Some(Some(password)) = &options.password {
        role.password = Some(verifier(session, password)?);
    }
    session.txn()?.edit_catalog(vec![CatalogEdit::PutRole(role)])?;
    let own = vec![name.to_string()];
    let grant = |roles: &[String], members: &[String], admin: bool| RoleGrant {
        roles: roles.to_vec(),
        members: members.to_vec(),
        admin,
        revoke: false,
    };
    for (roles, members, admin) in
        [(&options.in_roles, &own, false), (&own, &options.members, false), (&own, &options.admins, true)]
    {
        if !roles.is_empty() && !members.is_empty() {
            self::grant(session, &grant(roles, members, admin))?;
        }
    }
    Ok(())
}

/// What options say besides the password.
fn attributes(session: &Session, role: &mut Role, options: &RoleOptions) -> Result<()> {
    role.superuser = options.superuser.unwrap_or(role.superuser);
    role.login = options.login.unwrap_or(role.login);
    role.create_db = options.create_db.unwrap_or(role.create_db);
    role.create_role = options.create_role.unwrap_or(role.create_role);
    role.inherit = options.inherit.unwrap_or(role.inherit);
    role.replication = options.replication.unwrap_or(role.replication);
    role.bypass_rls = options.bypass_rls.unwrap_or(role.bypass_rls);
    role.connections_max = options.connections_max.unwrap_or(role.connections_max);
    if let Some(text) = &options.valid_until {
        let catalog = session.catalog_now();
        let eval = session.eval_context(Vec::new(), &catalog);
        role.valid_until_micros = match basalt_expr::io::text::parse(&DataType::TimestampTz, text, &eval)? {
            Datum::I64(micros) => Some(micros),
            _ => None,
        };
    }
    Ok(())
}

/// GRANT role TO member, and REVOKE. 0LP01 for a circle.
pub(crate) fn grant(session: &mut Session, grant: &RoleGrant) -> Result<()> {
    for name in &grant.roles {
        for member in &grant.members {
            let catalog = session.txn()?.catalog();
            let of = |name: &String| {
                let name = resolve::role(session, &catalog, name)?;
                let found = catalog.role_named(&name).cloned();
                found.ok_or_else(|| SqlError::new("42704", format!("role \"{name}\" does not exist")))
            };
            let (role, before) = (of(name)?, of(member)?);
            let grantor = catalog.role_named(&session.user).cloned();
            let admin = |membership: &Membership| membership.role == role.id && membership.admin;
            if role.superuser {
                session.require_superuser("must be superuser to alter superusers")?;
            }
            if !session.superuser
                && !grantor.as_ref().is_some_and(|own| own.create_role || own.member_of.iter().any(admin))
            {
                return Err(SqlError::new("42501", format!("must have admin option on role \"{}\"", role.name)));
            }
            let mut changed = Role::clone(&before);
            let known = changed.member_of.iter().position(|membership| membership.role == role.id);
            match (grant.revoke, known) {
                (false, _) if is_circle(&catalog, role.id, before.id) => {
                    let message = format!("role \"{}\" is a member of role \"{}\"", role.name, before.name);
                    return Err(SqlError::new("0LP01", message));
                }
                (false, Some(at)) if changed.member_of[at].admin || !grant.admin => {
                    let notice = format!("role \"{}\" is already a member of role \"{}\"", before.name, role.name);
                    session.notice(SqlError::notice(Severity::Notice, "00000", notice));
                    continue;
                }
                (false, Some(at)) => changed.member_of[at].admin = true,
                (false, None) => changed.member_of.push(Membership {
                    role: role.id,
                    admin: grant.admin,
                    grantor: grantor.map_or(basalt_engine::catalog::SUPERUSER, |own| own.id),
                }),
                (true, None) => {
                    let warning = format!("role \"{}\" is not a member of role \"{}\"", before.name, role.name);
                    session.notice(SqlError::notice(Severity::Warning, "01000", warning));
                    continue;
                }
                (true, Some(at)) if grant.admin => changed.member_of[at].admin = false,
                (true, Some(at)) => {
                    changed.member_of.remove(at);
                }
            }
            session.txn()?.edit_catalog(vec![CatalogEdit::PutRole(changed)])?;
        }
    }
    Ok(())
}

/// Whether `role` is `member` or one of its members already.
fn is_circle(catalog: &Catalog, role: ObjectId, member: ObjectId) -> bool {
    let (mut known, mut at) = (vec![role], 0);
    while let Some(id) = known.get(at).copied() {
        at += 1;
        let next = catalog.roles.get(&id).into_iter().flat_map(|role| &role.member_of);
        let next: Vec<ObjectId> = next.map(|of| of.role).filter(|id| !known.contains(id)).collect();
        known.extend(next);
    }
    known.contains(&member)
}

/// `ALTER ROLE … SET` and `ALTER DATABASE … SET`.
pub(crate) fn setting(session: &mut Session, clause: &RoleSettingClause) -> Result<()> {
    let catalog = session.txn()?.catalog();
    let role = match &clause.role {
        Some(name) => {
            let name = resolve::role(session, &catalog, name)?;
            let of = catalog.role_named(&name);
            if of.is_some_and(|of| of.superuser) {
                session.require_superuser("must be superuser to alter superusers")?;
            } else if name != session.user {
                session.require_attribute(&catalog, |role| role.create_role, "permission denied")?;
            }
            of.map(|role| role.id)
        }
        None => None,
    };
    let database = match &clause.database {
        Some(name) => match catalog.database_named(name) {
            Some(database) => Some(database.id),
            None => return Err(SqlError::new("3D000", format!("database \"{name}\" does not exist"))),
        },
        None => None,
    };
    if role.is_none() {
        session.require_superuser("must be superuser to alter settings of all roles")?;
    }
    let key = |name: &str, value: String| RoleSetting { database, role, name: Settings::name_of(name), value };
    let edits = match &clause.change {
        SettingChange::ResetAll => {
            // What the user may not set, stays.
            let own = catalog.role_settings.iter().filter(|setting| {
                (setting.database, setting.role) == (database, role)
                    && Settings::may_set(&setting.name, session.superuser).is_ok()
            });
            own.map(|setting| CatalogEdit::SetRoleSetting { setting: setting.clone(), remove: true }).collect()
        }
        SettingChange::Set(name, SetValue::Default) => {
            Settings::may_set(name, session.superuser)?;
            vec![CatalogEdit::SetRoleSetting { setting: key(name, String::new()), remove: true }]
        }
        SettingChange::Set(name, SetValue::Items(items)) => {
            let value = Settings::join_items(name, items)?;
            session.settings.clone().set(name, &value, false, session.superuser)?;
            vec![CatalogEdit::SetRoleSetting { setting: key(name, value), remove: false }]
        }
        SettingChange::FromCurrent(name) => {
            Settings::refuse_identity(&Settings::name_of(name))?;
            Settings::may_set(name, session.superuser)?;
            let value = session.settings.show(name)?;
            vec![CatalogEdit::SetRoleSetting { setting: key(name, value), remove: false }]
        }
    };
    if edits.is_empty() {
        return Ok(());
    }
    Ok(session.txn()?.edit_catalog(edits)?)
}

/// Puts what comes with a role and a database into a session's settings, the least special first.
pub(crate) fn settings_of(catalog: &Catalog, role: ObjectId, database: ObjectId, settings: &mut Settings) {
    let layers = [
        ("global", None, None),
        ("database", Some(database), None),
        ("user", None, Some(role)),
        ("database user", Some(database), Some(role)),
    ];
    for (source, database, role) in layers {
        let own = catalog.role_settings.iter().filter(|setting| (setting.database, setting.role) == (database, role));
        for setting in own {
            // Checked when it was given; what a newer version refuses is left out.
            if let Err(error) = settings.set_of_role(source, &setting.name, &setting.value) {
                tracing::warn!(%error, name = setting.name, "a setting of a role or database is left out");
            }
        }
    }
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
    let name = resolve::role(session, &catalog, name)?;
    let Some(role) = catalog.role_named(&name) else {
        return Err(SqlError::new("42704", format!("role \"{name}\" does not exist")));
    };
    let own_password = name == session.user && !options.says_more_than_password() && rename.is_none();
    if rename.is_some() {
        if role.superuser {
            session.require_superuser("must be superuser to rename superusers")?;
        }
        session.require_attribute(&catalog, |role| role.create_role, "permission denied to rename role")?;
    } else {
        if role.superuser || options.superuser.is_some() {
            session.require_superuser("must be superuser to alter superuser roles or change superuser attribute")?;
        }
        if role.replication || options.replication.is_some() {
            session
                .require_superuser("must be superuser to alter replication roles or change replication attribute")?;
        }
        if options.bypass_rls.is_some() {
            session.require_superuser("must be superuser to change bypassrls attribute")?;
        }
        if !own_password {
            session.require_attribute(&catalog, |role| role.create_role, "permission denied")?;
        }
    }
    let mut role = Role::clone(role);
    if let Some(rename) = rename {
        if catalog.role_named(rename).is_some() {
            return Err(exists("42710", "role", rename));
        }
        if rename.starts_with("pg_") || ["public", "none"].contains(&rename) {
            return Err(SqlError::new("42939", format!("role name \"{rename}\" is reserved")));
        }
        if name == session.session_user {
            return Err(SqlError::not_supported("session user cannot be renamed"));
        }
        role.name = rename.to_string();
    }
    attributes(session, &mut role, options)?;
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
        || catalog.sequences.values().any(|sequence| sequence.owner == name)
        || catalog.types.values().any(|def| def.owner == name)
        || catalog.namespaces.values().any(|namespace| namespace.owner == name)
        || catalog.databases.values().any(|database| database.owner == name)
}

pub(crate) fn drop(session: &mut Session, names: &[Name], if_exists: bool) -> Result<()> {
    let catalog = session.txn()?.catalog();
    session.require_attribute(&catalog, |role| role.create_role, "permission denied to drop role")?;
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
        if role.superuser {
            session.require_superuser("must be superuser to drop superusers")?;
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
            .with_hint("Give its tables, views, types, schemas and databases to another owner first."));
        }
        let id = role.id;
        if let Some((class, object)) = catalog.acls.mentions(id) {
            let message = format!("role \"{name}\" cannot be dropped because some objects depend on it");
            let named = object.and_then(|object| allowed::name_of(&catalog, object)).unwrap_or_default();
            let what = if object.is_some() { "privileges for" } else { "default privileges on new" };
            return Err(SqlError::new("2BP01", message)
                .with_detail(format!("{what} {} {named}", class.name()).trim_end().to_string())
                .with_hint("Revoke its privileges first."));
        }
        require_a_superuser(&catalog, id, false, "dropped")?;
        session.txn()?.edit_catalog(vec![CatalogEdit::DropRole(id)])?;
    }
    Ok(())
}

/// What is done to another session.
#[derive(Clone, Copy)]
pub(crate) enum Signal {
    /// What it runs.
    Cancel,
    Terminate,
}

/// Whether a user may do it to a session of another one: 42501 unless it acts for that role, or is a superuser.
pub(crate) fn check_may_signal(catalog: &Catalog, user: &str, other: &str, signal: Signal) -> Result<()> {
    let (user, other) = (catalog.role_named(user), catalog.role_named(other));
    let acts_as_other = || match (user, other) {
        (Some(user), Some(other)) => catalog.acts_as(user.id).contains(&other.id),
        _ => false,
    };
    match other.is_some_and(|role| role.superuser) {
        _ if user.is_some_and(|role| role.superuser) => Ok(()),
        true => {
            let what = match signal {
                Signal::Cancel => "cancel superuser query",
                Signal::Terminate => "terminate superuser process",
            };
            Err(SqlError::new("42501", format!("must be a superuser to {what}")))
        }
        false if acts_as_other() => Ok(()),
        false => {
            let what = match signal {
                Signal::Cancel => "query is being canceled",
                Signal::Terminate => "process is being terminated",
            };
            let message = format!("must be a member of the role whose {what} or member of pg_signal_backend");
            Err(SqlError::new("42501", message))
        }
    }
}
