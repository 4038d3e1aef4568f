//! SET, SHOW, RESET and ALTER SYSTEM.

use super::rows::text_rows;
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::outcome::{Outcome, ResultColumn};
use crate::settings::{Settings, check_system_value, is_identity};
use crate::syntax::{Isolation, SetValue, TransactionModes};
use crate::system::AskedSetting;
use basalt_engine::{Catalog, CatalogEdit, Role};
use basalt_types::ObjectId;

pub(crate) fn set(session: &mut Session, name: &str, value: &SetValue, local: bool) -> Result<()> {
    if local && session.block.scope != crate::session::Scope::Explicit {
        let warning = "SET LOCAL can only be used in transaction blocks";
        session.notice(SqlError::notice(crate::error::Severity::Warning, "25P01", warning));
    }
    let name = &Settings::name_of(name);
    match (name.as_str(), value) {
        ("transaction_isolation" | "transaction_read_only", SetValue::Items(items)) => set_mode(session, name, items)?,
        ("transaction_isolation" | "transaction_read_only" | "transaction_deferrable", _) => {}
        (name, value) if is_identity(name) => set_user(session, name, value, local)?,
        (_, SetValue::Default) => session.settings.reset(name, local, session.superuser)?,
        (_, SetValue::Items(items)) => {
            let text = Settings::join_items(name, items)?;
            session.settings.set(name, &text, local, session.superuser)?;
        }
    }
    if name == "application_name" {
        session.info.lock().application_name = session.settings.show("application_name")?;
    }
    Ok(())
}

/// What `set_config` has asked for, when its statement has run.
pub(crate) fn set_asked(session: &mut Session, asked: AskedSetting) -> Result<()> {
    let AskedSetting { name, value, local } = asked;
    match is_identity(&name) {
        true => set_user(session, &name, &SetValue::Items(vec![value]), local),
        false => session.settings.set(&name, &value, local, session.superuser),
    }
}

fn set_mode(session: &mut Session, name: &str, items: &[String]) -> Result<()> {
    let text = items.join(" ");
    let modes = match name {
        "transaction_isolation" => TransactionModes {
            isolation: Some(Isolation::named(&text).ok_or_else(|| {
                SqlError::new("22023", format!("invalid value for parameter \"{name}\": \"{text}\""))
            })?),
            read_only: None,
        },
        _ => TransactionModes {
            isolation: None,
            read_only: Some(
                crate::settings::value::bool_of(&text)
                    .ok_or_else(|| SqlError::new("22023", format!("parameter \"{name}\" requires a Boolean value")))?,
            ),
        },
    };
    session.set_transaction_modes(modes)
}

/// SET ROLE: members may become the role; SET SESSION AUTHORIZATION: superusers anybody.
pub(crate) fn set_user(session: &mut Session, name: &str, value: &SetValue, local: bool) -> Result<()> {
    let target = match value {
        SetValue::Items(items) => Some(Settings::join_items(name, items)?),
        SetValue::Default => None,
    };
    let role = match &target {
        None => None,
        Some(target) => {
            let catalog = session.current_catalog();
            Some((target.as_str(), check_user(&catalog, &session.session_user, session.login(), name, target)?))
        }
    };
    session.settings.set_identity(name, role, local);
    if name == "session_authorization" {
        session.settings.set_identity("role", Some(("none", NOBODY)), local);
    }
    session.refresh_identity();
    Ok(())
}

const NOBODY: ObjectId = ObjectId(0);

/// The id of a role, [`NOBODY`] for SET ROLE NONE. 22023 without one of that name, 42501 for one that the session may not
/// become.
pub(crate) fn check_user(
    catalog: &Catalog,
    session_user: &str,
    login: &Role,
    name: &str,
    target: &str,
) -> Result<ObjectId> {
    if name == "role" && target == "none" {
        return Ok(NOBODY);
    }
    let Some(role) = catalog.role_named(target) else {
        return Err(SqlError::new("22023", format!("role \"{target}\" does not exist")));
    };
    let may = match name {
        "role" => is_member(catalog, session_user, role.id),
        // What it may be now.
        _ => catalog.roles.get(&login.id).is_some_and(|login| login.superuser || login.id == role.id),
    };
    if !may {
        let what = name.replace('_', " ");
        return Err(SqlError::new("42501", format!("permission denied to set {what} \"{target}\"")));
    }
    Ok(role.id)
}

/// Whether a role is another one, a member of it at any remove, or a superuser.
pub(crate) fn is_member(catalog: &Catalog, name: &str, of: ObjectId) -> bool {
    let Some(role) = catalog.role_named(name) else { return false };
    let (mut known, mut at) = (vec![role.id], 0);
    while let Some(id) = known.get(at).copied() {
        at += 1;
        let next = catalog.roles.get(&id).into_iter().flat_map(|role| &role.member_of);
        let next: Vec<ObjectId> = next.map(|member| member.role).filter(|id| !known.contains(id)).collect();
        known.extend(next);
    }
    role.superuser || known.contains(&of)
}

pub(crate) fn reset(session: &mut Session, name: &str) -> Result<()> {
    set(session, name, &SetValue::Default, false)
}

pub(crate) fn show_columns(name: &str) -> Vec<ResultColumn> {
    vec![ResultColumn::text(&Settings::name_of(name))]
}

pub(crate) fn show_all_columns() -> Vec<ResultColumn> {
    ["name", "setting", "description"].map(ResultColumn::text).to_vec()
}

pub(crate) fn show(session: &mut Session, name: &str) -> Result<Outcome> {
    let value = show_value(session, name)?;
    text_rows(show_columns(name), &[vec![value]], "SHOW")
}

/// A setting that tells of the transaction, or of the next one.
pub(crate) fn of_transaction(name: &str, isolation: Isolation, read_only: bool) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "transaction_isolation" => Some(isolation.name()),
        "transaction_read_only" => Some(if read_only { "on" } else { "off" }),
        _ => None,
    }
}

/// What SHOW gives.
pub(crate) fn show_value(session: &Session, name: &str) -> Result<String> {
    match name.to_ascii_lowercase().as_str() {
        "role" if session.user == session.session_user => Ok("none".to_string()),
        "role" => Ok(session.user.clone()),
        _ => match of_transaction(name, session.isolation(), session.is_read_only()) {
            Some(value) => Ok(value.to_string()),
            None => session.settings.show(name),
        },
    }
}

pub(crate) fn show_all(session: &mut Session) -> Result<Outcome> {
    let rows = session.settings.rows().into_iter();
    let rows: Vec<Vec<String>> = rows.map(|row| vec![row.name, row.shown, row.description.to_string()]).collect();
    text_rows(show_all_columns(), &rows, "SHOW")
}

pub(crate) fn alter_system(session: &mut Session, name: &str, value: &SetValue) -> Result<()> {
    session.require_superuser(&format!("permission denied to set parameter \"{name}\""))?;
    session.refuse_in_block("ALTER SYSTEM")?;
    session.refuse_if_read_only("ALTER SYSTEM")?;
    let edit = match value {
        SetValue::Items(items) => {
            let (name, value) = check_system_value(name, &Settings::join_items(name, items)?)?;
            session.settings.check_group(&name, &value)?;
            CatalogEdit::SetSetting { name, value: Some(value) }
        }
        SetValue::Default => {
            let name = Settings::name_of(name);
            session.settings.show(&name)?;
            CatalogEdit::SetSetting { name, value: None }
        }
    };
    session.next_statement()?.edit_catalog(vec![edit])?;
    Ok(())
}

pub(crate) fn alter_system_reset_all(session: &mut Session) -> Result<()> {
    session.require_superuser("permission denied to perform ALTER SYSTEM RESET ALL")?;
    session.refuse_in_block("ALTER SYSTEM")?;
    session.refuse_if_read_only("ALTER SYSTEM")?;
    let catalog = session.next_statement()?.catalog();
    let edits = catalog.settings.keys().map(|name| CatalogEdit::SetSetting { name: name.clone(), value: None });
    let edits: Vec<CatalogEdit> = edits.collect();
    session.txn()?.edit_catalog(edits)?;
    Ok(())
}
