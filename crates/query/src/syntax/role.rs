//! Roles: attributes, memberships, and settings that come with roles and databases.

use super::ddl::Definition;
use super::utility::{SetValue, assigned, setting_name};
use super::{Reader, privilege};
use crate::error::{Result, SqlError};

#[derive(Clone, Debug, Default)]
pub struct RoleOptions {
    pub superuser: Option<bool>,
    pub login: Option<bool>,
    /// `Some(None)`: `PASSWORD NULL`.
    pub password: Option<Option<String>>,
    pub create_db: Option<bool>,
    pub create_role: Option<bool>,
    pub inherit: Option<bool>,
    pub replication: Option<bool>,
    pub bypass_rls: Option<bool>,
    pub connections_max: Option<i32>,
    pub valid_until: Option<String>,
    /// Roles that the new one becomes a member of.
    pub in_roles: Vec<String>,
    pub members: Vec<String>,
    /// Members that may let others in.
    pub admins: Vec<String>,
}

impl RoleOptions {
    /// Whether anything but a password is said.
    pub fn says_more_than_password(&self) -> bool {
        self.superuser.is_some()
            || self.login.is_some()
            || self.create_db.is_some()
            || self.create_role.is_some()
            || self.inherit.is_some()
            || self.replication.is_some()
            || self.bypass_rls.is_some()
            || self.connections_max.is_some()
            || self.valid_until.is_some()
    }
}

/// GRANT and REVOKE of roles.
#[derive(Clone, Debug)]
pub struct RoleGrant {
    pub roles: Vec<String>,
    pub members: Vec<String>,
    /// WITH ADMIN OPTION, or ADMIN OPTION FOR.
    pub admin: bool,
    pub revoke: bool,
}

/// `ALTER ROLE … [IN DATABASE …] SET …`, `ALTER DATABASE … SET …`.
#[derive(Clone, Debug)]
pub struct RoleSettingClause {
    /// `None`: all roles.
    pub role: Option<String>,
    pub database: Option<String>,
    /// The statement is ALTER DATABASE.
    pub of_database: bool,
    pub change: SettingChange,
}

#[derive(Clone, Debug)]
pub enum SettingChange {
    Set(String, SetValue),
    FromCurrent(String),
    ResetAll,
}

#[derive(Clone, Debug)]
pub enum DatabaseChange {
    Rename(String),
    Owner(String),
    /// Options that have no meaning here.
    Nothing,
}

fn once<T>(slot: &mut Option<T>, value: T, place: Option<u32>) -> Result<()> {
    match slot.replace(value) {
        Some(_) => Err(SqlError::syntax("conflicting or redundant options").at(place)),
        None => Ok(()),
    }
}

pub(super) fn options(reader: &mut Reader<'_>) -> Result<RoleOptions> {
    let mut options = RoleOptions::default();
    reader.word("with");
    while !reader.at_end() {
        let place = reader.position();
        let word = reader.ident()?;
        let (plain, on) = match word.strip_prefix("no") {
            Some(plain) if !plain.is_empty() => (plain, false),
            _ => (word.as_str(), true),
        };
        match (plain, word.as_str()) {
            ("superuser", _) => once(&mut options.superuser, on, place)?,
            ("login", _) => once(&mut options.login, on, place)?,
            ("createdb", _) => once(&mut options.create_db, on, place)?,
            ("createrole", _) => once(&mut options.create_role, on, place)?,
            ("inherit", _) => once(&mut options.inherit, on, place)?,
            ("replication", _) => once(&mut options.replication, on, place)?,
            ("bypassrls", _) => once(&mut options.bypass_rls, on, place)?,
            (_, "encrypted" | "sysid") => {
                if word == "sysid" {
                    reader.integer()?;
                }
            }
            (_, "unencrypted") => {
                return Err(SqlError::not_supported("UNENCRYPTED PASSWORD is no longer supported")
                    .with_hint("Remove UNENCRYPTED to store the password in encrypted form instead.")
                    .at(place));
            }
            (_, "password") => {
                let password = if reader.word("null") { None } else { Some(reader.string()?) };
                once(&mut options.password, password, place)?;
            }
            (_, "connection") => {
                reader.expect_word("limit")?;
                let limit = reader.integer()?;
                let valid = i32::try_from(limit).ok().filter(|limit| *limit >= -1);
                let valid =
                    valid.ok_or_else(|| SqlError::new("22023", format!("invalid connection limit: {limit}")))?;
                once(&mut options.connections_max, valid, place)?;
            }
            (_, "valid") => {
                reader.expect_word("until")?;
                once(&mut options.valid_until, reader.string()?, place)?;
            }
            (_, "in") => {
                if !reader.word("role") {
                    reader.expect_word("group")?;
                }
                options.in_roles = reader.list(Reader::ident)?;
            }
            (_, "role" | "user") => options.members = reader.list(Reader::ident)?,
            (_, "admin") => options.admins = reader.list(Reader::ident)?,
            _ => return Err(SqlError::syntax(format!("unrecognized role option \"{word}\"")).at(place)),
        }
    }
    Ok(options)
}

/// After ALTER ROLE, USER or GROUP.
pub(super) fn alter(reader: &mut Reader<'_>, group: bool) -> Result<Definition> {
    let all =
        reader.sees("all") && (reader.sees_nth(1, "set") || reader.sees_nth(1, "reset") || reader.sees_nth(1, "in"));
    let name = reader.ident()?;
    if reader.words(&["rename", "to"]) {
        if ["current_user", "current_role", "session_user"].contains(&name.as_str()) {
            let message = format!("{} cannot be used as a role name here", name.to_uppercase());
            return Err(SqlError::new("42939", message));
        }
        return Ok(Definition::AlterRole { name, options: RoleOptions::default(), rename: Some(reader.ident()?) });
    }
    if group && let Some(word) = reader.one_of(&["add", "drop"]) {
        reader.expect_word("user")?;
        let members = reader.list(Reader::ident)?;
        let grant = RoleGrant { roles: vec![name], members, admin: false, revoke: word == "drop" };
        return Ok(Definition::GrantRole { grant, alter: true });
    }
    let database = match reader.words(&["in", "database"]) {
        true => Some(reader.ident()?),
        false => None,
    };
    if let Some(change) = change(reader)? {
        let role = (!all).then_some(name);
        return Ok(Definition::RoleSetting(RoleSettingClause { role, database, of_database: false, change }));
    }
    if database.is_some() {
        return Err(reader.error_here());
    }
    // Of CREATE ROLE alone.
    for word in ["in", "role", "admin", "sysid"] {
        if reader.sees(word) {
            return Err(reader.error_here());
        }
    }
    Ok(Definition::AlterRole { name, options: options(reader)?, rename: None })
}

/// `SET …` or `RESET …`, if it is next.
fn change(reader: &mut Reader<'_>) -> Result<Option<SettingChange>> {
    if reader.word("reset") {
        return Ok(Some(match setting_name(reader)? {
            name if name == "all" => SettingChange::ResetAll,
            name => SettingChange::Set(name, SetValue::Default),
        }));
    }
    if !reader.word("set") {
        return Ok(None);
    }
    let zone = reader.sees("time") && reader.sees_nth(1, "zone");
    let name = setting_name(reader)?;
    if reader.words(&["from", "current"]) {
        return Ok(Some(SettingChange::FromCurrent(name)));
    }
    let value = match zone {
        true if reader.one_of(&["local", "default"]).is_some() => SetValue::Default,
        true => SetValue::Items(vec![reader.string_opt().map_or_else(|| reader.ident(), Ok)?]),
        false => assigned(reader)?,
    };
    Ok(Some(SettingChange::Set(name, value)))
}

/// After ALTER DATABASE.
pub(super) fn alter_database(reader: &mut Reader<'_>) -> Result<Definition> {
    let name = reader.ident()?;
    let change_of = |change| Definition::AlterDatabase { name: name.clone(), change };
    if reader.words(&["rename", "to"]) {
        return Ok(change_of(DatabaseChange::Rename(reader.ident()?)));
    }
    if reader.words(&["owner", "to"]) {
        return Ok(change_of(DatabaseChange::Owner(reader.ident()?)));
    }
    if reader.words(&["set", "tablespace"]) {
        return match reader.ident()?.as_str() {
            "pg_default" => Ok(change_of(DatabaseChange::Nothing)),
            other => Err(SqlError::new("42704", format!("tablespace \"{other}\" does not exist"))),
        };
    }
    if reader.words(&["refresh", "collation", "version"]) {
        return Ok(change_of(DatabaseChange::Nothing));
    }
    if let Some(change) = change(reader)? {
        let database = Some(name);
        return Ok(Definition::RoleSetting(RoleSettingClause { role: None, database, of_database: true, change }));
    }
    reader.word("with");
    let place = reader.position();
    match reader.ident()?.as_str() {
        "connection" => {
            reader.expect_word("limit")?;
            reader.integer()?;
        }
        "allow_connections" | "is_template" => {
            return Err(SqlError::not_supported("templates and closed databases are not supported")
                .with_hint("Revoke LOGIN from roles instead."));
        }
        option => return Err(SqlError::syntax(format!("option \"{option}\" not recognized")).at(place)),
    }
    Ok(change_of(DatabaseChange::Nothing))
}

/// GRANT and REVOKE of roles; of privileges they are refused. `None` if the statement is neither.
pub(super) fn grant(reader: &mut Reader<'_>) -> Result<Option<Definition>> {
    let Some(verb) = reader.one_of(&["grant", "revoke"]) else { return Ok(None) };
    let revoke = verb == "revoke";
    let mut admin = revoke && reader.words(&["admin", "option", "for"]);
    let option = revoke && reader.words(&["grant", "option", "for"]);
    if option || privilege::begins(reader) {
        return privilege::grant(reader, revoke, option).map(Some);
    }
    let roles = reader.list(Reader::ident)?;
    reader.expect_word(if revoke { "from" } else { "to" })?;
    let members = reader.list(|reader| {
        reader.word("group");
        reader.ident()
    })?;
    if !revoke && reader.words(&["with", "admin", "option"]) {
        admin = true;
    }
    if reader.words(&["granted", "by"]) {
        reader.ident()?;
    }
    let _ = reader.word("cascade") || reader.word("restrict");
    let grant = RoleGrant { roles, members, admin, revoke };
    Ok(Some(Definition::GrantRole { grant, alter: false }))
}
