//! CREATE VIEW and ALTER VIEW. A view is kept as text that names what it reads by identity (`bind::pinned`).

use super::define::exists;
use super::resolve::{self, Relation, no_relation};
use super::{define, drop};
use crate::bind::{self, ParamTypes, pinned};
use crate::error::{Result, SqlError};
use crate::session::Session;
use crate::syntax::{AlterAction, Name, parse_query_text};
use basalt_engine::{Catalog, CatalogEdit, CheckOption, TableLock, ViewDef};
use basalt_types::{DataType, ObjectId, Revision};
use sqlparser::ast;
use std::sync::Arc;

/// Locks what a query reads, so that nobody takes it away before the view is there, and tells whether temporary tables
/// are among that. 42P01 and its kin for what is gone.
pub(super) async fn lock_read(session: &mut Session, query: &ast::Query, sql: &Arc<str>) -> Result<bool> {
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let eval = session.eval_context(Vec::new(), catalog);
        let ctx = session.bind_context(catalog, sql, &eval);
        let bound = bind::bind_query(&ctx, query, &mut ParamTypes::none())?;
        let mut tables = bound.tables.iter().filter_map(|id| catalog.table(*id));
        let reads_temporary = tables.any(|table| resolve::is_temporary(catalog, table.namespace));
        let read = pinned::relations_in(&*parse_query_text(&pinned::query(&ctx, query)?)?);
        Ok((reads_temporary, read.into_iter().collect()))
    };
    session.lock_planned(TableLock::AccessShare, plan).await
}

/// Locks a view that is about to have another definition, if it is there.
async fn lock_own(session: &mut Session, namespace: ObjectId, name: &str) -> Result<()> {
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let view = catalog.view_named(namespace, name);
        if let Some(view) = view {
            resolve::require_owner(session, "view", &view.name, &view.owner)?;
        }
        Ok(((), view.map(|view| view.id).into_iter().collect()))
    };
    session.lock_planned(TableLock::AccessExclusive, plan).await
}

pub(crate) async fn create(
    session: &mut Session,
    name: &Name,
    or_replace: bool,
    temporary: bool,
    (columns, options): (&[String], &[(String, String)]),
    query: &ast::Query,
    sql: &Arc<str>,
) -> Result<()> {
    if let ast::SetExpr::Select(select) = &*query.body
        && select.into.is_some()
    {
        return Err(SqlError::not_supported("views must not contain SELECT INTO"));
    }
    let check_option = check_options(options)?;
    let reads_temporary = lock_read(session, query, sql).await?;
    let namespace = resolve::creation_namespace_of(session, name, temporary || reads_temporary)?;
    if reads_temporary && !temporary {
        let notice = format!("view \"{}\" will be a temporary view", name.name);
        session.notice(SqlError::notice(crate::error::Severity::Notice, "00000", notice));
    }
    if or_replace {
        lock_own(session, namespace.id, &name.name).await?;
    }
    let catalog = session.txn()?.catalog();
    let before = catalog.view_named(namespace.id, &name.name).cloned();
    super::types::check_relation_name(&catalog, namespace.id, &name.name)?;
    if catalog.relation_exists(namespace.id, &name.name) && !(or_replace && before.is_some()) {
        return Err(match (or_replace, before) {
            (true, None) => SqlError::new("42809", format!("\"{}\" is not a view", name.name)),
            _ => exists("42P07", "relation", &name.name),
        });
    }
    let eval = session.eval_context(Vec::new(), &catalog);
    let ctx = session.bind_context(&catalog, sql, &eval);
    let bound = bind::bind_query(&ctx, query, &mut ParamTypes::none())?;
    if columns.len() > bound.columns.len() {
        return Err(SqlError::new("42601", "CREATE VIEW specifies more column names than columns"));
    }
    let mut described: Vec<(String, DataType)> = Vec::new();
    for (at, column) in bound.columns.iter().enumerate() {
        let column_name = columns.get(at).unwrap_or(&column.name).clone();
        if described.iter().any(|(other, _)| *other == column_name) {
            return Err(SqlError::new("42701", format!("column \"{column_name}\" specified more than once")));
        }
        let ty = if column.ty == DataType::Unknown { DataType::Text } else { column.ty.clone() };
        refuse_pseudo_type(&column_name, &ty)?;
        described.push((column_name, ty));
    }
    if let Some(before) = &before {
        resolve::require_owner(session, "view", &before.name, &before.owner)?;
        check_replacement(before, &described)?;
    }
    let view = ViewDef {
        revision: before.as_ref().map_or(Revision::NEW, |before| before.revision),
        id: before.as_ref().map_or_else(|| session.db.engine().next_object_id(), |before| before.id),
        namespace: namespace.id,
        name: name.name.clone(),
        owner: before.as_ref().map_or_else(|| session.user.clone(), |before| before.owner.clone()),
        sql: pinned::query(&ctx, query)?,
        columns: described,
        comment: before.and_then(|before| before.comment.clone()),
        check_option,
        options: options.to_vec(),
        time_modifiers: bound
            .columns
            .iter()
            .enumerate()
            .filter_map(|(at, column)| Some((at, bind::time_modifier_of(column)?)))
            .collect(),
    };
    if check_option != CheckOption::None {
        bind::check_updatable(query)?;
    }
    drop::replace(session, CatalogEdit::PutView(view), &format!("replace view {}", name.name))
}

/// 42P16 for rows of no type that has a name.
pub(crate) fn refuse_pseudo_type(column: &str, ty: &DataType) -> Result<()> {
    let element = ty.element().filter(|_| matches!(ty, DataType::Array(_))).unwrap_or(ty);
    if element.composite().is_some_and(|composite| composite.is_anonymous()) || *element == DataType::Record {
        let pseudo = if matches!(ty, DataType::Array(_)) { "record[]" } else { "record" };
        return Err(SqlError::new("42P16", format!("column \"{column}\" has pseudo-type {pseudo}")));
    }
    Ok(())
}

/// The check option that a view's options give. 22023.
fn check_options(options: &[(String, String)]) -> Result<CheckOption> {
    let mut check = CheckOption::None;
    for (at, (name, value)) in options.iter().enumerate() {
        if options[..at].iter().any(|(known, _)| known == name) {
            return Err(SqlError::new("22023", format!("parameter \"{name}\" specified more than once")));
        }
        match (name.as_str(), value.as_str()) {
            ("check_option", "local") => check = CheckOption::Local,
            ("check_option", "cascaded") => check = CheckOption::Cascaded,
            ("check_option", _) => {
                let message = format!("invalid value for enum option \"check_option\": {value}");
                return Err(SqlError::new("22023", message).with_detail("Valid values are \"local\" and \"cascaded\"."));
            }
            ("security_barrier" | "security_invoker", value) => {
                if crate::settings::value::bool_of(value).is_none() {
                    let message = format!("invalid value for boolean option \"{name}\": {value}");
                    return Err(SqlError::new("22023", message));
                }
            }
            (other, _) => return Err(SqlError::new("22023", format!("unrecognized parameter \"{other}\""))),
        }
    }
    Ok(check)
}

/// OR REPLACE may only append columns.
fn check_replacement(before: &ViewDef, now: &[(String, DataType)]) -> Result<()> {
    if now.len() < before.columns.len() {
        return Err(SqlError::new("42P16", "cannot drop columns from view"));
    }
    for ((old, old_ty), (new, new_ty)) in before.columns.iter().zip(now) {
        if old != new {
            return Err(SqlError::new("42P16", format!("cannot change name of view column \"{old}\" to \"{new}\""))
                .with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead."));
        }
        if old_ty != new_ty {
            let (old_ty, new_ty) = (old_ty.sql_name(), new_ty.sql_name());
            return Err(SqlError::new(
                "42P16",
                format!("cannot change data type of view column \"{old}\" from {old_ty} to {new_ty}"),
            ));
        }
    }
    Ok(())
}

fn set_check_option(view: &mut ViewDef) -> Result<()> {
    view.check_option = check_options(&view.options)?;
    if view.check_option != CheckOption::None {
        bind::check_updatable(&bind::parse_query(&view.sql)?)?;
    }
    Ok(())
}

pub(crate) async fn alter(session: &mut Session, name: &Name, if_exists: bool, actions: &[AlterAction]) -> Result<()> {
    let plan = |session: &mut Session, catalog: &Arc<Catalog>| {
        let view = match resolve::find(session, catalog, name)? {
            Some(Relation::View(view)) => view,
            Some(_) => return Err(SqlError::new("42809", format!("\"{}\" is not a view", name.name))),
            None if if_exists => {
                define::skipping(session, "00000", format!("relation \"{}\" does not exist", name.name));
                return Ok((None, Vec::new()));
            }
            None => return Err(no_relation("relation", name)),
        };
        resolve::require_owner(session, "view", &view.name, &view.owner)?;
        let wanted = vec![view.id];
        Ok((Some((catalog.clone(), ViewDef::clone(&view))), wanted))
    };
    let planned = session.lock_planned(TableLock::AccessExclusive, plan).await?;
    let Some((catalog, mut view)) = planned else { return Ok(()) };
    for action in actions {
        match action {
            AlterAction::RenameTo(new) => {
                if catalog.relation_exists(view.namespace, new) {
                    return Err(exists("42P07", "relation", new));
                }
                super::types::check_relation_name(&catalog, view.namespace, new)?;
                resolve::require_create_in(session, &catalog, view.namespace)?;
                view.name = new.clone();
            }
            AlterAction::RenameColumn(old, new) => {
                if view.columns.iter().any(|(known, _)| known == new) {
                    let message = format!("column \"{new}\" of relation \"{}\" already exists", view.name);
                    return Err(SqlError::new("42701", message));
                }
                let Some((column, _)) = view.columns.iter_mut().find(|(known, _)| known == old) else {
                    return Err(SqlError::new("42703", format!("column \"{old}\" does not exist")));
                };
                column.clone_from(new);
            }
            AlterAction::SetSchema(schema) => {
                let to = resolve::new_schema(session, &catalog, view.namespace, schema)?;
                if to != view.namespace && catalog.relation_exists(to, &view.name) {
                    let message = format!("relation \"{}\" already exists in schema \"{schema}\"", view.name);
                    return Err(SqlError::new("42P07", message));
                }
                if to != view.namespace {
                    super::types::check_relation_name(&catalog, to, &view.name)?;
                }
                view.namespace = to;
            }
            AlterAction::OwnerTo(owner) => {
                view.owner = resolve::new_owner(session, &catalog, owner, Some(view.namespace))?;
            }
            AlterAction::SetOptions(options) => {
                view.options.retain(|(name, _)| !options.iter().any(|(given, _)| given == name));
                view.options.extend(options.iter().cloned());
                set_check_option(&mut view)?;
            }
            AlterAction::ResetOptions(names) => {
                view.options.retain(|(name, _)| !names.contains(name));
                set_check_option(&mut view)?;
            }
            AlterAction::Nothing => {}
            _ => {
                return Err(SqlError::not_supported("this ALTER VIEW is not supported")
                    .with_hint("Use CREATE OR REPLACE VIEW, or drop the view and create it anew."));
            }
        }
    }
    drop::replace(session, CatalogEdit::PutView(view), &format!("alter view {}", name.name))
}
