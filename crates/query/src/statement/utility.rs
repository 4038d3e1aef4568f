//! Settings, prepared statements, cursors and maintenance: to the file of each.

use super::resolve::Relation;
use super::{cursor, resolve, set, vacuum};
use crate::bind::{self, ParamTypes};
use crate::error::{Result, SqlError};
use crate::session::outcome::{Columns, Outcome};
use crate::session::params::Given;
use crate::session::prepared::Prepared;
use crate::session::{Scope, Session};
use crate::syntax::{Statement, Utility};
use basalt_engine::TableLock;
use basalt_engine::privilege::{self, Privileges};
use basalt_types::{DataType, Datum};
use sqlparser::ast;
use std::sync::Arc;

fn done(tag: &str) -> Result<Outcome> {
    Ok(Outcome::Command { tag: tag.to_string() })
}

pub(crate) async fn run(session: &mut Session, utility: &Utility, sql: &Arc<str>, given: Given) -> Result<Outcome> {
    let tag = utility.tag();
    match utility {
        Utility::Set { name, value, local } => set::set(session, name, value, *local)?,
        Utility::Show(name) => return set::show(session, name),
        Utility::ShowAll => return set::show_all(session),
        Utility::Reset(name) => set::reset(session, name)?,
        Utility::ResetAll => session.settings.reset_all(),
        Utility::Discard(what) => discard(session, what)?,
        Utility::Prepare { name, types, statement } => prepare(session, name, types, statement, sql)?,
        Utility::Execute { name, args } => return execute(session, name, args, sql).await,
        Utility::Deallocate(name) => deallocate(session, name.as_deref())?,
        Utility::Declare(declared) => cursor::declare(session, declared, sql, given).await?,
        Utility::Fetch { cursor, rows, only_move } => return cursor::fetch(session, cursor, *rows, *only_move).await,
        Utility::Close(name) => cursor::close(session, name.as_deref())?,
        Utility::Listen(channel) => session.listen(channel),
        Utility::Unlisten(channel) => session.unlisten(channel.as_deref()),
        Utility::Notify { channel, payload } => session.say(channel, payload)?,
        Utility::SetConstraints(set) => session.set_constraints(set).await?,
        Utility::Lock { tables, mode, nowait } => {
            if session.block.scope != Scope::Explicit {
                return Err(SqlError::new("25P01", "LOCK TABLE can only be used in transaction blocks"));
            }
            session.next_command()?;
            for table in tables {
                let catalog = session.txn()?.catalog();
                if let Some(relation) = resolve::find(session, &catalog, table)? {
                    if matches!(&relation, Relation::Table(found) if found.materialized.is_some()) {
                        let message = format!("cannot lock relation \"{}\"", table.name);
                        return Err(SqlError::new("42809", message)
                            .with_detail("This operation is not supported for materialized views."));
                    }
                    session.require_relation(&relation, lock_privileges(*mode))?;
                }
                resolve::lock_table(session, table, *mode, *nowait).await?;
            }
        }
        Utility::Vacuum { tables, full, .. } => vacuum::run(session, tables, *full).await?,
        Utility::Analyze { tables } => vacuum::analyze(session, tables)?,
        Utility::Checkpoint => vacuum::checkpoint(session).await?,
        Utility::AlterSystem { name, value } => set::alter_system(session, name, value)?,
        Utility::AlterSystemResetAll => set::alter_system_reset_all(session)?,
    }
    done(tag)
}

/// What LOCK takes one of.
fn lock_privileges(mode: TableLock) -> Privileges {
    let changes = privilege::UPDATE | privilege::DELETE | privilege::TRUNCATE;
    match mode {
        TableLock::AccessShare => privilege::SELECT | changes,
        TableLock::RowExclusive => privilege::INSERT | changes,
        _ => changes,
    }
}

/// Columns of the rows that a utility statement gives; `None` if it gives none.
pub(crate) fn columns(session: &Session, utility: &Utility) -> Result<Option<Columns>> {
    Ok(match utility {
        Utility::Show(name) => Some(set::show_columns(name).into()),
        Utility::ShowAll => Some(set::show_all_columns().into()),
        Utility::Execute { name, .. } => session.statement_named(name)?.columns.clone(),
        Utility::Fetch { cursor, only_move: false, .. } => {
            session.portals.get(cursor).and_then(|portal| portal.columns.clone())
        }
        _ => None,
    })
}

fn discard(session: &mut Session, what: &str) -> Result<()> {
    if what == "ALL" {
        session.refuse_in_block("DISCARD ALL")?;
        session.unlisten(None);
        session.portals.clear();
        session.statements.clear();
        session.settings.reset_all();
        session.settings.set_identity("session_authorization", None, false);
        session.settings.set_identity("role", None, false);
        session.refresh_identity();
        session.db.advisory().release_session(session.backend_key().0);
    }
    if matches!(what, "ALL" | "SEQUENCES") {
        session.sequences.forget_all();
    }
    if matches!(what, "ALL" | "TEMP") {
        session.discard_temp()?;
    }
    if what == "PLANS" {
        session.forget_plans();
    }
    Ok(())
}

fn prepare(
    session: &mut Session,
    name: &str,
    types: &[ast::DataType],
    statement: &Statement,
    sql: &Arc<str>,
) -> Result<()> {
    if session.statements.contains_key(name) {
        return Err(SqlError::new("42P05", format!("prepared statement \"{name}\" already exists")));
    }
    session.next_statement()?;
    let catalog = session.current_catalog();
    let eval = session.eval_context(Vec::new(), &catalog);
    let ctx = session.bind_context(&catalog, sql, &eval);
    let types = types.iter().map(|ty| bind::bind_type(&ctx, ty)).collect::<Result<Vec<DataType>>>()?;
    let prepared = session.prepared(name, sql.clone(), Some(statement.clone()), types, true)?;
    session.add_statement(prepared)
}

async fn execute(session: &mut Session, name: &str, args: &[ast::Expr], sql: &Arc<str>) -> Result<Outcome> {
    let (prepared, params) = arguments(session, name, args, sql)?;
    Box::pin(session.dispatch_prepared(&prepared, params)).await
}

/// A prepared statement, and the values that EXECUTE gives it.
pub(crate) fn arguments(
    session: &mut Session,
    name: &str,
    args: &[ast::Expr],
    sql: &Arc<str>,
) -> Result<(Arc<Prepared>, Vec<Datum>)> {
    let prepared = session.statement_of_now(name)?;
    if args.len() != prepared.types.len() {
        return Err(SqlError::new("42601", format!("wrong number of parameters for prepared statement \"{name}\""))
            .with_detail(format!("Expected {} parameters but got {}.", prepared.types.len(), args.len())));
    }
    let mut params: Vec<Datum> = Vec::with_capacity(args.len());
    if !args.is_empty() {
        let catalog = session.current_catalog();
        let eval = session.eval_context(Vec::new(), &catalog);
        let ctx = session.bind_context(&catalog, sql, &eval);
        for (arg, ty) in args.iter().zip(&prepared.types) {
            let bound = bind::bind_scalar(&ctx, arg, Some(ty), &mut ParamTypes::none())?;
            params.push(bound.eval_scalar(&[], &eval)?);
        }
    }
    Ok((prepared, params))
}

fn deallocate(session: &mut Session, name: Option<&str>) -> Result<()> {
    match name {
        None => session.statements.clear(),
        Some(name) => {
            session.statement_named(name)?;
            session.close_statement(name);
        }
    }
    Ok(())
}
