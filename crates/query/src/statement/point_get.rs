//! SELECT of one row by its whole primary key: a look-up, perhaps a lock, and a few expressions; no plan to run.

use super::lock_rows::lock_row;
use crate::bind::point::PointQuery;
use crate::error::Result;
use crate::row::RowOut;
use crate::session::Session;
use basalt_expr::EvalContext;
use basalt_types::{DataType, Datum, TabletId};

/// The row, if there is one and it passes the whole condition; computed as the query asks. Gives the number of rows.
pub(crate) async fn run(
    session: &mut Session,
    point: &PointQuery,
    eval: &EvalContext,
    out: &mut RowOut<'_>,
) -> Result<u64> {
    let types: Vec<DataType> = point.outputs.iter().map(|output| output.ty()).collect();
    let mut rows = 0;
    point.check_constants(eval)?;
    let Some(key) = point.access.key(&point.table, eval)? else { return Ok(rows) };
    let read = session.txn()?.read();
    let tablets: Vec<TabletId> = match read.tablet_of(&point.table, &key) {
        Some(tablet) => vec![tablet],
        None => point.table.tablets().collect(),
    };
    for tablet in tablets {
        // A key without a row in sight is not locked: others may insert it. Nor is one that does not match as it is seen.
        let Some(mut row) = read.get_columns(&point.table, tablet, &key, &point.columns)? else { continue };
        if point.asks_more && !point.filter.holds_as_planned(&row.values, eval)? {
            continue;
        }
        if let Some(target) = &point.lock {
            let wait = session.wait_policy();
            let (txn, seen) = (session.txn()?, row.stamp);
            let Some(newest) = lock_row(txn, target, tablet, &key, Some(seen), wait).await? else { continue };
            let changed = newest.stamp != seen;
            // As it was seen, it mostly comes without its values.
            if changed || !newest.values.is_empty() {
                row = newest;
            }
            if changed && !point.filter.holds_as_planned(&row.values, eval)? {
                continue;
            }
        }
        let values = point.outputs.iter().map(|output| Ok(output.eval_as_planned(&row.values, eval)?));
        out.push(&types, &values.collect::<Result<Vec<Datum>>>()?, eval)?;
        rows += 1;
    }
    Ok(rows)
}
