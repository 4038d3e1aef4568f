//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE. A cursor is a portal whose rows are asked for in parts.

use crate::bind::ParamTypes;
use crate::error::{Result, SqlError};
use crate::session::outcome::{Outcome, RowStream, StreamSource};
use crate::session::prepared::{Bound, Portal, Prepared, result_columns};
use crate::session::{Scope, Session};
use crate::syntax::{FetchCount, Statement, strength_name};
use parking_lot::Mutex;
use sqlparser::ast;
use std::sync::Arc;

fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

pub(crate) async fn declare(
    session: &mut Session,
    name: &str,
    hold: bool,
    query: &ast::Query,
    sql: &Arc<str>,
) -> Result<()> {
    if !hold && session.block.scope != Scope::Explicit {
        return Err(SqlError::new("25P01", "DECLARE CURSOR can only be used in transaction blocks"));
    }
    if session.portals.contains_key(name) {
        return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
    }
    session.next_statement()?;
    let statement = Statement::Query(Box::new(query.clone()));
    let (bound, eval, _) = session.plan(&statement, sql, Vec::new(), ParamTypes::none()).await?;
    let Bound::Query(query) = bound else {
        return Err(SqlError::not_supported("DECLARE CURSOR must not contain data-modifying statements in WITH"));
    };
    if hold && let Some((_, strength)) = query.row_locks.first() {
        let clause = strength_name(*strength);
        return Err(SqlError::not_supported(format!("DECLARE CURSOR WITH HOLD ... {clause} is not supported"))
            .with_detail("Holdable cursors must be READ ONLY."));
    }
    let rows = Some(super::lock_rows::rows(session, &query, &eval).await?);
    let columns = Some(result_columns(&query.columns));
    let prepared = Arc::new(Prepared {
        name: String::new(),
        sql: sql.clone(),
        statement: None,
        types: Vec::new(),
        columns: columns.clone(),
        plan: Mutex::new(None),
    });
    let portal = Portal { prepared, params: Vec::new(), columns, rows, verb: "FETCH", done: false, hold };
    session.portals.insert(name.to_string(), portal);
    Ok(())
}

pub(crate) async fn fetch(session: &mut Session, name: &str, count: FetchCount, only_move: bool) -> Result<Outcome> {
    let Some(portal) = session.portals.get_mut(name) else { return Err(no_cursor(name)) };
    let rows_max = match count {
        FetchCount::All => usize::MAX,
        FetchCount::Forward(count) => usize::try_from(count).unwrap_or(usize::MAX),
    };
    if only_move {
        let Some(rows) = &mut portal.rows else { return Err(no_cursor(name)) };
        let mut moved = 0;
        while moved < rows_max {
            match rows.next(rows_max - moved).await? {
                Some(batch) => moved += batch.num_rows(),
                None => break,
            }
        }
        return Ok(Outcome::Command { tag: format!("MOVE {moved}") });
    }
    let columns = portal.columns.clone().unwrap_or_default();
    let source = StreamSource::Portal(name.to_string());
    Ok(Outcome::Rows(RowStream { columns, source, verb: "FETCH", rows: 0, rows_max, suspended: false }))
}

pub(crate) fn close(session: &mut Session, name: Option<&str>) -> Result<()> {
    match name {
        None => session.portals.clear(),
        Some(name) => {
            session.portals.remove(name).ok_or_else(|| no_cursor(name))?;
        }
    }
    Ok(())
}
