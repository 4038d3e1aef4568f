//! SQL cursors: DECLARE, FETCH, MOVE, CLOSE (PostgreSQL manual, DECLARE and FETCH). A cursor is a portal whose
//! rows are asked for in parts.
//!
//! A cursor that may go backwards keeps the rows that it has given. SCROLL keeps them all, as far as memory goes;
//! a cursor without a word about it keeps a few, and goes on as NO SCROLL when they would become many.

mod current;
mod kept;

pub(crate) use current::{Places, current};
pub(crate) use kept::Kept;

use crate::error::{Result, SqlError};
use crate::plan::Query;
use crate::session::outcome::{Columns, Outcome, RowSource, RowStream, StreamSource};
use crate::session::params::Given;
use crate::session::prepared::{Body, Bound, Portal, Prepared, result_columns};
use crate::session::{Scope, Session, spent_portal};
use crate::syntax::{Declare, FetchRows, Statement, strength_name};
use arrow_array::RecordBatch;
use basalt_engine::Txn;
use basalt_types::{ObjectId, TableDef};
use kept::Filled;
use parking_lot::Mutex;
use std::sync::Arc;

/// What a cursor has beside its portal's rows.
pub(crate) struct Cursor {
    /// Rows given so far, where it only goes forward.
    pub passed: usize,
    /// `None`: it only goes forward.
    pub kept: Option<Kept>,
    /// WITH HOLD: its transaction has committed.
    pub committed: bool,
    pub binary: bool,
    /// It may go backwards.
    pub scrolls: bool,
    /// For WHERE CURRENT OF.
    pub places: Places,
    /// What it reads.
    tables: Vec<ObjectId>,
}

impl Cursor {
    /// Whether the transaction in which it was made goes on, and has written what it reads.
    pub fn sees_writes_of(&self, txn: &Txn) -> bool {
        !self.committed && txn.has_written_to(&self.tables)
    }
}

/// 55006 for a table that an open cursor of the session reads, and that something is to be done to.
pub(super) fn refuse_in_use(session: &Session, table: &TableDef, what: &str) -> Result<()> {
    let cursors = session.portals.iter().filter_map(|(_, portal)| portal.cursor.as_ref());
    match cursors.into_iter().any(|cursor| !cursor.committed && cursor.tables.contains(&table.id)) {
        false => Ok(()),
        true => Err(SqlError::new(
            "55006",
            format!("cannot {what} \"{}\" because it is being used by active queries in this session", table.name),
        )),
    }
}

fn no_cursor(name: &str) -> SqlError {
    SqlError::new("34000", format!("cursor \"{name}\" does not exist"))
}

fn only_forward() -> SqlError {
    SqlError::new("55000", "cursor can only scan forward")
        .with_hint("Declare it with SCROLL option to enable backward scan.")
}

pub(crate) async fn declare(session: &mut Session, declared: &Declare, sql: &Arc<str>, given: Given) -> Result<()> {
    let name = &declared.name;
    if !declared.hold && session.block.scope != Scope::Explicit {
        return Err(SqlError::new("25P01", "DECLARE CURSOR can only be used in transaction blocks"));
    }
    if session.portals.contains(name) {
        return Err(SqlError::new("42P03", format!("cursor \"{name}\" already exists")));
    }
    session.next_statement()?;
    let statement = Statement::Query(declared.query.clone());
    let (bound, eval, _) = session.plan(&statement, sql, given.values.clone(), given.param_types()).await?;
    let Bound::Query(query) = bound else {
        return Err(SqlError::not_supported("DECLARE CURSOR must not contain data-modifying statements in WITH"));
    };
    if let Some((_, strength)) = query.row_locks.first() {
        refuse_with_locks(declared, strength_name(*strength))?;
    }
    if declared.hold {
        // It may read when the transaction has ended.
        let txn = session.txn()?;
        let catalog = txn.catalog();
        query.tables.iter().filter_map(|id| catalog.table(*id)).for_each(|table| txn.note_all(table));
    }
    let given = result_columns(&query.columns);
    let tables = query.tables.clone();
    let mut query = Query::clone(&query);
    let places = current::identify(&mut query);
    let rows = Some(super::lock_rows::rows(session, &Arc::new(query), &eval).await?);
    let format = i16::from(declared.binary);
    let columns = given.into_iter().map(|column| crate::session::ResultColumn { format, ..column });
    let columns: Option<Columns> = Some(columns.collect());
    let prepared = Arc::new(Prepared {
        name: String::new(),
        sql: sql.clone(),
        body: Body::Nothing,
        types: Vec::new(),
        style: None,
        columns: columns.clone(),
        plan: Mutex::new(None),
        types_of: None,
        from_sql: true,
        made_micros: session.statement_micros,
    });
    let kept = match declared.scroll {
        Some(false) => Some(Kept::forward(session.db.runtime().reservation("rows of a cursor"))),
        Some(true) => Some(Kept::all(session.db.runtime().reservation("rows of a cursor"))),
        None => Some(Kept::few(session.db.runtime().reservation("rows of a cursor"))),
    };
    let savepoints = session.block.savepoint_count();
    let scrolls = declared.scroll.unwrap_or(!places.locks);
    let binary = declared.binary;
    let cursor = Some(Cursor { passed: 0, kept, committed: false, binary, scrolls, places, tables });
    let hold = declared.hold;
    let made_micros = session.statement_micros;
    let portal = Portal {
        prepared,
        params: Vec::new(),
        columns,
        rows,
        verb: "FETCH",
        done: false,
        hold,
        savepoints,
        made_micros,
        cursor,
    };
    session.portals.insert(name, portal);
    Ok(())
}

/// 0A000 and 42P11 for a cursor whose rows are locked.
fn refuse_with_locks(declared: &Declare, clause: &str) -> Result<()> {
    let (what, detail) = if declared.hold {
        ("CURSOR WITH HOLD", "Holdable cursors must be READ ONLY.")
    } else if declared.scroll == Some(true) {
        ("SCROLL CURSOR", "Scrollable cursors must be READ ONLY.")
    } else if declared.insensitive {
        let message = format!("DECLARE INSENSITIVE CURSOR ... {clause} is not valid");
        return Err(SqlError::new("42P11", message).with_detail("Insensitive cursors must be READ ONLY."));
    } else {
        return Ok(());
    };
    let message = format!("DECLARE {what} ... {clause} is not supported");
    Err(SqlError::not_supported(message).with_detail(detail))
}

pub(crate) async fn fetch(session: &mut Session, name: &str, wanted: FetchRows, only_move: bool) -> Result<Outcome> {
    let Some(portal) = session.portals.get_mut(name) else { return Err(no_cursor(name)) };
    let columns = portal.columns.clone().unwrap_or_default();
    // Whatever ends this fetch early, an error or a cancel request, leaves a cursor without rows.
    let Some(mut rows) = portal.rows.take() else {
        return Err(if portal.cursor.is_some() { spent_portal(name) } else { no_cursor(name) });
    };
    if let Some(Cursor { kept: Some(kept), .. }) = &mut portal.cursor {
        match kept.fetch(&mut rows, wanted).await? {
            Filled::Rows(batches) => {
                portal.rows = Some(rows);
                return Ok(given(columns, batches, only_move));
            }
            Filled::TooMany { passed } => {
                if let Some(cursor) = &mut portal.cursor {
                    (cursor.passed, cursor.kept) = (passed, None);
                }
            }
        }
    }
    let mut count = forward(wanted, portal.cursor.as_ref().map(|cursor| cursor.passed))?;
    let skipped = pass(&mut rows, count.skip).await?;
    if let Some(cursor) = &mut portal.cursor {
        cursor.passed += skipped;
    }
    if skipped < count.skip {
        count.take = 0;
    }
    if only_move {
        let moved = pass(&mut rows, count.take).await?;
        if let Some(cursor) = &mut portal.cursor {
            cursor.passed += moved;
        }
        portal.rows = Some(rows);
        return Ok(Outcome::Command { tag: format!("MOVE {moved}") });
    }
    portal.rows = Some(rows);
    let (source, rows_max) = (StreamSource::Portal(name.to_string()), count.take);
    Ok(Outcome::Rows(RowStream::of(columns, source, "FETCH", rows_max)))
}

fn given(columns: Columns, batches: Vec<RecordBatch>, only_move: bool) -> Outcome {
    if only_move {
        let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
        return Outcome::Command { tag: format!("MOVE {rows}") };
    }
    Outcome::Rows(RowStream::new(columns, RowSource::ready(batches), "FETCH"))
}

struct Forward {
    skip: usize,
    take: usize,
}

/// What is wanted of a cursor that only goes forward and has given `passed` rows; 55000 for the rest.
fn forward(wanted: FetchRows, passed: Option<usize>) -> Result<Forward> {
    let rows = |count: i64| usize::try_from(count).unwrap_or(usize::MAX);
    match wanted {
        FetchRows::Forward(count) if count > 0 => Ok(Forward { skip: 0, take: rows(count) }),
        FetchRows::ForwardAll => Ok(Forward { skip: 0, take: usize::MAX }),
        FetchRows::Relative(count) if count > 0 => Ok(Forward { skip: rows(count) - 1, take: 1 }),
        FetchRows::Absolute(count) if count > 0 => {
            match passed.and_then(|passed| rows(count).checked_sub(passed + 1)) {
                Some(skip) => Ok(Forward { skip, take: 1 }),
                None => Err(only_forward()),
            }
        }
        FetchRows::Forward(0) | FetchRows::Relative(0) | FetchRows::Absolute(0) if passed == Some(0) => {
            Ok(Forward { skip: 0, take: 0 })
        }
        _ => Err(only_forward()),
    }
}

/// Passes over so many rows; tells how many there were.
async fn pass(rows: &mut RowSource, count: usize) -> Result<usize> {
    let mut passed = 0;
    while passed < count {
        match rows.next(count - passed).await? {
            Some(batch) => passed += batch.num_rows(),
            None => break,
        }
    }
    Ok(passed)
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
