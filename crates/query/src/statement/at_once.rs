//! Statements that change or lock one row by its key, or insert a few: run where their message is read, as gets are
//! (`session::inline`). They take the ordinary path's own functions, which hardly ever wait: whoever has to, for
//! another's lock or for room in hot, has changed nothing that cannot be taken back, and begins again on that path.

use super::insert::ROWS_INLINE_MAX;
use super::rows::Returned;
use super::{point_get, write};
use crate::bind::point::{PointQuery, point_query};
use crate::bind::{Bound, InsertSource, RowSource, Write};
use crate::error::{Result, SqlError};
use crate::row::{Cells, RowOut};
use crate::session::Session;
use basalt_engine::{Catalog, TableLock};
use basalt_expr::EvalContext;
use basalt_expr::eval::vector::value_at;
use basalt_expr::functions::Volatility;
use basalt_expr::tree::Expr;
use basalt_types::{DataType, Datum, ObjectId, TableDef};
use std::sync::Arc;

/// A statement of this kind.
pub(crate) struct AtOnce {
    pub kind: Kind,
    /// What it takes first.
    pub locks: Vec<(ObjectId, TableLock)>,
    verb: &'static str,
    /// Of what it gives back.
    pub types: Vec<DataType>,
}

pub(crate) enum Kind {
    Write,
    Locked(Box<PointQuery>),
}

impl AtOnce {
    /// `eval` decides nothing that another execution of the same plan could see otherwise.
    pub fn of(
        bound: &Bound,
        locks: Vec<(ObjectId, TableLock)>,
        catalog: &Catalog,
        eval: &EvalContext,
    ) -> Option<AtOnce> {
        let (kind, verb) = match bound {
            Bound::Query(query) => {
                let point = point_query(query, eval).filter(|point| point.lock.is_some())?;
                // It is asked before the lock is there.
                if !may_be_repeated(&point.filter) {
                    return None;
                }
                (Kind::Locked(Box::new(point)), "SELECT")
            }
            Bound::Write(write) => {
                let few = match write {
                    Write::Insert(insert) => match &insert.source {
                        InsertSource::Values(rows) => rows.len() <= ROWS_INLINE_MAX,
                        InsertSource::Query(_) => false,
                    },
                    Write::Update(modify) | Write::Delete(modify) => matches!(modify.source, RowSource::Point(_)),
                    Write::Merge(_) | Write::Read(_) => false,
                };
                let by_itself = |table: &Arc<TableDef>| has_no_consequences(table, catalog);
                if !few || write.runs_plans() || !write.table().is_some_and(by_itself) {
                    return None;
                }
                if !write.exprs().into_iter().all(may_be_repeated) {
                    return None;
                }
                (Kind::Write, write.tag())
            }
            Bound::With(_) => return None,
        };
        let types = bound.columns().unwrap_or_default().into_iter().map(|column| column.ty).collect();
        Some(AtOnce { kind, locks, verb, types })
    }
}

/// Whether nobody minds if a statement that has to wait computes it twice. What is drawn is drawn anew.
pub(crate) fn may_be_repeated(expr: &Expr) -> bool {
    const DRAWN: [&str; 5] = ["nextval", "gen_random_uuid", "random", "clock_timestamp", "timeofday"];
    !expr.any(&mut |node| match node {
        Expr::Call { function, .. } => {
            function.volatility == Volatility::Volatile && !DRAWN.contains(&function.name.as_str())
        }
        _ => false,
    })
}

/// Whether all that a changed row asks for is looked at when it is changed.
fn has_no_consequences(table: &Arc<TableDef>, catalog: &Catalog) -> bool {
    let deferrable = table.indexes.iter().any(|index| index.is_deferrable());
    table.foreign_keys.is_empty() && !catalog.is_referenced(table.id) && !deferrable
}

/// Runs it; gives how its rows are counted, and their number.
pub(crate) async fn run(
    session: &mut Session,
    at_once: &AtOnce,
    bound: &Bound,
    eval: &Arc<EvalContext>,
    cells: Cells<'_>,
) -> Result<(&'static str, u64)> {
    let mut out = RowOut::Cells(cells);
    match (&at_once.kind, bound) {
        (Kind::Locked(point), _) => {
            let rows = point_get::run(session, point, eval, &mut out).await?;
            Ok((at_once.verb, rows))
        }
        (Kind::Write, Bound::Write(write)) => {
            let written = write::run(session, write, eval, None).await?;
            if session.txn()?.take_consequences().is_empty() {
                if let Some(returned) = written.returning {
                    give(at_once, returned, eval, &mut out)?;
                }
                return Ok((at_once.verb, written.rows));
            }
            Err(SqlError::internal("a row of a table without constraints has consequences"))
        }
        (Kind::Write, _) => Err(SqlError::internal("what is to be written at once is no command")),
    }
}

fn give(at_once: &AtOnce, returned: Returned, eval: &EvalContext, out: &mut RowOut<'_>) -> Result<()> {
    if let Returned::Few(few) = &returned {
        return few.rows.iter().try_for_each(|row| out.push(&at_once.types, row, eval));
    }
    for batch in &returned.into_batches()? {
        for row in 0..batch.num_rows() {
            let columns = at_once.types.iter().zip(batch.columns());
            let values: Vec<Datum> = columns.map(|(ty, column)| value_at(ty, column.as_ref(), row)).collect();
            out.push(&at_once.types, &values, eval)?;
        }
    }
    Ok(())
}
