//! Definitions: to the file of each object kind. All edit the catalog inside the session's transaction.

use super::{
    alter_table, comment, create_table, database, drop, index, materialized, owned, privilege, resolve, role, schema,
    sequence, truncate, types, view,
};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::session::names::quote_identifier;
use crate::session::outcome::Outcome;
use crate::session::params::Given;
use crate::syntax::{Absent, AlterAction, Definition, ObjectKind};
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    definition: &Definition,
    sql: &Arc<str>,
    given: Given,
) -> Result<Outcome> {
    if let Definition::CreateDatabase { .. } | Definition::DropDatabase { .. } = definition {
        session.refuse_in_block(definition.tag())?;
    }
    if let Some(verb) = definition.concurrent_verb() {
        session.begin_alone(verb)?;
        Box::pin(index::concurrently::run(session, definition, sql)).await?;
        return Ok(Outcome::Command { tag: definition.tag().to_string() });
    }
    session.next_statement()?;
    let mut tag = definition.tag().to_string();
    match definition {
        Definition::CreateTable(table) => {
            if let Some(rows) = create_table::run(session, table, sql, given).await? {
                tag = format!("SELECT {rows}");
            }
        }
        Definition::CreateIndex(create) => index::create(session, create, sql).await?,
        Definition::Reindex { target, .. } => index::reindex(session, target).await?,
        Definition::AlterTable { name, if_exists, kind: ObjectKind::Index, actions } => {
            if actions.iter().any(|action| matches!(action, AlterAction::SetSchema(_))) {
                return Err(
                    SqlError::syntax("ALTER INDEX has no SET SCHEMA").with_hint("An index is where its table is.")
                );
            }
            index::alter(session, name, *if_exists, actions, sql).await?;
        }
        Definition::AlterTable { name, if_exists, kind: ObjectKind::View, actions } => {
            view::alter(session, name, *if_exists, actions).await?;
        }
        Definition::AlterTable { name, if_exists, kind: ObjectKind::Sequence, actions } => {
            for action in actions {
                sequence::alter_object(session, name, *if_exists, action).await?;
            }
        }
        Definition::AlterTable { name, if_exists, kind, actions } => {
            alter_table::run(session, name, *if_exists, *kind, actions, sql).await?;
        }
        Definition::CreateSequence { name, if_not_exists, temporary, options } => {
            sequence::create(session, name, *if_not_exists, *temporary, options, sql).await?;
        }
        Definition::AlterSequence { name, if_exists, options } => {
            sequence::alter(session, name, *if_exists, options, sql).await?;
        }
        Definition::CreateView { name, or_replace, temporary, columns, query, options } => {
            view::create(session, name, *or_replace, *temporary, (columns, options), query, sql).await?;
        }
        Definition::CreateMaterialized(create) => {
            if let Some(rows) = materialized::create(session, create, sql).await? {
                tag = format!("SELECT {rows}");
            }
        }
        Definition::RefreshMaterialized { name, concurrently, with_data } => {
            materialized::refresh(session, name, *concurrently, *with_data).await?;
        }
        Definition::CreateSchema { name, if_not_exists, owner, elements } => {
            let catalog = session.txn()?.catalog();
            // AUTHORIZATION CURRENT_USER names the schema, too.
            let name = &match owner {
                Some(owner) if owner == name => resolve::role(session, &catalog, owner)?,
                _ => name.clone(),
            };
            schema::create(session, name, *if_not_exists, owner.as_deref())?;
            fill_schema(session, name, elements, sql).await?;
        }
        Definition::AlterSchema { name, rename, owner } => {
            schema::alter(session, name, rename.as_deref(), owner.as_deref())?;
        }
        Definition::Drop { kind: ObjectKind::Role, names, if_exists, .. } => role::drop(session, names, *if_exists)?,
        Definition::DropDatabase { name, if_exists, force } => {
            database::drop(session, name, *if_exists, *force).await?;
        }
        Definition::Drop { kind, names, if_exists, cascade, .. } => {
            drop::run(session, *kind, names, *if_exists, *cascade).await?;
        }
        Definition::Truncate { names, restart, cascade } => truncate::run(session, names, *restart, *cascade).await?,
        Definition::Comment { kind, name, column, text } => {
            comment::run(session, *kind, name, column.as_deref(), text.clone()).await?;
        }
        Definition::CreateRole { name, user, options } => role::create(session, name, *user, options)?,
        Definition::AlterRole { name, options, rename } => role::alter(session, name, options, rename.as_deref())?,
        Definition::GrantRole { grant, .. } => role::grant(session, grant)?,
        Definition::GrantPrivileges(grant) => privilege::run(session, grant)?,
        Definition::DefaultPrivileges(defaults) => privilege::run_defaults(session, defaults)?,
        Definition::Absent(absent) => absent_objects(session, absent)?,
        Definition::DropOwned { roles, cascade } => owned::drop_all(session, roles, *cascade).await?,
        Definition::ReassignOwned { roles, to } => owned::reassign(session, roles, to).await?,
        Definition::RoleSetting(clause) => role::setting(session, clause)?,
        Definition::AlterDatabase { name, change } => database::alter(session, name, change)?,
        Definition::Type(command) => types::run(session, command, sql).await?,
        Definition::CreateDatabase { name, owner } => database::create(session, name, owner.as_deref())?,
    }
    // Rows that only moved have been checked before, those of new constraints by them.
    session.txn()?.take_consequences();
    Ok(Outcome::Command { tag })
}

/// Makes what CREATE SCHEMA lists, with the new schema in front of the search path.
async fn fill_schema(session: &mut Session, name: &str, elements: &[Definition], sql: &Arc<str>) -> Result<()> {
    if elements.is_empty() {
        return Ok(());
    }
    let mark = session.settings.mark();
    let path = format!("{}, {}", quote_identifier(name), session.settings.show("search_path")?);
    session.settings.set_unchecked("search_path", Some(path.trim_end_matches([',', ' '])), false);
    let mut made = Ok(());
    for element in elements {
        made = match schema::inside(element, name) {
            Ok(element) => Box::pin(run(session, &element, sql, Given::default())).await.map(|_| ()),
            Err(error) => Err(error),
        };
        if made.is_err() {
            break;
        }
    }
    session.settings.restore(mark);
    made
}

/// Of what is not there, IF EXISTS says so with a notice. 0A000 for functions that are built in.
fn absent_objects(session: &mut Session, absent: &Absent) -> Result<()> {
    let registry = session.db.registry().clone();
    let is_built_in = |name: &String| registry.is_aggregate(name) || !registry.functions(name).is_empty();
    if let Some(name) = absent.functions.iter().find(|name| is_built_in(name)) {
        return Err(SqlError::not_supported(format!("{} of {name}, which is built in, is not supported", absent.tag)));
    }
    for object in &absent.objects {
        if !absent.if_exists {
            return Err(SqlError::new(absent.sqlstate, format!("{object} does not exist")));
        }
        skipping(session, "00000", format!("{object} does not exist"));
    }
    Ok(())
}

/// 42710 or its kin for an object that is there already.
pub(crate) fn exists(sqlstate: &'static str, kind: &str, name: &str) -> SqlError {
    SqlError::new(sqlstate, format!("{kind} \"{name}\" already exists"))
}

/// The notice of IF [NOT] EXISTS.
pub(crate) fn skipping(session: &mut Session, sqlstate: &'static str, what: String) {
    session.notice(skipped(sqlstate, &what));
}

pub(crate) fn skipped(sqlstate: &'static str, what: &str) -> SqlError {
    SqlError::notice(crate::error::Severity::Notice, sqlstate, format!("{what}, skipping"))
}
