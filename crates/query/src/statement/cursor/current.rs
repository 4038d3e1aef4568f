//! `WHERE CURRENT OF cursor` (PostgreSQL manual, UPDATE and DELETE): the row that a cursor stands on, by its tablet and
//! key. Cursors of which each row is a row of a table that can be told ask for both beside what they give.

use crate::bind::locking::expose;
use crate::bind::{CurrentOf, current_of};
use crate::error::{Result, SqlError};
use crate::plan::{ColId, OutputColumn, Plan, Query};
use crate::session::Session;
use crate::syntax::Statement;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use basalt_types::{DataType, ObjectId};
use std::sync::Arc;

/// Ids of columns that no query has: they are given from 0.
const TABLET: ColId = ColId::MAX;
const KEY: ColId = ColId::MAX - 1;
const STAMP: ColId = ColId::MAX - 2;

/// What is known of the rows of a cursor.
pub(crate) struct Places {
    /// It has FOR UPDATE or FOR SHARE: its locked tables alone count.
    pub locks: bool,
    /// Each table with the number of the column that has the tablet; the key is the next.
    tables: Vec<(ObjectId, usize)>,
}

/// Makes a query give the places of its rows behind its columns.
pub(super) fn identify(query: &mut Query) -> Places {
    let first = query.columns.len();
    let mut given: Vec<(ObjectId, [ColId; 2])> = Vec::new();
    let locks = matches!(query.plan, Plan::LockRows(_));
    match &mut query.plan {
        Plan::LockRows(step) => {
            for target in &step.targets {
                let [tablet, key, _] = target.identity;
                given.push((target.table.id, [tablet, key]));
                if expose(&mut step.input, tablet) && expose(&mut step.input, key) {
                    step.columns.extend([(tablet, DataType::Int8), (key, DataType::Bytea)]);
                }
            }
        }
        plan => {
            if let Some(table) = only_scan(plan)
                && expose(plan, TABLET)
                && expose(plan, KEY)
            {
                given.push((table, [TABLET, KEY]));
            }
        }
    }
    for (_, [tablet, key]) in &given {
        for (id, ty) in [(*tablet, DataType::Int8), (*key, DataType::Bytea)] {
            let name = String::new();
            query.columns.push(OutputColumn { id, name, ty, typmod: -1, table_oid: 0, column_no: 0 });
        }
    }
    let tables = given.iter().enumerate().map(|(at, (table, _))| (*table, first + 2 * at)).collect();
    Places { locks, tables }
}

/// The table whose rows are those of the query, one by one; its scan gives their places from now on.
fn only_scan(plan: &mut Plan) -> Option<ObjectId> {
    match plan {
        Plan::Project { input, .. } | Plan::Filter { input, .. } | Plan::Limit { input, .. } => only_scan(input),
        Plan::Scan { table, identity: identity @ None, .. } => {
            *identity = Some([TABLET, KEY, STAMP]);
            Some(table.id)
        }
        _ => None,
    }
}

/// The cursor that a statement's WHERE CURRENT OF names, and the rows that it stands on. 34000 and 24000.
pub(crate) fn current(session: &Session, statement: &Statement) -> Result<Option<Arc<CurrentOf>>> {
    let Some(name) = current_of(statement) else { return Ok(None) };
    let portal = session.portals.get(&name).ok_or_else(|| super::no_cursor(&name))?;
    let odd = |message: String| Err(SqlError::new("24000", message));
    let Some(cursor) = &portal.cursor else { return odd(format!("cursor \"{name}\" is not a SELECT query")) };
    if cursor.committed {
        return odd(format!("cursor \"{name}\" is held from a previous transaction"));
    }
    let mut rows = Vec::with_capacity(cursor.places.tables.len());
    for (table, column) in &cursor.places.tables {
        let Some(kept) = &cursor.kept else {
            return Err(SqlError::not_supported("WHERE CURRENT OF a cursor that keeps no rows is not supported")
                .with_hint("Declare the cursor with SCROLL."));
        };
        let Some((batch, row)) = kept.current() else {
            return odd(format!("cursor \"{name}\" is not positioned on a row"));
        };
        let malformed = || SqlError::internal("a row of a cursor has no place");
        let tablet = batch.column(*column).as_primitive_opt::<Int64Type>().ok_or_else(malformed)?.value(row);
        let keys = batch.column(column + 1).as_binary_view_opt().ok_or_else(malformed)?;
        rows.push((*table, tablet, keys.value(row).to_vec()));
    }
    Ok(Some(Arc::new(CurrentOf { cursor: name, locks: cursor.places.locks, rows })))
}
