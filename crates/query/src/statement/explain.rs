//! EXPLAIN: the plan as lines of text.

use super::rows::text_rows;
use crate::bind::{InsertSource, ParamTypes, RowSource, Write};
use crate::error::{Result, SqlError};
use crate::plan::{Plan, Query};
use crate::session::Session;
use crate::session::outcome::{Outcome, ResultColumn};
use crate::session::prepared::Bound;
use crate::syntax::Statement;
use basalt_types::Datum;
use std::sync::Arc;

pub(crate) async fn run(
    session: &mut Session,
    analyze: bool,
    statement: &Statement,
    sql: &Arc<str>,
    params: Vec<Datum>,
) -> Result<Outcome> {
    if analyze && !matches!(statement, Statement::Query(_)) {
        return Err(SqlError::not_supported(format!("EXPLAIN ANALYZE of {} is not supported", statement.verb()))
            .with_hint("Use EXPLAIN, or EXPLAIN ANALYZE of the query that finds the rows."));
    }
    session.next_statement()?;
    let (bound, eval, _) = session.plan(statement, sql, params, ParamTypes::none()).await?;
    if analyze
        && let Bound::Query(query) = &bound
        && let Some((_, strength)) = query.row_locks.first()
    {
        let clause = crate::syntax::strength_name(*strength);
        return Err(SqlError::not_supported(format!("EXPLAIN ANALYZE of {clause} is not supported"))
            .with_hint("Use EXPLAIN, or EXPLAIN ANALYZE of the query without its locking clause."));
    }
    let (head, query): (Option<String>, Option<Arc<Query>>) = match &bound {
        Bound::Query(query) => match crate::bind::point::point_query(query, &eval) {
            Some(point) => {
                let get = format!("Point Get on {}", point.table.name);
                (Some(if point.lock.is_some() { format!("Lock Rows\n  ->  {get}") } else { get }), None)
            }
            None => {
                let locks = matches!(query.plan, Plan::LockRows(_));
                (locks.then(|| "Lock Rows".to_string()), Some(query.clone()))
            }
        },
        Bound::Write(write) => explain_write(write),
        Bound::With(_) => {
            return Err(SqlError::not_supported("EXPLAIN of data-modifying statements in WITH is not supported")
                .with_hint("Explain each of them by itself."));
        }
    };
    let mut lines: Vec<String> = head.iter().flat_map(|head| head.lines()).map(str::to_string).collect();
    if let Some(query) = query {
        let ctx = session.run_context(&eval)?;
        let plan = session.db.runtime().explain(query, ctx, analyze).await?;
        let nested = |(at, line): (usize, String)| match (head.is_some(), at) {
            (false, _) => line,
            (true, 0) => format!("  ->  {line}"),
            (true, _) => format!("      {line}"),
        };
        lines.extend(plan.into_iter().enumerate().map(nested));
    }
    let rows: Vec<Vec<String>> = lines.into_iter().map(|line| vec![line]).collect();
    text_rows(vec![ResultColumn::text("QUERY PLAN")], &rows, "EXPLAIN")
}

/// The head of a command, and the query below it.
fn explain_write(write: &Write) -> (Option<String>, Option<Arc<Query>>) {
    let verb = match write {
        Write::Insert(_) => "Insert",
        Write::Update(_) => "Update",
        Write::Delete(_) => "Delete",
        Write::Merge(_) => "Merge",
        Write::Read(query) => return (None, Some(query.clone())),
    };
    let head = format!("{verb} on {}", write.table().map_or("", |table| table.name.as_str()));
    match write {
        Write::Insert(insert) => match &insert.source {
            InsertSource::Query(query) => (Some(head), Some(query.clone())),
            InsertSource::Values(rows) => (Some(format!("{head}\n  ->  Values ({} rows)", rows.len())), None),
        },
        Write::Update(modify) | Write::Delete(modify) | Write::Merge(modify) => match &modify.source {
            RowSource::Search(search) => (Some(head), Some(super::search::explained(search))),
            RowSource::Point(_) => (Some(format!("{head}\n  ->  Point Get on {}", modify.table.name)), None),
        },
        Write::Read(query) => (None, Some(query.clone())),
    }
}
